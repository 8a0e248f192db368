"""Boundary conditions that cannot be built into the functions.

Nonlinear ones, those of several fields, and those whose factors change in time: a force pulls the solution to them,
which is zero where they hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.lines.basis import Basis, at_times, boundary_points
from pibls.problem import MultiIndex, OnPart, Statement

__all__ = ["Pull", "Pulls"]


@dataclass(frozen=True, eq=False)
class Pull:
    """A condition g(t, x, u, u_x, ...) = 0 on the boundary, and the force −g'ᵀ g that leads down to it.

    Attributes
    ----------
    statement
        The condition.
    points, normals, weights
        Where it holds; the weights add up to one.
    functions
        Derivatives of the basis at the points.
    """

    statement: Statement
    points: FloatArray
    normals: FloatArray | None
    weights: FloatArray
    functions: Mapping[MultiIndex, FloatArray]

    @classmethod
    def of(cls, statement: Statement, basis: Basis) -> Pull:
        """Prepare a condition on a basis."""
        points, normals, weights = boundary_points(statement, basis)
        assert isinstance(statement.place, OnPart)
        indices = sorted({term.multi_index[:-1] for term in statement.form.terms})
        return cls(statement, points, normals, weights / weights.sum(), basis.at(points, indices))

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are pulled."""
        return self.statement.form.fields

    def _evaluated(
        self, times: FloatArray, coefficients: Mapping[str, FloatArray]
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return g, and its derivative by each of its terms, at times and points."""
        form, shape = self.statement.form, (len(times), len(self.points))
        X = at_times(self.points, times)
        normals = None if self.normals is None else np.tile(self.normals, (len(times), 1))
        slots = [(coefficients[term.field] @ self.functions[term.multi_index[:-1]].T).ravel() for term in form.terms]
        extra = [] if form.is_linear else slots
        slopes = [f(X, normals, extra).reshape(shape) for f in form.coefficient_functions]
        return form.residual_function(X, normals, slots).reshape(shape), slopes

    def force(self, times: FloatArray, coefficients: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Return g'ᵀ g of every function, field by field: shape (times, functions)."""
        residual, slopes = self._evaluated(times, coefficients)
        result: dict[str, Any] = {}
        for term, slope in zip(self.statement.form.terms, slopes, strict=True):
            own = (slope * residual * self.weights) @ self.functions[term.multi_index[:-1]]
            result[term.field] = result.get(term.field, 0) + own
        return result

    def rows(self, time: float, coefficients: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Return g' at one time with the roots of the weights, field by field: shape (points, functions)."""
        _, slopes = self._evaluated(np.array([time]), coefficients)
        root, result = np.sqrt(self.weights), dict[str, Any]()
        for term, slope in zip(self.statement.form.terms, slopes, strict=True):
            own = (slope[0] * root)[:, None] * self.functions[term.multi_index[:-1]]
            result[term.field] = result.get(term.field, 0) + own
        return result


@dataclass(frozen=True, eq=False)
class Pulls:
    """All such conditions of a system, with how strongly each field is pulled.

    Attributes
    ----------
    pulls
        The conditions, and a factor per field.
    kernels
        What the built-in conditions leave of the basis, per field.
    tops, spans
        Where the highest derivative in time of a field stands in the state, and where the field itself does.
    """

    pulls: tuple[tuple[Pull, Mapping[str, float]], ...]
    kernels: Mapping[str, FloatArray]
    tops: Mapping[str, slice]
    spans: Mapping[str, slice]

    def __bool__(self) -> bool:
        return bool(self.pulls)

    def add_rates(self, times: FloatArray, coefficients: Mapping[str, FloatArray], rates: FloatArray) -> None:
        """Add the forces to rates."""
        for pull, strengths in self.pulls:
            for name, force in pull.force(times, coefficients).items():
                rates[:, self.tops[name]] -= strengths[name] * force @ self.kernels[name]

    def add_jacobian(self, time: float, coefficients: Mapping[str, FloatArray], matrix: FloatArray) -> None:
        """Add the derivative of the forces to that of the rates, without that of g', which vanishes with g."""
        for pull, strengths in self.pulls:
            rows = {name: own @ self.kernels[name] for name, own in pull.rows(time, coefficients).items()}
            for name in rows:
                for other in rows:
                    matrix[self.tops[name], self.spans[other]] -= strengths[name] * rows[name].T @ rows[other]
