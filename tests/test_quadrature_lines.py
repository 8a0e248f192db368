"""Points on lines through rectangles: integrals over the parts inside a domain, for many rectangles at once."""

import numpy as np
import pytest

from internals import LineQuadrature

# Rectangles that a circle of radius one cuts in different ways: a quarter, a cap, a sliver, two sides, none, all.
LOW = np.array([[0.0, 0.0], [-0.4, 0.8], [0.999, -0.1], [-2.0, -0.3], [1.5, 1.5], [-0.2, -0.2]])
HIGH = np.array([[1.0, 1.0], [0.4, 1.2], [1.2, 0.1], [2.0, 0.3], [2.0, 2.0], [0.2, 0.2]])


def _disk(X, row):
    return np.hypot(*X.T) < 1.0


def _areas():
    def strip(x):
        return (x * np.sqrt(1 - x * x) + np.arcsin(x)) / 2

    cap = 2 * (strip(0.4) - 0.8 * 0.4)
    sliver = 2 * (strip(np.sqrt(1 - 0.999**2)) - 0.999 * np.sqrt(1 - 0.999**2))
    return [np.pi / 4, cap, sliver, 4 * strip(0.3), 0.0, 0.16]


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_areas_within_a_circle_are_right_for_all_rectangles_together(axis):
    rules = LineQuadrature(_disk, LOW, HIGH, axis).rules([(24, 8)] * len(LOW))
    off = np.array([weights.sum() for _, weights, _ in rules]) - _areas()
    # Breaks are known to a millionth of the rectangle, beside which segments are short.
    assert (np.abs(off) < 1e-9 * np.prod(HIGH - LOW, axis=1)).all()
    assert all(_disk(X, None).all() and (weights > 0).all() for X, weights, _ in rules)


def test_each_rectangle_has_the_rule_that_it_has_alone():
    counts = [(16, 4), (24, 6), (8, 3), (16, 5), (16, 4), (16, 4)]
    for number, rule in enumerate(LineQuadrature(_disk, LOW, HIGH).rules(counts)):
        own = slice(number, number + 1)
        (alone,) = LineQuadrature(_disk, LOW[own], HIGH[own]).rules(counts[own])
        for one, two in zip(rule, alone, strict=True):
            np.testing.assert_allclose(one, two, atol=1e-8)


def test_moments_follow_from_the_boundary_by_the_divergence_theorem():
    # The region between two circles, in its own rectangle each: conditions are columns.
    centers = np.array([[0.0, 0.0], [3.0, -1.0]])

    def ring(X, row):
        r = np.hypot(*(X - centers[row]).T)
        return np.stack([r < 1.0, r > 0.4], axis=1)

    rules = LineQuadrature(ring, centers - 1.0, centers + np.array([1.0, 0.7])).rules([(32, 12)] * 2)
    angles = np.arccos(0.7)
    for center, (X, weights, _) in zip(centers, rules, strict=True):
        Y = X - center
        for power in (0, 2, 4):
            # Below the line y = 0.7 the disk loses a cap; both circles give ∫ x^p by the integral of x^(p+1) n_x/(p+1).
            theta, share = np.polynomial.legendre.leggauss(60)
            outer = np.pi / 2 + angles + (2 * np.pi - 2 * angles) * (theta + 1) / 2
            circle = (np.cos(outer) ** (power + 2) * share).sum() * (np.pi - angles) / (power + 1)
            hole = (np.cos(np.pi * theta) ** (power + 2) * share).sum() * np.pi * 0.4 ** (power + 2) / (power + 1)
            assert weights @ Y[:, 0] ** power == pytest.approx(circle - hole, rel=1e-9)


def test_a_narrow_tip_between_two_lines_of_the_scan_is_seen():
    rules = LineQuadrature(
        lambda X, row: np.abs(X[:, 1] - 0.512) < 0.02 * (1 - X[:, 0]), np.zeros((1, 2)), np.ones((1, 2)), 1
    )
    (rule,) = rules.rules([(16, 3)])
    assert rule.weights.sum() == pytest.approx(0.02, rel=1e-6)


def test_tips_at_sides_on_an_open_boundary_are_seen():
    # At the sides themselves nothing is inside; beside the diagonal, segments are shorter than the scan.
    def triangle(X, row):
        return (X > 0.0).all(axis=1) & (X.sum(axis=1) < 1.0)

    for axis in (0, 1):
        (rule,) = LineQuadrature(triangle, np.zeros((1, 2)), np.ones((1, 2)), axis).rules([(16, 3)])
        assert rule.weights.sum() == pytest.approx(0.5, rel=1e-9)


def test_many_points_on_a_segment_may_be_one_more_than_asked_for():
    (rule,) = LineQuadrature(_disk, LOW[:1], HIGH[:1]).rules([(16, 77)])
    assert rule.weights.sum() == pytest.approx(np.pi / 4, rel=1e-6)
