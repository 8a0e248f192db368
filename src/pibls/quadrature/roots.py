"""Roots, edges, summits and projections, of many functions at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray

Holds = Callable[..., Any]

SCAN = 33  # points along an axis at which a search begins: features wider than 1/32 of a box are not missed
CLOSE = 1e-9  # of a length or a number: what is nearer to each other counts as one
HALVINGS = 12  # of a box, after which a search for a part of it with one property ends
ROUNDING = 1e-13  # shares below are rounding: some hundred operations lose as much in double precision
_EPS = np.finfo(np.float64).eps


def narrowed(holds: Holds, low: FloatArray, high: FloatArray, share: float = _EPS) -> tuple[FloatArray, FloatArray]:
    """Return small intervals, out of those given, at whose lower ends something holds and at the upper ones not.

    They are about a given share of the others. Many sections at once take hardly longer than one. ``holds`` is given
    places, a row for each interval. Low ends may be above high ones.
    """
    sections = SCAN // 2
    rows, shares = np.arange(len(low)), np.linspace(0.0, 1.0, sections + 1)
    for _ in range(round(np.log(share) / -np.log(sections)) if len(low) else 0):
        places = low[:, None] + (high - low)[:, None] * shares
        now = holds(places)
        now[:, 0], now[:, -1] = True, False
        last = now.argmin(axis=1)
        low, high = places[rows, last - 1], places[rows, last]
    return low, high


def held_ranges(inside: Holds, start: float, stop: float) -> list[tuple[float, float]]:
    """Return the intervals of a parameter in which conditions hold, all of them where they are columns.

    >>> np.round(held_ranges(lambda s: abs(s - 0.5) > 0.2, 0.0, 1.0), 12).tolist()
    [[0.0, 0.3], [0.7, 1.0]]
    """
    _, low, high = ranges_held(lambda s, _: inside(s), np.array([start]), np.array([stop]))
    return list(zip(low.tolist(), high.tolist(), strict=True))


def switched(
    holds: Holds, scans: FloatArray, share: float = _EPS
) -> tuple[IntArray, FloatArray, FloatArray, BoolArray]:
    """Return where something begins or ceases to hold along scans: which scan, small intervals, and if it held before.

    ``scans`` has a row of rising places for each. ``holds`` is given places and the numbers of their scans, which never
    fall; it may have a column for each of several conditions, of which each is followed by itself.
    """

    def known(places: FloatArray, rows: IntArray) -> BoolArray:
        found = np.asarray(holds(places.ravel(), np.repeat(rows, places.shape[1])))
        return found.reshape(*places.shape, found.shape[1] if found.ndim > 1 else 1)

    held = known(scans, np.arange(len(scans)))
    row, left, column = np.nonzero(held[:, 1:] != held[:, :-1])
    before, every = held[row, left, column], np.arange(len(row))

    def same(places: FloatArray) -> BoolArray:
        return np.asarray(known(places, row)[every, :, column] == before[:, None])

    return row, *narrowed(same, scans[row, left], scans[row, left + 1], share), before


def ranges_held(inside: Holds, start: FloatArray, stop: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the intervals within each of many ranges in which conditions hold: which range, begin and end.

    Between two places of a scan at which not all hold, an interval is seen as long as no single condition changes twice
    there: a curve that cuts off a corner of a box, however small, crosses two of its sides once. ``inside`` is given
    places and the numbers of their ranges, which never fall; it may have a column for each condition.
    """
    every = np.arange(len(start))
    # Ends may lie on the boundary of a domain that is open.
    scans = start[:, None] + (stop - start)[:, None] * np.linspace(CLOSE, 1.0 - CLOSE, SCAN)
    row, low, high, _ = switched(inside, scans)
    row, cuts = np.concatenate([every, row, every]), np.concatenate([start, (low + high) / 2, stop])
    order = np.lexsort((cuts, row))
    row, cuts = row[order], cuts[order]
    apart = (np.diff(cuts, prepend=-np.inf) > ROUNDING) | (np.diff(row, prepend=-1) > 0)
    row, cuts = row[apart], cuts[apart]
    between = np.flatnonzero(row[1:] == row[:-1])
    row, low, high = row[between], cuts[between], cuts[between + 1]
    held = np.asarray(inside((low + high) / 2, row))
    within = np.asarray(held.all(axis=1) if held.ndim > 1 else held)
    joined = within[1:] & within[:-1] & (row[1:] == row[:-1])
    begins, ends = within.copy(), within.copy()
    begins[1:] &= ~joined
    ends[:-1] &= ~joined
    return row[begins], low[begins], high[ends]


def bracketed(
    function: Callable[[FloatArray, Any], FloatArray],
    low: FloatArray,
    high: FloatArray,
    start: FloatArray | None = None,
) -> FloatArray:
    """Return a root in each of many intervals, or the end at which a function is smaller if both have the same sign.

    The steps are Chandrupatla's: inverse quadratic interpolation where it is safe, else bisection. ``function`` gets
    places and the numbers of their intervals; there may be first guesses.
    """
    rows = np.arange(len(low))
    a, b, fa, fb = low, high, function(low, rows), function(high, rows)
    root, t = np.where(np.abs(fa) <= np.abs(fb), a, b), ((a + b) / 2 if start is None else start) - a
    grain = 2.0 * np.spacing(np.maximum(np.abs(a), np.abs(b)))
    rows = np.flatnonzero(np.sign(fa) * np.sign(fb) < 0)
    a, b, fa, fb, t = (values[rows] for values in (a, b, fa, fb, t / np.where(a == b, 1.0, b - a)))
    for _ in range(np.finfo(np.float64).bits if len(rows) else 0):
        x = a + t * (b - a)
        fx = function(x, rows)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        best = np.where(np.abs(fa) < np.abs(fb), a, b)
        root[rows] = best
        room = grain[rows] / np.where(a == b, 1.0, np.abs(b - a))
        going = (room < 0.5) & (fa != 0.0) & (fb != 0.0) & (a != b)
        if not going.any():
            break
        rows, a, b, c, fa, fb, fc, room = (values[going] for values in (rows, a, b, c, fa, fb, fc, room))
        with np.errstate(all="ignore"):
            place, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
            smooth = (height**2 < place) & ((1.0 - height) ** 2 < 1.0 - place)
            quadratic = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        t = np.clip(np.where(smooth, quadratic, 0.5), room, 1.0 - room)
    return root


def climbed(
    height: Callable[[FloatArray], FloatArray],
    X: FloatArray,
    step: FloatArray,
    bounds: FloatArray,
    rounds: int = np.finfo(np.float64).nmant // 2,
) -> FloatArray:
    """Return the highest places near given ones, (n, d), within bounds, by closer and closer grids around the best.

    Rounding hides the place of a smooth summit within the root of the machine precision, which the rounds lead to.
    """
    count, d = X.shape
    around = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 5)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    for _ in range(rounds if count else 0):
        tried = np.clip(X[:, None] + around * step, bounds[:, 0], bounds[:, 1])
        heights = height(tried.reshape(-1, d)).reshape(count, -1)
        X, step = tried[np.arange(count), heights.argmax(axis=1)], step / 2
    return X


def onto_zeros(
    value: Callable[[FloatArray], FloatArray], gradient: Callable[[FloatArray], FloatArray], X: FloatArray, rounds: int
) -> FloatArray:
    """Return points near given ones at which a function is zero, by Newton's method along its gradient."""
    for _ in range(rounds):
        slopes = gradient(X)
        squares = np.square(slopes).sum(axis=1)
        move = (value(X) / np.where(squares > 0.0, squares, np.inf))[:, None] * slopes
        X = X - move
        if np.abs(move).max(initial=0.0) <= 1e-15 * np.abs(X).max(initial=1.0):
            break
    return X
