"""Cuts cells into parts: the connected pieces of each material in a cell, with quadrature points and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.cut_slices import Slice, find_components
from pibls.cells.line_quadrature import LINES, LineQuadrature, quadrature_on_lines
from pibls.cells.parts import CellPart, exact_weights
from pibls.cells.surface import STEP, Rule, rules_of
from pibls.cells.tree import Cell
from pibls.cells.tree_domain import TreeDomain, on_faces
from pibls.checks import FloatArray, IntArray
from pibls.features.reference import ReferenceNetwork, cube_rule
from pibls.geometry.sampling import kronecker
from pibls.geometry.sight import owners_in_sight
from pibls.quadrature.roots import CLOSE, ranges_held
from pibls.refinement.standards import CANDIDATES, POINTS

__all__ = ["Cutter"]

_ENDS = ("low", "high")
_OUTLINE = {1: 1, 2: 4, 3: 2}
_MORE_DEGREES = 3  # degrees beyond that of the cells to which integrals are exact: functions are not quite polynomials
_OVERSAMPLING = 2.2


@dataclass(eq=False)
class Cutter:
    """Cuts cells into parts along the boundary and the interfaces, and keeps the parts."""

    tree_domain: TreeDomain
    reference: ReferenceNetwork
    is_stable: bool = False  # for steps in time: whether sums over points of parts in a plane are integrals
    _parts: dict[Cell, tuple[CellPart, ...]] = field(default_factory=dict)

    def parts(self, cell: Cell) -> tuple[CellPart, ...]:
        """Return the parts of a cell; none if it lies outside the domain."""
        if cell not in self._parts:
            self.cut([cell])
        return self._parts[cell]

    def cut(self, cells: Iterable[Cell]) -> None:
        """Cut many cells together."""
        new = [cell for cell in dict.fromkeys(cells) if cell not in self._parts]
        self.tree_domain.find_pieces(new)
        slices: list[Slice] = []
        plain: dict[Cell, dict[Any, Rule]] = {}
        for cell, rules in zip(new, self._rules(new), strict=True):
            self._parts[cell] = ()
            if self.tree_domain.is_uncut:
                plain[cell] = rules
            elif found := self._slices(cell, rules):
                slices += found
            else:
                plain[cell] = self._of_conditions(rules)
        self._add_whole(plain)
        if slices:
            self._cut(slices)

    def overhang(self, cell: Cell) -> tuple[int, float] | None:
        """Return axis and position of a flat face of a domain in space beyond which the cell is empty, or None."""
        room = CLOSE * cell.size
        for axis, side, extent in self.tree_domain.flat_sides:
            at = extent[0, axis]
            shared = np.minimum(extent[1], cell.high) - np.maximum(extent[0], cell.low) > room
            if np.delete(shared, axis).all() and cell.low[axis] + room[axis] < at < cell.high[axis] - room[axis]:
                ends = np.where(np.arange(3) == axis, at, cell.low), np.where(np.arange(3) == axis, at, cell.high)
                boxes = ((cell.low, ends[1]), (ends[0], cell.high))
                below, above = (low + (high - low) * kronecker(POINTS, 3) for low, high in boxes)
                within, beyond = (below, above) if side > 0 else (above, below)
                if self.tree_domain.inside(within, cell).any() and not self.tree_domain.inside(beyond, cell).any():
                    return axis, float(at)
        return None

    def _slices(self, cell: Cell, rules: dict[Any, Rule]) -> list[Slice]:
        """Return the slices into which the boundary and the interfaces cut a cell; none if it is not cut."""
        interfaces = [rules[level] for level in self.tree_domain.interfaces if level in rules]
        interfaces = [interface for interface in interfaces if not on_faces(interface.points, cell).all()]
        if interfaces:
            return self._divided(cell, Rule.joined(interfaces), rules)
        outline = rules.get(None)
        if outline is None or on_faces(outline.points, cell).all():
            return []
        within = outline.points[:1] - STEP * float(cell.size.min()) * outline.normals[:1]
        return [Slice(cell, outline, self._of_conditions(rules), int(self.tree_domain.materials(within)[0]))]

    def _of_conditions(self, rules: dict[Any, Rule]) -> dict[Any, Rule]:
        """Return the rules of conditions: without those of the outline and of interfaces."""
        return {place: own for place, own in rules.items() if place not in {None, *self.tree_domain.interfaces}}

    def _add_whole(self, plain: dict[Cell, dict[Any, Rule]]) -> None:
        """Make a whole part of every uncut cell whose centre lies inside the domain."""
        low, high = (np.array([getattr(c, end) for c in plain]).reshape(-1, self.reference.dimension) for end in _ENDS)
        half, middles = (high - low) / 2, (low + high) / 2
        inside = np.ones(len(plain), dtype=bool) if self.tree_domain.is_box else self.tree_domain.inside(middles)
        materials, (U, weights) = self.tree_domain.materials(middles).tolist(), self.reference.rule
        for number, (cell, rules) in enumerate(plain.items()):
            if inside[number]:
                center, own = low[number] + half[number], half[number]
                shares = weights * float(np.prod(own))
                whole = CellPart(cell, center, own, center + own * U, shares, True, rules, material=materials[number])
                self._parts[cell] = (whole,)

    def _divided(self, cell: Cell, interface: Rule, rules: dict[Any, Rule]) -> list[Slice]:
        """Return the slices of a cell, one for each material beside its interfaces."""
        step = STEP * float(cell.size.min())
        above, below = (
            interface.together(self.tree_domain.materials(interface.points + sign * step * interface.normals))
            for sign in (1.0, -1.0)
        )
        found: list[Slice] = []
        for material in np.unique(np.concatenate([above, below])).tolist():
            # In a plane, curves end at interfaces; in space, the surface beside each material is found separately.
            own = rules if len(cell.low) < 3 else self._rules([cell], material)[0]
            own = {place: self._of_material(rule, material, step) for place, rule in own.items()}
            around = [interface.chosen(below == material), interface.chosen(above == material).flipped()]
            around += [own[None]] if None in own else []
            found.append(Slice(cell, Rule.joined(around), self._of_conditions(own), material))
        return found

    def _of_material(self, rule: Rule, material: int, step: float) -> Rule:
        """Return the boundary points that have the given material behind them."""
        return rule.chosen(rule.together(self.tree_domain.materials(rule.points - step * rule.normals)) == material)

    def _rules(self, cells: Sequence[Cell], material: int | None = None) -> list[dict[Any, Rule]]:
        """Return boundary points of cells by place, or those beside one material only.

        A place is that of a condition, the level of an interface, or None for the whole outline.
        """
        tiled = self.reference.dimension == 3 and self.tree_domain.is_tiled and not self.tree_domain.is_box
        beside = None if material is None else lambda X: self.tree_domain.materials(X) == material
        wanted, homes = [], []
        for number, cell in enumerate(cells):
            for place, held in self.tree_domain.pieces(cell).items():
                is_interface = place in self.tree_domain.interfaces
                if (place is None and tiled) or (is_interface and beside is not None):
                    continue
                # Integrals over the outline need higher degrees: polynomials along curves.
                many = _OUTLINE[len(cell.low)] if place is None or is_interface else 2 if self.is_stable else 1
                wanted += [(piece, cell.low, cell.high, (self.reference.degree + 1) * many) for piece in held]
                homes += [(number, place)] * len(held)
        found: list[dict[Any, list[Rule]]] = [{} for _ in cells]
        for (number, place), rule in zip(homes, rules_of(wanted, beside), strict=True):
            if rule is not None:
                found[number].setdefault(place, []).append(rule)
        joined = [{place: Rule.joined(own) for place, own in every.items()} for every in found]
        for own in joined if tiled else ():
            outline = [rule for place, rule in own.items() if place not in self.tree_domain.interfaces]
            own |= {None: Rule.joined(outline)} if outline else {}
        return joined

    def _cut(self, slices: list[Slice]) -> None:
        """Find the parts of many slices."""
        find_components(self.tree_domain, [own for own in slices if own.key not in self.tree_domain.cuts.slice_pieces])
        for own, shell in zip(slices, self._shells(slices), strict=True):
            self._parts[own.cell] += self._parts_of(own, shell)

    def _parts_of(self, own: Slice, shell: Rule | None) -> tuple[CellPart, ...]:
        """Return the parts of a slice; ``shell`` holds its points on the cell's sides."""
        cell, material, slice_pieces = own.cell, own.material, self.tree_domain.cuts.slice_pieces[own.key]
        if slice_pieces is None:
            return ()
        grid, labels, step, evenly = slice_pieces

        def owned(X: FloatArray, strict: bool = False) -> Any:
            return owners_in_sight(
                grid, labels, step, X, lambda Y: self.tree_domain.is_material(Y, material, cell), strict=strict
            )

        def beside(rule: Rule) -> Any:
            return rule.together(owned(rule.points - STEP * float(cell.size.min()) * rule.normals))

        owner, places = beside(own.outline), {key: beside(rule) for key, rule in own.rules.items()}
        shell_owner = beside(shell) if shell is not None else np.empty(0)
        groups = []
        for label in np.unique(labels).tolist():
            points = grid[labels == label]
            even = points[: int((labels[:evenly] == label).sum())]
            hull = np.concatenate([even - step / 2, even + step / 2, points, own.near[owner == label]])
            box = np.maximum(hull.min(axis=0), cell.low), np.minimum(hull.max(axis=0), cell.high)
            half = np.maximum((box[1] - box[0]) / 2, 1e-12 * cell.size)

            def is_own(X: FloatArray, label: int = int(label)) -> Any:
                return owned(X, strict=True) == label

            inside, volume = self._candidates(cell, *box, material, is_own)
            if not len(inside):
                continue
            inside = inside[: self.wanted]
            boundary = {
                key: self._filled(cell, key, rule.chosen(places[key] == label), box, beside, int(label))
                for key, rule in own.rules.items()
            }
            boundary = {key: rule for key, rule in boundary.items() if len(rule.weights)}
            weights, center, integral = np.full(len(inside), volume / len(inside)), (box[0] + box[1]) / 2, None
            if shell is not None:
                around = Rule.joined([own.outline.chosen(owner == label), shell.chosen(shell_owner == label)])
                degree = self.reference.degree + _MORE_DEGREES
                integral = exact_weights((inside - center) / half, weights, around, center, half, degree)
                weights = weights * (integral.sum() / volume if integral.sum() > volume / 2 else 1.0)
            if self.is_stable and len(cell.low) == 2:
                several = len(np.unique(labels)) > 1
                inside, weights = self._rule(cell, *box, material, is_own if several else None)
                integral = weights
            groups.append(CellPart(cell, center, half, inside, weights, False, boundary, integral, material))
        return tuple(groups)

    def _rule(
        self, cell: Cell, low: FloatArray, high: FloatArray, material: int, own: Callable[[FloatArray], Any] | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return points and weights of a part in a box that integrate products of its functions."""

        def inside(X: FloatArray) -> Any:
            held = self.tree_domain.is_material(X, material, cell)
            return held if own is None else held & own(X)

        lines, nodes = 2 * self.reference.degree, self.reference.degree + 2
        return quadrature_on_lines(inside, low, high, lines, nodes)[:2]

    def _filled(
        self,
        cell: Cell,
        place: Any,
        rule: Rule,
        box: tuple[FloatArray, FloatArray],
        beside: Callable[[Rule], Any],
        label: int,
    ) -> Rule:
        """Return the boundary points of a part; in space, add points if few of the cell's points belong to it."""
        count = self.reference.degree + 1
        if len(cell.low) < 3 or 2 * len(rule.weights) >= count**2:
            return rule
        held = [half for piece in self.tree_domain.pieces(cell)[place] for half in piece.within(*box)]
        found = [more for more in rules_of([(piece, *box, count) for piece in held]) if more is not None]
        if not found:
            return rule
        joined = Rule.joined(found)
        more = joined.chosen(beside(joined) == label)
        return more if len(more.weights) > len(rule.weights) else rule

    def _shells(self, slices: list[Slice]) -> Sequence[Rule | None]:
        """Return points of slices on the sides of their cells, with outward normals, as exact integrals need them.

        In space only the two sides across the first axis are needed.
        """
        if self.reference.dimension == 1:
            return [None] * len(slices)
        return self._sides(slices) if self.reference.dimension == 2 else self._ends(slices)

    def _ends(self, slices: list[Slice]) -> list[Rule]:
        """Return points of slices on the two sides of their cells across the first axis, in space."""
        cells, materials = [own.cell for own in slices for _ in _ENDS], np.repeat([own.material for own in slices], 2)
        out, offset = np.tile([-1.0, 1.0], len(slices)), [self.tree_domain.side_offset(cell) for cell in cells]
        low, high = (np.array([getattr(cell, end) for cell in cells]) for end in _ENDS)
        place, normals = np.where(out > 0, high[:, 0], low[:, 0]), out[:, None] * np.eye(3)[0]
        step = np.array(offset)[:, None] * normals

        def inside(V: FloatArray, row: IntArray) -> Any:
            X = np.column_stack([place[row], V])
            return self.tree_domain.inside_columns(X, materials[row], step[row], cells, row)

        counts = [(LINES, self.reference.degree + 2)] * len(cells)
        rules = [
            Rule(np.column_stack([np.full(len(V), place[k]), V]), np.tile(normals[k], (len(V), 1)), weights)
            for k, (V, weights, _) in enumerate(LineQuadrature(inside, low[:, 1:], high[:, 1:]).rules(counts))
        ]
        return [Rule.joined(rules[k : k + 2]) for k in range(0, len(rules), 2)]

    def _sides(self, slices: list[Slice]) -> list[Rule]:
        """Return points of slices on the sides of their cells in a plane, with outward normals."""
        self._find_sides([own for own in slices if own.key not in self.tree_domain.cuts.side_intervals])
        nodes, shares = cube_rule(1, self.reference.degree + 2)
        rules = []
        for own in slices:
            axis, out, starts, stops = self.tree_domain.cuts.side_intervals[own.key]
            cell, normals = own.cell, np.zeros((len(axis), 2))
            normals[np.arange(len(axis)), axis] = out
            along = cell.low[1 - axis] + cell.size[1 - axis] * starts
            lengths = cell.size[1 - axis] * (stops - starts)
            X = np.repeat(np.where(out[:, None] > 0, cell.high, cell.low), len(nodes), axis=0)
            every = np.repeat(np.arange(len(axis)), len(nodes))
            X[np.arange(len(X)), 1 - axis[every]] = (along[:, None] + lengths[:, None] * (nodes[:, 0] + 1) / 2).ravel()
            rules.append(Rule(X, normals[every], (lengths[:, None] * shares / 2).ravel(), every))
        return rules

    def _find_sides(self, slices: list[Slice]) -> None:
        """Find the intervals of all cell sides in a plane that belong to slices."""
        axis, out = np.tile([0, 0, 1, 1], len(slices)), np.tile([-1.0, 1.0], 2 * len(slices))
        cells = [own.cell for own in slices for _ in range(4)]
        low, high = (np.array([getattr(cell, end) for cell in cells]).reshape(-1, 2) for end in _ENDS)
        corner, every = np.where(out[:, None] > 0, high, low), np.arange(len(cells))
        step = np.zeros((len(cells), 2))
        step[every, axis] = out * [self.tree_domain.side_offset(cell) for cell in cells]
        materials = np.repeat([own.material for own in slices], 4)

        def columns(s: FloatArray, row: Any) -> Any:
            X, other = corner[row], 1 - axis[row]
            X[np.arange(len(X)), other] = low[row, other] + s * (high - low)[row, other]
            return self.tree_domain.inside_columns(X, materials[row], step[row], cells, row)

        row, start, stop = ranges_held(columns, np.zeros(len(cells)), np.ones(len(cells)))
        for k, own in enumerate(slices):
            found = [
                (side, *span)
                for side in range(4 * k, 4 * k + 4)
                for span in self.tree_domain.cut_at_tips(
                    list(zip(start[row == side], stop[row == side], strict=True)),
                    own.cell,
                    int(axis[side]),
                    corner[side],
                    own.cell.size,
                )
            ]
            sides, starts, stops = np.array(found).reshape(-1, 3).T
            sides = sides.astype(np.int64)
            self.tree_domain.cuts.side_intervals[own.key] = axis[sides], out[sides], starts, stops

    @cached_property
    def wanted(self) -> int:
        """Number of interior points that determine the functions of a part."""
        return int(_OVERSAMPLING * self.reference.size) + 10

    def _candidates(
        self, cell: Cell, low: FloatArray, high: FloatArray, material: int, own: Callable[[FloatArray], Any]
    ) -> tuple[FloatArray, float]:
        """Return points of a part in a box, and the volume of the part."""
        tries = 4 * self.wanted
        while True:
            X = low + (high - low) * kronecker(tries, len(low))
            X = X[self.tree_domain.is_material(X, material, cell)]
            X = X[own(X)] if len(X) else X
            if len(X) >= 2 * self.wanted or tries >= CANDIDATES:
                return X, float(np.prod(high - low)) * len(X) / tries
            tries *= 4

    def part_at(self, cell: Cell, X: FloatArray) -> Any:
        """Return for each point of a cell the number of the part that contains it or is nearest."""
        parts = self.parts(cell)
        if len(parts) < 2:
            return np.zeros(len(X), dtype=int)
        points = np.concatenate([part.points for part in parts])
        numbers = np.repeat(np.arange(len(parts)), [len(part.points) for part in parts])
        own, materials = np.array([part.material for part in parts]), self.tree_domain.materials(X)
        found = np.empty(len(X), dtype=np.int64)
        for material in np.unique(materials).tolist():
            rows, theirs = materials == material, np.isin(numbers, np.flatnonzero(own == material))
            theirs |= not theirs.any()
            clear = (
                (lambda Y, material=material: self.tree_domain.is_material(Y, material, cell))
                if self.tree_domain.interfaces
                else None
            )
            found[rows] = owners_in_sight(points[theirs], numbers[theirs], cell.size, X[rows], clear)
        return found
