"""The choice of the feature scale, per axis, by the residual of pilot networks at held-out points.

The scale decides the accuracy by many decades, and pilots are cheap. The search starts with one scale on all axes,
goes on axis by axis, and ends as soon as a pilot is good enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

Scale = tuple[float, ...]
_LADDER = (0.75, 1.5, 3.0, 6.0, 12.0, 24.0, 48.0)
_LADDER_LINE = (1.5, 6.0, 24.0, 96.0, 384.0)
_STEPS = (4.0, 2.0, 1.4)
_CLEAR = 0.01  # score of one scale for all axes from which on theirs do not differ by much
_CLEARLY = 3.0
_SMALLEST, _FEW = 0.5, 4
_DIRECT = 3  # with more axes, each of them is moved once
_WIDENING = 1.25  # finer scales for wider networks, per doubling


def choose_scale(
    score: Callable[[Scale], float],
    axes: int,
    enough: float,
    time_axis: int | None = None,
    accept: Callable[[Scale], bool] = lambda _: False,
) -> tuple[Scale, float]:
    """Return the scale with the smallest score that was found, and its score.

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
        Asked whether the best scale that is the same on all axes will do.

    Examples
    --------
    >>> scale, left = choose_scale(lambda s: abs(np.log(s[0] / 12)) + abs(np.log(s[1] / 3)), 2, 0.0)
    >>> bool(left < 0.3)
    True
    """
    alike = {value: score((value,) * axes) for value in (_LADDER if axes > 1 else _LADDER_LINE)}
    best = min(alike, key=lambda value: alike[value])
    middle = vertex(alike, best)
    # Which of the scales of a list does best depends on the seed; the vertex of a parabola hardly does.
    if middle is not None and score((middle,) * axes) < _CLEARLY * alike[best]:
        best = middle
    scale = (best,) * axes
    if score(scale) <= enough or accept(scale):
        return scale, score(scale)
    for step in _STEPS[1:] if score(scale) < _CLEAR else _STEPS:
        single = range(axes) if axes <= _DIRECT or step == 2.0 else [] if time_axis is None else [time_axis]
        for moved in [*([axis] for axis in single), range(axes)] if axes > 1 else [range(1)]:
            for factor in (1 / step, step):
                if score(scale) <= enough:
                    return scale, score(scale)
                scale = min(scale, _moved(scale, moved, factor), key=score)
    return scale, score(scale)


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


def refine_scale(score: Callable[[Scale], float], scale: Scale) -> Scale:
    """Return a better scale near one, moved on all axes together, by a parabola through the scores around the best.

    >>> [round(value, 2) for value in refine_scale(lambda s: np.exp(np.log(s[0] / 6) ** 2), (4.0, 4.0))]
    [6.0, 6.0]
    """
    axes, factors = range(len(scale)), {1.0: score(scale)}
    for direction in (1 / _STEPS[-1], _STEPS[-1]):
        factor = direction
        while factor not in factors:
            least = min(factors.values())
            factors[factor] = score(_moved(scale, axes, factor))
            if factors[factor] < least:
                factor *= direction
    best = min(factors, key=lambda factor: factors[factor])
    middle = vertex(factors, best)
    if middle is not None and score(_moved(scale, axes, middle)) < factors[best]:
        best = middle
    return _moved(scale, axes, best)


def widened(scale: Scale, ratio: float) -> Scale:
    """Return the scale that suits a network wider by ``ratio`` than the one a scale was chosen with.

    >>> widened((4.0,), 2.0)
    (5.0,)
    """
    factor = _WIDENING ** float(np.log2(ratio))
    return tuple(value * factor for value in scale)


def _moved(scale: Scale, axes: Iterable[int], factor: float) -> Scale:
    """Change the scale of some axes, down to where a node hardly varies and wider networks would lose digits."""
    smallest = _SMALLEST if len(scale) <= _FEW else 0.0
    return tuple(max(smallest, value * factor) if i in axes else value for i, value in enumerate(scale))
