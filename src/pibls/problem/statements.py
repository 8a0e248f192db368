"""The checked, lowered form of a problem: one statement per row block of the least-squares system.

A statement is a lowered residual together with the place where it shall vanish. Equations give one each;
conditions give one each too, but a periodic one gives a statement per derivative that has to match.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import GeometryError, ProblemError
from pibls.problem.conditions import INITIAL, Condition, Mean, Periodic, residual_of
from pibls.problem.domain import DomainLike
from pibls.problem.evaluate import Within
from pibls.problem.fluxes import Laws
from pibls.problem.interface import AnyCondition, Flux, Interface, split_sides
from pibls.problem.lowered_equations import lowered
from pibls.problem.lowering import Form, lower
from pibls.problem.observation import Observation
from pibls.problem.places import (
    Across,
    AtPoints,
    Average,
    Averages,
    Interior,
    OnPart,
    Opposite,
    Place,
    inside,
    observed_at,
)
from pibls.problem.symbols import Field, Normal

_INSIDE = 1e-9  # of the domain: so far inside is a material that a condition on the boundary has


@dataclass(frozen=True, eq=False)
class Statement:
    """A residual that shall vanish somewhere."""

    name: str  # what it is called in messages, diagnostics and residual tables
    source: int  # index of the point set it lives on: equations first, then conditions
    form: Form  # the lowered residual
    place: Place  # where it holds
    # weight, exact: as given on the condition
    weight: float = 1.0
    exact: bool = False
    targets: FloatArray | None = None  # measured values the form shall equal, or None for zero
    noise: FloatArray | None = None  # standard deviation per target, or None
    loss: str = "squares"  # how misfits to the targets count: "squares" or "huber"

    @property
    def is_equation(self) -> bool:
        """Whether it is a differential equation rather than a condition."""
        return isinstance(self.place, Interior)

    @property
    def forms(self) -> tuple[Form, ...]:
        """The lowered residual, on both sides of an interface."""
        return (self.form, self.place.outside) if isinstance(self.place, Across) else (self.form,)


def condition_statements(condition: AnyCondition, source: int, laws: Laws) -> tuple[Statement, ...]:
    """Return the statements of one condition beside the equations of a problem."""
    name, domain = repr(condition), laws.domain
    if isinstance(condition, Interface):
        return _across(condition, source, laws)
    common: dict[str, Any] = {"weight": float(condition.weight), "exact": condition.exact}
    if isinstance(condition, Periodic):
        return _periodic(condition, name, source, laws, common)
    if isinstance(condition, Mean):
        form = lowered(condition.u - sp.Float(condition.value), domain, name, normals=False)
        return (Statement(name, source, form, Average(), **common),)
    if isinstance(condition, Observation):
        place = observed_at(condition, domain, name)
        normals = isinstance(place, Averages) and place.normals is not None
        form = lowered(condition.u, domain, name, normals=normals)
        measured = {"targets": condition.values, "noise": condition.noise, "loss": condition.loss}
        return (Statement(name, source, form, place, **measured, **common),)
    return (_on_place(condition, name, source, laws, common),)


def just_inside(expression: sp.Expr, domain: DomainLike, materials: Collection[sp.Expr] | None = None) -> sp.Expr:
    """Return an expression with materials as they are beside the boundary: shapes may end there, or just not."""
    aside = sp.Float(_INSIDE * float(np.ptp(domain.bounds, axis=1).max()))
    normals = [Normal(f"n_{symbol.name}", real=True) for symbol in domain.space]
    found = expression.atoms(sp.Piecewise) if materials is None else materials
    return expression.xreplace({own: Within(own, aside, *normals) for own in found if not own.has(Field)})


def _on_place(condition: Condition, name: str, source: int, laws: Laws, common: dict[str, Any]) -> Statement:
    domain = laws.domain
    if isinstance(condition.on, np.ndarray):
        form = lowered(condition.equation, domain, name, normals=False)
        points = np.atleast_2d(condition.on)
        if condition.on.ndim == 1 and len(domain.coordinates) == 1:
            points = condition.on[:, None]
        return Statement(name, source, form, AtPoints(inside(points, domain, name, None, "on")), **common)
    if condition.on is INITIAL:
        if domain.initial is None:
            raise ProblemError(
                f"{name} needs a time, and the domain {domain} has none. Multiply it by TimeInterval(t, t0, t1), or "
                "use Dirichlet(..., on=interval.left)."
            )
        part = domain.initial
    else:
        try:
            part = domain.boundary if condition.on is None else domain.lift(condition.on)
        except GeometryError as error:
            raise ProblemError(f"{name} is off the domain {domain}: {error}") from error
    residual = residual_of(condition.equation, name).replace(Flux, laws.flux)
    given = (residual_of(equation, name) for equation in laws.given)
    materials = residual.atoms(sp.Piecewise) & set[sp.Expr]().union(*(own.atoms(sp.Piecewise) for own in given))
    form = lowered(just_inside(residual, domain, materials), domain, name, normals=True)
    return Statement(name, source, form, OnPart(part), **common)


def _across(condition: Interface, source: int, laws: Laws) -> tuple[Statement, ...]:
    """Return a statement for every equation of an interface."""
    where, domain = condition.condition, laws.domain
    if not where.free_symbols <= set(domain.coordinates):
        raise ProblemError(
            f"{condition} is off the domain {domain}: it has other coordinates. Use those of the domain."
        )

    found = []
    for equation, written in zip(condition.equations, condition.written(), strict=True):
        name = f"Interface({written} {condition.place})"
        sides = split_sides(equation, laws.flux)
        inner, outer = (
            lowered(side, domain, name, normals=True) if side.has(Field) else lower(side, domain.coordinates)
            for side in sides
        )
        found.append(Statement(name, source, inner, Across(where, outer), weight=float(condition.weight)))
    return tuple(found)


def _periodic(condition: Periodic, name: str, source: int, laws: Laws, common: dict[str, Any]) -> tuple[Statement, ...]:
    domain = laws.domain
    try:
        low, high = domain.faces(condition.coordinate)
    except GeometryError as error:
        raise ProblemError(f"{name} is off the domain {domain}: {error}") from error
    last = condition.derivatives
    if last is None:
        orders = (form.order_along(condition.coordinate, condition.u.label) for form in laws.forms)
        last = max(0, max(orders, default=0) - 1)
    statements = []
    for order in range(last + 1):
        form = lowered(condition.u.diff(condition.coordinate, order), domain, name, normals=False)
        label = name if order == 0 else f"{name}, derivative {order}"
        statements.append(Statement(label, source, form, Opposite(low, high), **common))
    return tuple(statements)
