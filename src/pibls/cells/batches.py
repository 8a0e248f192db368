"""Branches of equal shape are factorised as stacks, level by level up the tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from pibls.cells.branches import Branch
from pibls.cells.factored_tree import Batch, FactoredTree, weights_of_halves
from pibls.cells.part_systems import LocalSystem, StackMember
from pibls.limits import LONG
from pibls.runtime import free_cores, mapped
from pibls.solvers.elimination import Elimination, Factor, Front, LeafSystem
from pibls.solvers.inputs import to_host
from pibls.solvers.joins import joining

__all__ = ["Factors"]

Item = TypeVar("Item")
Found = TypeVar("Found")

# Numbers in a stack. A processor is no faster on larger ones, because their memory is not reused; a device is.
_TOGETHER = {False: 2**18, True: 2**25}


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

    def factorised(
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
            batches.append(Batch.of([branch], Factor.of_front(front), None, self.elimination.device))
        for level in sorted(levels):
            if level == 0:
                batches += self._parts(levels[level], tokens, fronts, before[1])
            else:
                batches += self._unions(levels[level], tokens, fronts, before)
        top, number = fronts[tokens[branches[-1]]]
        front = top.taken([number])
        last = self.elimination.last(front, branches[-1].sum_weights) if whole else Factor.of_front(front)
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
    ) -> list[Batch]:
        """Return the batches of parts, and enter their tokens and fronts.

        Parts with one system but different units have different fronts.
        """
        batches = []
        self._factorise(dict.fromkeys(branch.system for branch in branches if branch.system is not None))
        placed = [(branch, branch.system.factored) for branch in branches if branch.system is not None]
        for group, members in _grouped(placed, lambda member: (id(member.factor), member.number)):
            stack = members[0].taken([member.number for member in members])
            for k, branch in enumerate(group):
                assert branch.system is not None
                branch.system.place(stack.member(min(k, stack.system.count - 1)))
            batch = Batch.of(group, stack.factor, stack.system, self.elimination.device)
            batches.append(batch)
            scales = batch.weights[:, None] * batch.units
            for branch, scale in zip(group, to_host(scales), strict=True):
                tokens[branch] = self._token((branch.system, scale.tobytes(), branch.shift.tobytes()), before)
            first = {tokens[branch]: k for k, branch in reversed(list(enumerate(group)))}
            which = list(first.values())
            front = stack.factor.front if stack.system.count == 1 else stack.factor.front.taken(which)
            front = self.elimination.scaled(front, scales[which])
            if batch.shifts.shape[1]:
                front = self.elimination.shifted(front, batch.shifts[which])
            fronts.update({token: (front, k) for k, token in enumerate(first)})
        return batches

    def _factorise(self, systems: Iterable[LocalSystem]) -> None:
        """Factorise those systems of parts that have no factor yet."""
        missing = [one for one in systems if one.factored is None or one.factored.elimination is not self.elimination]
        # Systems that have rows in common are stacked with each other only.
        common = Counter(id(one.rows.rows) for one in missing)
        kinds = [(one.rows.kind, id(one.rows.rows) if common[id(one.rows.rows)] > 1 else None) for one in missing]
        stacks = list(self._stacks(zip(missing, kinds, strict=True), lambda one: one.written))

        def eliminated(group: Sequence[LocalSystem]) -> tuple[LeafSystem, list[tuple[Factor, list[int]]]]:
            rows = [one.rows if one.factored is None else one.rows.placed(None) for one in group]
            stack = LeafSystem.stacked(rows).placed(self.elimination.device)
            return stack, self.elimination.leaves(stack)

        work = sum(one.work for one in missing)
        for group, (stack, factors) in zip(stacks, self._mapped(eliminated, stacks, work), strict=True):
            for factor, which in factors:
                rows = stack if len(which) == len(group) else stack.taken(which)
                for k, number in enumerate(which):
                    group[number].place(StackMember(self.elimination, factor, rows, k))

    def _unions(
        self,
        branches: list[Branch],
        tokens: dict[Branch, int],
        fronts: dict[int, tuple[Front, int]],
        before: tuple[dict[Hashable, tuple[Factor, int]], dict[Hashable, int]],
    ) -> list[Batch]:
        """Return the batches of unions of one level, and enter their tokens and fronts."""
        missing: dict[int, Branch] = {}
        for branch in branches:
            key = (branch.join, *((tokens[half], half.sum_weights.tobytes()) for half in branch.halves))
            token = tokens[branch] = self._token(key, before[1])
            if token in before[0]:
                self._known[token] = before[0][token]
            elif token not in self._known:
                missing.setdefault(token, branch)
        by_join = [((token, branch), branch.join) for token, branch in missing.items()]
        stacks = list(self._stacks(by_join, lambda own: (own[1].join.gone + own[1].join.left) ** 2))

        def joined(stack: Sequence[tuple[int, Branch]]) -> Factor:
            unions = [branch for _, branch in stack]
            join = unions[0].join
            assert join is not None
            one, two = (_gathered([fronts[tokens[union.halves[k]]] for union in unions]) for k in (0, 1))
            return self.elimination.joined(one, two, join, weights_of_halves(unions, self.elimination.device))

        work = sum(joining(own.join.gone, own.join.left) for own in missing.values() if own.join is not None)
        for stack, factor in zip(stacks, self._mapped(joined, stacks, work), strict=True):
            self._known.update({token: (factor, k) for k, (token, _) in enumerate(stack)})
        placed, batches = [(branch, self._known[tokens[branch]]) for branch in branches], []
        for group, members in _grouped(placed, lambda member: (id(member[0]), member[1])):
            factor, numbers = members[0][0], [number for _, number in members]
            if len(numbers) != len(factor.triangle) or numbers != list(range(len(numbers))):
                factor = factor.taken(numbers)
            for k, branch in enumerate(group):
                token = tokens[branch]
                self._known[token] = factor, min(k, len(factor.triangle) - 1)
                fronts[token] = factor.front, min(k, len(factor.triangle) - 1)
            batches.append(Batch.of(group, factor, None, self.elimination.device))
        return batches

    def _mapped(self, function: Callable[[Item], Found], stacks: Sequence[Item], work: float) -> list[Found]:
        """Return the value of a function for each stack; all cores share so much work, whatever their number."""
        alone = self.elimination.device is not None or work < LONG
        return mapped(function, stacks, 1 if alone else free_cores())

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
    counts = Counter(place(member) for _, member in placed)
    groups: dict[tuple[Any, ...], list[tuple[Branch, Any]]] = {}
    for branch, member in placed:
        stack, number = place(member)
        is_shared = counts[stack, number] > 1
        groups.setdefault((stack, branch.join, number if is_shared else None), []).append((branch, member))
    for (_, _, shared), group in groups.items():
        ordered = sorted(group, key=lambda pair: place(pair[1])[1])
        members = [member for _, member in ordered]
        yield [branch for branch, _ in ordered], members if shared is None else members[:1]


def _gathered(fronts: Sequence[tuple[Front, int]]) -> Front:
    """Return a stack of the given members of other stacks."""
    stacks: dict[Front, tuple[list[int], list[int]]] = {}
    for place, (front, number) in enumerate(fronts):
        places, numbers = stacks.setdefault(front, ([], []))
        places.append(place)
        numbers.append(number)
    joined = Front.stacked([front.taken(numbers) for front, (_, numbers) in stacks.items()])
    order = [place for places, _ in stacks.values() for place in places]
    return joined if len(stacks) == 1 else joined.taken(np.argsort(order))
