"""Coordinates for the unknowns in which none has a unit: logarithms of positive numbers, multiples of a scale else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from pibls.checks import BoolArray, FloatArray
from pibls.geometry.sampling import kronecker
from pibls.inverse.parametric import Parametric
from pibls.inverse.thresholds import SETTINGS, STEP
from pibls.problem import Unknown
from pibls.refinement.standards import NEGLIGIBLE, SLIGHT


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A map between the vector of unknowns and coordinates for the search."""

    logarithmic: BoolArray  # which unknowns have a logarithmic coordinate
    scales: FloatArray  # what one unit of the other coordinates stands for
    # low, high: bounds, in coordinates
    low: FloatArray
    high: FloatArray
    start: FloatArray  # where the search starts, in coordinates
    # means, deviations: priors of the unknowns themselves; infinite deviations where there is none
    means: FloatArray
    deviations: FloatArray

    @classmethod
    def of(cls, parametric: Parametric, functions: FloatArray) -> Coordinates:
        """Return coordinates for the unknowns of a problem; those of functions start from given coefficients."""
        numbers = parametric.problem.parameters
        count = len(functions)
        positive = np.array([k.positive for k in numbers] + [False] * count, dtype=bool)
        # Where a coefficient jumps by chance from a number to the same, no solution would see the jump.
        apart = 1.0 + STEP * np.arange(len(numbers))
        starts = np.array([*(apart * np.array([k.first_guess for k in numbers])), *functions])
        scales = np.array([_scale(k) for k in numbers] + [1.0] * count)
        bounds = [k.bounds or (None, None) for k in numbers] + [(None, None)] * count
        low = np.array([-np.inf if b[0] is None else b[0] for b in bounds], dtype=float)
        high = np.array([np.inf if b[1] is None else b[1] for b in bounds], dtype=float)
        priors = [k.prior or (0.0, np.inf) for k in numbers] + [(0.0, np.inf)] * count
        means, deviations = np.array(priors, dtype=float).reshape(-1, 2).T
        with np.errstate(divide="ignore"):
            low, high, starts = (np.where(positive, np.log(np.maximum(v, 0)), v / scales) for v in (low, high, starts))
        return cls(positive, scales, low, high, np.clip(starts, low, high), means, deviations)

    def vector(self, point: FloatArray) -> FloatArray:
        """Return the unknowns of a point in coordinates."""
        with np.errstate(over="ignore"):
            return np.where(self.logarithmic, np.exp(np.where(self.logarithmic, point, 0.0)), point * self.scales)

    def point(self, vector: FloatArray) -> FloatArray:
        """Return the coordinates of unknowns."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.logarithmic, np.log(vector), vector / self.scales)

    def within(self, point: FloatArray) -> FloatArray:
        """Return the nearest point within bounds."""
        return np.clip(point, self.low, self.high)

    def rates(self, point: FloatArray) -> FloatArray:
        """Return the derivative of every unknown by its coordinate."""
        return np.where(self.logarithmic, self.vector(point), self.scales)

    def held(self, number: int, target: FloatArray, deviation: float) -> Coordinates:
        """Return coordinates with a prior that holds a number next to a target, by a share of a deviation."""
        means, deviations = self.means.copy(), self.deviations.copy()
        means[number] = self.vector(target)[number]
        deviations[number] = SLIGHT * deviation * self.rates(target)[number]
        return replace(self, means=means, deviations=deviations)

    def sizes(self, point: FloatArray) -> FloatArray:
        """Return the size of a large change of every coordinate: for unlimited numbers, their own size."""
        limited = self.logarithmic | np.isfinite(self.deviations) | (np.isfinite(self.low) & np.isfinite(self.high))
        return np.where(limited, 1.0, np.maximum(1.0, np.abs(point)))

    def starts(self, numbers: int) -> list[FloatArray]:
        """Return the first start, and others for the numbers."""
        return [self.start, *self.others(numbers, min(2 + 2 * numbers, SETTINGS.starts) if numbers else 0)]

    def images(self, point: FloatArray, numbers: int, mirrors: Mapping[int, Sequence[float]]) -> list[FloatArray]:
        """Return points that symmetries may make as good as one: numbers exchanged, with the other sign, or mirrored.

        ``mirrors`` says in which places a number may be mirrored beside zero.
        """
        vector = self.vector(point)
        signs = np.where(self.logarithmic | (np.arange(len(vector)) >= numbers), 1.0, -1.0)
        found = [signs * vector]
        for i, j in combinations(range(numbers), 2):
            found.append(vector.copy())
            found[-1][[i, j]] = vector[[j, i]]
        for i in range(numbers):
            for middle in (0.0, *mirrors.get(i, ())):
                found.append(vector.copy())
                found[-1][i] = 2.0 * middle - vector[i]
        low, high = self.vector(self.low), self.vector(self.high)
        allowed = [own for own in found if ((low <= own) & (own <= high) & (~self.logarithmic | (own > 0))).all()]
        every = {tuple(own.tolist()): own for own in allowed}
        return [self.point(own) for own in every.values() if not np.allclose(own, vector, rtol=NEGLIGIBLE)]

    def between(self, point: FloatArray, numbers: int, count: int) -> list[FloatArray]:
        """Return points with other values of the numbers that have two bounds; none where no number has."""
        limited = np.isfinite(self.vector(self.low)) & np.isfinite(self.vector(self.high))
        return [np.where(limited, other, point) for other in self.others(numbers, count)] if limited.any() else []

    def beside(self, point: FloatArray, numbers: int) -> list[FloatArray]:
        """Return points with one of the numbers far to either side of its value."""
        steps = np.where(self.logarithmic, SETTINGS.longest, 2.0 * np.maximum(1.0, np.abs(point)))
        moves = np.vstack([np.diag(steps)[:numbers], -np.diag(steps)[:numbers]])
        return [self.within(point + move) for move in moves]

    def others(self, numbers: int, count: int) -> list[FloatArray]:
        """Return further starts for the numbers, spread evenly over bounds or over decades about the first start."""
        found = []
        # Evenly spread for any number of starts.
        for shares in kronecker(count, numbers):
            point = self.start.copy()
            for i in range(numbers):
                low, high = self.low[i], self.high[i]
                if self.logarithmic[i] and np.isneginf(low) and np.isfinite(high):
                    # From zero to something, as a position: decades below would be all near zero.
                    point[i] = high + np.log(shares[i])
                elif self.logarithmic[i]:
                    low = max(low, self.start[i] - SETTINGS.decades * np.log(10.0))
                    high = min(high, self.start[i] + SETTINGS.decades * np.log(10.0))
                    point[i] = low + shares[i] * (high - low)
                elif np.isfinite(low) and np.isfinite(high):
                    point[i] = low + shares[i] * (high - low)
                else:
                    size = 10.0 ** (SETTINGS.decades * (2.0 * abs(2.0 * shares[i] - 1.0) - 1.0))
                    sign = 1.0 if low >= 0 or shares[i] > 0.5 else -1.0
                    point[i] = np.clip(sign * size * max(abs(self.start[i]), 1e-3), low, high)
            found.append(point)
        return found


def _scale(number: Unknown) -> float:
    low, high = number.bounds or (None, None)
    if number.prior is not None:
        return float(number.prior[1])
    if low is not None and high is not None:
        return float(high - low)
    return abs(number.first_guess) or 1.0
