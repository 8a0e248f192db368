"""The first time at which something happens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.problem.field_expressions import Expression
from pibls.quadrature.roots import CLOSE, bracketed
from pibls.quantities.pair import SolutionPair
from pibls.quantities.quantity import Quantity
from pibls.refinement.standards import PLAIN
from pibls.solution.celled import CellNetwork
from pibls.solution.evolved import EvolvedNetwork
from pibls.solution.evolved_cells import EvolvedCells, EvolvedLegs
from pibls.solution.json_records import Network

_PER_STEP, _FEWEST = 4, 64  # places in time between two steps of a solution, and in all
_TOGETHER = 16  # of them that are looked at together

Doubt = Callable[[float], float]  # the error of a course at a time


class TimeCourse(Protocol):
    """Values at times, of the solution (0) or of the richer one (1)."""

    def __call__(self, times: FloatArray, number: int) -> FloatArray:
        """Return the values."""


def first_event(pair: SolutionPair, course: TimeCourse, doubt: Doubt, *, relation: bool, name: str) -> Quantity:
    """Return the first time at which a course becomes zero, or for a relation positive.

    ``doubt`` is the error of the course at a time.
    """
    times = _times(pair)
    both = [_first(partial(course, number=k), times, relation) for k in range(len(pair.both))]
    own, other = both[0], both[-1]
    if own is None:
        last = abs(float(course(times[-1:], 0)[0]))
        event = name if relation else f"{name} = 0"
        words = (
            f"{event} does not happen until the last time, {times[-1]:g}, when both sides still differ by {last:.6g}. "
            "Make the time interval longer"
        )
        return Quantity(np.inf, np.nan, None, words)
    if own == times[0]:
        return pair.quantity(own, 0.0)
    if pair.richer is None:
        return pair.quantity(own, np.nan)
    width = PLAIN * (times[-1] - times[0])
    ends = np.clip(np.array([own - width, own + width]), times[0], times[-1])
    rise = abs(float(np.diff(course(ends, 0))[0] / (ends[1] - ends[0])))
    if other is None or not rise:
        return pair.quantity(own, np.inf)
    size = float(np.abs(course(times[[0, -1]], 0)).max()) / rise
    # Both courses may cross at the event, and be wrong all the same.
    return pair.quantity(own, max(float(pair.error(abs(own - other), size)), doubt(own) / rise))


def _times(pair: SolutionPair) -> FloatArray:
    """Return times between which a solution changes little."""
    low, high = pair.solution.problem.domain.bounds[-1]
    every = [np.linspace(low, high, _FEWEST)]
    for solution in pair.both:
        own = _steps(solution.network, low, high)
        every += [a + (b - a) * np.arange(_PER_STEP) / _PER_STEP for a, b in pairwise(own)]
    return np.unique(np.concatenate(every))


def _first(course: Callable[[FloatArray], FloatArray], times: FloatArray, relation: bool) -> float | None:
    values = np.empty(0)
    # Some times after the other: what happens first may happen early.
    for some in np.array_split(times, max(1, len(times) // _TOGETHER)):
        values = np.append(values, course(some))
        if not np.isfinite(values).all():
            raise InputError("The expression of first_time is not finite at all times. Rewrite it.")
        if relation and values[0] > 0.0:
            return float(times[0])
        # A value that is zero at the start becomes zero later on.
        start = 1 if abs(values[0]) <= CLOSE * np.abs(values).max() else 0
        signs = np.sign(values[start:])
        changed = np.flatnonzero((signs[1:] > 0) & (signs[:-1] <= 0) if relation else signs[1:] * signs[:-1] <= 0)
        if len(changed):
            k = start + int(changed[0])
            root = bracketed(lambda t, _: course(t), times[k : k + 1], times[k + 1 : k + 2])
            return float(root[0])
    return None


def _steps(network: Network, low: float, high: float) -> FloatArray:
    if isinstance(network, EvolvedNetwork | EvolvedCells | EvolvedLegs):
        return network.breaks
    if isinstance(network, CellNetwork):
        times = network.cuts[network.tree[:, 0] == network.dimension - 1]
        return np.unique(np.concatenate([[low, high], times]))
    return np.array([low, high])


def mean_in_time(
    pair: SolutionPair,
    expression: Expression,
    points: FloatArray,
    weights: FloatArray,
    outward: FloatArray | None = None,
) -> TimeCourse:
    """Return the mean of an expression over points of space as a course."""

    def course(times: FloatArray, number: int) -> FloatArray:
        X = np.column_stack([np.tile(points, (len(times), 1)), np.repeat(times, len(points))])
        normals = None if outward is None else np.tile(outward, (len(times), 1))
        inward = None if normals is None else -normals
        values = pair.values(pair.both[number], expression, X, normals, inward)
        return np.asarray(values.reshape(len(times), -1) @ weights)

    return course


def in_time(pair: SolutionPair, expression: Expression, point: FloatArray | None) -> TimeCourse:
    """Return an expression as a course, at a point of space if it depends on that."""
    *space, time = expression.coordinates
    if point is None and expression.free - {time}:
        raise InputError(
            f"first_time needs one number at every time, and the expression depends on {', '.join(map(str, space))}. "
            "Say at=(...), a point of space, or over=..., a region or part of which the mean counts."
        )
    return mean_in_time(pair, expression, np.zeros((1, len(space))) if point is None else point[None], np.ones(1))


def is_relation(expression: Any) -> bool:
    """Tell whether an expression is an inequality."""
    return isinstance(expression, sp.core.relational.Relational) and not isinstance(expression, sp.Eq)
