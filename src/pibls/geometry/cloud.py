"""Domains known only by points of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import BoolArray, FloatArray, IntArray, check_points, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Domain
from pibls.geometry.description import Argument, Arguments, Kind, check_coordinates
from pibls.geometry.patch import Located, Patch, Samples, SurfaceRule, extent
from pibls.geometry.sampling import check_draw
from pibls.quadrature.rules import Rule


@dataclass(frozen=True)
class _CloudPatch(Patch):
    """Some of the boundary points of a cloud; each counts one."""

    cloud: PointCloud
    indices: tuple[int, ...]
    parameters = 1  # which numbers the points

    @property
    def measure(self) -> float:
        return float(len(self.indices))

    @cached_property
    def atoms(self) -> Samples:
        """The points, with normals NaN where none were given."""
        rows, normals = np.array(self.indices, dtype=np.int64), self.cloud.boundary_normals
        points = self.cloud.boundary_points[rows]
        return Samples(points, np.full(points.shape, np.nan) if normals is None else normals[rows])

    def at(self, U: FloatArray) -> Located:
        rows = _numbered(U, len(self.indices))
        return self.atoms.points[rows], self.atoms.normals[rows], None

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        return _nearest(self.atoms.points, X)[0] <= tolerance

    def normals(self, X: FloatArray) -> FloatArray:
        return self.atoms.normals[_nearest(self.atoms.points, X)[1]]

    def quadrature(self, _n: int) -> SurfaceRule:
        return *self.atoms, np.ones(len(self.indices))


def _numbered(U: FloatArray, count: int) -> IntArray:
    """Return numbers below a count that parameters in [0, 1] choose."""
    return np.minimum((U[:, 0] * count).astype(np.int64), count - 1)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class PointCloud(Domain):
    """A domain given by points: measurements, or the nodes of an existing mesh.

    Parameters
    ----------
    coordinates : tuple of symbols
        The coordinates, in the order of the columns.
    interior : array_like, shape (n, d)
        Points inside.
    boundary : array_like, shape (m, d), optional
        Points on the boundary.
    normals : array_like, shape (m, d), optional
        Outward normals there, of any length but zero. Without them boundary samples carry NaN normals, and asking for
        normals by name is refused.
    weights : array_like, shape (n,), optional
        Quadrature weights of the interior points; their sum is the measure.
    parts : mapping of names to masks or indices, optional
        Named sets of boundary points.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> cloud = PointCloud(
    ...     (x, y), [[0.5, 0.5]], boundary=[[0, 0.5], [1, 0.5]], normals=[[-2, 0], [2, 0]], parts={"wall": [0]}
    ... )
    >>> cloud.wall.sample(1).normals
    array([[-1.,  0.]])
    """

    coordinates: tuple[sp.Symbol, ...]
    interior: FloatArray
    boundary_points: FloatArray
    boundary_normals: FloatArray | None
    weights: FloatArray | None
    named: tuple[tuple[str, tuple[int, ...]], ...]

    parameters = 1  # which numbers the points
    arguments: ClassVar[Arguments] = (
        Argument("interior", Kind.POINTS, 'interior = "inside.csv"'),
        Argument("boundary", Kind.POINTS, attribute="boundary_points"),
        Argument("normals", Kind.POINTS, attribute="boundary_normals"),
        Argument("weights", Kind.POINT),
        Argument("parts", Kind.PARTS, attribute="named"),
    )
    remedy_without_boundary: ClassVar[str] = "Give PointCloud the boundary points, or check the predicate."

    def __init__(
        self,
        coordinates: tuple[sp.Symbol, ...],
        interior: npt.ArrayLike,
        boundary: npt.ArrayLike | None = None,
        normals: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        parts: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        symbols = check_coordinates(coordinates, "PointCloud")
        inside = _frozen_points("interior", interior, len(symbols))
        if not len(inside):
            raise GeometryError("The 'interior' parameter of PointCloud must have one point or more. Got none.")
        edge = np.empty((0, len(symbols))) if boundary is None else boundary
        points = _frozen_points("boundary", edge, len(symbols))
        self._set(coordinates=symbols, interior=inside, boundary_points=points)
        self._set(boundary_normals=_check_normals(normals, points), weights=_check_weights(weights, len(inside)))
        self._set(named=_check_parts(parts, len(points)))

    def __repr__(self) -> str:
        return f"PointCloud({self.coordinates}, {len(self.interior)} + {len(self.boundary_points)} points)"

    @property
    def atoms(self) -> FloatArray:
        """The interior points."""
        return self.interior

    @property
    def bounds(self) -> FloatArray:
        """The extent of all points."""
        return extent(np.concatenate([self.interior, self.boundary_points]))

    @property
    def thickness(self) -> float:
        """The largest extent, since points may all lie on a line."""
        return float((self.bounds[:, 1] - self.bounds[:, 0]).max())

    @property
    def measure(self) -> float:
        """The sum of the weights."""
        return float(self._known_weights().sum())

    @property
    def _patches(self) -> Iterable[Patch]:
        rows = tuple(range(len(self.boundary_points)))
        return [_CloudPatch(self, rows)] if rows else []

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        return {name: [_CloudPatch(self, rows)] for name, rows in self.named}

    def embed(self, U: FloatArray) -> tuple[FloatArray, BoolArray | None]:
        """Return the points whose numbers the parameter gives."""
        return self.interior[_numbered(U, len(self.interior))], None

    def sample(self, n: int, method: str = "sobol", seed: int | np.random.Generator = 0) -> FloatArray:
        """Return ``n`` different points of the interior, chosen at random; ``method`` makes no difference."""
        count, rng = check_draw(n, self.dimension, method, seed, "PointCloud.sample")
        available = len(self.interior)
        if count > available:
            raise GeometryError(
                f"The 'n' parameter of PointCloud.sample must be at most {available}, the number of interior points. "
                f"Got {count} instead. Ask for fewer, or give more points."
            )
        return self.interior[np.sort(rng.permutation(available)[:count])]

    def _holds(self, points: FloatArray) -> BoolArray:
        """Tell which points are points of the cloud, interior or boundary, or lie between them.

        Gaps several times wider than the largest distance between neighbours are outside, as are holes and notches
        whose edge is made of boundary points. In more than four coordinates only the points themselves count.
        """
        known = np.concatenate([self.interior, self.boundary_points])
        return np.asarray((_nearest(known, points)[0] <= self.tolerance) | self._filling(points))

    @cached_property
    def _filling(self) -> Callable[[FloatArray], BoolArray]:
        return _between(self.interior, self.boundary_points)

    def _rule(self, _n: int) -> Rule:
        return self.interior.copy(), self._known_weights().copy()

    def _known_weights(self) -> FloatArray:
        if self.weights is None:
            raise GeometryError(
                f"{self} has no quadrature weights, so its measure and integrals over it are unknown. "
                "Give PointCloud the 'weights' parameter, one weight per interior point."
            )
        return self.weights


def _nearest(known: FloatArray, X: FloatArray) -> tuple[FloatArray, IntArray]:
    from scipy.spatial import KDTree

    if not len(X):
        return np.empty(0), np.empty(0, dtype=np.int64)
    distance, index = KDTree(known).query(X)
    return np.asarray(distance), np.asarray(index)


def _frozen_points(name: str, value: object, dimension: int) -> FloatArray:
    points = np.array(check_points(name, value, "PointCloud", dimension, error=GeometryError))
    points.flags.writeable = False
    return points


def _check_normals(normals: object, boundary: FloatArray) -> FloatArray | None:
    if normals is None:
        return None
    vectors = _frozen_points("normals", normals, boundary.shape[1])
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if len(vectors) != len(boundary) or not ((lengths > 0) & (lengths < np.inf)).all():
        raise GeometryError(
            f"The 'normals' parameter of PointCloud must have one vector, not zero, for each of {len(boundary)} "
            f"boundary points. Got {len(vectors)} with smallest length {lengths.min(initial=np.inf):g} instead."
        )
    # Unit vectors stay as they are, so that a cloud read from a file equals the one that was written.
    units = np.where(np.abs(lengths - 1.0) <= 4 * np.finfo(np.float64).eps, vectors, vectors / lengths)
    units.flags.writeable = False
    return units


def _check_weights(weights: object, count: int) -> FloatArray | None:
    if weights is None:
        return None
    values = _frozen_points("weights", weights, 1)[:, 0]
    if len(values) != count or not values.sum() > 0:
        raise GeometryError(
            f"The 'weights' parameter of PointCloud must have {count} numbers, one per interior point, with a positive "
            f"sum. Got {shorten(weights)} instead."
        )
    return values


def _check_parts(parts: object, count: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    if parts is None:
        return ()
    if not isinstance(parts, Mapping):
        raise GeometryError(
            f"The 'parts' parameter of PointCloud must be a mapping of names to masks or indices. "
            f'Got {shorten(parts)} instead. Write {{"inlet": mask}}.'
        )
    taken = {entry.name for entry in fields(PointCloud)} | set(dir(PointCloud))
    for name in parts:
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_") or name in taken:
            raise GeometryError(
                f"The names in the 'parts' parameter of PointCloud must be identifiers that mean nothing else to a "
                f"domain. Got {shorten(name)} instead. Choose another name."
            )
    return tuple((name, _check_rows(name, rows, count)) for name, rows in parts.items())


def _check_rows(name: object, rows: object, count: int) -> tuple[int, ...]:
    try:
        array = np.asarray(rows)
    except (ValueError, RuntimeError):
        array = np.asarray(None)
    if array.dtype == np.bool_ and array.shape == (count,):
        array = np.flatnonzero(array)
    valid = array.ndim == 1 and array.dtype.kind in "iu" and len(array) > 0
    if not valid or array.min() < 0 or array.max() >= count:
        raise GeometryError(
            f"Part {shorten(name)} of PointCloud must be a mask of {count} booleans, or indices of boundary points "
            f"from 0 to {count - 1}, and not empty. Got {shorten(rows)} instead."
        )
    return tuple(int(row) for row in np.unique(array))


_MOST_COORDINATES = 4  # triangulations of more have too many simplices
_GAP = 4.0  # circumscribed radius, over the largest distance of a point to its neighbour, across which a cloud holds
_EDGE = 1.5  # the same where all corners are on the boundary: larger ones span holes and notches


def _between(interior: FloatArray, boundary: FloatArray) -> Callable[[FloatArray], BoolArray]:
    """Return a function that tells which places lie between points of a cloud, in one to four coordinates.

    >>> square = np.array([[i, j] for i in range(4) for j in range(4)], dtype=float)
    >>> _between(square, np.empty((0, 2)))(np.array([[1.5, 1.2], [3.5, 1.0]]))
    array([ True, False])
    """
    from scipy.spatial import Delaunay, KDTree, QhullError

    points = np.concatenate([interior, boundary])
    dimension = points.shape[1]
    filled = np.zeros(1, dtype=np.bool_)  # which simplices belong to the domain; places in none have the number -1
    if dimension == 1:
        places = np.unique(points)
        gaps = np.diff(places)
        held = gaps <= _GAP * 2.0 * np.median(gaps) if len(gaps) else filled[:0]
        filled = np.concatenate([filled, held, filled])
        return lambda X: np.asarray(filled[np.searchsorted(places, X[:, 0], side="right")])
    try:
        found = Delaunay(points) if len(points) > dimension + 1 and dimension <= _MOST_COORDINATES else None
    except QhullError:
        found = None
    if found is None:
        return lambda X: np.zeros(len(X), dtype=np.bool_)
    spacing = KDTree(points).query(points, k=2)[0][:, 1]
    corners = found.simplices
    on_boundary = (corners >= len(interior)).all(axis=1)
    largest = np.where(on_boundary, _EDGE * spacing[corners].max(axis=1), _GAP * spacing.max())
    filled = np.append(_radii(points[corners]) <= largest, filled)
    return lambda X: np.asarray(filled[found.find_simplex(X)])


def _radii(corners: FloatArray) -> FloatArray:
    """Return the radius of the sphere through the corners of each simplex; infinite for flat ones."""
    edges = corners[:, 1:] - corners[:, :1]
    squares = (edges**2).sum(axis=2)
    flat = np.abs(np.linalg.det(edges)) <= 1e-12 * squares.max(axis=1) ** (edges.shape[2] / 2)
    centers = np.linalg.solve(np.where(flat[:, None, None], np.eye(edges.shape[2]), 2 * edges), squares[..., None])
    radii = np.sqrt((centers[..., 0] ** 2).sum(axis=1))
    return np.where(flat, np.inf, radii)
