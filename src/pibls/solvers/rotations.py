"""Elimination by orthogonal factors of the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from pibls.checks import FloatArray
from pibls.errors import SolveError
from pibls.limits import require_time
from pibls.solvers.elimination import RIDGE, Factor, Front, LeafSystem, Load, Pair
from pibls.solvers.joins import Join


@dataclass(frozen=True, eq=False)
class Turned(Factor):
    """Branches whose rows are rotated: for each one, the reflectors that take its rows into the triangles."""

    reflectors: tuple[tuple[FloatArray, FloatArray], ...]

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return super().size + sum(columns.size for columns, _ in self.reflectors)

    def taken(self, which: Any) -> Factor:
        """Return the factors of some of the branches."""
        some = super().taken(which)
        return Turned(some.triangle, some.coupling, some.front, tuple(self.reflectors[k] for k in which))

    def up(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the right-hand sides of own unknowns and of fronts, from those of the rows."""
        count, given, sides = right.shape
        if len(self.reflectors) == count:
            turned = np.stack([_turned(*own, one) for own, one in zip(self.reflectors, right, strict=True)])
        else:
            together = _turned(*self.reflectors[0], right.transpose(1, 0, 2).reshape(given, count * sides))
            turned = together.reshape(-1, count, sides).transpose(1, 0, 2)
        return turned[:, : self.own], turned[:, self.own :]

    def lifted(self, system: LeafSystem, load: Load) -> tuple[FloatArray, FloatArray]:
        """Return the same for leaves."""
        del system
        return self.up(np.concatenate([load.equation, load.rows, load.heavy], axis=1))


def _turned(columns: FloatArray, scales: FloatArray, right: FloatArray) -> FloatArray:
    """Return rotated right-hand sides of rows; rows beyond those given have none."""
    every = np.zeros((len(columns), right.shape[1]), order="F")
    if not right.any():
        return every[: columns.shape[1]]
    every[: len(right)] = right
    found = lapack.dormqr("L", "T", columns, scales, every, 64 * max(64, right.shape[1]), overwrite_c=True)[0]
    return np.asarray(found[: columns.shape[1]])


@dataclass(frozen=True)
class Rotations:
    """Eliminates by orthogonal factors of the rows themselves, in NumPy: a device has no fast ones for stacks."""

    device: None = None

    def leaves(self, system: LeafSystem) -> list[tuple[Factor, list[int]]]:
        """Eliminate the own unknowns of leaves."""
        ridge = np.zeros((system.count, system.own, system.rows.shape[2]))
        ridge[:, np.arange(system.own), np.arange(system.own)] = RIDGE
        rows = np.concatenate([system.all_rows, ridge], axis=1)
        return [(self._factor(rows, system.own), list(range(len(rows))))]

    def scaled(self, front: Front, units: FloatArray) -> Front:
        """Return fronts over unknowns in other units: old ones are new ones times units."""
        return Front(front.rows * units[:, None], front.sizes * np.square(units))

    def shifted(self, front: Front, shifts: FloatArray) -> Front:
        """Return fronts over other sums: old ones are the matrix of each front times new ones."""
        count, rows, sizes = shifts.shape[1], front.rows.copy(), front.sizes.copy()
        rows[:, :, :count] = rows[:, :, :count] @ shifts
        sizes[:, :count] = (sizes[:, None, :count] @ np.square(shifts))[:, 0]
        return Front(rows, sizes)

    def joined(self, one: Front, two: Front, join: Join, counts: Pair) -> Factor:
        """Join fronts pair by pair and eliminate the unknowns that only they share."""
        places, sums, width = join.places, join.sums, join.gone + join.left
        parts = [np.zeros((len(own.rows), own.rows.shape[1] + sums, width)) for own in (one, two)]
        for rows, front, place, own in zip(parts, (one, two), places, counts, strict=True):
            count = front.rows.shape[1]
            rows[:, :count, place] = front.rows
            rows[:, count + np.arange(sums), place[:sums]] = own
        # The sums of the first front are those of the union less those of the second.
        parts[0][:, :, :sums] = -parts[0][:, :, places[0][:sums]]
        return self._factor(np.concatenate(parts, axis=1), join.gone)

    def last(self, front: Front, counts: FloatArray) -> Factor:
        """Eliminate the sums of whole trees, and how much they count."""
        diagonal = np.broadcast_to(np.diag(counts), (len(front.rows), len(counts), len(counts)))
        return self._factor(np.concatenate([front.rows, diagonal], axis=1), len(counts))

    @staticmethod
    def _factor(rows: FloatArray, own: int) -> Factor:
        if not np.isfinite(rows).all():
            raise SolveError("The equations are not finite where they are linearised. Check starts and bounds.")
        number, count, width = rows.shape
        require_time(2.0 * number * count * width**2)
        triangles, reflectors = np.empty((number, width, width)).transpose(0, 2, 1), []
        for triangle, own_rows in zip(triangles, rows, strict=True):
            columns = np.zeros((max(count, width), width), order="F")
            columns[:count] = own_rows
            columns, scales, _, _ = lapack.dgeqrf(columns, 64 * width, overwrite_a=True)
            triangle[:] = np.triu(columns[:width])
            reflectors.append((columns, scales))
        front = Front(triangles[:, own:, own:], np.square(rows).sum(axis=1)[:, own:])
        return Turned(triangles[:, :own, :own], triangles[:, :own, own:], front, tuple(reflectors))

    def raised(self, right: FloatArray, weight: FloatArray, units: FloatArray) -> FloatArray:
        """Return the right-hand sides of scaled fronts."""
        del units
        return weight[:, None, None] * right

    def moved(self, right: FloatArray, shifts: FloatArray) -> FloatArray:
        """Return the right-hand sides of shifted fronts."""
        del shifts
        return right

    def union(self, one: FloatArray, two: FloatArray, given: Pair, join: Join, counts: Pair) -> FloatArray:
        """Return the right-hand sides of unions of fronts from theirs, and from the values given to their sums."""
        del join
        own, other = (weights[:, :, None] * value for weights, value in zip(counts, given, strict=True))
        return np.concatenate([one, own, two, other], axis=1)

    def whole(self, right: FloatArray, given: FloatArray, counts: FloatArray) -> FloatArray:
        """Return the right-hand sides of whole trees from those of their fronts, and from values given to sums."""
        return np.concatenate([right, counts[:, None] * given], axis=1)
