"""Star-shaped domains bounded by a polar curve; its radius is an expression, or a trigonometric interpolant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, refusal, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Domain, Region
from pibls.geometry.description import (
    Argument,
    Arguments,
    Decoder,
    Encoder,
    Kind,
    Vector,
    check_center,
    check_coordinates,
    rational,
    written,
)
from pibls.geometry.patch import Located, Patch, SurfaceRule, called
from pibls.geometry.spans import Warp
from pibls.problem.evaluate import Function, compile_function
from pibls.quadrature.roots import climbed
from pibls.quadrature.rules import Rule, gauss, periodic, side

_COARSEST, _FINEST = 32, 2**14
_DECAY = 1e-13
_CHECK_GRID, _ROUNDS = 2**12, 24
_TURN = 2 * np.pi


@dataclass(frozen=True)
class SymbolicRadius:
    """A 2π-periodic radius given by an expression in one symbol, the angle."""

    expression: sp.Expr

    def __call__(self, angle: FloatArray, order: int = 0) -> FloatArray:
        """Evaluate the expression or its derivative."""
        try:
            return _compiled(self.expression, order).where_real(angle.ravel()[:, None]).reshape(angle.shape)
        except Exception as cause:
            raise GeometryError(
                f"The 'radius' parameter of Star must be an expression that has numbers for values. "
                f"Got {shorten(self.expression)}, which failed with {type(cause).__name__}: {shorten(str(cause))}. "
                "Use functions that NumPy or SciPy know."
            ) from cause


@lru_cache(maxsize=64)
def _compiled(expression: sp.Expr, order: int) -> Function:
    # A real angle, so that SymPy differentiates absolute values and the like.
    angle = sp.Symbol("theta", real=True)
    own = expression.xreplace(dict.fromkeys(expression.free_symbols, angle))
    return compile_function(own.diff(angle, order), (angle,))


@dataclass(frozen=True)
class FourierRadius:
    """A radius given by its Fourier series ``Σ aₖ cos kθ + bₖ sin kθ``."""

    cosines: tuple[float, ...]
    sines: tuple[float, ...]

    def __call__(self, angle: FloatArray, order: int = 0) -> FloatArray:
        """Evaluate the series or its derivative."""
        coefficients = np.array(self.cosines) - 1j * np.array(self.sines)
        series = coefficients * (1j * np.arange(len(coefficients))) ** order
        return np.asarray(np.polynomial.polynomial.polyval(np.exp(1j * angle), series).real)


PolarRadius = SymbolicRadius | FourierRadius


def _interpolated(function: Callable[[FloatArray], object]) -> FourierRadius:
    """Return the trigonometric interpolant of a callable, with as many terms as its accuracy of 1e-13 needs."""
    n = _COARSEST
    while n <= _FINEST:
        coefficients = np.fft.rfft(_call(function, _TURN * np.arange(n) / n)) / n
        sizes = np.abs(coefficients)
        if sizes[n // 4 :].max() <= _DECAY * sizes.max():
            last = int(np.flatnonzero(sizes > _DECAY / 100 * sizes.max())[-1]) + 1
            doubled = coefficients[:last] * np.where(np.arange(last) == 0, 1.0, 2.0)
            radius = FourierRadius(tuple(doubled.real.tolist()), tuple((-doubled.imag).tolist()))
            between = _TURN * (np.arange(2 * n) + 1 / 3) / (2 * n)
            if np.abs(radius(between) - _call(function, between)).max() <= 100 * _DECAY * sizes.max():
                return radius
        n *= 2
    raise GeometryError(
        f"The 'radius' parameter of Star must be smooth and 2π-periodic. Got {shorten(function)}, whose Fourier series "
        f"is not resolved by {_FINEST} points: it has a kink or a jump, or its values at 0 and 2π differ. "
        "Give a SymPy expression in the angle, or use Polygon."
    )


def _call(function: Callable[[FloatArray], object], angle: FloatArray) -> FloatArray:
    rule = f"The 'radius' parameter of Star, {shorten(function)}, must return one real number per angle of an array"
    remedy = "Write it with NumPy functions."
    values = called(lambda given: np.broadcast_to(np.asarray(function(given)), given.shape), angle, rule, remedy)
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise GeometryError(f"{rule}. Got {shorten(values)} instead. Check it for NaN, infinity and complex values.")
    return np.asarray(values, dtype=np.float64)


def _highest(function: Callable[[FloatArray], FloatArray]) -> float:
    """Return the maximum of a periodic function of the angle, near its highest value on a grid.

    >>> _highest(lambda angle: np.cos(angle - 1.0))
    1.0
    """
    angle = _TURN * np.arange(_CHECK_GRID) / _CHECK_GRID
    best = angle[function(angle).argmax()].reshape(1, 1)
    anywhere = np.array([[-np.inf, np.inf]])
    return float(function(climbed(lambda X: function(X[:, 0]), best, angle[1:2], anywhere, _ROUNDS)[0])[0])


def _check_profile(profile: PolarRadius, given: object) -> None:
    """Refuse a radius that is not finite, positive, periodic and continuous."""

    def refuse(fault: str, remedy: str) -> GeometryError:
        return GeometryError(
            "The 'radius' parameter of Star must be finite, positive, continuous and 2π-periodic. "
            f"Got {shorten(given)}, which {fault}. {remedy}"
        )

    fine = _TURN * np.arange(16 * _CHECK_GRID + 1) / (16 * _CHECK_GRID)
    values = profile(fine)
    if not np.isfinite(values).all():
        raise refuse(f"is not finite at θ = {fine[int(np.argmin(np.isfinite(values)))]:.6g}", "Avoid its poles.")
    largest = float(np.abs(values).max())
    if not 1e-100 < largest < 1e100:
        raise refuse(f"reaches {largest:g}, beyond what double precision can square", "Scale the coordinates.")
    if -_highest(lambda angle: -profile(angle)) <= 1e-9 * largest:
        raise refuse(f"falls to {values.min():.6g} at θ = {fine[int(values.argmin())]:.6g}", "Add a constant.")
    turned = profile(fine[:_CHECK_GRID] + _TURN)
    if np.abs(turned - values[:_CHECK_GRID]).max() > 1e-9 * largest:
        raise refuse("is not the same at θ and θ + 2π", "Use functions such as cos(3*theta) with whole numbers.")
    jump, coarse_jump = (float(np.abs(np.diff(values[::stride])).max()) for stride in (1, 16))
    if jump > 1e-6 * largest and jump > 0.5 * coarse_jump:
        raise refuse("jumps", "Use a continuous expression, or Polygon.")


@dataclass(frozen=True)
class _PolarCurve(Patch):
    """The closed curve ``center + r(θ) (cos θ, sin θ)``, parametrised by arc length."""

    profile: PolarRadius
    center: Vector
    parameters = 1  # the fraction of the arc length

    def speed(self, angle: FloatArray) -> FloatArray:
        """Return the length of the tangent vector."""
        return np.hypot(self.profile(angle), self.profile(angle, 1))

    def points(self, angle: FloatArray) -> FloatArray:
        direction = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.asarray(np.array(self.center) + self.profile(angle)[:, None] * direction)

    def outward(self, angle: FloatArray) -> FloatArray:
        """Return the outward unit normals at given angles."""
        radius, slope = self.profile(angle), self.profile(angle, 1)
        cosine, sine = np.cos(angle), np.sin(angle)
        outward = np.stack([radius * cosine + slope * sine, radius * sine - slope * cosine], axis=1)
        return np.asarray(outward / np.hypot(radius, slope)[:, None])

    def distance(self, X: FloatArray) -> FloatArray:
        """Return the distance from the curve to first order, positive inside."""
        x, y = (X - np.array(self.center)).T
        angle = np.arctan2(y, x)
        edge = self.profile(angle)
        return np.asarray((edge - np.hypot(x, y)) * edge / np.hypot(edge, self.profile(angle, 1)))

    @cached_property
    def _warp(self) -> Warp:
        return Warp(lambda s: _TURN * self.speed(_TURN * s))

    @property
    def measure(self) -> float:
        return self._warp.total

    @cached_property
    def area(self) -> float:
        """The enclosed area, ½∮r²dθ."""
        return Warp(lambda s: np.pi * self.profile(_TURN * s) ** 2).total

    def at(self, U: FloatArray) -> Located:
        angle = _TURN * self._warp.inverse(U[:, 0])
        return self.points(angle), self.outward(angle), None

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        return np.asarray(np.abs(self.distance(X)) <= tolerance)

    def normals(self, X: FloatArray) -> FloatArray:
        x, y = (X - np.array(self.center)).T
        return self.outward(np.arctan2(y, x))

    def quadrature(self, n: int) -> SurfaceRule:
        """Return the trapezoid rule in the angle, which needs no inversion of the arc length."""
        nodes, weights = periodic(n)
        angle = _TURN * nodes
        return self.points(angle), self.outward(angle), _TURN * weights * self.speed(angle)


@dataclass(frozen=True, init=False, eq=False, repr=False)
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
    center: Vector

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
        _check_profile(self._curve.profile, radius)

    def __repr__(self) -> str:
        radius = getattr(self.radius, "__name__", None) or shorten(self.radius, 40)
        return f"Star({self.coordinates}, {radius}, center={written(self.center)})"

    @cached_property
    def _curve(self) -> _PolarCurve:
        if isinstance(self.radius, PolarRadius):
            return _PolarCurve(self.radius, self.center)
        symbolic = isinstance(self.radius, sp.Expr)
        return _PolarCurve(SymbolicRadius(self.radius) if symbolic else _interpolated(self.radius), self.center)

    @cached_property
    def bounds(self) -> FloatArray:
        """The smallest box around the curve."""

        def furthest(axis: int, sign: float) -> float:
            return sign * _highest(lambda angle: sign * self._curve.points(angle)[:, axis])

        return np.array([[furthest(axis, -1.0), furthest(axis, 1.0)] for axis in (0, 1)])

    @property
    def measure(self) -> float:
        """The area."""
        return self._curve.area

    @property
    def _patches(self) -> Iterable[Patch]:
        return [self._curve]

    def level(self, X: FloatArray) -> FloatArray:
        """Return the distance from the curve to first order, negative outside."""
        return self._curve.distance(X)

    @property
    def condition(self) -> sp.Basic:
        """Nearer to the center than the radius at the angle."""
        if not isinstance(self.radius, sp.Expr):
            raise GeometryError("A Star is a region only if its radius is an expression of the angle, not a function.")
        x, y = (s - rational(c) for s, c in zip(self.coordinates, self.center, strict=True))
        return sp.sqrt(x**2 + y**2) < self.radius.subs({angle: sp.atan2(y, x) for angle in self.radius.free_symbols})

    def _rule(self, n: int) -> Rule:
        """Return Gauss along the rays times the trapezoid rule in the angle."""
        nodes, weights = gauss(side(n / 4, 2))
        turns, _ = periodic(max(3, round(n / len(nodes))))
        rays = self._curve.points(_TURN * turns) - np.array(self.center)
        points = np.array(self.center) + np.multiply.outer(nodes, rays).reshape(-1, 2)
        scales = (rays**2).sum(axis=1) * (_TURN / len(turns))
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
        rule = "be an expression in one symbol, the angle, or a function of it"
        remedy = "Write 1 + cos(3*theta)/4 with theta = sympy.Symbol('theta')."
        raise refusal("radius", "Star", rule, radius, remedy, GeometryError)
    if expression.free_symbols & set(coordinates):
        rule = f"depend on the angle, not on a coordinate of {coordinates}"
        raise refusal("radius", "Star", rule, radius, "Use a symbol of its own for the angle.", GeometryError)
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
