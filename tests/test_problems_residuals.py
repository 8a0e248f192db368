"""How far a claimed solution is from each statement of a problem, relative to the terms of that statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sympy as sp

from pibls.geometry import Interval, TimeInterval
from pibls.problem import (
    Average,
    Form,
    Initial,
    Interior,
    Mean,
    MultiIndex,
    Neumann,
    OnPart,
    Opposite,
    Periodic,
    Problem,
    Statement,
    coordinates,
    field,
    normal,
)

FloatArray = npt.NDArray[np.float64]
_POINTS = 48


class Derivatives:
    """Values of the derivatives of known functions, differentiated and compiled by SymPy alone."""

    def __init__(self, exact: Mapping[str, sp.Expr], coordinates: tuple[sp.Symbol, ...]) -> None:
        self.exact, self.coordinates = exact, coordinates
        self._functions: dict[tuple[str, MultiIndex], Callable[..., Any]] = {}

    def __call__(self, form: Form, X: FloatArray) -> list[FloatArray]:
        columns = [self._function(term.field, term.multi_index)(*X.T) for term in form.terms]
        return [np.broadcast_to(np.asarray(column, dtype=np.float64), (len(X),)) for column in columns]

    def _function(self, field: str, multi_index: MultiIndex) -> Callable[..., Any]:
        key = (field, multi_index)
        if key not in self._functions:
            expression = self.exact[field]
            for symbol, count in zip(self.coordinates, multi_index, strict=True):
                expression = expression.diff(symbol, count) if count else expression
            self._functions[key] = sp.lambdify(self.coordinates, expression, "numpy")
        return self._functions[key]


def residual(statement: Statement, problem: Problem, derivatives: Derivatives) -> FloatArray:
    form, place = statement.form, statement.place
    if isinstance(place, Interior):
        X = problem.domain.sample(_POINTS, seed=1)
        return form.residual_function(X, None, derivatives(form, X))
    if isinstance(place, OnPart):
        X, normals = place.part.sample(_POINTS, seed=1)
        return form.residual_function(X, normals, derivatives(form, X))
    if isinstance(place, Opposite):
        sides = [part.sample(_POINTS, seed=1).points for part in (place.low, place.high)]
        low, high = (form.residual_function(X, None, derivatives(form, X)) for X in sides)
        return low - high
    assert isinstance(place, Average)
    X, weights = problem.domain.quadrature(2500)
    values = form.residual_function(X, None, derivatives(form, X))
    return np.atleast_1d(weights @ values / weights.sum())


def _scale(statement: Statement, problem: Problem, derivatives: Derivatives) -> float:
    """Return the size of the terms, with derivatives from the whole domain: a zero condition has none of its own."""
    form = statement.form
    inside = problem.domain.sample(4 * _POINTS, seed=2)
    X, normals = statement.place.part.sample(_POINTS) if isinstance(statement.place, OnPart) else (inside, None)
    sizes = [np.abs(values).max() for values in derivatives(form, inside)]
    state = () if form.is_linear else derivatives(form, X)
    coefficients = [np.abs(function(X, normals, state)).max() for function in form.coefficient_functions]
    source = np.abs(form.source_function(X, normals)).max() if form.is_linear else 0.0
    return float(np.dot(coefficients, sizes) + source)


def defects(problem: Problem, exact: Mapping[str, sp.Expr] | None = None) -> dict[str, float]:
    """Return per statement the largest residual of a solution (the problem's own by default) over the term size."""
    claimed = exact or problem.exact
    assert claimed is not None
    derivatives = Derivatives(claimed, problem.domain.coordinates)
    found = {}
    for statement in problem.statements:
        worst = float(np.abs(residual(statement, problem, derivatives)).max())
        # Without terms (all derivatives zero) there is nothing to be relative to.
        found[statement.name] = worst / (_scale(statement, problem, derivatives) or 1.0)
    return found


def _heat(rate: int) -> Problem:
    x, t = coordinates("x t")
    u = field("u", x, t)
    domain = Interval((x, 0, 1)) * TimeInterval(t, 0, 1)
    conditions = (Periodic(u, x), Neumann(u, 3 * normal(x)), Initial(u, 3 * x), Mean(u, 1.5))
    return Problem((sp.Eq(u.diff(t), rate + u.diff(x, 2)),), domain, conditions, exact={u: 3 * x + rate * t})


def test_defects_are_the_relative_residuals() -> None:
    found = defects(_heat(0))
    jump = found.pop("Periodic(u in x)")
    # 3x is not periodic: it jumps by 3 = its own largest value over the interval.
    assert jump == pytest.approx(1, rel=0.02)
    assert max(found.values()) < 1e-12


def test_defects_find_a_mean_and_a_source_that_are_off() -> None:
    problem = _heat(1)
    found = defects(problem)
    # u = 3x + t averages 2, not 1.5; the largest value is 4.
    assert found["Mean(u = 1.5 on average)"] == pytest.approx(0.5 / (4 + 1.5), rel=0.05)
    assert found["the equation"] < 1e-12
    (x, t) = problem.domain.coordinates
    still = defects(problem, {"u": 3 * x + 2 * t})
    assert still["the equation"] == pytest.approx(1 / 3)
