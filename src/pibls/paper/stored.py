"""Results of the full study that come with the library: what a smaller profile does not run is shown from these."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pibls.errors import FileFormatError
from pibls.paper.cells import Cell

__all__ = ["Stored", "completed", "stored", "write_stored"]

FILE = "stored.json.xz"
_FORMAT = 1
_DIGITS = 7


@dataclass(frozen=True)
class Stored:
    """Cells of a full study, and where, when and from which state of the library they were computed."""

    machine: str
    date: str
    commit: str
    cells: tuple[Cell, ...]


@cache
def stored() -> Stored:
    """Return what comes with the library."""
    return read_stored(files("pibls.paper").joinpath(FILE).read_bytes())


def read_stored(data: bytes) -> Stored:
    """Return what :func:`write_stored` wrote."""
    entries = json.loads(lzma.decompress(data))
    if entries.pop("format", None) != _FORMAT:
        raise FileFormatError(f"{FILE} is of another version of pibls; install the library again.")
    return Stored(**{**entries, "cells": tuple({**cell, "stored": True} for cell in entries["cells"])})


def write_stored(path: Path, found: Stored) -> None:
    """Write cells as compactly as they can be read: numbers have seven digits."""
    entries = {"format": _FORMAT, **asdict(found), "cells": [_short(cell) for cell in found.cells]}
    path.write_bytes(lzma.compress(json.dumps(entries, separators=(",", ":")).encode(), preset=9))


def completed(own: Sequence[Cell], found: Stored) -> list[Cell]:
    """Return the cells of a study, and stored ones for what it did not run.

    Methods are compared by their times, so that those of one problem are of one machine: where a study has not timed
    every method that is stored, stored times are told, and its own are of another kind, ``"time here"``.

    >>> cell = {"kind": "accuracy", "problem": "advection", "method": "PI-BLS", "n_train": 5, "score": "exact"}
    >>> shipped = Stored("", "", "", ({**cell, "seed": 0, "stored": True}, {**cell, "seed": 1, "stored": True}))
    >>> [c.get("stored", False) for c in completed([{**cell, "seed": 0}], shipped)]
    [False, True]
    """
    there, here = ({(c["problem"], c["method"]) for c in cells if c["kind"] == "time"} for cells in (found.cells, own))
    elsewhere = {problem for problem, _ in there - here}
    told = [{**c, "kind": "time here"} if c["kind"] == "time" and c["problem"] in elsewhere else c for c in own]
    have = {_where(cell) for cell in told}
    rest = (c for c in found.cells if c["kind"] != "time" or c["problem"] in elsewhere)
    return [*told, *(cell for cell in rest if _where(cell) not in have)]


def _where(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(cell.get(name) for name in ("kind", "problem", "method", "n_train", "score", "axis", "seed"))


def _short(value: Any) -> Any:
    if isinstance(value, float):
        # A score near one is read by its distance to it.
        base = 1.0 if 0.9 < value < 1.0 else 0.0
        return base - float(f"{base - value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _short(item) for key, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, Iterable) and not isinstance(value, str) else value
