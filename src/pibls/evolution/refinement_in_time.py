"""An evolution followed on finer and finer features, until two solutions agree.

On a line, rough runs come first: they tell where the solution is steep, and features are made for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from pibls.budget import Budget
from pibls.errors import SolveError
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.design import STEEPEST, Design
from pibls.evolution.form import Evolution
from pibls.evolution.galerkin import Galerkin
from pibls.evolution.radau import IntegrationError
from pibls.evolution.run import (
    Run,
    distance,
    follow,
    misfit,
    monitored,
    relative_residual,
    solution_of,
    system_of,
    wave_velocity,
)
from pibls.evolution.waves import Waves
from pibls.limits import STOPS, in_words
from pibls.quadrature.roots import ROUNDING
from pibls.refinement import VISIBLE, Cost, Course, Reason, Stop, extrapolated, refine, verdict
from pibls.refinement.patience import RUNS
from pibls.refinement.standards import FALLS, MOST, NEGLIGIBLE, PLAIN, SLIGHT
from pibls.refinement.stopping import GLANCE, more_budget
from pibls.runtime import RATE
from pibls.solution import Solution, Stage
from pibls.solution.residuals import ResidualTable, lasting_miss, relative_miss
from pibls.status import Status
from pibls.wellposed.contradiction import clash_beyond
from pibls.wellposed.stability import leaves_its_bounds, unbounded_growth

Report = Callable[[str, float, int, float | None, float | None], object]
"""Called with the name of a step, the seconds so far, the number of features, a residual and an estimated error."""


class Pair(NamedTuple):
    """A run, its residual, a finer run if there is one, its estimated error, and a coarser run that tells it."""

    run: Run
    residual: float
    finer: Run | None
    estimate: float
    coarser: Run | None = None


@dataclass(eq=False)
class RefinementInTime:
    """One solve: features in space, refined, and an integrator in time, whose steps become more accurate as well."""

    evolution: Evolution
    tol: float
    seed: int
    budget: Budget
    report: Report
    assume_well_posed: bool = False
    operations: float = 0.0
    runs: list[Run] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)
    apart: float = np.inf
    level: int = 0  # how often the tolerance of steps was lowered; below zero, steps are rough
    plain: bool = False  # whether all features are to have matrices
    _system: tuple[Any, Galerkin | Waves] | None = None

    def __post_init__(self) -> None:
        self.allowed = self.budget.left * RATE
        self.course: Course[Pair] = Course(self.budget, RUNS, self.report)

    @property
    def chosen(self) -> Pair:
        """The run with the least estimate, or the last one where nothing is known of any."""
        unknown = Pair(self.runs[-1], self.residuals[-1], None, np.inf)
        best = self.course.best if self.course.comparisons else unknown
        return best if np.isfinite(best.estimate) else unknown

    def run(self) -> Solution:
        """Refine until two solutions agree; return the coarser of them with its distance to the finer one."""
        try:
            stop = self._refined()
        except STOPS as stopped:
            if not self.runs:
                raise
            stop = Stop(Reason.INTERRUPTED, in_words(stopped))
        except IntegrationError as error:
            if not self.runs:
                remedy = (
                    "Give a larger budget, check the signs of highest derivatives, and that initial values are finite."
                )
                known = f"The evolution cannot be followed at all: {error}. {remedy}"
                raise SolveError(self.evolution.lacks or known) from error
            stop = self._out_of_budget(error)
        return self._finished(stop)

    def _refined(self) -> Stop:
        """Follow the solution on finer and finer features; return why that ended."""
        design = Design.of(self.evolution)
        if self.evolution.lacks:
            # Any of the many solutions will do.
            self.allowed = min(self.allowed, GLANCE * RATE)
        self.level = -1 if design.dimension == 1 or self.evolution.lacks else 0
        run = self._added(design, self._first_fineness(design))
        if self.evolution.lacks:
            return Stop(Reason.LOST, self.evolution.lacks)
        stop = self._lost(run) or self.cost().limit(self.budget, self.course.stages)
        stop = stop or refine(self, run, self.course)
        # Later levels were compared.
        return self._looked_back(stop) if self.level == 0 and stop.reason is not Reason.INTERRUPTED else stop

    def _first_fineness(self, design: Design) -> float:
        """Return the fineness of the first features; waves are to resolve half the digits of initial values.

        Where values have jumps or kinks, so many waves are needed that they are worth but a glance.
        """
        first = fineness = 1.0 if design.dimension < 3 else design.of_dimension(SETTINGS.finer)
        system, growth, half, more = self.system(design, first), SETTINGS.finer[0], self.tol**MOST, 1.0
        while isinstance(system, Waves):
            if SETTINGS.times * system.iteration * more**design.dimension > self.allowed:
                self.allowed *= NEGLIGIBLE
                return first
            if (before := system.missed) <= half:
                break
            fineness *= growth
            system = self.system(design, fineness)
            assert isinstance(system, Waves)
            # The other half of the digits takes so many times as many waves.
            fall = system.missed / before
            more = growth ** (math.log(half) / math.log(fall)) if 0.0 < fall < 1.0 and system.missed <= half else 1.0
        return fineness

    def compare(self, here: Run) -> Pair:
        """Follow the solution on finer features, or on others where it turned out to be steeper."""
        before, scanning = self.residuals[-1], self.level < 0
        finer = self._added(*(self._sought(here) if scanning else self._next(here)))
        if scanning or len(self.runs) == 1:
            return Pair(here, before, finer, np.inf)
        self.course.tell("estimate", finer.width)
        apart = np.inf if here.ended or finer.ended else distance(self.evolution.problem, here, finer)
        # The finer run has an error, too; errors fall as distances did before, or at least like residuals.
        known = min(apart / self.apart, FALLS) if np.isfinite(self.apart) else MOST
        self.apart, fall = max(apart, 1e-300), self.residuals[-1] / max(before, 1e-300)
        solutions = (solution_of(self.evolution, run, self.seed) for run in (here, finer))
        missed, later = (lasting_miss(own.problem, own.evaluate) for own in solutions)
        estimate = max(extrapolated(apart, fall, known), missed)
        # Where waves resolve a solution, errors fall like residuals; one comparison vouches for two digits.
        left = apart * max(fall, SLIGHT) / (1.0 - fall) if finer.on_waves and fall <= NEGLIGIBLE else np.inf
        if estimate > self.tol >= max(left, later):
            return Pair(finer, self.residuals[-1], None, max(left, later), here)
        return Pair(here, before, finer, estimate)

    def _next(self, here: Run) -> tuple[Design, float]:
        """Return finer features, or others for a solution that turned out to be steeper."""
        design = self._travelling(here) or _sharper(here.design, here)
        self.level = self.level + 1 if design is here.design else min(self.level + 1, 1)
        # Another design begins anew: as steep nodes resolve what waves did not, fewer are enough.
        return (design, self._stepped(here, self._growth())) if design is here.design else (self._kinked(design), 1.0)

    def _sought(self, here: Run) -> tuple[Design, float]:
        """Return features for where a rough run is steep; steps become accurate when these are found."""
        design, fineness = here.design, here.fineness
        if travelling := self._travelling(here):
            return travelling, 1.0
        enough = self.operations > MOST * self.allowed or bool(self.budget.late)
        if not enough and sum(run.ended is not None for run in self.runs) < 2:
            if (better := _sharper(design, here)) is not design:
                return better, 1.0
            if here.ended or (design.monitor is None and self.residuals[-1] > VISIBLE):
                return design, fineness * design.of_dimension(SETTINGS.finer) ** 2
        self.level = 0
        return (design, fineness) if design.monitor is None else (self._kinked(design), 1.0)

    def _travelling(self, run: Run) -> Design | None:
        """Move with a front that travels round a periodic interval, if fewer features then do; return their design."""
        if run.ended or not self.evolution.can_move:
            return None
        velocity = wave_velocity(run)
        moving = monitored(run, velocity)
        if moving.peak < SETTINGS.steep_waves or moving.total > FALLS * monitored(run).total:
            return None
        self.evolution = self.evolution.moving(velocity)
        # What was seen from a coordinate at rest is no solution in one that moves.
        self.apart = np.inf
        for seen in (self.runs, self.residuals, self.course.comparisons):
            seen.clear()
        return replace(run.design, monitor=moving)

    def _kinked(self, design: Design) -> Design:
        """Make features finer where they miss a kink of the initial values, or a clash with the boundary data."""
        last = np.inf
        for _ in range(SETTINGS.rounds):
            assert design.monitor is not None
            system = self.system(design, 1.0)
            assert isinstance(system, Galerkin)
            places, share = misfit(system)
            # Smooth values that are not resolved yet are missed everywhere; that is for finer features to mend.
            order, total = np.argsort(share)[::-1], float(share.sum())
            missed = order[: int(np.searchsorted(np.cumsum(share[order]), (1.0 - NEGLIGIBLE) * total)) + 1]
            met = total <= (self.tol / NEGLIGIBLE) ** 2 or total > FALLS * last
            if met or len(missed) > NEGLIGIBLE * len(share):
                break
            last, normal = total, ((places[missed] - design.center) / design.half)[:, 0]
            design = replace(design, monitor=design.monitor.sharpened(normal, SETTINGS.finer[0] ** 2))
        return design

    def stage(self, found: Pair) -> Stage:
        """Return the record of a run and its estimate."""
        run, estimate = found.run, found.estimate if np.isfinite(found.estimate) else None
        size = {"nodes": run.width, "rows": run.points, "steps": len(run.network.coefficients)}
        return Stage(self.budget.elapsed, **size, residual=found.residual, estimate=estimate)

    def is_met(self, found: Pair) -> bool:
        """Tell whether the estimate is within the tolerance."""
        return found.estimate <= self.tol

    def limit(self, found: Pair) -> Stop | None:
        """Return why nothing finer would help: the solution ceases to exist, or features are as fine as they get."""
        assert found.finer is not None
        if len(self.runs) == SETTINGS.rounds:
            return Stop(Reason.EXHAUSTED, "the finest features there are do not resolve the solution")
        if not found.run.design.dimension and SETTINGS.tighter ** -(self.level + 2) * self.tol < ROUNDING:
            return Stop(Reason.ROUNDING)  # the next steps would be the same, agree, and prove nothing
        return self._lost(found.finer)

    def _lost(self, run: Run) -> Stop | None:
        if self.level < 0:
            return None
        if run.ended is not None and not run.ended.blown_up:
            return self._out_of_budget(run.ended)
        return Stop(Reason.LOST, lost) if (lost := self._blown_up()) else None

    def _out_of_budget(self, error: IntegrationError) -> Stop:
        return Stop(Reason.BUDGET, str(error), more_budget(self.budget.nominal, self.course.stages))

    def cost(self, _: Pair | None = None) -> Cost:
        """Return the cost of the next run; rough runs keep to half of the work."""
        return Cost("an accurate run", 0.0) if self.level < 0 else self._cost()

    def _cost(self) -> Cost:
        run, growth = self.runs[-1], self._growth()
        work = growth ** ((1 if run.on_waves else 3) * max(run.design.dimension, 1)) * run.operations
        finer = growth**run.design.dimension
        memory = 8.0 * SETTINGS.matrices * run.numbers * (finer if run.on_waves else finer**2)
        return Cost("finer features", work, memory, MOST)

    def finer(self, found: Pair) -> Run:
        """Return the finer run."""
        assert found.finer is not None
        return found.finer

    def _looked_back(self, stop: Stop) -> Stop:
        """Estimate the error of a single run by a coarser one, where a finer one cannot be afforded."""
        run, residual, estimate, beside = self.runs[-1], self.residuals[-1], np.inf, None
        if run.ended is None:
            below = self._stepped(run, 1.0 / self._growth())
            coarser = self._followed(run.design, below, max(ROUNDING, self.tol), "estimate")
            if coarser.ended is None:
                apart, before = distance(self.evolution.problem, coarser, run), self._residual(coarser)
                beside = coarser
                # Errors fall like residuals, as long as these fall at all.
                estimate = apart * min(1.0, residual / before) if before > 0 else apart
                stop = Stop(Reason.TOLERANCE) if apart <= self.tol else stop
        found = Pair(run, residual, None, estimate, beside)
        self.course.comparisons.append(found)
        self.course.note(self.stage(found))
        return stop

    def _added(self, design: Design, fineness: float) -> Run:
        """Return a run that is kept, with its residual."""
        rough = self.level < 0
        tol = PLAIN if rough else max(ROUNDING, SETTINGS.tighter ** -(self.level + 1) * self.tol)
        run = self._followed(design, fineness, tol, "scan" if rough and not self.evolution.lacks else "solve")
        residual = self._residual(run)
        # A deadline may end what stands above: both are kept, or neither.
        self.runs.append(run)
        self.residuals.append(residual)
        return run

    def _followed(self, design: Design, fineness: float, tol: float, doing: str) -> Run:
        """Return the run of a design and a fineness."""
        self.course.tell(doing, design.nodes(fineness) if design.dimension else 0)
        allowed = (1.0 + MOST) * self.allowed - self.operations
        run = follow(self.system(design, fineness), design, fineness, tol, allowed)
        self.operations += run.operations
        self.budget.spend(run.operations)
        return run

    def system(self, design: Design, fineness: float) -> Galerkin | Waves:
        """Return the evolution on features of a design and a fineness; the last one is kept."""
        key = (self.evolution, design, fineness)
        if self._system is None or self._system[0] != key:
            rng = np.random.default_rng((self.seed, int(1000 * fineness)))
            self._system = key, system_of(self.evolution, design, fineness, rng, plain=self.plain)
        return self._system[1]

    def _growth(self) -> float:
        """Return how much finer the next features are: a little, if they need only confirm the last ones."""
        run = self.runs[-1]
        growth = SETTINGS.finer[0] if run.on_waves else run.design.of_dimension(SETTINGS.finer)
        if not self.course.comparisons or len(self.residuals) < 2:
            return growth
        before, now = self.residuals[-2:]
        return growth**0.5 if self.course.comparisons[-1].estimate * now < self.tol * before else growth

    def _stepped(self, run: Run, factor: float) -> float:
        """Return the next fineness with another number of features: the same ones would agree, and prove nothing."""
        design, found = run.design, run.fineness * factor
        while design.dimension and design.nodes(found) == design.nodes(run.fineness) and found > MOST:
            found *= factor
        return found

    def _blown_up(self) -> str:
        """Say how the solution ceases to exist, if two runs say so."""
        lost = [run for run in self.runs[-2:] if run.ended is not None and run.ended.blown_up]
        if len(lost) < 2:
            return ""
        one, two = lost
        network = replace(two.network, frame=self.evolution.frame)
        if growth := unbounded_growth(self.evolution, network):
            return growth
        if leaves_its_bounds(self.evolution, network, two.reached):
            return ""
        spans = [run.reached - self.evolution.limits[0] for run in lost]
        # What features make up ends at other times, and is another solution before that.
        alike = distance(self.evolution.problem, one, two, 1.0 - NEGLIGIBLE) < NEGLIGIBLE
        if alike and max(spans) - min(spans) <= NEGLIGIBLE * max(spans):
            return f"The solution ceases to exist: {self.runs[-1].ended}, whatever the features."
        return ""

    def _residual(self, run: Run) -> float:
        return relative_residual(solution_of(self.evolution, run, self.seed), run.reached)

    def _finished(self, stop: Stop) -> Solution:
        """Return the best run with its verdict and the record of the solve."""
        chosen = self.chosen
        if not self.course.stages:
            self.course.stages.append(self.stage(chosen))
        solution = solution_of(self.evolution, chosen.run, self.seed)
        beside = chosen.finer or chosen.coarser
        if beside is not None:
            other = replace(beside.network, frame=self.evolution.frame), solution.weights
            solution = replace(solution, richer=other)
        status, estimate, message = self._verdict(solution, chosen.estimate, stop)
        diagnostics = replace(
            solution.diagnostics,
            residuals=ResidualTable(solution),
            message=message,
            stages=tuple(self.course.stages),
            seconds={"total": self.budget.elapsed},
        )
        return replace(solution, status=status, error_estimate=estimate, diagnostics=diagnostics)

    def _verdict(self, solution: Solution, estimate: float, stop: Stop) -> tuple[Status, float, str]:
        """Return the status, the estimated error and the message of a solve."""
        flaw = self.evolution.lacks
        if not flaw and not np.isfinite(estimate) and (lost := self._blown_up()):
            remedy = "The returned solution is valid until then. End earlier, or check signs and initial values."
            flaw = f"{lost} {remedy}"
        if not flaw and stop.reason is Reason.TOLERANCE and (unmet := self._unmet(solution)):
            estimate, (missed, flaw) = 1.0, unmet
            stop = Stop(Reason.LOST, missed)
        if flaw and self.assume_well_posed:
            stop, flaw = Stop(Reason.LOST, flaw), ""
        status, message = verdict(self.tol, estimate, stop, flaw=flaw)
        return status, estimate, message

    def _unmet(self, solution: Solution) -> tuple[str, str] | None:
        """Say which condition that did not help to find a solution this misses, and whether that is a flaw; or None."""
        finer = (solution if solution.richer is None else replace(solution, network=solution.richer[0])).evaluate
        for statement in self.evolution.surplus:
            clash = clash_beyond(statement, solution)
            flaw, missed = "" if clash is None else clash.in_words(solution, self.tol), relative_miss(finer, statement)
            if flaw or missed > max(PLAIN, 10.0 * self.tol):
                return f"The solution meets all conditions except {statement.name}, missed by {missed:.1g}.", flaw
        return None


def _sharper(design: Design, run: Run) -> Design:
    """Return a design for a solution that turned out to be steeper than it was made for, or the same."""
    if design.dimension != 1 or run.ended:
        return design
    monitor = monitored(run)
    if design.monitor is None:
        is_sharper = monitor.peak > (SETTINGS.steep_waves if all(design.periodic) else SETTINGS.steep)
    else:
        is_sharper = design.monitor.peak < STEEPEST and design.excess(monitor) > 1.0 + NEGLIGIBLE
    return replace(design, monitor=monitor) if is_sharper else design
