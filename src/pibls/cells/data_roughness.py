"""The roughness of sources, coefficients and boundary values on cells, in units of the solution.

All new cells are measured together: every expression is evaluated once, at the points of all of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pibls.cells.measure import missed_along, tails_of
from pibls.cells.parts import CellPart
from pibls.cells.probe import Probe, missed_on_lines, points_on_line
from pibls.cells.row_scales import Scales
from pibls.cells.rows import Rows
from pibls.cells.surface import Piece, Rule
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.features import MultiIndex
from pibls.problem import Statement
from pibls.problem.evaluate import Function
from pibls.problem.symbols import Data
from pibls.quadrature.roots import SCAN
from pibls.refinement import VISIBLE

__all__ = ["DataRoughness", "Roughness"]

AT_ONCE = 64  # cells or right-hand sides treated together: more are no faster and need more memory


@dataclass(eq=False)
class Roughness:
    """The roughness of the data on a cell, along each axis.

    Attributes
    ----------
    data
        L2 error of sources and boundary values, in units of the solution.
    narrow
        The share of it in narrow features between the points.
    coefficients
        Relative error of coefficients; infinite where a piece of the boundary in the cell is too small for a scan.
    square
        Squared L2 norm of the data.
    postponed
        Sources that are rough already at the points, with factors and values: the search for narrow features is
        postponed.
    """

    data: FloatArray
    narrow: FloatArray
    coefficients: FloatArray
    square: float = 0.0
    postponed: list[tuple[CellPart, float, Function, FloatArray]] = field(default_factory=list)


class _OnPiece(NamedTuple):
    """A condition on a piece of a part's boundary: points, depth of the part, tangential axes, unit of terms."""

    part: CellPart
    piece: Piece
    rule: Rule
    depth: float
    along: Any
    unit: float


@dataclass(eq=False)
class DataRoughness:
    """Measures and keeps the roughness of the data on cells."""

    rows: Rows
    only: frozenset[int] | None = None  # ids of the forms whose sources are measured, instead of all data
    _done: dict[Cell, Roughness] = field(default_factory=dict)

    @cached_property
    def probe(self) -> Probe:
        """Searches for narrow features between the points."""
        return Probe(self.rows.layout)

    @property
    def may_be_narrow(self) -> bool:
        """Whether a source of a linear statement has subexpressions that make it narrow."""
        counted = (own for own in self.rows.problem.statements if self._counts(own))
        return any(self.probe.features(own.form.source_function, inside=own.is_equation) for own in counted)

    def measured(self, cells: Sequence[Cell]) -> list[Roughness]:
        """Return the roughness of the data on cells."""
        new = [cell for cell in cells if cell not in self._done]
        self._done |= {cell: Roughness(*np.zeros((3, len(cell.low)))) for cell in new}
        for start in range(0, len(new), AT_ONCE):
            chosen = new[start : start + AT_ONCE]
            if parts := self.rows.layout.parts_of(chosen):
                self._inside(parts)
                self._boundary(parts)
        pieces, extents = self.rows.layout.tree_domain.extents
        for cell in new:
            # A piece of the boundary shorter than two steps of a scan of the cell would not be resolved.
            small = (extents < 2 * cell.size / (SCAN - 1)) | np.isnan(extents)
            for k in np.flatnonzero(small.all(axis=1)).tolist():
                if ((pieces[k] >= cell.low) & (pieces[k] <= cell.high)).all(axis=1).any():
                    roughness = self._done[cell]
                    roughness.coefficients = np.where(np.isnan(extents[k]), roughness.coefficients, np.inf)
        return [self._done[cell] for cell in cells]

    def search_postponed(self, cells: Sequence[Cell]) -> list[Roughness]:
        """Return the same after all postponed searches, for cells that stay: visible roughness may hide more."""
        found = self.measured(cells)
        for own in found:
            while own.postponed:
                self._search(*own.postponed.pop())
        return found

    def _inside(self, parts: list[CellPart]) -> None:
        """Measure the coefficients and sources of equations."""
        equations, names = self.rows.equations, self.rows.problem.field_names
        if self.rows.problem.is_linear:
            scales = [self.rows.scales(part) for part in parts]
        else:  # units of a diffusion
            even = [float((part.half**2).min()) for part in parts]
            scales = [Scales(np.full(len(equations), own), np.ones(len(names))) for own in even]
        for number, equation in enumerate(equations):
            if not self._counts(equation):
                continue
            for function, (name, index) in _coefficients(equation, names) if self.only is None else ():
                if self.probe.features(function, inside=True) is None:
                    continue
                for part, known, (factors, units) in zip(parts, _at(function, parts), scales, strict=True):
                    unit = factors[number] * units[name] / float(np.prod(part.half ** np.array(index)))
                    missed, roughness = self.probe.missed_features(part, function, known, unit), self._done[part.cell]
                    roughness.coefficients = np.maximum(roughness.coefficients, missed)
            self._source(equation, {part: float(own[0][number]) for part, own in zip(parts, scales, strict=True)})

    def _counts(self, statement: Statement) -> bool:
        return self.only is None or id(statement.form) in self.only

    def _source(self, equation: Statement, factors: dict[CellPart, float]) -> None:
        """Measure the source of an equation on parts, with a factor for each part."""
        values = _sources(equation, list(factors))
        if not values or (source := equation.form.source_function).constant == 0.0:
            return
        scaled = {part: factors[part] * own for part, own in values.items()}
        for part, own in scaled.items():
            self._done[part.cell].square += float(part.weights @ np.square(own))
        if source.constant is not None:
            return
        at_points = {part: self._missed_by_cut(part, own) for part, own in scaled.items() if not part.whole}
        missed = dict(at_points)
        if whole := [part for part in scaled if part.whole]:
            stack, halves = np.stack([scaled[part] for part in whole]), np.stack([part.half for part in whole])
            tails = tails_of(self.rows.layout.reference).of_values(stack, halves)
            between = self.probe.missed(whole, source, [values[part] for part in whole])
            scale = np.array([factors[part] for part in whole])[:, None]
            at_points |= dict(zip(whole, tails, strict=True))
            missed |= dict(zip(whole, np.maximum(tails, scale * between), strict=True))
        may_be_narrow = self.probe.features(source, inside=True) is not None
        for part, tails in at_points.items():
            roughness, search = self._done[part.cell], (part, factors[part], source, values[part])
            roughness.data = np.maximum(roughness.data, missed[part])
            if not may_be_narrow:
                continue
            if np.linalg.norm(tails) > VISIBLE * np.sqrt(part.weights @ np.square(scaled[part])):
                roughness.postponed.append(search)
            else:
                self._search(*search)

    def _search(self, part: CellPart, factor: float, source: Function, known: FloatArray) -> None:
        """Search a source for features narrower than the point spacing."""
        narrow, roughness = factor * self.probe.missed_features(part, source, known), self._done[part.cell]
        roughness.narrow = np.maximum(roughness.narrow, narrow)
        roughness.data = np.maximum(roughness.data, narrow)

    def _missed_by_cut(self, part: CellPart, values: FloatArray) -> FloatArray:
        """Return for every axis the L2 error of the fit by functions of lower degree on a cut part."""
        basis, left = self.rows.layout.lower(part), values * np.sqrt(part.weights)
        return np.full(len(part.half), float(np.linalg.norm(left - basis @ (basis.T @ left))))

    @cached_property
    def _conditions(self) -> dict[Any, list[Statement]]:
        """Conditions by place, without those that have nothing to resolve: constant coefficients and zero values."""
        found = defaultdict[Any, list[Statement]](list)
        for statement in self.rows.problem.statements:
            form = statement.form
            plain = form.is_linear and form.is_constant and form.source_function.constant == 0.0
            if not plain and self._counts(statement):
                found[statement.place].append(statement)
        return found

    def _boundary(self, parts: list[CellPart]) -> None:
        """Measure the data of boundary conditions."""
        given = defaultdict[Statement, list[_OnPiece]](list)
        tree_domain = self.rows.layout.tree_domain
        for part in parts if self._conditions else ():
            for place, held in tree_domain.pieces(part.cell).items():
                for statement in self._conditions.get(place, ()) if held else ():
                    for piece, rule in self._rules(part, place, held):
                        # Data on both sides of an interface are measured by the parts of each side.
                        if not tree_domain.interfaces or (tree_domain.materials(rule.points) == part.material).all():
                            depth = part.depth(rule.normals)
                            along = np.ptp(part.local(rule.points), axis=0) > 0.1
                            unit = self._unit(statement, part, rule)
                            given[statement].append(_OnPiece(part, piece, rule, depth, along, unit))
        for statement, every in given.items():
            self._on_pieces(statement, every)

    def _rules(self, part: CellPart, place: Any, held: list[Piece]) -> Iterator[tuple[Piece, Rule]]:
        """Yield evenly parametrised pieces with their quadrature points; those of a whole cell are reused."""
        count, known = self.rows.layout.reference.degree + 1, part.boundary.get(place)
        ends = np.cumsum([count ** len(piece.box) for piece in held])
        share = part.whole and known is not None and len(known.weights) == ends[-1]
        for piece, stop in zip(held, ends.tolist(), strict=True):
            if not piece.is_plain:
                continue
            if share and known is not None:
                own = slice(stop - count ** len(piece.box), stop)
                yield piece, Rule(known.points[own], known.normals[own], known.weights[own])
            elif (rule := piece.rule(part.cell.low, part.cell.high, count)) is not None:
                yield piece, rule

    def _unit(self, statement: Statement, part: CellPart, rule: Rule) -> float:
        """Return the size of the largest term of a condition."""
        if not statement.form.is_linear:
            return 1.0
        terms = self.rows.only_terms(statement, part, rule.points, rule.normals)
        return float(self.rows.sizes(terms, part.half).max()) or 1.0

    def _on_pieces(self, statement: Statement, given: list[_OnPiece]) -> None:
        """Measure the coefficients and the source of a condition on pieces of the boundary."""
        rules = [own.rule for own in given]
        for function, (_, index) in _coefficients(statement, self.rows.problem.field_names):
            if self.probe.features(function, inside=False) is None:
                continue
            for one, known in zip(given, _at(function, rules), strict=True):
                unit = 1.0 / (one.unit * float(np.prod(one.part.half ** np.array(index))))
                missed = math.sqrt(one.depth) * self.probe.missed_on(one.piece, function, known, unit)
                roughness = self._done[one.part.cell]
                roughness.coefficients = np.maximum(roughness.coefficients, missed * one.along)
        source = _source_of(statement)
        if source is None or source.constant == 0.0:
            return
        lines = self._on_lines(source, given)
        for one, values, line in zip(given, _at(source, rules), lines, strict=True):
            roughness, scale = self._done[one.part.cell], math.sqrt(one.depth) / one.unit
            roughness.square += scale**2 * float(one.rule.weights @ np.square(values))
            if source.constant is None and len(values) > 2:
                narrow = self.probe.missed_on(one.piece, source, values)
                count = self.rows.layout.reference.degree + 1
                own = scale * max(missed_along(values, one.rule.weights, len(one.piece.box), count), line)
                missed = min(own, self._missed_beside(one, source) if own > 0.0 else np.inf)
                roughness.narrow = np.maximum(roughness.narrow, scale * narrow * one.along)
                roughness.data = np.maximum(roughness.data, max(missed, scale * narrow) * one.along)

    def _missed_beside(self, one: _OnPiece, source: Function) -> float:
        """Return the L2 error of the fit to boundary values that a formula continues into a cut part; else infinity.

        Along a winding boundary smooth values look rough. They are resolved if the functions of the part follow them.
        """
        if one.part.whole or source.needs_normals or source.expression.atoms(Data):
            return math.inf
        values = source.where_real(one.part.points) / one.unit
        return float(self._missed_by_cut(one.part, values)[0]) if np.isfinite(values).all() else math.inf

    def _on_lines(self, function: Function, given: list[_OnPiece]) -> FloatArray:
        """Return the L2 errors of interpolation at Gauss points on curves; zero on surfaces."""
        found, count = np.zeros(len(given)), self.rows.layout.reference.degree + 1
        curves = [number for number, own in enumerate(given) if len(own.piece.box) == 1]
        if function.constant is None and curves:
            s, pieces = points_on_line(count), [given[number].piece for number in curves]
            spans = np.stack([piece.box[0] for piece in pieces])
            U = spans[:, :1] + (spans[:, 1:] - spans[:, :1]) * (s + 1) / 2
            rules = [Rule(*piece.patch.at(u[:, None])[:2], s) for piece, u in zip(pieces, U, strict=True)]
            lengths = [piece.patch.measure * float(np.ptp(piece.box[0])) for piece in pieces]
            found[curves] = missed_on_lines(np.stack(_at(function, rules)), count) * np.sqrt(np.array(lengths) / 2)
        return found


def _at(function: Function, places: Sequence[CellPart | Rule]) -> list[FloatArray]:
    """Return the values of a function at the points of every part, or of every rule on the boundary."""
    normals = [place.normals for place in places if isinstance(place, Rule)]
    values = function(np.concatenate([place.points for place in places]), np.concatenate(normals) if normals else None)
    return np.split(values, np.cumsum([len(place.points) for place in places])[:-1])


def _source_of(statement: Statement) -> Function | None:
    """Return the source of a statement, or None: a nonlinear one may have no value at zero."""
    try:
        return statement.form.source_function
    except ProblemError:
        if statement.form.is_linear:
            raise
        return None


def _sources(statement: Statement, parts: list[CellPart]) -> dict[CellPart, FloatArray]:
    """Return the source at the points of the parts on which it has values."""
    source = _source_of(statement)
    try:
        return {} if source is None else dict(zip(parts, _at(source, parts), strict=True))
    except ProblemError:
        if statement.form.is_linear:
            raise
        alone = [_sources(statement, [part]) for part in parts] if len(parts) > 1 else []
        return {part: values for own in alone for part, values in own.items()}


def _coefficients(statement: Statement, names: Sequence[str]) -> Iterator[tuple[Function, tuple[int, MultiIndex]]]:
    """Yield the coefficients of a linear statement that vary, with the field and derivative that they multiply."""
    form = statement.form
    for term, function in zip(form.terms, form.coefficient_functions, strict=True):
        if form.is_linear and function.constant is None:
            yield function, (list(names).index(term.field), term.multi_index)
