"""Gauss–Newton steps for the unknowns, damped where the model is not to be trusted.

Every step compares what a solution predicts with what was measured. Rows are in units of the noise, and a prior has
rows of its own, so that half the square sum of all rows is the negative logarithm of the posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.inverse.measurements import Measurements, Weighed
from pibls.inverse.response import Forward
from pibls.inverse.thresholds import SETTINGS
from pibls.newton import End, descend
from pibls.refinement.standards import NEGLIGIBLE, SLIGHT


@dataclass(frozen=True, eq=False)
class Place:
    """Values of the unknowns with all that follows from them."""

    point: FloatArray  # the unknowns, in coordinates
    response: Any  # the solution there, and its sensitivities
    residual: FloatArray  # predictions less measurements
    slopes: FloatArray  # derivative of the predictions by the coordinates

    def corrected(self, before: Place) -> Place:
        """Return the place with slopes that would have foretold it from the place before (Broyden's update)."""
        step = self.point - before.point
        missed = self.residual - before.residual - before.slopes @ step
        return replace(self, slopes=before.slopes + np.outer(missed, step) / max(float(step @ step), 1e-300))


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a search ended."""

    forward: Forward  # the cells or features that solutions were made with
    place: Place  # the best place
    settled: bool  # whether more steps would not change it


def place_at(forward: Forward, measurements: Measurements, point: FloatArray, near: Any) -> Place | None:
    """Solve at a point; return the place, or None where the problem cannot be solved."""
    coordinates = measurements.coordinates
    vector = coordinates.vector(point)
    if not np.isfinite(vector).all():
        return None
    try:
        # What overflows at unknowns that are far off is no place to be.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            response = forward.respond(vector, near)
            residual, slopes = measurements.compared(response, vector)
    except (PiblsError, np.linalg.LinAlgError, FloatingPointError):
        return None
    if not (np.isfinite(residual).all() and np.isfinite(slopes).all()):
        return None
    return Place(point, response, residual, slopes * coordinates.rates(point))


@dataclass(frozen=True, eq=False)
class _Step:
    """A step as it is taken and in full length, and by how much these should lower the square sum."""

    taken: FloatArray
    full: FloatArray
    promised: float
    hoped: float
    misfit: float

    def is_hopeful(self, before: float) -> bool:
        """Tell whether steps in full length would gain more than chance does, and more than the step before promised.

        Where data are far off, steps that are short for a start gain next to nothing, but more and more.
        """
        return self.hoped > min(SETTINGS.sure**2, 0.5 * self.misfit) and self.promised > 2.0 * before


def step_from(
    rows: FloatArray, right: FloatArray, damping: float, here: Place, measurements: Measurements, reach: float = 1.0
) -> _Step:
    """Return a damped step, no part of which is longer than the model is to be trusted: more if it foretold the last.

    It leaves directions alone that only errors of the sensitivities make visible.
    """
    coordinates, count = measurements.coordinates, len(here.point)
    sizes = np.linalg.norm(rows, axis=0)
    sizes = np.maximum(sizes, SETTINGS.coarse * max(float(sizes.max(initial=0.0)), 1e-300))
    scaled = np.vstack([rows / sizes, np.sqrt(damping) * np.eye(count)])
    target = np.concatenate([right, np.zeros(count)])
    longest = np.where(coordinates.logarithmic, SETTINGS.longest, 2.0 * reach * np.maximum(1.0, np.abs(here.point)))
    low, high = coordinates.low - here.point, coordinates.high - here.point
    full = _limited(
        scaled, target, np.where(low < 0, -np.inf, 0.0), np.where(high > 0, np.inf, 0.0), measurements.wrong
    )
    taken = _limited(
        scaled, target, sizes * np.maximum(low, -longest), sizes * np.minimum(high, longest), measurements.wrong
    )
    full, taken = full / sizes, taken / sizes
    promised, hoped = (float(-2.0 * right @ change - change @ change) for change in (rows @ taken, rows @ full))
    return _Step(taken, full, promised, hoped, float(right @ right))


def _limited(rows: FloatArray, right: FloatArray, low: FloatArray, high: FloatArray, wrong: float) -> FloatArray:
    """Return a step of least squares between limits: a part that is beyond ends there, and others make up for it.

    >>> _limited(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([-4.0, -1.0]), np.full(2, -1.0), np.ones(2), 1e-12)
    array([1., 0.])
    """
    step, free = np.zeros(len(low)), np.ones(len(low), dtype=bool)
    while free.any():
        rest = right + rows[:, ~free] @ step[~free]
        step[free] = -np.linalg.lstsq(rows[:, free], rest, rcond=wrong)[0]
        # How much of each part is beyond its limit.
        shares = np.where(free & (step != 0), 1.0 - np.clip(step, low, high) / np.where(step != 0, step, 1.0), 0.0)
        worst = int(np.argmax(shares))
        if shares[worst] <= 0:
            break
        step[worst], free[worst] = np.clip(step[worst], low[worst], high[worst]), False
    return step


@dataclass(frozen=True)
class Damping:
    """How steps are damped, and when they end."""

    steps: int = 25  # the most that are taken
    enough: float = 1e-6  # squared length of a step, in standard deviations, that changes nothing
    worse: float = 1.0  # times as large as before that the square sum may be after a step
    # first, least, most: damping of the first step from afar, the least there is beside none, and where a search gives
    # up
    first: float = 1e-3
    least: float = 1e-6
    most: float = 1e9


_USUAL = Damping()


class _Whole(NamedTuple):
    """The rows at a place, their residuals, and the step without damping."""

    weighed: Weighed
    rows: FloatArray
    right: FloatArray
    whole: _Step


@dataclass(eq=False)
class _Search:
    """Unknowns and measurements, as the target of an iteration."""

    forward: Forward
    measurements: Measurements
    rule: Damping
    rough: bool
    damping: float
    reach: float = 1.0
    last: float = 0.0  # promised by the step before

    def linearise(self, here: Place) -> _Whole:
        """Weigh measurements by the residuals at a place; solve for the step."""
        weighed = self.measurements.weighed(here.residual)
        rows, right = weighed.rows(here)
        return _Whole(weighed, rows, right, step_from(rows, right, 0.0, here, self.measurements))

    def settled(self, here: Place, model: _Whole) -> Place | None:
        """Return the place if data are met, or a step changes less than noise does or solutions are wrong by."""
        fits = float(model.right @ model.right) <= SLIGHT**2 * len(model.right)
        idle = model.whole.promised <= self.rule.enough and not model.whole.is_hopeful(self.last)
        rough = self.rough and self.measurements.within_error(here.slopes @ model.whole.full)
        return here if fits or idle or rough else None

    def step(self, here: Place, model: _Whole) -> Place | None:
        """Damp the step until the square sum falls."""
        hopeful, self.last = model.whole.is_hopeful(self.last), model.whole.promised
        before = model.weighed.misfit(here)
        while self.damping < self.rule.most:
            step = step_from(model.rows, model.right, self.damping, here, self.measurements, self.reach)
            if step.promised <= self.rule.enough * SLIGHT and not hopeful:
                return None
            there = self._trial(here, step)
            after = np.inf if there is None else model.weighed.misfit(there)
            if after < self.rule.worse * before:
                foretold = abs((before - after) / step.promised - 1.0) < NEGLIGIBLE
                self.damping /= 10.0 if before - after > 0.5 * step.promised else 1.5
                self.damping = self.damping if self.damping >= self.rule.least and not foretold else 0.0
                self.reach = self.reach / NEGLIGIBLE if foretold else 1.0
                return there
            if self.measurements.within_error(here.slopes @ step.full):
                # Not the model of the step is wrong: solutions are not smoother than that.
                return None
            if here.response.is_aged:
                # Old sensitivities may be what is wrong: make new ones before steps become shorter.
                return place_at(self.forward, self.measurements, here.point, None)
            self.damping, self.reach, hopeful = max(8.0 * self.damping, self.rule.least), 1.0, False
        return None

    def _trial(self, here: Place, step: _Step) -> Place | None:
        target = self.measurements.coordinates.within(here.point + step.taken)
        there = place_at(self.forward, self.measurements, target, here.response)
        return there.corrected(here) if there is not None and there.response.is_aged else there

    def judged(self, before: Place, model: _Whole, here: Place | None) -> End | None:
        """End where no step is better, or there is no more work to spend."""
        del before, model
        if here is None:
            return End.SETTLED if self.damping < self.rule.most else End.STAGNATED
        return End.UNFINISHED if self.forward.is_spent else None


def search(
    forward: Forward,
    measurements: Measurements,
    here: Place,
    *,
    rough: bool = False,
    nearby: bool = False,
    rule: Damping = _USUAL,
) -> Descent:
    """Search from a place, which may be known to be near the end.

    A ``rough`` search ends where steps change less than solutions are wrong by.
    """
    target = _Search(forward, measurements, rule, rough, 0.0 if nearby else rule.first)
    here, end = descend(target, here, rule.steps)
    return Descent(forward, here, end is End.SETTLED)


def best_of(
    starts: Iterable[FloatArray], tried: Callable[[FloatArray], Descent | None], misfit: Callable[[Descent], float]
) -> Descent | None:
    """Search from one start after another, until nothing is missed or no work is left; return the best end."""
    best, least = None, np.inf
    for start in starts:
        found = tried(start)
        if found is not None and (best is None or misfit(found) < least):
            best, least = found, misfit(found)
        if best is not None and (least == 0.0 or best.forward.is_spent):
            break
    return best
