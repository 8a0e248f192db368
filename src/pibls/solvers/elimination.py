"""Least squares along a tree: every branch eliminates its own unknowns and hands a smaller problem to its parent.

A branch has rows over unknowns of its own and unknowns that it shares with the rest of the tree. Eliminating its own
ones leaves a *Schur front*, a small least-squares problem over the shared ones; two fronts are joined by adding them
up. Factors do not depend on right-hand sides: a new one costs a pass up the tree and a pass down.

There are two ways to eliminate. :class:`Grams` factorises normal equations: it is fast, its errors grow with the square
of the condition number, and refinement with the rows themselves removes them. :class:`Rotations` factorises the rows:
it is several times slower, and keeps all digits where normal equations keep none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy.linalg import lapack, solve_triangular

from pibls.checks import FloatArray
from pibls.errors import SolveError
from pibls.limits import require_time

__all__ = [
    "DependentError",
    "Elimination",
    "Factor",
    "Front",
    "Grams",
    "Join",
    "Load",
    "Rotations",
    "System",
    "counted",
    "joining",
]

_LARGE, _SMALL = 0.25, 50.0  # what an operation counts in blocks of any size, and beside that by their size
_SINGULAR = 1e-14  # of the largest entry of a diagonal: smaller ones are rounding
_DEPENDENT = 1e-13  # of what a column was before elimination: a smaller pivot of a Gram matrix has no digits
_CONDITIONED = 1e-5  # least reciprocal condition of rows at hand for a Gram matrix: refinement mends what it loses
_DEFICIENT = 1e-14  # reciprocal condition of rows that leave something open
_RIDGE = 1e-13  # rows that say that an unknown is zero, where no other row says anything of it


class DependentError(SolveError):
    """Columns are too nearly dependent for Gram matrices."""


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

    Attributes
    ----------
    places
        For each front, the places of its unknowns in the union.
    gone, left
        How many unknowns are eliminated, and how many are left.
    counts
        For each front, how much each of its sums, which should be zero, counts.
    """

    places: tuple[Any, Any]
    gone: int
    left: int
    counts: tuple[FloatArray, FloatArray]

    @classmethod
    def of(
        cls, shared: tuple[Any, Any], others: tuple[Any, Any], left: int, counts: tuple[FloatArray, FloatArray]
    ) -> Join:
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
        counts
            For each front, how much each sum counts.

        Examples
        --------
        Two fronts of a sum and two unknowns each share the first one:

        >>> join = Join.of(([1], [1]), ([-1, 0], [-1, 1]), 2, (np.ones(1), np.ones(1)))
        >>> [place.tolist() for place in join.places], join.gone, join.left
        ([[2, 1, 3], [0, 1, 4]], 2, 3)
        """
        sums = len(counts[0])
        gone = sums + len(shared[0])
        places = []
        for own, rest, first in zip(shared, others, (gone, 0), strict=True):
            place = np.empty(sums + len(rest), dtype=np.int64)
            place[:sums] = first + np.arange(sums)
            place[sums:] = np.asarray(rest) + gone + sums
            place[own] = sums + np.arange(len(own))
            places.append(place)
        return cls((places[0], places[1]), gone, sums + left, counts)

    @property
    def sums(self) -> int:
        """Number of sums."""
        return len(self.counts[0])

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What two joins have in common that join the same fronts to the same union."""
        return (*(own.tobytes() for own in (*self.places, *self.counts)), self.gone, self.left)

    @cached_property
    def runs(self) -> tuple[list[tuple[slice, slice]], list[tuple[slice, slice]]]:
        """The places of each front as runs: where each stands in the union, and in the front."""
        return _runs(self.places[0]), _runs(self.places[1])


def _runs(places: Any) -> list[tuple[slice, slice]]:
    """Return places as runs of successive ones: where each stands, and which of the places it takes in.

    >>> _runs(np.array([4, 5, 1]))
    [(slice(4, 6, None), slice(0, 2, None)), (slice(1, 2, None), slice(2, 3, None))]
    """
    starts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
    return [
        (slice(int(places[start]), int(places[start]) + stop - start), slice(start, stop))
        for start, stop in pairwise(starts)
        if stop > start
    ]


@dataclass(frozen=True, eq=False)
class System:
    """Rows of a leaf of the tree.

    Attributes
    ----------
    equation
        Rows over the own unknowns alone.
    rows
        Rows over the own unknowns and the others.
    heavy
        Further rows of that kind, few, which count many times as much.
    """

    equation: FloatArray
    rows: FloatArray
    heavy: FloatArray

    @cached_property
    def own(self) -> int:
        """Number of own unknowns."""
        return int(self.equation.shape[1])

    @cached_property
    def all_rows(self) -> FloatArray:
        """All rows over all unknowns."""
        above = np.hstack([self.equation, np.zeros((len(self.equation), self.rows.shape[1] - self.own))])
        return np.vstack([above, self.rows, self.heavy])

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return self.equation.size + self.rows.size + self.heavy.size


@dataclass(frozen=True, eq=False)
class Load:
    """Right-hand sides of the rows of a leaf, one column each."""

    equation: FloatArray
    rows: FloatArray
    heavy: FloatArray

    @property
    def square(self) -> float:
        """Square sum of the first right-hand side."""
        return float(sum(np.square(own[:, 0]).sum() for own in (self.equation, self.rows, self.heavy)))

    def less(self, system: System, own: FloatArray, others: FloatArray) -> Load:
        """Return what unknowns leave of it."""
        every = np.concatenate([own, others])
        return Load(
            self.equation - system.equation @ own, self.rows - system.rows @ every, self.heavy - system.heavy @ every
        )


@dataclass(frozen=True, eq=False)
class Front:
    """What a branch says of the unknowns it shares.

    Attributes
    ----------
    rows
        A Gram matrix, or a triangle of rows.
    sizes
        Squares of the columns before any elimination.
    """

    rows: FloatArray
    sizes: FloatArray


@dataclass(frozen=True, eq=False)
class Factor:
    """The unknowns of a branch as functions of those it shares: ``triangle · own + coupling · others = right``."""

    triangle: FloatArray
    coupling: FloatArray
    front: Front

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return self.triangle.size + self.coupling.size + self.front.rows.size

    def up(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the right-hand side of the own unknowns and that of the front, from that of the normal equations."""
        own = len(self.triangle)
        found = lapack.dtrtrs(self.triangle, right[:own], trans=1)[0] if own else right[:0]
        return found, right[own:] - self.coupling.T @ found

    def lifted(self, system: System, load: Load) -> tuple[FloatArray, FloatArray]:
        """Return the same from right-hand sides of the rows of a leaf."""
        right = system.rows.T @ load.rows + system.heavy.T @ load.heavy
        right[: system.own] += system.equation.T @ load.equation
        return self.up(right)

    def down(self, right: FloatArray, others: FloatArray, *, probing: bool = False) -> FloatArray:
        """Return the own unknowns, given the others; those that nothing determines are as small as they can be.

        With ``probing`` they are as large as the right-hand side makes them: this is how to find out.
        """
        right = right - self.coupling @ others if others.size else right
        if not len(self.triangle):
            return right
        if self._least is None:
            return np.asarray(lapack.dtrtrs(self.triangle, right)[0])
        if probing:
            return np.asarray(solve_triangular(self.triangle + self._least, right, check_finite=False))
        return np.asarray(np.linalg.lstsq(self.triangle, right, rcond=_SINGULAR)[0])

    @cached_property
    def _least(self) -> FloatArray | None:
        """Diagonal that makes pivots large enough which are rounding; None where there are none."""
        diagonal = np.abs(self.triangle.diagonal())
        least = _SINGULAR * diagonal.max(initial=0.0)
        return None if diagonal.min(initial=np.inf) > least else np.diag(np.where(diagonal <= least, least, 0.0))


@dataclass(frozen=True, eq=False)
class Bordered(Factor):
    """A leaf some rows of which are heavy: the residuals of these are unknowns of their own.

    That keeps their size out of the Gram matrix of the others. Their pivots are negative, and the last ones.
    """

    heavy: int

    @property
    def _signs(self) -> FloatArray:
        return np.where(np.arange(len(self.triangle)) < len(self.triangle) - self.heavy, 1.0, -1.0)[:, None]

    def up(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the right-hand side of the own unknowns and that of the front, from that of the normal equations."""
        own = len(self.triangle)
        turned = lapack.dtrtrs(self.triangle, right[:own], trans=1)[0]
        return self._signs * turned, right[own:] - self.coupling.T @ turned

    def lifted(self, system: System, load: Load) -> tuple[FloatArray, FloatArray]:
        """Return the same from right-hand sides of the rows of a leaf."""
        right = system.rows.T @ load.rows
        right[: system.own] += system.equation.T @ load.equation
        return self.up(np.concatenate([right[: system.own], load.heavy, right[system.own :]]))

    def down(self, right: FloatArray, others: FloatArray, *, probing: bool = False) -> FloatArray:
        """Return the own unknowns, given the others."""
        return super().down(right, others, probing=probing)[: len(self.triangle) - self.heavy]


@dataclass(frozen=True, eq=False)
class Rotated(Factor):
    """A leaf whose rows are rotated, with reflectors, and the rows that are left for the others."""

    reflectors: tuple[FloatArray, FloatArray]
    rest: FloatArray
    order: Any

    def down(self, right: FloatArray, others: FloatArray, *, probing: bool = False) -> FloatArray:
        """Return the own unknowns, given the others, in their own order."""
        turned = super().down(right, others, probing=probing)
        found = np.empty_like(turned)
        found[self.order] = turned
        return found

    def up(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the right-hand side of the own unknowns and that of the front, from that of the normal equations."""
        return super().up(np.concatenate([right[self.order], right[len(self.order) :]]))

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return super().size + self.reflectors[0].size + self.rest.size

    def lifted(self, system: System, load: Load) -> tuple[FloatArray, FloatArray]:
        """Return right-hand sides of the own unknowns and of the front from those of the rows."""
        del system
        own, sides = len(self.triangle), load.rows.shape[1]
        ridge = np.zeros((own, sides))
        right = np.asfortranarray(np.vstack([load.equation, load.rows, load.heavy, ridge]))
        turned, _, _ = lapack.dormqr("L", "T", *self.reflectors, right, 64 * max(64, sides))
        return turned[:own], self.rest.T @ turned[own:]


class Elimination(Protocol):
    """A way to eliminate unknowns."""

    def leaf(self, system: System) -> Factor:
        """Eliminate the own unknowns of a leaf."""

    def scaled(self, front: Front, units: FloatArray) -> Front:
        """Return a front over unknowns in other units: old ones are new ones times units."""

    def joined(self, one: Front, two: Front, join: Join) -> Factor:
        """Join two fronts and eliminate the unknowns that only they share."""

    def last(self, front: Front, counts: FloatArray) -> Factor:
        """Eliminate the sums of a whole tree, and how much they count."""

    def raised(self, right: FloatArray, weight: float, units: FloatArray) -> FloatArray:
        """Return the right-hand side of a scaled front."""

    def union(self, one: FloatArray, two: FloatArray, given: tuple[FloatArray, FloatArray], join: Join) -> FloatArray:
        """Return the right-hand side of the union of two fronts from theirs, and from what their sums should be."""

    def whole(self, right: FloatArray, given: FloatArray, counts: FloatArray) -> FloatArray:
        """Return the right-hand side of a whole tree from that of its front, and from what its sums should be."""


@dataclass(frozen=True)
class Grams:
    """Eliminates by Cholesky factors of Gram matrices, with an error where these have no digits left."""

    def leaf(self, system: System) -> Factor:
        """Eliminate the own unknowns of a leaf, by rotations of its rows where these are nearly dependent.

        >>> system = System(np.array([[2.0]]), np.array([[1.0, -1.0], [0.0, 1.0]]), np.empty((0, 2)))
        >>> factor = Grams().leaf(system)
        >>> own, front = factor.lifted(system, Load(np.array([[2.0]]), np.array([[0.0], [3.0]]), np.empty((0, 1))))
        >>> other = front / factor.front.rows
        >>> factor.down(own, other).round(12).tolist(), other.round(12).tolist()
        ([[1.222222222222]], [[2.111111111111]])
        """
        own, heavy = system.own, system.heavy
        require_time(len(system.equation) * own**2 + len(system.rows) * system.rows.shape[1] ** 2)
        gram = np.asfortranarray(system.rows.T @ system.rows)
        gram[:own, :own] += system.equation.T @ system.equation
        sizes = gram.diagonal().copy()
        triangle, info = lapack.dpotrf(gram[:own, :own], clean=1)
        if info < 0 or not np.isfinite(sizes).all():
            raise SolveError("The equations are not finite where they are linearised. Check starts and bounds.")
        if info or lapack.dtrcon(triangle / np.sqrt(sizes[:own]))[0] < _CONDITIONED:
            return self._rotated(system)
        coupling = lapack.dtrtrs(triangle, gram[:own, own:], trans=1)[0]
        front, sizes = gram[own:, own:] - coupling.T @ coupling, sizes[own:]
        if not len(heavy):
            return Factor(triangle, coupling, Front(front, sizes))
        border = lapack.dtrtrs(triangle, heavy[:, :own].T, trans=1)[0]
        corner = np.linalg.cholesky(np.eye(len(heavy)) + border.T @ border).T
        beside = np.linalg.solve(corner.T, border.T @ coupling - heavy[:, own:])
        whole = np.zeros((own + len(heavy),) * 2, order="F")
        whole[:own, :own], whole[:own, own:], whole[own:, own:] = triangle, border, corner
        left = Front(front + beside.T @ beside, sizes + np.square(beside).sum(axis=0))
        return Bordered(whole, np.vstack([coupling, beside]), left, len(heavy))

    @staticmethod
    def _rotated(system: System) -> Rotated:
        rows, own = system.all_rows, system.own
        require_time(2.0 * len(rows) * own * (own + 2 * rows.shape[1]))
        ridge = np.diag(np.full(own, _RIDGE))
        columns = np.asfortranarray(np.vstack([rows[:, :own], ridge]))
        factored, scales, _, _ = lapack.dgeqrf(columns, 64 * own)
        order = np.arange(own)
        if lapack.dtrcon(np.triu(factored[:own]) / np.linalg.norm(columns, axis=0))[0] < _DEFICIENT:
            # In this order the last pivots show what nothing determines.
            factored, order, scales, _, _ = lapack.dgeqp3(columns, 64 * own)
            order = order - 1
        others = np.asfortranarray(np.vstack([rows[:, own:], np.zeros((own, rows.shape[1] - own))]))
        turned, _, _ = lapack.dormqr("L", "T", factored, scales, others, 64 * max(64, others.shape[1]))
        rest = turned[own:]
        left = Front(rest.T @ rest, np.square(rows[:, own:]).sum(axis=0))
        return Rotated(np.asfortranarray(np.triu(factored[:own])), turned[:own], left, (factored, scales), rest, order)

    def scaled(self, front: Front, units: FloatArray) -> Front:
        """Return a front over unknowns in other units: old ones are new ones times units."""
        return Front(units[:, None] * front.rows * units, front.sizes * np.square(units))

    def joined(self, one: Front, two: Front, join: Join) -> Factor:
        """Join two fronts and eliminate the unknowns that only they share."""
        require_time(join.gone * (join.gone + join.left) ** 2)
        gram, sums, own = np.zeros((join.gone + join.left,) * 2, order="F"), join.sums, one.rows[: join.sums]
        for down, taken in join.runs[0]:
            for across, through in join.runs[0]:
                gram[down, across] = one.rows[taken, through]
            # The sums of the first front are those of the union less those of the second.
            gram[:sums, down], gram[down, :sums] = -own[:, taken], -own[:, taken].T
        gram[:sums, :sums] = own[:, :sums]
        for down, taken in join.runs[1]:
            for across, through in join.runs[1]:
                gram[down, across] += two.rows[taken, through]
        ends, starts, (first, second) = join.gone + np.arange(sums), np.arange(sums), map(np.square, join.counts)
        gram[ends, ends] += first
        gram[starts, starts] += first + second
        gram[ends, starts] -= first
        gram[starts, ends] -= first
        sizes = np.zeros(len(gram))
        sizes[join.places[0]] = one.sizes
        sizes[join.places[1]] += two.sizes
        return self._factor(gram, join.gone, sizes)

    def last(self, front: Front, counts: FloatArray) -> Factor:
        """Eliminate the sums of a whole tree, and how much they count."""
        return self._factor(np.asfortranarray(front.rows + np.diag(np.square(counts))), len(counts), front.sizes)

    @staticmethod
    def _factor(gram: FloatArray, own: int, sizes: FloatArray) -> Factor:
        triangle, info = lapack.dpotrf(gram[:own, :own], clean=1)
        if info or not (np.square(triangle.diagonal()) > _DEPENDENT * sizes[:own]).all():
            raise DependentError("Gram matrices have no digits left. Factorise rows.")
        coupling = lapack.dtrtrs(triangle, gram[:own, own:], trans=1)[0] if own else gram[:own, own:]
        return Factor(triangle, coupling, Front(gram[own:, own:] - coupling.T @ coupling, sizes[own:]))

    def raised(self, right: FloatArray, weight: float, units: FloatArray) -> FloatArray:
        """Return the right-hand side of a scaled front."""
        return np.asarray(weight * units[:, None] * right)

    def union(self, one: FloatArray, two: FloatArray, given: tuple[FloatArray, FloatArray], join: Join) -> FloatArray:
        """Return the right-hand side of the union of two fronts from theirs, and from what their sums should be."""
        (first, second), sums = join.places, join.sums
        found = np.zeros((join.gone + join.left, one.shape[1]))
        found[first] = one
        found[:sums] = -one[:sums]
        found[second] += two
        own, other = (np.square(counts)[:, None] * value for counts, value in zip(join.counts, given, strict=True))
        found[join.gone : join.gone + sums] += own
        found[:sums] += other - own
        return found

    def whole(self, right: FloatArray, given: FloatArray, counts: FloatArray) -> FloatArray:
        """Return the right-hand side of a whole tree from that of its front, and from what its sums should be."""
        return np.asarray(right + np.square(counts)[:, None] * given)


@dataclass(frozen=True, eq=False)
class Turned(Factor):
    """A branch whose rows are rotated: orthonormal columns take the rows into the triangles."""

    rotation: FloatArray

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return super().size + self.rotation.size

    def up(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the right-hand side of the own unknowns and that of the front, from that of the rows."""
        turned = self.rotation[: len(right)].T @ right
        return turned[: len(self.triangle)], turned[len(self.triangle) :]

    def lifted(self, system: System, load: Load) -> tuple[FloatArray, FloatArray]:
        """Return the same for a leaf."""
        del system
        return self.up(np.vstack([load.equation, load.rows, load.heavy]))


@dataclass(frozen=True)
class Rotations:
    """Eliminates by orthogonal factors of the rows themselves."""

    def leaf(self, system: System) -> Factor:
        """Eliminate the own unknowns of a leaf."""
        ridge = np.zeros((system.own, system.rows.shape[1]))
        np.fill_diagonal(ridge, _RIDGE)
        return self._factor(np.vstack([system.all_rows, ridge]), system.own)

    def scaled(self, front: Front, units: FloatArray) -> Front:
        """Return a front over unknowns in other units: old ones are new ones times units."""
        return Front(front.rows * units, front.sizes * np.square(units))

    def joined(self, one: Front, two: Front, join: Join) -> Factor:
        """Join two fronts and eliminate the unknowns that only they share."""
        (first, second), sums, width = join.places, join.sums, join.gone + join.left
        parts = [np.zeros((len(front.rows) + sums, width)) for front in (one, two)]
        for rows, front, place, counts in zip(parts, (one, two), (first, second), join.counts, strict=True):
            rows[: len(front.rows), place] = front.rows
            rows[len(front.rows) + np.arange(sums), place[:sums]] = counts
        # The sums of the first front are those of the union less those of the second.
        parts[0][:, :sums] = -parts[0][:, first[:sums]]
        return self._factor(np.vstack(parts), join.gone)

    def last(self, front: Front, counts: FloatArray) -> Factor:
        """Eliminate the sums of a whole tree, and how much they count."""
        return self._factor(np.vstack([front.rows, np.diag(counts)]), len(counts))

    @staticmethod
    def _factor(rows: FloatArray, own: int) -> Factor:
        if not np.isfinite(rows).all():
            raise SolveError("The equations are not finite where they are linearised. Check starts and bounds.")
        count, width = rows.shape
        require_time(4.0 * count * width**2)
        rotation, triangle = np.linalg.qr(np.vstack([rows, np.zeros((max(width - count, 0), width))]))
        first, sizes = np.asfortranarray(triangle[:own, :own]), np.square(rows).sum(axis=0)
        return Turned(first, triangle[:own, own:], Front(triangle[own:, own:], sizes[own:]), rotation[:count])

    def raised(self, right: FloatArray, weight: float, units: FloatArray) -> FloatArray:
        """Return the right-hand side of a scaled front."""
        del units
        return weight * right

    def union(self, one: FloatArray, two: FloatArray, given: tuple[FloatArray, FloatArray], join: Join) -> FloatArray:
        """Return the right-hand side of the union of two fronts from theirs, and from what their sums should be."""
        own, other = (counts[:, None] * value for counts, value in zip(join.counts, given, strict=True))
        return np.vstack([one, own, two, other])

    def whole(self, right: FloatArray, given: FloatArray, counts: FloatArray) -> FloatArray:
        """Return the right-hand side of a whole tree from that of its front, and from what its sums should be."""
        return np.vstack([right, counts[:, None] * given])
