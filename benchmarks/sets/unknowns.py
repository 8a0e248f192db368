"""Unknown numbers and functions: without noise, with noise of a percent, and with data that cannot tell them."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

import pibls as pb
from benchmarks.sets.case import Build, Case
from benchmarks.sets.open_windows import WINDOWS
from pibls.checks import FloatArray
from pibls.problems import inverse
from pibls.problems.inverse.data import values_of

_SHARE = 0.01  # of the root mean square of the data: their noise
_NOISES = (0, 1)  # seeds of the noise
_WHERE = 400  # points at which functions are compared


@cache
def noise_of(name: str, share: float) -> float:
    """Return the standard deviation of the noise that is a share of the root mean square of the data."""
    data = [c for c in inverse.catalogue()[name](0.0, 0).conditions if isinstance(c, pb.Observation)]
    return share * float(np.sqrt(np.mean(np.concatenate([one.values for one in data]) ** 2)))


def _noisy(name: str, seed: int) -> pb.Problem:
    return inverse.catalogue()[name](noise_of(name, _SHARE), seed)


def _of(values: Any, label: str) -> FloatArray:
    return np.asarray(values[label] if isinstance(values, dict) else values)


def _error(make: Build, solution: pb.Solution) -> float:
    """Return the largest relative error of unknown numbers and functions; those left open count as wholly wrong."""
    problem, X = make(), solution.problem.domain.sample(_WHERE, "halton", 3)
    known = dict(problem.truth or {})
    errors = [abs(own.value / known[n] - 1) if own.is_determined else 1.0 for n, own in solution.parameters.items()]
    for call in problem.unknown_functions:
        true = values_of(known[call.label], problem.domain.coordinates, X)
        errors.append(float(np.linalg.norm(_of(solution(X), call.label) - true) / np.linalg.norm(true)))
    return float(max(errors))


def _claimed(make: Build, solution: pb.Solution) -> float:
    """Return the largest relative deviation of unknown numbers and functions."""
    problem, X = make(), solution.problem.domain.sample(_WHERE, "halton", 3)
    sizes = [own.deviation / abs(own.value) for own in solution.parameters.values() if own.value]
    for call in problem.unknown_functions if solution.posterior is not None else ():
        low, high = (_of(end, call.label) for end in solution.credible_band(X))  # of 95 %: two deviations each way
        sizes.append(float(np.linalg.norm(high - low) / 4 / np.linalg.norm(_of(solution(X), call.label))))
    return float(max(sizes, default=solution.error_estimate or np.nan))


def _known(name: str, make: Build, kind: str) -> Case:
    return Case(name, make, partial(_error, make), kind, (1e-6,), estimate=partial(_claimed, make))


def unknowns() -> dict[str, Case]:
    """Return the inverse problems: exact, noisy, in open windows, with flaws."""
    cases = [_known(name, partial(make, 0.0, 0), "exact") for name, make in inverse.catalogue().items()]
    cases += [
        _known(f"{name}, noise {seed}", partial(_noisy, name, seed), "noisy")
        for name in inverse.catalogue()
        for seed in _NOISES
    ]
    cases += [_known(f"window {name}", partial(make, _SHARE, 0), "window") for name, make in WINDOWS.items()]
    for name, one in inverse.unidentifiable().items():
        cases.append(Case(name, partial(one.problem, 0), None, "open", (1e-6,), expected="ill-posed"))
    for name, make in inverse.wrong_models().items():
        cases.append(Case(name, partial(make, 0), None, "wrong model", (1e-6,), expected="stalled"))
    return {case.name: case for case in cases}
