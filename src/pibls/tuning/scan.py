"""The choice of the feature scale, per axis, by the residual of small pilot networks at held-out points.

The scale decides the accuracy by many decades. Pilots are cheap; the search starts with one scale on all axes, goes
on with coarse combinations (time is an axis of its own), and ends with fine steps axis by axis. It stops as soon as a
pilot is good enough for the tolerance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Scan", "choose_scale", "raise_scale", "refine_scale", "vertex", "widened"]

Scale = tuple[float, ...]
_START = (3.0, 6.0, 1.5, 12.0, 0.75, 24.0, 48.0)
_START_1D = (6.0, 24.0, 96.0, 384.0, 1.5)
_COARSE = (1.0, 4.0, 16.0, 48.0)
_STEPS = ((0.25, 4.0), (0.5, 2.0), (0.7, 1.4))
_SMALLEST, _FEW = 0.5, 4
_CLEAR = 0.01
_CLEARLY = 3.0
_REFINE = 1.4
_WIDENING = 1.25  # finer scales for wider networks, per doubling
_DIRECT = 3  # most axes that are tried in combination, and again in every round


@dataclass(frozen=True)
class Scan:
    """What a scan found.

    Attributes
    ----------
    scale
        The best scale, one number per axis.
    score
        Its held-out residual.
    tried
        Score of every scale that was tried.
    """

    scale: Scale
    score: float
    tried: dict[Scale, float]

    def leading(self, count: int) -> list[Scale]:
        """Return the best scales."""
        return sorted(self.tried, key=lambda scale: self.tried[scale])[:count]


class _Search:
    """Scales tried so far, and whether one of them is good enough."""

    def __init__(self, score: Callable[[Scale], float], enough: float) -> None:
        self.score = score
        self.enough = enough
        self.tried: list[Scale] = []
        self.settled: Scale | None = None

    def try_all(self, scales: Iterable[Scale], *, to_the_end: bool = False) -> None:
        for scale in scales:
            if self.done and not to_the_end:
                return
            key = tuple(float(value) for value in np.round(scale, 9))
            if key not in self.tried:
                self.tried.append(key)
                self.score(key)

    def settle(self, axes: int) -> None:
        """Try the scale between those on all axes alike where the score should be least.

        Which of the scales of a coarse list happens to do best depends on the seed; the vertex of a parabola hardly
        does, so that it stands unless it is clearly worse.
        """
        alike = {scale[0]: self.score(scale) for scale in self.tried}
        best = self.best
        middle = vertex(alike, best[0])
        if middle is not None:
            self.try_all([(middle,) * axes], to_the_end=True)
            if self.score(self.tried[-1]) < _CLEARLY * self.score(best):
                self.settled = self.tried[-1]

    @property
    def best(self) -> Scale:
        return self.settled if self.settled is not None else min(self.tried, key=self.score)

    @property
    def done(self) -> bool:
        return bool(self.tried) and self.score(self.best) <= self.enough


def choose_scale(
    score: Callable[[Scale], float],
    axes: int,
    enough: float,
    *,
    time_axis: int | None = None,
    accept: Callable[[Scale], bool] = lambda _: False,
    known: Sequence[Scale] = (),
) -> Scan:
    """Search the scale with the smallest held-out residual.

    Parameters
    ----------
    score
        Held-out residual of a pilot of a scale; asked again for scales it knows.
    axes
        Number of coordinates.
    enough
        Score at which the search stops.
    time_axis
        Position of the time coordinate, if there is one.
    accept
        Asked for the best scale after each round; the search stops if it is good enough.
    known
        Scales that did best with narrower pilots; given these, only they and their neighbours are tried.

    Examples
    --------
    >>> scan = choose_scale(lambda s: abs(np.log(s[0] / 12)) + abs(np.log(s[1] / 3)), 2, 0.0)
    >>> bool(scan.score < 0.5)
    True
    """
    search = _Search(score, enough)
    # All of these, even if the first is good enough: what is chosen then hardly depends on the seed.
    start = known or [(value,) * axes for value in (_START if axes > 1 else _START_1D)]
    search.try_all(start, to_the_end=True)
    if not known:
        search.settle(axes)
    if not search.done and not accept(search.best):
        search.settled = None
        # Where one scale for all axes goes that far, theirs do not differ by much.
        near = bool(known) or score(search.best) < _CLEAR
        if not near:
            search.try_all(_combinations(axes, time_axis))
        for factors in _STEPS[1:] if near else _STEPS:
            if axes <= _DIRECT:
                for axis in range(axes):
                    search.try_all(_moved(search.best, [axis], factor) for factor in factors)
            search.try_all(_moved(search.best, range(axes), factor) for factor in factors)
        if axes > _DIRECT:
            # Every axis costs two pilots: once is enough.
            for axis in range(axes):
                search.try_all(_moved(search.best, [axis], factor) for factor in _STEPS[1])
    return Scan(search.best, score(search.best), {scale: score(scale) for scale in search.tried})


def vertex(scores: Mapping[float, float], best: float) -> float | None:
    """Return where a parabola through the best score and its neighbours is least, all in logarithms.

    None where the best has no neighbour on one side, or where the scores are no valley.

    >>> round(vertex({1.0: 1e-2, 2.0: 1e-4, 4.0: 1e-4, 8.0: 1e-2}, 2.0), 3)
    2.828
    """
    order = sorted(scores)
    position = order.index(best)
    if not 0 < position < len(order) - 1:
        return None
    near = order[position - 1 : position + 2]
    values = np.array([scores[value] for value in near])
    if not (np.isfinite(values).all() and (values > 0).all()):
        return None
    curve, slope, _ = np.polyfit(np.log(near), np.log(values), 2)
    if curve <= 0:
        return None
    return float(np.clip(np.exp(-slope / (2 * curve)), near[0], near[2]))


def refine_scale(score: Callable[[Scale], float], scale: Scale, *, together: bool = False) -> Scale:
    """Return a better scale near one, by parabolas through three scores: on all axes together, then on each.

    >>> refined = refine_scale(lambda s: np.exp(np.log(s[0] / 6) ** 2 + np.log(s[1] / 3) ** 2), (4.0, 4.0))
    >>> [round(value, 2) for value in refined]
    [6.0, 3.0]
    """
    axes = range(len(scale))
    for moved in [axes, *([axis] for axis in axes)] if len(scale) > 1 and not together else [axes]:
        factors = {1.0: score(scale)}
        for direction in (1 / _REFINE, _REFINE):
            factor = direction
            while factor not in factors:
                factors[factor] = score(_moved(scale, moved, factor))
                if factors[factor] == min(factors.values()):
                    factor *= direction
        best = min(factors, key=lambda factor: factors[factor])
        middle = vertex(factors, best)
        if middle is not None and score(_moved(scale, moved, middle)) < factors[best]:
            best = middle
        scale = _moved(scale, moved, best)
    return scale


def raise_scale(score: Callable[[Scale], float], scale: Scale) -> Scale:
    """Return the largest scale with a score about as good: its nodes depend less on each other and lose fewer digits.

    >>> [round(value, 1) for value in raise_scale(lambda s: 1e-14 if s[0] < 20 else 1e-10, (6.0,))]
    [16.5]
    """
    least = score(scale)
    while (better := score(_moved(scale, range(len(scale)), _REFINE))) < _CLEARLY * least:
        scale, least = _moved(scale, range(len(scale)), _REFINE), min(least, better)
    return scale


def widened(scale: Scale, ratio: float) -> Scale:
    """Return the scale that suits a network wider by ``ratio`` than the one a scale was chosen with.

    >>> widened((4.0,), 2.0)
    (5.0,)
    """
    factor = _WIDENING ** float(np.log2(ratio))
    return tuple(value * factor for value in scale)


def _combinations(axes: int, time_axis: int | None) -> Iterable[Scale]:
    """Coarse scales that differ between axes; above three axes only between time and space."""
    if axes == 1:
        return
    if axes == 2:
        yield from itertools.product(_COARSE, repeat=2)
    elif time_axis is not None:
        for space, time in itertools.product(_COARSE[:3], repeat=2):
            yield tuple(time if axis == time_axis else space for axis in range(axes))
    elif axes <= _DIRECT:
        yield from itertools.product(_COARSE[:2], repeat=axes)


def _moved(scale: Scale, axes: Iterable[int], factor: float) -> Scale:
    """Change the scale of some axes, down to where a node hardly varies and wider networks would lose digits."""
    smallest = _SMALLEST if len(scale) <= _FEW else 0.0
    return tuple(max(smallest, value * factor) if i in axes else value for i, value in enumerate(scale))
