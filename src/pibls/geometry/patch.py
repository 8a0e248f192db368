"""Patches: the smooth pieces a boundary is made of, each an image of the unit cube at uniform density.

Sampling a patch maps a design of the cube; integrating over it maps a rule. Both therefore need one method only,
``at``, and the exact normals come with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pibls.checks import BoolArray, FloatArray, shorten
from pibls.errors import GeometryError
from pibls.geometry.description import Vector
from pibls.geometry.sampling import fill
from pibls.quadrature.rules import gauss, side, tensor

if TYPE_CHECKING:
    from pibls.geometry.base import Domain

Limits = tuple[float, float]
Located = tuple[FloatArray, FloatArray, BoolArray | None]
SurfaceRule = tuple[FloatArray, FloatArray, FloatArray]

RELATIVE_TOLERANCE = 1e-9
ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Samples(NamedTuple):
    """Points of a boundary part and the outward unit normals there, both of shape (n, d)."""

    points: FloatArray
    normals: FloatArray


class FieldState:
    """Pickles only the dataclass fields: cached values beside them (compiled functions) are made again."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields."""
        return {field.name: self.__dict__[field.name] for field in fields(self)}  # type: ignore[arg-type]

    def _set(self, **values: object) -> None:
        """Give frozen fields their values, in a constructor that checks its arguments."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def called(function: Callable[[FloatArray], Any], X: FloatArray, rule: str, remedy: str) -> Any:
    """Return the values of a user's function; where it fails the error says how it is called."""
    try:
        return function(X.copy())
    except Exception as cause:
        raise GeometryError(f"{rule}; it raised {type(cause).__name__}: {shorten(str(cause))}. {remedy}") from cause


def extent(points: FloatArray) -> FloatArray:
    """Return the box around points of shape (..., d): the lowest and highest value of each coordinate, shape (d, 2)."""
    flat = points.reshape(-1, points.shape[-1])
    return np.stack([flat.min(axis=0), flat.max(axis=0)], axis=1)


def interval_tolerance(low: float, high: float) -> float:
    """Return the distance from [low, high] that still counts as on it."""
    return RELATIVE_TOLERANCE * (high - low) + ROUNDING * max(abs(low), abs(high))


def drawn_rule(points: FloatArray, weights: FloatArray, limits: Limits, m: int) -> tuple[FloatArray, FloatArray]:
    """Return the product of a rule and about ``m`` Gauss points of one more coordinate, which comes last."""
    (nodes, scales), (low, high) = gauss(m), limits
    last = np.tile(low + nodes * (high - low), len(points))[:, None]
    return np.hstack([np.repeat(points, len(nodes), axis=0), last]), np.outer(weights, scales * (high - low)).ravel()


def _beside(vectors: FloatArray, time: float = 0.0) -> FloatArray:
    """Return points at a time, or vectors along it."""
    return np.hstack([vectors, np.full((len(vectors), 1), time)])


class Patch(FieldState, ABC):
    """A smooth piece of boundary, parametrised over a unit cube."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Dimension of the cube; 0 for a single point."""

    @property
    @abstractmethod
    def measure(self) -> float:
        """Length, area, ... of the patch; a single point counts 1."""

    @abstractmethod
    def at(self, U: FloatArray) -> Located:
        """Return points, normals and the mask of those to keep (None: all) at parameters (n, parameters)."""

    @abstractmethod
    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points lie on the patch, up to an absolute distance."""

    @abstractmethod
    def normals(self, X: FloatArray) -> FloatArray:
        """Return the outward unit normals at points of the patch."""

    @property
    def exact(self) -> bool:
        """Whether measure and quadrature are exact for smooth integrands, not estimates."""
        return True

    @property
    def empty(self) -> bool:
        """Whether nothing is left of the patch."""
        return False

    @property
    def bounds(self) -> FloatArray | None:
        """A box around the patch, shape (d, 2); None where only the box around its shape is known."""
        return None

    @property
    def atoms(self) -> Samples | None:
        """All points of a patch that has finitely many, else None."""
        return None

    def sample(self, n: int, method: str, rng: np.random.Generator, owner: str) -> Samples:
        """Return n points of the patch."""
        rows = fill(self._rows, self.parameters, n, method, rng, owner)
        width = rows.shape[1] // 2
        return Samples(rows[:, :width], rows[:, width:])

    def quadrature(self, n: int) -> SurfaceRule:
        """Return points, normals and weights of a product Gauss rule with about n nodes."""
        U, weights = tensor(*[gauss(side(n, self.parameters))] * self.parameters)
        points, normals, _ = self.at(U)
        return points, normals, weights * self.measure

    def facets(self, m: int) -> FloatArray:
        """Return a patch of a surface in space as flat polygons, m along each parameter, shape (k, corners, 3)."""
        s = np.linspace(0.0, 1.0, m + 1)
        X = self.at(tensor((s, s), (s, s))[0])[0].reshape(m + 1, m + 1, 3)
        corners = np.stack([X[:-1, :-1], X[1:, :-1], X[1:, 1:], X[:-1, 1:]], axis=2).reshape(-1, 4, 3)
        middles = (s[1:] + s[:-1]) / 2
        keep = self.at(tensor((middles, middles), (middles, middles))[0])[2]
        return corners if keep is None else corners[keep]

    def _rows(self, U: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        points, normals, keep = self.at(U)
        return np.hstack([points, normals]), keep


@dataclass(frozen=True)
class AffinePatch(Patch):
    """A flat piece ``origin + Σ uᵢ edgesᵢ`` with orthogonal edges: a face of a box, an edge of a polygon.

    Without edges it is one point, the end of an interval.
    """

    origin: Vector
    edges: tuple[Vector, ...]
    normal: Vector

    @property
    def parameters(self) -> int:
        """One per edge."""
        return len(self.edges)

    @cached_property
    def _directions(self) -> FloatArray:
        return np.reshape(self.edges, (-1, len(self.origin))).astype(np.float64)

    @cached_property
    def _lengths(self) -> FloatArray:
        return np.asarray(np.linalg.norm(self._directions, axis=1))

    @property
    def measure(self) -> float:
        """The product of the edge lengths."""
        return float(np.prod(self._lengths))

    @property
    def atoms(self) -> Samples | None:
        """The point, if there are no edges."""
        return None if self.edges else Samples(np.array([self.origin]), np.array([self.normal]))

    def at(self, U: FloatArray) -> Located:
        """Return the affine image."""
        points = np.array(self.origin) + U @ self._directions
        return points, self.normals(points), None

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points are within the tolerance of the patch."""
        directions = self._directions / self._lengths[:, None]
        offset = X - np.array(self.origin)
        along = offset @ directions.T
        nearest = np.clip(along, 0.0, self._lengths)
        return np.asarray(np.linalg.norm(offset - nearest @ directions, axis=1) <= tolerance)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the one normal."""
        return np.tile(self.normal, (len(X), 1))


@dataclass(frozen=True)
class DerivedPatch(Patch):
    """A patch made from another, and like it where it does not say otherwise."""

    base: Patch

    @property
    def parameters(self) -> int:
        """Those of the base."""
        return self.base.parameters

    @property
    def measure(self) -> float:
        """That of the base."""
        return self.base.measure

    @property
    def exact(self) -> bool:
        """As the base."""
        return self.base.exact

    @property
    def empty(self) -> bool:
        """As the base."""
        return self.base.empty

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """As the base."""
        return self.base.contains(X, tolerance)

    def normals(self, X: FloatArray) -> FloatArray:
        """As the base."""
        return self.base.normals(X)


@dataclass(frozen=True)
class FlippedPatch(DerivedPatch):
    """A patch seen from the other side: the boundary of a hole."""

    @property
    def bounds(self) -> FloatArray | None:
        """As the base."""
        return self.base.bounds

    @property
    def atoms(self) -> Samples | None:
        """Those of the base, with the other normals."""
        atoms = self.base.atoms
        return None if atoms is None else Samples(atoms.points, -atoms.normals)

    def at(self, U: FloatArray) -> Located:
        """Return the points of the base with the other normals."""
        points, normals, keep = self.base.at(U)
        return points, -normals, keep

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the other normals."""
        return -self.base.normals(X)

    def quadrature(self, n: int) -> SurfaceRule:
        """Return the rule of the base with the other normals."""
        points, normals, weights = self.base.quadrature(n)
        return points, -normals, weights


@dataclass(frozen=True)
class TimedPatch(DerivedPatch):
    """A patch of a space domain carried through a time interval; its normals have no time component."""

    start: float
    stop: float

    @property
    def parameters(self) -> int:
        """One more than the base."""
        return self.base.parameters + 1

    @property
    def measure(self) -> float:
        """Measure of the base times the duration."""
        return self.base.measure * (self.stop - self.start)

    def at(self, U: FloatArray) -> Located:
        """Append the time of the last parameter."""
        points, normals, keep = self.base.at(U[:, :-1])
        times = self.start + U[:, -1:] * (self.stop - self.start)
        return np.hstack([points, times]), _beside(normals), keep

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points are on the base at a time of the interval."""
        slack = interval_tolerance(self.start, self.stop)
        within = (X[:, -1] >= self.start - slack) & (X[:, -1] <= self.stop + slack)
        return self.base.contains(X[:, :-1], tolerance) & within

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the normals of the base, with no time component."""
        return _beside(self.base.normals(X[:, :-1]))

    def quadrature(self, n: int) -> SurfaceRule:
        """Return the product of the base's rule and Gauss in time."""
        steps = side(n, self.parameters)
        points, normals, weights = self.base.quadrature(max(1, n // steps))
        X, products = drawn_rule(points, weights, (self.start, self.stop), steps)
        return X, _beside(np.repeat(normals, len(X) // len(points), axis=0)), products


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
        return None if atoms is None else Samples(*self._lifted(atoms))

    def at(self, U: FloatArray) -> Located:
        """Return the points of the domain at the time."""
        points, keep = self.domain.embed(U)
        return *self._lifted(points), keep

    def contains(self, X: FloatArray, _tolerance: float) -> BoolArray:
        """Tell which points are in the domain at the time."""
        return self.domain.contains(X[:, :-1]) & (np.abs(X[:, -1] - self.time) <= self.slack)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the direction of time, or against it."""
        return _beside(np.zeros((len(X), X.shape[1] - 1)), self.direction)

    def quadrature(self, n: int) -> SurfaceRule:
        """Return the rule of the domain."""
        points, weights = self.domain.quadrature(n)
        return *self._lifted(points), weights

    def _lifted(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        X = _beside(points, self.time)
        return X, self.normals(X)
