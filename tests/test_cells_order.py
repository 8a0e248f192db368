"""The order in which parts are joined: every order gives the same solution, and deep grading stays cheap."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Layout, Rows, TreeSolver, branches, draw_reference, leaves, network_of, order, refined

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
SQUARE = pb.Rectangle((x, -1, 1), (y, -1, 1))
EXACT = sp.exp(x) * sp.cos(2 * y)
PROBLEM = pb.Problem(-pb.laplacian(u) - 3 * EXACT, SQUARE, [pb.Dirichlet(u, EXACT)], exact=EXACT)


def graded(root, levels):
    """A tree whose cells shrink towards the middle of the box, through which its first splits go."""
    for _ in range(levels):
        near = [leaf for leaf in leaves(root) if (leaf.low <= 0).all() and (leaf.high >= 0).all()]
        root = refined(root, {leaf: [(0, None), (1, None)] for leaf in near})
    return root


def along_halves(root, numbers, sizes, alike, sums):
    return order.along_halves(root, lambda cell: None if cell.halves else numbers(cell), len(sizes))


def widest(solver):
    return max(batch.at.shape[1] for batch in solver._tree.batches if batch.join is not None)


@pytest.mark.parametrize("levels", [3, 7])
def test_every_order_gives_the_same_solution(levels, monkeypatch):
    X, found = SQUARE.sample(300), []
    for way in (order.cheaper, along_halves):
        monkeypatch.setattr(branches, "cheaper", way)
        solver = TreeSolver(Rows(Layout(PROBLEM, draw_reference(2, 13))))
        fit = solver.solve(graded(solver.layout.root, levels))
        found.append(network_of(solver.layout, fit).evaluate(X, [(0, 0)])[0, 0][:, 0])
    exact = PROBLEM.exact_values(X)["u"]
    assert np.abs(found[0] - exact).max() < 1e-8
    np.testing.assert_allclose(*found, rtol=0, atol=1e-8)


def test_cells_that_shrink_towards_a_point_are_joined_around_it():
    widths = []
    for levels in (4, 8, 12):
        solver = TreeSolver(Rows(Layout(PROBLEM, draw_reference(2, 5))))
        solver.solve(graded(solver.layout.root, levels))
        widths.append(widest(solver))
    assert widths[2] == widths[1]
    assert widths[1] <= 2 * widths[0]


def test_equal_cells_are_joined_along_halves_and_share_their_unions():
    solver = TreeSolver(Rows(Layout(PROBLEM, draw_reference(2, 5))))
    root = solver.layout.root
    for _ in range(3):
        root = refined(root, {leaf: [(0, None), (1, None)] for leaf in leaves(root)})
    solver.solve(root)
    unions = [batch for batch in solver._tree.batches if batch.join is not None]
    assert sum(len(batch.branches) for batch in unions) == 63
    assert sum(len(batch.factor.triangle) for batch in unions) < 40


@pytest.mark.parametrize("seed", range(5))
def test_all_parts_end_up_in_one_branch(seed):
    rng = np.random.default_rng(seed)
    sizes = [{} for _ in range(12)]
    for place in range(20):
        for number in rng.choice(12, size=rng.integers(2, 4), replace=False):
            sizes[number][place] = (
                int(rng.integers(1, 9))
                if not any(place in own for own in sizes)
                else next(own[place] for own in sizes if place in own)
            )
    pairs = order.narrowest_first(sizes)
    assert sorted(number for pair in pairs for number in pair) == list(range(22))


def test_sums_of_halves_add_up_and_are_those_that_rows_define():
    # Too coarse for the solution, so that sums are not zero.
    exact = sp.exp(-30 * (x - sp.Rational(1, 3)) ** 2 - 20 * y**2)
    source = -sum(exact.diff(axis, 2) for axis in (x, y))
    problem = pb.Problem(-pb.laplacian(u) - source, SQUARE, [pb.Dirichlet(u, exact)])
    solver = TreeSolver(Rows(Layout(problem, draw_reference(2, 4))))
    solver.solve(graded(solver.layout.root, 3))
    unknowns, left = solver._eliminated(lambda tree: tree.loads)
    size = np.abs(unknowns.sums).max()
    missed = [np.abs(load.heavy).max() for load in left.values()]
    assert size > 1e-8
    assert max(missed) < 10 * size  # these rows count three hundred times
    for batch in solver._tree.batches:
        if batch.join is not None:
            both, one, two = (unknowns.sums[numbers] for numbers in solver._tree.halves[batch])
            np.testing.assert_allclose(one + two, both, atol=1e-12)
