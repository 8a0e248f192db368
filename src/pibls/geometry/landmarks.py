"""Where the solutions on a plane domain are not smooth: re-entrant corners, and the holes that fields wind around."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pibls.checks import check_number, shorten
from pibls.errors import GeometryError
from pibls.geometry.ball import Ball
from pibls.geometry.base import Domain, Region
from pibls.geometry.boolean import Combination
from pibls.geometry.box import Box
from pibls.geometry.product import Product
from pibls.geometry.slices import ends

__all__ = ["Corner", "Hole", "clearance", "corners", "find_cut", "holes"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_SMALLEST_TURN = 1e-6
_CIRCLE = 720
_SECTIONS, _ROUNDS = 32, 10  # angles are found to rounding
_CIRCLE_RADIUS = 1e-4
_BOUNDARY_POINTS = 256
_RAY = 4096
_FAN = 64
_STEP = 1e-6


@dataclass(frozen=True)
class Corner:
    """A point where two smooth pieces of the boundary meet at an angle.

    Parameters
    ----------
    point : tuple of two floats
    angle : float
        Interior angle, in radians.
    direction : float
        Direction, in radians from the first axis, that halves the wedge outside the domain.
    """

    point: tuple[float, float]
    angle: float
    direction: float


@dataclass(frozen=True)
class Hole:
    """A subtracted region; a disk of this center and radius lies in it (it is the region, if that is a disk)."""

    center: tuple[float, float]
    radius: float


def corners(domain: Domain, above: float = math.pi) -> tuple[Corner, ...]:
    """Return the corners of a plane domain with an interior angle above a limit: by default the re-entrant ones.

    Those of the space factor for a product with time; none for domains that are not solid shapes in the plane. Between
    curves the angle is that of the tangents.

    Parameters
    ----------
    domain : Domain
    above : float
        The limit, in radians; 0 for all corners.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Rectangle
    >>> x, y = sp.symbols("x y")
    >>> bracket = Rectangle((x, -1, 1), (y, -1, 1)) - Rectangle((x, 0, 1), (y, -1, 0))
    >>> [corner] = corners(bracket)
    >>> corner.point, round(corner.angle / math.pi, 9), round(corner.direction / math.pi, 9)
    ((0.0, 0.0), 1.5, -0.25)
    """
    limit = check_number("above", above, "corners", minimum=0.0, error=GeometryError)
    shape = _plane_shape(domain, "corners")
    if shape is None:
        return ()
    found = []
    candidates = _vertices(shape)
    for i, point in enumerate(candidates):
        gaps = np.hypot(*(np.delete(candidates, i, axis=0) - point).T)
        radius = min(_CIRCLE_RADIUS * shape.thickness, 0.25 * float(gaps.min(initial=np.inf)))
        for start, stop in _tangent_wedges(shape, point, max(radius, 1e4 * shape.rounding)):
            angle = stop - start
            if angle > limit + _SMALLEST_TURN and abs(angle - math.pi) > _SMALLEST_TURN:
                outside = (start + stop) / 2 + math.pi
                direction = math.remainder(outside, 2 * math.pi)
                found.append(Corner((float(point[0]), float(point[1])), float(angle), direction))
    return tuple(found)


def holes(domain: Domain) -> tuple[Hole, ...]:
    """Return the holes of a plane domain: the subtracted regions that lie strictly inside it.

    A hole made of several overlapping regions is returned once for each of them. For regions other than disks the
    center is the centroid, or a point deep in the region where the centroid is not in it, and the radius the distance
    from there to its boundary.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Disk, Rectangle
    >>> x, y = sp.symbols("x y")
    >>> sheet = Rectangle((x, 0, 4), (y, 0, 2))
    >>> holes(sheet - Disk((x, y), (1, 1), 0.25) - Rectangle((x, 2, 3), (y, 0.5, 1.5)))
    (Hole(center=(1.0, 1.0), radius=0.25), Hole(center=(2.5, 1.0), radius=0.5))
    """
    shape = _plane_shape(domain, "holes")
    if shape is None:
        return ()
    regions = list(dict.fromkeys(_subtracted(shape)))
    rims = [_rim(shape, region, regions) for region in regions]
    closed = np.array([rim.closed for rim in rims], dtype=np.bool_)
    # A region that opens to the outside opens all those it overlaps.
    while True:
        still = closed & np.array([not (rim.meets & ~closed).any() for rim in rims], dtype=np.bool_)
        if (still == closed).all():
            break
        closed = still
    return tuple(_hole(regions[i]) for i in np.flatnonzero(closed) if not rims[i].hidden)


def clearance(domain: Domain, point: tuple[float, float], direction: float) -> float:
    """Return how far a ray from a corner runs outside a plane domain; infinity if it never comes back to it.

    Parameters
    ----------
    domain : Domain
    point : tuple of two floats
        Where the ray starts.
    direction : float
        Where it goes, in radians from the first axis.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Rectangle
    >>> x, y = sp.symbols("x y")
    >>> frame = Rectangle((x, 0, 3), (y, 0, 3)) - Rectangle((x, 1, 2), (y, 1, 2))
    >>> round(clearance(frame, (1, 1), math.pi / 4), 2), clearance(frame, (0, 0), -math.pi / 2)
    (1.41, inf)
    """
    shape = _plane_shape(domain, "clearance")
    if shape is None:
        raise GeometryError(f"clearance() needs a solid shape in the plane. Got {shorten(domain)} instead.")
    reach = float(np.hypot(*np.abs(shape.bounds - np.array(point)[:, None]).max(axis=1)))
    distances = reach * np.arange(1, _RAY + 1) / _RAY
    ray = np.array(point) + distances[:, None] * [math.cos(direction), math.sin(direction)]
    inside = np.flatnonzero(shape.level(ray) > shape.tolerance)
    return float(distances[inside[0]]) if len(inside) else math.inf


def find_cut(domain: Domain, corner: Corner) -> float | None:
    """Return a direction in which a straight line leaves a corner and never meets the domain; None if there is none.

    That is the one that halves the wedge outside, or else the middle of the widest range of directions that will do:
    from the bottom of a slot only those lead out of it that pass through its mouth. Into a closed hole none does.

    Parameters
    ----------
    domain : Domain
    corner : Corner
        A corner of the domain.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Rectangle
    >>> x, y = sp.symbols("x y")
    >>> slotted = Rectangle((x, 0, 3), (y, 0, 3)) - Rectangle((x, 1, 2), (y, 1, 3))
    >>> for corner in corners(slotted):
    ...     print(corner.point, round(math.degrees(find_cut(slotted, corner))))
    (1.0, 1.0) 77
    (2.0, 1.0) 103
    """

    def leaves(turn: float) -> bool:
        return math.isinf(clearance(domain, corner.point, turn))

    half = math.pi - corner.angle / 2
    turns = corner.direction + half * np.linspace(-1.0, 1.0, 2 * _FAN + 1)[1:-1]
    # Its neighbours are asked too: a line that grazes another corner will not do.
    if all(leaves(float(turn)) for turn in turns[_FAN - 2 : _FAN + 1]):
        return corner.direction
    free = np.array([leaves(float(turn)) for turn in turns])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], free, [False]])))
    if not len(edges):
        return None
    first, stop = max(edges.reshape(-1, 2), key=lambda run: int(run[1] - run[0]))
    return math.remainder(float(turns[first] + turns[stop - 1]) / 2, 2 * math.pi)


def _plane_shape(domain: object, owner: str) -> Region | None:
    if not isinstance(domain, Domain):
        raise GeometryError(f"The 'domain' parameter of {owner} must be a domain. Got {shorten(domain)} instead.")
    shape = domain.domain if isinstance(domain, Product) else domain
    return shape if isinstance(shape, Region) and shape.dimension == 2 else None


def _vertices(shape: Region) -> FloatArray:
    """Return the ends of all smooth pieces of the boundary, each once; they need not be corners."""
    distinct: list[FloatArray] = []
    for patch in shape.boundary.patches:
        for end in ends(patch):
            if all(math.dist(end, other) > 10 * shape.tolerance for other in distinct):
                distinct.append(end)
    return np.array(distinct).reshape(-1, 2)


def _tangent_wedges(shape: Region, point: FloatArray, radius: float) -> list[tuple[float, float]]:
    """Return the wedges of the shape at a point, from two small circles: curved sides turn in proportion to them."""
    large, small = (_wedges(shape, point, r) for r in (radius, radius / 2))
    if len(large) != len(small):
        return small
    pairs = zip(np.ravel(large), np.ravel(small), strict=True)
    extrapolated = [2 * near - far if abs(near - far) < 0.1 else near for far, near in pairs]
    return [(float(a), float(b)) for a, b in np.reshape(extrapolated, (-1, 2))]


def _wedges(shape: Region, point: FloatArray, radius: float) -> list[tuple[float, float]]:
    """Return the ranges of angle in which a circle around a point lies in the shape."""

    def inside(angle: FloatArray) -> BoolArray:
        circle = point + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.asarray(shape.level(circle) > 0.0)

    # An odd start keeps the grid off the axes, where edges like to be.
    angles = 0.1234 + 2 * math.pi * np.arange(_CIRCLE + 1) / _CIRCLE
    held = inside(angles)
    held[-1] = held[0]
    left = np.flatnonzero(held[1:] != held[:-1])
    low, width = angles[left], float(angles[1] - angles[0])
    steps = np.arange(1, _SECTIONS)
    for _ in range(_ROUNDS if len(left) else 0):
        width /= _SECTIONS
        tried = low[:, None] + width * steps
        same = inside(tried.ravel()).reshape(tried.shape) == held[left][:, None]
        low = low + width * np.logical_and.accumulate(same, axis=1).sum(axis=1)
    crossings = low + width / 2
    if held[0]:
        crossings = np.concatenate([crossings[1:], crossings[:1] + 2 * math.pi])
    return [(float(a), float(b)) for a, b in crossings.reshape(-1, 2)]


def _subtracted(shape: Region) -> list[Region]:
    """Return the regions taken away anywhere in a tree of combinations, unions of them apart."""
    if not isinstance(shape, Combination):
        return []
    first, second = shape._operands
    return _subtracted(first) + (_members(second) if shape.operation == "difference" else _subtracted(second))


def _members(region: Region) -> list[Region]:
    if isinstance(region, Combination) and region.operation == "union":
        return [member for operand in region._operands for member in _members(operand)]
    return [region]


@dataclass(frozen=True, eq=False)
class _Rim:
    """What lies just outside a subtracted region: other such regions, and nothing else but the shape if closed."""

    closed: bool
    meets: BoolArray
    hidden: bool


def _rim(shape: Region, region: Region, regions: list[Region]) -> _Rim:
    points, normals, _ = region.boundary.quadrature(_BOUNDARY_POINTS)
    step = (_STEP * shape.thickness + 4 * shape.rounding) * normals
    covered = np.array([other.level(points + step) >= 0.0 for other in regions])
    covered[regions.index(region)] = False
    surrounded = (shape.level(points + step) > 0.0) | covered.any(axis=0)
    closed = bool(surrounded.all() and (shape.level(points - step) < 0.0).all())
    return _Rim(closed, np.asarray(covered.any(axis=1)), bool(covered.all(axis=1).any()))


def _hole(region: Region) -> Hole:
    if isinstance(region, Ball):
        return Hole((region.center[0], region.center[1]), region.radius)
    if isinstance(region, Box):
        middle = region.bounds.mean(axis=1)
        return Hole((float(middle[0]), float(middle[1])), region.thickness / 2)
    points, weights = region.quadrature(_RAY)
    center = (weights @ points)[None, :] / weights.sum()
    depth = region.level(center)
    if depth[0] < 0.1 * region.thickness:
        levels = region.level(points)
        deepest = int(levels.argmax())
        center, depth = points[[deepest]], levels[[deepest]]
    # A level is the distance from the boundary only near it.
    rim, _, _ = region.boundary.quadrature(_RAY)
    radius = min(float(depth[0]), float(np.hypot(*(rim - center).T).min()))
    return Hole((float(center[0, 0]), float(center[0, 1])), radius)
