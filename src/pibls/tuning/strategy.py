"""The strategy of a solve: by cells, by lines or by one wide network, and another way where one stalls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pibls.budget import Budget
from pibls.cells import suits_cells
from pibls.cells.along_characteristics import solve_along_characteristics
from pibls.checks import shorten
from pibls.errors import InputError, PiblsError
from pibls.evolution import Evolution, Unsuitable, evolve, find_evolution, suits_lines, suits_stages, suits_waves
from pibls.features.reference import SINES, Cells
from pibls.geometry.across import check_interfaces
from pibls.limits import in_words
from pibls.problem import Problem
from pibls.problem.shocks import fronts_of
from pibls.problem.transport import transport_of
from pibls.refinement import SMALLEST
from pibls.refinement.standards import MOST, NEGLIGIBLE, SLIGHT
from pibls.refinement.stopping import GLANCE
from pibls.runtime import RATE, Spare
from pibls.solution import Solution
from pibls.status import Status
from pibls.system import check_squares
from pibls.tuning.diagnosis import flawed, solve_by_cells
from pibls.tuning.first_word import first_word
from pibls.tuning.progress import Progress
from pibls.tuning.units import solved_in, unit_of
from pibls.tuning.wide import solve_wide

_WORDS = {
    "lines": ("Following it in time", "followed in time"),
    "stages": ("Following it in time on cells", "followed in time on cells"),
    "cells": ("Solving it in space and time at once", "solved in space and time at once"),
}


@dataclass(frozen=True, eq=False)
class Strategy:
    """One solve: a problem with all wishes, and one budget for all that is tried."""

    problem: Problem
    tol: float
    budget: Budget
    seed: int
    report: Callable[[Progress], None]
    start: Any = None
    continuation: Sequence[Problem] = ()
    device: Any = None
    assume_well_posed: bool = False
    nodes: Cells | None = None
    cluster: Any = None

    @property
    def _is_free(self) -> bool:
        """Whether neither a device nor nodes are wished for. A spare device is no wish."""
        return (self.device is None or isinstance(self.device, Spare)) and self.nodes is None

    def run(self, time: str | None) -> Solution:
        """Solve by the way that suits the problem, or by the one asked for."""
        check_squares(self.problem)
        check_interfaces(self.problem)
        free = time is None and self._is_free and self.start is None
        evolves = self.problem.domain.time is not None
        # Only equations of first order carry values along characteristics.
        carries = free and all(form.order == 1 for form in self.problem.laws.forms)
        if carries and (carried := self.problem.once(fronts_of) or self.problem.once(transport_of)) is not None:
            return solve_along_characteristics(carried, self.tol, self.budget, self.seed)
        if not self.assume_well_posed and (told := first_word(self.problem)):
            return self._told(told, time)
        if (unit := unit_of(self.problem)) != 1.0:
            return solved_in(unit, self.problem, lambda problem: replace(self, problem=problem).run(time))
        if not evolves or time == "space-time":
            return self._at_once()
        if time is None:
            return self._evolved()
        found = self._by_lines()
        if isinstance(found, Unsuitable):
            raise InputError(f"This problem cannot be solved with time='lines': {found.reason}.")
        return found

    def _told(self, words: str, time: str | None) -> Solution:
        """Return the solution of a first glance, with the words on why the problem determines none."""
        # Lines have to come to an end of time; cells have a first tree in any case.
        lines = time == "lines" or (time is None and suits_lines(self.problem))
        budget = self.budget.part(most=GLANCE if lines else 0.0)
        glance = replace(self, tol=SLIGHT, budget=budget, assume_well_posed=True)
        evolved = glance._by_lines() if lines else None
        found = evolved if isinstance(evolved, Solution) else glance._at_once()
        return flawed(found, words)

    def _evolved(self) -> Solution:
        """Solve an evolution by lines or in space and time at once, and by the other way where that stalls."""
        problem, words = self.problem, ""
        late = bool(self.budget.late) or self.budget.left == 0.0
        free = self._is_free and not late and suits_cells(problem)
        both = free and isinstance(find_evolution(problem), Evolution)
        if self.start is None and not self.continuation and suits_lines(problem):
            stages = suits_stages(problem)
            if both and stages:
                # Broad features are cheap where a few resolve the solution; cells in space resolve it in any case.
                before = self.budget.operations
                found = find_evolution(problem)
                cheap = isinstance(found, Evolution) and suits_waves(found)
                quick = self._by_lines(MOST if cheap else NEGLIGIBLE, stages=False)
                if isinstance(quick, Solution) and _is_limited(quick):
                    spent, room = self.budget.operations - before, RATE * self.budget.left
                    # Cells are factorised again and again where an equation is not linear.
                    goes_on = not problem.is_linear and _to_come(quick, self.tol) * spent < room
                    longer = self._by_lines(stages=False) if goes_on else quick
                    quick = longer if isinstance(longer, Solution) else quick
                if isinstance(quick, Solution):
                    return self._again(quick, self._by_lines, ("lines", "stages")) if _is_limited(quick) else quick
            # Cells of a plane and time are dearer than lines, and in a nonlinear iteration too dear.
            both = both and (problem.is_linear or len(problem.domain.space) < 2) and not stages
            evolved = self._by_lines(MOST if both else 1.0)
            if isinstance(evolved, Solution):
                if both and _is_limited(evolved) and self.budget.left > 0.0 and not self.budget.late:
                    # Cells are graded to where what is given at the start jumps, and take no steps that could fail.
                    return self._again(evolved, self._at_once, ("lines", "cells"))
                return evolved
            words = f"It cannot be followed in time instead: {evolved.reason}."
        lines = both and not words and problem.is_linear
        # Growth by many powers of ten is beyond cells, not beyond lines.
        solution = self._at_once((MOST if problem.domain.space else NEGLIGIBLE) if lines else 1.0)
        if not _is_limited(solution):
            return solution
        if words:
            return _with_words(solution, words)
        return self._again(solution, self._by_lines, ("cells", "lines")) if lines else solution

    def _at_once(self, share: float = 1.0) -> Solution:
        """Solve with time, if there is one, as one more coordinate, within a share of the budget."""
        budget = self.budget if share == 1.0 else self.budget.part(share)
        common = (self.problem, self.tol, budget, self.seed, self.report)
        wishes = {"start": self.start, "continuation": self.continuation, "assume_well_posed": self.assume_well_posed}
        if not suits_cells(self.problem):
            return self._alone(solve_wide(*common, device=self.device, **wishes))
        nodes = self.nodes or SINES
        if self.device is not None:
            nodes = replace(nodes, device=self.device if isinstance(self.device, Spare) else str(self.device))
        found = solve_by_cells(*common, nodes=nodes, cluster=self.cluster, **wishes)
        return found if self.problem.is_linear else self._alone(found)

    def _alone(self, solution: Solution) -> Solution:
        """Return a solution that no cluster was used for, and say so where one was given."""
        words = "The cluster was not used: it solves linear problems on cells, with time as one more coordinate."
        return solution if self.cluster is None else _with_words(solution, words)

    def _by_lines(self, share: float = 1.0, *, stages: bool = True) -> Solution | Unsuitable:
        """Follow an evolution in time, within a share of the budget; on cells in space where that suits it."""
        found = evolve(
            self.problem,
            tol=self.tol,
            seed=self.seed,
            budget=self.budget if share == 1.0 else self.budget.part(share),
            report=lambda *facts: self.report(Progress(*facts)),
            assume_well_posed=self.assume_well_posed,
            stages=stages,
        )
        if isinstance(found, Unsuitable):
            return found
        if self.device is None or isinstance(self.device, Spare):
            return self._alone(found)
        words = f"Lines run on NumPy: the device {shorten(self.device)} was not used. time='space-time' would use it."
        return _with_words(found, words)

    def _again(
        self, first: Solution, other_way: Callable[[], Solution | Unsuitable], names: tuple[str, str]
    ) -> Solution:
        """Try another way with the rest of the budget; whatever comes of that, the first solution is not lost."""
        until = self.budget.elapsed
        (_, before), (doing, done) = (_WORDS[name] for name in names)
        chosen = first
        try:
            other = other_way()
            # What is linear neither blows up nor ceases to exist.
            if isinstance(other, Unsuitable) or other.status == Status.ILL_POSED:
                reason = other.reason if isinstance(other, Unsuitable) else other.diagnostics.message
                words = f"It cannot be {done} instead: {reason}"
            elif _better(other, first):
                chosen = other
                words = f"It was {done}, as {before.removeprefix('solved ')} it stalled ({_known(first)})."
            else:
                words = f"{done.capitalize()} it is no better ({_known(other)})."
        except PiblsError as error:
            words = f"{doing} failed as well: {error}"
        except KeyboardInterrupt as stop:
            words = f"{doing} did not finish. {in_words(stop)}"
        seconds = dict(zip(names, (until, self.budget.elapsed - until), strict=True))
        return _with_words(chosen, words, seconds)


def _is_limited(solution: Solution) -> bool:
    """Tell whether a solve stalled, and not for rounding."""
    return solution.status == Status.STALLED and (solution.error_estimate or 0.0) > SMALLEST


def _to_come(solution: Solution, tol: float) -> float:
    """Return the work of lines that meet a tolerance, relative to that of a run, as its estimates fell with the nodes.

    The work of a step grows with the third power of the nodes.
    """
    fell = [(stage.nodes, stage.estimate) for stage in solution.diagnostics.stages if stage.nodes and stage.estimate]
    if len(fell) < 2 or not fell[-2][0] < fell[-1][0] or not fell[-1][1] < fell[-2][1]:
        return np.inf
    (before, above), (nodes, below) = fell[-2:]
    order = np.log(above / below) / np.log(nodes / before)
    return float((below / tol) ** (3.0 / order))


def _better(one: Solution, two: Solution) -> bool:
    """Tell whether a solution is estimated to be more accurate than another."""
    first, second = one.error_estimate, two.error_estimate
    return one.status == Status.CONVERGED or (first is not None and (second is None or first < second))


def _known(solution: Solution) -> str:
    estimate = np.inf if solution.error_estimate is None else solution.error_estimate
    return f"estimated error {estimate:.1e}" if np.isfinite(estimate) else "error unknown"


def _with_words(solution: Solution, words: str, seconds: Mapping[str, float] | None = None) -> Solution:
    """Return a solution with more words in its message, and with the time of each way that was tried."""
    record = solution.diagnostics
    message = f"{record.message} {words}"
    return replace(solution, diagnostics=replace(record, message=message, seconds=seconds or record.seconds))
