"""Cylinders and cones."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_number
from pibls.errors import GeometryError
from pibls.geometry.ball import Disk, check_center
from pibls.geometry.base import Decoder, Encoder, Region, check_coordinates, describe
from pibls.geometry.extrusion import Extrusion
from pibls.geometry.part import Part
from pibls.geometry.patch import AffinePatch, Patch
from pibls.geometry.rules import gauss, periodic, side, tensor
from pibls.geometry.sampling import check_count
from pibls.geometry.sizes import check_sizes, written
from pibls.geometry.turning import Frame, RevolvedPatch

__all__ = ["Cone", "Cylinder"]

Vector = tuple[float, ...]


class _Tapered(Region):
    """A cylinder or cone: straight sides between two flat ends."""

    start: Vector
    stop: Vector

    @property
    @abstractmethod
    def _radii(self) -> tuple[float, float]:
        """Radius at the start and at the stop."""

    @cached_property
    def _frame(self) -> Frame:
        along = np.array(self.stop) - np.array(self.start)
        return Frame(self.start, tuple((along / np.linalg.norm(along)).tolist()))

    @property
    def height(self) -> float:
        """Distance between the ends."""
        return math.dist(self.start, self.stop)

    @property
    def bounds(self) -> FloatArray:
        """The smallest box around the ends."""
        first, last = self._radii
        return self._frame.bounds(np.array([[first, 0.0], [last, self.height]]))

    @property
    def thickness(self) -> float:
        """The smaller of height and largest diameter."""
        return min(self.height, 2 * max(self._radii))

    @property
    def measure(self) -> float:
        """The volume."""
        first, last = self._radii
        return math.pi * self.height * (first * first + first * last + last * last) / 3

    def level(self, X: FloatArray) -> FloatArray:
        """Return the smallest of the distances from the planes of the ends and from the side."""
        distance, along = self._frame.radial(X).T
        (first, last), height = self._radii, self.height
        slant = math.hypot(height, first - last)
        side_level = ((first - distance) * height - (first - last) * along) / slant
        return np.asarray(np.minimum(side_level, np.minimum(along, height - along)))

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """The ends and the side."""
        (first, last), height = self._radii, self.height
        slant = math.hypot(height, first - last)
        # Edges of half the section, outward normals beside them.
        edges = {
            "bottom": ((0.0, 0.0), (first, 0.0), (0.0, -1.0)),
            "side": ((first, 0.0), (last - first, height), (height / slant, (first - last) / slant)),
            "top": ((0.0, height), (last, 0.0), (0.0, 1.0)),
        }
        found = {
            name: self._part(name, RevolvedPatch(AffinePatch(origin, (edge,), normal), self._frame))
            for name, (origin, edge, normal) in edges.items()
            if edge != (0.0, 0.0)
        }
        return MappingProxyType(found)

    @property
    def boundary(self) -> Part:
        """Ends and side."""
        patches: list[Patch] = [patch for part in self.parts.values() for patch in part.patches]
        return self._part("boundary", *patches)

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return Gauss along the axis and the radius times the trapezoid rule around, about ``n`` nodes."""
        count = check_count(n, 3, f"{type(self).__name__}.quadrature")
        m = side(count / 2, 3)
        U, weights = tensor(gauss(m), gauss(m + 1), periodic(max(3, round(count / (m * (m + 1))))))
        first, last = self._radii
        radius = first + (last - first) * U[:, 1]
        profile = np.stack([radius * U[:, 0], self.height * U[:, 1]], axis=1)
        scales = 2 * np.pi * self.height * radius**2 * U[:, 0]
        return self._frame.placed(profile, 2 * np.pi * U[:, 2]), weights * scales


def _check_ends(start: object, stop: object, owner: str) -> tuple[Vector, Vector]:
    ends = check_center(start, 3, owner), check_center(stop, 3, owner)
    if ends[0] == ends[1]:
        raise GeometryError(
            f"The 'start' and 'stop' parameters of {owner} must be different points, the middles of its ends. "
            f"Got {ends[0]} twice."
        )
    return ends


@dataclass(frozen=True, init=False, repr=False)
class Cylinder(_Tapered):
    """A circular cylinder around the line from ``start`` to ``stop``, in any direction.

    Its parts are the flat ends, ``bottom`` at ``start`` and ``top`` at ``stop``, and the ``side``.

    Examples
    --------
    >>> x, y, z = sp.symbols("x y z")
    >>> rod = Cylinder((x, y, z), (0, 0, 0), (0, 0, 5), 2)
    >>> round(rod.measure / np.pi, 9), round(rod.side.measure / np.pi, 9)
    (20.0, 20.0)
    >>> rod.top.normals([[1, 0, 5]])
    array([[0., 0., 1.]])
    """

    coordinates: tuple[sp.Symbol, ...]
    start: Vector
    stop: Vector
    radius: float

    def __init__(self, coordinates: tuple[sp.Symbol, ...], start: object, stop: object, radius: object) -> None:
        object.__setattr__(self, "coordinates", check_coordinates(coordinates, "Cylinder", 3))
        first, last = _check_ends(start, stop, "Cylinder")
        object.__setattr__(self, "start", first)
        object.__setattr__(self, "stop", last)
        size = check_number("radius", radius, "Cylinder", minimum=0, exclusive=True, error=GeometryError)
        object.__setattr__(self, "radius", size)
        check_sizes("Cylinder", {"radius": size, "stop": self.height}, first)

    def __repr__(self) -> str:
        return f"Cylinder({self.coordinates}, {written(self.start)}, {written(self.stop)}, {describe(self.radius)})"

    @property
    def _radii(self) -> tuple[float, float]:
        return self.radius, self.radius

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """The ends and the side."""
        if self._frame.axis[:2] != (0.0, 0.0):
            return super().parts
        # Along the last coordinate it is a disk drawn out, and circles need no poles.
        x, y, z = self.coordinates
        low, high = sorted((self.start[2], self.stop[2]))
        drawn = Extrusion(Disk((x, y), self.start[:2], self.radius), (z, low, high))
        ends = ("bottom", "top") if self.start[2] < self.stop[2] else ("top", "bottom")
        found = {"bottom": drawn.parts[ends[0]], "side": drawn.boundary, "top": drawn.parts[ends[1]]}
        patches = {name: part.patches[:1] for name, part in found.items()}
        return MappingProxyType({name: self._part(name, *own) for name, own in patches.items()})

    def _encode(self, _: Encoder | None) -> dict[str, Any]:
        return {"start": list(self.start), "stop": list(self.stop), "radius": self.radius}

    @classmethod
    def _decode(cls, data: Mapping[str, Any], coordinates: tuple[sp.Symbol, ...], _: Decoder | None) -> Cylinder:
        return cls(coordinates, data["start"], data["stop"], data["radius"])


@dataclass(frozen=True, init=False, repr=False)
class Cone(_Tapered):
    """A circular cone from a disk around ``start`` to its tip at ``stop``, or to a smaller or larger disk there.

    Its parts are ``bottom`` at ``start``, the ``side``, and ``top`` at ``stop`` where that is a disk.

    Examples
    --------
    >>> x, y, z = sp.symbols("x y z")
    >>> cone = Cone((x, y, z), (0, 0, 0), (0, 0, 3), 1)
    >>> round(cone.measure / np.pi, 9), list(cone.parts)
    (1.0, ['bottom', 'side'])
    >>> bucket = Cone((x, y, z), (0, 0, 0), (0, 0, 3), 1, top_radius=2)
    >>> round(bucket.measure / np.pi, 9)
    7.0
    """

    coordinates: tuple[sp.Symbol, ...]
    start: Vector
    stop: Vector
    radius: float
    top_radius: float

    def __init__(
        self, coordinates: tuple[sp.Symbol, ...], start: object, stop: object, radius: object, top_radius: object = 0.0
    ) -> None:
        object.__setattr__(self, "coordinates", check_coordinates(coordinates, "Cone", 3))
        first, last = _check_ends(start, stop, "Cone")
        object.__setattr__(self, "start", first)
        object.__setattr__(self, "stop", last)
        for name, value in (("radius", radius), ("top_radius", top_radius)):
            size = check_number(name, value, "Cone", minimum=0, error=GeometryError)
            object.__setattr__(self, name, size)
        if self.radius == self.top_radius == 0.0:
            raise GeometryError("The 'radius' parameter of Cone must be above 0 at one end. Got 0 at both.")
        radii = {"radius": self.radius, "top_radius": self.top_radius}
        sizes = {name: size for name, size in radii.items() if size > 0.0}
        check_sizes("Cone", sizes | {"stop": self.height}, first)

    def __repr__(self) -> str:
        top = f", top_radius={describe(self.top_radius)}" if self.top_radius else ""
        ends = f"{written(self.start)}, {written(self.stop)}"
        return f"Cone({self.coordinates}, {ends}, {describe(self.radius)}{top})"

    @property
    def _radii(self) -> tuple[float, float]:
        return self.radius, self.top_radius

    def _encode(self, _: Encoder | None) -> dict[str, Any]:
        sizes = {"radius": self.radius, "top_radius": self.top_radius}
        return {"start": list(self.start), "stop": list(self.stop), **sizes}

    @classmethod
    def _decode(cls, data: Mapping[str, Any], coordinates: tuple[sp.Symbol, ...], _: Decoder | None) -> Cone:
        return cls(coordinates, data["start"], data["stop"], data["radius"], data["top_radius"])
