"""Shapes of a problem file in space, outlines, and shapes that other files describe."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import sympy as sp

from pibls.checks import cut
from pibls.geometry import Cone, Cylinder, Domain, Implicit, Outline, Torus, read_shape
from pibls.geometry.reading.shape import EXTENSIONS
from pibls.text.document import Table
from pibls.text.expressions import read_expression
from pibls.text.names import Names
from pibls.text.tables import local_name

__all__ = ["is_file", "read_cone", "read_cylinder", "read_file_shape", "read_implicit", "read_outline", "read_torus"]

Found = dict[str, Domain]


def is_file(kind: str) -> bool:
    """Tell whether the name of a shape is that of a file.

    >>> is_file("bracket.stl"), is_file("disk")
    (True, False)
    """
    return PurePosixPath(kind).suffix.lower() in EXTENSIONS


def read_cylinder(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: Found) -> Domain:
    """Return a cylinder."""
    table.allow("shape", "name", "coordinates", "start", "stop", "radius")
    ends = _ends(table, names)
    shape: Domain = table.attempt(None, Cylinder, own, *ends, table.number(names, "radius"))
    return shape


def read_cone(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: Found) -> Domain:
    """Return a cone."""
    table.allow("shape", "name", "coordinates", "start", "stop", "radius", "top_radius")
    ends = _ends(table, names)
    top = table.number(names, "top_radius") if "top_radius" in table else 0.0
    shape: Domain = table.attempt(None, Cone, own, *ends, table.number(names, "radius"), top)
    return shape


def _ends(table: Table, names: Names) -> list[list[float]]:
    table.need("start", "start = [0, 0, 0]")
    table.need("stop", "stop = [0, 0, 1]")
    table.need("radius", "radius = 1")
    return [table.numbers(names, key) for key in ("start", "stop")]


def read_torus(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: Found) -> Domain:
    """Return a torus."""
    table.allow("shape", "name", "coordinates", "center", "radius", "tube", "axis")
    table.need("radius", "radius = 3")
    table.need("tube", "tube = 1")
    center = table.numbers(names, "center") if "center" in table else [0.0, 0.0, 0.0]
    axis = table.numbers(names, "axis") if "axis" in table else [0.0, 0.0, 1.0]
    sizes = (table.number(names, key) for key in ("radius", "tube"))
    shape: Domain = table.attempt(None, Torus, own, center, *sizes, axis)
    return shape


def read_outline(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: Found) -> Domain:
    """Return an outline of rings."""
    table.allow("shape", "name", "coordinates", "rings", "parts")
    table.need("rings", "rings = [[[0, 0], [3, 0], [0, 3]]]")
    rings = [
        [_point(table, names, i, j, point) for j, point in enumerate(ring)] if isinstance(ring, list) else ring
        for i, ring in enumerate(table.items("rings"))
    ]
    shape: Domain = table.attempt("rings", Outline, own, rings, dict(table.table("parts").data))
    return shape


def _point(table: Table, names: Names, i: int, j: int, point: Any) -> Any:
    # Plain numbers, of which there may be thousands, are no formulas.
    plain = isinstance(point, list) and all(type(entry) in (int, float) for entry in point)
    return point if plain else table.numbers(names, "rings", i, j)


def read_implicit(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: Found) -> Domain:
    """Return the shape where a formula is negative."""
    table.allow("shape", "name", "coordinates", "function", "bounds", "cells")
    table.need("function", 'function = "x**2 + 4*y**2 - 1"')
    table.need("bounds", "bounds = [[-2, 2], [-1, 1]]")
    known = Names(own, {}, names.values)
    function = read_expression(table.text("function"), known).expression
    bounds = table.rows(names, "bounds")
    shape: Domain = table.attempt("function", Implicit, own, function, bounds, table.integer("cells"))
    return shape


def read_file_shape(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: Found) -> Domain:
    """Return the shape that a file beside the problem file describes."""
    table.allow("shape", "name", "coordinates", "tolerance", "region")
    path = _path(table)
    options: dict[str, Any] = {"tolerance": float(table.number(names, "tolerance"))} if "tolerance" in table else {}
    if "region" in table:
        options["region"] = table.string("region")
    shape: Domain = table.attempt("shape", read_shape, path, own, **options)
    return shape


def _path(table: Table) -> Path:
    folder, others = table.document.folder, table.document.folders
    name = table.string("shape") if others else local_name(table, "shape")
    if folder is None:
        raise table.error("shape", "A text that is no file has no folder to read shapes from; use read_problem(path).")
    path = (folder / name).resolve()
    # A link could lead out of the folder.
    if not any(path.is_relative_to(Path(place).resolve()) for place in (folder, *others)) or not path.is_file():
        raise table.error("shape", f"There is no file {cut(name)} in the folder of the problem file.")
    return path
