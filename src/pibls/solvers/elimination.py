"""Least squares along a tree: every branch eliminates its own unknowns and hands a smaller problem to its parent.

A branch has rows over unknowns of its own and unknowns that it shares with the rest of the tree. Eliminating its own
ones leaves a *Schur front*, a small least-squares problem over the shared ones; two fronts are joined by adding them
up. Factors do not depend on right-hand sides: a new one costs a pass up the tree and a pass down.

Branches of one shape are factorised together: all arrays have a first axis that counts the branches of a *stack*. A
factor of one branch serves any number of equal ones. Stacks are NumPy arrays, or tensors on a device of torch.

There are two ways to eliminate. :class:`~pibls.solvers.grams.Grams` factorises normal equations: it is fast, its errors
grow with the square of the condition number, and refinement with the rows themselves removes them.
:class:`~pibls.solvers.rotations.Rotations` factorises the rows: it is several times slower, and keeps all digits where
normal equations keep none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg import lapack, solve_triangular

from pibls.checks import FloatArray
from pibls.errors import SolveError
from pibls.solvers.combined import Combined, written
from pibls.solvers.dense import Array
from pibls.solvers.inputs import to_host
from pibls.solvers.joins import Join
from pibls.solvers.stacks import library, placed, transposed, triangular, zeros

Pair = tuple[Array, Array]
"""Arrays that belong to the first and to the second of two fronts, as stacks."""
RIDGE = 1e-13  # rows that say that an unknown is zero, where no other row says anything of it
_SINGULAR = 1e-14  # of the largest entry of a diagonal: smaller ones are rounding


class DependentError(SolveError):
    """Columns are too nearly dependent for Gram matrices."""


def _joined(arrays: Sequence[Array]) -> Array:
    """Return one stack of many."""
    return library(arrays[0]).concat(arrays)


class _Stacked:
    """Arrays with a first axis that counts the members of a stack."""

    @classmethod
    def stacked(cls, members: Sequence[Self]) -> Self:
        """Return one stack of many."""
        if len(members) == 1:
            return members[0]
        names = [own.name for own in fields(cls)]  # type: ignore[arg-type]
        return cls(*(_joined([getattr(one, name) for one in members]) for name in names))

    def placed(self, device: Any) -> Self:
        """Return the stack on a device of torch, or in NumPy if there is none."""
        arrays = (getattr(self, own.name) for own in fields(self))  # type: ignore[arg-type]
        return type(self)(*(placed(array, device) for array in arrays))

    def taken(self, which: Any) -> Self:
        """Return a stack of some of the members."""
        arrays = (getattr(self, own.name) for own in fields(self))  # type: ignore[arg-type]
        return type(self)(*(array[which] for array in arrays))


@dataclass(frozen=True, eq=False)
class LeafSystem(_Stacked):
    """Rows of leaves of the tree. Leaves whose other rows are equal have them in common, as a stack of one."""

    equation: Array | Combined  # rows over the own unknowns alone
    rows: Array  # rows over the own unknowns and the others
    heavy: Array  # further rows of that kind, few, which count many times as much

    @classmethod
    def stacked(cls, members: Sequence[Self]) -> Self:
        """Return one stack of many; rows that all of them have in common are not repeated."""
        first = members[0]
        if len(members) == 1:
            return first
        equations = [own.equation for own in members]
        every = Combined.stacked(equations) if isinstance(first.equation, Combined) else _joined(equations)
        alike = all(own.rows is first.rows for own in members)
        rows = first.rows if alike else _joined([own.rows for own in members])
        return cls(every, rows, _joined([own.heavy for own in members]))

    def taken(self, which: Any) -> Self:
        """Return a stack of some of the members."""
        own = self.equation
        equation = own.taken(which) if isinstance(own, Combined) else own[which]
        return type(self)(equation, self.rows if len(self.rows) == 1 else self.rows[which], self.heavy[which])

    def placed(self, device: Any) -> Self:
        """Return the stack on a device of torch, or in NumPy if there is none."""
        own = self.equation
        equation = own.placed(device) if isinstance(own, Combined) else placed(own, device)
        return type(self)(equation, placed(self.rows, device), placed(self.heavy, device))

    @property
    def count(self) -> int:
        """Number of members."""
        return len(self.heavy)

    @property
    def kind(self) -> Any:
        """Systems of one kind can be stacked."""
        return self.shape, self.equation.kind if isinstance(self.equation, Combined) else None

    @property
    def own(self) -> int:
        """Number of own unknowns."""
        return int(self.equation.shape[2])

    @property
    def shape(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the arrays of a member."""
        return self.equation.shape[1:], self.rows.shape[1:], self.heavy.shape[1:]

    @property
    def all_rows(self) -> Array:
        """All rows over all unknowns."""
        count, (_, more, width), equation = self.count, self.rows.shape, written(self.equation)
        found = zeros((count, equation.shape[1] + more + self.heavy.shape[1], width), self.heavy)
        found[:, : equation.shape[1], : self.own] = equation
        found[:, equation.shape[1] : equation.shape[1] + more] = self.rows
        found[:, equation.shape[1] + more :] = self.heavy
        return found

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        equation = self.equation.size if isinstance(self.equation, Combined) else math.prod(self.equation.shape)
        return int(equation + sum(math.prod(own.shape) for own in (self.rows, self.heavy)))

    def back(self, load: Load) -> Array:
        """Return the right-hand sides of the normal equations, without those of heavy rows."""
        right, own = transposed(self.rows) @ load.rows, self.equation
        product = own.back(load.equation) if isinstance(own, Combined) else transposed(own) @ load.equation
        right[:, : self.own] += product
        return right


@dataclass(frozen=True, eq=False)
class Load(_Stacked):
    """Right-hand sides of the rows of leaves, one column each."""

    equation: Array
    rows: Array
    heavy: Array

    @property
    def squares(self) -> FloatArray:
        """Square sums of every member, one for each right-hand side."""
        return np.asarray(to_host(sum((own * own).sum(axis=1) for own in (self.equation, self.rows, self.heavy))))

    def less(self, system: LeafSystem, own: Array, others: Array) -> Load:
        """Return the load less the rows of a system times unknowns."""
        every, rows = library(own).concat([own, others], axis=1), system.equation
        product = rows.times(own) if isinstance(rows, Combined) else rows @ own
        return Load(self.equation - product, self.rows - system.rows @ every, self.heavy - system.heavy @ every)


@dataclass(frozen=True, eq=False)
class Front(_Stacked):
    """All that branches say of the unknowns they share."""

    rows: Array  # gram matrices, or triangles of rows
    sizes: Array  # squares of the columns before any elimination


@dataclass(frozen=True, eq=False)
class Factor:
    """The unknowns of branches as functions of those they share: ``triangle · own + coupling · others = right``."""

    triangle: Array
    coupling: Array
    front: Front

    @classmethod
    def of_front(cls, front: Front) -> Factor:
        """Return a factor that eliminates nothing, with a given front."""
        rows = front.rows
        return cls(zeros((1, 0, 0), rows), zeros((1, 0, rows.shape[2]), rows), front)

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return sum(math.prod(own.shape) for own in (self.triangle, self.coupling, self.front.rows))

    @property
    def own(self) -> int:
        """Number of unknowns that are eliminated."""
        return int(self.triangle.shape[1])

    def taken(self, which: Any) -> Factor:
        """Return the factors of some of the branches."""
        # Every triangle stays in the order in which LAPACK wants it.
        triangle = transposed(transposed(self.triangle)[which])
        return replace(self, triangle=triangle, coupling=self.coupling[which], front=self.front.taken(which))

    def up(self, right: Array) -> tuple[Array, Array]:
        """Return the right-hand sides of own unknowns and of fronts, from those of the normal equations."""
        found = triangular(self.triangle, right[:, : self.own], trans=True)
        return found, right[:, self.own :] - transposed(self.coupling) @ found

    def lifted(self, system: LeafSystem, load: Load) -> tuple[Array, Array]:
        """Return the same from right-hand sides of the rows of leaves."""
        return self.up(system.back(load) + transposed(system.heavy) @ load.heavy)

    def down(self, right: Array, others: Array, *, probing: bool = False) -> Array:
        """Return the own unknowns, given the others; those that nothing determines are as small as they can be.

        With ``probing`` they are as large as the right-hand side makes them: this is how to find out.
        """
        right = right if 0 in others.shape else right - self.coupling @ others
        if not self._least:
            return triangular(self.triangle, right)
        found = [self._one_down(number, own, probing) for number, own in enumerate(to_host(right))]
        return placed(np.stack(found), None if isinstance(right, np.ndarray) else right.device)

    def _one_down(self, number: int, right: FloatArray, probing: bool) -> FloatArray:
        """Return the own unknowns of one branch."""
        number = min(number, len(self.triangle) - 1)
        triangle, least = to_host(self.triangle[number]), self._least.get(number)
        if least is None:
            return np.asarray(lapack.dtrtrs(triangle, right)[0])
        if probing:
            return np.asarray(solve_triangular(triangle + least, right, check_finite=False))
        return np.asarray(np.linalg.lstsq(triangle, right, rcond=_SINGULAR)[0])

    @cached_property
    def _least(self) -> dict[int, FloatArray]:
        """For branches with pivots that are rounding, a diagonal that makes them large enough."""
        diagonals = np.abs(to_host(library(self.triangle).linalg.diagonal(self.triangle)))
        least = _SINGULAR * diagonals.max(axis=1, initial=0.0)
        found = (diagonals <= least[:, None]).any(axis=1) & (diagonals.shape[1] > 0)
        return {
            int(n): np.diag(np.where(diagonals[n] <= least[n], least[n], 0.0)) for n in np.flatnonzero(found).tolist()
        }


class Elimination(Protocol):
    """A way to eliminate unknowns, of all branches of a stack at once."""

    @property
    def device(self) -> Any:
        """The device of torch that all stacks are on; None for NumPy."""

    def leaves(self, system: LeafSystem) -> list[tuple[Factor, list[int]]]:
        """Eliminate the own unknowns of leaves: factors, and the leaves that each is of."""

    def scaled(self, front: Front, units: Array) -> Front:
        """Return fronts over unknowns in other units: old ones are new ones times units."""

    def shifted(self, front: Front, shifts: Array) -> Front:
        """Return fronts over other sums: old ones are the matrix of each front times new ones."""

    def joined(self, one: Front, two: Front, join: Join, counts: Pair) -> Factor:
        """Join fronts pair by pair and eliminate the unknowns that only they share.

        ``counts`` are the weights with which least squares holds the sums of each front near zero.
        """

    def last(self, front: Front, counts: Array) -> Factor:
        """Eliminate the sums of whole trees, and how much they count."""

    def raised(self, right: Array, weight: Array, units: Array) -> Array:
        """Return the right-hand sides of scaled fronts."""

    def moved(self, right: Array, shifts: Array) -> Array:
        """Return the right-hand sides of shifted fronts."""

    def union(self, one: Array, two: Array, given: Pair, join: Join, counts: Pair) -> Array:
        """Return the right-hand sides of unions of fronts from theirs, and from the values given to their sums."""

    def whole(self, right: Array, given: Array, counts: Array) -> Array:
        """Return the right-hand sides of whole trees from those of their fronts, and from values given to sums."""
