"""Solids within triangulated surfaces, as CAD programs write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import FloatArray, IntArray, check_points, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import LevelIn, Region, check_coordinates
from pibls.geometry.description import Argument, Arguments, Kind
from pibls.geometry.patch import Patch
from pibls.geometry.rings import check_names
from pibls.geometry.triangle_patches import TrianglePatch, make_patches
from pibls.geometry.triangles import Surface
from pibls.geometry.watertight import check_surface

_MOST_TRIANGLES = 200_000
_MOST_FACES = 100
_NEAR = 1e-3
_FEW = 64  # triangles that are all looked at faster than the nearest are found


@dataclass(frozen=True, init=False, repr=False)
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
        surface, kept = check_surface(points, numbers)
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
        corners = self.surface.corners.reshape(-1, 3)
        return np.stack([corners.min(axis=0), corners.max(axis=0)], axis=1)

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
