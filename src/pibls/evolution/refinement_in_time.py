"""An evolution followed on finer and finer features, until two solutions agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pibls.budget import Budget
from pibls.errors import SolveError
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.design import Design
from pibls.evolution.first_runs import kinked, scanned, sharper
from pibls.evolution.form import Evolution
from pibls.evolution.galerkin import Galerkin
from pibls.evolution.radau import IntegrationError
from pibls.evolution.run import Run, distance, follow, relative_miss, relative_residual, solution_of, system_of
from pibls.limits import STOPS, in_words
from pibls.refinement import Cost, Course, Reason, Stop, extrapolated, refine, verdict
from pibls.refinement.patience import RUNS
from pibls.refinement.stopping import more_budget
from pibls.runtime import RATE
from pibls.solution import Solution, Stage
from pibls.solution.residuals import ResidualTable
from pibls.status import Status
from pibls.wellposed.stability import grows_without_bound, leaves_its_bounds

__all__ = ["RefinementInTime", "Report"]

Report = Callable[[str, float, int, float | None, float | None], object]
"""Called with the name of a step, the seconds so far, the number of features, a residual and an estimated error."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A run, its residual, a finer run if there is one, and the estimated error of the first."""

    run: Run
    residual: float
    finer: Run | None
    estimate: float


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
    level: int = 0
    rough: Run | None = None
    _system: tuple[Any, Galerkin] | None = None

    def __post_init__(self) -> None:
        self.allowed = self.budget.left * RATE
        self.course: Course[Pair] = Course(self.budget, RUNS, self.report)

    @property
    def chosen(self) -> Pair:
        """The run with the least estimate, or the last one where nothing is known of any."""
        best = self.course.best if self.course.every else None
        if best is not None and np.isfinite(best.estimate):
            return best
        return Pair(self.runs[-1], self.residuals[-1], None, np.inf)

    def run(self) -> Solution:
        """Refine until two solutions agree; return the coarser of them with its distance to the finer one."""
        try:
            stop = self._refined()
        except STOPS as stopped:
            if not self.runs:
                raise
            stop = Stop(Reason.INTERRUPTED, in_words(stopped))
        except IntegrationError as error:
            if not self.runs and self.rough is not None:
                self._add(self.rough)
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
        if self.evolution.lacks:
            # Any of the many solutions will do.
            self.allowed = min(self.allowed, SETTINGS.glance * RATE)
            self._add(self.follow(Design.of(self.evolution), 1.0, max(SETTINGS.rough, self.tol), "solve"))
            return Stop(Reason.TOLERANCE)
        design, fineness = scanned(self)
        design = kinked(self, design, fineness, self.tol)
        run = self.follow(design, fineness, max(SETTINGS.rounding, SETTINGS.time_share * self.tol), "solve")
        self._add(run)
        stop = self._lost(run) or self._cost().limit(self.budget, self.course.stages)
        return refine(self, run, self.course) if stop is None else self._looked_back(run, stop)

    @property
    def has_scanned_enough(self) -> bool:
        """Whether too much is spent for another rough run."""
        return self.operations > SETTINGS.most * self.allowed or bool(self.budget.late)

    def compare(self, here: Run) -> Pair:
        """Follow the solution on finer features, or on others where it turned out to be steeper."""
        design = sharper(here.design, here)
        if design is here.design:
            fineness, self.level = self._stepped(here, self._growth()), self.level + 1
        else:
            # Another design begins anew: as steep nodes resolve what waves did not, fewer are enough.
            fineness, self.level = 1.0, min(self.level + 1, 1)
            design = kinked(self, design, fineness, self.tol)
        share = SETTINGS.time_share * SETTINGS.tighter**-self.level
        finer = self.follow(design, fineness, max(SETTINGS.rounding, share * self.tol), "solve")
        self.course.tell("estimate", finer.width)
        self._add(finer)
        apart = np.inf if here.ended or finer.ended else distance(self.evolution.problem, here, finer)
        # The finer run has an error, too; errors fall as distances did before, or at least like residuals.
        known = min(apart / self.apart, SETTINGS.falls) if np.isfinite(self.apart) else SETTINGS.unknown
        before, now = self.residuals[-2:]
        self.apart = max(apart, 1e-300)
        return Pair(here, before, finer, extrapolated(apart, now / max(before, 1e-300), known))

    def stage(self, found: Pair) -> Stage:
        """Return the record of a run and its estimate."""
        run, estimate = found.run, None if found.finer is None else found.estimate
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
        return self._lost(found.finer)

    def _lost(self, run: Run) -> Stop | None:
        if run.ended is not None and not run.ended.blown_up:
            return self._out_of_budget(run.ended)
        lost = self._blown_up()
        return Stop(Reason.LOST, lost) if lost else None

    def _out_of_budget(self, error: IntegrationError) -> Stop:
        return Stop(Reason.BUDGET, str(error), more_budget(self.budget.nominal, self.course.stages))

    def cost(self, found: Pair) -> Cost:
        """Return the cost of the next run."""
        del found
        return self._cost()

    def _cost(self) -> Cost:
        run, growth = self.runs[-1], self._growth()
        work = growth ** (SETTINGS.work * max(run.design.dimension, 1)) * run.operations
        finer = growth**run.design.dimension
        memory = 8.0 * SETTINGS.matrices * len(run.rule.weights) * run.network.features * finer**2
        return Cost("finer features", work, memory, SETTINGS.most)

    def finer(self, found: Pair) -> Run:
        """Return the finer run."""
        assert found.finer is not None
        return found.finer

    def _looked_back(self, run: Run, stop: Stop) -> Stop:
        """Estimate the error of a single run by a coarser one, where a finer one cannot be afforded."""
        residual, estimate = self.residuals[-1], np.inf
        if run.ended is None:
            below = self._stepped(run, 1.0 / self._growth())
            coarser = self.follow(run.design, below, max(SETTINGS.rounding, self.tol), "estimate")
            if coarser.ended is None:
                apart, before = distance(self.evolution.problem, coarser, run), self.residual(coarser)
                # Errors fall like residuals, as long as these fall at all.
                estimate = apart * min(1.0, residual / before) if before > 0 else apart
                stop = Stop(Reason.TOLERANCE) if apart <= self.tol else stop
        found = Pair(run, residual, None, estimate)
        self.course.every.append(found)
        self.course.note(replace(self.stage(found), estimate=estimate if np.isfinite(estimate) else None))
        return stop

    def follow(self, design: Design, fineness: float, tol: float, doing: str) -> Run:
        """Return the run of a design and a fineness."""
        self.course.tell(doing, design.nodes(fineness) if design.dimension else 0)
        allowed = (1.0 + SETTINGS.most) * self.allowed - self.operations
        run = follow(self.system(design, fineness), design, fineness, tol, allowed)
        self.operations += run.operations
        self.budget.spend(run.operations)
        return run

    def system(self, design: Design, fineness: float) -> Galerkin:
        """Return the evolution on features of a design and a fineness; the last one is kept."""
        key = (self.evolution, design, fineness)
        if self._system is None or self._system[0] != key:
            rng = np.random.default_rng((self.seed, int(1000 * fineness)))
            self._system = key, system_of(self.evolution, design, fineness, rng)
        return self._system[1]

    def _add(self, run: Run) -> None:
        self.runs.append(run)
        self.residuals.append(self.residual(run))

    def _growth(self) -> float:
        """Return how much finer the next features are: a little, if they need only confirm the last ones."""
        growth = self.runs[-1].design.of_dimension(SETTINGS.finer)
        if not self.course.every:
            return growth
        before, now = self.residuals[-2:]
        return growth**0.5 if self.course.every[-1].estimate * now < self.tol * before else growth

    def _stepped(self, run: Run, factor: float) -> float:
        """Return the next fineness with another number of features: the same ones would agree, and prove nothing."""
        design, found = run.design, run.fineness * factor
        while design.dimension and design.nodes(found) == design.nodes(run.fineness) and found > SETTINGS.most:
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
        alike = distance(self.evolution.problem, one, two, 1.0 - SETTINGS.negligible) < SETTINGS.negligible
        if alike and max(spans) - min(spans) <= SETTINGS.negligible * max(spans):
            return f"The solution ceases to exist: {self.runs[-1].ended}, whatever the features."
        return ""

    def residual(self, run: Run) -> float:
        """Return the relative residual of a run."""
        return relative_residual(solution_of(self.evolution, run, self.seed), run.reached)

    def _finished(self, stop: Stop) -> Solution:
        """Return the best run with its verdict and the record of the solve."""
        chosen = self.chosen
        if not self.course.stages:
            self.course.stages.append(self.stage(chosen))
        solution = solution_of(self.evolution, chosen.run, self.seed)
        if chosen.finer is not None:
            finer = replace(chosen.finer.network, frame=self.evolution.frame), solution.weights
            solution = replace(solution, richer=finer)
        status, estimate, message = self._verdict(solution, chosen.estimate, stop)
        diagnostics = replace(
            solution.diagnostics,
            residuals=ResidualTable(solution),
            message=message,
            stages=tuple(self.course.stages),
            seconds={"total": self.budget.elapsed},
        )
        if status == Status.ILL_POSED and self.assume_well_posed:
            status = Status.STALLED
        return replace(solution, status=status, error_estimate=estimate, diagnostics=diagnostics)

    def _verdict(self, solution: Solution, estimate: float, stop: Stop) -> tuple[Status, float, str]:
        """Return the status, the estimated error and the message of a solve."""
        if self.evolution.lacks:
            return Status.ILL_POSED, np.inf, self.evolution.lacks
        if not np.isfinite(estimate) and (lost := self._blown_up()):
            remedy = "The solution that is returned holds until then. End earlier, or check signs and initial values."
            return Status.ILL_POSED, estimate, f"{lost} {remedy}"
        status, message = verdict(self.tol, estimate, stop)
        return (status == Status.CONVERGED and self._unmet(solution)) or (status, estimate, message)

    def _unmet(self, solution: Solution) -> tuple[Status, float, str] | None:
        """Return the verdict on a solution that misses a condition which did not help to find it, or None."""
        finer = solution if solution.richer is None else replace(solution, network=solution.richer[0])
        bound = max(SETTINGS.rough, 10.0 * self.tol)
        for statement in self.evolution.surplus:
            missed, again = (relative_miss(own, statement) for own in (solution, finer))
            if again > max(SETTINGS.negligible, bound, SETTINGS.falls * missed):
                words = (
                    f"The conditions contradict each other: a solution that meets all others misses {statement.name} "
                    f"by {again:.1g} of its size. Remove one, or check values and signs."
                )
                return Status.ILL_POSED, 1.0, words
            if again > bound:
                words = f"The solution meets all conditions but {statement.name}, which it misses by {again:.1g}."
                return Status.STALLED, 1.0, words
        return None
