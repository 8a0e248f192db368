"""The automatic solver: an equation and a tolerance in, a checked solution out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np

from pibls.checks import FloatArray, check_choice, check_integer, check_number, shorten
from pibls.errors import InputError
from pibls.features import BroadNetwork
from pibls.geometry import Points
from pibls.lines import Evolution, Unsuitable, evolve, find_evolution, transits
from pibls.methods import PIBLS
from pibls.problem import Problem
from pibls.solution import Solution
from pibls.solution.records import RicherNetwork
from pibls.system import check_known
from pibls.text.files import WAYS
from pibls.tuning.by_cells import solve_by_cells, solve_nonlinear_by_cells, suits_cells
from pibls.tuning.fitting import Fitting, estimated_error
from pibls.tuning.grow import new_nodes, with_nodes
from pibls.tuning.progress import Progress, reporter
from pibls.tuning.wide import solve_wide

__all__ = ["Method", "solve"]

# A seed far from those a user would try, so that the second network is independent of any other run.
_SECOND = 1_000_003
_DEFAULT_POINTS = 2000
_SOLID = 4  # three dimensions of space, and time
_EVENTFUL = 100.0  # radians from the first time to the last
_LEAST_NODES = 120
_ROUNDING = 1e-10  # what stalls below this is limited by round-off
_JUDGE_NODES = 1000
_COMPARISON_TOL, _COMPARISON_BUDGET = 1e-8, 5.0


class Method(Protocol):
    """Anything that fits a problem at points."""

    def fit(self, problem: Problem, points: Points, *, seed: int = 0, device: Any = None) -> Solution:
        """Return the solution."""
        ...


def solve(
    problem: Problem,
    *,
    tol: float = 1e-6,
    method: Method | None = None,
    points: Points | None = None,
    seed: int = 0,
    device: Any = None,
    budget: float = 10.0,
    progress: Callable[[Progress], object] | bool | None = None,
    start: Any = None,
    continuation: Sequence[Problem] = (),
    time: str | None = None,
) -> Solution:
    """Solve a problem to a tolerance; choose everything, and say how accurate the answer is.

    In one to three coordinates the domain is cut into cells, each with the same small network. They split where data
    or solution are rough, until the estimated error meets the tolerance. The estimate is the distance to a richer
    solution, with more functions or more cells. In more coordinates, on point clouds and on a device one network is
    widened instead, with scales chosen by small pilots. No exact solution is used.

    Parameters
    ----------
    problem
        A problem. One that is nonlinear is solved by Gauss–Newton steps from simple starts.
    tol
        Relative L2 error to reach.
    method
        A method such as :class:`~pibls.PIBLS` to use as it is; nothing is chosen then.
    points
        The points of the solve, with ``method`` or for the default width; nothing is grown then.
    seed
        Seed of nodes and points: the same seed gives the same solution.
    device
        A torch device such as ``"cuda"`` to assemble and solve on; NumPy if left out.
    budget
        After how much work nothing finer is tried. In nominal seconds of 10¹⁰ operations, counted and not timed, so
        that the same call gives the same answer everywhere.
    progress
        Called with a :class:`Progress` at every step. ``True`` shows a line on the terminal, ``False`` none; left
        out, it is shown on a terminal only.
    start
        For a nonlinear problem, where to start: a solution of a similar problem, an expression, or one per field. Of
        several solutions it chooses the one nearby.
    continuation
        For a nonlinear problem, easier ones to solve on the way to it, such as the same flow at lower speeds.
    time
        For a problem in time, ``"space-time"``: time is one more coordinate; or ``"lines"``: features in space, and an
        ordinary differential equation for their weights. Left out, nonlinear evolutions, those in three space
        dimensions and those in which very much happens are solved by lines where their form allows it, all else in
        space–time, and by lines where that stalls.

    Returns
    -------
    Solution
        ``status`` is ``"converged"``, ``"stalled"`` (the tolerance was not met) or ``"ill-posed"`` (the problem has no
        solution, or more than one); ``diagnostics.message`` says why and what to do. Interrupting a long solve with
        Ctrl-C returns the best solution so far.

    Examples
    --------
    >>> from pibls import problems
    >>> solution = solve(problems.advection())
    >>> solution.status, solution.true_error() < 1e-6
    ('converged', True)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"solve takes a Problem. Got {shorten(problem)} instead.")
    check_known(problem)
    tolerance = check_number("tol", tol, "solve", minimum=0, exclusive=True)
    limit = check_number("budget", budget, "solve", minimum=0, exclusive=True)
    first = check_integer("seed", seed, "solve")
    if not isinstance(points, Points | None):
        raise InputError(f"The 'points' parameter of solve must be Points. Got {shorten(points)} instead.")
    if method is not None and (isinstance(method, type) or not callable(getattr(method, "fit", None))):
        raise InputError(f"The 'method' parameter of solve must have a fit, such as PIBLS(). Got {shorten(method)}.")
    if (start is not None or continuation) and (method is not None or points is not None):
        raise InputError(
            "The 'start' and 'continuation' parameters of solve go with nodes and points that it chooses itself. Leave "
            "out 'method' and 'points', or leave out these."
        )
    if time is not None:
        check_choice("time", time, "solve", WAYS)
        _check_way(time, problem, start is not None or bool(continuation), method is not None or points is not None)
    with reporter(progress) as report:
        if method is not None or points is not None:
            return _as_told(problem, tolerance, method, points, first, device, report)
        guessed = start is not None or bool(continuation)
        if time == "lines" or (time is None and not guessed and _suits_lines(problem)):
            evolved = _by_lines(problem, tolerance, limit, first, report)
            if isinstance(evolved, Solution):
                return evolved
            if time == "lines":
                raise InputError(f"This problem cannot be solved with time='lines': {evolved.reason}.")
        guesses = {"start": start, "continuation": continuation}
        if device is not None or not suits_cells(problem):
            return solve_wide(problem, tolerance, limit, first, report, device=device, **guesses)
        if not problem.is_linear:
            return solve_nonlinear_by_cells(problem, tolerance, limit, first, report, **guesses)
        solution = solve_by_cells(problem, tolerance, limit, first, report)
        limited = solution.status == "stalled" and (solution.error_estimate or 0.0) > _ROUNDING
        if limited and time is None and _is_flat_evolution(problem):
            other = _by_lines(problem, tolerance, limit, first, report)
            # What is linear neither blows up nor ceases to exist.
            if isinstance(other, Solution) and other.status != "ill-posed" and _better(other, solution):
                return other
        return solution


def _check_way(time: str, problem: Problem, guessed: bool, told: bool) -> None:
    """Refuse a way through time that cannot be taken, with the other arguments as they are."""
    if problem.domain.time is None:
        raise InputError(
            f"The 'time' parameter of solve is {time!r}, but this problem cannot be solved with time={time!r}: the "
            "domain has no time. Multiply it by TimeInterval(t, t0, t1), or leave 'time' out."
        )
    if time != "space-time" and (guessed or told):
        raise InputError(
            f"The 'time' parameter of solve is {time!r}, which chooses nodes, points and starts itself. Leave out "
            "'method', 'points', 'start' and 'continuation', or use time='space-time'."
        )


def _by_lines(
    problem: Problem, tol: float, budget: float, seed: int, report: Callable[[Progress], None]
) -> Solution | Unsuitable:
    return evolve(problem, tol=tol, seed=seed, budget=budget, report=lambda *facts: report(Progress(*facts)))


def _suits_lines(problem: Problem) -> bool:
    """Tell whether lines are tried first.

    For what moves nonlinearly, where space alone has three dimensions, and where more happens than a network over all
    of space and time can hold.
    """
    if problem.domain.time is None:
        return False
    if not problem.is_linear or len(problem.domain.coordinates) == _SOLID:
        return True
    evolution = find_evolution(problem) if len(problem.domain.coordinates) < _SOLID else None
    # Conditions beyond those that are needed are better left to a check than to a compromise.
    return isinstance(evolution, Evolution) and (bool(evolution.surplus) or _EVENTFUL < transits(evolution) < np.inf)


def _is_flat_evolution(problem: Problem) -> bool:
    """Tell whether lines are cheap enough for a second try."""
    return len(problem.domain.coordinates) < _SOLID and isinstance(find_evolution(problem), Evolution)


def _better(one: Solution, two: Solution) -> bool:
    """Tell whether a solution is estimated to be more accurate than another."""
    first, second = one.error_estimate, two.error_estimate
    return one.status == "converged" or (first is not None and (second is None or first < second))


def _as_told(
    problem: Problem,
    tol: float,
    method: Method | None,
    points: Points | None,
    seed: int,
    device: Any,
    report: Callable[[Progress], None],
) -> Solution:
    """Fit the given method at the given points, and estimate the error with a richer network."""
    started = time.perf_counter()
    chosen = default_method(problem) if method is None else method
    where = _points(problem, _DEFAULT_POINTS, seed) if points is None else points
    report(Progress("solve", time.perf_counter() - started))
    solution = _fitted(chosen, problem, where, seed, device)
    report(Progress("estimate", time.perf_counter() - started, solution.diagnostics.nodes))
    begun = time.perf_counter()
    richer, estimate = _compared(solution, seed)
    converged = estimate <= tol
    message = f"The estimated error {estimate:.1e} is {'within' if converged else 'above'} the tolerance {tol:g}."
    seconds = {**solution.diagnostics.seconds, "estimate": time.perf_counter() - begun}
    diagnostics = replace(solution.diagnostics, seconds=seconds, message=message)
    status = "converged" if converged else "stalled"
    return replace(solution, status=status, error_estimate=estimate, diagnostics=diagnostics, richer=richer)


def _compared(solution: Solution, seed: int) -> tuple[tuple[RicherNetwork, FloatArray], float]:
    """Return a richer network on points of its own, and the error of a solution estimated by its distance to that.

    The points of the solve may be too few, and its network too narrow: neither is used without more of both.
    """
    network, problem = solution.network, solution.problem
    second = Fitting(problem, seed + _SECOND)
    if not isinstance(network, BroadNetwork):
        limits = (_COMPARISON_TOL, _COMPARISON_BUDGET, second.seed)
        other = solve_wide(problem, *limits, lambda _: None, start=None if problem.is_linear else solution)
    else:
        nodes = max(network.size // 2, _LEAST_NODES)
        groups = new_nodes(solution, nodes, np.random.default_rng(second.seed))
        wide = with_nodes(network, groups)
        other = second.fit_network(wide, second.points(wide.size), solution.evaluate, close=True)
    judge = second.judge(min(_JUDGE_NODES, network.size))
    estimate = estimated_error(judge(solution).total, judge(other).total, second.distance(solution, other))
    return (cast(RicherNetwork, other.network), other.weights), estimate


def default_method(problem: Problem) -> PIBLS:
    """Return a network of sines over a range of scales, for a user's own points."""
    share, scales = (400, (2.0, 5.0, 12.0)) if len(problem.domain.coordinates) < 3 else (600, (1.0, 3.0))
    return PIBLS(features=[("sin", share, scale) for scale in scales], enhancement_groups=0)


def _fitted(method: Method, problem: Problem, points: Points, seed: int, device: Any) -> Solution:
    solution: object = method.fit(problem, points, seed=seed, device=device)
    if not isinstance(solution, Solution):
        raise InputError(
            f"The fit of the 'method' parameter of solve must return a Solution. Got {shorten(solution)} instead."
        )
    return solution


def _points(problem: Problem, interior: int, seed: int) -> Points:
    return Points.sample(problem, interior, method="kronecker", seed=seed)
