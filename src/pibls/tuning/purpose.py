"""Solves for a purpose: how accurate a solution has to be follows from the error that counts.

That is the error of a quantity, or the error relative to the local size of the fields, for parts of a domain that live
on another scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pibls.errors import InputError
from pibls.quantities import Quantity
from pibls.refinement import SMALLEST
from pibls.refinement.standards import MOST, NEGLIGIBLE, PLAIN
from pibls.solution import Solution
from pibls.status import Status

__all__ = ["local_error", "solve_for", "solve_locally"]

Solved = Callable[[float], Solution]  # solves a problem to a tolerance over the whole domain


def solve_for(goal: Callable[[Solution], Quantity], tol: float, solved: Solved) -> Solution:
    """Solve more and more accurately until a quantity is known to a relative tolerance."""

    def judged(solution: Solution) -> tuple[float, Callable[[bool], Solution]]:
        found = goal(solution)
        if not isinstance(found, Quantity):
            raise InputError(
                f"The 'goal' parameter of solve must return one Quantity, such as maximum(u). Got {found!r} instead."
            )
        error = found.error / abs(found.value) if found.value else math.inf
        return error, lambda met: _with_quantity(solution, found, tol, met)

    return _solve_until(tol, max(tol, PLAIN), solved, judged)


def solve_locally(tol: float, solved: Solved) -> Solution:
    """Solve more and more accurately until errors are within a tolerance of the local size of the fields."""

    def judged(solution: Solution) -> tuple[float, Callable[[bool], Solution]]:
        if solution.status == Status.ILL_POSED or solution.richer is None:
            return math.inf, lambda _: solution
        worst, where = local_error(solution)
        estimate = max(worst, solution.error_estimate or 0.0)
        return estimate, lambda met: _with_local_error(solution, estimate, where, tol, met)

    return _solve_until(tol, tol, solved, judged)


def _solve_until(
    tol: float, accuracy: float, solved: Solved, judged: Callable[[Solution], tuple[float, Callable[[bool], Solution]]]
) -> Solution:
    """Solve more and more accurately until the error that counts is within a tolerance, and tell of it.

    Errors fall as those of the solution do; the next tolerance is as much smaller as the error is too large, and no
    solve is made for less than a half.
    """
    while True:
        solution = solved(accuracy)
        error, told = judged(solution)
        if error <= tol or solution.status != Status.CONVERGED or accuracy <= SMALLEST or not math.isfinite(error):
            return told(error <= tol)
        accuracy = max(SMALLEST, accuracy * min(MOST, max(MOST * tol / error, NEGLIGIBLE * PLAIN)))


def _with_quantity(solution: Solution, found: Quantity, tol: float, met: bool) -> Solution:
    """Return a solution whose status and message are about a quantity."""
    record, status = solution.diagnostics, solution.status
    words = f"The quantity is {found}, " + (f"within the tolerance {tol:g}." if met else f"not within {tol:g} of it.")
    if status == Status.CONVERGED and not met:
        status, words = Status.STALLED, f"{words} A more accurate solution would not tell it."
    elif status == Status.STALLED and met:
        status = Status.CONVERGED
    return replace(solution, status=status, diagnostics=replace(record, message=f"{words} {record.message}"))


def _with_local_error(solution: Solution, estimate: float, where: str, tol: float, met: bool) -> Solution:
    """Return a solution whose status and message are about errors relative to the local size of the fields."""
    words = f"The estimated error relative to the local size of the fields is {estimate:.1e}, "
    words += f"within the tolerance {tol:g}." if met else f"above the tolerance {tol:g}, {where}."
    record = solution.diagnostics
    known = replace(record, message=f"{words} Over the whole domain: {record.message}")
    status = Status.CONVERGED if met else Status.STALLED
    return replace(solution, status=status, error_estimate=estimate, diagnostics=known)


def local_error(solution: Solution, boxes: int = 8, points: int = 40) -> tuple[float, str]:
    """Return the largest estimated error in any box of a domain, relative to the field there, and where that is.

    Each axis is cut into so many boxes, with so many points in each on average. Below 1e-10 of its largest size a field
    counts as zero: rounding leaves no digit of it.

    >>> from pibls import problems, solve
    >>> solution = solve(problems.helmholtz())
    >>> bool(solution.error_estimate < local_error(solution)[0] < 100 * solution.error_estimate)
    True
    """
    domain = solution.problem.domain
    low, width = domain.bounds[:, 0], np.ptp(domain.bounds, axis=1)
    X, roots = solution.spread(points * boxes ** len(width), 0)
    inside = np.clip((boxes * (X - low) / width).astype(int), 0, boxes - 1)
    own, number = np.unique(inside, axis=0, return_inverse=True)
    values, apart = solution(X), solution.error_field(X)
    found = []
    for name in solution.problem.field_names:
        value, error = (made[name] if isinstance(made, dict) else made for made in (values, apart))
        weights = np.bincount(number, roots**2)
        sizes, errors = (np.sqrt(np.bincount(number, (roots * of) ** 2) / weights) for of in (value, error))
        relative = errors / np.maximum(sizes, max(SMALLEST * float(sizes.max()), np.finfo(np.float64).tiny))
        worst = int(relative.argmax())
        centre = low + (own[worst] + 0.5) / boxes * width
        place = ", ".join(f"{s.name}={v:.2g}" for s, v in zip(domain.coordinates, centre, strict=True))
        found.append((float(relative[worst]), f"near {place}, where {name} is of size {sizes[worst]:.1g}"))
    return max(found, key=lambda one: one[0])
