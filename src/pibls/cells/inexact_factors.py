"""Iterations with factors that are not exact: refinement of a solution, and its sensitivity by inverse iteration."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

from pibls.refinement.standards import NEGLIGIBLE

__all__ = ["Invertible", "refined", "sensitivity"]

_REFINEMENTS = 4  # most steps of iterative refinement of a solution
_ITERATIONS = 2  # steps of inverse iteration

T = TypeVar("T")


def refined(start: T, step: Callable[[T], tuple[T, float]], *, is_exact: bool = False) -> T | None:
    """Return a solution after iterative refinement, or None if the factors are not accurate enough for it to contract.

    A step returns the corrected solution, and the size of its change relative to it. Exact factors are never refused.

    >>> round(refined(1.0, lambda x: ((x + 2.0 / x) / 2, abs(2.0 / x - x) / 20)), 9)
    1.414213562
    >>> refined(1.0, lambda x: (2.0 * x, 0.5)) is None
    True
    """
    found = start
    for _ in range(_REFINEMENTS):
        found, ratio = step(found)
        if not is_exact and not ratio < NEGLIGIBLE:
            return None
        # The next change is about the square of this one, which is rounding.
        if ratio < math.sqrt(sys.float_info.epsilon):
            break
    return found


class Invertible(Protocol[T]):
    """A factorised tree with which inverse iteration is possible."""

    def square(self, unknowns: T) -> float:
        """Return the squared L2 norm of the functions that have the unknowns."""

    def missed(self, unknowns: T) -> float:
        """Return the squared norm of all rows and balance sums times the unknowns."""

    def iterated(self, unknowns: T, scale: float) -> T:
        """Return the unknowns, scaled, after a step of inverse iteration."""

    def cleared(self, unknowns: T) -> T:
        """Return the unknowns without the part that rows see."""


def sensitivity(tree: Invertible[T], unknowns: T, count: int, *, is_exact: bool) -> tuple[float, T]:
    """Return how far solutions change with their data, and the unknowns that change most, from ``count`` random ones.

    Gram matrices cannot resolve the smallest singular value, but inverse iteration finds its direction; the rows give
    the value.
    """
    found = math.sqrt(tree.square(unknowns) / count)
    if is_exact or found <= 1.0 / NEGLIGIBLE:
        return found, unknowns
    for _ in range(_ITERATIONS):
        unknowns = tree.iterated(unknowns, 1.0 / math.sqrt(max(tree.square(unknowns), sys.float_info.min)))
    for _ in range(_ITERATIONS):
        unknowns = tree.cleared(unknowns)
    size = tree.square(unknowns) / max(tree.missed(unknowns), sys.float_info.min)
    return max(found, math.sqrt(size / count)), unknowns
