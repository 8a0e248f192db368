"""Elimination by Cholesky factors of Gram matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from pibls.checks import FloatArray
from pibls.errors import SolveError
from pibls.limits import require_time
from pibls.solvers.elimination import RIDGE, DependentError, Factor, Front, LeafSystem, Load, transposed, triangular
from pibls.solvers.joins import Join

_DEPENDENT = 1e-13  # of what a column was before elimination: a smaller pivot of a Gram matrix has no digits
_CONDITIONED = 1e-5  # least reciprocal condition of rows at hand for a Gram matrix: refinement mends what it loses
_DEFICIENT = 1e-14  # reciprocal condition of rows that leave something open


@dataclass(frozen=True, eq=False)
class Bordered(Factor):
    """Leaves some rows of which are heavy: the residuals of these are unknowns of their own.

    That keeps their size out of the Gram matrix of the others. Their pivots are negative, and the last ones.
    """

    heavy: int

    def up(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the right-hand sides of own unknowns and of fronts, from those of the normal equations."""
        turned = triangular(self.triangle, right[:, : self.own], trans=True)
        front = right[:, self.own :] - transposed(self.coupling) @ turned
        turned[:, self.own - self.heavy :] *= -1.0
        return turned, front

    def lifted(self, system: LeafSystem, load: Load) -> tuple[FloatArray, FloatArray]:
        """Return the same from right-hand sides of the rows of leaves."""
        right = transposed(system.rows) @ load.rows
        right[:, : system.own] += transposed(system.equation) @ load.equation
        return self.up(np.concatenate([right[:, : system.own], load.heavy, right[:, system.own :]], axis=1))

    def down(self, right: FloatArray, others: FloatArray, *, probing: bool = False) -> FloatArray:
        """Return the own unknowns, given the others."""
        return super().down(right, others, probing=probing)[:, : self.own - self.heavy]


@dataclass(frozen=True, eq=False)
class Rotated(Factor):
    """A leaf whose rows are rotated, with reflectors, and the rows that are left for the others."""

    reflectors: tuple[FloatArray, FloatArray]
    rest: FloatArray
    order: Any

    def taken(self, which: Any) -> Factor:
        """Return the factor itself: there is one leaf."""
        del which
        return self

    def down(self, right: FloatArray, others: FloatArray, *, probing: bool = False) -> FloatArray:
        """Return the own unknowns, given the others, in their own order."""
        turned = super().down(right, others, probing=probing)
        found = np.empty_like(turned)
        found[:, self.order] = turned
        return found

    def up(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the right-hand sides of own unknowns and of fronts, from those of the normal equations."""
        return super().up(np.concatenate([right[:, self.order], right[:, len(self.order) :]], axis=1))

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return super().size + self.reflectors[0].size + self.rest.size

    def lifted(self, system: LeafSystem, load: Load) -> tuple[FloatArray, FloatArray]:
        """Return right-hand sides of own unknowns and of fronts from those of the rows."""
        del system
        count, _, sides = load.rows.shape
        every = np.concatenate([load.equation, load.rows, load.heavy, np.zeros((count, self.own, sides))], axis=1)
        right = np.asfortranarray(every.transpose(1, 0, 2).reshape(-1, count * sides))
        turned, _, _ = lapack.dormqr("L", "T", *self.reflectors, right, 64 * max(64, right.shape[1]))
        turned = turned.reshape(-1, count, sides).transpose(1, 0, 2)
        return turned[:, : self.own], self.rest.T @ turned[:, self.own :]


@dataclass(frozen=True)
class Grams:
    """Eliminates by Cholesky factors of Gram matrices, with an error where these have no digits left."""

    def leaves(self, system: LeafSystem) -> list[tuple[Factor, list[int]]]:
        """Eliminate the own unknowns of leaves, by rotations of the rows of those where they are nearly dependent.

        >>> system = LeafSystem(np.array([[[2.0]]]), np.array([[[1.0, -1.0], [0.0, 1.0]]]), np.empty((1, 0, 2)))
        >>> [(factor, which)] = Grams().leaves(system)
        >>> load = Load(np.array([[[2.0]]]), np.array([[[0.0], [3.0]]]), np.empty((1, 0, 1)))
        >>> own, front = factor.lifted(system, load)
        >>> other = front / factor.front.rows
        >>> factor.down(own, other).round(12).tolist(), other.round(12).tolist()
        ([[[1.222222222222]]], [[[2.111111111111]]])
        """
        own, count = system.own, len(system.rows)
        require_time(count * (system.equation.shape[1] * own**2 + system.rows.shape[1] * system.rows.shape[2] ** 2))
        gram = transposed(system.rows) @ system.rows
        gram[:, :own, :own] += transposed(system.equation) @ system.equation
        sizes = np.diagonal(gram, axis1=1, axis2=2).copy()
        if not np.isfinite(sizes).all():
            raise SolveError("The equations are not finite where they are linearised. Check starts and bounds.")
        triangles = np.empty((count, own, own)).transpose(0, 2, 1)
        good = []
        for number, (block, size) in enumerate(zip(gram[:, :own, :own], sizes, strict=True)):
            triangle, info = lapack.dpotrf(block, clean=1)
            if not info and lapack.dtrcon(triangle / np.sqrt(size[:own]))[0] >= _CONDITIONED:
                triangles[number] = triangle
                good.append(number)
        poor = sorted(set(range(count)) - set(good))
        found: list[tuple[Factor, list[int]]] = [(self._rotated(one), [n]) for n, one in _some(system, poor)]
        if good:
            which = slice(None) if not poor else good
            gram, sizes, heavy = gram[which], sizes[which, own:], system.heavy[which]
            found.append((_bordered(triangles[which], gram[:, :, own:], sizes, heavy), good))
        return found

    @staticmethod
    def _rotated(system: LeafSystem) -> Rotated:
        rows, own = system.all_rows[0], system.own
        require_time(2.0 * len(rows) * own * (own + 2 * rows.shape[1]))
        ridge = np.diag(np.full(own, RIDGE))
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
        left = Front((rest.T @ rest)[None], np.square(rows[:, own:]).sum(axis=0)[None])
        triangle = np.asfortranarray(np.triu(factored[:own]))
        return Rotated(triangle[None], turned[None, :own], left, (factored, scales), rest, order)

    def scaled(self, front: Front, units: FloatArray) -> Front:
        """Return fronts over unknowns in other units: old ones are new ones times units."""
        return Front(units[:, :, None] * front.rows * units[:, None], front.sizes * np.square(units))

    def joined(self, one: Front, two: Front, join: Join) -> Factor:
        """Join fronts pair by pair and eliminate the unknowns that only they share."""
        count, width = len(one.rows), join.gone + join.left
        require_time(count * join.gone * width**2)
        gram, sums, own = np.zeros((count, width, width)), join.sums, one.rows[:, : join.sums]
        for down, taken in join.runs[0]:
            for across, through in join.runs[0]:
                gram[:, down, across] = one.rows[:, taken, through]
            # The sums of the first front are those of the union less those of the second.
            gram[:, :sums, down], gram[:, down, :sums] = -own[:, :, taken], -transposed(own[:, :, taken])
        gram[:, :sums, :sums] = own[:, :, :sums]
        for down, taken in join.runs[1]:
            for across, through in join.runs[1]:
                gram[:, down, across] += two.rows[:, taken, through]
        ends, starts, (first, second) = join.gone + np.arange(sums), np.arange(sums), map(np.square, join.counts)
        gram[:, ends, ends] += first
        gram[:, starts, starts] += first + second
        gram[:, starts, ends] -= first
        sizes = np.zeros((count, width))
        sizes[:, join.places[0]] = one.sizes
        sizes[:, join.places[1]] += two.sizes
        return self._factor(gram, join.gone, sizes)

    def last(self, front: Front, counts: FloatArray) -> Factor:
        """Eliminate the sums of whole trees, and how much they count."""
        return self._factor(front.rows + np.diag(np.square(counts)), len(counts), front.sizes)

    @staticmethod
    def _factor(gram: FloatArray, own: int, sizes: FloatArray) -> Factor:
        triangles = np.empty((len(gram), own, own)).transpose(0, 2, 1)
        for number, block in enumerate(gram[:, :own, :own] if own else ()):
            triangles[number], info = lapack.dpotrf(block, clean=1)
            if info:
                raise DependentError("Gram matrices have no digits left. Factorise rows.")
        if not (np.square(np.diagonal(triangles, axis1=1, axis2=2)) > _DEPENDENT * sizes[:, :own]).all():
            raise DependentError("Gram matrices have no digits left. Factorise rows.")
        coupling = triangular(triangles, gram[:, :own, own:], trans=True)
        front = Front(gram[:, own:, own:] - transposed(coupling) @ coupling, sizes[:, own:])
        return Factor(triangles, coupling, front)

    def raised(self, right: FloatArray, weight: FloatArray, units: FloatArray) -> FloatArray:
        """Return the right-hand sides of scaled fronts."""
        return np.asarray((weight[:, None] * units)[:, :, None] * right)

    def union(self, one: FloatArray, two: FloatArray, given: tuple[FloatArray, FloatArray], join: Join) -> FloatArray:
        """Return the right-hand sides of unions of fronts from theirs, and from the values given to their sums."""
        (first, second), sums = join.places, join.sums
        found = np.zeros((len(one), join.gone + join.left, one.shape[2]))
        found[:, first] = one
        found[:, :sums] = -one[:, :sums]
        found[:, second] += two
        own, other = (np.square(counts)[:, None] * value for counts, value in zip(join.counts, given, strict=True))
        found[:, join.gone : join.gone + sums] += own
        found[:, :sums] += other - own
        return found

    def whole(self, right: FloatArray, given: FloatArray, counts: FloatArray) -> FloatArray:
        """Return the right-hand sides of whole trees from those of their fronts, and from values given to sums."""
        return np.asarray(right + np.square(counts)[:, None] * given)


def _some(system: LeafSystem, which: list[int]) -> list[tuple[int, LeafSystem]]:
    """Return some leaves of a stack, with their numbers."""
    every = list(system.members()) if which else []
    return [(number, every[number]) for number in which]


def _bordered(triangles: FloatArray, beside: FloatArray, sizes: FloatArray, heavy: FloatArray) -> Factor:
    """Return the factors of leaves from triangles, the columns of their Gram matrices beside these, and heavy rows."""
    count, own, _ = triangles.shape
    coupling = triangular(triangles, beside[:, :own], trans=True)
    front = beside[:, own:] - transposed(coupling) @ coupling
    more = heavy.shape[1]
    if not more:
        return Factor(triangles, coupling, Front(front, sizes))
    border = triangular(triangles, transposed(heavy[:, :, :own]), trans=True)
    lower = np.linalg.cholesky(np.eye(more) + transposed(border) @ border)
    last = np.linalg.solve(lower, transposed(border) @ coupling - heavy[:, :, own:])
    whole = np.zeros((count, own + more, own + more)).transpose(0, 2, 1)
    whole[:, :own, :own], whole[:, :own, own:], whole[:, own:, own:] = triangles, border, lower.transpose(0, 2, 1)
    left = Front(front + transposed(last) @ last, sizes + np.square(last).sum(axis=1))
    return Bordered(whole, np.concatenate([coupling, last], axis=1), left, more)
