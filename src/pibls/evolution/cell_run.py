"""One solution of an evolution on trees of cells, with steps by error or given ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.outcome import network_of
from pibls.cells.overlay import distances
from pibls.cells.solve import Fit
from pibls.checks import FloatArray, IntArray
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.cell_stages import CellStages, Step, side_by_side
from pibls.evolution.radau import left_out, times_within
from pibls.evolution.rational import ORDER
from pibls.refinement.standards import FALLS
from pibls.solution.evolved import pieces_of, piecewise
from pibls.solution.evolved_cells import EvolvedCells, EvolvedLegs
from pibls.solution.sizes import field_scales


@dataclass(frozen=True, eq=False)
class Leg:
    """Steps of a solution on one tree of cells."""

    stages: CellStages  # the tree
    breaks: FloatArray  # where steps begin and the last one ends
    pieces: FloatArray  # Legendre coefficients on each, shape (steps, degree + 1, parts, fields, functions)
    lasting: FloatArray  # for how long errors of each step last

    def fit(self, times: FloatArray) -> Fit:
        """Return the states at times side by side as the fields of one fit."""
        return self.stages.fit(side_by_side(piecewise(self.breaks, self.pieces, times)))

    @property
    def groups(self) -> list[Leg]:
        """Its groups of equal steps."""
        cuts = [0, *_changes(self.breaks), len(self.pieces)]
        return [
            Leg(self.stages, self.breaks[first : last + 1], self.pieces[first:last], self.lasting[first:last])
            for first, last in pairwise(cuts)
        ]

    @property
    def network(self) -> EvolvedCells:
        """The solution as a network."""
        series = side_by_side(self.pieces.reshape(-1, *self.pieces.shape[2:]))
        return EvolvedCells(network_of(self.stages.layout, self.stages.fit(series)), self.breaks, self.pieces.shape[3])


Plan = Sequence[tuple[CellStages, FloatArray]]
"""Trees one after the other, and the steps on each."""


@dataclass(frozen=True, eq=False)
class CellRun:
    """A solution on trees of cells, one after the other."""

    legs: tuple[Leg, ...]
    operations: float  # the work it took
    errors: FloatArray  # of each step, relative, as far as they last
    lapses: FloatArray  # a row for each step and each projection: when it ends, its relative error, how long that lasts
    ended: str = ""  # why it ends before the last time, if it does

    @property
    def breaks(self) -> FloatArray:
        """Where steps begin and the last one ends."""
        return np.concatenate([self.legs[0].breaks[:1], *(leg.breaks[1:] for leg in self.legs)])

    @property
    def drift(self) -> float:
        """The error of all steps and projections, over the whole time; those that are there at once add up."""
        return root_mean_square_of(self.lapses, float(self.breaks[0]), float(self.breaks[-1]))

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.errors)

    @property
    def largest(self) -> CellStages:
        """The tree with the most cells."""
        return max((leg.stages for leg in self.legs), key=lambda stages: len(stages.parts))

    @property
    def share_of_factors(self) -> float:
        """Share of factors in the work."""
        works = np.array([own.works for own in {leg.stages: None for leg in self.legs}]).sum(axis=0)
        return float(works[0] / works.sum())

    @property
    def memory(self) -> float:
        """Bytes held by factors at once."""
        return max(leg.stages.memory for leg in self.legs)

    @property
    def unknowns(self) -> int:
        """Largest number of weights at one time."""
        return max(int(np.prod(leg.pieces.shape[2:])) for leg in self.legs)

    @property
    def network(self) -> EvolvedCells | EvolvedLegs:
        """The solution as a network."""
        own = tuple(leg.network for leg in self.legs)
        return own[0] if len(own) == 1 else EvolvedLegs(own)

    def sample(self) -> tuple[FloatArray, FloatArray]:
        """Return some times, and the share of each in the whole time."""
        breaks = self.breaks
        times, spans = times_within(breaks, float(breaks[0]), float(breaks[-1]))
        return times, spans / spans.sum()

    def numbers(self, times: FloatArray) -> IntArray:
        """Return the number of the leg that each time is in."""
        return pieces_of(np.array([leg.breaks[0] for leg in self.legs] + [self.legs[-1].breaks[-1]]), times)

    def plan(self, factor: float, enriched: int = 0) -> Plan:
        """Return the same trees with steps that are shorter by a factor, for cells of more or fewer degrees."""
        made: dict[int, CellStages] = {}
        layouts: dict[int, Layout] = {}
        for leg in self.legs:
            layout, own = leg.stages.layout, leg.stages
            if enriched and id(layout) not in layouts:
                layouts[id(layout)] = layout.enriched(enriched)
            made[id(own)] = own.on(layouts.get(id(layout), layout), own.root)
        return [(made[id(leg.stages)], shortened(leg.breaks, factor)) for leg in self.legs]


@dataclass(eq=False)
class _Following:
    """A run while it is made."""

    stages: CellStages

    def __post_init__(self) -> None:
        self.begun, (first, _) = self.stages.budget.operations, self.stages.resolvent.limits
        self.legs: list[Leg] = []
        self.states = self.stages.initial()
        self.reach = self.stages.sizes(self.states[:, 0])
        self.errors: list[float] = []
        self.lapses: list[tuple[float, float, float]] = []
        self._begin(first)

    def _begin(self, time: float) -> None:
        """Begin with the steps on a tree."""
        self.breaks, self.pieces, self.shares = [time], list[FloatArray](), list[float]()
        self._lasting: dict[float, float] = {}

    def enter(self, stages: CellStages) -> None:
        """Go on with another tree: the solution is projected on its functions."""
        if stages is self.stages:
            return
        self._leave()
        self.states, missed = stages.projected(self.stages, self.states)
        error = float((missed / stages.scales(self.reach))[stages.moving].max())
        self.lapses.append((self.breaks[-1], error, self.shares[-1]))
        self.stages.release()
        self.stages = stages
        self._begin(self.breaks[-1])

    def _leave(self) -> None:
        """Keep the steps on a tree."""
        if self.pieces:
            pieces, lasting = np.array(self.pieces), np.array(self.shares)
            self.legs.append(Leg(self.stages, np.array(self.breaks), pieces, lasting))

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

    def accept(self, step: Step, h: float, until: float, error: float) -> None:
        """Go on to the end of a step."""
        if h not in self._lasting:
            self._lasting[h] = self.stages.lasting(h, step)
        self.errors.append(error)
        self.lapses.append((until - h, self.error(step) if np.isfinite(error) else error, self._lasting[h]))
        self.states, self.reach = step.end, np.maximum(self.reach, self.stages.sizes(step.end[:, 0]))
        self.breaks.append(until)
        self.pieces.append(step.series)
        self.shares.append(self._lasting[h])

    @property
    def is_boundless(self) -> bool:
        """Whether the solution is so large that squares might soon be no numbers any more."""
        return not bool((self.reach < np.finfo(np.float64).max ** 0.25).all())

    def run(self, *, ended: str = "") -> CellRun:
        """Return the run as far as it was made, and why it ends there."""
        if not self.pieces and not self.legs:
            # A rough solution is better than none.
            first, last = self.stages.resolvent.limits
            self.accept(self.stages.rough(first, last - first, self.states), last - first, last, np.inf)
        self._leave()
        work = self.stages.budget.operations - self.begun
        return CellRun(tuple(self.legs), work, np.array(self.errors), np.array(self.lapses), ended)


def follow(plan: Sequence[tuple[CellStages, float]], h: float) -> CellRun:
    """Follow an evolution on trees until the given times, by steps as long as the tolerance allows.

    The first step is about as long as given.
    """
    course = _Following(plan[0][0])
    for stages, until in plan:
        course.enter(stages)
        h, ended = _followed(course, until, h)
        if ended:
            return course.run(ended=ended)
    return course.run()


def _followed(course: _Following, last: float, h: float) -> tuple[float, str]:
    """Follow an evolution on one tree; return the length of the next step, and why it ends before the given time."""
    stages, time, failed = course.stages, course.breaks[-1], (np.inf, np.inf)
    lost, longer = 0.0, h  # work of steps of this length that longer ones would have saved
    h = (last - time) / math.ceil((last - time) / h)
    while time < last:
        if h < SETTINGS.cut * float(np.ptp(stages.resolvent.limits)):
            return h, f"steps become shorter and shorter near t = {time:.4g}"
        if not stages.affords(h):
            return h, f"the work was spent near t = {time:.4g}"
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
        course.accept(step, h, time, lasting)
        if course.is_boundless:
            return h, f"the solution grows beyond all bounds near t = {time:.4g}"
        steps = math.ceil((last - time) / longer)
        lost += max(1.0 - h / longer, 0.0) * stages.step_work
        # Longer steps need factors of their own, which must pay. If they soon could be longer still, waiting pays, too.
        if min(lost, (left - steps) * stages.step_work) > stages.factor_work:
            h, lost = (last - time) / steps, 0.0
    return longer, ""


def wanted(h: float, error: float, failed: tuple[float, float] = (np.inf, np.inf)) -> float:
    """Return the length of a step whose error is one, from the error of this length and that of one that failed."""
    order = ORDER + 1.0
    if 1.0 < error < failed[1] < np.inf:
        # Near a sudden start errors fall slowly with the length.
        order = min(math.log(failed[1] / error) / math.log(failed[0] / h), order)
    most = SETTINGS.growth**2
    return h * float(np.clip(FALLS * max(error, 1e-300) ** (-1.0 / order), 1.0 / most**2, most))


def along(plan: Plan) -> CellRun:
    """Follow an evolution on given trees by given steps."""
    course = _Following(plan[0][0])
    for stages, breaks in plan:
        course.enter(stages)
        for start, until in pairwise(breaks.tolist()):
            # Steps of a group are equal up to rounding, and share factors.
            h = float(f"{until - start:.12g}")
            if not stages.affords(h):
                return course.run(ended=f"the work was spent near t = {start:.4g}")
            step = stages.step(start, h, course.states)
            if step is None:
                return course.run(ended=f"no step converges near t = {start:.4g}")
            course.accept(step, h, until, course.lasting_error(step, h)[0])
            if course.is_boundless:
                return course.run(ended=f"the solution grows beyond all bounds near t = {until:.4g}")
    return course.run()


def _changes(breaks: FloatArray) -> list[int]:
    """Return the numbers of the steps before which their length changes."""
    lengths = np.diff(breaks)
    changed = np.abs(np.diff(lengths)) > SETTINGS.cut * (breaks[-1] - breaks[0])
    return (np.flatnonzero(changed) + 1).tolist()


def shortened(breaks: FloatArray, factor: float) -> FloatArray:
    """Return steps that are shorter by a factor at least: as many equal ones for every group of equal steps.

    >>> shortened(np.array([0.0, 1.0, 2.0, 6.0]), 1.5).tolist()
    [0.0, 0.6666666666666666, 1.3333333333333333, 2.0, 4.0, 6.0]
    """
    ends = [0, *_changes(breaks), len(breaks) - 1]
    found = [breaks[:1]]
    for first, last in pairwise(ends):
        found.append(np.linspace(breaks[first], breaks[last], math.ceil(factor * (last - first)) + 1)[1:])
    return np.concatenate(found)


def root_mean_square_of(lapses: FloatArray, first: float, last: float) -> float:
    """Return the root mean square over time of errors that begin, last for a while, and add up as long as they do.

    >>> errors = np.array([[0.0, 1.0, 1.0], [0.0, 1.0, 2.0], [3.0, 4.0, np.inf]])
    >>> bool(root_mean_square_of(errors, 0.0, 4.0) == np.sqrt((2.0**2 + 1.0**2 + 4.0**2) / 4.0))
    True
    """
    begins, ends = lapses[:, 0], np.minimum(lapses[:, 0] + lapses[:, 2], last)
    times = np.unique(np.concatenate([[first, last], begins, ends]))
    there = (begins <= times[:-1, None]) & (ends > times[:-1, None])
    sums = np.where(there, lapses[:, 1], 0.0).sum(axis=1)
    return float(np.sqrt(np.square(sums) @ np.diff(times) / (last - first)))


def apart(coarse: CellRun, fine: CellRun) -> FloatArray:
    """Return the relative L2 distance of each field of two solutions, over space and time."""
    times, shares = fine.sample()
    legs = np.stack([coarse.numbers(times), fine.numbers(times)], axis=1)
    squares = np.zeros((2, fine.legs[0].pieces.shape[3]))
    for one, two in np.unique(legs, axis=0).tolist():
        own = (legs == (one, two)).all(axis=1)
        before, after = coarse.legs[one], fine.legs[two]
        fits = before.fit(times[own]), after.fit(times[own])
        found = distances(before.stages.layout, fits[0], after.stages.layout, fits[1])
        squares += np.array([shares[own] @ np.square(values.reshape(own.sum(), -1)) for values in found[:2]])
    errors, sizes = np.sqrt(squares)
    return np.asarray(errors / field_scales(fine.legs[0].stages.resolvent.problem, sizes))
