"""Outlines of masks: arrays of pixels that are in a shape or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, check_choice
from pibls.errors import GeometryError
from pibls.geometry.base import Region
from pibls.geometry.implicit import check_bounds
from pibls.geometry.reading.plane import NamedRing, make_shape
from pibls.geometry.rings import chained

_MOST_PIXELS = 4_000_000
_MOST_SIDES = 200_000


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


def _traced(pixels: BoolArray) -> list[FloatArray]:
    """Return the closed chains of sides between pixels in and out, as (row, column), the inside on the left."""
    full = np.pad(pixels, 1)
    inner, width = full[1:-1, 1:-1], pixels.shape[1] + 1
    edges: list[tuple[int, int]] = []
    for beyond, start, stop in (
        (full[:-2, 1:-1], (0, 0), (0, 1)),
        (full[1:-1, 2:], (0, 1), (1, 1)),
        (full[2:, 1:-1], (1, 1), (1, 0)),
        (full[1:-1, :-2], (1, 0), (0, 0)),
    ):
        at = np.argwhere(inner & ~beyond) @ [width, 1]
        shifts = (corner[0] * width + corner[1] for corner in (start, stop))
        edges += zip(*((at + shift).tolist() for shift in shifts), strict=True)
    return [np.stack(np.divmod(ring, width), axis=1).astype(np.float64) for ring in chained(edges)]


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
