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
from pibls.lines.basis import Basis, Edge, at_times, edge_of
from pibls.problem import MultiIndex, Statement

__all__ = ["Pull"]


@dataclass(frozen=True, eq=False)
class Pull:
    """A condition g(t, x, u, u_x, ...) = 0 on the boundary, and the force −g'ᵀ g that leads down to it.

    Attributes
    ----------
    statement
        The condition.
    edge
        Where it holds.
    functions
        Derivatives of the basis at the points.
    """

    statement: Statement
    edge: Edge
    functions: Mapping[MultiIndex, FloatArray]

    @classmethod
    def of(cls, statement: Statement, basis: Basis) -> Pull:
        """Prepare a condition on a basis."""
        edge = edge_of(statement, basis)
        indices = sorted({term.multi_index[:-1] for term in statement.form.terms})
        return cls(statement, edge, basis.at(edge.points, indices))

    def _evaluated(
        self, times: FloatArray, coefficients: Mapping[str, FloatArray]
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return g, and its derivative by each of its terms, at times and points."""
        form, shape = self.statement.form, (len(times), len(self.edge.points))
        X = at_times(self.edge.points, times)
        normals = None if self.edge.normals is None else np.tile(self.edge.normals, (len(times), 1))
        slots = [(coefficients[term.field] @ self.functions[term.multi_index[:-1]].T).ravel() for term in form.terms]
        extra = [] if form.is_linear else slots
        slopes = [f(X, normals, extra).reshape(shape) for f in form.coefficient_functions]
        return form.residual_function(X, normals, slots).reshape(shape), slopes

    def force(self, times: FloatArray, coefficients: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Return g'ᵀ g of every function, field by field: shape (times, functions)."""
        residual, slopes = self._evaluated(times, coefficients)
        result: dict[str, Any] = {}
        for term, slope in zip(self.statement.form.terms, slopes, strict=True):
            own = (slope * residual * self.edge.weights) @ self.functions[term.multi_index[:-1]]
            result[term.field] = result.get(term.field, 0) + own
        return result

    def rows(self, time: float, coefficients: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Return g' at one time with the roots of the weights, field by field: shape (points, functions)."""
        _, slopes = self._evaluated(np.array([time]), coefficients)
        root, result = np.sqrt(self.edge.weights), dict[str, Any]()
        for term, slope in zip(self.statement.form.terms, slopes, strict=True):
            own = (slope[0] * root)[:, None] * self.functions[term.multi_index[:-1]]
            result[term.field] = result.get(term.field, 0) + own
        return result
