"""Solve a linear problem on a tree of cells: least squares, eliminated along the tree."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.leaf import Link, Reducer, Wall, by_crossing
from pibls.cells.parts import CellPart, Face, part_values
from pibls.cells.rows import Rows
from pibls.cells.tree import Cell, Contact, contacts, leaves
from pibls.checks import FloatArray
from pibls.solvers.elimination import Eliminated, merge, merging

__all__ = ["Fit", "Glue"]

_COMPLETE = 1e-9  # of a side: what is less is rounding


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


@dataclass(frozen=True, eq=False)
class _Front:
    """What a branch of the tree still shares with the rest, on faces and walls and by links."""

    faces: tuple[Any, ...]
    sizes: tuple[int, ...]
    rows: FloatArray
    own: Eliminated
    inner: tuple[Face, ...]
    inner_sizes: tuple[int, ...]
    parts: tuple[CellPart | _Front, ...]
    sample: CellPart | None
    lost: float
    held: tuple[Any, ...] = ()


@dataclass(eq=False)
class Glue:
    """Solves one problem on one tree after another; what has not changed is not computed again."""

    rows: Rows
    orders: InitVar[dict[Any, Any] | None] = None  # of unknowns, shared with another one
    reducer: Reducer = field(init=False)
    _merging: float = 0.0  # operations
    _columns: dict[CellPart, FloatArray] = field(default_factory=dict)
    _fronts: dict[Any, _Front] = field(default_factory=dict)
    _walls: dict[Any, Wall] = field(default_factory=dict)
    _sides: dict[Face, tuple[CellPart, int, bool] | None] = field(default_factory=dict)  # which walls have them
    _links: dict[Any, Link] = field(default_factory=dict)
    _projected: dict[Any, FloatArray] = field(default_factory=dict)
    _top: _Front = field(init=False)
    _level: int = 0
    _last: tuple[int, float] = (1, 0.0)  # cells of the last tree, and operations of its merges

    def __post_init__(self, orders: dict[Any, Any] | None) -> None:
        self.reducer = Reducer(self.rows, {} if orders is None else orders)

    @property
    def flops(self) -> float:
        """Operations so far."""
        return self._merging + self.reducer.flops

    @property
    def layout(self) -> Layout:
        """The domain."""
        return self.rows.layout

    def work(self, cells: float, new: float) -> float:
        """Return the operations that a tree of so many cells takes, so many of them new, by those of the last one.

        What branches share grows more slowly than they do, and merges go with its third power.
        """
        d, (count, merged) = self.layout.reference.dimension, self._last
        unit = self.reducer.flops / max(self.reducer.count, 1)
        power: float = max(3.0 * (d - 1) / d, 1.0)
        return unit * new + merged * math.pow(cells / count, power)

    @property
    def held(self) -> float:
        """Bytes that the last solution takes, for the most part."""
        own = (front.rows.size + front.own.triangle.size + front.own.coupling.size for front in self._fronts.values())
        return 8.0 * sum(own) + self.reducer.held

    def solve(self, root: Cell) -> Fit:
        """Return the solution on a tree."""
        paths = _paths(root)
        held: dict[CellPart, list[Face]] = {}
        depths: dict[Any, tuple[int, int, int]] = {}
        walls: dict[tuple[CellPart, int, bool], list[Face]] = {}
        for contact in contacts(root, self.rows.periodic):
            common = _common(paths[contact.below], paths[contact.above])
            for face in self.layout.faces(contact):
                depths[face] = (-common, 0, len(depths))
                held.setdefault(face.below, []).append(face)
                held.setdefault(face.above, []).append(face)
                if face not in self._sides:
                    self._sides[face] = _beside(contact, face)
                if (key := self._sides[face]) is not None:
                    walls.setdefault(key, []).append(face)
        self._join(walls, depths)
        for leaf in leaves(root):
            # Parts of a cell join one after the other, and what the next one shares comes first.
            order = {part: number for number, part in enumerate(self.layout.parts(leaf))}
            seams = self.layout.seam_faces(leaf)
            ranks = {face: max(order[face.below], order[face.above]) for face in seams}
            for face in sorted(seams, key=ranks.__getitem__):
                depths[face] = (-len(paths[leaf]), ranks[face], len(depths))
                held.setdefault(face.below, []).append(face)
                held.setdefault(face.above, []).append(face)
        self._chain(root, paths, held, depths)
        self._level = root.depth
        before, self._fronts, merged = self._fronts, {}, self._merging
        top = self._top = self._front(root, held, depths, before)
        weights: dict[CellPart, FloatArray] = {}
        residuals: dict[CellPart, float] = {}
        self._columns = {}
        self._back(top, self._total(top), {}, weights, residuals)
        parts = tuple(weights)
        if self._merging > merged:
            self._last = len(parts), self._merging - merged
        self.reducer.keep(parts)
        return Fit(root, parts, weights, residuals, len(parts) * self.rows.width, 0, self._columns)

    def _join(
        self, walls: dict[tuple[CellPart, int, bool], list[Face]], depths: dict[Any, tuple[int, int, int]]
    ) -> None:
        """Let the faces that make up a side of a part share the unknowns of one wall."""
        joined: dict[Face, Wall] = {}
        for key, faces in walls.items():
            part, axis, _ = key
            whole = float(np.prod(np.delete(2 * part.half, axis)))
            complete = abs(sum(face.area for face in faces) - whole) < _COMPLETE * whole
            if complete and all(self.rows.flux.is_plain(face) for face in faces):
                wall = self._walls.setdefault(key, Wall(part, axis))
                depths[wall] = max(depths[face] for face in faces)
                joined |= dict.fromkeys(faces, wall)
        self.reducer.walls = joined

    def _chain(self, root: Cell, paths: dict[Cell, str], held: Any, depths: Any) -> None:
        """Link every part with the next one, for each average, and around each crossing."""
        cells = leaves(root)
        chains: list[tuple[Any, float, list[Cell]]] = [(statement, 0.0, cells) for statement in self.rows.averages]
        chains += [(crossing, *crossing.around(cells)) for crossing in self.layout.ground.crossings]
        for of, half, around in chains:
            parts = [part for cell in around for part in self.layout.parts(cell)]
            self.reducer.around[of] = set(parts)
            for one, two in pairwise(parts):
                # What is within a box of some size is in all trees.
                link = self._links.setdefault((one, two, of, half), Link(one, two, of))
                order = self.layout.parts(two.cell).index(two) if one.cell is two.cell else 0
                depths[link] = (-_common(paths[one.cell], paths[two.cell]), order, len(depths))
                held.setdefault(one, []).append(link)
                held.setdefault(two, []).append(link)

    def _front(self, cell: Cell, held: dict[CellPart, list[Face]], depths: Any, before: dict[Any, _Front]) -> _Front:
        if cell.halves:
            return self._merged(cell, [self._front(half, held, depths, before) for half in cell.halves], depths, before)
        parts = self.layout.parts(cell)
        fronts = []
        for part in parts:
            walls = self.reducer.walls
            faces = tuple(sorted(held.get(part, ()), key=lambda face: depths[walls.get(face, face)]))
            shared, kept = self.reducer.shared(faces), before.get(part)
            same = kept is not None and kept.held == faces and kept.faces == shared
            front = kept if kept is not None and same else self._leaf(part, faces, shared)
            self._fronts[part] = front
            fronts.append(front)
        return self._merged(cell, fronts, depths, before)

    def _leaf(self, part: CellPart, faces: tuple[Any, ...], shared: tuple[Any, ...]) -> _Front:
        own, front, lost, sizes = self.reducer.leaf(part, faces)
        return _Front(shared, sizes, front, own, (), (), (part,), part, lost, faces)

    def _merged(self, cell: Cell, fronts: list[_Front], depths: Any, before: dict[Any, _Front]) -> _Front:
        fronts = [front for front in fronts if front.parts]
        if len(fronts) == 1:
            return fronts[0]
        if not fronts:
            return _Front(
                (),
                (),
                np.zeros((0, self.rows.sides)),
                Eliminated(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, self.rows.sides))),
                (),
                (),
                (),
                None,
                0.0,
            )
        found = fronts[0]
        for number, other in enumerate(fronts[1:]):
            key = (cell, number)
            kept = before.get(key)
            if kept is None or kept.parts != (found, other):
                kept = self._pair(cell, found, other, depths)
            self._fronts[key] = kept
            found = kept
        return found

    def _pair(self, cell: Cell, one: _Front, two: _Front, depths: Any) -> _Front:
        sizes = dict(zip(one.faces + two.faces, one.sizes + two.sizes, strict=True))
        theirs = set(two.faces)
        # A wall is shared by more than two: it goes with the last of them.
        shared = tuple(face for face in one.faces if face in theirs and depths[face][0] <= -(cell.depth - self._level))
        common = set(shared)
        rest = tuple(sorted((f for f in sizes if f not in common), key=depths.__getitem__))
        starts = dict(zip(rest, np.cumsum([0, *(sizes[f] for f in rest)])[:-1].tolist(), strict=True)) if rest else {}
        one_place, two_place = (
            np.concatenate(
                [
                    np.empty(0, int),
                    *(np.arange(starts[f], starts[f] + sizes[f]) for f in front.faces if f not in common),
                ]
            )
            for front in (one, two)
        )
        count, width = sum(sizes[f] for f in shared), sum(sizes[f] for f in rest)
        self._merging += merging(count, width)
        assert one.sample is not None
        counts = self.reducer.counts(one.sample, cell)
        own, rows, lost = merge(one.rows, two.rows, count, (one_place, two_place), width, counts)
        return _Front(
            rest,
            tuple(sizes[f] for f in rest),
            rows,
            own,
            shared,
            tuple(sizes[f] for f in shared),
            (one, two),
            one.sample,
            lost,
        )

    def _total(self, top: _Front, rng: np.random.Generator | None = None) -> FloatArray:
        """Return the sums of the whole tree, the last unknowns that are left."""
        count = len(top.rows)
        rhs = top.rows[:, count:] if rng is None else rng.standard_normal((count, self.rows.sides))
        return Eliminated(top.rows[:, :count], np.zeros((count, 0)), rhs).solve(np.zeros((0, 1)))

    def weakest(self, seed: int = 0) -> tuple[float, dict[CellPart, FloatArray]]:
        """Return how strongly the last solution answers to changes of what it must meet, and its largest answer.

        One step of inverse iteration with random right-hand sides: near one where everything is well determined,
        beyond all bounds where a function can be added to the solution that no row sees.
        """
        rng = np.random.default_rng((seed, 5))
        weights: dict[CellPart, FloatArray] = {}
        count = self._back(self._top, self._total(self._top, rng), {}, weights, {}, rng)
        square = 0.0
        for part, found in weights.items():
            scaled = found / self.reducer.reduced(part).rows.units[:, None]
            if part.whole:
                square += float(np.prod(part.half) * np.square(scaled).sum())
            else:
                # What a cut part does outside the domain does not count.
                values = part_values(self.layout.reference, part, scaled, part.points[::4])
                square += float(part.volume * np.square(values).sum() / len(values))
        return float(np.sqrt(square / max(count, 1))), weights

    def _back(
        self,
        front: _Front,
        sums: FloatArray,
        known: dict[Any, FloatArray],
        weights: dict[CellPart, FloatArray],
        residuals: dict[CellPart, float],
        rng: np.random.Generator | None = None,
    ) -> int:
        """Find the unknowns of a branch from its sums and those around it, and return how many they are."""
        others = np.concatenate([sums, *(known[face] for face in front.faces)])
        own = front.own.solve(others, None if rng is None else rng.standard_normal(front.own.rhs.shape))
        if front.inner or (front.parts and isinstance(front.parts[0], _Front)):
            start = len(sums)
            shares = sums - own[:start], own[:start]
            for face, size in zip(front.inner, front.inner_sizes, strict=True):
                known[face] = own[start : start + size]
                start += size
            count = len(own)
            for part, share in zip(front.parts, shares, strict=True):
                assert isinstance(part, _Front)
                count += self._back(part, share, known, weights, residuals, rng)
            return count
        for part in front.parts:
            assert isinstance(part, CellPart)
            units = self.reducer.reduced(part).rows.units
            found = np.empty((own.shape[1], self.rows.width))
            found[:, self.reducer.order(part)] = own.T
            every = found.reshape(len(found), len(units), -1) * units[:, None]
            for crossing, links in by_crossing(front.faces).items():
                if (crossing, part) not in self._projected:
                    self._projected[crossing, part] = crossing.projected(self.layout, part)
                every += np.tensordot(known[links[0]].T, self._projected[crossing, part], axes=1)
            weights[part] = every[0]
            if rng is not None:
                continue
            if len(every) > 1:
                self._columns[part] = every[1:]
            # Rotations keep lengths: what the front cannot meet is all that the rows of the part do not.
            width = front.rows.shape[1] - self.rows.sides
            left = front.rows[:, :width] @ others[:, 0] - front.rows[:, width]
            square = (front.lost + float(left @ left)) / self.rows.emphasis(part) ** 2
            residuals[part] = float(np.sqrt(square + self.reducer.reduced(part).lost))
        return len(own)


def _paths(root: Cell) -> dict[Cell, str]:
    found: dict[Cell, str] = {}

    def walk(cell: Cell, path: str) -> None:
        if not cell.halves:
            found[cell] = path
        for number, half in enumerate(cell.halves):
            walk(half, path + str(number))

    walk(root, "")
    return found


def _beside(contact: Contact, face: Face) -> tuple[CellPart, int, bool] | None:
    """Return the larger one of two whole parts, if the other one meets it with all of its side, and that side of it."""
    if not face.whole or face.shift or len(face.below.half) == 1:
        return None
    span = np.delete(contact.high - contact.low, face.axis)
    below, above = (np.delete(2 * part.half, face.axis) for part in (face.below, face.above))
    whole_below, whole_above = (bool((side < span * (1 + _COMPLETE)).all()) for side in (below, above))
    if whole_below == whole_above:
        return None
    return (face.above, face.axis, False) if whole_below else (face.below, face.axis, True)


def _common(one: str, two: str) -> int:
    """Return how far two paths go together."""
    count = 0
    for a, b in zip(one, two, strict=False):
        if a != b:
            return count
        count += 1
    return count
