"""One solution of an evolution on one tree of cells, with steps by error or given ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pibls.cells.outcome import network_of
from pibls.cells.overlay import distances
from pibls.cells.solve import Fit
from pibls.checks import FloatArray
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.cell_stages import CellStages, Step, side_by_side
from pibls.evolution.radau import left_out, times_within
from pibls.evolution.rational import ORDER
from pibls.refinement.standards import FALLS
from pibls.solution.evolved import piecewise
from pibls.solution.evolved_cells import EvolvedCells
from pibls.solution.sizes import field_scales


@dataclass(frozen=True, eq=False)
class CellRun:
    """A solution on one tree of cells."""

    stages: CellStages  # the tree with its factors
    breaks: FloatArray  # where steps begin and the last one ends
    pieces: FloatArray  # Legendre coefficients on each, shape (steps, degree + 1, parts, fields, functions)
    operations: float  # the work it took
    errors: FloatArray  # of each step, relative, as far as they last
    ended: str = ""  # why it ends before the last time, if it does

    def fit(self, times: FloatArray) -> Fit:
        """Return the states at times side by side as the fields of one fit."""
        return self.stages.fit(side_by_side(piecewise(self.breaks, self.pieces, times)))

    @property
    def drift(self) -> float:
        """The sum of the errors of all steps."""
        return float(self.errors.sum())

    @property
    def unknowns(self) -> int:
        """Number of weights at one time."""
        return int(np.prod(self.pieces.shape[2:]))

    @property
    def network(self) -> EvolvedCells:
        """The solution as a network."""
        series = side_by_side(self.pieces.reshape(-1, *self.pieces.shape[2:]))
        return EvolvedCells(network_of(self.stages.layout, self.stages.fit(series)), self.breaks, self.pieces.shape[3])

    def sample(self) -> tuple[FloatArray, FloatArray]:
        """Return some times, and the share of each in the whole time."""
        times, spans = times_within(self.breaks, float(self.breaks[0]), float(self.breaks[-1]))
        return times, spans / spans.sum()


@dataclass(eq=False)
class _Following:
    """A run while it is made."""

    stages: CellStages

    def __post_init__(self) -> None:
        self.begun, self.breaks = self.stages.budget.operations, [self.stages.resolvent.limits[0]]
        self.pieces: list[FloatArray] = []
        self.states = self.stages.initial()
        self.reach = self.stages.sizes(self.states[:, 0])
        self.errors: list[float] = []

    def error(self, step: Step) -> float:
        """Return the relative error at the end of a step."""
        reach, moving = np.maximum(self.reach, self.stages.sizes(step.end[:, 0])), self.stages.moving
        return float((left_out(step.terms) / self.stages.scales(reach))[moving].max())

    def lasting_error(self, step: Step, h: float) -> tuple[float, float]:
        """Return the relative error of a step over the time that is left, and the share of that which it lasts."""
        error, (first, last) = self.error(step), self.stages.resolvent.limits
        if error <= self.stages.tol:
            return error, 1.0
        share = math.sqrt(min(self.stages.lasting(h, step) / (last - first), 1.0))
        return error * share, share

    def accept(self, step: Step, until: float, error: float) -> None:
        """Go on to the end of a step."""
        self.errors.append(error)
        self.states, self.reach = step.end, np.maximum(self.reach, self.stages.sizes(step.end[:, 0]))
        self.breaks.append(until)
        self.pieces.append(step.series)

    @property
    def is_boundless(self) -> bool:
        """Whether the solution is so large that squares might soon be no numbers any more."""
        return not bool((self.reach < np.finfo(np.float64).max ** 0.25).all())

    def run(self, *, ended: str = "") -> CellRun:
        """Return the run as far as it was made, and why it ends there."""
        if not self.pieces:
            # A rough solution is better than none.
            first, last = self.stages.resolvent.limits
            self.accept(self.stages.rough(first, last - first, self.states), last, np.inf)
        work = self.stages.budget.operations - self.begun
        return CellRun(self.stages, np.array(self.breaks), np.array(self.pieces), work, np.array(self.errors), ended)


def follow(stages: CellStages, h: float) -> CellRun:
    """Follow an evolution by steps as long as the tolerance allows, the first of about a given length."""
    course, (time, last), failed = _Following(stages), stages.resolvent.limits, (np.inf, np.inf)
    lost = 0.0  # work of steps of this length that longer ones would have saved
    h = (last - time) / math.ceil((last - time) / h)
    while time < last:
        if h < SETTINGS.cut * (last - stages.resolvent.limits[0]):
            return course.run(ended=f"steps become shorter and shorter near t = {time:.4g}")
        if not stages.affords(h):
            return course.run(ended=f"the work was spent near t = {time:.4g}")
        step = stages.step(time, h, course.states)
        if step is None:
            h = (last - time) / (2 * round((last - time) / h))
            continue
        lasting, share = course.lasting_error(step, h)
        # Steps need not be more accurate than cells are.
        error = lasting / max(stages.tol, share * stages.unresolved(step.end))
        longer = wanted(h, error, failed)
        # An error that shorter steps do not lower is that of cells.
        if 1.0 < error < FALLS * failed[1]:
            h, failed, lost = (last - time) / math.ceil((last - time) / min(longer, h / 2)), (h, error), 0.0
            continue
        left = round((last - time) / h) - 1
        time, failed = (time + h if left else last), (np.inf, np.inf)
        course.accept(step, time, lasting)
        if course.is_boundless:
            return course.run(ended=f"the solution grows beyond all bounds near t = {time:.4g}")
        steps = math.ceil((last - time) / longer)
        lost += max(1.0 - h / longer, 0.0) * stages.step_work
        # Longer steps need factors of their own, which must pay. If they soon could be longer still, waiting pays, too.
        if min(lost, (left - steps) * stages.step_work) > stages.factor_work:
            h, lost = (last - time) / steps, 0.0
    return course.run()


def wanted(h: float, error: float, failed: tuple[float, float] = (np.inf, np.inf)) -> float:
    """Return the length of a step whose error is one, from the error of this length and that of one that failed."""
    order = ORDER + 1.0
    if 1.0 < error < failed[1] < np.inf:
        # Near a sudden start errors fall slowly with the length.
        order = min(math.log(failed[1] / error) / math.log(failed[0] / h), order)
    most = SETTINGS.growth**2
    return h * float(np.clip(FALLS * max(error, 1e-300) ** (-1.0 / order), 1.0 / most**2, most))


def along(stages: CellStages, breaks: FloatArray) -> CellRun:
    """Follow an evolution by given steps."""
    course = _Following(stages)
    for start, until in pairwise(breaks.tolist()):
        # Steps of a group are equal up to rounding, and share factors.
        h = float(f"{until - start:.12g}")
        if not stages.affords(h):
            return course.run(ended=f"the work was spent near t = {start:.4g}")
        step = stages.step(start, h, course.states)
        if step is None:
            return course.run(ended=f"no step converges near t = {start:.4g}")
        course.accept(step, until, course.lasting_error(step, h)[0])
        if course.is_boundless:
            return course.run(ended=f"the solution grows beyond all bounds near t = {until:.4g}")
    return course.run()


def shortened(breaks: FloatArray, factor: float) -> FloatArray:
    """Return steps that are shorter by a factor at least: as many equal ones for every group of equal steps.

    >>> shortened(np.array([0.0, 1.0, 2.0, 6.0]), 1.5).tolist()
    [0.0, 0.6666666666666666, 1.3333333333333333, 2.0, 4.0, 6.0]
    """
    lengths = np.diff(breaks)
    groups = np.flatnonzero(np.abs(np.diff(lengths)) > SETTINGS.cut * (breaks[-1] - breaks[0])) + 1
    ends = [0, *groups.tolist(), len(lengths)]
    found = [breaks[:1]]
    for first, last in pairwise(ends):
        found.append(np.linspace(breaks[first], breaks[last], math.ceil(factor * (last - first)) + 1)[1:])
    return np.concatenate(found)


def apart(coarse: CellRun, fine: CellRun) -> FloatArray:
    """Return the relative L2 distance of each field of two solutions, over space and time."""
    times, shares = fine.sample()
    one, two = coarse.fit(times), fine.fit(times)
    gaps, sizes, _ = distances(coarse.stages.layout, one, fine.stages.layout, two)
    errors, own = (np.sqrt(shares @ np.square(values.reshape(len(times), -1))) for values in (gaps, sizes))
    return np.asarray(errors / field_scales(coarse.stages.resolvent.problem, own))
