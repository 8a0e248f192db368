"""Solves for a quantity: the tolerance of the solution follows from how well the quantity is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from pibls.errors import InputError
from pibls.quantities import Quantity
from pibls.refinement import ROUNDING
from pibls.refinement.standards import MOST, NEGLIGIBLE, PLAIN
from pibls.solution import Solution
from pibls.status import Status

__all__ = ["next_accuracy", "solve_for"]


def solve_for(goal: Callable[[Solution], Quantity], tol: float, solved: Callable[[float], Solution]) -> Solution:
    """Solve more and more accurately until a quantity is known to a relative tolerance.

    ``solved`` solves the problem to a tolerance. Errors of a quantity fall as those of the solution do; the next
    tolerance is as much smaller as the error of the quantity is too large, and no solve is made for less than a half.
    """
    accuracy = max(tol, PLAIN)
    while True:
        solution = solved(accuracy)
        found = goal(solution)
        if not isinstance(found, Quantity):
            raise InputError(
                f"The 'goal' parameter of solve must return one Quantity, such as maximum(u). Got {found!r} instead."
            )
        error = found.error / abs(found.value) if found.value else math.inf
        share = tol / error if error > 0.0 else math.inf
        if solution.status != Status.CONVERGED or share >= 1.0 or not math.isfinite(error) or accuracy <= ROUNDING:
            return _told(solution, found, tol, met=share >= 1.0)
        accuracy = next_accuracy(accuracy, share)


def next_accuracy(accuracy: float, share: float) -> float:
    """Return the next tolerance of a solution, if an error that follows from it is to fall to a share."""
    return max(ROUNDING, accuracy * min(MOST, max(MOST * share, NEGLIGIBLE * PLAIN)))


def _told(solution: Solution, found: Quantity, tol: float, *, met: bool) -> Solution:
    """Return a solution whose status and message are about a quantity."""
    record, status = solution.diagnostics, solution.status
    words = f"The quantity is {found}, " + (f"within the tolerance {tol:g}." if met else f"not within {tol:g} of it.")
    if status == Status.CONVERGED and not met:
        status, words = Status.STALLED, f"{words} A more accurate solution would not tell it."
    elif status == Status.STALLED and met:
        status = Status.CONVERGED
    return replace(solution, status=status, diagnostics=replace(record, message=f"{words} {record.message}"))
