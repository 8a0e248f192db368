"""Solve a linear problem on a tree of cells: least squares, eliminated along the tree."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.local import LocalSystem, LocalSystems, by_crossing
from pibls.cells.order import cheaper
from pibls.cells.parts import CellPart, part_values
from pibls.cells.rows import Rows
from pibls.cells.sharing import Sharing
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.solvers.elimination import DependentError, Elimination, Factor, Front, Grams, Join, Load, Rotations, joining

__all__ = ["Fit", "Glue"]

_REFINEMENTS = 4  # at most, of a solution by Gram matrices
_REFINED = 1e-8  # relative change after which the next one is rounding: each is about the square of the last
_CONTRACTING = 0.1  # relative change of a first refinement that shows that Gram matrices have digits
_SUSPECT = 10.0  # sensitivities above which rows are asked: Gram matrices cannot see large ones
_ITERATIONS = 2  # steps that find what rows see least
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Fit:
    """The weights of every part of a tree.

    Attributes
    ----------
    root
        The tree.
    parts
        The parts of every leaf.
    weights
        Weights of each part, shape (fields, functions).
    residuals
        Root of the square sum of the rows of each part, in units of the solution.
    unknowns, rows
        Size of the least-squares problem.
    columns
        The solutions with further right-hand sides, if rows have them: shape (sides, fields, functions).
    """

    root: Cell
    parts: tuple[CellPart, ...]
    weights: dict[CellPart, FloatArray]
    residuals: dict[CellPart, float]
    unknowns: int
    rows: int
    columns: dict[CellPart, FloatArray] = field(default_factory=dict)

    @property
    def residual(self) -> float:
        """Root of the square sum of all rows, in units of the solution."""
        return float(np.sqrt(sum(value**2 for value in self.residuals.values())))


@dataclass(eq=False)
class _Branch:
    """A branch of the tree with its own unknowns eliminated.

    Attributes
    ----------
    shared, sizes
        What the unknowns that it still shares belong to (faces, walls and links), and how many they are.
    inner, inner_sizes
        The same of those that it eliminates.
    halves, join
        The branches it is made of, and how.
    part, system, load, faces
        Of a single part: the part, its rows, their right-hand sides, and its faces.
    weight, units
        Of a single part: how much its rows count, and its units of what it shares.
    sample
        One of its parts.
    counts
        How much its sums count.
    ends
        Lowest and highest corner of the box around it.
    inside
        By how many of its parts everything is held that parts share.
    """

    shared: tuple[Any, ...]
    sizes: tuple[int, ...]
    sample: CellPart
    counts: FloatArray
    ends: tuple[FloatArray, FloatArray]
    inner: tuple[Any, ...] = ()
    inner_sizes: tuple[int, ...] = ()
    halves: tuple[_Branch, ...] = ()
    join: Join | None = None
    part: CellPart | None = None
    system: LocalSystem | None = None
    load: Load | None = None
    faces: tuple[Any, ...] = ()
    weight: float = 1.0
    units: FloatArray = field(default_factory=lambda: np.ones(0))
    inside: Counter[Any] = field(default_factory=Counter)
    factor: Factor = field(init=False)
    front: Front = field(init=False)

    def holds(self, holders: Counter[Any]) -> bool:
        """Tell whether it still eliminates just the unknowns that no other part holds."""
        within = {place for place in (*self.inner, *self.shared) if self.inside[place] == holders[place]}
        return within == set(self.inner)

    @property
    def width(self) -> int:
        """How many unknowns it shares, beside its sums."""
        return sum(self.sizes)


@dataclass(frozen=True, eq=False)
class _Unknowns:
    """Unknowns by branch: of single parts their own ones and those around them, of all others their sums."""

    own: dict[_Branch, FloatArray]
    others: dict[_Branch, FloatArray]
    sums: dict[_Branch, FloatArray]

    def changed(self, change: _Unknowns) -> _Unknowns:
        """Return the sum with a change."""
        pairs = ((self.own, change.own), (self.others, change.others), (self.sums, change.sums))
        return _Unknowns(*({branch: value + more[branch] for branch, value in own.items()} for own, more in pairs))

    @property
    def norms(self) -> FloatArray:
        """Size of the functions they stand for, by right-hand side: of cut parts, what these share tells."""
        squares = (
            np.square(self.others[branch]).sum(axis=0) + (np.square(own).sum(axis=0) if branch.sample.whole else 0.0)
            for branch, own in self.own.items()
        )
        return np.asarray(np.sqrt(sum(squares)))


@dataclass(eq=False)
class Glue:
    """Solves one problem on one tree after another; what has not changed is not computed again."""

    rows: Rows
    local: LocalSystems = field(init=False)
    sharing: Sharing = field(init=False)
    _merging: float = 0.0  # operations
    _way: Elimination = field(default_factory=Grams)
    _branches: dict[Any, _Branch] = field(default_factory=dict)
    _known: dict[Any, tuple[Any, ...]] = field(default_factory=dict)  # factors, with all that their keys name
    _projected: dict[Any, FloatArray] = field(default_factory=dict)
    _order: list[_Branch] = field(default_factory=list)  # of the last tree, parts first
    _last: tuple[int, float] = (1, 0.0)  # cells of the last tree, and operations of its merges

    def __post_init__(self) -> None:
        self.local = LocalSystems(self.rows)
        self.sharing = Sharing(self.local)

    @property
    def flops(self) -> float:
        """Operations so far."""
        return self._merging + self.local.work

    @property
    def layout(self) -> Layout:
        """The domain."""
        return self.rows.layout

    def work(self, cells: float, new: float) -> float:
        """Return the operations that a tree of so many cells takes, so many of them new, by those of the last one.

        What branches share grows more slowly than they do, and merges go with its third power.
        """
        d, (count, merged) = self.layout.reference.dimension, self._last
        unit = self.local.work / max(self.local.count, 1)
        power: float = max(3.0 * (d - 1) / d, 1.0)
        return unit * new + merged * math.pow(cells / count, power)

    @property
    def held(self) -> float:
        """Bytes that the last solution takes, for the most part."""
        factors = {id(branch.factor): branch.factor.size for branch in self._order if branch.system is None}
        systems = {id(branch.system): branch.system.held for branch in self._order if branch.system is not None}
        return 8.0 * (sum(factors.values()) + sum(systems.values()))

    def solve(self, root: Cell) -> Fit:
        """Return the solution on a tree."""
        merged = self._merging
        self._order = self._branches_of(root)
        unknowns, residuals = self._eliminated()
        weights: dict[CellPart, FloatArray] = {}
        columns: dict[CellPart, FloatArray] = {}
        lacking: dict[CellPart, float] = {}
        for branch, own in unknowns.own.items():
            assert branch.part is not None
            every = self._weights(branch, own, unknowns.others[branch])
            weights[branch.part] = every[0]
            if len(every) > 1:
                columns[branch.part] = every[1:]
            lacking[branch.part] = math.sqrt(residuals[branch].square)
        if self._merging > merged:
            self._last = len(weights), self._merging - merged
        self.local.keep(weights)
        return Fit(root, tuple(weights), weights, lacking, len(weights) * self.rows.width, 0, columns)

    def _branches_of(self, root: Cell) -> list[_Branch]:
        """Return the branches of a tree, parts first, then their unions; branches that stay the same are kept."""
        held = self.sharing.of(root)
        before, self._branches = self._branches, {}
        found = [self._single(part, tuple(faces), before) for part, faces in held.items()]
        if len(found) < 2:
            return found
        numbers = {branch.sample: number for number, branch in enumerate(found)}
        order = cheaper(
            root,
            lambda leaf: [numbers[part] for part in self.layout.parts(leaf)],
            [dict(zip(branch.shared, branch.sizes, strict=True)) for branch in found],
            [(id(branch.system), branch.weight, branch.units.tobytes()) for branch in found],
            len(self.rows.equations),
        )
        holders = Counter(place for branch in found for place in branch.shared)
        for pair in order:
            one, two = (found[number] for number in pair)
            known = before.get((one, two))
            if known is None or not known.holds(holders):
                known = self._pair(one, two, holders)
            self._branches[one, two] = known
            found.append(known)
        return found

    def _single(self, part: CellPart, faces: tuple[Any, ...], before: dict[Any, _Branch]) -> _Branch:
        known = before.get(part)
        same = known is not None and set(known.faces) == set(faces)
        if known is None or not same or set(known.shared) != set(self.local.shared(faces)):
            system, shared, load = self.local.of(part, faces)
            counts, sums = self.local.counts(part, part.cell.size), self.local.unit_of_sums(part)
            ends = part.cell.low, part.cell.high
            known = _Branch(shared, system.sizes, part, counts, ends, part=part, system=system, load=load, faces=faces)
            known.weight = self.rows.emphasis(part)
            known.units = np.concatenate([1.0 / sums, np.ones(known.width)])
            known.inside = Counter(shared)
        self._branches[part] = known
        return known

    def _pair(self, one: _Branch, two: _Branch, holders: Counter[Any]) -> _Branch:
        """Return the union of two branches; what only they share is eliminated."""
        sizes = dict(zip(one.shared + two.shared, one.sizes + two.sizes, strict=True))
        inside = one.inside + two.inside
        inner = tuple(place for place in one.shared if inside[place] == holders[place])
        rest = tuple(place for place in sizes if place not in inner)
        ends = np.minimum(one.ends[0], two.ends[0]), np.maximum(one.ends[1], two.ends[1])
        starts = dict(zip(rest, np.cumsum([0, *(sizes[place] for place in rest)]).tolist(), strict=False))
        counts = self.local.counts(one.sample, ends[1] - ends[0])
        shared, others = [], []
        for own in (one, two):
            first = dict(zip(own.shared, (len(counts) + np.cumsum([0, *own.sizes])).tolist(), strict=False))
            shared.append(_ranges([(first[place], sizes[place]) for place in inner]))
            others.append(
                _ranges([(starts.get(place, -1 - len(counts) - own.width), sizes[place]) for place in own.shared])
            )
        left = sum(sizes[place] for place in rest)
        join = Join.of((shared[0], shared[1]), (others[0], others[1]), left, (one.counts, two.counts))
        self._merging += joining(join.gone, join.left)
        return _Branch(
            rest,
            tuple(sizes[place] for place in rest),
            one.sample,
            counts,
            ends,
            inner,
            tuple(sizes[place] for place in inner),
            (one, two),
            join,
            inside=inside,
        )

    def _eliminated(self) -> tuple[_Unknowns, dict[_Branch, Load]]:
        """Return the unknowns of the last tree, and what they leave of right-hand sides.

        Gram matrices find them to half of the digits, and refinement to the rest; where it does not, rotations do.
        """
        loads = {branch: branch.load for branch in self._order if branch.load is not None}
        try:
            self._factorise(self._way)
            found = self._solved(loads)
        except DependentError:
            return self._rotated(loads)
        left = self._left(loads, found)
        for _ in range(_REFINEMENTS):
            change = self._solved(left, found.sums)
            norms = found.norms
            ratio = float((change.norms / np.where(norms > 0, norms, 1.0)).max(initial=0.0))
            if isinstance(self._way, Grams) and not ratio < _CONTRACTING:
                return self._rotated(loads)
            found = found.changed(change)
            left = self._left(loads, found)
            if ratio < _REFINED:
                break
        return found, left

    def _rotated(self, loads: dict[_Branch, Load]) -> tuple[_Unknowns, dict[_Branch, Load]]:
        """Return the same by rotations of rows, for this tree and all further ones."""
        self._way = Rotations()
        self._factorise(self._way)
        found = self._solved(loads)
        return found, self._left(loads, found)

    def _factorise(self, way: Elimination) -> None:
        """Eliminate along the tree; equal branches share factors, and parts of one shape up to their units."""
        before, self._known = self._known, {}
        for branch in self._order:
            if branch.system is not None:
                branch.factor = branch.system.factor(way)
                key: tuple[Any, ...] = (id(way), id(branch.factor), branch.weight, branch.units.tobytes())
                if key not in self._known:
                    scaled = (way.scaled(branch.factor.front, branch.weight * branch.units), branch.factor)
                    self._known[key] = before.get(key) or scaled
                branch.front = self._known[key][0]
                continue
            assert branch.join is not None
            one, two = (half.front for half in branch.halves)
            key = (id(way), id(one), id(two), branch.join.key)
            if key not in self._known:
                self._known[key] = before.get(key) or (way.joined(one, two, branch.join), one, two)
            branch.factor = self._known[key][0]
            branch.front = branch.factor.front

    @staticmethod
    def _left(loads: dict[_Branch, Load], unknowns: _Unknowns) -> dict[_Branch, Load]:
        """Return what unknowns leave of right-hand sides."""
        return {
            branch: load.less(branch.system.rows, unknowns.own[branch], unknowns.others[branch])
            for branch, load in loads.items()
            if branch.system is not None
        }

    def _solved(self, loads: dict[_Branch, Load], sums: dict[_Branch, FloatArray] | None = None) -> _Unknowns:
        """Return the unknowns for right-hand sides, up the tree and down, or a change with which sums become zero."""
        sides = next((load.equation.shape[1] for load in loads.values()), 1)
        way, none = self._way, np.zeros((len(self.rows.equations), sides))
        rights: dict[_Branch, FloatArray] = {}
        fronts: dict[_Branch, FloatArray] = {}
        for branch in self._order:
            if branch.system is not None:
                rights[branch], front = branch.factor.lifted(branch.system.rows, loads[branch])
                fronts[branch] = way.raised(front, branch.weight, branch.weight * branch.units)
                continue
            one, two = branch.halves
            assert branch.join is not None
            given = (none, none) if sums is None else (-sums[one], -sums[two])
            rights[branch], fronts[branch] = branch.factor.up(way.union(fronts[one], fronts[two], given, branch.join))
        if not self._order:
            return _Unknowns({}, {}, {})
        top = self._order[-1]
        last = way.last(top.front, top.counts)
        right = way.whole(fronts[top], none if sums is None else -sums[top], top.counts)
        return self._down(rights, last.down(last.up(right)[0], np.zeros((0, sides))))

    def _down(self, rights: dict[_Branch, FloatArray], top: FloatArray, *, probing: bool = False) -> _Unknowns:
        """Return the unknowns of all parts from right-hand sides of branches and the sums of the whole tree."""
        own: dict[_Branch, FloatArray] = {}
        others: dict[_Branch, FloatArray] = {}
        known: dict[Any, FloatArray] = {}
        sums = {self._order[-1]: top}
        for branch in reversed(self._order):
            total = sums[branch]
            around = np.concatenate([total, *(known[face] for face in branch.shared)])
            if branch.system is not None:
                others[branch] = around * branch.units[:, None]
                own[branch] = branch.factor.down(rights[branch], others[branch], probing=probing)
                continue
            found = branch.factor.down(rights[branch], around, probing=probing)
            one, two = branch.halves
            start = len(total)
            sums[one], sums[two] = total - found[:start], found[:start]
            for face, size in zip(branch.inner, branch.inner_sizes, strict=True):
                known[face] = found[start : start + size]
                start += size
        return _Unknowns(dict(reversed(own.items())), others, sums)

    def weakest(self, seed: int = 0) -> tuple[float, dict[CellPart, FloatArray]]:
        """Return how strongly the last solution answers to changes of what it must meet, and its largest answer.

        One step of inverse iteration with random right-hand sides: near one where everything is well determined,
        beyond all bounds where a function can be added to the solution that no row sees.
        """
        if not self._order:
            return 0.0, {}
        rng = np.random.default_rng((seed, 5))
        last = self._way.last(self._order[-1].front, self._order[-1].counts)
        top = last.down(rng.standard_normal((len(last.triangle), 1)), np.zeros((0, 1)), probing=True)
        rights = {branch: rng.standard_normal((len(branch.factor.triangle), 1)) for branch in reversed(self._order)}
        unknowns = self._down(rights, top, probing=True)
        count = sum(len(branch.factor.triangle) for branch in self._order)
        found = math.sqrt(self._square(unknowns) / count)
        if found > _SUSPECT and isinstance(self._way, Grams):
            unknowns = self._least(unknowns)
            left = self._left({branch: _nothing(branch) for branch in unknowns.own}, unknowns).values()
            sums = (branch.counts[:, None] * total for branch, total in unknowns.sums.items())
            missed = sum(load.square for load in left) + sum(float(np.square(own).sum()) for own in sums)
            found = max(found, math.sqrt(self._square(unknowns) / max(missed, _TINY) / count))
        return found, {
            branch.sample: self._weights(branch, own, unknowns.others[branch])[0]
            for branch, own in unknowns.own.items()
        }

    def _square(self, unknowns: _Unknowns) -> float:
        """Return the square sum of the functions that unknowns stand for; a cut part counts where it is."""
        square = 0.0
        for branch, own in unknowns.own.items():
            part, units = branch.sample, self.local.part_rows(branch.sample).units
            weights = self._weights(branch, own, unknowns.others[branch])[0] / units[:, None]
            if part.whole:
                square += part.extent * float(np.square(weights).sum())
            else:
                values = part_values(self.layout.reference, part, weights, part.points[::4])
                square += part.volume * float(np.square(values).sum()) / len(values)
        return square

    def _least(self, unknowns: _Unknowns) -> _Unknowns:
        """Return the unknowns that rows see least: by inverse iteration, and then less all that rows do see."""
        for _ in range(_ITERATIONS):
            unknowns = self._iterated(unknowns)
        nothing = {branch: _nothing(branch) for branch in unknowns.own}
        for _ in range(_ITERATIONS):
            unknowns = unknowns.changed(self._solved(self._left(nothing, unknowns), unknowns.sums))
        return unknowns

    def _iterated(self, unknowns: _Unknowns) -> _Unknowns:
        """Return the unknowns after a step of inverse iteration, of size one.

        Gram matrices are blind to what rows see least, and yet such a step turns towards it; rows then tell its size.
        """
        scale = 1.0 / math.sqrt(max(self._square(unknowns), _TINY))
        rights: dict[_Branch, FloatArray] = {}
        fronts: dict[_Branch, FloatArray] = {}
        none = np.zeros((len(self.rows.equations), 1))
        for branch in self._order:
            if branch.system is not None:
                factor = branch.factor
                right = np.zeros((len(factor.triangle) + len(factor.front.rows), 1))
                right[: self.rows.width] = scale / branch.weight**2 * self._weighed(branch, unknowns.own[branch])
                rights[branch], front = factor.up(right)
                fronts[branch] = self._way.raised(front, branch.weight, branch.weight * branch.units)
                continue
            one, two = branch.halves
            assert branch.join is not None
            right = self._way.union(fronts[one], fronts[two], (none, none), branch.join)
            rights[branch], fronts[branch] = branch.factor.up(right)
        top = self._order[-1]
        last = self._way.last(top.front, top.counts)
        return self._down(rights, last.down(last.up(fronts[top])[0], np.zeros((0, 1))))

    def _weighed(self, branch: _Branch, own: FloatArray) -> FloatArray:
        """Return unknowns of a part times the Gram matrix of its functions."""
        part = branch.sample
        if part.whole:
            return own
        zero = (0,) * len(part.half)
        nodes = self.layout.nodes(part, part.points, [zero])[zero][::4]
        found = (own.reshape(-1, self.layout.reference.size) @ nodes.T) @ nodes
        return np.asarray(found.reshape(-1, 1) * (part.volume / part.extent / len(nodes)))

    def _weights(self, branch: _Branch, own: FloatArray, others: FloatArray) -> FloatArray:
        """Return the weights of a single part, shape (sides, fields, functions)."""
        part = branch.sample
        units = self.local.part_rows(part).units
        every = own.T.reshape(own.shape[1], len(units), -1) * (units[:, None] / math.sqrt(part.extent))
        crossed = by_crossing(branch.faces)
        if crossed:
            ends = dict(
                zip(branch.shared, (len(others) - branch.width + np.cumsum([0, *branch.sizes])).tolist(), strict=False)
            )
            for crossing, link in crossed.items():
                if (crossing, part) not in self._projected:
                    self._projected[crossing, part] = crossing.projected(self.layout, part)
                numbers = others[ends[link] : ends[link] + crossing.size]
                every += np.tensordot(numbers.T, self._projected[crossing, part], axes=1)
        return np.asarray(every)


def _nothing(branch: _Branch) -> Load:
    """Return right-hand sides of a part that are zero."""
    assert branch.load is not None
    return Load(*(np.zeros((len(own), 1)) for own in (branch.load.equation, branch.load.rows, branch.load.heavy)))


def _ranges(spans: list[tuple[int, int]]) -> Any:
    """Return numbers that count up from starts, so many from each."""
    return np.concatenate([np.empty(0, dtype=np.int64), *(np.arange(start, start + count) for start, count in spans)])
