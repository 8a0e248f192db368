"""The quantities of a picture: a field, its exact value, its error, or the residual of an equation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, shorten
from pibls.errors import InputError
from pibls.report.comparison import Evaluator, as_evaluator, call, field_label, given_per_field
from pibls.solution import FieldFunction, Solution


@dataclass(frozen=True, eq=False)
class Quantity:
    """A function of points with its name in words.

    ``name`` stands in a legend, ``symbol`` beside an axis; ``magnitude`` marks a size that spans decades and is best
    seen on a logarithmic scale.
    """

    title: str
    name: str
    symbol: str
    function: Evaluator
    magnitude: bool = False


def choose_fields(solution: Solution, field: object, owner: str) -> tuple[str, ...]:
    """Return the names of the fields to draw: the one given, or all."""
    names = solution.problem.field_names
    if field is None:
        return names
    label = field_label(field)
    if label not in names:
        raise InputError(
            f"The 'field' parameter of {owner} must be one of the fields {', '.join(names)} of the problem. "
            f"Got {shorten(field)} instead. Leave it out to draw them all."
        )
    return (label,)


def exact_functions(solution: Solution, exact: object, owner: str) -> dict[str, Evaluator]:
    """Return the exact solution per field: the one given, that of the problem, or an empty mapping for none."""
    problem = solution.problem
    given = problem.exact if exact is None else exact
    if given is None:
        return {}
    if callable(given) and not isinstance(given, sp.Basic):
        return {name: _component(given, name, problem.field_names, owner) for name in problem.field_names}
    entries = given_per_field("exact", given, problem.field_names, owner)
    coordinates = problem.domain.coordinates
    for entry in entries.values():
        if not callable(entry) and not isinstance(entry, sp.Expr | int | float):
            raise InputError(
                f"The 'exact' parameter of {owner} must be an expression of the coordinates {coordinates} or a "
                f"function of an (n, d) array. Got {shorten(entry)} instead."
            )
    return {name: as_evaluator("exact", entry, coordinates, owner) for name, entry in entries.items()}


def _component(function: Callable[[FloatArray], Any], name: str, fields: tuple[str, ...], owner: str) -> Evaluator:
    """Return one field of a function that gives all of them."""

    def values(X: FloatArray) -> Any:
        return given_per_field("exact", call("exact", function, X, owner), fields, owner)[name]

    return as_evaluator("exact", values, None, owner)


def quantities(
    solution: Solution, what: str, fields: tuple[str, ...], exact: Mapping[str, Evaluator]
) -> list[Quantity]:
    """Return the quantities of one kind: one per field, or one per equation for ``"residual"``."""
    if what == "residual":
        return _residuals(solution)
    if what == "solution":
        return [Quantity(f"Solution {name}", "solution", name, _values(solution, name)) for name in fields]
    if what == "exact":
        return [Quantity(f"Exact solution {name}", "exact", name, exact[name]) for name in fields]
    return [
        Quantity(
            f"Absolute error of {name}",
            "error",
            f"|{name} − exact|",
            _error(_values(solution, name), exact[name]),
            magnitude=True,
        )
        for name in fields
    ]


def _values(solution: Solution, name: str) -> Evaluator:
    function = FieldFunction(solution, name, (0,) * len(solution.coordinate_names))
    return lambda X: function(X, outside="value")


def _error(values: Evaluator, exact: Evaluator) -> Evaluator:
    return lambda X: np.abs(values(X) - exact(X))


def _residuals(solution: Solution) -> list[Quantity]:
    equations = [s for s in solution.problem.statements if s.is_equation]

    def size(position: int) -> Evaluator:
        residual = solution.residual(position)
        return lambda X: np.abs(residual(X))

    return [
        Quantity(f"Absolute residual of {statement.name}", "residual", "|residual|", size(i), magnitude=True)
        for i, statement in enumerate(equations)
    ]
