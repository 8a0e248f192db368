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


@pytest.mark.parametrize(("share", "status"), [(1, "converged"), (sp.Rational(1001, 1000), "ill-posed")])
def test_values_at_the_last_time_are_compared_with_what_initial_values_determine(share: sp.Expr, status: str) -> None:
    domain = ROD * UNIT
    conditions = [
        Dirichlet(u, 0),
        Initial(u, WAVE),
        Initial(u.diff(t), 0),
        Dirichlet(u, -share * WAVE, on=domain.final),
    ]
    solution = pb.solve(Problem(sp.Eq(u.diff(t, 2), u.diff(x, 2)), domain, conditions), progress=False)
    assert solution.status == status
    if status == "ill-posed":
        assert "one says -1.001 and the other -0.99999" in solution.diagnostics.message


def test_values_at_both_ends_of_time_still_take_the_place_of_a_velocity() -> None:
    domain, exact = ROD * UNIT, WAVE * sp.cos(sp.pi * t / 3)
    conditions = [Dirichlet(u, 0), Initial(u, WAVE), Dirichlet(u, exact.subs(t, 1), on=domain.final)]
    problem = Problem(sp.Eq(u.diff(t, 2), u.diff(x, 2) / 9), domain, conditions, exact=exact)
    assert pb.solve(problem, progress=False).true_error() < 1e-6


@pytest.mark.parametrize(
    "surplus",
    [Dirichlet(u, sp.Rational(1, 5), on=(0.5, 0.1)), pb.Mean(u, sp.Rational(1, 5)), Dirichlet(u, 1, on=(0.5, 1.0))],
)
def test_a_value_inside_beside_all_conditions_of_an_evolution_is_compared(surplus: pb.Condition | pb.Mean) -> None:
    conditions = [Dirichlet(u, 0), Initial(u, WAVE), surplus]
    solution = pb.solve(Problem(sp.Eq(u.diff(t), u.diff(x, 2)), ROD * UNIT, conditions), progress=False)
    assert solution.status == "ill-posed"
    assert "set the same quantity" in solution.diagnostics.message


@pytest.mark.parametrize(("given", "status"), [(0, "converged"), (sp.Rational(1, 1000), "ill-posed")])
def test_a_value_beside_slopes_all_around_and_a_mean_is_compared(given: sp.Expr, status: str) -> None:
    v = field("v", x, y)
    conditions = [pb.Neumann(v, 0), pb.Mean(v, 0), Dirichlet(v, given, on=(0.5, 0.5))]
    problem = Problem(sp.Eq(-laplacian(v), sp.cos(sp.pi * x)), SQUARE, conditions)
    assert pb.solve(problem, progress=False).status == status
