"""The automatic solver: an equation in, a checked solution out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pibls.checks import check_integer, check_number, shorten
from pibls.errors import InputError
from pibls.geometry import Points
from pibls.methods import PIBLS
from pibls.problem import Problem
from pibls.solution import Solution

__all__ = ["Method", "Progress", "solve"]

_CHECK_POINTS = 1000


class Method(Protocol):
    """Anything that fits a problem at points."""

    def fit(self, problem: Problem, points: Points, *, seed: int = 0, device: Any = None) -> Solution:
        """Return the solution."""
        ...


@dataclass(frozen=True)
class Progress:
    """What a solve is doing, for a ``progress`` callable."""

    stage: str
    seconds: float


@dataclass(frozen=True)
class _Plan:
    """Fixed sizes per number of coordinates."""

    nodes: int
    interior: int
    scales: tuple[float, ...]


_PLANS: Mapping[int, _Plan] = {
    1: _Plan(300, 600, (4.0, 16.0)),
    2: _Plan(900, 2000, (2.0, 5.0, 12.0)),
    3: _Plan(1200, 3000, (1.5, 4.0)),
}
_MANY = _Plan(1500, 4000, (1.0, 2.0))


def _plan(problem: Problem) -> _Plan:
    return _PLANS.get(len(problem.domain.coordinates), _MANY)


def default_method(problem: Problem) -> PIBLS:
    """Return the fixed default: sine groups over a range of scales."""
    plan = _plan(problem)
    share = plan.nodes // len(plan.scales)
    return PIBLS(features=[("sin", share, scale) for scale in plan.scales], enhancement_groups=0)


def solve(
    problem: Problem,
    *,
    tol: float = 1e-6,
    method: Method | None = None,
    points: Points | None = None,
    seed: int = 0,
    device: Any = None,
    progress: Callable[[Progress], object] | None = None,
) -> Solution:
    """Solve a problem and estimate the error of the solution.

    The error is estimated from a second, independent network on other points: the two solutions err independently,
    so that their distance over √2 is the error of either. No exact solution is used.

    Parameters
    ----------
    problem
        A linear problem.
    tol
        Relative L2 error at which the solution counts as converged.
    method
        A method such as :class:`~pibls.PIBLS`, instead of the default.
    points
        The points of the solve, instead of the default.
    seed
        Seed of nodes and points.
    device
        A torch device such as ``"cuda"`` to assemble and solve on; NumPy if left out.
    progress
        Called with a :class:`Progress` at the start of every stage.

    Returns
    -------
    Solution
        With ``status`` ``"converged"`` or ``"stalled"`` and an ``error_estimate``.

    Examples
    --------
    >>> from pibls import problems
    >>> solution = solve(problems.advection())
    >>> solution.status, solution.true_error() < 1e-6
    ('converged', True)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"solve takes a Problem. Got {shorten(problem)} instead.")
    tolerance = check_number("tol", tol, "solve", minimum=0, exclusive=True)
    first = check_integer("seed", seed, "solve")
    chosen = default_method(problem) if method is None else method
    if not hasattr(chosen, "fit"):
        raise InputError(f"The 'method' parameter of solve must have a fit, such as PIBLS(). Got {shorten(method)}.")
    if progress is not None and not callable(progress):
        raise InputError(f"The 'progress' parameter of solve must be callable. Got {shorten(progress)} instead.")
    started = time.perf_counter()

    def report(stage: str) -> None:
        if progress is not None:
            progress(Progress(stage, time.perf_counter() - started))

    report("solve")
    where = _points(problem, _plan(problem).interior, first) if points is None else points
    solution = chosen.fit(problem, where, seed=first, device=device)
    report("estimate")
    # A seed far from those a user would try, so that the second network is independent of any other run.
    second_seed = first + 1_000_003
    other = _points(problem, len(where.interior), second_seed)
    second = chosen.fit(problem, other, seed=second_seed, device=device)
    estimate = _distance(solution, second) / np.sqrt(2.0)
    status = "converged" if estimate <= tolerance else "stalled"
    seconds = {**solution.diagnostics.seconds, "estimate": sum(second.diagnostics.seconds.values())}
    diagnostics = replace(solution.diagnostics, seconds=seconds)
    return replace(solution, status=status, error_estimate=float(estimate), diagnostics=diagnostics)


def _points(problem: Problem, interior: int, seed: int) -> Points:
    return Points.sample(problem, interior, method="kronecker", seed=seed)


def _distance(one: Solution, two: Solution) -> float:
    """Relative L2 distance of two solutions; with several fields, the largest."""
    X = one.problem.domain.sample(_CHECK_POINTS, "kronecker", 1)
    zero = (0,) * X.shape[1]
    wanted = [(name, zero) for name in one.problem.field_names]
    pairs = zip(one.evaluate(X, wanted), two.evaluate(X, wanted), strict=True)
    return float(max(_relative(a - b, a) for a, b in pairs))


def _relative(difference: Any, value: Any) -> float:
    size = float(np.linalg.norm(value))
    return float(np.linalg.norm(difference)) / size if size > 0 else float(np.linalg.norm(difference))
