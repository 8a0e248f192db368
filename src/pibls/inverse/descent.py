"""Gauss–Newton steps for the unknowns, damped where the model is not to be trusted.

Every step compares what a solution predicts with what was measured. Rows are in units of the noise, and a prior has
rows of its own, so that half the square sum of all rows is the negative logarithm of the posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.inverse.measurements import Measurements
from pibls.inverse.response import Forward
from pibls.inverse.unknowns import Coordinates

__all__ = ["Descent", "Place", "descend", "place_at", "step_from"]

_STEPS = 25
_ENOUGH = 1e-6  # squared length of a step, in standard deviations, that changes nothing
_CHANCE = 9.0  # square of the standard deviations that chance may make up
_FITS = 1e-6  # square of residuals, by that of the noise, that are better than data deserve
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-3, 1e-6, 1e9  # below the least, none
_LONGEST = 1.5  # logarithms change by no more in a step, and others by no more than twice as many scales
_FARTHER, _FORETOLD = 10.0, 0.1  # steps may be so many times as long after one that gained what was promised, nearly
_LEAST_CURVATURE = 1e-6  # of the largest, that damping acts as if every unknown had


@dataclass(frozen=True, eq=False)
class Place:
    """Values of the unknowns with all that follows from them.

    Attributes
    ----------
    point
        The unknowns, in coordinates.
    response
        The solution there, and its answers.
    lacking
        Predictions less measurements.
    slopes
        Derivative of the predictions by the coordinates.
    """

    point: FloatArray
    response: Any
    lacking: FloatArray
    slopes: FloatArray

    def corrected(self, before: Place) -> Place:
        """Return the place with slopes that would have foretold it from the place before (Broyden's update)."""
        step = self.point - before.point
        missed = self.lacking - before.lacking - before.slopes @ step
        return replace(self, slopes=before.slopes + np.outer(missed, step) / max(float(step @ step), 1e-300))


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a search ended.

    Attributes
    ----------
    place
        The best place.
    misfit
        Square sum of all rows there.
    settled
        Whether more steps would not change it.
    """

    place: Place
    misfit: float
    settled: bool


def descend(
    forward: Forward,
    measurements: Measurements,
    coordinates: Coordinates,
    here: Place,
    *,
    rough: bool = False,
    nearby: bool = False,
) -> Descent:
    """Search from a place, which may be known to be near the end.

    A ``rough`` search ends where steps change less than solutions are wrong by.
    """
    damping, reach, last, settled = 0.0 if nearby else _FIRST_DAMPING, 1.0, 0.0, False
    for _ in range(_STEPS):
        weighed = measurements.weighed(here.lacking)
        rows, right = weighed.rows(here, coordinates)
        fits = float(right @ right) <= _FITS * len(right)
        whole = step_from(rows, right, 0.0, here, coordinates)
        hopeful = whole.is_hopeful(last)
        idle = whole.promised <= _ENOUGH and not hopeful
        if fits or idle or (rough and measurements.within_error(here.slopes @ whole.full)):
            settled = True
            break
        found = None
        while damping < _MOST_DAMPING:
            step = step_from(rows, right, damping, here, coordinates, reach)
            if step.promised <= _ENOUGH * 1e-3 and not hopeful:
                break
            target = np.clip(here.point + step.taken, coordinates.low, coordinates.high)
            there = place_at(forward, measurements, coordinates, target, here.response)
            if there is not None and there.response.is_aged:
                there = there.corrected(here)
            gained = np.inf if there is None else weighed.misfit(there, coordinates) - weighed.misfit(here, coordinates)
            if there is not None and gained < 0:
                found = there
                damping /= 10.0 if -gained > 0.5 * step.promised else 1.5
                damping = damping if damping >= _LEAST_DAMPING else 0.0
                reach = _FARTHER * reach if abs(gained / step.promised + 1.0) < _FORETOLD else 1.0
                break
            if measurements.within_error(here.slopes @ step.full):
                # Not the model of the step is wrong: solutions are not smoother than that.
                break
            if here.response.is_aged:
                # Old answers may be what is wrong: make new ones before steps become shorter.
                found = place_at(forward, measurements, coordinates, here.point, None)
                break
            damping, reach, hopeful = max(8.0 * damping, _LEAST_DAMPING), 1.0, False
        if found is None:
            settled = True
            break
        here, last = found, whole.promised
        if forward.is_spent:
            break
    return Descent(here, measurements.weighed(here.lacking).misfit(here, coordinates), settled)


def place_at(
    forward: Forward, measurements: Measurements, coordinates: Coordinates, point: FloatArray, near: Any
) -> Place | None:
    """Return what follows from the unknowns, or nothing where the problem cannot be solved."""
    vector = coordinates.vector(point)
    if not np.isfinite(vector).all():
        return None
    try:
        # What overflows at unknowns that are far off is no place to be.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            response = forward.respond(vector, near)
            lacking, slopes = measurements.compared(response, vector)
    except (PiblsError, np.linalg.LinAlgError, FloatingPointError):
        return None
    if not (np.isfinite(lacking).all() and np.isfinite(slopes).all()):
        return None
    return Place(point, response, lacking, slopes * coordinates.rates(point))


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
        return self.hoped > min(_CHANCE, 0.5 * self.misfit) and self.promised > 2.0 * before


def step_from(
    rows: FloatArray, right: FloatArray, damping: float, here: Place, coordinates: Coordinates, reach: float = 1.0
) -> _Step:
    """Return a damped step, taken no farther than the model is to be trusted: the more where it foretold the last."""
    sizes = np.linalg.norm(rows, axis=0)
    sizes = np.maximum(sizes, _LEAST_CURVATURE * max(float(sizes.max(initial=0.0)), 1e-300))
    scaled, own = rows / sizes, right
    if damping:
        scaled = np.vstack([scaled, np.sqrt(damping) * np.eye(len(sizes))])
        right = np.concatenate([right, np.zeros(len(sizes))])
    full = -np.linalg.lstsq(scaled, right, rcond=1e-12)[0] / sizes
    free = ~(((here.point <= coordinates.low) & (full < 0)) | ((here.point >= coordinates.high) & (full > 0)))
    full = np.where(free, full, 0.0)
    limits = np.where(coordinates.logarithmic, _LONGEST, 2.0 * reach * np.maximum(1.0, np.abs(here.point)))
    taken = full / max(1.0, float((np.abs(full) / limits).max(initial=0.0)))
    promised, hoped = (float(-2.0 * own @ change - change @ change) for change in (rows @ taken, rows @ full))
    return _Step(taken, full, promised, hoped, float(own @ own))
