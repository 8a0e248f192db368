"""The points of a problem: one set per equation and per condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray, check_integer, check_points, check_seed, shorten
from pibls.errors import GeometryError, InputError, ProblemError
from pibls.problem import Across, AtPoints, Average, Averages, Interior, Opposite, Problem, Statement

_AVERAGE_POINTS = 1000
_MOST_POINTS = 2**31


def interior_points(domain: Any, n: int, method: str, seed: Any) -> FloatArray:
    """Return ``n`` points of a domain, or all of them where it has only so many.

    >>> import sympy as sp
    >>> from pibls.geometry import PointCloud
    >>> interior_points(PointCloud(sp.Symbol("x"), [0.0, 1.0]), 100, "sobol", 0).shape
    (2, 1)
    """
    count = check_integer("n", n, "interior_points", minimum=1)
    atoms: FloatArray | None = getattr(domain, "atoms", None)
    points: FloatArray = domain.sample(count if atoms is None else min(count, len(atoms)), method, seed)
    return points


@dataclass(frozen=True, eq=False)
class PointSet:
    """Points where one equation or condition is imposed."""

    points: FloatArray  # array of shape (n, d)
    normals: FloatArray | None = None  # outward unit normals there, on a boundary
    partner: FloatArray | None = None  # the matching points on the opposite face, for a periodic condition
    # quadrature weights, for conditions on averages; those of each average sum to one
    weights: FloatArray | None = None
    ends: tuple[int, ...] = ()  # where the points of each average end; one average over all points if left out

    def __len__(self) -> int:
        return len(self.points)

    @property
    def rows(self) -> int:
        """How many rows of the system one statement on this set takes."""
        return max(1, len(self.ends)) if self.weights is not None else len(self.points)

    def averaged(self, values: Any, weights: Any = None) -> list[Any]:
        """Return the averages of values at the points, one after the other.

        ``weights`` are those of the set in the library and on the device of the values, if that is not NumPy.

        >>> where = PointSet(np.zeros((3, 1)), weights=np.array([0.5, 0.5, 1.0]), ends=(2, 3))
        >>> [float(value) for value in where.averaged(np.array([1.0, 3.0, 5.0]))]
        [2.0, 5.0]
        """
        shares: Any = self.weights if weights is None else weights
        ends = self.ends or (len(self.points),)
        return [shares[start:stop] @ values[start:stop] for start, stop in zip((0, *ends), ends, strict=False)]

    def picked(self, rows: Any) -> PointSet:
        """Return some of the points, by number."""
        normals, partner = (None if a is None else a[rows] for a in (self.normals, self.partner))
        return PointSet(self.points[rows], normals, partner)

    def joined(self, more: PointSet) -> PointSet:
        """Return these points and others of the same kind.

        >>> len(PointSet(np.zeros((3, 2))).joined(PointSet(np.ones((2, 2)))))
        5
        """
        pairs = ((getattr(self, name), getattr(more, name)) for name in ("normals", "partner"))
        normals, partner = (None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs)
        return PointSet(np.concatenate([self.points, more.points]), normals, partner)


@dataclass(frozen=True, eq=False)
class Points:
    """The point sets of a problem, one per equation and condition, in that order.

    Examples
    --------
    >>> from pibls.problems import poisson_square
    >>> points = Points.sample(poisson_square(), interior=100, boundary=40)
    >>> points
    Points(interior 100, conditions 40)
    """

    sets: tuple[PointSet, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.sets, tuple) or not self.sets or not all(isinstance(s, PointSet) for s in self.sets):
            raise InputError(
                f"Points takes a tuple of point sets, one per equation and condition. Got {shorten(self.sets)} "
                "instead. Make them with Points.sample or Points.from_arrays."
            )

    @classmethod
    def sample(
        cls,
        problem: Problem,
        interior: int = 1000,
        boundary: int | None = None,
        initial: int | None = None,
        method: str = "sobol",
        seed: Any = 0,
    ) -> Points:
        """Draw points for every equation and condition of a problem.

        Parameters
        ----------
        problem
            The problem.
        interior
            Points inside the domain, shared by all equations.
        boundary
            Points on the whole boundary; a condition on a part gets its share by measure. If left out, about as
            dense as the interior.
        initial
            Points at the first time; if left out, as dense as the interior.
        method
            ``"sobol"``, ``"halton"``, ``"lhs"``, ``"kronecker"``, ``"uniform"`` (pseudo-random) or ``"grid"``.
        seed
            Integer or NumPy generator.
        """
        owner = "Points.sample"
        _check_problem(problem, owner)
        count = _count("interior", interior)
        domain: Any = problem.domain
        dimension = len(domain.coordinates)
        face = max(1, round(count ** ((dimension - 1) / dimension)))
        # In many dimensions nearly all of a lattice is on the faces; so many rows would be nothing but boundary.
        edge = min(2 * dimension * face, 4 * count) if boundary is None else _count("boundary", boundary)
        first = 2 * face if initial is None else _count("initial", initial)
        drawn = int(check_seed(seed, owner).integers(2**31))

        def on(statement: Statement, part: Any, opposite: Any) -> PointSet:
            number = first
            if part != domain.initial:
                whole = float(domain.boundary.measure)
                # A domain without boundary says so itself when it is sampled.
                share = float(part.measure) / whole if whole > 0 else 1.0
                number = max(1, round(edge * min(1.0, share)))
            faces = [
                one.sample(number, method, drawn + 1 + statement.source) for one in (part, opposite) if one is not None
            ]
            return PointSet(*faces[0], *(face.points for face in faces[1:]))

        return cls(_collect(problem, lambda: interior_points(domain, count, method, drawn), on))

    @classmethod
    def from_arrays(cls, problem: Problem, interior: Any, boundary: Any = None, initial: Any = None) -> Points:
        """Use the given arrays of points; each condition takes the ones that lie on its part.

        Examples
        --------
        >>> from pibls.problems import advection
        >>> Points.from_arrays(advection(), interior=[0.1, 0.5, 0.9], boundary=[0.0, 1.0])
        Points(interior 3, conditions 1)
        """
        owner = "Points.from_arrays"
        _check_problem(problem, owner)
        dimension = len(problem.domain.coordinates)
        inside = check_points("interior", interior, owner, dimension)
        outside = np.flatnonzero(~np.asarray(problem.domain.contains(inside)))
        if len(inside) == 0 or outside.size:
            raise GeometryError(
                f"The 'interior' points of {owner} must be points of {problem.domain}, at least one. "
                + (f"Row {outside[0]}, {inside[outside[0]].tolist()}, is outside." if outside.size else "Got none.")
            )
        given = [check_points("boundary/initial", a, owner, dimension) for a in (boundary, initial) if a is not None]
        edge = np.concatenate([np.empty((0, dimension)), *given])

        def on(statement: Statement, part: Any, opposite: Any) -> PointSet:
            points = edge[np.asarray(part.contains(edge), dtype=bool)]
            if len(points) == 0:
                raise GeometryError(
                    f"None of the given points lies on {part.name}, where {statement.name} holds; add some to "
                    "'boundary'."
                )
            normals = part.normals(points)
            partner = None if opposite is None else np.where(normals != 0.0, problem.domain.bounds[:, 1], points)
            return PointSet(points, normals, partner)

        return cls(_collect(problem, lambda: inside, on))

    @property
    def interior(self) -> FloatArray:
        """The points inside the domain."""
        return self.sets[0].points

    @property
    def total(self) -> int:
        """Number of points over all distinct sets."""
        return sum(len(s) for s in {id(s): s for s in self.sets}.values())

    def __iter__(self) -> Iterator[PointSet]:
        return iter(self.sets)

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        rest = {id(s): s for s in self.sets if s is not self.sets[0]}.values()
        return f"Points(interior {len(self.sets[0])}, conditions {sum(s.rows for s in rest)})"


def _count(name: str, value: object) -> int:
    return check_integer(name, value, "Points.sample", minimum=1, maximum=_MOST_POINTS)


def _check_problem(problem: object, owner: str) -> None:
    if not isinstance(problem, Problem):
        raise InputError(f"{owner} takes a Problem first. Got {shorten(problem)} instead.")


def _collect(
    problem: Problem, inside: Callable[[], FloatArray], on: Callable[[Statement, Any, Any], PointSet]
) -> tuple[PointSet, ...]:
    """Return one set per source; statements at the same place share one, so their features are computed once.

    ``on`` makes points of a part of the boundary and, for a periodic condition, of the opposite one.
    """
    sets: dict[int, PointSet] = {}
    places: dict[object, PointSet] = {}
    for statement in problem.statements:
        place = statement.place
        key = id(place) if isinstance(place, AtPoints) else place
        if isinstance(place, Across):
            raise ProblemError(
                f"{statement.name} cannot be met by a single network, which is smooth everywhere. Use solve(problem) "
                "without method, points or device, in one to three coordinates: it cuts cells there."
            )
        if key in places:
            pass
        elif isinstance(place, Interior):
            places[key] = PointSet(inside())
        elif isinstance(place, AtPoints):
            places[key] = PointSet(place.points)
        elif isinstance(place, Averages):
            places[key] = PointSet(place.points, place.normals, weights=place.weights, ends=place.ends)
        elif isinstance(place, Average):
            points, weights = problem.domain.quadrature(_AVERAGE_POINTS)
            places[key] = PointSet(points, weights=weights / weights.sum())
        elif isinstance(place, Opposite):
            places[key] = on(statement, place.low, place.high)
        else:
            places[key] = on(statement, place.part, None)
        sets.setdefault(statement.source, places[key])
    return tuple(sets[index] for index in sorted(sets))
