"""Which problems are evolutions, and what they become."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import compiled
from pibls.evolution import Evolution, Unsuitable, evolve, find_evolution
from pibls.problem import Problem

x, t = pb.coordinates("x t")
u, v = pb.field("u", x, t), pb.field("v", x, t)
DOMAIN = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
START = pb.Initial(u, x)


def found(problem: Problem) -> Evolution:
    evolution = find_evolution(problem)
    assert isinstance(evolution, Evolution)
    return evolution


def rate(evolution: Evolution, name: str, slots: dict[tuple[str, int, int], float], place: float = 0.3) -> float:
    """Evaluate a rate with (field, time order, space order) given and all other slots zero."""
    extra = tuple(slot.symbol for slot in evolution.slots)
    keys = [(slot.state[0], slot.state[1], slot.multi_index[0]) for slot in evolution.slots]
    values = [np.array([slots.get(key, 0.0)]) for key in keys]
    return float(compiled(evolution.rates[name], (x, t), extra)(np.array([[place, 0.0]]), None, values)[0])


def test_a_nonlinear_equation_is_solved_for_its_time_derivative() -> None:
    evolution = found(Problem(sp.Eq(u * u.diff(x) + 2 * u.diff(t), u.diff(x, 2)), DOMAIN, [pb.Dirichlet(u, 0), START]))
    assert evolution.states == (("u", 0),)
    assert rate(evolution, "u", {("u", 0, 0): 3.0, ("u", 0, 1): 5.0, ("u", 0, 2): 7.0}) == pytest.approx((7 - 15) / 2)
    assert evolution.initial == {("u", 0): x}


def test_the_mass_may_vary_and_depend_on_the_state() -> None:
    equation = sp.Eq((1 + x) * (2 + u) * u.diff(t), u.diff(x, 2))
    evolution = found(Problem(equation, DOMAIN, [pb.Dirichlet(u, 0), START]))
    assert rate(evolution, "u", {("u", 0, 0): 1.0, ("u", 0, 2): 6.0}, place=0.5) == pytest.approx(6 / (1.5 * 3))


def test_a_second_order_equation_has_its_velocity_as_a_state() -> None:
    equation = sp.Eq(u.diff(t, 2) + u.diff(t), u.diff(x, 2))
    evolution = found(Problem(equation, DOMAIN, [pb.Dirichlet(u, 0), START, pb.Initial(u.diff(t), 1)]))
    assert evolution.states == (("u", 0), ("u", 1))
    assert rate(evolution, "u", {("u", 1, 0): 2.0, ("u", 0, 2): 5.0}) == pytest.approx(3.0)
    assert evolution.initial["u", 1] == 1


def test_coupled_time_derivatives_are_separated() -> None:
    equations = [sp.Eq(u.diff(t) + v.diff(t), u), sp.Eq(u.diff(t) - v.diff(t), v)]
    evolution = found(Problem(equations, DOMAIN, [START, pb.Initial(v, 0)]))
    slots = {("u", 0, 0): 3.0, ("v", 0, 0): 1.0}
    assert rate(evolution, "u", slots) == pytest.approx(2.0)
    assert rate(evolution, "v", slots) == pytest.approx(1.0)


def test_the_order_of_the_equations_does_not_matter() -> None:
    equations = [sp.Eq(u.diff(t), 2 * v), sp.Eq(v.diff(t), 3 * u)]
    slots = {("u", 0, 0): 1.0, ("v", 0, 0): 1.0}
    for given_equations in (equations, equations[::-1]):
        evolution = found(Problem(given_equations, DOMAIN, [START, pb.Initial(v, 0)]))
        assert rate(evolution, "u", slots) == pytest.approx(2.0)
        assert rate(evolution, "v", slots) == pytest.approx(3.0)


HEAT = sp.Eq(u.diff(t), u.diff(x, 2))
WALL = pb.Dirichlet(u, 0)
TIMED = pb.data("g", lambda x, t: x + t, x, t)
p = pb.field("p", x, t)
MIXED = u.diff(t) - u.diff(t, x, 2)
FLOW = [u.diff(t) + p.diff(x) - u, v.diff(t) + p.diff(x), u.diff(x) + v.diff(x)]
GAUGE = pb.Mean(p, 0)


@pytest.mark.parametrize(
    ("equations", "conditions", "reason"),
    [
        (sp.Eq(u.diff(t), u.diff(x)), [WALL], "u has no initial value"),
        (sp.Eq(u.diff(t, 2), u.diff(x)), [START], "the time derivative of u has no initial value"),
        (sp.Eq(u.diff(t, x), u), [START], "also differentiated in space"),
        (sp.Eq(u.diff(t) ** 2, u), [START], "not linear in its highest time derivatives"),
        (sp.Eq(u.diff(x, 2), u), [START], "no equation has a time derivative of u"),
        ([HEAT, sp.Eq(v, u)], [START], "v, which has no time derivative, does not enter"),
        ([HEAT, sp.Eq(u.diff(t), v.diff(x))], [START], "no equation has a time derivative of v"),
        ([sp.Eq(u.diff(t) + v.diff(t), u), sp.Eq(u.diff(t) + v.diff(t), v)], [START], "or two have the same"),
        ([HEAT, sp.Eq(u.diff(t), x)], [START], "2 equations for 1 fields"),
        (HEAT, [START, pb.Condition(sp.Eq(u.diff(t) + u.diff(x), 0), on=DOMAIN.left)], "derivative in time"),
        (HEAT, [START, pb.Mean(u, 0)], "not a condition on the boundary"),
        (HEAT, [WALL, pb.Dirichlet(u, 0, on=DOMAIN.final)], "given at the last time"),
        (HEAT, [WALL, pb.Initial(u.diff(x), 1)], "does not give the initial value of one field"),
        (MIXED * (1 + u) + MIXED.diff(x, 2), [WALL, START], "depend on time or on the solution"),
        ([MIXED - v.diff(t), v.diff(t) + v.diff(t, x, 2)], [START, pb.Initial(v, 0)], "are coupled"),
        ([HEAT, sp.Eq(u.diff(x), 0)], [START], "2 equations for 1 fields"),
        (FLOW, [START, pb.Initial(v, 0)], "known only up to a constant"),
        ([FLOW[0] + p * u, *FLOW[1:]], [START, pb.Initial(v, 0)], "does not enter the others with fixed numbers"),
        ([FLOW[0], FLOW[1], u.diff(x) - v.diff(x)], [START, GAUGE], "no equation that it is the multiplier of"),
        ([*FLOW[:2], u.diff(x) + v.diff(x)], [START, GAUGE, pb.Dirichlet(p**2, 1)], "which follows from the others"),
        ([MIXED + p.diff(x), u.diff(x)], [START, GAUGE], "have some that are differentiated in space"),
        (sp.Eq(u.diff(t), pb.unknown("k") * u.diff(x, 2)), [WALL, START], "unknown numbers"),
    ],
)
def test_what_is_no_evolution_is_told_why(equations: object, conditions: list[object], reason: str) -> None:
    verdict = evolve(Problem(equations, DOMAIN, conditions))
    assert isinstance(verdict, Unsuitable)
    assert reason in verdict.reason
    assert not verdict


def test_a_problem_without_time_is_no_evolution() -> None:
    assert find_evolution(pb.problems.poisson()) == Unsuitable("the domain has no time")


def test_a_pressure_is_found_as_the_multiplier_of_its_constraint() -> None:
    equations = [FLOW[2], 2 * u.diff(t) + 2 * p.diff(x) - u**2, 3 * v.diff(t) + 3 * p.diff(x)]
    conditions = [START, pb.Initial(v, 0), pb.Initial(p, 0), GAUGE]
    evolution = found(Problem(equations, DOMAIN, conditions))
    (multiplier,) = evolution.multipliers
    assert multiplier.name == "p"
    assert multiplier.forces == {("u", (1,)): -1.0, ("v", (1,)): -1.0}
    assert evolution.constrained == ("u", "v")
    assert rate(evolution, "u", {("u", 0, 0): 3.0}) == pytest.approx(4.5)


def test_time_derivatives_may_be_differentiated_in_space() -> None:
    equation = sp.Eq(2 * u.diff(t) - (1 + x) * u.diff(t, x, 2), u * u.diff(x))
    evolution = found(Problem(equation, DOMAIN, [WALL, START]))
    assert evolution.mass == {"u": {(0,): 2, (2,): -x - 1}}
    assert rate(evolution, "u", {("u", 0, 0): 3.0, ("u", 0, 1): 5.0}) == pytest.approx(15.0)


@pytest.mark.parametrize(
    "condition",
    [
        pb.Condition(sp.Eq(u**2, 1), on=DOMAIN.left),
        pb.Robin(u, t, 1, 0),
        pb.Dirichlet(u, TIMED),
        pb.Dirichlet(u - v, 0),
    ],
    ids=["nonlinear", "timed", "data", "coupled"],
)
def test_conditions_that_cannot_be_built_in_are_pulled_to(condition: pb.Condition) -> None:
    built = pb.Dirichlet(v, sp.sin(t))
    evolution = found(Problem([HEAT, sp.Eq(v.diff(t), u)], DOMAIN, [START, pb.Initial(v, 0), condition, built]))
    assert [s.name for s in evolution.pulled] == [repr(condition)]
    assert [s.name for s in evolution.conditions_on("v")] == [repr(built)]
    assert not evolution.conditions_on("u")
