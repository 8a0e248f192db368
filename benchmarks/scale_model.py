"""How much an even tree of cells takes: operations, numbers held and numbers moved, counted without solving it.

The counts are those of the elimination. A fitted rate for each kind of work turns them into seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np

Counts = tuple[int, ...]
Sides = tuple[tuple[bool, bool], ...]


@dataclass(frozen=True)
class Leaf:
    """Sizes of the system of one cell inside: rows of equations, other rows, own unknowns, and those of a face."""

    equations: int
    rows: int
    own: int
    face: int
    dimension: int

    @property
    def flops(self) -> float:
        """Operations of its Gram matrix and its elimination."""
        others = 2 * self.dimension * self.face
        width = self.own + others
        grams = self.equations * self.own**2 + self.rows * width**2
        return grams + self.own**3 / 3 + self.own**2 * others + self.own * others**2

    @property
    def numbers(self) -> float:
        """Numbers that are kept for it: factor and front. All cells share what their few coefficients combine."""
        others = 2 * self.dimension * self.face
        return self.own * (self.own + others) + others**2


@dataclass(frozen=True)
class Total:
    """Counts of a whole tree."""

    cells: int
    weights: int
    leaf_flops: float
    union_flops: float
    numbers: float  # that all factors hold
    widest: int  # unknowns of the largest union
    above: float  # operations of unions above the subtrees
    moved: float  # numbers in the fronts of all subtrees

    @property
    def flops(self) -> float:
        """All operations."""
        return self.leaf_flops + self.union_flops

    def plus(self, other: Total) -> Total:
        """Return the counts of both."""
        sums = [getattr(self, own.name) + getattr(other, own.name) for own in fields(self)]
        return replace(Total(*sums), widest=max(self.widest, other.widest))


def total(leaf: Leaf, side: int, subtrees: int = 1) -> Total:
    """Return the counts of an even tree with so many cells along each side, cut into so many subtrees.

    >>> found = total(Leaf(150, 50, 100, 20, 2), 2)
    >>> found.cells, found.weights, found.widest
    (4, 400, 60)
    """
    depth = math.ceil(math.log2(subtrees))

    @cache
    def joined(counts: Counts, outer: Sides, level: int) -> Total:
        """Return the counts of the unions in a block of cells."""
        left = leaf.face * sum(
            (2 - sum(outer[axis])) * math.prod(n for k, n in enumerate(counts) if k != axis)
            for axis in range(len(counts))
        )
        moved = float(left**2) if level == depth else 0.0
        axis = int(np.argmax(counts))
        if counts[axis] == 1:
            return Total(1, leaf.own, leaf.flops, 0.0, leaf.numbers, 0, 0.0, moved)
        gone = leaf.face * math.prod(n for k, n in enumerate(counts) if k != axis)
        flops = gone**3 / 3 + gone**2 * left + gone * left**2
        own_numbers = float(gone**2 + gone * left + left**2)
        found = Total(0, 0, 0.0, flops, own_numbers, gone + left, flops if level < depth else 0.0, moved)
        first = counts[axis] // 2
        for own, inner in ((first, 1), (counts[axis] - first, 0)):
            half = tuple(own if k == axis else n for k, n in enumerate(counts))
            ends = tuple(
                (end[0] and inner == 1, end[1] and inner == 0) if k == axis else end for k, end in enumerate(outer)
            )
            found = found.plus(joined(half, ends, level + 1))
        return found

    return joined((side,) * leaf.dimension, ((True, True),) * leaf.dimension, 0)


@dataclass(frozen=True)
class Rates:
    """Seconds of a cell, and seconds of an operation in unions, fitted to measured runs."""

    per_cell: float
    per_operation: float

    def seconds(self, counts: Total, workers: int, above: float) -> float:
        """Return the seconds of a solve: workers share the subtrees; above, an operation takes so many seconds."""
        below = self.per_cell * counts.cells + self.per_operation * (counts.union_flops - counts.above)
        return below / workers + above * counts.above


def fitted(runs: Sequence[tuple[Total, float]]) -> Rates:
    """Return the rates that fit measured seconds best, each run with the same weight.

    >>> runs = [
    ...     (count, 0.01 * count.cells + 1e-9 * count.union_flops)
    ...     for count in (total(Leaf(150, 50, 100, 20, 2), n) for n in (4, 16, 64))
    ... ]
    >>> rates = fitted(runs)
    >>> round(rates.per_cell, 6), round(rates.per_operation * 1e9, 6)
    (0.01, 1.0)
    """
    from scipy.optimize import nnls

    matrix = np.array([[own.cells / seconds, own.union_flops / seconds] for own, seconds in runs])
    scales = matrix.max(axis=0)
    found, _ = nnls(matrix / scales, np.ones(len(runs)))
    return Rates(*(found / scales).tolist())


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the power of the size with which values grow.

    >>> round(exponent([1, 10, 100], [2, 20, 200]), 6)
    1.0
    """
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
