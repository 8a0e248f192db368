"""Shapes as tables of a problem file."""

from __future__ import annotations

from typing import Any

import sympy as sp

from pibls.checks import cut
from pibls.errors import InputError
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
    PointCloud,
    Polygon,
    Product,
    Revolution,
    Solid,
    Star,
    TimeInterval,
    Torus,
)
from pibls.text.formula_writer import write_expression

__all__ = ["shape_names", "write_domain", "write_shape"]

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
    if isinstance(shape, Combination):
        entries: Entries = {
            "shape": shape.operation,
            "of": [write_shape(part, names) for part in (shape.first, shape.second)],
        }
    elif isinstance(shape, Extrusion):
        limits = {shape.coordinates[-1].name: list(shape.limits)}
        entries = {"shape": "extrusion", "of": write_shape(shape.shape, names), **limits}
    elif isinstance(shape, Revolution):
        entries = {"shape": "revolution", "of": write_shape(shape.shape, names), "axis": shape.axis.name}
    else:
        entries = _plain_shape(shape)
    symbols = [symbol.name for symbol in shape.coordinates]
    if not isinstance(shape, Box | Extrusion) and symbols != ["x", "y", "z"][: len(symbols)]:
        entries["coordinates"] = symbols
    # A shape that occurs twice is named once.
    return entries | ({"name": names.pop(shape)} if shape in names else {})


def shape_names(whole: Domain) -> dict[Domain, str]:
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
