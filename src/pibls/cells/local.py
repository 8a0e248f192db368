"""The least-squares system of one part: its equations, its conditions and its shared unknowns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pibls.cells.corner_singularities import CornerSingularity
from pibls.cells.evaluation import Sources, Stated
from pibls.cells.parts import CellPart, Face
from pibls.cells.rows import PartRows, Rows
from pibls.checks import FloatArray
from pibls.features.reference import on_grid
from pibls.problem import Statement
from pibls.solvers.elimination import Elimination, Factor, LeafSystem, Load
from pibls.solvers.joins import counted

__all__ = ["PER_CELL", "CoarseSide", "Factored", "Link", "LocalSystem", "LocalSystems", "by_singularity"]

PER_CELL = 5e6  # operations charged for the overhead of a cell
_STIFF = 300.0  # weight of the rows that define the balance sums


@dataclass(frozen=True, eq=False)
class Link:
    """Unknown numbers that parts share: the running sum of an average, or the amplitudes of a corner singularity."""

    below: CellPart
    above: CellPart
    of: Statement | CornerSingularity

    @property
    def size(self) -> int:
        """How many numbers it carries."""
        return self.of.size if isinstance(self.of, CornerSingularity) else 1


@dataclass(frozen=True, eq=False)
class CoarseSide:
    """A side of a whole part with smaller parts beyond: all of them share one set of polynomials with it.

    A graded tree has many small faces, but their traces are no finer than the largest part can resolve.
    """

    part: CellPart
    axis: int
    is_upper: bool

    def carried(self, rows: Rows, face: Face) -> FloatArray:
        """Return the matrix from the unknowns of the side to the trace coefficients on one of its faces."""
        part, wanted = self.part, rows.traces.shared(face)
        others = np.arange(len(part.half)) != self.axis
        share = np.sqrt(face.area / np.prod(2 * part.half[others]))
        common = share * rows.layout.face_finder.common(
            (face.points[:, others] - part.center[others]) / part.half[others]
        )
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
    """The factor of one system, as a member of a stack of factors.

    Attributes
    ----------
    elimination
        The elimination method.
    factor, system
        The stack of factors, and the stack of rows.
    number
        Position in the stack.
    """

    elimination: Elimination
    factor: Factor
    system: LeafSystem
    number: int

    @property
    def count(self) -> int:
        """Number of members of the stack."""
        return len(self.system.rows)

    def taken(self, numbers: list[int]) -> Factored:
        """Return the first member of a stack of the given members; the same stack if these are all of them."""
        if numbers == list(range(self.count)):
            return Factored(self.elimination, self.factor, self.system, 0)
        system = LeafSystem(self.system.equation[numbers], self.system.rows[numbers], self.system.heavy[numbers])
        return Factored(self.elimination, self.factor.taken(numbers), system, 0)

    def member(self, number: int) -> Factored:
        """Return another member of the same stack."""
        return Factored(self.elimination, self.factor, self.system, number)


@dataclass(eq=False)
class LocalSystem:
    """Rows of a part over its own weights, its balance sums and its shared unknowns; equal parts share one system.

    Rows, weights and sums are in units of the part, so that parts of equal shape have equal rows at any size.

    Attributes
    ----------
    rows
        The rows; those that define the balance sums are heavy.
    sizes
        Number of shared unknowns in each place.
    averaged
        The conditions on averages at the points of the part.
    interface_flows
        For each face with interface conditions, the effect of their right-hand sides on the balance sums.
    factored
        The factor of the system, once it is factorised.
    """

    rows: LeafSystem
    sizes: tuple[int, ...]
    averaged: tuple[Stated, ...] = ()
    interface_flows: Mapping[Face, FloatArray] = field(default_factory=dict)
    factored: Factored | None = None

    def place(self, factored: Factored) -> None:
        """Store a factor; the rows become a member of its stack."""
        self.factored = factored
        system, one = factored.system, slice(factored.number, factored.number + 1)
        self.rows = LeafSystem(system.equation[one], system.rows[one], system.heavy[one])

    @property
    def work(self) -> float:
        """Operations of the elimination."""
        (count, own), (more, width), _ = self.rows.shape
        return counted(count * own**2 + more * width**2 + own * width**2, own)


@dataclass(eq=False)
class LocalSystems:
    """Makes the systems of parts; parts with equal rows share one."""

    rows: Rows
    around: dict[Any, set[CellPart]] = field(default_factory=dict)  # parts around each corner singularity
    coarse_sides: dict[Face, CoarseSide] = field(default_factory=dict)  # the coarse side that a face belongs to
    work: float = 0.0
    count: int = 0
    _made: dict[CellPart, PartRows] = field(default_factory=dict)
    _alike: dict[Any, LocalSystem] = field(default_factory=dict)
    unit: FloatArray | None = None  # of balance sums

    def keep(self, parts: Iterable[CellPart]) -> None:
        """Forget the rows of all parts except the given ones."""
        self._made = {part: self._made[part] for part in parts}

    @property
    def stated(self) -> Iterator[Stated]:
        """The equations and conditions at the points of all parts whose rows are kept."""
        return (own for rows in self._made.values() for own in (*rows.stated_equations, *rows.stated_conditions))

    def shared(self, faces: Iterable[Any]) -> tuple[Any, ...]:
        """Return the places of the unknowns shared on faces: coarse sides, or the faces themselves."""
        return tuple(dict.fromkeys(self.coarse_sides.get(face, face) for face in faces))

    def part_rows(self, part: CellPart) -> PartRows:
        """Return the rows of a part without those on its faces."""
        if part not in self._made:
            self._made[part] = self.rows.of(part)
        return self._made[part]

    def of(self, part: CellPart, faces: tuple[Any, ...]) -> tuple[LocalSystem, tuple[Any, ...]]:
        """Return the system of a part with given faces, and the faces in the order of its rows."""
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

    def right_hand_sides(
        self, part: CellPart, faces: tuple[Any, ...], system: LocalSystem, sources: Sources | None = None
    ) -> Load:
        """Return the right-hand sides of a part: those of the problem, or those of other sources."""
        rows = self.part_rows(part)
        source, value, given = rows.right(part, sources)
        light, sides = np.zeros((system.rows.rows.shape[1], value.shape[1])), value.shape[1]
        light[: len(value)] = value
        sums, row = given + rows.flows @ value, len(value)
        for face in (own for own in faces if isinstance(own, Face) and system.interface_flows):
            right = self.rows.traces.right(part, face, sides, sources)
            light[row : row + len(right)] = right
            sums = sums + system.interface_flows[face] @ right if face in system.interface_flows else sums
            row += len(right)
        for number, own in enumerate(system.averaged, len(light) - len(system.averaged)):
            light[number] = -own.factors @ (own.source[:, None] if sources is None else sources(own, part))
        return Load(source[None], light[None], (-self._stiffness(part) * sums)[None])

    def unit_of_sums(self, part: CellPart) -> FloatArray:
        """Return the balance sums that equal one in the units of the part."""
        return np.asarray(self.sum_unit(part) * math.sqrt(part.extent) / self.rows.balance(part)[0])

    def _stiffness(self, part: CellPart) -> FloatArray:
        """Return the factors of the rows that define the balance sums, as a column."""
        return np.asarray(_STIFF * self.rows.balance(part)[0] / math.sqrt(part.extent))[:, None]

    def _configuration(self, part: CellPart, faces: tuple[Any, ...], rows: PartRows) -> tuple[Any, tuple[Any, ...]]:
        """Return a key that parts with equal rows share, or None, and the faces in the order of these rows."""
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
        return (rows.key, boundary, tuple((*found[face], *self._on_coarse_side(face, shared)) for face in alike)), alike

    def _on_coarse_side(self, face: Face, shared: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the coarse side that a face belongs to and its position there, as part of a key."""
        side = self.coarse_sides.get(face)
        if side is None:
            return ()
        X = face.points[[0, -1]]
        place = on_grid((X - side.part.center) / side.part.half)
        ratios = (
            face.thickness / side.part.half[side.axis],
            *(self.rows.balance(side.part)[1] / self.rows.traces.units(face)),
        )
        return shared.index(side), place.tobytes(), *(float(f"{ratio:.12g}") for ratio in ratios)

    def _made_of(self, part: CellPart, faces: tuple[Any, ...], rows: PartRows) -> LocalSystem:
        """Return the system of a part."""
        own = [face for face in faces if not isinstance(face, Link)]
        traced = [self.rows.traces.of(part, face, rows.units) for face in own]
        carried = {face: self._carried(face, len(block)) for face, block in zip(own, traced, strict=True)}
        shared = self.shared(faces)
        known = {self.coarse_sides.get(face, face): matrix.shape[1] for face, matrix in carried.items()}
        sizes = tuple(one.size if isinstance(one, Link) else known[one] for one in shared)
        count = len(rows.given)
        starts = dict(zip(shared, (count + np.cumsum([0, *sizes])).tolist(), strict=False))
        columns = {face: starts[self.coarse_sides.get(face, face)] for face in faces}
        below, width = np.vstack([rows.condition, *traced]), count + sum(sizes)
        bottom = np.zeros((len(below), width))
        row = len(rows.value)
        for face, matrix in carried.items():
            bottom[row : row + len(matrix), columns[face] : columns[face] + matrix.shape[1]] = -matrix
            row += len(matrix)
        self._add_singularities(part, faces, carried, bottom[len(rows.value) :], columns)
        averaged: tuple[Stated, ...] = ()
        if self.rows.averages:
            sums, theirs, averaged = self._sums(part, rows.units, faces, columns, width)
            below, bottom = np.vstack([below, sums]), np.vstack([bottom, theirs])
        balance, theirs, interface_flows = self._balance(part, carried, rows, below, bottom, columns)
        below, bottom = np.vstack([below, balance]), np.vstack([bottom, theirs])
        every = np.hstack([below / math.sqrt(part.extent), bottom])
        light = len(every) - count
        system = LeafSystem(rows.equation[None], every[None, :light], every[None, light:])
        return LocalSystem(system, sizes, averaged, interface_flows)

    def _carried(self, face: Face, count: int) -> FloatArray:
        """Return the matrix from shared unknowns to the trace coefficients on a face."""
        side = self.coarse_sides.get(face)
        return np.eye(count) if side is None else side.carried(self.rows, face)

    def _sums(
        self, part: CellPart, units: FloatArray, faces: tuple[Any, ...], columns: dict[Any, int], width: int
    ) -> tuple[FloatArray, FloatArray, tuple[Stated, ...]]:
        """Return the rows of averages: each link carries the running sum plus this part's share to the next."""
        found = [self.rows.average(part, units, statement) for statement in self.rows.averages]
        theirs = np.zeros((len(found), width))
        for number, statement in enumerate(self.rows.averages):
            for face in faces:
                if isinstance(face, Link) and face.of is statement:
                    theirs[number, columns[face]] = 1.0 if face.above is part else -1.0
        return np.array([row for row, _ in found]), theirs, tuple(own for _, own in found)

    def _add_singularities(
        self,
        part: CellPart,
        faces: tuple[Any, ...],
        carried: dict[Face, FloatArray],
        bottom: FloatArray,
        columns: dict[Any, int],
    ) -> None:
        """Add the functions of corner singularities to the rows on faces to parts without these functions."""
        for singularity, link in by_singularity(faces).items():
            first, row = columns[link], 0
            for face, matrix in carried.items():
                other = face.above if face.below is part else face.below
                if other not in self.around[singularity]:
                    own = slice(first, first + singularity.size)
                    bottom[row : row + len(matrix), own] = singularity.traced(self.rows, part, face)
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
        """Return the rows that define the balance sums of a part, and the effect of interface conditions on them.

        The balance sum of a part is the integral of its equations' residuals plus the mismatch of fluxes on its faces
        and boundary. Over any branch of the tree these sums add up to the net source that the branch creates, which
        should be zero. A small cell has little weight by itself; without the sums it could be a source that affects the
        whole domain.
        """
        count = len(rows.given)
        theirs, passed = np.zeros((count, bottom.shape[1])), {}
        conditions = len(rows.value)
        balance = -rows.flows @ rows.besides if rows.besides is not None else rows.means - rows.flows @ rows.condition
        row, singular = conditions, by_singularity(tuple(columns))
        for face, matrix in carried.items():
            own, shared = self.rows.flux.across(part, face, below[row : row + len(matrix)])
            if rows.besides is None:
                balance -= own
            there = slice(columns[face], columns[face] + matrix.shape[1])
            theirs[:, there] += shared @ matrix
            if singular or face.conditions:
                known = bottom[row : row + len(matrix)].copy()
                known[:, there] = 0.0
                theirs -= shared @ known
            if face.conditions or not self.rows.flux.is_plain(face):
                passed[face] = shared
            row += len(matrix)
        theirs *= self._stiffness(part)
        theirs[np.arange(count), np.arange(count)] = -_STIFF
        return self._stiffness(part) * balance, theirs, passed

    def sum_unit(self, part: CellPart) -> FloatArray:
        """Return the unit of balance sums: one for the whole tree, so that they add up."""
        if self.unit is None:
            self.unit = self.rows.weights(part, self.rows.layout.root.size / 2)
        return self.unit

    def counts(self, part: CellPart, sides: FloatArray) -> FloatArray:
        """Return the weights of the balance sums of a branch, from the sides of its bounding box."""
        return np.asarray(self.rows.weights(part, sides / 2) / self.sum_unit(part))


def by_singularity(faces: tuple[Any, ...]) -> dict[CornerSingularity, Link]:
    """Return the links of a part that carry amplitudes of corner singularities."""
    return {face.of: face for face in faces if isinstance(face, Link) and isinstance(face.of, CornerSingularity)}
