"""Branches of equal shape are factorised and solved as stacks, level by level up the tree and down again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.branches import Branch
from pibls.cells.local import Factored, LocalSystem
from pibls.checks import FloatArray
from pibls.solvers.dense import Array
from pibls.solvers.elimination import Elimination, Factor, Front, LeafSystem, Load
from pibls.solvers.inputs import to_host
from pibls.solvers.joins import Join
from pibls.solvers.stacks import library, placed, zeros

__all__ = ["Batch", "FactoredTree", "Factors", "Unknowns"]

# Numbers in a stack. A processor is no faster on larger ones, because their memory is not reused; a device is.
_TOGETHER = {False: 2**18, True: 2**25}


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
    at, inner
        Numbers of the unknowns that each branch shares, and of those that it eliminates.
    weights, units
        For parts: the weight of their rows, and the units of their shared unknowns.
    """

    branches: tuple[Branch, ...]
    factor: Factor
    system: LeafSystem | None
    load: Load | None
    join: Join | None
    at: Array
    inner: Array
    weights: Array
    units: Array

    @classmethod
    def of(cls, branches: Sequence[Branch], factor: Factor, system: LeafSystem | None, device: Any) -> Batch:
        """Make a batch of branches."""
        loads = [branch.load for branch in branches if branch.load is not None]
        arrays = (
            np.stack([branch.at for branch in branches]),
            np.stack([branch.inner_at for branch in branches]),
            np.array([branch.weight for branch in branches]),
            np.stack([branch.units for branch in branches]),
        )
        load = Load.stacked(loads).placed(device) if loads else None
        at, inner, weights, units = (placed(array, device) for array in arrays)
        return cls(tuple(branches), factor, system, load, branches[0].join, at, inner, weights, units)


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Values of the unknowns: ``own`` and ``shared`` ones of every part, and the balance sums of all branches."""

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
            whole = [number for number, branch in enumerate(batch.branches) if branch.sample.whole]
            for values in (self.shared[batch], own if len(whole) == len(own) else own[whole]):
                found = found + to_host((values * values).sum(axis=(0, 1)))
        return np.asarray(np.sqrt(found))


@dataclass(eq=False)
class Factors:
    """Factorises one tree after another; equal branches, in the same tree or the last one, share a factor.

    Attributes
    ----------
    elimination
        The elimination method: Gram matrices or rotations.
    """

    elimination: Elimination
    _known: dict[Hashable, tuple[Factor, int]] = field(default_factory=dict)  # by token
    _tokens: dict[Hashable, int] = field(default_factory=dict)  # one token for all equal fronts
    _count: int = 0

    def of(self, branches: Sequence[Branch], total: int) -> FactoredTree:
        """Factorise the branches of a tree with ``total`` shared unknowns."""
        levels: dict[int, list[Branch]] = {}
        for branch in branches:
            levels.setdefault(branch.level, []).append(branch)
        before = self._known, self._tokens
        self._known, self._tokens = {}, {}
        tokens: dict[Branch, int] = {}
        fronts: dict[int, tuple[Front, int]] = {}
        batches: list[Batch] = []
        for level in sorted(levels):
            if level == 0:
                batches += self._parts(levels[level], tokens, fronts, before[1])
            else:
                batches += self._unions(levels[level], tokens, fronts, before)
        top, number = fronts[tokens[branches[-1]]]
        last = self.elimination.last(top.taken([number]), branches[-1].counts)
        return FactoredTree(self.elimination, tuple(batches), branches[-1], last, total)

    def _token(self, key: Hashable, before: dict[Hashable, int]) -> int:
        """Return the token of a front; equal keys have equal tokens, in this tree and in the last one."""
        if key not in self._tokens:
            self._tokens[key] = before.get(key, self._count)
            self._count = max(self._count, self._tokens[key] + 1)
        return self._tokens[key]

    def _parts(
        self,
        branches: list[Branch],
        tokens: dict[Branch, int],
        fronts: dict[int, tuple[Front, int]],
        before: dict[Hashable, int],
    ) -> Iterator[Batch]:
        """Yield the batches of parts. Parts with one system but different units have different fronts."""
        self._factorise(dict.fromkeys(branch.system for branch in branches if branch.system is not None))
        placed = [(branch, branch.system.factored) for branch in branches if branch.system is not None]
        for some, factored in _grouped(placed, lambda own: (id(own.factor), own.number)):
            own = factored[0].taken([one.number for one in factored])
            for k, branch in enumerate(some):
                assert branch.system is not None
                branch.system.place(own.member(min(k, own.count - 1)))
            batch = Batch.of(some, own.factor, own.system, self.elimination.device)
            yield batch
            scales = batch.weights[:, None] * batch.units
            for k, scale in enumerate(to_host(scales)):
                tokens[some[k]] = self._token((some[k].system, scale.tobytes()), before)
            first = {tokens[branch]: k for k, branch in reversed(list(enumerate(some)))}
            which = list(first.values())
            front = own.factor.front if own.count == 1 else own.factor.front.taken(which)
            scaled = self.elimination.scaled(front, scales[which])
            fronts.update({token: (scaled, k) for k, token in enumerate(first)})

    def _factorise(self, systems: Iterable[LocalSystem]) -> None:
        """Factorise those systems of parts that have no factor yet."""
        missing = [own for own in systems if own.factored is None or own.factored.elimination is not self.elimination]
        for some in self._stacks([(own, own.rows.shape) for own in missing], lambda own: own.rows.size):
            known = [own.rows if own.factored is None else own.rows.placed(None) for own in some]
            stack = LeafSystem.stacked(known).placed(self.elimination.device)
            for factor, which in self.elimination.leaves(stack):
                mine = stack if len(which) == len(some) else stack.taken(which)
                for k, number in enumerate(which):
                    some[number].place(Factored(self.elimination, factor, mine, k))

    def _unions(
        self,
        branches: list[Branch],
        tokens: dict[Branch, int],
        fronts: dict[int, tuple[Front, int]],
        before: tuple[dict[Hashable, tuple[Factor, int]], dict[Hashable, int]],
    ) -> Iterator[Batch]:
        """Yield the batches of unions of one level."""
        missing: dict[int, Branch] = {}
        for branch in branches:
            key = (branch.join, *(tokens[half] for half in branch.halves))
            token = tokens[branch] = self._token(key, before[1])
            if token in before[0]:
                self._known[token] = before[0][token]
            elif token not in self._known:
                missing.setdefault(token, branch)
        sizes = [((token, branch), branch.join) for token, branch in missing.items()]
        for some in self._stacks(sizes, lambda own: (own[1].join.gone + own[1].join.left) ** 2):
            join = some[0][1].join
            one, two = (_gathered([fronts[tokens[own.halves[k]]] for _, own in some]) for k in (0, 1))
            factor = self.elimination.joined(one, two, join)
            self._known.update({token: (factor, k) for k, (token, _) in enumerate(some)})
        placed = [(branch, self._known[tokens[branch]]) for branch in branches]
        for own, factored in _grouped(placed, lambda known: (id(known[0]), known[1])):
            factor, numbers = factored[0][0], [number for _, number in factored]
            if len(numbers) != len(factor.triangle) or numbers != list(range(len(numbers))):
                factor = factor.taken(numbers)
            for k, branch in enumerate(own):
                token = tokens[branch]
                self._known[token] = factor, min(k, len(factor.triangle) - 1)
                fronts[token] = factor.front, min(k, len(factor.triangle) - 1)
            yield Batch.of(own, factor, None, self.elimination.device)

    def _stacks(self, items: Iterable[tuple[Any, Hashable]], size: Any) -> Iterator[list[Any]]:
        """Yield items with equal keys in groups, each as large as a stack may be."""
        groups: dict[Hashable, list[Any]] = {}
        for item, key in items:
            groups.setdefault(key, []).append(item)
        most = _TOGETHER[self.elimination.device is not None]
        for group in groups.values():
            step = max(1, int(most // max(size(group[0]), 1)))
            for start in range(0, len(group), step):
                yield group[start : start + step]


def _grouped(placed: list[tuple[Branch, Any]], place: Any) -> Iterator[tuple[list[Branch], list[Any]]]:
    """Yield the branches whose factors are members of one stack, with these factors.

    Branches that share one factor come as a group of their own, with that factor only.
    """
    counts = Counter(place(own) for _, own in placed)
    groups: dict[tuple[Any, ...], list[tuple[Branch, Any]]] = {}
    for branch, own in placed:
        stack, number = place(own)
        alone = counts[stack, number] > 1
        groups.setdefault((stack, branch.join, number if alone else None), []).append((branch, own))
    for (_, _, shared), group in groups.items():
        found = sorted(group, key=lambda pair: place(pair[1])[1])
        yield [branch for branch, _ in found], [own for _, own in found[: 1 if shared is not None else None]]


def _gathered(fronts: Sequence[tuple[Front, int]]) -> Front:
    """Return a stack of the given members of other stacks."""
    stacks: dict[Front, tuple[list[int], list[int]]] = {}
    for place, (front, number) in enumerate(fronts):
        places, numbers = stacks.setdefault(front, ([], []))
        places.append(place)
        numbers.append(number)
    found = Front.stacked([front.taken(numbers) for front, (_, numbers) in stacks.items()])
    order = [place for places, _ in stacks.values() for place in places]
    return found if len(stacks) == 1 else found.taken(np.argsort(order))


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
    def counts(self) -> FloatArray:
        """Weights of the balance sums of all branches, in the order of these."""
        return np.array([branch.counts for batch in self.batches for branch in batch.branches])

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
    def left(loads: dict[Batch, Load], unknowns: Unknowns) -> dict[Batch, Load]:
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
        return self.up(lifted, sums)

    def up(self, lifted: dict[Batch, tuple[Array, Array]], sums: Array | None = None) -> Unknowns:
        """Return the unknowns from the transformed right-hand sides of all parts: up the tree and down again."""
        sample = next(iter(lifted.values()))[0]
        sides, count = sample.shape[2], len(self.top.counts)
        given = zeros((len(self._numbers), count, sides), sample) if sums is None else -sums
        rights: dict[Batch, Array] = {}
        fronts: dict[Batch, Array] = {}
        for batch in self.batches:
            if batch.join is None:
                rights[batch], front = lifted[batch]
                front = self.elimination.raised(front, batch.weights, batch.weights[:, None] * batch.units)
            else:
                one, two = (self._taken(fronts, own, len(batch.branches)) for own in self._sources[batch])
                _, first, second = self.halves[batch]
                right = self.elimination.union(one, two, (given[first], given[second]), batch.join)
                rights[batch], front = batch.factor.up(right)
            fronts[batch] = front
        right = self.elimination.whole(fronts[self.batches[-1]], given[-1:], self.top.counts)
        return self.down(rights, self.last.down(self.last.up(right)[0], zeros((1, 0, sides), right)))

    @staticmethod
    def _taken(fronts: dict[Batch, Array], sources: Sources, count: int) -> Array:
        """Return the values of the halves of branches as one stack."""
        sample = fronts[sources[0][0]]
        found = zeros((count, *sample.shape[1:]), sample)
        for batch, mine, theirs in sources:
            found[mine] = fronts[batch][theirs]
        return found

    def down(self, rights: dict[Batch, Array], top: Array, *, probing: bool = False) -> Unknowns:
        """Return the unknowns of all parts by back substitution from the root down."""
        sides, count = top.shape[2], len(self.top.counts)
        found = Unknowns({}, {}, zeros((len(self._numbers), count, sides), top))
        found.sums[-1] = top[0]
        shared = zeros((self.total, sides), top)
        for batch in reversed(self.batches):
            numbers, first, second = self.halves[batch]
            total = found.sums[numbers]
            around = library(total).concat([total, shared[batch.at]], axis=1)
            if batch.join is None:
                found.shared[batch] = around * batch.units[:, :, None]
                found.own[batch] = batch.factor.down(rights[batch], found.shared[batch], probing=probing)
                continue
            own = batch.factor.down(rights[batch], around, probing=probing)
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
        return self.down(rights, top, probing=True)

    @property
    def count(self) -> int:
        """Number of unknowns that all branches eliminate."""
        return sum(batch.factor.own * len(batch.branches) for batch in self.batches)
