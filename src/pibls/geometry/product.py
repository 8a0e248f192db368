"""Time intervals, and products of space and time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import BoolArray, FloatArray, check_points, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Domain
from pibls.geometry.box import check_length, check_range
from pibls.geometry.description import Argument, Arguments, Kind, describe
from pibls.geometry.part import Part
from pibls.geometry.patch import AffinePatch, Located, Patch, Samples, SurfaceRule, TimedPatch, interval_tolerance
from pibls.geometry.sampling import check_count
from pibls.quadrature.rules import gauss, side


@dataclass(frozen=True, init=False, repr=False)
class TimeInterval(Domain):
    """An interval of time, ``start`` to ``stop``: a domain of its own, or the second factor of ``space * time``.

    It has no boundary, only the faces ``initial`` and ``final``.

    Examples
    --------
    >>> t = sp.Symbol("t")
    >>> interval = TimeInterval(t, 0, 10)
    >>> interval.measure, interval.initial.sample(1).points
    (10.0, array([[0.]]))
    """

    coordinates: tuple[sp.Symbol, ...]
    start: float
    stop: float

    arguments: ClassVar[Arguments] = (Argument("start", Kind.NUMBER), Argument("stop", Kind.NUMBER))
    parameters = 1
    remedy_without_boundary: ClassVar[str] = (
        "Time has no boundary: pose a condition at the start with Initial, or use the parts initial and final."
    )

    def __init__(self, t: sp.Symbol, t0: float, t1: float) -> None:
        symbol, start, stop = check_range((t, t0, t1), "TimeInterval")
        check_length(symbol, stop - start, "TimeInterval")
        self._set(coordinates=(symbol,), start=start, stop=stop)

    def __repr__(self) -> str:
        return f"TimeInterval({self.time}, {describe(self.start)}, {describe(self.stop)})"

    @property
    def time(self) -> sp.Symbol:
        """The time coordinate."""
        return self.coordinates[0]

    @property
    def bounds(self) -> FloatArray:
        """Start and stop."""
        return np.array([[self.start, self.stop]])

    @property
    def measure(self) -> float:
        """The duration."""
        return self.stop - self.start

    @property
    def boundary(self) -> Part:
        """Nothing."""
        return self._part("boundary")

    @property
    def initial(self) -> Part:
        """The start."""
        return self._part("initial", AffinePatch((self.start,), (), (-1.0,)))

    @property
    def final(self) -> Part:
        """The end."""
        return self._part("final", AffinePatch((self.stop,), (), (1.0,)))

    @property
    def parts(self) -> Mapping[str, Part]:
        """Start and end."""
        return MappingProxyType({"initial": self.initial, "final": self.final})

    def embed(self, U: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        """Map the unit interval to the times."""
        return np.clip(self.start + U * self.measure, self.start, self.stop), None

    def contains(self, X: npt.ArrayLike) -> BoolArray:
        """Tell which times are in the interval, up to 1e-9 of its duration."""
        times = check_points("X", X, "TimeInterval.contains", 1)[:, 0]
        slack = interval_tolerance(self.start, self.stop)
        return np.asarray((times >= self.start - slack) & (times <= self.stop + slack))

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return Gauss points and weights."""
        nodes, weights = gauss(check_count(n, 1, "TimeInterval.quadrature"))
        return self.embed(nodes[:, None])[0], weights * self.measure

    def faces(self, coordinate: sp.Symbol) -> tuple[Part, Part]:
        """Return start and end."""
        known = isinstance(coordinate, sp.Symbol) and coordinate == self.time
        return (self.initial, self.final) if known else super().faces(coordinate)

    @classmethod
    def make(cls, coordinates: tuple[sp.Symbol, ...], **arguments: Any) -> TimeInterval:
        """Return the interval of the one coordinate."""
        return cls(coordinates[0], arguments["start"], arguments["stop"])


@dataclass(frozen=True)
class FacePatch(Patch):
    """A space domain at one time, with its normal along the time axis."""

    domain: Domain
    time: float
    direction: float
    slack: float

    @property
    def parameters(self) -> int:
        """Those of the domain."""
        return self.domain.parameters

    @property
    def measure(self) -> float:
        """That of the domain."""
        return self.domain.measure

    @property
    def atoms(self) -> Samples | None:
        """The points of a domain that has finitely many."""
        atoms = self.domain.atoms
        if atoms is None:
            return None
        points = self._lift(atoms)
        return Samples(points, self.normals(points))

    def at(self, U: FloatArray) -> Located:
        """Return the points of the domain at the time."""
        points, keep = self.domain.embed(U)
        lifted = self._lift(points)
        return lifted, self.normals(lifted), keep

    def contains(self, X: FloatArray, _tolerance: float) -> BoolArray:
        """Tell which points are in the domain at the time."""
        return self.domain.contains(X[:, :-1]) & (np.abs(X[:, -1] - self.time) <= self.slack)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the direction of time, or against it."""
        return np.tile([0.0] * (X.shape[1] - 1) + [self.direction], (len(X), 1))

    def quadrature(self, n: int) -> SurfaceRule:
        """Return the rule of the domain."""
        points, weights = self.domain.quadrature(n)
        lifted = self._lift(points)
        return lifted, self.normals(lifted), weights

    def _lift(self, points: FloatArray) -> FloatArray:
        return np.hstack([points, np.full((len(points), 1), self.time)])


class Drawn(Domain):
    """A domain carried along one more coordinate, which comes last."""

    @property
    @abstractmethod
    def base(self) -> Domain:
        """The domain that is carried."""

    @property
    @abstractmethod
    def _limits(self) -> tuple[float, float]:
        """From where to where."""

    @property
    def bounds(self) -> FloatArray:
        """Those of the base, and the limits."""
        return np.concatenate([self.base.bounds, [self._limits]])

    @property
    def measure(self) -> float:
        """That of the base times the distance."""
        return self.base.measure * (self._limits[1] - self._limits[0])

    @property
    def parameters(self) -> int:
        """One more than the base."""
        return self.base.parameters + 1

    def embed(self, U: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        """Map the first parameters to the base and the last to the limits."""
        points, keep = self.base.embed(U[:, :-1])
        low, high = self._limits
        return np.hstack([points, np.clip(low + U[:, -1:] * (high - low), low, high)]), keep

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return the product of the rule of the base and Gauss between the limits."""
        count = check_count(n, self.dimension, f"{type(self).__name__}.quadrature")
        nodes, scales = gauss(side(count, self.dimension))
        points, weights = self.base.quadrature(max(1, count // len(nodes)))
        low, high = self._limits
        last = np.tile(low + nodes * (high - low), len(points))[:, None]
        return np.hstack([np.repeat(points, len(nodes), axis=0), last]), np.outer(
            weights, scales * (high - low)
        ).ravel()

    def faces(self, coordinate: sp.Symbol) -> tuple[Part, Part]:
        """Return the ends, or the opposite faces of the base, carried."""
        if not isinstance(coordinate, sp.Symbol) or coordinate not in self.coordinates:
            return super().faces(coordinate)
        if coordinate == self.coordinates[-1]:
            return self._ends
        low, high = self.base.faces(coordinate)
        return self._carry(low), self._carry(high)

    def lift(self, part: Part) -> Part:
        """Return a part of the base, carried."""
        if not isinstance(part, Part) or part.domain == self:
            return super().lift(part)
        return self._carry(self.base.lift(part))

    @property
    @abstractmethod
    def _ends(self) -> tuple[Part, Part]:
        """The base at the limits."""

    def _carry(self, part: Part) -> Part:
        return self._part(part.name, *(TimedPatch(patch, *self._limits) for patch in part.patches))

    def _end(self, name: str, index: int) -> Part:
        slack = interval_tolerance(*self._limits)
        return self._part(name, FacePatch(self.base, self._limits[index], 2.0 * index - 1.0, slack))


@dataclass(frozen=True, repr=False)
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

    derived: ClassVar[bool] = True
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
        t = self.interval.time
        if t.name in {symbol.name for symbol in self.domain.coordinates}:
            raise GeometryError(
                f"The time {t} of {self.interval} must not be a coordinate of {shorten(self.domain)}. "
                "Use another symbol for time."
            )
        object.__setattr__(self, "coordinates", (*self.domain.coordinates, t))

    def __repr__(self) -> str:
        return f"{self.domain!r} * {self.interval!r}"

    @property
    def time(self) -> sp.Symbol:
        """The time coordinate."""
        return self.coordinates[-1]

    @property
    def base(self) -> Domain:
        """Space."""
        return self.domain

    @property
    def _limits(self) -> tuple[float, float]:
        """The first and the last time."""
        start, stop = self.interval.bounds[0].tolist()
        return start, stop

    @property
    def thickness(self) -> float:
        """That of the space domain, as tolerances in time are relative to the duration."""
        return self.domain.thickness

    @property
    def rounding(self) -> float:
        """That of the space domain."""
        return self.domain.rounding

    @property
    def boundary(self) -> Part:
        """The boundary of space at all times."""
        return self._carry(self.domain.boundary)

    @property
    def initial(self) -> Part:
        """Space at the initial time."""
        return self._end("initial", 0)

    @property
    def final(self) -> Part:
        """Space at the final time."""
        return self._end("final", 1)

    @property
    def _ends(self) -> tuple[Part, Part]:
        return self.initial, self.final

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """The parts of the space boundary at all times, and the faces in time."""
        lateral = {name: self._carry(part) for name, part in self.domain.parts.items()}
        return MappingProxyType(lateral | {"initial": self.initial, "final": self.final})

    def contains(self, X: npt.ArrayLike) -> BoolArray:
        """Tell which points are in both factors."""
        points = check_points("X", X, "Product.contains", self.dimension)
        return self.domain.contains(points[:, :-1]) & self.interval.contains(points[:, -1:])

    def lift(self, part: Part) -> Part:
        """Return a part of the space domain carried through time, or a face of the time interval."""
        known = isinstance(part, Part) and part.domain == self.interval
        if known and part in (part.domain.initial, part.domain.final):
            return self.parts[part.name]
        return super().lift(part)
