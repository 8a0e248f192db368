"""A small network on every cell of a tree: the form of a solution by cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pibls.checks import FloatArray, IntArray
from pibls.errors import FeatureError
from pibls.features import BroadNetwork, MultiIndex
from pibls.geometry.sight import owners_in_sight
from pibls.problem.evaluate import Function

_FEWEST = 16  # points in a cell, to measure an error by
_LOCATED = 2**16  # points that go down the tree together
ENTRIES = 2**18  # numbers in a temporary array, so that it stays in the cache of a core


@dataclass(frozen=True, eq=False, repr=False)
class CellNetwork:
    """Fields that are the same small network on every cell, each with weights and coordinates of its own.

    Its nodes are the fields themselves, one column each. The tree has a row for every box: the axis across which it is
    halved and the numbers of its halves; for a cell −1, and the numbers of its first part and of the one after its
    last. A point in a cell with several parts belongs to that of the nearest sample of its own kind.

    The sign of x: cells left and right of zero, and a constant node with the weights −1 and 1.

    >>> from pibls.features import FeatureGroup
    >>> one = BroadNetwork([0.0], [FeatureGroup("sin", [[0.0]], [np.pi / 2])])
    >>> tree, cuts = np.array([[0, 1, 2], [-1, 0, 1], [-1, 1, 2]]), np.zeros(3)
    >>> none = np.empty((0, 1)), np.empty(0, dtype=np.int64)
    >>> centers, halves, weights = np.array([[-0.5], [0.5]]), np.full((2, 1), 0.5), np.array([[[-1.0]], [[1.0]]])
    >>> sign = CellNetwork(one, tree, cuts, centers, halves, weights, *none)
    >>> sign.evaluate(np.array([[-0.3], [0.2]]), [(0,)])[(0,)].ravel().tolist()
    [-1.0, 1.0]
    """

    reference: BroadNetwork  # in the coordinates of a cell, which go from −1 to 1
    tree: IntArray  # (boxes, 3)
    cuts: FloatArray  # where each box is halved
    centers: FloatArray  # middle of the box of coordinates of every part, (parts, d)
    halves: FloatArray  # half its sides
    weights: FloatArray  # output weights of every part, (parts, fields, nodes)
    samples: FloatArray  # points in cells that have several parts
    owners: IntArray  # the part that each of them is in
    kinds: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # of the parts
    branch: Function | None = None  # tells the kind of a point

    def checked(self) -> CellNetwork:
        """Return the network, or refuse arrays that do not belong together, as those of a file may not."""
        if not (self._fits() and self._is_tree()):
            raise FeatureError(
                f"The arrays of CellNetwork must fit together: {len(self.tree)} boxes, {len(self.centers)} parts "
                f"in {self.dimension} coordinates, weights of shape {self.weights.shape}. Use those of one solve."
            )
        return self

    def _fits(self) -> bool:
        """Tell whether shapes, types and sizes of the arrays belong together."""
        parts, boxes, d = len(self.centers), len(self.tree), self.reference.dimension
        return (
            parts > 0
            and self.tree.shape == (boxes, 3)
            and self.cuts.shape == (boxes,)
            and self.centers.shape == self.halves.shape == (parts, d)
            and self.weights.ndim == 3
            and self.weights.shape[::2] == (parts, self.reference.size)
            and self.owners.ndim == 1
            and self.samples.shape == (len(self.owners), d)
            and (self.branch is None or self.kinds.shape == (parts,))
            and all(np.isfinite(array).all() for array in (self.cuts, self.centers, self.halves, self.samples))
            and all(np.issubdtype(array.dtype, np.integer) for array in (self.tree, self.owners))
            and bool((self.halves > 0).all())
            and bool(((self.owners >= 0) & (self.owners < parts)).all())
        )

    def _is_tree(self) -> bool:
        """Tell whether every box but the first is half of one before it, and every part is in one cell."""
        axis, first, second = self.tree.T
        numbers, split = np.arange(len(self.tree)), axis >= 0
        halves = self.tree[split, 1:]
        starts, stops = first[~split], second[~split]
        counts = stops - starts
        if not (
            bool(((axis >= -1) & (axis < self.dimension)).all())
            and bool((halves > numbers[split, None]).all())
            and np.array_equal(np.sort(halves.ravel()), numbers[1:])
            and bool((counts >= 0).all())
            and int(counts.sum()) == len(self.centers)
        ):
            return False
        # Cells one after the other share out the parts; those with several have samples to tell them apart.
        order = np.lexsort((stops, starts))
        shared = np.array_equal(starts[order], np.concatenate([[0], stops[order]])[:-1])
        crowded = np.flatnonzero(np.repeat(counts[order] > 1, counts[order]))
        return shared and bool(np.isin(crowded, self.owners).all())

    def __repr__(self) -> str:
        return f"CellNetwork({self.size} fields, {self.cells} cells)"

    @property
    def size(self) -> int:
        """Number of fields."""
        return int(self.weights.shape[1])

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return int(self.reference.dimension)

    @property
    def cells(self) -> int:
        """Number of parts of cells."""
        return len(self.centers)

    @cached_property
    def depth(self) -> int:
        """How many times the box of the deepest cell was halved."""
        depths = np.zeros(len(self.tree), dtype=np.int64)
        for number in np.flatnonzero(self.tree[:, 0] >= 0):
            depths[self.tree[number, 1:]] = depths[number] + 1
        return int(depths.max())

    def locate(self, X: FloatArray) -> IntArray:
        """Return the number of the part that each point is in, or nearest to."""
        part = np.empty(len(X), dtype=np.int64)
        for start in range(0, len(X), _LOCATED):
            rows = slice(start, start + _LOCATED)
            part[rows] = self._located(X[rows])
        return part

    def _located(self, X: FloatArray) -> IntArray:
        box = self._descend(X)
        first, stop = self._range(box)
        empty = np.flatnonzero(stop == first)
        if len(empty):
            box[empty] = self._homes[self._nearest_part(X[empty])]
            first, stop = self._range(box)
        crowded = np.flatnonzero(stop - first > 1)
        for cell in np.unique(box[crowded]):
            rows = crowded[box[crowded] == cell]
            sides = self._sides(X[rows])
            for side in np.unique(sides).tolist():
                own = rows[sides == side]
                samples, owners, scale = self._crowd(int(cell), side)
                clear = None if self.branch is None else lambda Y, side=side: self._sides(Y) == side
                first[own] = owners_in_sight(samples, owners, scale, X[own], clear)
        return first

    def _sides(self, X: FloatArray) -> IntArray:
        """Return the kinds of points."""
        return np.zeros(len(X), dtype=np.int64) if self.branch is None else self.branch(X).astype(np.int64)

    def _range(self, box: IntArray) -> tuple[IntArray, IntArray]:
        """Return the numbers of the first part of cells, and of the one after the last."""
        return self.tree[box, 1], self.tree[box, 2]

    def _descend(self, X: FloatArray) -> IntArray:
        """Return the number of the box that each point ends in."""
        box = np.zeros(len(X), dtype=np.int64)
        moving = np.arange(len(X)) if self.tree[0, 0] >= 0 else np.empty(0, dtype=np.int64)
        while len(moving):
            here = box[moving]
            above = X[moving, self.tree[here, 0]] > self.cuts[here]
            box[moving] = there = np.where(above, self.tree[here, 2], self.tree[here, 1])
            moving = moving[self.tree[there, 0] >= 0]
        return box

    @cached_property
    def _homes(self) -> IntArray:
        """The number of the box that each part is in."""
        cells = np.flatnonzero(self.tree[:, 0] < 0)
        cells = cells[np.argsort(self.tree[cells, 1], kind="stable")]
        return np.repeat(cells, self.tree[cells, 2] - self.tree[cells, 1])

    def _nearest_part(self, X: FloatArray) -> IntArray:
        """Return the part whose box is nearest to each point, as seen in the picture of all parts."""
        ends = self.centers - self.halves, self.centers + self.halves
        scale = ends[1].max(axis=0) - ends[0].min(axis=0)
        nearest = np.empty(len(X), dtype=np.int64)
        step = max(1, ENTRIES // len(self.centers))
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            square = np.zeros((len(X[rows]), len(self.centers)))
            for axis in range(self.dimension):
                gap = np.abs(X[rows, axis, None] - self.centers[:, axis]) - self.halves[:, axis]
                square += (np.maximum(gap, 0.0) / scale[axis]) ** 2
            nearest[rows] = square.argmin(axis=1)
        return nearest

    @cached_property
    def _crowds(self) -> dict[tuple[int, int], tuple[FloatArray, IntArray, FloatArray]]:
        return {}

    def _crowd(self, cell: int, side: int) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return the samples of one kind in a cell, or all if there are none, their parts, and the size of the cell."""
        if (cell, side) not in self._crowds:
            first, stop = self.tree[cell, 1:]
            own = (self.owners >= first) & (self.owners < stop)
            there = own & (self.kinds[self.owners] == side) if self.branch is not None else own
            own = there if there.any() else own
            scale = self.halves[first:stop].max(axis=0)
            self._crowds[cell, side] = self.samples[own], self.owners[own], scale
        return self._crowds[cell, side]

    def evaluate(
        self, X: FloatArray, multi_indices: Iterable[MultiIndex], parts: IntArray | None = None
    ) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the fields at points: one array (n, fields) per multi-index.

        Where parts meet, ``parts`` are the numbers of those that are meant.
        """
        X, wanted = np.asarray(X, dtype=np.float64), list(multi_indices)
        result = {index: np.empty((len(X), self.size)) for index in wanted}
        parts = self.locate(X) if parts is None else parts
        step = max(2, ENTRIES // self.reference.size)
        # Beside a tiny cell high derivatives overflow: whoever asked for them finds infinities.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                own = parts[rows]
                nodes = self.nodes((X[rows] - self.centers[own]) / self.halves[own], wanted)
                weights = self.weights[own]
                for index in wanted:
                    scale = np.prod(self.halves[own] ** np.array(index), axis=1)
                    result[index][rows] = np.einsum("nm,nfm->nf", nodes[index], weights) / scale[:, None]
        return result

    def nodes(self, U: FloatArray, wanted: list[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the nodes, the same bits for a point alone as among others."""
        # A matrix of one row is multiplied by another routine, which rounds differently: it never comes alone.
        many = np.repeat(U, 2, axis=0) if len(U) == 1 else U
        found = self.reference.combine(many, [{index: 1.0} for index in wanted], chunk_rows=max(1, len(many)))
        return {index: values[: len(U)] for index, values in zip(wanted, found, strict=True)}

    def boxes(self, bounds: FloatArray) -> FloatArray:
        """Return the bounds of every box of the tree, shape (boxes, d, 2), from those of the first.

        >>> from pibls.features import FeatureGroup
        >>> one = BroadNetwork([0.0], [FeatureGroup("sin", [[0.0]], [np.pi / 2])])
        >>> tree, none = np.array([[0, 1, 2], [-1, 0, 1], [-1, 1, 2]]), (np.empty((0, 1)), np.empty(0, dtype=np.int64))
        >>> network = CellNetwork(one, tree, np.full(3, 0.25), *np.ones((2, 2, 1)), np.ones((2, 1, 1)), *none)
        >>> network.boxes([[0, 1]]).squeeze().tolist()
        [[0.0, 1.0], [0.0, 0.25], [0.25, 1.0]]
        """
        found = np.empty((len(self.tree), self.dimension, 2))
        found[0] = bounds
        for number in np.flatnonzero(self.tree[:, 0] >= 0):
            axis, *halves = self.tree[number]
            for side, half in enumerate(halves):
                found[half] = found[number]
                found[half, axis, 1 - side] = self.cuts[number]
        return found

    def cell_boxes(self, bounds: FloatArray) -> FloatArray:
        """Return the bounds of every cell that has parts, shape (cells, d, 2), from those of the first box."""
        return self.boxes(bounds)[(self.tree[:, 0] < 0) & (self.tree[:, 1] < self.tree[:, 2])]

    def spread(self, bounds: FloatArray, n: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return about ``n`` random points, equally many in every cell, at least a few, and the volume of each.

        Points that are even over the domain miss what happens in small cells. Some may be outside the domain.
        """
        boxes = self.cell_boxes(bounds)
        count = max(_FEWEST, n // len(boxes))
        low, high = (np.repeat(side, count, axis=0) for side in (boxes[..., 0], boxes[..., 1]))
        X = np.random.default_rng(seed).uniform(low, high)
        return X, np.prod(high - low, axis=1) / count
