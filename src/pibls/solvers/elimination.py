"""Least squares along a tree: every branch eliminates its own unknowns and hands a smaller problem to its parent.

A branch has rows over unknowns of its own and unknowns that it shares with the rest of the tree. Eliminating its own
ones leaves a *Schur front*, a small least-squares problem over the shared ones; two fronts are joined by adding them
up. Factors do not depend on right-hand sides: a new one costs a pass up the tree and a pass down.

Branches of one shape are factorised together: all arrays have a first axis that counts the branches of a *stack*. A
factor of one branch serves any number of equal ones.

There are two ways to eliminate. :class:`~pibls.solvers.grams.Grams` factorises normal equations: it is fast, its errors
grow with the square of the condition number, and refinement with the rows themselves removes them.
:class:`~pibls.solvers.rotations.Rotations` factorises the rows: it is several times slower, and keeps all digits where
normal equations keep none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg import lapack, solve_triangular

from pibls.checks import FloatArray
from pibls.errors import SolveError
from pibls.solvers.joins import Join

RIDGE = 1e-13  # rows that say that an unknown is zero, where no other row says anything of it
_SINGULAR = 1e-14  # of the largest entry of a diagonal: smaller ones are rounding


class DependentError(SolveError):
    """Columns are too nearly dependent for Gram matrices."""


def transposed(stack: FloatArray) -> FloatArray:
    """Return the transposes of a stack of matrices."""
    return stack.transpose(0, 2, 1)


def triangular(triangles: FloatArray, right: FloatArray, *, trans: bool = False) -> FloatArray:
    """Solve with upper triangles, or their transposes: one for each right-hand side, or one for all of them.

    >>> triangular(np.array([[[2.0, 1.0], [0.0, 4.0]]]), np.ones((2, 2, 1))).tolist()
    [[[0.375], [0.25]], [[0.375], [0.25]]]
    """
    count, size, sides = right.shape
    if not right.size:
        return right
    if len(triangles) == 1:
        together = right.transpose(1, 0, 2).reshape(size, count * sides)
        found = lapack.dtrtrs(triangles[0], together, trans=trans)[0]
        return np.asarray(found.reshape(size, count, sides).transpose(1, 0, 2))
    found = np.empty_like(right)
    for number in range(count):
        found[number] = lapack.dtrtrs(triangles[number], right[number], trans=trans)[0]
    return found


class _Stacked:
    """Arrays with a first axis that counts the members of a stack."""

    @classmethod
    def stacked(cls, members: Sequence[Self]) -> Self:
        """Return one stack of many."""
        if len(members) == 1:
            return members[0]
        names = [own.name for own in fields(cls)]  # type: ignore[arg-type]
        return cls(*(np.concatenate([getattr(one, name) for one in members]) for name in names))

    def members(self) -> Iterator[Self]:
        """Yield stacks of one member each, which have its arrays in common with this one."""
        arrays = [getattr(self, own.name) for own in fields(self)]  # type: ignore[arg-type]
        for number in range(len(arrays[0])):
            yield type(self)(*(array[number : number + 1] for array in arrays))


@dataclass(frozen=True, eq=False)
class LeafSystem(_Stacked):
    """Rows of leaves of the tree."""

    equation: FloatArray  # rows over the own unknowns alone
    rows: FloatArray  # rows over the own unknowns and the others
    heavy: FloatArray  # further rows of that kind, few, which count many times as much

    @property
    def own(self) -> int:
        """Number of own unknowns."""
        return int(self.equation.shape[2])

    @property
    def shape(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the arrays of a member."""
        return self.equation.shape[1:], self.rows.shape[1:], self.heavy.shape[1:]

    @property
    def all_rows(self) -> FloatArray:
        """All rows over all unknowns."""
        count, _, width = self.rows.shape
        above = np.zeros((count, self.equation.shape[1], width))
        above[:, :, : self.own] = self.equation
        return np.concatenate([above, self.rows, self.heavy], axis=1)

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return self.equation.size + self.rows.size + self.heavy.size


@dataclass(frozen=True, eq=False)
class Load(_Stacked):
    """Right-hand sides of the rows of leaves, one column each."""

    equation: FloatArray
    rows: FloatArray
    heavy: FloatArray

    @property
    def squares(self) -> FloatArray:
        """Square sums of every member, one for each right-hand side."""
        return np.asarray(sum(np.square(own).sum(axis=1) for own in (self.equation, self.rows, self.heavy)))

    def less(self, system: LeafSystem, own: FloatArray, others: FloatArray) -> Load:
        """Return the load less the rows of a system times unknowns."""
        every = np.concatenate([own, others], axis=1)
        return Load(
            self.equation - system.equation @ own, self.rows - system.rows @ every, self.heavy - system.heavy @ every
        )


@dataclass(frozen=True, eq=False)
class Front(_Stacked):
    """All that branches say of the unknowns they share."""

    rows: FloatArray  # gram matrices, or triangles of rows
    sizes: FloatArray  # squares of the columns before any elimination

    def taken(self, which: Any) -> Front:
        """Return the fronts of some of the branches."""
        return Front(self.rows[which], self.sizes[which])


@dataclass(frozen=True, eq=False)
class Factor:
    """The unknowns of branches as functions of those they share: ``triangle · own + coupling · others = right``."""

    triangle: FloatArray
    coupling: FloatArray
    front: Front

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return self.triangle.size + self.coupling.size + self.front.rows.size

    @property
    def own(self) -> int:
        """Number of unknowns that are eliminated."""
        return int(self.triangle.shape[1])

    def taken(self, which: Any) -> Factor:
        """Return the factors of some of the branches."""
        # Every triangle stays in the order in which LAPACK wants it.
        triangle = transposed(transposed(self.triangle)[which])
        return replace(self, triangle=triangle, coupling=self.coupling[which], front=self.front.taken(which))

    def up(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the right-hand sides of own unknowns and of fronts, from those of the normal equations."""
        found = triangular(self.triangle, right[:, : self.own], trans=True)
        return found, right[:, self.own :] - transposed(self.coupling) @ found

    def lifted(self, system: LeafSystem, load: Load) -> tuple[FloatArray, FloatArray]:
        """Return the same from right-hand sides of the rows of leaves."""
        right = transposed(system.rows) @ load.rows + transposed(system.heavy) @ load.heavy
        right[:, : system.own] += transposed(system.equation) @ load.equation
        return self.up(right)

    def down(self, right: FloatArray, others: FloatArray, *, probing: bool = False) -> FloatArray:
        """Return the own unknowns, given the others; those that nothing determines are as small as they can be.

        With ``probing`` they are as large as the right-hand side makes them: this is how to find out.
        """
        right = right - self.coupling @ others if others.size else right
        if not self._least:
            return triangular(self.triangle, right)
        return np.stack([self._one_down(number, own, probing) for number, own in enumerate(right)])

    def _one_down(self, number: int, right: FloatArray, probing: bool) -> FloatArray:
        """Return the own unknowns of one branch."""
        number = min(number, len(self.triangle) - 1)
        triangle, least = self.triangle[number], self._least.get(number)
        if least is None:
            return np.asarray(lapack.dtrtrs(triangle, right)[0])
        if probing:
            return np.asarray(solve_triangular(triangle + least, right, check_finite=False))
        return np.asarray(np.linalg.lstsq(triangle, right, rcond=_SINGULAR)[0])

    @cached_property
    def _least(self) -> dict[int, FloatArray]:
        """For branches with pivots that are rounding, a diagonal that makes them large enough."""
        diagonals = np.abs(np.diagonal(self.triangle, axis1=1, axis2=2))
        least = _SINGULAR * diagonals.max(axis=1, initial=0.0)
        found = (diagonals <= least[:, None]).any(axis=1) & (diagonals.shape[1] > 0)
        return {
            int(n): np.diag(np.where(diagonals[n] <= least[n], least[n], 0.0)) for n in np.flatnonzero(found).tolist()
        }


class Elimination(Protocol):
    """A way to eliminate unknowns, of all branches of a stack at once."""

    def leaves(self, system: LeafSystem) -> list[tuple[Factor, list[int]]]:
        """Eliminate the own unknowns of leaves: factors, and the leaves that each is of."""

    def scaled(self, front: Front, units: FloatArray) -> Front:
        """Return fronts over unknowns in other units: old ones are new ones times units."""

    def joined(self, one: Front, two: Front, join: Join) -> Factor:
        """Join fronts pair by pair and eliminate the unknowns that only they share."""

    def last(self, front: Front, counts: FloatArray) -> Factor:
        """Eliminate the sums of whole trees, and how much they count."""

    def raised(self, right: FloatArray, weight: FloatArray, units: FloatArray) -> FloatArray:
        """Return the right-hand sides of scaled fronts."""

    def union(self, one: FloatArray, two: FloatArray, given: tuple[FloatArray, FloatArray], join: Join) -> FloatArray:
        """Return the right-hand sides of unions of fronts from theirs, and from the values given to their sums."""

    def whole(self, right: FloatArray, given: FloatArray, counts: FloatArray) -> FloatArray:
        """Return the right-hand sides of whole trees from those of their fronts, and from values given to sums."""
