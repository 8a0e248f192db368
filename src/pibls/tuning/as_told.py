"""A method as the user gives it: fitted once, with its error estimated by a richer network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np

from pibls.budget import Budget
from pibls.checks import FloatArray, shorten
from pibls.errors import InputError
from pibls.features import BroadNetwork
from pibls.geometry import Points
from pibls.limits import STOPS, in_words
from pibls.methods import PIBLS
from pibls.problem import Problem
from pibls.refinement import Reason, Stop, verdict
from pibls.refinement.standards import MOST, NEGLIGIBLE
from pibls.solution import Solution
from pibls.solution.json_records import RicherNetwork
from pibls.status import Status
from pibls.tuning.fitting import COMPARED, Fitting, of_unknown_error
from pibls.tuning.grow import new_nodes, with_nodes
from pibls.tuning.progress import Progress
from pibls.tuning.wide import solve_wide


class Method(Protocol):
    """Anything that fits a problem at points."""

    def fit(self, problem: Problem, points: Points, *, seed: int = 0, device: Any = None) -> Solution:
        """Return the solution."""
        ...


def solve_as_told(
    problem: Problem,
    tol: float,
    method: Method | None,
    points: Points | None,
    seed: int,
    device: Any,
    budget: Budget,
    report: Callable[[Progress], None],
) -> Solution:
    """Fit the given method at the given points, and estimate the error with a richer network."""
    chosen = default_method(problem) if method is None else method
    where = Points.sample(problem, 2 * COMPARED, method="kronecker", seed=seed) if points is None else points
    report(Progress("solve", budget.elapsed))
    solution: object = chosen.fit(problem, where, seed=seed, device=device)
    if not isinstance(solution, Solution):
        raise InputError(
            f"The fit of the 'method' parameter of solve must return a Solution. Got {shorten(solution)} instead."
        )
    if late := budget.late:
        return of_unknown_error(solution, late)
    begun = budget.elapsed
    report(Progress("estimate", begun, solution.diagnostics.nodes))
    try:
        richer, estimate = _compared(solution, tol, Fitting(problem, seed, device), budget)
    except STOPS as stop:
        return of_unknown_error(solution, in_words(stop))
    # A fit that says of itself that it came to nothing may still be like another that starts from it.
    met = estimate <= tol and solution.status != Status.STALLED
    ended = Stop(Reason.TOLERANCE if met else Reason.LOST)
    status, message = verdict(tol, estimate, ended, solution.diagnostics.message)
    seconds = {**solution.diagnostics.seconds, "estimate": budget.elapsed - begun}
    record = replace(solution.diagnostics, seconds=seconds, message=message)
    return replace(solution, status=status, error_estimate=estimate, diagnostics=record, richer=richer)


def _compared(
    solution: Solution, tol: float, fitting: Fitting, budget: Budget
) -> tuple[tuple[RicherNetwork, FloatArray], float]:
    """Return a richer network on points of its own, and the error of a solution estimated by its distance to that.

    The points of the solve may be too few, and its network too narrow: neither is used without more of both.
    """
    network, problem = solution.network, solution.problem
    second = replace(fitting, seed=fitting.seed_for("a second network"))
    if not isinstance(network, BroadNetwork):
        start = None if problem.is_linear else solution
        asked = (problem, NEGLIGIBLE * tol, budget.part(MOST), second.seed, lambda _: None)
        other = solve_wide(*asked, device=second.device, start=start)
    else:
        nodes = max(network.size // 2, second.pilot_nodes)
        groups = new_nodes(solution, nodes, np.random.default_rng(second.seed))
        wide = with_nodes(network, groups)
        other = second.fit_network(wide, second.points(wide.size), solution.evaluate, close=True)
    return (cast(RicherNetwork, other.network), other.weights), second.estimate(solution, other, network.size)


def default_method(problem: Problem) -> PIBLS:
    """Return a network of sines over a range of scales, for a user's own points."""
    share, scales = (400, (2.0, 5.0, 12.0)) if len(problem.domain.coordinates) < 3 else (600, (1.0, 3.0))
    return PIBLS(features=[("sin", share, scale) for scale in scales], enhancement_groups=0)
