"""Rings of vertices from anywhere, made a plane shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import FileFormatError, GeometryError
from pibls.geometry.base import Region
from pibls.geometry.outline import Outline
from pibls.geometry.polygon import Polygon
from pibls.geometry.reading.source import check_finite
from pibls.geometry.rings import MOST_VERTICES, depths, signed_area

_FLAT = 1e-9
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


def make_shape(rings: Iterable[NamedRing], coordinates: tuple[sp.Symbol, sp.Symbol], source: str) -> Region:
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
    first, second = coordinates
    parts: dict[str, list[int]] = {}
    start = 0
    for ring in tidy:
        for k, name in enumerate(ring.edges or ()):
            if name is not None:
                parts.setdefault(name, []).append(start + k)
        start += len(ring.vertices)
    try:
        if len(tidy) == 1 and not parts and len(tidy[0].vertices) <= _MOST_EDGES:
            return Polygon((first, second), tidy[0].vertices)
        shape = Outline((first, second), [ring.vertices for ring in tidy], _plain(parts))
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


def _plain(parts: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Return names that can be attributes."""
    return {"".join(c if c.isalnum() else "_" for c in name): edges for name, edges in parts.items()}


def _tidied(ring: NamedRing) -> NamedRing:
    """Return a ring without repeated vertices and without those in the middle of a straight edge."""
    vertices, names = ring.vertices, ring.edges
    scale = float(np.abs(vertices).max(initial=0.0))
    kept = np.hypot(*(np.roll(vertices, -1, axis=0) - vertices).T) > 1e-13 * scale
    vertices, names = vertices[kept], None if names is None else tuple(np.array(names, dtype=object)[kept])
    if len(vertices) < 3:
        return NamedRing(vertices, ring.title, ring.hole, names)
    before, after = vertices - np.roll(vertices, 1, axis=0), np.roll(vertices, -1, axis=0) - vertices
    turn = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
    straight = np.abs(turn) <= _FLAT * np.hypot(*before.T) * np.hypot(*after.T)
    straight &= (before * after).sum(axis=1) > 0
    if names is not None:
        straight &= np.array([names[k - 1] == names[k] for k in range(len(names))])
    bends = ~straight
    if bends.sum() < 3:
        return NamedRing(vertices, ring.title, ring.hole, names)
    names = None if names is None else tuple(np.array(names, dtype=object)[bends])
    return NamedRing(vertices[bends], ring.title, ring.hole, names)


def _check_roles(rings: Sequence[NamedRing], source: str) -> None:
    """Refuse holes outside of their polygons, and polygons on top of each other."""
    if all(ring.hole is None for ring in rings):
        return
    for ring, depth in zip(rings, depths([ring.vertices for ring in rings]), strict=True):
        if ring.hole is not None and bool(depth % 2) != ring.hole:
            problem = "lies outside of its polygon, or in another hole" if ring.hole else "lies inside another polygon"
            raise GeometryError(
                f"{source}: {ring.title} {problem}, at ({ring.vertices[0, 0]:.6g}, {ring.vertices[0, 1]:.6g}). Repair "
                "the shape, for example with shapely's make_valid or union_all."
            )
