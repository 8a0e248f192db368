"""Elimination by Cholesky factors of Gram matrices."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from pibls.errors import SolveError
from pibls.limits import require_time
from pibls.solvers.combined import written
from pibls.solvers.dense import Array
from pibls.solvers.elimination import RIDGE, DependentError, Factor, Front, LeafSystem, Load, Pair
from pibls.solvers.inputs import to_host
from pibls.solvers.joins import Join
from pibls.solvers.stacks import cholesky, conditions, library, placed, transposed, triangular, zeros

_DEPENDENT = 1e-13  # of what a column was before elimination: a smaller pivot of a Gram matrix has no digits
_CONDITIONED = 1e-5  # least reciprocal condition of rows at hand for a Gram matrix: refinement mends what it loses
_DEFICIENT = 1e-14  # reciprocal condition of rows that leave something open


@dataclass(frozen=True, eq=False)
class Bordered(Factor):
    """Leaves some rows of which are heavy: the residuals of these are unknowns of their own.

    That keeps their size out of the Gram matrix of the others. Their pivots are negative, and the last ones.
    """

    heavy: int

    def up(self, right: Array) -> tuple[Array, Array]:
        """Return the right-hand sides of own unknowns and of fronts, from those of the normal equations."""
        turned = triangular(self.triangle, right[:, : self.own], trans=True)
        front = right[:, self.own :] - transposed(self.coupling) @ turned
        turned[:, self.own - self.heavy :] *= -1.0
        return turned, front

    def lifted(self, system: LeafSystem, load: Load) -> tuple[Array, Array]:
        """Return the same from right-hand sides of the rows of leaves."""
        right = system.back(load)
        return self.up(library(right).concat([right[:, : system.own], load.heavy, right[:, system.own :]], axis=1))

    def down(self, right: Array, others: Array, *, probing: bool = False) -> Array:
        """Return the own unknowns, given the others."""
        return super().down(right, others, probing=probing)[:, : self.own - self.heavy]


@dataclass(frozen=True, eq=False)
class Rotated(Factor):
    """A leaf whose rows are rotated, with reflectors, and the rows that are left for the others.

    Reflectors are NumPy arrays, also where all else is on a device.
    """

    reflectors: tuple[Array, Array]
    rest: Array
    order: Any

    def taken(self, which: Any) -> Factor:
        """Return the factor itself: there is one leaf."""
        del which
        return self

    def down(self, right: Array, others: Array, *, probing: bool = False) -> Array:
        """Return the own unknowns, given the others, in their own order."""
        turned = super().down(right, others, probing=probing)
        found = library(turned).empty_like(turned)
        found[:, self.order] = turned
        return found

    def up(self, right: Array) -> tuple[Array, Array]:
        """Return the right-hand sides of own unknowns and of fronts, from those of the normal equations."""
        return super().up(library(right).concat([right[:, self.order], right[:, len(self.order) :]], axis=1))

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return super().size + int(self.reflectors[0].size + self.rest.size)

    def lifted(self, system: LeafSystem, load: Load) -> tuple[Array, Array]:
        """Return right-hand sides of own unknowns and of fronts from those of the rows."""
        del system
        (columns, scales), own = self.reflectors, self.own
        given = np.concatenate([to_host(part) for part in (load.equation, load.rows, load.heavy)], axis=1)
        count, rows, sides = given.shape
        right = np.zeros((len(columns), count * sides), order="F")
        right[:rows] = given.transpose(1, 0, 2).reshape(rows, -1)
        turned = lapack.dormqr("L", "T", columns, scales, right, 64 * max(64, right.shape[1]), overwrite_c=True)[0]
        turned = turned[: own + len(self.rest)].reshape(-1, count, sides).transpose(1, 0, 2)
        device = None if isinstance(load.rows, np.ndarray) else load.rows.device
        return placed(turned[:, :own], device), placed(self.rest.T @ turned[:, own:], device)


@dataclass(frozen=True)
class Grams:
    """Eliminates by Cholesky factors of Gram matrices, with an error where these have no digits left."""

    device: Any = None

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
        own, count = system.own, system.count
        require_time(
            count * ((system.equation.shape[1] + system.rows.shape[1]) * own**2 + own * system.rows.shape[2] ** 2)
        )
        gram, equation = _gram(system.rows, own), written(system.equation)
        if len(gram) < count:  # rows in common
            gram = library(gram).concat([gram] * count)
        gram[:, :own, :own] += transposed(equation) @ equation
        xp = library(gram)
        sizes = xp.asarray(xp.linalg.diagonal(gram), copy=True)
        if not bool(xp.isfinite(sizes).all()):
            raise SolveError("The equations are not finite where they are linearised. Check starts and bounds.")
        triangles, definite = cholesky(gram[:, :own, :own])
        # A triangle that does not exist is not looked at.
        roots = xp.sqrt(sizes[:, None, :own])
        known = conditions(triangles / xp.where(roots > 0.0, roots, 1.0))
        good = [number for number in range(count) if definite[number] and known[number] >= _CONDITIONED]
        poor = sorted(set(range(count)) - set(good))
        found: list[tuple[Factor, list[int]]] = []
        for number, one in ((n, system.taken([n])) for n in poor):
            has_digits = definite[number] and known[number] >= math.sqrt(sys.float_info.epsilon)
            twice = _twice(triangles[number], equation[number], one.rows[0]) if has_digits else None
            rest = gram[number : number + 1, own:, own:], sizes[number : number + 1, own:], one.heavy
            found.append((self._rotated(one) if twice is None else _bordered(*twice, *rest), [number]))
        if good:
            which = slice(None) if not poor else good
            gram, sizes, heavy = gram[which], sizes[which][:, own:], system.heavy[which]
            # Every triangle stays in the order in which LAPACK wants it.
            kept = transposed(transposed(triangles)[which])
            coupling = triangular(kept, gram[:, :own, own:], trans=True)
            found.append((_bordered(kept, coupling, gram[:, own:, own:], sizes, heavy), good))
        return found

    def _rotated(self, system: LeafSystem) -> Rotated:
        rows, own, order = to_host(system.all_rows[0]), system.own, np.arange(system.own)
        require_time(2.0 * len(rows) * own * (own + 2 * rows.shape[1]))
        columns, scales = _reflected(rows)
        if _condition(columns, rows, own) < _DEFICIENT:
            rows = np.vstack([rows, np.eye(own, rows.shape[1]) * RIDGE])
            columns, scales = _reflected(rows)
            if _condition(columns, rows, own) < _DEFICIENT:
                # In this order the last pivots show what nothing determines.
                order = lapack.dgeqp3(rows[:, :own], 64 * own)[1] - 1
                columns, scales = _reflected(np.hstack([rows[:, order], rows[:, own:]]))
        rest = np.triu(columns[own : rows.shape[1], own:])
        front = Front((rest.T @ rest)[None], np.square(rows[:, own:]).sum(axis=0)[None])
        triangle, coupling = np.asfortranarray(np.triu(columns[:own, :own]))[None], columns[None, :own, own:]
        if self.device is not None:
            front, triangle, coupling = (
                front.placed(self.device),
                placed(triangle, self.device),
                placed(coupling, self.device),
            )
        return Rotated(triangle, coupling, front, (columns, scales), rest, order)

    def scaled(self, front: Front, units: Array) -> Front:
        """Return fronts over unknowns in other units: old ones are new ones times units."""
        return Front(units[:, :, None] * front.rows * units[:, None], front.sizes * units * units)

    def shifted(self, front: Front, shifts: Array) -> Front:
        """Return fronts over other sums: old ones are the matrix of each front times new ones.

        >>> front = Front(np.array([[[4.0, 2.0], [2.0, 3.0]]]), np.array([[4.0, 3.0]]))
        >>> Grams().shifted(front, np.array([[[1.0, 0.0], [-1.0, 1.0]]])).rows.tolist()
        [[[3.0, -1.0], [-1.0, 3.0]]]
        """
        count, own = shifts.shape[1], library(shifts)
        rows, sizes = own.asarray(front.rows, copy=True), own.asarray(front.sizes, copy=True)
        rows[:, :count] = self.moved(rows, shifts)[:, :count]
        rows[:, :, :count] = rows[:, :, :count] @ shifts
        sizes[:, :count] = (sizes[:, None, :count] @ (shifts * shifts))[:, 0]
        return Front(rows, sizes)

    def joined(self, one: Front, two: Front, join: Join, counts: Pair) -> Factor:
        """Join fronts pair by pair and eliminate the unknowns that only they share."""
        (count, gone), width = (len(one.rows), join.gone), join.gone + join.left
        require_time(count * gone * width**2)
        sums, own = join.sums, one.rows[:, : join.sums]
        if self.device is None:
            # Rows of the unknowns that are eliminated, and those of the front: all others follow by symmetry.
            top, rest = np.zeros((count, gone, width)), np.zeros((count, join.left, join.left))
            for down, taken, across, through in join.blocks[0]:
                block = top[:, down, across] if down.start < gone else _within(rest, down, across, gone)
                block[:] = one.rows[:, taken, through]
            # The sums of the first front are those of the union less those of the second.
            for across, through in join.runs[0]:
                top[:, :sums, across] = -own[:, :, through]
                if across.start < gone:
                    top[:, across, :sums] = -transposed(own[:, :, through])
            top[:, :sums, :sums] = own[:, :, :sums]
            for down, taken, across, through in join.blocks[1]:
                block = top[:, down, across] if down.start < gone else _within(rest, down, across, gone)
                block += two.rows[:, taken, through]
        else:
            # On a device one copy by numbers is faster than many of runs.
            gram = zeros((count, width, width), one.rows)
            first, second = (placed(places, self.device) for places in join.places)
            gram[:, first[:, None], first] = one.rows
            gram[:, :sums, first], gram[:, first, :sums] = -own, -transposed(own)
            gram[:, :sums, :sums] = own[:, :, :sums]
            gram[:, second[:, None], second] += two.rows
            top, rest = gram[:, :gone], gram[:, gone:, gone:]
        starts = np.arange(sums)
        first, second = (own * own for own in counts)
        rest[:, starts, starts] += first
        top[:, starts, starts] += first + second
        top[:, starts, gone + starts] -= first
        sizes = zeros((count, width), one.sizes)
        sizes[:, join.places[0]] = one.sizes
        sizes[:, join.places[1]] += two.sizes
        return self._factor(top, rest, sizes)

    def last(self, front: Front, counts: Array) -> Factor:
        """Eliminate the sums of whole trees, and how much they count."""
        gram = front.rows + placed(np.diag(np.square(counts)), self.device)
        return self._factor(gram, gram[:, :0, :0], front.sizes)

    def _factor(self, top: Array, rest: Array, sizes: Array) -> Factor:
        """Eliminate unknowns, given their rows of Gram matrices and the rest, which becomes that of the fronts."""
        own = top.shape[1]
        triangles, definite = cholesky(top[:, :, :own])
        pivots = library(top).linalg.diagonal(triangles)
        if not all(definite) or not bool((pivots * pivots > _DEPENDENT * sizes[:, :own]).all()):
            raise DependentError("Gram matrices have no digits left. Factorise rows.")
        coupling = triangular(triangles, top[:, :, own:], trans=True)
        product = transposed(coupling) @ coupling
        # In place, large fronts are twice as fast.
        left = np.subtract(rest, product, out=rest) if self.device is None else rest - product
        return Factor(triangles, coupling, Front(left, sizes[:, own:]))

    def raised(self, right: Array, weight: Array, units: Array) -> Array:
        """Return the right-hand sides of scaled fronts."""
        return (weight[:, None] * units)[:, :, None] * right

    def moved(self, right: Array, shifts: Array) -> Array:
        """Return the right-hand sides of shifted fronts."""
        count = shifts.shape[1]
        return library(right).concat([transposed(shifts) @ right[:, :count], right[:, count:]], axis=1)

    def union(self, one: Array, two: Array, given: Pair, join: Join, counts: Pair) -> Array:
        """Return the right-hand sides of unions of fronts from theirs, and from the values given to their sums."""
        (first, second), sums = join.places, join.sums
        found = zeros((len(one), join.gone + join.left, one.shape[2]), one)
        found[:, first] = one
        found[:, :sums] = -one[:, :sums]
        found[:, second] += two
        own, other = ((weights * weights)[:, :, None] * value for weights, value in zip(counts, given, strict=True))
        found[:, join.gone : join.gone + sums] += own
        found[:, :sums] += other - own
        return found

    def whole(self, right: Array, given: Array, counts: Array) -> Array:
        """Return the right-hand sides of whole trees from those of their fronts, and from values given to sums."""
        return right + placed(np.square(counts)[:, None], self.device) * given


def _within(rest: Array, down: slice, across: slice, gone: int) -> Array:
    """Return the block of a front in the rows and columns of a union."""
    return rest[:, down.start - gone : down.stop - gone, across.start - gone : across.stop - gone]


def _gram(rows: Array, own: int) -> Array:
    """Return the Gram matrices of rows over own unknowns and others.

    Most rows on faces have one entry beyond the own unknowns, alone in its column, and such columns need no product.

    >>> rows = np.array([[[1.0, 2.0, -1.0, 0.0], [3.0, 4.0, 0.0, 5.0], [5.0, 6.0, 0.0, 7.0]]])
    >>> bool((_gram(rows, 2) == rows.transpose(0, 2, 1) @ rows).all())
    True
    """
    if not isinstance(rows, np.ndarray) or not rows.shape[1]:
        return transposed(rows) @ rows
    entries = (rows[:, :, own:] != 0.0).any(axis=0)
    single = entries.sum(axis=0) == 1
    alone = single & (entries.sum(axis=1)[entries.argmax(axis=0)] == 1)
    columns, dense = own + np.flatnonzero(alone), np.append(np.arange(own), own + np.flatnonzero(~alone))
    at = entries[:, alone].argmax(axis=0)
    gram, some = np.zeros((len(rows), rows.shape[2], rows.shape[2])), rows[:, :, dense]
    gram[:, dense[:, None], dense] = transposed(some) @ some
    values = rows[:, at, columns]
    beside = values[:, :, None] * rows[:, at, :own]
    gram[:, columns, :own], gram[:, :own, columns] = beside, transposed(beside)
    gram[:, columns, columns] = np.square(values)
    return gram


def _reflected(rows: Array) -> tuple[Array, Array]:
    """Return the triangle of rows with the reflectors below it, and the scales of these."""
    return lapack.dgeqrf(rows, 64 * rows.shape[1])[:2]  # type: ignore[no-any-return]


def _condition(columns: Array, rows: Array, own: int) -> float:
    """Return the reciprocal condition of the first columns of rows, each of size one, from their triangle."""
    sizes = np.linalg.norm(rows[:, :own], axis=0)
    if len(rows) < own or not sizes.all():
        return 0.0
    return float(lapack.dtrcon(np.triu(columns[:own, :own]) / sizes)[0])


def _twice(triangle: Array, equation: Array, rows: Array) -> tuple[Array, Array] | None:
    """Return triangle and coupling from the Gram matrix of columns that a first triangle made nearly orthogonal.

    Two Gram matrices have nearly the digits of rotations. None where the first triangle had no digits.

    >>> triangle, coupling = _twice(
    ...     np.array([[1.0, 1.0], [0.0, 1.001e-6]]), np.empty((0, 2)), np.array([[1.0, 1.0, 1.0], [0.0, 1e-6, 2.0]])
    ... )
    >>> np.abs(triangle).round(9).tolist(), coupling.round(9).tolist()
    ([[[1.0, 1.0], [0.0, 1e-06]]], [[[1.0], [2.0]]])
    """
    own = len(triangle)
    turned = triangular(triangle[None], transposed(library(rows).concat([equation, rows[:, :own]])[None]), trans=True)
    second, (definite,) = cholesky(turned @ transposed(turned))
    if not definite or conditions(second)[0] < _CONDITIONED:
        return None
    coupling = triangular(second, turned[:, :, len(equation) :] @ rows[None, :, own:], trans=True)
    return _ordered(second @ triangle), coupling


def _bordered(triangles: Array, coupling: Array, rest: Array, sizes: Array, heavy: Array) -> Factor:
    """Return the factors of leaves: from triangles, couplings, the rest of their Gram matrices, and heavy rows."""
    count, own, _ = triangles.shape
    front = rest - transposed(coupling) @ coupling
    more = heavy.shape[1]
    if not more:
        return Factor(triangles, coupling, Front(front, sizes))
    xp, border = library(triangles), triangular(triangles, transposed(heavy[:, :, :own]), trans=True)
    square = transposed(border) @ border
    square[:, np.arange(more), np.arange(more)] += 1.0
    lower = xp.linalg.cholesky(square)
    last = xp.linalg.solve(lower, transposed(border) @ coupling - heavy[:, :, own:])
    whole = transposed(zeros((count, own + more, own + more), triangles))
    whole[:, :own, :own], whole[:, :own, own:], whole[:, own:, own:] = triangles, border, transposed(lower)
    left = Front(front + transposed(last) @ last, sizes + (last * last).sum(axis=1))
    return Bordered(whole, xp.concat([coupling, last], axis=1), left, more)


def _ordered(triangles: Array) -> Array:
    """Return triangles in the order in which LAPACK wants them."""
    return transposed(np.ascontiguousarray(transposed(triangles))) if isinstance(triangles, np.ndarray) else triangles
