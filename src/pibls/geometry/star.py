"""Star-shaped domains bounded by a polar curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, shorten
from pibls.errors import GeometryError
from pibls.geometry.ball import check_center
from pibls.geometry.base import Decoder, Domain, Encoder, Region, check_coordinates
from pibls.geometry.description import Argument, Arguments, Kind, written
from pibls.geometry.part import Part
from pibls.geometry.patch import Located, Patch, SurfaceRule
from pibls.geometry.polar_radius import FourierRadius, PolarRadius, SymbolicRadius, check_profile, extreme, interpolate
from pibls.geometry.sampling import check_count
from pibls.geometry.spans import Warp
from pibls.quadrature.rules import gauss, periodic, side


@dataclass(frozen=True)
class CurvePatch(Patch):
    """The closed curve ``center + r(θ) (cos θ, sin θ)``, parametrised by arc length."""

    profile: PolarRadius
    center: tuple[float, ...]
    parameters = 1  # the fraction of the arc length

    def speed(self, angle: FloatArray) -> FloatArray:
        """Return the length of the tangent vector."""
        return np.hypot(self.profile(angle), self.profile.slope(angle))

    def points(self, angle: FloatArray) -> FloatArray:
        """Return the points at given angles."""
        direction = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.asarray(np.array(self.center) + self.profile(angle)[:, None] * direction)

    def outward(self, angle: FloatArray) -> FloatArray:
        """Return the outward unit normals at given angles."""
        radius, slope = self.profile(angle), self.profile.slope(angle)
        cosine, sine = np.cos(angle), np.sin(angle)
        outward = np.stack([radius * cosine + slope * sine, radius * sine - slope * cosine], axis=1)
        return np.asarray(outward / np.hypot(radius, slope)[:, None])

    def polar(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return angle and distance from the center."""
        offset = X - np.array(self.center)
        return np.arctan2(offset[:, 1], offset[:, 0]), np.hypot(offset[:, 0], offset[:, 1])

    def distance(self, X: FloatArray) -> FloatArray:
        """Return the distance from the curve to first order, positive inside."""
        angle, radius = self.polar(X)
        edge = self.profile(angle)
        return np.asarray((edge - radius) * edge / np.hypot(edge, self.profile.slope(angle)))

    @cached_property
    def _warp(self) -> Warp:
        return Warp(lambda s: 2 * np.pi * self.speed(2 * np.pi * s))

    @property
    def measure(self) -> float:
        """The arc length."""
        return self._warp.total

    @cached_property
    def area(self) -> float:
        """The enclosed area, ½∮r²dθ."""
        return Warp(lambda s: np.pi * self.profile(2 * np.pi * s) ** 2).total

    def angle_at(self, fraction: FloatArray) -> FloatArray:
        """Return the angles at given fractions of the arc length."""
        return 2 * np.pi * self._warp.inverse(fraction)

    def at(self, U: FloatArray) -> Located:
        """Return points and normals at fractions of the arc length."""
        angle = self.angle_at(U[:, 0])
        return self.points(angle), self.outward(angle), None

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points are on the curve."""
        return np.asarray(np.abs(self.distance(X)) <= tolerance)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the normals at the angles of the points."""
        return self.outward(self.polar(X)[0])

    def quadrature(self, n: int) -> SurfaceRule:
        """Return the trapezoid rule in the angle, which needs no inversion of the arc length."""
        nodes, weights = periodic(n)
        angle = 2 * np.pi * nodes
        return self.points(angle), self.outward(angle), 2 * np.pi * weights * self.speed(angle)


@dataclass(frozen=True, init=False, repr=False)
class Star(Region):
    """The domain inside a polar curve ``r = radius(θ)`` around a center.

    Parameters
    ----------
    coordinates : tuple of two symbols
        The coordinates of the plane.
    radius : sympy expression or callable
        An expression in one symbol, the angle; or a function of it. A function that SymPy can follow is kept as an
        expression; one that needs arrays is replaced by its trigonometric interpolant, so it must be smooth.
    center : pair of numbers
        Where the radius is measured from.

    Examples
    --------
    >>> x, y, theta = sp.symbols("x y theta")
    >>> flower = Star((x, y), 1 + sp.cos(5 * theta) / 4)
    >>> round(flower.measure / (sp.pi * (1 + sp.Rational(1, 32))).evalf(), 12)
    1.00000000000000
    >>> flower == Star((x, y), lambda a: 1 + sp.cos(5 * a) / 4)
    True
    """

    coordinates: tuple[sp.Symbol, ...]
    radius: sp.Expr | Callable[[FloatArray], object]
    center: tuple[float, ...]

    arguments: ClassVar[Arguments] = (
        Argument("radius", Kind.FORMULA, 'radius = "1 + cos(5*theta)/4"'),
        Argument("center", Kind.POINT),
    )

    def __init__(
        self,
        coordinates: tuple[sp.Symbol, sp.Symbol],
        radius: sp.Expr | float | Callable[[Any], object],
        center: object = (0.0, 0.0),
    ) -> None:
        symbols = check_coordinates(coordinates, "Star", 2)
        self._set(coordinates=symbols, radius=_check_radius(radius, symbols), center=check_center(center, 2, "Star"))
        check_profile(self._curve.profile, radius)

    def __repr__(self) -> str:
        radius = getattr(self.radius, "__name__", None) or shorten(self.radius, 40)
        return f"Star({self.coordinates}, {radius}, center={written(self.center)})"

    @cached_property
    def _curve(self) -> CurvePatch:
        profile: PolarRadius
        if isinstance(self.radius, PolarRadius):
            profile = self.radius
        elif isinstance(self.radius, sp.Expr):
            profile = SymbolicRadius(self.radius)
        else:
            profile = interpolate(self.radius)
        return CurvePatch(profile, self.center)

    @cached_property
    def bounds(self) -> FloatArray:
        """The smallest box around the curve."""

        def highest(axis: int, sign: float) -> float:
            return sign * extreme(lambda angle: sign * self._curve.points(angle)[:, axis])

        return np.array([[highest(axis, -1.0), highest(axis, 1.0)] for axis in (0, 1)])

    @property
    def measure(self) -> float:
        """The area."""
        return self._curve.area

    @property
    def boundary(self) -> Part:
        """The curve."""
        return self._part("boundary", self._curve)

    def level(self, X: FloatArray) -> FloatArray:
        """Return the distance from the curve to first order, negative outside."""
        return self._curve.distance(X)

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return Gauss along the rays times the trapezoid rule in the angle, about ``n`` nodes."""
        count = check_count(n, 2, "Star.quadrature")
        nodes, weights = gauss(side(count / 4, 2))
        turns, _ = periodic(max(3, round(count / len(nodes))))
        angle = 2 * np.pi * turns
        rays = self._curve.points(angle) - np.array(self.center)
        points = np.array(self.center) + np.multiply.outer(nodes, rays).reshape(-1, 2)
        scales = (rays**2).sum(axis=1) * (2 * np.pi / len(angle))
        return points, np.outer(weights * nodes, scales).ravel()

    def _encode(self, encode: Encoder | None) -> dict[str, Any]:
        series = self._curve.profile
        if not isinstance(series, FourierRadius):
            return super()._encode(encode)
        return {"center": list(self.center), "cosines": list(series.cosines), "sines": list(series.sines)}

    @classmethod
    def _decode(cls, data: Mapping[str, Any], coordinates: tuple[sp.Symbol, ...], decode: Decoder | None) -> Domain:
        if "cosines" not in data:
            return super()._decode(data, coordinates, decode)
        series = [tuple(float(entry) for entry in data[key]) for key in ("cosines", "sines")]
        if len(series[0]) != len(series[1]) or not series[0]:
            raise GeometryError("The description of a Star must have as many sines as cosines, and some.")
        return cls.make(coordinates, radius=FourierRadius(*series), center=data["center"])


def _check_radius(radius: object, coordinates: tuple[sp.Symbol, ...]) -> sp.Expr | Callable[[FloatArray], object]:
    if callable(radius) and not isinstance(radius, sp.Basic):
        return radius if isinstance(radius, PolarRadius) else _traced(radius)
    try:
        expression = sp.sympify(radius, strict=True)
    except sp.SympifyError:
        expression = None
    if not isinstance(expression, sp.Expr) or len(expression.free_symbols) > 1:
        raise GeometryError(
            "The 'radius' parameter of Star must be an expression in one symbol, the angle, or a function of it. "
            f"Got {shorten(radius)} instead. Write 1 + cos(3*theta)/4 with theta = sympy.Symbol('theta')."
        )
    if expression.free_symbols & set(coordinates):
        raise GeometryError(
            f"The 'radius' parameter of Star must depend on the angle, not on a coordinate of {coordinates}. "
            f"Got {shorten(radius)} instead. Use a symbol of its own for the angle."
        )
    return expression


def _traced(function: Callable[[Any], object]) -> sp.Expr | Callable[[FloatArray], object]:
    """Return the expression a function computes when SymPy can follow it, else the function."""
    angle = sp.Symbol("theta", real=True)
    try:
        expression = sp.sympify(function(angle), strict=True)
    except Exception:  # whatever a function for arrays does with a symbol
        return function
    followed = isinstance(expression, sp.Expr) and expression.free_symbols <= {angle}
    return expression.subs(angle, sp.Symbol("theta")) if followed else function
