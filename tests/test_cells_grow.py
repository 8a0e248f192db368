"""Solutions by cells grow: from the tree they have, as far as asked, with an estimate of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Layout, Rows, TreeSolver, draw_reference, network_of, rule_count, tree_of
from pibls.errors import InputError, ResourceError


@pytest.fixture(scope="module")
def helmholtz():
    return pb.solve(pb.problems.helmholtz(), tol=1e-2)


@pytest.fixture(scope="module")
def corner():
    return pb.solve(pb.problems.l_shape(), tol=1e-3)


def test_the_tree_of_a_solution_is_rebuilt_from_its_arrays(corner):
    record = corner.diagnostics
    layout = Layout(corner.problem, draw_reference(2, record.settings["degree"], record.seed))
    again = network_of(layout, TreeSolver(Rows(layout)).solve(tree_of(corner.network, layout.root)))
    for name in ("tree", "cuts", "centers", "halves"):
        assert (getattr(again, name) == getattr(corner.network, name)).all()
    scale = np.abs(corner.network.weights).max()
    np.testing.assert_allclose(again.weights, corner.network.weights, atol=1e-9 * scale)


def test_growing_gains_digits_and_estimates_them(helmholtz):
    fine = helmholtz.grow(nodes=200)
    assert fine.diagnostics.nodes >= helmholtz.diagnostics.nodes + 200
    assert fine.network.cells > helmholtz.network.cells
    assert fine.true_error() < 0.01 * helmholtz.true_error()
    assert 0.3 < fine.error_estimate / fine.true_error() < 3
    assert fine.status == "fitted"
    # What it was compared with is as far away as what it grows to.
    X = fine.problem.domain.sample(50)
    np.testing.assert_allclose(fine(X), helmholtz(X), atol=1.01 * helmholtz.error_field(X).max())
    assert np.abs(fine(X) - helmholtz(X)).max() == pytest.approx(helmholtz.error_field(X).max(), rel=0.05)


def test_singular_solutions_go_on_growing(corner):
    fine = corner.grow(nodes=corner.diagnostics.nodes)
    assert fine.diagnostics.nodes >= 2 * corner.diagnostics.nodes
    assert fine.true_error() < 0.2 * corner.true_error()
    assert [s.cells for s in fine.diagnostics.stages][:-1] == [s.cells for s in corner.diagnostics.stages]
    assert fine.diagnostics.stages[-1].cells == fine.network.cells


def test_points_are_counted_inside():
    coarse = pb.solve(pb.problems.oscillator(), tol=1e-3)
    few, many = coarse.grow(points=1), coarse.grow(points=500)
    per_cell = rule_count(coarse.diagnostics.settings["degree"])
    assert few.network.cells > coarse.network.cells
    assert per_cell * (many.network.cells - coarse.network.cells) >= 500
    assert per_cell * (few.network.cells - coarse.network.cells) < 500


def test_a_loaded_solution_grows_to_the_same(helmholtz, tmp_path):
    loaded = pb.load(helmholtz.save(tmp_path / "coarse.pibls"))
    X = helmholtz.problem.domain.sample(50)
    assert (loaded.grow(nodes=10)(X) == helmholtz.grow(nodes=10)(X)).all()


def test_exact_conditions_and_several_fields_can_grow():
    x = pb.coordinates("x")
    u, v = pb.field("u", x), pb.field("v", x)
    line = pb.Interval((x, 0, 1))
    equations = [u.diff(x) - 9 * v, v.diff(x) + 9 * u]
    conditions = [pb.Dirichlet(u, 0, on=line.left, exact=True), pb.Dirichlet(v, 1, on=line.left)]
    exact = {u: sp.sin(9 * x), v: sp.cos(9 * x)}
    coarse = pb.solve(pb.Problem(equations, line, conditions, exact=exact), tol=1e-2)
    fine = coarse.grow(nodes=3)
    assert fine.diagnostics.nodes - coarse.diagnostics.nodes >= 2 * fine.diagnostics.settings["functions"]
    assert fine.true_error() < 0.1 * coarse.true_error()


def test_what_cannot_grow_says_why(helmholtz):
    assert helmholtz.grow() is helmholtz
    with pytest.raises(InputError, match="'nodes' parameter of grow"):
        helmholtz.grow(nodes=-1)
    with pytest.raises(InputError, match="'points' parameter of grow"):
        helmholtz.grow(points=0.5)
    with pytest.raises(ResourceError, match="Grow by fewer"):
        helmholtz.grow(nodes=10**14)
    nameless = replace(helmholtz, diagnostics=replace(helmholtz.diagnostics, settings={}))
    with pytest.raises(InputError, match="Solve again with a smaller tol"):
        nameless.grow(nodes=10)
