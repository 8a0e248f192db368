"""A problem with the numbers that were found in the place of its unknowns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sympy as sp

from pibls.checks import FloatArray
from pibls.problem import Condition, Problem

__all__ = ["substituted"]


def substituted(problem: Problem, vector: FloatArray) -> Problem:
    """Return a problem with numbers for its unknowns; unknown functions stay what they are.

    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Dirichlet, coordinates, field, unknown
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> problem = Problem(u.diff(x, 2) + unknown("k") * u, Interval((x, 0, 1)), [Dirichlet(u, 1)])
    >>> substituted(problem, [2.5]).equations[0]
    2.5*u(x) + Derivative(u(x), (x, 2))
    """
    values = {k: sp.Float(float(v)) for k, v in zip(problem.parameters, vector, strict=False)}

    def condition(own: Any) -> Any:
        name = "equation" if isinstance(own, Condition) else "u"
        return replace(own, **{name: getattr(own, name).xreplace(values)})

    return Problem(
        [equation.xreplace(values) for equation in problem.equations],
        problem.domain,
        [condition(own) for own in problem.conditions],
        problem.exact,
    )
