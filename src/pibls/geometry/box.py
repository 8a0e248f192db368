"""Intervals, rectangles and boxes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, check_number, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Domain, LevelIn, Region
from pibls.geometry.description import Argument, Arguments, Kind, check_coordinates, describe, rational
from pibls.geometry.part import Part
from pibls.geometry.patch import AffinePatch, Patch, interval_tolerance
from pibls.quadrature.rules import Rule, gauss, side, tensor

Range = tuple[sp.Symbol, float, float]

_THINNEST = 1e-12
_SHORTEST, _LONGEST = 1e-100, 1e100
_TENSOR_LIMIT = 4
_MOST_DIMENSIONS = 128


def check_range(value: object, owner: str) -> tuple[sp.Symbol, float, float]:
    """Return a coordinate with its limits, lower below upper, or refuse the value.

    >>> check_range((sp.Symbol("x"), 0, sp.pi), "Interval")
    (x, 0.0, 3.141592653589793)
    """
    if not isinstance(value, tuple | list) or len(value) != 3:
        raise GeometryError(
            f"Each argument of {owner} must be (coordinate, lower, upper). Got {shorten(value)} instead. "
            f"Write {owner}((x, 0, 1){', ...' if owner == 'Box' else ''})."
        )
    (symbol,) = check_coordinates(value[0], owner, 1)
    low = check_number("lower", value[1], owner, error=GeometryError)
    high = check_number("upper", value[2], owner, error=GeometryError)
    if not low < high:
        raise GeometryError(
            f"The limits of {symbol} in {owner} must be in increasing order. "
            f"Got {describe(low)} and {describe(high)} instead. Swap them, or give an interval of positive length."
        )
    if not _THINNEST * max(abs(low), abs(high)) < high - low < math.inf:
        raise GeometryError(
            f"The limits of {symbol} in {owner} must be told apart, and their difference held, in double precision. "
            f"Got {low!r} and {high!r} instead. Shift or scale the coordinate."
        )
    return symbol, low, high


def check_length(symbol: sp.Symbol, length: float, owner: str) -> None:
    """Refuse a side whose square, or that of a derivative along it, double precision cannot hold."""
    if not _SHORTEST <= length <= _LONGEST:
        raise GeometryError(
            f"The range of {symbol} in {owner} must have a length between {_SHORTEST:g} and {_LONGEST:g}. "
            f"Got {length:g} instead. Scale the coordinate."
        )


class Ranges(Domain):
    """A product of intervals: of space coordinates, or one of time."""

    @property
    def measure(self) -> float:
        """The product of the sides."""
        return float(math.prod((self.bounds[:, 1] - self.bounds[:, 0]).tolist()))

    @property
    def parameters(self) -> int:
        """One per side."""
        return self.dimension

    def _holds(self, points: FloatArray) -> BoolArray:
        low, high = self.bounds.T
        slack = np.array([interval_tolerance(*pair) for pair in self.bounds.tolist()])
        return np.asarray(((points >= low - slack) & (points <= high + slack)).all(axis=1))

    def embed(self, U: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        """Map the unit cube to the ranges."""
        low, high = self.bounds.T
        return np.clip(low + U * (high - low), low, high), None

    def _rule(self, n: int) -> Rule:
        """Return a product Gauss rule; equal weights on Sobol' points beyond 4 dimensions."""
        if self.dimension > _TENSOR_LIMIT:
            return super()._rule(n)
        U, weights = tensor(*[gauss(side(n, self.dimension))] * self.dimension)
        return self.embed(U)[0], weights * self.measure


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Box(Ranges, Region):
    """A box with faces along the coordinate planes, in any dimension.

    Its parts are ``x_min`` and ``x_max`` for every coordinate; ``left``/``right`` are those of the first,
    ``bottom``/``top`` those of the last in two and three dimensions, ``front``/``back`` those of the second in three.

    Examples
    --------
    >>> x, y, z = sp.symbols("x y z")
    >>> box = Box((x, 0, 1), (y, 0, 2), (z, 0, 3))
    >>> box.measure, box.top.measure
    (6.0, 2.0)
    >>> box.back.normals([[0.5, 2, 1]])
    array([[0., 1., 0.]])
    """

    coordinates: tuple[sp.Symbol, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    arguments: ClassVar[Arguments] = (Argument("lower", Kind.POINT), Argument("upper", Kind.POINT))
    _sides: ClassVar[int] = 0  # the number of ranges, if it is fixed

    def __init__(self, *ranges: Range) -> None:
        owner = type(self).__name__
        if self._sides not in (0, len(ranges)):
            example = ", ".join(("(x, 0, 1)", "(y, 0, 1)")[: self._sides])
            raise GeometryError(
                f"{owner} needs {self._sides} argument{'s' if self._sides > 1 else ''} (coordinate, lower, upper). "
                f"Got {len(ranges)} instead. Write {owner}({example}), or use Box for other dimensions."
            )
        if len(ranges) > _MOST_DIMENSIONS:
            raise GeometryError(
                f"{owner} can have up to {_MOST_DIMENSIONS} coordinates, as it keeps every face. Got {len(ranges)} "
                "instead. Use PointCloud for points without faces."
            )
        checked = [check_range(entry, owner) for entry in ranges]
        self._set(coordinates=check_coordinates([entry[0] for entry in checked], owner))
        self._set(lower=tuple(entry[1] for entry in checked), upper=tuple(entry[2] for entry in checked))
        if not 0 < self.measure < math.inf:
            raise GeometryError(
                f"The sides of {owner} must have a product that double precision can hold. "
                f"Got {shorten(ranges)} instead. Scale the coordinates."
            )
        for symbol, low, high in checked:
            check_length(symbol, high - low, owner)

    def __repr__(self) -> str:
        ranges = (
            f"({s}, {describe(a)}, {describe(b)})"
            for s, a, b in zip(self.coordinates, self.lower, self.upper, strict=True)
        )
        return f"{type(self).__name__}({', '.join(ranges)})"

    @property
    def bounds(self) -> FloatArray:
        """The box itself."""
        return np.array([self.lower, self.upper]).T

    def level(self, X: FloatArray) -> FloatArray:
        """Return the distance from the nearest face plane, negative outside."""
        return np.asarray(np.minimum(X - self.lower, self.upper - X).min(axis=1))

    def level_in(self, low: FloatArray, high: FloatArray) -> LevelIn:
        """Return the level, unless no face is in the other box."""
        lowest, highest = self.bounds.T
        slack = self.tolerance
        within = (low > lowest + slack).all() and (high < highest - slack).all()
        return True if within else super().level_in(low, high)

    @property
    def condition(self) -> sp.Basic:
        """Between the limits of every coordinate."""
        ranges = zip(self.coordinates, map(rational, self.lower), map(rational, self.upper), strict=True)
        return sp.And(*(side for s, low, high in ranges for side in (s > low, s < high)))

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        last = self.dimension - 1
        names = [
            ("left", "right", 0),
            *[("bottom", "top", last)] * (last in (1, 2)),
            *[("front", "back", 1)] * (last == 2),
        ]
        names += [(f"{symbol.name}_min", f"{symbol.name}_max", axis) for axis, symbol in enumerate(self.coordinates)]
        return {name: [self._face(axis, high == 1)] for *pair, axis in names for high, name in enumerate(pair)}

    @property
    def _patches(self) -> Iterable[Patch]:
        return (self._face(axis, high) for axis in range(self.dimension) for high in (False, True))

    def _faces(self, coordinate: sp.Symbol) -> tuple[Part, Part]:
        return self.parts[f"{coordinate.name}_min"], self.parts[f"{coordinate.name}_max"]

    def _face(self, axis: int, high: bool) -> Patch:
        origin, normal = list(self.lower), [0.0] * self.dimension
        normal[axis] = 1.0 if high else -1.0
        if high:
            origin[axis] = self.upper[axis]
        sides = np.diag(np.subtract(self.upper, self.lower)).tolist()
        edges = tuple(tuple(row) for other, row in enumerate(sides) if other != axis)
        return AffinePatch(tuple(origin), edges, tuple(normal))

    @classmethod
    def make(cls, coordinates: tuple[sp.Symbol, ...], **arguments: Any) -> Box:
        """Return the box between two corners."""
        return cls(*zip(coordinates, arguments["lower"], arguments["upper"], strict=True))


class Interval(Box):
    """An interval of one space coordinate, with the ends ``left`` and ``right``.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> interval = Interval((x, -1, 1))
    >>> interval.measure
    2.0
    >>> interval.boundary.sample(100).points.ravel()
    array([-1.,  1.])
    """

    _sides: ClassVar[int] = 1


class Rectangle(Box):
    """A rectangle with sides along the axes: ``left``, ``right``, ``bottom`` and ``top``.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> Rectangle((x, 0, 2), (y, 0, 1)).boundary.measure
    6.0
    """

    _sides: ClassVar[int] = 2
