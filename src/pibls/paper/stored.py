"""Results of the full study that come with the library; reports of smaller profiles show them for tasks not run."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pibls.errors import FileFormatError
from pibls.paper.cells import Cell
from pibls.paper.ledger import Ledger

FILE = "stored.json.xz"
_FORMAT = 2
_DIGITS = 7
_COMPARED, _SAME = ("accuracy", "beyond"), 0.01


@cache
def stored() -> Ledger:
    """Return the results that come with the library; each says by which command, commit and machine, and when."""
    return read_stored(files("pibls.paper").joinpath(FILE).read_bytes())


def read_stored(data: bytes) -> Ledger:
    """Return the cells that :func:`write_stored` wrote."""
    entries = json.loads(lzma.decompress(data))
    if entries.pop("format", None) != _FORMAT:
        raise FileFormatError(f"{FILE} is of another version of pibls; install the library again.")
    origins = entries["origins"]
    return Ledger(tuple({**cell, "made": origins[cell["made"]], "stored": True} for cell in entries["cells"]))


def write_stored(path: Path, found: Ledger) -> None:
    """Write cells as compactly as they can be read: numbers have seven digits."""
    origins = [{k: v for k, v in origin.items() if k != "cells"} for origin in found.origins]
    cells = [{**_short(cell), "made": origins.index(dict(cell["made"]))} for cell in found.cells]
    entries = {"format": _FORMAT, "origins": origins, "cells": cells}
    path.write_bytes(lzma.compress(json.dumps(entries, separators=(",", ":")).encode(), preset=9))


def completed(own: Sequence[Cell], found: Ledger) -> list[Cell]:
    """Return the cells of a study, and stored ones for tasks that it did not run.

    Every number over seeds has one source: where there are more stored seeds than the study ran, all are stored ones.
    Methods are compared by their times, so that those of one problem are of one machine: where a study has not timed
    every method that is stored, stored times are told, and its own are of another kind, ``"time here"``.

    >>> cell = {"kind": "accuracy", "problem": "advection", "method": "PI-BLS", "n_train": 5, "score": "exact"}
    >>> shipped = Ledger(({**cell, "seed": 0, "stored": True}, {**cell, "seed": 1, "stored": True}))
    >>> [c.get("stored", False) for c in completed([{**cell, "seed": 0}], shipped)]
    [True, True]
    """
    there, here = ({(c["problem"], c["method"]) for c in cells if c["kind"] == "time"} for cells in (found.cells, own))
    elsewhere = {problem for problem, _ in there - here}
    told = [{**c, "kind": "time here"} if c["kind"] == "time" and c["problem"] in elsewhere else c for c in own]
    rest = [c for c in found.cells if c["kind"] != "time" or c["problem"] in elsewhere]
    mine, stored = (Counter(map(_group, cells)) for cells in (told, rest))
    fresh = {group for group, count in mine.items() if count >= stored[group]}
    return [*(c for c in told if _group(c) in fresh), *(c for c in rest if _group(c) not in fresh)]


def twins(own: Sequence[Cell], found: Ledger) -> tuple[int, int]:
    """Return how many cells of a study are stored, too, and for how many of them both errors agree to one per cent."""
    known = {(_group(c), c["seed"]): c for c in found.cells}
    pairs = [
        (c, known[_group(c), c["seed"]]) for c in own if c["kind"] in _COMPARED and (_group(c), c["seed"]) in known
    ]
    errors = [(a["test"]["relative_rmse"], b["test"]["relative_rmse"]) for a, b in pairs]
    return len(errors), sum(abs(a - b) <= _SAME * b for a, b in errors)


def _group(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key that the seeds of one number share."""
    return tuple(cell.get(name) for name in ("kind", "problem", "method", "n_train", "score", "axis"))


def _short(value: Any) -> Any:
    if isinstance(value, float):
        # A score near one is read by its distance to it.
        base = 1.0 if 0.9 < value < 1.0 else 0.0
        return base - float(f"{base - value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _short(item) for key, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, Iterable) and not isinstance(value, str) else value
