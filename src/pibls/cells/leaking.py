"""Equations that say what flows add up to, beside values on the boundary that say what goes through it."""

from __future__ import annotations

from typing import cast

import numpy as np

from pibls.checks import FloatArray
from pibls.geometry import Domain
from pibls.problem import Across, OnPart, Problem, Statement

__all__ = ["leaking"]

_NODES = 300, 1000
_SAME, _PLAIN = 1e-3, 1e-3  # shares: of what is covered, and of what flows that matters
_UNSURE = 5.0  # what a rule of many points may be off, over how far it is from one of fewer


def leaking(problem: Problem, tol: float = _PLAIN) -> str:
    """Say how far what an equation of first order makes is from what goes through the boundary, if that is given.

    An equation such as ∇·u = 0 says what flows out of the domain in all. Where values of the fields on the boundary
    say something else there is no solution, and least squares would find a compromise.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Rectangle
    >>> from pibls.problem import Dirichlet, coordinates, field
    >>> x, y = coordinates("x y")
    >>> u, v, box = field("u", x, y), field("v", x, y), Rectangle((x, 0, 1), (y, 0, 1))
    >>> mass = sp.Eq(u.diff(x) + v.diff(y), 0)
    >>> rest = sp.Eq(u.diff(y) - v.diff(x), 0)
    >>> leaking(Problem([mass, rest], box, [Dirichlet(u, 1), Dirichlet(v, 0)]))
    ''
    >>> leaking(Problem([mass, rest], box, [Dirichlet(u, x), Dirichlet(v, 0)])).partition(", and ")[2]
    'by the values on the boundary 1 flows out. Check values and their signs.'
    """
    if problem.domain.time is not None or any(isinstance(s.place, Across) for s in problem.statements):
        return ""
    for equation in problem.statements:
        if equation.is_equation and _is_flow(equation):
            few, many = (_balance(problem, equation, nodes) for nodes in _NODES)
            made, out, size = many
            unsure = abs(made - few[0]) + abs(out - few[1])
            if abs(made - out) > max(min(tol, _PLAIN) * size, _UNSURE * unsure):
                return (
                    f"The equations and conditions contradict each other: {equation.name} makes {made:.6g}, and by the "
                    f"values on the boundary {out:.6g} flows out. Check values and their signs."
                )
    return ""


def _is_flow(equation: Statement) -> bool:
    """Tell whether an equation has derivatives of first order and nothing else, with constant coefficients."""
    form = equation.form
    if not form.is_linear or any(term.order != 1 for term in form.terms):
        return False
    return all(function.constant is not None for function in form.coefficient_functions)


def _balance(problem: Problem, equation: Statement, nodes: int) -> tuple[float, float, float]:
    """Return what an equation makes, what flows out, and what flows at all; zeros where that is not known."""
    domain = cast(Domain, problem.domain)
    directions: dict[str, FloatArray] = {}
    for term, function in zip(equation.form.terms, equation.form.coefficient_functions, strict=True):
        own = directions.setdefault(term.field, np.zeros(len(domain.coordinates)))
        own += np.array(term.multi_index) * function(np.zeros((1, len(own))))[0]
    _, normals, weights = domain.boundary.quadrature(nodes)
    through, out, size = dict.fromkeys(directions, 0.0), 0.0, 0.0
    for statement in problem.statements:
        form = statement.form
        given = isinstance(statement.place, OnPart) and form.is_linear and [term.order for term in form.terms] == [0]
        if not given or form.terms[0].field not in directions or not isinstance(statement.place, OnPart):
            continue
        name = form.terms[0].field
        X, n, w = statement.place.part.quadrature(nodes)
        across = w * (n @ directions[name])
        values = -form.source_function(X, n) / form.coefficient_functions[0](X, n)
        through[name] += float(np.abs(across).sum())
        out, size = out + float(across @ values), size + float(np.abs(across * values).sum())
    for name, direction in directions.items():
        whole = float(weights @ np.abs(normals @ direction))
        if abs(through[name] - whole) > _SAME * whole:
            return 0.0, 0.0, 0.0
    X, w = domain.quadrature(nodes)
    source = -w * equation.form.source_function(X)
    return float(source.sum()), out, size + float(np.abs(source).sum())
