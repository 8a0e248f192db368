"""Quadrature over the part of a rectangle inside a domain: Gauss points on the segments of parallel lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray
from pibls.quadrature.roots import CLOSE, SCAN, narrowed, switched
from pibls.quadrature.rules import gauss
from pibls.refinement.standards import SLIGHT

Columns = Callable[[FloatArray, FloatArray], BoolArray]

_TIPS = 3
LINES, NODES = 16, 10  # lines between two breaks, at which segments begin or end, and points on each segment


def quadrature_on_lines(
    inside: Callable[[FloatArray], Any], low: FloatArray, high: FloatArray, axis: int | None, lines: int, nodes: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return points on lines along an axis, their weights, and the number of each point's segment.

    A break is a position at which segments begin, end, split or merge. Between breaks their lengths vary smoothly, or
    like a square root beside a break: the lines are denser there, such that roots are integrated as well as
    polynomials.

    Parameters
    ----------
    inside
        Returns which points are inside, with one column per condition.
    low, high
        Corners of the rectangle.
    axis
        Direction of the lines; by default the one in which they meet the boundary most directly.
    lines
        Approximate number of lines between two breaks.
    nodes
        Gauss points on each segment.

    Examples
    --------
    >>> X, weights, _ = quadrature_on_lines(lambda X: np.hypot(*X.T) < 1, -np.ones(2), np.ones(2), 0, 16, 3)
    >>> bool(abs(weights.sum() - np.pi) < 1e-5)
    True
    """
    return LineQuadrature(inside, low, high, head_on(inside, low, high) if axis is None else axis).rule(lines, nodes)


@dataclass(frozen=True, eq=False)
class LineQuadrature:
    """The segments inside a domain of the lines through a rectangle along an axis."""

    inside: Callable[[FloatArray], Any]
    low: FloatArray
    high: FloatArray
    along: int

    def _columns(self, s: FloatArray, t: FloatArray) -> BoolArray:
        X = np.empty((len(t), 2))
        X[:, 1 - self.along], X[:, self.along] = s, t
        return np.asarray(self.inside(self.low + (self.high - self.low) * X)).reshape(len(t), -1)

    @cached_property
    def _found(self) -> tuple[FloatArray, FloatArray]:
        """The breaks between lines, and the scan along a line that finds every segment."""
        scan = np.linspace(0.0, 1.0, SCAN)
        for _ in range(_TIPS):
            breaks, tips = _breaks(self._columns, scan)
            if not len(tips):
                break
            # A segment that is narrower than the scan is found at its tip.
            scan = np.unique(np.concatenate([scan, tips]))
        return breaks, scan

    @cached_property
    def _stretched(self) -> dict[int, tuple[FloatArray, FloatArray, IntArray, FloatArray, FloatArray]]:
        return {}

    def rule(self, lines: int, nodes: int) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return points on lines, their weights, and the number of each point's segment."""
        if lines not in self._stretched:
            breaks, scan = self._found
            s, shares = _spread(breaks, lines)
            self._stretched[lines] = s, shares, *_stretches(self._columns, s, scan)
        s, shares, row, start, stop = self._stretched[lines]
        places, own = gauss(nodes)
        t = start[:, None] + (stop - start)[:, None] * places
        X = np.empty((t.size, 2))
        X[:, 1 - self.along], X[:, self.along] = np.repeat(s[row], len(places)), t.ravel()
        weights = (shares[row] * (stop - start))[:, None] * own * float(np.prod(self.high - self.low))
        number = np.repeat(np.arange(len(row)), len(places))
        return self.low + (self.high - self.low) * X, weights.ravel(), number


def head_on(inside: Callable[[FloatArray], Any], low: FloatArray, high: FloatArray) -> int:
    """Return the axis along which the lines of a grid meet the boundary most often."""
    s = np.linspace(CLOSE, 1.0 - CLOSE, SCAN)
    V = np.stack([g.ravel() for g in np.meshgrid(s, s, indexing="ij")], axis=1)
    known = np.all(np.asarray(inside(low + (high - low) * V)).reshape(SCAN, SCAN, -1), axis=2)
    across, along = ((np.diff(known, axis=axis)).sum() for axis in (0, 1))
    return int(along > across)


def _ends(
    columns: Columns, s: FloatArray, scan: FloatArray, share: float
) -> tuple[BoolArray, IntArray, FloatArray, IntArray]:
    """Return which lines begin inside, and all ends of segments: their line, position and condition."""
    scans = np.tile(scan, (len(s), 1))
    row, a, b, before = switched(lambda t, line: columns(s[line], t).all(axis=1), scans, share)
    outer = columns(s[row], np.where(before, b, a)) if len(row) else np.empty((0, 1), dtype=np.bool_)
    first = np.asarray(columns(s, scans[:, 0]).all(axis=1))
    return first, row, (a + b) / 2, outer.argmin(axis=1)


def _breaks(columns: Columns, scan: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the breaks, and the positions along the lines at which new segments begin."""

    def signatures(s: FloatArray) -> tuple[IntArray, IntArray]:
        first, row, _, which = _ends(columns, s, scan, SLIGHT)
        order = np.arange(len(row)) - np.searchsorted(row, row)
        count = np.bincount(row, minlength=len(s))
        # A number that encodes which conditions end the segments, in order.
        which = np.bincount(row, (which + 1) * 31.0 ** np.minimum(order, LINES // 2), minlength=len(s)).astype(np.int64)
        return 2 * which + first, count

    s = np.linspace(CLOSE, 1.0 - CLOSE, SCAN)
    known, _ = signatures(s)
    (changed,) = np.nonzero(known[1:] != known[:-1])
    start, stop, first, last = s[changed], s[changed + 1], known[changed], known[changed + 1]
    breaks, new = [start[:0]], [start[:0]]
    for _ in range(_TIPS if len(start) else 0):

        def alike(places: FloatArray, first: IntArray = first) -> BoolArray:
            return np.asarray(signatures(places.ravel())[0].reshape(places.shape) == first[:, None])

        low, high = narrowed(alike, start, stop, np.sqrt(CLOSE))
        after, counts = (found.reshape(2, -1) for found in signatures(np.concatenate([low, high])))
        breaks.append((low + high) / 2)
        new.append(np.where(counts[0] > counts[1], low, high)[counts[0] != counts[1]])
        # There may be several breaks between two lines, as where a tip is close to the boundary.
        more = after[1] != last
        if not more.any():
            break
        start, stop, first, last = high[more], stop[more], after[1][more], last[more]
    return np.sort(np.concatenate(breaks)), _tips(columns, np.concatenate(new), scan)


def _tips(columns: Columns, s: FloatArray, scan: FloatArray) -> FloatArray:
    """Return the middle of the shortest segment on each line."""
    tips: list[float] = []
    _, row, places, _ = _ends(columns, s, scan, CLOSE) if len(s) else (None, s, s, s)
    for k in range(len(s)):
        ends = np.concatenate([[0.0], places[row == k], [1.0]])
        gaps = np.where(np.diff(ends) > 0.0, np.diff(ends), np.inf)
        tips.append((ends[:-1] + ends[1:])[gaps.argmin()] / 2)
    return np.array(tips)


def _spread(breaks: FloatArray, lines: int) -> tuple[FloatArray, FloatArray]:
    """Return positions and weights of the lines: Gauss points in a variable in which roots at breaks are smooth."""
    places, shares = gauss(min(lines, LINES // 2))
    panels = max(1, round(lines / (LINES // 2)))
    tau = (np.arange(panels)[:, None] + places).ravel() / panels
    s, rate = (1 - np.cos(np.pi * tau)) / 2, np.pi / 2 * np.sin(np.pi * tau) * np.tile(shares / panels, panels)
    cuts = np.concatenate([[0.0], breaks, [1.0]])
    low, long = cuts[:-1, None], np.diff(cuts)[:, None]
    kept = long[:, 0] > CLOSE
    return (low + long * s)[kept].ravel(), (long * rate)[kept].ravel()


def _stretches(columns: Columns, s: FloatArray, scan: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the segments inside: number of the line, begin and end."""
    first, row, ends, _ = _ends(columns, s, scan, CLOSE)
    every = np.arange(len(s))
    row = np.concatenate([every, row, every])
    cuts = np.concatenate([np.zeros(len(s)), ends, np.ones(len(s))])
    order = np.lexsort((cuts, row))
    row, cuts = row[order], cuts[order]
    # From the start of a line, every second segment is inside.
    count = np.arange(len(row)) - np.searchsorted(row, row)
    own = (row[1:] == row[:-1]) & (first[row[:-1]] ^ (count[:-1] % 2 == 1)) & (np.diff(cuts) > 0.0)
    return row[:-1][own], cuts[:-1][own], cuts[1:][own]
