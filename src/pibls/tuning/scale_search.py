"""The choice of the feature scale, per axis, by the residual of pilot networks at held-out points.

The scale decides the accuracy by many decades, and pilots are cheap. The search starts with one scale on all axes,
goes on axis by axis as long as that helps, and ends as soon as a pilot is good enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from pibls.features.scales import LARGEST_SCALE, SMALLEST_SCALE

Scale = tuple[float, ...]
_LADDER = tuple(0.75 * 2.0**power for power in range(7))
_STEPS = (2.0, 1.4)
FEW_AXES = 3  # with more, directions are learned instead
_WIDENING = 1.25  # finer scales for wider networks, per doubling


def choose_scale(
    score: Callable[[Scale], float],
    axes: int,
    enough: float,
    accept: Callable[[Scale], bool] = lambda _: False,
) -> Scale:
    """Return the scale with the smallest score that was found; one that is low enough ends the search.

    ``score`` is the held-out residual of a pilot, asked again for scales it knows; ``accept`` is asked whether the best
    scale that is the same on all axes will do.
    """
    scale = min(((value,) * axes for value in _LADDER), key=score)
    if score(scale) > enough and not accept(scale):
        for step in _STEPS:
            for moved in (*((axis,) for axis in range(axes) if axes > 1), range(axes)):
                scale = refine_scale(score, scale, moved, step, enough)
    return scale


def natural_scale(axes: int) -> Scale:
    """Return the coarsest scale, with which a node of many axes varies as much as one of few.

    >>> natural_scale(12)[0]
    0.375
    """
    return (_LADDER[0] * float(np.sqrt(FEW_AXES / axes)),) * axes


def climb(score: Callable[[Scale], float], axes: int, enough: float) -> Scale:
    """Return the scale, the same on all of many axes, from which no step lowers the score."""
    return refine_scale(score, natural_scale(axes), None, _STEPS[0], enough)


def refine_scale(
    score: Callable[[Scale], float],
    scale: Scale,
    moved: Iterable[int] | None = None,
    step: float = _STEPS[-1],
    enough: float = 0.0,
) -> Scale:
    """Return a better scale near one: some axes, all if left out, move together as long as that helps."""
    axes = set(range(len(scale)) if moved is None else moved)
    for factor in (1.0 / step, step):
        while score(scale) > enough:
            further = tuple(value * factor if axis in axes else value for axis, value in enumerate(scale))
            drawable = all(SMALLEST_SCALE <= value <= LARGEST_SCALE for value in further)
            if not drawable or score(further) >= score(scale):
                break
            scale = further
    return scale


def widened(scale: Scale, ratio: float) -> Scale:
    """Return the scale that suits a network wider by ``ratio`` than the one a scale was chosen with.

    >>> widened((4.0,), 2.0)
    (5.0,)
    """
    factor = _WIDENING ** float(np.log2(ratio))
    return tuple(value * factor for value in scale)
