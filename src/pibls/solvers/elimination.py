"""Least squares along a tree by orthogonal elimination: triangles that take in rows, and triangles that merge.

A front is a triangle of rows over the unknowns that a branch of the tree still shares with the rest. Its columns stand
in the order in which they will be eliminated, so that two fronts are merged by rotating their first rows only.
Nothing is squared: branches of very different size keep their digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from pibls.checks import FloatArray
from pibls.errors import SolveError
from pibls.limits import require_time

__all__ = ["Eliminated", "Leaf", "Triangle", "absorb", "counted", "merge", "merging"]

_BLOCK = 32
_LARGE, _SMALL = 0.25, 50.0  # what an operation counts in blocks of any size, and beside that by their size
_SINGULAR = 1e-14


def counted(operations: float, size: float) -> float:
    """Return what rotations count that go through blocks of some size: in large ones they are many times as fast.

    >>> counted(1e9, 50), counted(1e9, 500)
    (1250000000.0, 350000000.0)
    """
    return (_LARGE + _SMALL / max(size, 1.0)) * operations


def merging(shared: float, width: float) -> float:
    """Return what :func:`merge` counts, by the unknowns that are eliminated and those that are left."""
    return counted(2.0 * shared * width * (shared + width) + 2.0 / 3.0 * shared**3, shared)


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Unknowns that follow from others: ``triangle · own + coupling · others = rhs``."""

    triangle: FloatArray
    coupling: FloatArray
    rhs: FloatArray

    @cached_property
    def _least(self) -> FloatArray | None:
        """What is too small on the diagonal made large enough, and the rest left out; None where all is large."""
        diagonal = np.abs(self.triangle.diagonal())
        least = _SINGULAR * diagonal.max()
        return None if diagonal.min() > least else np.diag(np.where(diagonal <= least, least, 0.0))

    def solve(self, others: FloatArray, rhs: FloatArray | None = None) -> FloatArray:
        """Return the unknowns, given the others; what nothing determines is as small as it can be.

        With a right-hand side of one's own it is as large as that makes it: this is how to find out.
        """
        right = (self.rhs if rhs is None else rhs) - self.coupling @ others
        if not len(self.triangle):
            return right
        if self._least is not None:
            if rhs is not None:
                return np.asarray(solve_triangular(self.triangle + self._least, right, check_finite=False))
            if not np.isfinite(self.triangle).all():
                raise SolveError("The equations are not finite where they are linearised. Check starts and bounds.")
            return np.asarray(np.linalg.lstsq(self.triangle, right, rcond=_SINGULAR)[0])
        return np.asarray(lapack.dtrtrs(self.triangle, right)[0])


@dataclass(frozen=True, eq=False)
class Triangle:
    """Rows rotated into a triangle over their unknowns, once for any right-hand side.

    Attributes
    ----------
    upper
        The triangle.
    order
        The column that each of its unknowns was.
    """

    upper: FloatArray
    order: Any
    _rotations: tuple[FloatArray, FloatArray]
    _damped: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, rows: FloatArray, ridge: float, order: Any = None) -> Triangle:
        """Factorise rows, and those of a ridge, which say that every unknown is zero, below them.

        Left out, the order is such that unknowns come first that the rows determine best.

        >>> triangle = Triangle.of(np.array([[3.0, 6.0], [4.0, 8.0]]), 1e-9)
        >>> np.abs(triangle.upper).round(6).tolist(), triangle.order.tolist()
        ([[10.0, 5.0], [0.0, 0.0]], [1, 0])
        >>> right, lost = triangle.rotated(np.array([[1.0], [1.0]]))
        >>> abs(float(right[0, 0])).__round__(6), round(lost, 6)
        (1.4, 0.04)
        """
        width = rows.shape[1]
        if len(rows) < width:
            rows = np.vstack([rows, np.zeros((width - len(rows), width))])
        # Half of what finds the order goes through the matrix column by column.
        require_time((8.0 if order is None else 2.0) * len(rows) * width**2 + width**3)
        if order is None:
            factored, columns, scales, _, info = lapack.dgeqp3(rows.copy(order="F"), 64 * width, overwrite_a=True)
            order = columns - 1
        else:
            factored, scales, _, info = lapack.dgeqrf(rows.T[order].T, 64 * width, overwrite_a=True)
        upper = np.triu(factored[:width]).copy(order="F")
        least = np.diag(np.full(width, ridge)).copy(order="F")
        block = min(_BLOCK, width)
        upper, *damped, more = lapack.dtpqrt(width, block, upper, least, overwrite_a=True, overwrite_b=True)
        if info or more:
            raise SolveError("A front could not be factorised; its rows are not finite.")
        return cls(upper, order, (factored, scales), (damped[0], damped[1]))

    def rotated(self, right: FloatArray) -> tuple[FloatArray, float]:
        """Return what right-hand sides become, and the square sum of what nothing can fulfil of the first one."""
        (factored, scales), width, sides = self._rotations, len(self.upper), right.shape[1]
        right = np.vstack([right, np.zeros((len(factored) - len(right), sides))])
        found, _, _ = lapack.dormqr("L", "T", factored, scales, right, 64 * max(64, sides))
        none = np.zeros((width, sides))
        top, damped, _ = lapack.dtpmqrt(width, *self._damped, found[:width], none, side="L", trans="T")
        return top, float(np.square(found[width:, 0]).sum() + np.square(damped[:, 0]).sum())


def absorb(
    upper: FloatArray, top: FloatArray, rows: FloatArray, bottom: FloatArray, *, triangular: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rotate rows into a triangle, and everything right of both along with them.

    What is passed is overwritten where it is stored by columns.

    Parameters
    ----------
    upper, top
        A triangle, and the columns right of it.
    rows, bottom
        The rows to take in, and the columns right of them.
    triangular
        How many of the last rows form a triangle themselves.

    Returns
    -------
    The new triangle, and what has become of the columns right of it, and of those right of the rows.
    """
    if not len(rows) or not len(upper):
        return upper, top, bottom
    block = min(_BLOCK, len(upper))
    require_time(2.0 * len(rows) * len(upper) ** 2)
    new, reflectors, factors, info = lapack.dtpqrt(triangular, block, upper, rows, overwrite_a=True, overwrite_b=True)
    if info != 0:
        raise SolveError("A front could not be factorised; its rows are not finite.")
    if top.shape[1]:
        top, bottom, _ = lapack.dtpmqrt(
            triangular, reflectors, factors, top, bottom, side="L", trans="T", overwrite_a=True, overwrite_b=True
        )
    return new, top, bottom


@dataclass(frozen=True, eq=False)
class Leaf:
    """Rows of unknowns of its own and others, factorised once for any right-hand side.

    Attributes
    ----------
    triangle, coupling
        The unknowns of its own follow from the others.
    front
        What is left for the others, a triangle.
    """

    triangle: FloatArray
    coupling: FloatArray
    front: FloatArray
    _absorbed: tuple[FloatArray, FloatArray]
    _left: tuple[FloatArray, FloatArray]
    _turned: tuple[FloatArray, ...] = ()  # what rotates the front of another order into this one

    @property
    def size(self) -> int:
        """How many numbers it holds that the one in another order does not."""
        common = () if self._turned else (self.triangle, *self._absorbed, *self._left)
        return sum(array.size for array in (self.coupling, self.front, *self._turned, *common))

    @property
    def count(self) -> int:
        """How many rows there were beside the triangle."""
        return len(self._absorbed[0])

    @classmethod
    def of(cls, upper: FloatArray, rows: FloatArray, others: FloatArray) -> Leaf:
        """Factorise a triangle of the unknowns of its own, and further rows of these and of the others.

        >>> leaf = Leaf.of(np.eye(1), np.ones((2, 1)), np.array([[1.0], [-1.0]]))
        >>> eliminated, front, lost = leaf.solved(np.zeros((1, 1)), np.array([[2.0], [0.0]]))
        >>> left = front[:, 1:] / front[:, :1]
        >>> eliminated.solve(left).round(6).tolist(), left.round(6).tolist(), round(lost, 6)
        ([[0.666667]], [[1.0]], 0.666667)
        """
        width = others.shape[1]
        block = min(_BLOCK, len(upper))
        require_time(2.0 * len(rows) * upper.shape[1] * (len(upper) + upper.shape[1]))
        new, reflectors, factors, info = lapack.dtpqrt(0, block, upper, rows, overwrite_b=True)
        top, bottom, more = lapack.dtpmqrt(
            0, reflectors, factors, np.zeros((len(upper), width)), others, side="L", trans="T", overwrite_b=True
        )
        factored, scales, _, last = lapack.dgeqrf(bottom, overwrite_a=True)
        if info or more or last:
            raise SolveError("A front could not be factorised; its rows are not finite.")
        front = np.zeros((width, width), order="F")
        found = np.triu(factored[:width])
        front[: len(found)] = found
        return cls(new, top, front, (reflectors, factors), (factored[:, : len(scales)], scales))

    def ordered(self, columns: Any) -> Leaf:
        """Return the same with the others in another order: ``columns`` are the places they had.

        >>> leaf = Leaf.of(np.eye(1), np.ones((2, 1)), np.array([[1.0, 0.0], [-1.0, 2.0]]))
        >>> right, below = np.ones((1, 1)), np.array([[2.0], [0.0]])
        >>> fronts = [own.solved(right, below)[1] for own in (leaf, leaf.ordered([1, 0]))]
        >>> [np.linalg.solve(front[:, :2], front[:, 2]).round(6).tolist() for front in fronts]
        [[1.0, 0.0], [0.0, 1.0]]
        """
        factored, scales, _, info = lapack.dgeqrf(self.front[:, columns])
        if info:
            raise SolveError("A front could not be factorised; its rows are not finite.")
        front = np.asfortranarray(np.triu(factored))
        return replace(self, coupling=self.coupling[:, columns], front=front, _turned=(factored, scales))

    def solved(self, right: FloatArray, below: FloatArray) -> tuple[Eliminated, FloatArray, float]:
        """Return the unknowns of its own, the front with right-hand sides appended, and what nothing can fulfil.

        Of several right-hand sides, the last of these is that of the first.
        """
        top, bottom, _ = lapack.dtpmqrt(0, *self._absorbed, right, below, side="L", trans="T")
        rest, _, _ = lapack.dormqr("L", "T", *self._left, bottom, max(64, 64 * bottom.shape[1], len(bottom)))
        width = len(self.front)
        front = np.zeros((width, width + right.shape[1]), order="F")
        front[:, :width] = self.front
        front[: len(rest), width:] = rest[:width]
        if self._turned:
            workspace = 64 * max(64, right.shape[1])
            front[:, width:], _, _ = lapack.dormqr("L", "T", *self._turned, front[:, width:], workspace)
        return Eliminated(self.triangle, self.coupling, top), front, float(np.square(rest[width:, 0]).sum())


def merge(
    one: FloatArray, two: FloatArray, shared: int, places: tuple[Any, Any], width: int, sums: FloatArray
) -> tuple[Eliminated, FloatArray, float]:
    """Merge two fronts and eliminate the unknowns they share.

    The first unknowns of a front are *sums*: those of the merged front are the ones of both fronts added up.

    Parameters
    ----------
    one, two
        Triangles with right-hand sides appended. After the sums come the shared unknowns, in the same order.
    shared
        How many those are.
    places
        For each front, where its other unknowns stand among those of the merged front, in increasing order; both may
        have some of them.
    width
        How many unknowns the merged front has, beside its sums.
    sums
        How much each sum of the merged front, which should be zero, counts.

    Returns
    -------
    The unknowns that are gone (the sums of the second front, then the shared ones), the merged front, and the square
    sum of the rows that nothing can fulfil any more.
    """
    count, sides = len(sums), one.shape[1] - len(one)
    gone, left = count + shared, count + width
    fronts = (one, two)
    last = slice(left, left + sides)
    runs = [[*_runs(place + count), (last, slice(len(place), len(place) + sides))] for place in places]
    tops = [_placed(front[:gone, gone:], own, left + sides) for front, own in zip(fronts, runs, strict=True)]
    # The sums of the first front are those of the merged one less those of the second.
    first = one[:gone, :gone].copy(order="F")
    tops[0][:, :count] = first[:, :count]
    first[:, :count] *= -1.0
    second = two[:gone, :gone].copy(order="F")
    upper, top, bottom = absorb(first, tops[0], second, tops[1], triangular=gone)
    eliminated = Eliminated(upper, top[:, :left], top[:, left:])
    rest = np.zeros((left, left + sides), order="F")
    rest[np.arange(count), np.arange(count)] = sums
    # What both fronts still share with others has rows in both: those of the second one are rotated into the first's.
    held = np.zeros(width, dtype=bool)
    held[places[0]] = True
    again = held[places[1]]
    fresh = [runs[0][:-1], _runs(places[1] + count, ~again) if again.any() else runs[1][:-1]]
    for front, own, rows in zip(fronts, runs, fresh, strict=True):
        for into, taken in own:
            for down, through in rows:
                rest[down, into] = front[gone:, gone:][through, taken]
    if again.any():
        bottom = np.asfortranarray(np.vstack([bottom, _placed(two[gone:, gone:][again], runs[1], left + sides)]))
    if not left:
        return eliminated, rest, float(np.square(bottom).sum(axis=0)[0]) if sides and len(bottom) else 0.0
    _, _, over = absorb(rest[:, :left], rest[:, left:], bottom[:, :left], bottom[:, left:])
    lost = float(np.square(over[:, 0]).sum()) if len(over) and sides else 0.0
    return eliminated, rest, lost


def _placed(block: FloatArray, runs: list[tuple[slice, slice]], width: int) -> FloatArray:
    found = np.zeros((len(block), width), order="F")
    for into, taken in runs:
        found[:, into] = block[:, taken]
    return found


def _runs(places: Any, chosen: Any = None) -> list[tuple[slice, slice]]:
    """Return increasing places, or some of them, as runs: where each stands, and which of the places it takes in."""
    numbers = np.arange(len(places)) if chosen is None else np.flatnonzero(chosen)
    if not len(numbers):
        return []
    own = places[numbers]
    breaks = (own[1:] - own[:-1] != 1) | (numbers[1:] - numbers[:-1] != 1)
    starts = [0, *(np.flatnonzero(breaks) + 1).tolist()]
    lengths = [b - a for a, b in pairwise([*starts, len(own)])]
    return [
        (slice(into, into + length), slice(taken, taken + length))
        for into, taken, length in zip(own[starts].tolist(), numbers[starts].tolist(), lengths, strict=True)
    ]
