"""Data that differ from region to region."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

from pibls.checks import refusal, shorten
from pibls.errors import GeometryError
from pibls.geometry.base import Domain


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
    if not isinstance(values, Mapping) or not values or not all(isinstance(shape, Domain) for shape in values):
        rule = "map shapes to values, such as {disk: 50}; for conditions on coordinates use sp.Piecewise"
        raise refusal("values", "per_region", rule, values, error=GeometryError)
    branches = [(_expression(value), shape.condition) for shape, value in values.items()]
    return sp.Piecewise(*branches, (_expression(otherwise), True))


def _expression(value: Any) -> sp.Expr:
    try:
        found = sp.sympify(value, strict=True)
    except sp.SympifyError:
        found = None
    if not isinstance(found, sp.Expr):
        raise GeometryError(f"per_region takes numbers and expressions as values. Got {shorten(value)} instead.")
    return found
