"""When something brief happens: pulses and switches of the data, which steps in time would pass over.

An exponential is as narrow as its argument is steep, and the argument tells from afar where it is largest; a switch is
where its argument is zero. A step ends at each such time, and so has a stage there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from pibls.errors import ProblemError
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.form import Evolution, compiled

__all__ = ["brief_times"]

_SUDDEN = (sp.sign, sp.Heaviside, sp.Abs)
_SWITCHES = (sp.tanh, sp.erf, sp.erfc, sp.atan, *_SUDDEN)


def brief_times(evolution: Evolution) -> list[float]:
    """Return the times at which data that depends on time only is briefly large, or switches, in order.

    >>> from pibls import Initial, Problem, TimeInterval, coordinates, field
    >>> from pibls.evolution.form import find_evolution
    >>> t = coordinates("t")
    >>> u = field("u", t)
    >>> pulse = u.diff(t) - sp.exp(-(((t - 2) / sp.Float(1e-3)) ** 2))
    >>> evolution = find_evolution(Problem(pulse, TimeInterval(t, 0, 5), [Initial(u, 0)]))
    >>> [round(time, 6) for time in brief_times(evolution)] if evolution else None
    [2.0]
    """
    first, last = evolution.limits
    coordinates = evolution.problem.domain.coordinates
    found: set[float] = set()
    sources = [s.form.source for s in evolution.boundary]
    for expression, sudden in {pair for data in [*evolution.rates.values(), *sources] for pair in _heights(data)}:
        if expression.free_symbols != {coordinates[-1]}:
            continue
        height = compiled(expression, (coordinates[-1],))
        grid = np.linspace(first, last, SETTINGS.points)
        try:
            values = height(grid[:, None])
        except ProblemError:  # not finite somewhere: the integrator will tell
            continue
        top = np.flatnonzero((values[1:-1] >= values[:-2]) & (values[1:-1] > values[2:])) + 1
        for place in top if sudden or np.ptp(values) >= SETTINGS.brief else []:
            low, high = grid[place - 1], grid[place + 1]
            for _ in range(SETTINGS.rounds):
                near = np.linspace(low, high, SETTINGS.points)
                best = int(np.clip(np.argmax(height(near[:, None])), 1, SETTINGS.points - 2))
                low, high = near[best - 1], near[best + 1]
            found.add(float((low + high) / 2))
    return sorted(found)[: SETTINGS.times]


def _heights(expression: sp.Expr) -> Iterator[tuple[sp.Expr, bool]]:
    """Yield expressions that peak at brief events, and whether an event is sudden however flat it looks."""
    for node in sp.preorder_traversal(expression):
        if isinstance(node, sp.exp):
            yield node.args[0], False
        elif isinstance(node, _SWITCHES):
            yield -sp.Abs(node.args[0]), isinstance(node, _SUDDEN)
        elif isinstance(node, Relational):
            yield -sp.Abs(node.lhs - node.rhs), True
