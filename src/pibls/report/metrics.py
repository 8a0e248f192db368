"""The nine measures of error of the physics-informed broad learning paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_points, check_seed, shorten
from pibls.errors import InputError
from pibls.problem import Problem
from pibls.problem.evaluate import differentiated
from pibls.report.quantities import as_evaluator, as_values, call, field_label, given_per_field
from pibls.solution import FieldFunction, Solution

METRICS = ("mse", "rmse", "mae", "relative_mse", "relative_rmse", "relative_mae", "linf", "relative_linf", "r2")

POINTS = 10_000
SEED = 12345


def metrics(
    solution: Any, exact: Any = None, points: Any = None, *, seed: int | np.random.Generator = SEED
) -> Mapping[str, Any]:
    r"""Return nine measures of the error of a solution.

    With exact values uᵢ, predicted values ũᵢ, and ū the mean of the uᵢ at the N points:

    ================= ============================= ==================
    key               definition                    also called
    ================= ============================= ==================
    ``mse``           Σ(ũᵢ − uᵢ)² / N
    ``rmse``          √(Σ(ũᵢ − uᵢ)² / N)
    ``mae``           Σ\|ũᵢ − uᵢ\| / N
    ``relative_mse``  Σ(ũᵢ − uᵢ)² / Σuᵢ²
    ``relative_rmse`` √Σ(ũᵢ − uᵢ)² / √Σuᵢ²          relative L² error
    ``relative_mae``  Σ\|ũᵢ − uᵢ\| / Σ\|uᵢ\|        relative L¹ error
    ``linf``          max\|ũᵢ − uᵢ\|                L∞ error
    ``relative_linf`` max\|ũᵢ − uᵢ\| / max\|uᵢ\|
    ``r2``            1 − Σ(ũᵢ − uᵢ)² / Σ(uᵢ − ū)²  R² score
    ================= ============================= ==================

    A metric whose denominator is zero is not defined, and is NaN: the four relative ones where the exact solution is
    zero at every point, and ``r2`` where it is the same number at every point.

    Parameters
    ----------
    solution
        A :class:`~pibls.Solution` or a derivative of one, any other function of an (n, d) array that returns n values
        (or a mapping from field names to them), or the predicted values themselves.
    exact
        What it should be: a SymPy expression of the coordinates, a function of an (n, d) array, an array of values,
        or a mapping from fields to those. Left out: the exact solution that the problem carries.
    points
        Where to compare, one row per point. Left out: 10 000 fresh uniform points of the domain, the same at every
        call (the points of a point cloud: its own).
    seed
        Seed of those points.

    Returns
    -------
    dict
        ``{metric: value}`` for one field, ``{field: {metric: value}}`` for several.

    Examples
    --------
    >>> values = metrics([1.0, 2.0, 3.0], exact=[1.0, 2.0, 4.0])
    >>> round(values["linf"], 3), round(values["relative_mae"], 3)
    (1.0, 0.143)
    >>> metrics(lambda X: X[:, 0] ** 2, exact=lambda X: X[:, 0], points=[[0.0], [0.5], [1.0]])["mae"]
    0.08333333333333333
    """
    owner = solution.solution if isinstance(solution, FieldFunction) else solution
    problem = owner.problem if isinstance(owner, Solution) else None
    known = _known_exact(solution, problem) if exact is None else exact
    X = _points(points, problem, seed)
    predicted = _predicted(solution, X)
    true = _true(known, predicted, X, None if problem is None else problem.domain.coordinates)
    results = {field: error_metrics(values, true[field]) for field, values in predicted.items()}
    return results if len(results) > 1 else next(iter(results.values()))


def error_metrics(predicted: FloatArray, exact: FloatArray) -> dict[str, float]:
    """Return the nine metrics of two arrays of the same length.

    Sums are scaled by their largest term, so that nothing overflows or vanishes on the way.

    >>> round(error_metrics(np.array([0.0, 2.0]), np.array([1.0, 2.0]))["relative_mse"], 12)
    0.2
    """
    with np.errstate(over="ignore"):
        error = predicted - exact
    varies = bool(exact.min() < exact.max())
    rmse, mae, linf = _norms(error)
    relative = [_quotient(e, u) for e, u in zip((rmse, mae, linf), _norms(exact), strict=True)]
    largest = float(np.abs(exact).max())
    spread = _norms(exact - float(np.mean(exact / largest)) * largest)[0] if varies else 0.0
    unexplained = _quotient(rmse, spread)
    return {
        "mse": rmse * rmse,
        "rmse": rmse,
        "mae": mae,
        "relative_mse": relative[0] * relative[0],
        "relative_rmse": relative[0],
        "relative_mae": relative[1],
        "linf": linf,
        "relative_linf": relative[2],
        "r2": 1.0 - unexplained * unexplained,
    }


def _norms(values: FloatArray) -> tuple[float, float, float]:
    """Return the root mean square, the mean absolute value and the largest absolute value."""
    size = np.abs(values)
    largest = float(size.max())
    if largest == 0.0 or math.isinf(largest):
        return largest, largest, largest
    scaled = size / largest
    return math.sqrt(float(np.mean(scaled * scaled))) * largest, float(np.mean(scaled)) * largest, largest


def _quotient(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0.0 else math.nan


def _known_exact(solution: object, problem: Problem | None) -> Mapping[str, sp.Expr]:
    if problem is None or problem.exact is None:
        raise InputError(
            "metrics has nothing to compare with: "
            + ("this problem has no exact solution. " if problem is not None else "only a Solution may carry one. ")
            + "Give exact=, an expression of the coordinates, a function of points, or an array of values."
        )
    if isinstance(solution, FieldFunction):
        exact = problem.exact[solution.field]
        return {solution.field: differentiated(exact, problem.domain.coordinates, solution.multi_index)}
    return problem.exact


def _points(points: object, problem: Problem | None, seed: int | np.random.Generator) -> FloatArray | None:
    if points is None:
        rng = check_seed(seed, "metrics")
        if problem is None:
            return None
        atoms: FloatArray | None = problem.domain.atoms
        return problem.domain.sample(POINTS, "uniform", rng) if atoms is None else atoms
    width = _width(points) if problem is None else len(problem.domain.coordinates)
    X = check_points("points", points, "metrics", width)
    if len(X) == 0:
        raise InputError("The 'points' parameter of metrics must hold at least one point. Got none.")
    return X


def _width(points: Any) -> int:
    """Return the number of columns; flat or odd input is left to the check of one column."""
    try:
        shape = np.shape(points)
    except ValueError:
        return 1
    return int(shape[1]) if len(shape) == 2 else 1


def _evaluated(name: str, value: Any, X: FloatArray | None) -> Any:
    """Return the values of a function at the points; anything else as it is."""
    if not callable(value) or isinstance(value, sp.Basic):
        return value
    if X is None:
        raise InputError(
            f"The '{name}' parameter of metrics is a function, {shorten(value)}, and there are no points to "
            "evaluate it at. Give points=, an (n, d) array; only a Solution knows its own domain."
        )
    return call(name, value, X, "metrics")


def _predicted(solution: Any, X: FloatArray | None) -> dict[str, FloatArray]:
    """Return the predicted values per field."""
    if isinstance(solution, Solution | FieldFunction):
        values = solution(X, outside="error")
    else:
        values = _evaluated("solution", solution, X)
    name = "the solution"
    if isinstance(solution, Solution | FieldFunction):
        name = solution.field if isinstance(solution, FieldFunction) else solution.problem.field_names[0]
    entries = values if isinstance(values, Mapping) else {name: values}
    if not entries:
        raise InputError("The 'solution' parameter of metrics is an empty mapping; give an entry for each field.")
    count = None if X is None else len(X)
    return {field_label(key): as_values("solution", entry, count, "metrics") for key, entry in entries.items()}


def _true(
    exact: Any, predicted: Mapping[str, FloatArray], X: FloatArray | None, coordinates: tuple[sp.Symbol, ...] | None
) -> dict[str, FloatArray]:
    """Return the exact values per field."""
    given = given_per_field("exact", _evaluated("exact", exact, X), tuple(predicted), "metrics")
    result = {}
    for field, values in predicted.items():
        entry = _evaluated("exact", given[field], X)
        # Without points both sides are arrays, and only the number of rows is used.
        rows = np.empty((values.size, 0)) if X is None else X
        result[field] = as_evaluator("exact", entry, coordinates, "metrics")(rows)
    return result
