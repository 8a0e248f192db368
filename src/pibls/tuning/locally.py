"""Solves with errors relative to the local size of the fields, for parts of a domain that live on another scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pibls.refinement import ROUNDING
from pibls.solution import Solution
from pibls.status import Status
from pibls.tuning.purpose import next_accuracy

__all__ = ["local_error", "solve_locally"]


@dataclass(frozen=True)
class LocalError:
    """The largest error in a box, relative to the size of its field there."""

    value: float
    field: str
    size: float  # root mean square of the field in that box
    place: tuple[float, ...]  # the centre of the box

    def in_words(self, solution: Solution) -> str:
        """Say where the error is largest, and how large the field is there."""
        symbols = solution.problem.domain.coordinates
        place = ", ".join(f"{s.name}={v:.2g}" for s, v in zip(symbols, self.place, strict=True))
        return f"near {place}, where {self.field} is of size {self.size:.1g}"


def local_error(solution: Solution, boxes: int = 8, points: int = 40) -> LocalError:
    """Return the largest estimated error in any of the boxes that a domain is cut into, relative to the field there.

    Each axis is cut into so many boxes, with so many points in each on average. Below 1e-10 of its largest size a field
    counts as zero: rounding leaves no digit of it.

    >>> from pibls import problems, solve
    >>> solution = solve(problems.helmholtz())
    >>> bool(solution.error_estimate < local_error(solution).value < 100 * solution.error_estimate)
    True
    """
    domain = solution.problem.domain
    low, width = domain.bounds[:, 0], np.ptp(domain.bounds, axis=1)
    X, roots = solution.spread(points * boxes ** len(width), 0)
    inside = np.clip((boxes * (X - low) / width).astype(int), 0, boxes - 1)
    own, number = np.unique(inside, axis=0, return_inverse=True)
    values, apart = solution(X), solution.error_field(X)
    names, found = solution.problem.field_names, []
    for name in names:
        value, error = (made[name] if isinstance(made, dict) else made for made in (values, apart))
        weights = np.bincount(number, roots**2)
        sizes, errors = (np.sqrt(np.bincount(number, (roots * of) ** 2) / weights) for of in (value, error))
        relative = errors / np.maximum(sizes, max(ROUNDING * float(sizes.max()), np.finfo(np.float64).tiny))
        worst = int(relative.argmax())
        centre = low + (own[worst] + 0.5) / boxes * width
        found.append(LocalError(float(relative[worst]), name, float(sizes[worst]), tuple(centre.tolist())))
    return max(found, key=lambda one: one.value)


def solve_locally(tol: float, solved: Callable[[float], Solution]) -> Solution:
    """Solve more and more accurately until errors are within a tolerance of the local size of the fields.

    ``solved`` solves the problem to a tolerance over the whole domain.
    """
    accuracy = tol
    while True:
        solution = solved(accuracy)
        if solution.status == Status.ILL_POSED or solution.richer is None:
            return solution
        found = local_error(solution)
        estimate = max(found.value, solution.error_estimate or 0.0)
        if (
            estimate <= tol
            or solution.status != Status.CONVERGED
            or accuracy <= ROUNDING
            or not math.isfinite(estimate)
        ):
            break
        accuracy = next_accuracy(accuracy, tol / estimate)
    met, record = estimate <= tol, solution.diagnostics
    words = f"The estimated error relative to the local size of the fields is {estimate:.1e}, "
    words += f"within the tolerance {tol:g}." if met else f"above the tolerance {tol:g}, {found.in_words(solution)}."
    status = Status.CONVERGED if met else Status.STALLED
    known = replace(record, message=f"{words} Over the whole domain: {record.message}")
    return replace(solution, status=status, error_estimate=estimate, diagnostics=known)
