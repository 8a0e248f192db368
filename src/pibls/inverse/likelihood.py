"""Whether data limit a number as the linearised problem says: others, however far away, may fit as well."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pibls.checks import FloatArray
from pibls.inverse.descent import Descent, place_at, search
from pibls.inverse.measurements import Measurements
from pibls.inverse.thresholds import SETTINGS
from pibls.refinement.standards import MOST, NEGLIGIBLE


@dataclass(frozen=True, eq=False)
class LikelihoodProfile:
    """The end of a search, and how uncertain coordinates are there."""

    measurements: Measurements
    found: Descent
    covariance: FloatArray

    def farthest(self) -> tuple[Descent, set[tuple[int, float]]]:
        """Return a place out of all proportion that explains data as well as the end of the search, or that end.

        Of u′ = −V u/(K + u) with small u, every large K with its V is one: what is not determined shows there. Numbers
        that are known well enough, but for data that do not limit them on one side, come with that side.
        """
        numbers = len(self.measurements.parametric.problem.parameters)
        sizes = self.measurements.coordinates.sizes(self.found.place.point)[:numbers]
        shares = np.sqrt(np.diag(self.covariance)[:numbers]) / sizes
        sides: set[tuple[int, float]] = set()
        for number in np.flatnonzero((shares > SETTINGS.nonlinear) & (shares < SETTINGS.largest)).tolist():
            for sign in (1.0, -1.0):
                far = self._walked(number, sign * shares[number] * sizes[number], SETTINGS.largest * sizes[number])
                if far is not None and (shares[number] > MOST or (number, 1.0) in sides):
                    return far, set()
                if far is not None:
                    sides.add((number, sign))
        return self.found, sides

    def _walked(self, number: int, deviation: float, limit: float) -> Descent | None:
        """Hold a number farther and farther away and fit the others, as long as data do not mind."""
        place, course = self.found.place, self.covariance[:, number] / self.covariance[number, number]
        forward, coordinates = self.found.forward, self.measurements.coordinates
        weighed = self.measurements.weighed(place.residual)
        most = weighed.misfit(place) + (1.0 - NEGLIGIBLE) * SETTINGS.away**2
        here, step = self.found, SETTINGS.away * deviation
        while abs(here.place.point[number] - place.point[number]) < limit:
            target = here.place.point + step * course
            if not coordinates.low[number] <= target[number] <= coordinates.high[number]:
                return None
            held = replace(self.measurements, coordinates=coordinates.held(number, target, abs(deviation)))
            there = place_at(forward, self.measurements, target, here.place.response)
            if there is None or forward.is_spent:
                return None
            here = search(forward, held, there, rough=True, nearby=True)
            if weighed.misfit(here.place) > most:
                return None
            step *= 2.0
        return here
