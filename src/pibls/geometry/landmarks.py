"""Where the solutions on a domain are not smooth: the corners of plane ones, and edges in space."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from pibls.checks import BoolArray, FloatArray, check_number, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Domain, Region
from pibls.geometry.box import Box
from pibls.geometry.outline import Outline
from pibls.geometry.product import Product
from pibls.geometry.slices import ends
from pibls.quadrature.roots import switched

_SMALLEST_TURN = 1e-6
_CIRCLE, _START = 720, 0.1234
_CIRCLE_RADIUS = 1e-4
_EDGE_SAMPLES, _EDGE_NEIGHBOURS = 3000, 8
_BEFORE, _TURNED = 0.1, 0.8  # share of a distance, and cosine between normals


@dataclass(frozen=True)
class Corner:
    """A point where two smooth pieces of the boundary meet at an angle."""

    point: tuple[float, float]
    angle: float  # of the inside, in radians
    direction: float  # that halves the wedge outside the domain, in radians from the first axis


def corners(domain: Domain, above: float = math.pi) -> tuple[Corner, ...]:
    """Return the corners of a plane domain with an interior angle above a limit: by default the re-entrant ones.

    Those of the space factor for a product with time; none for domains that are not solid shapes in the plane. Between
    curves the angle is that of the tangents.

    >>> import sympy as sp
    >>> from pibls.geometry import Rectangle
    >>> x, y = sp.symbols("x y")
    >>> bracket = Rectangle((x, -1, 1), (y, -1, 1)) - Rectangle((x, 0, 1), (y, -1, 0))
    >>> [corner] = corners(bracket)
    >>> corner.point, round(corner.angle / math.pi, 9), round(corner.direction / math.pi, 9)
    ((0.0, 0.0), 1.5, -0.25)
    """
    limit = check_number("above", above, "corners", minimum=0.0, error=GeometryError)
    if not isinstance(domain, Domain):
        raise GeometryError(f"The 'domain' parameter of corners must be a domain. Got {shorten(domain)} instead.")
    shape = domain.domain if isinstance(domain, Product) else domain
    if not isinstance(shape, Region) or shape.dimension != 2:
        return ()
    found = (Corner((a, b), angle, math.remainder(way, 2 * math.pi)) for (a, b), angle, way in _angles(shape))
    return tuple(c for c in found if c.angle > limit + _SMALLEST_TURN and abs(c.angle - math.pi) > _SMALLEST_TURN)


def _angles(shape: Region) -> Iterator[tuple[tuple[float, float], float, float]]:
    """Yield vertices with the angle of the inside, and the direction that halves the outside."""
    if isinstance(shape, Outline):
        yield from zip(*(values.tolist() for values in shape.wedges), strict=True)
    elif isinstance(shape, Box):
        sides = [((low, -1.0), (high, 1.0)) for low, high in zip(shape.lower, shape.upper, strict=True)]
        yield from (((a, b), math.pi / 2, math.atan2(up, right)) for (a, right), (b, up) in product(*sides))
    else:
        candidates = _vertices(shape)
        for i, point in enumerate(candidates):
            gaps = np.hypot(*(np.delete(candidates, i, axis=0) - point).T)
            radius = min(_CIRCLE_RADIUS * shape.thickness, 0.25 * float(gaps.min(initial=np.inf)))
            for start, stop in _tangent_wedges(shape, point, max(radius, 1e4 * shape.rounding)):
                yield (float(point[0]), float(point[1])), stop - start, (start + stop) / 2 + math.pi


def has_inner_edges(domain: Domain) -> bool:
    """Tell whether a solid in space has edges, or bends as sharp as edges, at which it is more than half around.

    Samples of the boundary are compared with their nearest neighbours: beside such an edge one lies before the other's
    plane, and their normals differ.

    >>> import sympy as sp
    >>> from pibls.geometry import Box
    >>> x, y, z = sp.symbols("x y z")
    >>> cube = Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    >>> has_inner_edges(cube), has_inner_edges(cube - Box((x, 0.5, 2), (y, -1, 2), (z, 0.5, 2)))
    (False, True)
    """
    shape = domain.domain if isinstance(domain, Product) else domain
    if not isinstance(shape, Region) or shape.dimension != 3:
        return False
    from scipy.spatial import cKDTree  # takes as long to import as all of the geometry

    X, normals = shape.boundary.sample(_EDGE_SAMPLES, "kronecker")
    gaps, near = cKDTree(X).query(X, k=_EDGE_NEIGHBOURS)
    before = np.einsum("nkd,nd->nk", X[near] - X[:, None], normals) > _BEFORE * gaps
    turned = np.einsum("nkd,nd->nk", normals[near], normals) < _TURNED
    return bool((before & turned).any())


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

    def inside(turn: FloatArray, _: object) -> BoolArray:
        # An odd start keeps the scan off the axes, where edges like to be; it ends where it began.
        angle = _START + turn % (2 * math.pi)
        circle = point + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.asarray(shape.level(circle) > 0.0)

    _, low, high, before = switched(inside, 2 * math.pi * np.arange(_CIRCLE + 1)[None] / _CIRCLE)
    crossings = _START + (low + high) / 2
    if before[:1].any():
        crossings = np.concatenate([crossings[1:], crossings[:1] + 2 * math.pi])
    return [(float(a), float(b)) for a, b in crossings.reshape(-1, 2)]
