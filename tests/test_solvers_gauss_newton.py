"""Gauss–Newton steps: exact answers, steps that must be shortened or damped, constraints, and what is no solution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pibls.errors import PiblsError, SolveError
from pibls.solvers import QR
from pibls.solvers.gauss_newton import gauss_newton
from pibls.solvers.step_rules import FullStep, LineSearch, TrustRegion
from pibls.system import System


class Model:
    """A residual and its Jacobian, given as functions; optionally rows that must vanish exactly."""

    def __init__(self, residual, jacobian, hard=None, hard_jacobian=None):
        self.r, self.j, self.h, self.hj = residual, jacobian, hard, hard_jacobian
        self.factorised = 0

    def residual(self, w):
        return np.atleast_1d(self.r(w)), np.empty(0) if self.h is None else np.atleast_1d(self.h(w))

    def system(self, w):
        self.factorised += 1
        soft, hard = self.residual(w)
        if self.h is None:
            return System(np.atleast_2d(self.j(w)), -soft, ())
        return System(np.atleast_2d(self.j(w)), -soft, (), np.atleast_2d(self.hj(w)), -hard, ())


ARCTAN = Model(lambda w: np.arctan(w), lambda w: np.diag(1 / (1 + w**2)))


@given(st.integers(2, 6), st.integers(0, 1000))
def test_linear_problems_take_one_factorisation(size, seed):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((size + 3, size)), rng.standard_normal(size + 3)
    model = Model(lambda w: A @ w - b, lambda w: A)
    found = gauss_newton(model, rng.standard_normal(size))
    assert found.status == "converged"
    assert model.factorised == 1
    np.testing.assert_allclose(found.point.weights, np.linalg.lstsq(A, b)[0], atol=1e-10)


def test_convergence_is_quadratic_with_full_steps():
    # x² = 2 and y = x³, from not too far.
    model = Model(
        lambda w: np.array([w[0] ** 2 - 2, w[1] - w[0] ** 3]),
        lambda w: np.array([[2 * w[0], 0], [-3 * w[0] ** 2, 1]]),
    )
    found = gauss_newton(model, np.array([1.0, 1.0]), rules=(FullStep(),))
    np.testing.assert_allclose(found.point.weights, [np.sqrt(2), 2 * np.sqrt(2)], rtol=1e-14)
    assert found.status == "converged"
    residuals = [step.residual for step in found.history]
    assert residuals == sorted(residuals, reverse=True)
    # Newton's own iteration needs five factorisations; steps that reuse one save some of them.
    assert sum(step.factorised for step in found.history) <= 4


def test_a_step_that_overshoots_is_shortened():
    start = np.array([3.0])
    with np.errstate(over="ignore"):
        wild = gauss_newton(ARCTAN, start, rules=(FullStep(),), most=5)
    assert wild.status != "converged"
    found = gauss_newton(ARCTAN, start, rules=(LineSearch(),))
    assert found.status == "converged"
    assert abs(found.point.weights[0]) < 1e-12
    assert found.history[0].length < 1
    assert found.history[-1].length == 1


def test_damping_alone_converges_and_is_recorded():
    found = gauss_newton(ARCTAN, np.array([3.0]), rules=(TrustRegion(dampings=(1e-3, 1.0, 10.0)),))
    assert found.status == "converged"
    assert abs(found.point.weights[0]) < 1e-6
    assert found.history[0].damping > 0


def test_rules_are_tried_in_turn():
    tried = []

    class Never:
        def advance(self, model, here, tangent):
            tried.append(here.norm)
            return

    found = gauss_newton(ARCTAN, np.array([0.5]), rules=(Never(), FullStep()))
    assert tried
    assert found.status == "converged"
    alone = gauss_newton(ARCTAN, np.array([0.5]), rules=(Never(),))
    assert alone.status == "stagnated"
    assert alone.point.weights[0] == 0.5


def test_trial_points_where_the_residual_has_no_value_are_skipped():
    def residual(w):
        if w[0] <= 0:
            raise PiblsError("log of a negative number")
        return np.log(w)

    found = gauss_newton(Model(residual, lambda w: np.diag(1 / w)), np.array([20.0]))
    assert found.status == "converged"
    assert found.point.weights[0] == pytest.approx(1, abs=1e-12)
    with pytest.raises(PiblsError, match="log of a negative"):
        gauss_newton(Model(residual, lambda w: np.diag(1 / w)), np.array([-1.0]))
    with pytest.raises(SolveError, match="overflows at the start"):
        gauss_newton(Model(lambda w: w * np.inf, lambda w: np.eye(1)), np.ones(1))


def test_the_best_compromise_is_found_where_there_is_no_solution():
    # (w² + 1, w): both cannot vanish; the sum of squares is smallest at zero.
    model = Model(lambda w: np.array([w[0] ** 2 + 1, w[0]]), lambda w: np.array([[2 * w[0]], [1.0]]))
    found = gauss_newton(model, np.array([0.7]))
    assert found.point.norm == pytest.approx(1, abs=1e-3)
    assert abs(found.point.weights[0]) < 0.05


def test_crawling_is_noticed():
    # The residual 1 + exp(−w) has no root, and falls for ever.
    model = Model(lambda w: np.array([1 + np.exp(-w[0])]), lambda w: np.array([[-np.exp(-w[0])]]))
    found = gauss_newton(model, np.array([0.0]), rules=(LineSearch(),), most=50)
    assert found.status in {"stagnated", "converged"}
    assert model.factorised < 50


def test_iterations_that_run_out_are_told():
    model = Model(lambda w: w**21, lambda w: np.diag(21 * w**20))
    assert gauss_newton(model, np.array([2.0]), most=2).status == "unfinished"


def test_rank_deficient_jacobians_give_the_shortest_weights():
    # Only the sum of the three weights is seen.
    model = Model(lambda w: np.array([np.exp(w.sum()) - 2, w.sum() - np.log(2)]), None)
    model.j = lambda w: np.array([[np.exp(w.sum())] * 3, [1.0] * 3])
    found = gauss_newton(model, np.array([5.0, -4.0, 0.0]))
    np.testing.assert_allclose(found.point.weights, np.log(2) / 3, rtol=1e-10)


def test_constraints_hold_exactly():
    # On the unit circle, in the direction of (3, 4); a third row that cannot be met pulls outwards a little.
    model = Model(
        lambda w: np.array([4 * w[0] - 3 * w[1], 1e-3 * (w[0] - 1)]),
        lambda w: np.array([[4.0, -3.0], [1e-3, 0.0]]),
        lambda w: w @ w - 1,
        lambda w: 2 * w,
    )
    found = gauss_newton(model, np.array([3.0, 0.1]))
    assert found.status == "converged"
    assert abs(found.point.weights @ found.point.weights - 1) < 1e-12
    np.testing.assert_allclose(found.point.weights, [0.6, 0.8], atol=1e-6)


def test_a_first_system_and_another_solver_are_used():
    A = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    model = Model(lambda w: A @ (w + 0.01 * w**2) - A @ np.ones(2), lambda w: A * (1 + 0.02 * w))
    first = System(A, A @ np.ones(2), ())
    found = gauss_newton(model, np.zeros(2), first=first, solver=QR())
    expected = (np.sqrt(1.04) - 1) / 0.02
    np.testing.assert_allclose(found.point.weights, expected, rtol=1e-12)
    assert found.tangent.factor.name == "qr"
