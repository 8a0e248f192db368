"""The integrator against exact solutions: accurate to its tolerance, however stiff the equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from internals import STAGES, IntegrationError, Integrator, legendre_weights, stage_times
from pibls.checks import FloatArray


@dataclass(frozen=True, eq=False)
class System:
    """A small right side, written out."""

    right: Callable[[FloatArray, FloatArray], FloatArray]
    derivative: Callable[[float, FloatArray], FloatArray]
    is_linear: bool = False
    costs: tuple[float, float] = (1.0, 1.0)
    step_costs: tuple[float, float] = (1.0, 1.0)

    def rates(self, times: FloatArray, states: FloatArray) -> FloatArray:
        return self.right(times, states)

    def jacobian(self, time: float, state: FloatArray) -> FloatArray:
        return self.derivative(time, state)

    def sizes(self, states: FloatArray) -> FloatArray:
        return np.linalg.norm(states, axis=1, keepdims=True)


def linear(matrix: FloatArray) -> System:
    return System(lambda _, y: y @ matrix.T, lambda *_: matrix, True)


ROTATION = np.array([[0.0, 1.0], [-1.0, 0.0]])
SQUARE = System(lambda _, y: y**2, lambda _, y: np.diag(2 * y))


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_an_oscillation_is_followed_to_the_tolerance_at_every_time(tol: float) -> None:
    path = Integrator(linear(ROTATION), tol).run(0.0, 50.0, np.array([1.0, 0.0]))
    times = np.linspace(0.0, 50.0, 777)
    error = np.abs(path(times) - np.stack([np.cos(times), -np.sin(times)], axis=1)).max()
    assert 1e-4 * tol < error < 3 * tol
    assert np.abs(path(times, 1)[:, 0] + np.sin(times)).max() < 300 * tol


def test_a_stiff_equation_takes_few_steps() -> None:
    rate = 1e7
    system = System(
        lambda t, y: -rate * (y - np.cos(t)[:, None]) - np.sin(t)[:, None], lambda *_: np.array([[-rate]]), True
    )
    path = Integrator(system, 1e-8).run(0.0, 10.0, np.array([1.0]))
    times = np.linspace(0.0, 10.0, 300)
    assert np.abs(path(times)[:, 0] - np.cos(times)).max() < 1e-8
    assert len(path.coefficients) < 60


def test_a_state_that_starts_at_zero_is_measured_by_what_it_becomes() -> None:
    system = System(lambda t, y: np.exp(-t)[:, None] + 0 * y, lambda *_: np.zeros((1, 1)), True)
    path = Integrator(system, 1e-8).run(0.0, 3.0, np.zeros(1))
    times = np.linspace(0.0, 3.0, 50)
    assert np.abs(path(times)[:, 0] - (1 - np.exp(-times))).max() < 1e-8


def test_a_nonlinear_equation_is_followed_close_to_its_pole() -> None:
    path = Integrator(SQUARE, 1e-9).run(0.0, 0.99, np.ones(1))
    times = np.linspace(0.0, 0.99, 200)
    assert np.abs(path(times)[:, 0] * (1 - times) - 1).max() < 1e-7


def test_a_pole_ends_the_path_where_it_is() -> None:
    with pytest.raises(IntegrationError, match=r"blows up.*near t = 1") as caught:
        Integrator(SQUARE, 1e-6).run(0.0, 2.0, np.ones(1))
    assert caught.value.blown_up
    assert caught.value.partial is not None
    assert abs(caught.value.partial.breaks[-1] - 1.0) < 1e-6


def test_a_runaway_ends_before_it_overflows() -> None:
    with pytest.raises(IntegrationError) as caught:
        Integrator(linear(np.array([[100.0]])), 1e-6).run(0.0, 10.0, np.ones(1))
    assert caught.value.blown_up
    assert caught.value.partial is not None
    assert 0.2 < caught.value.partial.breaks[-1] < 0.7


def test_the_work_can_be_spent() -> None:
    with pytest.raises(IntegrationError, match="work was spent") as caught:
        Integrator(linear(ROTATION), 1e-6, -1.0).run(0.0, 1.0, np.ones(2))
    assert not caught.value.blown_up
    assert caught.value.partial is None


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=4), st.floats(0.1, 3.0))
@settings(max_examples=30, deadline=None)
def test_linear_systems_against_the_exponential(entries: list[float], stop: float) -> None:
    matrix = np.array(entries).reshape(2, 2) - 6.0 * np.eye(2)
    start = np.array([1.0, -2.0])
    path = Integrator(linear(matrix), 1e-8).run(0.0, stop, start)
    assert np.abs(path(np.array([stop]))[0] - expm(stop * matrix) @ start).max() < 1e-7


def test_stages_interpolate_polynomials_of_their_degree_exactly() -> None:
    nodes = np.append(2.0, stage_times(2.0, 0.5))
    coefficients = legendre_weights() @ nodes**STAGES
    middle = np.polynomial.legendre.legval(0.3, coefficients)
    assert middle == pytest.approx((2.0 + 0.5 * 1.3 / 2) ** STAGES, rel=1e-12)
    assert nodes[-1] == 2.5


def test_a_stiff_equation_that_starts_at_rest_from_zero_is_measured_by_what_comes() -> None:
    class Forced:
        is_linear = True
        costs = step_costs = (1.0, 1.0)

        def rates(self, times, states):
            return -1e6 * (states - times[:, None] ** 3)

        def jacobian(self, time, state):
            return np.array([[-1e6]])

        def sizes(self, states):
            return np.abs(states)

    found = Integrator(Forced(), 1e-8).run(0.0, 2.0, np.zeros(1))
    assert found(np.array([2.0]))[0, 0] == pytest.approx(8.0, rel=1e-4)
    assert len(found.coefficients) < 100
