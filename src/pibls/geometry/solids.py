"""Cylinders, cones and tori, around any axis."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_number, shorten
from pibls.errors import GeometryError
from pibls.geometry.ball import Disk
from pibls.geometry.base import Region
from pibls.geometry.description import (
    Argument,
    Arguments,
    Kind,
    Vector,
    check_center,
    check_coordinates,
    describe,
    rational,
)
from pibls.geometry.outline import Polygon
from pibls.geometry.patch import Patch
from pibls.geometry.product import Extrusion
from pibls.geometry.revolution import Frame, SweptByTurning

_SECTION = sp.symbols("r s")
_SMALLEST = 1e-12
_MOST_DIGITS = 90


def _check_sizes(owner: str, sizes: Mapping[str, float], place: Vector) -> None:
    """Refuse lengths that double precision cannot hold beside each other and the coordinates."""
    largest = max(*sizes.values(), *map(abs, place))
    for name, size in sizes.items():
        if size <= _SMALLEST * largest or abs(math.log10(size)) > _MOST_DIGITS:
            raise GeometryError(
                f"The '{name}' parameter of {owner} must give a solid that double precision can hold. Got {size!r} "
                f"at {place} instead. Shift or scale the coordinates."
            )


class _Tapered(SweptByTurning):
    """A cylinder or cone: straight sides between two flat ends."""

    start: Vector
    stop: Vector

    arguments: ClassVar[Arguments] = (
        Argument("start", Kind.POINT, "start = [0, 0, 0]"),
        Argument("stop", Kind.POINT, "stop = [0, 0, 1]"),
        Argument("radius", Kind.NUMBER, "radius = 1"),
    )

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """Radius at the start and at the stop."""

    def _set_all(self, coordinates: object, start: object, stop: object, radii: Mapping[str, float]) -> None:
        owner = type(self).__name__
        symbols = check_coordinates(coordinates, owner, 3)
        ends = check_center(start, 3, owner), check_center(stop, 3, owner)
        if ends[0] == ends[1]:
            raise GeometryError(
                f"The 'start' and 'stop' parameters of {owner} must be different points, the middles of its ends. "
                f"Got {ends[0]} twice."
            )
        self._set(coordinates=symbols, start=ends[0], stop=ends[1], **radii)
        _check_sizes(owner, {k: size for k, size in radii.items() if size > 0.0} | {"stop": self.height}, self.start)

    @cached_property
    def _frame(self) -> Frame:
        along = np.array(self.stop) - np.array(self.start)
        return Frame(self.start, tuple((along / np.linalg.norm(along)).tolist()))

    @property
    def height(self) -> float:
        """Distance between the ends."""
        return math.dist(self.start, self.stop)

    @cached_property
    def section(self) -> Polygon:
        """The plane region between the axis and the side."""
        (first, last), height = self.ends, self.height
        corners = [(0.0, 0.0), (first, 0.0), (last, height), (0.0, height)]
        return Polygon(_SECTION, list(dict.fromkeys(corners)))

    @property
    def bounds(self) -> FloatArray:
        """The smallest box around the ends."""
        first, last = self.ends
        return self._frame.bounds(np.array([[first, 0.0], [last, self.height]]))

    @property
    def condition(self) -> sp.Basic:
        """Between the ends, and nearer to the axis than the side."""
        along, square = self._axial()
        first, last, height = map(rational, (*self.ends, self.height))
        return sp.And(along > 0, along < height, square < (first + (last - first) * along / height) ** 2)

    def level(self, X: FloatArray) -> FloatArray:
        """Return the smallest of the distances from the planes of the ends and from the side."""
        distance, along = self._frame.radial(X).T
        (first, last), height = self.ends, self.height
        slant = math.hypot(height, first - last)
        side_level = ((first - distance) * height - (first - last) * along) / slant
        return np.asarray(np.minimum(side_level, np.minimum(along, height - along)))

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        first, last = self.ends
        names = ["bottom"] * (first > 0.0) + ["side"] + ["top"] * (last > 0.0)
        return {name: [patch] for name, patch in zip(names, self.boundary.patches, strict=True)}


@dataclass(frozen=True, init=False, eq=False, repr=False)
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
        size = check_number("radius", radius, "Cylinder", minimum=0, exclusive=True, error=GeometryError)
        self._set_all(coordinates, start, stop, {"radius": size})

    @property
    def ends(self) -> tuple[float, float]:
        """The radius, twice."""
        return self.radius, self.radius

    @property
    def _patches(self) -> Iterable[Patch]:
        """Ends and side; along the last coordinate those of a disk drawn out, as circles need no poles."""
        if self._frame.axis[:2] != (0.0, 0.0):
            return super()._patches
        x, y, z = self.coordinates
        low, high = sorted((self.start[2], self.stop[2]))
        side, *ends = Extrusion(Disk((x, y), self.start[:2], self.radius), (z, low, high)).boundary.patches
        bottom, top = ends if self.start[2] < self.stop[2] else ends[::-1]
        return bottom, side, top


@dataclass(frozen=True, init=False, eq=False, repr=False)
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

    arguments: ClassVar[Arguments] = (*_Tapered.arguments, Argument("top_radius", Kind.NUMBER, default=0.0))

    def __init__(
        self, coordinates: tuple[sp.Symbol, ...], start: object, stop: object, radius: object, top_radius: object = 0.0
    ) -> None:
        given = {"radius": radius, "top_radius": top_radius}
        radii = {name: check_number(name, r, "Cone", minimum=0, error=GeometryError) for name, r in given.items()}
        if not any(radii.values()):
            raise GeometryError("The 'radius' parameter of Cone must be above 0 at one end. Got 0 at both.")
        self._set_all(coordinates, start, stop, radii)

    @property
    def ends(self) -> tuple[float, float]:
        """The two radii."""
        return self.radius, self.top_radius


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Torus(SweptByTurning):
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

    arguments: ClassVar[Arguments] = (
        Argument("center", Kind.POINT),
        Argument("radius", Kind.NUMBER, "radius = 3"),
        Argument("tube", Kind.NUMBER, "tube = 1"),
        Argument("axis", Kind.POINT, default=(0.0, 0.0, 1.0)),
    )

    def __init__(
        self,
        coordinates: tuple[sp.Symbol, ...],
        center: object,
        radius: object,
        tube: object,
        axis: object = (0.0, 0.0, 1.0),
    ) -> None:
        symbols, middle = check_coordinates(coordinates, "Torus", 3), check_center(center, 3, "Torus")
        given = {"radius": radius, "tube": tube}
        sizes = {
            k: check_number(k, v, "Torus", minimum=0, exclusive=True, error=GeometryError) for k, v in given.items()
        }
        self._set(coordinates=symbols, center=middle, axis=_direction(axis), **sizes)
        _check_sizes("Torus", sizes, middle)
        if not self.tube < self.radius:
            raise GeometryError(
                f"The 'tube' parameter of Torus must be below its radius {describe(self.radius)}. "
                f"Got {describe(self.tube)} instead. Without a hole, use a Revolution of a disk cut at the axis."
            )

    @cached_property
    def _frame(self) -> Frame:
        return Frame(self.center, self.axis)

    @cached_property
    def section(self) -> Region:
        """The disk that is turned."""
        return Disk(_SECTION, (self.radius, 0.0), self.tube)

    @property
    def bounds(self) -> FloatArray:
        """The smallest box: that around the circle in the middle of the tube, wider by the tube."""
        middle = self._frame.bounds(np.array([[self.radius, 0.0]]))
        return np.asarray(middle + np.array([-self.tube, self.tube]))


def _direction(value: object) -> Vector:
    direction = np.array(check_center(value, 3, "Torus"))
    length = float(np.linalg.norm(direction))
    if not 1e-100 < length < 1e100:
        raise GeometryError(
            f"The 'axis' parameter of Torus must be a direction, three numbers not all zero. Got {shorten(value)} "
            "instead. Write (0, 0, 1) for an axis along the third coordinate."
        )
    # A unit vector stays as it is, so that what was stored is read back as the same.
    return tuple((direction if abs(length - 1.0) < 1e-15 else direction / length).tolist())
