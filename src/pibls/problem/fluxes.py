"""What flows by an equation that is written as a divergence."""

from __future__ import annotations

import sympy as sp

from pibls.problem.conditions import residual_of
from pibls.problem.lowering import Form
from pibls.problem.operators import Divergence, Laplacian, SpaceDerivative, resolve
from pibls.problem.problem import Problem
from pibls.problem.statements import lowered
from pibls.problem.symbols import normal

__all__ = ["normal_flux"]


def normal_flux(problem: Problem, number: int) -> Form | None:
    """Return what flows along the normal by an equation, or None if it does not say so by divergences alone.

    Examples
    --------
    >>> from pibls import Dirichlet, Rectangle, coordinates, div, field, grad
    >>> x, y = coordinates("x y")
    >>> u = field("u", x, y)
    >>> problem = Problem(sp.Eq(-div(x * grad(u)), 1), Rectangle((x, 1, 2), (y, 0, 1)), [Dirichlet(u, 0)])
    >>> [(term.multi_index, term.coefficient) for term in normal_flux(problem, 0).terms]
    [((1, 0), -n_x*x), ((0, 1), -n_y*x)]
    """
    residual = sp.expand(residual_of(problem.equations[number], "the equation"))
    space, coordinates = problem.domain.space, set(problem.domain.coordinates)
    flux, rest = sp.S.Zero, residual
    for operator in sorted(residual.atoms(Divergence, Laplacian), key=sp.default_sort_key):
        factor = residual.coeff(operator)
        if factor.free_symbols & coordinates or not factor.is_number:
            return None
        entries = operator.args
        if isinstance(operator, Laplacian):
            entries = tuple(SpaceDerivative(operator.args[0], symbol) for symbol in space)
        elif len(entries) != len(space):
            return None
        flux += factor * sum(normal(symbol) * entry for symbol, entry in zip(space, entries, strict=True))
        rest -= factor * operator
    if flux == 0 or rest.has(Divergence, Laplacian):
        return None
    rest = resolve(rest, space)
    if any(derivative.derivative_count > 1 for derivative in rest.atoms(sp.Derivative)):
        return None
    return lowered(flux, problem.domain, "the flux", normals=True)
