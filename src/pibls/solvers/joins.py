"""How two branches of a tree become one: which unknowns they share, which are eliminated, which are left."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

Block = tuple[slice, slice, slice, slice]
"""Rows of a union and of a front, and columns of both."""
_LARGE, _SMALL = 0.25, 50.0  # what an operation counts in blocks of any size, and beside that by their size


def counted(operations: float, size: float) -> float:
    """Return the work of operations on blocks of some size: on large blocks they are many times as fast.

    >>> counted(1e9, 50), counted(1e9, 500)
    (1250000000.0, 350000000.0)
    """
    return (_LARGE + _SMALL / max(size, 1.0)) * operations


def joining(gone: float, left: float) -> float:
    """Return the work of joining two fronts, by the unknowns that are eliminated and those that are left."""
    return counted(gone * (gone + left) * (gone / 3.0 + left), gone)


@dataclass(frozen=True, eq=False)
class Join:
    """How the unknowns of two fronts make up those of their union.

    The first unknowns of a front are its *sums*: quantities that the union has as the sum of both. The union first has
    the unknowns that are eliminated (the sums of the second front, then what only both fronts share), then its own
    sums, then all other unknowns.
    """

    places: tuple[Any, Any]  # for each front, the places of its unknowns in the union
    # gone, left: how many unknowns are eliminated, and how many are left
    gone: int
    left: int
    sums: int  # number of sums

    @classmethod
    def of(cls, shared: tuple[Any, Any], others: tuple[Any, Any], left: int, sums: int) -> Join:
        """Make the union of two fronts.

        Parameters
        ----------
        shared
            For each front, the columns of the unknowns to eliminate, in the same order.
        others
            For each front, the place of every column but the sums among the unknowns that are left, sums excluded;
            any number for columns to eliminate.
        left
            How many unknowns are left beside the sums.
        sums
            Number of sums of each front.

        Examples
        --------
        Two fronts of a sum and two unknowns each share the first one:

        >>> join = Join.of(([1], [1]), ([-1, 0], [-1, 1]), 2, 1)
        >>> [place.tolist() for place in join.places], join.gone, join.left
        ([[2, 1, 3], [0, 1, 4]], 2, 3)
        """
        gone = sums + len(shared[0])
        places = []
        for own, rest, first in zip(shared, others, (gone, 0), strict=True):
            place = np.empty(sums + len(rest), dtype=np.int64)
            place[:sums] = first + np.arange(sums)
            place[sums:] = np.asarray(rest) + gone + sums
            place[own] = sums + np.arange(len(own))
            places.append(place)
        return cls((places[0], places[1]), gone, sums + left, sums)

    @cached_property
    def runs(self) -> tuple[list[tuple[slice, slice]], list[tuple[slice, slice]]]:
        """The places of each front as runs: where each stands in the union, and in the front."""
        return _runs(self.places[0], self.gone), _runs(self.places[1], self.gone)

    @cached_property
    def blocks(self) -> tuple[list[Block], list[Block]]:
        """For each front, its blocks in the rows that are eliminated, and of the others those beside each other."""
        one, two = (
            [(*d, *a) for d in own for a in own if d[0].start < self.gone or a[0].start >= self.gone]
            for own in self.runs
        )
        return one, two


def _runs(places: Any, gone: int) -> list[tuple[slice, slice]]:
    """Return places as runs of successive ones: where each stands, and which of the places it takes in.

    No run has both unknowns that are eliminated, which are so many, and others.

    >>> _runs(np.array([4, 5, 1]), 3)
    [(slice(4, 6, None), slice(0, 2, None)), (slice(1, 2, None), slice(2, 3, None))]
    >>> _runs(np.array([4, 5]), 5)
    [(slice(4, 5, None), slice(0, 1, None)), (slice(5, 6, None), slice(1, 2, None))]
    """
    ends = (np.diff(places) != 1) | (places[1:] == gone)
    starts = [0, *(np.flatnonzero(ends) + 1).tolist(), len(places)]
    return [
        (slice(int(places[start]), int(places[start]) + stop - start), slice(start, stop))
        for start, stop in pairwise(starts)
        if stop > start
    ]
