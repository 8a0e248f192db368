"""Which way through time a solve takes, and what it says of a way that cannot be taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import EvolvedNetwork, analysis_of, loop, strategy
from pibls.errors import InputError
from pibls.refinement import Reason, Stop
from pibls.solution import Stage


def test_nonlinear_evolutions_are_solved_by_lines_and_linear_ones_in_space_time():
    front = pb.solve(pb.problems.fisher_kpp())
    assert isinstance(front.network, EvolvedNetwork)
    assert front.status == "converged"
    assert front.true_error() < 1e-6
    heat = pb.problems.heat_robin()
    assert not isinstance(pb.solve(heat).network, EvolvedNetwork)
    by_lines = pb.solve(heat, time="lines")
    assert isinstance(by_lines.network, EvolvedNetwork)
    assert by_lines.true_error() < 1e-6
    assert 0.1 < by_lines.true_error() / by_lines.error_estimate < 10


def test_a_linear_wave_that_goes_round_many_times_is_followed_by_lines():
    solution = pb.solve(pb.problems.advection_long())
    assert isinstance(solution.network, EvolvedNetwork)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_what_stalls_in_space_time_is_tried_by_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    x, t = pb.coordinates("x t")
    u = pb.field("u", x, t)
    exact = sp.sin(30 * sp.pi * (x - t / 20)) + x
    interval = pb.Interval((x, 0, 1))
    conditions = [pb.Dirichlet(u, exact, on=interval.left), pb.Initial(u, exact.subs(t, 0))]
    equation = sp.Eq(u.diff(t) + u.diff(x) / 20, sp.Rational(1, 20))
    problem = pb.Problem(equation, interval * pb.TimeInterval(t, 0, 1), conditions, exact)
    # Few cells, and no finer ones: whatever the first ones leave is too much.
    monkeypatch.setattr(loop.DataRefinement, "resolving_data", lambda _, root, *__: root)
    monkeypatch.setattr(loop.Loop, "limit", lambda *_: Stop(Reason.EXHAUSTED, "it ends here"))
    assert pb.solve(problem, tol=1e-5, time="space-time").status == "stalled"
    solution = pb.solve(problem, tol=1e-5, budget=60)
    assert isinstance(solution.network, EvolvedNetwork)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-5


def test_a_shock_is_resolved_without_being_told_where_it_is():
    seen = []
    solution = pb.solve(pb.problems.burgers(), progress=seen.append, budget=30)
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.true_error() < 1e-6
    assert seen


@pytest.mark.parametrize(
    ("build", "options", "words"),
    [
        (pb.problems.poisson, {"time": "lines"}, "cannot be solved with time='lines': the domain has no time"),
        (pb.problems.poisson, {"time": "space-time"}, "the domain has no time"),
        (pb.problems.heat_robin, {"time": "windows"}, "'time' parameter of solve must be one of 'space-time', 'lines'"),
        (pb.problems.heat_robin, {"time": "steps"}, "'time' parameter of solve"),
        (pb.problems.heat_robin, {"time": 3}, "'time' parameter of solve"),
        (pb.problems.heat_robin, {"time": "lines", "method": pb.PIBLS()}, "chooses nodes, points and starts itself"),
        (pb.problems.burgers, {"time": "lines", "start": sp.S.Zero}, "chooses nodes, points and starts itself"),
    ],
)
def test_ways_that_cannot_be_taken_are_refused(build: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        pb.solve(build(), **options)


def test_solutions_by_lines_cannot_grow() -> None:
    with pytest.raises(InputError, match="cannot grow"):
        pb.solve(pb.problems.heat_robin(), time="lines").grow(nodes=10)


def test_what_would_stall_in_time_is_solved_in_space_and_time():
    # The ends of a warm rod are cold from the first moment on: features would have to be ever finer there.
    x, t = pb.coordinates("x t")
    c, rod = pb.field("c", x, t), pb.Interval((x, 0, 1))
    conditions = [pb.Dirichlet(c, 0), pb.Initial(c, 1)]
    problem = pb.Problem(sp.Eq(c.diff(t), c.diff(x, 2)), rod * pb.TimeInterval(t, 0, 0.1), conditions)
    solution = pb.solve(problem, tol=1e-5)
    assert solution.status == "converged"
    assert solution.diagnostics.method == "Cells"
    waves = np.arange(1, 400, 2) * np.pi
    place, time = 0.3, 0.05
    exact = float((4 / waves * np.sin(waves * place) * np.exp(-(waves**2) * time)).sum())
    assert solution([[place, time]])[0] == pytest.approx(exact, abs=3e-5)


def run_with(*stages):
    """A solution of which nothing is known but nodes and estimates of its stages."""
    return SimpleNamespace(diagnostics=SimpleNamespace(stages=[Stage(0.0, nodes=n, estimate=e) for n, e in stages]))


def test_work_to_come_follows_from_how_estimates_fell():
    # A fall by 16 with twice the nodes is of order four: 256 times less takes four times the nodes.
    assert strategy._to_come(run_with((10, 1e-1), (20, 1e-1 / 16)), 1e-1 / 16 / 256) == pytest.approx(4.0**3)
    assert strategy._to_come(run_with((10, 1e-1), (20, 2e-1)), 1e-6) == np.inf
    assert strategy._to_come(run_with((10, 1e-1)), 1e-6) == np.inf


def test_waves_last_unless_every_field_damps_its_own() -> None:
    x, t = pb.coordinates("x t")
    u, v = pb.field("u", x, t), pb.field("v", x, t)
    times = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    cases = {
        u.diff(t) - u.diff(x, 2) - u.diff(x): False,
        u.diff(t) + u.diff(x, 4): False,
        u.diff(t) + u.diff(x, 3): True,
        u.diff(t) + u.diff(x): True,
        u.diff(t, 2) - u.diff(x, 2): True,
        u.diff(t) - v.diff(x, 2): True,
        u.diff(t) - u.diff(x, 2) - v.diff(x, 4): True,
        u.diff(t) + u: True,
    }
    for equation, lasts in cases.items():
        other = [v.diff(t) - v.diff(x, 4)] if equation.has(v) else []
        assert analysis_of(pb.Problem([equation, *other], times, [])).keeps_waves == lasts, equation


@pytest.mark.parametrize("kind", ["beam", "quantum"])
def test_a_slight_fast_wave_is_not_lost_between_two_solutions_that_both_miss_it(kind: str) -> None:
    """It is missed from the start and leaves hardly a residual: two solutions without it agree."""
    x, t = pb.coordinates("x t")
    line = pb.Interval((x, 0, 1))
    u = pb.field("u", x, t, complex=kind == "quantum")
    number, share, end = (5, sp.Rational(1, 300), sp.Rational(1, 3)) if kind == "beam" else (3, sp.Rational(1, 100), 2)
    speeds = [(k * sp.pi) ** 2 * t for k in (1, number)]
    turns = [sp.cos(own) if kind == "beam" else sp.exp(-sp.I * own) for own in speeds]
    exact = sp.sin(sp.pi * x) * turns[0] + share * sp.sin(number * sp.pi * x) * turns[1]
    start, conditions = pb.Initial(u, exact.subs(t, 0)), [pb.Dirichlet(u, 0)]
    if kind == "beam":
        equation = sp.Eq(u.diff(t, 2), -u.diff(x, 4))
        conditions += [pb.Dirichlet(u.diff(x, 2), 0), pb.Initial(u.diff(t), 0)]
    else:
        equation = sp.Eq(sp.I * u.diff(t), -u.diff(x, 2))
    problem = pb.Problem(equation, line * pb.TimeInterval(t, 0, end), [start, *conditions], exact=exact)
    solution = pb.solve(problem, tol=1e-3)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-3
