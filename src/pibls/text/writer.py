"""Problems as the text of a problem file."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import cut
from pibls.errors import InputError, TextError
from pibls.geometry import (
    Ball,
    Box,
    Combination,
    Cone,
    Cylinder,
    Domain,
    Extrusion,
    Implicit,
    Outline,
    Part,
    PointCloud,
    Polygon,
    Product,
    Revolution,
    Solid,
    Star,
    TimeInterval,
    Torus,
)
from pibls.geometry.restricted import Predicate, RestrictedPatch
from pibls.problem import (
    Across,
    AnyCondition,
    AtPoints,
    Condition,
    Field,
    Interface,
    Mean,
    Observation,
    OnPart,
    Periodic,
    Problem,
    Statement,
)
from pibls.problem.conditions import INITIAL
from pibls.problem.operators import NormalDerivative
from pibls.text.conditions import KINDS, TextPredicate
from pibls.text.files import read_text
from pibls.text.formula_writer import write_equation, write_expression
from pibls.text.tables import Interpolant
from pibls.text.toml import write_table

__all__ = ["to_text"]

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
    head: dict[str, Any] = {"title": title} if title else {}
    head["unknowns"] = list(problem.field_names)
    if problem.parameters:
        head["unknown_numbers"] = [symbol.name for symbol in problem.parameters]
    head["equations"] = [write_equation(equation) for equation in problem.equations]
    blocks = [("", head)]
    blocks += [(f"[data.{name}]", _data(name, function)) for name, function in problem.data.items()]
    blocks += _domain(problem.domain)
    blocks += [("[[conditions]]", _condition(condition, problem.domain)) for condition in problem.conditions]
    if problem.exact is not None:
        blocks.append(("[exact]", {name: write_expression(value) for name, value in dict(problem.exact).items()}))
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


def _domain(domain: Any) -> list[tuple[str, Entries]]:
    if isinstance(domain, TimeInterval):
        return [("[time]", {domain.time.name: [domain.start, domain.stop]})]
    if isinstance(domain, Product):
        return _domain(domain.domain) + _domain(domain.interval)
    return [("[domain]", _shape(domain, _names(domain)))]


def _shape(shape: Domain, names: dict[Domain, str]) -> Entries:
    if isinstance(shape, Combination):
        entries: Entries = {
            "shape": shape.operation,
            "of": [_shape(part, names) for part in (shape.first, shape.second)],
        }
    elif isinstance(shape, Extrusion):
        limits = {shape.coordinates[-1].name: list(shape.limits)}
        entries = {"shape": "extrusion", "of": _shape(shape.shape, names), **limits}
    elif isinstance(shape, Revolution):
        entries = {"shape": "revolution", "of": _shape(shape.shape, names), "axis": shape.axis.name}
    else:
        entries = _plain_shape(shape)
    symbols = [symbol.name for symbol in shape.coordinates]
    if not isinstance(shape, Box | Extrusion) and symbols != ["x", "y", "z"][: len(symbols)]:
        entries["coordinates"] = symbols
    # A shape that occurs twice is named once.
    return entries | ({"name": names.pop(shape)} if shape in names else {})


def _names(whole: Domain) -> dict[Domain, str]:
    """Return names for the shapes that a combination is made of."""
    found: list[Domain] = []
    todo: list[Domain] = [whole]
    while todo:
        shape = todo.pop(0)
        if isinstance(shape, Combination):
            todo += [shape.first, shape.second]
        if isinstance(shape, Extrusion | Revolution):
            todo.append(shape.shape)
        if shape is not whole and shape not in found:
            found.append(shape)
    return {shape: f"shape{i + 1}" for i, shape in enumerate(found)}


def _plain_shape(shape: Domain) -> Entries:
    entries: Entries = {"shape": type(shape).__name__.lower()}
    if isinstance(shape, Box):
        limits = zip(shape.coordinates, shape.lower, shape.upper, strict=True)
        return entries | {symbol.name: [low, high] for symbol, low, high in limits}
    if isinstance(shape, Ball | Polygon | Cylinder | Cone | Torus):
        return entries | {name: value for name, value in shape.to_dict().items() if name in shape.stored}
    if isinstance(shape, Star) and isinstance(shape.radius, sp.Expr):
        angle = [symbol.name for symbol in shape.radius.free_symbols if symbol.name != "theta"]
        entries |= {"radius": write_expression(shape.radius), "center": list(shape.center)}
        return entries | ({"angle": angle[0]} if angle else {})
    if isinstance(shape, PointCloud):
        return _cloud(shape)
    if isinstance(shape, Outline):
        rings = [[list(vertex) for vertex in ring] for ring in shape.rings]
        parts = {name: list(edges) for name, edges in shape.named}
        return entries | {"rings": rings} | ({"parts": parts} if parts else {})
    if isinstance(shape, Implicit) and isinstance(shape.function, sp.Expr):
        bounds = [list(pair) for pair in shape.limits]
        return entries | {"function": write_expression(shape.function), "bounds": bounds, "cells": shape.cells}
    if isinstance(shape, Solid):
        raise InputError(
            f"The domain {cut(repr(shape))} cannot be written as text: it has too many numbers. Keep its surface in "
            'a file beside the problem file, and name that: shape = "part.stl".'
        )
    raise InputError(
        f"The domain {cut(repr(shape))} cannot be written as text: it is made from a Python function. Give an "
        "expression, or keep the problem in Python."
    )


def _cloud(cloud: PointCloud) -> Entries:
    entries: Entries = {"shape": "points", "interior": cloud.interior.tolist()}
    if len(cloud.boundary_points):
        entries["boundary"] = cloud.boundary_points.tolist()
    if cloud.boundary_normals is not None:
        entries["normals"] = cloud.boundary_normals.tolist()
    if cloud.weights is not None:
        entries["weights"] = cloud.weights.tolist()
    return entries | ({"parts": {name: list(rows) for name, rows in cloud.named}} if cloud.named else {})


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
        entries |= {"u": write_expression(condition.u), **_particulars(condition)}
    if condition.weight != 1.0:
        entries["weight"] = float(condition.weight)
    return entries | ({"exact": True} if condition.exact else {})


def _across(condition: Interface) -> Entries:
    given = {name: getattr(condition, name) for name in ("jump", "flux", "resistance")}
    entries: Entries = {"equations": [write_equation(equation) for equation in condition.equations]}
    if isinstance(condition.u, Field):
        entries = {"u": write_expression(condition.u)}
        entries |= {name: write_expression(sp.sympify(value)) for name, value in given.items() if value is not None}
    shape = isinstance(condition.on, Domain)
    return entries | {"on": _shape(condition.on, {}) if shape else write_expression(condition.on)}


def _particulars(condition: Periodic | Mean | Observation) -> Entries:
    if isinstance(condition, Periodic):
        order = {} if condition.derivatives is None else {"derivatives": condition.derivatives}
        return {"along": condition.coordinate.name, **order}
    if isinstance(condition, Mean):
        return {"value": condition.value}
    entries: Entries = {"points": condition.points.reshape(len(condition.values), -1).tolist()}
    entries["values"] = condition.values.tolist()
    return entries if condition.noise is None else entries | {"noise": np.asarray(condition.noise).tolist()}


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
    """Return what a part is called in the file; the name alone does not say which shape it is of."""
    space = domain.domain if isinstance(domain, Product) else domain
    shapes = _names(space)
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
    arrays = ((one.targets, two.targets), (one.noise, two.noise))
    equal = all(a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in arrays)
    equal &= (one.form.expression, one.weight, one.exact) == (two.form.expression, two.weight, two.exact)
    if isinstance(one.place, OnPart) and isinstance(two.place, OnPart):
        return equal and _same_part(one.place.part, two.place.part)
    if isinstance(one.place, AtPoints) and isinstance(two.place, AtPoints):
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
