"""Solids of revolution: plane shapes turned about an axis."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Decoder, Domain, Encoder, Region, check_coordinates
from pibls.geometry.description import Argument, Arguments, Kind
from pibls.geometry.extrusion import check_plane_shape
from pibls.geometry.part import Part
from pibls.geometry.patch import Patch
from pibls.geometry.sampling import check_count
from pibls.geometry.spans import smooth_spans
from pibls.geometry.turning import Frame, MirroredPatch, RevolvedPatch
from pibls.quadrature.rules import periodic

_TURN = 2 * np.pi


class SweptByTurning(Region):
    """The solid that a plane shape, the section, sweeps when it is turned about an axis."""

    @property
    @abstractmethod
    def section(self) -> Region:
        """The plane shape; one of its coordinates is the distance from the axis, the other the position along it."""

    @property
    @abstractmethod
    def _frame(self) -> Frame:
        """The axis."""

    @property
    def _column(self) -> int:
        """Which coordinate of the section is the distance."""
        return 0

    @cached_property
    def _radii(self) -> FloatArray:
        return np.asarray(self.section.bounds[self._column])

    @property
    def bounds(self) -> FloatArray:
        """The box around the outermost rings."""
        low, high = self.section.bounds[1 - self._column]
        return self._frame.bounds(np.array([[self._radii[1], low], [self._radii[1], high]]))

    @property
    def thickness(self) -> float:
        """That of the section."""
        return self.section.thickness

    @cached_property
    def measure(self) -> float:
        """Pappus: the integral of the circumference over the section."""
        points, weights = self.section.quadrature(4000)
        return float(_TURN * (weights @ points[:, self._column]))

    def level(self, X: FloatArray) -> FloatArray:
        """Return the level of the section."""
        profile = self._frame.radial(X)
        if self._radii[0] <= self.tolerance:
            # The axis is inside, though an edge of the section may lie on it.
            profile[:, 0] = np.maximum(profile[:, 0], self.tolerance)
        return self.section.level(profile if self._column == 0 else profile[:, ::-1])

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """The parts of the section, turned."""
        turned = {name: self._turned(part) for name, part in self.section.parts.items()}
        return MappingProxyType({name: part for name, part in turned.items() if part.patches})

    @cached_property
    def boundary(self) -> Part:
        """The boundary of the section off the axis, turned."""
        return self._turned(self.section.boundary)

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return the product of the plane rule and the trapezoid rule around."""
        count = check_count(n, 3, f"{type(self).__name__}.quadrature")
        turns, shares = periodic(max(3, round(1.5 * count ** (1 / 3))))
        points, areas = self.section.quadrature(max(1, count // len(turns)))
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


@dataclass(frozen=True, init=False, repr=False)
class Revolution(SweptByTurning):
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

    arguments: ClassVar[Arguments] = (
        Argument(
            "of", Kind.SHAPE, 'of = {shape = "disk", coordinates = ["r", "z"], center = [3, 0], radius = 1}', "shape"
        ),
        Argument("axis", Kind.COORDINATE, 'axis = "z"'),
    )

    def __init__(self, coordinates: tuple[sp.Symbol, sp.Symbol, sp.Symbol], shape: Domain, axis: sp.Symbol) -> None:
        symbols = check_coordinates(coordinates, "Revolution", 3)
        plane = check_plane_shape(shape, "Revolution")
        if axis not in symbols or axis not in plane.coordinates:
            raise GeometryError(
                f"The 'axis' parameter of Revolution must be a coordinate of space, {symbols}, and of the plane shape, "
                f"{plane.coordinates}. Got {shorten(axis)} instead. Draw the shape in (r, {symbols[-1]}) and turn it "
                f"about {symbols[-1]}."
            )
        self._set(coordinates=symbols, shape=plane, axis=axis)
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
    def section(self) -> Region:
        """The plane shape."""
        return self.shape

    @property
    def _column(self) -> int:
        return 1 - self.shape.coordinates.index(self.axis)

    @property
    def _distance(self) -> sp.Symbol:
        return self.shape.coordinates[self._column]

    @cached_property
    def _frame(self) -> Frame:
        unit = np.eye(3)[self.coordinates.index(self.axis)]
        return Frame((0.0, 0.0, 0.0), tuple(unit.tolist()))

    def lift(self, part: Part) -> Part:
        """Return a part of the plane shape, turned."""
        if not isinstance(part, Part) or part.domain == self:
            return super().lift(part)
        return self._turned(self.shape.lift(part))

    def _encode(self, encode: Encoder | None) -> dict[str, Any]:
        return super()._encode(encode) | {"distance": self._distance.name}

    @classmethod
    def _decode(cls, data: Mapping[str, Any], coordinates: tuple[sp.Symbol, ...], decode: Decoder | None) -> Domain:
        # The distance from the axis need not be a coordinate of the problem.
        extra = sp.Symbol(data["distance"], real=True if coordinates[0].is_real else None)
        return super()._decode(data, coordinates if extra in coordinates else (*coordinates, extra), decode)

    @classmethod
    def make(cls, coordinates: tuple[sp.Symbol, ...], **arguments: Any) -> Revolution:
        """Return a shape turned about one of the first three coordinates."""
        x, y, z = coordinates[:3]
        return cls((x, y, z), arguments["of"], arguments["axis"])
