"""The unknowns of a problem file: its fields, the table ``[unknowns]`` of numbers and functions, and ``[truth]``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pibls.checks import shorten
from pibls.problem import Field, Problem, Smooth, Unknown
from pibls.problem.measured import Measured
from pibls.problem.symbols import field
from pibls.problem.unknown_numbers import eigenvalue, unknown
from pibls.text.document import Table
from pibls.text.formula_writer import write_expression
from pibls.text.vocabulary import Names

Entries = dict[str, Any]


def declared(names: Names, label: str, thing: Any) -> Names:
    """Return the names with one more: of a field, or of something known by its measures or as it is."""
    if isinstance(thing, Field):
        return replace(names, fields={**names.fields, label: thing})
    return replace(names, values={**names.values, label: thing if isinstance(thing, Measured) else Measured(thing)})


def refuse_taken(table: Table, path: tuple[str | int, ...], label: str, names: Names) -> None:
    """Refuse a name that is taken, or that formulas could not use."""
    taken = {symbol.name for symbol in names.coordinates} | set(names.fields) | set(names.values)
    if label in taken:
        raise table.document.error(path, f"The name {shorten(label)} is used twice; choose another.")
    if not label.isascii() or not label.isidentifier() or label.startswith("_"):
        message = f"A name is made of letters, digits and underscores, a letter first. Got {shorten(label)}."
        raise table.document.error(path, message)


def read_unknowns(table: Table, names: Names) -> Names:
    """Return the names with the fields and unknown numbers of a file."""
    settings = isinstance(table.data.get("unknowns"), dict)
    key = "fields" if settings or "fields" in table else "unknowns"
    if key == "fields" and "unknowns" in table and not settings:
        raise table.error("unknowns", "Name the fields once, with 'fields'; [unknowns] is a table of numbers then.")
    listed: list[tuple[str, list[str], Callable[[str], Any]]] = [
        (key, table.strings(key) if key in table else ["u"], lambda label: field(label, *names.coordinates)),
        ("unknown_numbers", table.strings("unknown_numbers") if "unknown_numbers" in table else [], unknown),
        ("eigenvalue", [table.string("eigenvalue")] if "eigenvalue" in table else [], eigenvalue),
    ]
    for key, labels, make in listed:
        for i, label in enumerate(labels):
            refuse_taken(table, (key, i), label, names)
            names = declared(names, label, table.attempt(key, make, label))
    entries = table.table("unknowns").data if settings else {}
    for label in entries:
        refuse_taken(table, ("unknowns", label, "#key"), label, names)
        names = declared(names, label, _read(table.table("unknowns").table(label), label, names))
    return names


def _read(table: Table, label: str, names: Names) -> Any:
    if "of" in table:
        return _function(table, label, names)
    table.allow("start", "bounds", "prior", "of")
    read: dict[str, Callable[..., Any]] = {"start": _number, "bounds": _pair, "prior": _pair}
    settings = {key: read[key](table, names, key) for key in table.data}
    return table.attempt(None, unknown, label, **settings)


def _function(table: Table, label: str, names: Names) -> Any:
    table.allow("of", "smooth", "start")
    along = table.strings("of")
    if not along or not set(along) <= set(names.symbols):
        raise table.error("of", f"of must name coordinates, some of {', '.join(names.symbols)}.")
    settings: Entries = {}
    if "smooth" in table:
        size = table.table("smooth")
        size.allow("size", "length")
        settings["prior"] = size.attempt(None, Smooth, **{key: _number(size, names, key) for key in size.data})
    if "start" in table:
        settings["start"] = table.formula(names.plain, "start")
    return table.attempt(None, field, label, *(names.symbols[name] for name in along), **settings)


def _number(table: Table, names: Names, *path: str | int) -> float:
    return float(table.number(names, *path))


def _pair(table: Table, names: Names, key: str) -> tuple[float, ...]:
    """Return two numbers, which may be infinite."""
    entries = table.items(key)
    if len(entries) != 2:
        raise table.error(key, f"{key} must be two numbers: {key} = [0, {'inf' if key == 'bounds' else '1'}].")
    infinite = [isinstance(entry, float) and math.isinf(entry) for entry in entries]
    return tuple(entries[i] if infinite[i] else _number(table, names, key, i) for i in range(2))


def read_truth(table: Table, names: Names) -> Entries | None:
    """Return the true values of unknowns, if the file has them."""
    if "truth" not in table:
        return None
    entries = table.table("truth")
    return {label: entries.formula(names.plain, label) for label in entries.data}


def write_unknowns(problem: Problem) -> tuple[Entries, list[tuple[str, Entries]]]:
    """Return the entries at the head of a file, and the table ``[unknowns]`` if one is needed."""
    whole = set(problem.domain.coordinates)
    told = [f for f in problem.fields if f.prior is not None or f.start is not None or set(f.args) != whole]
    if not told and not problem.parameters:
        return {"unknowns": list(problem.field_names)}, []
    table = {symbol.name: _number_settings(symbol) for symbol in problem.parameters}
    table |= {f.label: _function_settings(f) for f in told}
    return {"fields": [f.label for f in problem.fields if f not in told]}, [("[unknowns]", table)]


def _number_settings(symbol: Unknown) -> Entries:
    entries: Entries = {}
    if symbol.start is not None:
        entries["start"] = symbol.start
    if symbol.bounds is not None:
        low, high = symbol.bounds
        entries["bounds"] = [-math.inf if low is None else low, math.inf if high is None else high]
    return entries if symbol.prior is None else entries | {"prior": list(symbol.prior)}


def _function_settings(call: Field) -> Entries:
    entries: Entries = {"of": [symbol.name for symbol in call.args]}
    if call.prior is not None:
        given = {"size": call.prior.size, "length": call.prior.length}
        entries["smooth"] = {key: value for key, value in given.items() if value is not None}
    return entries if call.start is None else entries | {"start": write_expression(call.start)}


def write_truth(problem: Problem) -> list[tuple[str, Entries]]:
    """Return the table of true values, if there are any."""
    if problem.truth is None:
        return []
    values = problem.truth.items()
    return [("[truth]", {k: v if isinstance(v, float) else write_expression(v) for k, v in values})]
