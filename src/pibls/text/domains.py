"""The ``[domain]`` and ``[time]`` of a problem file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, cut
from pibls.geometry import (
    Ball,
    Box,
    Combination,
    Disk,
    Domain,
    Extrusion,
    Interval,
    PointCloud,
    Polygon,
    Rectangle,
    Revolution,
    Star,
    TimeInterval,
)
from pibls.geometry.reading.shape import EXTENSIONS
from pibls.problem.symbols import coordinates
from pibls.text import solids
from pibls.text.document import Table
from pibls.text.expressions import read_expression
from pibls.text.names import Names
from pibls.text.source import suggestion
from pibls.text.tables import column, read_columns

__all__ = ["SHAPES", "Place", "coordinate_names", "read_domain", "read_region"]

_BOXES: dict[str, Callable[..., Domain]] = {"interval": Interval, "rectangle": Rectangle, "box": Box}
_COMBINATIONS = ("union", "intersection", "difference")
_USUAL = ("x", "y", "z")
_MOST_SHAPES = 20


@dataclass(frozen=True)
class Place:
    """A domain, its space part, and the shapes it was made from that have names."""

    domain: Domain
    space: Domain
    shapes: Mapping[str, Domain]


def coordinate_names(document: Table) -> list[str]:
    """Return the names of the coordinates of a problem file, space first, then time."""
    names = _space_names(document.table("domain")) if "domain" in document else []
    time = list(document.table("time").data)
    if "time" in document and len(time) != 1:
        raise document.error("time", "The table [time] has one key, the time coordinate: t = [0, 1].")
    if not names and not time:
        raise document.error(None, 'There is no domain. Write [domain] with shape = "interval" and x = [0, 1].')
    for name in names + time:
        if not name.isascii() or not name.isidentifier() or name.startswith("_"):
            message = f"The coordinate {cut(repr(name))} must have a name of plain ASCII letters and digits."
            raise document.error("domain" if name in names else "time", message)
        document.attempt("domain" if name in names else "time", coordinates, name)
    return names + time


def _space_names(table: Table) -> list[str]:
    kind = _kind(table)
    if kind in _BOXES:
        return [key for key in table.data if key not in ("shape", "name")]
    if "coordinates" in table:
        return table.strings("coordinates")
    if kind in _COMBINATIONS:
        parts = table.tables("of")
        if parts:
            return _space_names(parts[0])
        raise table.error(None, f"A {kind} needs shapes: of = [{{shape = ...}}, {{shape = ...}}].")
    if kind == "ball":
        return list(_USUAL[: len(table.items("center"))]) if "center" in table else list(_USUAL)
    if kind == "extrusion":
        return [*_space_names(table.table("of")), _drawn_along(table)]
    if kind in _SOLID:
        return list(_USUAL)
    if kind == "implicit":
        return list(_USUAL[: len(table.items("bounds"))]) if "bounds" in table else list(_USUAL[:2])
    if solids.is_file(kind):
        count = EXTENSIONS[PurePosixPath(kind).suffix.lower()]
        if count is None:
            message = 'Meshes are in the plane or in space; say which with coordinates = ["x", "y"] or ["x", "y", "z"].'
            raise table.error("shape", message)
        return list(_USUAL[:count])
    return list(_USUAL[:2])


def _kind(table: Table) -> str:
    table.need("shape", 'shape = "rectangle"')
    kind = table.string("shape")
    if kind not in SHAPES and not solids.is_file(kind):
        known = f"The shapes are {', '.join(SHAPES)}."
        raise table.error("shape", f"There is no shape {cut(repr(kind))}.{suggestion(kind, SHAPES, known)}")
    return kind


def _drawn_along(table: Table) -> str:
    """Return the third coordinate of an extrusion, a key of its own."""
    table.need("of", 'of = {shape = "disk", radius = 1}')
    keys = [key for key in table.data if key not in ("shape", "name", "of")]
    if len(keys) != 1:
        raise table.error(None, "An extrusion has one coordinate of its own, with its limits: z = [0, 1].")
    return keys[0]


def read_domain(document: Table, names: Names) -> Place:
    """Return the domain that the tables ``[domain]`` and ``[time]`` describe."""
    # Limits and radii are numbers, which may use parameters.
    constants = replace(names, coordinates=(), fields={})
    found: dict[str, Domain] = {}
    space = _shape(document.table("domain"), names.coordinates, constants, found) if "domain" in document else None
    if "time" not in document:
        assert space is not None
        return Place(space, space, found)
    table, time = document.table("time"), names.coordinates[-1]
    low, high = _limits(table, time.name, constants)
    interval = table.attempt(time.name, TimeInterval, time, low, high)
    if space is None:
        return Place(interval, interval, found)
    return Place(document.attempt("time", space.__mul__, interval), space, found)


def read_region(table: Table, names: Names, symbols: tuple[sp.Symbol, ...] | None = None) -> Domain:
    """Return a shape within the domain, of all coordinates of the problem or of some."""
    constants = replace(names, coordinates=(), fields={})
    return _shape(table, names.coordinates if symbols is None else symbols, constants, {})


def _limits(table: Table, key: str, names: Names) -> tuple[Any, Any]:
    if not isinstance(table.data[key], list) or len(table.data[key]) != 2:
        raise table.error(key, f"{key} must be [lower, upper], as in {key} = [0, 1].")
    return table.number(names, key, 0), table.number(names, key, 1)


def _shape(table: Table, symbols: tuple[sp.Symbol, ...], names: Names, found: dict[str, Domain]) -> Domain:
    own = [symbol for name in _space_names(table) for symbol in symbols if symbol.name == name]
    if len(found) > _MOST_SHAPES:
        raise table.error(None, f"There are more than {_MOST_SHAPES} shapes; use a polygon or a point cloud.")
    shape = SHAPES.get(_kind(table), solids.read_file_shape)(table, tuple(own), names, found)
    name = table.string("name")
    if name and (name in found or not name.isidentifier() or name in shape.parts or name in ("boundary", "initial")):
        raise table.error("name", f"The name {cut(repr(name))} is taken, or is not one plain word; choose another.")
    found[name or f"#{len(found)}"] = shape
    return shape


def _box(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: dict[str, Domain]) -> Domain:
    ranges = [(symbol, *_limits(table, symbol.name, names)) for symbol in own]
    return table.attempt(None, _BOXES[_kind(table)], *ranges)


def _ball(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: dict[str, Domain]) -> Domain:
    table.allow("shape", "name", "coordinates", "center", "radius")
    table.need("radius", "radius = 1")
    center = table.numbers(names, "center") if "center" in table else [0.0] * len(own)
    make = Disk if _kind(table) == "disk" else Ball
    return table.attempt(None, make, own, center, table.number(names, "radius"))


def _polygon(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: dict[str, Domain]) -> Domain:
    table.allow("shape", "name", "coordinates", "vertices")
    table.need("vertices", "vertices = [[0, 0], [1, 0], [0, 1]]")
    return table.attempt("vertices", Polygon, own, table.rows(names, "vertices"))


def _star(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: dict[str, Domain]) -> Domain:
    table.allow("shape", "name", "coordinates", "radius", "angle", "center")
    table.need("radius", 'radius = "1 + cos(5*theta)/4"')
    angle = table.attempt("angle", coordinates, table.string("angle", "theta"))
    if not isinstance(angle, sp.Symbol):
        raise table.error("angle", "The angle must be one name, such as theta.")
    radius = read_expression(table.text("radius"), replace(names, coordinates=(angle,))).expression
    center = table.numbers(names, "center") if "center" in table else [0.0, 0.0]
    return table.attempt("radius", Star, own, radius, center)


def _points(table: Table, own: tuple[sp.Symbol, ...], names: Names, _: dict[str, Domain]) -> Domain:
    table.allow("shape", "name", "coordinates", "interior", "boundary", "normals", "weights", "parts")
    table.need("interior", 'interior = "inside.csv"')
    interior, extra = _cloud(table, "interior", own, names, ["weight"])
    options: dict[str, Any] = {"weights": extra[:, 0] if extra is not None else None}
    if "boundary" in table:
        normals = [f"n_{symbol.name}" for symbol in own]
        options["boundary"], options["normals"] = _cloud(table, "boundary", own, names, normals)
    if "normals" in table:
        options["normals"] = table.rows(names, "normals")
    if "weights" in table:
        options["weights"] = table.numbers(names, "weights")
    parts = dict(table.table("parts").data)
    return table.attempt(None, PointCloud, own, interior, parts=parts, **options)


def _cloud(
    table: Table, key: str, own: tuple[sp.Symbol, ...], names: Names, extra: list[str]
) -> tuple[Any, FloatArray | None]:
    """Return points given in the file or in a table, and further columns if the table has them."""
    if not isinstance(table.data[key], str):
        return table.rows(names, key), None
    columns = read_columns(table, key)
    points = np.stack([column(table, key, columns, symbol.name) for symbol in own], axis=1)
    given = all(name in columns for name in extra)
    return points, np.stack([columns[name] for name in extra], axis=1) if given else None


def _combination(table: Table, own: tuple[sp.Symbol, ...], names: Names, found: dict[str, Domain]) -> Domain:
    table.allow("shape", "name", "coordinates", "of")
    parts = table.tables("of")
    if len(parts) < 2:
        raise table.error(None, f"A {_kind(table)} needs two shapes or more: of = [{{shape = ...}}, {{shape = ...}}].")
    shapes = [_shape(part, own, names, found) for part in parts]
    kind = _kind(table)
    shape: Domain = table.attempt(None, reduce, lambda first, second: Combination(kind, first, second), shapes)
    return shape


def _extrusion(table: Table, own: tuple[sp.Symbol, ...], names: Names, found: dict[str, Domain]) -> Domain:
    plane = _shape(table.table("of"), own, names, found)
    limits = _limits(table, own[-1].name, names)
    shape: Domain = table.attempt(None, Extrusion, plane, (own[-1], *limits))
    return shape


def _revolution(table: Table, own: tuple[sp.Symbol, ...], names: Names, found: dict[str, Domain]) -> Domain:
    table.allow("shape", "name", "coordinates", "of", "axis")
    table.need("of", 'of = {shape = "disk", coordinates = ["r", "z"], center = [3, 0], radius = 1}')
    table.need("axis", 'axis = "z"')
    known = {symbol.name: symbol for symbol in own}
    if table.string("axis") not in known:
        raise table.error("axis", f"axis must be one of {', '.join(known)}.")
    inner = table.table("of")
    # The distance from the axis is no coordinate of the problem.
    extra = [inner.attempt("coordinates", coordinates, name) for name in _space_names(inner) if name not in known]
    plane = _shape(inner, (*own, *extra), names, found)
    shape: Domain = table.attempt(None, Revolution, own, plane, known[table.string("axis")])
    return shape


_SOLID = ("cylinder", "cone", "torus", "revolution")
SHAPES: Mapping[str, Callable[[Table, tuple[sp.Symbol, ...], Names, dict[str, Domain]], Domain]] = {
    **dict.fromkeys(_BOXES, _box),
    "disk": _ball,
    "ball": _ball,
    "polygon": _polygon,
    "outline": solids.read_outline,
    "star": _star,
    "implicit": solids.read_implicit,
    "cylinder": solids.read_cylinder,
    "cone": solids.read_cone,
    "torus": solids.read_torus,
    "extrusion": _extrusion,
    "revolution": _revolution,
    "points": _points,
    **dict.fromkeys(_COMBINATIONS, _combination),
}
