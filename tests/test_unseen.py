"""Problems that examine the library: their references fulfil what is posed, without any solve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sympy as sp
from benchmarks.sets import cases

from internals import Data, compile_function, resolve
from pibls.problem import Across, AtPoints, Form, Interface, MultiIndex, OnPart, Problem, Statement
from test_problems_residuals import Derivatives, residual

FloatArray = npt.NDArray[np.float64]
unseen = cases("unseen")
WELL_POSED = [name for name, case in unseen.items() if case.error is not None]
# Where coefficients or sources jump in space. (The discharge along two beds jumps, and nothing crosses there.)
JUMPING = ["steel_in_a_notch", "three_metals_meet", "coated_fibre", "slanted_sandwich", "woven_plate"]
JUMPING += ["front_that_moves", "double_layer_of_charge", "three_rings", "layered_ground", "ring_of_two_metals"]
JUMPING += ["ball_bearing_in_resin", "stepped_beam", "beam_under_a_crate", "rail_on_ballast"]
# Coefficients of differences, by the order of the derivative.
STENCILS = {
    0: {0: 1.0},
    1: {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12},
    2: {-2: -1 / 12, -1: 4 / 3, 0: -5 / 2, 1: 4 / 3, 2: -1 / 12},
}


@cache
def built(name: str) -> Problem:
    return unseen[name].make()


class Known(Derivatives):
    """Derivatives by SymPy, and by differences where a reference is known at points only."""

    def __init__(self, problem: Problem, exact: Mapping[str, sp.Expr] | None = None) -> None:
        super().__init__(exact or problem.exact or {}, problem.domain.coordinates)
        self._steps = 1e-4 * np.ptp(problem.domain.bounds, axis=1)

    def _function(self, field: str, multi_index: MultiIndex) -> Callable[..., Any]:
        key = (field, multi_index)
        if key not in self._functions:
            expression = sp.sympify(self.exact[field])
            self._functions[key] = (
                self._by_differences(expression, multi_index)
                if expression.has(Data)
                else self._compiled(self._derivative(field, multi_index))
            )
        return self._functions[key]

    @cache  # noqa: B019 (higher derivatives are made of lower ones; a test keeps one of these)
    def _derivative(self, field: str, multi_index: MultiIndex) -> sp.Expr:
        if not any(multi_index):
            return sp.sympify(self.exact[field])
        axis = int(np.flatnonzero(multi_index)[-1])
        less = tuple(count - (k == axis) for k, count in enumerate(multi_index))
        return self._derivative(field, less).diff(self.coordinates[axis])

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


def relative(statement: Statement, problem: Problem, derivatives: Known) -> FloatArray:
    """Return the residuals of a reference over the size that the terms usually have inside."""
    form, place = statement.form, statement.place
    if isinstance(place, AtPoints):
        found = form.residual_function(place.points, None, derivatives(form, place.points))
    else:
        found = residual(statement, problem, derivatives)
    inside = problem.domain.sample(256, seed=3)
    normals = np.tile(np.eye(inside.shape[1])[0], (len(inside), 1)) if isinstance(place, OnPart) else None
    sizes = _terms(form, derivatives, inside, normals)
    # What is narrow, or singular in a point, is neither measured by where it is zero nor by its peak alone.
    return np.abs(found) / (max(float(np.median(sizes)), 1e-3 * float(sizes.max())) or 1.0)


@pytest.mark.parametrize("name", WELL_POSED)
def test_reference_fulfils_every_statement(name: str) -> None:
    problem = built(name)
    derivatives = Known(problem)
    at_points = any(sp.sympify(value).has(Data) for value in (problem.exact or {}).values())
    for statement in problem.statements:
        if isinstance(statement.place, Across):  # which the jumps below are about
            continue
        found = relative(statement, problem, derivatives)
        if at_points:  # and some of the points are next to where it is singular
            assert np.quantile(found, 0.75) < 1e-6, statement.name
        else:
            assert found.max() < 1e-10, statement.name


def _levels(problem: Problem) -> set[sp.Expr]:
    """Return the functions on whose zeros coefficients and sources jump, or conditions say that something does."""
    told = [condition.condition for condition in problem.conditions if isinstance(condition, Interface)]
    pieces = {piece for equation in problem.equations for piece in equation.atoms(sp.Piecewise)}
    conditions = [*told, *(condition for piece in pieces for _, condition in piece.args)]
    return {relation.lhs - relation.rhs for one in conditions for relation in one.atoms(sp.core.relational.Relational)}


def _on_level(level: sp.Expr, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Return points of the domain where a function is zero, and its unit gradient there."""
    symbols = problem.domain.coordinates
    value, slopes = compile_function(level, symbols), [compile_function(level.diff(k), symbols) for k in symbols]
    X = problem.domain.sample(300, seed=4)
    for _ in range(30):
        slope = np.stack([one(X) for one in slopes], axis=1)
        X = X - (value(X) / (slope**2).sum(axis=1))[:, None] * slope
    slope = np.stack([one(X) for one in slopes], axis=1)
    slope /= np.linalg.norm(slope, axis=1)[:, None]
    away = 1e-6 * np.ptp(problem.domain.bounds, axis=1).min() * slope
    both = problem.domain.contains(X + away) & problem.domain.contains(X - away)
    return X[both], slope[both]


def _kept(problem: Problem) -> list[sp.Expr]:
    """Return what goes on across jumps of coefficients: values and fluxes, of a beam also slopes, moments and shear."""
    forms, exact = [s.form for s in problem.statements if s.is_equation], problem.exact or {}
    known = {field: sp.sympify(exact[field.label]) for field in problem.fields}
    fourth = [term for form in forms for term in form.terms if term.order == 4]
    if fourth:
        (x,), (bent,) = problem.domain.coordinates, known.values()
        moment = fourth[0].coefficient * bent.diff(x, 2)
        return [bent, bent.diff(x), moment, moment.diff(x)]
    fluxes = [problem.laws.flux(field) for field in known]
    return [*known.values(), *(resolve(flux, problem.domain.space).xreplace(known).doit() for flux in fluxes)]


def check_jumps(problem: Problem) -> None:
    """Assert that values and fluxes of a reference go on where data jump, but for the jumps that are told."""
    symbols = problem.domain.coordinates
    given = [c for c in problem.conditions if isinstance(c, Interface)]
    jumps = [jump for c in given for jump in (c.jump, c.flux)]
    step = 1e-9 * np.ptp(problem.domain.bounds, axis=1).min()
    inside, tried = problem.domain.sample(300, seed=4), 0
    along = np.eye(len(symbols))[np.arange(300) % len(symbols)]
    for level in _levels(problem):
        X, normals = _on_level(level, problem)
        tried += len(X)
        for number, expression in enumerate(_kept(problem)):
            function = compile_function(expression, symbols)
            before, after = (function(X + side * step * normals, normals) for side in (-1, 1))
            jump = compile_function(jumps[number], symbols)(X) if jumps else 0.0
            # A few points are next to where jumps meet, and fluxes change within the step.
            usual = np.quantile(np.abs(after - before - jump), 0.9)
            assert usual <= 1e-6 * np.abs(function(inside, along)).max()
    assert tried > 20 or len(symbols) == 1


@pytest.mark.parametrize("name", JUMPING)
def test_reference_goes_on_across_jumps(name: str) -> None:
    check_jumps(built(name))


def test_ill_posed_ones_have_no_reference() -> None:
    assert len(unseen) > 100
    assert [name for name in unseen if built(name).exact is None] == [n for n in unseen if n not in WELL_POSED]


@pytest.mark.parametrize("name", ["microelectrode", "wire_over_ground", "steel_pipe", "lid_of_a_tank"])
def test_reference_that_is_off_is_found(name: str) -> None:
    problem = built(name)
    off = {field: sp.Float(1.001) * value for field, value in (problem.exact or {}).items()}
    derivatives = Known(problem, off)
    worst = max(float(np.quantile(relative(one, problem, derivatives), 0.75)) for one in problem.statements)
    assert worst > 1e-4


# What can be added to any solution.
OPEN: Mapping[str, tuple[str, ...]] = {
    "reed_without_a_start": ("sin(pi*x)*sin(pi**2*t)",),
    "room_at_its_note": ("cos(pi*x/2)*cos(2*pi*y/3)",),
    "disk_that_feeds_itself": ("x",),
    "wind_along_the_wall": ("sin(y)",),
    "string_held_all_round": ("sin(pi*x)*sin(pi*y)",),
    "sheet_on_one_nail": ("1/2 - y", "x - 1/2"),
    "one_equation_twice": ("diff((x*y*(1 - x)*(1 - y))**2, x)", "diff((x*y*(1 - x)*(1 - y))**2, y)"),
    "half_a_wave_function": ("sin(pi*x)*sin(pi**2*t)", "sin(pi*x)*cos(pi**2*t)"),
    "island_without_a_level": ("Piecewise((0, x < 0), (1, True))",),
}


def check_open(problem: Problem, expressions: tuple[str, ...]) -> None:
    """Assert that the expressions, one per field, can be added to any solution."""
    symbols = {symbol.name: symbol for symbol in problem.domain.coordinates}
    added = {f: sp.sympify(e, symbols) for f, e in zip(problem.field_names, expressions, strict=True)}
    nothing = Known(problem, dict.fromkeys(problem.field_names, sp.S.Zero))
    derivatives = Known(problem, added)
    for statement in problem.statements:
        if isinstance(statement.place, AtPoints):
            X = statement.place.points
            assert np.abs(derivatives(statement.form, X)).max() < 1e-12
            continue
        change = residual(statement, problem, derivatives) - residual(statement, problem, nothing)
        assert np.abs(change).max() < 1e-9, statement.name


@pytest.mark.parametrize("name", OPEN)
def test_solutions_are_not_unique(name: str) -> None:
    check_open(built(name), OPEN[name])
