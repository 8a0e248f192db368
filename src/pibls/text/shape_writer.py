"""Shapes as tables of a problem file."""

from __future__ import annotations

from typing import Any

import sympy as sp

from pibls.checks import cut
from pibls.errors import InputError
from pibls.geometry import Box, Combination, Domain, Extrusion, PointCloud, Product, Solid, Star, TimeInterval
from pibls.geometry.description import Kind
from pibls.text.formula_writer import write_expression

Entries = dict[str, Any]


def write_domain(domain: Any) -> list[tuple[str, Entries]]:
    """Return the tables ``[domain]`` and ``[time]``."""
    if isinstance(domain, TimeInterval):
        return [("[time]", {domain.time.name: [domain.start, domain.stop]})]
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
        entries |= {"of": write_shape(shape.shape, names), symbols[-1]: list(shape.limits)}
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
