"""How much happens in an evolution, from its initial values."""

from __future__ import annotations

import numpy as np

from pibls.errors import ProblemError
from pibls.evolution.form import Evolution, compiled
from pibls.problem.evaluate import differentiated
from pibls.refinement.standards import POINTS


def transits(evolution: Evolution) -> float:
    """Return how much happens: the rate at which the initial values change, relative to them, times the duration.

    A wave of which a period takes one unit of time has 2π per unit; not finite for initial values that are zero. Values
    that jump count for what they are beside the jump, and those of Python functions as if they stayed.

    >>> from pibls.evolution.form import find_evolution
    >>> from pibls.problems import advection_long
    >>> evolution = find_evolution(advection_long())
    >>> round(transits(evolution)) if evolution else None
    1000
    """
    first, last = evolution.limits
    X, weights = (np.empty((1, 0)), np.ones(1)) if evolution.space is None else evolution.space.quadrature(POINTS)
    X, coordinates, found = np.column_stack([X, np.full(len(X), first)]), evolution.problem.domain.coordinates, 0.0
    states = {s.symbol: differentiated(evolution.initial[s.state], coordinates, s.multi_index) for s in evolution.slots}
    for name, rate in evolution.rates.items():
        own = (rate.xreplace(states), evolution.initial[name, 0])
        try:
            speed, size = (float(np.sqrt(weights @ np.square(compiled(e, coordinates)(X)))) for e in own)
        except ProblemError:
            return 0.0
        if speed > 0:
            found = max(found, (speed / size) ** (1 / evolution.orders[name]) if size > 0 else np.inf)
    return (last - first) * found
