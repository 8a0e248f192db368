"""How uncertain unknowns are where a search ended, and how they answer to errors of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from pibls.checks import FloatArray
from pibls.inverse.descent import Damping, Descent, Place, place_at, search
from pibls.inverse.measurements import Measurements, Weighed
from pibls.inverse.smoothness import spanned
from pibls.inverse.thresholds import SETTINGS
from pibls.quadrature.roots import ROUNDING
from pibls.refinement.standards import MOST, NEGLIGIBLE, SLIGHT

if TYPE_CHECKING:
    from pibls.inverse.answer import Answer


@dataclass(frozen=True, eq=False)
class Spread:
    """The linearised problem about the end of a search."""

    weighed: Weighed  # what was measured, and how noisy it is
    free: float  # how many unknowns the data determine
    covariance: FloatArray  # of the coordinates
    gain: FloatArray  # by how much each coordinate moves with each of the data, shape (coordinates, data)

    @classmethod
    def of(cls, measurements: Measurements, place: Place) -> Spread:
        """Linearise about a place.

        Of a loss with outliers, the curvature is what determines the unknowns: a datum takes part in it with the
        probability that its true residual is not cut off. It pulls with a variance of its own all the same.
        """
        count = len(place.residual)
        rows = measurements.weighed(place.residual).rows(place)[0]
        free = float(np.square(rows[:count] @ _inverse_root(rows)).sum())
        weighed = measurements.weighed(place.residual, free)
        root = _inverse_root(weighed.rows(place)[0])
        plain = place.slopes / weighed.noise[:, None]
        say, pull = np.ones(count), np.ones(count)
        if measurements.robust.any():
            scaled = place.residual / weighed.noise
            say = np.where(measurements.robust, _say(scaled, np.linalg.norm(plain @ root, axis=1)), 1.0)
            pull = _pull(measurements, scaled, free)
            root = _inverse_root(np.vstack([plain * np.sqrt(say)[:, None], weighed.prior(place.point)[0]]))
        seen = plain @ root
        # Directions that no row sees stay as open as they are.
        middle = np.eye(root.shape[1]) + (seen.T * (pull - say)) @ seen
        gain = root @ (seen.T * (say / weighed.noise))
        return cls(weighed, free, np.asarray(root @ middle @ root.T), np.asarray(gain))


def _inverse_root(rows: FloatArray) -> FloatArray:
    """Return R⁻¹ of the rows, with next to nothing in the place of directions that they do not see."""
    sizes = np.linalg.norm(rows, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    padded = np.vstack([rows / sizes, ROUNDING * np.eye(len(sizes))])
    upper = np.linalg.qr(padded, mode="r")
    return np.asarray(solve_triangular(upper, np.eye(len(sizes))) / sizes[:, None])


def _say(scaled: FloatArray, doubt: FloatArray) -> FloatArray:
    """Return how probably residuals are not cut off, if predictions are as doubtful as that, in units of the noise.

    >>> _say(np.array([0.0, SETTINGS.huber, 20.0]), np.array([0.1, 0.1, 0.1])).tolist()
    [1.0, 0.5, 0.01]
    """
    return np.asarray(np.maximum(ndtr((SETTINGS.huber - np.abs(scaled)) / np.maximum(doubt, 1e-300)), SLIGHT))


def _pull(measurements: Measurements, scaled: FloatArray, free: float) -> FloatArray:
    """Return the mean square of residuals with outliers cut off, set by set: not less than that of normal noise."""
    cut = SETTINGS.huber
    # The mean square of normal noise that is cut off.
    normal = 1.0 + 2.0 * ((cut**2 - 1.0) * ndtr(-cut) - cut * np.exp(-(cut**2) / 2.0) / np.sqrt(2.0 * np.pi))
    found = np.ones(len(scaled))
    share = max(1.0 - free / len(scaled), 1.0 / len(scaled))
    for span in measurements.spans:
        if measurements.robust[span].any():
            mean = float(np.mean(np.square(np.clip(scaled[span], -cut, cut))))
            found[span] = max(mean / share, normal)
    return found


def farthest(answer: Answer) -> tuple[Descent, set[tuple[int, float]]]:
    """Return a place out of all proportion that explains data as well as the end of a search, or that end.

    Of u′ = −V u/(K + u) with small u, every large K with its V is one: what is not determined shows there. So it does
    where noise happens to favour one end of k ρ = 1 a little. The number that is known least is looked at, and all that
    are hardly known. Those that are known well enough, but for data that do not limit them on one side, come with it.
    """
    numbers = len(answer.measurements.parametric.problem.parameters)
    sizes = answer.coordinates.sizes(answer.found.place.point)[:numbers]
    shares = np.sqrt(np.diag(answer.covariance)[:numbers]) / sizes
    sides: set[tuple[int, float]] = set()
    least = min(SETTINGS.nonlinear, max(float(shares.max(initial=0.0)), SLIGHT))
    for number in np.flatnonzero((shares >= least) & (shares < SETTINGS.largest)).tolist():
        for sign in (1.0, -1.0):
            far = _walked(answer, number, sign * shares[number] * sizes[number], SETTINGS.largest * sizes[number])
            if far is None:
                continue
            moved = np.abs(far.place.point - answer.found.place.point)[:numbers] / sizes
            together = np.count_nonzero(moved > SETTINGS.sure * shares) > 1
            if together or shares[number] > MOST or (number, 1.0) in sides:
                return far, set()
            sides.add((number, sign))
    return answer.found, sides


def _walked(answer: Answer, number: int, deviation: float, limit: float) -> Descent | None:
    """Hold a number farther and farther away and fit the others, as long as data do not mind.

    The way ends where data see nothing of the number any more.
    """
    place, course = answer.found.place, answer.covariance[:, number] / answer.covariance[number, number]
    forward, measurements, coordinates = answer.forward, answer.measurements, answer.coordinates
    weighed = measurements.weighed(place.residual)
    most = weighed.misfit(place) + (1.0 - NEGLIGIBLE) * SETTINGS.away**2
    here, step = answer.found, SETTINGS.away * deviation
    while abs(here.place.point[number] - place.point[number]) < limit:
        target = here.place.point + step * course
        if not coordinates.low[number] <= target[number] <= coordinates.high[number]:
            return None
        held = replace(measurements, coordinates=coordinates.held(number, target, abs(deviation)))
        there = place_at(forward, measurements, target, here.place.response)
        if there is None or forward.is_spent:
            return None
        here = search(forward, held, there, rough=True, nearby=True, rule=Damping(enough=NEGLIGIBLE))
        if weighed.misfit(here.place) > most:
            return None
        if _seen(weighed, here.place, number) * coordinates.sizes(here.place.point)[number] < 1.0 / SETTINGS.largest:
            return here
        step *= 2.0
    return here


def _seen(weighed: Weighed, place: Place, number: int) -> float:
    """Return the change of data with a number, as far as others cannot make up for it, in units of the noise."""
    rows = weighed.rows(place)[0]
    others = spanned(np.delete(rows, number, axis=1))
    return float(np.linalg.norm(rows[:, number] - others @ (others.T @ rows[:, number])))
