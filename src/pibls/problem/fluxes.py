"""The flux of an equation: of a divergence as it is written, else coefficients of second derivatives times slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from pibls.errors import ProblemError
from pibls.problem.conditions import residual_of
from pibls.problem.domain import DomainLike
from pibls.problem.evaluate import compile_function
from pibls.problem.lowered_equations import lowered
from pibls.problem.lowering import Form
from pibls.problem.measured import expanded
from pibls.problem.operators import Divergence, Laplacian, SpaceDerivative, resolve
from pibls.problem.symbols import Field, normal
from pibls.problem.unknown_numbers import Unknown

if TYPE_CHECKING:
    from pibls.problem.statements import Statement

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
    told = flux is not None and flux.has(Field) and not any(sum(own) > 1 for own in others)
    return expanded(flux) if told else None


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


@dataclass(frozen=True, eq=False)
class Laws:
    """The equations of a problem, as they were given and as statements, and the fluxes by which fields flow.

    >>> from pibls.problems import everyday, poisson, stokes
    >>> everyday()["cantilever"]().laws.carriers
    {'u': 0, 'v': 1}
    >>> problem = poisson()
    >>> u, x = problem.fields[0], problem.domain.space
    >>> resolve(problem.laws.flux(u), x).coeff(u.diff(x[0]))
    n_x
    >>> problem = stokes()
    >>> resolve(problem.laws.traction(problem.fields[1]), problem.domain.space)
    -n_x*p(x, y) + n_x*Derivative(u(x, y), x) + n_y*Derivative(u(x, y), y)
    """

    given: Sequence[object]
    statements: tuple[Statement, ...]
    domain: DomainLike

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The equations as forms."""
        return tuple(statement.form for statement in self.statements)

    @cached_property
    def fluxes(self) -> tuple[Form | None, ...]:
        """The flux along the normal by each equation that is written as a divergence, as a form."""
        given = [normal_flux(equation, self.domain.space) for equation in self.given]
        return tuple(None if own is None else lowered(own, self.domain, "the flux", normals=True) for own in given)

    @cached_property
    def carriers(self) -> dict[str, int]:
        """The number of the equation by which each field flows, for fields of second order in space."""
        space, found = len(self.domain.space), dict[str, int]()
        for name in dict.fromkeys(name for form in self.forms for name in sorted(form.fields)):
            own = [[t for t in form.terms if t.field == name] for form in self.forms]
            order = max(max(t.multi_index[:space], default=0) for terms in own for t in terms)
            for number, terms in enumerate(own):
                pure = any(t.order == 2 == max(t.multi_index) for t in terms)
                if order == 2 and pure and number not in found.values():
                    found[name] = number
                    break
        return found

    def flux(self, field: Any) -> sp.Expr:
        """Return the flux of a field along the normal, with a sign by which it grows with the field's own slope."""
        return self._outward(field)[0]

    def traction(self, field: Any) -> sp.Expr:
        """Return the force per area along one field of a vector: its flux, and pressures that push in its equation."""
        flux, number, sign = self._outward(field)
        _, rest = divided(self.given[number], self.domain.space)
        for slope in sorted(rest.atoms(sp.Derivative), key=sp.default_sort_key):
            (symbol, *_), pressure = slope.variables, slope.expr
            free = isinstance(pressure, Field) and pressure.label not in self.carriers
            if slope.derivative_count == 1 and free and symbol in self.domain.space:
                flux += sign * rest.coeff(slope) * normal(symbol) * pressure
        return flux

    def _outward(self, field: Any) -> tuple[sp.Expr, int, int]:
        """Return the flux of a field, the number of its equation, and the sign that the flux has in it."""
        space, symbols = self.domain.space, self.domain.coordinates
        number = self.carriers.get(field.label)
        if number is None:
            raise ProblemError(
                f"The flux of {field.label} is not known: no equation of its own has second derivatives of it in "
                "space. Write the condition with derivatives instead."
            )
        form = self.forms[number]
        fields = {call.label: call for call in form.expression.atoms(Field)}
        values = {t.slot: fields[t.field].diff(*zip(symbols, t.multi_index, strict=True)) for t in form.terms}
        second = [term for term in form.terms if term.order == 2]
        flux = normal_flux(self.given[number], space)
        if flux is None:
            flux = sp.S.Zero
            for term in second:
                axes = [s for s, count in zip(symbols, term.multi_index, strict=True) for _ in range(count)]
                slope = sum(normal(one) * fields[term.field].diff(two) for one, two in (axes, axes[::-1])) / 2
                flux += term.coefficient.xreplace(values) * slope
        own = [term.coefficient for term in second if term.field == field.label and max(term.multi_index) == 2]
        # Where a coefficient depends on the solution, its sign is that at one; where on numbers, that at a first guess.
        plain = sum(own).xreplace(dict.fromkeys(values, sp.S.One))
        plain = plain.xreplace({symbol: sp.Float(symbol.first_guess) for symbol in plain.atoms(Unknown)})
        size = float(np.mean(compile_function(plain, symbols)(self.domain.sample(_SAMPLES, "kronecker"))))
        return (flux, number, 1) if size >= 0 else (expanded(-flux), number, -1)
