"""Polygons, also with holes, islands in the holes, and several pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import FloatArray, IntArray, check_points, counted
from pibls.errors import GeometryError, PiblsError
from pibls.geometry.base import Domain, LevelIn, Region
from pibls.geometry.description import Argument, Arguments, Kind, check_coordinates, rational
from pibls.geometry.patch import AffinePatch, Patch, extent
from pibls.geometry.rings import Edges, check_names, check_rings, cross, signed_area
from pibls.geometry.sampling import apportion
from pibls.quadrature.rules import Rule, crowded, gauss, side, tensor

Ring = tuple[tuple[float, float], ...]

_FEWEST = 30
_FEW, _FEW_PAIRS = 30, 2**15  # edges, and points times edges, that are all looked at faster than the nearest are found
_NEAR = 1e-3
_BENT = 1e-6
_FLAT = 1e-12
_PLENTY = 200  # nodes per vertex of which some can be spared for corners


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Outline(Region):
    """A plane shape bounded by closed rings of straight edges: inside an odd number of them.

    Rings may not cross; they may touch where they share a vertex. The ring around everything is the part ``outer``
    (``outer0``, ``outer1``, ... if there are several, islands in holes among them), the holes are ``hole0``, ...

    Parameters
    ----------
    coordinates : tuple of two symbols
    rings : sequence of arrays of shape (n, 2)
        The vertices of each ring in order, either way round, the first not repeated at the end.
    parts : mapping from names to edge numbers, optional
        Parts of the boundary. Edges are counted through all rings, each from a vertex to the next.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> frame = Outline((x, y), [[(0, 0), (3, 0), (3, 3), (0, 3)], [(1, 1), (2, 1), (2, 2), (1, 2)]])
    >>> frame.measure, frame.boundary.measure, list(frame.parts)
    (8.0, 16.0, ['outer', 'hole0'])
    >>> frame.hole0.normals([[1, 1.5]])
    array([[1., 0.]])
    """

    coordinates: tuple[sp.Symbol, ...]
    rings: tuple[Ring, ...]
    named: tuple[tuple[str, tuple[int, ...]], ...]

    arguments: ClassVar[Arguments] = (
        Argument("rings", Kind.RINGS, "rings = [[[0, 0], [3, 0], [0, 3]]]"),
        Argument("parts", Kind.PARTS, attribute="named"),
    )
    _title: ClassVar[str] = "Ring {} of Outline"
    _demand: ClassVar[str] = "The rings of Outline must not cross, touch or repeat themselves"

    def __init__(
        self,
        coordinates: tuple[sp.Symbol, ...],
        rings: Sequence[npt.ArrayLike],
        parts: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        symbols = check_coordinates(coordinates, "Outline", 2)
        checked = check_rings(rings, self._title)
        named = check_names(parts or {}, sum(map(len, checked)), "Outline", "edges")
        plain = tuple(tuple((a, b) for a, b in ring.tolist()) for ring in checked)
        self._set(coordinates=symbols, rings=plain, named=named)
        self._check_apart()

    def __repr__(self) -> str:
        count = sum(len(ring) for ring in self.rings)
        return f"<Outline in {self.coordinates} of {counted(len(self.rings), 'ring')} with {count} vertices>"

    @cached_property
    def _edges(self) -> Edges:
        return Edges([np.array(ring) for ring in self.rings])

    @cached_property
    def _signs(self) -> FloatArray:
        """One for rings around the shape, minus one for holes."""
        return np.where(self._edges.crossings().sum(axis=1) % 2 == 1, -1.0, 1.0)

    @cached_property
    def _turns(self) -> FloatArray:
        """One for edges that have the shape on their left, minus one for others."""
        return np.asarray((np.sign(self._edges.areas) * self._signs)[self._edges.owner])

    @cached_property
    def bounds(self) -> FloatArray:
        """The extent of the vertices."""
        return extent(self._edges.starts)

    @cached_property
    def measure(self) -> float:
        """The area."""
        return float(np.abs(self._edges.areas) @ self._signs)

    @property
    def condition(self) -> sp.Basic:
        """Inside an odd number of rings."""
        rings = [_within(self.coordinates, np.array(ring)) for ring in self.rings]
        return sp.Xor(*rings) if len(rings) > 1 else rings[0]

    def level(self, X: FloatArray) -> FloatArray:
        """Return the distance from the nearest edge, negative outside (by the parity of crossings).

        Far from a shape of many edges it is the distance from another edge, which takes less time to find.
        """
        edges, every = self._edges, np.arange(len(self._edges.starts))
        if len(every) <= _FEW or len(X) * len(every) <= _FEW_PAIRS:
            return self._directly(X, every, every)
        near = _NEAR * self.thickness
        distance, _ = edges.tree.nearest(X, lambda rows, items: edges.distance(X[rows], items), near)
        inside = edges.tree.is_within(X, 0, lambda rows, items: edges.on_the_right(X[rows], items))
        return np.asarray(np.where(inside, distance, -distance))

    def level_in(self, low: FloatArray, high: FloatArray) -> LevelIn:
        """Return the level by the edges in a box and those beside it."""
        lowest, highest = self._edges.low, self._edges.high
        near = (lowest <= high + self.tolerance) & (highest >= low - self.tolerance)
        (beside,) = np.nonzero(near[:, 1] & (highest[:, 0] >= low[0]))
        (within,) = np.nonzero(near.all(axis=1))
        if not len(within):
            return bool(self.level((low + high)[None] / 2)[0] > 0.0)
        return lambda X: self._directly(X, within, beside)

    def _directly(self, X: FloatArray, near: IntArray, beside: IntArray) -> FloatArray:
        """Return the level by a look at all edges that may be the nearest, and at those that may be on the right."""
        parts = len(X) * max(len(near), len(beside)) // _FEW_PAIRS + 1
        if parts > 1:
            return np.concatenate([self._directly(own, near, beside) for own in np.array_split(X, parts)])
        distance = self._edges.distance(X[:, None], near).min(axis=1)
        inside = self._edges.on_the_right(X[:, None], beside).sum(axis=1) % 2 == 1
        return np.asarray(np.where(inside, distance, -distance))

    @cached_property
    def _patches(self) -> tuple[AffinePatch, ...]:
        starts, steps = self._edges.starts, self._edges.steps
        normals = np.stack([steps[:, 1], -steps[:, 0]], axis=1) * self._turns[:, None]
        normals = normals / np.hypot(*steps.T)[:, None]
        rows = zip(starts.tolist(), steps.tolist(), normals.tolist(), strict=True)
        return tuple(AffinePatch(tuple(start), (tuple(edge),), tuple(normal)) for start, edge, normal in rows)

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        """Return the rings, and the parts with names."""
        outer, holes = (np.flatnonzero(self._signs == sign).tolist() for sign in (1.0, -1.0))
        rings = {"outer" if len(outer) == 1 else f"outer{k}": i for k, i in enumerate(outer)}
        rings |= {f"hole{k}": i for k, i in enumerate(holes)}
        edges = {name: np.flatnonzero(self._edges.owner == i) for name, i in rings.items()} | dict(self.named)
        return {name: [self._patches[k] for k in own] for name, own in edges.items()}

    @property
    def corners(self) -> FloatArray:
        """Interior angle at each vertex, in radians; above π at a re-entrant corner."""
        return self.wedges[1]

    @cached_property
    def wedges(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The vertices, the interior angle at each, and the direction that halves the wedge outside."""
        before, after = np.empty_like(self._edges.steps), self._edges.steps
        before[self._edges.following] = after
        turn = np.arctan2(cross(before, after), (before * after).sum(axis=1)) * self._turns
        angle = np.pi - turn
        # From the direction of the edge after (along which the shape is on the left) to the middle of the inside.
        forward = np.where(
            self._turns > 0, np.arctan2(after[:, 1], after[:, 0]), np.arctan2(-before[:, 1], -before[:, 0])
        )
        return self._edges.starts, np.asarray(angle), np.asarray(forward + angle / 2 + np.pi)

    def _rule(self, n: int) -> Rule:
        """Return Gauss rules on the trapezoids between the heights of the vertices, about ``n`` nodes in all.

        Many points on few edges crowd towards re-entrant corners, where solutions are not smooth.
        """
        bands, vertices = self._bands(), self._edges.starts
        bent = vertices[self.corners > np.pi + _BENT] if n >= _PLENTY * len(vertices) else vertices[:0]
        for corner in bent:
            bands = _split(bands, *corner.tolist())
        areas = (bands[:, 1] - bands[:, 0]) * (bands[:, 3] - bands[:, 2] + bands[:, 5] - bands[:, 4]) / 2
        bands = bands[areas > 0]
        # Shares by area alone would leave thin trapezoids of any length with one point.
        least = _FEWEST if n >= 2 * _FEWEST * len(bands) else 0
        shares = least + apportion(max(n - least * len(bands), len(bands)), areas[areas > 0])
        sides = np.array([side(int(share), 2) for share in shares])
        points, weights = [], []
        for m in np.unique(sides):
            low, high, a, b, c, d = bands[sides == m].T[:, :, None]
            # One more node upwards pays for the Jacobian, which is linear there.
            U, own = tensor(*(crowded(k + 4) if len(bent) else gauss(k) for k in (int(m), int(m) + 1)))
            left, width = a + U[:, 1] * (c - a), (b - a) + U[:, 1] * ((d - c) - (b - a))
            X = np.stack([left + U[:, 0] * width, low + U[:, 1] * (high - low)], axis=2)
            points.append(X.reshape(-1, 2))
            weights.append((own * width * (high - low)).ravel())
        return np.concatenate(points), np.concatenate(weights)

    def _bands(self) -> FloatArray:
        """Return the trapezoids: low and high, left and right end below, left and right end above."""
        bottom, top = self._edges.low[:, 1], self._edges.high[:, 1]
        found = [np.empty((0, 6))]
        for low, high in pairwise(np.unique(self._edges.starts[:, 1]).tolist()):
            own = np.flatnonzero((bottom <= low) & (top >= high))
            starts, edges = self._edges.starts[own], self._edges.steps[own]
            heights = np.array([low, (low + high) / 2, high])
            along = np.clip((heights - starts[:, 1:]) / edges[:, 1:], 0.0, 1.0)
            ends = starts[:, :1] + edges[:, :1] * along
            ends = ends[np.argsort(ends[:, 1], kind="stable")]
            left, right = ends[0::2], ends[1::2]
            limits = np.tile([low, high], (len(left), 1))
            found.append(np.column_stack([limits, left[:, 0], right[:, 0], left[:, 2], right[:, 2]]))
        return np.concatenate(found)

    def _check_apart(self) -> None:
        """Refuse rings that cross or touch themselves or each other, other than in a vertex that two rings share."""
        edges, found = self._edges, self._edges.meeting(self._demand)
        if found is not None:
            places = [f"edge {self._place(edge)}" for edge in found]
            near = (edges.starts[found[0]] + edges.steps[found[0]] / 2).tolist()
            raise GeometryError(
                f"{self._demand}. {places[0].capitalize()} meets {places[1]} near ({near[0]:.6g}, {near[1]:.6g}). "
                "Put the vertices in order around the boundary; shapely's make_valid repairs outlines, and | joins "
                "polygons."
            )

    def _place(self, edge: int) -> str:
        ring = int(self._edges.owner[edge])
        number = str(edge - int(np.searchsorted(self._edges.owner, ring)))
        return f"{number} of ring {ring}" if len(self.rings) > 1 else number


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Polygon(Outline):
    """A simple polygon, its vertices in order (either way round), the first not repeated at the end.

    Its parts are ``edge0`` from the first vertex to the second, ``edge1``, ...

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> bracket = Polygon((x, y), [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    >>> bracket.measure
    3.0
    >>> (bracket.corners / float(sp.pi)).round(3)
    array([0.5, 0.5, 0.5, 1.5, 0.5, 0.5])
    >>> bracket.edge2.measure
    1.0
    """

    arguments: ClassVar[Arguments] = (Argument("vertices", Kind.POINTS, "vertices = [[0, 0], [1, 0], [0, 1]]"),)
    _title: ClassVar[str] = "The 'vertices' parameter of Polygon"
    _demand: ClassVar[str] = f"{_title} must describe a simple polygon"

    def __init__(self, coordinates: tuple[sp.Symbol, ...], vertices: npt.ArrayLike) -> None:
        symbols = check_coordinates(coordinates, "Polygon", 2)
        try:
            corners = check_points("vertices", vertices, "Polygon", 2, error=GeometryError)
        except PiblsError:
            corners = check_points("vertices", _as_floats(vertices), "Polygon", 2, error=GeometryError)
        super().__init__(symbols, [corners])

    __repr__ = Domain.__repr__

    @property
    def vertices(self) -> Ring:
        """The corners, in order."""
        return self.rings[0]

    def _named_patches(self) -> Mapping[str, Iterable[Patch]]:
        return {f"edge{i}": [patch] for i, patch in enumerate(self._patches)}


def _as_floats(vertices: object) -> object:
    """Turn SymPy points and numbers into floats where possible; leave the rest to the check that follows."""
    try:
        return [[float(entry) for entry in vertex] for vertex in vertices]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return vertices


def _within(symbols: tuple[sp.Symbol, ...], vertices: FloatArray) -> sp.Basic:
    """Return the condition of a polygon: its convex hull, without the pockets between the two."""
    from scipy.spatial import ConvexHull

    points = vertices if signed_area(vertices) > 0 else vertices[::-1]
    corners = ConvexHull(points).vertices.tolist()
    x, y = symbols
    conditions = []
    for start, stop in zip(corners, [*corners[1:], corners[0]], strict=True):
        (a, b), (c, d) = ([rational(value) for value in points[k]] for k in (start, stop))
        conditions.append((c - a) * (y - b) - (d - b) * (x - a) > 0)
        pocket = points[[k % len(points) for k in range(start, stop + 1 + (stop < start) * len(points))]]
        if abs(signed_area(pocket)) > _FLAT * np.ptp(points, axis=0).prod():
            conditions.append(sp.Not(_within(symbols, pocket)))
    return sp.And(*conditions)


def _split(bands: FloatArray, x: float, y: float) -> FloatArray:
    """Return trapezoids of which those with a point on their lower or upper side are divided there."""
    for height, left, right in ((0, 2, 3), (1, 4, 5)):
        own = (bands[:, height] == y) & (bands[:, left] < x) & (bands[:, right] > x)
        share = (x - bands[own, left]) / (bands[own, right] - bands[own, left])
        middle = bands[own, 2::2] + share[:, None] * (bands[own, 3::2] - bands[own, 2::2])
        rest = bands[own]
        bands[own, 3::2], rest[:, 2::2] = middle, middle
        bands = np.concatenate([bands, rest])
    return bands
