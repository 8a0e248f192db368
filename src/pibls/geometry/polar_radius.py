"""Radius functions r(θ) of star-shaped curves: a SymPy expression, or a trigonometric interpolant of a callable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import FloatArray, shorten
from pibls.errors import GeometryError
from pibls.geometry.patch import FieldState
from pibls.problem.evaluate import Function, compile_function
from pibls.quadrature.roots import climbed

_COARSEST, _FINEST = 32, 2**14
_DECAY = 1e-13
_CHECK_GRID, _ROUNDS = 2**12, 24


class PolarRadius(FieldState, ABC):
    """A 2π-periodic function of the angle, with its derivative."""

    @abstractmethod
    def __call__(self, angle: FloatArray) -> FloatArray:
        """Return r(θ)."""

    @abstractmethod
    def slope(self, angle: FloatArray) -> FloatArray:
        """Return r′(θ)."""


@dataclass(frozen=True)
class SymbolicRadius(PolarRadius):
    """A radius given by an expression in one symbol."""

    expression: sp.Expr

    @cached_property
    def _own(self) -> tuple[sp.Expr, sp.Symbol]:
        """The expression with its angle, real so that SymPy differentiates absolute values and the like."""
        angle = sp.Symbol("theta", real=True)
        return self.expression.xreplace(dict.fromkeys(self.expression.free_symbols, angle)), angle

    @cached_property
    def _radius(self) -> Function:
        expression, angle = self._own
        return compile_function(expression, (angle,))

    @cached_property
    def _slope(self) -> Function:
        expression, angle = self._own
        return compile_function(expression.diff(angle), (angle,))

    def __call__(self, angle: FloatArray) -> FloatArray:
        """Return r(θ)."""
        return self._evaluated(angle, lambda: self._radius)

    def slope(self, angle: FloatArray) -> FloatArray:
        """Return r′(θ)."""
        return self._evaluated(angle, lambda: self._slope)

    def _evaluated(self, angle: FloatArray, compiled: Callable[[], Function]) -> FloatArray:
        try:
            return compiled().where_real(angle.ravel()[:, None]).reshape(angle.shape)
        except Exception as cause:
            raise GeometryError(
                f"The 'radius' parameter of Star must be an expression that has numbers for values. "
                f"Got {shorten(self.expression)}, which failed with {type(cause).__name__}: {shorten(str(cause))}. "
                "Use functions that NumPy or SciPy know."
            ) from cause


@dataclass(frozen=True)
class FourierRadius(PolarRadius):
    """A radius given by its Fourier series ``Σ aₖ cos kθ + bₖ sin kθ``."""

    cosines: tuple[float, ...]
    sines: tuple[float, ...]

    @cached_property
    def _coefficients(self) -> npt.NDArray[np.complex128]:
        return np.asarray(np.array(self.cosines) - 1j * np.array(self.sines), dtype=np.complex128)

    def __call__(self, angle: FloatArray) -> FloatArray:
        """Return r(θ)."""
        return self._series(self._coefficients, angle)

    def slope(self, angle: FloatArray) -> FloatArray:
        """Return r′(θ)."""
        return self._series(1j * np.arange(len(self.cosines)) * self._coefficients, angle)

    @staticmethod
    def _series(coefficients: npt.NDArray[np.complex128], angle: FloatArray) -> FloatArray:
        return np.asarray(np.polynomial.polynomial.polyval(np.exp(1j * angle), coefficients).real)


def interpolate(function: Callable[[FloatArray], object]) -> FourierRadius:
    """Return the trigonometric interpolant of a callable, with as many terms as its accuracy of 1e-13 needs."""
    n = _COARSEST
    while n <= _FINEST:
        values = _call(function, 2 * np.pi * np.arange(n) / n)
        coefficients = np.fft.rfft(values) / n
        sizes = np.abs(coefficients)
        if sizes[n // 4 :].max() <= _DECAY * sizes.max():
            radius = _truncate(coefficients, sizes)
            between = 2 * np.pi * (np.arange(2 * n) + 1 / 3) / (2 * n)
            if np.abs(radius(between) - _call(function, between)).max() <= 100 * _DECAY * sizes.max():
                return radius
        n *= 2
    raise GeometryError(
        f"The 'radius' parameter of Star must be smooth and 2π-periodic. Got {shorten(function)}, whose Fourier series "
        f"is not resolved by {_FINEST} points: it has a kink or a jump, or its values at 0 and 2π differ. "
        "Give a SymPy expression in the angle, or use Polygon."
    )


def _truncate(coefficients: npt.NDArray[np.complex128], sizes: FloatArray) -> FourierRadius:
    last = int(np.flatnonzero(sizes > _DECAY / 100 * sizes.max())[-1]) + 1
    doubled = coefficients[:last] * np.where(np.arange(last) == 0, 1.0, 2.0)
    return FourierRadius(tuple(doubled.real.tolist()), tuple((-doubled.imag).tolist()))


def _call(function: Callable[[FloatArray], object], angle: FloatArray) -> FloatArray:
    rule = f"The 'radius' parameter of Star, {shorten(function)}, must return one real number per angle of an array"
    try:
        values = np.asarray(function(angle.copy()))
        values = np.broadcast_to(values, angle.shape)
    except Exception as cause:
        raise GeometryError(
            f"{rule}; it raised {type(cause).__name__}: {shorten(str(cause))}. Write it with NumPy functions."
        ) from cause
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise GeometryError(f"{rule}. Got {shorten(values)} instead. Check it for NaN, infinity and complex values.")
    return values.astype(np.float64)


def extreme(function: Callable[[FloatArray], FloatArray]) -> float:
    """Return the maximum of a periodic function of the angle, near its highest value on a grid.

    >>> extreme(lambda angle: np.cos(angle - 1.0))
    1.0
    """
    angle = 2 * np.pi * np.arange(_CHECK_GRID) / _CHECK_GRID
    best = angle[function(angle).argmax()].reshape(1, 1)
    anywhere = np.array([[-np.inf, np.inf]])
    return float(function(climbed(lambda X: function(X[:, 0]), best, angle[1:2], anywhere, _ROUNDS)[0])[0])


def check_profile(profile: PolarRadius, given: object) -> None:
    """Refuse a radius that is not finite, positive, periodic and continuous."""

    def refuse(fault: str, remedy: str) -> GeometryError:
        return GeometryError(
            "The 'radius' parameter of Star must be finite, positive, continuous and 2π-periodic. "
            f"Got {shorten(given)}, which {fault}. {remedy}"
        )

    fine = 2 * np.pi * np.arange(16 * _CHECK_GRID + 1) / (16 * _CHECK_GRID)
    values = profile(fine)
    if not np.isfinite(values).all():
        raise refuse(f"is not finite at θ = {fine[int(np.argmin(np.isfinite(values)))]:.6g}", "Avoid its poles.")
    largest = float(np.abs(values).max())
    if not 1e-100 < largest < 1e100:
        raise refuse(f"reaches {largest:g}, beyond what double precision can square", "Scale the coordinates.")
    if -extreme(lambda angle: -profile(angle)) <= 1e-9 * largest:
        raise refuse(f"falls to {values.min():.6g} at θ = {fine[int(values.argmin())]:.6g}", "Add a constant.")
    turned = profile(fine[:_CHECK_GRID] + 2 * np.pi)
    if np.abs(turned - values[:_CHECK_GRID]).max() > 1e-9 * largest:
        raise refuse("is not the same at θ and θ + 2π", "Use functions such as cos(3*theta) with whole numbers.")
    jump, coarse_jump = (float(np.abs(np.diff(values[::stride])).max()) for stride in (1, 16))
    if jump > 1e-6 * largest and jump > 0.5 * coarse_jump:
        raise refuse("jumps", "Use a continuous expression, or Polygon.")
