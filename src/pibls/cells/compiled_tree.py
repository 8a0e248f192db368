"""A factorised tree as stacks of matrices: a right-hand side costs a few products per level.

A batch of a :class:`FactoredTree` holds branches of one shape. Here the factors are applied to unit vectors once, which
makes matrices of them, and these are padded with zeros: all unions of a level are one stack, and so are many parts.

The number −1 stands for no unknown: every array that is indexed has one more entry, which is zero where it is read, and
ignored where it is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pibls.cells.branches import Branch
from pibls.cells.compiled_leaves import IntArray, Leaves, product, unit_matrices
from pibls.cells.factored_tree import Batch, FactoredTree
from pibls.checks import FloatArray
from pibls.solvers.elimination import Factor
from pibls.solvers.grams import Rotated
from pibls.solvers.rotations import Turned

__all__ = ["CompiledTree", "Solved", "Vectors"]


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
    sum_weights
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
    sum_weights: tuple[FloatArray, FloatArray]
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
                    weights[number, :, 0] = np.square(half.sum_weights)
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
            own, other = (weights * given[at] for weights, at in zip(self.sum_weights, self.halves, strict=True))
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
    unit = np.concatenate([unit_matrices(count, gone), np.zeros((count, left, gone))], axis=1)
    right, front = Factor.up(factor, unit)
    coupled = factor.down(np.zeros((count, gone, left)), unit_matrices(count, left))
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
        numbers, count = Numbering({}, {}), len(tree.top.sum_weights)
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
        return self.spread([leaves.up(load) for leaves, load in zip(self.leaves, loads, strict=True)], given)

    def spread(self, lifted: Sequence[tuple[FloatArray, FloatArray]], given: FloatArray | None = None) -> Solved:
        """Return the same from own unknowns without the shared ones, and from the right-hand sides of fronts."""
        sides = lifted[0][0].shape[3]
        fronts, unknowns = np.zeros((self.entries + 1, sides)), np.zeros((self.unknowns, sides))
        for leaves, (_, front) in zip(self.leaves, lifted, strict=True):
            fronts[leaves.fronts] = front
        rights = [level.raise_fronts(fronts, given) for level in self.levels]
        right = fronts[self.last]
        if given is not None:
            right = right - np.square(self.tree.top.sum_weights)[:, None] * given[self.sums]
        unknowns[self.sums] = self.top @ right
        for level, own in zip(reversed(self.levels), reversed(rights), strict=True):
            level.fill(unknowns, own)
        return unknowns, [leaves.down(own, unknowns) for leaves, (own, _) in zip(self.leaves, lifted, strict=True)]

    @property
    def numbers(self) -> int:
        """Number of floating-point numbers of the matrices that shared unknowns go through."""
        return sum(own.coupled.size for own in self.leaves) + sum(own.up.size + own.down.size for own in self.levels)

    def residuals(self, loads: Vectors, found: Vectors) -> Vectors:
        """Return the residuals: the loads minus the rows of all parts times the unknowns."""
        every = zip(self.leaves, loads, found, strict=True)
        return [load - product(leaves.rows, both) for leaves, load, both in every]

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
