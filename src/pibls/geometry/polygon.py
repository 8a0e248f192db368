"""Simple polygons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import FloatArray, check_points, shorten
from pibls.errors import GeometryError, PiblsError
from pibls.geometry.base import Decoder, Encoder, Region, check_coordinates, describe
from pibls.geometry.part import Part
from pibls.geometry.patch import ROUNDING, AffinePatch
from pibls.geometry.rings import cross, signed_area
from pibls.geometry.rules import gauss, side, tensor
from pibls.geometry.sampling import apportion, check_count

__all__ = ["Polygon"]


_RESOLUTION = 1e-12
_MOST_VERTICES = 5000
_SMALLEST, _LARGEST = 1e-100, 1e100


@dataclass(frozen=True, init=False, repr=False)
class Polygon(Region):
    """A simple polygon, its vertices in order (either way round), the first not repeated at the end.

    Its parts are ``edge0`` from the first vertex to the second, ``edge1``, ...

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> bracket = Polygon((x, y), [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    >>> bracket.measure
    3.0
    >>> (bracket.corners / np.pi).round(3)
    array([0.5, 0.5, 0.5, 1.5, 0.5, 0.5])
    >>> bracket.edge2.measure
    1.0
    """

    coordinates: tuple[sp.Symbol, ...]
    vertices: tuple[tuple[float, float], ...]

    def __init__(self, coordinates: tuple[sp.Symbol, sp.Symbol], vertices: npt.ArrayLike) -> None:
        symbols = check_coordinates(coordinates, "Polygon", 2)
        try:
            corners = check_points("vertices", vertices, "Polygon", 2, error=GeometryError)
        except PiblsError:
            corners = check_points("vertices", _as_floats(vertices), "Polygon", 2, error=GeometryError)
        if len(corners) < 3:
            raise GeometryError(
                f"The 'vertices' parameter of Polygon must have three or more points. Got {len(corners)} instead."
            )
        if len(corners) > _MOST_VERTICES:
            raise GeometryError(
                f"The 'vertices' parameter of Polygon must have at most {_MOST_VERTICES} points, as each edge is "
                f"checked against all others. Got {len(corners)} instead. Thin them out, or use Star or PointCloud."
            )
        _check_simple(corners)
        object.__setattr__(self, "coordinates", symbols)
        object.__setattr__(self, "vertices", tuple((float(a), float(b)) for a, b in corners))

    def __repr__(self) -> str:
        corners = ", ".join(f"({describe(a)}, {describe(b)})" for a, b in self.vertices)
        return f"Polygon({self.coordinates}, [{corners}])"

    @cached_property
    def _starts(self) -> FloatArray:
        return np.array(self.vertices)

    @cached_property
    def _edges(self) -> FloatArray:
        return np.asarray(np.roll(self._starts, -1, axis=0) - self._starts)

    @cached_property
    def _signed_area(self) -> float:
        return signed_area(self._starts)

    @property
    def corners(self) -> FloatArray:
        """Interior angle at each vertex, in radians; above π at a re-entrant corner."""
        after = self._edges
        before = np.roll(after, 1, axis=0)
        turn = np.arctan2(cross(before, after), (before * after).sum(axis=1))
        return np.asarray(np.pi - math.copysign(1.0, self._signed_area) * turn)

    @property
    def bounds(self) -> FloatArray:
        """The extent of the vertices."""
        return np.stack([self._starts.min(axis=0), self._starts.max(axis=0)], axis=1)

    @property
    def measure(self) -> float:
        """The area."""
        return abs(self._signed_area)

    def level(self, X: FloatArray) -> FloatArray:
        """Return the distance from the nearest edge, negative outside (by the parity of crossings)."""
        nearest = np.full(len(X), np.inf)
        inside = np.zeros(len(X), dtype=np.bool_)
        # Compared with the vertices themselves: differences round, and two edges would disagree about their vertex.
        above = X[:, 1:] >= self._starts[:, 1]
        for i, (start, edge) in enumerate(zip(self._starts, self._edges, strict=True)):
            offset = X - start
            along = np.clip(offset @ edge / (edge @ edge), 0.0, 1.0)
            np.minimum(nearest, np.hypot(*(offset - along[:, None] * edge).T), out=nearest)
            crosses = above[:, i] != above[:, (i + 1) % len(self._starts)]
            if crosses.any():
                inside[crosses] ^= offset[crosses, 0] < edge[0] * (offset[crosses, 1] / edge[1])
        return np.where(inside, nearest, -nearest)

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """The edges."""
        return MappingProxyType({f"edge{i}": self._part(f"edge{i}", self._patch(i)) for i in range(len(self.vertices))})

    @property
    def boundary(self) -> Part:
        """All edges."""
        return self._part("boundary", *(self._patch(i) for i in range(len(self.vertices))))

    def _patch(self, index: int) -> AffinePatch:
        edge = self._edges[index] * math.copysign(1.0, self._signed_area)
        normal = np.array([edge[1], -edge[0]]) / math.hypot(*edge)
        return AffinePatch(self.vertices[index], (tuple(self._edges[index].tolist()),), tuple(normal.tolist()))

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return Gauss rules on the trapezoids between the heights of the vertices, about ``n`` nodes in all."""
        count = check_count(n, 2, "Polygon.quadrature")
        trapezoids = self._trapezoids()
        shares = apportion(max(count, len(trapezoids)), np.array([t.area for t in trapezoids]))
        rules = [t.rule(side(int(k), 2)) for t, k in zip(trapezoids, shares, strict=True)]
        return np.concatenate([points for points, _ in rules]), np.concatenate([weights for _, weights in rules])

    def _trapezoids(self) -> list[_Trapezoid]:
        low, high = np.sort(np.stack([self._starts[:, 1], np.roll(self._starts[:, 1], -1)]), axis=0)
        heights = np.unique(self._starts[:, 1])
        trapezoids = []
        for bottom, top in pairwise(heights.tolist()):
            active = np.flatnonzero((low <= bottom) & (high >= top))
            active = active[np.argsort(self._abscissa(active, (bottom + top) / 2), kind="stable")]
            ends = np.stack([self._abscissa(active, bottom), self._abscissa(active, top)], axis=1)
            for left, right in zip(ends[0::2], ends[1::2], strict=True):
                trapezoids.append(_Trapezoid(bottom, top, left, right - left))
        return [trapezoid for trapezoid in trapezoids if trapezoid.area > 0]

    def _abscissa(self, edges: npt.NDArray[np.int64], height: float) -> FloatArray:
        starts, vectors = self._starts[edges], self._edges[edges]
        return np.asarray(starts[:, 0] + vectors[:, 0] * np.clip((height - starts[:, 1]) / vectors[:, 1], 0.0, 1.0))

    def _encode(self, _: Encoder | None) -> dict[str, Any]:
        return {"vertices": [list(vertex) for vertex in self.vertices]}

    @classmethod
    def _decode(cls, data: Mapping[str, Any], coordinates: tuple[sp.Symbol, ...], _: Decoder | None) -> Polygon:
        first, second = coordinates
        return cls((first, second), data["vertices"])


@dataclass(frozen=True, eq=False)
class _Trapezoid:
    """Between two heights; left end and width, each at the bottom and at the top."""

    bottom: float
    top: float
    left: FloatArray
    width: FloatArray

    @property
    def area(self) -> float:
        return float((self.top - self.bottom) * self.width.sum() / 2)

    def rule(self, m: int) -> tuple[FloatArray, FloatArray]:
        # One more node upwards pays for the Jacobian, which is linear there.
        U, weights = tensor(gauss(m), gauss(m + 1))
        width = self.width[0] + U[:, 1] * (self.width[1] - self.width[0])
        x = self.left[0] + U[:, 1] * (self.left[1] - self.left[0]) + U[:, 0] * width
        y = self.bottom + U[:, 1] * (self.top - self.bottom)
        return np.stack([x, y], axis=1), weights * width * (self.top - self.bottom)


def _as_floats(vertices: object) -> object:
    """Turn SymPy points and numbers into floats where possible; leave the rest to the check that follows."""
    try:
        return [[float(entry) for entry in vertex] for vertex in vertices]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return vertices


def _check_simple(vertices: FloatArray) -> None:
    """Refuse polygons that repeat a vertex, have no area, or cross or touch themselves."""
    if not _SMALLEST < float(np.abs(vertices).max()) < _LARGEST:
        raise GeometryError(
            f"The 'vertices' parameter of Polygon must have coordinates below {_LARGEST:g}, not all zero. "
            f"Got {shorten(vertices.tolist())} instead. Scale the coordinates."
        )
    extent = vertices.max(axis=0) - vertices.min(axis=0)
    scale = float(np.hypot(*extent))
    resolution = _RESOLUTION * scale + ROUNDING * float(np.abs(vertices).max())
    edges = np.roll(vertices, -1, axis=0) - vertices
    if extent.min() <= resolution or abs(signed_area(vertices)) <= resolution * scale:
        raise GeometryError(
            f"The 'vertices' parameter of Polygon must enclose an area. Got {shorten(vertices.tolist())} instead. "
            "Check that they are not all on one line and, far from the origin, shift the coordinates."
        )
    for i, vertex in enumerate(vertices):
        gaps = np.hypot(*(vertices - vertex).T)
        gaps[i] = np.inf
        if gaps.min() <= resolution:
            j = int(gaps.argmin())
            raise GeometryError(
                f"The 'vertices' parameter of Polygon must have different points. Got {vertex.tolist()} as numbers "
                f"{i} and {j}. Leave one out; the polygon closes by itself."
            )
    for i, (vertex, edge) in enumerate(zip(vertices, edges, strict=True)):
        offset = vertices - vertex
        along = np.clip(offset @ edge / (edge @ edge), 0.0, 1.0)
        touches = np.hypot(*(offset - along[:, None] * edge).T) <= resolution
        touches[[i, (i + 1) % len(vertices)]] = False
        ahead, around = offset + edges, cross(edge, offset)
        apart = cross(edge, ahead) * around < 0
        behind, before = cross(edges, -offset), cross(edges, edge - offset)
        crossing = apart & (behind * before < 0)
        if touches.any() or crossing.any():
            j = int(np.flatnonzero(touches | crossing)[0])
            raise GeometryError(
                f"The 'vertices' parameter of Polygon must describe a simple polygon. Edge {i} meets vertex or edge "
                f"{j}. Put the vertices in order around the boundary, or join simple polygons with |."
            )
