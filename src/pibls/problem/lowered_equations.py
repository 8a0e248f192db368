"""Equations over a domain: their operators are resolved, their symbols checked, and what is left is lowered."""

from __future__ import annotations

import sympy as sp

from pibls.checks import cut
from pibls.errors import PiblsError, ProblemError
from pibls.problem.conditions import residual_of
from pibls.problem.domain import DomainLike
from pibls.problem.interface import Flux, Side
from pibls.problem.lowering import Form, lower
from pibls.problem.operators import resolve
from pibls.problem.printing import text
from pibls.problem.symbols import Data, Field, Normal
from pibls.problem.unknown_numbers import Unknown


def lowered(equation: object, domain: DomainLike, owner: str, *, normals: bool) -> Form:
    """Check the symbols of an equation against the domain and lower it."""
    try:
        return _lowered(equation, domain, owner, normals)
    except RecursionError:
        raise ProblemError(
            f"{owner} is nested too deeply for SymPy. Simplify it, or wrap the part without unknowns as pibls.data."
        ) from None
    except (ArithmeticError, TypeError, ValueError, AttributeError, NotImplementedError) as error:
        if isinstance(error, PiblsError):
            raise
        raise ProblemError(
            f"{owner} is no equation that SymPy can differentiate ({cut(str(error))}). Write it in another form."
        ) from error


def checked(residual: sp.Expr, domain: DomainLike, owner: str, *, normals: bool) -> sp.Expr:
    """Check the symbols and functions of a resolved expression against the domain."""
    _check_functions(residual, domain, owner)
    known = set(domain.coordinates)
    for symbol in sorted(residual.free_symbols - known, key=str):
        if isinstance(symbol, Normal) and normals:
            if symbol.name not in {f"n_{s.name}" for s in domain.space}:
                raise ProblemError(
                    f"The normal component {symbol} of {owner} is not along a space coordinate {domain.space}."
                )
            continue
        if isinstance(symbol, Unknown):
            continue
        raise ProblemError(_undeclared(symbol, domain, owner))
    if residual.has(Side, Flux):
        raise ProblemError(
            f"{owner} uses inside, outside or flux: the first two exist only in the equations of an Interface, flux on "
            "boundary parts, too."
        )
    if residual.has(sp.I):
        raise ProblemError(
            f"{owner} contains the imaginary unit, and its fields are real. Declare them with "
            "field(..., complex=True), or write real and imaginary parts as two equations of two fields."
        )
    return residual


def _lowered(equation: object, domain: DomainLike, owner: str, normals: bool) -> Form:
    residual = checked(resolve(residual_of(equation, owner), domain.space), domain, owner, normals=normals)
    if not residual.has(Field):
        raise ProblemError(
            f"{owner} has no unknown in it: {text(residual)} = 0. Every equation and condition must contain a field "
            "made by pibls.field."
        )
    if residual.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise ProblemError(
            f"{owner} contains a number that is not finite: {text(residual)} = 0. Check the expression it comes from."
        )
    form = lower(residual, domain.coordinates)
    if all(term.coefficient == 0 for term in form.terms):
        raise ProblemError(
            f"The unknowns of {owner} cancel, or enter only through steps: {text(residual)} = 0 does not determine "
            "them. Check the equation."
        )
    return form


def _undeclared(symbol: sp.Symbol, domain: DomainLike, owner: str) -> str:
    if isinstance(symbol, Normal):
        return f"{owner} uses the outward normal {symbol}, which exists only on a boundary; use it in a condition."
    if symbol.name in {s.name for s in domain.coordinates}:
        return (
            f"{owner} contains a symbol {symbol} that is not the coordinate of the same name; build expressions "
            "with the symbols that pibls.coordinates returned."
        )
    return (
        f"{owner} contains the undeclared symbol {symbol}. Give it a number, make it a coordinate of the domain "
        f"{domain.coordinates}, or declare it: with pibls.parameter('{symbol}') to "
        f"give it values later, with pibls.unknown('{symbol}') to find it from data."
    )


def other_coordinates(call: Field, domain: DomainLike, owner: str) -> str:
    """Return the message about a field that has other coordinates than the domain."""
    shifted = [a for a, s in zip(call.args, domain.coordinates, strict=False) if a != s and s in a.free_symbols]
    if shifted and len(call.args) == len(domain.coordinates):
        return (
            f"The field {call} in {owner} is taken at {shifted[0]}, elsewhere than where the equation holds. Delays "
            "and shifts are no differential equations; pibls does not solve them."
        )
    if len(call.args) == len(domain.coordinates) and any(a.is_number for a in call.args):
        return (
            f"{owner} contains {call}, the value in one place. A condition holds where on= says: write "
            f"Dirichlet({call.label}, ..., on=...) for values that are given there, and Periodic for values that are "
            "equal at both ends."
        )
    return (
        f"The field {call} in {owner} does not have the domain's coordinates {domain.coordinates}; declare "
        f"it as field('{call.label}', {', '.join(map(str, domain.coordinates))})."
    )


def _check_functions(residual: sp.Expr, domain: DomainLike, owner: str) -> None:
    for call in sorted(residual.atoms(sp.core.function.AppliedUndef), key=str):
        if isinstance(call, Field):
            # An unknown coefficient may depend on fewer coordinates; the problem asks whether it is one.
            if not set(call.args) <= set(domain.coordinates):
                if sorted(map(str, call.args)) == sorted(map(str, domain.coordinates)):
                    raise ProblemError(
                        f"The field {call} in {owner} and the domain {domain} have coordinates of the same names that "
                        "are different symbols, as sympy.Symbol and pibls.coordinates make them. Make them once, with "
                        f"coordinates('{' '.join(map(str, domain.coordinates))}'), and use them for both."
                    )
                raise ProblemError(other_coordinates(call, domain, owner))
        elif not isinstance(call, Data):
            raise ProblemError(
                f"{owner} contains the undeclared function {call}. Make it an unknown with pibls.field, or a known "
                "function with pibls.data."
            )
    for kind, remedy in (
        (sp.Integral, "differential equations only; an average is a condition of its own, Mean or Observation.average"),
        (sp.Subs, "fields at the point itself only"),
    ):
        if residual.has(kind):
            raise ProblemError(f"{owner} contains {text(next(iter(residual.atoms(kind))))}; pibls takes {remedy}.")
