"""The flux of an equation: of a divergence as it is written, else coefficients of second derivatives times slopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp

from pibls.errors import ProblemError
from pibls.problem.conditions import residual_of
from pibls.problem.domain import DomainLike
from pibls.problem.evaluate import compile_function
from pibls.problem.lowering import Form
from pibls.problem.measured import expanded
from pibls.problem.operators import Divergence, Laplacian, SpaceDerivative, resolve
from pibls.problem.symbols import Field, normal
from pibls.problem.unknown_numbers import Unknown

_SAMPLES = 64


def normal_flux(equation: object, space: tuple[sp.Symbol, ...]) -> sp.Expr | None:
    """Return the flux of an equation along the normal, or None if its divergences alone do not tell.

    >>> from pibls import coordinates, div, field, grad
    >>> x, y = coordinates("x y")
    >>> u = field("u", x, y)
    >>> resolve(normal_flux(sp.Eq(-div(x * grad(u)), 1), (x, y)), (x, y))
    -n_x*x*Derivative(u(x, y), x) - n_y*x*Derivative(u(x, y), y)
    """
    flux, rest = divided(equation, space)
    others = ([count for symbol, count in d.variable_count if symbol in space] for d in rest.atoms(sp.Derivative))
    return None if flux is None or any(sum(own) > 1 for own in others) else expanded(flux)


def divided(equation: object, space: tuple[sp.Symbol, ...]) -> tuple[sp.Expr | None, sp.Expr]:
    """Return the flux by the divergences of an equation, if they tell, and the rest of the equation."""
    whole = residual_of(equation, "the equation")
    # Sources may be long, and have no divergences.
    divergences = [term for term in sp.Add.make_args(whole) if term.has(Divergence, Laplacian)]
    residual = expanded(sp.Add(*divergences))
    flux, rest = sp.S.Zero, residual + sp.Add(*(term for term in sp.Add.make_args(whole) if term not in divergences))
    for operator in sorted(residual.atoms(Divergence, Laplacian), key=sp.default_sort_key):
        factor = residual.coeff(operator)
        entries = operator.args
        if isinstance(operator, Laplacian):
            entries = tuple(SpaceDerivative(operator.args[0], symbol) for symbol in space)
        if not factor.is_number or len(entries) != len(space):
            return None, resolve(whole, space)
        flux += factor * sum(normal(symbol) * entry for symbol, entry in zip(space, entries, strict=True))
        rest -= factor * operator
    unknown = flux == 0 or rest.has(Divergence, Laplacian)
    return (None, resolve(whole, space)) if unknown else (flux, resolve(rest, space))


def carriers(forms: Sequence[Form], names: Sequence[str], space: int) -> dict[str, int]:
    """Return for every field whose equation is of second order in space the number of the equation by which it flows.

    >>> from pibls.problems import everyday
    >>> problem = everyday()["cantilever"]()
    >>> carriers([s.form for s in problem.statements if s.is_equation], problem.field_names, 2)
    {'u': 0, 'v': 1}
    """
    found: dict[str, int] = {}
    for name in names:
        own = [[t for t in form.terms if t.field == name] for form in forms]
        order = max((max(t.multi_index[:space], default=0) for terms in own for t in terms), default=0)
        for number, terms in enumerate(own):
            pure = any(t.order == 2 == max(t.multi_index) for t in terms)
            if order == 2 and pure and number not in found.values():
                found[name] = number
                break
    return found


def flux_of(field: Any, equations: Sequence[object], forms: Sequence[Form], domain: DomainLike) -> sp.Expr:
    """Return the flux of a field along the normal, with a sign by which it grows with the field's own slope.

    >>> from pibls.problems import poisson
    >>> problem = poisson()
    >>> forms = [s.form for s in problem.statements if s.is_equation]
    >>> u, x = problem.fields[0], problem.domain.space
    >>> resolve(flux_of(u, problem.equations, forms, problem.domain), x).coeff(u.diff(x[0]))
    n_x
    """
    return _outward(field, equations, forms, domain)[0]


def traction_of(field: Any, equations: Sequence[object], forms: Sequence[Form], domain: DomainLike) -> sp.Expr:
    """Return the force per area along one field of a vector: its flux, and the pressures that push in its equation.

    >>> from pibls.problems import stokes
    >>> problem = stokes()
    >>> forms = [s.form for s in problem.statements if s.is_equation]
    >>> resolve(traction_of(problem.fields[1], problem.equations, forms, problem.domain), problem.domain.space)
    -n_x*p(x, y) + n_x*Derivative(u(x, y), x) + n_y*Derivative(u(x, y), y)
    """
    flux, number, sign = _outward(field, equations, forms, domain)
    own = carriers(forms, [call.label for call in _fields_of(forms).values()], len(domain.space))
    _, rest = divided(equations[number], domain.space)
    for slope in sorted(rest.atoms(sp.Derivative), key=sp.default_sort_key):
        (symbol, *_), order = slope.variables, slope.derivative_count
        if order == 1 and isinstance(slope.expr, Field) and slope.expr.label not in own and symbol in domain.space:
            flux += sign * rest.coeff(slope) * normal(symbol) * slope.expr
    return flux


def _fields_of(forms: Sequence[Form]) -> dict[str, Field]:
    return {call.label: call for form in forms for call in form.expression.atoms(Field)}


def _outward(
    field: Any, equations: Sequence[object], forms: Sequence[Form], domain: DomainLike
) -> tuple[sp.Expr, int, int]:
    """Return the flux of a field, the number of its equation, and the sign that the flux has in it."""
    space = domain.space
    fields = _fields_of(forms)
    number = carriers(forms, list(fields), len(space)).get(field.label)
    if number is None:
        raise ProblemError(
            f"The flux of {field.label} is not known: no equation of its own has second derivatives of it in space. "
            "Write the condition with derivatives instead."
        )
    form, symbols = forms[number], domain.coordinates

    def node(term: Any) -> sp.Expr:
        return fields[term.field].diff(*zip(symbols, term.multi_index, strict=True))

    values = {term.slot: node(term) for term in form.terms}
    second = [term for term in form.terms if term.order == 2]
    flux = normal_flux(equations[number], space)
    if flux is None:
        flux = sp.S.Zero
        for term in second:
            axes = [s for s, count in zip(symbols, term.multi_index, strict=True) for _ in range(count)]
            both = (axes, axes[::-1])
            slope = sum(normal(one) * fields[term.field].diff(two) for one, two in both) / 2
            flux += term.coefficient.xreplace(values) * slope
    own = [term.coefficient for term in second if term.field == field.label and max(term.multi_index) == 2]
    # Where a coefficient depends on the solution, its sign is that at one; where on numbers, that at a first guess.
    plain = sum(own).xreplace(dict.fromkeys(values, sp.S.One))
    plain = plain.xreplace({symbol: sp.Float(symbol.first_guess) for symbol in plain.atoms(Unknown)})
    size = float(np.mean(compile_function(plain, symbols)(domain.sample(_SAMPLES, "kronecker"))))
    return (flux, number, 1) if size >= 0 else (expanded(-flux), number, -1)
