"""The course of a solve by lines: follow the solution on finer and finer features until nothing changes any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from pibls.budget import Budget
from pibls.errors import SolveError
from pibls.limits import STOPS, in_words
from pibls.lines.design import STEEPEST, Design
from pibls.lines.form import Evolution
from pibls.lines.posed import grows_without_bound, leaves_its_bounds
from pibls.lines.radau import IntegrationError
from pibls.lines.record import relative_miss, relative_residual, residuals, solution_of
from pibls.lines.run import Run, distance, follow, misfit, monitored, wave_velocity
from pibls.runtime import RATE, available_memory, format_bytes
from pibls.solution import Solution, Stage
from pibls.solution.stages import more_budget
from pibls.status import Status

__all__ = ["Course", "Report"]

Report = Callable[[str, float, int, float | None, float | None], object]
"""Called with what is being done, the seconds so far, the number of features, a residual and an estimated error."""

_TIME_SHARE, _TIGHTER, _FINEST_TIME = 0.2, 4.0, 1e-13  # the integrator's share of the tolerance, level by level
_ROUGH, _ROUGH_FINENESS = 1e-3, 1.25
_ROUNDS, _LEVELS, _SCAN_SHARE = 12, 14, 0.4
_STEEP, _STEEP_WAVES = (
    8.0,
    25.0,
)  # slopes beyond this are resolved by nodes of their own; or where there are whole waves
_RESOLVED, _UNRESOLVED = 1.1, 3e-3
_KINK_ROUNDS, _KINK_FACTOR, _MOST_KINKED = 16, 2.5, 500
_MISSED, _LESS, _LOCAL = 0.9, 0.8, 0.1
_BRIEF = 10.0  # what is missed at the first time only is soon smoothed out
_FEWER = 0.7
_GLANCE = 0.3  # nominal seconds for what is not determined
_COST = 2.5  # power of the number of features that work grows with
_OVERTIME = 1.5  # what was begun within the budget may end beyond it
_MATRICES, _MEMORY_SHARE = 12, 0.5  # of points by features, at once
_FINER, _FINER_MANY, _MANY = {0: 1.5, 1: 1.5, 2: 1.3}, 1.2, 3
_COARSEST, _PAYING = 0.3, 0.5
_SLOWEST = 0.8, 0.6  # share of an error that is left by the next run: by distances, and by residuals alone
_AGREE, _BEFORE, _ALIKE = 0.1, 0.9, 0.1  # when two runs cease to exist, and how far they are apart shortly before
_MET, _UNMET, _STAYS = 1e-3, 0.03, 0.7  # what is missed of conditions that did not help


@dataclass(eq=False)
class Course:
    """One solve."""

    evolution: Evolution
    tol: float
    seed: int
    budget: float
    report: Report
    shared: Budget = field(default_factory=lambda: Budget(np.inf))
    started: float = field(default_factory=time.perf_counter)
    operations: float = 0.0
    runs: list[Run] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    rough: Run | None = None
    hindsight: float = np.inf
    apart: float = np.inf

    @property
    def elapsed(self) -> float:
        """Seconds since the start, to be shown: nothing depends on them."""
        return time.perf_counter() - self.started

    @property
    def spent(self) -> float:
        """Nominal seconds of the budget that are gone."""
        return self.operations / RATE

    @property
    def _more(self) -> str:
        return more_budget(self.shared.nominal, self.stages)

    @property
    def estimate(self) -> float:
        """The smallest distance of a run to the next finer one, or what a coarser one says of a single run."""
        return min(self.distances, default=self.hindsight)

    @property
    def best(self) -> int:
        """The number of the run with the least estimate, or of the last one."""
        compared = np.isfinite(min(self.distances, default=np.inf))
        return int(np.argmin(self.distances)) if compared else len(self.runs) - 1

    def run(self) -> Solution:
        """Refine until two solutions agree; return the coarser of them with its distance to the finer one."""
        try:
            limit = self._refined()
        except STOPS as stop:
            if not self.runs:
                raise
            limit = in_words(stop)
        except IntegrationError as error:
            if not self.runs and self.rough is not None:
                self._add(self.rough)
            if not self.runs:
                remedy = (
                    "Give a larger budget, check the signs of highest derivatives, and that initial values are finite."
                )
                known = f"The evolution cannot be followed at all: {error}. {remedy}"
                raise SolveError(self.evolution.lacks or known) from error
            limit = f"The budget limits it: {error}. {self._more}"
        return self._finished(limit)

    def _refined(self) -> str:
        """Follow the solution on finer and finer features; return what stopped it, if it did not converge."""
        if self.evolution.lacks:
            # Any of the many solutions will do.
            self.budget = min(self.budget, _GLANCE)
            self._add(self._follow(Design.of(self.evolution), 1.0, max(_ROUGH, self.tol), "solve"))
            return ""
        design, fineness = self._adapted()
        level = 0
        for _ in range(_LEVELS):
            share = _TIME_SHARE * _TIGHTER**-level
            run = self._follow(design, fineness, max(_FINEST_TIME, share * self.tol), "solve")
            self._add(run)
            limit = self._limit()
            if limit is not None:
                return self._looked_back(design, fineness, limit)
            sharper = self._sharper(design, run)
            # Another design begins anew: as steep nodes resolve what waves did not, fewer are enough.
            fineness = self._stepped(design, fineness, self._growth()) if sharper is design else 1.0
            level = level + 1 if sharper is design else min(level + 1, 1)
            design = sharper if sharper is design else self._kinked(sharper, fineness)
        return "Even the finest features do not resolve it."

    def _looked_back(self, design: Design, fineness: float, limit: str) -> str:
        """Estimate the error of a single run by a coarser one, where a finer one cannot be afforded."""
        run = self.runs[-1]
        if not limit or len(self.runs) > 1 or run.ended is not None:
            return limit
        below = self._stepped(design, fineness, 1.0 / self._growth())
        coarser = self._follow(design, below, max(_FINEST_TIME, self.tol), "estimate")
        if coarser.ended is not None:
            return limit
        apart, before = distance(self.evolution.problem, coarser, run), self._residual(coarser)
        # Errors fall like residuals, as long as these fall at all.
        now = self.stages[-1].residual or 0.0
        self.hindsight = apart * min(1.0, now / before) if before > 0 else apart
        self.stages[-1] = replace(self.stages[-1], estimate=self.hindsight)
        return "" if apart <= self.tol else limit

    def _adapted(self) -> tuple[Design, float]:
        """Find where the solution is steep and how fine it is, by rough solutions that become sharper."""
        design = Design.of(self.evolution)
        if design.dimension != 1:
            return design, 1.0 if design.dimension < _MANY else _FINER_MANY
        fineness, ended = 1.0, 0
        for _ in range(_ROUNDS):
            run = self._follow(design, _ROUGH_FINENESS * fineness, _ROUGH, "scan")
            self.rough = run
            if travelling := self._travelling(run):
                # What was seen from a coordinate at rest is no solution in one that moves.
                design, fineness, self.rough = travelling, 1.0, None
                continue
            sharper = self._sharper(design, run)
            ended += run.ended is not None
            if self.spent > _SCAN_SHARE * self.budget or ended > 1 or self.shared.late:
                break
            if sharper is not design:
                design, fineness = sharper, 1.0
            elif run.ended or (design.monitor is None and self._residual(run) > _UNRESOLVED):
                fineness *= _FINER.get(design.dimension, _FINER_MANY) ** 2
            else:
                break
        fineness = fineness if design.monitor is None else 1.0
        return self._kinked(design, fineness), fineness

    def _travelling(self, run: Run) -> Design | None:
        """Move with a front that travels round a periodic interval, if fewer features then do; return their design."""
        if run.ended or not self.evolution.can_move:
            return None
        velocity = wave_velocity(run)
        moving = monitored(run, velocity)
        if moving.peak < _STEEP_WAVES or moving.total > _FEWER * monitored(run).total:
            return None
        self.evolution = self.evolution.moving(velocity)
        return replace(run.design, monitor=moving)

    def _kinked(self, design: Design, fineness: float) -> Design:
        """Make the features finer where they miss a kink of the initial values, or a clash with the boundary data."""
        last = np.inf
        for _ in range(_KINK_ROUNDS if design.monitor is not None else 0):
            places, share = misfit(self.evolution, design, fineness, np.random.default_rng(self.seed))
            # Smooth values that are not resolved yet are missed everywhere; that is for finer features to mend.
            order = np.argsort(share)[::-1]
            missed = order[: int(np.searchsorted(np.cumsum(share[order]), _MISSED * share.sum())) + 1]
            met = share.sum() <= (_BRIEF * self.tol) ** 2 or share.sum() > _LESS * last
            last = float(share.sum())
            if met or len(missed) > _LOCAL * len(share) or design.nodes(fineness) > _MOST_KINKED:
                break
            assert design.monitor is not None
            normal = ((places[missed] - design.center) / design.half)[:, 0]
            design = replace(design, monitor=design.monitor.sharpened(normal, _KINK_FACTOR))
        return design

    def _sharper(self, design: Design, run: Run) -> Design:
        """Return a design for a solution that turned out to be steeper than it was made for, or the same."""
        if design.dimension != 1 or run.ended:
            return design
        monitor = monitored(run)
        if design.monitor is None:
            sharper = monitor.peak > (_STEEP_WAVES if all(design.periodic) else _STEEP)
        else:
            sharper = design.monitor.peak < STEEPEST and design.excess(monitor) > _RESOLVED
        return replace(design, monitor=monitor) if sharper else design

    def _follow(self, design: Design, fineness: float, tol: float, stage: str) -> Run:
        last = self.stages[-1] if self.stages else Stage(0.0)
        nodes = design.nodes(fineness) if design.dimension else 0
        self.report(stage, self.elapsed, nodes, last.residual, self.estimate if self.distances else None)
        rng = self.generator(fineness)
        allowed = _OVERTIME * self.budget * RATE - self.operations
        run = follow(self.evolution, design, fineness, tol, rng, allowed)
        self.operations += run.operations
        return run

    def generator(self, fineness: float) -> np.random.Generator:
        """Return what features of a fineness are drawn with."""
        return np.random.default_rng((self.seed, int(1000 * fineness)))

    def _add(self, run: Run) -> None:
        """Keep a run, and the distance of the one before to it."""
        self.report("estimate", self.elapsed, run.width, None, self.estimate if self.distances else None)
        residual = self._residual(run)
        if self.runs:
            ended = self.runs[-1].ended or run.ended
            apart = np.inf if ended else distance(self.evolution.problem, self.runs[-1], run)
            # The finer run has an error, too; errors fall as distances did before, or at least like residuals.
            before = max(self.stages[-1].residual or 0.0, 1e-300)
            known = min(apart / self.apart, _SLOWEST[0]) if np.isfinite(self.apart) else _SLOWEST[1]
            fall = min(residual / before, known)
            self.distances.append(apart / (1.0 - fall))
            self.apart = max(apart, 1e-300)
            self.stages[-1] = replace(self.stages[-1], estimate=self.distances[-1])
        self.runs.append(run)
        size = {"nodes": run.width, "rows": run.points, "steps": len(run.network.coefficients)}
        self.stages.append(Stage(self.elapsed, **size, residual=residual))

    def _limit(self) -> str | None:
        """Return what ends the course: nothing left to do (an empty text), or what forbids another level."""
        run = self.runs[-1]
        if self.estimate <= self.tol:
            return ""
        if run.ended is not None and not run.ended.blown_up:
            return f"The budget limits it: {run.ended}. {self._more}"
        if lost := self._blown_up():
            return lost
        if len(self.distances) >= 3 and min(self.distances[-2:]) > _PAYING * self.distances[-3]:
            if self.distances[-3] < 1e-10:
                return "Round-off limits it: no more digits are to be had in double precision. Ask for a larger tol."
            if len(self.distances) >= 6:
                return "Finer features no longer pay: the solution may have jumps, or depend chaotically on its start."
        growth = self._growth() ** (_COST * max(run.design.dimension, 1))
        if self.spent + growth * run.operations / RATE > self.budget:
            limit = f"finer features would take more than {self.shared.nominal:g} nominal seconds"
            return f"The budget limits it: {limit}. {self._more}"
        finer = self._growth() ** run.design.dimension
        needed = 8.0 * _MATRICES * len(run.rule.weights) * run.network.features * finer**2
        if needed > _MEMORY_SHARE * available_memory():
            return f"The memory limits it: finer features would need {format_bytes(needed)}."
        return self.shared.late or None

    def _growth(self) -> float:
        """Return how much finer the next features are: a little, if they need only confirm what there is."""
        growth = _FINER.get(self.runs[-1].design.dimension, _FINER_MANY)
        if not self.distances:
            return growth
        before, now = (stage.residual or 0.0 for stage in self.stages[-2:])
        return growth**0.5 if self.distances[-1] * now < self.tol * before else growth

    def _stepped(self, design: Design, fineness: float, factor: float) -> float:
        """Return the next fineness with another number of features: the same ones would agree, and prove nothing."""
        found = fineness * factor
        while design.dimension and design.nodes(found) == design.nodes(fineness) and found > _COARSEST:
            found *= factor
        return found

    def _blown_up(self) -> str:
        """Say how the solution ceases to exist, if two runs say so."""
        # A rough solution is a witness too, as long as there is no second run.
        seen = self.runs[-2:] if len(self.runs) > 1 or self.rough is None else [self.rough, *self.runs]
        lost = [run for run in seen if run.ended is not None and run.ended.blown_up]
        if len(lost) < 2:
            return ""
        one, two = lost
        network = replace(two.network, frame=self.evolution.frame)
        if grows_without_bound(self.evolution, network):
            return (
                "The solution is unstable: the shorter waves are the faster they grow, as in a heat equation backwards."
            )
        if leaves_its_bounds(self.evolution, network, two.reached):
            return ""
        spans = [run.reached - self.evolution.limits[0] for run in lost]
        # What features make up ends at other times, and is another solution before that.
        alike = distance(self.evolution.problem, one, two, _BEFORE) < _ALIKE
        if alike and max(spans) - min(spans) <= _AGREE * max(spans):
            return f"The solution ceases to exist: {self.runs[-1].ended}, whatever the features."
        return ""

    def _residual(self, run: Run) -> float:
        return relative_residual(solution_of(self.evolution, run, self.seed), run.reached)

    def _finished(self, limit: str) -> Solution:
        """Return the best run with status, message and history."""
        run = self.runs[self.best]
        richer = self.runs[self.best + 1] if np.isfinite(min(self.distances, default=np.inf)) else None
        if self.evolution.lacks:
            status, message, self.hindsight, self.distances = Status.ILL_POSED, self.evolution.lacks, np.inf, []
        elif lost := "" if np.isfinite(self.estimate) else self._blown_up():
            status = Status.ILL_POSED
            message = f"{lost} What is returned holds until then. End earlier, or check signs and initial values."
        elif not limit:
            message = f"The estimated error {self.estimate:.1e} is within the tolerance {self.tol:g}."
            status = Status.CONVERGED
        else:
            status = Status.STALLED
            known = f"is {self.estimate:.1e}, above the tolerance {self.tol:g}"
            known = known if np.isfinite(self.estimate) else "is not known"
            message = f"The estimated error {known}. {limit}"
        solution = solution_of(self.evolution, run, self.seed)
        diagnostics = replace(
            solution.diagnostics,
            residuals=residuals(solution),
            message=message,
            stages=tuple(self.stages),
            seconds={"total": self.elapsed},
        )
        finer = None if richer is None else (replace(richer.network, frame=self.evolution.frame), solution.weights)
        made = replace(solution, status=status, error_estimate=self.estimate, diagnostics=diagnostics, richer=finer)
        return self._kept(made) if status == Status.CONVERGED else made

    def _kept(self, solution: Solution) -> Solution:
        """Return a solution that keeps the conditions that did not help to find it, or say that it does not."""
        for statement in self.evolution.surplus:
            finer = solution if solution.richer is None else replace(solution, network=solution.richer[0])
            missed, again = (relative_miss(own, statement) for own in (solution, finer))
            if again <= (bound := max(_MET, 10.0 * self.tol)):
                continue
            proven = again > max(_UNMET, bound, _STAYS * missed)
            message = (
                f"The conditions contradict each other: a solution that meets all others misses {statement.name} by "
                f"{again:.1g} of its size. Remove one, or check values and signs."
                if proven
                else f"The solution meets all conditions but {statement.name}, which it misses by {again:.1g}."
            )
            diagnostics = replace(solution.diagnostics, message=message)
            status = Status.ILL_POSED if proven else Status.STALLED
            return replace(solution, status=status, error_estimate=1.0, diagnostics=diagnostics)
        return solution
