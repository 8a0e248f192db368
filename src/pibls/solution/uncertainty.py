"""How uncertain the values of a solution are at points: deviations, and solutions that are as probable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import FloatArray, check_integer
from pibls.errors import InputError
from pibls.solution.functions import gather
from pibls.solution.posterior import Posterior

if TYPE_CHECKING:
    from pibls.solution.solution import Solution

__all__ = ["CHUNK_ENTRIES", "deviations", "draws", "known_posterior"]

CHUNK_ENTRIES = 2**22  # values of nodes that are computed at once


def known_posterior(solution: Solution) -> Posterior:
    """Return the distribution of the weights, or say that there is none."""
    if solution.posterior is None:
        raise InputError(
            f"This solution by {solution.diagnostics.method} has no standard deviation; fit the problem with "
            "BayesianPIELM to have one, or solve it with uncertainty=True and priors of uncertain numbers."
        )
    return solution.posterior


def deviations(solution: Solution, X: Any, outside: str, named: Mapping[str, Any]) -> Any:
    """Return standard deviations at points; see :meth:`pibls.Solution.standard_deviation`."""
    posterior = known_posterior(solution)
    found = _by_nodes(
        solution, lambda nodes, i: posterior.deviations(nodes, i)[None], X, outside, named, "standard_deviation"
    )
    return _plain({name: values[0] for name, values in found.items()})


def draws(solution: Solution, X: Any, n: object, seed: object, outside: str, named: Mapping[str, Any]) -> Any:
    """Return probable values at points; see :meth:`pibls.Solution.samples`."""
    posterior = known_posterior(solution)
    count, chosen = check_integer("n", n, "samples", minimum=1), check_integer("seed", seed, "samples")
    found = _by_nodes(solution, lambda nodes, i: posterior.draws(nodes, i, count, chosen), X, outside, named, "samples")
    values = solution(X, outside=outside, **named)
    return _plain({name: own + (values[name] if isinstance(values, dict) else values) for name, own in found.items()})


def _by_nodes(
    solution: Solution,
    make: Callable[[FloatArray, int], FloatArray],
    X: Any,
    outside: str,
    named: Mapping[str, Any],
    owner: str,
) -> dict[str, FloatArray]:
    """Return what is made of the nodes at points, rows with a value for each, field by field."""
    points, shaped = gather(solution.coordinate_names, X, named, owner)
    zero = (0,) * len(solution.coordinate_names)
    step = max(1, CHUNK_ENTRIES // solution.network.size)
    result = {}
    for i, function in enumerate(solution._field_functions):
        inside = ~np.isnan(function(points, outside=outside))
        kept = points[inside]
        # One chunk at least, be it empty: it has as many rows as others.
        chunks = [kept[start : start + step] for start in range(0, max(len(kept), 1), step)]
        rows = np.concatenate([make(solution.network.evaluate(some, [zero])[zero], i) for some in chunks], axis=1)
        values = np.full((len(rows), len(points)), np.nan)
        values[:, inside] = rows
        result[function.field] = np.stack([shaped(row) for row in values])
    return result


def _plain(values: dict[str, Any]) -> Any:
    """Return the values of the only field, or those of all by name."""
    return values if len(values) > 1 else next(iter(values.values()))
