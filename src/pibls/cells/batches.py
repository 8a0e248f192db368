"""Branches of equal shape are factorised and solved as stacks, level by level up the tree and down again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from pibls.cells.branches import Branch, IntArray
from pibls.cells.local import Factored, LocalSystem
from pibls.checks import FloatArray
from pibls.solvers.elimination import Elimination, Factor, Front, LeafSystem, Load
from pibls.solvers.joins import Join

__all__ = ["Batch", "FactoredTree", "Factors", "Unknowns"]

_TOGETHER = 2**18  # numbers in a stack: larger stacks are no faster, because their memory is not reused


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
    at: IntArray
    inner: IntArray
    weights: FloatArray
    units: FloatArray

    @classmethod
    def of(cls, branches: Sequence[Branch], factor: Factor, system: LeafSystem | None) -> Batch:
        """Make a batch of branches."""
        loads = [branch.load for branch in branches if branch.load is not None]
        return cls(
            tuple(branches),
            factor,
            system,
            Load.stacked(loads) if loads else None,
            branches[0].join,
            np.stack([branch.at for branch in branches]),
            np.stack([branch.inner_at for branch in branches]),
            np.array([branch.weight for branch in branches]),
            np.stack([branch.units for branch in branches]),
        )

    def halves(self, of: dict[Branch, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Return two stacks with the values of the first and the second halves of all branches."""
        one, two = (np.stack([of[branch.halves[k]] for branch in self.branches]) for k in (0, 1))
        return one, two


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Values of the unknowns: ``own`` and ``shared`` ones of every part, and the balance sums of every branch."""

    own: dict[Batch, FloatArray]
    shared: dict[Batch, FloatArray]
    sums: dict[Branch, FloatArray]

    def changed(self, change: Unknowns) -> Unknowns:
        """Return these unknowns plus a change."""
        own = {batch: value + change.own[batch] for batch, value in self.own.items()}
        shared = {batch: value + change.shared[batch] for batch, value in self.shared.items()}
        return Unknowns(own, shared, {branch: value + change.sums[branch] for branch, value in self.sums.items()})

    @property
    def norms(self) -> FloatArray:
        """L2 size of the solution for each right-hand side; cut parts contribute their shared unknowns only."""
        found = 0.0
        for batch, own in self.own.items():
            whole = np.array([branch.sample.whole for branch in batch.branches])
            found = found + np.square(self.shared[batch]).sum(axis=(0, 1)) + np.square(own[whole]).sum(axis=(0, 1))
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

    def of(
        self,
        branches: Sequence[Branch],
        total: int,
        given: Mapping[Branch, Front] | None = None,
        *,
        whole: bool = True,
    ) -> FactoredTree:
        """Factorise the branches of a tree with ``total`` shared unknowns.

        Branches that were factorised elsewhere are ``given`` by their fronts. A tree that is not the ``whole`` one
        eliminates no unknowns of its root: its last factor has the front of the root.
        """
        levels: dict[int, list[Branch]] = {}
        for branch in branches:
            levels.setdefault(branch.level, []).append(branch)
        before = self._known, self._tokens
        self._known, self._tokens = {}, {}
        tokens: dict[Branch, int] = {}
        fronts: dict[int, tuple[Front, int]] = {}
        batches: list[Batch] = []
        for branch, front in (given or {}).items():
            tokens[branch] = self._token(branch, {})
            fronts[tokens[branch]] = front, 0
        for level in sorted(levels):
            if level == 0:
                batches += self._parts(levels[level], tokens, fronts, before[1])
            else:
                batches += self._unions(levels[level], tokens, fronts, before)
        top, number = fronts[tokens[branches[-1]]]
        front, none = top.taken([number]), np.empty((1, 0, 0))
        last = self.elimination.last(front, branches[-1].counts) if whole else Factor(none, none, front)
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
            batch = Batch.of(some, own.factor, own.system)
            yield batch
            scales = batch.weights[:, None] * batch.units
            for k, branch in enumerate(some):
                tokens[branch] = self._token((branch.system, scales[k].tobytes()), before)
            first = {tokens[branch]: k for k, branch in reversed(list(enumerate(some)))}
            which = list(first.values())
            front = own.factor.front if own.count == 1 else own.factor.front.taken(which)
            scaled = self.elimination.scaled(front, scales[which])
            fronts.update({token: (scaled, k) for k, token in enumerate(first)})

    def _factorise(self, systems: Iterable[LocalSystem]) -> None:
        """Factorise those systems of parts that have no factor yet."""
        missing = [own for own in systems if own.factored is None or own.factored.elimination is not self.elimination]
        for some in _stacks([(own, own.rows.shape) for own in missing], lambda own: own.rows.size):
            stack = LeafSystem.stacked([own.rows for own in some])
            for factor, which in self.elimination.leaves(stack):
                mine = stack if len(which) == len(some) else LeafSystem.stacked([some[n].rows for n in which])
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
        for some in _stacks(sizes, lambda own: (own[1].join.gone + own[1].join.left) ** 2):
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
            yield Batch.of(own, factor, None)


def _stacks(items: Iterable[tuple[Any, Hashable]], size: Any) -> Iterator[list[Any]]:
    """Yield items with equal keys in groups, each as large as a stack may be."""
    groups: dict[Hashable, list[Any]] = {}
    for item, key in items:
        groups.setdefault(key, []).append(item)
    for group in groups.values():
        step = max(1, int(_TOGETHER // max(size(group[0]), 1)))
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
    return Front(
        np.concatenate([front.rows[number : number + 1] for front, number in fronts]),
        np.concatenate([front.sizes[number : number + 1] for front, number in fronts]),
    )


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

    def solved(self, loads: dict[Batch, Load], sums: dict[Branch, FloatArray] | None = None) -> Unknowns:
        """Return the unknowns for given loads; with ``sums``, the correction that also cancels these balance sums."""
        lifted = {}
        for batch, load in loads.items():
            assert batch.system is not None
            lifted[batch] = batch.factor.lifted(batch.system, load)
        return self.up(lifted, sums)

    def up(
        self,
        lifted: dict[Batch, tuple[FloatArray, FloatArray]],
        sums: dict[Branch, FloatArray] | None = None,
    ) -> Unknowns:
        """Return the unknowns from the transformed right-hand sides of all parts: up the tree and down again."""
        rights, fronts = self.raised(lifted, sums)
        return self.down(rights, self.ended(fronts, sums))

    def raised(
        self,
        lifted: dict[Batch, tuple[FloatArray, FloatArray]],
        sums: dict[Branch, FloatArray] | None = None,
        given: Mapping[Branch, FloatArray] | None = None,
    ) -> tuple[dict[Batch, FloatArray], dict[Branch, FloatArray]]:
        """Return the right-hand sides of own unknowns and of the fronts of all branches; some may be given."""
        rights: dict[Batch, FloatArray] = {}
        fronts: dict[Branch, FloatArray] = dict(given or {})
        sides = next(chain((own for own, _ in lifted.values()), fronts.values())).shape[-1]
        none = np.zeros((1, len(self.top.counts), sides))
        for batch in self.batches:
            if batch.join is None:
                rights[batch], front = lifted[batch]
                front = self.elimination.raised(front, batch.weights, batch.weights[:, None] * batch.units)
            else:
                nothing = np.broadcast_to(none, (len(batch.branches), *none.shape[1:]))
                one, two = (nothing, nothing) if sums is None else batch.halves(sums)
                right = self.elimination.union(*batch.halves(fronts), (-one, -two), batch.join)
                rights[batch], front = batch.factor.up(right)
            fronts.update(zip(batch.branches, front, strict=True))
        return rights, fronts

    def ended(self, fronts: dict[Branch, FloatArray], sums: dict[Branch, FloatArray] | None = None) -> FloatArray:
        """Return the balance sums of the whole tree."""
        front = fronts[self.top][None]
        count, sides = len(self.top.counts), front.shape[2]
        given = np.zeros((1, count, sides)) if sums is None else -sums[self.top][None]
        right = self.elimination.whole(front, given, self.top.counts)
        return self.last.down(self.last.up(right)[0], np.zeros((1, 0, sides)))

    def down(
        self,
        rights: dict[Batch, FloatArray],
        top: FloatArray,
        shared: FloatArray | None = None,
        *,
        probing: bool = False,
    ) -> Unknowns:
        """Return the unknowns of all parts by back substitution from the root down.

        ``shared`` has the shared unknowns of the root, if it has any, and is filled with all others.
        """
        found = Unknowns({}, {}, {self.top: top[0]})
        shared = np.zeros((self.total, top.shape[2])) if shared is None else shared
        for batch in reversed(self.batches):
            total = np.stack([found.sums[branch] for branch in batch.branches])
            around = np.concatenate([total, shared[batch.at]], axis=1)
            if batch.join is None:
                found.shared[batch] = around * batch.units[:, :, None]
                found.own[batch] = batch.factor.down(rights[batch], found.shared[batch], probing=probing)
                continue
            own = batch.factor.down(rights[batch], around, probing=probing)
            count = total.shape[1]
            shared[batch.inner] = own[:, count:]
            for branch, whole, second in zip(batch.branches, total, own[:, :count], strict=True):
                found.sums[branch.halves[0]], found.sums[branch.halves[1]] = whole - second, second
        return found

    def probed(self, rng: np.random.Generator) -> Unknowns:
        """Return the unknowns for random right-hand sides of all branches, to measure the sensitivity."""
        top = self.last.down(rng.standard_normal((1, self.last.own, 1)), np.zeros((1, 0, 1)), probing=True)
        rights = {
            batch: rng.standard_normal((len(batch.branches), batch.factor.own, 1)) for batch in reversed(self.batches)
        }
        return self.down(rights, top, probing=True)

    @property
    def count(self) -> int:
        """Number of unknowns that all branches eliminate."""
        return sum(batch.factor.own * len(batch.branches) for batch in self.batches)
