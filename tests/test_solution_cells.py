"""Solutions by cells: found in the tree, evaluated, stored, exported, drawn and told in words."""

from __future__ import annotations

import hashlib
import io
import json
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from matplotlib.collections import LineCollection

import pibls as pb
from internals import CellNetwork, cell_walls, celled, choose_views, solve_cells
from pibls.errors import FeatureError, FileFormatError, InputError
from pibls.features import draw_network
from pibls.solution import Diagnostics, Solution, Stage

x, y, z = pb.coordinates("x y z")


def by_hand(bounds, depth, *, fields=1, empty=lambda middle: False, crowded=None, nodes=20, seed=0):
    """Cells halved ``depth`` times across one axis after the other, with random weights; one may have two parts."""
    d = len(bounds)
    rng = np.random.default_rng(seed)
    tree, cuts, centers, halves = [], [], [], []
    samples, owners = [np.empty((0, d))], [np.empty(0, dtype=np.int64)]

    def walk(low, high, level):
        number = len(tree)
        tree.append([-1, len(centers), len(centers)])
        cuts.append(0.0)
        middle = (low + high) / 2
        if level < depth:
            axis = level % d
            below, above = high.copy(), low.copy()
            # Not in the middle, so that sides cannot be mixed up.
            below[axis] = above[axis] = cuts[number] = 0.4 * high[axis] + 0.6 * low[axis]
            tree[number] = [axis, walk(low, below, level + 1), walk(above, high, level + 1)]
        elif not empty(middle):
            count = 2 if crowded is not None and (low < crowded).all() and (crowded < high).all() else 1
            for half in range(count):
                if count == 2:
                    # The lower and the upper third along the last axis, with a gap between.
                    X = low + (high - low) * rng.random((50, d)) * [*[1.0] * (d - 1), 1 / 3]
                    X[:, -1] += half * 2 / 3 * (high - low)[-1]
                    samples.append(X)
                    owners.append(np.full(50, len(centers)))
                centers.append(middle)
                halves.append((high - low) / 2)
            tree[number][2] = len(centers)
        return number

    ends = np.array(bounds, dtype=float)
    walk(ends[:, 0], ends[:, 1], 0)
    reference = draw_network(rng, [[-1, 1]] * d, [("sin", nodes, 3.0)])
    weights = rng.standard_normal((len(centers), fields, nodes))
    arrays = (np.array(tree), np.array(cuts), np.array(centers), np.array(halves), weights)
    return CellNetwork(reference, *arrays, np.concatenate(samples), np.concatenate(owners))


def solution_of(network, problem):
    record = Diagnostics(
        "Cells", {"cells": network.cells}, 0, network.cells * network.reference.size, 0, "by hand", None, None, {}
    )
    return Solution(problem, network, np.eye(network.size), "converged", record)


def square_problem():
    u = pb.field("u", x, y)
    return pb.Problem(sp.Eq(pb.laplacian(u), 0), pb.Rectangle((x, 0, 2), (y, 0, 1)), [])


@pytest.fixture(scope="module")
def corner():
    return solve_cells(pb.problems.l_shape(), 1e-4, 10.0, 0, lambda *_: None)


@pytest.fixture(scope="module")
def oscillator():
    return solve_cells(pb.problems.damped_oscillator(), 1e-4, 10.0, 0, lambda *_: None)


@pytest.fixture(scope="module")
def maxwell():
    return solve_cells(pb.problems.maxwell_1d(), 1e-4, 10.0, 0, lambda *_: None)


@pytest.fixture(scope="module")
def crowd():
    """Eight cells over a rectangle: one empty, one with two parts."""
    return by_hand([[0, 2], [0, 1]], 3, empty=lambda middle: (middle < 0.3).all(), crowded=(1.6, 0.9))


# Where points are


def test_a_point_is_in_the_cell_whose_box_holds_it():
    network = by_hand([[0, 2], [-1, 1], [5, 6]], 7)
    X = np.random.default_rng(1).uniform([0, -1, 5], [2, 1, 6], (500, 3))
    own = network.locate(X)
    boxes = network.boxes(np.array([[0, 2], [-1, 1], [5, 6]]))[network.tree[:, 0] < 0]
    inside = ((X[:, None] > boxes[None, :, :, 0]) & (X[:, None] <= boxes[None, :, :, 1])).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert (inside.argmax(axis=1) == own).all()
    assert (np.abs(X - network.centers[own]) <= network.halves[own] * (1 + 1e-12)).all()
    assert len(boxes) == 2**7
    assert network.depth == 7


def test_points_in_an_empty_cell_belong_to_the_nearest_part(monkeypatch, crowd):
    X = np.random.default_rng(2).uniform([0, 0], [0.7, 0.4], (200, 2))
    X = X[(X[:, 0] <= 0.32) & (X[:, 1] <= 0.4)]
    own = crowd.locate(X)
    ends = crowd.centers - crowd.halves, crowd.centers + crowd.halves
    outside = np.maximum(np.maximum(ends[0] - X[:, None], X[:, None] - ends[1]), 0.0)
    distance = np.linalg.norm(outside / [2, 1], axis=2)
    np.testing.assert_allclose(distance[np.arange(len(X)), own], distance.min(axis=1), rtol=1e-9)
    assert distance.min() > 0
    assert len(set(own.tolist())) == 2
    monkeypatch.setattr(celled, "ENTRIES", 16)
    assert (crowd.locate(X) == own).all()
    # Outside by rounding, the part across the border.
    border = 0.32
    edge = np.array([[border, 0.1], [np.nextafter(border, 1), 0.1]])
    assert crowd.locate(edge)[0] == crowd.locate(edge)[1]


def test_samples_tell_the_parts_of_a_cell_apart(crowd):
    cell = crowd.tree[(crowd.tree[:, 0] < 0) & (crowd.tree[:, 2] - crowd.tree[:, 1] == 2)][0]
    center, half = crowd.centers[cell[1]], crowd.halves[cell[1]]
    X = center + half * np.random.default_rng(3).uniform(-1, 1, (300, 2))
    share = (X[:, 1] - center[1]) / half[1]
    own = crowd.locate(X)
    assert (own[share < -0.4] == cell[1]).all()
    assert (own[share > 0.4] == cell[1] + 1).all()
    assert (crowd.locate(crowd.samples) == crowd.owners).all()


def test_beyond_the_tree_the_last_cell_goes_on():
    network = by_hand([[0, 1]], 2)
    assert network.locate(np.array([[-5.0], [0.0], [1.0], [9.0]])).tolist() == [0, 0, 3, 3]


# Values


def test_values_and_derivatives_are_those_of_the_part(crowd):
    X = np.random.default_rng(4).uniform([0, 0], [2, 1], (40, 2))
    wanted = [(0, 0), (2, 1), (0, 1)]
    found = crowd.evaluate(X, wanted)
    for row, part in enumerate(crowd.locate(X)):
        center, half = crowd.centers[part], crowd.halves[part]
        nodes = crowd.reference.evaluate([(X[row] - center) / half], wanted)
        for index in wanted:
            expected = nodes[index][0] @ crowd.weights[part].T / np.prod(half ** np.array(index))
            np.testing.assert_allclose(found[index][row], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_point_alone_has_the_value_it_has_among_others(monkeypatch, d):
    network = by_hand([[0, 1]] * d, 4, fields=2, nodes=60)
    X = np.random.default_rng(5).uniform(0, 1, (97, d))
    wanted = [(0,) * d, (2, *(0,) * (d - 1))]
    whole = network.evaluate(X, wanted)
    # In chunks of 16 rows the last one has a single point.
    monkeypatch.setattr(celled, "ENTRIES", 16 * 60)
    monkeypatch.setattr(celled, "_LOCATED", 10)
    chunks = network.evaluate(X, wanted)
    for index in wanted:
        alone = np.concatenate([network.evaluate(row[None], [index])[index] for row in X])
        assert (alone == whole[index]).all()
        assert (chunks[index] == whole[index]).all()
    assert network.evaluate(X[:0], wanted)[wanted[0]].shape == (0, 2)


def test_many_points_take_little_memory():
    network = by_hand([[0, 1], [0, 1]], 10, nodes=100)
    X = np.random.default_rng(6).uniform(0, 1, (50_000, 2))
    network.evaluate(X[:10], [(0, 0)])
    tracemalloc.start()
    network.evaluate(X, [(0, 0)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All nodes at all points would take 40 MB, and the weights as much again.
    assert peak < 16e6


def test_derivatives_that_overflow_are_refused(crowd):
    network = replace(crowd, halves=crowd.halves * 1e-80)
    with pytest.raises(InputError, match=r"derivative \(0, 6\) of u overflows"):
        solution_of(network, square_problem()).derivative("u", (y, 6))([[1.0, 0.5]])


@pytest.mark.parametrize(
    "change",
    [
        lambda n: {"cuts": n.cuts[:-1]},
        lambda n: {"halves": 0 * n.halves},
        lambda n: {"centers": n.centers + np.nan},
        lambda n: {"weights": n.weights[:, 0]},
        lambda n: {"weights": n.weights[..., 1:]},
        lambda n: {"tree": n.tree + 0.0},
        lambda n: {"tree": n.tree[:, :2]},
        lambda n: {"owners": n.owners + len(n.centers)},
        lambda n: {"owners": n.owners[:-1]},
        lambda n: {"samples": n.samples[:50], "owners": n.owners[:50]},
    ],
)
def test_arrays_that_do_not_fit_are_refused(crowd, change):
    with pytest.raises(FeatureError, match="must fit together: 15 boxes, 8 parts in 2 coordinates"):
        replace(crowd, **change(crowd)).checked()


# Files


def same_network(one, two):
    for name in ("tree", "cuts", "centers", "halves", "weights", "samples", "owners"):
        first, second = getattr(one, name), getattr(two, name)
        assert first.dtype == second.dtype
        assert (first == second).all()


def test_a_loaded_solution_is_the_same(corner, oscillator, maxwell, crowd, tmp_path):
    by_crowd = solution_of(crowd, square_problem())
    for old in (corner, oscillator, maxwell, replace(by_crowd, richer=(crowd, np.eye(1)))):
        new = pb.load(old.save(tmp_path / "run.pibls"))
        X = old.problem.domain.sample(50, "uniform", 5)
        second = (2, *(0,) * (X.shape[1] - 1))
        wanted = [(name, index) for name in old.problem.field_names for index in ((0,) * X.shape[1], second)]
        for one, two in zip(old.evaluate(X, wanted), new.evaluate(X, wanted), strict=True):
            assert (one == two).all()
        same_network(old.network, new.network)
        same_network(old.richer[0], new.richer[0])
        assert (old.residual()(X) == new.residual()(X)).all()
        assert new.diagnostics == old.diagnostics
        assert repr(new) == repr(old)


@pytest.fixture(scope="module")
def members(crowd, tmp_path_factory):
    solution = replace(solution_of(crowd, square_problem()), richer=(crowd, np.eye(1)))
    with zipfile.ZipFile(solution.save(tmp_path_factory.mktemp("raw") / "a.pibls")) as archive:
        return {i.filename: archive.read(i) for i in archive.infolist()}


def packed(path, members):
    digests = {n: hashlib.sha256(c).hexdigest() for n, c in members.items() if n != "digest.json"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (members | {"digest.json": json.dumps(digests).encode()}).items():
            archive.writestr(name, content)
    return path


def forged(members, name, change):
    array = np.load(io.BytesIO(members[f"{name}.npy"]))
    buffer = io.BytesIO()
    np.save(buffer, change(array))
    return members | {f"{name}.npy": buffer.getvalue()}


def with_entry(row, column, value):
    def change(array):
        array[row, column] = value
        return array

    return change


def apart(tree):
    tree[[0, 1], 1] = [2, 1]
    return tree


def refused(path, words):
    with pytest.raises(FileFormatError, match=words) as caught:
        pb.load(path)
    assert len(str(caught.value)) < 600


FIT = "not a valid solution file: The arrays of CellNetwork must fit together"


@pytest.mark.parametrize("prefix", ["", "richer_"])
@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("tree", with_entry(0, 1, 0), FIT),  # a box within itself: points would go down for ever
        ("tree", with_entry(0, 2, 1), FIT),  # two boxes with the same half: twice as many boxes at every level
        ("tree", apart, FIT),  # a box that is a half of itself, and of no other
        ("tree", with_entry(0, 0, 2), FIT),
        ("tree", with_entry(0, 0, -2), FIT),
        ("tree", with_entry(-1, 2, 9), FIT),
        ("tree", with_entry(-1, 1, -1), FIT),
        ("tree", with_entry(0, 0, 0.5), "not whole"),
        ("tree", with_entry(0, 0, np.nan), "not whole"),
        ("tree", with_entry(0, 1, 1e300), "not whole"),
        ("tree", lambda a: a[:0], FIT),
        ("tree", lambda a: a.astype(np.int64), "type int64"),
        ("owners", lambda a: a + 0.5, "not whole"),
        ("owners", lambda a: a - 100, FIT),
        ("owners", lambda a: a[:, None], FIT),
        ("samples", lambda a: a * np.inf, FIT),
        ("cuts", lambda a: a + np.nan, FIT),
        ("halves", lambda a: -a, FIT),
        ("centers", lambda a: a[:, :1], FIT),
        ("weights", lambda a: a[:, :, :3], FIT),
        ("weights", lambda a: np.repeat(a, 2, axis=1), "do not belong together"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_forged_arrays_are_refused(members, tmp_path, prefix, name, change, words):
    refused(packed(tmp_path / "forged", forged(members, f"{prefix}cell_{name}", change)), words)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["network"].update(cells=None),
        lambda r: r["network"].update(cells={"cells": r["network"]["cells"]}),
        lambda r: r["network"].update(cells={"layers": []}),
        lambda r: r["network"]["cells"].update(features=["nothing"]),
        lambda r: r["richer"].update(cells=[]),
    ],
)
def test_forged_records_are_refused(members, tmp_path, change):
    record = json.loads(members["solution.json"])
    change(record)
    refused(packed(tmp_path / "forged", members | {"solution.json": json.dumps(record).encode()}), "not a valid")
    refused(packed(tmp_path / "less", {k: v for k, v in members.items() if k != "cell_cuts.npy"}), "cell_cuts")


# Torch


def test_the_torch_module_has_the_same_values_and_derivatives(corner, crowd):
    torch = pytest.importorskip("torch")
    for solution in (corner, solution_of(crowd, square_problem())):
        module = solution.to_torch()
        X = solution.problem.domain.sample(60, "uniform", 2)
        points = torch.tensor(X, requires_grad=True)
        values = module(points)
        assert values.dtype == torch.float64
        size = np.abs(solution.network.weights).sum(axis=2).max()
        np.testing.assert_allclose(values.detach().numpy()[:, 0], solution(X), rtol=0, atol=1e-14 * size)
        (gradient,) = torch.autograd.grad(values.sum(), points, create_graph=True)
        (second,) = torch.autograd.grad(gradient[:, 0].sum(), points)
        for found, wanted in ((gradient[:, 1], (y,)), (second[:, 0], (x, x)), (second[:, 1], (x, y))):
            expected = solution.derivative("u", *wanted)(X)
            slack = 1e-13 * size / solution.network.halves.min() ** len(wanted)
            np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-10, atol=slack)


def test_the_torch_module_finds_parts_as_the_network_does(crowd):
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(7).uniform([-0.1, -0.1], [2.1, 1.1], (2000, 2))
    own = crowd.locate(X)
    assert set(own.tolist()) == set(range(8))
    assert (solution_of(crowd, square_problem()).to_torch().locate(torch.tensor(X)).numpy() == own).all()


def test_torch_columns_are_fields_and_only_weights_are_trained(maxwell):
    torch = pytest.importorskip("torch")
    module = maxwell.to_torch()
    X = maxwell.problem.domain.sample(10)
    values = module(torch.tensor(X))
    for column, name in enumerate(maxwell.problem.field_names):
        np.testing.assert_allclose(values[:, column].detach().numpy(), maxwell(X)[name], atol=1e-12)
    assert [name for name, _ in module.named_parameters()] == ["output"]
    assert {"tree", "cuts", "centers", "halves", "features_0_weights"} <= set(module.state_dict())
    before = maxwell.network.weights.copy()
    values.sum().backward()
    assert module.output.grad.abs().max() > 0
    with torch.no_grad():
        module.output.add_(1.0)
    assert (maxwell.network.weights == before).all()
    # Fields may be mixed by the weights of the solution.
    swapped = replace(maxwell, weights=maxwell.weights[::-1].copy()).to_torch()(torch.tensor(X))
    np.testing.assert_allclose(swapped.detach().numpy(), values.detach().numpy()[:, ::-1], atol=1e-12)


# Pictures


def walls_of(axes):
    return [c for c in axes.collections if isinstance(c, LineCollection)]


def test_walls_are_where_boxes_were_halved(crowd):
    (view,) = choose_views(square_problem().domain, None, 20, "plot")
    segments = {tuple(map(tuple, np.round(segment, 9).tolist())) for segment in cell_walls(crowd, view)}
    assert segments == {
        ((0.8, 0.0), (0.8, 1.0)),
        ((0.0, 0.4), (0.8, 0.4)),
        ((0.8, 0.4), (2.0, 0.4)),
        *(((a, low), (a, high)) for a in (0.32, 1.28) for low, high in ((0.0, 0.4), (0.4, 1.0))),
    }
    for height, expected in ((0.3, [0.32, 0.8, 1.28]), (0.0, [0.32, 0.8, 1.28])):
        (line,) = choose_views(square_problem().domain, {"y": height}, 20, "plot")
        np.testing.assert_allclose(cell_walls(crowd, line), expected)


def test_walls_of_a_slice_are_those_of_the_cells_it_meets():
    u = pb.field("u", x, y, z)
    domain = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    network = by_hand([[0, 1]] * 3, 5)
    solution = solution_of(network, pb.Problem(sp.Eq(u, 0), domain, []))
    # Below z = 0.4 and above it the box is halved across x and y once more each; only one of the halves is met.
    (view,) = choose_views(domain, {"z": 0.4}, 10, "plot")
    segments = cell_walls(network, view)
    grid = np.linspace(0.005, 0.995, 50)
    X = np.stack([g.ravel() for g in np.meshgrid(grid, grid, [0.4])], axis=1)
    parts = network.locate(X).reshape(50, 50)
    for row in range(50):
        # Along a line of the picture, the part changes as often as a wall is crossed.
        crossed = [s for s in segments if s[0, 0] == s[1, 0] and s[0, 1] < grid[row] <= s[1, 1]]
        assert np.count_nonzero(np.diff(parts[row])) == len(crossed)
    figure = solution.plot("residual", at={"z": 0.4}, n=10, cells=True)
    np.testing.assert_allclose(walls_of(figure.axes[0])[0].get_segments(), segments)


def test_maps_show_the_cells_within_the_domain(corner):
    figure = corner.plot(n=30, cells=True)
    for axes in figure.axes[:2]:
        (walls,) = walls_of(axes)
        assert len(walls.get_segments()) == np.count_nonzero(corner.network.tree[:, 0] >= 0)
        assert walls.get_clip_path() is not None
        assert axes.get_xlim() == pytest.approx((-1.06, 1.06))
    dark, bright = (walls_of(axes)[0].get_colors()[0, :3].tolist() for axes in figure.axes[:2])
    assert (dark, bright) == ([0, 0, 0], [1, 1, 1])
    for what in ("error", "residual"):
        with_cells, without = (corner.plot(what, n=30, cells=cells).axes[0] for cells in (True, False))
        assert len(walls_of(with_cells)) == 1
        assert not walls_of(without)
        assert (with_cells.images[0].get_array() == without.images[0].get_array()).all()


def test_graphs_show_the_cells_by_lines(oscillator):
    axes = oscillator.plot(n=20, cells=True).axes
    cuts = np.sort(oscillator.network.cuts[oscillator.network.tree[:, 0] >= 0])
    assert len(cuts) == oscillator.network.cells - 1 > 0
    for panel in axes:
        found = [line.get_xdata()[0] for line in panel.lines if len(set(line.get_xdata())) == 1]
        np.testing.assert_allclose(found, cuts)
        assert panel.get_xlim() == pytest.approx((0, 10))


def test_several_graphs_show_the_cells_by_marks(crowd):
    solution = solution_of(crowd, square_problem())
    axes = solution.plot(at={"y": [0.2, 0.7]}, n=200, cells=True).axes[0]
    marks = [line for line in axes.lines if line.get_marker() == "|"]
    assert len(marks) == 2
    for line, height in zip(marks, (0.2, 0.7), strict=True):
        np.testing.assert_allclose(line.get_xdata(), [0.32, 0.8, 1.28])
        curve = next(c for c in axes.lines if c.get_color() is line.get_color() and c is not line)
        assert curve.get_label() == f"y = {height}"
        np.testing.assert_allclose(line.get_ydata(), np.interp([0.32, 0.8, 1.28], *curve.get_data()))


def test_a_solution_without_cells_has_none_to_show():
    problem = pb.problems.advection()
    other = pb.PIELM(nodes=20, activation="sin").fit(problem, pb.Points.sample(problem, interior=30))
    with pytest.raises(InputError, match=r"'cells' parameter.*by PIELM, has none; leave it out"):
        other.plot(cells=True)
    assert other.plot(n=5, cells=False).axes
    with pytest.raises(InputError, match=r"'cells' parameter of plot must be True or False.*'yes'"):
        other.plot(cells="yes")


# Functions and words


def test_residuals_and_errors_are_those_of_the_fields(corner, maxwell):
    X = corner.problem.domain.sample(100, "uniform", 8)
    laplacian = corner.derivative("u", x, x)(X) + corner.derivative("u", y, y)(X)
    np.testing.assert_allclose(np.abs(corner.residual()(X)), np.abs(laplacian), atol=1e-9)
    for condition in corner.problem.conditions:
        assert np.abs(corner.residual(condition).values(50)).max() < 1e-3
    exact = corner.problem.exact_values(X)["u"]
    assert np.linalg.norm(corner(X) - exact) < 1e-3 * np.linalg.norm(exact)
    assert corner.true_error() < 1e-3
    network, weights = corner.richer
    finer = replace(corner, network=network, weights=weights)
    np.testing.assert_allclose(corner.error_field(X), np.abs(corner(X) - finer(X)), rtol=0.1)
    assert set(maxwell.error_field(maxwell.problem.domain.sample(5))) == {"E", "H"}
    assert np.isnan(corner([[0.5, -0.5]])).all()
    assert np.isfinite(corner([[0.5, -0.5]], outside="value")).all()


def test_cells_in_words(corner):
    network, record = corner.network, corner.diagnostics
    size = f"{network.cells} cells, {record.nodes} weights"
    assert corner.summary()["size"].startswith(size)
    assert f", {size}" in repr(corner)
    assert size in corner._repr_html_()
    lines = str(record).splitlines()
    assert lines[1].startswith(f"size        {size}")
    stages = [line for line in lines if line.startswith("stage")]
    for stage, line in zip(record.stages, stages, strict=True):
        words = "1 cell" if stage.cells == 1 else f"{stage.cells} cells"
        assert line.startswith(f"stage       {words}, {stage.nodes} weights: residual {stage.residual:.1e}, ")
        assert f"estimated error {stage.estimate:.1e}, after {stage.seconds:.2f} s" in line
    for text in (repr(corner), str(record), corner._repr_html_()):
        assert "nodes" not in text
        assert " 0 rows" not in text


def test_the_residual_in_words_is_measured():
    stage = Stage(0.1, nodes=30, rows=0, cells=3, residual=2e-5, estimate=1e-4)
    solution = solution_of(by_hand([[0, 2], [0, 1]], 1), square_problem())
    told = replace(solution, diagnostics=replace(solution.diagnostics, stages=(stage,)))
    assert told.summary()["residual"] == "2.0e-05"
    assert "residual of" not in told._repr_html_()
    rows = replace(told.diagnostics, rows=70, residuals={"equation": pb.solution.Residual(3e-4, 1e-3, 70)})
    told = replace(told, diagnostics=rows)
    assert told.summary()["residual"] == "3.0e-04"
    assert "residual of" in told._repr_html_()
    assert told.summary()["size"] == "2 cells, 40 weights, 70 rows"
