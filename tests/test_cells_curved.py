"""Curved boundaries: cells are as many as the solution asks for, not as many as the boundary winds."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb

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


def test_values_that_are_rough_along_a_winding_boundary_are_resolved():
    star = pb.Star((x, y), 1 + 0.2 * sp.cos(5 * sp.Symbol("theta", real=True)))
    sharp = sp.atan(40 * (x - y / 2))
    exact = {u: sharp}
    source = sum(sharp.diff(c, 2) for c in (x, y))
    problem = pb.Problem(sp.Eq(pb.laplacian(u), source), star, [pb.Dirichlet(u, sharp)], exact=exact)
    solution = pb.solve(problem, tol=1e-3, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 3e-3
    assert cells(solution)[-1] > 8


def test_an_answer_does_not_depend_on_the_solves_before_it():
    def found(k):
        line = pb.Interval((x, 0, 1))
        v = pb.field("v", x)
        problem = pb.Problem(sp.Eq(-k * v.diff(x, 2) + v, sp.sin(7 * x)), line, [pb.Dirichlet(v, 0)])
        return pb.solve(problem, tol=1e-8, progress=False)(np.linspace(0.05, 0.95, 7)[:, None])

    first = found(sp.Rational(1, 3))
    found(3)
    found(sp.Rational(1, 7))
    assert (found(sp.Rational(1, 3)) == first).all()
