"""Expressions with what has to be known about them before SymPy may work on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from pibls.errors import ProblemError
from pibls.problem.operators import Divergence, Laplacian, NormalDerivative, SpaceDerivative
from pibls.problem.symbols import Data, Field

_UNCOUNTED = 100_000
_MOST_WRITTEN, _CALL = 150_000, 100  # nodes that SymPy writes out in about five seconds; a derivative takes as long as


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
        """What it is, in a word."""
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


@dataclass
class Written:
    """Counts how much SymPy writes out for the statements of a file, all together, and refuses what takes long.

    >>> Written(2).add(sp.Symbol("x") + 1)
    """

    dimension: int
    total: int = 0

    def add(self, expression: sp.Basic) -> None:
        """Count one more expression, before its operators are carried out."""
        self.total += _CALL + _written(expression, self.dimension)[0]
        if self.total > _MOST_WRITTEN:
            raise ProblemError(
                f"Equations and conditions are too large: written out, they have over {_MOST_WRITTEN} parts. Simplify "
                "them, or introduce other unknowns for inner operators."
            )


def _written(node: sp.Basic, dimension: int) -> tuple[int, int]:
    """Return how many nodes an expression has once its derivatives are taken, and how each derivative multiplies them.

    By the product rule a derivative has a term per factor, by the chain rule a factor per level.
    """
    if isinstance(node, Field | Data) or not node.args:
        return (_CALL if node.args else 1), int(not node.is_number)
    inner = [_written(part, dimension) for part in (node.args[:1] if isinstance(node, sp.Derivative) else node.args)]
    size, growths = 1 + sum(part for part, _ in inner), [growth for _, growth in inner]
    if isinstance(node, sp.Derivative | Laplacian | Divergence | NormalDerivative | SpaceDerivative):
        order = node.derivative_count if isinstance(node, sp.Derivative) else 1 + isinstance(node, Laplacian)
        copies = dimension if isinstance(node, Laplacian | NormalDerivative) else 1
        return copies * size * max(growths) ** order, max(growths)
    if isinstance(node, sp.Mul | sp.Add):
        return size, sum(growths) if isinstance(node, sp.Mul) else max(growths)
    return size, 1 + max(growths)
