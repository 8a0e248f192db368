"""What every solver of :mod:`benchmarks.peers` is measured with: the same points, the same clock, the same medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pibls as pb

UNSEEN = 2000
_SEED = 777_001  # of the points errors are measured at; no solver draws its own from it

Predict = Callable[[Any], Any]


@dataclass(frozen=True)
class Probe:
    """Points no solver has seen, and the exact solution there."""

    name: str
    points: Any
    exact: Any

    @classmethod
    def of(cls, name: str) -> Probe:
        """Return the probe of a problem of the zoo: uniformly random points, or those of a tabulated solution."""
        reference = pb.problems.references().get(name)
        if reference is not None:
            return cls(name, reference.points, reference.values)
        problem = pb.problems.catalogue()[name]()
        points = problem.domain.sample(UNSEEN, method="uniform", seed=_SEED)
        return cls(name, points, problem.exact_values(points)["u"])

    def error(self, predict: Predict) -> float:
        """Return the relative L2 error of a solution; infinite where it has no finite value."""
        values = np.asarray(predict(self.points), dtype=float).ravel()
        error = float(np.linalg.norm(values - self.exact) / np.linalg.norm(self.exact))
        return error if np.isfinite(error) else float("inf")


@dataclass(frozen=True)
class Row:
    """One solver with one setting on one problem: medians over the seeds."""

    problem: str
    solver: str
    setting: str
    error: float
    worst_error: float
    seconds: float
    tuner_seconds: float | None = None
    estimate: float | None = None
    status: str = ""


def measure(probe: Probe, solver: str, setting: str, solve: Callable[[int], Predict], seeds: int) -> Row:
    """Time ``solve`` once per seed; what it returns is evaluated off the clock."""
    errors, seconds = [], []
    for seed in range(seeds):
        start = time.perf_counter()
        predict = solve(seed)
        seconds.append(time.perf_counter() - start)
        errors.append(probe.error(predict))
    return Row(probe.name, solver, setting, statistics.median(errors), max(errors), statistics.median(seconds))
