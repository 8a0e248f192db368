"""Rows of a part on its faces: trace coefficients of all terms that are continuous across them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.cells.evaluation import RowRequest, Sources, Term, indices_of, power
from pibls.cells.parts import CellPart, Face
from pibls.checks import FloatArray
from pibls.problem import Opposite

if TYPE_CHECKING:
    from pibls.cells.rows import Rows

__all__ = ["Traces"]


@dataclass(eq=False)
class Traces:
    """Makes the rows of parts on faces; rows of nonlinear iterations, and units of faces, are kept."""

    rows: Rows
    _known: dict[Any, FloatArray] = field(default_factory=dict)
    _units: dict[Face, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # by periodic axis, the fields and orders that are continuous across its ends
        self._across_ends: dict[int, list[tuple[int, int]]] = {}
        for statement in self.rows.problem.statements:
            if isinstance(statement.place, Opposite):
                (term,) = statement.form.terms
                axis = int(np.flatnonzero(statement.place.low.normals(statement.place.low.sample(1).points)[0])[0])
                number = self.rows.problem.field_names.index(term.field)
                self._across_ends.setdefault(axis, []).append((number, term.order))
        self.periodic = tuple(self._across_ends)

    def rows_on(self, pairs: Sequence[tuple[CellPart, Face]]) -> list[FloatArray]:
        """Return the trace coefficients on faces of all terms that are continuous there, as rows, for each part."""
        found = {pair: self._known[pair] for pair in pairs if pair in self._known}
        wanted: dict[tuple[CellPart, Face], tuple[RowRequest, list[float]]] = {}
        for pair in pairs:
            if pair not in found:
                made = self._made(*pair)
                if isinstance(made, np.ndarray):
                    found[pair] = made
                else:
                    wanted[pair] = made
        blocks = self.rows.requested([own for own, _ in wanted.values()])
        for (pair, (_, scales)), own in zip(wanted.items(), blocks, strict=True):
            scaled = (scale * block for scale, block in zip(scales, own, strict=True))
            found[pair] = np.vstack([np.empty((0, self.rows.width)), *scaled])
        # A nonlinear iteration needs them again; a flux may depend on the state.
        if self.rows.state is not None:
            plain = {face: face.normals is None and self.rows.flux.is_plain(face) for _, face in found}
            self._known.update({pair: own for pair, own in found.items() if plain[pair[1]]})
        return [found[pair] for pair in pairs]

    def _made(self, part: CellPart, face: Face) -> FloatArray | tuple[RowRequest, list[float]]:
        """Return the rows of a part on a face; where functions have to be evaluated, how to make them, and scales."""
        X, unit, depth, units = self.on_side(part, face), self.units(face), face.thickness, self.rows.scales(part).units
        wanted = self.continuous_across(face)
        terms = [self.rows.flux.shared_terms(part, face, number, order) for number, order in wanted]
        scales = [np.sqrt(depth) * (depth / 2) ** order / unit[number] for number, order in wanted]
        if face.whole and not any(np.ndim(value) for own in terms for _, _, value in own):
            return self._whole(part, face, terms, units, scales)
        return RowRequest(part, X, terms, units, (face.basis * np.sqrt(face.weights)[:, None]).T), scales

    def projected(self, part: CellPart, face: Face, terms: list[Term]) -> FloatArray:
        """Return the coefficients on a face of a sum of derivatives of fields, as rows."""
        units = self.rows.scales(part).units
        if face.whole:
            return self._whole(part, face, [terms], units, [1.0])
        polynomials = (face.basis * np.sqrt(face.weights)[:, None]).T
        return self.rows.requested([RowRequest(part, self.on_side(part, face), [terms], units, polynomials)])[0][0]

    def _whole(
        self, part: CellPart, face: Face, terms: list[list[Term]], units: FloatArray, scales: list[float]
    ) -> FloatArray:
        """Return the rows on a whole face with constant coefficients: many faces share their moments."""
        values = self.rows.layout.moments(part, face, self.on_side(part, face), indices_of(terms))
        share, size, step = (
            math.sqrt(face.area / 2 ** (len(part.half) - 1)),
            self.rows.width // len(units),
            face.basis.shape[1],
        )
        found = np.zeros((step * len(terms), self.rows.width))
        for k, own in enumerate(terms):
            for number, index, value in own:
                block = found[k * step : (k + 1) * step, number * size : (number + 1) * size]
                block += (value * scales[k] * share * units[number] / power(part.half, index)) * values[index]
        return found

    def on_side(self, part: CellPart, face: Face) -> FloatArray:
        """Return the points of a face on a part's side of it; across a periodic boundary both sides differ."""
        if face.above is not part or face.below is part or not face.shift:
            return face.points
        X = face.points.copy()
        X[:, face.axis] -= face.shift
        return X

    def right(self, part: CellPart, face: Face, sides: int = 1, sources: Sources | None = None) -> FloatArray:
        """Return the right-hand sides of :meth:`rows_on`: those of interface conditions, and the sources of fluxes."""
        step = face.basis.shape[1]
        wanted = self.continuous_across(face)
        found = np.zeros((step * len(wanted), sides))
        for k, block in enumerate(wanted):
            law = self.rows.flux.law(part, face, *block)
            if law is not None:
                roots = np.sqrt(face.thickness * face.weights) / law.size
                found[k * step : (k + 1) * step] = face.basis.T @ (roots[:, None] * law.right(part, sources))
        return found

    def units(self, face: Face) -> FloatArray:
        """Return the unit of each field on a face."""
        if face not in self._units:
            self._units[face] = np.sqrt(self.rows.scales(face.below).units * self.rows.scales(face.above).units)
        return self._units[face]

    def continuous_across(self, face: Face) -> list[tuple[int, int]]:
        """Return the fields and orders of derivatives that are continuous across a face."""
        if face.shift:
            return self._across_ends[face.axis]
        if face.normals is not None:
            return self.rows.flux.across_interface(face)
        return self._continuous[face.axis]

    @cached_property
    def _continuous(self) -> list[list[tuple[int, int]]]:
        """Fields and orders that are continuous across sides of cells, by axis."""
        along = self.rows.orders.T.tolist()
        return [[(f, order) for f, most in enumerate(own) for order in range(most)] for own in along]

    @staticmethod
    def normals(face: Face) -> FloatArray:
        """Return the normals of a face, from the part below to the part above."""
        if face.normals is not None:
            return face.normals
        return np.tile(np.eye(face.points.shape[1])[face.axis], (len(face.points), 1))

    def inward(self, part: CellPart, face: Face) -> FloatArray:
        """Return points just inside a part beside a face, where coefficients are those of the part."""
        X, into = self.on_side(part, face), -1.0 if face.below is part else 1.0
        return np.asarray(X + into * self.rows.layout.tree_domain.side_offset(part.cell) * self.normals(face))
