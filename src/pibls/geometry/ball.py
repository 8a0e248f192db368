"""Disks and balls."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, check_number
from pibls.errors import GeometryError
from pibls.geometry.base import LevelIn, Region
from pibls.geometry.description import Argument, Arguments, Kind, Vector, check_center, check_coordinates, rational
from pibls.geometry.patch import Located, Patch, SurfaceRule
from pibls.geometry.sampling import unit_cube
from pibls.quadrature.rules import Rule, gauss, periodic, side, tensor

_REJECTION_LIMIT = 4
_SMALLEST = 1e-12
_MOST_DIGITS = 300


def unit_directions(U: FloatArray, dimension: int) -> FloatArray:
    """Map the unit cube to directions, at uniform density on the sphere.

    By angle in two dimensions, by height and angle in three (Archimedes), by normal deviates beyond.
    """
    if dimension <= 3:
        angle = 2 * np.pi * U[:, -1]
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        if dimension == 2:
            return circle
        height = 2 * U[:, 0] - 1
        return np.column_stack([np.sqrt((1 - height) * (1 + height))[:, None] * circle, height])
    from scipy.special import ndtri

    tiny = float(np.finfo(np.float64).eps)
    deviates = ndtri(np.clip(U, tiny, 1 - tiny))
    lengths = np.linalg.norm(deviates, axis=1, keepdims=True)
    # The middle of the cube has no direction; any one will do.
    deviates = np.where(lengths > 0, deviates, np.eye(1, dimension))
    return np.asarray(deviates / np.where(lengths > 0, lengths, 1.0))


@dataclass(frozen=True)
class SpherePatch(Patch):
    """A circle, a sphere, or their kin in more dimensions."""

    center: Vector
    radius: float

    @property
    def parameters(self) -> int:
        """As many as :func:`unit_directions` needs."""
        d = len(self.center)
        return d - 1 if d <= 3 else d

    @property
    def bounds(self) -> FloatArray:
        """The center less and plus the radius."""
        return np.array(self.center)[:, None] + self.radius * np.array([-1.0, 1.0])

    @property
    def measure(self) -> float:
        """Circumference, area, ..."""
        d = len(self.center)
        return 2 * math.pow(math.pi, d / 2) / math.gamma(d / 2) * math.pow(self.radius, d - 1)

    def at(self, U: FloatArray) -> Located:
        """Return the points in the directions of the parameters."""
        directions = unit_directions(U, len(self.center))
        return np.array(self.center) + self.radius * directions, directions, None

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points are at the radius from the center."""
        return np.asarray(np.abs(np.linalg.norm(X - np.array(self.center), axis=1) - self.radius) <= tolerance)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the directions from the center."""
        offset = X - np.array(self.center)
        return np.asarray(offset / np.linalg.norm(offset, axis=1, keepdims=True))

    def quadrature(self, n: int) -> SurfaceRule:
        """Return the trapezoid rule in the angle times Gauss in the height; antithetic Sobol' points beyond 3-D."""
        d = len(self.center)
        if d > 3:
            directions = unit_directions(unit_cube(max(1, n // 2), d), d)
            # Opposite pairs integrate linear functions exactly.
            directions = np.concatenate([directions, -directions])
            weights = np.full(len(directions), 1.0 / len(directions))
        else:
            heights = [gauss(side(n / 2, 2))] if d == 3 else []
            rows = len(heights[0][0]) if heights else 1
            U, weights = tensor(*heights, periodic(max(3, round(n / rows))))
            directions = unit_directions(U, d)
        return np.array(self.center) + self.radius * directions, directions, weights * self.measure


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Ball(Region):
    """A ball in two or more dimensions; its boundary is one piece.

    Examples
    --------
    >>> x, y, z = sp.symbols("x y z")
    >>> ball = Ball((x, y, z), (0, 0, 0), 2)
    >>> round(ball.measure / sp.pi.evalf(), 6)
    10.666667
    >>> ball.boundary.normals([[0, 0, -2]])
    array([[ 0.,  0., -1.]])
    """

    coordinates: tuple[sp.Symbol, ...]
    center: Vector
    radius: float

    arguments: ClassVar[Arguments] = (Argument("center", Kind.POINT), Argument("radius", Kind.NUMBER, "radius = 1"))
    _count: ClassVar[int | None] = None  # of coordinates, if it is fixed

    def __init__(self, coordinates: tuple[sp.Symbol, ...], center: object, radius: object) -> None:
        owner = type(self).__name__
        symbols = check_coordinates(coordinates, owner, self._count)
        if len(symbols) < 2:
            raise GeometryError(f"{owner} needs two or more coordinates. Got {symbols} instead. Use an Interval.")
        middle = check_center(center, len(symbols), owner)
        size = check_number("radius", radius, owner, minimum=0, exclusive=True, error=GeometryError)
        if size <= _SMALLEST * max(map(abs, middle)) or abs(math.log10(size)) * len(symbols) > _MOST_DIGITS:
            raise GeometryError(
                f"The 'radius' parameter of {owner} must give a ball that double precision can hold. "
                f"Got {size!r} at {middle} instead. Shift or scale the coordinates."
            )
        self._set(coordinates=symbols, center=middle, radius=size)

    @property
    def bounds(self) -> FloatArray:
        """The circumscribed cube."""
        return np.asarray(np.array(self.center)[:, None] + np.array([-self.radius, self.radius]))

    @property
    def measure(self) -> float:
        """Area, volume, ..."""
        d = self.dimension
        return math.pow(math.pi, d / 2) / math.gamma(d / 2 + 1) * math.pow(self.radius, d)

    @property
    def _patches(self) -> Iterable[Patch]:
        return [SpherePatch(self.center, self.radius)]

    @property
    def parameters(self) -> int:
        """Those of the cube around it; a direction and a radius beyond four dimensions, where most is rejected."""
        return self.dimension if self.dimension <= _REJECTION_LIMIT else self.dimension + 1

    def level(self, X: FloatArray) -> FloatArray:
        """Return the distance from the sphere, negative outside."""
        return np.asarray(self.radius - np.linalg.norm(X - np.array(self.center), axis=1))

    def level_in(self, low: FloatArray, high: FloatArray) -> LevelIn:
        """Return the level, unless the sphere is not in the box."""
        center, slack = np.array(self.center), self.tolerance
        nearest = float(np.linalg.norm(np.maximum(np.maximum(low - center, center - high), 0.0)))
        farthest = float(np.linalg.norm(np.maximum(np.abs(low - center), np.abs(high - center))))
        if nearest > self.radius + slack:
            return False
        return True if farthest < self.radius - slack else self.level

    @property
    def condition(self) -> sp.Basic:
        """Nearer to the center than the radius.

        >>> x, y = sp.symbols("x y", real=True)
        >>> Ball((x, y), (0, 0), 1).condition
        x**2 + y**2 < 1
        """
        offsets = zip(self.coordinates, map(rational, self.center), strict=True)
        return sum((s - c) ** 2 for s, c in offsets) < rational(self.radius) ** 2

    def embed(self, U: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        """Map the unit cube to the cube around the ball, or straight to the ball in many dimensions."""
        if self.dimension <= _REJECTION_LIMIT:
            return super().embed(U)
        radii = self.radius * U[:, -1:] ** (1.0 / self.dimension)
        return np.array(self.center) + radii * unit_directions(U[:, :-1], self.dimension), None

    def _rule(self, n: int) -> Rule:
        """Return a rule in polar coordinates; equal weights beyond 3 dimensions."""
        d = self.dimension
        if d > 3:
            return super()._rule(n)
        shells = side(n / 2 ** (d - 1), d)
        nodes, weights = gauss(shells)
        _, directions, shares = SpherePatch(self.center, 1.0).quadrature(max(1, round(n / shells)))
        points = np.array(self.center) + self.radius * np.multiply.outer(nodes, directions).reshape(-1, d)
        return points, np.outer(weights * nodes ** (d - 1), shares).ravel() * self.radius**d


class Disk(Ball):
    """A disk in the plane.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> round(Disk((x, y), (0, 0), 1).boundary.measure, 12)
    6.28318530718
    """

    _count: ClassVar[int | None] = 2
