"""The elimination tree: each branch is a part with its shared unknowns, or the union of two branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from pibls.cells.local import LocalSystems, Ties
from pibls.cells.order import Pair, cheaper
from pibls.cells.part_systems import LocalSystem
from pibls.cells.parts import CellPart
from pibls.cells.sharing import Sharing
from pibls.cells.tree import Cell, leaves
from pibls.checks import FloatArray, IntArray
from pibls.solvers.elimination import Load
from pibls.solvers.joins import Join, joining

__all__ = ["Branch", "Branches"]


@dataclass(eq=False)
class Branch:
    """A node of the elimination tree: one part, or the union of two branches.

    Attributes
    ----------
    shared, sizes
        The places (faces, coarse sides and links) where it shares unknowns with other branches, and how many in each.
    at
        Numbers of its shared unknowns, in the numbering of the whole tree.
    part
        Its part, or for a union one of its parts.
    sum_weights
        Weights of its balance sums in least squares.
    ends
        Lowest and highest corner of its bounding box.
    part_counts
        For each place, how many parts of the branch hold it.
    inner, inner_at
        The places whose unknowns it eliminates, and the numbers of these unknowns.
    halves, join, level
        For a union: its two branches, the pattern that joins them, and its height above the parts.
    system, load, ties
        For a part: its least-squares system, its right-hand sides, and its faces and links.
    weight, units, shift
        For a part: the weight of its rows, the units of its balance sums and shared unknowns, and the matrix from the
        sums of the tree to its own ones, whose moments are about its centre; empty without moments.
    """

    shared: tuple[Any, ...]
    sizes: tuple[int, ...]
    at: IntArray
    part: CellPart
    sum_weights: FloatArray
    ends: tuple[FloatArray, FloatArray]
    part_counts: dict[Any, int]
    inner: tuple[Any, ...] = ()
    inner_at: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    halves: tuple[Branch, ...] = ()
    join: Join | None = None
    level: int = 0
    system: LocalSystem | None = None
    load: Load | None = None
    ties: Ties = field(default_factory=lambda: Ties(()))
    weight: float = 1.0
    units: FloatArray = field(default_factory=lambda: np.ones(0))
    shift: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def width(self) -> int:
        """Number of shared unknowns, without the balance sums."""
        return len(self.at)

    @property
    def operations(self) -> float:
        """Operations of its elimination, without that of its halves."""
        if self.join is not None:
            return joining(self.join.gone, self.join.left)
        return 0.0 if self.system is None else self.system.work

    def holds(self, holders: Counter[Any]) -> bool:
        """Return whether it eliminates all unknowns that no other part holds; ``holders`` counts parts by place."""
        within = {place for place, count in self.part_counts.items() if count == holders[place]}
        return within == set(self.inner)


@dataclass(eq=False)
class Branches:
    """Makes the branches of one tree after another, and keeps those that a finer tree leaves unchanged."""

    local: LocalSystems
    work: float = 0.0  # operations of all unions so far
    total: int = 0  # number of shared unknowns so far
    sharing: Sharing = field(init=False)
    _known: dict[Any, Branch] = field(default_factory=dict)
    _joins: dict[Any, Join] = field(default_factory=dict)
    _starts: dict[Any, int] = field(default_factory=dict)  # number of the first unknown in each place

    def __post_init__(self) -> None:
        self.sharing, self.rows = Sharing(self.local), self.local.rows

    def of_tree(self, root: Cell, within: Cell | None = None) -> list[Branch]:
        """Return the branches of a tree, or of a subtree: all parts first, then the unions, the root last."""
        before, self._known = self._known, {}
        shared = self.sharing.ties_of(root, within)
        parts = shared if within is None else self.rows.layout.parts_of(leaves(within))
        self._add_parts({part: shared[part] for part in parts}, before)
        found = [self._known[part] for part in parts]
        if len(found) < 2:
            return found
        numbers = {branch.part: number for number, branch in enumerate(found)}
        order = cheaper(
            within or root,
            lambda leaf: [numbers[part] for part in self.rows.layout.parts(leaf)],
            [dict(zip(branch.shared, branch.sizes, strict=True)) for branch in found],
            [(id(branch.system), branch.weight, branch.units.tobytes()) for branch in found],
            self.rows.balances.count,
        )
        holders = Counter(place for ties in shared.values() for place in self.local.places(ties))
        return self.joined(found, order, holders, before)

    def joined(
        self, found: list[Branch], order: Sequence[Pair], holders: Counter[Any], before: Mapping[Any, Branch]
    ) -> list[Branch]:
        """Return branches and their unions in the given order; ``holders`` counts the parts that hold each place."""
        for pair in order:
            one, two = (found[number] for number in pair)
            known = before.get((one, two))
            if known is None or not known.holds(holders):
                known = self._union(one, two, holders)
            self._known[one, two] = known
            found.append(known)
        return found

    def _add_parts(self, held: dict[CellPart, Ties], before: dict[Any, Branch]) -> None:
        """Make the branches of parts that are new or have new ties, and take over the others."""
        new: dict[CellPart, Ties] = {}
        for part, ties in held.items():
            known = before.get(part)
            if (
                known is None
                or set(known.ties.faces) != set(ties.faces)
                or set(known.shared) != set(self.local.places(ties))
            ):
                new[part] = ties
            else:
                self._known[part] = known
        for part, (system, own) in zip(new, self.local.systems(new), strict=True):
            shared = self.local.places(own)
            made = self._known[part] = Branch(
                shared,
                system.sizes,
                self.numbered(shared, system.sizes),
                part,
                self.local.sum_weights(part, part.cell.size),
                (part.cell.low, part.cell.high),
                dict.fromkeys(shared, 1),
                system=system,
                load=self.local.right_hand_sides(part, own, system),
                ties=own,
                weight=self.rows.emphasis(part),
            )
            if self.rows.balances.turns:
                made.shift = self.local.shift_of_sums(part)
            made.units = np.concatenate([1.0 / self.local.own_sum_unit(part), np.ones(made.width)])

    def numbered(self, shared: tuple[Any, ...], sizes: tuple[int, ...]) -> IntArray:
        """Return the numbers of the unknowns in the given places."""
        found = [np.empty(0, dtype=np.int64)]
        for place, size in zip(shared, sizes, strict=True):
            if place not in self._starts:
                self._starts[place] = self.total
                self.total += size
            found.append(np.arange(self._starts[place], self._starts[place] + size))
        return np.concatenate(found)

    def _union(self, one: Branch, two: Branch, holders: Counter[Any]) -> Branch:
        """Return the union of two branches; it eliminates the unknowns that only these two share."""
        sizes = dict(zip(one.shared + two.shared, one.sizes + two.sizes, strict=True))
        part_counts = {place: one.part_counts.get(place, 0) + two.part_counts.get(place, 0) for place in sizes}
        inner = tuple(place for place in one.shared if part_counts[place] == holders[place])
        rest = tuple(place for place in sizes if place not in inner)
        join = self._join(one, two, inner, sizes)
        ends = np.minimum(one.ends[0], two.ends[0]), np.maximum(one.ends[1], two.ends[1])
        at, sums = np.empty(join.gone + join.left, dtype=np.int64), join.sums
        at[join.places[0][sums:]], at[join.places[1][sums:]] = one.at, two.at
        made = Branch(
            rest,
            tuple(sizes[place] for place in rest),
            at[join.gone + sums :],
            one.part,
            self.local.sum_weights(one.part, ends[1] - ends[0]),
            ends,
            part_counts,
            inner,
            at[sums : join.gone],
            (one, two),
            join,
            1 + max(one.level, two.level),
        )
        self.work += made.operations
        return made

    def _join(self, one: Branch, two: Branch, inner: tuple[Any, ...], sizes: dict[Any, int]) -> Join:
        """Return the join pattern of two branches; pairs with equal patterns share one object."""
        number = {place: k for k, place in enumerate(one.shared)}
        both = tuple(number.get(place, -1) for place in two.shared)
        gone = tuple(number[place] for place in inner)
        key = (one.sizes, two.sizes, both, gone)
        if key not in self._joins:
            starts = dict(zip((p for p in sizes if p not in inner), _ends(sizes, inner), strict=False))
            left = sum(size for place, size in sizes.items() if place not in inner)
            shared, others = [], []
            for own in (one, two):
                first = dict(
                    zip(own.shared, (len(own.sum_weights) + np.cumsum([0, *own.sizes])).tolist(), strict=False)
                )
                shared.append(_ranges([(first[place], sizes[place]) for place in inner]))
                nowhere = -1 - len(own.sum_weights) - own.width
                others.append(_ranges([(starts.get(place, nowhere), sizes[place]) for place in own.shared]))
            self._joins[key] = Join.of((shared[0], shared[1]), (others[0], others[1]), left, len(one.sum_weights))
        return self._joins[key]


def _ends(sizes: dict[Any, int], inner: tuple[Any, ...]) -> list[int]:
    """Return the first number of the remaining unknowns in each place."""
    return [0, *accumulate(size for place, size in sizes.items() if place not in inner)]


def _ranges(spans: list[tuple[int, int]]) -> Any:
    """Return consecutive numbers for every (start, count)."""
    return np.concatenate([np.empty(0, dtype=np.int64), *(np.arange(start, start + count) for start, count in spans)])
