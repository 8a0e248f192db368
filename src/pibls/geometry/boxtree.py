"""A tree of boxes around edges or triangles: which of very many are near a point, or above it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray

Meets = Callable[[IntArray, FloatArray, FloatArray], BoolArray]

_LEAF = 4
_BATCH = 2**13


class BoxTree:
    """Boxes halved along their longest side until few are left.

    All questions are asked at once: going down the tree, what is kept are pairs of a question and a box, as arrays.

    >>> starts = np.arange(10.0)[:, None]
    >>> tree = BoxTree(starts, starts + 1)
    >>> points = np.array([[0.5], [8.5]])
    >>> for rows, items in tree.overlapping(points, points):
    ...     print(rows, items)  # whole leaves
    [0 0 1 1 1] [0 1 7 8 9]
    """

    def __init__(self, low: FloatArray, high: FloatArray, places: FloatArray | None = None) -> None:
        middle = (low + high) / 2
        self._places = middle if places is None else places  # one of each item
        todo, placed = [np.arange(len(low))], 0
        nodes, order = list[tuple[int, int, int]](), list[IntArray]()  # first item, number of items, first child
        while len(nodes) < len(todo):
            own = todo[len(nodes)]
            if len(own) <= _LEAF:
                nodes.append((placed, len(own), -1))
                order.append(own)
                placed += len(own)
            else:
                along = middle[own, int(np.ptp(middle[own], axis=0).argmax())]
                nodes.append((0, 0, len(todo)))
                todo += np.split(own[np.argpartition(along, len(own) // 2)], [len(own) // 2])
        self._low = np.array([low[own].min(axis=0) for own in todo])
        self._high = np.array([high[own].max(axis=0) for own in todo])
        self._first, self._count, self._child = np.array(nodes).T
        self._order = np.concatenate(order)

    def pairs(self, count: int, meets: Meets) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield numbers of questions, 0 to ``count`` - 1, and of items in the leaves that they meet, some at a time.

        ``meets`` gets numbers of questions, and the low and high ends of as many boxes.
        """
        todo = [(np.arange(k, min(k + _BATCH, count)), np.zeros(1, dtype=np.int64)) for k in range(0, count, _BATCH)]
        while todo:
            row, node = np.broadcast_arrays(*todo.pop())
            kept = meets(row, self._low[node], self._high[node])
            row, node = row[kept], node[kept]
            sizes = self._count[node]
            leaf = sizes > 0
            if leaf.any():
                rows = np.repeat(row[leaf], sizes[leaf])
                # The position of each item within its leaf.
                ends = np.cumsum(sizes[leaf])
                place = np.arange(ends[-1]) - np.repeat(ends - sizes[leaf], sizes[leaf])
                yield rows, self._order[np.repeat(self._first[node[leaf]], sizes[leaf]) + place]
            row, node = np.repeat(row[~leaf], 2), np.repeat(self._child[node[~leaf]], 2)
            node[1::2] += 1
            # A level at once, but for boxes that lie over one another, of which there are as many as there are pairs.
            pieces = range(0, len(row), 8 * _BATCH)
            todo += [(row[k : k + 8 * _BATCH], node[k : k + 8 * _BATCH]) for k in pieces]

    def overlapping(self, low: FloatArray, high: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield numbers of given boxes and of items in leaves that they overlap."""
        return self.pairs(len(low), lambda k, a, b: np.asarray(((low[k] <= b) & (high[k] >= a)).all(axis=1)))

    @cached_property
    def _known(self) -> Any:
        from scipy.spatial import cKDTree  # takes as long to import as all of the geometry

        return cKDTree(self._places)

    def is_within(self, X: FloatArray, axis: int, meets: Callable[[IntArray, IntArray], BoolArray]) -> BoolArray:
        """Tell which points are within closed curves or surfaces: half lines along an axis meet these in an odd number.

        ``meets`` tells whether those of points meet items, both by their numbers.
        """
        met = np.zeros(len(X), dtype=np.int64)
        for rows, items in self.beyond(X, axis):
            np.add.at(met, rows[meets(rows, items)], 1)
        return np.asarray(met % 2 == 1)

    def beyond(self, X: FloatArray, axis: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield numbers of points, and of items in leaves that may be further along an axis."""
        top = np.where(np.arange(X.shape[1]) == axis, np.inf, X)
        return self.overlapping(X, top)

    def nearest(
        self, X: FloatArray, distance: Callable[[IntArray, IntArray], FloatArray], reach: float = np.inf
    ) -> tuple[FloatArray, IntArray]:
        """Return the distance of each point from the nearest item, and that item.

        Further away than ``reach`` both are those of an item nearby, which takes less time to find. ``distance`` gets
        the numbers of points and items.
        """
        guess = np.asarray(self._known.query(X)[1])
        bound = distance(np.arange(len(X)), guess)
        limit = np.minimum(bound, reach) * (1.0 + 1e-9)
        best, item = np.full(len(X), np.inf), guess.copy()

        def meets(k: IntArray, low: FloatArray, high: FloatArray) -> BoolArray:
            gap = np.maximum(np.maximum(low - X[k], X[k] - high), 0.0)
            return np.asarray(np.linalg.norm(gap, axis=1) <= np.minimum(limit[k], best[k]))

        for rows, items in self.pairs(len(X), meets):
            found = distance(rows, items)
            order = np.lexsort((found, rows))
            first = order[np.append(True, np.diff(rows[order]) > 0)]
            better = first[found[first] < best[rows[first]]]
            best[rows[better]], item[rows[better]] = found[better], items[better]
        return np.where(np.isfinite(best), best, bound), item


def bundled(places: FloatArray, size: int) -> list[IntArray]:
    """Return the numbers of points in bundles of up to ``size`` that are close together.

    >>> [own.tolist() for own in bundled(np.array([[0.0], [9.0], [1.0], [8.0]]), 2)]
    [[3, 1], [0, 2]]
    """
    found, todo = [], [np.arange(len(places))]
    while todo:
        own = todo.pop()
        along = places[own, int(np.ptp(places[own], axis=0).argmax())]
        if len(own) <= size:
            found.append(own[np.argsort(along, kind="stable")])
        else:
            todo += np.split(own[np.argpartition(along, len(own) // 2)], [len(own) // 2])
    return found
