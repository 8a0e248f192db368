"""Timed fits, and plain solves beside them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pibls.methods.settings import recorded
from pibls.problem import Problem
from pibls.report import metrics
from pibls.solution import Solution
from pibls.status import Status
from pibls.studies.grids import CLASSES
from pibls.studies.protocol import Setting
from pibls.tuning.automatic import Method, solve

__all__ = ["Fitted", "fit_timed", "plain", "rebuilt", "solve_cell"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit to all points of a setting: its time, its errors at those points, and at the test points."""

    solution: Solution
    settings: Mapping[str, Any]
    seconds: float
    train: Mapping[str, float]
    test: Mapping[str, float]


def fit_timed(method: Method, setting: Setting, *, warm: bool = False) -> Fitted:
    """Fit a method to all points of a setting; ``warm`` fits once before, so that nothing is loaded in the timed fit.

    Examples
    --------
    >>> from pibls import PIELM
    >>> fitted = fit_timed(PIELM(nodes=100, scale=2.0), Setting("advection", 30, seed=0))
    >>> fitted.test["relative_rmse"] < 1e-2, fitted.settings["nodes"]
    (True, 100)
    """
    problem, points = setting.problem, setting.points
    if warm:
        method.fit(problem, points, seed=setting.seed)
    start = time.perf_counter()
    solution = method.fit(problem, points, seed=setting.seed)
    seconds = time.perf_counter() - start
    # A PINN answers Ctrl-C with the best weights so far; a study must not take them for the result.
    if solution.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    train, test = setting.errors(solution)
    return Fitted(solution, recorded(method), seconds, train, test)


def rebuilt(name: str, settings: Mapping[str, Any]) -> Method:
    """Return the method of stored settings.

    >>> rebuilt("PI-ELM", {"nodes": 23, "scale": [12.0, 0.5]}).nodes
    23
    """
    return CLASSES[name](**settings)


def solve_cell(problem: Problem, seed: int, setting: Setting) -> dict[str, Any]:
    """Return the entries of a cell for a plain solve, which chooses its points and settings itself."""
    start = time.perf_counter()
    solution = solve(problem, seed=seed, progress=False)
    seconds = time.perf_counter() - start
    return {
        "settings": plain(solution.diagnostics.settings),
        "test": dict(metrics(solution, points=setting.test_points)),
        "seconds": seconds,
        "parameters": solution.diagnostics.nodes * len(problem.fields),
        "theorems": plain(solution.diagnostics.theorems),
        "extra": {"estimate": solution.error_estimate, "status": solution.status, "rows": solution.diagnostics.rows},
    }


def plain(value: Any) -> Any:
    """Return a record as lists and dictionaries.

    >>> plain({"scales": (1.0, 2.0)})
    {'scales': [1.0, 2.0]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
