"""Errors relative to the local size of a field."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import manufactured
from pibls.errors import InputError

x, y, t = pb.coordinates("x y t")
w, u, c = pb.field("w", x), pb.field("u", x, y), pb.field("c", t)
LINE, SQUARE, CLOCK = pb.Interval((x, 0, 1)), pb.Rectangle((x, 0, 1), (y, 0, 1)), pb.TimeInterval(t, 0, 1)
FADING = sp.exp(-14 * x) * (1 + sp.sin(20 * x) / 4)
IN_PLANE = sp.exp(-10 * x) * sp.cos(8 * x) * sp.exp(3 * y)
IN_TIME = sp.exp(-15 * t) * (2 + sp.sin(9 * t))
PROBLEMS = {
    "line": (w, FADING, LINE, -w.diff(x, 2) + w, [pb.Dirichlet(w, FADING)]),
    "plane": (u, IN_PLANE, SQUARE, -pb.laplacian(u), [pb.Dirichlet(u, IN_PLANE)]),
    "time": (c, IN_TIME, CLOCK, c.diff(t) + c, [pb.Initial(c, 2)]),
}


def posed(name):
    field, exact, domain, operator, conditions = PROBLEMS[name]
    return pb.Problem(manufactured(operator, {field: exact}, domain), domain, conditions, exact=exact)


def in_worst_eighth(solution):
    """Return the largest error over the size of the solution, of eight slices along the first axis."""
    X = solution.problem.domain.sample(4000, "uniform", 7)
    exact = next(iter(solution.problem.exact_values(X).values()))
    slices = np.minimum((8 * X[:, 0]).astype(int), 7)
    squares = [np.bincount(slices, values**2) for values in (solution(X) - exact, exact)]
    return float(np.sqrt((squares[0] / squares[1]).max()))


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_small_end_is_as_accurate_as_the_large_one(name):
    problem = posed(name)
    plain, local = (pb.solve(problem, tol=1e-4, relative=own, progress=False) for own in ("domain", "local"))
    assert (plain.status, local.status) == ("converged", "converged")
    assert in_worst_eighth(plain) > 5e-4
    assert in_worst_eighth(local) <= 1e-4
    assert in_worst_eighth(local) < 3 * local.error_estimate
    assert "relative to the local size" in local.diagnostics.message


def test_a_field_lost_in_rounding_is_told_with_its_place():
    exact = sp.exp(-60 * x)
    problem = pb.Problem(manufactured(-w.diff(x, 2), {w: exact}, LINE), LINE, [pb.Dirichlet(w, exact)], exact=exact)
    solution = pb.solve(problem, tol=1e-6, relative="local", progress=False)
    assert solution.status == "stalled"
    assert "near x=" in solution.diagnostics.message
    assert solution.error_estimate > 1e-6


def test_ill_posed_problems_stay_so():
    problem = pb.Problem(w.diff(x, 2), LINE, [pb.Neumann(w, 0)])
    assert pb.solve(problem, relative="local", progress=False).status == "ill-posed"


def test_wishes_that_do_not_go_together_are_refused():
    problem = posed("line")
    with pytest.raises(InputError, match="'relative' parameter of solve must be"):
        pb.solve(problem, relative="global")
    with pytest.raises(InputError, match="does not go with a goal"):
        pb.solve(problem, relative="local", goal=pb.maximum(w))
    axes = pb.coordinates("a b c d")
    v, box = pb.field("v", *axes), pb.Box(*((axis, 0, 1) for axis in axes))
    with pytest.raises(InputError, match="The problem has 4"):
        pb.solve(pb.Problem(pb.laplacian(v), box, [pb.Dirichlet(v, 0)]), relative="local")
