"""The unknowns of a problem: its fields, its unknown numbers, and the fields without an equation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pibls.errors import ProblemError
from pibls.problem.domain import DomainLike
from pibls.problem.lowered_equations import other_coordinates
from pibls.problem.printing import text
from pibls.problem.statements import Statement
from pibls.problem.symbols import Data, Field
from pibls.problem.unknown_numbers import Unknown

Statements = tuple[Statement, ...]


def nodes_of(statements: Iterable[Statement], kind: type) -> list[Any]:
    """Return the symbols or calls of a kind that statements contain, by name."""
    return sorted({node for s in statements for form in s.forms for node in form.expression.atoms(kind)}, key=str)


def find_fields(statements: Statements) -> tuple[Field, ...]:
    """Return the fields in the order in which equations and conditions name them."""
    found: dict[str, Field] = {}
    for unknown in (call for statement in statements for call in nodes_of([statement], Field)):
        if found.setdefault(unknown.label, unknown) != unknown:
            one, other = found[unknown.label], unknown
            what = f"{one} and {other}" if str(one) != str(other) else f"{one} with different priors or starts"
            raise ProblemError(
                f"The name {unknown.label!r} stands for two fields, {what}; give them different names, or use "
                "what one call of pibls.field returned."
            )
    if clash := sorted({call.label for call in nodes_of(statements, Data)} & set(found)):
        raise ProblemError(f"The name {clash[0]!r} stands for a field and for a data function; rename one of them.")
    return tuple(found.values())


def find_numbers(statements: Statements, fields: tuple[Field, ...], domain: DomainLike) -> tuple[Unknown, ...]:
    """Return the unknown numbers, by name."""
    found: dict[str, Unknown] = {}
    for symbol in nodes_of(statements, Unknown):
        if found.setdefault(symbol.name, symbol) != symbol:
            raise ProblemError(
                f"The name {symbol.name!r} stands for two unknown numbers with different settings; use what one call "
                "of pibls.unknown returned."
            )
    taken = {call.label for call in (*fields, *nodes_of(statements, Data))} | {s.name for s in domain.coordinates}
    if clash := sorted(taken & set(found)):
        raise ProblemError(
            f"The name {clash[0]!r} stands for an unknown number and for something else; rename one of them."
        )
    return tuple(found.values())


def find_functions(statements: Statements, fields: tuple[Field, ...], domain: DomainLike) -> tuple[Field, ...]:
    """Return the fields without an equation of their own.

    A prior marks them, and coordinates fewer than the domain's. If there are still more fields than equations, those
    with the lowest derivatives in the equations are meant.
    """
    equations = [s for s in statements if s.is_equation]
    orders = {
        f.label: max((t.order for s in equations for t in s.form.terms if t.field == f.label), default=-1)
        for f in fields
    }
    fewer = [f for f in fields if set(f.args) != set(domain.coordinates)]
    marked = [f for f in fields if f.prior is not None or f.start is not None or f in fewer]
    rest = [f for f in fields if f not in marked]
    lacking = max(0, len(rest) - len(equations))
    if not any(s.targets is not None for s in statements):
        _refuse_undetermined(statements, fields, lacking, fewer, orders, domain)
    chosen = _lowest(rest, orders, lacking) if lacking else []
    return tuple(f for f in fields if f in marked or f in chosen)


def _lowest(rest: list[Field], orders: dict[str, int], lacking: int) -> list[Field]:
    """Return the fields with the lowest derivatives."""
    ranked = sorted(rest, key=lambda f: orders[f.label])
    chosen, others = ranked[:lacking], ranked[lacking:]
    if others and orders[chosen[-1].label] == orders[others[0].label]:
        tied = [f.label for f in ranked if orders[f.label] == orders[others[0].label]]
        raise ProblemError(
            f"There are {lacking} more fields than equations, and {', '.join(tied)} have derivatives of the same "
            f"order, so nothing says which is the unknown function. Mark it: field('{chosen[-1].label}', ..., "
            "prior=pibls.Smooth())."
        )
    return chosen


def _refuse_undetermined(
    statements: Statements,
    fields: tuple[Field, ...],
    lacking: int,
    fewer: list[Field],
    orders: dict[str, int],
    domain: DomainLike,
) -> None:
    """Refuse fields that neither an equation nor data can tell."""
    count = sum(s.is_equation for s in statements)
    for field in fewer:
        if field.prior is None and field.start is None:
            raise ProblemError(other_coordinates(field, domain, "the problem"))
    for field in fields:
        if orders[field.label] < 0 and field.prior is None and field.start is None:
            owner = next(s.name for s in statements if field.label in s.form.fields)
            raise ProblemError(
                f"The unknown {field} of {owner} has no equation: it occurs in conditions only. Add an equation for "
                "it, or observations that tell it."
            )
    if lacking:
        names = ", ".join(f.label for f in fields)
        raise ProblemError(
            f"There are {len(fields)} unknown fields ({names}) and only {count} equation{'s' * (count != 1)}, so one "
            "is without an equation. Add equations until there are as many as fields, or observations."
        )


def described(unknown: Unknown | Field) -> tuple[str, str] | None:
    """Return in words the prior knowledge about an unknown, if there is any."""
    words = []
    if isinstance(unknown, Field):
        if unknown.prior is not None:
            given = {"size": unknown.prior.size, "length": unknown.prior.length}
            known = [f"{name} {value:g}" for name, value in given.items() if value is not None]
            words.append("smooth" + (f" ({', '.join(known)})" if known else ""))
        if unknown.start is not None:
            words.append(f"start {text(unknown.start)}")
        return (text(unknown), f"unknown function: {', '.join(words)}") if words else None
    if unknown.start is not None:
        words.append(f"start {unknown.start:g}")
    if unknown.bounds is not None:
        low, high = unknown.bounds
        words.append(
            f"at least {low:g}" if high is None else f"at most {high:g}" if low is None else f"{low:g} to {high:g}"
        )
    if unknown.prior is not None:
        words.append("prior {:g} ± {:g}".format(*unknown.prior))
    return (unknown.name, f"unknown: {', '.join(words)}") if words else None
