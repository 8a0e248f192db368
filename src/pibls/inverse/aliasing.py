"""Oscillations between measurements, which these do not see."""

from __future__ import annotations

import numpy as np

from pibls.checks import FloatArray
from pibls.inverse.parametric import Parametric
from pibls.inverse.response import Response
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import AtPoints
from pibls.refinement.standards import SLIGHT


def turns(parametric: Parametric, response: Response) -> float:
    """Return how often observed fields turn from one place of measurements to the next, on average.

    One place comes after another along an axis if no measurement is between, wherever that may be along other axes; the
    first one comes after the boundary. Scattered ones count as if they were on a grid. An oscillation that turns more
    than once may have slower ones with the same values.
    """
    found = [0.0]
    low, high = np.asarray(parametric.problem.domain.bounds, dtype=np.float64).T
    for statement in parametric.measured:
        names = dict.fromkeys(name for name, _ in parametric.dependence(statement).wanted)
        if not isinstance(statement.place, AtPoints) or not names:
            continue
        every = statement.place.points
        ends = every[:: -(-len(every) // SETTINGS.samples)]
        for axis, first in enumerate(low):
            levels = np.unique(np.append(every[:, axis], first))
            starts = ends.copy()
            before = levels[np.maximum(np.searchsorted(levels, ends[:, axis]) - 1, 0)]
            spaced = ends[:, axis] - (high - low)[axis] / len(every) ** (1 / len(low))
            starts[:, axis] = np.maximum(np.minimum(before, spaced), first)
            shares = np.linspace(0.0, 1.0, SETTINGS.samples)[:, None]
            ways = starts[:, None] + shares * (ends - starts)[:, None]
            inside = parametric.problem.domain.contains(ways.reshape(-1, len(low))).reshape(len(ends), -1).all(axis=1)
            if not inside.any():
                continue
            zero = (0,) * len(low)
            values = response.evaluate(ways[inside].reshape(-1, len(low)), [zero])[zero][:, 0]
            for name in names:
                own = values[:, parametric.names.index(name)].reshape(-1, SETTINGS.samples)
                found.append(_mean_turns(own))
    return max(found)


def _mean_turns(values: FloatArray) -> float:
    """Return how often rows change between rising and falling, on average over those that do anything.

    >>> _mean_turns(np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 2.0, 3.0], [2.0, 2.001, 2.0, 2.001]]))
    1.0
    """
    heights = np.ptp(values, axis=1)
    moving = heights > SLIGHT * np.ptp(values)
    if not moving.any():
        return 0.0
    steps = np.diff(values[moving], axis=1)
    steps[np.abs(steps) <= SLIGHT / SETTINGS.samples * heights[moving, None]] = 0.0
    count, last = np.zeros(len(steps)), np.zeros(len(steps))
    for column in np.sign(steps).T:
        count += column * last < 0
        last = np.where(column == 0, last, column)
    return float(count.mean())
