"""Expressions with measures that must be known before SymPy may work on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from pibls.checks import cut
from pibls.errors import ProblemError
from pibls.problem.operators import Divergence, Laplacian, NormalDerivative, SpaceDerivative
from pibls.problem.symbols import Data, Field

_UNCOUNTED, _MOST_TERMS = 100_000, 5_000
_MOST_WRITTEN, _CALL = 150_000, 100  # nodes that SymPy writes out in about five seconds; a derivative takes as long as
_ROUNDING, _STEPS = 1e-12, ("floor", "ceiling", "Mod")


@dataclass(frozen=True)
class Measured:
    """An expression, a vector or a condition, and its measures.

    SymPy carries out what it is given, however long that takes: every number and every size is therefore known in
    advance, from the measures of the operands.
    """

    expression: Any  # what SymPy made
    number: float | None = None  # its value in double precision if it is a constant
    size: int = 1  # bound for the number of nodes of its tree
    order: int = 0  # order of the derivatives that operators such as laplacian still have to take

    @property
    def kind(self) -> str:
        """Its kind, in a word."""
        if isinstance(self.expression, sp.MatrixBase):
            return "vector"
        return "number" if isinstance(self.expression, sp.Expr) else "condition"


def is_unsure(kind: str, parts: Sequence[Measured], made: Measured) -> bool:
    """Tell whether double precision does not know a constant: its terms cancel, or its steps are far out.

    SymPy would look for as many digits as that takes, or for a polynomial of which it is a root.

    >>> two, three = Measured(sp.sqrt(2), 2**0.5), Measured(sp.sqrt(3), 3**0.5)
    >>> both = Measured(sp.sqrt(5 + 2 * sp.sqrt(6)), 2**0.5 + 3**0.5)
    >>> rest = Measured(both.expression - two.expression, 3**0.5)
    >>> is_unsure("Add", [rest, three], Measured(rest.expression - three.expression, 1e-16))
    True
    """
    numbers = [abs(part.number) for part in parts if part.number is not None]
    if made.number is None or len(numbers) < len(parts):
        return False
    if kind == "Add":
        return abs(made.number) <= _ROUNDING * sum(numbers) and not isinstance(made.expression, sp.Number)
    return kind in _STEPS and max(numbers) > 2**53


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
    """Counts how much SymPy writes out for all statements of a file, and refuses too much of it.

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


def expanded(expression: sp.Expr) -> sp.Expr:
    """Return an expression multiplied out; refuse one that has very many terms then."""
    if expanded_terms(expression) > _MOST_TERMS:
        raise ProblemError(
            f"Multiplied out, {cut(str(expression))} has more than {_MOST_TERMS} terms. Write it as a sum of few terms."
        )
    return sp.expand(expression)


def expanded_terms(expression: sp.Basic) -> int:
    """Return a bound for the terms of an expression, or of an argument in it, once it is multiplied out."""
    parts = [expanded_terms(part) for part in expression.args]
    if isinstance(expression, sp.Add):
        return sum(parts)
    if isinstance(expression, sp.Pow) and expression.exp.is_Integer:
        return math.comb(parts[0] + min(abs(int(expression.exp)), _MOST_TERMS) - 1, parts[0] - 1)
    return math.prod(parts) if isinstance(expression, sp.Mul) else max(parts, default=1)


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
    return size, 2 + max(growths)  # a derivative of an inner function, and a factor that is compared with all others
