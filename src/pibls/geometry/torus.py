"""Tori."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_number, shorten
from pibls.errors import GeometryError
from pibls.geometry.ball import SpherePatch, check_center
from pibls.geometry.base import Decoder, Encoder, Region, check_coordinates, describe
from pibls.geometry.part import Part
from pibls.geometry.rules import gauss, periodic, side, tensor
from pibls.geometry.sampling import check_count
from pibls.geometry.sizes import check_sizes, written
from pibls.geometry.turning import Frame, RevolvedPatch

__all__ = ["Torus"]

Vector = tuple[float, ...]


def _axis(value: object, owner: str) -> Vector:
    direction = np.array(check_center(value, 3, owner))
    length = float(np.linalg.norm(direction))
    if not 1e-100 < length < 1e100:
        raise GeometryError(
            f"The 'axis' parameter of {owner} must be a direction, three numbers not all zero. Got {shorten(value)} "
            "instead. Write (0, 0, 1) for an axis along the third coordinate."
        )
    # A unit vector stays as it is, so that what was stored is read back as the same.
    return tuple((direction if abs(length - 1.0) < 1e-15 else direction / length).tolist())


@dataclass(frozen=True, init=False, repr=False)
class Torus(Region):
    """A ring: a disk of radius ``tube`` turned about an axis at the distance ``radius``; its boundary is one piece.

    Examples
    --------
    >>> x, y, z = sp.symbols("x y z")
    >>> ring = Torus((x, y, z), (0, 0, 0), 3, 1)
    >>> round(ring.measure / np.pi**2, 9)
    6.0
    >>> ring.boundary.normals([[2, 0, 0]])
    array([[-1.,  0.,  0.]])
    """

    coordinates: tuple[sp.Symbol, ...]
    center: Vector
    radius: float
    tube: float
    axis: Vector

    def __init__(
        self,
        coordinates: tuple[sp.Symbol, ...],
        center: object,
        radius: object,
        tube: object,
        axis: object = (0.0, 0.0, 1.0),
    ) -> None:
        object.__setattr__(self, "coordinates", check_coordinates(coordinates, "Torus", 3))
        object.__setattr__(self, "center", check_center(center, 3, "Torus"))
        for name, value in (("radius", radius), ("tube", tube)):
            size = check_number(name, value, "Torus", minimum=0, exclusive=True, error=GeometryError)
            object.__setattr__(self, name, size)
        object.__setattr__(self, "axis", _axis(axis, "Torus"))
        check_sizes("Torus", {"radius": self.radius, "tube": self.tube}, self.center)
        if not self.tube < self.radius:
            raise GeometryError(
                f"The 'tube' parameter of Torus must be below its radius {describe(self.radius)}. "
                f"Got {describe(self.tube)} instead. Without a hole, use a Revolution of a disk cut at the axis."
            )

    def __repr__(self) -> str:
        axis = "" if self.axis == (0.0, 0.0, 1.0) else f", axis={written(self.axis)}"
        sizes = f"{describe(self.radius)}, {describe(self.tube)}"
        return f"Torus({self.coordinates}, {written(self.center)}, {sizes}{axis})"

    @cached_property
    def _frame(self) -> Frame:
        return Frame(self.center, self.axis)

    @property
    def bounds(self) -> FloatArray:
        """The smallest box: that around the circle in the middle of the tube, wider by the tube."""
        middle = self._frame.bounds(np.array([[self.radius, 0.0]]))
        return np.asarray(middle + np.array([-self.tube, self.tube]))

    @property
    def thickness(self) -> float:
        """The diameter of the tube."""
        return 2 * self.tube

    @property
    def measure(self) -> float:
        """The volume."""
        return 2 * math.pi**2 * self.radius * self.tube**2

    def level(self, X: FloatArray) -> FloatArray:
        """Return the distance from the surface, negative outside."""
        distance, along = self._frame.radial(X).T
        return np.asarray(self.tube - np.hypot(distance - self.radius, along))

    @property
    def boundary(self) -> Part:
        """The surface."""
        return self._part("boundary", RevolvedPatch(SpherePatch((self.radius, 0.0), self.tube), self._frame))

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return Gauss along the radius of the tube times trapezoid rules around it and around the axis."""
        count = check_count(n, 3, "Torus.quadrature")
        m = side(count / 4, 3)
        around = max(3, round(math.sqrt(count / m)))
        U, weights = tensor(gauss(m), periodic(around), periodic(around))
        turn = 2 * np.pi * U[:, 1]
        radial, along = self.tube * U[:, 0] * np.cos(turn), self.tube * U[:, 0] * np.sin(turn)
        profile = np.stack([self.radius + radial, along], axis=1)
        scales = 4 * np.pi**2 * self.tube**2 * U[:, 0] * profile[:, 0]
        return self._frame.placed(profile, 2 * np.pi * U[:, 2]), weights * scales

    def _encode(self, _: Encoder | None) -> dict[str, Any]:
        sizes = {"radius": self.radius, "tube": self.tube}
        return {"center": list(self.center), **sizes, "axis": list(self.axis)}

    @classmethod
    def _decode(cls, data: Mapping[str, Any], coordinates: tuple[sp.Symbol, ...], _: Decoder | None) -> Torus:
        return cls(coordinates, data["center"], data["radius"], data["tube"], data["axis"])
