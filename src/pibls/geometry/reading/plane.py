"""Rings of vertices from anywhere, also around the pixels of a mask, made a plane shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, check_choice
from pibls.errors import FileFormatError, GeometryError
from pibls.geometry.base import Region
from pibls.geometry.implicit import check_bounds
from pibls.geometry.outline import Outline, Polygon
from pibls.geometry.reading.source import check_finite
from pibls.geometry.rings import MOST_VERTICES, Edges, chained, cross, segment_distance, signed_area

_FLAT = 1e-9
_MOST_PIXELS = 4_000_000
_MOST_SIDES = 200_000
_MOST_EDGES = 50  # beyond, nobody calls edges by their numbers


@dataclass(frozen=True, eq=False)
class NamedRing:
    """A closed ring, its name in messages, and whether it is a hole (None: decided by nesting).

    ``edges`` are names of its edges, None where an edge has none.
    """

    vertices: FloatArray
    title: str
    hole: bool | None = None
    edges: tuple[str | None, ...] | None = None


def make_shape(rings: Iterable[NamedRing], coordinates: tuple[sp.Symbol, ...], source: str) -> Region:
    """Return the shape within rings: a polygon if there is one without names, else an outline."""
    tidy: list[NamedRing] = []
    total = 0
    for given in rings:
        check_finite(given.vertices, source, f"vertex {{}} of {given.title}")
        tidy.append(_tidied(given))
        total += len(tidy[-1].vertices)
        check_number(total, source)
    if not tidy:
        raise FileFormatError(f"{source} has no polygon. Give one, or a multipolygon.")
    for ring in tidy:
        if len(ring.vertices) < 3 or signed_area(ring.vertices) == 0.0:
            raise GeometryError(f"{source}: {ring.title} encloses no area. Leave it out, or check its vertices.")
    parts: dict[str, list[int]] = {}
    start = 0
    for ring in tidy:
        for k, name in enumerate(ring.edges or ()):
            if name is not None:
                parts.setdefault(plain(name), []).append(start + k)
        start += len(ring.vertices)
    try:
        if len(tidy) == 1 and not parts and len(tidy[0].vertices) <= _MOST_EDGES:
            return Polygon(coordinates, tidy[0].vertices)
        shape = Outline(coordinates, [ring.vertices for ring in tidy], parts)
    except GeometryError as error:
        titles = ", ".join(f"ring {i} is {ring.title}" for i, ring in enumerate(tidy[:8]))
        raise GeometryError(f"{source}: {error} Here {titles}.") from error
    # Which ring is inside of which can be asked of rings that do not cross only.
    _check_roles(tidy, source)
    return shape


def check_number(vertices: int, source: str) -> None:
    """Refuse more vertices than a shape can have, before more of them are made."""
    if vertices > MOST_VERTICES:
        raise GeometryError(
            f"{source}: a shape with straight edges must have at most {MOST_VERTICES} vertices in all. Thin them out, "
            "as shapely's simplify does, or give a larger 'tolerance' for curves and masks."
        )


def plain(name: str) -> str:
    """Return a name that can be an attribute."""
    return "".join(c if c.isalnum() else "_" for c in name)


def _tidied(ring: NamedRing) -> NamedRing:
    """Return a ring without repeated vertices and without those in the middle of a straight edge."""
    scale = float(np.abs(ring.vertices).max(initial=0.0))
    ring = _picked(ring, np.hypot(*(np.roll(ring.vertices, -1, axis=0) - ring.vertices).T) > 1e-13 * scale)
    vertices, names = ring.vertices, ring.edges
    before, after = vertices - np.roll(vertices, 1, axis=0), np.roll(vertices, -1, axis=0) - vertices
    straight = np.abs(cross(before, after)) <= _FLAT * np.hypot(*before.T) * np.hypot(*after.T)
    straight &= (before * after).sum(axis=1) > 0
    if names is not None:
        straight &= np.array([names[k - 1] == names[k] for k in range(len(names))])
    return ring if (~straight).sum() < 3 else _picked(ring, ~straight)


def _picked(ring: NamedRing, kept: BoolArray) -> NamedRing:
    edges = None if ring.edges is None else tuple(np.array(ring.edges, dtype=object)[kept])
    return replace(ring, vertices=ring.vertices[kept], edges=edges)


def _check_roles(rings: Sequence[NamedRing], source: str) -> None:
    """Refuse holes outside of their polygons, and polygons on top of each other."""
    if all(ring.hole is None for ring in rings):
        return
    depths = Edges([ring.vertices for ring in rings]).crossings().sum(axis=1)
    for ring, depth in zip(rings, depths, strict=True):
        if ring.hole is not None and bool(depth % 2) != ring.hole:
            problem = "lies outside of its polygon, or in another hole" if ring.hole else "lies inside another polygon"
            raise GeometryError(
                f"{source}: {ring.title} {problem}, at ({ring.vertices[0, 0]:.6g}, {ring.vertices[0, 1]:.6g}). Repair "
                "the shape, for example with shapely's make_valid or union_all."
            )


def from_mask(
    mask: Any, coordinates: tuple[sp.Symbol, ...], bounds: object, tolerance: float | None, origin: str
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
        gaps = segment_distance(closed[a], closed[b], closed[a + 1 : b])
        worst = int(gaps.argmax())
        if gaps[worst] > tolerance:
            middle = a + 1 + worst
            keep[middle] = True
            todo += [(a, middle), (middle, b)]
    return np.asarray(ring[keep[:-1]])
