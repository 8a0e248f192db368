"""Quantities that a solve is to find: it goes on until they are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sp

from pibls.checks import refusal
from pibls.quantities.quantity import Quantity
from pibls.quantities.values import ValueFunction
from pibls.solution import Solution


@dataclass(frozen=True, eq=False)
class Goal:
    """A quantity of a solution that is not there yet: call it with one."""

    kind: str
    subject: Any
    others: dict[str, Any]

    def __call__(self, solution: Solution) -> Quantity:
        """Return the quantity of a solution."""
        found: Quantity | ValueFunction = getattr(solution, self.kind)(self.subject, **self.others)
        return found.quantity if isinstance(found, ValueFunction) else found

    def __repr__(self) -> str:
        return f"{self.kind}({self.subject})"


def asked(what: object, parameter: str, owner: str) -> Callable[[Solution], Any]:
    """Return a quantity as a function of solutions: such a function, or an expression of fields at a point.

    >>> import pibls as pb
    >>> x = pb.coordinates("x")
    >>> asked(pb.field("u", x).subs(x, 1), "quantity", "sweep")
    value(u(1))
    """
    if isinstance(what, sp.Expr):
        return Goal("value", what, {})
    if not callable(what):
        rule = "be a function of a solution, a quantity such as pibls.maximum(u), or an expression such as u.subs(x, 0)"
        raise refusal(parameter, owner, rule, what)
    return what


def maximum(expression: Any, over: Any = None, *, at: float | None = None) -> Goal:
    """Return the goal to know the largest value of an expression; see :meth:`pibls.Solution.maximum`.

    Examples
    --------
    >>> import pibls as pb, sympy as sp
    >>> x, y = pb.coordinates("x y")
    >>> u, square = pb.field("u", x, y), pb.Rectangle((x, 0, 1), (y, 0, 1))
    >>> problem = pb.Problem(sp.Eq(-pb.laplacian(u), 2), square, [pb.Dirichlet(u, 0)])
    >>> steepest = pb.maximum(pb.grad(u).dot(pb.grad(u)))
    >>> solution = pb.solve(problem, goal=steepest, tol=1e-4)
    >>> found = steepest(solution)
    >>> round(found.value, 3), found.error < 1e-4 * found.value
    (0.456, True)
    """
    return Goal("maximum", expression, {"over": over, "at": at})


def minimum(expression: Any, over: Any = None, *, at: float | None = None) -> Goal:
    """Return the goal to know the smallest value of an expression; see :func:`maximum`."""
    return Goal("minimum", expression, {"over": over, "at": at})


def integral(expression: Any, over: Any = None, *, at: float | None = None) -> Goal:
    """Return the goal to know an integral; see :meth:`pibls.Solution.integral` and :func:`maximum`."""
    return Goal("integral", expression, {"over": over, "at": at})


def mean(expression: Any, over: Any = None, *, at: float | None = None) -> Goal:
    """Return the goal to know a mean; see :meth:`pibls.Solution.mean` and :func:`maximum`."""
    return Goal("mean", expression, {"over": over, "at": at})


def flow(part: Any, field: Any = None, *, at: float | None = None) -> Goal:
    """Return the goal to know a flow through a part of the boundary; see :meth:`pibls.Solution.flow`."""
    return Goal("flow", part, {"field": field, "at": at})


def first_time(expression: Any, *, at: Any = None, over: Any = None) -> Goal:
    """Return the goal to know when something happens; see :meth:`pibls.Solution.first_time` and :func:`maximum`."""
    return Goal("first_time", expression, {"at": at, "over": over})
