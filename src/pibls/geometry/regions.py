"""Data that differ from region to region: shapes as conditions on coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import refusal, shorten
from pibls.errors import GeometryError
from pibls.geometry.ball import Ball
from pibls.geometry.base import Domain
from pibls.geometry.boolean import Combination
from pibls.geometry.box import Box
from pibls.geometry.implicit import Implicit
from pibls.geometry.outline import Outline
from pibls.geometry.product import Extrusion
from pibls.geometry.revolution import Revolution
from pibls.geometry.rings import signed_area
from pibls.geometry.solids import Cone, Cylinder, Torus
from pibls.geometry.star import Star

_FLAT = 1e-12


def per_region(values: Mapping[Domain, Any], otherwise: Any = 0) -> sp.Expr:
    """Return an expression with one value inside each of several shapes, and another one outside all of them.

    Where shapes overlap the first one counts. Across the boundaries of the shapes a solution keeps its values and what
    flows by the equation; cells are cut there.

    Parameters
    ----------
    values
        A number or an expression for each shape.
    otherwise
        The value where no shape is.

    Examples
    --------
    A steel disk in a plate that conducts heat less well.

    >>> import pibls as pb
    >>> x, y = pb.coordinates("x y")
    >>> u = pb.field("u", x, y)
    >>> steel = pb.Disk((x, y), (0, 0), 0.5)
    >>> k = pb.per_region({steel: 50}, 1)
    >>> plate = pb.Rectangle((x, -1, 1), (y, -1, 1))
    >>> problem = pb.Problem(sp.Eq(pb.div(k * pb.grad(u)), 0), plate, [pb.Dirichlet(u, x)])
    >>> solution = pb.solve(problem, tol=1e-4)
    >>> solution.status == "converged", bool(abs(solution([[0, 0]])[0]) < 1e-4)
    (True, True)
    """
    if not isinstance(values, Mapping) or not values:
        raise refusal("values", "per_region", "map shapes to values, such as {disk: 50}", values, error=GeometryError)
    branches = [(_expression(value), inside(shape)) for shape, value in values.items()]
    return sp.Piecewise(*branches, (_expression(otherwise), True))


def _expression(value: Any) -> sp.Expr:
    try:
        found = sp.sympify(value, strict=True)
    except sp.SympifyError:
        found = None
    if not isinstance(found, sp.Expr):
        raise GeometryError(f"per_region takes numbers and expressions as values. Got {shorten(value)} instead.")
    return found


@singledispatch
def inside(shape: Any) -> sp.Basic:
    """Return the condition that a point is inside a shape.

    >>> x, y = sp.symbols("x y", real=True)
    >>> inside(Box((x, 0, 1), (y, 0, 2)) - Ball((x, y), (0, 0), 1))
    (x > 0) & (y > 0) & (x < 1) & (y < 2) & (x**2 + y**2 >= 1)
    """
    raise GeometryError(
        "A region must be a shape with a formula (not a Solid or PointCloud), or several joined by |, & and -. "
        f"Got {shorten(shape)} instead."
    )


@inside.register
def _box(shape: Box) -> sp.Basic:
    bounds = ((s, _number(a), _number(b)) for s, (a, b) in zip(shape.coordinates, shape.bounds, strict=True))
    return sp.And(*(condition for s, a, b in bounds for condition in (s > a, s < b)))


@inside.register
def _ball(shape: Ball) -> sp.Basic:
    parts = zip(shape.coordinates, shape.center, strict=True)
    return sum((s - _number(c)) ** 2 for s, c in parts) < _number(shape.radius) ** 2


@inside.register
def _star(shape: Star) -> sp.Basic:
    if not isinstance(shape.radius, sp.Expr):
        raise GeometryError("A Star is a region only if its radius is an expression of the angle, not a function.")
    x, y = (s - _number(c) for s, c in zip(shape.coordinates, shape.center, strict=True))
    radius = shape.radius.subs({angle: sp.atan2(y, x) for angle in shape.radius.free_symbols})
    return sp.sqrt(x**2 + y**2) < radius


@inside.register
def _combination(shape: Combination) -> sp.Basic:
    one, two = inside(shape.first), inside(shape.second)
    if shape.operation == "union":
        return sp.Or(one, two)
    return sp.And(one, two if shape.operation == "intersection" else sp.Not(two))


@inside.register
def _implicit(shape: Implicit) -> sp.Basic:
    if not isinstance(shape.function, sp.Expr):
        raise GeometryError("An Implicit is a region only if it is given by an expression, not a function.")
    return shape.function < 0


@inside.register
def _outline(shape: Outline) -> sp.Basic:
    rings = [_within(shape.coordinates, np.array(ring)) for ring in shape.rings]
    return sp.Xor(*rings) if len(rings) > 1 else rings[0]


@inside.register
def _extrusion(shape: Extrusion) -> sp.Basic:
    low, high = map(_number, shape.limits)
    height = shape.coordinates[-1]
    return sp.And(inside(shape.base), height > low, height < high)


@inside.register
def _revolution(shape: Revolution) -> sp.Basic:
    distance = next(symbol for symbol in shape.section.coordinates if symbol != shape.axis)
    across = sp.sqrt(sum(symbol**2 for symbol in shape.coordinates if symbol != shape.axis))
    return inside(shape.section).subs(distance, across)


@inside.register
def _tapered(shape: Cylinder | Cone) -> sp.Basic:
    along, distance = _axial(shape.coordinates, shape.start, shape._frame.axis)
    first, last = map(_number, shape.ends)
    height = _number(shape.height)
    return sp.And(along > 0, along < height, distance < (first + (last - first) * along / height) ** 2)


@inside.register
def _torus(shape: Torus) -> sp.Basic:
    along, distance = _axial(shape.coordinates, shape.center, shape.axis)
    return (sp.sqrt(distance) - _number(shape.radius)) ** 2 + along**2 < _number(shape.tube) ** 2


def _axial(symbols: tuple[sp.Symbol, ...], origin: Any, axis: Any) -> tuple[sp.Expr, sp.Expr]:
    """Return the position along an axis, and the square of the distance from it."""
    offset = [symbol - _number(value) for symbol, value in zip(symbols, origin, strict=True)]
    along = sum(_number(share) * value for share, value in zip(axis, offset, strict=True))
    return along, sp.expand(sum(value**2 for value in offset) - along**2)


def _within(symbols: tuple[sp.Symbol, ...], vertices: Any) -> sp.Basic:
    """Return the condition of a polygon: its convex hull, without the pockets between the two."""
    from scipy.spatial import ConvexHull

    points = vertices if signed_area(vertices) > 0 else vertices[::-1]
    corners = ConvexHull(points).vertices.tolist()
    x, y = symbols
    conditions = []
    for start, stop in zip(corners, [*corners[1:], corners[0]], strict=True):
        (a, b), (c, d) = ([_number(value) for value in points[k]] for k in (start, stop))
        conditions.append((c - a) * (y - b) - (d - b) * (x - a) > 0)
        pocket = points[[k % len(points) for k in range(start, stop + 1 + (stop < start) * len(points))]]
        if abs(signed_area(pocket)) > _FLAT * np.ptp(points, axis=0).prod():
            conditions.append(sp.Not(_within(symbols, pocket)))
    return sp.And(*conditions)


def _number(value: float) -> sp.Expr:
    """Return a number as it is written: 0.1 is a tenth."""
    return sp.Rational(repr(float(value)))
