"""Plane shapes drawn out along a third coordinate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Domain, Region
from pibls.geometry.box import check_length, check_range
from pibls.geometry.description import Argument, Arguments, Kind, describe
from pibls.geometry.part import Part
from pibls.geometry.product import Drawn


def check_plane_shape(shape: object, owner: str) -> Region:
    """Return a solid shape in the plane, or refuse the value."""
    if not isinstance(shape, Region) or shape.dimension != 2:
        raise GeometryError(
            f"The 'shape' parameter of {owner} must be a solid shape in two coordinates. Got {shorten(shape)} "
            "instead. Use a Rectangle, Disk, Polygon, Star or what is made of them."
        )
    return shape


@dataclass(frozen=True, init=False, repr=False)
class Extrusion(Drawn, Region):
    """A plane shape drawn out along a third coordinate, which comes last.

    Its parts are those of the plane shape, drawn out, and the ends ``bottom`` and ``top``, also called ``z_min`` and
    ``z_max`` after the coordinate. Where the plane shape has a part of such a name, ``extrusion.lift(part)`` finds it.

    Parameters
    ----------
    shape : domain
        Any solid shape in two coordinates.
    limits : tuple
        The third coordinate and its lowest and highest value.

    Examples
    --------
    >>> from pibls.geometry import Disk, Rectangle
    >>> x, y, z = sp.symbols("x y z")
    >>> pipe = Extrusion(Disk((x, y), (0, 0), 2) - Disk((x, y), (0, 0), 1), (z, 0, 5))
    >>> round(pipe.measure / np.pi, 9)
    15.0
    >>> pipe.top.normals([[1.5, 0, 5]])
    array([[0., 0., 1.]])
    """

    shape: Region
    limits: tuple[float, float]
    coordinates: tuple[sp.Symbol, ...] = field(compare=True)

    arguments: ClassVar[Arguments] = (Argument("of", Kind.SHAPE, attribute="shape"), Argument("limits", Kind.POINT))

    def __init__(self, shape: Domain, limits: tuple[sp.Symbol, float, float]) -> None:
        plane = check_plane_shape(shape, "Extrusion")
        symbol, low, high = check_range(limits, "Extrusion")
        check_length(symbol, high - low, "Extrusion")
        if symbol.name in {own.name for own in plane.coordinates}:
            raise GeometryError(
                f"The coordinate {symbol} of Extrusion must not be one of {shorten(plane)}. Use a third symbol."
            )
        self._set(shape=plane, limits=(low, high), coordinates=(*plane.coordinates, symbol))

    def __repr__(self) -> str:
        low, high = map(describe, self.limits)
        return f"Extrusion({self.shape!r}, ({self.coordinates[-1]}, {low}, {high}))"

    @property
    def base(self) -> Region:
        """The plane shape."""
        return self.shape

    @property
    def _limits(self) -> tuple[float, float]:
        return self.limits

    @property
    def thickness(self) -> float:
        """The smaller of that of the plane shape and the height."""
        return min(self.shape.thickness, self.limits[1] - self.limits[0])

    def level(self, X: FloatArray) -> FloatArray:
        """Return the smallest of the distances from the sides and the ends."""
        low, high = self.limits
        return np.minimum(self.shape.level(X[:, :-1]), np.minimum(X[:, -1] - low, high - X[:, -1]))

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """The parts of the plane shape drawn out, and the ends."""
        drawn = {name: self._carry(part) for name, part in self.shape.parts.items()}
        name = self.coordinates[-1].name
        ends = [(f"{name}_min", 0), (f"{name}_max", 1), ("bottom", 0), ("top", 1)]
        return MappingProxyType(drawn | {title: self._end(title, index) for title, index in ends})

    @property
    def boundary(self) -> Part:
        """The sides and the ends."""
        patches = [*self._carry(self.shape.boundary).patches, *(self._end("", i).patches[0] for i in (0, 1))]
        return self._part("boundary", *patches)

    @property
    def _ends(self) -> tuple[Part, Part]:
        return self.parts["bottom"], self.parts["top"]

    @classmethod
    def make(cls, coordinates: tuple[sp.Symbol, ...], **arguments: Any) -> Extrusion:
        """Return a shape drawn out along the last coordinate."""
        return cls(arguments["of"], (coordinates[-1], *arguments["limits"]))
