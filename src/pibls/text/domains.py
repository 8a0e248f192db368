"""The ``[domain]`` and ``[time]`` of a problem file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sympy as sp

from pibls.checks import cut
from pibls.geometry import Domain, TimeInterval
from pibls.problem.symbols import coordinates
from pibls.text.document import Table
from pibls.text.names import Names
from pibls.text.shapes import ShapeReader, limits_of, shape_coordinates

__all__ = ["Place", "coordinate_names", "read_domain", "read_region"]


@dataclass(frozen=True)
class Place:
    """A domain, its space part, and the shapes it was made from that have names."""

    domain: Domain
    space: Domain
    shapes: Mapping[str, Domain]


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


def read_domain(document: Table, names: Names) -> Place:
    """Return the domain that the tables ``[domain]`` and ``[time]`` describe."""
    # Limits and radii are numbers, which may use parameters.
    reader = ShapeReader(replace(names, coordinates=(), fields={}))
    space = reader.read(document.table("domain"), names.coordinates) if "domain" in document else None
    if "time" not in document:
        assert space is not None
        return Place(space, space, reader.found)
    table, time = document.table("time"), names.coordinates[-1]
    low, high = limits_of(table, time.name, reader.names)
    interval = table.attempt(time.name, TimeInterval, time, low, high)
    if space is None:
        return Place(interval, interval, reader.found)
    return Place(document.attempt("time", space.__mul__, interval), space, reader.found)


def read_region(table: Table, names: Names, symbols: tuple[sp.Symbol, ...] | None = None) -> Domain:
    """Return a shape within the domain, of all coordinates of the problem or of some."""
    reader = ShapeReader(replace(names, coordinates=(), fields={}))
    return reader.read(table, names.coordinates if symbols is None else symbols)
