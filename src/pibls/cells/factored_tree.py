"""A factorised tree, as batches of branches: right-hand sides go up level by level, and unknowns come down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.branches import Branch
from pibls.checks import FloatArray
from pibls.solvers.dense import Array
from pibls.solvers.elimination import Elimination, Factor, LeafSystem, Load, Pair
from pibls.solvers.inputs import to_host
from pibls.solvers.joins import Join
from pibls.solvers.stacks import library, placed, zeros

__all__ = ["Batch", "FactoredTree", "Unknowns"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Branches of one shape at one level, with one factor each or one factor for all.

    Attributes
    ----------
    branches
        The branches of the batch.
    factor
        Their factors, as a stack.
    system, load
        For parts: their rows and right-hand sides.
    join
        For unions: the pattern by which two halves are joined.
    sum_weights
        For unions: the weights of the balance sums of their first and second halves.
    at, inner
        Numbers of the unknowns that each branch shares, and of those that it eliminates.
    weights, units, shifts
        For parts: the weight of their rows, the units of their balance sums and shared unknowns, and the matrices from
        the sums of the tree to theirs.
    """

    branches: tuple[Branch, ...]
    factor: Factor
    system: LeafSystem | None
    load: Load | None
    join: Join | None
    sum_weights: Pair
    at: Array
    inner: Array
    weights: Array
    units: Array
    shifts: Array

    @classmethod
    def of(cls, branches: Sequence[Branch], factor: Factor, system: LeafSystem | None, device: Any) -> Batch:
        """Make a batch of branches."""
        loads = [branch.load for branch in branches if branch.load is not None]
        arrays = (
            np.stack([branch.at for branch in branches]),
            np.stack([branch.inner_at for branch in branches]),
            np.array([branch.weight for branch in branches]),
            np.stack([branch.units for branch in branches]),
            np.stack([branch.shift for branch in branches]),
        )
        load = Load.stacked(loads).placed(device) if loads else None
        known = [placed(array, device) for array in arrays]
        return cls(tuple(branches), factor, system, load, branches[0].join, weights_of_halves(branches, device), *known)


def weights_of_halves(branches: Sequence[Branch], device: Any) -> Pair:
    """Return the weights of the balance sums of the first and the second halves of unions, as stacks."""
    own = [[branch.halves[k].sum_weights for branch in branches if branch.halves] for k in (0, 1)]
    return placed(np.array(own[0]), device), placed(np.array(own[1]), device)


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Values of the unknowns: ``own`` ones of parts, their balance sums and ``shared`` ones, and all balance sums."""

    own: dict[Batch, Array]
    shared: dict[Batch, Array]
    sums: Array

    def changed(self, change: Unknowns) -> Unknowns:
        """Return these unknowns plus a change."""
        own = {batch: value + change.own[batch] for batch, value in self.own.items()}
        shared = {batch: value + change.shared[batch] for batch, value in self.shared.items()}
        return Unknowns(own, shared, self.sums + change.sums)

    @property
    def norms(self) -> FloatArray:
        """L2 size of the solution for each right-hand side; cut parts contribute their shared unknowns only."""
        found = 0.0
        for batch, own in self.own.items():
            whole = [number for number, branch in enumerate(batch.branches) if branch.part.whole]
            for values in (self.shared[batch], own if len(whole) == len(own) else own[whole]):
                found = found + to_host((values * values).sum(axis=(0, 1)))
        return np.asarray(np.sqrt(found))


Sources = tuple[tuple[Batch, Any, Any], ...]
"""For branches of a batch: batches of their halves, the numbers of the branches, and those of their halves there."""


@dataclass(frozen=True, eq=False)
class FactoredTree:
    """A factorised tree: it solves for any right-hand sides.

    Attributes
    ----------
    elimination
        The elimination method.
    batches
        The batches of all branches, lower levels first.
    top, last
        The root branch, and the factor of its balance sums.
    total
        Number of shared unknowns.
    """

    elimination: Elimination
    batches: tuple[Batch, ...]
    top: Branch
    last: Factor
    total: int

    @cached_property
    def _numbers(self) -> dict[Branch, int]:
        """Number of each branch, batch by batch."""
        return {branch: k for k, branch in enumerate(own for batch in self.batches for own in batch.branches)}

    @cached_property
    def halves(self) -> dict[Batch, tuple[Array, Array, Array]]:
        """For each batch, the numbers of its branches; for unions those of their first and second halves, too."""
        numbers, device, found = self._numbers, self.elimination.device, {}
        for batch in self.batches:
            own = [[numbers[branch] for branch in batch.branches]]
            own += [[numbers[branch.halves[k]] for branch in batch.branches] if batch.join else [] for k in (0, 1)]
            one, two, three = (placed(np.array(some, dtype=np.int64), device) for some in own)
            found[batch] = one, two, three
        return found

    @cached_property
    def _sources(self) -> dict[Batch, tuple[Sources, Sources]]:
        """Where the halves of unions stand in other batches."""
        where = {branch: (batch, k) for batch in self.batches for k, branch in enumerate(batch.branches)}
        found = {}
        for batch in self.batches:
            sides = []
            for half in (0, 1) if batch.join else ():
                groups: dict[Batch, tuple[list[int], list[int]]] = {}
                for k, branch in enumerate(batch.branches):
                    source, number = where[branch.halves[half]]
                    mine, theirs = groups.setdefault(source, ([], []))
                    mine.append(k)
                    theirs.append(number)
                sides.append(tuple((source, *pair) for source, pair in groups.items()))
            if sides:
                found[batch] = sides[0], sides[1]
        return found

    @property
    def sum_weights(self) -> FloatArray:
        """Weights of the balance sums of all branches, in the order of these."""
        return np.array([branch.sum_weights for batch in self.batches for branch in batch.branches])

    @property
    def loads(self) -> dict[Batch, Load]:
        """The right-hand sides of the problem, for all batches of parts."""
        return {batch: batch.load for batch in self.batches if batch.load is not None}

    @property
    def numbers(self) -> float:
        """Number of floating-point numbers that the tree holds."""
        systems = sum(batch.system.size for batch in self.batches if batch.system is not None)
        return float(systems + sum(batch.factor.size for batch in self.batches))

    @staticmethod
    def residuals(loads: dict[Batch, Load], unknowns: Unknowns) -> dict[Batch, Load]:
        """Return the residuals: the loads minus the rows of all parts times the unknowns."""
        return {
            batch: load.less(batch.system, unknowns.own[batch], unknowns.shared[batch])
            for batch, load in loads.items()
            if batch.system is not None
        }

    def solved(self, loads: dict[Batch, Load], sums: Array | None = None) -> Unknowns:
        """Return the unknowns for given loads; with ``sums``, the correction that also cancels these balance sums."""
        lifted = {}
        for batch, load in loads.items():
            assert batch.system is not None
            lifted[batch] = batch.factor.lifted(batch.system, load)
        return self.solved_from(lifted, sums)

    def correction(self, left: dict[Batch, Load], found: Unknowns) -> tuple[Unknowns, float]:
        """Return the change of unknowns that cancels the residuals they leave, and its size relative to theirs."""
        change, norms = self.solved(left, found.sums), found.norms
        return change, float((change.norms / np.where(norms > 0, norms, 1.0)).max(initial=0.0))

    def solved_from(self, lifted: dict[Batch, tuple[Array, Array]], sums: Array | None = None) -> Unknowns:
        """Return the unknowns from the transformed right-hand sides of all parts: up the tree and down again."""
        rights, front = self.ascended(lifted, sums)
        count, sides = len(self.top.sum_weights), front.shape[2]
        given = zeros((1, count, sides), front) if sums is None else -sums[-1:]
        right = self.elimination.whole(front, given, self.top.sum_weights)
        return self.descended(rights, self.last.down(self.last.up(right)[0], zeros((1, 0, sides), right)))

    def ascended(
        self, lifted: dict[Batch, tuple[Array, Array]], sums: Array | None = None
    ) -> tuple[dict[Batch, Array], Array]:
        """Return the right-hand sides of the unknowns of all batches, and of the front of the root."""
        sample = next(iter(lifted.values()))[0]
        sides, count = sample.shape[2], len(self.top.sum_weights)
        given = zeros((len(self._numbers), count, sides), sample) if sums is None else -sums
        rights: dict[Batch, Array] = {}
        fronts: dict[Batch, Array] = {}
        for batch in self.batches:
            if batch.join is None:
                rights[batch], front = lifted[batch]
                front = self.elimination.raised(front, batch.weights, batch.weights[:, None] * batch.units)
                front = self.elimination.moved(front, batch.shifts) if batch.shifts.shape[1] else front
            else:
                one, two = (self._taken(fronts, own, len(batch.branches)) for own in self._sources[batch])
                _, first, second = self.halves[batch]
                right = self.elimination.union(one, two, (given[first], given[second]), batch.join, batch.sum_weights)
                rights[batch], front = batch.factor.up(right)
            fronts[batch] = front
        return rights, fronts[self.batches[-1]]

    @staticmethod
    def _taken(fronts: dict[Batch, Array], sources: Sources, count: int) -> Array:
        """Return the values of the halves of branches as one stack."""
        sample = fronts[sources[0][0]]
        found = zeros((count, *sample.shape[1:]), sample)
        for batch, mine, theirs in sources:
            found[mine] = fronts[batch][theirs]
        return found

    def descended(
        self, rights: dict[Batch, Array], top: Array, around: Array | None = None, *, probing: bool = False
    ) -> Unknowns:
        """Return the unknowns of all parts by back substitution, from the sums and shared unknowns of the root down."""
        sides, count = top.shape[2], len(self.top.sum_weights)
        found = Unknowns({}, {}, zeros((len(self._numbers), count, sides), top))
        found.sums[-1] = top[0]
        shared = zeros((self.total, sides), top)
        if around is not None:
            shared[self.batches[-1].at[0]] = around
        for batch in reversed(self.batches):
            numbers, first, second = self.halves[batch]
            total = found.sums[numbers]
            others = library(total).concat([total, shared[batch.at]], axis=1)
            if batch.join is None:
                if moved := batch.shifts.shape[1]:
                    others[:, :moved] = batch.shifts @ others[:, :moved]
                found.shared[batch] = others * batch.units[:, :, None]
                found.own[batch] = batch.factor.down(rights[batch], found.shared[batch], probing=probing)
                continue
            own = batch.factor.down(rights[batch], others, probing=probing)
            shared[batch.inner] = own[:, count:]
            found.sums[first], found.sums[second] = total - own[:, :count], own[:, :count]
        return found

    def probed(self, rng: np.random.Generator) -> Unknowns:
        """Return the unknowns for random right-hand sides of all branches, to measure the sensitivity."""

        def drawn(*shape: int) -> Array:
            return placed(rng.standard_normal(shape), self.elimination.device)

        first = drawn(1, self.last.own, 1)
        top = self.last.down(first, zeros((1, 0, 1), first), probing=True)
        rights = {batch: drawn(len(batch.branches), batch.factor.own, 1) for batch in reversed(self.batches)}
        return self.descended(rights, top, probing=True)

    @property
    def count(self) -> int:
        """Number of unknowns that all branches eliminate."""
        return sum(batch.factor.own * len(batch.branches) for batch in self.batches)
