"""Where a quantity is taken: in the domain or a region of it, on a part of the boundary, or across an interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_number, shorten
from pibls.errors import GeometryError, InputError
from pibls.geometry import Box, Domain, Implicit, Interval, Part, Product, TimeInterval
from pibls.geometry.patch import TimedPatch
from pibls.problem import Interface


@dataclass(frozen=True, eq=False)
class Where:
    """A region or a surface, in space alone at one time, or in all coordinates."""

    domain: Domain  # of the problem; at a time, that of space
    region: Domain | None  # None on a surface
    part: Part | None  # None in a region
    time: float | None
    latest: float  # time that there is
    name: str

    def lifted(self, X: FloatArray) -> FloatArray:
        """Return points with all coordinates of the problem."""
        return X if self.time is None else np.column_stack([X, np.full(len(X), self.time)])

    def along(self, normals: FloatArray) -> FloatArray:
        """Return normals with all coordinates of the problem."""
        return normals if self.time is None else np.column_stack([normals, np.zeros(len(normals))])


def where_of(domain: Domain, over: Any, at: Any, owner: str) -> Where:
    """Return the place that a quantity is taken over, at a time if there is one.

    >>> x, t = sp.symbols("x t")
    >>> rod = Interval((x, 0, 1))
    >>> where_of(rod * TimeInterval(t, 0, 2), rod.left, 1, "integral").part.measure
    1.0
    """
    time = _time(domain, at, owner)
    if time is None:
        space = domain
    else:
        assert isinstance(domain, Product)
        space = domain.domain
    latest = float(domain.bounds[-1, 1])
    if over is None:
        return Where(space, space, None, time, latest, "the domain")
    if isinstance(over, Interface):
        return Where(space, None, _interface(space, over), time, latest, over.place)
    if isinstance(over, Part):
        return Where(space, None, _part(space, over, time, owner), time, latest, repr(over))
    if isinstance(over, Domain) and set(over.coordinates) == set(space.coordinates):
        if over.coordinates != space.coordinates:
            raise InputError(
                f"The 'over' parameter of {owner} has the coordinates {over.coordinates}, and the domain has "
                f"{space.coordinates}. Make it with the same coordinates in the same order."
            )
        return Where(space, over, None, time, latest, repr(over))
    remedy = " Say at=..., a time." if domain.time is not None and time is None else ""
    raise InputError(
        "A quantity is taken over a part of the boundary such as square.left, an Interface, or a shape in the "
        f"coordinates {space.coordinates} of the domain. Got {shorten(over)} instead.{remedy}"
    )


def _time(domain: Domain, at: Any, owner: str) -> float | None:
    if at is None:
        return None
    if not isinstance(domain, Product):
        remedy = "Use value(expression)" if isinstance(domain, TimeInterval) else "Leave it out"
        raise InputError(f"The 'at' parameter of {owner} is a time, for problems in space and time. {remedy}.")
    low, high = domain.limits
    return check_number("at", at, owner, minimum=low, maximum=high)


def _part(space: Domain, part: Part, time: float | None, owner: str) -> Part:
    """Return a part of the boundary, or of a shape inside, as a part of the coordinates that there are."""
    if time is not None and part.domain.has_time:
        bases = [patch.base for patch in part.patches if isinstance(patch, TimedPatch)]
        if len(bases) < len(part.patches):
            raise InputError(f"The 'over' parameter of {owner} is {part}, at a time of its own. Leave out 'at'.")
        return Part(space, part.name, tuple(bases))
    try:
        return space.lift(part)
    except GeometryError:
        if part.domain.coordinates == space.coordinates:
            return _within(space, part)
        if isinstance(space, Product) and part.domain.coordinates == space.domain.coordinates:
            return _timed(space, _within(space.domain, part))
        raise


def _timed(domain: Product, part: Part) -> Part:
    return Part(domain, part.name, tuple(TimedPatch(patch, *domain.limits) for patch in part.patches))


def _within(space: Domain, part: Part) -> Part:
    """Return the part of the boundary of a shape that lies inside a domain."""
    inner = part.where(lambda X: space.contains(X) & ~space.boundary.contains(X))
    return Part(space, part.name, inner.patches)


def _interface(space: Domain, interface: Interface) -> Part:
    """Return an interface as a part of the boundary of the shape inside it."""
    base = space.domain if isinstance(space, Product) else space
    shape = interface.on if isinstance(interface.on, Domain) else _shape(base, interface.on)
    part = _within(base, shape.boundary)
    return _timed(space, part) if isinstance(space, Product) else part


def _shape(space: Domain, condition: sp.Basic) -> Domain:
    """Return the shape inside the box around a domain in which a condition holds."""
    bounds = [(symbol, *own) for symbol, own in zip(space.coordinates, space.bounds.tolist(), strict=True)]
    if isinstance(condition, sp.core.relational.Relational):
        level = condition.gts - condition.lts
        if len(free := list(level.free_symbols)) == 1 and level.is_polynomial(free[0]) and sp.degree(level) == 1:
            axis, place = space.coordinates.index(free[0]), float(sp.solve(level, free[0])[0])
            symbol, low, high = bounds[axis]
            bounds[axis] = (symbol, low, place) if level.coeff(symbol) < 0 else (symbol, place, high)
            return Interval(*bounds) if len(bounds) == 1 else Box(*bounds)
        return Implicit(space.coordinates, -level, [own[1:] for own in bounds])
    raise InputError(f"The interface {condition} is no shape and no inequality. Give Interface a shape with on=....")
