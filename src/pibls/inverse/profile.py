"""Whether data limit a number as the linearised problem says: others, however far away, may fit as well."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pibls.checks import FloatArray
from pibls.inverse.descent import Descent, place_at, search
from pibls.inverse.measurements import Measurements
from pibls.inverse.response import Forward
from pibls.inverse.thresholds import SETTINGS
from pibls.inverse.unknowns import Coordinates

__all__ = ["Profile"]


@dataclass(frozen=True, eq=False)
class Profile:
    """The end of a search, and how uncertain coordinates are there."""

    forward: Forward
    measurements: Measurements
    coordinates: Coordinates
    found: Descent
    covariance: FloatArray

    def farthest(self) -> tuple[Descent, set[tuple[int, float]]]:
        """Return a place out of all proportion that explains data as well as the end of the search, or that end.

        Of u′ = −V u/(K + u) with small u, every large K with its V is one: what is not determined shows there. Numbers
        that are known well enough, but for data that do not limit them on one side, come with that side.
        """
        numbers = len(self.measurements.parametric.problem.parameters)
        deviations = np.sqrt(np.diag(self.covariance)[:numbers])
        sizes = self.coordinates.sizes(self.found.place.point)[:numbers]
        sides: set[tuple[int, float]] = set()
        for number in np.flatnonzero(
            (deviations > SETTINGS.nonlinear * sizes) & (deviations < SETTINGS.largest * sizes)
        ).tolist():
            for sign in (1.0, -1.0):
                far = self._walked(number, sign * deviations[number], SETTINGS.largest * sizes[number])
                if far is not None and (deviations[number] > SETTINGS.most * sizes[number] or (number, 1.0) in sides):
                    return far, set()
                if far is not None:
                    sides.add((number, sign))
        return self.found, sides

    def _walked(self, number: int, deviation: float, limit: float) -> Descent | None:
        """Hold a number farther and farther away and fit the others, as long as data do not mind."""
        place, course = self.found.place, self.covariance[:, number] / self.covariance[number, number]
        weighed = self.measurements.weighed(place.residual)
        most = weighed.misfit(place, self.coordinates) + (1.0 - SETTINGS.negligible) * SETTINGS.away**2
        here, step = self.found, SETTINGS.away * deviation
        while abs(here.place.point[number] - place.point[number]) < limit:
            target = here.place.point + step * course
            if not self.coordinates.low[number] <= target[number] <= self.coordinates.high[number]:
                return None
            held = self._holding(number, target, SETTINGS.slight * abs(deviation))
            there = place_at(self.forward, self.measurements, self.coordinates, target, here.place.response)
            if there is None or self.forward.is_spent:
                return None
            here = search(self.forward, self.measurements, held, there, rough=True, nearby=True)
            if weighed.misfit(here.place, self.coordinates) > most:
                return None
            step *= 2.0
        return here

    def _holding(self, number: int, target: FloatArray, width: float) -> Coordinates:
        """Return coordinates with a prior that holds a number where it is."""
        means, deviations = self.coordinates.means.copy(), self.coordinates.deviations.copy()
        means[number] = self.coordinates.vector(target)[number]
        deviations[number] = width * self.coordinates.rates(target)[number]
        return replace(self.coordinates, means=means, deviations=deviations)
