"""A factorised tree as stacks of matrices: a right-hand side costs a few products per level.

A batch of a :class:`FactoredTree` holds branches of one shape. Here the factors are applied to unit vectors once, which
makes matrices of them, and these are padded with zeros: all unions of a level are one stack, and so are many parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pibls.cells.branches import Branch
from pibls.cells.factored_tree import Batch, FactoredTree
from pibls.checks import FloatArray
from pibls.solvers.elimination import Factor, LeafSystem, Load
from pibls.solvers.grams import Rotated
from pibls.solvers.rotations import Turned

__all__ = ["CompiledTree", "Leaves", "Solved", "Vectors"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Leaves:
    """Parts whose systems have one shape; parts with one system are columns beside each other.

    Vectors of them have the shape (systems, entries, columns, sides), with zeros in columns without a part.

    Attributes
    ----------
    slots
        The branch in each system and column; None in a column without a part.
    rows
        All rows of the systems.
    lifted, coupled
        The matrices from loads to own unknowns and fronts, and from shared unknowns to own ones.
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
    rows: FloatArray
    lifted: FloatArray
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
        rows, lifted, coupled = (np.concatenate(own) for own in zip(*map(_maps, batches), strict=True))
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
                at[number, :, column], whole[number, 0, column] = numbers[branch], branch.sample.whole
        slots: list[list[Branch | None]] = [[*own, *[None] * (shape[2] - len(own))] for own in every]
        fronts = start + np.arange(at.size).reshape(shape)
        turned = [batch.factor for batch in batches if isinstance(batch.factor, Rotated | Turned)]
        factors = tuple(own.taken([number]) for own in turned for number in range(len(own.triangle)))
        return cls(
            slots, rows, lifted, coupled, factors, units[..., None], scales[..., None], shifts, at, fronts, whole
        )

    @property
    def branches(self) -> Iterator[tuple[int, int, Branch]]:
        """The system and the column of each part, with its branch."""
        for number, own in enumerate(self.slots):
            for column, branch in enumerate(own):
                if branch is not None:
                    yield number, column, branch

    def stacked(self, loads: dict[Branch, Load]) -> FloatArray:
        """Return the loads of parts as vectors."""
        sides = next(iter(loads.values())).rows.shape[2]
        found = np.zeros((len(self.slots), self.rows.shape[1], len(self.slots[0]), sides))
        for number, column, branch in self.branches:
            found[number, :, column] = _ordered(loads[branch])[0]
        return found

    def up(self, load: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the own unknowns without the shared ones, and the right-hand sides of fronts, from the first loads."""
        both, own = _product(self.lifted[:, :, : load.shape[1]], load), self.coupled.shape[1]
        front = both[:, own:] * self.scales
        if moved := self.shifts.shape[2]:
            front[:, :moved] = np.einsum("skji,sjkn->sikn", self.shifts, front[:, :moved])
        return both[:, :own], front

    def down(self, own: FloatArray, unknowns: FloatArray) -> FloatArray:
        """Return the own and shared unknowns, from the own ones without the shared ones, and all those of the tree."""
        others = unknowns.take(self.at, axis=0)
        if moved := self.shifts.shape[2]:
            others[:, :moved] = np.einsum("skij,sjkn->sikn", self.shifts, others[:, :moved])
        others *= self.units
        if not self.factors:
            return np.concatenate([own + _product(self.coupled, others), others], axis=1)
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


def _product(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the products of a stack of matrices with vectors of its columns."""
    count, entries, columns, sides = vectors.shape
    return (matrices @ vectors.reshape(count, entries, columns * sides)).reshape(count, -1, columns, sides)


def _ordered(system: LeafSystem | Load) -> FloatArray:
    """Return the rows of parts, or their right-hand sides: equations and balances first, which sources change."""
    if isinstance(system, Load):
        return np.concatenate([system.equation, system.heavy, system.rows], axis=1)
    above = np.zeros((len(system.rows), system.equation.shape[1], system.rows.shape[2]))
    above[:, :, : system.own] = system.equation
    return np.concatenate([above, system.heavy, system.rows], axis=1)


def _maps(batch: Batch) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rows of parts, and the matrices from loads to own unknowns and fronts, and from others to own ones."""
    system, factor = batch.system, batch.factor
    assert system is not None
    count, ends = len(system.rows), np.cumsum([own.shape[1] for own in (system.equation, system.heavy, system.rows)])
    unit = _units(count, ends[2])
    right, front = factor.lifted(system, Load(unit[:, : ends[0]], unit[:, ends[1] :], unit[:, ends[0] : ends[1]]))
    if isinstance(factor, Turned):  # right-hand sides of rows become those of normal equations
        front = factor.front.rows.transpose(0, 2, 1) @ front
    if isinstance(factor, Rotated | Turned):
        return _ordered(system), np.concatenate([right, front], axis=1), factor.coupling
    own = factor.down(right, np.zeros(front.shape))
    coupled = factor.down(np.zeros((count, right.shape[1], front.shape[1])), _units(count, front.shape[1]))
    return _ordered(system), np.concatenate([own, front], axis=1), coupled


def _units(count: int, size: int) -> FloatArray:
    """Return a stack of unit matrices."""
    return np.broadcast_to(np.eye(size), (count, size, size))


@dataclass(frozen=True, eq=False)
class Unions:
    """The unions of a level, as one stack.

    Attributes
    ----------
    first, second, turned
        Numbers of the entries of the fronts of both halves, where they stand in the union: those that are added, and
        the sums of the first ones, which are subtracted.
    up, down
        The matrices from right-hand sides to unknowns and fronts, and from unknowns of the union to eliminated ones.
    at, inner, sums, halves
        Numbers of the unknowns of the union, of those that it eliminates, of its sums, and of the sums of its halves.
    counts
        Squared weights of the balance sums of both halves.
    fronts
        Numbers of the entries of its fronts.
    """

    first: IntArray
    second: IntArray
    turned: IntArray
    up: FloatArray
    down: FloatArray
    at: IntArray
    inner: IntArray
    sums: IntArray
    halves: tuple[IntArray, IntArray]
    counts: tuple[FloatArray, FloatArray]
    fronts: IntArray

    @classmethod
    def of(cls, batches: Sequence[Batch], tree: Numbering, start: int) -> Unions:
        """Write the unions of batches of one level as a stack."""
        joins = [batch.join for batch in batches for _ in batch.branches if batch.join is not None]
        count, sums = len(joins), joins[0].sums
        gone, left = max(join.gone for join in joins), max(join.left for join in joins)
        first, second = np.full((2, count, gone + left), -1, dtype=np.int64)
        turned, own_sums, one, two = np.empty((4, count, sums), dtype=np.int64)
        up, down = np.zeros((count, gone + left, gone)), np.zeros((count, gone, left))
        at, inner = np.full((count, left), -1, dtype=np.int64), np.full((count, gone), -1, dtype=np.int64)
        counts, number = (np.empty((count, sums, 1)), np.empty((count, sums, 1))), 0
        for batch in batches:
            maps = _union_maps(batch)
            for k, branch in enumerate(batch.branches):
                join, (lower, upper) = joins[number], branch.halves
                for entries, half, places in zip((first, second), branch.halves, join.places, strict=True):
                    places = np.where(places < join.gone, places, places - join.gone + gone)
                    entries[number, places] = tree.fronts[half]
                turned[number] = tree.fronts[lower][:sums]
                own, front, coupled = (own[min(k, len(own) - 1)] for own in maps)
                up[number, : join.gone, : join.gone], down[number, : join.gone, : join.left] = own, coupled
                up[number, gone : gone + join.left, : join.gone] = front
                at[number, : join.left], own_sums[number] = tree.shared[branch], tree.shared[branch][:sums]
                one[number], two[number] = tree.shared[lower][:sums], tree.shared[upper][:sums]
                inner[number, : join.gone] = np.concatenate([two[number], branch.inner_at])
                for weights, half in zip(counts, branch.halves, strict=True):
                    weights[number, :, 0] = np.square(half.counts)
                tree.fronts[branch] = start + number * left + np.arange(join.left)
                number += 1
        fronts = start + np.arange(count * left).reshape(count, left)
        return cls(first, second, turned, up, down, at, inner, own_sums, (one, two), counts, fronts)

    def raise_fronts(self, fronts: FloatArray, given: FloatArray | None) -> FloatArray:
        """Add the fronts of the unions to all fronts; return the unknowns without those of the unions."""
        gone, sums = self.up.shape[2], self.turned.shape[1]
        right = fronts.take(self.first, axis=0)
        right += fronts.take(self.second, axis=0)
        right[:, :sums] -= fronts.take(self.turned, axis=0)
        if given is not None:  # the values given to sums are minus those that there are
            own, other = (weights * given[at] for weights, at in zip(self.counts, self.halves, strict=True))
            right[:, gone : gone + sums] -= own
            right[:, :sums] += own - other
        found = self.up @ right[:, :gone]
        fronts[self.fronts] = right[:, gone:] + found[:, gone:]
        return np.asarray(found[:, :gone])

    def fill(self, unknowns: FloatArray, own: FloatArray) -> None:
        """Write the eliminated unknowns among those of the tree."""
        own = own + self.down @ unknowns.take(self.at, axis=0)
        unknowns[self.inner] = own
        unknowns[self.halves[0]] = unknowns[self.sums] - own[:, : self.sums.shape[1]]


def _union_maps(batch: Batch) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the matrices from right-hand sides to unknowns and to fronts, and from unknowns of unions to own ones."""
    factor = batch.factor
    count, gone, left = factor.coupling.shape
    unit = np.concatenate([_units(count, gone), np.zeros((count, left, gone))], axis=1)
    right, front = Factor.up(factor, unit)
    coupled = factor.down(np.zeros((count, gone, left)), _units(count, left))
    return factor.down(right, np.zeros((count, left, gone))), front, coupled


@dataclass(frozen=True, eq=False)
class Numbering:
    """Numbers of the sums and shared unknowns of branches among those of a tree, and of the entries of their fronts."""

    shared: dict[Branch, IntArray]
    fronts: dict[Branch, IntArray]


Vectors = list[FloatArray]
"""For each group of leaves, vectors of its parts."""
Solved = tuple[FloatArray, Vectors]
"""All shared unknowns and balance sums of a tree, and own and shared unknowns of its parts."""


@dataclass(frozen=True, eq=False)
class CompiledTree:
    """A factorised tree in NumPy as stacks of matrices.

    Attributes
    ----------
    tree
        The factorised tree.
    leaves, levels
        Its parts, and its unions level by level.
    top, sums
        The matrix that solves for the sums of the whole tree, and their numbers.
    unknowns, entries
        Number of unknowns, and of entries of fronts.
    """

    tree: FactoredTree
    leaves: list[Leaves]
    levels: list[Unions]
    top: FloatArray
    sums: IntArray
    last: IntArray
    unknowns: int
    entries: int

    @classmethod
    def of(cls, tree: FactoredTree) -> CompiledTree:
        """Write a factorised tree as stacks of matrices."""
        groups = defaultdict[tuple[int, ...], list[Batch]](list)
        levels = defaultdict[int, list[Batch]](list)
        numbers, count = Numbering({}, {}), len(tree.top.counts)
        for batch in tree.batches:
            for branch in batch.branches:
                sums = tree.total + count * len(numbers.shared) + np.arange(count)
                numbers.shared[branch] = np.concatenate([sums, branch.at])
            if batch.join is not None:
                levels[batch.branches[0].level].append(batch)
                continue
            assert batch.system is not None
            # Parts with one system are columns; stacks with very different numbers of columns would be mostly zeros.
            columns = len(batch.branches) if len(batch.factor.triangle) == 1 else 1
            shape = batch.system.shape
            kind = isinstance(batch.factor, Rotated | Turned)
            groups[*shape[0], *shape[1], *shape[2], batch.at.shape[1], columns.bit_length(), kind].append(batch)
        leaves, unions, entries = [], [], 0
        for batches in groups.values():
            leaves.append(Leaves.of(batches, numbers.shared, entries))
            entries += leaves[-1].fronts.size
            for number, column, branch in leaves[-1].branches:
                numbers.fronts[branch] = leaves[-1].fronts[number, :, column]
        for level in sorted(levels):
            unions.append(Unions.of(levels[level], numbers, entries))
            entries += unions[-1].fronts.size
        unit = np.eye(count)[None]
        top = tree.last.down(Factor.up(tree.last, unit)[0], np.zeros((1, 0, count)))[0]
        known = tree.total + count * len(numbers.shared) + 1
        return cls(
            tree, leaves, unions, top, numbers.shared[tree.top][:count], numbers.fronts[tree.top], known, entries
        )

    def solved(self, loads: Vectors, given: FloatArray | None = None) -> Solved:
        """Return all shared unknowns, and own and shared ones of the parts, for given loads.

        With unknowns that are ``given``, return the correction that also cancels their balance sums.
        """
        sides = loads[0].shape[3]
        fronts, unknowns = np.zeros((self.entries + 1, sides)), np.zeros((self.unknowns, sides))
        owns = []
        for leaves, load in zip(self.leaves, loads, strict=True):
            own, fronts[leaves.fronts] = leaves.up(load)
            owns.append(own)
        rights = [level.raise_fronts(fronts, given) for level in self.levels]
        right = fronts[self.last]
        if given is not None:
            right = right - np.square(self.tree.top.counts)[:, None] * given[self.sums]
        unknowns[self.sums] = self.top @ right
        for level, own in zip(reversed(self.levels), reversed(rights), strict=True):
            level.fill(unknowns, own)
        return unknowns, [leaves.down(own, unknowns) for leaves, own in zip(self.leaves, owns, strict=True)]

    def left(self, loads: Vectors, found: Vectors) -> Vectors:
        """Return the residuals: the loads minus the rows of all parts times the unknowns."""
        every = zip(self.leaves, loads, found, strict=True)
        return [load - _product(leaves.rows, both) for leaves, load, both in every]

    def completed(self, loads: Vectors) -> Vectors:
        """Return loads of equations and balances with zeros for all other rows."""
        found = [
            np.zeros((len(own), leaves.rows.shape[1], *own.shape[2:]))
            for own, leaves in zip(loads, self.leaves, strict=True)
        ]
        for whole, own in zip(found, loads, strict=True):
            whole[:, : own.shape[1]] = own
        return found

    def ratio(self, change: Vectors, found: Vectors) -> float:
        """Return the largest size of a change relative to the solution, over all sides.

        Own unknowns of cut parts are not well determined, so that their changes do not count.
        """
        changed = sum(leaves.squares(both)[0] for leaves, both in zip(self.leaves, change, strict=True))
        whole = sum(leaves.squares(both)[1] for leaves, both in zip(self.leaves, found, strict=True))
        return float(np.sqrt(changed / np.where(np.asarray(whole) > 0.0, whole, 1.0)).max(initial=0.0))
