"""The least-squares system of one part: its equations, its conditions and its shared unknowns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.corner_singularities import CornerSingularity
from pibls.cells.evaluation import PlacedStatement, Sources
from pibls.cells.part_rows import PartRows, turned
from pibls.cells.part_systems import LocalSystem, PartFrame
from pibls.cells.parts import CellPart, Face
from pibls.cells.rows import Rows
from pibls.checks import FloatArray
from pibls.features.reference import on_grid
from pibls.problem import Statement
from pibls.solvers.elimination import LeafSystem, Load

__all__ = ["PER_CELL", "CoarseSide", "Link", "LocalSystems", "Ties"]

PER_CELL = 5e6  # operations charged for the overhead of a cell
_STIFF = 300.0  # weight of the rows that define the balance sums, and of the sums themselves


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


@dataclass(frozen=True)
class Ties:
    """All through which a part shares unknowns with others: its faces, and its links to parts elsewhere."""

    faces: tuple[Face, ...]
    links: tuple[Link, ...] = ()

    @cached_property
    def singular(self) -> dict[CornerSingularity, Link]:
        """The links that carry amplitudes of corner singularities."""
        return {link.of: link for link in self.links if isinstance(link.of, CornerSingularity)}


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
        part, wanted = self.part, rows.traces.continuous_across(face)
        others = np.arange(len(part.half)) != self.axis
        share = np.sqrt(face.area / np.prod(2 * part.half[others]))
        common = share * rows.layout.face_finder.nested_basis(
            (face.points[:, others] - part.center[others]) / part.half[others]
        )
        ratio = face.thickness / (2.0 * part.half[self.axis])
        units = rows.scales(part).units / rows.traces.units(face)
        step = len(common)
        found = np.zeros((step * len(wanted), step * len(wanted)))
        for k, (number, order) in enumerate(wanted):
            block = slice(k * step, (k + 1) * step)
            found[block, block] = (ratio ** (0.5 + order) * units[number]) * common
        return found


@dataclass(eq=False)
class LocalSystems:
    """Makes the systems of parts; parts with equal rows share one."""

    rows: Rows
    around: dict[Any, set[CellPart]] = field(default_factory=dict)  # parts around each corner singularity
    coarse_sides: dict[Face, CoarseSide] = field(default_factory=dict)  # the coarse side that a face belongs to
    work: float = 0.0
    count: int = 0
    _made: dict[CellPart, PartRows] = field(default_factory=dict)
    _frames: dict[Any, PartFrame] = field(default_factory=dict)
    _alike: dict[Any, LocalSystem] = field(default_factory=dict)  # by the keys of rows and frame
    unit: FloatArray | None = None  # of balance sums
    _last_turned: tuple[FloatArray | None, FloatArray, FloatArray] = (None, np.empty(0), np.empty(0))

    def keep(self, parts: Iterable[CellPart]) -> None:
        """Forget the rows of all parts except the given ones."""
        self._made = {part: self._made[part] for part in parts}

    def places(self, ties: Ties) -> tuple[Face | CoarseSide | Link, ...]:
        """Return the places of the unknowns that a part shares: coarse sides, faces that are on none, and links."""
        return (*dict.fromkeys(self.coarse_sides.get(face, face) for face in ties.faces), *ties.links)

    def part_rows(self, part: CellPart) -> PartRows:
        """Return the rows of a part without those on its faces."""
        if part not in self._made:
            (self._made[part],) = self.rows.assembled([part])
        return self._made[part]

    def systems(self, held: Mapping[CellPart, Ties]) -> list[tuple[LocalSystem, Ties]]:
        """Return the systems of parts with given ties, and the ties of each part in the order of its rows."""
        self.count += len(held)
        self.work += PER_CELL * len(held)
        unmade = [part for part in held if part not in self._made]
        self._made.update(zip(unmade, self.rows.assembled(unmade), strict=True))
        ordered = {part: self._ordered(part, ties) for part, ties in held.items()}
        frames = self._framed(ordered)
        keys = {part: (self._made[part].key, key) for part, (key, _) in ordered.items()}
        alike: dict[Any, CellPart] = {}  # the first part of each key; a part of its own where there is none
        for part, key in keys.items():
            if None in key or key not in self._alike:
                alike.setdefault(part if None in key else key, part)
        new: dict[PartFrame, list[CellPart]] = {}
        for part in alike.values():
            key, _ = ordered[part]
            new.setdefault(frames[part if key is None else key], []).append(part)
        alone: dict[CellPart, LocalSystem] = {}
        for frame, parts in new.items():
            for part, system in zip(parts, self._systems(parts, ordered, frame), strict=True):
                self.work += system.work
                if None in keys[part]:
                    alone[part] = system
                else:
                    self._alike[keys[part]] = system
        return [(alone[part] if part in alone else self._alike[keys[part]], own) for part, (_, own) in ordered.items()]

    def _framed(self, ordered: dict[CellPart, tuple[Any, Ties]]) -> dict[Any, PartFrame]:
        """Return frames by key, or by part if it has none; functions are evaluated for all new ones together."""
        first: dict[Any, CellPart] = {}
        for part, (key, _) in ordered.items():
            if key not in self._frames:
                first.setdefault(part if key is None else key, part)
        pairs = [(part, face) for part in first.values() for face in ordered[part][1].faces]
        traced: dict[CellPart, dict[Face, FloatArray]] = {part: {} for part in first.values()}
        for (part, face), block in zip(pairs, self.rows.traces.rows_on(pairs), strict=True):
            traced[part][face] = block
        found = {key: self._frame(part, ordered[part][1], traced[part]) for key, part in first.items()}
        self._frames.update({key: frame for key, frame in found.items() if not isinstance(key, CellPart)})
        return found | self._frames

    def right_hand_sides(self, part: CellPart, ties: Ties, system: LocalSystem, sources: Sources | None = None) -> Load:
        """Return the right-hand sides of a part: those of the problem, or those of other sources."""
        rows = self.part_rows(part)
        source, value, given = rows.source, rows.value, rows.given
        if sources is not None:
            source, value, given = rows.right(part, sources, self._turned)
        light, sides = np.zeros((system.rows.rows.shape[1], value.shape[1])), value.shape[1]
        light[: len(value)] = value
        sums, row = given + rows.flows @ value, len(value)
        for face in ties.faces if system.interface_flows else ():
            right = self.rows.traces.right(part, face, sides, sources)
            light[row : row + len(right)] = right
            sums = sums + system.interface_flows[face] @ right if face in system.interface_flows else sums
            row += len(right)
        for number, own in enumerate(system.averaged, len(light) - len(system.averaged)):
            light[number] = -own.factors @ (own.source[:, None] if sources is None else sources(own, part))
        return Load(source[None], light[None], (-self.stiffness(part) * sums)[None])

    def _turned(self, factor: FloatArray | None, source: FloatArray) -> FloatArray:
        """Return right-hand sides in the columns of an orthogonal factor; parts of one shape often have the same."""
        known, before, found = self._last_turned
        if factor is None or factor is not known or not np.array_equal(before, source):
            found = turned(factor, source)
            self._last_turned = factor, source, found
        return found

    def own_sum_unit(self, part: CellPart) -> FloatArray:
        """Return the balance sums that equal one in the units of the part."""
        factors = self.rows.balances.of_equations(self.rows.scales(part).factors)
        levers = self.rows.balances.levers(part)
        return np.asarray(self.tree_sum_unit(part) * math.sqrt(part.extent) * levers / factors)

    def shift_of_sums(self, part: CellPart) -> FloatArray:
        """Return the matrix from the sums of the tree to those of a part, whose moments are about its centre."""
        return self.rows.balances.shift(part, self.tree_sum_unit(part))

    def stiffness(self, part: CellPart) -> FloatArray:
        """Return the factors of the rows that define the balance sums, as a column."""
        factors = self.rows.balances.of_equations(self.rows.scales(part).factors)
        return np.asarray(_STIFF * factors / math.sqrt(part.extent))[:, None]

    def _ordered(self, part: CellPart, ties: Ties) -> tuple[Any, Ties]:
        """Return the key of the frame of a part, or None, and its ties in the order of their rows."""
        rows = self._made[part]
        plain = part.whole and not self.rows.averages and not (rows.key is None and self.rows.flux.switches)
        if not plain or ties.links or not all(face.whole for face in ties.faces):
            return None, ties
        boundary = self.rows.boundary_key(part, rows)
        if boundary is None:
            return None, ties
        found = {
            face: (
                self.rows.layout.place(part, self.rows.traces.on_side(part, face)),
                face.axis,
                float(f"{face.thickness / part.half[face.axis]:.12g}"),
                bool(face.shift),
                *(float(f"{ratio:.12g}") for ratio in self.rows.traces.units(face) / rows.units),
            )
            for face in ties.faces
        }
        alike = Ties(tuple(sorted(ties.faces, key=found.__getitem__)))
        shared = self.places(alike)
        return (boundary, tuple((*found[face], *self._on_coarse_side(face, shared)) for face in alike.faces)), alike

    def _on_coarse_side(self, face: Face, shared: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the coarse side that a face belongs to and its position there, as part of a key."""
        side = self.coarse_sides.get(face)
        if side is None:
            return ()
        X = face.points[[0, -1]]
        place = on_grid((X - side.part.center) / side.part.half)
        ratios = (
            face.thickness / side.part.half[side.axis],
            *(self.rows.scales(side.part).units / self.rows.traces.units(face)),
        )
        return shared.index(side), place.tobytes(), *(float(f"{ratio:.12g}") for ratio in ratios)

    def _frame(self, part: CellPart, ties: Ties, traced: dict[Face, FloatArray]) -> PartFrame:
        """Return the frame of a part, given its rows on faces."""
        rows, shared = self._made[part], self.places(ties)
        carried = {face: self._carried(face, len(block)) for face, block in traced.items()}
        known: dict[Face | CoarseSide | Link, int] = {link: link.size for link in ties.links}
        known |= {self.coarse_sides.get(face, face): matrix.shape[1] for face, matrix in carried.items()}
        sizes = tuple(known[place] for place in shared)
        count = len(rows.given)
        starts = dict(zip(shared, (count + np.cumsum([0, *sizes])).tolist(), strict=False))
        columns = {face: starts[self.coarse_sides.get(face, face)] for face in ties.faces}
        linked = {link: starts[link] for link in ties.links}
        below = np.vstack([rows.condition, *traced.values()])
        bottom, row = np.zeros((len(below), count + sum(sizes))), len(rows.value)
        for face, matrix in carried.items():
            bottom[row : row + len(matrix), columns[face] : columns[face] + matrix.shape[1]] = -matrix
            row += len(matrix)
        for singularity, link in ties.singular.items():
            columns_of = slice(linked[link], linked[link] + link.size)
            self._add_singularity(singularity, part, carried, bottom[len(rows.value) :, columns_of])
        light = np.hstack([below / math.sqrt(part.extent), bottom])
        return PartFrame(light[None], tuple(carried.values()), tuple(columns.values()), tuple(linked.values()), sizes)

    def _systems(
        self, parts: Sequence[CellPart], ordered: dict[CellPart, tuple[Any, Ties]], frame: PartFrame
    ) -> list[LocalSystem]:
        """Return the systems of parts with one frame: equations, the frame, and the rows that define balance sums."""
        own, light = self.rows.width, frame.light
        averaged: tuple[PlacedStatement, ...] = ()
        if self.rows.averages:
            (part,) = parts
            columns = dict(zip(ordered[part][1].links, frame.linked, strict=True))
            sums, theirs, averaged = self._sums(part, self._made[part].units, columns, light.shape[2] - own)
            light = np.vstack([light[0], np.hstack([sums / math.sqrt(part.extent), theirs])])[None]
        heavy, passed = self._balance_rows(parts, [ordered[part][1] for part in parts], frame, light[0])
        return [
            LocalSystem(LeafSystem(self._made[part].equation, light, one[None]), frame.sizes, averaged, flows)
            for part, one, flows in zip(parts, heavy, passed, strict=True)
        ]

    def _carried(self, face: Face, count: int) -> FloatArray:
        """Return the matrix from shared unknowns to the trace coefficients on a face."""
        side = self.coarse_sides.get(face)
        return np.eye(count) if side is None else side.carried(self.rows, face)

    def _sums(
        self, part: CellPart, units: FloatArray, columns: dict[Link, int], width: int
    ) -> tuple[FloatArray, FloatArray, tuple[PlacedStatement, ...]]:
        """Return the rows of averages: each link carries the running sum plus this part's share to the next."""
        found = [self.rows.average(part, units, statement) for statement in self.rows.averages]
        theirs = np.zeros((len(found), width))
        for number, statement in enumerate(self.rows.averages):
            for link, column in columns.items():
                if link.of is statement:
                    theirs[number, column] = 1.0 if link.above is part else -1.0
        return np.array([row for row, _ in found]), theirs, tuple(own for _, own in found)

    def _add_singularity(
        self, singularity: CornerSingularity, part: CellPart, carried: dict[Face, FloatArray], block: FloatArray
    ) -> None:
        """Add the functions of a corner singularity to the rows on faces to parts without them, given its columns."""
        row = 0
        for face, matrix in carried.items():
            other = face.above if face.below is part else face.below
            if other not in self.around[singularity]:
                block[row : row + len(matrix)] = singularity.traced(self.rows, part, face)
            row += len(matrix)

    def _balance_rows(
        self, parts: Sequence[CellPart], ties: Sequence[Ties], frame: PartFrame, light: FloatArray
    ) -> tuple[FloatArray, list[dict[Face, FloatArray]]]:
        """Return the rows that define the balance sums of parts, and the effect of interface conditions on them.

        The balance sum of a part is the integral of its equations' residuals plus the mismatch of fluxes on its faces
        and boundary. Over any branch of the tree these sums add up to the net source that the branch creates, which
        should be zero. A small cell has little weight by itself; without the sums it could be a source that affects the
        whole domain.
        """
        rows, own, faces = [self._made[part] for part in parts], self.rows.width, [one.faces for one in ties]
        count, row = len(rows[0].given), len(rows[0].value)
        roots = np.array([math.sqrt(part.extent) for part in parts])[:, None, None]
        heavy = np.zeros((len(parts), count, light.shape[1]))
        balance, theirs = heavy[:, :, :own], heavy[:, :, own:]
        for one, mine in zip(rows, balance, strict=True):
            mine[:] = -one.flows @ one.besides if one.besides is not None else one.means - one.flows @ one.condition
        plain = rows[0].besides is None
        pairs = [pair for alike in zip(*faces, strict=True) for pair in zip(parts, alike, strict=True)]
        flows = iter(self.rows.flux.outflows.across(pairs))
        passed = [dict[Face, FloatArray]() for _ in parts]
        for alike, matrix, column in zip(zip(*faces, strict=True), frame.carried, frame.columns, strict=True):
            mine, there = [next(flows) for _ in parts], slice(column, column + matrix.shape[1])
            shared, block = np.stack([flow.shared for flow in mine]), light[row : row + len(matrix)]
            if plain:
                balance -= roots * (np.stack([flow.own for flow in mine]) @ block[:, :own])
                for one, flow in zip(balance, mine, strict=True):
                    one -= 0.0 if flow.besides is None else flow.besides
            theirs[:, :, there] += shared @ matrix
            if ties[0].singular or alike[0].conditions:
                known = block[:, own:].copy()
                known[:, there] = 0.0
                theirs -= shared @ known
            for face, flow, found in zip(alike, shared, passed, strict=True):
                if self._has_right_hand_side(face):
                    found[face] = flow
            row += len(matrix)
        stiffness = np.stack([self.stiffness(part) for part in parts])
        theirs *= stiffness
        theirs[:, np.arange(count), np.arange(count)] = -_STIFF
        balance *= stiffness / roots
        return heavy, passed

    def _has_right_hand_side(self, face: Face) -> bool:
        """Return whether interface conditions or sources of fluxes act on a face."""
        flux = self.rows.flux
        return bool(face.conditions) or flux.jump(face) is not None or not flux.is_plain(face)

    def tree_sum_unit(self, part: CellPart) -> FloatArray:
        """Return the unit of all balance sums, that of the part asked for first: they add up over the tree."""
        if self.unit is None:
            self.unit = self.rows.balances.of_equations(self.rows.weights(part, self.rows.layout.root.size / 2))
        return self.unit

    def sum_weights(self, part: CellPart, sides: FloatArray) -> FloatArray:
        """Return the weights of the balance sums of a branch, from the sides of its bounding box.

        By its effect inside the box a sum would count little. What it does to the rest of the domain may be many times
        larger: a force that is missing bends a whole bar. In one dimension nothing but a sum acts at a distance. The
        sums of a tangent, far from a solution, need not vanish.
        """
        own = self.rows.balances.of_equations(self.rows.weights(part, sides / 2)) / self.tree_sum_unit(part)
        return np.asarray(own if len(sides) == 1 or self.rows.state is not None else _STIFF * own)
