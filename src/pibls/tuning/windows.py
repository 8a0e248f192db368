"""Marching: space–time least squares on one window of time after the other.

Each window starts from where the one before ended: values, and derivatives in time as far as the equation has them.
Its length is halved where a window is not solved, and doubled where it was easy. A window like the one before takes
over its network, moved in time; only where that is not enough, scales and width are chosen anew. In the end the march
is repeated with richer networks, each from its own start: the distance of both is the error, growth included.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import PiblsError, SolveError
from pibls.features import BroadNetwork
from pibls.geometry import Domain
from pibls.geometry.points import interior_points
from pibls.lines import Evolution, find_evolution, transits
from pibls.problem import Problem
from pibls.solution import Diagnostics, Residual, Solution
from pibls.solution.windowed import WindowedNetwork
from pibls.tuning.campaign import Campaign, estimated_error
from pibls.tuning.laboratory import Laboratory, relative_distance
from pibls.tuning.nonlinear import laboratory_near, solve_nonlinear
from pibls.tuning.progress import Progress
from pibls.tuning.window_problem import check_marchable, window_problem

__all__ = ["march"]

_SHARE = 0.2  # of the tolerance, for each window
_TURNS = 8.0  # radians of the initial motion that a first window holds
_UNKNOWN_PARTS = 4
_SHORTEST = 2.0**-12
_EASY = 4  # windows in a row, before a longer one is tried
_TRY_SHARE = 0.15  # of the budget, for the search for one window's network
_MARCH_SHARE = 0.75
_PATIENT = 3.0
_ATTEMPTS = 3
_TIGHTER = 0.3
_POINTS = 4000
_COMPARE = 91


def march(
    problem: Problem,
    tol: float,
    budget: float,
    seed: int,
    report: Callable[[Progress], None],
    *,
    device: Any = None,
) -> Solution:
    """Solve a problem in time by marching; see :func:`pibls.solve`.

    Examples
    --------
    >>> from pibls.problems import heat_robin
    >>> solution = march(heat_robin(), 1e-6, 10.0, 0, lambda _: None)
    >>> solution.status, solution.true_error() < 1e-6
    ('converged', True)
    """
    check_marchable(problem)
    return _March(problem, tol, budget, seed, report, device).run()


@dataclass(frozen=True, eq=False)
class _Chain:
    """Windows that were solved one after the other."""

    problem: Problem
    seed: int
    breaks: tuple[float, ...]
    windows: tuple[Solution, ...] = ()

    def with_window(self, solution: Solution, stop: float) -> _Chain:
        return replace(self, breaks=(*self.breaks, stop), windows=(*self.windows, solution))

    @property
    def solution(self) -> Solution:
        """The windows as one solution."""
        networks = tuple(cast(BroadNetwork, window.network) for window in self.windows)
        network = WindowedNetwork(np.array(self.breaks), networks, tuple(window.weights for window in self.windows))
        last = self.windows[-1].diagnostics
        settings = {"windows": [round(stop, 12) for stop in self.breaks[1:]], "nodes": [n.size for n in networks]}
        rows = max(window.diagnostics.rows for window in self.windows)
        record = Diagnostics("Windows", settings, self.seed, network.features, rows, last.solver, None, None, {})
        return Solution(self.problem, network, np.eye(network.size), "stalled", record)


@dataclass(eq=False)
class _March:
    """One solve."""

    problem: Problem
    tol: float
    budget: float
    seed: int
    report: Callable[[Progress], None]
    device: Any = None
    started: float = field(default_factory=time.perf_counter)
    worked: float = field(default_factory=time.process_time)
    stages: list[dict[str, float]] = field(default_factory=list)
    missed: tuple[Solution, float] | None = None

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.started

    @property
    def spent(self) -> float:
        """Seconds of work; waiting for other programs counts by a third only."""
        return max(min(self.elapsed, time.process_time() - self.worked), self.elapsed / _PATIENT)

    def run(self) -> Solution:
        """March, estimate by a second march, and do so more accurately as long as that is needed and can be."""
        share, best = _SHARE, None
        for _ in range(_ATTEMPTS):
            chain, limit = self._marched(share * self.tol)
            if limit:
                return best or self._unfinished(chain, limit)
            other = self._again(chain)
            estimate = relative_distance(chain.solution, other.solution, self._compare)
            found = self._finished(chain, other, estimate)
            best = found if best is None or estimate < cast(float, best.error_estimate) else best
            if estimate <= self.tol or self.spent > self.budget / 2:
                break
            share *= _TIGHTER * self.tol / estimate
        assert best is not None
        return best

    @property
    def _compare(self) -> FloatArray:
        seed = int(np.random.SeedSequence((self.seed, _COMPARE)).generate_state(1)[0])
        return interior_points(cast(Domain, self.problem.domain), _POINTS, "kronecker", seed)

    def _first_length(self) -> float:
        """Return the length of a first window: a few radians of the motion at the beginning."""
        start, stop = self.problem.domain.bounds[-1].tolist()
        evolution = find_evolution(self.problem)
        turns = transits(evolution) if isinstance(evolution, Evolution) else math.inf
        parts = math.ceil(turns / _TURNS) if math.isfinite(turns) else _UNKNOWN_PARTS
        return float((stop - start) / max(1, min(parts, int(1 / _SHORTEST))))

    def _marched(self, tol: float) -> tuple[_Chain, str]:
        """Return windows up to the last time, or as far as the time allows, and what ended them before."""
        start, stop = self.problem.domain.bounds[-1].tolist()
        chain = _Chain(self.problem, self.seed, (start,))
        length, easy = self._first_length(), 0
        while chain.breaks[-1] < stop:
            here = chain.breaks[-1]
            if self.spent > (_MARCH_SHARE if chain.windows else 1.0) * self.budget:
                return chain, f"The time limits it: the budget of {self.budget:g} s was spent at t = {here:.4g}."
            if length < _SHORTEST * (stop - start):
                return (
                    chain,
                    f"Windows as short as {length:.1e} are not solved near t = {here:.4g}: it may blow up there.",
                )
            # Windows of nearly the same length, instead of a rest at the end.
            end = here + (stop - here) / math.ceil((stop - here) / length - 1e-9)
            end = stop if end > stop - 1e-9 * (stop - start) else end
            window = self._window(chain, end, tol)
            if window is None:
                length, easy = (end - here) / 2, 0
                continue
            chain = chain.with_window(window, end)
            self._note(chain, window)
            easy += 1
            length, easy = (2 * length, 0) if easy >= _EASY else (length, easy)
        return chain, ""

    def _note(self, chain: _Chain, window: Solution) -> None:
        estimate = cast(float, window.error_estimate)
        nodes = window.network.size
        facts = {"nodes": nodes, "rows": window.diagnostics.rows, "time": chain.breaks[-1], "estimate": estimate}
        self.stages.append({**facts, "seconds": self.elapsed})
        self.report(Progress("solve", self.elapsed, nodes, None, estimate))

    def _window(self, chain: _Chain, end: float, tol: float) -> Solution | None:
        """Solve the next window, with the network of the one before if that is enough; None if it is not solved."""
        so_far = chain.solution if chain.windows else None
        problem = window_problem(self.problem, chain.breaks[-1], end, so_far)
        try:
            if chain.windows and math.isclose(
                end - chain.breaks[-1], chain.breaks[-1] - chain.breaks[-2], rel_tol=1e-6
            ):
                found = self._moved(chain, problem)
                if cast(float, found.error_estimate) <= tol:
                    return found
            budget = max(_TRY_SHARE * self.budget, 0.05)
            if problem.is_linear:
                lab = Laboratory(problem, self.seed, device=self.device)
                found = Campaign(lab, tol, budget, self.report).run().finished()
            else:
                found = solve_nonlinear(problem, tol, budget, self.seed, self.report, device=self.device, start=so_far)
        except PiblsError:
            return None
        if found.status == "converged" and found.richer is not None:
            return found
        self.missed = (found, end)
        return None

    def _moved(self, chain: _Chain, problem: Problem) -> Solution:
        """Solve a window with the networks of the one before, moved in time."""
        before = chain.windows[-1]
        step = chain.breaks[-1] - chain.breaks[-2]
        lab = self._laboratory(problem, chain)
        assert before.richer is not None
        networks = [_shifted(cast(BroadNetwork, n), step) for n in (before.network, before.richer[0])]
        own, richer = (lab.fit_network(network, lab.points(network.size)) for network in networks)
        judge = lab.judge(own.network.size)
        estimate = estimated_error(judge(own).total, judge(richer).total, lab.distance(own, richer))
        return replace(own, error_estimate=estimate, richer=(cast(BroadNetwork, richer.network), richer.weights))

    def _laboratory(self, problem: Problem, chain: _Chain) -> Laboratory:
        if problem.is_linear or not chain.windows:
            return Laboratory(problem, self.seed, device=self.device)
        return laboratory_near(replace(chain.solution, problem=problem), self.seed, self.device)

    def _again(self, chain: _Chain) -> _Chain:
        """March through the same windows with the richer network of each, on other points, from starts of its own."""
        other = _Chain(self.problem, self.seed, chain.breaks[:1])
        for window, end in zip(chain.windows, chain.breaks[1:], strict=True):
            self.report(Progress("estimate", self.elapsed, window.network.size))
            so_far = other.solution if other.windows else None
            problem = window_problem(self.problem, other.breaks[-1], end, so_far)
            lab = (
                Laboratory(problem, self.seed, device=self.device)
                if problem.is_linear
                else laboratory_near(replace(window, problem=problem), self.seed, self.device)
            ).other()
            assert window.richer is not None
            network = cast(BroadNetwork, window.richer[0])
            other = other.with_window(lab.fit_network(network, lab.points(network.size)), end)
        return other

    def _finished(self, chain: _Chain, other: _Chain, estimate: float) -> Solution:
        converged = estimate <= self.tol
        message = f"The estimated error {estimate:.1e} is within the tolerance {self.tol:g}."
        if not converged:
            message = (
                f"The estimated error is {estimate:.1e}, above the tolerance {self.tol:g}: it grows from window to "
                "window. Give a larger budget, such as budget=60, or time='lines'."
            )
        return self._recorded(chain, "converged" if converged else "stalled", message, estimate, other)

    def _unfinished(self, chain: _Chain, limit: str) -> Solution:
        """Return what there is: the windows so far, or the first one, unsolved as it is."""
        if not chain.windows and self.missed is not None and isinstance(self.missed[0].network, BroadNetwork):
            chain = chain.with_window(*self.missed)
        if not chain.windows:
            raise SolveError(f"{limit} Not even a first window could be tried. Give a larger budget, or time='lines'.")
        message = f"{limit} What is returned holds until then at most. Give a larger budget, or time='lines'."
        return self._recorded(chain, "stalled", message, 1.0, None)

    def _recorded(self, chain: _Chain, status: str, message: str, estimate: float, other: _Chain | None) -> Solution:
        solution = chain.solution
        residuals: dict[str, Residual] = {}
        for window in chain.windows:
            for name, found in window.diagnostics.residuals.items():
                if not name.startswith("Initial(") and (name not in residuals or found.rms > residuals[name].rms):
                    residuals[name] = found
        diagnostics = replace(
            solution.diagnostics,
            residuals=residuals,
            message=message,
            stages=tuple(self.stages),
            seconds={"total": self.elapsed},
        )
        richer = None if other is None else (cast(WindowedNetwork, other.solution.network), solution.weights)
        return replace(solution, status=status, error_estimate=estimate, diagnostics=diagnostics, richer=richer)


def _shifted(network: BroadNetwork, step: float) -> BroadNetwork:
    """Return a network moved in time."""
    center = np.array(network.center, dtype=np.float64)
    center[-1] += step
    return replace(network, center=center)
