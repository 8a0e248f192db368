"""Zero curves of a level function in a plane, parametrised by arc length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from contourpy import contour_generator
from scipy import ndimage
from scipy.interpolate import CubicSpline
from scipy.spatial import cKDTree

from pibls.checks import BoolArray, FloatArray
from pibls.geometry.patch import Located, Patch
from pibls.geometry.spans import Warp
from pibls.problem.level import Level
from pibls.quadrature.roots import CLOSE, SCAN, bracketed, climbed


@dataclass(frozen=True, eq=False)
class Contour(Patch):
    """A curve on which a level function is zero; its normals point to positive values."""

    level: Level
    path: CubicSpline  # parametrised from zero to one, close to the curve

    @classmethod
    def through(cls, level: Level, X: FloatArray) -> Contour:
        """Return the curve through the given zeros in order; it is closed if the first and the last are equal."""
        ends = "periodic" if (X[0] == X[-1]).all() else "not-a-knot"
        share = np.append(0.0, np.linalg.norm(np.diff(X, axis=0), axis=1).cumsum())
        # Near a grid point two zeros may be very close together, which would distort a spline.
        even = np.unique(np.searchsorted(share, share[-1] * np.linspace(0.0, 1.0, max(SCAN, len(X) // 3))))
        X, share, s = X[even], share[even], np.linspace(0.0, 1.0, SCAN**2)
        near = level.pulled(CubicSpline(share / share[-1], X, bc_type=ends if len(X) > 3 else "natural")(s))
        near[[0, -1]] = X[[0, -1]]
        return cls(level, CubicSpline(s, near, bc_type=ends))

    @property
    def parameters(self) -> int:
        """One: a curve."""
        return 1

    @cached_property
    def _warp(self) -> Warp:
        return Warp(lambda s: np.asarray(np.linalg.norm(self.path(s, 1), axis=1)))

    @property
    def measure(self) -> float:
        """The length of the curve."""
        return self._warp.total

    def at(self, U: FloatArray) -> Located:
        """Return points at relative arc lengths, with normals."""
        X = self.level.pulled(self.path(self._warp.inverse(U[:, 0])))
        return X, self.normals(X), None

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Return which points lie on the curve."""
        near = self.path(self.path.x)
        return np.asarray(cKDTree(near).query(X)[0] <= tolerance + self.measure / len(near))

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the unit gradients of the level function."""
        slopes = self.level.gradient(X)
        return np.asarray(slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300))


def contours(level: Level, bounds: FloatArray) -> list[Contour]:
    """Return all zero curves of a level function in a rectangle.

    Examples
    --------
    >>> import sympy as sp
    >>> x, y = sp.symbols("x y", real=True)
    >>> (circle,) = contours(Level.of(x**2 + y**2 - 0.25, (x, y)), np.array([[-1.0, 1.0], [-1.0, 1.0]]))
    >>> bool(abs(circle.measure - np.pi) < 1e-9)
    True
    """
    small = (own for place, step in dips(level, bounds) for own in _lines(level, place + step * [[-1.0], [1.0]]))
    return [Contour.through(level, X) for X in (*_lines(level, bounds.T), *small)]


def _sampled(level: Level, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the points of a grid, as many in a plane as in space, and the level function there."""
    axes = [np.linspace(low, high, round(SCAN ** (3 / ends.shape[1]))) for low, high in ends.T]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    return grid, level(grid.reshape(-1, grid.shape[-1])).reshape(grid.shape[:-1])


def _lines(level: Level, ends: FloatArray) -> Iterator[FloatArray]:
    """Yield the ordered zeros along each zero curve, where it crosses the lines of a grid."""
    grid, values = _sampled(level, ends)
    step = (ends[1] - ends[0]) / (len(grid) - 1)
    for places in map(np.asarray, contour_generator(z=np.ma.masked_invalid(values.T)).lines(0.0)):
        places = np.where(np.abs(places - np.rint(places)) < CLOSE, np.rint(places), places)
        low, high = (ends[0] + own * step for own in (np.floor(places), np.ceil(places)))

        def along(share: FloatArray, rows: FloatArray, low: FloatArray = low, high: FloatArray = high) -> FloatArray:
            return level(low[rows] + share[:, None] * (high - low)[rows])

        share = bracketed(along, np.zeros(len(low)), np.ones(len(low)))
        X = low + share[:, None] * (high - low)
        X = X[np.append(True, np.abs(np.diff(X, axis=0) / step).max(axis=1) > CLOSE)]
        if len(X) > 2 and (places[0] == places[-1]).all():
            X[-1] = X[0]
        if len(X) > 1 and np.isfinite(X).all():
            yield X


def dips(level: Level, bounds: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield grid points beside which the level function changes its sign between grid points, and the steps."""
    grid, values = _sampled(level, bounds.T)
    step, inner = (bounds[:, 1] - bounds[:, 0]) / (len(grid) - 1), (slice(1, -1),) * len(bounds)
    for sign in (1.0, -1.0):
        heights = sign * np.where(np.isfinite(values), values, np.inf)
        starts = grid[inner][((heights == ndimage.minimum_filter(heights, 3)) & (heights > 0))[inner]]
        lowest = climbed(partial(_times, -sign, level), starts, step, bounds)
        near = (np.abs(lowest - starts) <= 2 * step).all(axis=1)
        yield from ((place, step) for place in starts[near & (sign * level(lowest) < 0)])


def _times(sign: float, level: Level, X: FloatArray) -> FloatArray:
    return sign * level(X)


def has_zeros(level: Level, bounds: FloatArray) -> bool:
    """Return whether a level function has a zero in a box."""
    values = _sampled(level, bounds.T)[1]
    return bool((values == 0).any() or ((values < 0).any() and (values > 0).any())) or any(dips(level, bounds))
