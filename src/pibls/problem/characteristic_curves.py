"""The characteristic through a point, as the zeros of an expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem.domain import DomainLike
from pibls.problem.evaluate import Function, compile_function
from pibls.quadrature.roots import CLOSE, HALVINGS, ROUNDING, SCAN


@dataclass(frozen=True, eq=False)
class Directions:
    """A field of directions in the plane of two coordinates: those of a family of characteristics."""

    slopes: tuple[sp.Expr, sp.Expr]
    domain: DomainLike

    @cached_property
    def _functions(self) -> list[Function]:
        return [compile_function(slope, self.domain.coordinates) for slope in self.slopes]

    def at(self, X: FloatArray) -> FloatArray:
        """Return the directions at points, those outside the bounds at the nearest point within."""
        X = np.clip(X, *self.domain.bounds.T)
        return np.stack([function(X) for function in self._functions], axis=1)

    @property
    def constant(self) -> FloatArray | None:
        """The direction if it is the same everywhere, else None."""
        values = [function.constant for function in self._functions]
        return None if None in values else np.array(values, dtype=np.float64)

    def enters(self, place: FloatArray, normals: FloatArray) -> bool:
        """Tell whether a characteristic leads inside from a point of the boundary; in a steady flow either way.

        A corner has two normals.
        """
        try:
            (slope,) = self.at(place[None])
        except ProblemError:
            return False
        inward = -normals @ slope / max(float(np.linalg.norm(slope)), 1e-300)
        ways = (1.0,) if self.domain.time is not None else (1.0, -1.0)
        return any(bool((way * inward > CLOSE).all()) for way in ways)


@dataclass(frozen=True, eq=False)
class Traced:
    """A curve as the zeros of an expression."""

    level: sp.Expr
    jump: sp.Expr = sp.S.Zero  # of a wave: the value where the level is positive less that where it is negative
    end: FloatArray | None = None  # where it leaves the box around the domain, if it may be reflected there


def traced(family: Directions, start: FloatArray) -> Traced | None:
    """Return the characteristic of a family through a point, or None if none can be told.

    >>> from pibls import Rectangle
    >>> x, y = sp.symbols("x y", real=True)
    >>> traced(Directions((-y, x), Rectangle((x, 0, 1), (y, 0, 1))), np.array([0.5, 0.0])).level
    -x**2/2 - y**2/2 + 0.125
    """
    symbols = family.domain.coordinates
    if (slope := family.constant) is not None:
        slope = slope / np.abs(slope).max() if family.domain.time is None else slope
        level = sum(float(c) * (s - float(p)) for c, s, p in zip((slope[1], -slope[0]), symbols, start, strict=True))
        return Traced(sp.expand(level), end=_straight_end(family, start, slope))
    if family.domain.time is None:
        stream = _stream(family)
        if stream is not None:
            there = stream.subs(dict(zip(symbols, map(sp.Float, start), strict=True)))
            return Traced(stream - there)
    return _followed(family, start)


def _straight_end(family: Directions, start: FloatArray, slope: FloatArray) -> FloatArray:
    """Return where a straight line forward from a point leaves the bounds."""
    bounds = family.domain.bounds
    with np.errstate(all="ignore"):
        reach = np.where(
            slope > 0, (bounds[:, 1] - start) / slope, np.where(slope < 0, (bounds[:, 0] - start) / slope, np.inf)
        )
    axis = int(reach.argmin())
    end = start + reach[axis] * slope
    end[axis] = bounds[axis, 1 if slope[axis] > 0 else 0]
    return np.asarray(end)


def _stream(family: Directions) -> sp.Expr | None:
    """Return the stream function of a flow without divergence whose components are polynomials, else None."""
    (x, y), (along, up) = family.domain.coordinates, family.slopes
    if not all(own.is_polynomial(x, y) for own in (along, up)) or sp.expand(along.diff(x) + up.diff(y)) != 0:
        return None
    across = sp.integrate(sp.expand(along), y)
    return sp.expand(across - sp.integrate(sp.expand(up + across.diff(x)), x))


def _followed(family: Directions, start: FloatArray) -> Traced | None:
    """Return a characteristic as a graph over the axis along which the flow never turns, by integration."""
    from scipy.integrate import solve_ivp

    domain, bounds = family.domain, family.domain.bounds
    try:
        axis = _upright(family)
        if axis is None:
            return None
        other, (first,) = 1 - axis, family.at(start[None])
        sides, span = bounds[other], float(np.ptp(bounds[other]))
        # A steady flow may lead through the point either way: the way inside is the one to follow.
        rising = first[axis] > 0
        if domain.time is None and abs(start[axis] - bounds[axis, 1 if rising else 0]) < CLOSE * np.ptp(bounds[axis]):
            rising = not rising

        def rate(at: float, place: FloatArray) -> FloatArray:
            X = np.empty((1, 2))
            X[0, axis], X[0, other] = at, place[0]
            ((slope),) = family.at(X)
            return np.array([slope[other] / slope[axis]])

        def leaves(at: float, place: FloatArray) -> float:
            del at
            return float(min(place[0] - sides[0], sides[1] - place[0]) + CLOSE * span)

        leaves.terminal = True  # type: ignore[attr-defined]
        until = float(bounds[axis, 1 if rising else 0])
        options = {"dense_output": True, "events": leaves, "rtol": ROUNDING, "atol": ROUNDING * span}
        run = solve_ivp(rate, (float(start[axis]), until), [start[other]], "DOP853", **options)
    except ProblemError:
        return None
    if not run.success or run.sol is None:
        return None
    low, high = sorted((float(run.t[0]), float(run.t[-1])))
    if high - low <= CLOSE * np.ptp(bounds[axis]):
        return None
    course = graph(lambda s: run.sol(s)[0], low, high, domain.coordinates[axis], 10 * ROUNDING * span)
    # The curve passes exactly through the point, as data switch there.
    off = float(course.subs(domain.coordinates[axis], sp.Float(start[axis]))) - float(start[other])
    level = domain.coordinates[other] - course + off
    end = np.empty(2)
    end[axis], end[other] = run.t[-1], run.y[0, -1]
    near = np.abs(end[other] - sides)
    if near.min() < 2 * CLOSE * span:
        end[other] = sides[near.argmin()]
    return Traced(level, end=end)


def _upright(family: Directions) -> int | None:
    """Return an axis along which all directions point the same way, time if there is one; None if there is none."""
    if family.domain.time is not None:
        return 1
    slopes = family.at(family.domain.sample(SCAN**2, "kronecker", 1))
    slopes = slopes / np.linalg.norm(slopes, axis=1, keepdims=True)
    least = np.maximum(slopes.min(axis=0), -slopes.max(axis=0))
    axis = int(least.argmax())
    return axis if least[axis] > np.sqrt(CLOSE) else None


def graph(
    curve: Callable[[FloatArray], FloatArray], low: float, high: float, symbol: sp.Symbol, accuracy: float
) -> sp.Expr:
    """Return a function as polynomials piece by piece, as accurate as asked; beyond its ends it goes on straight."""
    pieces: list[tuple[float, sp.Expr]] = []

    def fitted(a: float, b: float, halvings: int) -> None:
        found = np.polynomial.Chebyshev.interpolate(curve, SCAN // 3, [a, b])  # higher powers would lose digits
        s = np.linspace(a, b, SCAN)
        if halvings and np.abs(found(s) - curve(s)).max() > accuracy:
            fitted(a, (a + b) / 2, halvings - 1)
            fitted((a + b) / 2, b, halvings - 1)
            return
        u, powers = (symbol - (a + b) / 2) / ((b - a) / 2), np.polynomial.chebyshev.cheb2poly(found.coef)
        made = sp.S.Zero
        for power in powers[::-1]:
            made = made * u + sp.Float(power)
        pieces.append((b, made))

    fitted(low, high, HALVINGS // 2)
    (_, first), (_, last) = pieces[0], pieces[-1]
    ends = [
        own.subs(symbol, at) + own.diff(symbol).subs(symbol, at) * (symbol - at)
        for own, at in ((first, low), (last, high))
    ]
    return sp.Piecewise((ends[0], symbol < low), *((own, symbol < b) for b, own in pieces), (ends[1], True))
