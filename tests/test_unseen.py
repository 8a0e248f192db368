"""Problems that examine the library: their references fulfil what is posed, without any solve."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sympy as sp

from benchmarks.unseen_problems import unseen
from pibls.problem import AtPoints, Form, Interface, MultiIndex, OnPart, Problem, Statement, normal
from pibls.problem.evaluate import compile_function
from pibls.problem.fluxes import flux_of
from pibls.problem.symbols import Data
from test_problems_residuals import Derivatives, residual

FloatArray = npt.NDArray[np.float64]
WELL_POSED = [name for name, case in unseen.items() if case.error is not None]
# Coefficients of differences, by the order of the derivative.
STENCILS = {
    0: {0: 1.0},
    1: {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12},
    2: {-2: -1 / 12, -1: 4 / 3, 0: -5 / 2, 1: 4 / 3, 2: -1 / 12},
}


@cache
def built(name: str) -> Problem:
    return unseen[name].problem()


class Known(Derivatives):
    """Derivatives by SymPy, and by differences where a reference is known at points only."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.exact or {}, problem.domain.coordinates)
        self._steps = 1e-4 * np.ptp(problem.domain.bounds, axis=1)

    def _function(self, field: str, multi_index: MultiIndex) -> Callable[..., Any]:
        key = (field, multi_index)
        if key not in self._functions:
            expression = sp.sympify(self.exact[field])
            if expression.has(Data):
                self._functions[key] = self._by_differences(expression, multi_index)
            else:
                for symbol, count in zip(self.coordinates, multi_index, strict=True):
                    expression = expression.diff(symbol, count) if count else expression
                self._functions[key] = self._compiled(expression)
        return self._functions[key]

    def _compiled(self, expression: sp.Expr) -> Callable[..., Any]:
        function = compile_function(expression, self.coordinates)
        return lambda *columns: function(np.stack(columns, axis=1))

    def _by_differences(self, expression: sp.Expr, multi_index: MultiIndex) -> Callable[..., Any]:
        function = compile_function(expression, self.coordinates)
        shifts = [(1.0, np.zeros(len(multi_index)))]
        for axis, order in enumerate(multi_index):
            ahead = np.eye(len(multi_index))[axis] * self._steps[axis]
            parts = {k: c / self._steps[axis] ** order for k, c in STENCILS[order].items()}
            shifts = [(weight * c, shift + k * ahead) for weight, shift in shifts for k, c in parts.items()]

        def differences(*columns: FloatArray) -> FloatArray:
            X = np.stack(columns, axis=1)
            return np.asarray(sum(weight * function(X + shift) for weight, shift in shifts))

        return differences


def _terms(form: Form, derivatives: Known, X: FloatArray, normals: FloatArray | None) -> FloatArray:
    """Return how large the terms of a form are together, point by point."""
    values = derivatives(form, X)
    state = () if form.is_linear else values
    size = np.zeros(len(X))
    for function, value in zip(form.coefficient_functions, values, strict=True):
        size += np.abs(function(X, normals, state) * value)
    return size + (np.abs(form.source_function(X, normals)) if form.is_linear else 0.0)


def _relative(statement: Statement, problem: Problem, derivatives: Known) -> FloatArray:
    """Return the residuals of a reference, each over the terms where it is, or their usual size inside."""
    form, place = statement.form, statement.place
    if isinstance(place, AtPoints):
        found = form.residual_function(place.points, None, derivatives(form, place.points))
    else:
        found = residual(statement, problem, derivatives)
    inside = problem.domain.sample(64, seed=3)
    normals = np.tile(np.eye(inside.shape[1])[0], (len(inside), 1)) if isinstance(place, OnPart) else None
    usual = float(np.median(_terms(form, derivatives, inside, normals)))
    return np.abs(found) / (usual or 1.0)


@pytest.mark.parametrize("name", WELL_POSED)
def test_reference_fulfils_every_statement(name: str) -> None:
    problem = built(name)
    derivatives = Known(problem)
    at_points = any(sp.sympify(value).has(Data) for value in (problem.exact or {}).values())
    for statement in problem.statements:
        found = _relative(statement, problem, derivatives)
        print(name, statement.name, np.quantile(found, [0.5, 0.75, 1]), at_points)


if __name__ == "__main__":
    import time

    for name in WELL_POSED:
        start = time.process_time()
        try:
            test_reference_fulfils_every_statement(name)
        except Exception as error:
            print("FAILED", name, type(error).__name__, str(error)[:300])
        if time.process_time() - start > 0.5:
            print("   slow", name, time.process_time() - start)
