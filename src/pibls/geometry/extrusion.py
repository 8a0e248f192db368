"""Plane shapes drawn out along a third coordinate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Decoder, Domain, Encoder, Region, describe
from pibls.geometry.box import check_length, check_range
from pibls.geometry.part import Part
from pibls.geometry.patch import TimedPatch, interval_tolerance
from pibls.geometry.product import FacePatch
from pibls.geometry.rules import gauss, side
from pibls.geometry.sampling import check_count

__all__ = ["Extrusion", "check_plane_shape"]


def check_plane_shape(shape: object, owner: str) -> Region:
    """Return a solid shape in the plane, or refuse the value."""
    if not isinstance(shape, Region) or shape.dimension != 2:
        raise GeometryError(
            f"The 'shape' parameter of {owner} must be a solid shape in two coordinates. Got {shorten(shape)} "
            "instead. Use a Rectangle, Disk, Polygon, Star or what is made of them."
        )
    return shape


@dataclass(frozen=True, init=False, repr=False)
class Extrusion(Region):
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

    def __init__(self, shape: Domain, limits: tuple[sp.Symbol, float, float]) -> None:
        plane = check_plane_shape(shape, "Extrusion")
        symbol, low, high = check_range(limits, "Extrusion")
        check_length(symbol, high - low, "Extrusion")
        if symbol.name in {own.name for own in plane.coordinates}:
            raise GeometryError(
                f"The coordinate {symbol} of Extrusion must not be one of {shorten(plane)}. Use a third symbol."
            )
        object.__setattr__(self, "shape", plane)
        object.__setattr__(self, "limits", (low, high))
        object.__setattr__(self, "coordinates", (*plane.coordinates, symbol))

    def __repr__(self) -> str:
        low, high = map(describe, self.limits)
        return f"Extrusion({self.shape!r}, ({self.coordinates[-1]}, {low}, {high}))"

    @property
    def height(self) -> float:
        """How far the shape is drawn out."""
        return self.limits[1] - self.limits[0]

    @property
    def bounds(self) -> FloatArray:
        """Those of the plane shape and the limits."""
        return np.concatenate([self.shape.bounds, [self.limits]])

    @property
    def thickness(self) -> float:
        """The smaller of that of the plane shape and the height."""
        return min(self.shape.thickness, self.height)

    @property
    def measure(self) -> float:
        """Area times height."""
        return self.shape.measure * self.height

    def level(self, X: FloatArray) -> FloatArray:
        """Return the smallest of the distances from the sides and the ends."""
        low, high = self.limits
        return np.minimum(self.shape.level(X[:, :-1]), np.minimum(X[:, -1] - low, high - X[:, -1]))

    @property
    def parameters(self) -> int:
        """One more than the plane shape."""
        return self.shape.parameters + 1

    def embed(self, U: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        """Map the first parameters to the plane shape and the last to the height."""
        points, keep = self.shape.embed(U[:, :-1])
        return np.hstack([points, self.limits[0] + U[:, -1:] * self.height]), keep

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """The parts of the plane shape drawn out, and the ends."""
        drawn = {name: self._drawn(part) for name, part in self.shape.parts.items()}
        name = self.coordinates[-1].name
        ends = [(f"{name}_min", 0), (f"{name}_max", 1), ("bottom", 0), ("top", 1)]
        return MappingProxyType(drawn | {title: self._end(title, index) for title, index in ends})

    @property
    def boundary(self) -> Part:
        """The sides and the ends."""
        patches = [*self._drawn(self.shape.boundary).patches, *(self._end("", i).patches[0] for i in (0, 1))]
        return self._part("boundary", *patches)

    def faces(self, coordinate: sp.Symbol) -> tuple[Part, Part]:
        """Return the ends, or the opposite faces of the plane shape drawn out."""
        if not isinstance(coordinate, sp.Symbol) or coordinate not in self.coordinates:
            return super().faces(coordinate)
        if coordinate == self.coordinates[-1]:
            return self.parts["bottom"], self.parts["top"]
        low, high = self.shape.faces(coordinate)
        return self._drawn(low), self._drawn(high)

    def lift(self, part: Part) -> Part:
        """Return a part of the plane shape drawn out."""
        if not isinstance(part, Part) or part.domain == self:
            return super().lift(part)
        return self._drawn(self.shape.lift(part))

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return the product of the plane rule and Gauss along the height."""
        count = check_count(n, 3, "Extrusion.quadrature")
        nodes, weights = gauss(side(count, 3))
        points, areas = self.shape.quadrature(max(1, count // len(nodes)))
        heights = np.tile(self.limits[0] + nodes * self.height, len(points))[:, None]
        X = np.hstack([np.repeat(points, len(nodes), axis=0), heights])
        return X, np.outer(areas, weights * self.height).ravel()

    def _drawn(self, part: Part) -> Part:
        return self._part(part.name, *(TimedPatch(patch, *self.limits) for patch in part.patches))

    def _end(self, name: str, index: int) -> Part:
        slack = interval_tolerance(*self.limits)
        return self._part(name, FacePatch(self.shape, self.limits[index], 2.0 * index - 1.0, slack))

    def _encode(self, encode: Encoder | None) -> dict[str, Any]:
        return {"of": self.shape.to_dict(encode), "limits": list(self.limits)}

    @classmethod
    def _decode(cls, data: Mapping[str, Any], coordinates: tuple[sp.Symbol, ...], decode: Decoder | None) -> Extrusion:
        low, high = data["limits"]
        return cls(Domain.from_dict(data["of"], coordinates, decode), (coordinates[-1], low, high))
