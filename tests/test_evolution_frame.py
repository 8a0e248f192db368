"""Features that travel with a front round a periodic interval, and what a single run says of itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import EvolvedNetwork, compiled
from pibls.errors import FeatureError
from pibls.evolution import Evolution, evolve, find_evolution
from pibls.problem import Problem
from pibls.problems import evolving, klein_gordon
from pibls.refinement import Cost
from pibls.solution import Solution

x, t = pb.coordinates("x t")
u = pb.field("u", x, t)
RING = pb.Interval((x, -1, 1))
DOMAIN = RING * pb.TimeInterval(t, 0, 1)
ROUND, START = pb.Periodic(u, x), pb.Initial(u, sp.sin(sp.pi * x))


@pytest.fixture(scope="module")
def travelling() -> Solution:
    solution = evolve(evolving.burgers(drift=0.5), tol=1e-4, budget=60.0)
    assert isinstance(solution, Solution)
    return solution


def test_a_front_that_travels_is_followed(travelling: Solution) -> None:
    assert travelling.status == "converged"
    assert travelling.diagnostics.settings["velocity"] == pytest.approx(0.5, abs=0.02)
    error = travelling.true_error()
    assert error < 1e-4
    assert travelling.error_estimate is not None
    assert error / 5 < travelling.error_estimate < 5 * error
    assert travelling.diagnostics.residuals["the equation"].rms < 0.1


def test_derivatives_in_time_see_the_motion(travelling: Solution) -> None:
    X, step = np.array([[0.21, 0.1], [-0.9, 0.2], [0.99, 0.25]]), 1e-5
    ahead, behind = (travelling(X + np.array([0.0, shift])) for shift in (step, -step))
    slope = travelling.derivative(u, t)(X)
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), atol=1e-6)
    ahead, behind = (travelling.derivative(u, t)(X + np.array([0.0, shift])) for shift in (step, -step))
    np.testing.assert_allclose(travelling.derivative(u, t, t)(X), (ahead - behind) / (2 * step), atol=1e-3)


def test_what_travels_is_stored_and_read(travelling: Solution, tmp_path: Path) -> None:
    again = pb.load(travelling.save(tmp_path / "front.pibls"), data={})
    X = travelling.problem.domain.sample(80)
    np.testing.assert_array_equal(again(X), travelling(X))
    np.testing.assert_array_equal(again.error_field(X), travelling.error_field(X))


def test_an_evolution_seen_from_a_moving_coordinate() -> None:
    evolution = find_evolution(Problem(sp.Eq(u.diff(t), u.diff(x, 2) - u**3), DOMAIN, [ROUND, START]))
    assert isinstance(evolution, Evolution)
    assert evolution.can_move
    assert evolution.frame is None
    moving = evolution.moving(2.0).moving(1.0)
    extra = tuple(slot.symbol for slot in moving.slots)
    values = [np.array([{0: 2.0, 1: 5.0, 2: 7.0}[slot.multi_index[0]]]) for slot in moving.slots]
    found = compiled(moving.rates["u"], (x, t), extra)(np.zeros((1, 2)), None, values)
    assert found[0] == pytest.approx(7.0 - 8.0 + 3.0 * 5.0)
    assert moving.frame == (3.0, -1.0, 2.0)


@pytest.mark.parametrize(
    ("equation", "conditions"),
    [
        (sp.Eq(u.diff(t), u.diff(x, 2) + x * u), [ROUND, START]),
        (sp.Eq(u.diff(t), u.diff(x, 2)), [pb.Dirichlet(u, 0), START]),
        (sp.Eq(u.diff(t, 2), u.diff(x, 2)), [ROUND, START, pb.Initial(u.diff(t), 0)]),
        (sp.Eq(u.diff(t) - u.diff(t, x, 2), u.diff(x)), [ROUND, START]),
    ],
    ids=["place", "walls", "second order", "mass"],
)
def test_what_looks_different_elsewhere_stays_at_rest(equation: sp.Eq, conditions: list[pb.Condition]) -> None:
    evolution = find_evolution(Problem(equation, DOMAIN, conditions))
    assert isinstance(evolution, Evolution)
    assert not evolution.can_move


def test_only_a_line_can_have_travelling_features(travelling: Solution) -> None:
    assert isinstance(travelling.network, EvolvedNetwork)
    with pytest.raises(FeatureError, match="must fit together"):
        replace(travelling.network, frame=(1.0, 0.0, -1.0))


def test_a_single_run_is_judged_by_a_coarser_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pibls.evolution.refinement_in_time.RefinementInTime._cost", lambda _: Cost("no finer one", np.inf)
    )
    solution = evolve(klein_gordon(), tol=1e-12)
    assert isinstance(solution, Solution)
    assert solution.status == "stalled"
    assert "no finer one" in solution.diagnostics.message
    assert solution.error_estimate is not None
    assert 0.1 < solution.error_estimate / solution.true_error() < 100
    generous = evolve(klein_gordon(), tol=0.1)
    assert isinstance(generous, Solution)
    assert generous.status == "converged"
    # The coarser one stands beside it, so that quantities have errors.
    assert generous.richer is not None
    assert np.isfinite(generous.maximum(generous.problem.fields[0], at=0.5).error)


def test_two_runs_on_the_same_features_are_never_compared() -> None:
    solution = evolve(evolving.gray_scott(), tol=1e-2)
    assert isinstance(solution, Solution)
    nodes = [stage.nodes for stage in solution.diagnostics.stages]
    assert len(set(nodes)) == len(nodes)
    assert solution.error_estimate is not None
    assert 0.1 < solution.error_estimate / solution.true_error() < 10
