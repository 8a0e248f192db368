"""One formula as text, with the names it may use given in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sympy as sp

from pibls.checks import check_number, shorten
from pibls.errors import InputError
from pibls.problem.measured import Measured, tree_size
from pibls.problem.symbols import Data, Field, coordinates, field
from pibls.problem.unknown_numbers import Unknown, unknown
from pibls.text.expressions import read_equation
from pibls.text.positions import Text
from pibls.text.vocabulary import Names


def parse(
    text: str,
    coordinates: str | Iterable[Any],
    fields: str | Iterable[Any] = "u",
    parameters: Mapping[str, Any] | None = None,
    unknowns: str | Iterable[Any] = (),
) -> Any:
    """Read an equation or an expression from text, without running anything that it says.

    Formulas are made of numbers, names, ``+ - * / **``, brackets and functions. Whole numbers are exact, so that
    ``1/3`` is a fraction; numbers with a point are double precision. Derivatives are written by subscript (``u_t``,
    ``u_xxy``) or as ``diff(u, x, 2, y)``; a subscript that can be read in two ways is refused. Further:
    ``laplacian(u)``, ``grad(u)`` and its entries ``grad(u)[x]``, ``div([u, v])``, ``dot(a, b)``, ``dn(u)`` for the
    outward normal derivative and ``n_x`` for a component of the normal, ``where(x < 0, a, b)``,
    ``piecewise([a, x < 0], [b, x < 1], c)``, the usual functions under the names of :mod:`math`, ``pi`` and ``e``.

    Parameters
    ----------
    text
        The formula, with a single ``=`` if it is an equation.
    coordinates
        The coordinates: names in one string, or what :func:`~pibls.coordinates` returned.
    fields
        The unknown functions: names in one string, fields, or both in a list; data functions may be among them.
    parameters
        Numbers, or SymPy expressions, by the name they have in the text.
    unknowns
        Unknown numbers: names in one string, or what :func:`~pibls.unknown` returned.

    Returns
    -------
    sympy.Eq or sympy.Expr
        The equation, or the expression if there is no ``=``.

    Examples
    --------
    >>> parse("u_t = k*u_xx + sin(pi*x)", "x t", parameters={"k": 0.1})
    Eq(Derivative(u(x, t), t), sin(pi*x) + 0.1*Derivative(u(x, t), (x, 2)))
    >>> try:
    ...     parse("u_xx = sinn(x)", "x")
    ... except ValueError as error:
    ...     print(error)
    line 1, column 8: There is no function 'sinn'. Did you mean 'sin'?
        u_xx = sinn(x)
               ^^^^
    """
    if not isinstance(text, str):
        raise InputError(f"The 'text' parameter of parse must be a string. Got {shorten(text)} instead.")
    return read_equation(Text.plain(text), make_names(coordinates, fields, parameters, unknowns))


def make_names(
    coords: str | Iterable[Any],
    fields: str | Iterable[Any] = "u",
    parameters: Mapping[str, Any] | None = None,
    unknowns: str | Iterable[Any] = (),
) -> Names:
    """Return the names that a formula may use.

    >>> make_names("x y", "u v").known.keys() >= {"x", "y", "u", "v"}
    True
    """
    symbols = tuple(_each("coordinates", coords, coordinates, sp.Symbol))
    found = list(_each("fields", fields, lambda name: field(name, *symbols), Field | Data))
    numbers = list(_each("unknowns", unknowns, unknown, Unknown))
    labels = [*(s.name for s in symbols), *(entry.label for entry in found), *(entry.name for entry in numbers)]
    labels += parameters or {}
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise InputError(f"The name {twice[0]!r} stands for two things in the names given to parse; rename one.")
    unknown_fields = {entry.label: entry for entry in found if isinstance(entry, Field)}
    values = {entry.label: Measured(entry) for entry in found if isinstance(entry, Data)}
    values |= {entry.name: Measured(entry) for entry in numbers}
    values |= {name: _parameter(name, value) for name, value in (parameters or {}).items()}
    return Names(symbols, unknown_fields, values)


def _each(owner: str, value: Any, make: Any, kind: Any) -> Iterable[Any]:
    entries = value.replace(",", " ").split() if isinstance(value, str) else value
    for entry in [entries] if isinstance(entries, sp.Basic) else entries:
        if not isinstance(entry, str | kind):
            raise InputError(
                f"The '{owner}' parameter of parse must be names in one string, or the symbols themselves. "
                f"Got {shorten(entry)} in it."
            )
        yield make(entry) if isinstance(entry, str) else entry


def _parameter(name: str, value: Any) -> Measured:
    if isinstance(value, sp.Expr) and not value.is_number:
        return Measured(value, None, tree_size(value))
    number = check_number(f"parameters[{name!r}]", value, "parse", minimum=-1e300, maximum=1e300)
    if isinstance(value, sp.Expr):
        return Measured(value, number)
    return Measured(sp.Integer(value) if isinstance(value, int) else sp.Float(number), number)
