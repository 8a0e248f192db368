"""Cuts a cell into the connected parts of the domain that lie in it, each with points of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.filling import filled
from pibls.cells.ground import FLAT, Ground, on_faces
from pibls.cells.parts import CellPart, exact_weights
from pibls.cells.surface import Rule
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.features.reference import ReferenceNetwork, cube_rule
from pibls.geometry.sampling import kronecker
from pibls.geometry.sight import joined_in_sight, owners_in_sight
from pibls.quadrature.roots import held_ranges

__all__ = ["Cutter"]

_GRID = {1: 65, 2: 25, 3: 11}
_FITS = 3
_OUTLINE = {1: 1, 2: 4, 3: 2}
_SMALL = 0.6
_STEP = 1e-7
_EXACT = 3  # degrees more than those of cells, for integrals: sines are a little more than polynomials
_CANDIDATES = 2**15
_OVERSAMPLING = 2.2
_BEYOND = 128  # points to see whether anything is there
_LINES = 16  # on a side of a cell in space
_FAR = 2.0  # steps of a grid


@dataclass(eq=False)
class Cutter:
    """Cuts cells into parts by the boundary and by seams, and keeps the parts for the next call."""

    ground: Ground
    reference: ReferenceNetwork
    _parts: dict[Cell, tuple[CellPart, ...]] = field(default_factory=dict)

    def parts(self, cell: Cell) -> tuple[CellPart, ...]:
        """Return the connected pieces of a cell within the domain; none where it is outside."""
        if cell not in self._parts:
            self._parts[cell] = self._found(cell)
        return self._parts[cell]

    def overhang(self, cell: Cell) -> tuple[int, float] | None:
        """Return the axis and place of a flat face of the domain beyond which a cell has nothing of it, if any."""
        room = FLAT * cell.size
        for axis, side, extent in self.ground.sides:
            at = extent[0, axis]
            shared = np.minimum(extent[1], cell.high) - np.maximum(extent[0], cell.low) > room
            if np.delete(shared, axis).all() and cell.low[axis] + room[axis] < at < cell.high[axis] - room[axis]:
                ends = np.where(np.arange(3) == axis, at, cell.low), np.where(np.arange(3) == axis, at, cell.high)
                boxes = ((cell.low, ends[1]), (ends[0], cell.high))
                below, above = (low + (high - low) * kronecker(_BEYOND, 3) for low, high in boxes)
                within, beyond = (below, above) if side > 0 else (above, below)
                if self.ground.inside(within, cell).any() and not self.ground.inside(beyond, cell).any():
                    return axis, float(at)
        return None

    def _found(self, cell: Cell) -> tuple[CellPart, ...]:
        rules = self._rules(cell)
        seams = [seam for level in self.ground.seams if (seam := rules.pop(level, None)) is not None]
        seams = [seam for seam in seams if not on_faces(seam.points, cell).all()]
        if seams:
            return self._divided(cell, Rule.joined(seams), rules)
        outline, middle = rules.pop(None, None), (cell.low + cell.high) / 2
        if not self.ground.is_box:
            if outline is not None and not on_faces(outline.points, cell).all():
                kind = int(
                    self.ground.kinds(outline.points[:1] - _STEP * float(cell.size.min()) * outline.normals[:1])[0]
                )
                return self._cut(cell, outline, rules, kind)
            if not self.ground.inside(middle[None], cell)[0]:
                return ()
        U, weights = self.reference.rule
        half = cell.size / 2
        center = cell.low + half
        kind = int(self.ground.kinds(middle[None])[0])
        return (
            CellPart(cell, center, half, center + half * U, weights * float(np.prod(half)), True, rules, kind=kind),
        )

    def _divided(self, cell: Cell, seam: Rule, rules: dict[Any, Rule]) -> tuple[CellPart, ...]:
        """Return the parts of a cell on both sides of a seam, which cuts them off as a boundary does."""
        step = _STEP * float(cell.size.min())
        above, below = (
            seam.together(self.ground.kinds(seam.points + sign * step * seam.normals)) for sign in (1.0, -1.0)
        )
        found: list[CellPart] = []
        for kind in np.unique(np.concatenate([above, below])).tolist():
            # Curves end at seams; what there is of a surface beside each kind is found again.
            own = rules if len(cell.low) < 3 else self._rules(cell, kind)
            own = {key: self._of_kind(rule, kind, step) for key, rule in own.items()}
            around = [seam.chosen(below == kind), seam.chosen(above == kind).flipped()]
            around += [own.pop(None)] if None in own else []
            found += self._cut(cell, Rule.joined(around), own, kind)
        return tuple(found)

    def _of_kind(self, rule: Rule, kind: int, step: float) -> Rule:
        """Return the points of a boundary that are beside a kind of points of the domain."""
        return rule.chosen(rule.together(self.ground.kinds(rule.points - step * rule.normals)) == kind)

    def _rules(self, cell: Cell, kind: int | None = None) -> dict[Any, Rule]:
        """Return points of the boundary in a cell, by conditions, and those of seams; or those beside one kind."""
        found: dict[Any, Rule] = {}
        tiled = len(cell.low) == 3 and self.ground.is_tiled and not self.ground.is_box
        beside = None if kind is None else lambda X: self.ground.kinds(X) == kind
        for place, held in self.ground.pieces(cell).items():
            is_seam = place in self.ground.seams
            if (place is None and tiled) or (is_seam and beside is not None):
                continue
            # Integrals along the outline are those of polynomials along curves.
            count = (self.reference.degree + 1) * (_OUTLINE[len(cell.low)] if place is None or is_seam else 1)
            rules = (piece.rule(cell.low, cell.high, count, turns=True, beside=beside) for piece in held)
            if own := [rule for rule in rules if rule is not None]:
                found[place] = Rule.joined(own)
        own = [rule for place, rule in found.items() if place not in self.ground.seams]
        if tiled and own:
            found[None] = Rule.joined(own)
        return found

    def _cut(self, cell: Cell, outline: Rule, rules: dict[Any, Rule], kind: int) -> tuple[CellPart, ...]:
        near = outline.points - _STEP * float(cell.size.min()) * outline.normals
        low, high = cell.low, cell.high
        grid = np.empty((0, len(low)))
        for _ in range(_FITS):
            grid, labels, step = self._labelled(cell, low, high, kind)
            found = np.concatenate([grid - step / 2, grid + step / 2, near]) if len(grid) else near
            new_low, new_high = np.maximum(found.min(axis=0), cell.low), np.minimum(found.max(axis=0), cell.high)
            if (new_high <= new_low).any():
                return ()
            shrunk = (new_high - new_low) < _SMALL * (high - low)
            low, high = new_low, new_high
            if not shrunk.any():
                break
        grid, labels, step = self._labelled(cell, low, high, kind)
        evenly = len(grid)
        if len(low) == 3 and len(near):
            grid, labels = self._with_specks(grid, labels, step, near)
        if not len(grid):
            return ()
        groups = []

        def owned(X: FloatArray, strict: bool = False) -> Any:
            return owners_in_sight(grid, labels, step, X, lambda Y: self.ground.is_kind(Y, kind, cell), strict=strict)

        def beside(rule: Rule) -> Any:
            return rule.together(owned(rule.points - _STEP * float(cell.size.min()) * rule.normals))

        owner, places = beside(outline), {key: beside(rule) for key, rule in rules.items()}
        shell = self._shell(cell, kind)
        walls = beside(shell) if shell is not None else np.empty(0)
        for label in np.unique(labels).tolist():
            own = grid[labels == label]
            even = own[: int((labels[:evenly] == label).sum())]
            hull = np.concatenate([even - step / 2, even + step / 2, own, near[owner == label]])
            box = np.maximum(hull.min(axis=0), cell.low), np.minimum(hull.max(axis=0), cell.high)
            half = np.maximum((box[1] - box[0]) / 2, 1e-12 * cell.size)

            def is_own(X: FloatArray, label: int = int(label)) -> Any:
                return owned(X, strict=True) == label

            inside, volume = self._candidates(cell, *box, kind, is_own)
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
                weights = weights * (integral.sum() / volume if integral.sum() > volume / 2 else 1.0)
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
        """Return the points of a surface in a part, with more where few of those scattered over its cell are in it."""
        count = self.reference.degree + 1
        if len(cell.low) < 3 or 2 * len(rule.weights) >= count**2:
            return rule
        held = [half for piece in self.ground.pieces(cell)[place] for half in piece.within(*box)]
        found = [more for piece in held if (more := piece.rule(*box, count, turns=True)) is not None]
        if not found:
            return rule
        joined = Rule.joined(found)
        more = joined.chosen(beside(joined) == label)
        return more if len(more.weights) > len(rule.weights) else rule

    def _shell(self, cell: Cell, kind: int) -> Rule | None:
        """Return points on the sides of a cell inside the domain, with normals out of it, if integrals need them.

        In space only those across the first axis do.
        """
        if len(cell.low) == 2:
            return self._sides(cell, kind)
        if len(cell.low) != 3:
            return None
        found = []
        for place, out in ((cell.low[0], -1.0), (cell.high[0], 1.0)):
            normal = np.array([out, 0.0, 0.0])
            step = self.ground.aside(cell) * normal

            def placed(V: FloatArray, place: float = float(place)) -> FloatArray:
                return np.column_stack([np.full(len(V), place), V])

            def inside(V: FloatArray, placed: Any = placed, step: FloatArray = step) -> Any:
                return self.ground.columns(placed(V), kind, step, cell)

            V, weights, _ = filled(inside, cell.low[1:], cell.high[1:], None, _LINES, self.reference.degree + 2)
            found.append(Rule(placed(V), np.tile(normal, (len(V), 1)), weights))
        return Rule.joined(found)

    def _sides(self, cell: Cell, kind: int) -> Rule:
        """Return points on the sides of a plane cell inside the domain, with normals out of the cell."""
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

                step = self.ground.aside(cell) * normal
                found_in = held_ranges(
                    lambda s, at=placed, step=step: self.ground.columns(at(s), kind, step, cell), 0.0, 1.0
                )
                for a, b in self.ground.at_tips(found_in, cell, axis, end, cell.size):
                    X = placed(a + (b - a) * (nodes[:, 0] + 1) / 2)
                    length = (b - a) * cell.size[1 - axis]
                    found.append(Rule(X, np.tile(normal, (len(X), 1)), shares / 2 * length, np.zeros(len(X), np.int64)))
        return Rule.joined(found)

    @cached_property
    def wanted(self) -> int:
        """Number of points inside a part that determine its functions."""
        return int(_OVERSAMPLING * self.reference.size) + 10

    def _labelled(self, cell: Cell, low: FloatArray, high: FloatArray, kind: int) -> tuple[FloatArray, Any, FloatArray]:
        """Return points of a grid inside the domain, the number of the piece each is in, and the spacing."""
        from scipy.ndimage import label

        d = len(low)
        count = _GRID[d]
        step = (high - low) / count
        axes = [low[i] + step[i] * (np.arange(count) + 0.5) for i in range(d)]
        grid = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
        inside = self.ground.is_kind(grid, kind, cell)
        labels, _ = label(inside.reshape((count,) * d))
        found = joined_in_sight(
            grid[inside], labels.ravel()[inside], step, lambda X: self.ground.is_kind(X, kind, cell)
        )
        return grid[inside], found, step

    @staticmethod
    def _with_specks(grid: FloatArray, labels: Any, step: FloatArray, near: FloatArray) -> tuple[FloatArray, Any]:
        """Return the points of a grid with those beside the boundary that are far from it, as pieces of their own."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components
        from scipy.spatial import cKDTree

        # One of those that are close to each other tells of all.
        near = near[np.unique(np.round(near / step), axis=0, return_index=True)[1]]
        tree = cKDTree(np.concatenate([grid, near]) / step)
        pairs = tree.query_pairs(_FAR, output_type="ndarray")
        size = (tree.n, tree.n)
        _, found = connected_components(coo_array((np.ones(len(pairs)), pairs.T), size), directed=False)
        alone = ~np.isin(found[len(grid) :], found[: len(grid)])
        specks = found[len(grid) :][alone] + 1 + labels.max(initial=0)
        return np.concatenate([grid, near[alone]]), np.concatenate([labels, specks])

    def _candidates(
        self, cell: Cell, low: FloatArray, high: FloatArray, kind: int, own: Callable[[FloatArray], Any]
    ) -> tuple[FloatArray, float]:
        """Return points inside the domain and a box that are of a piece, and the volume of the piece."""
        tries = 4 * self.wanted
        while True:
            X = low + (high - low) * kronecker(tries, len(low))
            X = X[self.ground.is_kind(X, kind, cell)]
            X = X[own(X)] if len(X) else X
            if len(X) >= 2 * self.wanted or tries >= _CANDIDATES:
                return X, float(np.prod(high - low)) * len(X) / tries
            tries *= 4

    def part_at(self, cell: Cell, X: FloatArray) -> Any:
        """Return for points of a cell the number of the part each is in, or nearest to."""
        parts = self.parts(cell)
        if len(parts) < 2:
            return np.zeros(len(X), dtype=int)
        points = np.concatenate([part.points for part in parts])
        numbers = np.repeat(np.arange(len(parts)), [len(part.points) for part in parts])
        own, kinds = np.array([part.kind for part in parts]), self.ground.kinds(X)
        found = np.empty(len(X), dtype=np.int64)
        for kind in np.unique(kinds).tolist():
            rows, theirs = kinds == kind, np.isin(numbers, np.flatnonzero(own == kind))
            theirs |= not theirs.any()
            clear = (lambda Y, kind=kind: self.ground.is_kind(Y, kind, cell)) if self.ground.seams else None
            found[rows] = owners_in_sight(points[theirs], numbers[theirs], cell.size, X[rows], clear)
        return found
