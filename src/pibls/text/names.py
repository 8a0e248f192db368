"""What the names of a formula stand for: coordinates, unknowns, parameters, data, and derivatives by subscript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from pibls.checks import HIGHEST_ORDER
from pibls.problem.measured import Measured
from pibls.problem.symbols import normal
from pibls.text.functions import CONSTANTS

__all__ = ["Names"]


@dataclass(frozen=True)
class Names:
    """The names a formula may use besides functions and constants.

    Attributes
    ----------
    coordinates
        The coordinates.
    fields
        The unknown functions by name.
    values
        Everything else by name: parameters, unknown numbers and data functions.
    """

    coordinates: tuple[sp.Symbol, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Measured] = field(default_factory=dict)

    @property
    def known(self) -> list[str]:
        """Every name that stands for something by itself."""
        normals = (f"n_{symbol.name}" for symbol in self.coordinates)
        return [*(s.name for s in self.coordinates), *self.fields, *self.values, *CONSTANTS, *normals]

    def find(self, name: str) -> Measured | None:
        """Return what a name without brackets stands for; declared names come before constants.

        >>> x = sp.Symbol("x", real=True)
        >>> Names((x,)).find("x").expression, Names((x,)).find("n_x").expression, Names((x,)).find("y")
        (x, n_x, None)
        """
        for symbol in self.coordinates:
            if name == symbol.name:
                return Measured(symbol)
        if name in self.fields:
            return Measured(self.fields[name], terms=1, plain=True)
        if name in self.values:
            return self.values[name]
        if name in CONSTANTS:
            return Measured(CONSTANTS[name], number=float(CONSTANTS[name]))
        for symbol in self.coordinates:
            if name == f"n_{symbol.name}":
                return Measured(normal(symbol))
        return None

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
