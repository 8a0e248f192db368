"""Curves turned about an axis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pibls.checks import BoolArray, FloatArray
from pibls.geometry.patch import DerivedPatch, FieldState, Located, Patch, SurfaceRule
from pibls.geometry.spans import Warp
from pibls.quadrature.rules import periodic, side

Vector = tuple[float, ...]

_TURN = 2 * np.pi


@dataclass(frozen=True)
class Frame(FieldState):
    """Cylindrical coordinates around an axis: through ``origin`` in the direction of the unit vector ``axis``."""

    origin: Vector
    axis: Vector

    @cached_property
    def _matrix(self) -> FloatArray:
        """Rows: two directions across the axis, and the axis."""
        axis = np.array(self.axis)
        # The coordinate direction most across the axis: where the axis is one, the others are the directions across.
        first = np.eye(3)[int(np.abs(axis).argmin())]
        first = first - (first @ axis) * axis
        first = first / np.linalg.norm(first)
        return np.stack([first, np.cross(axis, first), axis])

    def local(self, X: FloatArray) -> FloatArray:
        """Return coordinates across (two) and along the axis."""
        return np.asarray((X - np.array(self.origin)) @ self._matrix.T)

    def radial(self, X: FloatArray) -> FloatArray:
        """Return distances from the axis and positions along it, shape (n, 2)."""
        own = self.local(X)
        return np.stack([np.hypot(own[:, 0], own[:, 1]), own[:, 2]], axis=1)

    def turned(self, P: FloatArray, angle: FloatArray) -> FloatArray:
        """Return the vectors with components across and along the axis, turned by angles; the origin is not added."""
        own = np.stack([P[:, 0] * np.cos(angle), P[:, 0] * np.sin(angle), P[:, 1]], axis=1)
        return np.asarray(own @ self._matrix)

    def placed(self, P: FloatArray, angle: FloatArray) -> FloatArray:
        """Return the points at distances from the axis and positions along it, turned by angles."""
        return np.asarray(np.array(self.origin) + self.turned(P, angle))

    def angle(self, X: FloatArray) -> FloatArray:
        """Return the angles around the axis."""
        own = self.local(X)
        return np.arctan2(own[:, 1], own[:, 0])

    def bounds(self, profile: FloatArray) -> FloatArray:
        """Return the box around rings at distances from the axis and positions along it, shape (n, 2)."""
        across = np.sqrt(np.clip(1.0 - np.array(self.axis) ** 2, 0.0, None))
        middle = np.array(self.origin) + np.outer(profile[:, 1], self.axis)
        reach = np.outer(profile[:, 0], across)
        return np.stack([(middle - reach).min(axis=0), (middle + reach).max(axis=0)], axis=1)


@dataclass(frozen=True)
class RevolvedPatch(Patch):
    """A curve in the half plane (distance from the axis, position along it), turned about the axis."""

    curve: Patch
    frame: Frame

    @property
    def parameters(self) -> int:
        """Two: along the curve, and around."""
        return 2

    @cached_property
    def _warp(self) -> Warp:
        # Far from the axis a piece of the curve makes more area.
        return Warp(lambda s: np.abs(self.curve.at(s[:, None])[0][:, 0]))

    @property
    def measure(self) -> float:
        """Pappus: the integral of the circumference along the curve."""
        return _TURN * self.curve.measure * self._warp.total

    @property
    def exact(self) -> bool:
        """As the curve."""
        return self.curve.exact

    def at(self, U: FloatArray) -> Located:
        """Return points and normals."""
        return (*self._turned(self._warp.inverse(U[:, 0]), _TURN * U[:, 1]), None)

    def _turned(self, s: FloatArray, angle: FloatArray) -> tuple[FloatArray, FloatArray]:
        points, normals, _ = self.curve.at(s[:, None])
        return self.frame.placed(points, angle), self.frame.turned(normals, angle)

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points turn into points of the curve."""
        return self.curve.contains(self.frame.radial(X), tolerance)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the normals of the curve, turned."""
        return self.frame.turned(self.curve.normals(self.frame.radial(X)), self.frame.angle(X))

    def quadrature(self, n: int) -> SurfaceRule:
        """Return a rule along the curve times the trapezoid rule around."""
        along = side(n / 2, 2)
        points, normals, weights = self.curve.quadrature(along)
        turns, shares = periodic(max(3, round(n / len(points))))
        angle = np.tile(_TURN * turns, len(points))
        points, normals = (np.repeat(rows, len(turns), axis=0) for rows in (points, normals))
        areas = np.outer(weights, _TURN * shares).ravel() * np.abs(points[:, 0])
        return self.frame.placed(points, angle), self.frame.turned(normals, angle), areas


@dataclass(frozen=True)
class MirroredPatch(DerivedPatch):
    """A plane curve with its two coordinates swapped."""

    def at(self, U: FloatArray) -> Located:
        """Return points and normals of the base, swapped."""
        points, normals, keep = self.base.at(U)
        return points[:, ::-1], normals[:, ::-1], keep

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points are on the base when swapped."""
        return self.base.contains(X[:, ::-1], tolerance)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the normals of the base, swapped."""
        return self.base.normals(X[:, ::-1])[:, ::-1]

    def quadrature(self, n: int) -> SurfaceRule:
        """Return the rule of the base, swapped."""
        points, normals, weights = self.base.quadrature(n)
        return points[:, ::-1], normals[:, ::-1], weights
