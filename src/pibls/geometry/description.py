"""The arguments of shapes, described once for Python, for files of solutions and for problem files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from operator import attrgetter
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import check_number, refusal, shorten
from pibls.errors import GeometryError

Vector = tuple[float, ...]
Encoder = Callable[[sp.Expr], Any]
Decoder = Callable[[Any], sp.Expr]


def check_coordinates(value: object, owner: str, count: int | None = None) -> tuple[sp.Symbol, ...]:
    """Return a tuple of distinct symbols, or refuse the value.

    >>> check_coordinates(sp.symbols("x y"), "Disk", 2)
    (x, y)
    """
    symbols = (value,) if isinstance(value, sp.Symbol) else value
    try:
        symbols = tuple(symbols) if isinstance(symbols, Iterable) and not isinstance(symbols, str) else (symbols,)
    except TypeError:  # arrays without an axis call themselves iterable
        symbols = ()
    wanted = "one or more" if count is None else str(count)
    if not symbols or not all(isinstance(s, sp.Symbol) for s in symbols) or count not in (None, len(symbols)):
        raise GeometryError(
            f"The coordinates of {owner} must be {wanted} SymPy symbol{'' if count == 1 else 's'}. "
            f'Got {shorten(value)} instead. Make them with x, y = coordinates("x y").'
        )
    if len({symbol.name for symbol in symbols}) < len(symbols):
        raise GeometryError(
            f"The coordinates of {owner} must have different names. Got {shorten(symbols)} instead. "
            "Use each coordinate once."
        )
    return symbols


def check_center(value: object, count: int, owner: str) -> Vector:
    """Return a point of ``count`` finite numbers, or refuse it.

    >>> check_center((0, 1), 2, "Disk")
    (0.0, 1.0)
    """
    try:
        entries = list(value)  # type: ignore[call-overload]
    except TypeError:
        entries = []
    if len(entries) != count or isinstance(value, str):
        raise refusal("center", owner, f"be {count} numbers, one per coordinate", value, error=GeometryError)
    return tuple(check_number("center", entry, owner, error=GeometryError) for entry in entries)


class Kind(Enum):
    """The content of an argument."""

    NUMBER = auto()
    WHOLE = auto()
    WORD = auto()
    COORDINATE = auto()
    POINT = auto()
    POINTS = auto()
    RINGS = auto()
    FORMULA = auto()
    PARTS = auto()
    SHAPE = auto()


@dataclass(frozen=True)
class Argument:
    """An argument of a shape, under one name in Python, in descriptions and in problem files.

    A shape keeps it in ``attribute`` if that is not its name. Problem files may leave it out if it has no ``example``;
    then it is ``default``.
    """

    name: str
    kind: Kind
    example: str = ""
    attribute: str = ""
    default: Any = None

    def of(self, shape: Any) -> Any:
        """Return the value that a shape has."""
        return attrgetter(self.attribute or self.name)(shape)

    def write(self, shape: Any, formula: Callable[[Any], Any], inner: Callable[[Any], Any]) -> Any:
        """Return the value as numbers, strings and lists; formulas and shapes within as two functions write them."""
        value = self.of(shape)
        if self.kind in (Kind.FORMULA, Kind.SHAPE):
            return formula(value) if self.kind is Kind.FORMULA else inner(value)
        if self.kind is Kind.PARTS:
            return {name: list(rows) for name, rows in value}
        return value.name if self.kind is Kind.COORDINATE else _listed(value)

    def read(self, data: Mapping[str, Any], coordinates: tuple[sp.Symbol, ...], formula: Any, inner: Any) -> Any:
        """Return the value that :meth:`write` wrote; older files may call it by its attribute."""
        value = data[self.name if self.name in data else self.attribute or self.name]
        if self.kind in (Kind.FORMULA, Kind.SHAPE):
            return formula(value) if self.kind is Kind.FORMULA else inner(value)
        if self.kind is Kind.COORDINATE:
            return next(symbol for symbol in coordinates if symbol.name == value)
        return None if value == [] else value

    def shown(self, shape: Any) -> str:
        """Return the argument as it is written in Python, empty where it is the default."""
        value = self.of(shape)
        if self.kind is Kind.POINTS:
            return f"[{', '.join(map(written, value))}]"
        text = written(value) if isinstance(value, tuple) else describe(value)
        return text if self.default is None else f"{self.name}={text}" * (value != self.default)


Arguments = tuple[Argument, ...]


def _listed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_listed(entry) for entry in value] if isinstance(value, tuple) else value


def describe(number: float) -> str:
    """Return a number as a person would write it.

    >>> describe(1.0), describe(0.25)
    ('1', '0.25')
    """
    return repr(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


def rational(value: float) -> sp.Expr:
    """Return a number as it is written.

    >>> rational(0.1)
    1/10
    """
    return sp.Rational(repr(float(value)))


def written(point: Any) -> str:
    """Return a point as a person would write it.

    >>> written((0.0, 0.5))
    '(0, 0.5)'
    """
    return f"({', '.join(map(describe, point))})"
