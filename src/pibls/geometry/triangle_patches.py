"""Patches of triangulated surfaces: flat faces, and scraps of curved ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray
from pibls.geometry.boxtree import BoxTree, bundled
from pibls.geometry.patch import Located, Patch, SurfaceRule, extent
from pibls.geometry.sampling import on_simplices, picked_simplices
from pibls.geometry.triangles import Surface
from pibls.quadrature.rules import gauss, side, tensor

_FLAT = 1e-5  # sine of the angle between triangles of one face: files of single precision have some 1e-7
_MOST_FACES = 200
_SCRAP = 64


@dataclass(frozen=True)
class TrianglePatch(Patch):
    """Some triangles of a surface."""

    surface: Surface
    items: tuple[int, ...]
    parameters = 2

    @cached_property
    def _own(self) -> Surface:
        return Surface(self.surface.vertices, self.surface.triangles[list(self.items)])

    @cached_property
    def measure(self) -> float:
        """The sum of the areas."""
        return float(self._own.areas.sum())

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points are within the tolerance of one of the triangles."""
        low, high = extent(self._own.corners).T
        found = ((low - tolerance <= X) & (high + tolerance >= X)).all(axis=1)
        found[found] = self._own.nearest(X[found], tolerance)[0] <= tolerance
        return np.asarray(found)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the normals of the nearest triangles."""
        return self._own.normals[self._own.nearest(X)[1]]

    def quadrature(self, n: int) -> SurfaceRule:
        """Return Gauss points on every triangle, about n in all."""
        areas = self._own.areas
        m = side(n / len(areas), 2)
        U, weights = tensor(gauss(m + 1), gauss(m))
        points = on_simplices(self._own.corners[:, None], U)
        scales = 2 * np.outer(areas, weights * U[:, 0]).ravel()
        return points.reshape(-1, 3), np.repeat(self._own.normals, len(U), axis=0), scales

    def facets(self, m: int) -> FloatArray:
        """Return triangles, halved across their longest edges until about m of them lie along the patch."""
        corners, longest = self._own.corners, 2 * float(np.sqrt(self.measure)) / m
        while True:
            edges = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
            large = edges.max(axis=1) > longest
            if not large.any():
                return corners
            first = edges[large].argmax(axis=1)[:, None] + np.arange(3)
            a, b, c = np.take_along_axis(corners[large], first[:, :, None] % 3, axis=1).transpose(1, 0, 2)
            halves = [np.stack(own, axis=1) for own in ((a, (a + b) / 2, c), ((a + b) / 2, b, c))]
            corners = np.concatenate([corners[~large], *halves])


@dataclass(frozen=True)
class _ScrapPatch(TrianglePatch):
    """A few triangles of a curved surface; the first parameter chooses one by its area."""

    def at(self, U: FloatArray) -> Located:
        item, local = picked_simplices(self._own.areas, U)
        return on_simplices(self._own.corners[item], local), self._own.normals[item], None


@dataclass(frozen=True)
class FlatFrame:
    """The rectangle around a flat face, in coordinates of its plane."""

    bounds: FloatArray


@dataclass(frozen=True)
class _FlatPatch(TrianglePatch):
    """A flat face: the rectangle around it in its plane, and which of it the triangles cover."""

    @cached_property
    def _axes(self) -> tuple[FloatArray, FloatArray]:
        """A point of the plane, and two directions in it and the normal as rows: along coordinates if they fit."""
        own = self._own
        normal = own.areas @ own.normals
        normal = normal / np.linalg.norm(normal)
        aligned = int(np.abs(normal).argmax())
        if abs(normal[aligned]) > 1 - 1e-12:
            normal = np.eye(3)[aligned] * np.sign(normal[aligned])
            along = np.eye(3)[(aligned + 1) % 3]
        else:
            edges = np.roll(own.corners, -1, axis=1) - own.corners
            along = edges.reshape(-1, 3)[np.linalg.norm(edges, axis=2).argmax()]
            along = along - (along @ normal) * normal
            along = along / np.linalg.norm(along)
        return own.corners[int(own.areas.argmax()), 0], np.stack([along, np.cross(normal, along), normal])

    @cached_property
    def _local(self) -> FloatArray:
        """The corners in coordinates of the plane, the third the height above it."""
        origin, axes = self._axes
        return np.asarray((self._own.corners - origin) @ axes.T)

    @cached_property
    def domain(self) -> FlatFrame:
        """The rectangle that parameters are spread over."""
        return FlatFrame(extent(self._local[:, :, :2]))

    @cached_property
    def _tree(self) -> BoxTree:
        flat = self._local[:, :, :2]
        return BoxTree(flat.min(axis=1), flat.max(axis=1))

    def at(self, U: FloatArray) -> Located:
        low, high = self.domain.bounds.T
        flat = low + U * (high - low)
        item = self._located(flat)
        kept = item >= 0
        origin, axes = self._axes
        height = np.zeros(len(flat))
        a, b, c = self._local[item[kept]].transpose(1, 0, 2)
        normal = np.cross(b - a, c - a)
        height[kept] = a[:, 2] - ((flat[kept] - a[:, :2]) * normal[:, :2]).sum(axis=1) / normal[:, 2]
        points = origin + np.column_stack([flat, height]) @ axes
        normals = np.where(kept[:, None], self._own.normals[np.maximum(item, 0)], axes[2])
        return points, normals, kept

    def _located(self, flat: FloatArray) -> IntArray:
        """Return the triangle that each point of the plane is in, -1 if none."""
        found = np.full(len(flat), -1, dtype=np.int64)
        corners = self._local[:, :, :2]
        for rows, items in self._tree.overlapping(flat, flat):
            within = np.ones(len(rows), dtype=np.bool_)
            for k in range(3):
                start = corners[items, k]
                edge, offset = corners[items, (k + 1) % 3] - start, flat[rows] - start
                within &= edge[:, 0] * offset[:, 1] - edge[:, 1] * offset[:, 0] >= 0.0
            found[rows[within]] = items[within]
        return found


def make_patches(surface: Surface, labels: IntArray) -> tuple[TrianglePatch, ...]:
    """Return the flat faces of a closed surface, and scraps of curved ones; none has two labels."""
    has_area = surface.areas > 0.0
    pairs = surface.neighbours
    one, two = surface.normals[pairs].transpose(1, 0, 2)
    flat = (np.linalg.norm(np.cross(one, two), axis=1) <= _FLAT) & ((one * two).sum(axis=1) > 0.0)
    groups = surface.pieces(pairs[flat & (labels[pairs[:, 0]] == labels[pairs[:, 1]])])
    counts = np.bincount(groups[has_area], minlength=int(groups.max()) + 1)
    faces = np.flatnonzero(counts)
    if len(faces) > _MOST_FACES:
        # So many of them are a curved surface. Those of one triangle each are no faces, and of the others the largest.
        sizes = np.bincount(groups, weights=surface.areas)
        faces = np.flatnonzero(counts > 1)
        faces = np.sort(faces[np.argsort(-sizes[faces], kind="stable")[:_MOST_FACES]])
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(len(counts) + 1))
    owned = [order[starts[g] : starts[g + 1]] for g in faces]
    patches: list[TrianglePatch] = [_FlatPatch(surface, tuple(own[has_area[own]].tolist())) for own in owned]
    left = has_area & ~np.isin(groups, faces)
    for label in np.unique(labels[left]):
        rest = np.flatnonzero(left & (labels == label))
        bundles = bundled(surface.corners[rest].mean(axis=1), _SCRAP)
        patches += [_ScrapPatch(surface, tuple(rest[own].tolist())) for own in bundles]
    return tuple(patches)
