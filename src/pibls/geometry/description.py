"""The arguments of shapes, described once for Python, for files of solutions and for problem files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from operator import attrgetter
from typing import Any

import numpy as np
import sympy as sp


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
