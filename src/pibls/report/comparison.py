"""References that a solution is compared with: expressions, Python functions and arrays, all read in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_points, refusal, shorten
from pibls.errors import InputError, PiblsError
from pibls.problem import Field
from pibls.problem.evaluate import compile_function

Evaluator = Callable[[FloatArray], FloatArray]


def field_label(key: object) -> str:
    """Return the name of a field given as a symbol or by name.

    >>> field_label("u")
    'u'
    """
    return key.label if isinstance(key, Field) else str(key)


def as_values(name: str, value: object, count: int | None, owner: str) -> FloatArray:
    """Return ``count`` finite numbers (any number of them for None), or refuse the value.

    One number stands for the same number at every point; a single column is taken as flat.

    >>> as_values("exact", [1, 2], 2, "metrics")
    array([1., 2.])
    """
    flat = check_points(name, value, owner, 1)[:, 0]
    if np.ndim(value) == 0 and count is not None:  # type: ignore[arg-type]
        flat = np.full(count, flat[0])
    if flat.size == 0 or count not in (None, flat.size):
        wanted = "at least one value" if count is None else f"{count} values, one per point"
        raise InputError(
            f"The '{name}' parameter of {owner} must give {wanted}. Got {flat.size} instead. "
            "Check that it was evaluated at the same points."
        )
    return flat


def as_evaluator(name: str, value: object, coordinates: tuple[sp.Symbol, ...] | None, owner: str) -> Evaluator:
    """Return an expression of the coordinates, a callable on points, or an array of values as a function of points."""
    if isinstance(value, sp.Expr) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return _compiled(name, sp.sympify(value, strict=True), coordinates, owner)
    if callable(value):
        function = value
        return lambda X: as_values(name, call(name, function, X, owner), len(X), owner)
    return lambda X: as_values(name, value, len(X), owner)


def _compiled(name: str, expression: sp.Expr, coordinates: tuple[sp.Symbol, ...] | None, owner: str) -> Evaluator:
    if coordinates is None and expression.free_symbols:
        raise InputError(
            f"The '{name}' parameter of {owner} is the expression {shorten(expression)}, and only a Solution knows "
            "which column of the points is which coordinate. Give a function of an (n, d) array, or an array of values."
        )
    strange = sorted(map(str, expression.free_symbols - set(coordinates or ())))
    if strange or expression.has(Field):
        raise InputError(
            f"The '{name}' parameter of {owner} must be an expression of the coordinates {coordinates}. "
            f"Got {shorten(expression)} instead. Use the symbols that the problem was written with."
        )
    return compile_function(expression, coordinates or ())


def call(name: str, function: Callable[[FloatArray], Any], X: FloatArray, owner: str) -> Any:
    """Call a user's function of points with a copy of them; an exception is reported as a refusal of the function."""
    try:
        return function(X.copy())
    except PiblsError:
        raise
    except Exception as error:
        raise InputError(
            f"The '{name}' parameter of {owner} raised {type(error).__name__}: {shorten(str(error), 200)}. It is "
            f"called with one (n, {X.shape[1]}) array of points and must return n values."
        ) from error


def given_per_field(name: str, value: object, fields: tuple[str, ...], owner: str) -> dict[str, Any]:
    """Return the value given for each field: a mapping must name them all, anything else is for a single field."""
    if isinstance(value, Mapping):
        entries = {field_label(key): entry for key, entry in value.items()}
        if sorted(entries) != sorted(fields):
            raise InputError(
                f"The '{name}' parameter of {owner} must have an entry for each field {fields}. "
                f"Got entries for {tuple(entries)} instead."
            )
        return {field: entries[field] for field in fields}
    if len(fields) > 1:
        raise refusal(name, owner, f"be a mapping with an entry for each field {fields}", value)
    return {fields[0]: value}
