"""Measurements in a problem file: at points, from the columns of a table, or averaged over regions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.geometry import TimeInterval
from pibls.problem import Observation
from pibls.text.document import Table
from pibls.text.domains import Place, read_region
from pibls.text.names import Names
from pibls.text.tables import column, read_columns

__all__ = ["KEYS", "read_observation"]

KEYS = ("u", "points", "values", "noise", "file", "over", "times", "loss")

Measured = tuple[Any, Any, Any]
FindPart = Callable[[Table, tuple[str | int, ...], str], Any]


def read_observation(
    table: Table, place: Place, names: Names, unknown: Any, find_part: FindPart, settings: dict[str, Any]
) -> Observation:
    """Return what was measured; ``find_part`` knows the names of parts."""
    if "loss" in table:
        settings["loss"] = table.string("loss")
    if sum(key in table for key in ("points", "file", "over")) > 1:
        raise table.error(None, "Give one of points, file and over: measurements are at points, or averages.")
    if "over" in table:
        settings["regions"] = _regions(table, place, names, find_part)
        if "times" in table:
            settings["times"] = _several(table, names, "times")
        table.need("values", "values = [1.0]")
        points, values, noise = None, _several(table, names, "values"), _noise(table, names)
    elif "file" in table:
        points, values, noise = _from_file(table, names, unknown)
    else:
        table.need("points", 'points = [[0.5, 0.5]], or file = "measured.csv"')
        table.need("values", "values = [1.0]")
        points, values, noise = _rows(table, names), table.numbers(names, "values"), _noise(table, names)
    return table.attempt(None, Observation, unknown, points, values, noise, **settings)


def _rows(table: Table, names: Names) -> FloatArray:
    rows = table.rows(names, "points")
    if not rows or len({len(row) for row in rows}) > 1:
        raise table.error("points", "points must be a list of points of equal length: points = [[0, 1], [1, 1]].")
    return np.array(rows)


def _several(table: Table, names: Names, key: str) -> Any:
    return table.numbers(names, key) if isinstance(table.data[key], list) else float(table.number(names, key))


def _noise(table: Table, names: Names) -> Any:
    return _several(table, names, "noise") if "noise" in table else None


def _from_file(table: Table, names: Names, unknown: Any) -> Measured:
    """Return points, values and noise from the columns of a file."""
    columns = read_columns(table, "file")
    points = np.stack([column(table, "file", columns, s.name) for s in names.coordinates], axis=1)
    name = table.string("values", getattr(unknown, "label", "value"))
    values = column(table, "values" if "values" in table else "file", columns, name)
    if not isinstance(table.data.get("noise"), str):
        return points, values, _noise(table, names)
    return points, values, column(table, "noise", columns, table.string("noise"))


def _regions(table: Table, place: Place, names: Names, find_part: FindPart) -> list[Any]:
    """Return shapes and parts; what a table says of time makes a product with an interval."""
    regions: list[Any] = []
    for i, entry in enumerate(table.items("over")):
        if isinstance(entry, str):
            regions.append(find_part(table, ("over", i), entry.strip()))
        elif isinstance(entry, dict):
            regions.append(_region(Table(table.document, (*table.path, "over", i), entry), place, names))
        else:
            message = 'over lists shapes, {shape = "disk", radius = 0.1}, and parts such as "left".'
            raise table.document.error((*table.path, "over", i), message)
    return regions


def _region(table: Table, place: Place, names: Names) -> Any:
    if "during" not in table:
        return read_region(table, names)
    time = place.domain.time
    limits = table.numbers(names, "during")
    if time is None or len(limits) != 2:
        raise table.error("during", "during must be two times, in a problem with time: during = [0, 1].")
    interval = table.attempt("during", TimeInterval, time, *limits)
    space = replace(table, data={key: value for key, value in table.data.items() if key != "during"})
    return table.attempt(None, read_region(space, names).__mul__, interval) if space.data else interval
