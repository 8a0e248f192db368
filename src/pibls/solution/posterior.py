"""The distribution of the output weights that a Bayesian method finds, and the uncertainty of the solution by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import FloatArray, check_integer, check_number
from pibls.errors import FileFormatError, InputError
from pibls.solution.diagnostics import built, from_plain, to_plain
from pibls.solution.field_functions import gather

if TYPE_CHECKING:
    from pibls.solution.solution import Solution


@dataclass(frozen=True, eq=False)
class Posterior:
    """Gaussian distribution of the weights about those of the solution.

    Attributes
    ----------
    factor
        F with covariance F Fᵀ, one row per weight, fields one after the other.
    prior
        Precision of the weights before the equation was seen (α).
    noise
        Standard deviation of the residual of each equation and condition, in its own units.
    evidence
        Logarithm of the probability density of the right-hand sides, which the precisions maximise.
    degrees
        Degrees of freedom of Student's distribution, where the size of the noise was estimated from few data.

    Examples
    --------
    >>> posterior = Posterior(np.diag([3.0, 4.0]), 1.0, {"the equation": 0.1}, -12.0)
    >>> posterior.deviations(np.array([[1.0, 1.0]]), 0)
    array([5.])
    """

    factor: FloatArray
    prior: float
    noise: Mapping[str, float]
    evidence: float
    degrees: float = float("inf")

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the weights; large."""
        return np.asarray(self.factor @ self.factor.T)

    def deviations(self, nodes: FloatArray, field: int) -> FloatArray:
        """Return the standard deviation of a field, from the values ``(n, size)`` of the nodes."""
        return np.asarray(np.linalg.norm(nodes @ self._of(field, nodes), axis=1))

    def draws(self, nodes: FloatArray, field: int, n: int, seed: int) -> FloatArray:
        """Return ``n`` draws of the deviation of a field, ``(n, points)``; those of a seed belong together."""
        rng = np.random.default_rng(seed)
        normal = rng.standard_normal((n, self.factor.shape[1]))
        if np.isfinite(self.degrees):
            normal /= np.sqrt(rng.chisquare(self.degrees, (n, 1)) / self.degrees)
        return np.asarray(normal @ (nodes @ self._of(field, nodes)).T)

    def _of(self, field: int, nodes: FloatArray) -> FloatArray:
        size = nodes.shape[1]
        return self.factor[field * size : (field + 1) * size]


def credible_factor(level: object, degrees: float = float("inf")) -> float:
    """Return how many standard deviations a band takes on each side to hold a value with a probability.

    >>> round(credible_factor(0.95), 3)
    1.96
    >>> round(credible_factor(0.95, degrees=3), 2)
    3.18
    """
    from scipy.special import stdtrit

    probability = check_number("level", level, "credible_band", minimum=0, exclusive=True, maximum=1 - 1e-15)
    return float(stdtrit(degrees, 0.5 + probability / 2))


def posterior_record(posterior: Posterior | None, arrays: dict[str, FloatArray]) -> dict[str, Any] | None:
    """Return a posterior as a record, and put its factor into ``arrays``."""
    if posterior is None:
        return None
    arrays["posterior"] = posterior.factor
    return dict(to_plain({name: getattr(posterior, name) for name in ("prior", "evidence", "degrees", "noise")}))


def posterior_from(record: Mapping[str, Any] | None, arrays: Mapping[str, FloatArray]) -> Posterior | None:
    """Rebuild a posterior from :func:`posterior_record`."""
    if record is None:
        return None
    factor, weights = arrays["posterior"], arrays["weights"]
    if factor.ndim != 2 or factor.shape[0] != weights.size:
        raise FileFormatError("The posterior of the file does not belong to its weights. Save the solution again.")
    return built(Posterior, {"factor": factor, **from_plain(record)})


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
    """Return rows with a value for each point, made of the nodes there, field by field."""
    points, shaped = gather(solution.coordinate_names, () if X is None else (X,), named, owner)
    zero = (0,) * len(solution.coordinate_names)
    step = max(1, CHUNK_ENTRIES // solution.network.size)
    result = {}
    for i, function in enumerate(solution.field_functions):
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
