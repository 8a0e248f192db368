"""Parts of a factorised tree as stacks of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pibls.cells.branches import Branch
from pibls.cells.factored_tree import Batch
from pibls.checks import FloatArray, IntArray
from pibls.solvers.elimination import Factor, LeafSystem, Load
from pibls.solvers.grams import Rotated
from pibls.solvers.rotations import Turned

__all__ = ["IntArray", "Leaves", "product", "unit_matrices"]


@dataclass(frozen=True, eq=False)
class Leaves:
    """Parts whose systems have one shape; parts with one system are columns beside each other.

    Vectors of them have the shape (systems, entries, columns, sides), with zeros in columns without a part.

    Attributes
    ----------
    slots
        The branch in each system and column; None in a column without a part.
    batches
        The batches of these parts.
    coupled
        The matrices from shared unknowns to own ones.
    factors
        Factors of systems with nearly dependent rows, whose inverses would be inaccurate: their loads are lifted to
        right-hand sides of own unknowns only.
    units, scales, shifts
        Units of shared unknowns, factors of fronts, and the matrices from the sums of the tree to those of parts.
    at, fronts
        Numbers of the shared unknowns in the tree, and of the entries of fronts.
    whole
        Whether the part in each column is a whole cell.
    """

    slots: list[list[Branch | None]]
    batches: Sequence[Batch]
    coupled: FloatArray
    factors: tuple[Factor, ...]
    units: FloatArray
    scales: FloatArray
    shifts: FloatArray
    at: IntArray
    fronts: IntArray
    whole: FloatArray

    @classmethod
    def of(cls, batches: Sequence[Batch], numbers: dict[Branch, IntArray], start: int) -> Leaves:
        """Write the parts of batches as stacks, from the numbers of their shared unknowns and of the first front."""
        coupled = np.concatenate([_coupled(batch.factor) for batch in batches])
        every = [
            own
            for batch in batches
            for own in ([batch.branches] if len(batch.factor.triangle) == 1 else [(one,) for one in batch.branches])
        ]
        shape = len(every), coupled.shape[2], max(len(own) for own in every)
        units, scales, moved = np.zeros(shape), np.zeros(shape), batches[0].shifts.shape[1]
        at, whole = np.full(shape, -1, dtype=np.int64), np.zeros((shape[0], 1, shape[2], 1))
        shifts = np.zeros((shape[0], shape[2], moved, moved))
        for number, branches in enumerate(every):
            for column, branch in enumerate(branches):
                units[number, :, column], shifts[number, column] = branch.units, branch.shift
                scales[number, :, column] = branch.weight**2 * branch.units
                at[number, :, column], whole[number, 0, column] = numbers[branch], branch.part.whole
        slots: list[list[Branch | None]] = [[*own, *[None] * (shape[2] - len(own))] for own in every]
        fronts = start + np.arange(at.size).reshape(shape)
        turned = [batch.factor for batch in batches if isinstance(batch.factor, Rotated | Turned)]
        factors = tuple(own.taken([number]) for own in turned for number in range(len(own.triangle)))
        return cls(slots, batches, coupled, factors, units[..., None], scales[..., None], shifts, at, fronts, whole)

    @property
    def branches(self) -> Iterator[tuple[int, int, Branch]]:
        """The system and the column of each part, with its branch."""
        for number, own in enumerate(self.slots):
            for column, branch in enumerate(own):
                if branch is not None:
                    yield number, column, branch

    @cached_property
    def rows(self) -> FloatArray:
        """All rows of the systems."""
        return np.concatenate([_ordered(batch.system) for batch in self.batches if batch.system is not None])

    @cached_property
    def lifted(self) -> FloatArray:
        """The matrices from loads to own unknowns and fronts."""
        found = []
        for batch in self.batches:
            assert batch.system is not None
            ends = np.cumsum([own.shape[1] for own in (batch.system.equation, batch.system.heavy, batch.system.rows)])
            unit = unit_matrices(batch.system.count, ends[2])
            load = Load(unit[:, : ends[0]], unit[:, ends[1] :], unit[:, ends[0] : ends[1]])
            found.append(np.concatenate(_lifted(batch, load), axis=1))
        return np.concatenate(found)

    def raised(self, loads: dict[Branch, Load]) -> tuple[FloatArray, FloatArray]:
        """Return the own unknowns without the shared ones, and the right-hand sides of fronts, for loads of parts."""
        shape = len(self.slots), -1, len(self.slots[0]), next(iter(loads.values())).rows.shape[2]
        found, start = (np.zeros((shape[0], own, *shape[2:])) for own in self.coupled.shape[1:]), 0
        both = tuple(found)
        for batch in self.batches:
            made = _lifted(batch, Load.stacked([loads[branch] for branch in batch.branches]))
            count = len(batch.factor.triangle)
            for whole, own in zip(both, made, strict=True):
                if count == 1:
                    whole[start, :, : len(own)] = own.swapaxes(0, 1)
                else:
                    whole[start : start + count, :, 0] = own
            start += count
        return both[0], self._scaled(both[1])

    def stacked(self, loads: dict[Branch, Load]) -> FloatArray:
        """Return the loads of parts as vectors."""
        sides = next(iter(loads.values())).rows.shape[2]
        found = np.zeros((len(self.slots), self.rows.shape[1], len(self.slots[0]), sides))
        for number, column, branch in self.branches:
            found[number, :, column] = _ordered(loads[branch])[0]
        return found

    def up(self, load: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the own unknowns without the shared ones, and the right-hand sides of fronts, from the first loads."""
        both, own = product(self.lifted[:, :, : load.shape[1]], load), self.coupled.shape[1]
        return both[:, :own], self._scaled(both[:, own:])

    def _scaled(self, front: FloatArray) -> FloatArray:
        """Return the right-hand sides of fronts in the units of the tree, with its sums."""
        front = front * self.scales
        if moved := self.shifts.shape[2]:
            front[:, :moved] = np.einsum("skji,sjkn->sikn", self.shifts, front[:, :moved])
        return front

    def down(self, own: FloatArray, unknowns: FloatArray) -> FloatArray:
        """Return the own and shared unknowns, from the own ones without the shared ones, and all those of the tree."""
        others = unknowns.take(self.at, axis=0)
        if moved := self.shifts.shape[2]:
            others[:, :moved] = np.einsum("skij,sjkn->sikn", self.shifts, others[:, :moved])
        others *= self.units
        if not self.factors:
            return np.concatenate([own + product(self.coupled, others), others], axis=1)
        found = [
            factor.down(one.swapaxes(0, 1), two.swapaxes(0, 1)).swapaxes(0, 1)
            for factor, one, two in zip(self.factors, own, others, strict=True)
        ]
        return np.concatenate([np.stack(found), others], axis=1)

    def squares(self, both: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the squared size of the unknowns for each side, without and with the own unknowns of cut parts."""
        own, squares = self.rows.shape[2] - self.at.shape[1], both * both
        shared = squares[:, own:].sum(axis=(0, 1, 2))
        each = squares[:, :own].sum(axis=1)
        return shared + (each * self.whole[:, 0]).sum(axis=(0, 1)), shared + each.sum(axis=(0, 1))


def product(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the products of a stack of matrices with vectors of its columns."""
    count, entries, columns, sides = vectors.shape
    return (matrices @ vectors.reshape(count, entries, columns * sides)).reshape(count, -1, columns, sides)


def _ordered(system: LeafSystem | Load) -> FloatArray:
    """Return the rows of parts, or their right-hand sides: equations and balances first, which sources change."""
    if isinstance(system, Load):
        return np.concatenate([system.equation, system.heavy, system.rows], axis=1)
    every, (first, more) = system.all_rows, (system.equation.shape[1], system.rows.shape[1])
    return np.concatenate([every[:, :first], every[:, first + more :], every[:, first : first + more]], axis=1)


def _lifted(batch: Batch, load: Load) -> tuple[FloatArray, FloatArray]:
    """Return the own unknowns of parts without the shared ones, and the right-hand sides of their fronts."""
    factor = batch.factor
    assert batch.system is not None
    right, front = factor.lifted(batch.system, load)
    if isinstance(factor, Turned):  # right-hand sides of rows become those of normal equations
        front = factor.front.rows.transpose(0, 2, 1) @ front
    if isinstance(factor, Rotated | Turned):
        return right, front
    return factor.down(right, np.zeros(front.shape)), front


def _coupled(factor: Factor) -> FloatArray:
    """Return the matrices from the shared unknowns of parts to own ones."""
    if isinstance(factor, Rotated | Turned):
        return np.asarray(factor.coupling)
    count, own, others = factor.coupling.shape
    return np.asarray(factor.down(np.zeros((count, own, others)), unit_matrices(count, others)))


def unit_matrices(count: int, size: int) -> FloatArray:
    """Return a stack of unit matrices."""
    return np.broadcast_to(np.eye(size), (count, size, size))
