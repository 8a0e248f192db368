"""The ``[[conditions]]`` of a problem file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, cut
from pibls.geometry import Part, TimeInterval
from pibls.problem import AnyCondition, Condition, Convection, Interface, Mean, Observation, Periodic, Robin
from pibls.problem.conditions import INITIAL
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.operators import normal_derivative
from pibls.problem.printing import text as printed
from pibls.text.document import Table
from pibls.text.domains import PosedDomain, read_region
from pibls.text.expressions import read_condition, read_equation
from pibls.text.positions import Path, suggestion
from pibls.text.tables import column, read_columns
from pibls.text.vocabulary import Names

_PART = re.compile(r"\s*[A-Za-z]\w*(\.[A-Za-z]\w*)?\s*", re.ASCII)
_COMMON = ("kind", "weight", "exact")
_PLACED = (*_COMMON, "on", "where", "at")


@dataclass(frozen=True)
class TextPredicate:
    """A comparison of coordinates, as the predicate of a boundary part."""

    condition: sp.Basic
    coordinates: tuple[sp.Symbol, ...]
    __name__: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "__name__", printed(self.condition))

    @cached_property
    def _indicator(self) -> Function:
        return compile_function(sp.Piecewise((1, self.condition), (0, True)), self.coordinates)

    def __call__(self, X: FloatArray) -> Any:
        """Tell where the comparison holds."""
        return self._indicator(X) > 0.5


def read_conditions(document: Table, place: PosedDomain, names: Names) -> list[AnyCondition]:
    """Return the conditions of a problem file."""
    conditions = []
    for table in document.tables("conditions"):
        table.need("kind", 'kind = "dirichlet"')
        kind = table.string("kind")
        if kind not in KINDS:
            known = f"The kinds are {', '.join(KINDS)}."
            raise table.error("kind", f"There is no condition {cut(repr(kind))}.{suggestion(kind, KINDS, known)}")
        conditions.append(KINDS[kind](table, place, names))
    return conditions


def _settings(table: Table, names: Names) -> dict[str, Any]:
    weight = float(table.number(names, "weight")) if "weight" in table else 1.0
    return {"weight": weight, "exact": table.flag("exact")}


def _unknown(table: Table, names: Names) -> Any:
    """Return the expression of a condition: if none is given, the only field that is no unknown coefficient."""
    if "u" in table:
        return table.formula(names, "u")
    whole = len(names.coordinates)
    states = [f for f in names.fields.values() if f.prior is None and f.start is None and len(f.args) == whole]
    if len(states) != 1:
        raise table.error(None, f"The key 'u' is missing: which of {', '.join(names.fields)} is it about?")
    return states[0]


def _value(table: Table, names: Names, key: str) -> sp.Expr:
    table.need(key, f"{key} = 0")
    return table.formula(names, key)


def _placed(table: Table, place: PosedDomain, names: Names) -> Any:
    """Return where a condition holds: None for the whole boundary, a part, or points."""
    if "at" in table:
        if "on" in table or "where" in table:
            raise table.error("at", "Give either points with 'at', or a part of the boundary with 'on' and 'where'.")
        return np.array(_rows(table, "at", names))
    part = read_parts(table, "on", place, names) if "on" in table else None
    if "where" not in table:
        return part
    return _where(table, "where", place, names, part)


def _rows(table: Table, key: str, names: Names) -> list[list[float]]:
    rows = table.rows(names, key)
    if not rows or len({len(row) for row in rows}) > 1:
        raise table.error(key, f"{key} must be a list of points of equal length: {key} = [[0, 1], [1, 1]].")
    return rows


def read_parts(table: Table, key: str, place: PosedDomain, names: Names) -> Any:
    """Return the part of the boundary, or the parts together, that a key names."""
    paths = table.paths(key)
    if not paths:
        raise table.error(key, f"{key} must name a part of the boundary; leave it out for the whole boundary.")
    if paths == [(key,)] and not _PART.fullmatch(table.string(key)):
        return _where(table, key, place, names, None)
    parts = [_part(table, path, place) for path in paths]
    if len(parts) == 1:
        return parts[0]
    if len({part.domain for part in parts}) > 1:
        parts = [table.attempt(key, place.domain.lift, part) for part in parts]
    union = parts[0]
    for part in parts[1:]:
        union = table.attempt(key, union.__or__, part)
    return union


def _part(table: Table, path: Path, place: PosedDomain) -> Part:
    """Return the part that a text names: one of space or time, a whole shape, or a part of a shape."""
    entry = table.at(*path).strip()
    named = {"boundary": place.domain.boundary, **place.space.parts}
    named |= {part.name: part for part in (place.domain.initial, place.domain.final) if part is not None}
    named |= {label: shape.boundary for label, shape in place.named.items()}
    named |= {f"{label}.{name}": part for label, shape in place.named.items() for name, part in shape.parts.items()}
    known = named | {f"{label}.boundary": shape.boundary for label, shape in place.named.items()}
    if entry in known:
        return known[entry]
    listed = f"The parts are {', '.join(named)}; or write a comparison such as x < 0.5."
    hint = suggestion(entry, named, cut(listed, 300))
    raise table.document.error((*table.path, *path), f"The domain has no part {cut(repr(entry))}.{hint}")


def _where(table: Table, key: str, place: PosedDomain, names: Names, part: Part | None) -> Part:
    piece = table.text(key)
    test = read_condition(piece, names.plain)
    domain = part.domain if part is not None else place.space
    if not test.free_symbols <= set(domain.coordinates):
        domain = place.domain
        part = None if part is None else table.attempt(key, domain.lift, part)
    symbols = test.free_symbols
    if not symbols or not symbols <= set(domain.coordinates):
        raise piece.error(f"Compare coordinates here, which are {domain.coordinates}.", 0, len(piece.text))
    base = domain.boundary if part is None else part
    return base.where(TextPredicate(test, domain.coordinates))


def _equal(left: sp.Expr, right: sp.Expr) -> sp.Eq:
    return sp.Eq(left, right, evaluate=False)


# The keys of short forms beside the field, and the equation that they stand for.
_SHORT: Mapping[str, tuple[tuple[str, ...], Callable[..., sp.Eq | sp.Expr]]] = {
    "Dirichlet": (("value",), _equal),
    "Neumann": (("value",), lambda u, value: _equal(normal_derivative(u), value)),
    "Robin": (("alpha", "beta", "value"), lambda *given: Robin(*given).equation),
    "Convection": (("h", "ambient"), lambda u, h, ambient: Convection(u, h=h, ambient=ambient).equation),
    "Initial": (("value",), _equal),
}


def _on_part(label: str, table: Table, place: PosedDomain, names: Names) -> AnyCondition:
    """Return an equation on a part of the boundary, written out or as a short form."""
    keys, make = _SHORT.get(label, ((), None))
    given = ("u", *keys) if make is not None and "equation" not in table else ("equation",)
    table.allow(*(("label",) if make is None else ()), *given, *_PLACED)
    if make is None or "equation" in table:
        table.need("equation", 'equation = "u + dn(u) = 1"')
        equation = read_equation(table.text("equation"), names)
    else:
        equation = table.attempt(None, make, _unknown(table, names), *(_value(table, names, key) for key in keys))
    on = _placed(table, place, names)
    if label == "Initial":
        if on is not None:
            raise table.error(None, "An initial condition holds at the first time; leave out on, where and at.")
        on = INITIAL
    name = table.string("label", label) if make is None else label
    return table.attempt(None, Condition, equation, on, label=name, **_settings(table, names))


def _periodic(table: Table, _: PosedDomain, names: Names) -> AnyCondition:
    table.allow("u", "along", "derivatives", *_COMMON)
    table.need("along", 'along = "x"')
    if (along := table.string("along")) not in names.symbols:
        raise table.error("along", f"along must be a coordinate, one of {', '.join(names.symbols)}.")
    arguments = _unknown(table, names), names.symbols[along], table.integer("derivatives")
    return table.attempt(None, Periodic, *arguments, **_settings(table, names))


def _mean(table: Table, _: PosedDomain, names: Names) -> AnyCondition:
    table.allow("u", "value", *_COMMON)
    value = table.number(names, "value") if "value" in table else 0
    return table.attempt(None, Mean, _unknown(table, names), value, **_settings(table, names))


def _interface(table: Table, place: PosedDomain, names: Names) -> AnyCondition:
    given = ("equations",) if "equations" in table else ("u", "jump", "flux", "resistance")
    table.allow("kind", "weight", "on", *given)
    table.need("on", 'on = {shape = "disk", radius = 1}, or on = "x < 0.5"')
    settings: dict[str, Any] = {"weight": _settings(table, names)["weight"]}
    if "equations" in table:
        about: Any = [read_equation(piece, names) for piece in table.texts("equations")]
    else:
        about = _unknown(table, names)
        settings |= {key: _value(table, names, key) for key in given[1:] if key in table}
    return table.attempt(None, Interface, about, _region(table, place, names), **settings)


def _region(table: Table, place: PosedDomain, names: Names) -> Any:
    """Return on which shape an interface is: one of its own, one of the domain, or a comparison."""
    if isinstance(table.data["on"], dict):
        return read_region(table.table("on"), names, place.space.coordinates)
    if not _PART.fullmatch(table.string("on")):
        return read_condition(table.text("on"), names.plain)
    name = table.string("on").strip()
    if name not in place.named:
        hint = suggestion(name, place.named, "Write a shape, {shape = ...}, or a comparison such as x < 0.5.")
        raise table.error("on", f"There is no shape {cut(repr(name))}.{hint}")
    return place.named[name]


def _observation(table: Table, place: PosedDomain, names: Names) -> AnyCondition:
    table.allow("u", "points", "values", "noise", "file", "over", "times", "loss", *_COMMON)
    unknown, settings = _unknown(table, names), _settings(table, names)
    if "loss" in table:
        settings["loss"] = table.string("loss")
    if sum(key in table for key in ("points", "file", "over")) > 1:
        raise table.error(None, "Give one of points, file and over: measurements are at points, or averages.")
    points: Any = None
    values: Any = None
    if "file" in table:
        points, values, noise = _from_file(table, names, unknown)
        return table.attempt(None, Observation, unknown, points, values, noise, **settings)
    if "over" in table:
        settings |= {"regions": _regions(table, place, names), "times": table.several(names, "times")}
        table.need("values", "values = [1.0]")
        values = table.several(names, "values")
    else:
        table.need("points", 'points = [[0.5, 0.5]], or file = "measured.csv"')
        table.need("values", "values = [1.0]")
        points, values = np.array(_rows(table, "points", names)), table.numbers(names, "values")
    return table.attempt(None, Observation, unknown, points, values, table.several(names, "noise"), **settings)


def _from_file(table: Table, names: Names, unknown: Any) -> tuple[FloatArray, FloatArray, Any]:
    """Return points, values and noise from the columns of a file."""
    columns = read_columns(table, "file")
    points = np.stack([column(table, "file", columns, s.name) for s in names.coordinates], axis=1)
    name = table.string("values", getattr(unknown, "label", "value"))
    values = column(table, "values" if "values" in table else "file", columns, name)
    if not isinstance(table.data.get("noise"), str):
        return points, values, table.several(names, "noise")
    return points, values, column(table, "noise", columns, table.string("noise"))


def _regions(table: Table, place: PosedDomain, names: Names) -> list[Any]:
    """Return shapes and parts; a time in a table makes a product with an interval."""
    regions: list[Any] = []
    for i, entry in enumerate(table.items("over")):
        if isinstance(entry, str):
            regions.append(_part(table, ("over", i), place))
        elif isinstance(entry, dict):
            regions.append(_average_over(Table(table.document, (*table.path, "over", i), entry), place, names))
        else:
            message = 'over lists shapes, {shape = "disk", radius = 0.1}, and parts such as "left".'
            raise table.document.error((*table.path, "over", i), message)
    return regions


def _average_over(table: Table, place: PosedDomain, names: Names) -> Any:
    if "during" not in table:
        return read_region(table, names)
    time = place.domain.time
    limits = table.numbers(names, "during")
    if time is None or len(limits) != 2:
        raise table.error("during", "during must be two times, in a problem with time: during = [0, 1].")
    interval = table.attempt("during", TimeInterval, time, *limits)
    space = replace(table, data={key: value for key, value in table.data.items() if key != "during"})
    return table.attempt(None, read_region(space, names).__mul__, interval) if space.data else interval


KINDS: Mapping[str, Callable[[Table, PosedDomain, Names], AnyCondition]] = {
    **{label.lower(): partial(_on_part, label) for label in (*_SHORT, "Condition")},
    "periodic": _periodic,
    "mean": _mean,
    "observation": _observation,
    "interface": _interface,
}
