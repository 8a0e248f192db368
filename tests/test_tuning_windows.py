"""Marching through windows of time: accurate, honest, continuous, and in words where it cannot be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from pibls.errors import FeatureError, InputError, ProblemError, SolveError
from pibls.features import draw_network
from pibls.problem import Problem
from pibls.problems import advection_beta, evolving, stokes
from pibls.solution import Solution
from pibls.solution.records import network_from, network_record
from pibls.solution.windowed import WindowedNetwork
from pibls.tuning.window_problem import window_problem
from pibls.tuning.windows import march

x, t = pb.coordinates("x t")
u = pb.field("u", x, t)
LINE = pb.Interval((x, 0, 1))
STRIP = LINE * pb.TimeInterval(t, 0, 1)


def marched(problem: Problem, tol: float = 1e-6, budget: float = 60.0) -> Solution:
    return march(problem, tol, budget, 0, lambda _: None)


def honest(solution: Solution, tol: float) -> None:
    error = solution.true_error()
    assert solution.status == "converged", solution.diagnostics.message
    assert solution.error_estimate is not None
    assert error < 2 * tol
    assert error / 5 < solution.error_estimate < 5 * error


@pytest.fixture(scope="module")
def fast() -> Solution:
    return marched(advection_beta())


def test_a_fast_wave_takes_several_windows(fast: Solution) -> None:
    honest(fast, 1e-6)
    stops = fast.diagnostics.settings["windows"]
    assert len(stops) > 2
    assert stops[-1] == 1.0
    assert len(fast.diagnostics.stages) == len(stops)
    assert fast.diagnostics.residuals
    assert np.isfinite(fast.error_field(fast.problem.domain.sample(50))).all()


def test_windows_join_continuously(fast: Solution) -> None:
    assert isinstance(fast.network, WindowedNetwork)
    X = fast.problem.domain.sample(40)
    for stop in fast.network.breaks[1:-1]:
        before, after = X.copy(), X.copy()
        before[:, -1], after[:, -1] = np.nextafter(stop, 0), stop
        assert np.abs(fast(before) - fast(after)).max() < 1e-5


def test_an_oscillation_continues_with_its_velocity() -> None:
    v = pb.field("v", t)
    exact = sp.cos(9 * t)
    problem = Problem(
        sp.Eq(v.diff(t, 2), -81 * v), pb.TimeInterval(t, 0, 3), [pb.Initial(v, 1), pb.Initial(v.diff(t), 0)], exact
    )
    solution = marched(problem)
    honest(solution, 1e-6)
    assert isinstance(solution.network, WindowedNetwork)
    stop = solution.network.breaks[1]
    slopes = solution.derivative(v, t)([[np.nextafter(stop, 0)], [stop]])
    assert abs(slopes[0] - slopes[1]) < 1e-4


def test_a_nonlinear_system_is_marched_through() -> None:
    honest(marched(evolving.lorenz(), tol=1e-5), 1e-5)


def test_too_little_time_says_how_far_it_came() -> None:
    solution = marched(evolving.advection_long(), tol=1e-4, budget=1.0)
    assert solution.status == "stalled"
    assert "budget of 1 s was spent at t = " in solution.diagnostics.message
    assert solution.error_estimate == 1.0
    assert solution.richer is None
    assert np.isfinite(solution([[1.0, 999.0]])).all()


def test_what_blows_up_cannot_be_marched_through() -> None:
    v = pb.field("v", t)
    problem = Problem(sp.Eq(v.diff(t), 1 + v**2), pb.TimeInterval(t, 0, 3), [pb.Initial(v, 0)])
    solution = marched(problem, tol=1e-3, budget=8.0)
    assert solution.status == "stalled"
    assert "holds until then" in solution.diagnostics.message
    assert abs(solution([[0.5]])[0] - np.tan(0.5)) < 1e-2


def test_a_first_window_that_is_not_solved_is_returned_as_it_is() -> None:
    solution = marched(evolving.burgers(), tol=1e-9, budget=0.5)
    assert solution.status == "stalled"
    assert "spent at t = 0" in solution.diagnostics.message
    assert solution.error_estimate == 1.0


def test_where_not_even_a_window_can_be_tried_an_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise ProblemError("no")

    monkeypatch.setattr("pibls.tuning.windows.solve_nonlinear", refused)
    with pytest.raises(SolveError, match="Not even a first window"):
        marched(evolving.burgers(), budget=0.5)


def test_conditions_on_parts_of_the_whole_move_to_the_window() -> None:
    conditions = [
        pb.Dirichlet(u, t, on=STRIP.left),
        pb.Neumann(u, 1, on=LINE.right),
        pb.Initial(u, x),
    ]
    problem = Problem(sp.Eq(u.diff(t), u.diff(x, 2)), STRIP, conditions)
    window = window_problem(problem, 0.25, 0.5, None)
    left = window.statements[1].place.part  # type: ignore[union-attr]
    assert left.sample(5).points[:, 1].min() >= 0.25
    assert left.sample(5).points[:, 1].max() <= 0.5
    assert window.domain.bounds[-1].tolist() == [0.25, 0.5]


EQUATION = sp.Eq(u.diff(t), u.diff(x, 2))


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (stokes, "the domain has no time"),
        (lambda: Problem(EQUATION, STRIP, [pb.Dirichlet(u, 0)]), "no initial values"),
        (lambda: Problem(EQUATION, STRIP, [pb.Initial(u, 0), pb.Dirichlet(u, 0, on=STRIP.final)]), "at the last time"),
        (
            lambda: Problem(EQUATION, STRIP, [pb.Initial(u, 0), pb.Observation(u, [[0.5, 0.5]], [1.0])]),
            "at points of space and time",
        ),
        (
            lambda: Problem(EQUATION, STRIP, [pb.Initial(u, 0), pb.Condition(u, on=np.array([[0.5, 0.5]]))]),
            "at points of space and time",
        ),
        (
            lambda: Problem(sp.Eq(u.diff(t), pb.unknown("k") * u.diff(x, 2)), STRIP, [pb.Initial(u, 0)]),
            "unknown numbers",
        ),
        (
            lambda: Problem(
                EQUATION, STRIP, [pb.Initial(u, 0), pb.Dirichlet(u, 0, on=STRIP.left.where(lambda X: X[:, 1] > 0.5))]
            ),
            "a function of space and time",
        ),
    ],
)
def test_what_cannot_be_cut_into_windows_is_refused(problem: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        marched(problem())


def test_windows_are_stored_and_read(fast: Solution, tmp_path: Path) -> None:
    again = pb.load(fast.save(tmp_path / "march.pibls"))
    X = fast.problem.domain.sample(60)
    np.testing.assert_array_equal(again(X), fast(X))
    np.testing.assert_array_equal(again.error_field(X), fast.error_field(X))


def test_a_window_that_is_no_broad_network_is_refused(fast: Solution) -> None:
    arrays: dict[str, Any] = {}
    record = network_record(fast.network, arrays)
    nested = {f"window_0_{name}": array for name, array in arrays.items()}
    with pytest.raises(ValueError, match="not a broad one"):
        network_from({"windows": [record]}, {**nested, "breaks": np.array([0.0, 1.0])})


def test_it_cannot_become_a_torch_module_or_grow(fast: Solution) -> None:
    pytest.importorskip("torch")
    with pytest.raises(InputError, match="each window"):
        fast.to_torch()
    with pytest.raises(InputError, match="cannot grow"):
        fast.grow(nodes=10)


def test_parts_that_do_not_belong_together_are_refused() -> None:
    network = draw_network(np.random.default_rng(0), [[0, 1]], [("sin", 5, 1.0)])
    with pytest.raises(FeatureError, match="must fit together"):
        WindowedNetwork(np.array([0.0, 1.0, 2.0]), (network,), (np.ones((1, 5)),))
    with pytest.raises(FeatureError, match="must fit together"):
        WindowedNetwork(np.array([0.0, 1.0]), (network,), (np.ones((1, 4)),))


def test_beyond_its_times_the_values_at_the_ends_are_returned(fast: Solution) -> None:
    network = fast.network
    inside, outside = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[1.0, -3.0], [1.0, 7.0]])
    zero = (0, 0)
    np.testing.assert_array_equal(network.evaluate(inside, [zero])[zero], network.evaluate(outside, [zero])[zero])
    assert network.center[-1] == 0.5
    assert network.dimension == 2
