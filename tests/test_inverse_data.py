"""Data that cannot be used, or that contradict one another, in problems with unknown numbers."""

from __future__ import annotations

import numpy as np
import pytest

import pibls as pb
from pibls.errors import ProblemError

X = pb.coordinates("x")
U = pb.field("u", X)
LINE = pb.Interval((X, 0, 1))
PLACES = np.linspace(0.1, 0.9, 9)
SHAPE = PLACES * (1 - PLACES) / 2  # the solution of −u″ = 1 there
VALUES = 2 * SHAPE
ONE_MISSING = np.where(np.arange(9) == 3, np.nan, VALUES)


def observed(values, places=PLACES, **settings):
    return pb.Observation(U, {X: places}, values, **settings)


def solved(*data):
    return pb.solve(pb.Problem(-U.diff(X, 2) - pb.unknown("q"), LINE, [pb.Dirichlet(U, 0), *data]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: observed(ONE_MISSING), "1 of 9 rows do not, first row 3"),
        (lambda: observed(VALUES, noise=ONE_MISSING), "'noise' parameter.*first row 3"),
        (lambda: observed(VALUES, ONE_MISSING), "'points' parameter.*first row 3"),
        (lambda: observed([], []), "at least one"),
        (lambda: observed(VALUES, PLACES + 0.5), r"4 of its 9 points lie outside, first \[1.1\]"),
        (lambda: observed(VALUES[:3]), "one per value, 3 in all"),
        (lambda: observed(1e200 * VALUES), r"below 1e\+100 in size. Got 2.5e\+199 instead. Use other units"),
        (lambda: observed([1.0, 2.0], [0.5, 0.5], exact=True), r"two values at \[0.5\], 1 and 2"),
        # At the wall u is 0 whatever q is.
        (lambda: observed([1.0], [0.0], exact=True), "no further condition does.*agrees with the others"),
    ],
)
def test_data_of_no_use_are_refused(make, words):
    with pytest.raises(ProblemError, match=words):
        solved(make())


@pytest.mark.parametrize(
    "data",
    [
        [observed([0.25, 0.5], [0.5, 0.5], noise=1e-3)],
        [observed(VALUES, noise=1e-3), observed(2 * VALUES, noise=1e-3)],
        [observed([1.0, 0.25], [0.0, 0.5], noise=1e-3)],
    ],
    ids=["at one point", "in two sets", "with a wall"],
)
def test_contradictions_beyond_the_noise_are_told(data):
    found = solved(*data)
    assert found.status == "stalled"
    assert "times as large as the stated noise" in found.diagnostics.message


@pytest.mark.parametrize(
    "data",
    [
        [observed(VALUES + 0.1 * PLACES, exact=True)],
        [observed([1.0], [0.5], exact=True), observed([2.0], [0.5], exact=True)],
    ],
    ids=["in one set", "in two sets"],
)
def test_values_without_noise_that_cannot_all_hold_are_told(data):
    found = solved(*data)
    assert found.status == "stalled"
    assert "which have no noise, are missed by" in found.diagnostics.message


def test_values_without_noise_leave_nothing_open():
    q = solved(observed(VALUES, exact=True)).parameters["q"]
    assert q.value == pytest.approx(2.0, rel=1e-10)
    assert q.deviation < 1e-8


def test_differing_values_of_unknown_noise_are_weighed():
    """Two values at a point, 1 and 2: their mean, with the spread that two values show."""
    q = solved(observed([1.0, 2.0], [0.5, 0.5])).parameters["q"]
    assert q.value == pytest.approx(12.0, abs=1e-3)
    assert q.deviation == pytest.approx(8 * np.sqrt(0.5) / np.sqrt(2), rel=1e-4)
    apart = solved(observed([1.0], [0.5]), observed([2.0], [0.5])).parameters["q"]
    assert 8.0 < apart.value < 16.0  # sets of one value do not tell which of them is right
    assert apart.deviation > 1.0
