"""The four theorems of the paper as checks that wrong weights fail.

They concern the minimiser w of J(w) = ‖H w − z‖² + λ‖w‖². A solver is a function from right-hand side and ridge to
weights, and the checks look for what only the minimiser has: a gradient that is zero to rounding, an objective that no
step lowers, the one point of the ridge path, and, for the data that move weights most, exactly the gain that the sharp
bound allows. The singular values that they compare with come from another algorithm than the solver's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from pibls.checks import FloatArray

Solve = Callable[[FloatArray, float], FloatArray]
"""From a right-hand side and a ridge to weights."""

CHECKS = ("optimality", "no descent", "ridge path", "stability", "sensitivity")
_EPS = float(np.finfo(np.float64).eps)
_RANDOM = 20  # directions
_PATH = (0.25, 1.0, 4.0)  # ridges over the given one
_ATTAINED = 1e-3  # relative distance to the sharp bound that counts as attaining it
_CHANGE = 1e-3  # relative size of a change of the data


@dataclass(frozen=True)
class Check:
    """A measured value, its bound, and how near to a second number it must be, where one is attained.

    >>> Check("stability", 0.999999, 1.0, attained=True).holds, Check("stability", 0.5, 1.0, attained=True).holds
    (True, False)
    """

    name: str
    measured: float
    bound: float
    attained: bool = False
    printed: float = math.nan  # the bound of the paper

    @property
    def holds(self) -> bool:
        """Whether the measured number respects its bound, and attains it where it is to be attained."""
        below = self.measured <= self.bound * (1.0 + (_ATTAINED if self.attained else 0.0))
        return below and (not self.attained or self.measured >= self.bound * (1.0 - _ATTAINED))

    @property
    def record(self) -> dict[str, Any]:
        """All of it but the name, to be stored."""
        numbers = {"measured": self.measured, "sharp_bound": self.bound, "paper_bound": self.printed}
        return {**{name: float(value) for name, value in numbers.items()}, "holds": bool(self.holds)}


@dataclass(frozen=True, eq=False)
class LeastSquaresProblem:
    """H, z and λ, with singular values by divide and conquer."""

    matrix: FloatArray
    rhs: FloatArray
    ridge: float

    @cached_property
    def decomposition(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """U, σ and Vᵀ, the last one complete: directions that no row sees are in it."""
        u, sigma, vt = scipy.linalg.svd(self.matrix, full_matrices=True, check_finite=False)
        return u[:, : len(sigma)], sigma, vt

    @property
    def norm(self) -> float:
        """The spectral norm of H."""
        return float(self.decomposition[1][0])

    def gradient(self, weights: FloatArray) -> FloatArray:
        """Return half of the gradient of J."""
        return np.asarray(self.matrix.T @ (self.matrix @ weights - self.rhs) + self.ridge * weights)

    def rounding(self, weights: FloatArray) -> float:
        """Return the size of the gradient that rounding alone leaves after a backward stable solver."""
        size, norm = max(self.matrix.shape), float(np.linalg.norm(weights))
        data = float(np.linalg.norm(self.rhs))
        return float(size * _EPS * (self.norm * (self.norm * norm + data) + self.ridge * norm))

    def solution(self, ridge: float, rhs: FloatArray) -> FloatArray:
        """Return the weights of a ridge by singular values."""
        u, sigma, vt = self.decomposition
        return np.asarray(vt[: len(sigma)].T @ (sigma / (sigma**2 + ridge) * (u.T @ rhs)))

    def energy(self, step: FloatArray, ridge: float) -> float:
        """Return √(‖H d‖² + λ‖d‖²)."""
        return math.hypot(float(np.linalg.norm(self.matrix @ step)), math.sqrt(ridge) * float(np.linalg.norm(step)))

    def steepest(self) -> tuple[float, FloatArray]:
        """Return the largest gain σ/(σ² + λ) and the data, of norm one, that have it."""
        u, sigma, _ = self.decomposition
        gains = sigma / (sigma**2 + self.ridge)
        worst = int(np.argmax(gains))
        return float(gains[worst]), np.asarray(u[:, worst])


def check_theorems(problem: LeastSquaresProblem, solve: Solve) -> dict[str, dict[str, Any]]:
    """Return all checks of a solver on a least-squares problem; those that need a ridge only with one.

    >>> rng = np.random.default_rng(0)
    >>> problem = LeastSquaresProblem(rng.normal(size=(9, 4)), rng.normal(size=9), 0.1)
    >>> found = check_theorems(problem, lambda z, ridge: problem.solution(ridge, z))
    >>> [name for name, check in found.items() if check["holds"]] == list(CHECKS)
    True
    >>> wrong = check_theorems(problem, lambda z, ridge: 1.9 * problem.solution(ridge, z))
    >>> any(check["holds"] for check in wrong.values())
    False
    """
    return {check.name: check.record for check in _checks(problem, solve)}


def _checks(problem: LeastSquaresProblem, solve: Solve) -> Iterator[Check]:
    weights = solve(problem.rhs, problem.ridge)
    rounding = problem.rounding(weights)
    yield Check("optimality", float(np.linalg.norm(problem.gradient(weights))), rounding)
    yield _descent(problem, weights)
    if problem.ridge > 0:
        yield _path(problem, solve)
        yield from _gains(problem, solve, weights)


def _descent(problem: LeastSquaresProblem, weights: FloatArray) -> Check:
    """Bound by how much a step along random and worst directions lowers √J; the best length of a step is known."""
    gradient, vt = problem.gradient(weights), problem.decomposition[2]
    rng = np.random.default_rng(0)
    directions = [*rng.standard_normal((_RANDOM, len(weights))), gradient, weights, vt[0], vt[-1], vt[len(vt) // 2]]
    lowered = 0.0
    for direction in directions:
        steepness = problem.energy(direction, problem.ridge)
        if steepness > 0:
            lowered = max(lowered, abs(float(gradient @ direction)) / steepness)
    size = float(np.linalg.norm(problem.rhs)) + problem.norm * float(np.linalg.norm(weights))
    return Check("no descent", lowered, max(problem.matrix.shape) * _EPS * size)


def _path(problem: LeastSquaresProblem, solve: Solve) -> Check:
    """Bound the distance to the weights by singular values along the ridge path, in the norm of the objective."""
    distance = bound = 0.0
    for factor in _PATH:
        ridge = factor * problem.ridge
        found, known = solve(problem.rhs, ridge), problem.solution(ridge, problem.rhs)
        away = problem.energy(found - known, ridge)
        allowed = problem.rounding(known) / math.sqrt(ridge)
        if away / allowed >= distance / bound if bound else True:
            distance, bound = away, allowed
    return Check("ridge path", distance, bound)


def _gains(problem: LeastSquaresProblem, solve: Solve, weights: FloatArray) -> Iterator[Check]:
    """Compare weights, and their change, for the worst data with the sharp bound, which such data attain."""
    gain, data = problem.steepest()
    printed = problem.norm / problem.ridge
    size = float(np.linalg.norm(problem.rhs))
    attained = float(np.linalg.norm(solve(size * data, problem.ridge)))
    yield Check("stability", attained, gain * size, True, printed * size)
    step = _CHANGE * size
    moved = float(np.linalg.norm(solve(problem.rhs + step * data, problem.ridge) - weights))
    yield Check("sensitivity", moved, gain * step, True, printed * step)
