"""What of the domain lies in a cell, and where two cells meet inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
import sympy as sp
from scipy import ndimage

from pibls.cells.crossings import Crossing, crossings
from pibls.cells.parts import CellPart, Face, exact_weights, polynomials
from pibls.cells.seams import Sheet, along, seam_pieces, split_at
from pibls.cells.surface import Piece, Rule, pieces, ranges
from pibls.cells.tangents import tangents
from pibls.cells.tree import Cell, Contact
from pibls.checks import FloatArray
from pibls.features import MultiIndex
from pibls.features.reference import Memory, Reference, cube_rule, draw_reference, on_grid
from pibls.geometry import Box, Domain, Product, TimeInterval
from pibls.geometry import Part as BoundaryPart
from pibls.geometry.base import Region
from pibls.geometry.landmarks import corners
from pibls.geometry.patch import TimedPatch
from pibls.geometry.rules import gauss, tensor
from pibls.geometry.sampling import kronecker
from pibls.geometry.sight import joined_in_sight, owners_in_sight
from pibls.problem import Across, OnPart, Problem, Statement
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.level import Level
from pibls.problem.switches import branch_number, condition_edges, hidden_jump, switching_edges, switching_planes

__all__ = ["Layout"]

_ALONG = 32  # points on a piece of the boundary
_GRID = {1: 65, 2: 25, 3: 11}
_FITS = 3
_OUTLINE = {1: 1, 2: 4, 3: 2}
_SMALL = 0.6
_FLAT = 1e-9
_STEP = 1e-7
_EXACT = 3  # degrees more than those of cells, for integrals: sines are a little more than polynomials
_TIE, _ROUNDING = 1e-12, 1e-15
_CANDIDATES = 2**15
_OVERSAMPLING = 2.2
_TRACE_SHARE = 0.62  # degree of what cells share on a face, by that of the cells: more brings nothing
_QUADRATURE = 20000
_REMEMBERED = 2**25


@dataclass(eq=False)
class Layout:
    """The domain of a problem, cut by cells; what was found for a cell is kept."""

    problem: Problem
    reference: Reference
    seed: int = 0
    _parts: dict[Cell, tuple[CellPart, ...]] = field(default_factory=dict)
    _pieces: dict[Cell, dict[Any, list[Piece]]] = field(default_factory=dict)
    _faces: dict[tuple[Cell, Cell, int, float], list[Face]] = field(default_factory=dict)
    _seam_faces: dict[Cell, list[Face]] = field(default_factory=dict)
    _memory: Memory = field(default_factory=lambda: Memory(_REMEMBERED))

    def enriched(self, degrees: int) -> Layout:
        """Return the same cut of the domain for functions of so many degrees more."""
        old = self.reference
        made = Layout(self.problem, draw_reference(old.dimension, old.degree + degrees, self.seed), self.seed)
        made._pieces = self._pieces
        shared = (
            "root",
            "landmarks",
            "_outlines",
            "extents",
            "places",
            "is_box",
            "crossings",
            "levels",
            "seams",
            "branch",
        )
        for name in shared:
            made.__dict__[name] = getattr(self, name)
        return made

    def restated(self, problem: Problem) -> Layout:
        """Return the same cut of the domain for a problem whose statements hold in the same places."""
        made = copy(self)
        made.problem = problem
        return made

    @property
    def domain(self) -> Domain:
        """The domain."""
        domain: Domain = self.problem.domain  # type: ignore[assignment]
        return domain

    @cached_property
    def is_box(self) -> bool:
        """Whether the domain is a box, so that no cell is ever cut."""
        space = self.domain.domain if isinstance(self.domain, Product) else self.domain
        return isinstance(space, Box | TimeInterval)

    @cached_property
    def root(self) -> Cell:
        """The box around the domain."""
        bounds = np.asarray(self.domain.bounds, dtype=np.float64)
        points = [crossing.point[None] for crossing in self.crossings]
        return Cell(
            bounds[:, 0].copy(),
            bounds[:, 1].copy(),
            marks=np.unique(np.concatenate([self.landmarks, self._planes, *points]), axis=0),
            tangents=tangents(self._all_pieces, len(bounds)),
        )

    @cached_property
    def crossings(self) -> tuple[Crossing, ...]:
        """Points at which materials meet, with the functions that solve the equation around them."""
        return crossings(self, np.concatenate([self.landmarks, self._planes]))

    @property
    def _planes(self) -> FloatArray:
        """Where data switch across an axis."""
        return switching_planes(self.problem, conditions=not self._is_plane)

    @cached_property
    def landmarks(self) -> FloatArray:
        """Points of a plane where solutions may be singular: corners, and where conditions begin and end."""
        d = len(self.domain.coordinates)
        if len(self.problem.domain.space) != 2:
            return np.empty((0, d))
        low, high = np.asarray(self.domain.bounds)[:2].T
        grain = 1e-9 * (high - low)
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
            # Where a condition goes on beyond the end of a piece, nothing happens but at a corner.
            found.append(points[first[counts == 1]])
        found += [self._meetings(), self._switches()]
        points = np.concatenate(found)
        points = points[np.unique(np.round((points - low) / grain), axis=0, return_index=True)[1]]
        return np.hstack([points, np.full((len(points), d - 2), np.nan)])

    @cached_property
    def _is_plane(self) -> bool:
        """Whether conditions hold on curves of a plane: where they switch is a point, not all that is above it."""
        return len(self.domain.space) == 2 == len(self.domain.coordinates)

    @cached_property
    def _edges(self) -> dict[Any, tuple[Level, ...]]:
        """Where conditions on the boundary of a plane domain switch."""
        if not self._is_plane:
            return {}
        edges = {place: condition_edges(self.problem, place) for place in self.places if place is not None}
        return {place: tuple(Level.of(e, self.domain.coordinates) for e in own) for place, own in edges.items()}

    def _switches(self) -> FloatArray:
        """Return the points of the boundary of a plane domain at which conditions switch."""
        found, slack = [np.empty((0, 2))], _FLAT * float(np.ptp(self.domain.bounds))
        for place, levels in self._edges.items():
            X = np.concatenate([np.empty((0, 2)), *(along(piece, piece.box[0]) for piece in self._outlines[place])])
            for level in levels if len(X) else ():
                near = np.abs(level(X)) <= slack * np.linalg.norm(level.gradient(X), axis=1)
                found.append(X[near])
        return np.concatenate(found)

    def _meetings(self) -> FloatArray:
        """Return where seams end in a plane: at the boundary, and where they cross each other."""
        found = [np.empty((0, 2))]
        for piece in (piece for held in self.seams.values() for piece in held if isinstance(piece, Piece)):
            X = along(piece, piece.box[0])[:, :2]
            if np.ptp(X, axis=0).max() > _FLAT * float(np.ptp(self.domain.bounds[:2])):
                found.append(X)
        return np.concatenate(found)

    @cached_property
    def _outlines(self) -> dict[Any, list[Piece]]:
        """The pieces of the whole boundary, by the conditions they carry, and those of seams, by their levels."""
        found: dict[Any, list[Piece]] = {}
        for place, part in self.places.items():
            own = (piece for patch in part.patches for piece in pieces(patch))
            levels = (*self.seams, *self._edges.get(place, ()))
            found[place] = [half for piece in own for half in split_at(piece, levels)]
        return {**found, **self.seams}

    @cached_property
    def _all_pieces(self) -> list[Piece]:
        return [piece for held in self._outlines.values() for piece in held if isinstance(piece, Piece)]

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The functions at whose zeros data switch, but for those across an axis."""
        return tuple(Level.of(edge, self.domain.coordinates) for edge in switching_edges(self.problem))

    @cached_property
    def seams(self) -> dict[Any, list[Any]]:
        """The pieces of curves and surfaces inside the domain at which data switch."""
        walls = [Level.of(edge, self.domain.coordinates) for edge in switching_edges(self.problem, several=False)]
        found = {}
        for level in self.levels:
            others = [*walls, *(other for other in self.levels if other is not level)]
            found[level] = seam_pieces(level, others, self.domain, self.inside, self.branch)
        return {level: held for level, held in found.items() if held}

    @cached_property
    def branch(self) -> Function:
        """Tells apart places at which equations take different branches."""
        return compile_function(branch_number(self.problem), self.domain.coordinates)

    @cached_property
    def hidden(self) -> str:
        """What of the problem cells cannot see, as a sentence."""
        return hidden_jump(self.problem, [level.expression for level in self.levels])

    def kinds(self, X: FloatArray) -> Any:
        """Return a number for points that tells which branches equations take there, if there are seams at all."""
        return self.branch(X).astype(np.int64) if self.seams else np.zeros(len(X), dtype=np.int64)

    @cached_property
    def extents(self) -> list[tuple[FloatArray, FloatArray]]:
        """Points on each piece of the boundary, and how far it extends; through time that is NaN."""
        found = []
        for piece in self._all_pieces:
            timed = isinstance(piece.patch, TimedPatch)
            if len(piece.box) > timed:
                low, high = piece.box.T
                X = piece.patch.at(low + (high - low) * kronecker(_ALONG, len(low)))[0]
                extent = np.ptp(X, axis=0)
                extent[len(extent) - timed :] = np.nan
                found.append((X, extent))
        for sheet in (piece for held in self.seams.values() for piece in held if isinstance(piece, Sheet)):
            rule = sheet.rule(self.root.low, self.root.high, _ALONG)
            if rule is not None:
                found.append((rule.points, np.ptp(rule.points, axis=0)))
        return found

    @cached_property
    def places(self) -> dict[Any, BoundaryPart]:
        """The boundary parts that carry conditions, and the boundary itself."""
        found: dict[Any, BoundaryPart] = {}
        for statement in self.problem.statements:
            if isinstance(statement.place, OnPart):
                found.setdefault(statement.place, statement.place.part)
        if not self.is_box:
            found[None] = self.domain.boundary
        return found

    def inside(self, X: FloatArray) -> Any:
        """Tell which points of the box lie strictly inside the domain."""
        space = self.domain.domain if isinstance(self.domain, Product) else self.domain
        if not isinstance(space, Region):
            return np.ones(len(X), dtype=bool)
        own = X[:, :-1] if isinstance(self.domain, Product) else X
        return np.asarray(space.level(own) > 1e-13 * space.thickness + space.rounding)

    def _aside(self, cell: Cell) -> float:
        """Return how far from a wall of a cell it is plain on which side of it one is, and hardly farther."""
        return float(
            _TIE * cell.size.min() + _ROUNDING * np.abs(self.root.low).max() + _ROUNDING * self.root.high.max()
        )

    def _is_kind(self, X: FloatArray, kind: int) -> Any:
        """Tell which points lie inside the domain, on given sides of all seams."""
        return self.inside(X) & (self.kinds(X) == kind) if self.seams else self.inside(X)

    def _columns(self, X: FloatArray, kind: int, step: FloatArray) -> Any:
        """Return the same for points of a wall, seen from one side of it, with a column for each thing to be."""
        found = np.ones(len(X), dtype=bool) if self.is_box else self.inside(X)
        return np.stack([found, self.kinds(X - step) == kind], axis=1) if self.seams else found

    def pieces(self, cell: Cell) -> dict[Any, list[Piece]]:
        """Return the pieces of the boundary in a cell, by the conditions they carry."""
        if cell not in self._pieces:
            if cell.parent is None:
                self._pieces[cell] = self._outlines
            else:
                above = self.pieces(cell.parent)
                self._pieces[cell] = {
                    place: [half for piece in held for half in piece.within(cell.low, cell.high)]
                    for place, held in above.items()
                }
        return self._pieces[cell]

    def parts(self, cell: Cell) -> tuple[CellPart, ...]:
        """Return the connected pieces of a cell within the domain; none where it is outside."""
        if cell not in self._parts:
            self._parts[cell] = self._found(cell)
        return self._parts[cell]

    def _found(self, cell: Cell) -> tuple[CellPart, ...]:
        rules = self._rules(cell)
        outline, middle = rules.pop(None, None), (cell.low + cell.high) / 2
        seams = [seam for level in self.seams if (seam := rules.pop(level, None)) is not None]
        seams = [seam for seam in seams if not _on_faces(seam.points, cell)]
        if seams:
            return self._divided(cell, outline, Rule.joined(seams), rules)
        if not self.is_box:
            if outline is not None and not _on_faces(outline.points, cell):
                kind = int(self.kinds(outline.points[:1] - _STEP * float(cell.size.min()) * outline.normals[:1])[0])
                return self._cut(cell, outline, rules, kind)
            if not self.inside(middle[None])[0]:
                return ()
        U, weights = self.reference.rule
        half = cell.size / 2
        center = cell.low + half
        kind = int(self.kinds(middle[None])[0])
        return (
            CellPart(cell, center, half, center + half * U, weights * float(np.prod(half)), True, rules, kind=kind),
        )

    def _divided(self, cell: Cell, outline: Rule | None, seam: Rule, rules: dict[Any, Rule]) -> tuple[CellPart, ...]:
        """Return the parts of a cell that a seam runs through: what is on either side is cut off as by a boundary."""
        step = _STEP * float(cell.size.min())
        above, below = (seam.together(self.kinds(seam.points + sign * step * seam.normals)) for sign in (1.0, -1.0))
        found: list[CellPart] = []
        for kind in np.unique(np.concatenate([above, below])).tolist():
            around = [seam.chosen(below == kind), seam.chosen(above == kind).flipped()]
            around += [self._of_kind(outline, kind, step)] if outline is not None else []
            own = {key: self._of_kind(rule, kind, step) for key, rule in rules.items()}
            found += self._cut(cell, Rule.joined(around), own, kind)
        return tuple(found)

    def _of_kind(self, rule: Rule, kind: int, step: float) -> Rule:
        """Return the points of a boundary that are beside a kind of points of the domain."""
        return rule.chosen(rule.together(self.kinds(rule.points - step * rule.normals)) == kind)

    def _rules(self, cell: Cell) -> dict[Any, Rule]:
        found = {}
        for place, held in self.pieces(cell).items():
            # Integrals along the outline are those of polynomials along curves.
            around = place is None or place in self.seams
            count = (self.reference.degree + 1) * (_OUTLINE[len(cell.low)] if around else 1)
            rules = [rule for piece in held if (rule := piece.rule(cell.low, cell.high, count)) is not None]
            if rules:
                found[place] = Rule.joined(rules)
        return found

    def _cut(self, cell: Cell, outline: Rule, rules: dict[Any, Rule], kind: int) -> tuple[CellPart, ...]:
        near = outline.points - _STEP * float(cell.size.min()) * outline.normals
        low, high = cell.low, cell.high
        grid = np.empty((0, len(low)))
        for _ in range(_FITS):
            grid, labels, step = self._labelled(low, high, kind)
            found = np.concatenate([grid - step / 2, grid + step / 2, near]) if len(grid) else near
            new_low, new_high = np.maximum(found.min(axis=0), cell.low), np.minimum(found.max(axis=0), cell.high)
            if (new_high <= new_low).any():
                return ()
            shrunk = (new_high - new_low) < _SMALL * (high - low)
            low, high = new_low, new_high
            if not shrunk.any():
                break
        grid, labels, step = self._labelled(low, high, kind)
        if not len(grid):
            return ()
        groups = []

        def owned(X: FloatArray, strict: bool = False) -> Any:
            return owners_in_sight(grid, labels, step, X, lambda Y: self._is_kind(Y, kind), strict=strict)

        def beside(rule: Rule) -> Any:
            return rule.together(owned(rule.points - _STEP * float(cell.size.min()) * rule.normals))

        owner, places = beside(outline), {key: beside(rule) for key, rule in rules.items()}
        shell = self._shell(cell, kind) if len(low) == 2 else None
        walls = beside(shell) if shell is not None else np.empty(0)
        for label in np.unique(labels).tolist():
            own = grid[labels == label]
            hull = np.concatenate([own - step / 2, own + step / 2, near[owner == label]])
            box = np.maximum(hull.min(axis=0), cell.low), np.minimum(hull.max(axis=0), cell.high)
            half = np.maximum((box[1] - box[0]) / 2, 1e-12 * cell.size)

            def is_own(X: FloatArray, label: int = int(label)) -> Any:
                return owned(X, strict=True) == label

            inside, volume = self._candidates(*box, kind, is_own)
            if not len(inside):
                continue
            inside = inside[: self.wanted]
            boundary = {
                key: self._filled(cell, key, rule.chosen(places[key] == label), box, beside, int(label))
                for key, rule in rules.items()
            }
            weights, center = np.full(len(inside), volume / len(inside)), (box[0] + box[1]) / 2
            integral = None
            if shell is not None:
                around = Rule.joined([outline.chosen(owner == label), shell.chosen(walls == label)])
                integral = exact_weights(
                    (inside - center) / half, weights, around, center, half, self.reference.degree + _EXACT
                )
            groups.append(
                CellPart(
                    cell,
                    center,
                    half,
                    inside,
                    weights,
                    False,
                    {key: rule for key, rule in boundary.items() if len(rule.weights)},
                    integral,
                    kind,
                )
            )
        return tuple(groups)

    def _filled(
        self,
        cell: Cell,
        place: Any,
        rule: Rule,
        box: tuple[FloatArray, FloatArray],
        beside: Callable[[Rule], Any],
        label: int,
    ) -> Rule:
        """Return what a part has of a surface, with more points where it got few of those scattered over its cell."""
        count = self.reference.degree + 1
        if len(cell.low) < 3 or 2 * len(rule.weights) >= count**2:
            return rule
        held = [half for piece in self.pieces(cell)[place] for half in piece.within(*box)]
        found = [more for piece in held if (more := piece.rule(*box, count)) is not None]
        if not found:
            return rule
        joined = Rule.joined(found)
        more = joined.chosen(beside(joined) == label)
        return more if len(more.weights) > len(rule.weights) else rule

    def _shell(self, cell: Cell, kind: int) -> Rule:
        """Return what of the sides of a plane cell lies inside the domain, with normals out of the cell."""
        nodes, shares = cube_rule(1, self.reference.degree + 2)
        found = [Rule(np.empty((0, 2)), np.empty((0, 2)), np.empty(0))]
        for axis in range(2):
            for end, out in ((cell.low, -1.0), (cell.high, 1.0)):
                normal = np.zeros(2)
                normal[axis] = out

                def placed(s: FloatArray, axis: int = axis, end: FloatArray = end) -> FloatArray:
                    X = np.tile(end, (len(s), 1))
                    X[:, 1 - axis] = cell.low[1 - axis] + s * cell.size[1 - axis]
                    return X

                step = self._aside(cell) * normal
                found_in = ranges(lambda s, at=placed, step=step: self._columns(at(s), kind, step), 0.0, 1.0)
                for a, b in self._at_tips(found_in, cell, axis, end, cell.size):
                    X = placed(a + (b - a) * (nodes[:, 0] + 1) / 2)
                    length = (b - a) * cell.size[1 - axis]
                    found.append(Rule(X, np.tile(normal, (len(X), 1)), shares / 2 * length, np.zeros(len(X), np.int64)))
        return Rule.joined(found)

    @cached_property
    def wanted(self) -> int:
        """Number of points inside a part that determine its functions."""
        return int(_OVERSAMPLING * self.reference.size) + 10

    def _labelled(self, low: FloatArray, high: FloatArray, kind: int) -> tuple[FloatArray, Any, FloatArray]:
        """Return points of a grid inside the domain, the number of the piece each is in, and the spacing."""
        d = len(low)
        count = _GRID[d]
        step = (high - low) / count
        axes = [low[i] + step[i] * (np.arange(count) + 0.5) for i in range(d)]
        grid = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
        inside = self._is_kind(grid, kind)
        labels, _ = ndimage.label(inside.reshape((count,) * d))
        found = joined_in_sight(grid[inside], labels.ravel()[inside], step, lambda X: self._is_kind(X, kind))
        return grid[inside], found, step

    def _candidates(
        self, low: FloatArray, high: FloatArray, kind: int, own: Callable[[FloatArray], Any]
    ) -> tuple[FloatArray, float]:
        """Return points inside the domain and a box that are of a piece, and the volume of the piece."""
        tries = 4 * self.wanted
        while True:
            X = low + (high - low) * kronecker(tries, len(low))
            X = X[self._is_kind(X, kind)]
            X = X[own(X)] if len(X) else X
            if len(X) >= 2 * self.wanted or tries >= _CANDIDATES:
                return X, float(np.prod(high - low)) * len(X) / tries
            tries *= 4

    def nodes(self, part: CellPart, X: FloatArray, indices: Sequence[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the functions in the coordinates of a part; those at its own points are kept."""
        if part.whole:
            own = X is part.points
            return self.reference.on_rule(indices) if own else self.reference.evaluate_again(part.local(X), indices)
        if not (X is part.points or any(X is rule.points for rule in part.boundary.values())):
            return self.reference.evaluate(part.local(X), indices)
        return self._memory.recalled(
            (part, id(X)), indices, lambda missing: self.reference.evaluate(part.local(X), missing)
        )

    def moments(
        self, part: CellPart, face: Face, X: FloatArray, indices: Sequence[MultiIndex]
    ) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the functions at points of a whole face, times its polynomials and roots of weights.

        The face counts as large as the cube there is between two reference cells.
        """

        def made(missing: list[MultiIndex]) -> dict[MultiIndex, FloatArray]:
            values = self.reference.evaluate(on_grid(part.local(X)), missing)
            roots = np.sqrt(self._whole_face[1])[:, None]
            return {index: face.basis.T @ (roots * values[index]) for index in missing}

        return self._memory.recalled(self.place(part, X), indices, made)

    def place(self, part: CellPart, X: FloatArray) -> bytes:
        """Return where points of a whole face lie in the coordinates of a part."""
        return on_grid(part.local(X[[0, -1]])).tobytes()

    @cached_property
    def _whole_face(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
        """Points between two reference cells and their weights, the polynomials there and their rise."""
        degree = round(_TRACE_SHARE * self.reference.degree)
        U, weights = cube_rule(self.reference.dimension - 1, degree + 3)
        return (U, weights, *polynomials(U, weights, degree))

    def part_at(self, cell: Cell, X: FloatArray) -> Any:
        """Return for points of a cell the number of the part each is in, or nearest to."""
        parts = self.parts(cell)
        if len(parts) < 2:
            return np.zeros(len(X), dtype=int)
        points = np.concatenate([part.points for part in parts])
        numbers = np.repeat(np.arange(len(parts)), [len(part.points) for part in parts])
        own, kinds = np.array([part.kind for part in parts]), self.kinds(X)
        found = np.empty(len(X), dtype=np.int64)
        for kind in np.unique(kinds).tolist():
            rows, theirs = kinds == kind, np.isin(numbers, np.flatnonzero(own == kind))
            theirs |= not theirs.any()
            clear = (lambda Y, kind=kind: self.inside(Y) & (self.kinds(Y) == kind)) if self.seams else None
            found[rows] = owners_in_sight(points[theirs], numbers[theirs], cell.size, X[rows], clear)
        return found

    def owned(self, part: CellPart, X: FloatArray) -> Any:
        """Return which of some points are in a part; one on a face is in one part only."""
        cell, start = part.cell, self.root.low
        above = (cell.low < X) | ((cell.low <= start) & (start <= X))
        mine = np.flatnonzero((above & (cell.high >= X)).all(axis=1))
        parts = self.parts(cell)
        return mine[self.part_at(cell, X[mine]) == parts.index(part)] if len(parts) > 1 else mine

    @cached_property
    def volume(self) -> float:
        """Measure of the domain."""
        return float(self.domain.measure)

    @cached_property
    def _rule(self) -> tuple[FloatArray, FloatArray]:
        return self.domain.quadrature(_QUADRATURE)

    def quadrature(self, part: CellPart) -> tuple[FloatArray, FloatArray]:
        """Return points and weights for integrals over a part: its own if exact, else those of the domain in it."""
        if part.whole or part.integral is not None:
            return part.points, part.integrals
        X, weights = self._rule
        mine = self.owned(part, X)
        return X[mine], weights[mine]

    def faces(self, contact: Contact) -> list[Face]:
        """Return the pieces of a contact inside the domain."""
        key = (contact.below, contact.above, contact.axis, contact.shift)
        if key not in self._faces:
            self._faces[key] = self._cut_face(contact)
        return self._faces[key]

    def _cut_face(self, contact: Contact) -> list[Face]:
        below, above = self.parts(contact.below), self.parts(contact.above)
        if not below or not above:
            return []
        others = [axis for axis in range(len(contact.low)) if axis != contact.axis]
        span = contact.high - contact.low
        U, weights, basis, ends = self._whole_face

        def placed(V: FloatArray) -> FloatArray:
            X = np.tile(contact.low, (len(V), 1))
            X[:, others] += span[others] * V
            return X

        area = float(np.prod(span[others]))
        if below[0].whole and above[0].whole:
            share = area / 2 ** len(others)
            if self._interfaces:
                return [self._face(contact, below[0], above[0], placed((U + 1) / 2), weights * share)]
            rise = None if ends is None else ends / np.sqrt(share)
            X = placed((U + 1) / 2)
            return [Face(below[0], above[0], contact.axis, X, weights * share, basis, rise, contact.shift, True)]
        if not others:
            X = contact.low[None]
            return [self._face(contact, below[0], above[0], X, np.ones(1))] if self.inside(X)[0] else []
        if len(others) == 1:
            found = self._wall_ranges(contact, below, above, lambda s: placed(s[:, None]))
            rules = [(placed(a + (b - a) * (U + 1) / 2), weights / 2 * area * (b - a)) for a, b in found]
        else:
            X = placed(kronecker(4 * len(U), len(others)))
            if not self.inside(X).all() or np.ptp(self.kinds(X)) or len(below) + len(above) > 2:
                return self._scattered_faces(contact, below, above, len(U))
            rules = [(placed((U + 1) / 2), weights * area / 2 ** len(others))]
        faces = []
        for X, own in rules:
            one, two = (pair[len(X) // 2] for pair in self._sides(contact, X))
            faces.append(self._face(contact, below[one], above[two], X, own))
        return faces

    def _sides(self, contact: Contact, X: FloatArray) -> tuple[Any, Any]:
        """Return the parts on both sides of points of a wall, by their numbers."""
        step, away = self._across(contact)
        return self.part_at(contact.below, X - step), self.part_at(contact.above, X + step - away)

    def _scattered_faces(
        self, contact: Contact, below: Sequence[CellPart], above: Sequence[CellPart], wanted: int
    ) -> list[Face]:
        """Return the pieces of a wall in space: points are scattered where two parts can meet."""
        faces = []
        others = np.arange(len(contact.low)) != contact.axis
        for (i, one), (j, two) in product(enumerate(below), enumerate(above)):
            low = np.maximum(contact.low, np.maximum(one.center - one.half, two.center - two.half))[others]
            high = np.minimum(contact.high, np.minimum(one.center + one.half, two.center + two.half))[others]
            if (high <= low).any():
                continue
            tries, held = 4 * wanted, np.empty(0, dtype=bool)
            while True:
                X = np.tile(contact.low, (tries, 1))
                X[:, others] = low + (high - low) * kronecker(tries, len(low))
                held = self.inside(X)
                sides = self._sides(contact, X[held])
                held[held] = (sides[0] == i) & (sides[1] == j)
                if held.sum() >= wanted or tries >= _CANDIDATES:
                    break
                tries *= 4
            if held.any():
                weights = np.full(int(held.sum()), float(np.prod(high - low)) / tries)
                few = np.linspace(0, len(weights) - 1, min(len(weights), 4 * wanted)).round().astype(int)
                share = len(weights) / len(few)
                faces.append(self._face(contact, one, two, X[held][few], share * weights[few]))
        return faces

    def _wall_ranges(
        self, contact: Contact, below: Sequence[CellPart], above: Sequence[CellPart], placed: Any
    ) -> list[tuple[float, float]]:
        """Return the intervals of a wall in a plane that lie inside the domain, each between two kinds."""
        if not self.seams:
            return ranges(lambda s: self.inside(placed(s)), 0.0, 1.0)
        step, away = self._across(contact)
        found = []
        for one in dict.fromkeys(part.kind for part in below):
            for two in dict.fromkeys(part.kind for part in above):

                def columns(s: FloatArray, one: int = one, two: int = two) -> Any:
                    X = placed(s)
                    held = self._columns(X, one, step), self._columns(X - away, two, -step)
                    return np.hstack(held)

                found += [(start, stop) for start, stop in ranges(columns, 0.0, 1.0) if stop - start > _FLAT]
        span = contact.high - contact.low
        return self._at_tips(found, contact.below, contact.axis, contact.low, span)

    def _at_tips(
        self, found: list[tuple[float, float]], cell: Cell, axis: int, low: FloatArray, span: FloatArray
    ) -> list[tuple[float, float]]:
        """Return intervals of a wall in a plane cut where the tip of something may touch it."""
        if not self.seams or not len(cell.marks):
            return found
        on_wall = np.abs(cell.marks[:, axis] - low[axis]) <= _FLAT * cell.size[axis]
        tips = np.sort((cell.marks[on_wall, 1 - axis] - low[1 - axis]) / span[1 - axis])
        cuts = [[a, *(tip for tip in tips.tolist() if a + _FLAT < tip < b - _FLAT), b] for a, b in found]
        return [pair for own in cuts for pair in pairwise(own)]

    def _across(self, contact: Contact) -> tuple[FloatArray, FloatArray]:
        """Return the way from a wall to what is plainly above it, and how far the wall is shifted, on a torus."""
        step, away = np.zeros((2, len(contact.low)))
        step[contact.axis] = min(self._aside(contact.below), self._aside(contact.above))
        away[contact.axis] = contact.shift
        return step, away

    def seam_faces(self, cell: Cell) -> list[Face]:
        """Return the pieces of seams between the parts of a cell."""
        if not self.seams:
            return []
        if cell not in self._seam_faces:
            parts = self.parts(cell)
            held = [piece for level in self.seams for piece in self.pieces(cell)[level]] if len(parts) > 1 else []
            self._seam_faces[cell] = [face for piece in held for face in self._on_seam(cell, parts, piece)]
        return self._seam_faces[cell]

    def _on_seam(self, cell: Cell, parts: Sequence[CellPart], piece: Piece | Sheet) -> list[Face]:
        degree = round(_TRACE_SHARE * self.reference.degree)
        rule = piece.rule(cell.low, cell.high, degree + 3)
        if rule is None or _on_faces(rule.points, cell):
            return []
        step = _STEP * float(cell.size.min()) * rule.normals
        found = (self.part_at(cell, rule.points - step), self.part_at(cell, rule.points + step))
        sides = np.stack([rule.together(own) for own in found], axis=1)
        places = tensor(*[gauss(degree + 3)] * len(piece.box))[0] if isinstance(piece, Piece) else _flattened(rule)
        faces = []
        for one, two in np.unique(sides, axis=0).tolist():
            chosen = (sides == (one, two)).all(axis=1)
            if one != two:
                own = rule.chosen(chosen)
                basis, _ = polynomials(places[chosen], own.weights, degree)
                below, above = parts[one], parts[two]
                crossed = self._crossed(below, above, own.points, own.normals)
                faces.append(
                    Face(below, above, -1, own.points, own.weights, basis, None, 0.0, False, own.normals, crossed)
                )
        return faces

    def _face(self, contact: Contact, below: CellPart, above: CellPart, X: FloatArray, weights: FloatArray) -> Face:
        others = [axis for axis in range(X.shape[1]) if axis != contact.axis]
        degree = round(_TRACE_SHARE * self.reference.degree)
        basis, ends = polynomials(X[:, others], weights, degree)
        normals = np.tile(np.eye(X.shape[1])[contact.axis], (len(X), 1))
        crossed = {} if contact.shift else self._crossed(below, above, X, normals)
        if crossed:
            return Face(below, above, contact.axis, X, weights, basis, None, 0.0, False, normals, crossed)
        return Face(below, above, contact.axis, X, weights, basis, ends, contact.shift)

    def _crossed(
        self, below: CellPart, above: CellPart, X: FloatArray, normals: FloatArray
    ) -> dict[Statement, CellPart]:
        """Return what holds across a face from inside to outside, and which part is inside."""
        if not self._interfaces:
            return {}
        step = _STEP * min(float(part.half.min()) for part in (below, above)) * normals
        found = {}
        for statement, holds in self._interfaces.items():
            one, two = (holds(points).mean() > 0.5 for points in (X - step, X + step))
            if one != two:
                found[statement] = below if one else above
        return found

    @cached_property
    def _interfaces(self) -> dict[Statement, Function]:
        """What holds across interfaces, and a function that is one inside each."""
        symbols = self.domain.coordinates
        return {
            statement: compile_function(sp.Piecewise((1, statement.place.condition), (0, True)), symbols)
            for statement in self.problem.statements
            if isinstance(statement.place, Across)
        }


def _flattened(rule: Rule) -> FloatArray:
    """Return the points of a surface seen along its mean normal, if that shows all of it; else as they are."""
    axis = int(np.abs(rule.normals.mean(axis=0)).argmax())
    upright = rule.normals[:, axis]
    return np.delete(rule.points, axis, axis=1) if (upright > 0).all() or (upright < 0).all() else rule.points


def _on_faces(X: FloatArray, cell: Cell) -> bool:
    """Tell whether points of the boundary all lie in the faces of a cell."""
    slack = _FLAT * cell.size
    return bool(((np.abs(X - cell.low) <= slack) | (np.abs(X - cell.high) <= slack)).any(axis=1).all())
