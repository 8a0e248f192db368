"""Solids of revolution: plane shapes turned about an axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Decoder, Domain, Encoder, Region, check_coordinates
from pibls.geometry.extrusion import check_plane_shape
from pibls.geometry.part import Part
from pibls.geometry.patch import Patch
from pibls.geometry.rules import periodic
from pibls.geometry.sampling import check_count
from pibls.geometry.spans import smooth_spans
from pibls.geometry.turning import Frame, MirroredPatch, RevolvedPatch

__all__ = ["Revolution"]


_TURN = 2 * np.pi


@dataclass(frozen=True, init=False, repr=False)
class Revolution(Region):
    """A plane shape turned about a coordinate axis.

    The shape is drawn in a half plane: one of its coordinates is the distance from the axis, the other is the
    coordinate along it, which is the one that both have. Its parts are those of the plane shape, turned.

    Parameters
    ----------
    coordinates : tuple of three symbols
        The coordinates in space.
    shape : domain
        A solid shape in two coordinates, the distance from the axis and ``axis`` (in any order); the distance must
        nowhere be negative. Edges on the axis are no boundary of the solid.
    axis : symbol
        The coordinate along the axis, where the other two are zero.

    Examples
    --------
    >>> from pibls.geometry import Disk
    >>> x, y, z, r = sp.symbols("x y z r")
    >>> ring = Revolution((x, y, z), Disk((r, z), (3, 0), 1), z)
    >>> round(ring.measure / np.pi**2, 9)
    6.0
    >>> ring.boundary.normals([[2, 0, 0]])
    array([[-1.,  0.,  0.]])
    """

    coordinates: tuple[sp.Symbol, ...]
    shape: Region
    axis: sp.Symbol

    def __init__(self, coordinates: tuple[sp.Symbol, sp.Symbol, sp.Symbol], shape: Domain, axis: sp.Symbol) -> None:
        symbols = check_coordinates(coordinates, "Revolution", 3)
        plane = check_plane_shape(shape, "Revolution")
        if axis not in symbols or axis not in plane.coordinates:
            raise GeometryError(
                f"The 'axis' parameter of Revolution must be a coordinate of space, {symbols}, and of the plane shape, "
                f"{plane.coordinates}. Got {shorten(axis)} instead. Draw the shape in (r, {symbols[-1]}) and turn it "
                f"about {symbols[-1]}."
            )
        object.__setattr__(self, "coordinates", symbols)
        object.__setattr__(self, "shape", plane)
        object.__setattr__(self, "axis", axis)
        if self._radii[0] < -plane.tolerance:
            raise GeometryError(
                f"The shape that Revolution turns must not cross the axis: {self._distance} is the distance from it. "
                f"Got {shorten(plane)}, where it goes down to {self._radii[0]:.6g}. Shift the shape, or cut it with &."
            )
        if not self.boundary.patches:
            raise GeometryError(f"The shape {shorten(plane)} has no boundary off the axis. Check the shape.")

    def __repr__(self) -> str:
        return f"Revolution({self.coordinates}, {self.shape!r}, {self.axis})"

    @property
    def _column(self) -> int:
        """Which coordinate of the plane shape is the distance."""
        return 1 - self.shape.coordinates.index(self.axis)

    @property
    def _distance(self) -> sp.Symbol:
        return self.shape.coordinates[self._column]

    @cached_property
    def _radii(self) -> FloatArray:
        return np.asarray(self.shape.bounds[self._column])

    @cached_property
    def _frame(self) -> Frame:
        unit = np.zeros(3)
        unit[self.coordinates.index(self.axis)] = 1.0
        return Frame((0.0, 0.0, 0.0), tuple(unit.tolist()))

    @property
    def bounds(self) -> FloatArray:
        """The outermost ring, and the extent along the axis."""
        own = np.tile([-self._radii[1], self._radii[1]], (3, 1))
        own[self.coordinates.index(self.axis)] = self.shape.bounds[1 - self._column]
        return own

    @property
    def thickness(self) -> float:
        """That of the plane shape."""
        return self.shape.thickness

    @cached_property
    def measure(self) -> float:
        """Pappus: the integral of the circumference over the plane shape."""
        points, weights = self.shape.quadrature(4000)
        return float(_TURN * (weights @ points[:, self._column]))

    def _profile(self, X: FloatArray) -> FloatArray:
        """Return points of space as points of the plane shape."""
        radial = self._frame.radial(X)
        return radial if self._column == 0 else radial[:, ::-1]

    def level(self, X: FloatArray) -> FloatArray:
        """Return the level of the plane shape."""
        profile = self._profile(X)
        # The axis is inside, though an edge of the plane shape may lie on it.
        profile[:, self._column] = np.maximum(profile[:, self._column], max(self._radii[0], 0.0) + self.tolerance)
        return self.shape.level(profile)

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """The parts of the plane shape, turned."""
        turned = {name: self._turned(part) for name, part in self.shape.parts.items()}
        return MappingProxyType({name: part for name, part in turned.items() if part.patches})

    @cached_property
    def boundary(self) -> Part:
        """The boundary of the plane shape off the axis, turned."""
        return self._turned(self.shape.boundary)

    def lift(self, part: Part) -> Part:
        """Return a part of the plane shape, turned."""
        if not isinstance(part, Part) or part.domain == self:
            return super().lift(part)
        return self._turned(self.shape.lift(part))

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return the product of the plane rule and the trapezoid rule around."""
        count = check_count(n, 3, "Revolution.quadrature")
        turns, shares = periodic(max(3, round(1.5 * count ** (1 / 3))))
        points, areas = self.shape.quadrature(max(1, count // len(turns)))
        weights = np.outer(areas * points[:, self._column], _TURN * shares).ravel()
        points = points if self._column == 0 else points[:, ::-1]
        angle = np.tile(_TURN * turns, len(points))
        return self._frame.placed(np.repeat(points, len(turns), axis=0), angle), weights

    def _turned(self, part: Part) -> Part:
        curves = [curve for patch in part.patches for curve in smooth_spans(patch)]
        off_axis = [curve for curve in curves if not self._on_axis(curve)]
        upright = [curve if self._column == 0 else MirroredPatch(curve) for curve in off_axis]
        return self._part(part.name, *(RevolvedPatch(curve, self._frame) for curve in upright))

    def _on_axis(self, curve: Patch) -> bool:
        points, _, _ = curve.at(np.linspace(0.0, 1.0, 9)[:, None])
        return bool(np.abs(points[:, self._column]).max() <= 10 * self.tolerance)

    def _encode(self, encode: Encoder | None) -> dict[str, Any]:
        return {"of": self.shape.to_dict(encode), "distance": self._distance.name, "axis": self.axis.name}

    @classmethod
    def _decode(cls, data: Mapping[str, Any], coordinates: tuple[sp.Symbol, ...], decode: Decoder | None) -> Revolution:
        x, y, z = coordinates
        # The distance from the axis need not be a coordinate of the problem.
        extra = sp.Symbol(data["distance"], real=True) if x.is_real else sp.Symbol(data["distance"])
        known = coordinates if extra in coordinates else (*coordinates, extra)
        plane = Domain.from_dict(data["of"], known, decode)
        return cls((x, y, z), plane, next(symbol for symbol in coordinates if symbol.name == data["axis"]))
