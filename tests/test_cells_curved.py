"""Curved boundaries: cells are as many as the solution asks for, not as many as the boundary winds."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import ErrorMarking, TreeSolver, refined, start_of

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)


def ring(radius):
    """The logarithm on a disk with a hole in its centre."""
    domain = pb.Disk((x, y), (0, 0), 1) - pb.Disk((x, y), (0, 0), radius)
    exact = sp.log(sp.sqrt(x**2 + y**2)) / sp.log(radius)
    return pb.Problem(sp.Eq(pb.laplacian(u), 0), domain, [pb.Dirichlet(u, exact)], exact=exact)


def cells(solution):
    return [stage.cells for stage in solution.diagnostics.stages]


@pytest.mark.parametrize("radius", [sp.Rational(1, 20), sp.Rational(1, 5)])
def test_cells_shrink_towards_a_hole_at_once(radius):
    solution = pb.solve(ring(radius), tol=1e-4, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-4
    assert len(cells(solution)) <= 2
    assert cells(solution)[-1] < 80


def test_a_smooth_solution_needs_no_small_cells_beside_holes():
    holes = [pb.Disk((x, y), centre, 0.1) for centre in ((0.3, 0.3), (0.7, 0.4), (0.45, 0.75))]
    domain = pb.Rectangle((x, 0, 1), (y, 0, 1)) - holes[0] - holes[1] - holes[2]
    exact = sp.sin(x) * sp.exp(y)
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), domain, [pb.Dirichlet(u, exact)], exact=exact)
    solution = pb.solve(problem, tol=1e-6, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6
    assert cells(solution)[-1] <= 4


def test_values_that_a_formula_continues_are_smooth_however_the_boundary_winds():
    solution = pb.solve(pb.problems.poisson_star(), tol=1e-6, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6
    assert cells(solution)[-1] <= 8


def rough(values):
    """The roughness of boundary values on a star in one cell, for Laplace's equation."""
    star = pb.Star((x, y), 1 + 0.2 * sp.cos(5 * sp.Symbol("theta", real=True)))
    problem = pb.Problem(sp.Eq(pb.laplacian(u), 0), star, [pb.Dirichlet(u, values)])
    data, _ = start_of(problem, 1e-6)
    (found,) = data.roughness.measured([data.rows.layout.root])
    return float(found.data.max()) / np.sqrt(found.square)


def test_rough_values_are_rough_whether_a_formula_continues_them_or_not():
    assert rough(sp.exp(x) * sp.sin(y)) < 1e-6
    assert rough(sp.atan(40 * (x - y / 2))) > 1e-2
    # Smooth on the boundary, with a pole inside: along the boundary they are not smooth enough for one cell.
    assert rough(1 / (x**2 + y**2)) > 1e-4


def test_the_share_of_a_finer_tree_is_that_of_the_cells_it_splits():
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    problem = pb.Problem(sp.Eq(-pb.laplacian(u), sp.exp(3 * x)), square, [pb.Dirichlet(u, 0)])
    rows = start_of(problem, 1e-2).data.rows
    root = rows.layout.root.halved(0)
    fit, marking, sizes = TreeSolver(rows).solve(root), ErrorMarking(rows.layout), np.ones(1)
    one, two = (refined(root, {half: [(1, None)]}) for half in root.halves)
    both = refined(root, {half: [(1, None)] for half in root.halves})
    shares = [marking.share(fit, sizes, tree) for tree in (root, one, two, both)]
    assert shares[0] == 0.0
    assert shares[3] == pytest.approx(1.0)
    assert shares[1] + shares[2] == pytest.approx(1.0)
    assert shares[1] < shares[2]  # the source grows to the right


def test_the_better_of_two_solutions_is_returned_if_the_fall_of_residuals_vouches_for_it():
    solution = pb.solve(pb.problems.annulus(), tol=1e-6)
    (*_, before, last) = solution.diagnostics.stages
    assert before.estimate > 1e-6 >= last.estimate
    assert before.nodes < last.nodes == solution.diagnostics.nodes
    assert solution.richer[0].reference.size < solution.network.reference.size  # no third solution was made
    assert solution.true_error() / 3 < solution.error_estimate < 3 * solution.true_error()


def test_where_the_budget_ends_the_better_of_two_solutions_is_returned_with_its_own_error():
    solution = pb.solve(pb.problems.annulus(), tol=1e-9, budget=0.1)
    assert solution.status == "stalled"
    # The solution before it, which it was compared with, has an error of 2e-8.
    assert solution.true_error() < 1e-8
    assert solution.true_error() / 3 < solution.error_estimate < 3 * solution.true_error()
