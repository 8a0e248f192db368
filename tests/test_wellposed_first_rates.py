"""Conditions on rates at the first time, which the equations say already."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls import Dirichlet, Initial, Interval, Problem, Rectangle, TimeInterval, coordinates, field, laplacian

x, y, t = coordinates("x y t")
u, w, a = field("u", x, t), field("w", x, y, t), field("a", t)
ROD, SQUARE, UNIT = Interval((x, 0, 1)), Rectangle((x, 0, 1), (y, 0, 1)), TimeInterval(t, 0, 1)
WAVE, BUMP = sp.sin(sp.pi * x), sp.sin(sp.pi * x) * sp.sin(sp.pi * y)


@pytest.mark.parametrize(
    ("problem", "values"),
    [
        (
            Problem(
                sp.Eq(u.diff(t), u.diff(x, 2)),
                ROD * UNIT,
                [Dirichlet(u, 0), Initial(u, x * (1 - x)), Initial(u.diff(t), 0)],
            ),
            "one says 0 and the other -2.",
        ),
        (
            Problem(
                sp.Eq(u.diff(t, 2), u.diff(x, 2)),
                ROD * UNIT,
                [Dirichlet(u, 0), Initial(u, 0), Initial(u.diff(t), WAVE), Initial(u.diff(t, 2), 3)],
            ),
            "one says 3 and the other 0.",
        ),
        (
            Problem(
                sp.Eq(w.diff(t), laplacian(w)),
                SQUARE * UNIT,
                [Dirichlet(w, 0), Initial(w, BUMP), Initial(w.diff(t), sp.Rational(-2001, 1000) * sp.pi**2 * BUMP)],
            ),
            "contradict each other: Initial(w_t",
        ),
        (
            Problem(sp.Eq(a.diff(t), -(a**2)), UNIT, [Initial(a, 2), Initial(a.diff(t), 0)]),
            "one says 0 and the other -4.",
        ),
    ],
)
def test_a_rate_that_differs_from_what_the_equation_says_is_told_at_once(problem: Problem, values: str) -> None:
    solution = pb.solve(problem, progress=False)
    assert solution.status == "ill-posed"
    assert values in solution.diagnostics.message


def test_a_rate_that_the_equation_says_already_changes_nothing() -> None:
    exact = BUMP * sp.exp(-2 * sp.pi**2 * t)
    conditions = [Dirichlet(w, 0), Initial(w, BUMP), Initial(w.diff(t), -2 * sp.pi**2 * BUMP)]
    problem = Problem(sp.Eq(w.diff(t), laplacian(w)), SQUARE * UNIT, conditions, exact=exact)
    solution = pb.solve(problem, tol=1e-4, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-4


def test_a_rate_of_which_counting_cannot_tell_is_compared_with_the_solution() -> None:
    given = pb.data("given", lambda places: np.cos(np.pi * places / 2), x)
    conditions = [Dirichlet(u, 0, on=ROD.right), pb.Neumann(u, 0, on=ROD.left), Initial(u, given)]
    problem = Problem(sp.Eq(u.diff(t), u.diff(x, 2)), ROD * UNIT, [*conditions, Initial(u.diff(t, 2), 5)])
    assert pb.solve(problem, progress=False, tol=1e-3).status == "ill-posed"
