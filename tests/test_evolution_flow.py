"""Constraints, mixed derivatives and boundary conditions that cannot be built in, followed in time."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Design, Galerkin, compressed, leak, taylor_green, traces_of
from pibls.evolution import Evolution, Unsuitable, evolve, find_evolution
from pibls.problem import AnyCondition, Problem
from pibls.solution import Solution

x, y, t = pb.coordinates("x y t")
u, v, p = (pb.field(name, x, y, t) for name in "uvp")
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
w = pb.field("w", x, t)
z = pb.field("z", x, t)
LINE = pb.Interval((x, 0, 1))
STRIP = LINE * pb.TimeInterval(t, 0, 1)


def solved(problem: Problem, tol: float = 1e-6, *, stages: bool = True) -> Solution:
    solution = evolve(problem, tol=tol, budget=60.0, stages=stages)
    assert isinstance(solution, Solution)
    assert solution.status == "converged", solution.diagnostics.message
    error, estimate = solution.true_error(), solution.error_estimate
    assert estimate is not None
    assert error < 2 * tol
    assert estimate / 10 < error + 1e-12
    return solution


def stokes_flow(open_end: bool = False) -> Problem:
    """Return a decaying flow through the unit square with a stream function, forced so that its pressure is x y t."""
    stream = sp.sin(2 * x + 1) * sp.cos(3 * y) * sp.exp(-t)
    exact = {u: stream.diff(y), v: -stream.diff(x), p: (x * y - sp.Rational(1, 4)) * (1 + t)}
    equations = [
        sp.Eq(
            f.diff(t) + force - pb.laplacian(f),
            sp.diff(exact[f], t) + sp.diff(exact[p], along) - sp.diff(exact[f], x, 2) - sp.diff(exact[f], y, 2),
        )
        for f, force, along in ((u, p.diff(x), x), (v, p.diff(y), y))
    ]
    walls = SQUARE.left | SQUARE.bottom | SQUARE.top if open_end else None
    conditions: list[AnyCondition] = [pb.Mean(p, 0)]
    for f in (u, v):
        conditions += [pb.Dirichlet(f, exact[f], on=walls), pb.Initial(f, exact[f].subs(t, 0))]
    if open_end:
        conditions.append(pb.Dirichlet(p, exact[p], on=SQUARE.right))
    known = {f.label: value for f, value in exact.items()}
    return Problem([*equations, sp.Eq(u.diff(x) + v.diff(y), 0)], SQUARE * pb.TimeInterval(t, 0, 1), conditions, known)


def test_periodic_vortices_decay_as_they_should() -> None:
    solution = solved(taylor_green(viscosity=0.3), stages=False)
    residual = np.abs(solution.residual(2)(solution.problem.domain.sample(50)))
    assert residual.max() < 1e-10


def test_a_flow_between_walls_has_its_velocity_and_its_pressure() -> None:
    solution = solved(stokes_flow(), tol=1e-4)
    X = solution.problem.domain.sample(200)
    exact, found = solution.problem.exact_values(X), solution(X)
    assert np.linalg.norm(found["p"] - exact["p"]) < 1e-3 * np.linalg.norm(exact["p"])
    assert np.abs(solution.residual(2)(X)).max() < 1e-4


def test_an_open_boundary_is_left_to_others() -> None:
    verdict = evolve(stokes_flow(open_end=True))
    assert isinstance(verdict, Unsuitable)
    assert "open" in verdict.reason


def test_functions_of_a_flow_keep_constraint_and_walls_and_feel_no_pressure() -> None:
    evolution = find_evolution(stokes_flow())
    assert isinstance(evolution, Evolution)
    basis = compressed(*Design(evolution.space, (False, False)).draw(1.5, np.random.default_rng(0)))
    traces = traces_of(evolution, basis)
    kernel = np.vstack([traces["u"].kernel, traces["v"].kernel])
    np.testing.assert_allclose(kernel.T @ kernel, np.eye(kernel.shape[1]), atol=1e-10)
    edge = np.column_stack([np.zeros(7), np.linspace(0.1, 0.9, 7)])
    at_edge = basis.at(edge, [(0, 0)])[0, 0] @ traces["u"].kernel
    values = basis.cache[0, 0] @ traces["u"].kernel
    assert np.abs(at_edge).max() < 1e-3 * np.abs(values).max()
    assert leak(evolution, basis) < 1e-4


def test_the_jacobian_of_a_flow_is_the_derivative_of_its_rates() -> None:
    evolution = find_evolution(taylor_green(walls=True))
    assert isinstance(evolution, Evolution)
    system = Galerkin(
        evolution, compressed(*Design(evolution.space, (False, False)).draw(1.0, np.random.default_rng(0)))
    )
    state, direction = np.random.default_rng(1).standard_normal((2, system.size))
    ahead, behind = system.rates(np.array([0.3, 0.3]), np.stack([state + 1e-6 * direction, state - 1e-6 * direction]))
    exact = system.jacobian(0.3, state) @ direction
    assert np.linalg.norm((ahead - behind) / 2e-6 - exact) < 1e-6 * np.linalg.norm(exact)
    assert system.sizes(state[None]).shape == (1, 1)
    assert len(system.reach(np.array([0.0, 1.0]))) == 1


EXACT = 1 + sp.exp(-t) * sp.cos(2 * x) / 2
FORCE = sp.diff(EXACT, t) - sp.diff(EXACT, x, 2) / 5
HEAT = sp.Eq(w.diff(t), w.diff(x, 2) / 5 + FORCE)
START = pb.Initial(w, EXACT.subs(t, 0))


@pytest.mark.parametrize(
    "conditions",
    [
        [
            pb.Dirichlet(w, EXACT, on=LINE.left),
            pb.Condition(w.diff(x) + w**4 - EXACT.diff(x) - EXACT**4, on=LINE.right),
        ],
        [pb.Condition(sp.Eq(w**2 + w, EXACT**2 + EXACT))],
        [
            pb.Dirichlet(w, EXACT, on=LINE.left),
            pb.Condition(w.diff(x) + t * w - EXACT.diff(x) - t * EXACT, on=LINE.right),
        ],
    ],
    ids=["radiation", "quadratic", "timed"],
)
def test_conditions_that_cannot_be_built_in_are_met(conditions: list[AnyCondition]) -> None:
    solution = solved(Problem(HEAT, STRIP, [*conditions, START], exact=EXACT))
    for condition in conditions:
        assert np.abs(solution.residual(condition).values(20)).max() < 1e-5


def test_a_condition_may_couple_two_fields() -> None:
    other = EXACT + x * (1 - x) * t
    equations = [HEAT, sp.Eq(z.diff(t), z.diff(x, 2) / 5 + sp.diff(other, t) - sp.diff(other, x, 2) / 5)]
    conditions = [pb.Condition(sp.Eq(w, z)), pb.Condition(sp.Eq(w + z**2, EXACT + other**2))]
    starts = [START, pb.Initial(z, other.subs(t, 0))]
    solved(Problem(equations, STRIP, [*conditions, *starts], exact={"w": EXACT, "z": other}))


def test_a_pulled_system_has_the_right_jacobian() -> None:
    problem = Problem(HEAT, STRIP, [pb.Condition(sp.Eq(w.diff(x) + 2 * w, w.diff(x) * 0 + 3)), START])
    evolution = find_evolution(problem)
    assert isinstance(evolution, Evolution)
    assert not evolution.pulled
    timed = Problem(HEAT, STRIP, [pb.Robin(w, 1 + t, 1, sp.sin(t)), START])
    evolution = find_evolution(timed)
    assert isinstance(evolution, Evolution)
    system = Galerkin(evolution, compressed(*Design(evolution.space, (False,)).draw(1.0, np.random.default_rng(0))))
    # A linear condition: the Jacobian is exact, as there is nothing that a Gauss–Newton step would leave out.
    state, direction = np.random.default_rng(1).standard_normal((2, system.size))
    ahead, behind = system.rates(np.array([0.3, 0.3]), np.stack([state + direction, state - direction]))
    exact = system.jacobian(0.3, state) @ direction
    assert np.linalg.norm((ahead - behind) / 2 - exact) < 1e-10 * np.linalg.norm(exact)


def test_a_solitary_wave_of_benjamin_bona_and_mahony() -> None:
    speed = sp.Rational(3, 2)
    exact = 3 * (speed - 1) / sp.cosh(sp.sqrt((speed - 1) / speed) / 2 * (x - speed * t)) ** 2
    domain = pb.Interval((x, -20, 25)) * pb.TimeInterval(t, 0, 3)
    equation = sp.Eq(w.diff(t) + w.diff(x) + w * w.diff(x) - w.diff(x, 2, t), 0)
    solved(Problem(equation, domain, [pb.Dirichlet(w, exact), pb.Initial(w, exact.subs(t, 0))], exact=exact))
