"""The ``[quantities]`` of a problem file: numbers to take of its solution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from pibls.checks import cut
from pibls.errors import PiblsError
from pibls.problem import Problem
from pibls.problem.field_expressions import Expression
from pibls.text.condition_tables import read_parts
from pibls.text.document import Table
from pibls.text.domains import PosedDomain, read_region
from pibls.text.expressions import read_condition
from pibls.text.positions import suggestion
from pibls.text.vocabulary import Names

KINDS = {
    "value": ("at",),
    "integral": ("over", "at"),
    "mean": ("over", "at"),
    "maximum": ("over", "at"),
    "minimum": ("over", "at"),
    "flow": ("field", "at"),
    "first_time": ("at", "over"),
}


@dataclass(frozen=True)
class Asked:
    """A quantity by the name of the method of a solution that finds it, and the arguments of that."""

    kind: str
    subject: Any
    others: Mapping[str, Any] = field(default_factory=dict)


def read_quantities(document: Table, place: PosedDomain, names: Names, problem: Problem) -> dict[str, Asked]:
    """Return the quantities of a problem file, by name."""
    entries = document.table("quantities")
    return {name: _read(name, entries.table(name), place, names, problem) for name in entries.data}


def _read(name: str, table: Table, place: PosedDomain, names: Names, problem: Problem) -> Asked:
    if not name.isidentifier() or name in (*problem.field_names, *(s.name for s in problem.domain.coordinates)):
        raise table.error(None, f"The quantity {cut(repr(name))} needs a name of its own, such as loss or warmest.")
    kinds = [key for key in table.data if key in KINDS]
    if len(kinds) != 1:
        known = f'Give one of {", ".join(KINDS)}, such as {{maximum = "{problem.field_names[0]}"}}.'
        strange = next((key for key in table.data if key not in KINDS), "")
        raise table.error(None, f"The quantity {name} does not say what it is.{suggestion(strange, KINDS, known)}")
    (kind,) = kinds
    table.allow(kind, *KINDS[kind])
    others: dict[str, Any] = {}
    if "over" in table:
        shape = isinstance(table.data["over"], dict)
        others["over"] = read_region(table.table("over"), names) if shape else read_parts(table, "over", place, names)
    if "field" in table:
        others["field"] = table.string("field")
    if "at" in table:
        others["at"] = table.several(names, "at")
    if kind == "flow":
        return Asked(kind, read_parts(table, kind, place, names), others)
    subject = _subject(table, kind, names)
    if kind == "value":
        subject = _at_point(table, subject, others.pop("at", None), problem)
    _check(table, kind, subject, problem)
    return Asked(kind, subject, others)


def _subject(table: Table, kind: str, names: Names) -> Any:
    if kind == "first_time" and any(sign in table.string(kind) for sign in "<>"):
        return read_condition(table.text(kind), names)
    return table.formula(names, kind)


def _at_point(table: Table, subject: sp.Expr, point: Any, problem: Problem) -> sp.Expr:
    symbols = problem.domain.coordinates
    if not isinstance(point, list) or len(point) != len(symbols):
        told = ", ".join(symbol.name for symbol in symbols)
        raise table.error("at" if "at" in table else None, f"A value needs a point at = [{told}].")
    return subject.subs(dict(zip(symbols, map(sp.Float, point), strict=True)), simultaneous=True)


def _check(table: Table, kind: str, subject: Any, problem: Problem) -> None:
    """Refuse an expression that a solution could not be asked about, before anything is solved."""
    whole = subject.gts - subject.lts if isinstance(subject, sp.core.relational.Relational) else subject
    numbers = dict.fromkeys(problem.parameters, sp.S.One)
    try:
        Expression.of(whole, problem, numbers, kind)
    except PiblsError as error:
        raise table.error(kind, str(error)) from error
