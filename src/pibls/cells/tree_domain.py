"""The domain of a tree: boundary, interfaces and materials in each cell, and where solutions are singular."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from pibls.cells.corner_singularities import CornerSingularity, corner_singularities
from pibls.cells.cut_slices import KnownCuts
from pibls.cells.edges import borders, flat_sides, reentrant_edges, ridges, small_surfaces, vertices
from pibls.cells.interface_surfaces import InterfaceSurface
from pibls.cells.interfaces import ends_of_interfaces, interface_pieces, split_at, switches_on
from pibls.cells.surface import STEP, Piece, pieces, pieces_within
from pibls.cells.tangents import tangents
from pibls.cells.tree import Cell
from pibls.checks import BoolArray, FloatArray
from pibls.geometry import Box, Domain, Product, TimeInterval
from pibls.geometry import Part as BoundaryPart
from pibls.geometry.base import LevelIn, Region
from pibls.geometry.landmarks import corners
from pibls.geometry.patch import Patch, TimedPatch
from pibls.geometry.sampling import kronecker
from pibls.geometry.solid import Solid
from pibls.problem import OnPart, Problem
from pibls.problem.analysis import analysis_of
from pibls.problem.evaluate import Function
from pibls.problem.level import Level
from pibls.problem.switches import Switching, condition_edges
from pibls.quadrature.roots import CLOSE, ROUNDING, SCAN
from pibls.refinement.standards import MOST, NEGLIGIBLE, SLIGHT

__all__ = ["TreeDomain", "on_faces"]


@dataclass(eq=False)
class TreeDomain:
    """The domain as cells see it: boundary pieces, interfaces and materials; results for a cell are kept."""

    problem: Problem
    _pieces: dict[Cell, dict[Any, list[Piece]]] = field(default_factory=dict)
    _levels_in: dict[Cell, LevelIn] = field(default_factory=dict)
    cuts: KnownCuts = field(default_factory=KnownCuts)  # shared by the layouts of all degrees

    def __post_init__(self) -> None:
        self.domain: Domain = self.problem.domain
        self._nowhere = np.empty((0, len(self.domain.coordinates)))
        space = self.domain.domain if isinstance(self.domain, Product) else self.domain
        # whether the domain is a box, which cuts no cell; and its shape, without time, if it has a level
        self.is_box = isinstance(space, Box | TimeInterval)
        self._shape = space if isinstance(space, Region) else None
        # the domain, if it is a solid in space: only solids have edges and flat faces that cells follow
        self.solid = self.domain if isinstance(self.domain, Region) and self.domain.dimension == 3 else None

    @cached_property
    def switching(self) -> Switching | None:
        """Where the data of the problem jump, or None."""
        return analysis_of(self.problem).switching

    @cached_property
    def is_uncut(self) -> bool:
        """Whether the domain is a box without interfaces: every cell is whole, and no surface is curved."""
        return self.is_box and not self.interfaces

    @cached_property
    def root(self) -> Cell:
        """The bounding box of the domain, with all features that cells align with."""
        low, high = np.array(self.domain.bounds, dtype=np.float64).T
        marks = [self.landmarks]
        if self.switching is not None:
            marks += [self._planes(self.switching), *(own.point[None] for own in self.corner_singularities)]
        touched = np.empty((0, 1 + len(low))) if self.is_uncut else tangents(self._all_pieces, len(low))
        if self.solid is None:
            return Cell(low.copy(), high.copy(), marks=np.unique(np.concatenate(marks), axis=0), tangents=touched)
        edges, blunt_edges = reentrant_edges(self.solid)
        marks += [vertices(edges)] if len(edges) else []
        return Cell(
            low.copy(),
            high.copy(),
            marks=np.unique(np.concatenate(marks), axis=0),
            tangents=touched,
            edges=np.concatenate([edges, borders((part for place, part in self.places.items() if place), self.solid)]),
            blunt_edges=blunt_edges,
            ridges=ridges(self._flat_groups, self.solid),
        )

    @property
    def _flat_groups(self) -> list[list[Patch]]:
        """The patches of a solid; of a triangulated one, which has many, those with the same conditions together."""
        if not isinstance(self.solid, Solid):
            return [] if self.solid is None else [[patch] for patch in self.solid.boundary.patches]
        groups: dict[Any, list[Patch]] = {}
        for place, part in self.places.items():
            own = frozenset(s.form.expression for s in self.problem.statements if s.place == place)
            if own:
                groups.setdefault(own, []).extend(part.patches)
        return list(groups.values())

    @cached_property
    def flat_sides(self) -> list[tuple[int, float, FloatArray]]:
        """Flat faces of a solid that are normal to an axis."""
        return [] if self.solid is None else flat_sides(self.solid)

    @cached_property
    def corner_singularities(self) -> tuple[CornerSingularity, ...]:
        """The points at which materials meet, with the singular functions around them; none without materials."""
        if self.switching is None:
            return ()
        return corner_singularities(self, np.concatenate([self.landmarks, self._planes(self.switching)]))

    def _planes(self, switching: Switching) -> FloatArray:
        """Return the coordinate planes at which data jump."""
        inside = self._is_steady_in_plane or switching.carried
        return switching.planes_inside if inside else switching.planes

    @cached_property
    def landmarks(self) -> FloatArray:
        """Points of a plane at which solutions may be singular: corners, and ends of conditions."""
        d = len(self.domain.coordinates)
        if len(self.problem.domain.space) != 2:
            return np.empty((0, d))
        low, high = np.asarray(self.domain.bounds)[:2].T
        grain = CLOSE * (high - low)
        found = [np.array([corner.point for corner in corners(self.domain, above=0.0)]).reshape(-1, 2)]
        for place in self.places:
            ends_of = [np.empty((0, 2))]
            for piece in self._outlines[place]:
                if len(piece.box) == len(self.domain.coordinates) - 1 and (
                    len(piece.box) == 1 or isinstance(piece.patch, TimedPatch)
                ):
                    ends = np.tile(piece.box.mean(axis=1), (2, 1))
                    ends[:, 0] = piece.box[0]
                    ends_of.append(piece.patch.at(ends)[0][:, :2])
            points = np.concatenate(ends_of)
            _, first, counts = np.unique(
                np.round((points - low) / grain), axis=0, return_index=True, return_counts=True
            )
            # A condition that continues beyond the end of a piece has no end there; corners are known already.
            found.append(points[first[counts == 1]])
        if self.switching is not None:
            held = [piece for pieces in self.interfaces.values() for piece in pieces if isinstance(piece, Piece)]
            outlines = [(self._outlines[place], levels) for place, levels in self._edges.items()]
            found += [ends_of_interfaces(held, self.domain.bounds), switches_on(outlines, self.domain.bounds)]
        points = np.concatenate(found)
        points = points[np.unique(np.round((points - low) / grain), axis=0, return_index=True)[1]]
        return np.hstack([points, np.full((len(points), d - 2), np.nan)])

    @cached_property
    def _is_steady_in_plane(self) -> bool:
        """Whether conditions hold on curves in a plane, so that they switch at points."""
        return len(self.domain.space) == 2 == len(self.domain.coordinates)

    @cached_property
    def _edges(self) -> dict[Any, tuple[Level, ...]]:
        """The level functions at whose zeros boundary conditions switch, in a plane domain."""
        if not self._is_steady_in_plane:
            return {}
        edges = {place: condition_edges(self.problem, place) for place in self.places if place is not None}
        return {place: tuple(Level.of(e, self.domain.coordinates) for e in own) for place, own in edges.items()}

    @cached_property
    def _outlines(self) -> dict[Any, list[Piece]]:
        """The pieces of the whole boundary by condition, and those of the interfaces by level function."""
        found: dict[Any, list[Piece]] = {}
        for place, part in self.places.items():
            found[place] = [piece for patch in part.patches for piece in pieces(patch)]
            if self.switching is not None:
                levels = (*self.interfaces, *self._edges.get(place, ()))
                found[place] = [half for piece in found[place] for half in split_at(piece, levels)]
        return {**found, **self.interfaces}

    @cached_property
    def _all_pieces(self) -> list[Piece]:
        return [piece for held in self._outlines.values() for piece in held if isinstance(piece, Piece)]

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The level functions at whose zeros data jump, except coordinate planes."""
        edges = () if self.switching is None else self.switching.edges
        return tuple(Level.of(edge, self.domain.coordinates) for edge in edges)

    @cached_property
    def interfaces(self) -> dict[Any, list[Any]]:
        """The pieces of the curves or surfaces inside the domain at which data jump, by level function."""
        if self.switching is None:
            return {}
        walls = [Level.of(edge, self.domain.coordinates) for edge in self.switching.walls]
        found = {}
        for level in self.levels:
            others = [*walls, *(other for other in self.levels if other is not level)]
            found[level] = interface_pieces(level, others, self.domain, self.inside, self.material_function)
        return {level: held for level, held in found.items() if held}

    @property
    def material_function(self) -> Function:
        """Maps points to the number of their material: the branch that piecewise data take there."""
        assert self.switching is not None
        return self.switching.branch

    @property
    def hidden(self) -> str:
        """A sentence that names a jump that cells cannot resolve, or an empty string."""
        return "" if self.switching is None else self.switching.hidden

    def materials(self, X: FloatArray) -> Any:
        """Return the material of each point; zero if there are no interfaces."""
        return self.material_function(X).astype(np.int64) if self.interfaces else np.zeros(len(X), dtype=np.int64)

    @cached_property
    def extents(self) -> tuple[list[FloatArray], FloatArray]:
        """Points on each piece of the boundary, and its extent along each axis; NaN along time."""
        found = []
        for piece in self._all_pieces:
            timed = isinstance(piece.patch, TimedPatch)
            if len(piece.box) > timed:
                low, high = piece.box.T
                X = piece.patch.at(low + (high - low) * kronecker(SCAN, len(low)))[0]
                extent = np.ptp(X, axis=0)
                extent[len(extent) - timed :] = np.nan
                found.append((X, extent))
        found += [(X, np.ptp(X, axis=0)) for X in self._interface_points] if self.interfaces else []
        extents = np.array([extent for _, extent in found]).reshape(-1, len(self.domain.coordinates))
        return [X for X, _ in found], extents

    @cached_property
    def _interface_points(self) -> list[FloatArray]:
        """Points on each interface in space."""
        surfaces = (piece for held in self.interfaces.values() for piece in held if isinstance(piece, InterfaceSurface))
        return [X for surface in surfaces if len(X := surface.points)]

    @cached_property
    def small_surfaces(self) -> tuple[FloatArray, FloatArray]:
        """Centres and half extents of small curved surfaces in space: holes and interfaces."""
        return (self._nowhere,) * 2 if self.is_uncut or len(self.domain.space) != 3 else self._surrounded(MOST)

    @cached_property
    def holes(self) -> tuple[FloatArray, FloatArray]:
        """Centres and half extents of curved holes in a plane."""
        in_plane = len(self.domain.space) == 2 and not self.is_uncut
        return self._surrounded(1.0 - NEGLIGIBLE) if in_plane else (self._nowhere,) * 2

    def _surrounded(self, share: float) -> tuple[FloatArray, FloatArray]:
        """Return the centres and half extents of curved surfaces that are shorter than a share of the domain."""
        surfaces: list[Patch | FloatArray] = [
            *self._interface_points,
            *(piece.patch for piece in self._outlines.get(None, ())),
        ]
        return small_surfaces(surfaces, self.root.size, share)

    @cached_property
    def places(self) -> dict[Any, BoundaryPart]:
        """The boundary parts with conditions, by place, and the whole boundary under None."""
        found: dict[Any, BoundaryPart] = {}
        for statement in self.problem.statements:
            if isinstance(statement.place, OnPart):
                found.setdefault(statement.place, statement.place.part)
        if not self.is_box:
            found[None] = self.domain.boundary
        return found

    @cached_property
    def is_tiled(self) -> bool:
        """Whether the conditions cover the boundary exactly once."""
        return abs(self._covered - 1.0) < math.sqrt(ROUNDING)

    @cached_property
    def is_covered(self) -> bool:
        """Whether conditions hold on the whole boundary, as far as its measures, which may be estimates, tell."""
        return self._covered > 1.0 - SLIGHT

    @cached_property
    def _covered(self) -> float:
        """Total measure of the boundary parts with conditions, relative to the boundary."""
        covered = sum(part.measure for place, part in self.places.items() if place is not None)
        return float(covered / self.domain.boundary.measure)

    def inside(self, X: FloatArray, cell: Cell | None = None) -> Any:
        """Return which points lie strictly inside the domain; with a cell, only the shapes near it are evaluated."""
        space = self._shape
        if space is None:
            return np.ones(len(X), dtype=bool)
        return self._above(space, space.level if cell is None else self._level_in(space, cell), X)

    def _above(self, space: Region, level: LevelIn, X: FloatArray) -> Any:
        """Return at which points a level is clearly positive."""
        if isinstance(level, bool):
            return np.full(len(X), level)
        own = X[:, :-1] if isinstance(self.domain, Product) else X
        return np.asarray(level(own) > ROUNDING * space.thickness + space.rounding)

    def _level_in(self, space: Region, cell: Cell) -> LevelIn:
        if cell not in self._levels_in:
            slack = 2.0 * STEP * cell.size  # points beside a side count as in the cell
            own = slice(len(space.coordinates))
            self._levels_in[cell] = space.level_in((cell.low - slack)[own], (cell.high + slack)[own])
        return self._levels_in[cell]

    def side_offset(self, cell: Cell) -> float:
        """Return the smallest offset from a side of a cell at which rounding cannot change the side."""
        farthest = np.maximum(np.abs(self.root.low), np.abs(self.root.high)).max()
        return float(ROUNDING * cell.size.min() + 8.0 * np.spacing(farthest))

    def is_material(self, X: FloatArray, material: int, cell: Cell) -> Any:
        """Return which points of a cell lie inside the domain and in a material."""
        return self.inside(X, cell) & (self.materials(X) == material) if self.interfaces else self.inside(X, cell)

    def inside_each(self, X: FloatArray, row: Any, cells: Sequence[Cell]) -> Any:
        """Return which points lie strictly inside the domain; ``row``, sorted, numbers the cell of each point.

        Points in cells with equal levels are evaluated together.
        """
        space, found = self._shape, np.ones(len(X), dtype=np.bool_)
        if space is None:
            return found
        ends = np.searchsorted(row, np.arange(len(cells) + 1)).tolist()
        levels: dict[LevelIn, list[slice]] = {}
        for cell, start, stop in zip(cells, ends[:-1], ends[1:], strict=True):
            if stop > start:
                levels.setdefault(self._level_in(space, cell), []).append(slice(start, stop))
        for level, spans in levels.items():
            own = np.concatenate([np.arange(span.start, span.stop) for span in spans])
            found[own] = self._above(space, level, X[own])
        return found

    def inside_columns(
        self, X: FloatArray, material: Any, step: FloatArray, cells: Sequence[Cell], row: Any = None
    ) -> Any:
        """Return which points of cell sides lie inside, and in a second column which have a material at −``step``."""
        row = np.zeros(len(X), dtype=np.int64) if row is None else row
        inside = np.ones(len(X), dtype=np.bool_) if self.is_box else self.inside_each(X, row, cells)
        return np.stack([inside, self.materials(X - step) == material], axis=1) if self.interfaces else inside[:, None]

    def pieces(self, cell: Cell) -> dict[Any, list[Piece]]:
        """Return the pieces of the boundary in a cell, by the conditions they carry."""
        if cell not in self._pieces:
            self.find_pieces([cell])
        return self._pieces[cell]

    def find_pieces(self, cells: Iterable[Cell]) -> None:
        """Find the boundary pieces in many cells, each from those in its parent."""
        levels: dict[int, dict[Cell, None]] = {}
        for cell in cells:
            above: Cell | None = cell
            while above is not None and above not in self._pieces:
                levels.setdefault(above.depth, {})[above] = None
                above = above.parent
        for _, new in sorted(levels.items()):
            pairs: list[tuple[Piece, FloatArray, FloatArray]] = []
            homes: list[list[Piece]] = []
            for cell in new:
                if cell.parent is None:
                    self._pieces[cell] = self._outlines
                    continue
                self._pieces[cell] = {place: [] for place in self._outlines}
                for place, held in self._pieces[cell.parent].items():
                    pairs += [(piece, cell.low, cell.high) for piece in held]
                    homes += [self._pieces[cell][place]] * len(held)
            for home, own in zip(homes, pieces_within(pairs), strict=True):
                home += own

    def cut_at_tips(
        self, found: list[tuple[float, float]], cell: Cell, axis: int, low: FloatArray, span: FloatArray
    ) -> list[tuple[float, float]]:
        """Return the intervals of a cell side in a plane, split where the tip of an interface may touch it."""
        if not self.interfaces or not len(cell.marks):
            return found
        on_side = np.abs(cell.marks[:, axis] - low[axis]) <= CLOSE * cell.size[axis]
        tips = np.sort((cell.marks[on_side, 1 - axis] - low[1 - axis]) / span[1 - axis])
        cuts = [[a, *(tip for tip in tips.tolist() if a + CLOSE < tip < b - CLOSE), b] for a, b in found]
        return [pair for own in cuts for pair in pairwise(own)]


def on_faces(X: FloatArray, cell: Cell) -> BoolArray:
    """Return which points lie on the sides of a cell."""
    slack = CLOSE * cell.size
    return np.asarray(((np.abs(X - cell.low) <= slack) | (np.abs(X - cell.high) <= slack)).any(axis=1))
