"""Each theorem holds for true minimisers, is attained where it is sharp, and fails for wrong ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pibls.errors import InputError, SolveError
from pibls.solvers import (
    LeastSquares,
    TheoremReport,
    objective,
    physics_consistency,
    residual_bound,
    sensitivity_bound,
    stability_bound,
)


def system(seed, rows=15, columns=6):
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((rows, columns)) * 10.0 ** rng.uniform(-3, 3)
    return H, rng.standard_normal(rows), np.linalg.svd(H, compute_uv=False)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), exponent=st.floats(-6, 4), shape=st.sampled_from([(15, 6), (6, 15), (6, 6)]))
def test_stability_and_sensitivity_hold_for_every_ridge_solution(seed, exponent, shape):
    H, z, sigma = system(seed, *shape)
    ridge = 10.0**exponent
    factor = LeastSquares().factorise(H, ridge=ridge)
    weights = factor.solve(z)
    change = np.random.default_rng(seed + 1).standard_normal(len(z)) * 1e-3
    size = np.linalg.norm(H, 2)
    norm, moved = np.linalg.norm(weights), np.linalg.norm(factor.solve(z + change) - weights)
    stable = stability_bound(size, ridge, np.linalg.norm(z), measured=norm, singular_values=sigma)
    sensitive = sensitivity_bound(size, ridge, np.linalg.norm(change), measured=moved, singular_values=sigma)
    general = stability_bound(size, ridge, np.linalg.norm(z), measured=norm)
    assert stable.holds
    assert general.holds
    assert sensitive.measured <= sensitive.sharp_bound * (1 + 1e-6)
    assert stable.sharp_bound <= general.sharp_bound * (1 + 1e-12) <= np.linalg.norm(z) / (2 * math.sqrt(ridge)) * 1.001
    assert stable.sharp_bound <= stable.paper_bound


@pytest.mark.parametrize("ridge", [1e-6, 0.04, 25.0])
def test_the_sharp_bound_is_attained_where_sigma_is_the_root_of_the_ridge(ridge):
    root = math.sqrt(ridge)
    H = np.diag([root, 3 * root, 0.1 * root])
    z = np.array([2.0, 0.0, 0.0])
    weights = LeastSquares().factorise(H, ridge=ridge).solve(z)
    report = stability_bound(3 * root, ridge, 2.0, measured=np.linalg.norm(weights), singular_values=np.diag(H))
    assert report.measured == pytest.approx(report.sharp_bound, rel=1e-12)
    assert report.sharp_bound == pytest.approx(2.0 / (2 * root), rel=1e-12)
    assert report.paper_bound == pytest.approx(6.0 / root)
    assert report.holds
    # The same weights do not fit a ridge four times as large: the bounds are not vacuous.
    assert not stability_bound(3 * root, 4 * ridge, 2.0, measured=report.measured, singular_values=np.diag(H)).holds


def test_the_printed_bound_is_attained_to_first_order_by_small_matrices_and_fails_if_the_ridge_is_misplaced():
    H, z, ridge = np.array([[1e-4]]), np.array([1.0]), 4.0
    weights = LeastSquares().factorise(H, ridge=ridge).solve(z)
    report = stability_bound(1e-4, ridge, 1.0, measured=abs(weights[0]))
    assert report.holds
    assert report.measured == pytest.approx(report.paper_bound, rel=1e-6)
    # λ² for λ would promise four times less than the weights are.
    assert not stability_bound(1e-4, ridge**2, 1.0, measured=abs(weights[0])).holds


def test_stability_without_singular_values_uses_the_norm_below_the_root_of_the_ridge():
    report = stability_bound(0.1, 1.0, 1.0, measured=0.0)
    assert report.sharp_bound == pytest.approx(0.1 / 1.01)
    assert report.paper_bound == pytest.approx(0.1)


def test_objective_is_smallest_at_the_minimiser():
    H, z, _ = system(0)
    for ridge in (0.0, 0.5):
        weights = LeastSquares().factorise(H, ridge=ridge).solve(z)
        best = objective(H, weights, z, ridge)
        assert best == pytest.approx(np.sum((H @ weights - z) ** 2) + ridge * np.sum(weights**2))
        rng = np.random.default_rng(1)
        assert all(objective(H, weights + 1e-3 * rng.standard_normal(6), z, ridge) > best for _ in range(20))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), exponent=st.floats(-8, 4))
def test_residual_bound_holds_for_minimisers(seed, exponent):
    H, _, _ = system(seed)
    exact = np.random.default_rng(seed).standard_normal(6)
    ridge = 10.0**exponent
    weights = LeastSquares().factorise(H, ridge=ridge).solve(H @ exact)
    report = residual_bound(H, weights, H @ exact, ridge, exact)
    assert report.holds
    assert report.paper_bound <= math.sqrt(ridge) * np.linalg.norm(exact) * (1 + 1e-6) + report.rounding


def test_residual_bound_is_attained_and_fails_for_other_weights():
    root = 0.3
    H, exact = np.diag([root, 1.0]), np.array([2.0, 0.0])
    weights = LeastSquares().factorise(H, ridge=root**2).solve(H @ exact)
    report = residual_bound(H, weights, H @ exact, root**2, exact)
    assert report.measured == pytest.approx(report.sharp_bound, rel=1e-12)
    assert report.holds
    assert not residual_bound(H, -weights, H @ exact, root**2, exact).holds


def test_residual_bound_without_ridge_says_zero():
    H, _, _ = system(4)
    exact = np.ones(6)
    weights = LeastSquares().factorise(H).solve(H @ exact)
    report = residual_bound(H, weights, H @ exact, 0.0, exact)
    assert report.sharp_bound == 0.0
    assert report.holds
    assert not residual_bound(H, weights * (1 + 1e-9), H @ exact, 0.0, exact).holds


def test_residual_bound_refuses_weights_that_are_not_exact():
    H, z, _ = system(0)
    with pytest.raises(InputError, match="must solve H w = z"):
        residual_bound(H, np.ones(6), z, 0.1, np.ones(6))


def test_consistency_zero_objective_means_zero_residual_everywhere():
    report = physics_consistency({"equation": np.zeros(9), "boundary": np.zeros((2, 2))})
    assert report == TheoremReport("physics consistency", 0.0, 0.0, 0.0)
    assert report.holds


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), penalty=st.floats(1e-3, 1e3), ridge=st.sampled_from([0.0, 0.1]))
def test_consistency_bounds_every_residual_by_the_objective(seed, penalty, ridge):
    rng = np.random.default_rng(seed)
    parts = {"equation": rng.standard_normal(7), "boundary": rng.standard_normal(3)}
    report = physics_consistency(parts, {"boundary": penalty}, ridge=ridge, weights_norm=2.0)
    assert report.holds
    assert report.paper_bound == math.inf


def test_consistency_bound_is_attained_by_one_bad_point():
    report = physics_consistency({"equation": [0.0, 0.0, 5.0, 0.0]}, {"equation": 3.0})
    assert report.measured == pytest.approx(report.sharp_bound)


def test_the_printed_consistency_fails_for_a_part_without_penalty():
    report = physics_consistency({"equation": [0.0], "boundary": [1.0]}, {"boundary": 0.0})
    assert report.paper_bound == 0.0
    assert report.sharp_bound == math.inf
    assert not report.holds


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: stability_bound(1.0, 0.0, 1.0, measured=1.0), "ridge"),
        (lambda: stability_bound(-1.0, 1.0, 1.0, measured=1.0), "matrix_norm"),
        (lambda: stability_bound(1.0, 1.0, 1.0, measured=math.nan), "measured"),
        (lambda: sensitivity_bound(1.0, 1.0, "x", measured=1.0), "change_norm"),
        (lambda: stability_bound(1.0, 1.0, 1.0, measured=1.0, singular_values=[]), "singular_values"),
        (lambda: objective([[1.0]], [1.0, 2.0], [1.0]), "weights"),
        (lambda: objective([[1.0]], [1.0], [1.0], ridge=-1), "ridge"),
        (lambda: physics_consistency({}), "at least one part"),
        (lambda: physics_consistency({"a": [1.0]}, {"b": 1.0}), r"without a part: \['b'\]"),
        (lambda: physics_consistency({"a": [1.0]}, {"a": -1.0}), "'a' parameter"),
        (lambda: physics_consistency({"a": ["x"]}), "'a' parameter"),
    ],
)
def test_wrong_arguments_are_refused(call, text):
    with pytest.raises(InputError, match=text):
        call()


def test_non_finite_residuals_are_refused():
    with pytest.raises(SolveError, match="row 1, column 0"):
        physics_consistency({"a": [1.0, math.inf]})


def test_torch_tensors_are_accepted():
    torch = pytest.importorskip("torch")
    assert objective(torch.eye(2), torch.ones(2), torch.zeros(2), ridge=1.0) == 4.0
    assert physics_consistency({"a": torch.ones(2)}).measured == 1.0
