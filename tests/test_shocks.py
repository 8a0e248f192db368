"""Shocks and fans of scalar conservation laws, beside formulas and the minimum principle of Lax and Oleinik."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import fronts_of

x, t = pb.coordinates("x t")
u = pb.field("u", x, t)
BURGERS = u.diff(t) + u * u.diff(x)


def solved(equation, initial, low, high, until, left=None, right=None, tol=1e-6):
    domain = pb.Interval((x, low, high)) * pb.TimeInterval(t, 0, until)
    ends = [(left, domain.left), (right, domain.right)]
    given = [pb.Dirichlet(u, value, on=end) for value, end in ends if value is not None]
    return pb.solve(pb.Problem(equation, domain, [pb.Initial(u, initial), *given]), tol=tol, progress=False)


def error(solution, exact):
    X = solution.problem.domain.sample(2000, seed=5)
    wanted = exact(*X.T)
    return np.linalg.norm(solution(X) - wanted) / np.linalg.norm(wanted)


def test_a_jump_moves_at_the_mean_of_its_states():
    solution = solved(BURGERS, sp.Heaviside(-x), -1, 1, 1, left=1)
    assert solution.status == "converged"
    assert "Shocks start at t = 0, x = 0" in solution.diagnostics.message
    beside = solution([[0.4 - 1e-9, 0.8], [0.4 + 1e-9, 0.8]])
    np.testing.assert_allclose(beside, [1, 0], atol=1e-10)


def test_a_queue_grows_backwards():
    flow = u.diff(t) + (1 - 2 * u) * u.diff(x)
    solution = solved(flow, sp.Piecewise((0.3, x < 1), (0.9, True)), 0, 2, 1, left=0.3, right=0.9)
    assert error(solution, lambda X, T: np.where(X < 1 - 0.2 * T, 0.3, 0.9)) < 1e-9


def test_a_jump_upwards_spreads_as_a_fan():
    solution = solved(BURGERS, sp.Heaviside(x), -1, 1, 1, left=0, tol=1e-4)
    assert solution.status == "converged"
    assert error(solution, lambda X, T: np.clip(X / T, 0, 1)) < 1e-4


def test_a_smooth_profile_folds_and_moves():
    profile = sp.Rational(3, 2) - sp.sin(sp.pi * x)
    solution = solved(BURGERS, profile, -1, 1, sp.Rational(3, 5), left=1.5, tol=1e-4)
    assert solution.status == "converged"
    assert "Shocks start at t = 0.31831" in solution.diagnostics.message
    X = solution.problem.domain.sample(300, seed=2)
    X = X[(X[:, 1] > 0.4) & (X[:, 0] > 0.3)]
    wanted = [minimising(float(a), float(b)) for a, b in X]
    np.testing.assert_allclose(solution(X), wanted, atol=1e-3)


def minimising(place, time):
    """Return the state by the foot at which ∫ u₀ + (x − y)² / 2t is least."""
    y = np.linspace(place - 3 * time, place, 200001)
    y = y[y > -1]
    heights = 1.5 * y + np.cos(np.pi * y) / np.pi + (place - y) ** 2 / (2 * time)
    k = int(heights.argmin())
    step, (a, b, c) = y[1] - y[0], heights[k - 1 : k + 2]
    return (place - y[k] - step * (a - c) / (2 * (a - 2 * b + c))) / time


RING = {
    "fold at the end of the period": (0.3 - sp.sin(2 * sp.pi * x), 0.4, "t = 0.159155, x = 0.0477465"),
    "shock that leaves and comes in again": (2 + sp.cos(2 * sp.pi * x) / 2, 1.0, "t = 0.31831, x = 0.88662"),
    "step": (sp.Piecewise((1, x < sp.Rational(3, 5)), (0, True)), 0.3, "t = 0, x = 0.6"),
}


@pytest.mark.parametrize("case", RING)
def test_shocks_are_followed_round_a_period(case):
    initial, until, told = RING[case]
    ring = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, until)
    solution = pb.solve(
        pb.Problem(BURGERS, ring, [pb.Periodic(u, x), pb.Initial(u, initial)]), tol=1e-3, progress=False
    )
    assert solution.status == "converged"
    assert solution.diagnostics.message.count("x = ") == 1
    assert told in solution.diagnostics.message
    X, start = solution.problem.domain.sample(40, seed=2), sp.lambdify(x, initial, "numpy")
    wanted = np.array([along_the_ring(start, float(a), float(b)) for a, b in X])
    found = solution(X)
    assert np.median(np.abs(found - wanted)) < 1e-4
    assert np.linalg.norm(found - wanted) < 0.01 * np.linalg.norm(wanted)
    # What is conserved stays as much as it was.
    assert abs(solution.integral(u, at=until).value - solution.integral(u, at=0).value) < 2e-3


def test_a_profile_with_kinks_folds_round_the_end_of_its_period():
    initial = sp.Piecewise((2 * x, 2 * x < 1), (2 - 2 * x, True))
    ring = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 0.75)
    fronts = fronts_of(pb.Problem(BURGERS, ring, [pb.Periodic(u, x), pb.Initial(u, initial)]))
    shock = min(fronts.shocks, key=lambda own: abs(own.places[0] - 1.0))
    np.testing.assert_allclose([shock.times[0], shock.places[0]], [0.5, 1.0], atol=1e-9)
    # By symmetry it moves with the mean, 1/2; the states beside it add up to 1.
    np.testing.assert_allclose(shock.at(np.array([0.5, 0.75])), [1.0, 1.125], atol=1e-9)
    beside = fronts.values(np.array([[0.12, 0.75], [0.13, 0.75]]))
    np.testing.assert_allclose(beside.sum(), 1.0, atol=0.02)
    assert beside[0] - beside[1] > 0.5


def along_the_ring(start, place, time):
    """Return the state by the foot at which ∫ u₀ + (x − y)² / 2t is least, on a line that repeats."""
    y = np.linspace(place - 3 * time, place + 1.5 * time, 20001)
    states = start(np.mod(y, 1.0)) + 0.0 * y
    heights = np.concatenate([[0.0], np.cumsum((states[1:] + states[:-1]) / 2 * np.diff(y))])
    return (place - y[(heights + (place - y) ** 2 / (2 * time)).argmin()]) / time


@pytest.mark.parametrize("initial", [sp.sin(sp.pi * x), sp.Heaviside(x) - sp.Heaviside(x - sp.Rational(1, 10))])
def test_shocks_that_are_not_followed_are_not_called_right(initial):
    # The first one folds at the end of the line, the second one's shock meets a fan.
    domain = pb.Interval((x, -1, 1)) * pb.TimeInterval(t, 0, 1)
    problem = pb.Problem(BURGERS, domain, [pb.Initial(u, initial), pb.Dirichlet(u, 0)])
    assert pb.solve(problem, budget=0.2, progress=False).status != "converged"


def test_a_shock_is_stored(tmp_path):
    solution = solved(BURGERS, -sp.sin(sp.pi * x), -1, 1, 1, left=0, right=0, tol=1e-3)
    solution.save(tmp_path / "shock.pibls")
    X = solution.problem.domain.sample(500, seed=3)
    assert np.array_equal(pb.load(tmp_path / "shock.pibls")(X), solution(X))
