"""Trees of cells as a discretisation: compare with a finer tree or richer cells, then split rough cells."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile

from pibls.cells import prices
from pibls.cells.data_refinement import DataRefinement
from pibls.cells.error_marking import ErrorMarking
from pibls.cells.fitters import Fitter, degree_for, highest_degree
from pibls.cells.grading import graded
from pibls.cells.layout import Layout
from pibls.cells.measure import average_error
from pibls.cells.outcome import Comparison, amplified, field_sizes, solution_of, unmet
from pibls.cells.overlay import distances
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.limits import STOPS, in_words
from pibls.refinement import SMALLEST, VISIBLE, Cost, Course, Reason, Stop, refine, verdict
from pibls.refinement.patience import TREES
from pibls.refinement.standards import FALLS, MOST, NEGLIGIBLE, PLAIN, SLIGHT
from pibls.solution import Solution, Stage
from pibls.solution.sizes import field_scales
from pibls.status import Status

__all__ = ["STRONGEST", "UNDETERMINED", "Diagnose", "Loop", "Splitting"]

UNDETERMINED = 1e9  # sensitivities above this mean that the solution is not unique
STRONGEST = 1e6  # sensitivities above this magnify the residual in full; rounding limits estimates below its inverse


Splitting = Callable[[ErrorMarking, Fit, FloatArray, float], tuple[Cell, float]]
"""Returns a finer tree and the share of the roughness it splits, from a solution, field sizes and a cell limit."""
Diagnose = Callable[[Solution, "Loop"], tuple[str, str]]
"""Returns a sentence why a problem is ill-posed, or an empty string, and a remark for a well-posed one."""


@dataclass(eq=False)
class Loop:
    """One solve: refines a first tree until two solutions agree."""

    fitter: Fitter
    tol: float
    course: Course[Comparison]
    seed: int
    data: DataRefinement | None = None  # made for the first degree; only its cells matter to richer ones
    undetermined: float = UNDETERMINED
    splitting: Splitting | None = None
    confirmed: Callable[[Comparison], bool] | None = None  # replaces the tolerance test, if given
    diagnose: Diagnose | None = None
    ends: Callable[[], str] | None = None  # says where the branch of solutions from zero ends, if it does
    reported: Comparison | None = None  # the comparison behind the last solution
    remark: str = ""  # final sentence of the message
    sensitivities: list[float] = field(default_factory=list)  # of the first solution, and of every better one
    _marker: ErrorMarking | None = None
    _before_richer: float | None = None  # estimate before the cells became richer
    _poorer: Comparison | None = None  # the last solution and a poorer one, where a limit ended the refinement
    _early: Solution | None = None  # what was diagnosed when two estimates in a row knew no digit

    def run(self, fit: Fit) -> Solution:
        """Refine from the solution on a first tree; on an interrupt, return the best solution so far."""
        stop: Stop | None = None
        try:
            self.sensitivities.append(self.fitter.sensitivity())
            stop = refine(self, fit, self.course)
            last = self.course.comparisons[-1]
            if stop.reason in (Reason.BUDGET, Reason.MEMORY) and not last.is_on_one_tree:
                self._poorer = self._beside_poorer(last.better, last.sensitivity)
            return self._early if self._early and self._early.status == Status.ILL_POSED else self.concluded(stop)
        except STOPS as stopped:
            words, self.diagnose = in_words(stopped), None
            if not self.course.comparisons:
                return self.unfinished(self.fitter.layout, fit, words)
            return self.concluded(stop or Stop(Reason.INTERRUPTED, words))

    def concluded(self, stop: Stop) -> Solution:
        """Return the best solution so far, with the verdict on it."""
        last = self.course.comparisons[-1]
        if stop.reason is Reason.TOLERANCE:
            comparison = last if last.estimate <= self.tol or self.confirmed is not None else self._ahead(last)
            return self._returned(comparison, last, stop)
        doubt = "" if stop.reason is Reason.INTERRUPTED else self.doubt
        # The better solution is returned only where a limit ended a refinement that still converged.
        limited = stop.reason in (Reason.BUDGET, Reason.MEMORY, Reason.DEADLINE) and not doubt
        limited = limited and self._is_settled(last) and not self._unseen(last.better)
        comparison, better = self._best(last), [self._ahead(own) for own in (last, self._poorer) if own]
        ahead = min((own for own in better if own.fit is last.better), default=last, key=lambda own: own.estimate)
        if limited and ahead.estimate < comparison.estimate:
            return self._returned(ahead, last, stop if ahead.estimate > self.tol else Stop(Reason.TOLERANCE))
        # A solution on a coarse tree may be doubtful although the finer one is not.
        serious = self.fitter.doubt(comparison.better) or (doubt and not self.fitter.doubt(comparison.fit))
        estimate = max(1.0, comparison.estimate) if serious else comparison.estimate
        return self.solution(comparison, estimate, *verdict(self.tol, estimate, stop, doubt))

    def _returned(self, comparison: Comparison, last: Comparison, stop: Stop) -> Solution:
        """Return one of the last two solutions with the verdict on it; the better one has a stage of its own."""
        if comparison is not last:
            self.course.note(self.stage(comparison, comparison.sensitivity))
        return self.solution(comparison, comparison.estimate, *verdict(self.tol, comparison.estimate, stop))

    def stage(self, comparison: Comparison, sensitivity: float | None = None) -> Stage:
        """Return the record of a stage; the sensitivity, if not given, is that found before the better solution."""
        size = (comparison.fit.unknowns, 0, len(comparison.fit.parts))
        own = self.sensitivities[-2] if sensitivity is None else sensitivity
        seconds, left = self.course.budget.elapsed, comparison.fit.residual
        return Stage(seconds, *size, residual=left, estimate=comparison.estimate, answer=own)

    def is_met(self, comparison: Comparison) -> bool:
        """Return whether the estimate is within the tolerance and nothing casts doubt on it."""
        if self.confirmed is not None:
            return self.confirmed(comparison)
        is_within = self._is_within_tolerance(comparison)
        if not is_within or self._doubt_of(comparison, is_within) or not self._is_settled(comparison):
            return False
        # A visible error at a point deserves another tree, if affordable; where the solution jumps, it does not fall.
        peaks = [own.peak for own in self.course.comparisons[-2:]]
        falls = len(peaks) < 2 or peaks[-1] < FALLS * peaks[-2]
        seen = falls and peaks[-1] > max(VISIBLE, 3.0 * self.tol)
        seen = seen or self.marker.may_hide_corners(comparison.fit, comparison.sizes, self.tol)
        # What waves leave lasts: no tree is too dear to look for it.
        lasting = amplified(self.course.comparisons) > self.tol
        return not lasting and (not seen or self.course.limit(self, comparison) is not None)

    def _is_within_tolerance(self, comparison: Comparison) -> bool:
        """Return whether the estimated error of one of two solutions is within the tolerance."""
        return comparison.estimate <= self.tol or self._ahead(comparison).estimate <= self.tol

    @property
    def doubt(self) -> str:
        """Why the last estimate is not reliable, or an empty string."""
        if not self.course.comparisons:
            return ""
        last = self.course.comparisons[-1]
        return self._doubt_of(last, self._is_within_tolerance(last))

    def _doubt_of(self, comparison: Comparison, is_within: bool) -> str:
        """Return a sentence why an estimate, within the tolerance or not, is not reliable, or an empty string."""
        doubt = self.fitter.layout.tree_domain.hidden or comparison.unsolved or unmet(comparison, self.tol)
        if doubt or not is_within:
            return doubt
        return self._unseen(comparison.fit if comparison.estimate <= self.tol else comparison.better)

    def _is_settled(self, comparison: Comparison) -> bool:
        """Return whether the sensitivity has stopped growing, or is too small for the residual to matter.

        Small ones are those of random data, which differ from one degree to the next.
        """
        before, now = self.sensitivities[-2:]
        matters = now * comparison.fit.residual > self.tol * comparison.size
        grows = now > max(1.0 / NEGLIGIBLE, before / TREES.pays) and matters
        return now < self.undetermined and not grows

    def _fit_on_finer_tree(self, fit: Fit, sizes: FloatArray, goal: float, times: float = 1.0) -> tuple[Fit, float]:
        """Return the solution on a finer tree, and the share of the roughness in the cells that were split."""
        most, layout = prices.room(self.fitter, self.course, fit, times), self.fitter.layout
        if self.splitting is not None:
            root, share = self.splitting(self.marker, fit, sizes, most)
            return self.fitter.fit(root, fit), share
        if self.data is not None and (root := graded(fit.root, *layout.tree_domain.holes, most)) is not fit.root:
            return self.fitter.fit(root, fit), self.marker.share(fit, sizes, root)
        root, share = self.marker.refined(fit, sizes, goal, most)
        if self.data is not None:
            root = self.data.modes.resolving_layers(root, self.tol)
            root = self.data.resolving_integrals(root, NEGLIGIBLE * self.tol * float(sizes.max()), most)
        return self.fitter.fit(root, fit), share

    def _goal(self, error: float) -> float:
        """Return the factor by which an error must fall to meet the tolerance."""
        return min(max(self.tol, sys.float_info.epsilon) / error, 1.0) if error > 0.0 else 1.0

    def _expected(self) -> float:
        """Return the error of the next solution, extrapolated from the last two, if the last stage paid; else zero."""
        estimates = [comparison.estimate for comparison in self.course.comparisons] or [1.0]
        before, last = [0.0, *estimates][-2:]
        return last**2 / before if 0.0 < last <= TREES.pays * before else 0.0

    def _magnified(self, comparison: Comparison) -> Comparison:
        """Return the comparison with its estimate raised to the error that rounding, residuals and integrals allow."""
        residual = comparison.better.residual / comparison.size
        sensitivity, least = comparison.sensitivity, 0.0
        if sensitivity > 1.0 / SLIGHT:
            share = SLIGHT if sensitivity < STRONGEST else 1.0
            least = sensitivity * (share * residual + sys.float_info.epsilon)
        unsure = average_error(comparison.fit_layout, comparison.fit)
        if self.data is not None:
            unsure = max(unsure, self.data.integral_error(comparison.fit.root))
        least = max(least, unsure / comparison.size, comparison.missed)
        return replace(comparison, estimate=max(comparison.estimate, least))

    def finer(self, comparison: Comparison) -> Fit:
        """Return the next solution: with richer cells, the better one of the comparison, or one on a finer tree."""
        if self._enrich_if_magnified(comparison):
            return self.fitter.fit(comparison.fit.root, comparison.fit)
        if not comparison.is_on_one_tree:
            return comparison.better
        richer, self._before_richer = self._richer_that_pays(comparison), None
        if richer is not None:
            self.fitter, self._before_richer = richer, comparison.estimate
            return comparison.better
        goal, times = self._goal(comparison.estimate), 1.0 + prices.richer_work(self.fitter)
        return self._fit_on_finer_tree(comparison.fit, comparison.sizes, goal, times)[0]

    def _enrich_if_magnified(self, comparison: Comparison) -> bool:
        """Switch to richer cells if errors of cells are magnified: by sensitivity, or relative to a small field."""
        reference = self.fitter.layout.reference
        # More cells that leave the residual as it is are too poor for the largest field, of which a small one suffers.
        stays = comparison.fall_of_residual > TREES.pays and not comparison.is_on_one_tree
        spread = stays * self.fitter.spread(comparison.fit, comparison.sizes)
        magnified = min(max(SLIGHT * min(self.sensitivities[-2:]), spread, 1.0), STRONGEST)
        degrees = degree_for(reference.dimension, self.tol / magnified) - reference.degree
        richer = self.fitter.enriched(degrees) if degrees > 0 else None
        self.fitter = richer or self.fitter
        return richer is not None

    def _best(self, last: Comparison) -> Comparison:
        """Return the comparison with the smallest estimate, unless the last one contradicts it."""
        best = self.course.best
        if best is last:
            return last
        if self._is_rounded and best.estimate == self.course.stages[-3].estimate:
            return best
        apart, size, _ = distances(best.fit_layout, best.fit, last.fit_layout, last.fit)
        distance = float((apart / field_scales(best.fit_layout.problem, size)).max())
        # A high sensitivity may show only on finer trees, and magnifies the residuals of coarse ones, too.
        best = replace(best, estimate=max(best.estimate, distance), sensitivity=max(best.sensitivity, last.sensitivity))
        return min(last, self._magnified(best), key=lambda comparison: comparison.estimate)

    def _ahead(self, last: Comparison) -> Comparison:
        """Return the better of the last two solutions with its error, or the other one if no rate of errors is known.

        On one tree errors fall as residuals do; from tree to tree, as distances did. One comparison vouches for two
        digits.
        """
        if last.is_on_one_tree:
            error, share, rate = last.estimate, FALLS, last.fall_of_residual
        else:
            latest = self.course.comparisons[-3:]
            falls = [own.fall_of_distance for own in latest[-2:] if own.fall_of_distance is not None]
            cells = [*(len(own.fit.parts) for own in latest), len(last.better.parts)]
            error, share, rate = last.apart, TREES.pays, prices.rate_on_trees(falls, cells)
        if not rate <= TREES.pays:
            return self._magnified(last)
        rate = max(rate, SLIGHT, prices.unseen_rate(last, self.marker))
        return self._magnified(replace(last.swapped, estimate=error * prices.beyond(rate) / share))

    def _richer_that_pays(self, comparison: Comparison) -> Fitter | None:
        """Return the fitter with richer cells for all later solutions, or None if splitting is better.

        Richer cells are kept if, by the decay of coefficients, they meet the tolerance with less work than splitting.
        """
        # If the last enrichment did not reduce the estimate, cells are split.
        paid = self._before_richer is None or comparison.estimate <= TREES.pays * self._before_richer
        old, new = comparison.fit_layout.reference, comparison.better_layout.reference
        richer = self.fitter.richer() if paid and new.degree > old.degree else None
        hoped = self._goal(comparison.estimate)
        gain = float(self.marker.left_per_degree(comparison.fit).max()) ** abs(new.degree - old.degree)
        steps = 1 if gain <= hoped else math.ceil(math.log(hoped) / math.log(gain)) if gain < 1.0 else math.inf
        if richer is None or old.degree + steps * (new.degree - old.degree) > highest_degree(new.dimension):
            return None
        more, here = prices.richer_work(self.fitter), len(comparison.fit.parts)
        split = self.marker.wanted(comparison.fit, comparison.sizes)
        # A finer tree adds cells, and is then compared with richer cells all over.
        finer = self.fitter.work(here + split, split) + more * self.fitter.work(here + split, here + split)
        affordable = prices.affords_richer(self.fitter, self.course, comparison.fit, more)
        return richer if affordable and more ** (steps + 1) * self.fitter.work(here, here) <= finer else None

    @property
    def marker(self) -> ErrorMarking:
        """Selects the cells to split; it keeps the roughness of the last solution."""
        if self._marker is None or self._marker.layout is not self.fitter.layout:
            self._marker = ErrorMarking(self.fitter.layout)
        return self._marker

    def compare(self, fit: Fit) -> Comparison:
        """Compare a solution with a better one: with richer cells where it is smooth, on a finer tree elsewhere."""
        is_smooth, sizes = self.marker.is_smooth(fit), field_sizes(self.fitter.layout, fit)
        richer = is_smooth or prices.is_cheaper_richer(self.fitter, self.marker, fit, sizes)
        richer = richer and (not self.course.stages or prices.affords_richer(self.fitter, self.course, fit))
        comparison = self._with_richer_cells(fit) if richer else None
        # Richer cells that leave as much of the equations as before share all of the error.
        if comparison is None or comparison.better.residual > max(fit.residual, SMALLEST * comparison.size):
            comparison = self._ending(fit) or self._with_more_cells(fit)
        self.sensitivities.append(comparison.sensitivity)
        unsolved = self.fitter.doubt(fit) or self.fitter.doubt(comparison.better)
        return self._magnified(replace(comparison, is_smooth=is_smooth, unsolved=unsolved))

    def _ending(self, fit: Fit) -> Comparison | None:
        """Return a comparison with poorer cells that ends the solve, if it costs little beside a finer tree."""
        if not self.course.stages or self.confirmed is not None or self.splitting is not None:
            return None
        new = self.marker.wanted(fit, field_sizes(self.fitter.layout, fit))
        most = MOST**2 * self.fitter.work(len(fit.parts) + new, new)
        found = self._beside_poorer(fit, self.sensitivities[-1], most)
        return found if found and found.estimate <= self.tol and not self._doubt_of(found, is_within=True) else None

    def _beside_poorer(self, fit: Fit, sensitivity: float, most: float = math.inf) -> Comparison | None:
        """Return a solution with its error, from one of two degrees less; None if that is too much work."""
        return prices.beside_poorer(self.fitter, self.course, self.marker, fit, sensitivity, most)

    def _with_more_cells(self, fit: Fit) -> Comparison:
        """Compare a solution with one on a finer tree."""
        layout, before = self.fitter.layout, self.course.comparisons[-1] if self.course.comparisons else None
        # What it costs to compare the finer tree with poorer cells is left over.
        goal, times = self._goal(self._expected()), 1.0 + prices.poorer_work(self.fitter)
        other, split = self._fit_on_finer_tree(fit, field_sizes(layout, fit), goal, times)
        comparison = Comparison(fit, layout, other, layout, math.inf, self.fitter.sensitivity(), split)
        # Without a share no cell could be split.
        return comparison.measured(distances(layout, fit, layout, other), before) if split > 0.0 else comparison

    def restated(self, comparison: Comparison, gaps: Iterable[FloatArray]) -> Comparison:
        """Return a comparison for other data on the same trees with its estimate, given the distances of both fits."""
        self.sensitivities += [comparison.sensitivity] * 2
        return self._magnified(comparison.measured(gaps))

    def _with_richer_cells(self, fit: Fit) -> Comparison | None:
        """Compare a solution with one on the same tree with richer cells: reliable where it is smooth, and cheaper."""
        richer = self.fitter.richer()
        if richer is None:
            return None
        other, layout = richer.fit(fit.root, fit), self.fitter.layout
        comparison = Comparison(fit, layout, other, richer.layout, math.inf, richer.sensitivity())
        return comparison.measured(distances(layout, fit, richer.layout, other))

    def _unseen(self, fit: Fit) -> str:
        """Return a sentence if data have features narrower than the cells."""
        if self.data is None or not self.data.misses_features(fit.root, self.tol):
            return ""
        return "A source, a coefficient or a condition is narrower than the smallest cells. Give a larger budget."

    def limit(self, comparison: Comparison) -> Stop | None:
        """Return the reason why finer cells cannot help, or None."""
        early = self._diagnosed_early(comparison)
        if early is not None and early.status == Status.ILL_POSED:
            return Stop(Reason.EXHAUSTED, "the problem is ill-posed")
        if min(self.sensitivities[-2:]) > self.undetermined:
            seen = 1.0 / min(self.sensitivities[-2:])
            reason = f"a change of size one changes equations and conditions by {seen:.0e} only. Add what determines it"
            return Stop(Reason.EXHAUSTED, reason)
        unsolved = sum(1 for _ in takewhile(lambda own: own.unsolved, reversed(self.course.comparisons)))
        if unsolved == TREES.window // 2 and self.ends is not None and self.ends():
            return Stop(Reason.EXHAUSTED, "the branch of solutions ends")
        if unsolved == 2 * TREES.window:
            words = f"{unsolved} trees in a row left the equations unsolved. Check signs and values"
            return Stop(Reason.EXHAUSTED, words)
        if self.fitter.layout.tree_domain.hidden and len(self.course.stages) > 1:
            return Stop(Reason.EXHAUSTED, "cells do not follow a jump of the data. Write it with per_region")
        if self._is_rounded:
            return Stop(Reason.ROUNDING)
        if len(self.course.stages) > 1 and self.course.stages[-1].nodes == self.course.stages[-2].nodes:
            return Stop(Reason.EXHAUSTED, "cells cannot be split any further. Ask for a larger tol")
        return None

    def _diagnosed_early(self, comparison: Comparison) -> Solution | None:
        """Return the diagnosis of the first sensitive solution of which no digit is known, or None; it is made once."""
        lost = min([0.0, *(s.estimate or 0.0 for s in self.course.stages)][-2:]) > NEGLIGIBLE
        if lost and self._early is None and self.sensitivities[-1] > 1.0 / PLAIN:
            self._early = self.solution(comparison, comparison.estimate, Status.STALLED, "")
        return self._early

    def cost(self, comparison: Comparison) -> Cost:
        """Return the cost of the next tree."""
        wanted = self.marker.wanted(comparison.latest, comparison.sizes)
        is_smooth = self.marker.is_smooth(comparison.latest)
        return prices.next_cost(self.fitter, self.course, comparison, wanted, is_smooth=is_smooth)

    @property
    def _is_rounded(self) -> bool:
        """Whether further degrees and cells made a smooth solution worse twice in a row: round-off is reached."""
        last = [s.estimate or 0.0 for s in self.course.stages[-3:]]
        smooth = all(own.is_smooth for own in self.course.comparisons[-3:])
        return smooth and len(last) == 3 and last[0] < last[1] < last[2] < 1.0 / STRONGEST

    def unfinished(self, layout: Layout, fit: Fit, words: str) -> Solution:
        """Return a solution that could not be compared with another, with the reason."""
        own = Comparison(fit, layout, fit, layout, math.inf, 1.0)
        words = f"{words} Its error was not estimated."
        return solution_of(own, math.inf, Status.STALLED, words, self.seed, seconds=self.course.budget.elapsed)

    def solution(self, comparison: Comparison, estimate: float, status: Status, message: str) -> Solution:
        """Return a fit as a solution, with its stages and the verdict."""
        self.reported, message = comparison, f"{message} {self.remark}".rstrip()
        record = self.seed, tuple(self.course.stages), self.course.budget.elapsed
        made = solution_of(comparison, estimate, status, message, *record)
        ask = None if self.course.budget.late else self.diagnose
        flaw, remark = ("", "") if ask is None else ask(made, self)
        if flaw:
            # The error of a solution of an ill-posed problem is unknown.
            made = replace(made, status=Status.ILL_POSED, error_estimate=max(1.0, estimate))
        return replace(made, diagnostics=replace(made.diagnostics, message=flaw or f"{message} {remark}".rstrip()))
