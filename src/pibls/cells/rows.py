"""The rows of a problem on a part of a cell: equation, conditions, and values shared across faces."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pibls.cells.balance import balanced
from pibls.cells.flux import Fluxes
from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart, Face, polynomials
from pibls.cells.surface import Rule
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.features import MultiIndex
from pibls.features.reference import on_grid
from pibls.problem import AtPoints, Average, Opposite, Problem, Statement
from pibls.problem.analysis import analysis_of

__all__ = ["PartRows", "Rows"]

Term = tuple[int, MultiIndex, Any]
State = Callable[[CellPart, FloatArray, Sequence[tuple[str, MultiIndex]]], list[FloatArray]]
Columns = Callable[[Statement, CellPart, FloatArray, FloatArray | None], FloatArray]

_EXACT = 1e5
_DIGITS = 12
_ALIKE, _MANY = 6, 4  # digits of normals, and how many different ones there are on a boundary of many flat pieces
_SEEN = 0.62  # degree of functions on such a boundary, by that of the cells


@dataclass(frozen=True, eq=False)
class PartRows:
    """The rows of one part that concern it alone, in units of the solution.

    Attributes
    ----------
    units
        Unit of each field.
    equation, source
        Rows of the equations, over weights in units of the root of its extent, and their right-hand sides.
    condition, value
        Rows of the conditions, and their right-hand sides.
    means, given
        Integrals of the equations over the part: rows, and the integrals of their sources.
    flows
        How the balance of every equation depends on the rows of the conditions.
    besides
        Where conditions say all that flows out through the boundary, rows of what else is in them; None where integrals
        over the part tell.
    key
        Parts with equal keys have equal equation rows, whatever their size; None where they are its own.
    """

    units: FloatArray
    equation: FloatArray
    source: FloatArray
    condition: FloatArray
    value: FloatArray
    means: FloatArray
    given: FloatArray
    flows: FloatArray
    besides: FloatArray | None
    key: Any


@dataclass(frozen=True, eq=False)
class Stated:
    """A statement at points of a part, linearised at the state: rows and residuals are made of it alike.

    Attributes
    ----------
    statement, points, normals
        The equation or condition, and where it is to hold.
    terms, source
        Its coefficients there, and what stands beside them.
    factors
        Weight of every point.
    seen
        Functions on a boundary of many flat pieces that rows are projected on; None elsewhere.
    """

    statement: Statement
    points: FloatArray
    normals: FloatArray | None
    terms: list[Term]
    source: FloatArray
    factors: FloatArray
    seen: FloatArray | None = None

    def weighed(self, values: FloatArray) -> FloatArray:
        """Return values at the points, one row each, as rows of least squares."""
        found = values * self.factors[:, None]
        return found if self.seen is None else self.seen.T @ found


@dataclass(eq=False)
class Rows:
    """Makes the rows of a linear problem, or of a nonlinear one linearised at a state.

    Scales of rows stay as they are at the first state that a part is seen with, until :meth:`forget`.

    Attributes
    ----------
    layout
        The problem on its domain.
    state
        Where a nonlinear problem is linearised.
    share
        How much of what lies beyond the linearisation at zero is kept.
    diffusion
        What terms of second and higher order in nonlinear equations are multiplied with, as far as they are linear.
    columns
        Further sources of a statement at points of a part, one column each, to solve for at the same time.
    sides
        How many right-hand sides there are, the first of them the problem's own.
    problem, equations
        The problem, and its differential equations.
    orders, is_constant
        Highest order of derivative of each field along each axis, and whether all coefficients are numbers.
    width
        Number of unknowns of a part.
    """

    layout: Layout
    state: State | None = None
    share: float = 1.0
    diffusion: float = 1.0
    columns: Columns | None = None
    sides: int = 1
    _balances: dict[CellPart, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    _magnitudes: dict[CellPart, list[list[Term]]] = field(default_factory=dict)
    _alike: dict[Any, tuple[FloatArray, FloatArray]] = field(default_factory=dict)  # equations, and their means
    _factors: dict[Any, float] = field(default_factory=dict)
    _traced: dict[Any, FloatArray] = field(default_factory=dict)
    _face_units: dict[Face, FloatArray] = field(default_factory=dict)
    _weights: dict[Any, FloatArray] = field(default_factory=dict)
    _on: dict[Any, list[Statement]] = field(default_factory=dict)
    _evaluated: dict[CellPart, list[tuple[list[Term], FloatArray]]] = field(default_factory=dict)  # linear equations

    def __post_init__(self) -> None:
        self.problem: Problem = self.layout.problem
        self.analysis = own = analysis_of(self.problem)
        self.equations, self.orders, self.is_constant = own.equations, own.orders, own.is_constant
        self.width = self.layout.reference.size * len(self.problem.field_names)

    def forget(self) -> None:
        """Scale rows anew."""
        known: tuple[dict[Any, Any], ...] = (self._balances, self._magnitudes, self._factors, self._traced)
        for own in (*known, self._face_units, self._weights):
            own.clear()
        self.__dict__.pop("flux", None)

    def prepare(self, parts: Sequence[CellPart]) -> None:
        """Evaluate the coefficients and sources of linear equations at the points of many parts at once."""
        new = [part for part in parts if part not in self._evaluated]
        if len(new) < 2 or not all(equation.form.is_linear for equation in self.equations):
            return
        ends = np.cumsum([len(part.points) for part in new])[:-1]
        X = np.concatenate([part.points for part in new])
        found: list[list[tuple[list[Term], FloatArray]]] = [[] for _ in new]
        for equation in self.equations:
            terms = self.terms(equation, X, None, [])
            values = [np.split(v, ends) if np.ndim(v) else [v] * len(new) for _, _, v in terms]
            for k, source in enumerate(np.split(equation.form.source_function(X, None), ends)):
                own = [(n, index, every[k]) for (n, index, _), every in zip(terms, values, strict=True)]
                found[k].append((own, source))
        self._evaluated.update(zip(new, found, strict=True))

    def of(self, part: CellPart) -> PartRows:
        """Return the rows of a part."""
        inside = self._inside(part)
        rows, units = self.balance(part)
        key = None
        if part.whole and self.is_constant:
            key = tuple(self._scaled(own.terms, part.half, units, r) for r, own in zip(rows, inside, strict=True))
        sources = [self._sources(part, own) for own in inside]
        source = np.concatenate([-own.weighed(values) for own, values in zip(inside, sources, strict=True)])
        if key is None or key not in self._alike:
            found = self._at(part, None, [own.terms for own in inside], units)
            equation = np.concatenate([own.weighed(values) for own, values in zip(inside, found, strict=True)])
            equation /= math.sqrt(part.extent)
            shares = part.integrals / np.sqrt(part.weights * part.extent)
            means = np.array([shares @ own for own in np.split(equation, len(rows))])
            if key is not None:
                self._alike[key] = equation, means
        else:
            equation, means = self._alike[key]
        means = means * (part.extent / rows)[:, None]
        given = np.array([part.integrals @ values for values in sources])
        condition, value, flows, placed = self._conditions(part, units)
        besides = self._besides(part, units, flows, placed)
        return PartRows(units, equation, source, condition, value, means, given, flows, besides, key)

    def residual(self, part: CellPart) -> FloatArray:
        """Return the rows that concern a part alone, less their right-hand sides, at the state."""
        assert self.state is not None
        on = (self._on_boundary(part, place, rule) for place, rule in part.boundary.items())
        found = [np.zeros(0)]
        for own in (*self._inside(part), *(one for many in on for one in many), *self._at_points(part)):
            slots = self.state(part, own.points, [(term.field, term.multi_index) for term in own.statement.form.terms])
            terms = (value * slot for (_, _, value), slot in zip(own.terms, slots, strict=True))
            found.append(own.weighed(sum(terms, own.source)[:, None])[:, 0])
        return np.concatenate(found)

    def _inside(self, part: CellPart) -> list[Stated]:
        """Return the equations at the points of a part."""
        lowered = self._evaluated.pop(part, None) or [self.lowered(e, part, part.points, None) for e in self.equations]
        factors, roots = self.balance(part, [terms for terms, _ in lowered])[0], np.sqrt(part.weights)
        return [
            Stated(equation, part.points, None, *own, factor * roots)
            for equation, own, factor in zip(self.equations, lowered, factors, strict=True)
        ]

    @staticmethod
    def _scaled(terms: list[Term], half: FloatArray, units: FloatArray, factor: float) -> tuple[Any, ...]:
        """Return constant terms in units of a part: parts with equal ones have equal rows, whatever their size."""
        return tuple(
            (n, index, float(f"{factor * value * units[n] / _power(half, index):.12g}")) for n, index, value in terms
        )

    def _besides(
        self, part: CellPart, units: FloatArray, flows: FloatArray, placed: list[tuple[Rule, list[Stated], Any]]
    ) -> FloatArray | None:
        """Return rows of conditions on a part cut in space beyond the total flux, if they give more than that.

        The integrals of a thin part, over its volume and its surface, do not agree as they should: they are not needed
        then, if equations say what it is that flows.
        """
        indices = [term.multi_index for equation in self.equations for term in equation.form.terms]
        plain = self.is_constant and all(sum(index) == max(index) == 2 for index in indices)
        if part.whole or len(part.half) < 3 or not plain or not self.layout.ground.is_covered:
            return None
        found, start = [], 0
        for rule, known, rows in placed:
            stop = start + sum(map(len, rows))
            if not flows[:, start:stop].any(axis=1).all() or not all(_flows_evenly(own.terms, rule) for own in known):
                return None
            for own, block in zip(known, rows, strict=True):
                levels = [term for term in own.terms if not any(term[1])]
                again = 0 < len(levels) < len(own.terms)
                level = own.weighed(self._at(part, rule.points, [levels], units)[0]) if again else block
                found.append(level if levels else np.zeros_like(block))
            start = stop
        return np.concatenate([*found, np.zeros((flows.shape[1] - start, self.width))])

    def _sources(self, part: CellPart, own: Stated) -> FloatArray:
        """Return all sources of a statement, the problem's own first, as columns."""
        if self.columns is None:
            return own.source[:, None]
        return np.column_stack([own.source, self.columns(own.statement, part, own.points, own.normals)])

    def balance(self, part: CellPart, coefficients: list[list[Term]] | None = None) -> tuple[FloatArray, FloatArray]:
        """Return a factor per equation and a unit per field on a part."""
        if part not in self._balances:
            found = coefficients or self._terms_inside(part)
            sizes = np.array([self.sizes(terms, part.half) for terms in found])
            self._balances[part] = balanced(sizes, self.orders.max(axis=1))
        return self._balances[part]

    def magnitudes(self, part: CellPart) -> list[list[Term]]:
        """Return the size of every term of every equation on a part, where the field is one and varies evenly."""
        if part not in self._magnitudes:
            self._magnitudes[part] = [
                [(number, index, float(np.sqrt(np.mean(np.square(value))))) for number, index, value in own]
                for own in self._terms_inside(part)
            ]
        return self._magnitudes[part]

    def _terms_inside(self, part: CellPart) -> list[list[Term]]:
        """Return the terms of all equations at the points of a part."""
        if part in self._evaluated:
            return [terms for terms, _ in self._evaluated[part]]
        return [self.only_terms(e, part, part.points, None) for e in self.equations]

    def weights(self, part: CellPart, half: FloatArray) -> FloatArray:
        """Return the weight of each equation's integrated residual over a box of some half sides.

        A source of one in the box changes the solution by as much, in the mean square over the box.
        """
        key = (None if self.is_constant else part, half.tobytes())
        if key not in self._weights:
            sizes = np.array([self.sizes(own, half) for own in self.magnitudes(part)])
            factors, _ = balanced(sizes, self.orders.max(axis=1))
            self._weights[key] = factors / np.sqrt(np.prod(2 * half))
        return self._weights[key]

    def emphasis(self, part: CellPart) -> float:
        """Return the factor of all rows of a part in least squares: the larger, the smaller its cell is.

        Rows are in units of the solution, as its mean square is. What an equation of order m lacks in a small cell is
        felt far away as in the energy, where derivatives of order m/2 count; half an order less, as values that jump
        have no energy. On a line, where sums over branches tell all that is felt far away, all count alike.
        """
        if self.layout.reference.dimension == 1:
            return 1.0
        return float((self.layout.root.size / part.cell.size).min() ** self._emphasised)

    @cached_property
    def _emphasised(self) -> float:
        return max(float(self.orders.max()) - 1.0, 0.0) / 2

    def only_terms(
        self, statement: Statement, part: CellPart, X: FloatArray, normals: FloatArray | None, axis: int | None = None
    ) -> list[Term]:
        """Return the terms of a statement at points of a part, without its source; those along an axis are enough."""
        if statement.form.is_linear:
            return self.terms(statement, X, normals, [], axis)
        return self.lowered(statement, part, X, normals)[0]

    def _conditions(
        self, part: CellPart, units: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, list[tuple[Rule, list[Stated], Any]]]:
        """Return the rows of all conditions, right-hand sides, how balances depend on them, and those by place."""
        placed: list[tuple[Rule, list[Stated], Any]] = []
        blocks, rights = [np.empty((0, self.width))], [np.empty((0, self.sides))]
        flows = [np.empty((len(self.equations), 0))]
        for place, rule in part.boundary.items():
            own = self._on_boundary(part, place, rule)
            made = self._at(part, rule.points, [one.terms for one in own], units)
            rows = [one.weighed(block) for one, block in zip(own, made, strict=True)]
            placed.append((rule, own, rows))
            blocks += rows
            rights += [-one.weighed(self._sources(part, one)) for one in own]
            lowered = [(one.terms, self.factor(one.statement, part, one.terms, units)) for one in own]
            flow = self.flux.of_conditions(part, rule, lowered, _depth(part, rule))
            seen = own[0].seen if own else None
            flows.append(flow if seen is None else flow @ np.kron(np.eye(len(own)), seen))
        for one in self._at_points(part):
            blocks.append(one.weighed(self._at(part, one.points, [one.terms], units)[0]))
            rights.append(-one.weighed(self._sources(part, one)))
            flows.append(np.zeros((len(self.equations), len(one.points))))
        return np.concatenate(blocks), np.concatenate(rights), np.hstack(flows), placed

    def on(self, place: Any) -> list[Statement]:
        """Return the conditions that hold on a part of the boundary."""
        if place not in self._on:
            self._on[place] = [s for s in self.problem.statements if s.place is place or s.place == place]
        return self._on[place]

    def boundary_key(self, part: CellPart, rows: PartRows) -> Any:
        """Return a key that whole parts with equal rows of conditions share; None where the rows are the part's own."""
        found, count = [], 0
        for place, rule in part.boundary.items():
            forms = [statement.form for statement in self.on(place)]
            if not all(form.is_linear and form.is_constant for form in forms):
                return None
            area, depth = rule.weights.sum(), _depth(part, rule)
            arrays = (
                on_grid(part.local(rule.points)),
                np.round(rule.weights / area, _DIGITS),
                np.round(rule.normals, _DIGITS) + 0.0,
            )
            terms = [self.terms(statement, rule.points, rule.normals, []) for statement in self.on(place)]
            scaled = tuple(
                self._scaled(own, part.half, rows.units, self.factor(statement, part, own, rows.units))
                for statement, own in zip(self.on(place), terms, strict=True)
            )
            found.append((float(f"{area * depth / part.extent:.12g}"), scaled, *(array.tobytes() for array in arrays)))
            count += len(forms) * len(rule.weights)
        return tuple(found) if count == len(rows.value) else None

    def factor(self, statement: Statement, part: CellPart, found: list[Term], units: FloatArray) -> float:
        """Return the factor of the rows of a condition on a part, beside the roots of weights."""
        key = (part, id(statement))
        if key not in self._factors:
            size = float((self.sizes(found, part.half) * units).max())
            self._factors[key] = statement.weight * (_EXACT if statement.exact else 1.0) / (size if size > 0 else 1.0)
        return self._factors[key]

    def _on_boundary(self, part: CellPart, place: Any, rule: Rule) -> list[Stated]:
        """Return the conditions on a piece of the boundary at the points of its rule."""
        units, roots, seen = self.balance(part)[1], np.sqrt(rule.weights * _depth(part, rule)), self._seen(part, rule)
        found = []
        for statement in self.on(place):
            terms, source = self.lowered(statement, part, rule.points, rule.normals)
            factors = self.factor(statement, part, terms, units) * roots
            found.append(Stated(statement, rule.points, rule.normals, terms, source, factors, seen))
        return found

    def _seen(self, part: CellPart, rule: Rule) -> FloatArray | None:
        """Return smooth functions on a boundary in space of many flat pieces, times roots of weights; else None.

        Cells do not end at blunt edges if there are many. What conditions lack at these alternates from piece to piece,
        and counts as far as smooth functions see it: else a solution would rather be flat there than lack it.
        """
        if part.whole or len(part.half) < 3:
            return None
        pieces = len(np.unique(rule.normals.round(_ALIKE), axis=0))
        # A flat piece has as many points as a square; a curved one has a normal at each, or along a line.
        if pieces < _MANY or 2 * len(rule.normals) < pieces * (self.layout.reference.degree + 1) ** 2:
            return None
        return polynomials(part.local(rule.points), rule.weights, round(_SEEN * self.layout.reference.degree))[0]

    def _at_points(self, part: CellPart) -> list[Stated]:
        """Return the conditions at single points, at those of them that a part has."""
        found, units = [], self.balance(part)[1]
        for statement in self.problem.statements:
            points = statement.place.points if isinstance(statement.place, AtPoints) else None
            mine = () if points is None else self.layout.owned(part, points)
            if points is None or not len(mine):
                continue
            X = points[mine]
            terms, source = self.lowered(statement, part, X, None)
            share = np.sqrt(self.layout.volume / len(points))
            factors = np.full(len(X), self.factor(statement, part, terms, units) * share)
            if statement.noise is not None:
                factors *= statement.noise.min() / statement.noise[mine]
            if statement.targets is not None:
                source = source - statement.targets[mine]
            found.append(Stated(statement, X, None, terms, source, factors))
        return found

    @cached_property
    def flux(self) -> Fluxes:
        """The fluxes across faces."""
        return Fluxes(self)

    @cached_property
    def averages(self) -> tuple[Statement, ...]:
        """The conditions on averages over the domain."""
        return tuple(s for s in self.problem.statements if isinstance(s.place, Average))

    def average(self, part: CellPart, units: FloatArray, statement: Statement) -> tuple[FloatArray, FloatArray]:
        """Return a part's share of an average over the domain: a row, and its share of the right-hand sides."""
        X, weights = self.layout.quadrature(part)
        if not len(X):
            return np.zeros(self.width), np.zeros(self.sides)
        found, source = self.lowered(statement, part, X, None)
        factor = statement.weight * (_EXACT if statement.exact else 1.0) / np.sqrt(self.layout.volume)
        (row,) = self._at(part, None if X is part.points else X, [found], units, factor * weights[None])
        own = Stated(statement, X, None, found, source, factor * weights)
        return row[0], -own.factors @ self._sources(part, own)

    def _traces(self, part: CellPart, face: Face, units: FloatArray) -> FloatArray:
        """Return, for every field and derivative that is continuous across a face, its coefficients there, as rows."""
        X, unit, depth = self.on_side(part, face), self.face_units(face), face.thickness
        wanted = self.shared(face)
        terms = [self.flux.shared_terms(part, face, number, order) for number, order in wanted]
        scales = [np.sqrt(depth) * (depth / 2) ** order / unit[number] for number, order in wanted]
        if face.whole and not any(np.ndim(value) for own in terms for _, _, value in own):
            return self._whole_traces(part, face, terms, units, scales)
        polynomials = (face.basis * np.sqrt(face.weights)[:, None]).T
        found = self._at(part, X, terms, units, polynomials)
        return np.vstack([np.empty((0, self.width)), *(scale * own for scale, own in zip(scales, found, strict=True))])

    def _whole_traces(
        self, part: CellPart, face: Face, terms: list[list[Term]], units: FloatArray, scales: list[float]
    ) -> FloatArray:
        """Return the same on a whole face where coefficients are numbers: many faces have their integrals in common."""
        values = self.layout.moments(part, face, self.on_side(part, face), _indices(terms))
        share, size, step = (
            math.sqrt(face.area / 2 ** (len(part.half) - 1)),
            self.width // len(units),
            face.basis.shape[1],
        )
        found = np.zeros((step * len(terms), self.width))
        for k, own in enumerate(terms):
            for number, index, value in own:
                block = found[k * step : (k + 1) * step, number * size : (number + 1) * size]
                block += (value * scales[k] * share * units[number] / _power(part.half, index)) * values[index]
        return found

    def on_side(self, part: CellPart, face: Face) -> FloatArray:
        """Return the points of a face as the part on one side of it has them: on a torus, those differ."""
        if face.above is not part or face.below is part or not face.shift:
            return face.points
        X = face.points.copy()
        X[:, face.axis] -= face.shift
        return X

    def traced(self, part: CellPart, face: Face, units: FloatArray) -> FloatArray:
        """Return the coefficients on a face of all that is continuous across it, as rows."""
        if (part, face) in self._traced:
            return self._traced[part, face]
        found = self._traces(part, face, units)
        # A nonlinear iteration asks again; what flows across a seam may depend on the state.
        if self.state is not None and face.normals is None:
            self._traced[part, face] = found
        return found

    def traced_right(self, part: CellPart, face: Face) -> FloatArray:
        """Return the right-hand sides of :meth:`traced`: zero but for known values across interfaces."""
        step = face.basis.shape[1]
        wanted = self.shared(face)
        found = np.zeros((step * len(wanted), self.sides))
        for k, block in enumerate(wanted if face.crossed else ()):
            law = self.flux.law(part, face, *block)
            if law is not None:
                roots = np.sqrt(face.thickness * face.weights) / law.size
                found[k * step : (k + 1) * step, 0] = face.basis.T @ (roots * law.right)
        return found

    def face_units(self, face: Face) -> FloatArray:
        """Return the unit of each field on a face."""
        if face not in self._face_units:
            self._face_units[face] = np.sqrt(self.balance(face.below)[1] * self.balance(face.above)[1])
        return self._face_units[face]

    def shared(self, face: Face) -> list[tuple[int, int]]:
        """Return the fields and orders of derivative that are continuous across a face."""
        if face.shift:
            return self._periodic[face.axis]
        if face.normals is not None:
            return self.flux.across_seams
        return self._continuous[face.axis]

    @cached_property
    def _continuous(self) -> list[list[tuple[int, int]]]:
        """Fields and orders that are continuous across walls, by their axis."""
        along = self.orders.T.tolist()
        return [[(f, order) for f, most in enumerate(own) for order in range(most)] for own in along]

    @cached_property
    def _periodic(self) -> dict[int, list[tuple[int, int]]]:
        """Fields and orders that continue across the ends of each periodic axis."""
        found: dict[int, list[tuple[int, int]]] = {}
        for statement in self.problem.statements:
            if isinstance(statement.place, Opposite):
                (term,) = statement.form.terms
                axis = int(np.flatnonzero(statement.place.low.normals(statement.place.low.sample(1).points)[0])[0])
                number = self.problem.field_names.index(term.field)
                found.setdefault(axis, []).append((number, term.order))
        return found

    @cached_property
    def periodic(self) -> tuple[int, ...]:
        """The axes whose ends meet."""
        return tuple(self._periodic)

    def along(self, axis: int, order: int) -> MultiIndex:
        """Return the derivative of an order along an axis."""
        return _along(self.layout.reference.dimension, axis, order)

    def values(self, part: CellPart, X: FloatArray | None, indices: list[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the functions in the coordinates of the part: at points, or at its own."""
        return self.layout.nodes(part, part.points if X is None else X, indices)

    def lowered(
        self, statement: Statement, part: CellPart, X: FloatArray, normals: FloatArray | None
    ) -> tuple[list[Term], FloatArray]:
        """Return the terms of a statement at points of a part, linearised at the state, and its source."""
        form = statement.form
        if form.is_linear:
            return self.terms(statement, X, normals, []), form.source_function(X, normals)
        if self.state is None:
            raise ProblemError("A nonlinear problem has rows only at a state.")
        slots = self.state(part, X, [(term.field, term.multi_index) for term in form.terms])
        found, source = self._tangent(statement, X, normals, slots)
        if self.share == 1.0:
            return found, source
        nothing = [np.zeros(len(X)) for _ in slots]
        base, at_base = self._tangent(statement, X, normals, nothing)
        mixed = [
            (*one[:2], self.share * one[2] + (1.0 - self.share) * two[2]) for one, two in zip(found, base, strict=True)
        ]
        return mixed, self.share * source + (1.0 - self.share) * at_base

    def terms(
        self,
        statement: Statement,
        X: FloatArray,
        normals: FloatArray | None,
        slots: list[FloatArray],
        axis: int | None = None,
    ) -> list[Term]:
        """Return the terms of a statement at points, where its fields and their derivatives are known if need be.

        With an axis, only those with derivatives along it.
        """
        form, names = statement.form, self.problem.field_names
        return [
            (names.index(term.field), term.multi_index, f(X, normals, slots) if f.constant is None else f.constant)
            for term, f in zip(form.terms, form.coefficient_functions, strict=True)
            if axis is None or term.multi_index[axis]
        ]

    def _tangent(
        self, statement: Statement, X: FloatArray, normals: FloatArray | None, slots: list[FloatArray]
    ) -> tuple[list[Term], FloatArray]:
        found = self.terms(statement, X, normals, slots)
        # The unknown is the next state itself, not the step to it.
        here = sum(value * slot for (_, _, value), slot in zip(found, slots, strict=True))
        source = np.asarray(statement.form.residual_function(X, normals, slots) - here)
        if self.diffusion != 1.0 and statement.is_equation:
            found = [
                (*own[:2], own[2] * self.diffusion if term.order > 1 and not depends else own[2])
                for own, term, depends in zip(found, statement.form.terms, statement.form.depends, strict=True)
            ]
        return found, source

    def sizes(self, coefficients: list[Term], half: FloatArray) -> FloatArray:
        """Return the largest term of every field."""
        found = np.zeros(len(self.problem.field_names))
        for number, index, value in coefficients:
            size = float(np.sqrt(np.mean(np.square(value)))) if np.ndim(value) else abs(value)
            found[number] = max(found[number], size / _power(half, index))
        return found

    def _at(
        self,
        part: CellPart,
        X: FloatArray | None,
        terms: list[list[Term]],
        units: FloatArray,
        left: FloatArray | None = None,
    ) -> list[FloatArray]:
        """Return rows of all functions of a part for lists of terms, at points or summed over them, or at its own.

        What is asked once is summed up before it is spelt out in functions; elsewhere their derivatives are kept.
        """
        indices = _indices(terms)
        again = part.whole or (left is None and (self.state is not None or self.columns is not None))
        fields = [(k, number) for k, own in enumerate(terms) for number in dict.fromkeys(n for n, _, _ in own)]
        if again or (left is None and len(fields) > len(indices)):
            values = self.values(part, X, indices)
            found = [self._combined(own, values, part.half, units) for own in terms]
            return found if left is None else [left @ own for own in found]
        points = part.points if X is None else X
        forms: list[dict[MultiIndex, Any]] = [{} for _ in fields]
        for form, (k, number) in zip(forms, fields, strict=True):
            for _, index, value in (own for own in terms[k] if own[0] == number):
                scale = units[number] / _power(part.half, index)
                form[index] = form.get(index, 0.0) + value * scale
        made = self.layout.reference.combine(part.local(points), forms, left)
        size = self.layout.reference.size
        found = [np.zeros((len(points) if left is None else len(left), self.width)) for _ in terms]
        for (k, number), own in zip(fields, made, strict=True):
            found[k][:, number * size : (number + 1) * size] = own
        return found

    def _combined(
        self, coefficients: list[Term], values: dict[MultiIndex, FloatArray], half: FloatArray, units: FloatArray
    ) -> FloatArray:
        size = self.layout.reference.size
        blocks: list[FloatArray | None] = [None] * len(units)
        for number, index, value in coefficients:
            scale = value * (units[number] / _power(half, index))
            block, known = values[index] * (scale[:, None] if np.ndim(scale) else scale), blocks[number]
            blocks[number] = block if known is None else np.add(known, block, out=known)
        if len(blocks) == 1 and blocks[0] is not None:
            return blocks[0]
        found = np.zeros((len(next(iter(values.values()))), self.width))
        for number, known in enumerate(blocks):
            if known is not None:
                found[:, number * size : (number + 1) * size] = known
        return found


@lru_cache(maxsize=256)
def _along(dimension: int, axis: int, order: int) -> MultiIndex:
    return tuple(order if i == axis else 0 for i in range(dimension))


def _indices(terms: list[list[Term]]) -> list[MultiIndex]:
    """Return the derivatives in lists of terms."""
    return list(dict.fromkeys(index for own in terms for _, index, _ in own))


def _depth(part: CellPart, rule: Rule) -> float:
    """Return how deep a part is behind a piece of its boundary."""
    return float((np.abs(rule.normals) @ (2 * part.half)).mean())


def _flows_evenly(terms: list[Term], rule: Rule) -> bool:
    """Tell whether all derivatives in a condition are along the normal, with one coefficient on a piece of boundary."""
    flow: dict[int, FloatArray] = {}
    for number, index, value in terms:
        if sum(index) == 1:
            own = flow.setdefault(number, np.zeros_like(rule.normals))
            own[:, index.index(1)] += value
    even = all(np.allclose(own, (own * rule.normals).sum(axis=1).mean() * rule.normals) for own in flow.values())
    return even and max(sum(index) for _, index, _ in terms) <= 1


def _power(half: FloatArray, index: MultiIndex) -> float:
    """Return the product of half sides to the powers of a derivative."""
    return math.prod(float(side) ** order for side, order in zip(half.tolist(), index, strict=True))
