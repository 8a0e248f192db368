"""The quantities of a picture: a field or an expression, its exact value, its error, or the residual of an equation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_points, refusal, shorten
from pibls.errors import InputError, PiblsError
from pibls.problem import Field
from pibls.problem.evaluate import compile_function
from pibls.problem.printing import text
from pibls.report.wording import lettered
from pibls.solution import FieldFunction, Solution


@dataclass(frozen=True, eq=False)
class PictureQuantity:
    """A function of points with its name in words.

    ``name`` stands in a legend, ``symbol`` beside an axis, with the ``unit``; ``magnitude`` marks a size that spans
    decades and is best seen on a logarithmic scale. ``band`` returns the lower and upper end of an interval of 95 %,
    ``error`` the estimated error of a value.
    ``colours`` names a colour map in place of the usual one; ``steep`` marks what may be very large in one place.
    """

    title: str
    name: str
    symbol: str
    function: Evaluator
    magnitude: bool = False
    unit: str = ""
    colours: str | None = None
    band: Callable[[FloatArray], list[FloatArray]] | None = None
    steep: bool = False
    error: Evaluator | None = None


@dataclass(frozen=True)
class Look:
    """The words and colours of a user: a name for the quantity, its unit, and a colour map."""

    label: str = ""
    unit: str = ""
    colours: str | None = None


_PLAIN = Look()


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


def exact_functions(solution: Solution, exact: object) -> dict[str, Evaluator]:
    """Return the exact solution per field: the one given, that of the problem, or an empty mapping for none."""
    problem, owner = solution.problem, "plot"
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
    solution: Solution, what: str, fields: tuple[str, ...], exact: Mapping[str, Evaluator], look: Look = _PLAIN
) -> list[PictureQuantity]:
    """Return the quantities of one kind: one per field, or one per equation for ``"residual"``."""
    if what == "residual":
        return _residuals(solution)
    return [_of_field(solution, what, name, exact, look) for name in fields]


def _of_field(solution: Solution, what: str, name: str, exact: Mapping[str, Evaluator], look: Look) -> PictureQuantity:
    shown, values = look.label or lettered(name), _values(solution, name)
    if what == "solution":
        title = look.label or f"Solution {shown}"
        symbol = next(field for field in solution.problem.fields if field.label == name)
        band = None if solution.posterior is None else partial(band_of, solution, name)
        error = _error_of(solution, symbol)
        return PictureQuantity(title, what, shown, values, False, look.unit, look.colours, band, error=error)
    if what == "exact":
        return PictureQuantity(f"Exact solution {shown}", what, shown, exact[name], False, look.unit, look.colours)
    if what == "deviation":

        def deviation(X: FloatArray) -> FloatArray:
            return _own(solution.standard_deviation(X, outside="value"), name)

        return PictureQuantity(f"Standard deviation of {shown}", what, f"σ({shown})", deviation, True, look.unit)
    if what == "estimate":
        return _estimate(solution, shown, values, _values(richer_of(solution), name), look)
    error = _distance(values, exact[name])
    return PictureQuantity(f"Absolute error of {shown}", what, f"|{shown} − exact|", error, True, look.unit)


def of_expression(solution: Solution, what: str, expression: sp.Expr, look: Look) -> PictureQuantity:
    """Return an expression of fields, derivatives and coordinates as a quantity, or its estimated error."""
    words = look.label or _written(expression)
    values = value_of(solution, expression)
    if what == "estimate":
        return _estimate(solution, words, values, value_of(richer_of(solution), expression), look)
    return PictureQuantity(
        words, what, words, values, False, look.unit, look.colours, None, True, _error_of(solution, expression)
    )


def _written(expression: sp.Expr) -> str:
    """Return an expression as a title: as it is if it is short, or else the fields that it is made of."""
    written, fields = lettered(text(expression)), sorted({own.label for own in expression.atoms(Field)})
    return written if len(written) <= 32 else f"expression of {', '.join(map(lettered, fields))}"


def value_of(solution: Solution, expression: sp.Expr) -> Evaluator:
    """Return an expression of a solution as a function of points of its domain."""
    function = solution.value(expression)

    def values(X: FloatArray) -> FloatArray:
        found = function(X, outside="value")
        if np.iscomplexobj(found):
            raise InputError(
                f"plot was asked for {shorten(text(expression))}, which has complex values. Draw its real part with "
                "sympy.re, its imaginary part with sympy.im, or its size with sympy.Abs."
            )
        return np.asarray(found)

    return values


def _error_of(solution: Solution, expression: sp.Expr) -> Evaluator | None:
    """Return the estimated error of an expression as a function of points, where there is one."""
    return (
        None if solution.richer is None else lambda X: np.asarray(solution.value(expression).error(X, outside="value"))
    )


def richer_of(solution: Solution) -> Solution:
    """Return the richer solution that the error estimate rests on."""
    if solution.richer is None:
        raise InputError(
            f"This solution by {solution.diagnostics.method} has no estimated error at points, which rests on a "
            "second, richer network. Use pibls.solve, which makes one."
        )
    return solution.richer_solution


def _estimate(solution: Solution, symbol: str, values: Evaluator, richer: Evaluator, look: Look) -> PictureQuantity:
    distance, share = _distance(values, richer), min(1.0, solution.distance_share)
    return PictureQuantity(
        f"Estimated error of {symbol}",
        "estimate",
        f"|error of {symbol}|",
        lambda X: share * distance(X),
        True,
        look.unit,
    )


def _values(solution: Solution, name: str) -> Evaluator:
    function = FieldFunction(solution, name, (0,) * len(solution.coordinate_names))
    return lambda X: function(X, outside="value")


def band_of(solution: Solution, name: str, X: FloatArray, outside: str = "value") -> list[FloatArray]:
    """Return the lower and upper end of the interval of 95 % of a field at points."""
    return [_own(end, name) for end in solution.credible_band(X, outside=outside)]


def _own(values: Any, name: str) -> FloatArray:
    """Return the values of one field among those of all, or of the only one."""
    return np.asarray(values[name] if isinstance(values, dict) else values)


def _distance(one: Evaluator, other: Evaluator) -> Evaluator:
    return lambda X: np.abs(one(X) - other(X))


def _residuals(solution: Solution) -> list[PictureQuantity]:
    equations = [s for s in solution.problem.statements if s.is_equation]

    def size(position: int) -> Evaluator:
        residual = solution.residual(position)
        return lambda X: np.abs(residual(X))

    return [
        PictureQuantity(f"Absolute residual of {statement.name}", "residual", "|residual|", size(i), magnitude=True)
        for i, statement in enumerate(equations)
    ]


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
