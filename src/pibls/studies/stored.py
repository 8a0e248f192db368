"""Results of the full study that come with the library: what a smaller profile does not run is shown from these."""

from __future__ import annotations

import json
import lzma
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pibls.errors import FileFormatError
from pibls.studies.cells import Cell

__all__ = ["Stored", "completed", "stored", "write_stored"]

FILE = "stored.json.xz"
_FORMAT = 1
_DIGITS = 7
# Kinds whose numbers depend on the machine: they are taken from one machine or the other, never from both.
_TIMED = ("time", "complexity")


@dataclass(frozen=True)
class Stored:
    """Cells of a full study, and where, when and from which state of the library they were computed."""

    machine: str
    date: str
    commit: str
    cells: tuple[Cell, ...]


@cache
def stored() -> Stored | None:
    """Return what comes with the library, or None where it has none."""
    path = files("pibls.studies").joinpath(FILE)
    return read_stored(path.read_bytes()) if path.is_file() else None


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


def completed(own: Sequence[Cell], found: Stored | None, profile: str) -> list[Cell]:
    """Return the cells of a study, and stored ones for what it did not run.

    Networks that a smaller profile trained for a shorter time give way to those of the full study. Times of one problem
    are of one machine: stored ones where these are of all methods that were timed here.

    >>> cell = {"kind": "accuracy", "problem": "advection", "method": "PI-BLS", "n_train": 5, "score": "exact"}
    >>> shipped = Stored("", "", "", ({**cell, "seed": 0, "stored": True}, {**cell, "seed": 1, "stored": True}))
    >>> [c.get("stored", False) for c in completed([{**cell, "seed": 0}], shipped, "quick")]
    [False, True]
    """
    if found is None:
        return list(own)
    others = {_about(cell) for cell in found.cells}
    # What cannot be had from the stored study as a whole is timed here.
    here = {
        _timed(cell) for cell in own if cell["kind"] in _TIMED and (profile == "full" or _about(cell) not in others)
    }
    if profile != "full":
        own = [cell for cell in own if not (_otherwise(cell, here) and _about(cell) in others)]
    have = {_where(cell) for cell in own}
    return [*own, *(cell for cell in found.cells if _where(cell) not in have and _timed(cell) not in here)]


def _otherwise(cell: Mapping[str, Any], here: Collection[Any]) -> bool:
    """Whether a smaller profile computes it otherwise than the full one: trains for a shorter time, or elsewhere."""
    return _timed(cell) not in here if cell["kind"] in _TIMED else cell["method"] == "PINN"


def _timed(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(cell.get(name) for name in ("kind", "problem", "axis"))


def _about(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(cell.get(name) for name in ("kind", "problem", "method", "n_train", "score", "axis"))


def _where(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return (*_about(cell), cell["seed"])


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _short(item) for key, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, Iterable) and not isinstance(value, str) else value
