"""Symbols a problem is written with: coordinates, unknown fields, unknown numbers, known functions.

All of them are SymPy objects, so ``u.diff(x, 2)``, ``sp.sin(u)`` and ``2 * u`` mean what they say.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction

from pibls.checks import refusal, shorten
from pibls.errors import ProblemError
from pibls.problem.unknown_numbers import Smooth, Unknown, check_name

REAL, IMAGINARY = "_re", "_im"  # ends of the names of the two parts of a complex field


class Field(AppliedUndef):  # type: ignore[misc]
    """An unknown function applied to its coordinates; made by :func:`field`."""

    prior: Smooth | None = None
    start: sp.Expr | None = None

    @property
    def label(self) -> str:
        """Name of the field, without its arguments."""
        return str(self.func.__name__)

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        """Pickle how it was made: its class exists in this process only."""
        return _made_field, (self.label, self.args, self.prior, self.start)


def _made_field(label: str, arguments: tuple[Any, ...], prior: Smooth | None, start: sp.Expr | None) -> Any:
    given = {key: value for key, value in {"prior": prior, "start": start}.items() if value is not None}
    return UndefinedFunction(label, bases=(Field,), real=True, **given)(*arguments)


class _DataFunction(UndefinedFunction):  # type: ignore[misc]
    """Class of one known function: two of them are the same only if they are the same object."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return type.__hash__(self)


class Data(AppliedUndef):  # type: ignore[misc]
    """A known function given as a Python callable, applied to its arguments; made by :func:`data`."""

    function: Callable[..., Any]
    source: _DataSource

    @property
    def label(self) -> str:
        """Name of the function, without its arguments."""
        return str(self.func.__name__)

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        """Pickle how it was made: calls that share a function before share one after."""
        return _called, (self.source, self.args)


class _DataSource:
    """Name and callable of a known function, and the one class that SymPy has for it."""

    def __init__(self, label: str, function: Callable[..., Any]) -> None:
        members = {"function": staticmethod(function), "source": self}
        self.given = label, function
        self.func = _DataFunction(label, (Data,), members, real=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return _DataSource, self.given


def _called(source: _DataSource, arguments: tuple[Any, ...]) -> Any:
    return source.func(*arguments)


class Normal(sp.Symbol):  # type: ignore[misc]
    """A component of the outward unit normal, for use in boundary conditions; made by :func:`normal`.

    On a line it is the whole normal: a sequence of one entry as well.
    """

    def __getitem__(self, place: int) -> Normal:
        return (self,)[place]

    def __len__(self) -> int:
        return 1


def _check_coordinates(symbols: tuple[object, ...], owner: str) -> tuple[sp.Symbol, ...]:
    if not symbols:
        raise ProblemError(f"{owner} needs at least one coordinate: {owner}('u', x, y) with x, y = coordinates('x y').")
    for symbol in symbols:
        if not isinstance(symbol, sp.Symbol) or isinstance(symbol, Unknown | Normal):
            raise ProblemError(
                f"{owner} takes coordinates made by pibls.coordinates after the name. Got {shorten(symbol)} instead."
            )
    if len(set(symbols)) != len(symbols):
        raise ProblemError(f"{owner} got a coordinate twice in {shorten(symbols)}; name each coordinate once.")
    return symbols


def coordinates(names: str) -> Any:
    """Return the coordinates named in a string: one symbol, or a tuple of several.

    Parameters
    ----------
    names
        Names separated by spaces or commas, such as ``"x y"`` or ``"x, t"``.

    Examples
    --------
    >>> coordinates("t")
    t
    >>> x, y = coordinates("x y")
    """
    if not isinstance(names, str) or not names.replace(",", " ").split():
        raise ProblemError(f"coordinates needs a string of names such as 'x y'. Got {shorten(names)} instead.")
    labels = [check_name(name, "coordinates") for name in names.replace(",", " ").split()]
    if len(set(labels)) != len(labels):
        raise ProblemError(f"coordinates got a name twice in {names!r}; each coordinate needs its own name.")
    symbols = tuple(sp.Symbol(label, real=True) for label in labels)
    return symbols[0] if len(symbols) == 1 else symbols


def field(
    name: str,
    *coords: sp.Symbol,
    prior: Smooth | None = None,
    start: Any = None,
    complex: bool = False,  # noqa: A002
) -> Any:
    """Return an unknown function of the given coordinates.

    Parameters
    ----------
    name
        Its name.
    *coords
        The coordinates it depends on. An unknown coefficient, source, boundary or initial function may depend on fewer
        than the problem has.
    prior
        ``Smooth()`` says that this is an unknown function to be found from observations, with no equation of its own.
    start
        Where the search for an unknown function starts: a number, or an expression of its coordinates.
    complex
        Whether its values are complex. It is then the sum of a real field and ``I`` times another one, for which
        equations and conditions are split into real and imaginary parts; solutions return complex values.

    Examples
    --------
    >>> x, t = coordinates("x t")
    >>> u = field("u", x, t)
    >>> u.diff(x, 2)
    Derivative(u(x, t), (x, 2))
    >>> field("k", x, prior=Smooth(), start=1).start
    1
    >>> field("psi", x, t, complex=True)
    I*psi_im(x, t) + psi_re(x, t)
    """
    if complex:
        if prior is not None or start is not None:
            raise ProblemError(f"The complex field {shorten(name)} cannot be an unknown function. Use two real ones.")
        real, imaginary = (field(f"{check_name(name, 'field')}{part}", *coords) for part in (REAL, IMAGINARY))
        return real + sp.I * imaginary
    label = check_name(name, "field")
    symbols = _check_coordinates(coords, "field")
    if prior is not None and not isinstance(prior, Smooth):
        raise ProblemError(
            f"The 'prior' parameter of field {label!r} must be pibls.Smooth(), with a size and a length if they are "
            f"known. Got {shorten(prior)} instead."
        )
    return _made_field(label, symbols, prior, _start(start, label, symbols))


def is_field(expression: Any) -> bool:
    """Tell whether an expression is a field, real or complex.

    >>> x = coordinates("x")
    >>> is_field(field("psi", x, complex=True)), is_field(field("u", x).diff(x))
    (True, False)
    """
    if isinstance(expression, Field) or not isinstance(expression, sp.Expr):
        return isinstance(expression, Field)
    parts = sorted(expression.atoms(Field), key=lambda own: str(own.label))
    named = len(parts) == 2 and parts[1].label.endswith(REAL) and parts[0].label.endswith(IMAGINARY)
    return named and bool(expression == parts[1] + sp.I * parts[0])


def _start(start: object, label: str, symbols: tuple[sp.Symbol, ...]) -> sp.Expr | None:
    if start is None:
        return None
    expression: Any = start
    if isinstance(start, int | float) and not isinstance(start, bool) and math.isfinite(start):
        expression = sp.Integer(start) if isinstance(start, int) else sp.Float(start)
    fine = isinstance(expression, sp.Expr) and expression.free_symbols <= set(symbols)
    if not fine or expression.has(AppliedUndef, sp.nan, sp.zoo, sp.oo, -sp.oo, sp.I):
        raise refusal(
            "start", f"field {label!r}", f"be a finite number, or an expression of {symbols}", start, error=ProblemError
        )
    return expression


def data(name: str, function: Callable[..., Any], *coords: sp.Symbol) -> Any:
    """Return a known function that exists only as a Python callable on arrays.

    Parameters
    ----------
    name
        What the function is called when the problem is printed.
    function
        Called with one NumPy array of shape ``(n,)`` per coordinate; returns ``n`` values, or one number.
    *coords
        The coordinates it depends on.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = coordinates("x y")
    >>> k = data("k", lambda x, y: 1 + np.exp(-x * y), x, y)
    >>> k
    k(x, y)
    """
    label = check_name(name, "data")
    if not callable(function):
        raise ProblemError(
            f"data {label!r} needs a callable that takes one array per coordinate. Got {shorten(function)} instead."
        )
    return _DataSource(label, function).func(*_check_coordinates(coords, "data"))


def normal(*coords: sp.Symbol) -> Any:
    """Return the components of the outward unit normal along the given coordinates, for boundary conditions.

    Examples
    --------
    >>> x, y = coordinates("x y")
    >>> normal(x, y)
    (n_x, n_y)
    >>> normal(x)[0]
    n_x
    """
    symbols = tuple(Normal(f"n_{symbol.name}", real=True) for symbol in _check_coordinates(coords, "normal"))
    return symbols[0] if len(symbols) == 1 else symbols
