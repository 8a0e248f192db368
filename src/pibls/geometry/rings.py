"""Rings of vertices: areas, nesting, and checks that they make an outline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pibls.checks import BoolArray, FloatArray, IntArray, check_points, shorten
from pibls.errors import GeometryError
from pibls.geometry.boxtree import BoxTree
from pibls.geometry.patch import ROUNDING

_RESOLUTION = 1e-12
MOST_VERTICES = 20000
_SMALLEST, _LARGEST = 1e-100, 1e100
MOST_PAIRS = 2**23  # of edges that are compared, which takes seconds


class OpenRingError(GeometryError):
    """Edges end in a place from which none goes on."""

    def __init__(self, place: int) -> None:
        super().__init__(f"The edges do not close: none goes on from place {place}.")
        self.place = place


def signed_area(ring: FloatArray) -> float:
    """Return the area inside a ring, negative if it runs clockwise."""
    # Relative to a vertex: far from the origin the shoelace formula would cancel.
    offset = ring - ring[0]
    return float(cross(offset, np.roll(offset, -1, axis=0)).sum() / 2)


class Edges:
    """The edges of closed rings in the plane, counted through all rings, each from a vertex to the next."""

    def __init__(self, rings: Sequence[FloatArray]) -> None:
        sizes = np.array([len(ring) for ring in rings])
        first = np.cumsum(sizes) - sizes
        self.areas = np.array([signed_area(ring) for ring in rings])
        self.owner = np.repeat(np.arange(len(rings)), sizes)
        self.starts = np.concatenate(rings)
        self.following = np.arange(1, len(self.starts) + 1)
        self.following[first + sizes - 1] = first
        self.stops = self.starts[self.following]
        self.steps = self.stops - self.starts
        self.low, self.high = np.minimum(self.starts, self.stops), np.maximum(self.starts, self.stops)
        self._places = (self.starts + self.steps / 2)[first]

    @cached_property
    def tree(self) -> BoxTree:
        """Boxes around the edges."""
        return BoxTree(self.low, self.high)

    def distance(self, X: FloatArray, items: IntArray) -> FloatArray:
        """Return the distances of points from edges by their numbers."""
        return segment_distance(self.starts[items], self.stops[items], X)

    def on_the_right(self, X: FloatArray, items: IntArray) -> BoolArray:
        """Tell which edges, by their numbers, pass the height of points on their right."""
        start, stop, step, offset = self.starts[items], self.stops[items], self.steps[items], X - self.starts[items]
        # Compared with the vertices themselves: differences round, and two edges would disagree about their vertex.
        cuts = (X[..., 1] >= start[..., 1]) != (X[..., 1] >= stop[..., 1])
        share = np.divide(offset[..., 1], step[..., 1], out=np.zeros(cuts.shape), where=cuts)
        return np.asarray(cuts & (offset[..., 0] < step[..., 0] * share))

    def crossings(self) -> IntArray:
        """Return for each ring how many edges of others pass upwards, and downwards, on the right of a place on it.

        It lies in an odd number of other rings if their sum is odd; their difference is how often these wind around it.

        >>> square = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])
        >>> Edges([square, square / 2 + 1]).crossings()
        array([[0, 0],
               [1, 0]])
        """
        # The middle of an edge: a vertex may be one of another ring.
        places, found = self._places, np.zeros((len(self._places), 2), dtype=np.int64)
        for rows, items in self.tree.beyond(places, 0):
            right = self.on_the_right(places[rows], items) & (self.owner[items] != rows)
            np.add.at(found, (rows[right], (self.steps[items[right], 1] < 0).astype(int)), 1)
        return found

    def meeting(self, demand: str) -> tuple[int, int] | None:
        """Return two edges that cross or touch, other than neighbours or in a vertex that two rings share, if any."""
        starts, stops, following, seen = self.starts, self.stops, self.following, 0
        resolution = resolution_of(starts)
        for i, j in self.tree.overlapping(self.low - resolution, self.high + resolution):
            seen += len(i)
            if seen > MOST_PAIRS:
                raise GeometryError(
                    f"{demand}, which takes too long to find out: over {MOST_PAIRS} pairs of its {len(starts)} edges "
                    "are beside each other, as those of many rings within rings are. Give fewer rings, or turn them so "
                    "that long edges run along the coordinates."
                )
            # Most are on one side of the line along another, which takes less time to find than their distance.
            i, j = i[j > i], j[j > i]
            sides = np.stack([cross(self.steps[i], ends[j] - starts[i]) for ends in (starts, stops)])
            reach = resolution * np.hypot(*self.steps[i].T)
            near = (sides.min(axis=0) <= reach) & (sides.max(axis=0) >= -reach)
            i, j = i[near], j[near]
            apart = (following[i] != j) & (following[j] != i) & (self.owner[i] == self.owner[j])
            bad = _meet((starts[i], stops[i]), (starts[j], stops[j]), apart, resolution)
            if bad.any():
                return int(i[bad.argmax()]), int(j[bad.argmax()])
        return None


def chained(edges: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield the rings that directed edges between numbered places make, split where they pass a place twice.

    >>> list(chained([(0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (4, 0)]))
    [[0, 3, 4], [0, 1, 2]]
    """
    after: dict[int, list[int]] = {}
    for a, b in edges:
        after.setdefault(a, []).append(b)
    while after:
        chain = [next(iter(after))]
        seen = {chain[0]: 0}
        while chain:
            choices = after.get(chain[-1])
            if not choices:
                raise OpenRingError(chain[-1])
            following = choices.pop()
            if not choices:
                del after[chain[-1]]
            if following in seen:
                start = seen[following]
                loop = chain[start:]
                yield loop
                for node in loop[1:]:
                    del seen[node]
                del chain[start + 1 :]
                if start == 0:
                    break
            else:
                seen[following] = len(chain)
                chain.append(following)


def cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the cross products of vectors in the plane."""
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def segment_distance(start: FloatArray, stop: FloatArray, X: FloatArray) -> FloatArray:
    """Return the distances of points from edges."""
    (a, b), (x, y) = (np.moveaxis(vectors, -1, 0) for vectors in (stop - start, X - start))
    along = np.clip((x * a + y * b) / np.maximum(a * a + b * b, np.finfo(np.float64).tiny), 0.0, 1.0)
    return np.asarray(np.hypot(x - along * a, y - along * b))


def resolution_of(vertices: FloatArray) -> float:
    """Return the distance below which vertices are the same."""
    scale = float(np.hypot(*np.ptp(vertices, axis=0)))
    return _RESOLUTION * scale + ROUNDING * float(np.abs(vertices).max())


def _meet(
    one: tuple[FloatArray, FloatArray], two: tuple[FloatArray, FloatArray], apart: BoolArray, resolution: float
) -> BoolArray:
    """Tell which edges cross or touch; those that are not ``apart`` may share an end."""
    (a, b), (c, d) = one, two
    ends = [(a, b, c), (a, b, d), (c, d, a), (c, d, b)]
    near = np.stack([segment_distance(p, q, w) <= resolution for p, q, w in ends], axis=1)
    same = np.stack([np.hypot(*(v - w).T) <= resolution for v, w in ((a, c), (b, c), (a, d), (b, d))], axis=1)
    crossing = (cross(b - a, c - a) * cross(b - a, d - a) < 0) & (cross(d - c, a - c) * cross(d - c, b - c) < 0)
    # An end that both have is near in two of the four ways; more of them mean that the edges lie on each other.
    allowed = (same.sum(axis=1) == 1) & (near.sum(axis=1) == 2) & ~apart
    return np.asarray((near.any(axis=1) | crossing) & ~allowed)


def check_rings(rings: Sequence[npt.ArrayLike], title: str) -> list[FloatArray]:
    """Return rings that each enclose an area, or refuse them; a title with a number says which."""
    if isinstance(rings, str) or not hasattr(rings, "__len__") or not len(rings):
        raise GeometryError(
            f"The 'rings' parameter of Outline must be a list of one or more rings of vertices. Got {shorten(rings)}."
        )
    checked = [check_points("rings", ring, "Outline", 2, error=GeometryError) for ring in rings]
    total = sum(len(ring) for ring in checked)
    if total > MOST_VERTICES:
        raise GeometryError(
            f"A shape with straight edges must have at most {MOST_VERTICES} vertices in all. Got {total}. "
            "Thin them out, as shapely's simplify does."
        )
    vertices = np.concatenate(checked)
    largest = float(np.abs(vertices).max(initial=0.0))
    resolution = resolution_of(vertices) if len(vertices) else 0.0
    for number, ring in enumerate(checked):
        name = title.format(number)
        if len(ring) < 3:
            raise GeometryError(f"{name} must have three or more vertices. Got {len(ring)} instead.")
        if not _SMALLEST < largest < _LARGEST:
            raise GeometryError(
                f"{name} must have coordinates below {_LARGEST:g}, not all zero. Got {shorten(ring.tolist())} instead. "
                "Scale the coordinates."
            )
        gaps = np.hypot(*(np.roll(ring, -1, axis=0) - ring).T)
        if gaps.min() <= resolution:
            k = int(gaps.argmin())
            raise GeometryError(
                f"{name} must have different vertices. Got {ring[k].tolist()} as number {k} and again after it. Leave "
                "one out; rings close by themselves."
            )
        if abs(signed_area(ring)) <= resolution * float(np.hypot(*np.ptp(ring, axis=0))):
            raise GeometryError(
                f"{name} must enclose an area. Got {shorten(ring.tolist())} instead. List its vertices in order, with "
                "no edges that cross and not all on one line; far from the origin, shift the coordinates."
            )
    return checked


def check_names(
    parts: Mapping[str, Sequence[int]], total: int, owner: str, what: str
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the names of edges or triangles by their numbers, or refuse them."""
    named = []
    for name, edges in dict(parts).items():
        rows = np.asarray(edges)
        known = rows.ndim == 1 and len(rows) and rows.dtype.kind in "iu" and rows.min() >= 0 and rows.max() < total
        if not isinstance(name, str) or not known:
            raise GeometryError(
                f"The 'parts' parameter of {owner} must give names the numbers of {what}, 0 to {total - 1}. "
                f"Got {shorten(edges)} for {shorten(name)} instead."
            )
        named.append((name, tuple(int(k) for k in np.unique(rows))))
    return tuple(named)
