"""Curves of a plane on which a function is zero, traced at even speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import ndimage
from scipy.integrate import OdeSolution, solve_ivp
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import minimize
from scipy.spatial import cKDTree

from pibls.checks import BoolArray, FloatArray
from pibls.geometry.patch import Located, Patch
from pibls.problem.level import Level

__all__ = ["Contour", "contours", "zeros"]

_GRID, _KNOTS = {2: 129, 3: 33}, 2049
_PRECISION = 1e-11
_FLAT = 1e-12  # a gradient that is this much smaller than others says nothing
_MOST = 64
_ROUNDS = 60
_CLOSED, _NEAR = 1e-9, 1e-5
_DOUBLINGS = 10


@dataclass(frozen=True, eq=False)
class Contour(Patch):
    """A curve on which a level is zero; its normals point to where the level is larger."""

    level: Level
    length: float
    path: CubicHermiteSpline

    @classmethod
    def along(cls, level: Level, length: float, path: Callable[[FloatArray], FloatArray]) -> Contour:
        """Return the curve that a path follows at unit speed."""
        s = np.linspace(0.0, length, _KNOTS)
        X = level.pulled(path(s))
        rough = np.gradient(path(s), s, axis=0)
        slope = level.gradient(X)
        tangents = np.stack([-slope[:, 1], slope[:, 0]], axis=1) / np.linalg.norm(slope, axis=1, keepdims=True)
        ahead = np.sign((rough * tangents).sum(axis=1, keepdims=True))
        return cls(level, length, CubicHermiteSpline(s, X, ahead * tangents))

    @property
    def parameters(self) -> int:
        """One."""
        return 1

    @property
    def measure(self) -> float:
        """Its length."""
        return self.length

    def at(self, U: FloatArray) -> Located:
        """Return points at even distances."""
        X = self.level.pulled(self.path(U[:, 0] * self.length))
        return X, self.normals(X), None

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points are on it."""
        return np.asarray(cKDTree(self._samples).query(X)[0] <= tolerance + self.length / len(self._samples))

    @cached_property
    def _samples(self) -> FloatArray:
        return self.at(np.linspace(0.0, 1.0, 1025)[:, None])[0]

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the direction in which the level rises."""
        slopes = self.level.gradient(X)
        return np.asarray(slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300))


def contours(level: Level, bounds: FloatArray) -> list[Contour]:
    """Return all curves in a plane box on which a level is zero.

    Examples
    --------
    >>> import sympy as sp
    >>> x, y = sp.symbols("x y", real=True)
    >>> (circle,) = contours(Level.of(x**2 + y**2 - 0.25, (x, y)), np.array([[-1.0, 1.0], [-1.0, 1.0]]))
    >>> bool(abs(circle.measure - np.pi) < 1e-9)
    True
    """
    found: list[Contour] = []
    starts = zeros(level, bounds)
    # Those far from the walls come first: a path that begins beyond one would not end there.
    starts = starts[np.argsort(-np.minimum(starts - bounds[:, 0], bounds[:, 1] - starts).min(axis=1), kind="stable")]
    step = (bounds[:, 1] - bounds[:, 0]) / (_GRID[len(bounds)] - 1)
    while len(starts) and len(found) < _MOST:
        own = level.pulled(starts[:1])
        inside = (np.abs(own - starts[:1]) <= 2 * step).all() and ((own >= bounds[:, 0]) & (own <= bounds[:, 1])).all()
        curve = _traced(level, own[0], bounds) if inside else None
        if curve is None:
            starts = starts[1:]
            continue
        found.append(curve)
        near = cKDTree(curve.at(np.linspace(0.0, 1.0, 8 * _GRID[2])[:, None])[0] / step).query(starts / step)[0] < 1.5
        near[0] = True
        starts = starts[~near]
    return found


def zeros(level: Level, bounds: FloatArray) -> FloatArray:
    """Return places in a box near which a level is zero: where it changes sign on a grid, and in dips between."""
    count, d = _GRID[len(bounds)], len(bounds)
    axes = [np.linspace(low, high, count) for low, high in bounds]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    values = level(grid.reshape(-1, d)).reshape(grid.shape[:-1])
    found = [grid[values == 0]]
    for axis in range(d):
        a, b = (np.take(values, range(k, count - 1 + k), axis=axis) for k in (0, 1))
        first, second = (np.take(grid, range(k, count - 1 + k), axis=axis) for k in (0, 1))
        changed = a * b < 0
        share = (a[changed] / (a[changed] - b[changed]))[:, None]
        found.append(first[changed] + share * (second[changed] - first[changed]))
    inner = (slice(1, -1),) * d
    for sign in (1.0, -1.0):
        heights = sign * np.where(np.isfinite(values), values, np.inf)
        lowest = (heights == ndimage.minimum_filter(heights, 3)) & (heights > 0)
        found += [one for place in grid[inner][lowest[inner]][:_MOST] for one in _dip(level, place, sign, bounds)]
    return np.concatenate(found)


def _dip(level: Level, place: FloatArray, sign: float, bounds: FloatArray) -> Iterator[FloatArray]:
    """Yield a zero beside a place at which a level is lowest, if it is below zero somewhere near."""
    step = float((bounds[:, 1] - bounds[:, 0]).max()) / (_GRID[len(bounds)] - 1)
    found = minimize(lambda X: sign * float(level(X[None])[0]), place, method="Nelder-Mead", options={"xatol": 1e-12})
    if found.fun >= 0 or np.abs(found.x - place).max() > 2 * step:
        return
    low, high = found.x, place
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if sign * level(middle[None])[0] < 0 else (low, middle)
    yield low[None]


def _traced(level: Level, start: FloatArray, bounds: FloatArray) -> Contour | None:
    """Return the curve through a point, from wall to wall, or once around."""
    if not np.linalg.norm(level.gradient(start[None])[0]) > 0:
        return None
    ahead = _path(level, start, bounds, 1.0)
    if ahead.closed:
        return Contour.along(level, ahead.length, ahead.at)
    behind = _path(level, start, bounds, -1.0)

    def along(s: FloatArray) -> FloatArray:
        t = s - behind.length
        return np.where(t[:, None] >= 0, ahead.at(t), behind.at(-t))

    length = behind.length + ahead.length
    return Contour.along(level, length, along) if length > 0 else None


@dataclass(frozen=True, eq=False)
class _Path:
    """A curve from a point on, at unit speed."""

    solution: Callable[[FloatArray], FloatArray]
    length: float
    closed: bool

    def at(self, s: FloatArray) -> FloatArray:
        return np.asarray(self.solution(np.clip(s, 0.0, self.length)).T)


def _path(level: Level, start: FloatArray, bounds: FloatArray, sign: float) -> _Path:
    """Follow the curve through a point to the wall of a box, or back to the point."""
    size = float((bounds[:, 1] - bounds[:, 0]).max())
    least = _FLAT * float(np.linalg.norm(level.gradient(start[None])[0]))

    def velocity(_: float, X: FloatArray) -> FloatArray:
        slope = level.gradient(X[None])[0]
        return sign * np.array([-slope[1], slope[0]]) / max(float(np.linalg.norm(slope)), least)

    def room(_: float, X: FloatArray) -> float:
        return float(np.minimum(X - bounds[:, 0], bounds[:, 1] - X).min()) + _CLOSED * size

    tangent = velocity(0.0, start)

    def around(_: float, X: FloatArray) -> float:
        return float((X - start) @ tangent)

    room.terminal, room.direction, around.direction = True, -1.0, 1.0  # type: ignore[attr-defined]
    times, pieces, here, reach = [0.0], [], start, 2.0**-_DOUBLINGS * size
    options = {"method": "DOP853", "dense_output": True, "rtol": _PRECISION, "atol": _PRECISION * size}
    for _ in range(_DOUBLINGS + 5):
        # Twice as far each time: a small curve is not gone round many times, nor a long one left unfinished.
        path = solve_ivp(velocity, (times[-1], times[-1] + reach), here, events=[room, around], **options)
        times += path.sol.ts[1:].tolist()
        pieces += path.sol.interpolants
        for s, X in zip(path.t_events[1], path.y_events[1], strict=True):
            if s > _CLOSED * size and np.linalg.norm(X - start) < _NEAR * s:
                return _Path(OdeSolution(times, pieces), float(s), True)
        if path.status == 1:
            break
        here, reach = path.y[:, -1], 2 * reach
    return _Path(OdeSolution(times, pieces), times[-1], False)
