"""Problem files: every shape and condition, tables, and errors that point into the file."""

from __future__ import annotations

import contextlib
import os
import time
import tomllib

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import find_places
from pibls.errors import InputError, PiblsError, TextError
from pibls.text import ProblemFile, read_file, read_text

x, y, z, t = pb.coordinates("x y z t")
u = pb.field("u", x, y)


def with_domain(domain, equation="laplacian(u) = 1", rest='[[conditions]]\nkind = "dirichlet"\nvalue = 0\n'):
    return f'equations = ["{equation}"]\n{domain}\n{rest}'


SHAPES = {
    'shape = "interval"\nx = [0, "2*pi"]': pb.Interval((x, 0, 2 * sp.pi)),
    'shape = "rectangle"\nx = [0, 1]\ny = [-1, 1.5]': pb.Rectangle((x, 0, 1), (y, -1, 1.5)),
    'shape = "box"\nx = [0, 1]\ny = [0, 1]\nz = [0, 1]': pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1)),
    'shape = "disk"\nradius = 2': pb.Disk((x, y), (0, 0), 2),
    'shape = "disk"\ncoordinates = ["y", "z"]\ncenter = [1, "1/2"]\nradius = 2': pb.Disk((y, z), (1, 0.5), 2),
    'shape = "ball"\ncenter = [0, 0, 1]\nradius = 0.5': pb.Ball((x, y, z), (0, 0, 1), 0.5),
    'shape = "ball"\nradius = 1': pb.Ball((x, y, z), (0, 0, 0), 1),
    'shape = "polygon"\nvertices = [[0, 0], [1, 0], [0, 1]]': pb.Polygon((x, y), [(0, 0), (1, 0), (0, 1)]),
    'shape = "outline"\nrings = [[[0, 0], [3, 0], ["6/2", 3], [0, 3]], [[1, 1], [2, 1], [1, 2]]]'
    "\nparts = {low = [0]}": (
        pb.Outline((x, y), [[(0, 0), (3, 0), (3, 3), (0, 3)], [(1, 1), (2, 1), (1, 2)]], {"low": [0]})
    ),
    'shape = "implicit"\nfunction = "x**2 + 4*y**2 - 1"\nbounds = [[-2, 2], [-1, 1]]': pb.Implicit(
        (x, y), x**2 + 4 * y**2 - 1, [(-2, 2), (-1, 1)]
    ),
    'shape = "cylinder"\nstart = [0, 0, 0]\nstop = [0, 1, 0]\nradius = 2': pb.Cylinder(
        (x, y, z), (0, 0, 0), (0, 1, 0), 2
    ),
    'shape = "cone"\nstart = [0, 0, 0]\nstop = [0, 1, 0]\nradius = 2': pb.Cone((x, y, z), (0, 0, 0), (0, 1, 0), 2),
    'shape = "cone"\nstart = [0, 0, 0]\nstop = [0, 1, 0]\nradius = 2\ntop_radius = "1/2"': pb.Cone(
        (x, y, z), (0, 0, 0), (0, 1, 0), 2, 0.5
    ),
    'shape = "torus"\nradius = 3\ntube = 1\naxis = [1, 0, 0]': pb.Torus((x, y, z), (0, 0, 0), 3, 1, (1, 0, 0)),
    'shape = "extrusion"\nof = {shape = "disk", radius = 1}\nz = [0, 5]': pb.Extrusion(
        pb.Disk((x, y), (0, 0), 1), (z, 0, 5)
    ),
    'shape = "revolution"\naxis = "z"\n'
    'of = {shape = "disk", coordinates = ["r", "z"], center = [3, 0], radius = 1}': pb.Revolution(
        (x, y, z), pb.Disk((pb.coordinates("r"), z), (3, 0), 1), z
    ),
    'shape = "star"\nangle = "a"\nradius = "1 + cos(3*a)/4"\ncenter = [1, 0]': pb.Star(
        (x, y), 1 + sp.cos(3 * sp.Symbol("a", real=True)) / 4, (1, 0)
    ),
    'shape = "points"\ninterior = [[0.5, 0.5]]\nboundary = [[0, 0], [1, 0]]\nnormals = [[-1, 0], [1, 0]]\n'
    "weights = [2]\nparts = {wall = [0]}": pb.PointCloud(
        (x, y), [[0.5, 0.5]], [[0, 0], [1, 0]], [[-1, 0], [1, 0]], [2.0], {"wall": [0]}
    ),
    'shape = "union"\nof = [{shape = "disk", radius = 1}, {shape = "disk", center = [1, 0], radius = 1}]': (
        pb.Disk((x, y), (0, 0), 1) | pb.Disk((x, y), (1, 0), 1)
    ),
    'shape = "intersection"\nof = [{shape = "disk", radius = 1}, {shape = "disk", center = [1, 0], radius = 1}]': (
        pb.Disk((x, y), (0, 0), 1) & pb.Disk((x, y), (1, 0), 1)
    ),
    'shape = "difference"\nof = [{shape = "rectangle", x = [0, 4], y = [0, 1]}, '
    '{shape = "disk", center = [1, 0.5], radius = 0.2}, {shape = "disk", center = [3, 0.5], radius = 0.2}]': (
        pb.Rectangle((x, 0, 4), (y, 0, 1)) - pb.Disk((x, y), (1, 0.5), 0.2) - pb.Disk((x, y), (3, 0.5), 0.2)
    ),
}


@pytest.mark.parametrize("text", SHAPES, ids=lambda text: text[9:40])
def test_shapes(text):
    assert read_text(with_domain(f"[domain]\n{text}\n")).problem.domain == SHAPES[text]


def test_time_with_and_without_space():
    both = read_text(with_domain('[domain]\nshape = "interval"\nx = [0, 1]\n[time]\nt = [0, "1/2"]', "u_t = u_xx"))
    assert both.problem.domain == pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 0.5)
    initial = '[[conditions]]\nkind = "initial"\nvalue = 1\n'
    alone = read_text(with_domain("[time]\nt = [0, 3]", "u_t = -u", initial)).problem
    assert alone.domain == pb.TimeInterval(t, 0, 3)
    assert repr(alone.conditions[0]) == "Initial(u = 1 on initial time)"


PLATE = """
title = "Plate"
unknowns = ["u"]
equations = ["-laplacian(u) = c"]
[parameters]
c = "a + 1"
[domain]
shape = "difference"
of = [
  {shape = "rectangle", x = [0, 1], y = [0, 1], name = "plate"},
  {shape = "disk", center = [0.5, 0.5], radius = 0.2, name = "hole"},
]
[[conditions]]
%s
[solve]
tol = 1e-4
seed = 3
budget = 2
device = "cpu"
[output]
plot = "a.png"
csv = "out/a.csv"
""".replace("a + 1", "2*3 + 1")

square, hole = pb.Rectangle((x, 0, 1), (y, 0, 1)), pb.Disk((x, y), (0.5, 0.5), 0.2)
plate = square - hole
CONDITIONS = {
    'kind = "dirichlet"\nvalue = "x*y"': pb.Dirichlet(u, x * y),
    'kind = "dirichlet"\nu = "u_x"\nvalue = 0.5\non = "left"\nweight = 3\nexact = true': pb.Dirichlet(
        u.diff(x), 0.5, on=plate.left, weight=3.0, exact=True
    ),
    'kind = "neumann"\nvalue = "n_x"\non = "hole"': pb.Neumann(u, pb.normal(x), on=hole.boundary),
    'kind = "neumann"\nvalue = 0\non = "plate.top"': pb.Neumann(u, 0, on=square.top),
    'kind = "neumann"\nvalue = 0\non = "plate.boundary"': pb.Neumann(u, 0, on=square.boundary),
    'kind = "robin"\nalpha = 2\nbeta = "1 + x"\nvalue = 1\non = ["left", "right"]': pb.Robin(
        u, 2, 1 + x, 1, on=plate.left | plate.right
    ),
    'kind = "condition"\nequation = "u + dn(u) = 1"\non = "boundary"\nlabel = "Wall"': pb.Condition(
        sp.Eq(u + pb.normal_derivative(u), 1), on=plate.boundary, label="Wall"
    ),
    'kind = "robin"\nequation = "u + dn(u)"': pb.Condition(u + pb.normal_derivative(u), label="Robin"),
    'kind = "condition"\nequation = "u = 1"\nat = [[0, 0], [1, "1/2"]]': pb.Condition(
        sp.Eq(u, 1), on=[[0, 0], [1, 0.5]]
    ),
    'kind = "mean"\nvalue = "1/4"': pb.Mean(u, 0.25),
    'kind = "mean"': pb.Mean(u, 0),
    'kind = "periodic"\nalong = "x"\nderivatives = 1\nweight = 2': pb.Periodic(u, x, 1, weight=2),
    'kind = "observation"\nu = "u + u_x"\npoints = [[0, 0], [1, 1]]\nvalues = [1, 2]\nnoise = 0.1': pb.Observation(
        u + u.diff(x), [[0, 0], [1, 1]], [1, 2], 0.1
    ),
    'kind = "observation"\npoints = [[0, 0], [1, 1]]\nvalues = [1, 2]\nnoise = [0.1, 0.2]': pb.Observation(
        u, [[0, 0], [1, 1]], [1, 2], [0.1, 0.2]
    ),
}


@pytest.mark.parametrize("text", CONDITIONS, ids=lambda text: text[:40])
def test_conditions(text):
    found, wanted = read_text(PLATE % text).problem, pb.Problem(-pb.laplacian(u) - 7, plate, [CONDITIONS[text]])
    assert repr(found.conditions[0]) == repr(wanted.conditions[0])
    for one, two in zip(found.statements[1:], wanted.statements[1:], strict=True):
        assert one.form.expression == two.form.expression
        assert (one.weight, one.exact) == (two.weight, two.exact)
        assert type(one.place) is type(two.place)
        assert getattr(one.place, "part", None) == getattr(two.place, "part", None)
        assert np.array_equal(getattr(one.place, "points", 0), getattr(two.place, "points", 0))
        assert np.array_equal(one.targets, two.targets)
        assert np.array_equal(one.noise, two.noise)


def test_comparisons_choose_the_same_points_as_a_python_predicate():
    found = read_text(PLATE % 'kind = "dirichlet"\nvalue = 0\non = "x > 0.9 and y < 0.5"').problem
    part = found.statements[1].place.part
    wanted = plate.boundary.where(lambda X: (X[:, 0] > 0.9) & (X[:, 1] < 0.5))
    assert part.name == "boundary.where((x > 0.9) & (y < 0.5))"
    for one, two in zip(part.sample(50), wanted.sample(50), strict=True):
        assert np.array_equal(one, two)
    within = read_text(PLATE % 'kind = "dirichlet"\nvalue = 0\non = "left"\nwhere = "y < 0.25"').problem
    assert within.statements[1].place.part.measure == pytest.approx(0.25)


def test_comparisons_in_time():
    text = with_domain(
        '[domain]\nshape = "interval"\nx = [0, 1]\n[time]\nt = [0, 1]',
        "u_t = u_xx",
        '[[conditions]]\nkind = "dirichlet"\nvalue = 0\non = "left"\nwhere = "t < 0.5"\n',
    )
    assert read_text(text).problem.statements[1].place.part.measure == pytest.approx(0.5)


def test_options_and_outputs():
    file = read_text(PLATE % 'kind = "dirichlet"\nvalue = 0')
    assert isinstance(file, ProblemFile)
    assert file.title == "Plate"
    assert (file.solve.tol, file.solve.seed, file.solve.budget, file.solve.device) == (1e-4, 3, 2.0, "cpu")
    assert (file.solve.deadline, file.solve.assume_well_posed) == (None, None)
    more = (PLATE % 'kind = "dirichlet"\nvalue = 0').replace("seed = 3", "deadline = 60\nassume_well_posed = true")
    assert (read_text(more).solve.deadline, read_text(more).solve.assume_well_posed) == (60.0, True)
    near = (PLATE % 'kind = "dirichlet"\nvalue = 0').replace("seed = 3", 'relative = "%s"')
    assert read_text(near % "local").solve.relative == "local"
    with pytest.raises(pb.PiblsError, match="relative"):
        read_text(near % "nearby")
    assert (file.output.plot, file.output.csv, file.output.json) == ("a.png", "out/a.csv", None)


ROD = """
equations = ["u_t = u_xx"]
exact = "exp(-pi**2*t)*sin(pi*x)"
[domain]
shape = "interval"
x = [0, 1]
[time]
t = [0, 0.1]
[[conditions]]
kind = "dirichlet"
value = 0
[[conditions]]
kind = "initial"
value = "sin(pi*x)"
[solve]
time = %s
"""


@pytest.mark.parametrize("way", ["space-time", "lines"])
def test_the_way_through_time(way):
    options = read_text(ROD % f'"{way}"').solve
    assert options.time == way
    assert options.tol is None


def test_a_way_through_time_that_is_none_is_refused():
    with pytest.raises(TextError, match="space-time") as caught:
        read_text(ROD % '"rows"')
    assert caught.value.line == 16
    with pytest.raises(TextError, match="in time"):
        read_text(PLATE.replace('device = "cpu"', 'time = "lines"') % 'kind = "dirichlet"\nvalue = 0')


def test_several_unknowns_numbers_and_exact_solutions():
    text = """
unknowns = ["u", "w"]
unknown_numbers = ["q"]
equations = ["u_x = q*w", "w_x = -u"]
exact = {u = "sin(x)", w = "cos(x)"}
[domain]
shape = "interval"
x = [0, 1]
[[conditions]]
kind = "observation"
u = "u"
points = [[0.5]]
values = [1]
"""
    problem = read_text(text).problem
    assert problem.field_names == ("u", "w")
    assert problem.parameters == (pb.unknown("q"),)
    assert problem.exact == {"u": sp.sin(x), "w": sp.cos(x)}
    single = 'exact = "x**2"\n' + with_domain('[domain]\nshape = "interval"\nx = [0, 1]', "u_xx = 2")
    assert read_text(single).problem.exact == {"u": x**2}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "k.csv").write_text("x,k\n1,3\n0,1\n")
    grid = [(a, b) for a in (0, 0.5, 1) for b in (0, 0.5, 1)]
    (tmp_path / "c.csv").write_text("x, y ,value\n" + "".join(f"{a},{b},{2 * a + b}\n" for a, b in grid))
    (tmp_path / "in.csv").write_text("x,y,weight\n0.25,0.5,0.5\n0.75,0.5,0.5\n")
    (tmp_path / "edge.csv").write_text("x,y,n_x,n_y\n0,0.5,-1,0\n1,0.5,1,0\n")
    (tmp_path / "obs.csv").write_text("\ufeffx,y,u,sigma\n0.25,0.5,1.5,0.1\n0.75,0.5,2.5,0.2\n", encoding="utf-8")
    return tmp_path


def test_coefficients_from_tables(folder):
    text = """
equations = ["k*u_xx + c*u_y = 1"]
[data.k]
file = "k.csv"
coordinates = ["x"]
[data.c]
file = "c.csv"
column = "value"
method = "%s"
[domain]
shape = "rectangle"
x = [0, 1]
y = [0, 1]
[[conditions]]
kind = "dirichlet"
value = 0
"""
    (folder / "p.toml").write_text(text % "linear")
    problem = pb.read_problem(folder / "p.toml")
    k, c = (problem.data[name].func.function for name in "kc")
    assert np.allclose(k(np.array([-1.0, 0.25, 2.0])), [1.0, 1.5, 3.0])
    assert np.allclose(c(np.array([0.25, 1.0, 9.0]), np.array([0.75, 0.5, 1.0])), [1.25, 2.5, 3.0])
    written = problem.to_text()
    assert 'file = "k.csv"' in written
    assert read_text(written, folder).problem.data["k"].func.function == k
    nearest = read_text(text % "nearest", folder).problem.data["c"].func.function
    assert nearest(np.array([0.3]), np.array([0.9])) == 2.0


def test_points_and_measurements_from_tables(folder):
    text = """
equations = ["laplacian(u) = 1"]
[domain]
shape = "points"
interior = "in.csv"
boundary = "edge.csv"
[[conditions]]
kind = "observation"
file = "obs.csv"
noise = %s
[[conditions]]
kind = "neumann"
value = 0
"""
    problem = read_text(text % '"sigma"', folder).problem
    assert problem.domain.measure == 1.0
    assert np.array_equal(problem.domain.boundary_normals, [[-1, 0], [1, 0]])
    assert np.array_equal(problem.statements[1].targets, [1.5, 2.5])
    assert np.array_equal(problem.statements[1].noise, [0.1, 0.2])
    assert np.array_equal(read_text(text % "0.5", folder).problem.statements[1].noise, [0.5, 0.5])


TABLES = {
    '"../k.csv"': "in the folder",
    '"/etc/passwd"': "in the folder",
    '"C:/k.csv"': "in the folder",
    '"a\\\\b.csv"': "in the folder",
    '""': "in the folder",
    '"link.csv"': "no file",
    '"none.csv"': "no file",
    '"empty.csv"': "is empty",
    '"blank.csv"': "over 3000000 entries",
    '"numbers.csv"': "name its columns",
    '"rows.csv"': "no rows",
    '"ragged.csv"': "1 entries, and 2 columns",
    '"words.csv"': "'many' in column 'k'",
    '"nan.csv"': "is not a finite number",
    '"underscore.csv"': "'1_0' in column 'k' is not a finite number",
    '"digits.csv"': "is not a finite number",
    '"twice.csv"': "a point twice",
    '"other.csv"': "no column 'x'",
    '"binary.csv"': "cannot be read as CSV",
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_are_refused(folder, tmp_path_factory, name):
    outside = tmp_path_factory.mktemp("outside") / "secret.csv"
    outside.write_text("x,k\n0,1\n")
    (folder / "link.csv").symlink_to(outside)
    contents = {
        "empty": "", "blank": "x,k\n" + "\n" * 3_000_000,
        "numbers": "1,2\n3,4\n", "rows": "x,k\n\n", "ragged": "x,k\n1\n", "words": "x,k\n1,many\n",
        "nan": "x,k\n1,nan\n", "underscore": "x,k\n1,1_0\n", "digits": "x,k\n1,\u0661\n",
        "twice": "x,k\n1,2\n1,3\n", "other": "z,k\n1,2\n",
    }  # fmt: skip
    for stem, content in contents.items():
        (folder / f"{stem}.csv").write_text(content)
    (folder / "binary.csv").write_bytes(b"x,k\n\xff\xfe,1\n")
    text = f'equations = ["k*u_x = 1"]\n[data.k]\nfile = {name}\n[domain]\nshape = "interval"\nx = [0, 1]\n'
    with pytest.raises(TextError, match=TABLES[name]):
        read_text(text, folder)


def test_points_on_a_line_are_refused_for_linear_interpolation(folder):
    (folder / "line.csv").write_text("x,y,k\n0,0,1\n1,1,2\n2,2,3\n")
    text = 'equations = ["k*u_x = 1"]\n[data.k]\nfile = "line.csv"\n[domain]\nshape = "disk"\nradius = 1\n'
    with pytest.raises(TextError, match="nearest"):
        read_text(text, folder)
    with pytest.raises(TextError, match="read_problem"):
        read_text(text)


def test_as_many_scattered_points_as_triangles_are_made_of(folder, monkeypatch):
    text = 'equations = ["k*u_x = 1"]\n[data.k]\nfile = "c.csv"\ncolumn = "value"\nmethod = "%s"\n[domain]\n'
    text += 'shape = "disk"\nradius = 1\n[[conditions]]\nkind = "dirichlet"\nvalue = 0\n'
    monkeypatch.setattr("pibls.text.problem_files._MOST_SCATTERED", 9)
    read_text(text % "linear", folder)
    monkeypatch.setattr("pibls.text.problem_files._MOST_SCATTERED", 8)
    with pytest.raises(TextError, match=r'line 3, .* 9 points, .* up to 8\. Thin it out, or use method = "nearest"'):
        read_text(text % "linear", folder)
    read_text(text % "nearest", folder)


GOOD = PLATE % 'kind = "dirichlet"\nvalue = "x"\non = "left"'
MISTAKES = {
    ("-laplacian(u) = c", "-laplacin(u) = c"): (4, 16, "Did you mean 'laplacian'"),
    ("-laplacian(u) = c", "u = u"): (4, 14, "no unknown"),
    ('"-laplacian(u) = c"', "3"): (4, 14, "list of text"),
    ('["-laplacian(u) = c"]', "3"): (4, 13, "a list"),
    ('unknowns = ["u"]', 'unknowns = ["u", "x"]'): (3, 18, "used twice"),
    ('unknowns = ["u"]', 'unknowns = ["\u00fc"]'): (3, 13, "letters, digits"),
    ('unknowns = ["u"]', 'unknowns = ["u"]\nunknown = 1'): (4, 1, "Did you mean 'unknowns'"),
    ('c = "2*3 + 1"', 'c = "2*3 + zeta"'): (6, 12, "Declare it"),
    ('c = "2*3 + 1"', 'c = """2*3\n  + zeta"""'): (7, 5, "Declare it"),
    ('c = "2*3 + 1"', 'c = "2*\\u0033 + zeta"'): (6, 17, "Declare it"),
    ('c = "2*3 + 1"', "c = true"): (6, 5, "formula in quotes"),
    ("radius = 0.2", "radius = -0.2"): (11, 3, "above 0"),
    ("radius = 0.2", 'radius = "x"'): (11, 51, "no 'x'"),
    ("radius = 0.2", "radus = 0.2"): (11, 41, "Did you mean 'radius'"),
    ("x = [0, 1]", "x = [0]"): (10, 29, r"\[lower, upper\]"),
    ("x = [0, 1]", "x = [1, 0]"): (10, 3, "increasing order"),
    ('name = "hole"', 'name = "plate"'): (11, 62, "taken"),
    ('shape = "disk"', 'shape = "dsk"'): (11, 12, "Did you mean 'disk'"),
    ('kind = "dirichlet"', 'kind = "dirichle"'): (14, 8, "Did you mean 'dirichlet'"),
    ('kind = "dirichlet"', ""): (13, 1, "'kind' is missing"),
    ('value = "x"', ""): (13, 1, "'value' is missing"),
    ('on = "left"', 'on = "rigt"'): (16, 6, "Did you mean 'right'"),
    ('on = "left"', 'on = "x < q"'): (16, 11, "no 'q'"),
    ('on = "left"', 'on = "0 < 1"'): (16, 7, "Compare coordinates"),
    ('on = "left"', "on = []"): (16, 6, "must name a part"),
    ('on = "left"', 'on = "left"\nat = [[0, 0]]'): (17, 6, "either points"),
    ('on = "left"', "at = [[0, 0], [1]]"): (16, 6, "equal length"),
    ('on = "left"', "at = [[9, 9]]"): (13, 1, "off the domain"),
    ('on = "left"', 'weight = "x"'): (16, 11, "depends on something"),
    ('on = "left"', "weight = -1"): (13, 1, "weight"),
    ('on = "left"', "exact = 1"): (16, 9, "true or false"),
    ("tol = 1e-4", "tol = 0"): (18, 7, "above 0"),
    ("seed = 3", "seed = -3"): (19, 8, "0 or more"),
    ("seed = 3", "seed = 3.5"): (19, 8, "whole number"),
    ('plot = "a.png"', 'plot = "../a.png"'): (23, 8, "in the folder"),
    ('title = "Plate"', "title = Plate"): (2, 9, "not TOML"),
    ('title = "Plate"', "title = [1"): (3, 1, "not TOML"),
    ('title = "Plate"', "a" + ".a" * 5000 + " = 1"): (2, 1, "too many parts"),
    ('title = "Plate"', "title = " + "[" * 3000): (1, 1, "brackets too deep"),
    ('title = "Plate"', 'title = "' + "x" * 60_000 + '"'): (2, 50_000, "line has more"),
    ('title = "Plate"', "x = " + "9" * 5000): (1, 1, "a number too long"),
    ('title = "Plate"', "#\n" * 100_000): (100_001, 2, "more than 200000"),
}


@pytest.mark.parametrize("change", MISTAKES, ids=lambda change: change[1][:30])
def test_mistakes_are_found_where_they_are(change):
    line, column, words = MISTAKES[change]
    assert change[0] in GOOD
    with pytest.raises(TextError, match=words) as caught:
        read_text(GOOD.replace(change[0], change[1], 1))
    assert (caught.value.line, caught.value.column) == (line, column)


WHOLE = {
    "": "There is no domain",
    "[time]\nt = [0, 1]\ns = [0, 1]": "one key",
    '[domain]\nshape = "disk"\nradius = 1': "'equations' is missing",
    'equations = ["u_x"]\n[domain]\nshape = "union"\nof = []': "needs shapes",
    'equations = ["u_x"]\n[domain]\nshape = "union"\nof = [{shape = "disk", radius = 1}]': "two shapes",
    'equations = ["u_x"]\n[domain]\nshape = "union"\nof = [3]': "list of tables",
    'equations = ["u_x"]\n[domain]\nshape = "disk"': "'radius' is missing",
    'equations = ["u_x"]\ndomain = 3': "must be a table",
    'equations = ["u_x"]\n[domain]\nshape = "star"\nradius = "2 + sin(theta/2)"': "same at θ",
    'equations = ["u_x"]\n[domain]\nshape = "star"\nradius = 1\nangle = "a b"': "one name",
    'equations = ["u_x"]\n[domain]\nshape = "disk"\nradius = 1\ncenter = 3': "must be a list",
    'equations = ["u_x"]\n[domain]\nshape = "interval"\n"\u03b8" = [0, 1]': "plain ASCII",
    'equations = ["u_x"]\n[domain]\nshape = "interval"\n"a b" = [0, 1]': "plain ASCII",
    'unknowns = ["u", "v"]\nequations = ["u_x", "v_x"]\n[[conditions]]\nkind = "mean"\n'
    '[domain]\nshape = "disk"\nradius = 1': "which of u, v",
    'equations = ["u_x", "u = u"]\n[domain]\nshape = "disk"\nradius = 1': "equation 2 has no unknown",
    'equations = ["u_x"]\nexact = "t"\n[domain]\nshape = "disk"\nradius = 1': "no 't'",
    'equations = ["u_x"]\n[exact]\nv = "x"\n[domain]\nshape = "disk"\nradius = 1': "no key 'v'",
    'equations = ["u_x"]\n[[conditions]]\nkind = "periodic"\nalong = "q"\n'
    '[domain]\nshape = "disk"\nradius = 1': "along",
    'equations = ["u_x"]\n[[conditions]]\nkind = "condition"\n[domain]\nshape = "disk"\nradius = 1': "'equation'",
    'equations = ["u_x"]\n[[conditions]]\nkind = "initial"\nvalue = 0\non = "boundary"\n'
    '[domain]\nshape = "disk"\nradius = 1': "at the first time",
    'equations = ["k*u_x"]\n[data.k]\nfile = "k.csv"\ncoordinates = ["q"]\n'
    '[domain]\nshape = "disk"\nradius = 1': "some of",
    'equations = ["k*u_x"]\n[data.k]\nfile = "k.csv"\nmethod = "cubic"\n[domain]\nshape = "disk"\nradius = 1': "one of",
}


@pytest.mark.parametrize("text", WHOLE, ids=lambda text: text[-30:])
def test_incomplete_files(text):
    with pytest.raises(TextError, match=WHOLE[text]):
        read_text(text)


def test_files_are_read_as_utf8_within_limits(tmp_path):
    path = tmp_path / "p.toml"
    path.write_bytes(b"title = 'a'\r\nx = '\xff'")
    with pytest.raises(TextError, match="UTF-8") as caught:
        read_file(path)
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 2, 6)
    path.write_bytes(b"\xef\xbb\xbf" + (GOOD.replace("\n", "\r\n")).encode())
    assert read_file(str(path)).title == "Plate"
    for wrong in (tmp_path, tmp_path / "none.toml", "a\x00b", 3):
        with pytest.raises(InputError):
            read_file(wrong)
    with pytest.raises(InputError):
        read_text(3)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(GOOD.replace("laplacian", "laplacin"))
    with pytest.raises(PiblsError) as caught:
        pb.read_problem(path)
    first, excerpt, carets = str(caught.value).split("\n")
    assert first == f"{path}, line 4, column 16: There is no function 'laplacin'. Did you mean 'laplacian'?"
    assert excerpt[carets.index("^") : carets.rindex("^") + 1] == "laplacin"


ODD = (
    r'''title = "h\u00e9at" # a "comment"
a.b."c d" = [1, [2, "x\ty"], {q = "z", r.s = 2}, ] # c "
e = """
first \
   second ""x"""""
'm' = '''
    + "'''\n lit\\n'''"
    + r"""
[p.q]
v = 1979-05-27T07:32:00Z
w = +inf # last
[[c]]
k = 1
[[c.d]]
z = "zz"
[[c.d]]
z = "z2"
[[c]]
k = "last"
[c.f]
g = true
"""
)


def leaves(value, path=()):
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(entry, (*path, key))
    else:
        yield path, value


def test_every_value_of_a_file_is_found():
    places = find_places(ODD)
    found = dict(leaves(tomllib.loads(ODD)))
    assert len(found) == 15
    for path, value in found.items():
        place = places[path]
        written = ODD[place.start : place.stop]
        if isinstance(value, str):
            assert len(place.offsets) == len(value) + 1
            plain = [(ODD[o], c) for o, c in zip(place.offsets, value, strict=False) if ODD[o] != "\\"]
            assert all(a == b for a, b in plain)
        else:
            assert tomllib.loads(f"k = {written}")["k"] == value
    assert ODD[places["c", 1].start :].startswith('[[c]]\nk = "last"')
    assert ODD[places["p", "q", "w", "#key"].start : places["p", "q", "w", "#key"].stop] == "w"


GROWING = (
    "(u + x)**500",
    "laplacian(laplacian(laplacian(sin(u)*u)))",
    "(u + u_x + u_xx)**30*(1 + u*x)**20 - (u + u_x + u_xx)**29*(1 + u*x)**20*(u + u_x + u_xx)",
    "laplacian(laplacian((u + x*y)**50))",
    "tan(" * 35 + "u" + ")" * 35,
    "laplacian(" + "*".join(f"(x + {k})" for k in range(250)) + "*u)",
    "atan2(dot(grad(cosh(u) + u), grad(laplacian(u_x))), hermite(9, dot(grad(u + u), grad(y))))",
    "where(diff(2, x, 2) < gamma(u), u, u_x)",
)


@pytest.mark.parametrize("formula", GROWING, ids=lambda formula: formula[:30])
def test_equations_that_would_grow_are_read_or_refused_at_once(formula):
    started = time.process_time()
    with contextlib.suppress(TextError):
        read_text(with_domain('[domain]\nshape = "rectangle"\nx = [0, 1]\ny = [0, 1]', f"laplacian(u) + {formula} = 1"))
    assert time.process_time() - started < 4


def test_files_with_very_many_equations_derivatives_or_terms_are_refused():
    box = '[domain]\nshape = "box"\n' + "".join(f"x{k} = [0, 1]\n" for k in range(50))
    with pytest.raises(TextError, match="written out"):
        read_text(with_domain(box, "laplacian(laplacian(u)) = 1"))
    many = ", ".join(f'"u_xx = {k}"' for k in range(2000))
    with pytest.raises(TextError, match="1000 are allowed"):
        read_text(
            with_domain('[domain]\nshape = "interval"\nx = [0, 1]').replace('["laplacian(u) = 1"]', f"[\n{many}]")
        )
    side = '[[conditions]]\nkind = "interface"\non = "x < 0.5"\n'
    side += 'equations = ["(1 + x)**60*(2 + x*y + y)**60*inside(u) = 1"]\n'
    plane = '[domain]\nshape = "rectangle"\nx = [0, 1]\ny = [0, 1]'
    with pytest.raises(TextError, match="Multiplied out"):
        read_text(with_domain(plane, rest=side))


_REST = '[domain]\nshape = "rectangle"\nx = [0, 1]\ny = [0, 1]\n[[conditions]]\nkind = "dirichlet"\nvalue = 0\n'
MANY = {
    "parameters": 'equations = ["u_xx + u_yy = -1"]\n'
    + _REST
    + "[parameters]\n"
    + "".join(f"p{k}=1\n" for k in range(9999)),
    "unknowns": "unknowns = [" + ",\n".join(f'"u{k}"' for k in range(9999)) + ']\nequations = ["u1_xx = 1"]\n' + _REST,
    "equations": "equations = [" + ",\n".join(f'"u_xx = {k}*x"' for k in range(5000)) + "]\n" + _REST,
}


@pytest.mark.parametrize("key", MANY)
def test_files_with_very_many_entries_are_refused(key):
    with pytest.raises(TextError, match="entries here, and 1000 are allowed"):
        read_text(MANY[key])


def test_a_pipe_is_no_problem_file(tmp_path):
    os.mkfifo(tmp_path / "f.toml")
    with pytest.raises(PiblsError, match="a device or a pipe"):
        pb.read_problem(tmp_path / "f.toml")


def test_equal_shapes_with_one_label_are_one_object_and_others_are_not():
    plate = '[domain]\nshape = "difference"\nof = [{shape = "rectangle", x = [0, 2], y = [0, 1], name = "plate"}, '
    plate += '{shape = "disk", center = [0.5, 0.5], radius = "r", name = "one"}, '
    plate += '{shape = "disk", center = [0.5, 0.5], radius = "r", name = "two"}]\n[parameters]\nr = 0.25\nq = 1\n'
    text = with_domain(plate, "laplacian(u) = q", '[[conditions]]\nkind = "dirichlet"\nvalue = 0\n')
    first = read_text(text).problem.domain
    assert read_text(text.replace("q = 1", "q = 2")).problem.domain is first
    assert read_text(text.replace("0.25", "0.3")).problem.domain != first
    renamed = read_text(text.replace('"two"', '"three"').replace("value = 0", 'value = 0\non = ["three", "plate"]'))
    assert renamed.problem.domain == first
