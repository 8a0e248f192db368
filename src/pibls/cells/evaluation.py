"""Evaluates the statements of a problem at points of a part, linearised at a state, for the functions of a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.features import MultiIndex
from pibls.problem import AtPoints, Average, Problem, Statement
from pibls.problem.analysis import analysis_of

__all__ = [
    "Evaluation",
    "Place",
    "Sources",
    "State",
    "PlacedStatement",
    "Term",
    "RowRequest",
    "indices_of",
    "mean_size",
    "power",
]

Term = tuple[int, MultiIndex, Any]
Place = tuple[CellPart, FloatArray, FloatArray | None]
"""Points of a part where a statement holds, and their normals."""
State = Callable[[CellPart, FloatArray, Sequence[tuple[str, MultiIndex]]], list[FloatArray]]


@dataclass(frozen=True, eq=False)
class PlacedStatement:
    """A statement at points of a part, linearised at the state; rows and residuals are both made from it.

    Attributes
    ----------
    statement, points, normals
        The equation or condition, the points where it holds, and their normals.
    terms, source
        The coefficients of its terms at the points, and its source.
    factors
        Weight of each point in least squares.
    projection
        Smooth functions on which the rows are projected, on a boundary of many flat pieces; None elsewhere.
    """

    statement: Statement
    points: FloatArray
    normals: FloatArray | None
    terms: list[Term]
    source: FloatArray
    factors: FloatArray
    projection: FloatArray | None = None

    def weighed(self, values: FloatArray) -> FloatArray:
        """Return values at the points (one row each) as weighted, projected rows of least squares."""
        found = values * self.factors[:, None]
        return found if self.projection is None else self.projection.T @ found


Sources = Callable[[PlacedStatement, CellPart], FloatArray]
"""Returns other sources of a statement at its points in a part, one column per right-hand side."""


@dataclass(frozen=True, eq=False)
class RowRequest:
    """Rows over all functions of a part: one block for each of several lists of terms.

    Attributes
    ----------
    part, points
        The part, and points in it; None for its own points.
    terms, units
        The lists of terms, and the unit of each field.
    left
        Weights that combine the rows at the points; None if each point has a row.
    """

    part: CellPart
    points: FloatArray | None
    terms: list[list[Term]]
    units: FloatArray
    left: FloatArray | None = None

    @property
    def at(self) -> FloatArray:
        """The points."""
        return self.part.points if self.points is None else self.points

    @cached_property
    def forms(self) -> dict[tuple[int, int], dict[MultiIndex, Any]]:
        """Coefficients of derivatives in the coordinates of the part, by number of the list and by field."""
        found: dict[tuple[int, int], dict[MultiIndex, Any]] = {}
        for k, own in enumerate(self.terms):
            for number, index, value in own:
                form = found.setdefault((k, number), {})
                form[index] = form.get(index, 0.0) + value * (self.units[number] / power(self.part.half, index))
        return found

    @property
    def shape(self) -> Any:
        """Requests of equal shape can be evaluated together."""
        forms = tuple((*key, *form) for key, form in self.forms.items())
        return forms, len(self.terms), None if self.left is None else self.left.shape


@dataclass(eq=False)
class Evaluation:
    """Evaluates the statements of a linear problem, or of a nonlinear problem linearised at a state.

    Attributes
    ----------
    layout
        The problem on its domain.
    state
        The state at which a nonlinear problem is linearised.
    share
        Share of the load that is put in: of sources, data, and nonlinear terms beside linear ones of higher order.
    diffusion
        Factor of the linear terms of second and higher order in nonlinear equations.
    problem, equations
        The problem, and its differential equations.
    orders, highest, is_constant
        Highest order of derivative of each field along each axis, and along any, and whether all coefficients are
        constants.
    averages, at_points
        The conditions on averages over the domain, and those at single points, with these points.
    width
        Number of weights of a part: fields times functions.
    """

    layout: Layout
    state: State | None = None
    share: float = 1.0
    diffusion: float = 1.0

    def __post_init__(self) -> None:
        self.problem: Problem = self.layout.problem
        self.analysis = own = analysis_of(self.problem)
        self.equations, self.orders, self.is_constant = self.problem.laws.statements, own.orders, own.is_constant
        self.highest: FloatArray = self.orders.max(axis=1)
        places = [(own, own.place) for own in self.problem.statements]
        self.averages = tuple(own for own, place in places if isinstance(place, Average))
        self.at_points = tuple((own, place.points) for own, place in places if isinstance(place, AtPoints))
        self.width = self.layout.reference.size * len(self.problem.field_names)

    def only_terms(self, statement: Statement, part: CellPart, X: FloatArray, normals: FloatArray | None) -> list[Term]:
        """Return the terms of a statement at points, without its source."""
        if statement.form.is_linear:
            return self.terms(statement, X, normals, [])
        return self.lowered(statement, part, X, normals)[0]

    def along(self, axis: int, order: int) -> MultiIndex:
        """Return the multi-index of a derivative along one axis."""
        return _along(self.layout.reference.dimension, axis, order)

    def lowered_at(self, statement: Statement, places: Sequence[Place]) -> list[tuple[list[Term], FloatArray]]:
        """Return the terms and the source of a statement in many places; if it is linear, it is evaluated once."""
        if len(places) < 2 or not statement.form.is_linear:
            return [self.lowered(statement, *place) for place in places]
        ends = np.cumsum([len(X) for _, X, _ in places])[:-1]
        X = np.concatenate([X for _, X, _ in places])
        normals = None if places[0][2] is None else np.concatenate([own for _, _, own in places if own is not None])
        terms, source = self.lowered(statement, places[0][0], X, normals)
        values = [np.split(value, ends) if np.ndim(value) else [value] * len(places) for _, _, value in terms]
        return [
            ([(n, index, every[k]) for (n, index, _), every in zip(terms, values, strict=True)], own)
            for k, own in enumerate(np.split(source, ends))
        ]

    def terms_at(self, statement: Statement, places: Sequence[Place], axis: int | None) -> list[Term]:
        """Return the terms of a statement in many places with as many points each, shape (places, points).

        With an axis, return those along it; if the statement is linear, it is evaluated once.
        """
        if statement.form.is_linear:
            X = np.concatenate([own for _, own, _ in places])
            found = self.terms(statement, X, None, [], axis)
            return [(n, i, v.reshape(len(places), -1) if np.ndim(v) else v) for n, i, v in found]
        every = [self.lowered(statement, *place)[0] for place in places]
        return [
            (n, index, np.stack([np.broadcast_to(own[k][2], len(places[0][1])) for own in every]))
            for k, (n, index, _) in enumerate(every[0])
        ]

    def lowered(
        self, statement: Statement, part: CellPart, X: FloatArray, normals: FloatArray | None
    ) -> tuple[list[Term], FloatArray]:
        """Return the terms of a statement at points of a part, linearised at the state, and its source."""
        form = statement.form
        if form.is_linear:
            return self.terms(statement, X, normals, []), self.share * form.source_function(X, normals)
        if self.state is None:
            raise ProblemError("A nonlinear problem has rows only at a state.")
        slots = self.state(part, X, [(term.field, term.multi_index) for term in form.terms])
        return self._tangent(statement, X, normals, slots)

    def terms(
        self,
        statement: Statement,
        X: FloatArray,
        normals: FloatArray | None,
        slots: list[FloatArray],
        axis: int | None = None,
    ) -> list[Term]:
        """Return the terms of a statement at points; ``slots`` are the values of its fields and derivatives there.

        With an axis, return only the terms with derivatives along it.
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
        form = statement.form
        # The unknown is the next state, not the step to it.
        here = sum(value * slot for (_, _, value), slot in zip(found, slots, strict=True))
        source = np.asarray(form.residual_function(X, normals, slots) - here)
        diffusion = self.diffusion if statement.is_equation else 1.0
        if self.share == diffusion == 1.0:
            return found, source
        put_in = self.share
        if put_in < 1.0 and form.is_quasilinear:
            # An equation without its highest derivatives is none: only what it has at zero is put in.
            source = source - (1.0 - put_in) * form.residual_function(X, normals, [np.zeros_like(own) for own in slots])
            put_in = 1.0
        kinds = zip(found, form.terms, form.depends, strict=True)
        factors = ((own, put_in if depends else diffusion if term.order > 1 else 1.0) for own, term, depends in kinds)
        source = put_in * source
        return [(*own[:2], own[2] * factor) for own, factor in factors], source

    def sizes(self, coefficients: list[Term], half: FloatArray) -> FloatArray:
        """Return the size of the largest term of every field."""
        found = [0.0] * len(self.problem.field_names)
        for number, index, value in coefficients:
            found[number] = max(found[number], mean_size(value) / power(half, index))
        return np.array(found)

    def requested(self, wanted: Sequence[RowRequest]) -> list[list[FloatArray]]:
        """Return the wanted rows; functions are evaluated together at the points of all parts.

        Derivatives that are needed again are kept; otherwise they are combined before nodes become functions.
        """
        found: list[list[FloatArray]] = [[] for _ in wanted]
        together: dict[Any, list[int]] = {}
        for number, own in enumerate(wanted):
            if own.part.whole or (own.left is None and self.state is not None):
                values = self.layout.functions_at(own.part, own.at, indices_of(own.terms))
                blocks = [self._combined(terms, values, own) for terms in own.terms]
                found[number] = blocks if own.left is None else [own.left @ block for block in blocks]
            else:
                together.setdefault(own.shape, []).append(number)
        for numbers in together.values():
            for some in self.layout.reference.chunks([len(wanted[number].at) for number in numbers]):
                made = self._evaluated([wanted[number] for number in numbers[some]])
                for number, blocks in zip(numbers[some], made, strict=True):
                    found[number] = blocks
        return found

    def _evaluated(self, wanted: Sequence[RowRequest]) -> Iterator[list[FloatArray]]:
        """Yield wanted rows of one shape, each list of terms as one array."""
        counts = [len(own.at) for own in wanted]
        X = np.concatenate([own.part.local(own.at) for own in wanted])
        reference, forms, indices = self.layout.reference, wanted[0].forms, indices_of(wanted[0].terms)
        if wanted[0].left is None and len(forms) > len(indices):
            values = reference.evaluate(X, indices)
            for own, stop, count in zip(wanted, accumulate(counts), counts, strict=True):
                mine = {index: every[stop - count : stop] for index, every in values.items()}
                yield [self._combined(terms, mine, own) for terms in own.terms]
            return
        columns = [
            {index: _column([own.forms[key][index] for own in wanted], counts) for index in form}
            for key, form in forms.items()
        ]
        left = None if wanted[0].left is None else np.stack([own.left for own in wanted if own.left is not None])
        made = reference.combine(X, columns, left)
        if left is not None:
            counts = [left.shape[1]] * len(wanted)
        size = reference.size
        every = [np.zeros((sum(counts), self.width)) for _ in wanted[0].terms]
        for (k, number), block in zip(forms, made, strict=True):
            every[k][:, number * size : (number + 1) * size] = block
        for stop, count in zip(accumulate(counts), counts, strict=True):
            yield [block[stop - count : stop] for block in every]

    def _combined(self, terms: list[Term], values: dict[MultiIndex, FloatArray], wanted: RowRequest) -> FloatArray:
        """Return the rows of a list of terms from derivatives of the functions."""
        size, units = self.layout.reference.size, wanted.units
        blocks: list[FloatArray | None] = [None] * len(units)
        for number, index, value in terms:
            scale = value * (units[number] / power(wanted.part.half, index))
            block, known = values[index] * (scale[:, None] if np.ndim(scale) else scale), blocks[number]
            blocks[number] = block if known is None else np.add(known, block, out=known)
        if len(blocks) == 1 and blocks[0] is not None:
            return blocks[0]
        found = np.zeros((len(next(iter(values.values()))), self.width))
        for number, known in enumerate(blocks):
            if known is not None:
                found[:, number * size : (number + 1) * size] = known
        return found


def _column(values: list[Any], counts: list[int]) -> FloatArray:
    """Return numbers or arrays at the points of many parts as one array."""
    if all(np.ndim(value) == 0 for value in values):
        return np.repeat(values, counts)
    return np.concatenate([np.broadcast_to(value, count) for value, count in zip(values, counts, strict=True)])


@lru_cache(maxsize=256)
def _along(dimension: int, axis: int, order: int) -> MultiIndex:
    return tuple(order if i == axis else 0 for i in range(dimension))


def mean_size(value: Any) -> float:
    """Return the root mean square of a coefficient, a number or an array."""
    return math.sqrt(float(np.vdot(value, value)) / value.size) if isinstance(value, np.ndarray) else abs(float(value))


def indices_of(terms: list[list[Term]]) -> list[MultiIndex]:
    """Return the distinct derivatives in several lists of terms."""
    return list(dict.fromkeys(index for own in terms for _, index, _ in own))


def power(half: FloatArray, index: MultiIndex) -> float:
    """Return the product of the half sides, each to the order of the derivative along its axis."""
    return math.prod([float(side) ** order for side, order in zip(half.tolist(), index, strict=True) if order])
