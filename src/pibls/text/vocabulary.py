"""The vocabulary of formulas: coordinates, unknowns, parameters, data, derivatives by subscript, and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import sympy as sp

from pibls.checks import HIGHEST_ORDER
from pibls.problem.encoding import SCALARS, SEARCHING
from pibls.problem.measured import Measured
from pibls.problem.program import value_of
from pibls.problem.symbols import normal


@dataclass(frozen=True)
class Names:
    """The names a formula may use besides functions and constants."""

    coordinates: tuple[sp.Symbol, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)  # the unknown functions by name
    # everything else by name: parameters, unknown numbers and data functions
    values: Mapping[str, Measured] = field(default_factory=dict)

    @cached_property
    def known(self) -> Mapping[str, Measured]:
        """The meaning of every name that stands for something by itself; declared names come before constants.

        >>> known = Names((sp.Symbol("x", real=True),)).known
        >>> known["x"].expression, known["n_x"].expression, known.get("y")
        (x, n_x, None)
        """
        found = {name: Measured(own) for name, own in (self.symbols | dict(self.fields)).items()}
        constants = {name: Measured(own, number=float(own)) for name, own in CONSTANTS.items()}
        normals = {f"n_{symbol.name}": Measured(normal(symbol)) for symbol in self.coordinates}
        for more in (self.values, constants, normals):
            found |= {name: own for name, own in more.items() if name not in found}
        return found

    @property
    def symbols(self) -> dict[str, sp.Symbol]:
        """The coordinates by name."""
        return {symbol.name: symbol for symbol in self.coordinates}

    @property
    def plain(self) -> Names:
        """The names without the unknown functions: all that is known."""
        return replace(self, fields={})

    def derivatives(self, name: str) -> list[tuple[str, tuple[int, ...]]]:
        """Return the ways to read a name as a field, an underscore and coordinates: field and orders, two at most.

        >>> x, y, z = sp.symbols("x y xy", real=True)
        >>> names = Names((x, y, z), {"u": None})
        >>> names.derivatives("u_xx"), names.derivatives("u_xy"), names.derivatives("u_q")
        ([('u', (2, 0, 0))], [('u', (0, 0, 1)), ('u', (1, 1, 0))], [])
        """
        found: list[tuple[str, tuple[int, ...]]] = []
        for label in self.fields:
            if name.startswith(f"{label}_"):
                found += [(label, orders) for orders in self._orders(name[len(label) + 1 :])]
        return found[:2]

    def _orders(self, subscript: str) -> list[tuple[int, ...]]:
        """Return the different ways to split a subscript into coordinates; more than two do not matter."""
        longest = HIGHEST_ORDER * max(len(symbol.name) for symbol in self.coordinates)
        if len(subscript) > longest:
            return []
        ways: list[dict[tuple[int, ...], None]] = [{} for _ in range(len(subscript) + 1)]
        ways[0][(0,) * len(self.coordinates)] = None
        for start, reached in enumerate(ways[:-1]):
            for axis, symbol in enumerate(self.coordinates):
                stop = start + len(symbol.name)
                if subscript[start:stop] == symbol.name:
                    for orders in list(reached)[:2]:
                        ways[stop][(*orders[:axis], orders[axis] + 1, *orders[axis + 1 :])] = None
        return list(ways[-1])[:2] if subscript else []


_LARGEST_ORDER = 50


@dataclass(frozen=True)
class NamedFunction:
    """A function of formulas."""

    make: Callable[..., Any]  # builds the SymPy expression
    # fewest, most: how many arguments it takes
    fewest: int = 1
    most: int = 1
    # whether its first argument counts (a degree or an order), and has to be a whole number up to 50
    order: bool = False
    # whether SymPy searches the arguments for relations between them, so that they have to be small
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
        """Return the fault of the arguments in words, or nothing."""
        if not self.fewest <= count <= self.most:
            wanted = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest} to {self.most}"
            return f"takes {wanted} argument{'' if self.most == 1 else 's'}, not {count}"
        if self.order and (first is None or first != int(first) or not 0 <= first <= _LARGEST_ORDER):
            return f"takes a whole number from 0 to {_LARGEST_ORDER} first"
        return ""


def _function(cls: Any) -> NamedFunction:
    name = cls.__name__
    fewest, most = _COUNTS.get(name, (2, 2) if name in _ORDERED else (1, 1))
    return NamedFunction(cls, fewest, most, order=name in _ORDERED, searches=name in SEARCHING)


_ORDERED = ("besselj", "bessely", "besseli", "besselk", "legendre", "hermite", "chebyshevt")
_COUNTS = {"atan2": (2, 2), "Heaviside": (1, 2), "Min": (2, 6), "Max": (2, 6)}
FUNCTIONS: Mapping[str, NamedFunction] = MappingProxyType(
    {{"ceiling": "ceil"}.get(cls.__name__, cls.__name__.lower()): _function(cls) for cls in SCALARS}
    | {"sqrt": NamedFunction(sp.sqrt), "cbrt": NamedFunction(sp.cbrt)}
)

CONSTANTS: Mapping[str, sp.Expr] = MappingProxyType({"pi": sp.pi, "e": sp.E})

# Words that are followed by brackets and are no functions of numbers.
OPERATORS = (
    *("laplacian", "grad", "div", "dot", "dn", "diff", "product", "piecewise", "where", "inside", "outside", "flux"),
)  # fmt: skip

_NAMES = {entry.make: name for name, entry in FUNCTIONS.items()}


def name_of(expression: sp.Basic) -> str | None:
    """Return the name in formulas of the outermost function of an expression, if it has one.

    >>> name_of(sp.Abs(sp.Symbol("x"))), name_of(sp.zeta(sp.Symbol("x")))
    ('abs', None)
    """
    return _NAMES.get(type(expression))
