"""Solids of revolution: plane shapes turned about an axis."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Domain, Region
from pibls.geometry.description import Argument, Arguments, Decoder, Encoder, Kind, Vector, check_coordinates, rational
from pibls.geometry.part import Part
from pibls.geometry.patch import DerivedPatch, FieldState, Located, Patch, SurfaceRule
from pibls.geometry.product import check_plane_shape
from pibls.geometry.spans import Warp, smooth_pieces
from pibls.quadrature.rules import Rule, periodic, side

_TURN = 2 * np.pi


@dataclass(frozen=True)
class Frame(FieldState):
    """Cylindrical coordinates around an axis: through ``origin`` in the direction of the unit vector ``axis``.

    Of points in the half plane beside it, the coordinate with the number ``column`` is the distance from the axis.
    """

    origin: Vector
    axis: Vector
    column: int = 0

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
        """Return points turned into the half plane, shape (n, 2)."""
        own = self.local(X)
        pair = [np.hypot(own[:, 0], own[:, 1]), own[:, 2]]
        return np.stack(pair[:: 1 - 2 * self.column], axis=1)

    def turned(self, P: FloatArray, angle: FloatArray) -> FloatArray:
        """Return vectors of the half plane turned by angles; the origin is not added."""
        across, along = P[:, self.column], P[:, 1 - self.column]
        return np.asarray(np.stack([across * np.cos(angle), across * np.sin(angle), along], axis=1) @ self._matrix)

    def placed(self, P: FloatArray, angle: FloatArray) -> FloatArray:
        """Return points of the half plane turned by angles."""
        return np.asarray(np.array(self.origin) + self.turned(P, angle))

    def bounds(self, profile: FloatArray) -> FloatArray:
        """Return the box around rings at distances from the axis and positions along it, shape (n, 2)."""
        across = np.sqrt(np.clip(1.0 - np.array(self.axis) ** 2, 0.0, None))
        middle = np.array(self.origin) + np.outer(profile[:, 1], self.axis)
        reach = np.outer(profile[:, 0], across)
        return np.stack([(middle - reach).min(axis=0), (middle + reach).max(axis=0)], axis=1)


@dataclass(frozen=True)
class _RevolvedPatch(DerivedPatch):
    """A curve in the half plane beside an axis, turned about it."""

    frame: Frame
    parameters = 2  # along the curve, and around

    @cached_property
    def _warp(self) -> Warp:
        # Far from the axis a piece of the curve makes more area.
        return Warp(lambda s: np.abs(self.base.at(s[:, None])[0][:, self.frame.column]))

    @property
    def measure(self) -> float:
        """Pappus: the integral of the circumference along the curve."""
        return _TURN * self.base.measure * self._warp.total

    def at(self, U: FloatArray) -> Located:
        points, normals, _ = self.base.at(self._warp.inverse(U[:, 0])[:, None])
        angle = _TURN * U[:, 1]
        return self.frame.placed(points, angle), self.frame.turned(normals, angle), None

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        return self.base.contains(self.frame.radial(X), tolerance)

    def normals(self, X: FloatArray) -> FloatArray:
        own = self.frame.local(X)
        return self.frame.turned(self.base.normals(self.frame.radial(X)), np.arctan2(own[:, 1], own[:, 0]))

    def quadrature(self, n: int) -> SurfaceRule:
        """Return a rule along the curve times the trapezoid rule around."""
        points, normals, weights = self.base.quadrature(side(n / 2, 2))
        turns, shares = periodic(max(3, round(n / len(points))))
        angle = np.tile(_TURN * turns, len(points))
        points, normals = (np.repeat(rows, len(turns), axis=0) for rows in (points, normals))
        areas = np.outer(weights, _TURN * shares).ravel() * np.abs(points[:, self.frame.column])
        return self.frame.placed(points, angle), self.frame.turned(normals, angle), areas


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

    @cached_property
    def _radii(self) -> FloatArray:
        return np.asarray(self.section.bounds[self._frame.column])

    @property
    def bounds(self) -> FloatArray:
        """The box around the outermost rings."""
        low, high = self.section.bounds[1 - self._frame.column]
        return self._frame.bounds(np.array([[self._radii[1], low], [self._radii[1], high]]))

    @property
    def thickness(self) -> float:
        """That of the section."""
        return self.section.thickness

    @cached_property
    def measure(self) -> float:
        """Pappus: the integral of the circumference over the section."""
        points, weights = self.section.quadrature(4000)
        return float(_TURN * (weights @ points[:, self._frame.column]))

    def _axial(self) -> tuple[sp.Expr, sp.Expr]:
        """Return the position along the axis, and the square of the distance from it."""
        origin, axis = ([rational(value) for value in own] for own in (self._frame.origin, self._frame.axis))
        offset = [symbol - value for symbol, value in zip(self.coordinates, origin, strict=True)]
        along = sum(share * value for share, value in zip(axis, offset, strict=True))
        return along, sp.expand(sum(value**2 for value in offset) - along**2)

    @property
    def condition(self) -> sp.Basic:
        """That of the section, at the position along the axis and the distance from it."""
        along, square = self._axial()
        pair = [sp.sqrt(square), along][:: 1 - 2 * self._frame.column]
        return self.section.condition.subs(dict(zip(self.section.coordinates, pair, strict=True)), simultaneous=True)

    def level(self, X: FloatArray) -> FloatArray:
        """Return the level of the section."""
        profile = self._frame.radial(X)
        if self._radii[0] <= self.tolerance:
            # The axis is inside, though an edge of the section may lie on it.
            profile[:, self._frame.column] = np.maximum(profile[:, self._frame.column], self.tolerance)
        return self.section.level(profile)

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        turned = {name: self._turned(part) for name, part in self.section.parts.items()}
        return {name: patches for name, patches in turned.items() if patches}

    @property
    def _patches(self) -> Iterable[Patch]:
        """The boundary of the section off the axis, turned."""
        return self._turned(self.section.boundary)

    def _rule(self, n: int) -> Rule:
        """Return the product of the plane rule and the trapezoid rule around."""
        turns, shares = periodic(max(3, round(1.5 * n ** (1 / 3))))
        points, areas = self.section.quadrature(max(1, n // len(turns)))
        weights = np.outer(areas * points[:, self._frame.column], _TURN * shares).ravel()
        angle = np.tile(_TURN * turns, len(points))
        return self._frame.placed(np.repeat(points, len(turns), axis=0), angle), weights

    def _turned(self, part: Part) -> tuple[Patch, ...]:
        curves = [curve for patch in part.patches for curve in smooth_pieces(patch)]
        return tuple(_RevolvedPatch(curve, self._frame) for curve in curves if not self._on_axis(curve))

    def _on_axis(self, curve: Patch) -> bool:
        points, _, _ = curve.at(np.linspace(0.0, 1.0, 9)[:, None])
        return bool(np.abs(points[:, self._frame.column]).max() <= 10 * self.tolerance)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Revolution(SweptByTurning):
    """A plane shape revolved about a coordinate axis.

    The shape is drawn in a half plane: one of its coordinates is the distance from the axis, the other is the
    coordinate along it, which is the one that both have. Its parts are those of the plane shape, revolved.

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
        return f"Revolution({self.coordinates}, {self.section!r}, {self.axis})"

    @property
    def section(self) -> Region:
        """The plane shape."""
        return self.shape

    @property
    def _distance(self) -> sp.Symbol:
        return self.section.coordinates[self._frame.column]

    @cached_property
    def _frame(self) -> Frame:
        unit = np.eye(3)[self.coordinates.index(self.axis)]
        return Frame((0.0, 0.0, 0.0), tuple(unit.tolist()), 1 - self.section.coordinates.index(self.axis))

    def _lifted(self, part: Part) -> Part:
        """Return a part of the plane shape, turned."""
        return Part(self, part.name, self._turned(self.section.lift(part)))

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
