"""Finds the faces between the parts of cells: on the sides of cells and on interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from pibls.cells.cutting import Cutter
from pibls.cells.interface_surfaces import InterfaceSurface
from pibls.cells.line_quadrature import LINES, NODES, LineQuadrature
from pibls.cells.parts import CellPart, Face, legendre, polynomials
from pibls.cells.surface import STEP, Piece, Rule
from pibls.cells.tree import Cell, Contact
from pibls.cells.tree_domain import TreeDomain, on_faces
from pibls.checks import FloatArray
from pibls.features.reference import ReferenceNetwork, cube_rule, on_grid
from pibls.geometry.sampling import kronecker
from pibls.problem import Across
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.level import Level
from pibls.quadrature.roots import CLOSE, ranges_held
from pibls.quadrature.rules import gauss, tensor
from pibls.refinement.standards import NEGLIGIBLE, POINTS

__all__ = ["FaceFinder"]

TRACE_SHARE = 0.62  # degree of traces on faces relative to that of cells: more has no effect on a steady solution


@dataclass(eq=False)
class FaceFinder:
    """Finds the faces between parts, on the sides of cells and on interfaces, and keeps them."""

    tree_domain: TreeDomain
    reference: ReferenceNetwork
    cutter: Cutter
    is_stable: bool = False  # for steps in time: whether traces are as rich as cells
    _faces: dict[tuple[Cell, Cell, int, float], list[Face]] = field(default_factory=dict)
    _interface_faces: dict[Cell, list[Face]] = field(default_factory=dict)
    _nested: dict[bytes, FloatArray] = field(default_factory=dict)

    @cached_property
    def whole(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
        """Points on the face between two reference cells, their weights, the polynomials there and their slopes."""
        U, weights = cube_rule(self.reference.dimension - 1, self.degree + 3)
        return (U, weights, *polynomials(U, weights, self.degree))

    def nested_basis(self, U: FloatArray) -> FloatArray:
        """Return the matrix from the polynomials of a large face to those of a whole face within it.

        ``U`` are the points of the smaller face in the coordinates of the larger one; both are scaled to the reference
        face.
        """
        place = on_grid(U[[0, -1]]).tobytes()
        if place not in self._nested:
            _, weights, basis, _ = self.whole
            self._nested[place] = (basis * np.sqrt(weights)[:, None]).T @ (legendre(U, self.degree) @ self._combined)
        return self._nested[place]

    @cached_property
    def _combined(self) -> FloatArray:
        """Coefficients of the polynomials of a whole face in Legendre polynomials."""
        U, weights, basis, _ = self.whole
        return np.asarray(np.linalg.lstsq(legendre(U, self.degree) * np.sqrt(weights)[:, None], basis)[0])

    @property
    def degree(self) -> int:
        """Degree of the polynomials on faces; a part between two characteristics may learn all through one face."""
        switching = self.tree_domain.switching
        full = self.is_stable or (switching is not None and bool(switching.carried))
        return self.reference.degree if full else round(TRACE_SHARE * self.reference.degree)

    def faces(self, contact: Contact) -> list[Face]:
        """Return the faces of a contact inside the domain."""
        return self.faces_of([contact])[0]

    def faces_of(self, contacts: Sequence[Contact]) -> list[list[Face]]:
        """Return the faces of many contacts inside the domain, found together."""
        keys = [(contact.below, contact.above, contact.axis, contact.shift) for contact in contacts]
        new = {key: contact for key, contact in zip(keys, contacts, strict=True) if key not in self._faces}
        self.cutter.cut(cell for contact in new.values() for cell in (contact.below, contact.above))
        known = self.tree_domain.cuts.contact_ranges
        if self.reference.dimension == 2:
            cut = {k: own for k, own in new.items() if k not in known and not self._is_between_whole_parts(own)}
            known.update(zip(cut, self._ranges(list(cut.values())), strict=True) if cut else ())
        in_space = {k: own for k, own in new.items() if self.reference.dimension == 3 and self._is_cut(own)}
        if in_space:
            self._faces.update(zip(in_space, self._faces_cut_in_space(list(in_space.values())), strict=True))
        for key, contact in new.items():
            if key not in in_space:
                self._faces[key] = self._plain_faces(contact, known.get(key, []))
        return [self._faces[key] for key in keys]

    def _is_cut(self, contact: Contact) -> bool:
        """Return whether a contact in space lies partly outside the domain, or between several pairs of parts."""
        if self._is_between_whole_parts(contact):
            return False
        parts = len(self.cutter.parts(contact.below)) + len(self.cutter.parts(contact.above))
        X = contact.low + (contact.high - contact.low) * self._scattered[:, contact.axis]
        inside = self.tree_domain.inside(X, contact.below).all()
        return bool(not inside or np.ptp(self.tree_domain.materials(X)) or parts > 2)

    @cached_property
    def _scattered(self) -> FloatArray:
        """Points of the unit square, as points of the faces of the unit cube: shape (points, axes, coordinates)."""
        V = kronecker(4 * len(self.whole[0]), 2)
        return np.stack([np.insert(V, axis, 0.0, axis=1) for axis in range(3)], axis=1)

    def _is_between_whole_parts(self, contact: Contact) -> bool:
        """Return whether two whole cells meet, or one of both is empty."""
        sides = self.cutter.parts(contact.below), self.cutter.parts(contact.above)
        return not all(sides) or all(own[0].whole for own in sides)

    def _plain_faces(self, contact: Contact, found: list[tuple[float, float]]) -> list[Face]:
        """Return the faces of a contact: the whole one, or in a plane the given intervals inside the domain."""
        below, above = self.cutter.parts(contact.below), self.cutter.parts(contact.above)
        if not below or not above:
            return []
        others = [axis for axis in range(len(contact.low)) if axis != contact.axis]
        span = contact.high - contact.low
        U, weights, basis, slopes = self.whole

        def placed(V: FloatArray) -> FloatArray:
            X = np.empty((len(V), len(contact.low)))
            X[:] = contact.low
            X[:, others] += span[others] * V
            return X

        def sloped(length: float) -> FloatArray | None:
            return None if slopes is None else slopes * (2.0 / (length * span[others]))[:, None, None]

        area = float(np.prod(span[others]))
        if below[0].whole and above[0].whole:
            share, X = area / 2 ** len(others), placed((U + 1) / 2)
            whole = not self._interface_conditions
            return [self._face(contact, below[0], above[0], X, weights * share, (basis, sloped(1.0)), whole)]
        if not others:
            X = contact.low[None]
            return (
                [self._face(contact, below[0], above[0], X, np.ones(1))]
                if self.tree_domain.inside(X, contact.below)[0]
                else []
            )
        if len(others) == 1:
            rules = [(placed(a + (b - a) * (U + 1) / 2), weights / 2 * area * (b - a), b - a) for a, b in found]
        else:
            rules = [(placed((U + 1) / 2), weights * area / 2 ** len(others), 1.0)]
        faces = []
        for X, own, length in rules:
            one, two = (pair[0] for pair in self._sides(contact, X[len(X) // 2][None]))
            faces.append(self._face(contact, below[one], above[two], X, own, (basis, sloped(length))))
        return faces

    def _sides(self, contact: Contact, X: FloatArray) -> tuple[Any, Any]:
        """Return the numbers of the parts on both sides of points of a contact."""
        step, away = self._across(contact)
        return self.cutter.part_at(contact.below, X - step), self.cutter.part_at(contact.above, X + step - away)

    def _faces_cut_in_space(self, contacts: Sequence[Contact]) -> list[list[Face]]:
        """Return the faces of contacts in space, with points on lines that meet the cutting surfaces most directly."""
        pairs = [
            (k, (i, j), (one, two), _common_rectangle(contact, one, two))
            for k, contact in enumerate(contacts)
            for (i, one), (j, two) in product(
                enumerate(self.cutter.parts(contact.below)), enumerate(self.cutter.parts(contact.above))
            )
        ]
        pairs = [own for own in pairs if (own[3][1] > own[3][0]).all()]
        which, count = np.array([k for k, *_ in pairs], dtype=np.int64), len(pairs)
        one, two = (np.array([parts[side].material for _, _, parts, _ in pairs]) for side in (0, 1))
        low, high = (np.array([ends[side] for *_, ends in pairs]).reshape(-1, 2) for side in (0, 1))
        inside = self._between([contacts[k] for k in which], one, two)
        X, row = low[:, None] + (high - low)[:, None] * kronecker(POINTS, 2), np.repeat(np.arange(count), POINTS)
        met = inside(X.reshape(-1, 2), row).all(axis=1).reshape(-1, POINTS).any(axis=1) if count else one == two
        # Different materials meet at a side of a cell only if an interface lies in it.
        there = np.flatnonzero((one == two) | met)
        lines = LineQuadrature(lambda V, row: inside(V, there[row]), low[there], high[there])
        faces: list[list[Face]] = [[] for _ in contacts]
        for number, (V, weights, segment) in zip(
            there.tolist(), lines.rules([(LINES, NODES)] * len(there)), strict=True
        ):
            k, numbers, (below, above), _ = pairs[number]
            X = np.insert(V, contacts[k].axis, contacts[k].low[contacts[k].axis], axis=1)
            sides = self._sides(contacts[k], X[NODES // 2 :: NODES])
            own = ((sides[0] == numbers[0]) & (sides[1] == numbers[1]))[segment]
            if own.any():
                faces[k].append(self._face(contacts[k], below, above, X[own], weights[own]))
        return faces

    def _between(self, contacts: Sequence[Contact], one: Any, two: Any) -> Any:
        """Return a test, by columns, whether places of contacts lie in the domain between two materials."""
        step, away = np.array([self._across(own) for own in contacts]).reshape(-1, 2, 3).transpose(1, 0, 2)
        axis, start = np.array([own.axis for own in contacts]), np.array([own.low for own in contacts])
        below, above = ([getattr(own, side) for own in contacts] for side in ("below", "above"))
        twice = bool((one != two).any()) or any(own.shift for own in contacts)

        def inside(V: FloatArray, row: Any) -> Any:
            X, at = start[row], axis[row]
            X[np.arange(3) != at[:, None]] = V.ravel()
            found = self.tree_domain.inside_columns(X, one[row], step[row], below, row)
            if not twice:
                return found
            return np.hstack([found, self.tree_domain.inside_columns(X - away[row], two[row], -step[row], above, row)])

        return inside

    def _ranges(self, contacts: Sequence[Contact]) -> list[list[tuple[float, float]]]:
        """Return the intervals of contacts in a plane that lie inside the domain, each between two materials."""
        materials = [
            [dict.fromkeys(part.material for part in self.cutter.parts(cell)) for cell in (own.below, own.above)]
            for own in contacts
        ]
        pairs = [(k, *pair) for k, sides in enumerate(materials) for pair in product(*sides)]
        which, one, two = np.array(pairs).T
        low, span = (
            np.array([own.low for own in contacts])[which],
            np.array([o.high - o.low for o in contacts])[which],
        )
        step, away = np.array([self._across(own) for own in contacts])[which].transpose(1, 0, 2)
        other = 1 - np.array([own.axis for own in contacts])[which]
        below, above = ([getattr(contacts[k], side) for k in which] for side in ("below", "above"))

        def columns(s: FloatArray, row: Any) -> Any:
            X, ahead = low[row], other[row]
            X[np.arange(len(X)), ahead] += span[row, ahead] * s
            found = self.tree_domain.inside_columns(X, one[row], step[row], below, row)
            if not self.tree_domain.interfaces:
                return found
            return np.hstack([found, self.tree_domain.inside_columns(X - away[row], two[row], -step[row], above, row)])

        row, start, stop = ranges_held(columns, np.zeros(len(which)), np.ones(len(which)))
        ranges: list[list[tuple[float, float]]] = [[] for _ in contacts]
        for k, begin, end in zip(which[row].tolist(), start.tolist(), stop.tolist(), strict=True):
            if not self.tree_domain.interfaces or end - begin > CLOSE:
                ranges[k].append((begin, end))
        cut_at_tips = self.tree_domain.cut_at_tips
        return [
            cut_at_tips(held, own.below, own.axis, own.low, own.high - own.low)
            for own, held in zip(contacts, ranges, strict=True)
        ]

    def _across(self, contact: Contact) -> tuple[FloatArray, FloatArray]:
        """Return the offset from a contact to points clearly above it, and the periodic shift."""
        step, away = np.zeros((2, len(contact.low)))
        step[contact.axis] = min(
            self.tree_domain.side_offset(contact.below), self.tree_domain.side_offset(contact.above)
        )
        away[contact.axis] = contact.shift
        return step, away

    def interface_faces(self, cell: Cell) -> list[Face]:
        """Return the faces on interfaces between the parts of a cell."""
        if not self.tree_domain.interfaces:
            return []
        if cell not in self._interface_faces:
            parts, held = self.cutter.parts(cell), self.tree_domain.pieces(cell)
            own = [(level, piece) for level in self.tree_domain.interfaces for piece in held[level] if len(parts) > 1]
            self._interface_faces[cell] = [face for one in own for face in self._on_interface(cell, parts, *one)]
        return self._interface_faces[cell]

    def _on_interface(
        self, cell: Cell, parts: Sequence[CellPart], level: Level, piece: Piece | InterfaceSurface
    ) -> list[Face]:
        degree = self.degree
        rule = piece.rule(cell.low, cell.high, degree + 3)
        if rule is None or on_faces(rule.points, cell).all():
            return []
        if cell.low.size == 2 and (turn := _turning(rule.normals)) > 2.0:
            # Along a curve that turns, polynomials oscillate, and resolving a wave takes π polynomials.
            degree = round(degree * turn / 2)
            rule = piece.rule(cell.low, cell.high, degree + 3)
            assert rule is not None
        step = STEP * float(cell.size.min()) * rule.normals
        found = (self.cutter.part_at(cell, rule.points - step), self.cutter.part_at(cell, rule.points + step))
        sides = np.stack([rule.together(own) for own in found], axis=1)
        places = tensor(*[gauss(degree + 3)] * len(piece.box))[0] if isinstance(piece, Piece) else _flattened(rule)
        faces = []
        for one, two in np.unique(sides, axis=0).tolist():
            chosen = (sides == (one, two)).all(axis=1)
            if one != two:
                own = rule.chosen(chosen)
                basis, _ = polynomials(places[chosen], own.weights, degree)
                below, above = parts[one], parts[two]
                conditions = self._conditions_across(below, above, own.points, own.normals)
                placed = (own.points, own.weights, basis, None, 0.0, False, own.normals)
                faces.append(Face(below, above, -1, *placed, conditions, level))
        return faces

    def _face(
        self,
        contact: Contact,
        below: CellPart,
        above: CellPart,
        X: FloatArray,
        weights: FloatArray,
        known: tuple[FloatArray, FloatArray | None] | None = None,
        whole: bool = False,
    ) -> Face:
        """Return a face with given points; its polynomials and their slopes may be known."""
        axis = contact.axis
        basis, slopes = known or polynomials(np.delete(X, axis, axis=1), weights, self.degree)
        if self._interface_conditions and not contact.shift:
            normals = np.tile(np.eye(X.shape[1])[axis], (len(X), 1))
            if conditions := self._conditions_across(below, above, X, normals):
                return Face(below, above, axis, X, weights, basis, None, 0.0, False, normals, conditions)
        return Face(below, above, axis, X, weights, basis, slopes, contact.shift, whole)

    def _conditions_across(
        self, below: CellPart, above: CellPart, X: FloatArray, normals: FloatArray
    ) -> dict[int, CellPart]:
        """Return the numbers of the interface conditions that hold across a face, with the part on the inner side."""
        step = STEP * min(float(part.half.min()) for part in (below, above)) * normals
        found = {}
        for number, holds in self._interface_conditions.items():
            one, two = (holds(points).mean() > 0.5 for points in (X - step, X + step))
            if one != two:
                found[number] = below if one else above
        return found

    @cached_property
    def _interface_conditions(self) -> dict[int, Function]:
        """The numbers of the interface conditions among the statements, each with a function that is one inside."""
        symbols = self.tree_domain.domain.coordinates
        return {
            number: compile_function(sp.Piecewise((1, statement.place.condition), (0, True)), symbols)
            for number, statement in enumerate(self.tree_domain.problem.statements)
            if isinstance(statement.place, Across)
        }


def _common_rectangle(contact: Contact, one: CellPart, two: CellPart) -> tuple[FloatArray, FloatArray]:
    """Return the rectangle of a contact in space around both parts: a small common piece has as many lines as any."""
    low, high = contact.low, contact.high
    for part in (one, two):
        low = np.maximum(low, part.center - (1.0 + NEGLIGIBLE) * part.half)
        high = np.minimum(high, part.center + (1.0 + NEGLIGIBLE) * part.half)
    return np.delete(low, contact.axis), np.delete(high, contact.axis)


def _flattened(rule: Rule) -> FloatArray:
    """Return the points of a surface projected along its mean normal, if the projection is one-to-one."""
    axis = int(np.abs(rule.normals.mean(axis=0)).argmax())
    upright = rule.normals[:, axis]
    return np.delete(rule.points, axis, axis=1) if (upright > 0).all() or (upright < 0).all() else rule.points


def _turning(normals: FloatArray) -> float:
    """Return the angle by which the normals along a plane curve turn in all.

    >>> angles = np.linspace(0, np.pi, 9)
    >>> round(_turning(np.stack([np.cos(angles), np.sin(angles)], axis=1)), 6)
    3.141593
    """
    return float(np.abs(np.diff(np.unwrap(np.arctan2(normals[:, 1], normals[:, 0])))).sum())
