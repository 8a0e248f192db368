"""The automatic solve by cells: follow the data, solve, compare with a finer tree, refine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import numpy as np

from pibls.budget import Budget
from pibls.cells.fitters import Fitter, Linear, degree_for
from pibls.cells.layout import Layout
from pibls.cells.leaf import PER_CELL
from pibls.cells.measure import distances, tails_of, unsure_averages
from pibls.cells.outcome import field_sizes, network_of, residuals_of
from pibls.cells.refine import Follower, Marker
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, Glue
from pibls.cells.tree import Cell, graded, leaves, refined, split_along_lines, split_at_planes
from pibls.checks import FloatArray
from pibls.features.reference import SINES, Cells, draw_reference
from pibls.limits import STOPS, in_words, keep
from pibls.problem import Averages, Problem
from pibls.runtime import RATE, available_memory, format_bytes
from pibls.solution import Diagnostics, Solution, Stage
from pibls.solution.sizes import reference_sizes
from pibls.solution.stages import more_budget
from pibls.status import Status

__all__ = ["Loop", "attempt_cells", "first_tree", "solve_cells", "suits_cells"]

_HIGHEST = {1: 0, 2: 19, 3: 16}  # degrees up to which cells become richer in the course of a solve
_PER_WEIGHT = 8.0  # operations of a cell by the third power of its weights
_DATA_BUDGET, _FEWEST_CELLS = 0.2, 16
_WAVE_BUDGET = 0.35  # without waves there is no solution: with a comparison by richer cells that is all there is
_DOUBTFUL = 8  # so many trees in a row without a solution: there is none, or none can be found
_UNDETERMINED = 1e9  # answers beyond this are those of a solution to which something can be added
_ORDINARY, _GROWS = 1.0, 2.0  # stronger answers are those of the problem once they no longer grow with finer cells
_UNMET, _PLAIN, _MUCH, _STAYS, _STAYS_THERE = 100.0, 1e-3, 0.03, 0.5, 0.9
_FALLS = 0.2  # rows that lack so much less than three trees before: the solution is still being found
_ROUNDING, _MANY_DIGITS = 1e-10, 1e-6
_ROUNDED = "Round-off limits it: no more digits are to be had in double precision. Ask for a larger tol."
_PATIENCE, _RESOLVED = 4, 1e-3  # trees in a row that bring nothing, where a solution is known to some digits
_PAYS = 0.5  # what estimates must fall to, from the mean over so many trees to that over the next
_RICHER = 2.0  # power of the number of functions that the work of a cell goes with
_MORE, _TRIES = 1.25, 60  # steps in which numbers of cells are tried
_GROWTH = 1.5  # what the next tree may cost at least, over what the last one does: less brings little
_STRONG, _STRONGEST = 1e2, 1e6  # answers that magnify what cells cannot tell; more of that is not made up for
_MAGNIFIED = 0.01  # share of the worst case, in which all that rows lack is magnified most; all of it beyond that
_EPSILON = 2e-16
_SLENDER = 2.0  # first cells are not longer than so many times their width
_STEADY, _CAUTION = 0.5, 2.0  # a fall from tree to tree that can be relied on, and how far
_SLOWEST = 0.8  # share of an error that is left on the next tree
_HOPE = 3.0  # what coefficients promise is less than what comes of it
_FRONTS = 2.0  # more cells also share more with each other
_MOST_COORDINATES = 3
_VISIBLE = 0.03  # of the largest value: an error that is seen, at however few points
_SUMMED = 0.1  # of the tolerance: what cells may miss of the integral of a source


def suits_cells(problem: Problem) -> bool:
    """Tell whether a problem can be solved on cells: one to three coordinates, and a domain with an inside.

    Averages over regions join cells that have nothing else to do with each other.
    """
    domain = problem.domain
    if any(isinstance(s.place, Averages) for s in problem.statements):
        return False
    return len(domain.coordinates) <= _MOST_COORDINATES and getattr(domain, "atoms", None) is None


@dataclass(frozen=True, eq=False)
class Compared:
    """A solution, another one that is better, the cells of both, and what they say of the first one's error."""

    fit: Fit
    own: Layout
    other: Fit
    layout: Layout
    estimate: float
    answer: float


@dataclass(eq=False)
class Loop:
    """One solve: from a first tree to finer ones, until two of them agree."""

    fitter: Fitter
    tol: float
    budget: Budget
    seed: int
    report: Callable[..., None]
    follower: Follower | None = None
    undetermined: float = _UNDETERMINED
    stages: list[Stage] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)
    _spent: float = 0.0  # by fitters that richer ones replaced
    _apart: float = 0.0
    _falls: list[float] = field(default_factory=list)
    _peaks: list[float] = field(default_factory=list)
    _least: Compared | None = None
    _enriched: float | None = None  # the estimate before cells became richer
    _smooth: int = 0  # how many solutions in a row were smooth

    @property
    def flops(self) -> float:
        """Operations so far."""
        return self._spent + self.fitter.flops

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.fitter.layout.problem

    def run(self, fit: Fit) -> Solution:
        """Solve, from the solution on a first tree on; an interrupt returns the best solution so far."""
        found: Compared | None = None
        answers = [self.fitter.answer()]
        doubtful = 0
        try:
            while True:
                sizes = field_sizes(self.fitter.layout, fit)
                found = self._magnified(self.compared(fit), sizes)
                answers.append(found.answer)
                self.note(fit, found.estimate, answers[-2])
                if self._least is None or found.estimate < self._least.estimate:
                    self._least = found
                unsolved = self.fitter.doubt(fit) or self.fitter.doubt(found.other)
                doubtful = doubtful + 1 if unsolved else 0
                doubt = self.fitter.layout.ground.hidden or unsolved or self._unmet(fit, found.other, sizes)
                if found.estimate <= self.tol and not doubt:
                    doubt = self._unseen(fit)
                settled = not doubt and self._is_settled(fit, answers, sizes)
                done = found.estimate <= self.tol and settled
                if done and not (self._is_seen() and not self.limit(found, sizes, answers)):
                    message = f"The estimated error {found.estimate:.1e} is within the tolerance {self.tol:g}."
                    return self.solution(found, found.estimate, Status.CONVERGED, message)
                limit = self.limit(found, sizes, answers)
                if doubtful == _DOUBTFUL:
                    limit = "Finer cells do not help."
                if self.fitter.layout.ground.hidden and len(self.stages) > 1:
                    limit = "Finer cells would not help."
                if limit:
                    break
                if self._wants_digits(answers):
                    fit = self.fitter.fit(fit.root, fit)
                    continue
                if self._accepts(found, sizes):
                    fit = found.other
                else:
                    fit = self._more_cells(fit, sizes, self._short(found), 1.0 + self._richer_work())[0]
        except STOPS as stop:
            limit = in_words(stop)
            if found is None:
                own = Compared(fit, self.fitter.layout, fit, self.fitter.layout, np.inf, 1.0)
                return self.solution(own, np.inf, Status.STALLED, f"{limit} Its error was not estimated.")
            doubt = ""
        if not doubt and self._is_settled(found.fit, answers, sizes) and (ahead := self._ahead(found)) is not None:
            return ahead
        found = self._best(found)
        # A coarse tree that tells little of a solution may be compared with a finer one that is in no doubt.
        serious = self.fitter.doubt(found.other) or (doubt and not self.fitter.doubt(found.fit))
        estimate = max(1.0, found.estimate) if serious else found.estimate
        place = "above" if estimate > self.tol else "within"
        message = f"The estimated error is {estimate:.1e}, {place} the tolerance {self.tol:g}. {limit} {doubt}"
        return self.solution(found, estimate, Status.STALLED, message.rstrip())

    def _is_settled(self, fit: Fit, answers: list[float], sizes: FloatArray) -> bool:
        """Tell whether a problem answers as strongly as it will, or too little for what rows lack to matter."""
        before, now = answers[-2:]
        grows = now > max(_ORDINARY, _GROWS * before) and now * fit.residual > self.tol * float(sizes.max())
        return now < self.undetermined and not grows

    def _is_seen(self) -> bool:
        """Tell whether the error at some point is seen on a plot, and falls: where values jump it does not."""
        falls = len(self._peaks) < 2 or self._peaks[-1] < _STAYS_THERE * self._peaks[-2]
        return falls and self._peaks[-1] > max(_VISIBLE, 3.0 * self.tol)

    def _more_cells(self, fit: Fit, sizes: FloatArray, goal: float = 1.0, times: float = 1.0) -> tuple[Fit, float]:
        """Return the solution on a finer tree, and the share of what is rough in the cells that are split for it."""
        room = self._room(fit, times)
        root, share = self.marker.refined(fit, sizes, goal, room)
        if self.follower is not None:
            root = self.follower.summed(root, _SUMMED * self.tol * float(sizes.max()), room)
        return self.fitter.fit(root, fit), share

    def _short(self, found: Compared) -> float:
        """Return what the error has to fall to, as a share of itself."""
        return min(self.tol / found.estimate, 1.0) if found.estimate > 0 else 1.0

    def _room(self, fit: Fit, times: float = 1.0) -> float:
        """Return how many more cells there can be within memory and budget, if solving with them costs so many times.

        The first solution has to be compared with another: there are at least about as many as there are already.
        """
        cells = len(fit.parts)
        work = 1.0 if self.stages else float(cells)
        for _ in range(_TRIES):
            more = _MORE * work
            if not self.budget.affords(self.flops + times * self.fitter.work(cells + more, more)):
                break
            work = more
        memory = cells * (available_memory() / (_FRONTS * max(self.fitter.held, 1.0)) - 1.0)
        return min(work, max(memory, 1.0))

    def _affords_richer(self, fit: Fit, times: float = 1.0) -> bool:
        """Tell whether a solution can be had with two degrees more on the same tree, beside others of its cost."""
        cells = len(fit.parts)
        return self.budget.affords(self.flops + times * self._richer_work() * self.fitter.work(cells, cells))

    def _richer_work(self) -> float:
        """Return what the work of cells of two degrees more is, over that of those there are."""
        d, degree = self.fitter.layout.reference.dimension, self.fitter.layout.reference.degree
        return float((math.comb(degree + 2 + d, d) / math.comb(degree + d, d)) ** _RICHER)

    def _magnified(self, found: Compared, sizes: FloatArray) -> Compared:
        """Return a comparison with an estimate that is not less than what rounding, rows and integrals leave open."""
        lacking = found.other.residual / float(sizes.max())
        share = _MAGNIFIED if found.answer < _STRONGEST else 1.0
        least = found.answer * (share * lacking + _EPSILON) if found.answer > _STRONG else 0.0
        unsure = unsure_averages(found.own, found.fit)
        if self.follower is not None:
            unsure = max(unsure, self.follower.left_out(found.fit.root))
        least = max(least, unsure / float(sizes.max()))
        return replace(found, estimate=max(found.estimate, least))

    def _wants_digits(self, answers: list[float]) -> bool:
        """Go on with richer cells where a solution answers strongly: what they cannot tell is magnified."""
        reference = self.fitter.layout.reference
        magnified = min(max(min(answers[-2:]) / _STRONG, 1.0), _STRONGEST)
        degrees = degree_for(reference.dimension, self.tol / magnified) - reference.degree
        richer = self.fitter.enriched(degrees) if degrees > 0 else None
        if richer is None:
            return False
        self._replace(richer)
        return True

    def _replace(self, richer: Fitter) -> None:
        """Go on with a richer fitter, whose work so far is counted already."""
        self._spent = self.flops - richer.flops
        self.fitter = richer

    def _best(self, last: Compared) -> Compared:
        """Return the comparison with the least estimate, if the last one does not speak against it."""
        best = self._least
        if best is None or best is last:
            return last
        if self._is_rounded and best.estimate == self.stages[-3].estimate:
            return best
        apart = self._apart_from(best.own, best.fit, last.own, last.fit)
        # How strongly the problem answers may show on finer trees only, and magnifies what coarse ones lack, too.
        best = replace(best, estimate=max(best.estimate, apart), answer=max(best.answer, last.answer))
        best = self._magnified(best, field_sizes(best.own, best.fit))
        return best if best.estimate < last.estimate else last

    def _ahead(self, last: Compared) -> Solution | None:
        """Return the better one of the last two solutions if what the rate so far leaves of its error is small enough.

        The rate is known where two trees in a row came closer to the next one at a steady pace.
        """
        slowest = max(self._falls[-2:], default=1.0)
        if len(self._falls) < 2 or slowest > _STEADY:
            return None
        left = _CAUTION * self._apart * slowest / (1.0 - slowest)
        found = replace(last, fit=last.other, own=last.layout, other=last.fit, layout=last.own, estimate=left)
        found = self._magnified(found, field_sizes(found.own, found.fit))
        if found.estimate > self.tol or self._unseen(found.fit):
            return None
        self.note(found.fit, found.estimate, found.answer)
        message = (
            f"The estimated error {found.estimate:.1e} is within the tolerance {self.tol:g}, by the rate at which "
            "solutions on the last trees came closer to each other."
        )
        return self.solution(found, found.estimate, Status.CONVERGED, message)

    def _accepts(self, found: Compared, sizes: FloatArray) -> bool:
        """Tell whether to go on from the better solution; if it has richer cells, all following ones have them too.

        That is so where it takes less work to meet the tolerance than splitting cells, by how fast coefficients fall.
        """
        if found.layout is found.own:
            return True
        # What coefficients promise need not come: where degrees brought nothing, cells are split.
        paid = self._enriched is None or found.estimate <= _PAYS * self._enriched
        self._enriched = None
        richer = self.fitter.richer() if paid else None
        old, new = found.own.reference, found.layout.reference
        short = self._short(found)
        hoped = _HOPE * short
        gain = tails_of(old).gain(found.fit) ** (new.degree - old.degree)
        steps = 1 if gain <= hoped else math.ceil(math.log(hoped) / math.log(gain)) if gain < 1.0 else math.inf
        if richer is None or old.degree + steps * (new.degree - old.degree) > _HIGHEST[new.dimension]:
            return False
        more, here = self._richer_work(), len(found.fit.parts)
        cells = self._wanted(found.fit, sizes, short)
        splitting = self.fitter.work(here + cells, cells) / self.fitter.work(here, here)
        if more ** (steps + 1) > splitting * (1.0 + more) or not self._affords_richer(found.fit, more):
            return False
        self._enriched = found.estimate
        self._replace(richer)
        return True

    @property
    def marker(self) -> Marker:
        """What chooses cells to split."""
        return Marker(self.fitter.layout)

    def compared(self, fit: Fit) -> Compared:
        """Compare a solution with a better one: by richer cells where it is smooth, on a finer tree elsewhere."""
        self._smooth = self._smooth + 1 if self.marker.is_smooth(fit) else 0
        richer = self._smooth > 0 or self._is_cheaper_richer(fit)
        richer = richer and (not self.stages or self._affords_richer(fit))
        found = self._with_richer_cells(fit) if richer else None
        return self._with_more_cells(fit) if found is None else found

    def _is_cheaper_richer(self, fit: Fit) -> bool:
        """Tell whether richer cells take less than a finer tree, and tell as much."""
        sizes, cells = field_sizes(self.fitter.layout, fit), len(fit.parts)
        wanted = self._wanted(fit, sizes)
        splitting = self.fitter.work(cells + wanted, wanted)
        return self._richer_work() * self.fitter.work(cells, cells) < splitting and self.marker.seems_smooth(fit, sizes)

    def _with_more_cells(self, fit: Fit) -> Compared:
        other, share = self._more_cells(fit, field_sizes(self.fitter.layout, fit))
        layout = self.fitter.layout
        # Cells that were to be split and are not have their share of the error, too.
        apart = self._apart_from(layout, fit, layout, other) / math.sqrt(share)
        # What is left of the error after one more tree, and the next, falls as it did before.
        fall = min(apart / self._apart, _SLOWEST) if self._apart > 0 else 0.0
        self._falls = [*self._falls, apart / self._apart] if self._apart > 0 else []
        self._apart, estimate = apart, apart / (1.0 - fall)
        return Compared(fit, layout, other, layout, estimate, self.fitter.answer())

    def _with_richer_cells(self, fit: Fit) -> Compared | None:
        """Compare a solution with the one by richer cells on the same tree: enough where it is smooth, and cheaper."""
        richer = self.fitter.richer()
        if richer is None:
            return None
        other = richer.fit(fit.root, fit)
        self._apart, self._falls = 0.0, []
        estimate = self._apart_from(self.fitter.layout, fit, richer.layout, other)
        return Compared(fit, self.fitter.layout, other, richer.layout, estimate, richer.answer())

    def note(self, fit: Fit, estimate: float, answer: float) -> None:
        """Record a stage, and tell it."""
        seconds = time.perf_counter() - self.started
        self.stages.append(
            Stage(
                seconds, fit.unknowns, fit.rows, len(fit.parts), residual=fit.residual, estimate=estimate, answer=answer
            )
        )
        self.report("solve", seconds, fit.unknowns, fit.residual, estimate)

    def _unmet(self, fit: Fit, other: Fit, sizes: FloatArray) -> str:
        """Return a sentence where rows lack much, and no less on the finer tree: then nothing may fulfil them."""
        much = other.residual > min(max(_UNMET * self.tol, _PLAIN), _MUCH) * float(sizes.max())
        stays = much and other.residual > _STAYS * fit.residual
        # On a line there are no corners: what ends contradict goes into a cell that is smaller on every tree.
        if self.fitter.layout.reference.dimension == 1 and not stays:
            before, after = (self._lacking(one) / float(sizes.max()) for one in (fit, other))
            stays = after > max(self.tol, _ROUNDING) and after > _STAYS_THERE * before
        if stays:
            return (
                "What equations and conditions lack does not fall as cells are split: they may contradict each other."
            )
        return ""

    def _lacking(self, fit: Fit) -> float:
        """Return what is lacking most in one cell, as if that were so everywhere."""
        volume = self.fitter.layout.volume
        return max(value * math.sqrt(volume / part.volume) for part, value in fit.residuals.items())

    def _unseen(self, fit: Fit) -> str:
        """Return a sentence where data are narrower than cells."""
        if self.follower is None or not self.follower.unseen(fit.root, self.tol):
            return ""
        return "A source, a coefficient or a condition has features that are too narrow for the cells there can be."

    def limit(self, found: Compared, sizes: FloatArray, answers: list[float]) -> str:
        """Return why not to go on, as a sentence, or an empty string."""
        last = [s.estimate or 0.0 for s in self.stages]
        if min(answers[-2:]) > self.undetermined:
            return "Nothing determines it."
        if self._is_rounded:
            return _ROUNDED
        falls = len(last) > 3 and (self.stages[-1].residual or 0.0) < _FALLS * (self.stages[-4].residual or 0.0)
        # What is not resolved yet may seem to stay as it is for a while.
        patience = _PATIENCE if min(last) < _RESOLVED else 2 * _PATIENCE
        recent, earlier = last[-patience:], last[-2 * patience : -patience]
        # Means: one tree that happens to agree with the next says little.
        if earlier and last[-1] < 0.1 and _mean(recent) > _PAYS * _mean(earlier) and not falls:
            if last[-1] < _ROUNDING:
                return _ROUNDED
            return "Splitting cells no longer pays: what limits it is not where cells are."
        if len(last) > 1 and self.stages[-1].nodes == self.stages[-2].nodes:
            return "Cells cannot be split any further."
        same = found.layout is found.own
        fit, times = (found.other, 1.0) if same else (found.fit, 1.0 + self._richer_work())
        cells, wanted = len(fit.parts), self._wanted(fit, sizes)
        needed = self.fitter.held * (1.0 + min(wanted, self._room(fit, times)) / cells) ** _FRONTS
        if needed > available_memory():
            return f"The memory limits it: a finer tree of cells would take about {format_bytes(needed)}."
        work = times * min(self.fitter.work(cells + wanted, wanted), _GROWTH * self.fitter.work(cells, cells))
        richer = self.marker.is_smooth(fit) and self._affords_richer(fit, 1.0 if same else self._richer_work())
        if not richer and not self.budget.affords(self.flops + work):
            return (
                f"The budget limits it: a finer tree of cells would take more than {self.budget.nominal:g} nominal "
                f"seconds. {more_budget(self.budget.nominal, self.stages)}"
            )
        return self.budget.late

    @property
    def _is_rounded(self) -> bool:
        """Whether more functions and more cells made a smooth solution worse, twice in a row: these are its digits."""
        last = [s.estimate or 0.0 for s in self.stages[-3:]]
        return self._smooth >= len(last) == 3 and last[0] < last[1] < last[2] < _MANY_DIGITS

    def _wanted(self, fit: Fit, sizes: FloatArray, goal: float = 1.0) -> int:
        """Return how many more cells a solution asks for."""
        return sum(2 ** len(axes) - 1 for axes in self.marker.splits(fit, sizes, goal)[0].values())

    def _apart_from(self, own: Layout, fit: Fit, layout: Layout, other: Fit) -> float:
        """Return how far a solution is from a better one, relative to its size, and note the same at a point."""
        apart, size, peak = distances(own, fit, layout, other)
        found = np.array(
            list(
                reference_sizes(self.problem, dict(zip(self.problem.field_names, size.tolist(), strict=True))).values()
            )
        )
        scale = np.where(found > 0, found, 1.0)
        self._peaks.append(float((peak * size / scale).max()))
        return float((apart / scale).max())

    def solution(self, found: Compared, estimate: float, status: Status, message: str) -> Solution:
        """Return a fit as a solution, with its record."""
        fit = found.fit
        network, richer = network_of(found.own, fit), network_of(found.layout, found.other)
        reference = found.own.reference
        settings: dict[str, Any] = {"cells": len(fit.parts), "degree": reference.degree, "functions": reference.size}
        if reference.nodes != SINES:
            settings |= asdict(reference.nodes)
        record = Diagnostics(
            "Cells",
            settings,
            self.seed,
            fit.unknowns,
            fit.rows,
            "elimination along the tree",
            None,
            self.stages[-1].answer if self.stages else None,
            {},
            seconds={"total": time.perf_counter() - self.started},
            message=message,
            stages=tuple(self.stages),
        )
        eye = np.eye(network.size)
        made = Solution(self.problem, network, eye, status, record, estimate, richer=(richer, eye))
        keep(made)
        return replace(made, diagnostics=replace(record, residuals=residuals_of(made)))


def _mean(estimates: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(np.maximum(estimates, _EPSILON)))))


def first_tree(follower: Follower, tol: float, root: Cell | None = None, *, budget: float = 10.0) -> Cell:
    """Return a tree whose cells resolve the data, and on a torus no cell meets itself."""
    rows = follower.rows
    if root is None:
        root = rows.layout.root
        for axis in rows.periodic:
            root = refined(root, {leaf: [(axis, None)] for leaf in leaves(root)})
        root = rows.layout.trimmed(split_along_lines(root))
        space = slice(len(rows.problem.domain.space))
        while long := {
            leaf: [(int(leaf.size[space].argmax()), None)]
            for leaf in leaves(root)
            if not len(leaf.folds)
            and leaf.size[space].max(initial=0.0) > _SLENDER * leaf.size[space].min(initial=np.inf)
        }:
            root = refined(root, long)
            if len(leaves(root)) > _FEWEST_CELLS:
                break
        root = split_at_planes(root)
    cells = budget * RATE / (PER_CELL + _PER_WEIGHT * rows.width**3)
    most, waves = (max(_FEWEST_CELLS, int(share * cells)) for share in (_DATA_BUDGET, _WAVE_BUDGET))
    root = graded(root, *rows.layout.ground.hollows, most)
    return rows.layout.trimmed(follower.followed(follower.waved(root, tol, waves), tol, most))


def solve_cells(
    problem: Problem, tol: float, budget: Budget | float, seed: int, report: Callable[..., None], **limits: Any
) -> Solution:
    """Solve a linear problem in one to three coordinates by cells."""
    return attempt_cells(problem, tol, budget, seed, report, **limits)[0]


def attempt_cells(
    problem: Problem,
    tol: float,
    budget: Budget | float,
    seed: int,
    report: Callable[..., None],
    *,
    undetermined: float = _UNDETERMINED,
    nodes: Cells = SINES,
) -> tuple[Solution, Linear]:
    """Return a solution with what solved it last, which knows the domain and its cells."""
    d = len(problem.domain.coordinates)
    rows = Rows(Layout(problem, draw_reference(d, degree_for(d, tol), seed, nodes), seed))
    linear = Linear(Glue(rows))
    follower = Follower(rows)
    shared = Budget.of(budget)
    loop = Loop(linear, tol, shared, seed, report, follower, undetermined)
    try:
        solution = loop.run(linear.fit(first_tree(follower, tol, budget=shared.left), None))
        return solution, cast(Linear, loop.fitter)
    finally:
        shared.spend(loop.flops)
