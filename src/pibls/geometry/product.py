"""Domains drawn out along one more coordinate: products of space and time, and plane shapes in space."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from pibls.checks import BoolArray, FloatArray, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Domain, Region
from pibls.geometry.box import Ranges, check_length, check_range
from pibls.geometry.description import Argument, Arguments, Kind, rational, written_range
from pibls.geometry.part import Part
from pibls.geometry.patch import AffinePatch, FacePatch, Limits, Patch, TimedPatch, drawn_rule, interval_tolerance
from pibls.quadrature.rules import Rule, side


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TimeInterval(Ranges):
    """An interval of time, ``start`` to ``stop``: a domain of its own, or the second factor of ``space * time``.

    It has no boundary, only the faces ``initial`` and ``final``.

    Examples
    --------
    >>> t = sp.Symbol("t")
    >>> interval = TimeInterval(t, 0, 10)
    >>> interval.measure, interval.initial.sample(1).points
    (10.0, array([[0.]]))
    >>> TimeInterval((t, 0, 10)) == interval
    True
    """

    coordinates: tuple[sp.Symbol, ...]
    start: float
    stop: float

    has_time: ClassVar[bool] = True
    arguments: ClassVar[Arguments] = (Argument("start", Kind.NUMBER), Argument("stop", Kind.NUMBER))
    remedy_without_boundary: ClassVar[str] = (
        "Time has no boundary: pose a condition at the start with Initial, or use the parts initial and final."
    )

    def __init__(self, t: Any, t0: Any = None, t1: Any = None) -> None:
        given = t if isinstance(t, tuple) and t0 is None and t1 is None else (t, t0, t1)
        symbol, start, stop = check_range(given, "TimeInterval")
        check_length(symbol, stop - start, "TimeInterval")
        self._set(coordinates=(symbol,), start=start, stop=stop)

    def __repr__(self) -> str:
        return f"TimeInterval{written_range(self.coordinates[0], self.start, self.stop)}"

    @property
    def bounds(self) -> FloatArray:
        """Start and stop."""
        return np.array([[self.start, self.stop]])

    @property
    def _patches(self) -> Iterable[Patch]:
        return ()

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        ends = {"initial": (self.start, -1.0), "final": (self.stop, 1.0)}
        return {name: [AffinePatch((time,), (), (way,))] for name, (time, way) in ends.items()}

    def _faces(self, _coordinate: sp.Symbol) -> tuple[Part, Part]:
        return self.parts["initial"], self.parts["final"]

    @classmethod
    def make(cls, coordinates: tuple[sp.Symbol, ...], **arguments: Any) -> TimeInterval:
        """Return the interval of the one coordinate."""
        return cls(coordinates[0], arguments["start"], arguments["stop"])


class Drawn(Domain):
    """A domain carried along one more coordinate, which comes last."""

    base: Domain  # that is carried
    limits: Limits  # from where to where

    @property
    @abstractmethod
    def _end_names(self) -> list[tuple[str, str]]:
        """The names of the base at the limits, those by which it is known best last."""

    @property
    def bounds(self) -> FloatArray:
        """Those of the base, and the limits."""
        return np.concatenate([self.base.bounds, [self.limits]])

    @property
    def measure(self) -> float:
        """That of the base times the distance."""
        return self.base.measure * (self.limits[1] - self.limits[0])

    @property
    def parameters(self) -> int:
        """One more than the base."""
        return self.base.parameters + 1

    def embed(self, U: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        """Map the first parameters to the base and the last to the limits."""
        points, keep = self.base.embed(U[:, :-1])
        low, high = self.limits
        return np.hstack([points, np.clip(low + U[:, -1:] * (high - low), low, high)]), keep

    def _rule(self, n: int) -> Rule:
        steps = side(n, self.dimension)
        return drawn_rule(*self.base.quadrature(max(1, n // steps)), self.limits, steps)

    def _faces(self, coordinate: sp.Symbol) -> tuple[Part, Part]:
        """Return the ends, or the opposite faces of the base, carried."""
        if coordinate == self.coordinates[-1]:
            low, high = self._end_names[-1]
            return self.parts[low], self.parts[high]
        one, other = self.base.faces(coordinate)
        return self.lift(one), self.lift(other)

    def _lifted(self, part: Part) -> Part:
        """Return a part of the base, carried."""
        return Part(self, part.name, self._carried(self.base.lift(part)))

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        carried = {name: self._carried(part) for name, part in self.base.parts.items()}
        ends = self._end_patches
        return carried | {name: [end] for names in self._end_names for name, end in zip(names, ends, strict=True)}

    @property
    def _end_patches(self) -> tuple[Patch, Patch]:
        (low, high), slack = self.limits, interval_tolerance(*self.limits)
        return FacePatch(self.base, low, -1.0, slack), FacePatch(self.base, high, 1.0, slack)

    def _carried(self, part: Part) -> tuple[Patch, ...]:
        return tuple(TimedPatch(patch, *self.limits) for patch in part.patches)


@dataclass(frozen=True, eq=False, repr=False)
class Product(Drawn):
    """A space domain over a time interval, written ``domain * TimeInterval(t, t0, t1)``.

    Its boundary is that of space at all times; ``initial`` and ``final`` are the faces in time.

    >>> from pibls.geometry import Interval
    >>> x, t = sp.symbols("x t")
    >>> cylinder = Interval((x, 0, 1)) * TimeInterval(t, 0, 2)
    >>> cylinder.measure, cylinder.left.measure, cylinder.initial.measure
    (2.0, 2.0, 1.0)
    """

    domain: Domain
    interval: Domain
    coordinates: tuple[sp.Symbol, ...] = field(init=False, compare=False)
    base: Domain = field(init=False, compare=False)
    limits: Limits = field(init=False, compare=False)

    derived: ClassVar[bool] = True
    has_time: ClassVar[bool] = True
    arguments: ClassVar[Arguments] = (Argument("domain", Kind.SHAPE), Argument("interval", Kind.SHAPE))

    def __post_init__(self) -> None:
        if not isinstance(self.interval, TimeInterval):
            raise GeometryError(
                f"A domain can be multiplied by a TimeInterval only. Got {shorten(self.interval)} instead. "
                "Use Box for products of intervals in space."
            )
        if self.domain.time is not None:
            raise GeometryError(
                f"{shorten(self.domain)} has a time already and cannot be multiplied by {self.interval}. "
                "Multiply a space domain by one TimeInterval."
            )
        (t,) = self.interval.coordinates
        if t.name in {symbol.name for symbol in self.domain.coordinates}:
            raise GeometryError(
                f"The time {t} of {self.interval} must not be a coordinate of {shorten(self.domain)}. "
                "Use another symbol for time."
            )
        limits = (self.interval.start, self.interval.stop)
        self._set(coordinates=(*self.domain.coordinates, t), base=self.domain, limits=limits)

    def __repr__(self) -> str:
        return f"{self.domain!r} * {self.interval!r}"

    @property
    def thickness(self) -> float:
        """That of the space domain, as tolerances in time are relative to the duration."""
        return self.domain.thickness

    @property
    def rounding(self) -> float:
        """That of the space domain."""
        return self.domain.rounding

    @property
    def _end_names(self) -> list[tuple[str, str]]:
        return [("initial", "final")]

    @property
    def _patches(self) -> Iterable[Patch]:
        return self._carried(self.domain.boundary)

    def _holds(self, points: FloatArray) -> BoolArray:
        return self.domain.contains(points[:, :-1]) & self.interval.contains(points[:, -1:])

    def _lifted(self, part: Part) -> Part:
        """Return a part of the space domain carried through time, or a face of the time interval."""
        if part.domain == self.interval and part in self.interval.parts.values():
            return self.parts[part.name]
        return super()._lifted(part)


def check_plane_shape(shape: object, owner: str) -> Region:
    """Return a solid shape in the plane, or refuse the value."""
    if not isinstance(shape, Region) or shape.dimension != 2:
        raise GeometryError(
            f"The 'shape' parameter of {owner} must be a solid shape in two coordinates. Got {shorten(shape)} "
            "instead. Use a Rectangle, Disk, Polygon, Star or what is made of them."
        )
    return shape


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Extrusion(Drawn, Region):
    """A plane shape extruded along a third coordinate, which comes last.

    Its parts are those of the plane shape, extruded, and the ends ``bottom`` and ``top``, also called ``z_min`` and
    ``z_max`` after the coordinate. Where the plane shape has a part of such a name, ``extrusion.lift(part)`` finds it.

    Parameters
    ----------
    shape : domain
        Any solid shape in two coordinates.
    limits : tuple
        The third coordinate and its lowest and highest value.

    Examples
    --------
    >>> from pibls.geometry import Disk, Rectangle
    >>> x, y, z = sp.symbols("x y z")
    >>> pipe = Extrusion(Disk((x, y), (0, 0), 2) - Disk((x, y), (0, 0), 1), (z, 0, 5))
    >>> round(pipe.measure / np.pi, 9)
    15.0
    >>> pipe.top.normals([[1.5, 0, 5]])
    array([[0., 0., 1.]])
    """

    base: Region
    limits: Limits
    coordinates: tuple[sp.Symbol, ...]

    arguments: ClassVar[Arguments] = (Argument("of", Kind.SHAPE, attribute="base"), Argument("limits", Kind.POINT))

    def __init__(self, shape: Domain, limits: tuple[sp.Symbol, float, float]) -> None:
        plane = check_plane_shape(shape, "Extrusion")
        symbol, low, high = check_range(limits, "Extrusion")
        check_length(symbol, high - low, "Extrusion")
        if symbol.name in {own.name for own in plane.coordinates}:
            raise GeometryError(
                f"The coordinate {symbol} of Extrusion must not be one of {shorten(plane)}. Use a third symbol."
            )
        self._set(base=plane, limits=(low, high), coordinates=(*plane.coordinates, symbol))

    def __repr__(self) -> str:
        return f"Extrusion({self.base!r}, {written_range(self.coordinates[-1], *self.limits)})"

    @property
    def thickness(self) -> float:
        """The smaller of that of the plane shape and the height."""
        return min(self.base.thickness, self.limits[1] - self.limits[0])

    @property
    def condition(self) -> sp.Basic:
        """In the plane shape and between the ends."""
        (low, high), height = map(rational, self.limits), self.coordinates[-1]
        return sp.And(self.base.condition, height > low, height < high)

    def level(self, X: FloatArray) -> FloatArray:
        """Return the smallest of the distances from the sides and the ends."""
        low, high = self.limits
        return np.minimum(self.base.level(X[:, :-1]), np.minimum(X[:, -1] - low, high - X[:, -1]))

    @property
    def _end_names(self) -> list[tuple[str, str]]:
        name = self.coordinates[-1].name
        return [(f"{name}_min", f"{name}_max"), ("bottom", "top")]

    @property
    def _patches(self) -> Iterable[Patch]:
        return *self._carried(self.base.boundary), *self._end_patches

    @classmethod
    def make(cls, coordinates: tuple[sp.Symbol, ...], **arguments: Any) -> Extrusion:
        """Return a shape drawn out along the last coordinate."""
        return cls(arguments["of"], (coordinates[-1], *arguments["limits"]))
