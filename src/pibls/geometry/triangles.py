"""Closed surfaces of triangles: distances, sides and areas, for very many triangles of very different sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray
from pibls.geometry.boxtree import BoxTree
from pibls.geometry.patch import FieldState


@dataclass(frozen=True, eq=False)
class Surface(FieldState):
    """Triangles by the numbers of their vertices, counterclockwise seen from outside."""

    vertices: FloatArray
    triangles: IntArray

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Surface) and (self is other or self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[bytes, bytes]:
        return self.vertices.tobytes(), self.triangles.tobytes()

    @cached_property
    def corners(self) -> FloatArray:
        """The vertices of each triangle, shape (n, 3, 3)."""
        return np.asarray(self.vertices[self.triangles])

    @cached_property
    def _crosses(self) -> FloatArray:
        a, b, c = self.corners.transpose(1, 0, 2)
        return np.cross(b - a, c - a)

    @cached_property
    def areas(self) -> FloatArray:
        """The area of each triangle."""
        return np.asarray(np.linalg.norm(self._crosses, axis=1) / 2)

    @cached_property
    def normals(self) -> FloatArray:
        """The outward unit normal of each triangle; zero for one without area."""
        sizes = np.linalg.norm(self._crosses, axis=1, keepdims=True)
        return np.asarray(self._crosses / np.where(sizes > 0.0, sizes, 1.0))

    @cached_property
    def volume(self) -> float:
        """The volume inside."""
        a, b, c = (self.corners - self.vertices[0]).transpose(1, 0, 2)
        return float((a * np.cross(b, c)).sum() / 6)

    @cached_property
    def ends(self) -> IntArray:
        """The vertices that the edges run from and to, three edges per triangle, shape (3n, 2)."""
        return np.asarray(self.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2))

    @cached_property
    def neighbours(self) -> IntArray:
        """The two triangles at every edge of a closed surface, shape (edges, 2)."""
        owner = np.repeat(np.arange(len(self.triangles)), 3)
        return np.asarray(owner[np.lexsort(np.sort(self.ends, axis=1).T)].reshape(-1, 2))

    def pieces(self, pairs: IntArray) -> IntArray:
        """Return the number of the piece that each triangle is in, if these pairs of them hold together."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        graph = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(len(self.triangles),) * 2)
        return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)

    @cached_property
    def tree(self) -> BoxTree:
        """Boxes around the triangles."""
        return BoxTree(self.corners.min(axis=1), self.corners.max(axis=1), self.corners.mean(axis=1))

    def nearest(self, X: FloatArray, reach: float = np.inf) -> tuple[FloatArray, IntArray]:
        """Return the distance of each point from the surface, and the nearest triangle; beyond a reach, one nearby."""
        return self.tree.nearest(X, lambda rows, items: triangle_distance(X[rows], self.corners[items]), reach)

    def inside(self, X: FloatArray) -> BoolArray:
        """Tell which points are inside, by the parity of the triangles above them."""

        def is_above(rows: IntArray, items: IntArray) -> BoolArray:
            over = self._covers(X[rows], items)
            over[over] = self._is_below(X[rows[over]], items[over])
            return over

        return self.tree.is_within(X, 2, is_above)

    def directly(self, X: FloatArray, near: IntArray, above: IntArray, reach: float) -> FloatArray:
        """Return distances up to a reach, negative outside, by a look at all triangles that may be near or above."""
        distance = np.full(len(X), reach)
        normals = self.normals[near]
        heights = X @ normals.T - (self.corners[near, 0] * normals).sum(axis=1)
        rows, columns = np.nonzero(np.abs(heights) <= reach)
        if len(rows):
            np.minimum.at(distance, rows, triangle_distance(X[rows], self.corners[near[columns]]))
        over = np.zeros(len(X), dtype=np.bool_)
        for item in above:
            over ^= self._covers(X, item) & self._is_below(X, item)
        return np.where(over, distance, -distance)

    def _covers(self, X: FloatArray, items: Any) -> BoolArray:
        """Tell which points lie over triangles seen from above: two that share an edge agree about it exactly."""
        inside = np.zeros(len(X), dtype=np.bool_)
        for k in range(3):
            ends = np.sort(self.triangles[items][..., [k, (k + 1) % 3]], axis=-1)
            a, b = self.vertices[ends[..., 0]], self.vertices[ends[..., 1]]
            cuts = (X[:, 1] >= a[..., 1]) != (X[:, 1] >= b[..., 1])
            rise = np.where(cuts, b[..., 1] - a[..., 1], 1.0)
            inside ^= cuts & (X[:, 0] - a[..., 0] < (b[..., 0] - a[..., 0]) * ((X[:, 1] - a[..., 1]) / rise))
        return inside

    def _is_below(self, X: FloatArray, items: Any) -> BoolArray:
        normal = self._crosses[items]
        height = ((X - self.corners[items, 0]) * normal).sum(axis=1)
        return np.asarray(height * np.sign(normal[..., 2]) < 0.0)


def triangle_distance(X: FloatArray, corners: FloatArray) -> FloatArray:
    """Return the distances of points (n, 3) from as many triangles (n, 3, 3), which may have no area.

    >>> triangle = np.array([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    >>> triangle_distance(np.array([[0.2, 0.2, 3.0]]), triangle), triangle_distance(np.array([[-1.0, 0, 0]]), triangle)
    (array([3.]), array([1.]))
    """
    best = np.full(len(X), np.inf)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    within = np.ones(len(X), dtype=np.bool_)
    for k in range(3):
        start, edge = corners[:, k], corners[:, (k + 1) % 3] - corners[:, k]
        offset = X - start
        length = (edge * edge).sum(axis=1)
        along = np.clip((offset * edge).sum(axis=1) / np.where(length > 0.0, length, 1.0), 0.0, 1.0)
        np.minimum(best, np.linalg.norm(offset - along[:, None] * edge, axis=1), out=best)
        within &= (np.cross(edge, offset) * normal).sum(axis=1) >= 0.0
    size = np.linalg.norm(normal, axis=1)
    within &= size > 0.0
    height = np.abs(((X - corners[:, 0]) * normal).sum(axis=1)) / np.where(size > 0.0, size, 1.0)
    return np.where(within, np.minimum(best, height), best)
