"""Problems as the text of a problem file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import cut
from pibls.errors import InputError, TextError
from pibls.geometry import Box, Combination, Domain, Extrusion, Part, PointCloud, Product, Solid, Star, TimeInterval
from pibls.geometry.description import Kind
from pibls.geometry.restricted import Predicate, RestrictedPatch
from pibls.problem import AnyCondition, Condition, Field, Interface, Mean, Observation, Periodic, Problem, Statement
from pibls.problem.conditions import INITIAL
from pibls.problem.operators import NormalDerivative
from pibls.problem.places import Across, AtPoints, Averages, OnPart
from pibls.problem.unknown_numbers import refuse_open
from pibls.text.condition_tables import KINDS, TextPredicate
from pibls.text.formula_writer import write_equation, write_expression
from pibls.text.problem_files import read_text
from pibls.text.tables import Interpolant
from pibls.text.unknown_tables import write_truth, write_unknowns

Entries = dict[str, Any]

_VALUED = ("Dirichlet", "Neumann", "Initial")


def to_text(problem: Problem, title: str = "") -> str:
    """Return a problem as the text of a problem file, which reads back as the same problem.

    Parameters
    ----------
    problem
        The problem. What exists only as a Python function cannot be written: :func:`~pibls.data` other than from a
        table, predicates of boundary parts, and the radius of a star that SymPy cannot follow.
    title
        A title for the file.

    Examples
    --------
    >>> from pibls import problems
    >>> print(to_text(problems.advection(), title="Advection"))
    title = "Advection"
    unknowns = ["u"]
    equations = [
      "u_x = -4*pi*sin(2*pi*x)*sin(4*pi*x) + 2*pi*cos(2*pi*x)*cos(4*pi*x)",
    ]
    <BLANKLINE>
    [domain]
    shape = "interval"
    x = [0, 1]
    <BLANKLINE>
    [[conditions]]
    kind = "dirichlet"
    u = "u"
    value = "1"
    on = "left"
    <BLANKLINE>
    [exact]
    u = "sin(2*pi*x)*cos(4*pi*x) + 1"
    <BLANKLINE>
    """
    if not isinstance(problem, Problem):
        raise InputError(f"to_text takes a Problem. Got {type(problem).__name__} instead.")
    refuse_open(problem.parameters, "to_text")
    head: dict[str, Any] = {"title": title} if title else {}
    looked_for, tables = write_unknowns(problem)
    head |= looked_for
    head["equations"] = [write_equation(equation) for equation in problem.equations]
    blocks = [("", head), *tables]
    blocks += [(f"[data.{name}]", _data(name, function)) for name, function in problem.data.items()]
    blocks += write_domain(problem.domain)
    blocks += [("[[conditions]]", _condition(condition, problem.domain)) for condition in problem.conditions]
    if problem.exact is not None:
        blocks.append(("[exact]", {name: write_expression(value) for name, value in dict(problem.exact).items()}))
    blocks += write_truth(problem)
    text = "\n".join("\n".join([*filter(None, [title]), *write_table(entries), ""]) for title, entries in blocks)
    if not problem.data:
        _check(text, problem)
    return text


def _data(name: str, call: Any) -> Entries:
    function = call.func.function
    if not isinstance(function, Interpolant):
        raise InputError(
            f"The data function {name!r} cannot be written as text: it is a Python function. Tabulate it in a CSV "
            "file and name that in [data], or keep the problem in Python."
        )
    entries = {"file": function.file, "coordinates": list(function.columns), "column": function.value}
    return entries | {"method": function.method}


def _condition(condition: AnyCondition, domain: Any) -> Entries:
    kind = condition.label.lower()
    entries: Entries = {"kind": kind if kind in KINDS else "condition"}
    if isinstance(condition, Condition):
        if kind not in KINDS:
            entries["label"] = condition.label
        entries |= _equation(condition) | _place(condition, domain)
    elif isinstance(condition, Interface):
        entries |= _across(condition)
    else:
        entries |= {"u": write_expression(condition.u), **_particulars(condition, domain)}
    if condition.weight != 1.0:
        entries["weight"] = float(condition.weight)
    return entries | ({"exact": True} if condition.exact else {})


def _across(condition: Interface) -> Entries:
    given = {name: getattr(condition, name) for name in ("jump", "flux", "resistance")}
    entries: Entries = {"equations": [write_equation(equation) for equation in condition.equations]}
    if isinstance(condition.u, Field):
        entries = {"u": write_expression(condition.u)}
        entries |= {
            name: write_expression(sp.sympify(value, strict=True)) for name, value in given.items() if value is not None
        }
    shape = isinstance(condition.on, Domain)
    return entries | {"on": write_shape(condition.on, {}) if shape else write_expression(condition.on)}


def _particulars(condition: Periodic | Mean | Observation, domain: Any) -> Entries:
    if isinstance(condition, Periodic):
        order = {} if condition.derivatives is None else {"derivatives": condition.derivatives}
        return {"along": condition.coordinate.name, **order}
    if isinstance(condition, Mean):
        return {"value": condition.value}
    entries = {"values": condition.values.tolist()}
    if condition.noise is not None:
        entries["noise"] = np.asarray(condition.noise).tolist()
    if condition.loss != "squares":
        entries["loss"] = condition.loss
    return _measured_at(condition, domain) | entries


def _measured_at(condition: Observation, domain: Any) -> Entries:
    """Return the points of an observation, or its regions and times."""
    if condition.regions is None:
        points = condition.points.reshape(len(condition.values), -1)
        if condition.columns is not None:
            points = points[:, [condition.columns.index(symbol.name) for symbol in domain.coordinates]]
        return {"points": points.tolist()}
    regions = condition.regions[:1] if len(set(condition.regions)) == 1 else condition.regions
    entries: Entries = {"over": [_region(region, domain) for region in regions]}
    return entries if condition.times is None else entries | {"times": condition.times.tolist()}


def _region(region: Any, domain: Any) -> Any:
    if isinstance(region, Part):
        if ".where(" in region.name or "|" in region.name:
            raise InputError(
                f"The part {region.name} cannot be written as text: averages are over whole parts there. Make one "
                "observation per part, or keep the problem in Python."
            )
        return _part(region.name, region, domain)
    if isinstance(region, TimeInterval):
        return {"during": [region.start, region.stop]}
    if isinstance(region, Product):
        return _region(region.domain, domain) | _region(region.interval, domain)
    return write_shape(region, {})


def _equation(condition: Condition) -> Entries:
    equation = condition.equation
    if condition.label in _VALUED and isinstance(equation, sp.Eq):
        left: sp.Expr | None = equation.lhs
        if condition.label == "Neumann":
            left = left.args[0] if isinstance(left, NormalDerivative) else None
        if left is not None:
            return {"u": write_expression(left), "value": write_expression(equation.rhs)}
    return {"equation": write_equation(equation)}


def _place(condition: Condition, domain: Any) -> Entries:
    on = condition.on
    if on is None or on is INITIAL:
        return {}
    if isinstance(on, np.ndarray):
        return {"at": on.reshape(-1, len(domain.coordinates)).tolist()}
    base, _, predicate = on.name.partition(".where(")
    parts = [_part(piece, on, domain) for piece in base.split("|")]
    entries: Entries = {} if parts == ["boundary"] and predicate else {"on": parts if len(parts) > 1 else parts[0]}
    return entries | ({"where": write_expression(_predicate(on))} if predicate else {})


def _part(name: str, on: Part, domain: Any) -> str:
    """Return the name of a part in the file, with that of its shape where it needs one."""
    space = domain.domain if isinstance(domain, Product) else domain
    shapes = shape_names(space)
    if on.domain in shapes:
        return f"{shapes[on.domain]}.{name}"
    if on.domain not in (domain, space):
        raise InputError(f"The part {name} of {cut(repr(on.domain))} cannot be written as text: it is off the domain.")
    for shape, title in shapes.items():
        part = {"boundary": shape.boundary, **shape.parts}.get(name)
        own = {"boundary": on.domain.boundary, **on.domain.parts}.get(name)
        if part is not None and (own is None or not _covers(on, own)) and _covers(on, on.domain.lift(part)):
            return f"{title}.{name}"
    return name


def _covers(whole: Part, part: Part) -> bool:
    return all(patch in whole.patches for patch in part.patches if not patch.empty)


def _predicate(part: Any) -> sp.Basic:
    for patch in part.patches:
        keep = patch.keep if isinstance(patch, RestrictedPatch) else None
        if isinstance(keep, Predicate) and isinstance(keep.function, TextPredicate):
            return keep.function.condition
    raise InputError(
        f"The part {part.name} cannot be written as text: its predicate is a Python function. Write the condition in "
        'a problem file with where = "x < 0.5".'
    )


def _check(text: str, problem: Problem) -> None:
    """Refuse a text that does not read back as the problem it was made from."""
    try:
        statements = read_text(text).problem.statements
    except TextError as error:
        raise InputError(f"The problem cannot be written as text: this could not be read again. {error}") from error
    for written, given in zip(statements, problem.statements, strict=True):
        if not _same(written, given):
            raise InputError(
                f"{given.name} cannot be written as text: it would read back as {written.name}, in another form. "
                "Simplify the expression, or keep the problem in Python."
            )


def _same(one: Statement, two: Statement) -> bool:
    given = ("targets", "noise", "weight", "exact", "loss")
    equal = all(np.array_equal(getattr(one, name), getattr(two, name)) for name in given)
    equal &= one.form.expression == two.form.expression
    if isinstance(one.place, OnPart) and isinstance(two.place, OnPart):
        return equal and _same_part(one.place.part, two.place.part)
    if isinstance(one.place, AtPoints | Averages) and isinstance(two.place, AtPoints | Averages):
        return equal and np.array_equal(one.place.points, two.place.points)
    if isinstance(one.place, Across) and isinstance(two.place, Across):
        equal &= bool(one.place.outside.expression == two.place.outside.expression)
        return equal and bool(one.place.condition == two.place.condition)
    return equal and type(one.place) is type(two.place)


def _same_part(one: Part, two: Part) -> bool:
    """Tell whether two parts are the same, or at least have the same points: symbols of angles may differ."""
    if one == two:
        return True
    first, second = (part.sample(64, "kronecker") for part in (one, two))
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))


def write_value(value: Any) -> str:
    """Return a string, number, list or mapping as it stands after a key, on one line.

    >>> write_value({"shape": "disk", "center": [0.0, 0.5], "radius": 2})
    '{shape = "disk", center = [0, 0.5], radius = 2}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {write_value(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(write_value, value)) + "]"
    whole = math.isfinite(value) and value == int(value) and abs(value) < 1e15
    return str(int(value)) if whole else repr(float(value))


def write_table(entries: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table: lists of lists and of tables, and equations, one entry per line.

    >>> write_table({"kind": "mean", "points": [[0, 1], [2, 3]]})
    ['kind = "mean"', 'points = [', '  [0, 1],', '  [2, 3],', ']']
    """
    lines = []
    for key, value in entries.items():
        if isinstance(value, list) and (key == "equations" or (value and isinstance(value[0], list | dict))):
            lines += [f"{key} = [", *(f"  {write_value(entry)}," for entry in value), "]"]
        else:
            lines.append(f"{key} = {write_value(value)}")
    return lines


def write_domain(domain: Any) -> list[tuple[str, Entries]]:
    """Return the tables ``[domain]`` and ``[time]``."""
    if isinstance(domain, TimeInterval):
        return [("[time]", {domain.coordinates[0].name: [domain.start, domain.stop]})]
    if isinstance(domain, Product):
        return write_domain(domain.domain) + write_domain(domain.interval)
    return [("[domain]", write_shape(domain, shape_names(domain)))]


def write_shape(shape: Domain, names: dict[Domain, str]) -> Entries:
    """Return the table of a shape; those in ``names`` are named, and taken out of it."""
    entries: Entries = {"shape": "points" if isinstance(shape, PointCloud) else type(shape).__name__.lower()}
    symbols = [symbol.name for symbol in shape.coordinates]
    if isinstance(shape, Solid):
        raise InputError(
            f"The domain {cut(repr(shape))} cannot be written as text: it has too many numbers. Keep its surface in "
            'a file beside the problem file, and name that: shape = "part.stl".'
        )
    if isinstance(shape, Combination):
        entries = {"shape": shape.operation, "of": [write_shape(part, names) for part in _within(shape)]}
    elif isinstance(shape, Extrusion):
        entries |= {"of": write_shape(shape.base, names), symbols[-1]: list(shape.limits)}
    elif isinstance(shape, Box):
        entries |= {name: list(limits) for name, *limits in zip(symbols, shape.lower, shape.upper, strict=True)}
    else:
        entries |= _arguments(shape, names)
    if not isinstance(shape, Box | Extrusion) and symbols != ["x", "y", "z"][: len(symbols)]:
        entries["coordinates"] = symbols
    # A shape that occurs twice is named once.
    return entries | ({"name": names.pop(shape)} if shape in names else {})


def _arguments(shape: Domain, names: dict[Domain, str]) -> Entries:
    def formula(value: Any) -> str:
        if not isinstance(value, sp.Expr):
            raise InputError(
                f"The domain {cut(repr(shape))} cannot be written as text: it is made from a Python function. Give an "
                "expression, or keep the problem in Python."
            )
        return write_expression(value)

    written = {own.name: own.write(shape, formula, lambda part: write_shape(part, names)) for own in shape.arguments}
    if isinstance(shape, Star) and isinstance(shape.radius, sp.Expr):
        written["angle"] = next((s.name for s in shape.radius.free_symbols if s.name != "theta"), None)
    return {name: value for name, value in written.items() if value not in (None, [], {})}


def shape_names(whole: Domain) -> dict[Domain, str]:
    """Return names for the shapes that a combination is made of."""
    found: list[Domain] = []
    todo = [whole]
    while todo:
        shape = todo.pop(0)
        todo += _within(shape)
        if shape is not whole and shape not in found:
            found.append(shape)
    return {shape: f"shape{i + 1}" for i, shape in enumerate(found)}


def _within(shape: Domain) -> list[Domain]:
    return [argument.of(shape) for argument in shape.arguments if argument.kind is Kind.SHAPE]
