"""A small network on every cell of a tree: what a solution by cells is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from pibls.checks import FloatArray
from pibls.errors import FeatureError
from pibls.features import BroadNetwork, MultiIndex

__all__ = ["CellNetwork"]

IntArray = npt.NDArray[np.int64]

_CHUNK = 2**21


@dataclass(frozen=True, eq=False)
class CellNetwork:
    """Fields that are the same small network on every cell, each with weights and coordinates of its own.

    Its nodes are the fields themselves, one column each.

    Parameters
    ----------
    reference
        The network, in the coordinates of a cell, which go from −1 to 1.
    tree
        One row per box: the axis across which it is halved and the numbers of its halves; for a cell −1, and the numbers
        of its first part and of the one after its last. Shape (boxes, 3).
    cuts
        Where each box is halved.
    centers, halves
        Middle and half sides of the box of coordinates of every part, shape (parts, d).
    weights
        Output weights of every part, shape (parts, fields, nodes).
    samples, owners
        Points in cells that have several parts, and the part that each is in: other points belong to the nearest.
    """

    reference: BroadNetwork
    tree: IntArray
    cuts: FloatArray
    centers: FloatArray
    halves: FloatArray
    weights: FloatArray
    samples: FloatArray
    owners: IntArray

    def __post_init__(self) -> None:
        parts, boxes, d = len(self.centers), len(self.tree), self.reference.dimension
        fits = (
            parts > 0
            and boxes > 0
            and self.tree.shape == (boxes, 3)
            and self.cuts.shape == (boxes,)
            and self.centers.shape == self.halves.shape == (parts, d)
            and self.weights.ndim == 3
            and self.weights.shape[::2] == (parts, self.reference.size)
            and self.samples.shape == (len(self.owners), d)
            and bool((self.halves > 0).all())
            and bool((self.tree[:, 0] < d).all())
            and self._is_tree()
        )
        if not fits:
            raise FeatureError(
                f"The arrays of CellNetwork must fit together: {boxes} boxes, {parts} parts in {d} coordinates, "
                f"weights of shape {self.weights.shape}. Use those of one solve."
            )

    def _is_tree(self) -> bool:
        """Tell whether every box is followed by its halves, and every cell has parts that exist."""
        split = self.tree[:, 0] >= 0
        numbers = np.arange(len(self.tree))
        below = self.tree[split, 1:]
        ends = self.tree[~split, 1:]
        after = (below > numbers[split, None]).all() and (below < len(self.tree)).all()
        return bool(after and (ends >= 0).all() and (ends <= len(self.centers)).all() and (ends[:, 0] <= ends[:, 1]).all())

    @property
    def size(self) -> int:
        """Number of fields."""
        return int(self.weights.shape[1])

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return int(self.reference.dimension)

    @property
    def features(self) -> int:
        """Number of weights in all, per field."""
        return int(len(self.centers) * self.reference.size)

    @property
    def cells(self) -> int:
        """Number of parts of cells."""
        return len(self.centers)

    @cached_property
    def center(self) -> FloatArray:
        """The middle of the cells."""
        low, high = (self.centers - self.halves).min(axis=0), (self.centers + self.halves).max(axis=0)
        return np.asarray((low + high) / 2)

    def locate(self, X: FloatArray) -> IntArray:
        """Return the number of the part that each point is in, or nearest to."""
        box = np.zeros(len(X), dtype=np.int64)
        while True:
            moving = np.flatnonzero(self.tree[box, 0] >= 0)
            if not len(moving):
                break
            here = box[moving]
            above = X[moving, self.tree[here, 0]] > self.cuts[here]
            box[moving] = np.where(above, self.tree[here, 2], self.tree[here, 1])
        first, stop = self.tree[box, 1], self.tree[box, 2]
        part = first.copy()
        several = np.flatnonzero(stop - first > 1)
        if len(several):
            part[several] = self._nearest_sample(X[several], first[several], stop[several])
        for row in np.flatnonzero(stop == first):
            outside = np.maximum(np.abs(X[row] - self.centers) / self.halves - 1.0, 0.0)
            part[row] = int((outside * self.halves**0).max(axis=1).argmin())
        return part

    def _nearest_sample(self, X: FloatArray, first: IntArray, stop: IntArray) -> IntArray:
        found = first.copy()
        for start in np.unique(first):
            rows = np.flatnonzero(first == start)
            own = (self.owners >= start) & (self.owners < stop[rows[0]])
            scale = self.halves[start : stop[rows[0]]].max(axis=0)
            found[rows] = self.owners[own][cKDTree(self.samples[own] / scale).query(X[rows] / scale)[1]]
        return found

    def evaluate(self, X: FloatArray, multi_indices: Iterable[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the fields at points: one array (n, fields) per multi-index."""
        X, wanted = np.asarray(X, dtype=np.float64), list(multi_indices)
        result = {index: np.empty((len(X), self.size)) for index in wanted}
        parts = self.locate(X)
        step = max(1, _CHUNK // (self.reference.size * self.size))
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            own = parts[rows]
            nodes = self.reference.evaluate((X[rows] - self.centers[own]) / self.halves[own], wanted)
            weights = self.weights[own]
            for index in wanted:
                scale = np.prod(self.halves[own] ** np.array(index), axis=1)
                result[index][rows] = np.einsum("nm,nfm->nf", nodes[index], weights) / scale[:, None]
        return result

    def boxes(self) -> list[tuple[FloatArray, FloatArray]]:
        """Return lowest and highest corner of every part's box, for drawing."""
        return [(c - h, c + h) for c, h in zip(self.centers, self.halves, strict=True)]


def empty_samples(dimension: int) -> tuple[FloatArray, Any]:
    """Return no samples at all, where every cell is one part."""
    return np.empty((0, dimension)), np.empty(0, dtype=np.int64)
