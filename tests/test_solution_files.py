"""Files, tables and films of a solution: they read back with the values, places and errors that it has."""

from __future__ import annotations

import itertools
import shutil

import matplotlib.animation
import meshio
import numpy as np
import pytest
import sympy as sp
import xarray
from PIL import Image

import pibls as pb
from cli_helpers import call, call_json
from internals import error_names
from pibls.errors import FileFormatError, InputError, MissingDependencyError

x, y, z, t = pb.coordinates("x y z t")
HEAT = """title = "Rod"
equations = ["u_t = 0.1*u_xx"]
[domain]
shape = "interval"
x = [0, 1]
[time]
t = [0, 1]
[[conditions]]
kind = "dirichlet"
value = "0"
[[conditions]]
kind = "initial"
value = "sin(pi*x)"
[solve]
tol = 1e-4
"""


@pytest.fixture(scope="module")
def annulus():
    return pb.solve(pb.problems.annulus(), tol=1e-4)


@pytest.fixture(scope="module")
def rod():
    u = pb.field("u", x, t)
    line = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    conditions = [pb.Dirichlet(u, 0), pb.Initial(u, sp.sin(sp.pi * x))]
    return pb.solve(pb.Problem(sp.Eq(u.diff(t), 0.1 * u.diff(x, 2)), line, conditions), tol=1e-4)


def volumes(mesh):
    """Return the signed volumes of all pieces of a mesh, by shape."""
    found = {}
    for shape, corners in mesh.cells_dict.items():
        m = {"line": 1, "triangle": 2, "quad": 2, "tetra": 3, "hexahedron": 3}[shape]
        P = mesh.points[corners][..., :m]
        last = {"quad": 2, "hexahedron": 6}.get(shape)
        if last is not None:
            found[shape] = np.prod(P[:, last] - P[:, 0], axis=1)
        else:
            found[shape] = np.linalg.det(P[:, 1:] - P[:, :1]) / [1, 1, 2, 6][m]
    return found


def area(mesh):
    every = np.concatenate(list(volumes(mesh).values()))
    assert every.min() > 0
    return every.sum()


def test_a_dataset_has_names_values_errors_and_what_was_solved(annulus):
    table = annulus.to_xarray(n=21)
    assert dict(table.sizes) == {"x": 21, "y": 21}
    value = table.u.sel(x=0.7, y=0.3, method="nearest")
    place = [[float(value.x), float(value.y)]]
    assert value == annulus(place)[0]
    assert table.u_error.sel(x=value.x, y=value.y) == annulus.error_field(place)[0]
    assert np.isnan(table.u.sel(x=0.0, y=0.0))
    radius = np.hypot(table.x, table.y)
    assert (np.isfinite(table.u) == (radius > 0.5 - 1e-8) & (radius < 1 + 1e-8)).all()
    facts = table.attrs
    assert (facts["status"], facts["tolerance"]) == ("converged", 1e-4)
    assert facts["error_estimate"] == annulus.error_estimate
    assert facts["equation"] == str(annulus.problem)


def test_time_is_a_dimension_and_axes_can_be_given(rod):
    table = rod.to_xarray(n=5, t=[0.25, 1.0])
    assert table.u.dims == ("x", "t")
    exact = np.sin(np.pi * table.x) * np.exp(-0.1 * np.pi**2 * table.t)
    assert float(abs(table.u - exact).max()) < 1e-3
    assert rod.to_xarray(x=0.5).u.shape == (1, 61)


def test_netcdf_reads_back_without_further_packages(annulus, tmp_path):
    path = annulus.to_netcdf(tmp_path / "a.nc", n=9)
    with xarray.open_dataset(path, engine="scipy") as again:
        assert again.load().identical(annulus.to_xarray(n=9))
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.nc"]


def test_fields_with_greek_names_are_written(tmp_path):
    phi = pb.field("φ", x)
    solution = pb.solve(pb.Problem(phi.diff(x, 2) + 1, pb.Interval((x, 0, 1)), [pb.Dirichlet(phi, 0)]))
    with xarray.open_dataset(solution.to_netcdf(tmp_path / "a.nc", n=3)) as again:
        assert again["phi"].values[1] == pytest.approx(1 / 8)
        assert again["phi"].long_name == "φ"
    assert meshio.read(solution.to_vtk(tmp_path / "a.vtu")).point_data["φ"].max() == pytest.approx(1 / 8)


def test_a_complex_field_is_two_real_ones(tmp_path):
    psi = pb.field("psi", x, complex=True)
    solution = pb.solve(pb.Problem(psi.diff(x, 2) + sp.I * psi - 1, pb.Interval((x, 0, 1)), [pb.Dirichlet(psi, 0)]))
    with xarray.open_dataset(solution.to_netcdf(tmp_path / "a.nc", n=5)) as table:
        assert np.array_equal(table.psi_re + 1j * table.psi_im, solution(table.x.values))
        assert np.allclose(np.hypot(table.psi_re_error, table.psi_im_error), solution.error_field(table.x.values))


def test_a_table_has_a_row_for_each_point_of_the_domain(annulus, tmp_path):
    frame = annulus.to_pandas(n=31)
    radius = np.hypot(frame.x, frame.y)
    assert radius.min() >= 0.5 - 1e-8
    assert radius.max() <= 1 + 1e-8
    assert list(frame.columns) == ["x", "y", "u", "u_error"]
    written = np.loadtxt(annulus.to_csv(tmp_path / "a.csv", n=31), delimiter=",", skiprows=1)
    assert np.array_equal(written, frame.to_numpy())


def test_a_cloud_has_its_points_for_a_dimension():
    places = np.random.default_rng(0).uniform(size=(200, 2))
    edge = np.concatenate([np.stack(pair, axis=1) for s in (0.0, 1.0) for pair in _sides(s)])
    u = pb.field("u", x, y)
    cloud = pb.PointCloud((x, y), places, edge, np.tile([1.0, 0.0], (len(edge), 1)))
    solution = pb.solve(pb.Problem(pb.laplacian(u), cloud, [pb.Dirichlet(u, x + y)]), tol=1e-3)
    table = solution.to_xarray()
    assert table.u.dims == ("point",)
    assert float(abs(table.u - table.x - table.y).max()) < 1e-2
    with pytest.raises(InputError, match="point cloud has none"):
        solution.to_vtk("a.vtu")


def _sides(s):
    along = np.linspace(0, 1, 10)
    return (along, np.full(10, s)), (np.full(10, s), along)


def test_a_field_may_be_called_like_an_error():
    assert error_names(["u", "u_error"]) == {"u": "u_error_", "u_error": "u_error_error_"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 1}, "at least 2"),
        ({"r": [1]}, "coordinates x, y"),
        ({"x": "a"}, "list of numbers"),
        ({"x": []}, "list of"),
    ],
)
def test_grids_that_are_refused(annulus, options, words):
    with pytest.raises(InputError, match=words):
        annulus.to_xarray(**options)


def test_a_mesh_consists_of_the_cells_up_to_the_boundary(annulus, tmp_path):
    mesh = meshio.read(annulus.to_vtk(tmp_path / "a.vtu"))
    assert sorted(mesh.point_data) == ["u", "u_error"]
    assert area(mesh) == pytest.approx(annulus.problem.domain.measure, rel=1e-4)
    assert set(np.unique(mesh.cell_data_dict["cell"]["quad"])) <= set(range(annulus.network.cells))
    inner = np.hypot(*mesh.points.T[:2])
    assert inner.min() == pytest.approx(0.5, abs=1e-6)
    # Values of a neighbour differ from those of the own cell by as much as the solution is wrong.
    assert np.abs(mesh.point_data["u"] - annulus(mesh.points[:, :2], outside="value")).max() < 1e-2
    assert np.median(np.abs(mesh.point_data["u"] - annulus(mesh.points[:, :2], outside="value"))) < 1e-8
    legacy = meshio.read(annulus.to_vtk(tmp_path / "a.vtk"))
    assert np.array_equal(legacy.point_data["u"], mesh.point_data["u"])


def test_pieces_end_where_a_material_ends_and_a_jump_stays_a_jump(tmp_path):
    u = pb.field("u", x, y)
    inner = pb.Disk((x, y), (0.1, 0), 0.5)
    square = pb.Rectangle((x, -1, 1), (y, -1, 1))
    jump = pb.Interface(
        [sp.Eq(pb.inside(u) - pb.outside(u), 1), sp.Eq(pb.inside(pb.flux(u)), pb.outside(pb.flux(u)))], on=inner
    )
    k = sp.Piecewise((2, (x - 0.1) ** 2 + y**2 < 0.25), (1, True))
    problem = pb.Problem(pb.div(k * pb.grad(u)), square, [pb.Dirichlet(u, 0), jump])
    solution = pb.solve(problem, tol=1e-3)
    mesh = meshio.read(solution.to_vtk(tmp_path / "a.vtu"))
    sizes, kinds = volumes(mesh), mesh.cell_data_dict["material"]
    found = [
        sum(sizes[s][kinds[s] == kind].sum() for s in sizes) for kind in np.unique(np.concatenate(list(kinds.values())))
    ]
    assert sorted(found) == pytest.approx([np.pi / 4, 4 - np.pi / 4], rel=1e-3)
    radius = np.hypot(mesh.points[:, 0] - 0.1, mesh.points[:, 1])
    beside = np.abs(radius - 0.5) < 1e-6
    values = mesh.point_data["u"][beside]
    assert beside.sum() > 50
    assert np.minimum(np.abs(values), np.abs(values - 1)).max() < 1e-2
    assert 0.4 < np.mean(values > 0.5) < 0.6


def test_materials_have_numbers_where_cells_end_at_them_too(tmp_path):
    u = pb.field("u", x, y)
    plate = pb.Rectangle((x, 0, 1), (y, 0, 1))
    k = pb.per_region({pb.Rectangle((x, 0, sp.Rational(1, 4)), (y, 0, 1)): 2}, 1)
    solution = pb.solve(pb.Problem(sp.Eq(pb.div(k * pb.grad(u)), 0), plate, [pb.Dirichlet(u, x)]), tol=1e-2)
    mesh = meshio.read(solution.to_vtk(tmp_path / "a.vtu"))
    sizes, kinds = volumes(mesh), mesh.cell_data_dict["material"]
    shares = [sum(sizes[s][kinds[s] == kind].sum() for s in sizes) for kind in (0, 1)]
    assert sorted(shares) == pytest.approx([0.25, 0.75])


def test_a_solid_is_a_mesh_without_gaps(tmp_path):
    u = pb.field("u", x, y, z)
    ball = pb.Ball((x, y, z), (0, 0, 0), 1)
    solution = pb.solve(pb.Problem(sp.Eq(-pb.laplacian(u), 6), ball, [pb.Dirichlet(u, 0)]), tol=1e-3)
    mesh = meshio.read(solution.to_vtk(tmp_path / "a.vtu", n=14))
    assert area(mesh) == pytest.approx(4 * np.pi / 3, rel=1e-2)
    # Every side of a piece is shared with another, or on the sphere, but for those of pieces that would be flat.
    sides = np.sort(np.concatenate([np.delete(mesh.cells_dict["tetra"], i, axis=1) for i in range(4)]), axis=1)
    sides, counts = np.unique(sides, axis=0, return_counts=True)
    assert counts.max() == 2
    alone = mesh.points[sides[counts == 1]]
    areas = np.linalg.norm(np.cross(alone[:, 1] - alone[:, 0], alone[:, 2] - alone[:, 0]), axis=1) / 2
    off = np.abs(np.linalg.norm(alone, axis=2) - 1).max(axis=1) > 1e-6
    assert areas[off].sum() < 1e-6
    assert areas.sum() == pytest.approx(4 * np.pi, rel=1e-2)
    assert mesh.point_data["u"] == pytest.approx(1 - np.sum(mesh.points**2, axis=1), abs=1e-3)


def test_an_evolution_is_a_series_or_one_mesh_with_time(rod, tmp_path):
    whole = meshio.read(rod.to_vtk(tmp_path / "whole.vtu"))
    assert area(whole) == pytest.approx(1.0)
    late = meshio.read(rod.to_vtk(tmp_path / "late.vtu", times=1.0))
    assert late.point_data["u"].max() == pytest.approx(np.exp(-0.1 * np.pi**2), rel=1e-3)
    listed = rod.to_vtk(tmp_path / "film.pvd", times=[0, 0.5]).read_text()
    assert listed.count("<DataSet") == 2
    assert 'timestep="0.5" file="film_0001.vtu"' in listed
    assert area(meshio.read(tmp_path / "film_0001.vtu")) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a.obj", {}, r"\.vtu, \.vtk, \.pvd"),
        ("a.vtu", {"times": [0, 1]}, "Name a .pvd file"),
        ("a.pvd", {"times": [2.0]}, "times from 0 to 1"),
        ("a.vtu", {"n": 0}, "at least 1"),
    ],
)
def test_meshes_that_are_refused(rod, tmp_path, name, options, words):
    with pytest.raises(InputError, match=words):
        rod.to_vtk(tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_no_time_no_series(annulus, tmp_path):
    for name, options in (("a.pvd", {}), ("a.vtu", {"times": [0]})):
        with pytest.raises(InputError, match="problems in time"):
            annulus.to_vtk(tmp_path / name, **options)
    with pytest.raises(InputError, match="changes in time"):
        annulus.animate(tmp_path / "a.gif")


def test_a_folder_that_is_not_there_is_named(annulus, tmp_path):
    with pytest.raises(FileFormatError, match="Choose a folder that exists"):
        annulus.to_vtk(tmp_path / "none" / "a.vtu")


def test_a_film_has_its_frames_and_they_differ(rod, tmp_path):
    with Image.open(rod.animate(tmp_path / "a.gif", frames=4, n=30, fps=10)) as film:
        assert (film.n_frames, film.info["duration"]) == (4, 100)
        frames = []
        for number in range(4):
            film.seek(number)
            frames.append(np.asarray(film.convert("L"), dtype=float))
    assert all(np.abs(a - b).mean() > 0.1 for a, b in itertools.pairwise(frames))


def test_a_film_of_an_expression_with_its_words(rod, tmp_path, monkeypatch):
    u, seen = rod.problem.fields[0], []
    made = matplotlib.figure.Figure.suptitle
    monkeypatch.setattr(
        matplotlib.figure.Figure,
        "suptitle",
        lambda own, *args, **kwargs: (seen.append(own), made(own, *args, **kwargs)),
    )
    rod.animate(tmp_path / "a.gif", 2 * u, frames=2, n=9, label="Heat", unit="J")
    axes = seen[0].axes[0]
    assert (axes.get_title(), axes.get_ylabel()) == ("Heat", "Heat  [J]")
    with pytest.raises(InputError, match="'field' parameter of animate"):
        rod.animate(tmp_path / "b.gif", 2 * u, field=u)
    with pytest.raises(InputError, match="'unit' parameter of animate must be a text"):
        rod.animate(tmp_path / "b.gif", unit=3)


def test_films_that_are_refused(rod, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"'\.gif', '\.mp4'"):
        rod.animate(tmp_path / "a.avi")
    monkeypatch.setattr(matplotlib.animation.FFMpegWriter, "isAvailable", classmethod(lambda _: False))
    with pytest.raises(MissingDependencyError, match="ffmpeg"):
        rod.animate(tmp_path / "a.mp4")


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_a_film_for_players(rod, tmp_path):
    assert rod.animate(tmp_path / "a.mp4", frames=4, n=30).read_bytes()[4:8] == b"ftyp"


def test_files_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rod.toml").write_text(HEAT + '[output]\nnetcdf = "own.nc"\n')
    made = pb.Solution.animate
    monkeypatch.setattr(pb.Solution, "animate", lambda solution, path: made(solution, path, frames=2, n=20))
    words = ["solve", "rod.toml", "--vtk", "a.pvd", "--animate", "a.gif"]
    record = call_json(*words)
    assert sorted(record["files"]) == ["animate", "netcdf", "vtk"]
    with xarray.open_dataset("own.nc") as table:
        assert table.attrs["tolerance"] == 1e-4
    call(*words)  # results are replaced by results
    (tmp_path / "a_0003.vtu").write_text("notes")
    assert "a_0003.vtu, which is not a mesh" in call(*words, code=2).stderr
    (tmp_path / "own.nc").write_bytes(b"CDF\x01 of somebody else")
    (tmp_path / "a_0003.vtu").unlink()
    assert "own.nc, which is not a netCDF file that pibls made" in call(*words, code=2).stderr
    call(*words, "--force")


def test_endings_of_meshes_and_films_are_checked_first(tmp_path, monkeypatch):
    monkeypatch.setattr(pb.tuning, "solve", lambda *_, **__: pytest.fail("it was solved"))
    for option in ("--vtk", "--animate"):
        assert "must end with" in call("solve", "zoo:advection", option, tmp_path / "a.txt", code=2).stderr
