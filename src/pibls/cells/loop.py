"""Trees of cells as a discretisation: compare with a finer tree or richer cells, refine where the solution is rough."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pibls.cells.data_refinement import DATA_SHARE, DataRefinement
from pibls.cells.error_marking import ErrorMarking
from pibls.cells.fitters import Fitter, degree_for
from pibls.cells.layout import Layout
from pibls.cells.measure import average_error, distances, tails_of
from pibls.cells.outcome import Compared, field_sizes, solution_of
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.limits import STOPS, in_words
from pibls.refinement import ROUNDING, VISIBLE, Cost, Course, Reason, Stop, extrapolated, refine, verdict
from pibls.refinement.patience import TREES
from pibls.runtime import available_memory
from pibls.solution import Solution, Stage
from pibls.solution.sizes import field_scales
from pibls.status import Status

__all__ = ["UNDETERMINED", "Diagnose", "Loop", "Splitting"]

_HIGHEST = {1: 0, 2: 19, 3: 16}  # degrees up to which cells become richer in the course of a solve
UNDETERMINED = 1e9  # answers beyond this are those of a solution to which something can be added
_PLAIN = 1e-3  # residuals that are large, however small the tolerance is
_STAYS_THERE = 0.9  # the same at a point
_MANY_DIGITS = 1e-6  # estimates below may be limited by rounding
_RICHER = 2.0  # power of the number of functions that the work of a cell goes with
_GROWTH = 1.5  # of cells and work from a tree to the next one at least: less brings little
_STRONG, _STRONGEST = 1e2, 1e6  # answers that magnify what cells cannot tell; more of that is not made up for
_SLOWEST = 0.8  # share of an error that is left on the next tree
_HOPE = 3.0  # what coefficients promise is less than what comes of it
_FRONTS = 2.0  # more cells also share more with each other
_SUMMED = 0.1  # of the tolerance: what cells may miss of the integral of a source


Splitting = Callable[[ErrorMarking, Fit, FloatArray, float], tuple[Cell, float]]
"""Returns a finer tree and its share of what is rough, from a solution, the sizes of fields and a number of cells."""
Diagnose = Callable[[Solution, "Loop"], tuple[str, str]]
"""Says why a problem is ill-posed, or an empty string, and a remark for where it is not."""


@dataclass(eq=False)
class Loop:
    """One solve: from a first tree to finer ones, until two of them agree."""

    fitter: Fitter
    tol: float
    course: Course[Compared]
    seed: int
    data: DataRefinement | None = None
    undetermined: float = UNDETERMINED
    splitting: Splitting | None = None
    confirmed: Callable[[Compared], bool] | None = None  # whether a comparison is good enough, if not by the tolerance
    diagnose: Diagnose | None = None
    told: Compared | None = None  # the comparison that the last solution was made of
    remark: str = ""  # the last words of the message
    doubt: str = ""  # why the last estimate is not to be believed
    answers: list[float] = field(default_factory=list)
    _marker: ErrorMarking | None = None
    _apart: float = 0.0
    _falls: list[float] = field(default_factory=list)
    _peaks: list[float] = field(default_factory=list)
    _enriched: float | None = None  # the estimate before cells became richer
    _smooth: int = 0  # how many solutions in a row were smooth
    _doubtful: int = 0  # how many trees in a row have no solution

    def run(self, fit: Fit) -> Solution:
        """Solve, from the solution on a first tree on; an interrupt returns the best solution so far."""
        stop: Stop | None = None
        try:
            self.answers.append(self.fitter.answer())
            stop = refine(self, fit, self.course)
            return self._concluded(stop)
        except STOPS as stopped:
            words, self.diagnose = in_words(stopped), None
            if not self.course.every:
                return self.unfinished(self.fitter.layout, fit, words)
            return self._concluded(stop or Stop(Reason.INTERRUPTED, words))

    def _concluded(self, stop: Stop) -> Solution:
        """Return the best solution so far, with the verdict on it."""
        last = self.course.every[-1]
        if stop.reason is Reason.TOLERANCE:
            return self.solution(last, last.estimate, *verdict(self.tol, last.estimate, stop))
        doubt = "" if stop.reason is Reason.INTERRUPTED else self.doubt
        if not doubt and self._is_settled(last) and (ahead := self._ahead(last)) is not None:
            return ahead
        found = self._best(last)
        # A coarse tree that tells little of a solution may be compared with a finer one that is in no doubt.
        serious = self.fitter.doubt(found.other) or (doubt and not self.fitter.doubt(found.fit))
        estimate = max(1.0, found.estimate) if serious else found.estimate
        return self.solution(found, estimate, *verdict(self.tol, estimate, stop, doubt))

    def stage(self, found: Compared, answer: float | None = None) -> Stage:
        """Return the record of a tree, with the sensitivity of its solution."""
        fit, seconds = found.fit, self.course.budget.elapsed
        size, own = (fit.unknowns, fit.rows, len(fit.parts)), self.answers[-2] if answer is None else answer
        return Stage(seconds, *size, residual=fit.residual, estimate=found.estimate, answer=own)

    def is_met(self, found: Compared) -> bool:
        """Tell whether the estimate is within the tolerance and nothing casts doubt on it."""
        if self.confirmed is not None:
            return self.confirmed(found)
        unsolved = self.fitter.doubt(found.fit) or self.fitter.doubt(found.other)
        self._doubtful = self._doubtful + 1 if unsolved else 0
        self.doubt = self.fitter.layout.ground.hidden or unsolved or self._unmet(found)
        if found.estimate <= self.tol and not self.doubt:
            self.doubt = self._unseen(found.fit)
        if not found.estimate <= self.tol or self.doubt or not self._is_settled(found):
            return False
        # An error that shows on a plot is worth another tree, if there can be one; where values jump it does not fall.
        falls = len(self._peaks) < 2 or self._peaks[-1] < _STAYS_THERE * self._peaks[-2]
        seen = falls and self._peaks[-1] > max(VISIBLE, 3.0 * self.tol)
        return not seen or self.course.limit(self, found) is not None

    def _is_settled(self, found: Compared) -> bool:
        """Tell whether the sensitivity has stopped growing, or is too small for residuals to matter."""
        before, now = self.answers[-2:]
        grows = now > max(1.0, before / TREES.pays) and now * found.fit.residual > self.tol * found.size
        return now < self.undetermined and not grows

    def _more_cells(self, fit: Fit, sizes: FloatArray, goal: float, times: float = 1.0) -> tuple[Fit, float]:
        """Return the solution on a finer tree, and the share of the roughness in the cells that are split for it."""
        room = self._room(fit, times)
        if self.splitting is not None:
            root, share = self.splitting(self.marker, fit, sizes, room)
            return self.fitter.fit(root, fit), share
        root, share = self.marker.refined(fit, sizes, goal, room)
        if self.data is not None:
            root = self.data.summed(root, _SUMMED * self.tol * float(sizes.max()), room)
        return self.fitter.fit(root, fit), share

    def _goal(self, error: float) -> float:
        """Return the share of an error that the tolerance allows."""
        return min(max(self.tol, sys.float_info.epsilon) / error, 1.0) if error > 0.0 else 1.0

    def _expected(self) -> float:
        """Return the error of the next solution, if the last one paid, by the rate at which errors fell; else zero."""
        before, last = [0.0, *([found.estimate for found in self.course.every] or [1.0])][-2:]
        return last**2 / before if 0.0 < last <= TREES.pays * before else 0.0

    def _room(self, fit: Fit, times: float = 1.0) -> float:
        """Return how many more cells there can be within memory and budget, if solving with them costs so many times.

        The first solution has to be compared with another: there are at least about as many as there are already.
        """
        cells = len(fit.parts)
        work = 1.0 if self.course.stages else float(cells)
        memory = max(1.0, cells * (available_memory() / (_FRONTS * max(self.fitter.held, 1.0)) - 1.0))
        affords = self.course.budget.affords
        while work < memory and affords(times * self.fitter.work(cells + _GROWTH * work, _GROWTH * work)):
            work *= _GROWTH
        return min(work, memory)

    def _affords_richer(self, fit: Fit, times: float = 1.0) -> bool:
        """Tell whether a solution can be had with two degrees more on the same tree, beside others of its cost."""
        cells = len(fit.parts)
        return self.course.budget.affords(times * self._richer_work() * self.fitter.work(cells, cells))

    def _richer_work(self) -> float:
        """Return the work of cells of two degrees more, over that of the present ones."""
        d, degree = self.fitter.layout.reference.dimension, self.fitter.layout.reference.degree
        return float((math.comb(degree + 2 + d, d) / math.comb(degree + d, d)) ** _RICHER)

    def _magnified(self, found: Compared) -> Compared:
        """Return a comparison whose estimate is not less than rounding, residuals and integrals allow."""
        residual = found.other.residual / found.size
        share = 1.0 / _STRONG if found.answer < _STRONGEST else 1.0
        least = found.answer * (share * residual + sys.float_info.epsilon) if found.answer > _STRONG else 0.0
        unsure = average_error(found.own, found.fit)
        if self.data is not None:
            unsure = max(unsure, self.data.left_out(found.fit.root))
        least = max(least, unsure / found.size)
        return replace(found, estimate=max(found.estimate, least))

    def finer(self, found: Compared) -> Fit:
        """Return the solution to go on from: with richer cells, the better one, or one with more cells."""
        if self._wants_digits():
            return self.fitter.fit(found.fit.root, found.fit)
        sizes = field_sizes(found.own, found.fit)
        if self._accepts(found, sizes):
            return found.other
        return self._more_cells(found.fit, sizes, self._goal(found.estimate), 1.0 + self._richer_work())[0]

    def _wants_digits(self) -> bool:
        """Go on with richer cells where the solution is sensitive, for that magnifies errors of cells."""
        reference = self.fitter.layout.reference
        magnified = min(max(min(self.answers[-2:]) / _STRONG, 1.0), _STRONGEST)
        degrees = degree_for(reference.dimension, self.tol / magnified) - reference.degree
        richer = self.fitter.enriched(degrees) if degrees > 0 else None
        if richer is None:
            return False
        self.fitter = richer
        return True

    def _best(self, last: Compared) -> Compared:
        """Return the comparison with the least estimate, if the last one does not speak against it."""
        best = self.course.best
        if best is last:
            return last
        if self._is_rounded and best.estimate == self.course.stages[-3].estimate:
            return best
        apart = self._apart_from(best.own, best.fit, last.own, last.fit)
        # How strongly the problem answers may show on finer trees only, and magnifies what coarse ones lack, too.
        best = replace(best, estimate=max(best.estimate, apart), answer=max(best.answer, last.answer))
        best = self._magnified(best)
        return best if best.estimate < last.estimate else last

    def _ahead(self, last: Compared) -> Solution | None:
        """Return the better one of the last two solutions if the rate so far makes its error small enough.

        The rate is known where two trees in a row came closer to the next one at a steady pace.
        """
        slowest = max(self._falls[-2:], default=1.0)
        if len(self._falls) < 2 or slowest > TREES.pays:
            return None
        left = self._apart * slowest / (1.0 - slowest) / TREES.pays
        found = replace(last, fit=last.other, own=last.layout, other=last.fit, layout=last.own, estimate=left)
        found = self._magnified(found)
        if found.estimate > self.tol or self._unseen(found.fit):
            return None
        self.course.note(self.stage(found, found.answer))
        rate = "That is by the rate at which solutions on the last trees came closer to each other."
        return self.solution(found, found.estimate, *verdict(self.tol, found.estimate, None, rate))

    def _accepts(self, found: Compared, sizes: FloatArray) -> bool:
        """Tell whether to go on from the better solution; if it has richer cells, all following ones have them too.

        That is so where it takes less work to meet the tolerance than splitting cells, by how fast coefficients fall.
        """
        if found.layout is found.own:
            return True
        # What coefficients promise need not come: where degrees brought nothing, cells are split.
        paid = self._enriched is None or found.estimate <= TREES.pays * self._enriched
        self._enriched = None
        richer = self.fitter.richer() if paid else None
        old, new = found.own.reference, found.layout.reference
        short = self._goal(found.estimate)
        hoped = _HOPE * short
        gain = tails_of(old).gain(found.fit) ** (new.degree - old.degree)
        steps = 1 if gain <= hoped else math.ceil(math.log(hoped) / math.log(gain)) if gain < 1.0 else math.inf
        if richer is None or old.degree + steps * (new.degree - old.degree) > _HIGHEST[new.dimension]:
            return False
        more, here = self._richer_work(), len(found.fit.parts)
        cells = self._wanted(found.fit, sizes)
        splitting = self.fitter.work(here + cells, cells) / self.fitter.work(here, here)
        if more ** (steps + 1) > splitting * (1.0 + more) or not self._affords_richer(found.fit, more):
            return False
        self._enriched = found.estimate
        self.fitter = richer
        return True

    @property
    def marker(self) -> ErrorMarking:
        """The rule that chooses cells to split; it keeps its measures of the last solution."""
        if self._marker is None or self._marker.layout is not self.fitter.layout:
            self._marker = ErrorMarking(self.fitter.layout)
        return self._marker

    def compare(self, fit: Fit) -> Compared:
        """Compare a solution with a better one: by richer cells where it is smooth, on a finer tree elsewhere."""
        self._smooth = self._smooth + 1 if self.marker.is_smooth(fit) else 0
        richer = self._smooth > 0 or self._is_cheaper_richer(fit)
        richer = richer and (not self.course.stages or self._affords_richer(fit))
        found = self._with_richer_cells(fit) if richer else None
        found = self._with_more_cells(fit) if found is None else found
        self.answers.append(found.answer)
        return self._magnified(found)

    def _is_cheaper_richer(self, fit: Fit) -> bool:
        """Tell whether richer cells take less than a finer tree, and tell as much."""
        sizes, cells = field_sizes(self.fitter.layout, fit), len(fit.parts)
        wanted = self._wanted(fit, sizes)
        splitting = self.fitter.work(cells + wanted, wanted)
        return self._richer_work() * self.fitter.work(cells, cells) < splitting and self.marker.seems_smooth(fit, sizes)

    def _with_more_cells(self, fit: Fit) -> Compared:
        other, share = self._more_cells(fit, field_sizes(self.fitter.layout, fit), self._goal(self._expected()))
        layout = self.fitter.layout
        # Cells that were to be split and are not have their share of the error, too.
        distance = self._apart_from(layout, fit, layout, other)
        apart = distance / math.sqrt(share)
        # What is left of the error after one more tree, and the next, falls as it did before.
        fall = apart / self._apart if self._apart > 0 else 0.0
        self._falls = [*self._falls, fall] if self._apart > 0 else []
        self._apart, estimate = apart, extrapolated(apart, fall, _SLOWEST)
        beyond = estimate / distance if distance > 0.0 else 1.0
        return Compared(fit, layout, other, layout, estimate, self.fitter.answer(), beyond)

    def restated(self, before: Compared, fit: Fit, own: Layout, other: Fit, layout: Layout) -> Compared:
        """Compare solutions on the same trees as before, for other data."""
        self.answers += [before.answer] * 2
        estimate = before.beyond * self._apart_from(own, fit, layout, other)
        return self._magnified(Compared(fit, own, other, layout, estimate, before.answer, before.beyond))

    def _with_richer_cells(self, fit: Fit) -> Compared | None:
        """Compare a solution with the one by richer cells on the same tree: enough where it is smooth, and cheaper."""
        richer = self.fitter.richer()
        if richer is None:
            return None
        other = richer.fit(fit.root, fit)
        self._apart, self._falls = 0.0, []
        estimate = self._apart_from(self.fitter.layout, fit, richer.layout, other)
        return Compared(fit, self.fitter.layout, other, richer.layout, estimate, richer.answer())

    def _unmet(self, found: Compared) -> str:
        """Return a sentence where residuals are large, and no smaller on the finer tree."""
        fit, other = found.fit, found.other
        much = other.residual > min(max(DATA_SHARE * self.tol, _PLAIN), VISIBLE) * found.size
        stays = much and other.residual > TREES.pays * fit.residual
        # On a line there are no corners: what ends contradict goes into a cell that is smaller on every tree.
        if self.fitter.layout.reference.dimension == 1 and not stays:
            volume = self.fitter.layout.volume
            # The largest residual of a cell, as if it were the same everywhere.
            before, after = (
                max(value * math.sqrt(volume / part.volume) for part, value in one.residuals.items()) / found.size
                for one in (fit, other)
            )
            stays = after > max(self.tol, ROUNDING) and after > _STAYS_THERE * before
        if stays:
            return (
                f"The residual does not fall under refinement ({fit.residual:.1e}, then {other.residual:.1e}): "
                "equations and conditions may contradict each other."
            )
        return ""

    def _unseen(self, fit: Fit) -> str:
        """Return a sentence where data are narrower than cells."""
        if self.data is None or not self.data.unseen(fit.root, self.tol):
            return ""
        return "A source, a coefficient or a condition has features that are narrower than the smallest cells."

    def limit(self, found: Compared) -> Stop | None:
        """Return why finer cells would not help, or None."""
        del found
        if min(self.answers[-2:]) > self.undetermined:
            seen = 1.0 / min(self.answers[-2:])
            reason = f"nothing determines it: a change of size one changes equations and conditions by {seen:.0e}"
            return Stop(Reason.EXHAUSTED, reason)
        if self._doubtful == 2 * TREES.window:
            return Stop(Reason.EXHAUSTED, f"on {self._doubtful} trees of cells in a row the equations were not solved")
        if self.fitter.layout.ground.hidden and len(self.course.stages) > 1:
            return Stop(Reason.EXHAUSTED, "cells do not follow a jump of the data")
        if self._is_rounded:
            return Stop(Reason.ROUNDING)
        if len(self.course.stages) > 1 and self.course.stages[-1].nodes == self.course.stages[-2].nodes:
            return Stop(Reason.EXHAUSTED, "cells cannot be split any further")
        return None

    def cost(self, found: Compared) -> Cost:
        """Return the cost of the next tree."""
        same, sizes = found.layout is found.own, field_sizes(found.own, found.fit)
        fit, times = (found.other, 1.0) if same else (found.fit, 1.0 + self._richer_work())
        cells, wanted = len(fit.parts), self._wanted(fit, sizes)
        needed = self.fitter.held * (1.0 + min(wanted, self._room(fit, times)) / cells) ** _FRONTS
        work = times * min(self.fitter.work(cells + wanted, wanted), _GROWTH * self.fitter.work(cells, cells))
        richer = self.marker.is_smooth(fit) and self._affords_richer(fit, 1.0 if same else self._richer_work())
        return Cost("a finer tree of cells", 0.0 if richer else work, needed)

    @property
    def _is_rounded(self) -> bool:
        """Whether more functions and more cells made a smooth solution worse, twice in a row: these are its digits."""
        last = [s.estimate or 0.0 for s in self.course.stages[-3:]]
        return self._smooth >= len(last) == 3 and last[0] < last[1] < last[2] < _MANY_DIGITS

    def _wanted(self, fit: Fit, sizes: FloatArray) -> int:
        """Return how many more cells a solution asks for."""
        return sum(2 ** len(axes) - 1 for axes in self.marker.splits(fit, sizes)[0].values())

    def _apart_from(self, own: Layout, fit: Fit, layout: Layout, other: Fit) -> float:
        """Return how far a solution is from a better one, relative to its size, and note the same at a point."""
        apart, size, peak = distances(own, fit, layout, other)
        scale = field_scales(own.problem, size)
        self._peaks.append(float((peak * size / scale).max()))
        return float((apart / scale).max())

    def unfinished(self, layout: Layout, fit: Fit, words: str) -> Solution:
        """Return a fit that could not be compared with another, and why."""
        own = Compared(fit, layout, fit, layout, math.inf, 1.0)
        words = f"{words} Its error was not estimated."
        return solution_of(own, math.inf, Status.STALLED, words, self.seed, seconds=self.course.budget.elapsed)

    def solution(self, found: Compared, estimate: float, status: Status, message: str) -> Solution:
        """Return a fit as a solution, with its record and the verdict on it: the last one."""
        self.told, message = found, f"{message} {self.remark}".rstrip()
        record = self.seed, tuple(self.course.stages), self.course.budget.elapsed
        made = solution_of(found, estimate, status, message, *record)
        ask = None if self.course.budget.late else self.diagnose
        flaw, remark = ("", "") if ask is None else ask(made, self)
        if flaw:
            # Nothing is known of the error of what is returned.
            made = replace(made, status=Status.ILL_POSED, error_estimate=max(1.0, estimate))
        return replace(made, diagnostics=replace(made.diagnostics, message=flaw or f"{message} {remark}".rstrip()))
