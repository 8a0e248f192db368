"""Where a user lets a nonlinear iteration start: a solution, expressions, easier problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, shorten
from pibls.errors import InputError
from pibls.problem import Field, MultiIndex, Problem
from pibls.problem.evaluate import compile_function, differentiated
from pibls.solution.solution import Solution
from pibls.system import Evaluate


def zero(X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
    """Return the state that is zero everywhere.

    >>> zero(np.ones((2, 1)), [("u", (0,))])
    [array([0., 0.])]
    """
    return [np.zeros(len(X)) for _ in wanted]


def one(X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
    """Return the state that is one everywhere: a start where equations have no value, or no slope, at zero.

    >>> one(np.ones((2, 1)), [("u", (0,)), ("u", (1,))])
    [array([1., 1.]), array([0., 0.])]
    """
    return [np.full(len(X), float(not any(index))) for _, index in wanted]


def scaled(state: Evaluate, factor: float) -> Evaluate:
    """Return a multiple of a state."""
    return lambda X, wanted: [factor * values for values in state(X, wanted)]


def given_start(start: object, problem: Problem) -> Evaluate:
    """Return the function a user gives to start from: a solution, an expression, or one expression per field.

    >>> from pibls.problems import poisson
    >>> problem = poisson()
    >>> x, y = problem.domain.coordinates
    >>> given_start(x**2 * y, problem)(np.array([[3.0, 2.0]]), [("u", (1, 0))])
    [array([12.])]
    """
    if isinstance(start, Solution):
        same = start.problem.field_names == problem.field_names
        if not same or len(start.coordinate_names) != len(problem.domain.coordinates):
            raise InputError(
                f"The 'start' parameter of solve is a solution for {start.problem.field_names} over "
                f"{start.coordinate_names}; it must have the fields {problem.field_names} and the coordinates "
                f"{problem.domain.coordinates} of the problem."
            )
        return start.evaluate
    given = start if isinstance(start, Mapping) else {problem.field_names[0]: start}
    by_name = {key.label if isinstance(key, Field) else str(key): value for key, value in given.items()}
    try:
        expressions = {
            name: sp.sympify(by_name[name], strict=True)
            for name in problem.field_names
            # Text is never parsed as an expression here: a stranger's could run anything.
            if not isinstance(by_name[name], str | bytes)
        }
    except (KeyError, TypeError, ValueError, AttributeError, sp.SympifyError):
        expressions = {}
    known = set(problem.domain.coordinates)
    fits = len(expressions) == len(problem.field_names) == len(by_name)
    if not fits or any(not isinstance(e, sp.Expr) or e.free_symbols - known for e in expressions.values()):
        raise InputError(
            "The 'start' parameter of solve must be a solution, or an expression of the coordinates per field "
            f"{problem.field_names}, such as {{u: x*(1 - x)}}. Got {shorten(start)} instead."
        )
    return _of_expressions(expressions, problem.domain.coordinates)


def _of_expressions(expressions: Mapping[str, sp.Expr], coordinates: tuple[sp.Symbol, ...]) -> Evaluate:
    functions: dict[tuple[str, MultiIndex], Any] = {}

    def evaluate(X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
        for name, index in wanted:
            if (name, index) not in functions:
                slope = differentiated(expressions[name], coordinates, index)
                functions[name, index] = compile_function(slope, coordinates)
        return [np.array(functions[key](X)) for key in wanted]

    return evaluate


def checked_continuation(continuation: object, problem: Problem) -> tuple[Problem, ...]:
    """Return the easier problems a user gives on the way to a problem, or refuse them."""
    problems = tuple(continuation) if isinstance(continuation, Sequence) else (continuation,)
    for easier in problems:
        if not isinstance(easier, Problem) or easier.field_names != problem.field_names:
            raise InputError(
                "The 'continuation' parameter of solve must be a list of problems in the same fields "
                f"{problem.field_names}, from the easiest to one close to the problem. Got {shorten(easier)} in it."
            )
    return problems
