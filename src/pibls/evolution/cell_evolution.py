"""Evolutions on trees of cells as a discretisation: richer or more cells and shorter steps, until solutions agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import sympy as sp

from pibls.budget import Budget
from pibls.cells import suits_cells
from pibls.cells.coarsening import divided
from pibls.cells.data_refinement import DataRefinement
from pibls.cells.layout import Layout
from pibls.cells.linear import Start, first_tree, start_of
from pibls.cells.rows import Rows
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.cell_run import CellRun, along, apart, follow, shortened, wanted
from pibls.evolution.cell_stages import CellStages
from pibls.evolution.form import Evolution, compiled, find_evolution
from pibls.evolution.multipliers import Unsuitable
from pibls.evolution.rational import longest, pole
from pibls.evolution.resolvent import Resolvent, find_resolvent
from pibls.evolution.run_modes import Finer, RunModes
from pibls.limits import keep
from pibls.problem import Problem
from pibls.problem.evaluate import differentiated
from pibls.refinement import SMALLEST, Cost, Course, Reason, Stop, extrapolated, refine, verdict
from pibls.refinement.patience import TREES
from pibls.refinement.standards import FALLS, MOST, POINTS, SLIGHT
from pibls.runtime import blas_threads
from pibls.solution import Diagnostics, Solution, Stage
from pibls.solution.residuals import ResidualTable


class ComparedRuns(NamedTuple):
    """A solution, a better one, and the estimated errors of both."""

    run: CellRun
    better: CellRun
    estimate: float
    left: float = np.inf


@dataclass(eq=False)
class CellEvolution:
    """One solve of an evolution on cells."""

    resolvent: Resolvent
    tol: float
    seed: int
    budget: Budget
    course: Course[ComparedRuns]
    _gaps: list[float] = field(default_factory=list)
    _ratios: list[float] = field(default_factory=list)  # of errors to what coefficients and steps told
    _known: dict[CellRun, RunModes] = field(default_factory=dict)  # the main modes of solutions
    _needed: set[Cell] = field(default_factory=set)  # boxes that are divided whatever the solution is

    def first(self, h: float) -> CellRun:
        """Return a first solution, on cells that resolve coefficients, data and initial values."""
        problem, _ = self.resolvent.at(1.0 / (pole() * h))
        start = start_of(problem, self.tol, self.budget.part(MOST), self.seed, is_stable=True)
        self._needed = self._without_start(start)
        tol = self.tol / SETTINGS.tighter
        stages = CellStages(self.resolvent, start.data.rows.layout, start.root, self.budget, tol)
        return follow([(stages, self.resolvent.limits[1])], h)

    def _without_start(self, start: Start) -> set[Cell]:
        """Return the boxes that are divided whatever the initial values are, and however long the steps."""
        z = 1.0 / (pole() * float(np.ptp(self.resolvent.limits)))
        still = replace(self.resolvent, initial=dict.fromkeys(self.resolvent.initial, sp.S.Zero))
        rows = Rows(start.data.rows.layout.restated(still.at(z)[0]))
        return divided(first_tree(DataRefinement(rows), self.tol, budget=self.budget.left))

    def compare(self, here: CellRun) -> ComparedRuns:
        """Compare with a solution by richer cells where it is smooth, else on a finer tree; steps are shorter, too."""
        if here.ended:
            return ComparedRuns(here, here, np.inf)
        plan, richer, share = self._finer(here)
        self.course.tell("solve", len(here.largest.parts))
        before = here.largest.tol
        if here.drift > self.tol:
            # Steps on rough cells were longer than the tolerance allows; errors of steps add up.
            tol = MOST * self.tol * float(here.errors.max()) / here.drift
            h = wanted(float(here.breaks[1] - here.breaks[0]), float(here.errors[0]) / tol)
            better = follow([(own, float(breaks[-1])) for own, breaks in self._trees(plan, tol)], h)
        else:
            tol = max(before / SETTINGS.tighter, min(before, SMALLEST / SETTINGS.stage_share))
            better = along([(own, shortened(breaks, 1.0 / FALLS)) for own, breaks in self._trees(plan, tol)])
        if better.ended:
            return ComparedRuns(here, better, np.inf)
        # What cells miss that are not better, the distance of the two does not tell.
        gaps = apart(here, better) / max(share, SLIGHT)
        gap = float(gaps.max())
        fall = gap / self._gaps[-1] if self._gaps and self._gaps[-1] > 0 else MOST
        self._gaps.append(gap)
        self._ratios.append(self._ratio(here, gaps))
        late = _left_in_time(here, better, gap)
        estimate = (gap if richer else extrapolated(gap, fall, FALLS)) + late
        if estimate <= self.tol:
            return ComparedRuns(here, better, estimate)
        left = min(self._left() + late, self._foreseen(better, self._multiple, gaps))
        if left <= self.tol:
            return ComparedRuns(better, here, left)
        return self._vouched(better) or ComparedRuns(here, better, estimate, left)

    def _left(self) -> float:
        """Return the error of the better one of two solutions, if solutions came steadily closer over three trees."""
        falls = [two / one for one, two in pairwise(self._gaps[-3:])]
        slowest = max(falls, default=1.0)
        steady = len(falls) == 2 and slowest <= TREES.pays
        return self._gaps[-1] * slowest / (1.0 - slowest) / TREES.pays if steady else np.inf

    def _trees(self, plan: list[tuple[Layout, Cell, FloatArray]], tol: float) -> list[tuple[CellStages, FloatArray]]:
        """Return trees one after the other, with the steps on each."""
        found: list[tuple[CellStages, FloatArray]] = []
        for layout, root, breaks in plan:
            if found and found[-1][0].root is root:
                found[-1] = found[-1][0], np.concatenate([found[-1][1], breaks[1:]])
            else:
                found.append((CellStages(self.resolvent, layout, root, self.budget, tol), breaks))
        return found

    @property
    def _multiple(self) -> float:
        """The error over the one that coefficients and steps tell: one for a single solution, unless it was more."""
        last = max(self._ratios[-1], 1.0)
        return min(last, max(self._ratios[-2:]) / MOST) if len(self._ratios) > 1 else last

    def _ratio(self, run: CellRun, gaps: FloatArray) -> float:
        """Return the error of a solution, relative to the one that its coefficients and steps tell."""
        modes = self._modes(run)
        expected = modes.expected + run.drift
        return float(gaps[modes.told].max()) / expected if expected > 0.0 else 1.0

    def _foreseen(self, better: CellRun, ratio: float, gaps: FloatArray) -> float:
        """Return the error of the better one of two solutions, as its coefficients and steps tell.

        If those of the other solution told too little, these do so, too; if those of two solutions told too much, these
        are taken to tell half as much too much. One comparison vouches for two digits. Fields that are almost zero are
        errors.
        """
        modes = self._modes(better)
        return max(ratio * (modes.expected + better.drift), modes.rest, SLIGHT * float(gaps.max()))

    def _vouched(self, better: CellRun) -> ComparedRuns | None:
        """Compare a solution that promises to be accurate enough with one by cells of two degrees less.

        The solution before may be too far from it to vouch for it; one by richer cells would cost many times as much.
        """
        if self._modes(better).expected + better.drift > self.tol:
            return None
        poorer = along(better.plan(FALLS, -2))
        if poorer.ended:
            return None
        gaps = apart(poorer, better)
        left = self._foreseen(better, max(self._ratio(poorer, gaps), 1.0), gaps)
        return ComparedRuns(better, poorer, left) if left <= self.tol else None

    def _finer(self, here: CellRun) -> Finer:
        """Return richer cells or finer trees, or both: the cheapest that are expected to meet the tolerance.

        Every group of equal steps has a tree of its own, whose cells are united where the solution needs no more.
        """
        goal = MOST * self.tol / max([1.0, *self._ratios[-1:]])
        last = self.course.comparisons[-1].estimate if self.course.comparisons else 1.0
        fall = min(self.tol / max(last, self.tol), 1.0)
        return self._modes(here).finer(goal, here.share_of_factors, fall, self._needed)

    def _modes(self, run: CellRun) -> RunModes:
        """Return the main modes of a solution, which are kept."""
        if run not in self._known:
            self._known[run] = RunModes.of(run)
        return self._known[run]

    def stage(self, found: ComparedRuns) -> Stage:
        """Return the record of a comparison."""
        run = found.run
        size = {"nodes": run.unknowns, "cells": len(run.largest.parts), "steps": run.steps}
        estimate = found.estimate if np.isfinite(found.estimate) else None
        return Stage(self.budget.elapsed, **size, estimate=estimate)

    def is_met(self, found: ComparedRuns) -> bool:
        """Tell whether the estimate is within the tolerance."""
        return found.estimate <= self.tol

    def limit(self, found: ComparedRuns) -> Stop | None:
        """Return that the work was spent, or that rounding is all that is left."""
        if ended := found.run.ended or found.better.ended:
            spent = "work" in ended
            return Stop(Reason.BUDGET, ended, "Give a larger budget.") if spent else Stop(Reason.EXHAUSTED, ended)
        return None

    def cost(self, found: ComparedRuns) -> Cost:
        """Return the cost of the next comparison, which grows as it did, but twofold at most as a rule."""
        growth = min(found.better.operations / found.run.operations, 2.0)
        return Cost("a finer tree of cells", growth * found.better.operations, 2.0 * found.better.memory)

    def finer(self, found: ComparedRuns) -> CellRun:
        """Go on from the better solution."""
        return found.better


def _left_in_time(here: CellRun, better: CellRun, gap: float) -> float:
    """Return the error in time of the better one of two solutions, from the errors of their steps.

    These are bounds, which two solutions are closer to each other than if the errors of steps are soon forgotten.
    """
    share = better.drift / here.drift if here.drift > 0 else 1.0
    return min(better.drift, gap * share / (1.0 - share) if share < 1.0 else np.inf)


def suits_stages(problem: Problem) -> bool:
    """Tell whether an evolution is followed on cells.

    On a line broad features cost less. Conditions beyond those that are needed are better left to a check than to a
    compromise.
    """
    return problem.once(_suits_stages)


def _suits_stages(problem: Problem) -> bool:
    resolvent = find_resolvent(problem)
    if len(problem.domain.space) < 2 or isinstance(resolvent, Unsuitable):
        return False
    evolution = find_evolution(problem)
    if isinstance(evolution, Evolution) and (evolution.lacks or evolution.surplus):
        return False
    return suits_cells(resolvent.at(1.0)[0])


def evolve_on_cells(problem: Problem, tol: float, seed: int, budget: Budget, report: Callable[..., object]) -> Solution:
    """Solve an evolution in more than one space dimension on cells."""
    resolvent = find_resolvent(problem)
    assert isinstance(resolvent, Resolvent)
    course: Course[ComparedRuns] = Course(budget, TREES, report)
    with blas_threads(most=1):
        search = CellEvolution(resolvent, tol, seed, budget, course)
        run = search.first(_first_step(resolvent, tol))
        stop = refine(search, run, course)
        found = course.best if np.isfinite(course.best.estimate) else course.comparisons[-1]
        if found.left < found.estimate:
            found = ComparedRuns(found.better, found.run, found.left)
        return _told(search, found, stop)


def _first_step(resolvent: Resolvent, tol: float) -> float:
    """Return the length of a first step, from how fast the initial values change."""
    (first, last), evolution = resolvent.limits, find_evolution(resolvent.problem)
    pace = transits(evolution) if isinstance(evolution, Evolution) else 0.0
    share = longest(tol / SETTINGS.tighter) / pace if 0.0 < pace < np.inf else MOST
    return (last - first) * min(share, MOST / 2)


def transits(evolution: Evolution) -> float:
    """Return how much happens: the rate at which the initial values change, relative to them, times the duration.

    A wave of which a period takes one unit of time has 2π per unit; not finite for initial values that are zero. Values
    that jump count for what they are beside the jump, and those of Python functions as if they stayed.

    >>> from pibls.problems import advection_long
    >>> evolution = find_evolution(advection_long())
    >>> round(transits(evolution)) if evolution else None
    1000
    """
    first, last = evolution.limits
    X, weights = (np.empty((1, 0)), np.ones(1)) if evolution.space is None else evolution.space.quadrature(POINTS)
    X, coordinates, found = np.column_stack([X, np.full(len(X), first)]), evolution.problem.domain.coordinates, 0.0
    states = {s.symbol: differentiated(evolution.initial[s.state], coordinates, s.multi_index) for s in evolution.slots}
    for name, rate in evolution.rates.items():
        own = (rate.xreplace(states), evolution.initial[name, 0])
        try:
            speed, size = (float(np.sqrt(weights @ np.square(compiled(e, coordinates)(X)))) for e in own)
        except ProblemError:
            return 0.0
        if speed > 0:
            found = max(found, (speed / size) ** (1 / evolution.orders[name]) if size > 0 else np.inf)
    return (last - first) * found


def _told(search: CellEvolution, found: ComparedRuns, stop: Stop) -> Solution:
    """Return a solution with its record and the verdict on it."""
    run, problem = found.run, search.resolvent.problem
    status, message = verdict(search.tol, found.estimate, stop)
    most = run.largest
    settings = {"cells": len(most.parts), "degree": most.layout.reference.degree, "steps": run.steps}
    record = Diagnostics(
        "Stages",
        settings,
        search.seed,
        run.unknowns,
        0,
        "elimination along the tree",
        None,
        None,
        {},
        seconds={"total": search.budget.elapsed},
        message=message,
        stages=tuple(search.course.stages),
    )
    eye = np.eye(len(problem.fields))
    richer = None if found.better.ended else (found.better.network, eye)
    made = Solution(problem, run.network, eye, status, record, found.estimate, richer=richer)
    keep(made.problem, lambda _: made)
    return replace(made, diagnostics=replace(record, residuals=ResidualTable(made)))
