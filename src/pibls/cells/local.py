"""The least-squares problem of one part of a tree: its equations, its conditions, and its shared unknowns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pibls.cells.crossings import Crossing
from pibls.cells.evaluation import Sources, Stated
from pibls.cells.parts import CellPart, Face
from pibls.cells.rows import PartRows, Rows
from pibls.checks import FloatArray
from pibls.features.reference import on_grid
from pibls.problem import Statement
from pibls.solvers.elimination import Elimination, Factor, LeafSystem, Load
from pibls.solvers.joins import counted

__all__ = ["PER_CELL", "Factored", "Link", "LocalSystem", "LocalSystems", "Wall", "by_crossing"]

PER_CELL = 5e6  # operations that the handling of a cell counts for
_STIFF = 300.0  # how strictly the sums of a part are what they are defined to be


@dataclass(frozen=True, eq=False)
class Link:
    """Numbers that parts share: the sum of an average so far, or those of functions at a crossing."""

    below: CellPart
    above: CellPart
    of: Statement | Crossing

    @property
    def size(self) -> int:
        """How many numbers it carries."""
        return self.of.size if isinstance(self.of, Crossing) else 1


@dataclass(frozen=True, eq=False)
class Wall:
    """The side of a whole part beyond which there are smaller ones: all of them share one set of polynomials with it.

    A tree that is graded has many faces; what they share is no more than the largest parts can tell apart.
    """

    part: CellPart
    axis: int

    def carried(self, rows: Rows, face: Face) -> FloatArray:
        """Return the coefficients on a face by those on the wall, as a matrix."""
        part, wanted = self.part, rows.traces.shared(face)
        others = np.arange(len(part.half)) != self.axis
        share = np.sqrt(face.area / np.prod(2 * part.half[others]))
        common = share * rows.layout.walls.common((face.points[:, others] - part.center[others]) / part.half[others])
        ratio = face.thickness / (2.0 * part.half[self.axis])
        units = rows.balance(part)[1] / rows.traces.units(face)
        step = len(common)
        found = np.zeros((step * len(wanted), step * len(wanted)))
        for k, (number, order) in enumerate(wanted):
            block = slice(k * step, (k + 1) * step)
            found[block, block] = (ratio ** (0.5 + order) * units[number]) * common
        return found


@dataclass(frozen=True, eq=False)
class Factored:
    """A factorised system: a member of a stack.

    Attributes
    ----------
    way
        How unknowns were eliminated.
    factor, system
        The stack of factors, and that of rows.
    number
        Which member it is.
    """

    way: Elimination
    factor: Factor
    system: LeafSystem
    number: int

    @property
    def count(self) -> int:
        """Number of members of its stack."""
        return len(self.system.rows)

    def taken(self, numbers: list[int]) -> Factored:
        """Return the first one of a stack of some members: the same stack if these are all."""
        if numbers == list(range(self.count)):
            return Factored(self.way, self.factor, self.system, 0)
        system = LeafSystem(self.system.equation[numbers], self.system.rows[numbers], self.system.heavy[numbers])
        return Factored(self.way, self.factor.taken(numbers), system, 0)

    def member(self, number: int) -> Factored:
        """Return another member of the same stack."""
        return Factored(self.way, self.factor, self.system, number)


@dataclass(eq=False)
class LocalSystem:
    """Rows of a part over its own unknowns, its sums and all it shares; parts that are alike have one.

    Rows, weights and sums are in units of the part, so that parts of one shape are alike whatever their size.

    Attributes
    ----------
    rows
        The rows; those that define the sums are heavy.
    sizes
        How many unknowns it shares in each place.
    averaged
        The conditions on averages at the points of the part.
    crossed
        How its sums depend on right-hand sides across interfaces.
    factored
        The system with its own unknowns eliminated, once it is.
    """

    rows: LeafSystem
    sizes: tuple[int, ...]
    averaged: tuple[Stated, ...] = ()
    crossed: Mapping[Face, FloatArray] = field(default_factory=dict)
    factored: Factored | None = None

    def place(self, factored: Factored) -> None:
        """Keep a factor, and the rows as a member of its stack."""
        self.factored = factored
        system, one = factored.system, slice(factored.number, factored.number + 1)
        self.rows = LeafSystem(system.equation[one], system.rows[one], system.heavy[one])

    @property
    def work(self) -> float:
        """Operations that the elimination takes."""
        (count, own), (more, width), _ = self.rows.shape
        return counted(count * own**2 + more * width**2 + own * width**2, own)


@dataclass(eq=False)
class LocalSystems:
    """Makes the systems of parts; parts with equal rows share one."""

    rows: Rows
    around: dict[Any, set[CellPart]] = field(default_factory=dict)  # parts that have the functions of a crossing
    walls: dict[Face, Wall] = field(default_factory=dict)  # of which faces are pieces
    work: float = 0.0
    count: int = 0
    _made: dict[CellPart, PartRows] = field(default_factory=dict)
    _alike: dict[Any, LocalSystem] = field(default_factory=dict)
    _unit: FloatArray | None = None

    def keep(self, parts: Iterable[CellPart]) -> None:
        """Forget the rows of all parts but some."""
        self._made = {part: self._made[part] for part in parts}

    @property
    def stated(self) -> Iterator[Stated]:
        """The equations and conditions at points of parts whose rows are kept."""
        return (own for rows in self._made.values() for own in (*rows.inside, *rows.held))

    def shared(self, faces: Iterable[Any]) -> tuple[Any, ...]:
        """Return the owners of the unknowns that are shared on faces: the faces, or walls."""
        return tuple(dict.fromkeys(self.walls.get(face, face) for face in faces))

    def part_rows(self, part: CellPart) -> PartRows:
        """Return the rows that concern a part alone."""
        if part not in self._made:
            self._made[part] = self.rows.of(part)
        return self._made[part]

    def of(self, part: CellPart, faces: tuple[Any, ...]) -> tuple[LocalSystem, tuple[Any, ...]]:
        """Return the system of a part with some faces, and these in the order of its rows."""
        self.count += 1
        self.work += PER_CELL
        rows = self.part_rows(part)
        key, alike = self._configuration(part, faces, rows)
        system = self._alike.get(key) if key is not None else None
        if system is None:
            system = self._made_of(part, alike, rows)
            self.work += system.work
            if key is not None:
                self._alike[key] = system
        return system, alike

    def load(self, part: CellPart, faces: tuple[Any, ...], system: LocalSystem, sources: Sources | None = None) -> Load:
        """Return the right-hand sides of the system of a part: those of the problem, or of other sources."""
        rows = self.part_rows(part)
        source, value, given = rows.right(part, sources)
        light, sides = np.zeros((system.rows.rows.shape[1], value.shape[1])), value.shape[1]
        light[: len(value)] = value
        sums, row = given + rows.flows @ value, len(value)
        for face in (own for own in faces if isinstance(own, Face) and system.crossed):
            right = self.rows.traces.right(part, face, sides, sources)
            light[row : row + len(right)] = right
            sums = sums + system.crossed[face] @ right if face in system.crossed else sums
            row += len(right)
        for number, own in enumerate(system.averaged, len(light) - len(system.averaged)):
            light[number] = -own.factors @ (own.source[:, None] if sources is None else sources(own, part))
        return Load(source[None], light[None], (-self._stiffness(part) * sums)[None])

    def unit_of_sums(self, part: CellPart) -> FloatArray:
        """Return the sums of a part that are one in its own units."""
        return np.asarray(self._unit_of_sums(part) * math.sqrt(part.extent) / self.rows.balance(part)[0])

    def _stiffness(self, part: CellPart) -> FloatArray:
        """Return the factors of the integrals of a part where they define its sums, as a column."""
        return np.asarray(_STIFF * self.rows.balance(part)[0] / math.sqrt(part.extent))[:, None]

    def _configuration(self, part: CellPart, faces: tuple[Any, ...], rows: PartRows) -> tuple[Any, tuple[Any, ...]]:
        """Return a key that parts with equal rows have in common, or None, and the faces in the order of these rows."""
        plain = rows.key is not None and not self.rows.averages
        if not plain or not all(isinstance(face, Face) and face.whole for face in faces):
            return None, faces
        boundary = self.rows.boundary_key(part, rows)
        if boundary is None:
            return None, faces
        found = {
            face: (
                self.rows.layout.place(part, self.rows.traces.on_side(part, face)),
                face.axis,
                float(f"{face.thickness / part.half[face.axis]:.12g}"),
                bool(face.shift),
                *(float(f"{ratio:.12g}") for ratio in self.rows.traces.units(face) / rows.units),
            )
            for face in faces
        }
        alike = tuple(sorted(faces, key=found.__getitem__))
        shared = self.shared(alike)
        return (rows.key, boundary, tuple((*found[face], *self._on_wall(face, shared)) for face in alike)), alike

    def _on_wall(self, face: Face, shared: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return which wall a face is a piece of, and which piece."""
        wall = self.walls.get(face)
        if wall is None:
            return ()
        X = face.points[[0, -1]]
        place = on_grid((X - wall.part.center) / wall.part.half)
        ratios = (
            face.thickness / wall.part.half[wall.axis],
            *(self.rows.balance(wall.part)[1] / self.rows.traces.units(face)),
        )
        return shared.index(wall), place.tobytes(), *(float(f"{ratio:.12g}") for ratio in ratios)

    def _made_of(self, part: CellPart, faces: tuple[Any, ...], rows: PartRows) -> LocalSystem:
        """Return the system of a part."""
        own = [face for face in faces if not isinstance(face, Link)]
        traced = [self.rows.traces.of(part, face, rows.units) for face in own]
        carried = {face: self._carried(face, len(block)) for face, block in zip(own, traced, strict=True)}
        shared = self.shared(faces)
        known = {self.walls.get(face, face): matrix.shape[1] for face, matrix in carried.items()}
        sizes = tuple(one.size if isinstance(one, Link) else known[one] for one in shared)
        count = len(rows.given)
        starts = dict(zip(shared, (count + np.cumsum([0, *sizes])).tolist(), strict=False))
        columns = {face: starts[self.walls.get(face, face)] for face in faces}
        below, width = np.vstack([rows.condition, *traced]), count + sum(sizes)
        bottom = np.zeros((len(below), width))
        row = len(rows.value)
        for face, matrix in carried.items():
            bottom[row : row + len(matrix), columns[face] : columns[face] + matrix.shape[1]] = -matrix
            row += len(matrix)
        self._cross(part, faces, carried, bottom[len(rows.value) :], columns)
        averaged: tuple[Stated, ...] = ()
        if self.rows.averages:
            sums, theirs, averaged = self._sums(part, rows.units, faces, columns, width)
            below, bottom = np.vstack([below, sums]), np.vstack([bottom, theirs])
        balance, theirs, crossed = self._balance(part, carried, rows, below, bottom, columns)
        below, bottom = np.vstack([below, balance]), np.vstack([bottom, theirs])
        every = np.hstack([below / math.sqrt(part.extent), bottom])
        light = len(every) - count
        system = LeafSystem(rows.equation[None], every[None, :light], every[None, light:])
        return LocalSystem(system, sizes, averaged, crossed)

    def _carried(self, face: Face, count: int) -> FloatArray:
        """Return the coefficients on a face by the unknowns that are shared there."""
        wall = self.walls.get(face)
        return np.eye(count) if wall is None else wall.carried(self.rows, face)

    def _sums(
        self, part: CellPart, units: FloatArray, faces: tuple[Any, ...], columns: dict[Any, int], width: int
    ) -> tuple[FloatArray, FloatArray, tuple[Stated, ...]]:
        """Return the rows of averages: the sum so far plus this part's share is passed on; the last is the value."""
        found = [self.rows.average(part, units, statement) for statement in self.rows.averages]
        theirs = np.zeros((len(found), width))
        for number, statement in enumerate(self.rows.averages):
            for face in faces:
                if isinstance(face, Link) and face.of is statement:
                    theirs[number, columns[face]] = 1.0 if face.above is part else -1.0
        return np.array([row for row, _ in found]), theirs, tuple(own for _, own in found)

    def _cross(
        self,
        part: CellPart,
        faces: tuple[Any, ...],
        carried: dict[Face, FloatArray],
        bottom: FloatArray,
        columns: dict[Any, int],
    ) -> None:
        """Put the functions of crossings into the rows that a part shares with parts that do not have them."""
        for crossing, link in by_crossing(faces).items():
            first, row = columns[link], 0
            for face, matrix in carried.items():
                other = face.above if face.below is part else face.below
                if other not in self.around[crossing]:
                    own = slice(first, first + crossing.size)
                    bottom[row : row + len(matrix), own] = crossing.traced(self.rows, part, face)
                row += len(matrix)

    def _balance(
        self,
        part: CellPart,
        carried: dict[Face, FloatArray],
        rows: PartRows,
        below: FloatArray,
        bottom: FloatArray,
        columns: dict[Any, int],
    ) -> tuple[FloatArray, FloatArray, dict[Face, FloatArray]]:
        """Return the rows that define the sums of a part, which should be zero, and the share of interfaces.

        What equations lack in all over a part, and what flows differ by from those shared on its faces and given on
        its boundary, adds up over any branch of the tree to what the branch creates or swallows. Small cells count
        little by themselves; without these sums they could be a source that is felt everywhere.
        """
        count = len(rows.given)
        theirs, passed = np.zeros((count, bottom.shape[1])), {}
        conditions = len(rows.value)
        balance = -rows.flows @ rows.besides if rows.besides is not None else rows.means - rows.flows @ rows.condition
        row, crossed = conditions, by_crossing(tuple(columns))
        for face, matrix in carried.items():
            own, shared = self.rows.flux.across(part, face, below[row : row + len(matrix)])
            if rows.besides is None:
                balance -= own
            there = slice(columns[face], columns[face] + matrix.shape[1])
            theirs[:, there] += shared @ matrix
            if crossed or face.crossed:
                known = bottom[row : row + len(matrix)].copy()
                known[:, there] = 0.0
                theirs -= shared @ known
            if face.crossed:
                passed[face] = shared
            row += len(matrix)
        theirs *= self._stiffness(part)
        theirs[np.arange(count), np.arange(count)] = -_STIFF
        return self._stiffness(part) * balance, theirs, passed

    def _unit_of_sums(self, part: CellPart) -> FloatArray:
        """Return the factor of sums: the same everywhere, as they add up however coefficients vary."""
        if self._unit is None:
            self._unit = self.rows.weights(part, self.rows.layout.root.size / 2)
        return self._unit

    def counts(self, part: CellPart, sides: FloatArray) -> FloatArray:
        """Return how much the sums of a branch count, by the sides of the box around it."""
        return np.asarray(self.rows.weights(part, sides / 2) / self._unit_of_sums(part))


def by_crossing(faces: tuple[Any, ...]) -> dict[Crossing, Link]:
    """Return the links of a part that carry numbers of functions at crossings."""
    return {face.of: face for face in faces if isinstance(face, Link) and isinstance(face.of, Crossing)}
