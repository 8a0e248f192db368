"""A problem with something else in the place of its unknowns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp

from pibls.problem import Condition, Problem

__all__ = ["substituted"]


def substituted(problem: Problem, values: Mapping[sp.Symbol, sp.Expr], further: Sequence[sp.Expr] = ()) -> Problem:
    """Return a problem with expressions for its unknown numbers, and further equations if these have fields.

    Unknown functions stay what they are.

    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Dirichlet, coordinates, field, unknown
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> k = unknown("k")
    >>> problem = Problem(u.diff(x, 2) + k * u, Interval((x, 0, 1)), [Dirichlet(u, 1)])
    >>> substituted(problem, {k: sp.Float(2.5)}).equations[0]
    2.5*u(x) + Derivative(u(x), (x, 2))
    """

    def condition(own: Any) -> Any:
        name = "equation" if isinstance(own, Condition) else "u"
        return replace(own, **{name: getattr(own, name).xreplace(values)})

    return Problem(
        [*(equation.xreplace(values) for equation in problem.equations), *further],
        problem.domain,
        [condition(own) for own in problem.conditions],
        # Further fields are not part of what is known to be true.
        None if further else problem.exact,
    )
