"""Designs of the unit cube, sharing out points, and quadrature rules."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import qmc

from internals import apportion, fill, gauss, kronecker, periodic, side, tensor, thin
from pibls.errors import GeometryError, InputError, ResourceError
from pibls.geometry import METHODS, unit_cube


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 6), st.sampled_from(METHODS), st.integers(0, 2**40))
def test_designs_have_the_right_number_in_the_cube_and_repeat(n, d, method, seed):
    U = unit_cube(n, d, method, seed)
    assert U.shape == (n, d)
    assert ((U >= 0) & (U <= 1)).all()
    np.testing.assert_array_equal(U, unit_cube(n, d, method, np.random.default_rng(seed)))


def test_a_generator_moves_on_and_seeds_differ():
    rng = np.random.default_rng(0)
    assert not np.array_equal(unit_cube(8, 2, "uniform", rng), unit_cube(8, 2, "uniform", rng))
    for method in METHODS[:-1]:
        assert not np.array_equal(unit_cube(8, 2, method, 0), unit_cube(8, 2, method, 1))


@pytest.mark.parametrize(
    ("method", "factor"), [("sobol", 0.1), ("halton", 0.1), ("kronecker", 0.1), ("lhs", 0.5), ("grid", 0.8)]
)
def test_designs_are_more_even_than_random_points(method, factor):
    random = np.median([qmc.discrepancy(unit_cube(256, 2, "uniform", seed)) for seed in range(5)])
    assert qmc.discrepancy(unit_cube(256, 2, method, 0)) < factor * random


def test_kronecker_is_even_too():
    random = np.median([qmc.discrepancy(unit_cube(256, 3, "uniform", seed)) for seed in range(5)])
    assert qmc.discrepancy(kronecker(256, 3)) < 0.5 * random


def test_square_grid_is_a_lattice_of_midpoints():
    U = unit_cube(9, 2, "grid")
    np.testing.assert_allclose(np.unique(U[:, 0]), [1 / 6, 1 / 2, 5 / 6])
    assert len(np.unique(U, axis=0)) == 9
    assert unit_cube(5, 0, "grid").shape == (5, 0)
    assert unit_cube(5, 0).shape == (5, 0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 2), InputError, "'n'"),
        ((2.5, 2), InputError, "'n'"),
        ((True, 2), InputError, "'n'"),
        ((5, 2, "latin"), InputError, "'sobol', 'halton', 'lhs', 'kronecker', 'uniform', 'grid'"),
        ((5, 2, "sobol", "seed"), InputError, "'seed'"),
        ((2**31, 2), ResourceError, "at most 1073741824 points"),
    ],
)
def test_bad_designs_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        unit_cube(*arguments)


@pytest.mark.parametrize("method", METHODS)
def test_rejection_gives_exactly_n_and_only_those_kept(method):
    rows = fill(lambda U: (U, U[:, 0] < 0.05), 2, 333, method, np.random.default_rng(0), "test")
    assert rows.shape == (333, 2)
    assert (rows[:, 0] < 0.05).all()
    assert rows[:, 0].mean() == pytest.approx(0.025, abs=3e-3)


@pytest.mark.parametrize("method", ["uniform", "grid"])
def test_hopeless_rejection_gives_up(method):
    with pytest.raises(GeometryError, match="empty or too thin"):
        fill(lambda U: (U, np.zeros(len(U), dtype=bool)), 1, 10, method, np.random.default_rng(0), "test")


@given(st.integers(1, 500), st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=12))
def test_shares_add_up_and_leave_nobody_out(n, measures):
    measures = np.array(measures)
    counts = apportion(n, measures)
    assert counts.sum() == n
    assert (counts >= (1 if n >= len(measures) else 0)).all()
    large = n * measures / measures.sum() >= len(measures) + 1
    quota = n * measures / measures.sum()
    assert (np.abs(counts - quota)[large] <= len(measures)).all()


def test_proportional_shares_are_exact_when_they_can_be():
    np.testing.assert_array_equal(apportion(12, np.array([1.0, 2.0, 3.0])), [2, 4, 6])
    np.testing.assert_array_equal(apportion(2, np.array([1.0, 5.0, 3.0])), [0, 1, 1])


@given(st.integers(1, 40), st.integers(0, 200))
def test_thinning_is_spread_and_distinct(n, extra):
    index = thin(n + extra, n)
    assert len(np.unique(index)) == n
    assert 0 <= index.min() <= index.max() < n + extra


@pytest.mark.parametrize("n", [1, 2, 5, 20, 64])
def test_gauss_is_exact_to_degree_2n_minus_1(n):
    nodes, weights = gauss(n)
    for degree in {0, 1, n, 2 * n - 1}:
        assert weights @ nodes**degree == pytest.approx(1 / (degree + 1), rel=1e-12)


def test_many_nodes_come_in_panels_and_stay_accurate():
    nodes, weights = gauss(1000)
    assert abs(len(nodes) - 1000) < 64
    assert weights @ np.cos(300 * nodes) == pytest.approx(np.sin(300) / 300, abs=1e-14)
    nodes, weights = periodic(16)
    assert weights @ np.exp(np.cos(2 * np.pi * nodes)) == pytest.approx(1.2660658777520082, rel=1e-14)
    assert side(1000, 3) == 10
    nodes, weights = tensor()
    assert nodes.shape == (1, 0)
