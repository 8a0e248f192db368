"""The strategy of a solve: by cells, by lines or by one wide network, and another way where one stalls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pibls.budget import Budget
from pibls.cells import suits_cells
from pibls.checks import shorten
from pibls.errors import InputError, PiblsError
from pibls.features.reference import SINES, Cells
from pibls.geometry.across import check_interfaces
from pibls.limits import in_words
from pibls.lines import Evolution, Unsuitable, evolve, find_evolution, suits_lines
from pibls.problem import Problem
from pibls.solution import Solution
from pibls.status import Status
from pibls.system import check_squares
from pibls.tuning.by_cells import solve_by_cells, solve_nonlinear_by_cells
from pibls.tuning.progress import Progress
from pibls.tuning.wide import solve_wide

__all__ = ["Ways"]

_SOLID = 4  # three dimensions of space, and time
_FIRST = 0.1  # share of the budget for the first of two ways, where the second one is cheap
_MOST = 0.7  # share for the first of two ways, where the second one needs some
_FLAT = 3  # two dimensions of space, and time
_HALF = 0.5  # share for the first of two ways that are as dear
_WORDS = {
    "lines": ("Following it in time", "followed in time"),
    "cells": ("Solving it in space and time at once", "solved in space and time at once"),
}
_ROUNDING = 1e-10  # what stalls below this is limited by round-off


@dataclass(frozen=True, eq=False)
class Ways:
    """One solve: what is asked for, and one budget for all that is tried."""

    problem: Problem
    tol: float
    budget: Budget
    seed: int
    report: Callable[[Progress], None]
    guesses: Mapping[str, Any]
    device: Any = None
    assume_well_posed: bool = False
    nodes: Cells | None = None

    def run(self, time: str | None) -> Solution:
        """Solve by the way that suits the problem, or by the one asked for."""
        check_squares(self.problem)
        check_interfaces(self.problem)
        guessed = self.guesses["start"] is not None or bool(self.guesses["continuation"])
        reason = ""
        if time == "lines" or (time is None and not guessed and suits_lines(self.problem)):
            # Cells of a plane and time are dearer than lines.
            either = time is None and self._may_use_both and len(self.problem.domain.coordinates) < _FLAT
            share = _HALF if self.problem.is_linear else _MOST
            evolved = self._by_lines(share if either else 1.0)
            if isinstance(evolved, Solution):
                if either and self._is_limited(evolved) and self.budget.left > 0.0 and not self.budget.late:
                    # Cells are graded to where what is given at the start jumps, and take no steps that could fail.
                    return self._again(evolved, self._in_space_time, ("lines", "cells"))
                return self._timed(self._off_device(evolved))
            if time == "lines":
                raise InputError(f"This problem cannot be solved with time='lines': {evolved.reason}.")
            reason = f"It cannot be followed in time instead: {evolved.reason}."
        solution = self._in_space_time(_MOST if time is None and not reason and self._may_change_way else 1.0)
        limited = self._is_limited(solution)
        if limited and reason:
            solution = _with_words(solution, reason)
        elif limited and time is None and self._may_change_way:
            return self._again(solution, self._by_lines, ("cells", "lines"))
        return self._timed(solution)

    @staticmethod
    def _is_limited(solution: Solution) -> bool:
        """Tell whether a solve stalled, and not for rounding."""
        return solution.status == Status.STALLED and (solution.error_estimate or 0.0) > _ROUNDING

    def _in_space_time(self, share: float = 1.0) -> Solution:
        """Solve with time, if there is one, as one more coordinate, within a share of the budget."""
        common = (self.problem, self.tol, self.budget, self.seed, self.report)
        if not self.problem.domain.space and self.problem.is_linear and self._may_change_way:
            # Growth by many powers of ten is beyond cells, not beyond lines.
            return self._by_cells(_FIRST)
        own = {**self.guesses, "assume_well_posed": self.assume_well_posed}
        if self.device is not None or not suits_cells(self.problem):
            return solve_wide(*common, device=self.device, **own)
        if self.problem.is_linear:
            return self._by_cells(share)
        return solve_nonlinear_by_cells(*common, **own, nodes=self.nodes or SINES)

    def _by_cells(self, share: float) -> Solution:
        common = (self.problem, self.tol, self._part(share), self.seed, self.report)
        return solve_by_cells(*common, assume_well_posed=self.assume_well_posed, nodes=self.nodes or SINES)

    def _part(self, share: float) -> Budget:
        """Return a share of what is left of the budget."""
        return self.budget if share == 1.0 else self.budget.part(share)

    def _by_lines(self, share: float = 1.0) -> Solution | Unsuitable:
        return evolve(
            self.problem,
            tol=self.tol,
            seed=self.seed,
            budget=self._part(share),
            report=lambda *facts: self.report(Progress(*facts)),
            assume_well_posed=self.assume_well_posed,
        )

    @property
    def _may_use_both(self) -> bool:
        """Whether both lines and cells may be used."""
        late = bool(self.budget.late) or self.budget.left == 0.0
        free = self.device is None and self.nodes is None and not late and suits_cells(self.problem)
        return free and isinstance(find_evolution(self.problem), Evolution)

    @property
    def _may_change_way(self) -> bool:
        """Whether lines are cheap enough for a second try, and may be used at all."""
        flat = self.problem.is_linear and len(self.problem.domain.coordinates) < _SOLID
        return flat and self._may_use_both

    def _again(
        self, first: Solution, other_way: Callable[[], Solution | Unsuitable], names: tuple[str, str]
    ) -> Solution:
        """Try another way with what is left of the budget; whatever comes of that, the first solution is not lost."""
        until = self.budget.elapsed
        doing, done = _WORDS[names[1]]
        try:
            other = other_way()
        except PiblsError as error:
            return self._timed(_with_words(first, f"{doing} failed as well: {error}"), until, names)
        except KeyboardInterrupt as stop:
            return self._timed(_with_words(first, f"{doing} came to no end. {in_words(stop)}"), until, names)
        # What is linear neither blows up nor ceases to exist.
        if isinstance(other, Unsuitable) or other.status == Status.ILL_POSED:
            reason = other.reason if isinstance(other, Unsuitable) else other.diagnostics.message
            return self._timed(_with_words(first, f"It cannot be {done} instead: {reason}"), until, names)
        if not _better(other, first):
            words = f"{done.capitalize()} it is no better ({_known(other)})."
            return self._timed(_with_words(first, words), until, names)
        words = f"It was {done}, as {_WORDS[names[0]][1].removeprefix('solved ')} it stalled ({_known(first)})."
        return self._timed(_with_words(other, words), until, names)

    def _timed(
        self, solution: Solution, until: float | None = None, names: tuple[str, str] | tuple[()] = ()
    ) -> Solution:
        """Return a solution with the time of all that was tried: by way, where there were two."""
        record, total = solution.diagnostics, self.budget.elapsed
        if until is not None:
            seconds: Mapping[str, float] = dict(zip(names, (until, total - until), strict=True))
        else:
            seconds = {"total": total} if "total" in record.seconds else record.seconds
        return replace(solution, diagnostics=replace(record, seconds=seconds))

    def _off_device(self, solution: Solution) -> Solution:
        if self.device is None:
            return solution
        words = f"Lines run on NumPy: the device {shorten(self.device)} was not used. time='space-time' would use it."
        return _with_words(solution, words)


def _better(one: Solution, two: Solution) -> bool:
    """Tell whether a solution is estimated to be more accurate than another."""
    first, second = one.error_estimate, two.error_estimate
    return one.status == Status.CONVERGED or (first is not None and (second is None or first < second))


def _known(solution: Solution) -> str:
    estimate = solution.error_estimate
    return "error unknown" if estimate is None or not np.isfinite(estimate) else f"estimated error {estimate:.1e}"


def _with_words(solution: Solution, words: str) -> Solution:
    message = f"{solution.diagnostics.message} {words}"
    return replace(solution, diagnostics=replace(solution.diagnostics, message=message))
