"""Whether a surface of triangles is closed, turned outward and free of crossings."""

from __future__ import annotations

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray
from pibls.errors import GeometryError
from pibls.geometry.triangles import Surface

_SAME = 1e-9
_LARGEST = 1e50
_MOST_PROBES = 20_000
_PROBE = 1e-6
_REPAIR = "Repair the surface, for example with trimesh.repair or the check of your CAD program."


def check_surface(vertices: FloatArray, triangles: IntArray) -> tuple[Surface, IntArray]:
    """Return a closed surface with every vertex once, and which triangles are left, or refuse it.

    Vertices closer than 1e-9 of the size become one; triangles of fewer than three vertices are left out.
    """
    used = vertices[np.unique(triangles)]
    size = float(np.ptp(used, axis=0).max())
    if not 0.0 < size < _LARGEST or float(np.abs(used).max()) > 1e9 * size:
        raise GeometryError(
            f"The vertices of a Solid must span a size below {_LARGEST:g}, not too far from the origin. They span "
            f"{size:g}, up to {float(np.abs(used).max()):g} from it. Shift or scale the coordinates."
        )
    _, first, merged = np.unique(np.round(vertices / (_SAME * size)), axis=0, return_index=True, return_inverse=True)
    numbers = merged.reshape(-1)[triangles]
    kept = np.flatnonzero((numbers != np.roll(numbers, 1, axis=1)).all(axis=1))
    if not len(kept):
        raise GeometryError(f"A Solid must have triangles with three different vertices. None of them has. {_REPAIR}")
    surface = Surface(vertices[first], numbers[kept])
    _check_edges(surface, kept)
    _check_crossings(surface, kept, size)
    _check_turned(surface, kept)
    _check_sides(surface, kept)
    return surface, kept


def _check_edges(surface: Surface, kept: IntArray) -> None:
    """Refuse edges that have not two triangles, one running each way."""
    edges = surface.ends
    owner = np.repeat(kept, 3)
    both, where, counts = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True, return_counts=True)
    if (counts != 2).any():
        bad = int(np.flatnonzero(counts != 2)[0])
        start, stop = surface.vertices[both[bad]]
        mine = owner[where.reshape(-1) == bad]
        ends = f"{_place(start)} to {_place(stop)}"
        if counts[bad] == 1:
            total = int((counts == 1).sum())
            message = (
                f"A Solid needs a closed surface, and this one leaks: {total} edges have a triangle on one side only"
            )
            raise GeometryError(f"{message}, the first from {ends} at triangle {mine[0]}. {_REPAIR}")
        raise GeometryError(
            f"A Solid needs a surface with two triangles at every edge. {counts[bad]} meet at that from {ends}: "
            f"triangles {mine[:6].tolist()}. {_REPAIR}"
        )
    forward = np.zeros(len(both), dtype=np.int64)
    np.add.at(forward, where.reshape(-1), np.where(edges[:, 0] < edges[:, 1], 1, -1))
    if forward.any():
        bad = int(np.flatnonzero(forward)[0])
        mine = owner[where.reshape(-1) == bad]
        raise GeometryError(
            f"The triangles of a Solid must all run the same way round. Triangles {mine[0]} and {mine[1]} differ, at "
            f"the edge from {_place(surface.vertices[both[bad, 0]])}: one of them is inverted. {_REPAIR}"
        )


def _place(point: FloatArray) -> str:
    return "(" + ", ".join(f"{entry:.6g}" for entry in point) + ")"


def _check_turned(surface: Surface, kept: IntArray) -> None:
    """Refuse shells that are inside out: outer ones must enclose a positive volume, cavities a negative one."""
    shell = surface.pieces(surface.neighbours)
    count = int(shell.max()) + 1
    shells = [Surface(surface.vertices, surface.triangles[shell == k]) for k in range(count)]
    places = np.stack([own.corners[int(own.areas.argmax())].mean(axis=0) for own in shells])
    depth = np.zeros(count, dtype=np.int64)
    for k, own in enumerate(shells):
        inside = own.inside(places)
        inside[k] = False
        depth += inside
    for k, own in enumerate(shells):
        if own.volume == 0.0 or (own.volume > 0.0) != (depth[k] % 2 == 0):
            triangle = int(kept[int(np.flatnonzero(shell == k)[0])])
            what = "a cavity whose triangles face away from it" if depth[k] % 2 else "inside out"
            raise GeometryError(
                f"The triangles of a Solid must run counterclockwise seen from outside. The shell of triangle "
                f"{triangle}, near {_place(places[k])}, is {what}. Reverse its triangles, as trimesh's invert does."
            )


def _check_sides(surface: Surface, kept: IntArray) -> None:
    """Refuse triangles that have not the inside behind and the outside before them: on or in other triangles."""
    chosen = np.argsort(-surface.areas, kind="stable")[:_MOST_PROBES]
    chosen = chosen[surface.areas[chosen] > 0.0]
    # Not the middle, through which edges of other triangles like to pass.
    places = np.einsum("nij,i->nj", surface.corners[chosen], [0.41, 0.32, 0.27])
    step = _PROBE * np.sqrt(surface.areas[chosen])[:, None] * surface.normals[chosen]
    wrong = ~surface.inside(places - step) | surface.inside(places + step)
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        raise GeometryError(
            f"The surface of a Solid must not touch or cut itself. Triangle {int(kept[chosen[k]])} lies on or in "
            f"another part of it, near {_place(places[k])}. {_REPAIR}"
        )


def _check_crossings(surface: Surface, kept: IntArray, size: float) -> None:
    """Refuse surfaces that cut themselves: an edge through a triangle with which it has no vertex in common."""
    # Each edge once, from its lower vertex to its higher.
    once = np.flatnonzero(surface.ends[:, 0] < surface.ends[:, 1])
    ends = surface.ends[once]
    starts, stops = surface.vertices[ends].transpose(1, 0, 2)
    low, high = np.minimum(starts, stops), np.maximum(starts, stops)
    for edge, item in surface.tree.overlapping(low, high):
        others = surface.triangles[item]
        apart = ~((ends[edge, :1] == others) | (ends[edge, 1:] == others)).any(axis=1)
        edge, item = edge[apart], item[apart]
        cut = _cuts(starts[edge], stops[edge], surface.corners[item], size)
        if cut.any():
            k = int(np.flatnonzero(cut)[0])
            one, two = int(kept[once[edge[k]] // 3]), int(kept[item[k]])
            raise GeometryError(
                f"The surface of a Solid must not cut itself. Triangle {one} passes through triangle {two}, near "
                f"{_place((starts[edge[k]] + stops[edge[k]]) / 2)}. Join the solids it is made of, as trimesh.boolean."
                "union does, or read them one by one and join them with |."
            )


def _cuts(start: FloatArray, stop: FloatArray, corners: FloatArray, size: float) -> BoolArray:
    """Tell which segments pass through triangles, by more than rounding at both ends."""
    a, b, c = corners.transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1)
    normal = normal / np.where(length > 0.0, length, 1.0)[:, None]
    first, last = ((start - a) * normal).sum(axis=1), ((stop - a) * normal).sum(axis=1)
    through = (first * last < 0.0) & (np.minimum(np.abs(first), np.abs(last)) > _SAME * size)
    share = np.where(through, first / np.where(through, first - last, 1.0), 0.0)
    place = start + share[:, None] * (stop - start)
    for one, two in ((a, b), (b, c), (c, a)):
        through &= (np.cross(two - one, place - one) * normal).sum(axis=1) >= -_SAME * size * np.sqrt(length)
    return np.asarray(through)
