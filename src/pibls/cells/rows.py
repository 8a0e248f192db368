"""The rows of a problem on a part of a cell: equation, conditions, and what is shared across faces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.balance import balanced
from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart, Face
from pibls.cells.surface import Rule
from pibls.cells.switches import switching_planes
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.features import MultiIndex
from pibls.problem import AtPoints, Average, OnPart, Opposite, Problem, Statement

__all__ = ["PartRows", "Rows"]

Term = tuple[int, MultiIndex, Any]
State = Callable[[CellPart, FloatArray, Sequence[tuple[str, MultiIndex]]], list[FloatArray]]

_EXACT = 1e5
_BESIDE = 1e-7
_JUMP = 1e-4  # relative change of a coefficient across a face that is a jump


@dataclass(frozen=True, eq=False)
class PartRows:
    """The rows of one part that concern it alone, in units of the solution.

    Attributes
    ----------
    units
        Unit of each field.
    equation, source
        Rows of the equations, and their right-hand side.
    condition, value
        Rows of the conditions, and their right-hand side.
    means, given
        Integrals of the equations over the part: rows, and the integrals of their sources.
    flows
        How the balance of every equation depends on the rows of the conditions.
    key
        Parts with equal keys have equal equation rows; None where they are its own.
    """

    units: FloatArray
    equation: FloatArray | None
    source: FloatArray
    condition: FloatArray
    value: FloatArray
    means: FloatArray
    given: FloatArray
    flows: FloatArray
    key: Any


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
    """

    layout: Layout
    state: State | None = None
    share: float = 1.0
    diffusion: float = 1.0
    known: set[Any] = field(default_factory=set)
    _balances: dict[CellPart, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    _magnitudes: dict[CellPart, list[list[Term]]] = field(default_factory=dict)
    _means: dict[Any, FloatArray] = field(default_factory=dict)
    _factors: dict[Any, float] = field(default_factory=dict)
    _traced: dict[Any, FloatArray] = field(default_factory=dict)

    def forget(self) -> None:
        """Scale rows anew."""
        for known in (self._balances, self._magnitudes, self._factors, self._traced):
            known.clear()

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.layout.problem

    @cached_property
    def equations(self) -> tuple[Statement, ...]:
        """The differential equations."""
        return tuple(s for s in self.problem.statements if s.is_equation)

    @cached_property
    def orders(self) -> Any:
        """Highest order of derivative of each field along each axis, shape (fields, axes)."""
        coordinates = self.problem.domain.coordinates
        return np.array(
            [
                [max(0, *(e.form.order_along(c, name) for e in self.equations)) for c in coordinates]
                for name in self.problem.field_names
            ]
        )

    @cached_property
    def is_constant(self) -> bool:
        """Whether all coefficients of the equations are numbers."""
        linear = all(e.form.is_linear for e in self.equations)
        return linear and all(f.constant is not None for e in self.equations for f in e.form.coefficient_functions)

    @property
    def width(self) -> int:
        """Number of unknowns of a part."""
        return self.layout.reference.size * len(self.problem.field_names)

    def of(self, part: CellPart) -> PartRows:
        """Return the rows of a part."""
        lowered = [self.lowered(e, part, part.points, None) for e in self.equations]
        rows, units = self.balance(part, [terms for terms, _ in lowered])
        key = None
        if part.whole and self.is_constant:
            key = tuple(float(f"{h:.12g}") for h in part.half)
        roots = np.sqrt(part.weights)
        source = np.concatenate([-r * roots * values for r, (_, values) in zip(rows, lowered, strict=True)])
        equation = None
        if key is None or key not in self.known:
            if key is not None:
                self.known.add(key)
            values = self._values(part, None, self._indices(self.equations))
            equation = np.concatenate(
                [
                    self._combined(found, values, part.half, units) * (r * roots)[:, None]
                    for r, (found, _) in zip(rows, lowered, strict=True)
                ]
            )
            shares = part.integrals / roots
            means = np.array([shares @ own for own in np.split(equation, len(rows))]) / rows[:, None]
            if key is not None:
                self._means[key] = means
        means = self._means[key] if key is not None else means
        given = np.array([part.integrals @ values for _, values in lowered])
        condition, value, flows = self._conditions(part, units)
        return PartRows(units, equation, source, condition, value, means, given, flows, key)

    def balance(self, part: CellPart, coefficients: list[list[Term]] | None = None) -> tuple[FloatArray, FloatArray]:
        """Return a factor per equation and a unit per field on a part."""
        if part not in self._balances:
            found = coefficients or [self.lowered(e, part, part.points, None)[0] for e in self.equations]
            sizes = np.array([self.sizes(terms, part.half) for terms in found])
            self._balances[part] = balanced(sizes, self.orders.max(axis=1))
        return self._balances[part]

    def magnitudes(self, part: CellPart) -> list[list[Term]]:
        """Return the size of every term of every equation on a part, where the field is one and varies evenly."""
        if part not in self._magnitudes:
            terms = [self.lowered(e, part, part.points, None)[0] for e in self.equations]
            self._magnitudes[part] = [
                [(number, index, float(np.sqrt(np.mean(np.square(value))))) for number, index, value in own]
                for own in terms
            ]
        return self._magnitudes[part]

    def weights(self, part: CellPart, half: FloatArray) -> FloatArray:
        """Return how much what an equation lacks in all over a box of some half sides counts, one per equation.

        A source of one in the box changes the solution by as much, in the mean square over the box.
        """
        sizes = np.array([self.sizes(own, half) for own in self.magnitudes(part)])
        factors, _ = balanced(sizes, self.orders.max(axis=1))
        return np.asarray(factors / np.sqrt(np.prod(2 * half)))

    def flows(self, part: CellPart, face: Face, below: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what flows out of a part across a face, by every equation: by its own weights, and by what is shared.

        ``below`` are the rows of the part for what is shared.
        """
        X = self._inward(part, face)
        out = 1.0 if face.below is part else -1.0
        area = float(face.weights.sum())
        sign = np.sign(face.basis[:, 0].sum())
        unit, depth = self.face_units(face), face.thickness
        shared, step = self.shared(face), face.basis.shape[1]
        found = np.zeros((len(self.equations), step * len(shared)))
        rises = np.zeros_like(found)
        own = np.zeros((len(self.equations), self.width))
        for i, equation in enumerate(self.equations):
            terms = {(number, index): value for number, index, value in self._only_terms(equation, part, X, None)}
            for k, (number, order) in enumerate(shared):
                value = terms.get((number, self._along(face.axis, order + 1)))
                if value is not None:
                    mean = float(face.weights @ np.broadcast_to(value, face.weights.shape)) / area
                    scale = np.sqrt(area) * sign * unit[number] / (np.sqrt(depth) * (depth / 2) ** order)
                    found[i, k * step] = out * mean * scale / self._share_of_flux(part, face, number, order)
                if order == 0 and face.ends is not None:
                    mixed = terms.get((number, (1, 1)))
                    if mixed is not None:
                        share = float(np.mean(mixed)) * self.mixed_shares.get((i, number, face.axis), 0.5)
                        rises[i, k * step : (k + 1) * step] = out * share * face.ends * unit[number] / np.sqrt(depth)
                        own[i] += out * share * self._rise(part, face, number)
        return own + found @ below, found + rises

    def _rise(self, part: CellPart, face: Face, number: int) -> FloatArray:
        """Return by how much a field rises from the lower to the upper end of a face, as a row."""
        X = self._on_side(part, face)
        other = 1 - face.axis
        middle, length = (X[:, other].min() + X[:, other].max()) / 2, float(face.weights.sum())
        ends = np.tile(X[0], (2, 1))
        ends[:, other] = middle - length / 2, middle + length / 2
        zero, k = (0, 0), self.layout.reference.size
        values = self._values(part, ends, [zero])[zero]
        row = np.zeros(self.width)
        row[number * k : (number + 1) * k] = (values[1] - values[0]) * self.balance(part)[1][number]
        return row

    @cached_property
    def mixed_shares(self) -> dict[tuple[int, int, int], float]:
        """Which share of a mixed derivative of a field flows across the faces of an axis, in a plane.

        The equation alone does not say; conditions that give what flows out do. Without any it does not matter.
        """
        found: dict[tuple[int, int, int], float] = {}
        for statement in self.problem.statements:
            if not isinstance(statement.place, OnPart) or len(self.problem.domain.coordinates) != 2:
                continue
            if not statement.form.is_linear:
                continue
            X, normals = statement.place.part.sample(1)
            axis = int(np.abs(normals[0]).argmax())
            if abs(normals[0, axis]) < 1 - 1e-9:
                continue
            given = {(n, index): float(np.mean(v)) for n, index, v in self._terms(statement, X, normals, [])}
            for i, equation in enumerate(self.equations):
                if not equation.form.is_linear:
                    continue
                own = {(n, index): float(np.mean(v)) for n, index, v in self._terms(equation, X, None, [])}
                found.update(_shares(own, given, i, axis))
        return found

    def _only_terms(
        self, statement: Statement, part: CellPart, X: FloatArray, normals: FloatArray | None
    ) -> list[Term]:
        if statement.form.is_linear:
            return self._terms(statement, X, normals, [])
        return self.lowered(statement, part, X, normals)[0]

    def _condition_flows(
        self, part: CellPart, rule: Rule, lowered: list[tuple[list[Term], float]], depth: float
    ) -> FloatArray:
        """Return how the balance of every equation depends on rows of conditions that say what flows out.

        Shape (equations, conditions · points).
        """
        n, count = rule.normals, len(rule.weights)
        found = np.zeros((len(self.equations), len(lowered) * count))
        area = float(rule.weights.sum())
        for i, equation in enumerate(self.equations):
            flux: dict[tuple[int, int], float] = {}
            try:
                terms = self._only_terms(equation, part, rule.points, None)
            except ProblemError:
                continue  # coefficients may be infinite at the boundary, as in polar coordinates
            for number, index, value in terms:
                axis = int(np.argmax(index))
                if sum(index) == index[axis] > 0:
                    out = float(rule.weights @ (value * n[:, axis] ** index[axis])) / area
                    flux[number, index[axis]] = flux.get((number, index[axis]), 0.0) + out
            for (number, order), size in flux.items():
                given = [self._given(own, number, order - 1, rule) for own, _ in lowered]
                best = int(np.argmax(np.abs(given)))
                if given[best] != 0.0 and size != 0.0:
                    rows = slice(best * count, (best + 1) * count)
                    found[i, rows] += size / given[best] * np.sqrt(rule.weights / depth) / lowered[best][1]
        return found

    def _given(self, terms: list[Term], number: int, order: int, rule: Rule) -> float:
        """Return the mean coefficient of a normal derivative of a field in a condition."""
        total, area = 0.0, float(rule.weights.sum())
        for field_number, index, value in terms:
            axis = int(np.argmax(index))
            if field_number == number and sum(index) == index[axis] == order:
                total += float(rule.weights @ (value * rule.normals[:, axis] ** order)) / area
        return total

    def _conditions(self, part: CellPart, units: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        blocks, rights = [np.empty((0, self.width))], [np.empty(0)]
        flows = [np.empty((len(self.equations), 0))]
        for place, rule in part.boundary.items():
            own = [s for s in self.problem.statements if s.place is place or s.place == place]
            values = self._values(part, rule.points, self._indices(own))
            depth = float((np.abs(rule.normals) @ (2 * part.half)).mean())
            lowered: list[tuple[list[Term], float]] = []
            for statement in own:
                found, source = self.lowered(statement, part, rule.points, rule.normals)
                factor = self.factor(statement, part, found, units)
                factors = factor * np.sqrt(rule.weights * depth)
                blocks.append(self._combined(found, values, part.half, units) * factors[:, None])
                rights.append(-factors * source)
                lowered.append((found, factor))
            flows.append(self._condition_flows(part, rule, lowered, depth))
        for statement in self.problem.statements:
            if isinstance(statement.place, AtPoints):
                mine = self.layout.owned(part, statement.place.points)
                if len(mine):
                    block, right = self._at_points(part, units, statement, mine)
                    blocks.append(block)
                    rights.append(right)
                    flows.append(np.zeros((len(self.equations), len(right))))
        return np.concatenate(blocks), np.concatenate(rights), np.hstack(flows)

    def factor(self, statement: Statement, part: CellPart, found: list[Term], units: FloatArray) -> float:
        """Return what the rows of a condition on a part are multiplied with, beside the roots of weights."""
        key = (part, id(statement))
        if key not in self._factors:
            size = float((self.sizes(found, part.half) * units).max())
            self._factors[key] = statement.weight * (_EXACT if statement.exact else 1.0) / (size if size > 0 else 1.0)
        return self._factors[key]

    def _at_points(
        self, part: CellPart, units: FloatArray, statement: Statement, mine: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Return the rows of a condition at some of its points."""
        assert isinstance(statement.place, AtPoints)
        X = statement.place.points[mine]
        found, source = self.lowered(statement, part, X, None)
        values = self._values(part, X, self._indices([statement]))
        share = np.sqrt(self.layout.volume / len(statement.place.points))
        factors = np.full(len(X), self.factor(statement, part, found, units) * share)
        if statement.noise is not None:
            factors *= statement.noise.min() / statement.noise[mine]
        right = -source
        if statement.targets is not None:
            right = right + statement.targets[mine]
        return self._combined(found, values, part.half, units) * factors[:, None], factors * right

    @cached_property
    def averages(self) -> tuple[Statement, ...]:
        """The conditions on averages over the domain."""
        return tuple(s for s in self.problem.statements if isinstance(s.place, Average))

    def average(self, part: CellPart, units: FloatArray, statement: Statement) -> tuple[FloatArray, float]:
        """Return what a part adds to an average over the domain: a row, and its share of the right-hand side."""
        X, weights = self.layout.quadrature(part)
        if not len(X):
            return np.zeros(self.width), 0.0
        found, source = self.lowered(statement, part, X, None)
        values = self._values(part, None if X is part.points else X, self._indices([statement]))
        factor = statement.weight * (_EXACT if statement.exact else 1.0) / np.sqrt(self.layout.volume)
        row = (factor * weights) @ self._combined(found, values, part.half, units)
        return row, -float(factor * weights @ source)

    def traces(self, part: CellPart, face: Face, units: FloatArray) -> list[FloatArray]:
        """Return, for every field and derivative that is continuous across a face, its rows at the points there."""
        X = self._on_side(part, face)
        wanted = self.shared(face)
        indices = [self._along(face.axis, order) for _, order in wanted]
        values = self._values(part, X, list(dict.fromkeys(indices)))
        k = self.layout.reference.size
        found = []
        unit = self.face_units(face)
        for (number, order), index in zip(wanted, indices, strict=True):
            block = np.zeros((len(X), self.width))
            factor = np.sqrt(face.thickness) * (face.thickness / 2) ** order / part.half[face.axis] ** order
            factor *= units[number] / unit[number] * self._share_of_flux(part, face, number, order)
            block[:, number * k : (number + 1) * k] = values[index] * (factor * np.sqrt(face.weights))[:, None]
            found.append(block)
        return found

    def _on_side(self, part: CellPart, face: Face) -> FloatArray:
        """Return the points of a face as the part on one side of it has them: on a torus, those differ."""
        if face.above is not part or face.below is part or not face.shift:
            return face.points
        X = face.points.copy()
        X[:, face.axis] -= face.shift
        return X

    def _inward(self, part: CellPart, face: Face) -> FloatArray:
        """Return points of a part just beside a face, where its coefficients are its own."""
        X = self._on_side(part, face).copy()
        X[:, face.axis] += _BESIDE * part.half[face.axis] * (-1.0 if face.below is part else 1.0)
        return X

    def _share_of_flux(self, part: CellPart, face: Face, number: int, order: int) -> float:
        """Return the coefficient of the flux on one side of a face over that of both; 1 unless it jumps there."""
        if not self.switches or order + 1 < self.orders[number, face.axis]:
            return 1.0
        index, sides = self._along(face.axis, order + 1), []
        for side in (face.below, face.above):
            X = self._inward(side, face)
            found = [
                float(np.mean(np.broadcast_to(value, len(X))))
                for e in self.equations
                for n, i, value in self._only_terms(e, side, X, None)
                if (n, i) == (number, index)
            ]
            sides.append(max(found, key=abs, default=1.0))
        below, above = sides
        if below * above <= 0 or abs(below - above) <= _JUMP * max(abs(below), abs(above)):
            return 1.0
        own = below if part is face.below else above
        return own / float(np.sqrt(below * above))

    @cached_property
    def switches(self) -> bool:
        """Whether data switch anywhere."""
        return bool(len(switching_planes(self.problem)))

    def traced(self, part: CellPart, face: Face, units: FloatArray) -> FloatArray:
        """Return the coefficients on a face of all that is continuous across it, as rows."""
        if (part, face) in self._traced:
            return self._traced[part, face]
        found = np.vstack([np.empty((0, self.width)), *(face.basis.T @ t for t in self.traces(part, face, units))])
        if self.state is not None:
            self._traced[part, face] = found  # a nonlinear iteration asks again
        return found

    def face_units(self, face: Face) -> FloatArray:
        """Return the unit of each field on a face."""
        return np.asarray(np.sqrt(self.balance(face.below)[1] * self.balance(face.above)[1]))

    def shared(self, face: Face) -> list[tuple[int, int]]:
        """Return the fields and orders of derivative that are continuous across a face."""
        if face.shift:
            return self._periodic[face.axis]
        return [(f, order) for f, orders in enumerate(self.orders) for order in range(orders[face.axis])]

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

    def _along(self, axis: int, order: int) -> MultiIndex:
        return tuple(order if i == axis else 0 for i in range(self.layout.reference.dimension))

    def _indices(self, statements: Sequence[Statement]) -> list[MultiIndex]:
        return list(dict.fromkeys(term.multi_index for s in statements for term in s.form.terms))

    def _values(self, part: CellPart, X: FloatArray | None, indices: list[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the functions in the coordinates of the part: at points, or at its own."""
        return self.layout.nodes(part, part.points if X is None else X, indices)

    def lowered(
        self, statement: Statement, part: CellPart, X: FloatArray, normals: FloatArray | None
    ) -> tuple[list[Term], FloatArray]:
        """Return the terms of a statement at points of a part, linearised at the state, and its source."""
        form = statement.form
        if form.is_linear:
            return self._terms(statement, X, normals, []), form.source_function(X, normals)
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

    def _terms(
        self, statement: Statement, X: FloatArray, normals: FloatArray | None, slots: list[FloatArray]
    ) -> list[Term]:
        form, names = statement.form, self.problem.field_names
        return [
            (names.index(term.field), term.multi_index, f(X, normals, slots) if f.constant is None else f.constant)
            for term, f in zip(form.terms, form.coefficient_functions, strict=True)
        ]

    def _tangent(
        self, statement: Statement, X: FloatArray, normals: FloatArray | None, slots: list[FloatArray]
    ) -> tuple[list[Term], FloatArray]:
        found = self._terms(statement, X, normals, slots)
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
            size = float(np.sqrt(np.mean(np.square(value)))) / float(np.prod(half ** np.array(index)))
            found[number] = max(found[number], size)
        return found

    def _combined(
        self, coefficients: list[Term], values: dict[MultiIndex, FloatArray], half: FloatArray, units: FloatArray
    ) -> FloatArray:
        k = self.layout.reference.size
        first = next(iter(values.values()))
        found = np.zeros((len(first), self.width))
        for number, index, value in coefficients:
            scale = value * (units[number] / float(np.prod(half ** np.array(index))))
            block = values[index] * (scale[:, None] if np.ndim(scale) else scale)
            found[:, number * k : (number + 1) * k] += block
        return found


def _shares(
    own: dict[tuple[int, MultiIndex], float], given: dict[tuple[int, MultiIndex], float], i: int, axis: int
) -> dict[tuple[int, int, int], float]:
    """Return the shares of the mixed derivatives of an equation that a condition on a side across an axis tells."""
    along, across = ((1, 0), (0, 1)) if axis == 0 else ((0, 1), (1, 0))
    double = (2 * along[0], 2 * along[1])
    normal = [(n, value) for (n, index), value in given.items() if index == along and value]
    ratios = [own[n, double] / value for n, value in normal if own.get((n, double))]
    if not ratios:
        return {}
    found = {}
    for (number, index), value in own.items():
        if index == (1, 1) and value:
            share = ratios[0] * given.get((number, across), 0.0) / value
            found[i, number, axis], found[i, number, 1 - axis] = share, 1.0 - share
    return found
