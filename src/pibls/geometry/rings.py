"""Rings of vertices: areas, nesting, and checks that they make an outline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pibls.checks import FloatArray, check_points, shorten
from pibls.errors import GeometryError
from pibls.geometry.patch import ROUNDING

_RESOLUTION = 1e-12
MOST_VERTICES = 20000
_SMALLEST, _LARGEST = 1e-100, 1e100
_BATCH = 2**20


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


def nesting(rings: Sequence[FloatArray]) -> npt.NDArray[np.bool_]:
    """Tell for each ring (row) in which others (columns) it lies; they must not cross.

    >>> square = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])
    >>> nesting([square, square / 2 + 1])
    array([[False, False],
           [ True, False]])
    """
    # The middle of an edge: a vertex may be one of another ring.
    places = np.array([(ring[0] + ring[1]) / 2 for ring in rings])
    found = np.zeros((len(rings), len(rings)), dtype=np.bool_)
    for k, ring in enumerate(rings):
        stops = np.roll(ring, -1, axis=0)
        near = np.flatnonzero(((places >= ring.min(axis=0)) & (places <= ring.max(axis=0))).all(axis=1))
        for i in np.array_split(near, len(near) * len(ring) // _BATCH + 1):
            above = places[i, 1:]
            cuts = (above >= ring[:, 1]) != (above >= stops[:, 1])
            # Only where an edge is cut is its slope of use, and finite.
            shares = np.divide(above - ring[:, 1], (stops - ring)[:, 1], out=np.zeros(cuts.shape), where=cuts)
            across = ring[:, 0] + (stops - ring)[:, 0] * shares
            found[i, k] = (cuts & (places[i, :1] < across)).sum(axis=1) % 2 == 1
    np.fill_diagonal(found, False)
    return found


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
    """Return the distances of points from as many edges."""
    edge, offset = stop - start, X - start
    along = np.clip((offset * edge).sum(axis=1) / (edge * edge).sum(axis=1), 0.0, 1.0)
    return np.asarray(np.hypot(*(offset - along[:, None] * edge).T))


def resolution_of(vertices: FloatArray) -> float:
    """Return the distance below which vertices are the same."""
    scale = float(np.hypot(*np.ptp(vertices, axis=0)))
    return _RESOLUTION * scale + ROUNDING * float(np.abs(vertices).max())


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
                f"{name} must enclose an area. Got {shorten(ring.tolist())} instead. Leave it out, or check that its "
                "vertices are not all on one line and, far from the origin, shift the coordinates."
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
