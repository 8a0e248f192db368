"""The ``[domain]`` and ``[time]`` of a problem file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, cut
from pibls.geometry import Box, Combination, Domain, Extrusion, Implicit, PointCloud, Star, TimeInterval, read_shape
from pibls.geometry.base import KINDS
from pibls.geometry.description import Argument, Kind
from pibls.geometry.reading.shape import EXTENSIONS
from pibls.problem.symbols import coordinates
from pibls.text.document import Table
from pibls.text.positions import suggestion
from pibls.text.tables import column, file_beside, read_columns
from pibls.text.vocabulary import Names


@dataclass(frozen=True)
class PosedDomain:
    """A domain, its space part, and the shapes it was made from that have names."""

    domain: Domain
    space: Domain
    shapes: Mapping[str, Domain]

    @property
    def named(self) -> dict[str, Domain]:
        """The shapes that a file gives a name."""
        return {name: shape for name, shape in self.shapes.items() if not name.startswith("#")}


def coordinate_names(document: Table) -> list[str]:
    """Return the names of the coordinates of a problem file, space first, then time."""
    names = shape_coordinates(document.table("domain")) if "domain" in document else []
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


def read_domain(document: Table, names: Names) -> PosedDomain:
    """Return the domain that the tables ``[domain]`` and ``[time]`` describe."""
    # Limits and radii are numbers, which may use parameters.
    reader = ShapeReader(replace(names, coordinates=(), fields={}))
    space = reader.read(document.table("domain"), names.coordinates) if "domain" in document else None
    if "time" not in document:
        assert space is not None
        return PosedDomain(space, space, reader.found)
    table, time = document.table("time"), names.coordinates[-1]
    low, high = limits_of(table, time.name, reader.names)
    interval = table.attempt(time.name, TimeInterval, time, low, high)
    if space is None:
        return PosedDomain(interval, interval, reader.found)
    return PosedDomain(document.attempt("time", space.__mul__, interval), space, reader.found)


def read_region(table: Table, names: Names, symbols: tuple[sp.Symbol, ...] | None = None) -> Domain:
    """Return a shape within the domain, of all coordinates of the problem or of some."""
    reader = ShapeReader(replace(names, coordinates=(), fields={}))
    return reader.read(table, names.coordinates if symbols is None else symbols)


_PLAIN = ("Interval", "Rectangle", "Box", "Disk", "Ball", "Polygon", "Outline", "Star", "Implicit", "Cylinder", "Cone")
_COMBINATIONS = ("union", "intersection", "difference")
SHAPES: Mapping[str, type[Domain]] = {
    **{name.lower(): KINDS[name] for name in (*_PLAIN, "Torus", "Extrusion", "Revolution")},
    "points": PointCloud,
    **dict.fromkeys(_COMBINATIONS, Combination),
}
_SOLID = ("ball", "cylinder", "cone", "torus", "revolution")
_USUAL = ("x", "y", "z")
_MOST_SHAPES = 20

Symbols = tuple[sp.Symbol, ...]


@lru_cache(maxsize=_MOST_SHAPES)
def _known(label: str, shape: Domain) -> Domain:  # noqa: ARG001, shapes with other labels are others
    """Return a shape, or the equal one that had this label in a file before: much of its boundary is found already."""
    return shape


def shape_coordinates(table: Table) -> list[str]:
    """Return the names of the coordinates of a shape."""
    kind = _kind(table)
    if issubclass(SHAPES.get(kind, Domain), Box):
        return [key for key in table.data if key not in ("shape", "name")]
    if "coordinates" in table:
        return table.strings("coordinates")
    if kind in _COMBINATIONS:
        parts = table.tables("of")
        if parts:
            return shape_coordinates(parts[0])
        raise table.error(None, f"A {kind} needs shapes: of = [{{shape = ...}}, {{shape = ...}}].")
    if kind == "extrusion":
        return [*shape_coordinates(table.table("of")), _drawn_along(table)]
    one_each = {"ball": "center", "implicit": "bounds"}.get(kind, "")
    count: int | None = len(table.items(one_each)) if one_each in table else 3 if kind in _SOLID else 2
    if kind not in SHAPES:
        count = EXTENSIONS[PurePosixPath(kind).suffix.lower()]
    if count is None:
        message = 'Meshes are in the plane or in space; say which with coordinates = ["x", "y"] or ["x", "y", "z"].'
        raise table.error("shape", message)
    return list(_USUAL[:count])


def _kind(table: Table) -> str:
    table.need("shape", 'shape = "rectangle"')
    kind = table.string("shape")
    if kind not in SHAPES and PurePosixPath(kind).suffix.lower() not in EXTENSIONS:
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


def limits_of(table: Table, key: str, names: Names) -> tuple[Any, Any]:
    """Return the lower and the upper limit of a coordinate."""
    if not isinstance(table.data[key], list) or len(table.data[key]) != 2:
        raise table.error(key, f"{key} must be [lower, upper], as in {key} = [0, 1].")
    return table.number(names, key, 0), table.number(names, key, 1)


@dataclass(frozen=True)
class ShapeReader:
    """Reads shapes, whose numbers may be formulas of ``names``, and keeps those it has ``found`` by name."""

    names: Names
    found: dict[str, Domain] = field(default_factory=dict)

    def read(self, table: Table, symbols: Symbols) -> Domain:
        """Return the shape of a table in some of the coordinates."""
        own = tuple(symbol for name in shape_coordinates(table) for symbol in symbols if symbol.name == name)
        if len(self.found) > _MOST_SHAPES:
            message = f"There are more than {_MOST_SHAPES} shapes; use a polygon or a point cloud."
            raise table.error(None, message)
        name = table.string("name")
        label = name or f"#{len(self.found)}"
        shape = _known(label, self._made(table, own))
        taken = name in self.found or name in shape.parts or name in ("boundary", "initial")
        if name and (taken or not name.isidentifier()):
            raise table.error("name", f"The name {cut(repr(name))} is taken, or is not one plain word; choose another.")
        self.found[label] = shape
        return shape

    def _made(self, table: Table, own: Symbols) -> Domain:
        kind = SHAPES.get(_kind(table))
        if kind is None:
            return self._from_file(table, own)
        if kind is Combination:
            return self._combination(table, own)
        values: dict[str, Any] = {}
        if issubclass(kind, Box):
            limits = [limits_of(table, symbol.name, self.names) for symbol in own]
            values = {"lower": [low for low, _ in limits], "upper": [high for _, high in limits]}
        elif kind is Extrusion:
            values = {"of": self.read(table.table("of"), own), "limits": limits_of(table, own[-1].name, self.names)}
        else:
            table.allow("shape", "name", "coordinates", *(a.name for a in kind.arguments), *["angle"][: kind is Star])
            for argument in kind.arguments:
                if argument.example:
                    table.need(argument.name, argument.example)
            make = self._points if kind is PointCloud else self._values
            values = make(table, kind, own)
        lead = kind.arguments[0]
        pointed = lead.name if lead.kind in (Kind.POINTS, Kind.RINGS, Kind.FORMULA) and kind is not PointCloud else None
        shape: Domain = table.attempt(pointed, kind.make, own, **values)
        return shape

    def _values(self, table: Table, kind: type[Domain], own: Symbols) -> dict[str, Any]:
        given = (argument for argument in kind.arguments if argument.name in table)
        values = {argument.name: self._value(table, argument, kind, own) for argument in given}
        # A shape whose center is not told is around the origin.
        around = any(argument.name == "center" for argument in kind.arguments)
        return ({"center": [0.0] * len(own)} if around else {}) | values

    def _value(self, table: Table, argument: Argument, kind: type[Domain], own: Symbols) -> Any:
        key = argument.name
        match argument.kind:
            case Kind.NUMBER:
                return table.number(self.names, key)
            case Kind.WHOLE:
                return table.integer(key)
            case Kind.POINT:
                return table.numbers(self.names, key)
            case Kind.POINTS:
                return table.rows(self.names, key)
            case Kind.RINGS:
                return [self._ring(table, key, i, ring) for i, ring in enumerate(table.items(key))]
            case Kind.PARTS:
                return dict(table.table(key).data)
            case Kind.FORMULA:
                symbols = own if kind is Implicit else (_angle(table),)
                return table.formula(replace(self.names, coordinates=symbols), key)
            case Kind.COORDINATE:
                return _coordinate(table, key, own)
        return self._section(table.table(key), own)

    def _ring(self, table: Table, key: str, i: int, ring: Any) -> Any:
        def is_plain(point: Any) -> bool:
            return isinstance(point, list) and all(type(entry) in (int, float) for entry in point)

        if not isinstance(ring, list):
            return ring
        # Plain numbers, of which there may be thousands, are no formulas.
        return [p if is_plain(p) else table.numbers(self.names, key, i, j) for j, p in enumerate(ring)]

    def _section(self, table: Table, own: Symbols) -> Domain:
        """Return a shape that is turned; the distance from the axis is no coordinate of the problem."""
        known = [symbol.name for symbol in own]
        new = [name for name in shape_coordinates(table) if name not in known]
        return self.read(table, (*own, *(table.attempt("coordinates", coordinates, name) for name in new)))

    def _points(self, table: Table, kind: type[Domain], own: Symbols) -> dict[str, Any]:
        """Return the points of a cloud; tables may have weights and normals beside them."""
        files = {key for key in ("interior", "boundary") if isinstance(table.data.get(key), str)}
        plain = replace(table, data={key: value for key, value in table.data.items() if key not in files})
        values: dict[str, Any] = {}
        if "interior" in files:
            values["interior"], extra = _columns(table, "interior", own, ["weight"])
            values["weights"] = None if extra is None else extra[:, 0]
        if "boundary" in files:
            normals = [f"n_{symbol.name}" for symbol in own]
            values["boundary"], values["normals"] = _columns(table, "boundary", own, normals)
        return values | self._values(plain, kind, own)

    def _combination(self, table: Table, own: Symbols) -> Domain:
        table.allow("shape", "name", "coordinates", "of")
        kind, parts = _kind(table), table.tables("of")
        if len(parts) < 2:
            raise table.error(None, f"A {kind} needs two shapes or more: of = [{{shape = ...}}, {{shape = ...}}].")
        shapes = [self.read(part, own) for part in parts]
        whole: Domain = table.attempt(None, reduce, lambda one, two: Combination(kind, one, two), shapes)
        return whole

    def _from_file(self, table: Table, own: Symbols) -> Domain:
        table.allow("shape", "name", "coordinates", "tolerance", "region")
        path = file_beside(table, "shape", "shapes", table.document.folders)
        options: dict[str, Any] = {key: table.string(key) for key in ("region",) if key in table}
        if "tolerance" in table:
            options["tolerance"] = float(table.number(self.names, "tolerance"))
        return table.attempt("shape", read_shape, path, own, **options)


def _coordinate(table: Table, key: str, own: Symbols) -> sp.Symbol:
    known = {symbol.name: symbol for symbol in own}
    if table.string(key) not in known:
        raise table.error(key, f"{key} must be one of {', '.join(known)}.")
    return known[table.string(key)]


def _angle(table: Table) -> sp.Symbol:
    angle = table.attempt("angle", coordinates, table.string("angle", "theta"))
    if not isinstance(angle, sp.Symbol):
        raise table.error("angle", "The angle must be one name, such as theta.")
    return angle


def _columns(table: Table, key: str, own: Symbols, extra: list[str]) -> tuple[FloatArray, FloatArray | None]:
    """Return points of a table, and further columns if it has them."""
    columns = read_columns(table, key)
    points = np.stack([column(table, key, columns, symbol.name) for symbol in own], axis=1)
    given = all(name in columns for name in extra)
    return points, np.stack([columns[name] for name in extra], axis=1) if given else None
