"""Small solved problems for the tests of the report layer, fitted to known functions without any solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from pibls.features import draw_network
from pibls.problem import Problem
from pibls.solution import Diagnostics, Solution


def fitted(problem: Problem, targets: Any, *, nodes: int = 120, scale: float = 2.0, points: int = 800) -> Solution:
    """Return a network fitted to ``targets(X)``, one column per field, as a solution of a problem."""
    domain = problem.domain
    network = draw_network(np.random.default_rng(0), domain.bounds, [("sin", nodes, scale)])
    X = domain.sample(points)
    zero = (0,) * len(domain.coordinates)
    H = network.evaluate(X, [zero])[zero]
    values = np.asarray(targets(X), dtype=np.float64).reshape(len(X), -1)
    weights = np.linalg.lstsq(H, values, rcond=1e-12)[0].T
    diagnostics = Diagnostics("fitted", {}, 0, nodes, points, "lstsq", nodes, 1.0, {})
    return Solution(problem, network, weights, "converged", diagnostics)
