"""Quadrature over the parts of rectangles inside a domain: Gauss points on the segments of parallel lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray
from pibls.quadrature.roots import CLOSE, SCAN, narrowed, switched
from pibls.quadrature.rules import gauss
from pibls.refinement.standards import SLIGHT

Inside = Callable[[FloatArray, IntArray], Any]
"""Returns which points are inside, one column per condition; points come with the numbers of their rectangles."""

_TIPS = 3
LINES, NODES = 16, 10  # lines between two breaks, at which segments begin or end, and points on each segment


class LineRule(NamedTuple):
    """Points in a rectangle, their weights, and the number of each point's segment."""

    points: FloatArray
    weights: FloatArray
    segments: IntArray


def quadrature_on_lines(
    inside: Callable[[FloatArray], Any], low: FloatArray, high: FloatArray, lines: int, nodes: int
) -> LineRule:
    """Return points of one rectangle, on lines in the direction in which they meet the boundary most directly.

    ``inside`` returns which points are inside, with one column per condition.

    Examples
    --------
    >>> X, weights, _ = quadrature_on_lines(lambda X: np.hypot(*X.T) < 1, -np.ones(2), np.ones(2), 16, 3)
    >>> bool(abs(weights.sum() - np.pi) < 1e-5)
    True
    """
    return LineQuadrature(lambda X, _: inside(X), low[None], high[None]).rules([(lines, nodes)])[0]


@dataclass(frozen=True, eq=False)
class LineQuadrature:
    """The segments inside a domain of the lines through rectangles, found for all rectangles at once.

    A break is a line at which segments begin, end, split or merge. Between breaks the lengths of segments vary
    smoothly, or like a square root beside a break: the lines are denser there, such that roots are integrated as well
    as polynomials.

    Attributes
    ----------
    inside
        Returns which points are inside; the numbers of the rectangles of points never fall.
    low, high
        Corners of the rectangles, one row each.
    axis
        Direction of the lines of all rectangles; by default the one in which they meet the boundary most often.
    """

    inside: Inside
    low: FloatArray
    high: FloatArray
    axis: int | None = None

    def rules(self, counts: Sequence[tuple[int, int]]) -> list[LineRule]:
        """Return a rule for each rectangle, given the number of lines between two breaks and of points on a segment."""
        if (key := tuple(counts)) not in self._rules:
            self._rules[key] = self._made(counts)
        return self._rules[key]

    @cached_property
    def _rules(self) -> dict[Any, list[LineRule]]:
        return {}

    def _made(self, counts: Sequence[tuple[int, int]]) -> list[LineRule]:
        breaks, scans = self._found
        spread = [_spread(own, lines) for own, (lines, _) in zip(breaks, counts, strict=True)]
        rectangle = np.repeat(np.arange(len(spread)), [len(s) for s, _ in spread])
        s, shares = (np.concatenate([own[k] for own in spread]) for k in (0, 1))
        line, start, stop = self._segments(s, rectangle, scans[rectangle])
        ends = np.searchsorted(rectangle[line], np.arange(len(spread) + 1))
        found = []
        for number, (_, count) in enumerate(counts):
            own, (places, weights), along = slice(*ends[number : number + 2]), gauss(count), self._along[number]
            size, length, nodes = self.high[number] - self.low[number], (stop - start)[own], len(places)
            X = np.empty((len(length) * nodes, 2))
            X[:, 1 - along] = np.repeat(s[line[own]], nodes)
            X[:, along] = (start[own][:, None] + length[:, None] * places).ravel()
            each = (shares[line[own]] * length * float(np.prod(size)))[:, None] * weights
            segments = np.repeat(np.arange(len(length)), nodes)
            found.append(LineRule(self.low[number] + size * X, each.ravel(), segments))
        return found

    @cached_property
    def _along(self) -> IntArray:
        """The direction of the lines of each rectangle."""
        count = len(self.low)
        if self.axis is not None:
            return np.full(count, self.axis)
        s = np.linspace(CLOSE, 1.0 - CLOSE, SCAN)
        V = np.stack([g.ravel() for g in np.meshgrid(s, s, indexing="ij")], axis=1)
        X, rectangle = self.low[:, None] + (self.high - self.low)[:, None] * V, np.repeat(np.arange(count), len(V))
        known = np.asarray(self.inside(X.reshape(-1, 2), rectangle)).reshape(count, SCAN, SCAN, -1).all(axis=3)
        across, along = (np.diff(known, axis=axis).sum(axis=(1, 2)) for axis in (1, 2))
        return np.asarray(along > across, dtype=np.int64)

    def _columns(self, s: FloatArray, t: FloatArray, rectangle: IntArray) -> BoolArray:
        """Return which conditions hold at places along lines."""
        along = self._along[rectangle]
        X = np.where(along[:, None] == (0, 1), t[:, None], s[:, None])
        X = self.low[rectangle] + (self.high - self.low)[rectangle] * X
        return np.asarray(self.inside(X, rectangle)).reshape(len(t), -1)

    @cached_property
    def _found(self) -> tuple[list[FloatArray], FloatArray]:
        """The breaks between lines, for each rectangle, and the scan along its lines that finds every segment."""
        # Sides may lie on the boundary of a domain that is open.
        scans = np.tile(np.linspace(CLOSE, 1.0 - CLOSE, SCAN), (len(self.low), 1))
        breaks, open_ones = [np.empty(0)] * len(self.low), np.arange(len(self.low))
        for _ in range(_TIPS):
            found, tips = self._breaks(open_ones, scans)
            for number in open_ones.tolist():
                breaks[number] = np.sort(found[1][found[0] == number])
            if not len(tips[0]):
                break
            # A segment that is narrower than the scan is found at its tip.
            open_ones, counts = np.unique(tips[0], return_counts=True)
            wider = np.ones((len(scans), scans.shape[1] + counts.max()))
            wider[:, : scans.shape[1]] = scans
            for number in open_ones.tolist():
                own = tips[1][tips[0] == number]
                wider[number, scans.shape[1] : scans.shape[1] + len(own)] = own
            scans = np.sort(wider, axis=1)
        return breaks, scans

    def _ends(
        self, s: FloatArray, rectangle: IntArray, scans: FloatArray, share: float
    ) -> tuple[BoolArray, IntArray, FloatArray, IntArray]:
        """Return which lines begin inside, and all ends of segments: their line, position and condition."""

        def inside(t: FloatArray, line: IntArray) -> BoolArray:
            return np.asarray(self._columns(s[line], t, rectangle[line]).all(axis=1))

        row, a, b, before = switched(inside, scans, share)
        outer = (
            self._columns(s[row], np.where(before, b, a), rectangle[row]) if len(row) else np.empty((0, 1), dtype=bool)
        )
        first = self._columns(s, scans[:, 0], rectangle).all(axis=1)
        return np.asarray(first), row, (a + b) / 2, outer.argmin(axis=1)

    def _breaks(
        self, chosen: IntArray, scans: FloatArray
    ) -> tuple[tuple[IntArray, FloatArray], tuple[IntArray, FloatArray]]:
        """Return the breaks in some rectangles, and the positions along lines at which new segments begin.

        Both come with the numbers of their rectangles.
        """

        def signatures(s: FloatArray, rectangle: IntArray) -> tuple[IntArray, IntArray]:
            first, row, _, which = self._ends(s, rectangle, scans[rectangle], SLIGHT)
            order = np.arange(len(row)) - np.searchsorted(row, row)
            count = np.bincount(row, minlength=len(s))
            # A number that encodes which conditions end the segments, in order.
            which = np.bincount(row, (which + 1) * 31.0 ** np.minimum(order, LINES // 2), minlength=len(s))
            return 2 * which.astype(np.int64) + first, count

        s = np.linspace(CLOSE, 1.0 - CLOSE, SCAN)
        known = signatures(np.tile(s, len(chosen)), np.repeat(chosen, SCAN))[0].reshape(-1, SCAN)
        which, changed = np.nonzero(known[:, 1:] != known[:, :-1])
        rectangle, start, stop = chosen[which], s[changed], s[changed + 1]
        first, last = known[which, changed], known[which, changed + 1]
        breaks, new = [(rectangle[:0], start[:0])], [(rectangle[:0], start[:0])]
        for _ in range(_TIPS if len(start) else 0):

            def alike(places: FloatArray, first: IntArray = first, rectangle: IntArray = rectangle) -> BoolArray:
                found, _ = signatures(places.ravel(), np.repeat(rectangle, places.shape[1]))
                return np.asarray(found.reshape(places.shape) == first[:, None])

            low, high = narrowed(alike, start, stop, np.sqrt(CLOSE))
            both = np.stack([low, high], axis=1).ravel()
            after, counts = (own.reshape(-1, 2).T for own in signatures(both, np.repeat(rectangle, 2)))
            breaks.append((rectangle, (low + high) / 2))
            fewer = counts[0] != counts[1]
            new.append((rectangle[fewer], np.where(counts[0] > counts[1], low, high)[fewer]))
            # There may be several breaks between two lines, as where a tip is close to the boundary.
            more = after[1] != last
            if not more.any():
                break
            rectangle, start, stop, first, last = rectangle[more], high[more], stop[more], after[1][more], last[more]
        every, at = (np.concatenate([own[k] for own in new]) for k in (0, 1))
        order = np.argsort(every, kind="stable")
        rectangle, place = (np.concatenate([own[k] for own in breaks]) for k in (0, 1))
        return (rectangle, place), self._tips(every[order], at[order], scans)

    def _tips(self, rectangle: IntArray, s: FloatArray, scans: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the middle of the shortest segment on lines; one at the end of a line is in every scan."""
        _, row, places, _ = self._ends(s, rectangle, scans[rectangle], CLOSE) if len(s) else (None, s, s, None)
        found: list[tuple[int, float]] = []
        for line, number in enumerate(rectangle.tolist()):
            ends = np.concatenate([[0.0], places[row == line], [1.0]])
            gaps = np.where(np.diff(ends) > CLOSE, np.diff(ends), np.inf)
            least = int(gaps.argmin())
            if 0 < least < len(gaps) - 1:
                found.append((number, (ends[least] + ends[least + 1]) / 2))
        numbers, tips = np.array(found).reshape(-1, 2).T
        return numbers.astype(np.int64), tips

    def _segments(
        self, s: FloatArray, rectangle: IntArray, scans: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the segments inside: number of the line, begin and end."""
        first, row, ends, _ = self._ends(s, rectangle, scans, CLOSE)
        every = np.arange(len(s))
        row = np.concatenate([every, row, every])
        cuts = np.concatenate([np.zeros(len(s)), ends, np.ones(len(s))])
        order = np.lexsort((cuts, row))
        row, cuts = row[order], cuts[order]
        # From the start of a line, every second segment is inside.
        count = np.arange(len(row)) - np.searchsorted(row, row)
        own = (row[1:] == row[:-1]) & (first[row[:-1]] ^ (count[:-1] % 2 == 1)) & (np.diff(cuts) > 0.0)
        return row[:-1][own], cuts[:-1][own], cuts[1:][own]


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
