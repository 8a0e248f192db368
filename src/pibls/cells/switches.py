"""Where expressions switch from one branch to another: planes across an axis, through which cells are split.

Across such a plane a solution keeps its values and its flux, the highest derivative times its coefficient, not its
slope.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from pibls.checks import FloatArray
from pibls.problem import Problem

__all__ = ["hidden_jump", "switching_planes"]

_REAL = 1e-9


def switching_planes(problem: Problem) -> FloatArray:
    """Return the planes at which data of a problem switch: one row each, NaN along the axes that they extend in.

    Examples
    --------
    >>> from pibls import Dirichlet, Interval, coordinates, field
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> k = sp.Piecewise((1, x < sp.Rational(1, 3)), (10, True))
    >>> switching_planes(Problem(k * u.diff(x, 2), Interval((x, 0, 1)), [Dirichlet(u, x)])).round(3)
    array([[0.333]])
    """
    symbols = problem.domain.coordinates
    found: dict[tuple[int, float], FloatArray] = {}
    for statement in problem.statements:
        for edge in _edges([statement.form.residual]):
            for axis, place in _planes(edge, symbols) or ():
                if problem.domain.bounds[axis, 0] < place < problem.domain.bounds[axis, 1]:
                    row = np.full(len(symbols), np.nan)
                    row[axis] = place
                    found[axis, place] = row
    return np.array(list(found.values())).reshape(-1, len(symbols))


def hidden_jump(problem: Problem) -> str:
    """Say which coefficient of a highest derivative jumps elsewhere than at a plane across an axis, if one does."""
    symbols = problem.domain.coordinates
    for statement in problem.statements:
        if not statement.is_equation:
            continue
        top = statement.form.order
        for term in statement.form.terms:
            if term.order == top and any(_planes(edge, symbols) is None for edge in _edges([term.coefficient])):
                return (
                    f"The coefficient {term.coefficient} jumps along a curve, and what flows across it is not "
                    "continued: use one that changes over a short distance instead."
                )
    return ""


def _edges(expressions: Iterable[sp.Expr]) -> list[sp.Expr]:
    """Return the expressions whose sign decides which branch others take."""
    found: list[sp.Expr] = []
    for expression in expressions:
        found += [relation.lhs - relation.rhs for relation in expression.atoms(Relational)]
        found += [call.args[0] for call in expression.atoms(sp.Abs, sp.sign, sp.Heaviside)]
        for call in expression.atoms(sp.Max, sp.Min):
            found += [one - two for k, one in enumerate(call.args) for two in call.args[k + 1 :]]
    return found


def _planes(edge: sp.Expr, symbols: tuple[sp.Symbol, ...]) -> list[tuple[int, float]] | None:
    """Return the axes and places of the planes on which an expression is zero, or None if it is zero elsewhere too."""
    found: list[tuple[int, float]] = []
    for part in _signed(edge):
        if part.free_symbols - set(symbols) or not part.is_polynomial(*symbols):
            return None
        for factor, _ in sp.factor_list(part)[1]:
            own = [symbol for symbol in symbols if symbol in factor.free_symbols]
            if len(own) != 1:
                return None
            roots = np.roots([float(c) for c in sp.Poly(factor, own[0]).all_coeffs()])
            real = roots.real[np.abs(roots.imag) <= _REAL * np.abs(roots)]
            found += [(symbols.index(own[0]), float(root)) for root in real]
    return found


def _signed(edge: sp.Expr) -> list[sp.Expr]:
    """Return an expression with either sign of every absolute value in it."""
    inner = next(iter(edge.atoms(sp.Abs)), None)
    if inner is None:
        return [edge]
    return [one for sign in (1, -1) for one in _signed(edge.xreplace({inner: sign * inner.args[0]}))]
