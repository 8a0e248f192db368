"""Whether conditions determine an evolution: what lacks is told, what is too much is checked."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import EvolvedNetwork, unbounded_growth
from pibls.evolution import Evolution, Unsuitable, evolve, find_evolution
from pibls.features import BroadNetwork, FeatureGroup, activation
from pibls.problem import Problem
from pibls.solution import Solution

x, y, t = pb.coordinates("x y t")
u, v = pb.field("u", x, t), pb.field("v", x, t)
c, d, w = pb.field("c", t), pb.field("d", t), pb.field("w", x, y, t)
LINE = pb.Interval((x, 0, 1))
DOMAIN = LINE * pb.TimeInterval(t, 0, 1)
SQUARE = pb.Box((x, 0, 1), (y, 0, 1))
TIME = pb.TimeInterval(t, 0, 1)
START = pb.Initial(u, sp.sin(sp.pi * x))
REST = pb.Initial(u.diff(t), 0)
HEAT = sp.Eq(u.diff(t), u.diff(x, 2) / 10)
BURGERS = sp.Eq(u.diff(t) + u * u.diff(x), u.diff(x, 2) / 20)
WAVE = sp.Eq(u.diff(t, 2), u.diff(x, 2) - sp.sin(u))
BEAM = sp.Eq(u.diff(t), -u.diff(x, 4) - u**3)
WALL, LEFT, RIGHT = (pb.Dirichlet(u, 0, **({"on": on} if on else {})) for on in (None, LINE.left, LINE.right))
SLOPE = pb.Dirichlet(u.diff(x), 1, on=LINE.left)
PENDULUM = sp.Eq(c.diff(t, 2), -sp.sin(c))


@pytest.mark.parametrize(
    ("equation", "domain", "conditions", "words"),
    [
        (
            PENDULUM,
            TIME,
            [pb.Initial(c, 1)],
            r"the time derivative of c has no initial value. Add one, such as Initial\(c.diff",
        ),
        ([d.diff(t) + c**3, c.diff(t) - d], TIME, [pb.Initial(c, 1)], "d has no initial value"),
        (WAVE, DOMAIN, [WALL, START], "the time derivative of u has no initial value"),
        (BURGERS, DOMAIN, [WALL], "u has no initial value"),
        (WAVE, DOMAIN, [LEFT, START, REST], r"right has no condition; u_tt = -sin\(u\) \+ u_xx needs one there"),
        (BURGERS, DOMAIN, [RIGHT, START], "left has no condition; .* needs one there"),
        (BURGERS, DOMAIN, [LEFT, SLOPE, START], "right has no condition"),
        (HEAT, DOMAIN, [START], "the boundary has no condition"),
        (BEAM, DOMAIN, [WALL, SLOPE, START], "right has one condition; .* needs two there"),
        (
            sp.Eq(w.diff(t), pb.laplacian(w) + w - w**3),
            SQUARE * TIME,
            [pb.Dirichlet(w, 0, on=SQUARE.left | SQUARE.right), pb.Initial(w, 1)],
            "bottom and top have no condition; .* needs one there",
        ),
    ],
)
def test_too_few_conditions_are_told_with_the_place(
    equation: object, domain: object, conditions: list[object], words: str
) -> None:
    solution = pb.solve(Problem(equation, domain, conditions), time="lines")
    assert solution.status == "ill-posed"
    assert re.search(words, solution.diagnostics.message), solution.diagnostics.message
    assert solution.error_estimate == float("inf")


POLAR = u.diff(x, 2) + u.diff(x) / x
OTHER_EQUATIONS = {
    "the axis of a disk": (sp.Eq(u.diff(t), POLAR), [RIGHT, START]),
    "the axis, multiplied": (sp.Eq(x * u.diff(t), u.diff(x, 2) * x + u.diff(x)), [RIGHT, START]),
    "diffusion that vanishes at the ends": (sp.Eq(u.diff(t), x * (1 - x) * u.diff(x, 2)), [START]),
    "diffusion that depends on the solution": (sp.Eq(u.diff(t), (u * u.diff(x)).diff(x)), [START]),
    "transport": (sp.Eq(u.diff(t) + u.diff(x), -(u**2)), [LEFT, START]),
    "waves that all go right": (
        sp.Eq(u.diff(t, 2) + 3 * u.diff(x, t) + 2 * u.diff(x, 2), 0),
        [LEFT, SLOPE, START, REST],
    ),
    "dispersion": (sp.Eq(u.diff(t), u.diff(x, 3)), [WALL, SLOPE, START]),
    "everything given": (BURGERS, [WALL, START]),
    "periodic": (BURGERS, [pb.Periodic(u, x), START]),
    "nonlinear conditions": (HEAT, [LEFT, pb.Condition(sp.Eq(u.diff(x), -(u**4)), on=LINE.right), START]),
}


@pytest.mark.parametrize("name", OTHER_EQUATIONS)
def test_nothing_is_said_where_counting_proves_nothing(name: str) -> None:
    equation, conditions = OTHER_EQUATIONS[name]
    evolution = find_evolution(Problem(equation, DOMAIN, conditions))
    assert isinstance(evolution, Evolution), evolution
    assert not evolution.lacks
    assert not evolution.surplus


def test_nothing_is_said_of_points_without_a_boundary() -> None:
    cloud = pb.PointCloud((x, y), np.random.default_rng(0).uniform(size=(50, 2)))
    problem = Problem(sp.Eq(w.diff(t), pb.laplacian(w)), cloud * TIME, [pb.Initial(w, 1)])
    evolution = find_evolution(problem)
    assert isinstance(evolution, Evolution)
    assert not evolution.lacks


@pytest.mark.parametrize(
    ("equation", "conditions"),
    [
        (sp.Eq(t * c.diff(t, 2) + c.diff(t) + t * c, 0), [pb.Initial(c, 1)]),  # Bessel's: regular solutions are unique
        (sp.Eq(c.diff(t, 2), -c.diff(t) / t - c), [pb.Initial(c, 1)]),
        (sp.Eq(c.diff(t, 2), -sp.sqrt(c)), [pb.Initial(c, 1)]),
        (PENDULUM, [pb.Initial(c, 1), pb.Dirichlet(c, 0, on=TIME.final)]),
        (PENDULUM, [pb.Initial(c, 1), pb.Mean(c, 0)]),
    ],
)
def test_initial_values_that_may_not_be_missing_are_not_missed(equation: sp.Eq, conditions: list[object]) -> None:
    assert isinstance(find_evolution(Problem(equation, TIME, conditions)), Unsuitable)


def test_conditions_on_the_boundary_may_make_up_for_initial_values() -> None:
    slope = pb.Dirichlet(u.diff(x), 0)
    assert isinstance(find_evolution(Problem(WAVE, DOMAIN, [WALL, slope, START])), Unsuitable)
    both = [pb.Dirichlet(own, 0) for own in (u, v, u.diff(x))]
    pair = [HEAT, sp.Eq(v.diff(t), v.diff(x, 2) - u)]
    assert isinstance(find_evolution(Problem(pair, DOMAIN, [*both, START])), Unsuitable)
    assert isinstance(find_evolution(Problem(pair, DOMAIN, [*both[:2], START])), Evolution)


def test_conditions_that_contradict_each_other_are_told() -> None:
    for equation in (HEAT, BURGERS):
        solution = pb.solve(Problem(equation, DOMAIN, [SLOPE, WALL, START]))
        assert solution.status == "ill-posed"
        assert "contradict each other" in solution.diagnostics.message
        assert "u_x = 1 on left" in solution.diagnostics.message


@pytest.mark.parametrize(("tol", "status"), [(1e-2, "converged"), (1e-4, "ill-posed"), (1e-6, "ill-posed")])
def test_a_slope_that_is_slightly_off_is_told_at_finer_tolerances(tol: float, status: str) -> None:
    exact = sp.exp(-t) * sp.cos(x + 1)
    off = sp.Rational(1001, 1000) * exact.diff(x).subs(x, 0)
    more = pb.Dirichlet(u.diff(x), off, on=LINE.left)
    conditions = [pb.Dirichlet(u, exact), pb.Initial(u, exact.subs(t, 0)), more]
    assert pb.solve(Problem(sp.Eq(u.diff(t), u.diff(x, 2)), DOMAIN, conditions), tol=tol).status == status


def test_conditions_that_say_the_same_twice_do_no_harm() -> None:
    exact = sp.exp(-t) * sp.cos(x)
    conditions = [pb.Dirichlet(u.diff(x), exact.diff(x)), pb.Dirichlet(u, exact), pb.Initial(u, sp.cos(x))]
    solution = evolve(Problem(sp.Eq(u.diff(t), u.diff(x, 2)), DOMAIN, conditions, exact))
    assert isinstance(solution, Solution)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_two_initial_values_of_one_field_are_refused() -> None:
    verdict = find_evolution(Problem(HEAT, DOMAIN, [WALL, START, pb.Initial(u, 1)]))
    assert isinstance(verdict, Unsuitable)
    assert "contradicts another initial value" in verdict.reason


@pytest.mark.parametrize("start", [0, 1])
def test_a_rate_that_is_infinitely_steep_at_the_start_is_followed(start: int) -> None:
    solution = pb.solve(Problem(sp.Eq(c.diff(t), start + 2 * sp.sqrt(c)), TIME, [pb.Initial(c, 0)]), tol=1e-4)
    assert solution.status == ("converged" if start else "ill-posed")
    assert ("leaves it" in solution.diagnostics.message) != bool(start)
    if start:  # 2 r − ln(1 + 2 r) = 2 t with r = √c
        root = float(np.sqrt(solution([[1.0]])[0]))
        assert abs(2 * root - np.log(1 + 2 * root) - 2.0) < 1e-4


def test_a_quenched_bar_is_well_posed() -> None:
    one = sp.Add(*((-1) ** k * sp.erf((x - k) / (2 * sp.sqrt(t))) for k in range(-3, 4)))
    conditions = [pb.Dirichlet(w, 0), pb.Initial(w, 1)]
    domain = SQUARE * pb.TimeInterval(t, 0, sp.Rational(1, 20))
    solution = evolve(
        Problem(sp.Eq(w.diff(t), pb.laplacian(w)), domain, conditions, one * one.subs(x, y)), tol=1e-2, budget=1.0
    )
    assert isinstance(solution, Solution)
    assert solution.status != "ill-posed"
    assert solution.error_estimate is not None
    assert 0.1 < solution.true_error() / solution.error_estimate < 10


@pytest.mark.parametrize(
    ("right", "order", "grows"),
    [
        (u.diff(x, 2), 1, False),
        (-u.diff(x, 2), 1, True),
        (-u.diff(x, 2) - u.diff(x, 4), 1, False),
        (u.diff(x, 4), 1, True),
        (u.diff(x, 3) - u * u.diff(x), 1, False),
        (u.diff(x, 2), 2, False),
        (-u.diff(x, 2), 2, True),
        (u.diff(x), 2, True),
        (-u.diff(x, 4) + u.diff(x, 2), 2, False),
        ((2 - u) * u.diff(x, 2), 1, False),
        ((sp.Rational(1, 2) - u) * u.diff(x, 2), 1, True),
        (u.diff(x, 2, t) - u.diff(x, 2), 1, False),
        (-u.diff(x, 2, t) - u.diff(x, 4), 1, True),
    ],
)
def test_unstable_equations_are_known_by_their_waves(right: sp.Expr, order: int, grows: bool) -> None:
    starts = [START, REST][:order]
    evolution = find_evolution(Problem(sp.Eq(u.diff(t, order), right), DOMAIN, [WALL, *starts]))
    assert isinstance(evolution, Evolution)

    # sin(pi x), at rest.
    wave = FeatureGroup(activation("sin"), np.array([[np.pi]]), np.array([np.pi / 2]))
    resting = EvolvedNetwork(BroadNetwork([0.5], (wave,)), np.ones((1, 1)), np.array([0.0, 1.0]), np.ones((1, 1, 1, 1)))
    assert bool(unbounded_growth(evolution, resting)) is grows


@pytest.mark.parametrize("width", [0.1, 0.02, 0.001])
def test_a_pulse_is_neither_missed_nor_taken_for_a_blow_up(width: float) -> None:
    a, k, late = sp.Float(width), sp.pi**2 / 10, t - sp.Rational(1, 2)
    decay = sp.exp(k**2 * a**2 / 4 - k * late) * (sp.erf(late / a - k * a / 2) + 1)
    exact = sp.sqrt(sp.pi) / 2 * a * decay * sp.sin(sp.pi * x)
    equation = sp.Eq(u.diff(t), u.diff(x, 2) / 10 + sp.exp(-((late / a) ** 2)) * sp.sin(sp.pi * x))
    solution = evolve(Problem(equation, DOMAIN, [WALL, pb.Initial(u, 0)], exact))
    assert isinstance(solution, Solution)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6
    assert np.isfinite(solution([[0.5, 1.0]])).all()


@pytest.mark.parametrize("on", [sp.Rational(1, 3), sp.Rational(1, 50), sp.Rational(47, 100), sp.Rational(311, 400)])
def test_what_is_switched_on_for_a_short_while_is_not_passed_over(on: sp.Rational) -> None:
    off = on + sp.Rational(1, 150)
    source = sp.Piecewise((1, (t > on) & (t < off)), (0, True))
    solution = evolve(Problem(sp.Eq(c.diff(t), source - c**2), TIME, [pb.Initial(c, 0)]))
    assert isinstance(solution, Solution)
    assert solution.status == "converged"
    peak = np.tanh(float(off - on))
    assert solution([[float(off)], [1.0]]) == pytest.approx([peak, 1 / (1 / peak + 1 - float(off))], rel=1e-6)


def test_a_density_that_becomes_negative_by_error_proves_nothing():
    """Beyond its edge there is no gas in a porous medium; a little less than none would diffuse backwards."""
    bed = pb.Interval((x, -8, 8)) * pb.TimeInterval(t, 1, 4)
    start = pb.Initial(u, sp.Max(0, 1 - x**2 / 12))
    problem = Problem(sp.Eq(u.diff(t), (u**2).diff(x, 2)), bed, [pb.Dirichlet(u, 0), start])
    assert pb.solve(problem, tol=1e-2, time="lines", budget=2.0).status == "stalled"
    solution = pb.solve(problem, tol=0.02, budget=1.0)
    assert solution.status == "converged"
    assert solution([[0.0, 4.0], [3.0, 4.0]]) == pytest.approx([0.63, 0.63 * (1 - 9 / (12 * 4 ** (2 / 3)))], abs=0.02)
