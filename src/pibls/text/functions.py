"""The functions of formulas: how SymPy makes each, its value for numbers, and the arguments it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import sympy as sp

from pibls.problem.encoding import SCALARS, SEARCHING
from pibls.problem.program import value_of

__all__ = ["CONSTANTS", "FUNCTIONS", "OPERATORS", "Function", "name_of"]

_LARGEST_ORDER = 50


@dataclass(frozen=True)
class Function:
    """A function of formulas.

    Attributes
    ----------
    make
        Builds the SymPy expression.
    fewest, most
        How many arguments it takes.
    order
        Whether its first argument counts (a degree or an order), and has to be a whole number up to 50.
    searches
        Whether SymPy searches the arguments for relations between them, so that they have to be small.
    """

    make: Callable[..., Any]
    fewest: int = 1
    most: int = 1
    order: bool = False
    searches: bool = False

    def value(self, *numbers: float) -> float:
        """Return the value for numbers in double precision; raise ValueError where there is none."""
        name = self.make.__name__
        if name == "Heaviside" and len(numbers) == 1:
            numbers = (*numbers, 0.5)
        # SymPy writes a factorial out for whole numbers, even under the logarithm.
        hidden = value_of("gamma", numbers) if name == "loggamma" else 0.0
        value = value_of("Pow", [*numbers, 1 / 3]) if name == "cbrt" else value_of(name, numbers)
        if value is None or hidden is None:
            raise ValueError("no value")
        return value

    def refuses(self, count: int, first: float | None) -> str:
        """Return what is wrong with the arguments, or nothing."""
        if not self.fewest <= count <= self.most:
            wanted = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest} to {self.most}"
            return f"takes {wanted} argument{'' if self.most == 1 else 's'}, not {count}"
        if self.order and (first is None or first != int(first) or not 0 <= first <= _LARGEST_ORDER):
            return f"takes a whole number from 0 to {_LARGEST_ORDER} first"
        return ""


def _function(cls: Any) -> Function:
    name = cls.__name__
    fewest, most = _COUNTS.get(name, (2, 2) if name in _ORDERED else (1, 1))
    return Function(cls, fewest, most, order=name in _ORDERED, searches=name in SEARCHING)


_ORDERED = ("besselj", "bessely", "besseli", "besselk", "legendre", "hermite", "chebyshevt")
_COUNTS = {"atan2": (2, 2), "Heaviside": (1, 2), "Min": (2, 6), "Max": (2, 6)}
FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {{"ceiling": "ceil"}.get(cls.__name__, cls.__name__.lower()): _function(cls) for cls in SCALARS}
    | {"sqrt": Function(sp.sqrt), "cbrt": Function(sp.cbrt)}
)

CONSTANTS: Mapping[str, sp.Expr] = MappingProxyType({"pi": sp.pi, "e": sp.E})

# Words that are followed by brackets and are no functions of numbers.
OPERATORS = (
    *("laplacian", "grad", "div", "dot", "dn", "diff", "product", "piecewise", "where", "inside", "outside", "flux"),
)  # fmt: skip

_NAMES = {entry.make: name for name, entry in FUNCTIONS.items()}


def name_of(expression: sp.Basic) -> str | None:
    """Return what the outermost function of an expression is called in formulas, if it is one of them.

    >>> name_of(sp.Abs(sp.Symbol("x"))), name_of(sp.zeta(sp.Symbol("x")))
    ('abs', None)
    """
    return _NAMES.get(type(expression))
