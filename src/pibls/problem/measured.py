"""Expressions with measures that must be known before SymPy may work on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

_UNCOUNTED = 100_000


@dataclass(frozen=True)
class Measured:
    """An expression, a vector or a condition, and its measures.

    SymPy carries out what it is given, however long that takes: every number and every size is therefore known in
    advance, from the measures of the operands.

    Attributes
    ----------
    expression
        What SymPy made.
    number
        Its value in double precision if it is a constant.
    size
        Bound for the number of nodes of its tree.
    terms
        Bound for its terms if what holds an unknown is multiplied out; zero without unknowns.
    order
        Order of the derivatives that operators such as ``laplacian`` still have to take.
    plain
        Whether it is a sum of unknowns and their derivatives with constant factors.
    """

    expression: Any
    number: float | None = None
    size: int = 1
    terms: int = 0
    order: int = 0
    plain: bool = False

    @property
    def kind(self) -> str:
        """Its kind, in a word."""
        if isinstance(self.expression, sp.MatrixBase):
            return "vector"
        return "number" if isinstance(self.expression, sp.Expr) else "condition"


def tree_size(expression: sp.Basic) -> int:
    """Return the number of nodes of an expression, counted up to a limit.

    >>> tree_size(sp.sin(sp.Symbol("x")) + 1)
    4
    """
    count, todo = 0, [expression]
    while todo and count < _UNCOUNTED:
        node = todo.pop()
        count += 1
        todo += node.args
    return count
