"""Roots, edges, summits and projections against functions whose own are known."""

import numpy as np
import pytest

from internals import bracketed, climbed, held_ranges, narrowed, onto_zeros, ranges_held, switched


def test_roots_are_found_to_rounding_for_many_intervals_at_once():
    target = np.linspace(-0.9, 0.9, 101)
    found = bracketed(lambda x, row: np.cos(x) - target[row], np.zeros(101), np.full(101, np.pi))
    np.testing.assert_allclose(found, np.arccos(target), rtol=4e-16 * 4)


@pytest.mark.parametrize("function", [lambda x: x**9, lambda x: np.tanh(1e6 * x), np.sign, lambda x: np.expm1(30 * x)])
def test_flat_steep_and_jumping_functions_keep_their_roots(function):
    found = bracketed(lambda x, _: function(x - 0.3), np.zeros(1), np.ones(1))
    assert found[0] == pytest.approx(0.3, abs=2e-2 if function(0.01) < 1e-12 else 1e-12)


def test_without_a_change_of_sign_the_smaller_end_is_told():
    assert bracketed(lambda x, _: x + 1.0, np.zeros(1), np.ones(1)).tolist() == [0.0]
    assert bracketed(lambda x, _: x - 2.0, np.zeros(1), np.ones(1)).tolist() == [1.0]


def test_edges_are_found_from_either_side():
    low, high = narrowed(lambda x: np.abs(x - 1.0) > 0.7, np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    np.testing.assert_allclose([low, high], [[0.3, 1.7]] * 2, atol=1e-15)


def test_switches_are_found_along_many_scans_one_condition_at_a_time():
    ends = np.array([0.3, 0.6])
    holds = [lambda s, row: s < ends[row], lambda s, row: np.stack([s < ends[row], s > 0.1], axis=1)]
    for own, places, before in zip(holds, ([0.3, 0.6], [0.1, 0.3, 0.1, 0.6]), ([1, 1], [0, 1, 0, 1]), strict=True):
        row, low, high, held = switched(own, np.tile(np.linspace(0.0, 1.0, 5), (2, 1)))
        np.testing.assert_allclose([low, high], [places] * 2, atol=1e-15)
        assert row.tolist() == np.repeat([0, 1], len(places) // 2).tolist()
        assert held.tolist() == [bool(entry) for entry in before]
    assert all(len(own) == 0 for own in switched(holds[0], np.ones((2, 3))))


def test_ranges_hold_where_all_conditions_do_however_narrow():
    found = held_ranges(lambda s: np.stack([s > 0.5, s < 0.5 + 1e-9], axis=1), 0.0, 1.0)
    np.testing.assert_allclose(found, [[0.5, 0.5 + 1e-9]], atol=1e-12)
    assert held_ranges(lambda s: s > 2.0, 0.0, 1.0) == []
    assert held_ranges(lambda s: s < 2.0, 0.0, 1.0) == [(0.0, 1.0)]
    np.testing.assert_allclose(held_ranges(lambda s: np.abs(s - 0.4) > 0.1, 0.0, 1.0), [[0, 0.3], [0.5, 1]], atol=1e-12)


def test_many_ranges_are_found_as_each_by_itself():
    centers = np.array([0.2, 0.5, 5.0, 0.99])
    start, stop = np.array([0.0, 0.4, 0.0, 0.5]), np.array([1.0, 0.9, 1.0, 1.5])

    def holds(s, row):
        return np.stack([np.abs(s - centers[row]) > 0.03, s < centers[row] + 0.3], axis=1)

    row, low, high = ranges_held(holds, start, stop)
    for k in range(len(start)):
        alone = held_ranges(lambda s, k=k: holds(s, np.full(len(s), k)), start[k], stop[k])
        np.testing.assert_allclose(np.stack([low, high], axis=1)[row == k], np.reshape(alone, (-1, 2)), atol=1e-15)
    assert np.bincount(row, minlength=4).tolist() == [2, 2, 1, 2]
    assert all(len(own) == 0 for own in ranges_held(holds, np.empty(0), np.empty(0)))


def test_summits_are_climbed_to_half_the_digits_and_bounds_are_kept():
    bounds = np.array([[-1.0, 1.0], [-1.0, 0.2]])
    found = climbed(lambda X: -np.square(X - 0.3).sum(axis=1), np.zeros((2, 2)), np.ones(2), bounds, 40)
    np.testing.assert_allclose(found, [[0.3, 0.2]] * 2, atol=1e-8)


def test_points_are_projected_along_the_gradient():
    X = np.random.default_rng(0).uniform(0.3, 1.0, (50, 3))
    found = onto_zeros(lambda X: np.square(X).sum(axis=1) - 1.0, lambda X: 2.0 * X, X, 12)
    np.testing.assert_allclose(found, X / np.linalg.norm(X, axis=1, keepdims=True), rtol=1e-14)
