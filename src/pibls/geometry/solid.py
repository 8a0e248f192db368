"""Solids within triangulated surfaces, as CAD programs write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import BoolArray, FloatArray, IntArray, check_points, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import LevelIn, Region
from pibls.geometry.description import Argument, Arguments, Kind, check_coordinates
from pibls.geometry.patch import Patch, extent
from pibls.geometry.rings import check_names
from pibls.geometry.triangle_patches import TrianglePatch, make_patches
from pibls.geometry.triangles import Surface

_MOST_TRIANGLES = 200_000
_MOST_FACES = 100
_NEAR = 1e-3
_FEW = 64  # triangles that are all looked at faster than the nearest are found
_SAME = 1e-9
_LARGEST = 1e50
_MOST_PROBES = 20_000
_PROBE = 1e-6
_REPAIR = "Repair the surface, for example with trimesh.repair or the check of your CAD program."


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Solid(Region):
    """The solid within a closed surface of triangles.

    Triangles run counterclockwise seen from outside; surfaces inside of others run the other way and bound cavities.
    Flat faces are found: they are the parts ``face0``, ``face1``, ... in the order of their first triangles, unless
    there are more than a hundred.

    Parameters
    ----------
    coordinates : tuple of three symbols
    vertices : array of shape (n, 3)
        Those at the same place count as one.
    triangles : array of integers of shape (m, 3)
        Numbers of vertices.
    parts : mapping from names to triangle numbers, optional
        Parts of the boundary, each triangle in at most one of them.

    Examples
    --------
    >>> x, y, z = sp.symbols("x y z")
    >>> corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    >>> solid = Solid((x, y, z), corners, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)], {"base": [0]})
    >>> round(solid.measure, 12), solid.base.measure
    (0.166666666667, 0.5)
    >>> solid.base.normals([[0.2, 0.2, 0]])
    array([[ 0.,  0., -1.]])
    """

    coordinates: tuple[sp.Symbol, ...]
    surface: Surface
    named: tuple[tuple[str, tuple[int, ...]], ...]

    arguments: ClassVar[Arguments] = (
        Argument("vertices", Kind.POINTS, attribute="surface.vertices"),
        Argument("triangles", Kind.POINTS, attribute="surface.triangles"),
        Argument("parts", Kind.PARTS, attribute="named"),
    )

    def __init__(
        self,
        coordinates: tuple[sp.Symbol, ...],
        vertices: npt.ArrayLike,
        triangles: npt.ArrayLike,
        parts: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        symbols = check_coordinates(coordinates, "Solid", 3)
        points = check_points("vertices", vertices, "Solid", 3, error=GeometryError)
        numbers = _check_triangles(triangles, len(points))
        labels = check_names(parts or {}, len(numbers), "Solid", "triangles")
        rows = [row for _, own in labels for row in own]
        if len(set(rows)) < len(rows):
            raise GeometryError("The 'parts' parameter of Solid must have each triangle in one part. Got some in two.")
        surface, kept = _check_surface(points, numbers)
        place = np.full(len(numbers), -1)
        place[kept] = np.arange(len(kept))
        left = ((name, place[list(own)]) for name, own in labels)
        named = tuple((name, tuple(own[own >= 0].tolist())) for name, own in left)
        self._set(coordinates=symbols, surface=surface, named=named)

    def __repr__(self) -> str:
        low, high = self.bounds.T.round(6).tolist()
        return f"<Solid in {self.coordinates} of {len(self.surface.triangles)} triangles, from {low} to {high}>"

    @cached_property
    def bounds(self) -> FloatArray:
        """The extent of the vertices."""
        return extent(self.surface.corners)

    @property
    def measure(self) -> float:
        """The volume."""
        return self.surface.volume

    def level(self, X: FloatArray) -> FloatArray:
        """Return the distance from the nearest triangle, negative outside; that of another one far away."""
        distance, _ = self.surface.nearest(X, _NEAR * self.thickness)
        return np.where(self.surface.inside(X), distance, -distance)

    def level_in(self, low: FloatArray, high: FloatArray) -> LevelIn:
        """Return the level by the triangles in a box and those above it."""
        lowest, highest = self.surface.corners.min(axis=1), self.surface.corners.max(axis=1)
        near = (lowest <= high + self.tolerance) & (highest >= low - self.tolerance)
        level = self.surface.normals[:, 2] != 0.0  # upright ones are above nothing
        (above,) = np.nonzero(near[:, :2].all(axis=1) & (highest[:, 2] >= low[2]) & level)
        (within,) = np.nonzero(near.all(axis=1))
        if not len(within):
            return bool(self.surface.inside((low + high)[None] / 2)[0])
        return self.level if len(above) > _FEW else lambda X: self.surface.directly(X, within, above, self.tolerance)

    @cached_property
    def _labels(self) -> IntArray:
        labels = np.zeros(len(self.surface.triangles), dtype=np.int64)
        for k, (_, rows) in enumerate(self.named):
            labels[list(rows)] = k + 1
        return labels

    @cached_property
    def _patches(self) -> tuple[TrianglePatch, ...]:
        return make_patches(self.surface, self._labels)

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        """Return flat faces by their number, unless they are many, and the parts with names."""
        few = self._patches if len(self._patches) <= _MOST_FACES else ()
        found = {f"face{k}": [patch] for k, patch in enumerate(few)}
        for k, (name, _) in enumerate(self.named, 1):
            found[name] = [patch for patch in self._patches if self._labels[patch.items[0]] == k]
        return found


def _check_triangles(triangles: npt.ArrayLike, count: int) -> IntArray:
    try:
        numbers = np.asarray(triangles)
    except ValueError:
        numbers = np.empty(0, dtype=object)
    if numbers.ndim != 2 or numbers.shape[1] != 3 or numbers.dtype.kind not in "iu" or not len(numbers):
        raise GeometryError(
            "The 'triangles' parameter of Solid must be an array of integers of shape (m, 3), one row per triangle. "
            f"Got {shorten(triangles)} instead."
        )
    if len(numbers) > _MOST_TRIANGLES:
        raise GeometryError(
            f"The 'triangles' parameter of Solid must have at most {_MOST_TRIANGLES} rows. Got {len(numbers)} instead. "
            "Simplify the surface, for example with trimesh's simplify_quadric_decimation."
        )
    if int(numbers.min()) < 0 or int(numbers.max()) >= count:
        row = int(np.flatnonzero((numbers < 0).any(axis=1) | (numbers >= count).any(axis=1))[0])
        raise GeometryError(
            f"The 'triangles' parameter of Solid must have numbers of vertices, 0 to {count - 1}. Got "
            f"{numbers[row].tolist()} as triangle {row} instead."
        )
    return numbers.astype(np.int64)


def _check_surface(vertices: FloatArray, triangles: IntArray) -> tuple[Surface, IntArray]:
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
