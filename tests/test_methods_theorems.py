"""Each theorem holds for true minimisers, is attained where it is sharp, and fails for wrong ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pibls.methods.theorems import TheoremReport, gain_bound, physics_consistency, spectral_norm
from pibls.solvers import LeastSquares


def system(seed, rows=15, columns=6):
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((rows, columns)) * 10.0 ** rng.uniform(-3, 3)
    return H, rng.standard_normal(rows)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), exponent=st.floats(-6, 4), shape=st.sampled_from([(15, 6), (6, 15), (6, 6)]))
def test_stability_and_sensitivity_hold_for_every_ridge_solution(seed, exponent, shape):
    H, z = system(seed, *shape)
    ridge = 10.0**exponent
    factor = LeastSquares().factorise(H, ridge=ridge)
    weights = factor.solve(z)
    change = np.random.default_rng(seed + 1).standard_normal(len(z)) * 1e-3
    size = np.linalg.norm(H, 2)
    norm, moved = np.linalg.norm(weights), np.linalg.norm(factor.solve(z + change) - weights)
    stable = gain_bound("stability", size, ridge, np.linalg.norm(z), norm)
    sensitive = gain_bound("sensitivity", size, ridge, np.linalg.norm(change), moved)
    assert stable.holds
    assert sensitive.measured <= sensitive.sharp_bound * (1 + 1e-6)
    assert stable.sharp_bound <= np.linalg.norm(z) / (2 * math.sqrt(ridge)) * (1 + 1e-12)
    assert stable.sharp_bound <= stable.paper_bound


@pytest.mark.parametrize("ridge", [1e-6, 0.04, 25.0])
def test_the_sharp_bound_is_attained_where_sigma_is_the_root_of_the_ridge(ridge):
    root = math.sqrt(ridge)
    H = np.diag([root, 3 * root, 0.1 * root])
    z = np.array([2.0, 0.0, 0.0])
    weights = LeastSquares().factorise(H, ridge=ridge).solve(z)
    report = gain_bound("stability", 3 * root, ridge, 2.0, np.linalg.norm(weights))
    assert report.measured == pytest.approx(report.sharp_bound, rel=1e-12)
    assert report.sharp_bound == pytest.approx(2.0 / (2 * root), rel=1e-12)
    assert report.paper_bound == pytest.approx(6.0 / root)
    assert report.holds
    # The same weights do not fit a ridge four times as large: the bounds are not vacuous.
    assert not gain_bound("stability", 3 * root, 4 * ridge, 2.0, report.measured).holds


def test_the_printed_bound_is_attained_to_first_order_by_small_matrices_and_fails_if_the_ridge_is_misplaced():
    H, z, ridge = np.array([[1e-4]]), np.array([1.0]), 4.0
    weights = LeastSquares().factorise(H, ridge=ridge).solve(z)
    report = gain_bound("stability", 1e-4, ridge, 1.0, abs(weights[0]))
    assert report.holds
    assert report.measured == pytest.approx(report.paper_bound, rel=1e-6)
    # λ² for λ would promise four times less than the weights are.
    assert not gain_bound("stability", 1e-4, ridge**2, 1.0, abs(weights[0])).holds


def test_the_norm_counts_where_it_is_below_the_root_of_the_ridge():
    report = gain_bound("stability", 0.1, 1.0, 1.0, 0.0)
    assert report.sharp_bound == pytest.approx(0.1 / 1.01)
    assert report.paper_bound == pytest.approx(0.1)


def test_consistency_zero_objective_means_zero_residual_everywhere():
    report = physics_consistency([np.zeros(9), np.zeros(4)], 0.0, 1.0)
    assert report == TheoremReport("physics consistency", 0.0, 0.0, 0.0)
    assert report.holds


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), ridge=st.sampled_from([0.0, 0.1]))
def test_consistency_bounds_every_residual_by_the_objective(seed, ridge):
    rng = np.random.default_rng(seed)
    report = physics_consistency([rng.standard_normal(7), rng.standard_normal(3)], ridge, 2.0)
    assert report.holds
    assert report.paper_bound == math.inf


def test_consistency_bound_is_attained_by_one_bad_point():
    report = physics_consistency([np.array([0.0, 0.0, 5.0, 0.0])], 0.0, 1.0)
    assert report.measured == pytest.approx(report.sharp_bound)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), shape=st.sampled_from([(15, 6), (6, 15), (1, 4), (40, 40)]))
def test_the_norm_is_the_spectral_one(seed, shape):
    H, _ = system(seed, *shape)
    size = np.linalg.norm(H, 2)
    # From below, so that no bound is larger than the printed one.
    assert 0.99 * size <= spectral_norm(H) <= size * (1 + 1e-9)


def test_a_matrix_whose_columns_cancel_still_has_a_norm():
    assert spectral_norm(np.array([[1.0, 2.0], [-1.0, -2.0]])) == pytest.approx(math.sqrt(10.0))
    assert spectral_norm(np.zeros((3, 2))) == 0.0
