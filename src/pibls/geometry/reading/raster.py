"""Outlines of masks: arrays of pixels that are in a shape or not."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import FloatArray, check_choice
from pibls.errors import GeometryError
from pibls.geometry.base import Region
from pibls.geometry.implicit import check_bounds
from pibls.geometry.reading.plane import NamedRing, make_shape

__all__ = ["from_mask", "simplified"]


_MOST_PIXELS = 4_000_000
_MOST_SIDES = 200_000
_STEPS = {(0, 1): 0, (1, 0): 1, (0, -1): 2, (-1, 0): 3}  # right, up, left, down in (row, column)


def from_mask(
    mask: Any, coordinates: tuple[sp.Symbol, sp.Symbol], bounds: object, tolerance: float | None, origin: str
) -> Region:
    """Return the outline of the pixels of a mask.

    Sides of pixels are joined to edges that stay within the tolerance of them, by default 0.75 pixels: what a straight
    line of pixels needs. With a tolerance of 0 the outline follows the pixels.
    """
    check_choice("origin", origin, "read_shape", ("lower", "upper"), error=GeometryError)
    limits = check_bounds(bounds, 2, "read_shape")
    pixels = np.asarray(mask)
    if pixels.ndim != 2 or pixels.size > _MOST_PIXELS or not pixels.any():
        raise GeometryError(
            f"A mask must have two axes, up to {_MOST_PIXELS} pixels and one or more that are True. Got shape "
            f"{pixels.shape} with {int(np.count_nonzero(pixels))} True."
        )
    changes = sum(int(np.count_nonzero(np.diff(pixels, axis=axis))) for axis in (0, 1))
    if changes > _MOST_SIDES:
        raise GeometryError(
            f"A mask must have at most {_MOST_SIDES} sides of pixels on its outline. This one has {changes}: it is "
            "ragged or noisy. Smooth it, for example with scipy.ndimage.binary_opening."
        )
    rings = _traced(pixels if origin == "lower" else pixels[::-1])
    step = (limits[:, 1] - limits[:, 0]) / np.array(pixels.shape[::-1])
    allowed = 0.75 if tolerance is None else tolerance / float(step.min())
    while True:
        thinned = [simplified(ring, allowed) for ring in rings]
        named = [
            NamedRing(limits[:, 0] + ring[:, ::-1] * step, f"outline {k}")
            for k, ring in enumerate(thinned)
            if len(ring) >= 3
        ]
        try:
            return make_shape(named, coordinates, "The mask")
        except GeometryError:
            # Two thinned outlines may cross where pixels leave a narrow gap.
            if allowed == 0.0:
                raise
            allowed = allowed / 2 if allowed > 0.1 else 0.0


def _traced(pixels: npt.NDArray[np.bool_]) -> list[FloatArray]:
    """Return the closed chains of sides between pixels in and out, as (row, column), the inside on the left."""
    full = np.pad(pixels, 1)
    after: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    # Above a pixel outside and below one inside, a side runs left; and so on around.
    for one, two, start, stop in (
        (full[1:-1, 1:-1], full[:-2, 1:-1], (0, 0), (0, 1)),
        (full[1:-1, 1:-1], full[1:-1, 2:], (0, 1), (1, 1)),
        (full[1:-1, 1:-1], full[2:, 1:-1], (1, 1), (1, 0)),
        (full[1:-1, 1:-1], full[1:-1, :-2], (1, 0), (0, 0)),
    ):
        for row, column in np.argwhere(one & ~two).tolist():
            after[row + start[0], column + start[1]].append((row + stop[0], column + stop[1]))
    rings = []
    while after:
        first = next(iter(after))
        ring, place, heading = [first], first, -1
        while True:
            choices = after[place]
            # Where two pixels touch at a corner, the left turn keeps to the same one.
            choice = choices[0] if heading < 0 else max(choices, key=partial(_turn, heading, place))
            choices.remove(choice)
            if not choices:
                del after[place]
            heading, place = _heading(place, choice), choice
            if place == first:
                break
            ring.append(place)
        rings += _simple(ring)
    return rings


def _simple(ring: list[tuple[int, int]]) -> list[FloatArray]:
    """Return a ring that passes some corners twice as rings that touch there."""
    found, way = [], list[tuple[int, int]]()
    seen: dict[tuple[int, int], int] = {}
    for place in ring:
        if place in seen:
            loop = way[seen[place] :]
            found.append(np.array(loop, dtype=np.float64))
            for passed in loop:
                del seen[passed]
            del way[len(way) - len(loop) :]
        seen[place] = len(way)
        way.append(place)
    return [*found, np.array(way, dtype=np.float64)]


def _heading(start: tuple[int, int], stop: tuple[int, int]) -> int:
    return _STEPS[stop[0] - start[0], stop[1] - start[1]]


def _turn(heading: int, place: tuple[int, int], choice: tuple[int, int]) -> int:
    """Return 1 for a left turn, 0 for straight on, -1 for a right turn."""
    return (_heading(place, choice) - heading + 1) % 4 - 1


def simplified(ring: FloatArray, tolerance: float) -> FloatArray:
    """Return a closed ring with fewer vertices, none of those left out further than the tolerance from an edge.

    >>> simplified(np.array([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]), 0.2)
    array([[0., 0.],
           [2., 0.],
           [2., 2.],
           [0., 2.]])
    """
    # Two vertices that are certainly kept: one, and the one farthest from it.
    start = int(np.lexsort((ring[:, 1], ring[:, 0]))[0])
    ring = np.roll(ring, -start, axis=0)
    far = int(np.hypot(*(ring - ring[0]).T).argmax())
    closed = np.vstack([ring, ring[:1]])
    keep = np.zeros(len(closed), dtype=bool)
    keep[[0, far]] = True
    todo = [(0, far), (far, len(ring))]
    while todo:
        a, b = todo.pop()
        if b - a < 2:
            continue
        edge, offset = closed[b] - closed[a], closed[a + 1 : b] - closed[a]
        along = np.clip(offset @ edge / max(float(edge @ edge), 1e-300), 0.0, 1.0)
        gaps = np.hypot(*(offset - along[:, None] * edge).T)
        worst = int(gaps.argmax())
        if gaps[worst] > tolerance:
            middle = a + 1 + worst
            keep[middle] = True
            todo += [(a, middle), (middle, b)]
    return np.asarray(ring[keep[:-1]])
