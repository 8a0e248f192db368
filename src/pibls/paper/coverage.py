"""How often the bands of B-PI-ELM hold the solution where it is known from noisy measurements only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.geometry import Points
from pibls.methods import BayesianPIELM
from pibls.methods.fit import recorded
from pibls.paper.grids import scales
from pibls.paper.protocol import GRAPH
from pibls.paper.setting import Setting
from pibls.problem import Observation, Problem
from pibls.solution import Solution

NOISE = 0.05
LEVELS = (0.5, 0.68, 0.8, 0.9, 0.95, 0.99)
REPETITIONS = 100
# Nodes by the number of coordinates: the bands tell how well the rows determine the solution within what the nodes
# can represent, so that there must be enough of them.
_NODES = {1: 100, 2: 300}
_TEST = 1000


@dataclass(frozen=True)
class MeasuredCoverage:
    """A problem of the paper whose conditions are replaced by noisy measurements of its solution.

    The equation holds exactly at the training points. Nothing is prescribed on the boundary or at the first time:
    there, and at the training points, the solution is measured with Gaussian noise of 5 % of its root mean square.

    >>> data = MeasuredCoverage(Setting("advection", 30, seed=0))
    >>> data.problem.conditions, round(data.sigma, 3)
    ((Observation(u at 31 points),), 0.054)
    """

    setting: Setting

    @cached_property
    def where(self) -> FloatArray:
        """Where the solution is measured."""
        return np.concatenate([points.points for points in self.setting.points.sets])

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of the noise."""
        return NOISE * float(np.sqrt(np.mean(self.exact(self.where) ** 2)))

    @cached_property
    def values(self) -> FloatArray:
        """The measured values."""
        rng = np.random.default_rng([self.setting.seed, self.setting.n_train])
        return np.asarray(self.exact(self.where) + self.sigma * rng.standard_normal(len(self.where)))

    @cached_property
    def problem(self) -> Problem:
        """The equation and the measurements."""
        stated = self.setting.problem
        return Problem(stated.equations, stated.domain, [Observation(stated.fields[0], self.where, self.values)])

    def exact(self, X: FloatArray) -> FloatArray:
        """Return the solution."""
        return np.asarray(self.setting.problem.exact_values(X)[self.setting.problem.field_names[0]])

    def fit(self, method: BayesianPIELM) -> Solution:
        """Infer the solution without knowing how noisy the measurements are."""
        measured = Points.sample(self.problem, 1).sets[1:]
        return method.fit(self.problem, Points((self.setting.points.sets[0], *measured)), seed=self.setting.seed)


def chosen(data: MeasuredCoverage) -> BayesianPIELM:
    """Return the method at the scale of the highest evidence, which needs neither solution nor validation."""
    nodes = _NODES[len(data.problem.domain.coordinates)]
    methods = [BayesianPIELM(nodes, "sin", scale) for scale in scales(data.problem)]
    return max(methods, key=lambda method: _posterior(data.fit(method)).evidence)


def coverage_cell(name: str, n_train: int, repetitions: int) -> dict[str, Any]:
    """Return the entries of a cell: how much of the domain the bands hold, run by run.

    Every repetition has points, noise and nodes of its own; the scale is chosen in the first one.
    """
    first = MeasuredCoverage(Setting(name, n_train, 0))
    method = chosen(first)
    runs = [_run(MeasuredCoverage(Setting(name, n_train, seed)), method) for seed in range(repetitions)]
    inside = np.array([run["inside"] for run in runs])
    line = len(first.problem.domain.coordinates) == 1
    return {
        "settings": recorded(method),
        "parameters": method.nodes,
        "extra": {
            "levels": list(LEVELS),
            "coverage": inside.mean(axis=0).tolist(),
            "inside": inside[:, LEVELS.index(0.95)].tolist(),
            "errors": [run["error"] for run in runs],
            "noise": [run["noise"] for run in runs],
            "measurements": len(first.where),
            "curve": _curve(first, method) if line else {},
        },
    }


def _run(data: MeasuredCoverage, method: BayesianPIELM) -> dict[str, Any]:
    """Return the share of test points inside of the bands, the relative error, and the noise found over the true."""
    solution = data.fit(method)
    X = data.setting.test_points[:_TEST]
    exact = data.exact(X)
    bands = [solution.credible_band(X, level=level) for level in LEVELS]
    found = _posterior(solution).noise[data.problem.statements[-1].name]
    return {
        "inside": [float(np.mean((low <= exact) & (exact <= high))) for low, high in bands],
        "error": float(np.linalg.norm(solution(X) - exact) / np.linalg.norm(exact)),
        "noise": float(found / data.sigma),
    }


def _curve(data: MeasuredCoverage, method: BayesianPIELM) -> Mapping[str, list[float]]:
    """Return measurements, solution and band of one repetition along a line."""
    ((low, high),) = data.problem.domain.bounds
    x = np.linspace(low, high, GRAPH)
    solution = data.fit(method)
    lower, upper = solution.credible_band(x[:, None])
    arrays = {"x": x, "exact": data.exact(x[:, None]), "predicted": solution(x[:, None]), "low": lower, "high": upper}
    arrays |= {"where": data.where[:, 0], "values": data.values}
    return {name: np.asarray(array).tolist() for name, array in arrays.items()}


def _posterior(solution: Solution) -> Any:
    return solution.posterior
