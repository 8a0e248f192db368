"""Boundary conditions that a penalty imposes: in more than one dimension, and those that cannot be built in.

These are nonlinear ones, those of several fields, and those whose factors change in time. A force pulls the solution
to a condition, which is zero where it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.basis import Basis, Edge, at_times, edge_of
from pibls.problem import MultiIndex, Statement


@dataclass(frozen=True, eq=False)
class Penalty:
    """A condition g(t, x, u, u_x, ...) = 0 on the boundary, and the force −g'ᵀ g that leads down to it."""

    statement: Statement
    is_fixed: bool  # whether g' is the same for all fields and at all times
    edge: Edge  # where it holds
    # derivatives of the basis at the points, less those at the points opposite if it is periodic
    functions: Mapping[MultiIndex, FloatArray]

    @classmethod
    def of(cls, statement: Statement, basis: Basis, *, is_fixed: bool) -> Penalty:
        """Prepare a condition on a basis."""
        edge = edge_of(statement, basis)
        indices = sorted({term.multi_index[:-1] for term in statement.form.terms})
        functions = basis.at(edge.points, indices)
        if edge.partner is not None:
            for index, there in basis.at(edge.partner, indices).items():
                gap = functions[index] - there
                # Features that repeat by themselves leave round-off.
                functions[index] = np.where(np.abs(gap) > SETTINGS.cut * np.abs(there).max(), gap, 0.0)
        return cls(statement, is_fixed, edge, functions)

    def _evaluated(
        self, times: FloatArray, coefficients: Mapping[str, FloatArray]
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return g, and its derivative by each of its terms, at times and points."""
        form, shape = self.statement.form, (len(times), len(self.edge.points))
        X, normals = at_times(self.edge.points, times), np.tile(self.edge.normals, (len(times), 1))
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

    @cached_property
    def fixed_rows(self) -> FloatArray:
        """The rows of a fixed condition, which is one of one field."""
        (name,) = self.statement.form.fields
        size = next(iter(self.functions.values())).shape[1]
        return self.rows(0.0, {name: np.zeros((1, size))})[name]

    def drive(self, times: FloatArray) -> FloatArray | None:
        """Return the force of a fixed condition on a field that is zero, (times, functions); None if there is none."""
        form = self.statement.form
        if self.edge.partner is not None or form.source == 0:
            return None
        normals = np.tile(self.edge.normals, (len(times), 1))
        data = form.source_function(at_times(self.edge.points, times), normals)
        return np.asarray((data.reshape(len(times), -1) * np.sqrt(self.edge.weights)) @ self.fixed_rows)
