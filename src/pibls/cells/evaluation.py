"""Evaluates the statements of a problem at points of a part, linearised at a state, for the functions of a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.features import MultiIndex
from pibls.problem import Problem, Statement
from pibls.problem.analysis import analysis_of

__all__ = ["Evaluation", "Sources", "State", "Stated", "Term", "indices_of", "power"]

Term = tuple[int, MultiIndex, Any]
State = Callable[[CellPart, FloatArray, Sequence[tuple[str, MultiIndex]]], list[FloatArray]]


@dataclass(frozen=True, eq=False)
class Stated:
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


Sources = Callable[[Stated, CellPart], FloatArray]
"""Returns other sources of a statement at its points in a part, one column per right-hand side."""


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
        Share of the nonlinearity that is kept, beside the linearisation at zero.
    diffusion
        Factor of the linear terms of second and higher order in nonlinear equations.
    problem, equations
        The problem, and its differential equations.
    orders, is_constant
        Highest order of derivative of each field along each axis, and whether all coefficients are constants.
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
        self.equations, self.orders, self.is_constant = own.equations, own.orders, own.is_constant
        self.width = self.layout.reference.size * len(self.problem.field_names)

    def only_terms(
        self, statement: Statement, part: CellPart, X: FloatArray, normals: FloatArray | None, axis: int | None = None
    ) -> list[Term]:
        """Return the terms of a statement at points, without its source; with an axis, those along it."""
        if statement.form.is_linear:
            return self.terms(statement, X, normals, [], axis)
        return self.lowered(statement, part, X, normals)[0]

    def along(self, axis: int, order: int) -> MultiIndex:
        """Return the multi-index of a derivative along one axis."""
        return _along(self.layout.reference.dimension, axis, order)

    def values(self, part: CellPart, X: FloatArray | None, indices: list[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the functions in the coordinates of the part, at given points or at the part's own."""
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
        # The unknown is the next state, not the step to it.
        here = sum(value * slot for (_, _, value), slot in zip(found, slots, strict=True))
        source = np.asarray(statement.form.residual_function(X, normals, slots) - here)
        if self.diffusion != 1.0 and statement.is_equation:
            found = [
                (*own[:2], own[2] * self.diffusion if term.order > 1 and not depends else own[2])
                for own, term, depends in zip(found, statement.form.terms, statement.form.depends, strict=True)
            ]
        return found, source

    def sizes(self, coefficients: list[Term], half: FloatArray) -> FloatArray:
        """Return the size of the largest term of every field."""
        found = np.zeros(len(self.problem.field_names))
        for number, index, value in coefficients:
            size = float(np.sqrt(np.mean(np.square(value)))) if np.ndim(value) else abs(value)
            found[number] = max(found[number], size / power(half, index))
        return found

    def at(
        self,
        part: CellPart,
        X: FloatArray | None,
        terms: list[list[Term]],
        units: FloatArray,
        left: FloatArray | None = None,
    ) -> list[FloatArray]:
        """Return rows of all functions of a part for several lists of terms, at points or combined by ``left``.

        Rows that are needed once are combined before the functions are evaluated; otherwise derivatives are kept.
        """
        indices = indices_of(terms)
        again = part.whole or (left is None and self.state is not None)
        fields = [(k, number) for k, own in enumerate(terms) for number in dict.fromkeys(n for n, _, _ in own)]
        if again or (left is None and len(fields) > len(indices)):
            values = self.values(part, X, indices)
            found = [self._combined(own, values, part.half, units) for own in terms]
            return found if left is None else [left @ own for own in found]
        points = part.points if X is None else X
        forms: list[dict[MultiIndex, Any]] = [{} for _ in fields]
        for form, (k, number) in zip(forms, fields, strict=True):
            for _, index, value in (own for own in terms[k] if own[0] == number):
                scale = units[number] / power(part.half, index)
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
            scale = value * (units[number] / power(half, index))
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


def indices_of(terms: list[list[Term]]) -> list[MultiIndex]:
    """Return the distinct derivatives in several lists of terms."""
    return list(dict.fromkeys(index for own in terms for _, index, _ in own))


def power(half: FloatArray, index: MultiIndex) -> float:
    """Return the product of the half sides, each to the order of the derivative along its axis."""
    return math.prod(float(side) ** order for side, order in zip(half.tolist(), index, strict=True))
