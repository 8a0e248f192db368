"""Features that cells align with or refine towards: re-entrant edges, flat faces, holes, ends of conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from pibls.cells.line_quadrature import LINES
from pibls.cells.surface import pieces
from pibls.checks import BoolArray, FloatArray
from pibls.geometry.base import Domain, Region
from pibls.geometry.part import Part
from pibls.geometry.patch import Patch
from pibls.geometry.restricted import RestrictedPatch
from pibls.geometry.sampling import kronecker
from pibls.geometry.solid import Solid
from pibls.geometry.triangle_patches import TrianglePatch
from pibls.geometry.triangles import Surface
from pibls.quadrature.roots import CLOSE, SCAN, held_ranges
from pibls.quadrature.rules import gauss, tensor
from pibls.refinement.standards import MOST, NEGLIGIBLE, POINTS

# least angles in half turns: solutions are singular at sharp edges, nearly smooth at blunt ones
_SHARP, _BLUNT = 1.15, 1.02
_MOST_EDGES = 128  # largest number of rows for blunt edges
_RADIUS = 1e-4  # of the shape or of a face: distance of test points from an edge or from the end of a condition


def reentrant_edges(domain: Region) -> tuple[FloatArray, FloatArray]:
    """Return the re-entrant straight edges of a solid: sharp ones, and blunt ones parallel to an axis.

    Sharp edges are given by their ends, shape (edges, 2, 3). A blunt edge is a row: an axis, across which a cut through
    the edge separates its two faces, then its two ends. If there are too many blunt edges, none is returned. Edges of
    curved faces are not found.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Box, Extrusion, Polygon
    >>> x, y, z = sp.symbols("x y z")
    >>> bar = Box((x, 0, 2), (y, 0, 2), (z, 0, 1)) - Box((x, 1, 2), (y, 1, 2), (z, 0, 1))
    >>> (reentrant_edges(bar)[0].round(9) + 0.0).tolist()
    [[[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]]
    >>> roof = Polygon((x, y), [(0, 0), (2, 0), (2, 1), (1, 0.9), (0, 1)])
    >>> (reentrant_edges(Extrusion(roof, (z, 0, 1)))[1].round(9) + 0.0).tolist()
    [[0.0, 1.0, 0.9, 0.0, 1.0, 0.9, 1.0]]
    """
    if isinstance(domain, Solid):
        found = _folds(domain.surface)
    else:
        flat = [plane for patch in domain.boundary.patches if (plane := _plane(patch)) is not None]
        pairs = (_along(domain, one, two, _BLUNT / 2, 1.0) for one, two in combinations(flat, 2))
        found = np.concatenate([np.empty((0, 2, 3)), *pairs])
    edges = _joined(found, domain)
    sharp = np.array([_share(domain, edge) > _SHARP / 2 for edge in edges], dtype=np.bool_)
    along = (edges[:, 0] == edges[:, 1]).sum(axis=1) == 2
    rows = [[axis, *edge.ravel()] for edge in edges[along & ~sharp] for axis in _parting(domain, edge)]
    return edges[sharp], np.array(rows if len(rows) <= _MOST_EDGES else [], dtype=np.float64).reshape(-1, 7)


def vertices(edges: FloatArray) -> FloatArray:
    """Return the points at which edges end that are parallel to different axes.

    >>> vertices(np.array([[[1.0, 1, 1], [2, 1, 1]], [[1, 1, 1], [1, 2, 1]], [[0, 0, 0], [0, 1, 0]]])).tolist()
    [[1.0, 1.0, 1.0]]
    """
    moving = edges[:, 0] != edges[:, 1]
    own, axes = edges[moving.sum(axis=1) == 1], moving[moving.sum(axis=1) == 1].argmax(axis=1)
    ends, number = np.unique(_rounded(own.reshape(-1, edges.shape[2])), axis=0, return_inverse=True)
    held = np.zeros((len(ends), edges.shape[2]), dtype=np.bool_)
    held[number.ravel(), np.repeat(axes, 2)] = True
    return np.asarray(ends[held.sum(axis=1) > 1])


def _share(shape: Region, edge: FloatArray) -> float:
    """Return the share of a small circle around the middle of an edge that lies inside the solid."""
    way = edge[1] - edge[0]
    one = np.cross(way, np.eye(3)[np.abs(way).argmin()])
    one, two = one / np.linalg.norm(one), np.cross(way, one) / np.linalg.norm(np.cross(way, one))
    around = edge.mean(axis=0) + _RADIUS * shape.thickness * _circle(one, two)
    return float((shape.level(around) > 0.0).mean())


def _circle(one: FloatArray, two: FloatArray) -> FloatArray:
    angle = np.pi * (np.arange(2 * SCAN) + 0.5) / SCAN
    return np.asarray(np.outer(np.cos(angle), one) + np.outer(np.sin(angle), two))


def _parting(shape: Region, edge: FloatArray) -> list[int]:
    """Return the axes across which a cut through an edge separates its two faces."""
    axes = np.flatnonzero(edge[0] == edge[1])
    steps = _RADIUS * shape.thickness * np.eye(3)[axes[::-1]]
    ahead, behind = (shape.level(edge.mean(axis=0) + sign * steps) > 0.0 for sign in (1.0, -1.0))
    return [int(axis) for axis in axes[ahead != behind]]


def flat_sides(domain: Region) -> list[tuple[int, float, FloatArray]]:
    """Return the flat faces of a solid that are normal to an axis: axis, outward direction (±1), and extent.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Ball, Box
    >>> x, y, z = sp.symbols("x y z")
    >>> bar = Box((x, 0, 2), (y, 0, 2), (z, 0, 1)) - Ball((x, y, z), (1, 1, 1), 0.5)
    >>> sorted((axis, side, float(extent[0, axis])) for axis, side, extent in flat_sides(bar))
    [(0, -1.0, 0.0), (0, 1.0, 2.0), (1, -1.0, 0.0), (1, 1.0, 2.0), (2, -1.0, 0.0), (2, 1.0, 1.0)]
    """
    found = []
    for patch in domain.boundary.patches:
        normal, X = _plane(patch) or (np.zeros(3), np.empty((0, 3)))
        axis = int(np.abs(normal).argmax())
        if abs(normal[axis]) > 1.0 - CLOSE:
            found.append((axis, float(np.sign(normal[axis])), np.stack([X.min(axis=0), X.max(axis=0)])))
    return found


def small_surfaces(
    surfaces: Iterable[Patch | FloatArray], size: FloatArray, share: float = MOST
) -> tuple[FloatArray, FloatArray]:
    """Return the centres and half extents of small curved surfaces; an extent is infinite along a continuous axis.

    A small surface is shorter than a share of the domain, a continuous one nearly as long. A patch counts if the domain
    surrounds it; surfaces inside the domain, given by points, always count. Triangles never count, since many of them
    form one surface.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Ball, Box
    >>> x, y, z = sp.symbols("x y z")
    >>> pierced = Box((x, 0, 2), (y, 0, 2), (z, 0, 1)) - Ball((x, y, z), (1, 1, 0.5), 0.2)
    >>> middles, halves = small_surfaces(pierced.boundary.patches, np.array([2.0, 2.0, 1.0]))
    >>> middles.round(9).tolist(), halves.round(9).tolist()
    ([[1.0, 1.0, 0.5]], [[0.2, 0.2, 0.2]])
    """
    middles, halves = [np.empty((0, len(size)))], [np.empty((0, len(size)))]
    for surface in surfaces:
        X, normals = _spread(surface) if isinstance(surface, Patch) else (surface, None)
        if not len(X):
            continue
        middle, half = (X.min(axis=0) + X.max(axis=0)) / 2, np.ptp(X, axis=0) / 2
        small = half < share * size / 2
        around = normals is None or ((X - middle) * normals).sum(axis=1).mean() < -CLOSE * half.max()
        if small.sum() > 1 and (small | (half > (1.0 - NEGLIGIBLE) * size / 2)).all() and around:
            middles.append(middle[None])
            halves.append(np.where(small, half, np.inf)[None])
    return np.concatenate(middles), np.concatenate(halves)


def borders(parts: Iterable[Part], shape: Region) -> FloatArray:
    """Return the ends of those lines, parallel to an axis, at which a condition ends inside a flat face in space.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Box
    >>> x, y, z = sp.symbols("x y z")
    >>> box = Box((x, 0, 2), (y, 0, 1), (z, 0, 1))
    >>> borders([box.top.where(lambda X: X[:, 0] < 0.5), box.front], box).round(9).tolist()
    [[[0.5, 0.0, 1.0], [0.5, 1.0, 1.0]]]
    """
    found = [np.empty((0, 2, 3))]
    for patch in (patch for part in parts for patch in part.patches if isinstance(patch, RestrictedPatch)):
        if all(piece.is_plain and len(piece.box) == 2 for piece in pieces(patch)):
            found += [_border(shape, patch, axis, at) for axis in range(2) for at in _ends(patch, axis)]
    every = np.concatenate(found)
    return every[np.unique(_rounded(every), axis=0, return_index=True)[1]]


def ridges(groups: Sequence[Iterable[Patch]], shape: Domain | None) -> FloatArray:
    """Return the ends of the straight convex edges of a solid at which the flat patches of one group meet others.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Box
    >>> x, y, z = sp.symbols("x y z")
    >>> box = Box((x, 0, 2), (y, 0, 1), (z, 0, 1))
    >>> rest = (box.front | box.back | box.bottom).patches
    >>> (ridges([box.top.patches, rest, box.right.patches], box).round(9) + 0.0)[:3].tolist()
    [[[0.0, 0.0, 1.0], [2.0, 0.0, 1.0]], [[0.0, 1.0, 1.0], [2.0, 1.0, 1.0]], [[2.0, 0.0, 0.0], [2.0, 0.0, 1.0]]]
    """
    found = [np.empty((0, 2, 3))]
    if not isinstance(shape, Region) or shape.dimension != 3:
        return found[0]
    flat = [[plane for patch in group if (plane := _plane(patch)) is not None] for group in groups]
    for own, other in combinations(flat, 2):
        found += [_along(shape, one, two, 0.0, 1.0 - _SHARP / 2) for one, two in product(own, other)]
    edges = _joined(np.concatenate(found), shape)
    return edges[np.lexsort(_rounded(edges).reshape(len(edges), 6).T[::-1])]


def _ends(patch: Patch, axis: int) -> list[float]:
    """Return where a flat patch ends along one parameter, for at least two values of the other parameter."""
    found = []
    for other in gauss(LINES)[0]:
        kept = held_ranges(lambda s, other=other: _kept(patch, axis, s, np.full(len(s), other)), 0.0, 1.0)
        found += [float(_rounded(np.float64(end))) for span in kept for end in span if 0.0 < end < 1.0]
    return [end for end, count in Counter(found).items() if count > 1]


def _kept(patch: Patch, axis: int, s: FloatArray, other: FloatArray) -> BoolArray:
    kept = patch.at(np.stack([s, other] if axis == 0 else [other, s], axis=1))[2]
    return np.ones(len(s), dtype=np.bool_) if kept is None else kept


def _border(shape: Region, patch: Patch, axis: int, at: float) -> FloatArray:
    """Return the segments at a parameter value where a patch ends while the face of the shape continues."""

    def ends(t: FloatArray) -> BoolArray:
        kept, within = [], []
        for side in (np.full(len(t), at - _RADIUS), np.full(len(t), at + _RADIUS)):
            X, normals, _ = patch.at(np.stack([side, t] if axis == 0 else [t, side], axis=1))
            within.append(shape.level(X - _RADIUS * shape.thickness * normals) > 0.0)
            kept.append(_kept(patch, axis, side, t))
        return np.asarray((kept[0] != kept[1]) & within[0] & within[1])

    spans = np.array(held_ranges(ends, 0.0, 1.0)).reshape(-1)
    U = np.stack([np.full(len(spans), at), spans] if axis == 0 else [spans, np.full(len(spans), at)], axis=1)
    return patch.at(U)[0].reshape(-1, 2, 3)


def _rounded(X: Any) -> Any:
    """Return coordinates rounded such that nearly equal ones become equal."""
    return np.round(X / CLOSE) / np.round(1.0 / CLOSE)


def _spread(patch: Patch) -> tuple[FloatArray, FloatArray]:
    """Return points and normals all over a patch, including its quarters; none on a flat patch."""
    if isinstance(patch, TrianglePatch):
        return np.empty((0, 3)), np.empty((0, 3))
    ends = (np.linspace(0.0, 1.0, SCAN), np.ones(SCAN))
    X, normals, kept = patch.at(tensor(*[ends] * patch.parameters)[0])
    if np.ptp(normals, axis=0).max() < CLOSE:
        return X[:0], normals[:0]
    return (X, normals) if kept is None else (X[kept], normals[kept])


def _folds(surface: Surface) -> FloatArray:
    """Return the edges between triangles at which a surface is re-entrant."""
    ends = surface.ends
    edges = ends[np.lexsort(np.sort(ends, axis=1).T)][::2]
    pairs = surface.neighbours
    one, two = surface.normals[pairs].transpose(1, 0, 2)
    start, stop = surface.vertices[edges].transpose(1, 0, 2)
    along = stop - start
    along = along / np.linalg.norm(along, axis=1, keepdims=True)
    # The edge has the direction of its first triangle, which has the inside on its left.
    turn = np.arctan2((np.cross(one, two) * along).sum(axis=1), (one * two).sum(axis=1))
    sharp = -turn > (_SHARP - 1.0) * np.pi
    blunt, level = (-turn > (_BLUNT - 1.0) * np.pi) & ~sharp, (start == stop).sum(axis=1) == 2
    # A triangulated round surface has such edges in all directions, so that cell sides would meet a few by chance.
    blunt &= level & ~np.isin(pairs, pairs[blunt & ~level]).any(axis=1)
    return np.asarray(np.stack([start, stop], axis=1)[sharp | blunt if blunt.sum() <= _MOST_EDGES else sharp])


def _plane(patch: Patch) -> tuple[FloatArray, FloatArray] | None:
    """Return the normal and the corners of a flat patch; None for a curved one, or one of which nothing is kept."""
    ends = (np.array([0.0, 1.0, 0.3]), np.ones(3))
    X, normals, _ = patch.at(tensor(ends, ends)[0])
    kept = patch.at(kronecker(POINTS, 2))[2]
    if kept is not None and not kept.any():
        return None
    level = np.ptp(normals, axis=0).max() < CLOSE and np.ptp(X @ normals[0]) < CLOSE * np.ptp(X, axis=0).max()
    return (normals[0], X) if level else None


def _along(
    shape: Region, one: tuple[FloatArray, FloatArray], two: tuple[FloatArray, FloatArray], least: float, most: float
) -> FloatArray:
    """Return the segments of the line between two flat patches around which a share of a circle is inside."""
    none = np.empty((0, 2, 3))
    (first, X), (second, Y) = one, two
    way = np.cross(first, second)
    low = np.maximum(X.min(axis=0), Y.min(axis=0)) - shape.tolerance
    high = np.minimum(X.max(axis=0), Y.max(axis=0)) + shape.tolerance
    if np.linalg.norm(way) < CLOSE or (low > high).any():
        return none
    way = np.where(np.abs(way) > CLOSE, way, 0.0) / np.linalg.norm(way)
    start = np.linalg.solve(np.stack([first, second, way]), [first @ X[0], second @ Y[0], way @ X[0]])
    moving = way != 0.0
    ends = np.sort(((np.stack([low, high]) - start) / np.where(moving, way, 1.0))[:, moving], axis=0)
    begin, end = float(ends[0].max()) + shape.tolerance, float(ends[1].min()) - shape.tolerance
    if end - begin <= _RADIUS * shape.thickness or ((start < low) | (start > high))[~moving].any():
        return none
    circle = _circle(first, np.cross(way, first))

    def is_edge(t: FloatArray) -> BoolArray:
        around = start + t[:, None, None] * way + _RADIUS * shape.thickness * circle
        share = (shape.level(around.reshape(-1, 3)) > 0.0).reshape(len(t), -1).mean(axis=1)
        return np.asarray((share > least) & (share < most))

    spans = [(start + t * way) for span in held_ranges(is_edge, begin, end) for t in span]
    return np.array(spans).reshape(-1, 2, 3)


def _joined(segments: FloatArray, shape: Region) -> FloatArray:
    """Return the segments with touching ones on a common line merged."""
    slack = 4.0 * shape.tolerance
    left, found = segments.tolist(), []
    while left:
        one = np.array(left.pop())
        for k, two in enumerate(left):
            both = np.concatenate([one, two])
            way = one[1] - one[0]
            place = (both - one[0]) @ way / (way @ way)
            off = np.abs(both - one[0] - place[:, None] * way).max()
            gap = np.linalg.norm(way) * (np.ptp(place) - np.ptp(place[:2]) - np.ptp(place[2:]))
            if off <= slack and gap <= slack:
                left[k] = both[[place.argmin(), place.argmax()]].tolist()
                break
        else:
            found.append(one[np.lexsort(_rounded(one).T[::-1])])
    return np.array(found).reshape(-1, 2, 3)
