"""The same points, clock and medians for every solver of :mod:`benchmarks.peers`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pibls as pb

UNSEEN = 2000
_SPACE = 3
_SEED = 777_001  # of the points errors are measured at; no solver draws its own from it

Predict = Callable[[Any], Any]


@dataclass(frozen=True)
class Probe:
    """Points no solver has seen, and the exact solution there."""

    name: str
    points: Any
    exact: Any

    @classmethod
    def of(cls, name: str, problem: pb.Problem) -> Probe:
        """Return random points of a problem, or those of a tabulated solution."""
        reference = pb.problems.references().get(name)
        if reference is not None:
            return cls(name, reference.points, reference.values)
        points = problem.domain.sample(UNSEEN, method="uniform", seed=_SEED)
        if points.shape[1] == _SPACE:  # curved elements do not hold all that is next to the boundary
            points = points[problem.domain.contains(1.03 * points) & problem.domain.contains(0.97 * points)]
        (exact,) = problem.exact_values(points).values()
        return cls(name, points, exact)

    def error(self, predict: Predict) -> float:
        """Return the relative L2 error of a solution; infinite where it has no finite value."""
        values = np.asarray(predict(self.points), dtype=float).ravel()
        error = float(np.linalg.norm(values - self.exact) / np.linalg.norm(self.exact))
        return error if np.isfinite(error) else float("inf")


def timed(solve: Callable[[], Predict], repeats: int = 1) -> tuple[float, Predict]:
    """Return the median CPU seconds of a solve, and its last solution, which is evaluated off the clock."""
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        predict = solve()
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds), predict
