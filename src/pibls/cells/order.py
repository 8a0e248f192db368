"""The order in which the parts of a tree are joined in pairs until one branch is left.

A union is cheap if it shares few unknowns with the rest. Joining along the halves of the tree is good if cells have one
size, and makes many unions equal. If cells shrink towards a point on a split, both halves meet along a whole chain of
cells; joining the narrowest union first then proceeds around that point. The cheaper order is taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any

from pibls.cells.tree import Cell
from pibls.solvers.joins import joining

__all__ = ["Pair", "along_halves", "cheaper", "cheapest", "narrowest_first"]

Pair = tuple[int, int]
Sizes = Sequence[Mapping[Any, int]]


def cheaper(
    root: Cell, numbers: Callable[[Cell], Sequence[int]], sizes: Sizes, alike: Sequence[Hashable], sums: int
) -> list[Pair]:
    """Return the order that needs fewer operations.

    Parameters
    ----------
    root
        The tree.
    numbers
        Maps a leaf to the numbers of its parts.
    sizes
        For each part, the number of its shared unknowns by place.
    alike
        For each part, a key that parts with equal fronts share: unions of equal fronts count once.
    sums
        Number of balance sums of every branch.

    Returns
    -------
    list of Pair
        The pairs of branches to join: parts by number, unions by the numbers that follow.
    """
    order = along_halves(root, lambda cell: None if cell.halves else numbers(cell), len(sizes))
    return cheapest(order, sizes, alike, sums)


def cheapest(halves: list[Pair], sizes: Sizes, alike: Sequence[Hashable], sums: int) -> list[Pair]:
    """Return the order along halves, or that of the narrowest union first, if it needs fewer operations."""
    return min(halves, narrowest_first(sizes, sums), key=lambda order: _work(order, sizes, alike, sums))


def along_halves(root: Cell, numbers: Callable[[Cell], Sequence[int] | None], count: int) -> list[Pair]:
    """Return the order along the halves of a tree, down to cells whose branches have ``numbers``, ``count`` in all."""
    order: list[Pair] = []

    def joined(cell: Cell) -> int | None:
        found, known = None, numbers(cell)
        for half in [joined(half) for half in cell.halves] if known is None else known:
            if found is not None and half is not None:
                order.append((found, half))
                found = count + len(order) - 1
            elif half is not None:
                found = half
        return found

    joined(root)
    return order


def narrowest_first(sizes: Sizes, sums: int = 0) -> list[Pair]:
    """Return the order in which the next union is the one that shares least with the rest.

    >>> narrowest_first([{"a": 2}, {"a": 2, "b": 9}, {"b": 9, "c": 2}, {"c": 2}])
    [(1, 2), (0, 4), (3, 5)]
    >>> narrowest_first([{"a": 9}, {"a": 9, "b": 2}, {"b": 2, "c": 9}, {"c": 9}])
    [(0, 1), (2, 3), (4, 5)]
    """
    fronts = _Fronts(sizes, sums)
    heap = [fronts.candidate(*pair) for own in fronts.owners.values() for pair in combinations(sorted(own), 2)]
    heapq.heapify(heap)
    found: list[Pair] = []
    alive = dict.fromkeys(range(len(sizes)))
    while len(alive) > 1:
        while heap:
            *_, one, two = heapq.heappop(heap)
            if one in alive and two in alive:
                break
        else:
            one, two, *_ = alive
        union = fronts.join(one, two)
        del alive[one], alive[two]
        alive[union] = None
        found.append((one, two))
        for other in fronts.beside(union):
            heapq.heappush(heap, fronts.candidate(other, union))
    return found


def _work(order: Sequence[Pair], sizes: Sizes, alike: Sequence[Hashable], sums: int) -> float:
    """Return the operations of an order; equal unions count once."""
    fronts, keys, work = _Fronts(sizes, sums), list(alike), 0.0
    known: dict[Hashable, int] = {}
    for one, two in order:
        left, gone = fronts.change(one, two)
        places = [
            tuple(k for k, place in enumerate(fronts.shared[i]) if place in fronts.shared[j])
            for i, j in ((one, two), (two, one))
        ]
        key = (keys[one], keys[two], *places, gone)
        if key not in known:
            known[key] = len(known)
            work += joining(gone, left)
        keys.append(("union", known[key]))
        fronts.join(one, two)
    return work


class _Fronts:
    """The places in which branches share unknowns, updated as branches are joined."""

    def __init__(self, sizes: Sizes, sums: int) -> None:
        self.sums = sums
        self.size = {place: count for own in sizes for place, count in own.items()}
        self.shared: list[dict[Any, None]] = [dict.fromkeys(own) for own in sizes]
        self.width = [sum(own.values()) for own in sizes]
        self.owners: dict[Any, set[int]] = {}
        for number, own in enumerate(sizes):
            for place in own:
                self.owners.setdefault(place, set()).add(number)

    def change(self, one: int, two: int) -> tuple[int, int]:
        """Return how many unknowns the union of two branches shares with the rest, and how many it eliminates."""
        first, second = self.shared[one], self.shared[two]
        common = [place for place in first if place in second]
        gone = sum(self.size[place] for place in common if len(self.owners[place]) == 2)
        left = self.width[one] + self.width[two] - sum(self.size[place] for place in common) - gone
        return left + self.sums, gone + self.sums

    def candidate(self, one: int, two: int) -> tuple[int, int, int, int]:
        """Return a union as a heap entry: narrow ones first, and among these the ones that eliminate most."""
        left, gone = self.change(one, two)
        return left, -gone, one, two

    def join(self, one: int, two: int) -> int:
        """Join two branches and return the number of their union."""
        number = len(self.shared)
        rest: dict[Any, None] = {}
        for place in (*self.shared[one], *self.shared[two]):
            owners = self.owners[place]
            owners -= {one, two}
            if owners:
                owners.add(number)
                rest[place] = None
        self.shared.append(rest)
        self.width.append(sum(self.size[place] for place in rest))
        return number

    def beside(self, number: int) -> set[int]:
        """Return the branches that share unknowns with a branch."""
        return set().union(*(self.owners[place] for place in self.shared[number])) - {number}
