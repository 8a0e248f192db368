"""Every number of the report as comma-separated values; times go to files of their own."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pibls.paper.cells import Cell
from pibls.paper.ledger import Ledger, Record
from pibls.writing import replaced

_CURVES = ("exact", "predicted", "source_exact", "source_predicted", "residual")
_WHERE = ("kind", "problem", "method", "score", "n_train", "seed")
_COUNTS, _SECONDS = ("parameters", "configurations"), ("seconds", "search_seconds")
_BOUNDS = ("measured", "paper_bound", "sharp_bound", "holds")
_RECORD = ("table", "problem", "method", "part", "quantity", "n_train", "published")
_COMPARED = (*_RECORD, "median", "worst", "best", "runs", "ratio", "verdict", "held")


def write_files(
    folder: Path, book: Ledger, compared: Sequence[Record], timed: Sequence[Record], *, own: Ledger | None = None
) -> tuple[Path, ...]:
    """Write all files and return their paths; those of single runs hold the own ones, if these are given.

    ``comparison.csv``, ``errors.csv``, ``settings.csv``, ``theorems.csv``, ``curves.csv`` and ``coverage.csv`` are the
    same for the same study on the same machine, however often it was interrupted; ``times.csv``, ``seconds.csv`` and
    ``growth.csv`` hold what was timed.
    """
    content: dict[str, tuple[Sequence[str], Iterable[Sequence[Any]]]] = {
        "comparison.csv": (_COMPARED, map(_record, compared)),
        "times.csv": (_COMPARED, map(_record, timed)),
        "curves.csv": ((*_WHERE, "row", "column", *_CURVES), _curves(book)),
        "coverage.csv": (("problem", "n_train", "repetition", "inside", "error", "noise"), _coverage(book)),
        "growth.csv": (("method", "axis", "size", "seconds", "exponent"), _growth(book)),
        **_of_runs(book if own is None else own),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, (columns, rows) in content.items():
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([repr(value) if isinstance(value, float) else value for value in row] for row in rows)
        replaced(folder / name, partial(Path.write_text, data=buffer.getvalue(), encoding="utf-8"))
    return tuple(folder / name for name in content)


def _of_runs(book: Ledger) -> Mapping[str, tuple[Sequence[str], Iterable[Sequence[Any]]]]:
    """Return the files with rows of every run of this study; a curve shows the model of a run that is there already."""
    own = (cell for cell in book.cells if cell["kind"] not in ("curve", "complexity") and not cell.get("stored"))
    runs = [(_where(cell), cell) for cell in own]
    return {
        "errors.csv": (
            (*_WHERE, "part", "metric", "value"),
            ([*at, part, *item] for at, c in runs for part in ("train", "test") for item in _sorted(c, part)),
        ),
        "settings.csv": (
            (*_WHERE, *_COUNTS, "setting", "value"),
            ([*at, *map(c.get, _COUNTS), *item] for at, c in runs for item in _sorted(c, "settings")),
        ),
        "theorems.csv": (
            (*_WHERE, "theorem", *_BOUNDS),
            ([*at, name, *map(found.get, _BOUNDS)] for at, c in runs for name, found in _sorted(c, "theorems")),
        ),
        "seconds.csv": ((*_WHERE, *_SECONDS), ([*at, *map(c.get, _SECONDS)] for at, c in runs)),
    }


def _where(cell: Cell) -> list[Any]:
    return [cell.get(key) for key in _WHERE]


def _sorted(cell: Cell, entry: str) -> list[tuple[str, Any]]:
    return sorted((cell.get(entry) or {}).items())


def _record(record: Record) -> list[Any]:
    row, found = [getattr(record, name) for name in _RECORD], record.measured
    if found is None:
        return [*row, *[None] * 5, record.verdict, 0]
    ratio = None if record.published is None else record.ratio
    return [*row, found.median, found.worst, found.best, found.count, ratio, record.verdict, record.held]


def _curves(book: Ledger) -> Iterator[list[Any]]:
    """Yield the values behind the figures, row by row; nothing where the grid leaves the domain."""
    for cell in book.select(kind="curve").cells:
        pictures = [np.atleast_2d(np.asarray(cell["extra"][name], dtype=np.float64)) for name in _CURVES]
        for place in np.argwhere(np.isfinite(pictures[0])):
            yield [*_where(cell), *place.tolist(), *(f"{picture[tuple(place)]:.9g}" for picture in pictures)]


def _coverage(book: Ledger) -> Iterator[list[Any]]:
    for cell in book.select(kind="coverage").cells:
        runs = zip(*(cell["extra"][name] for name in ("inside", "errors", "noise")), strict=True)
        yield from ([cell["problem"], cell["n_train"], repetition, *values] for repetition, values in enumerate(runs))


def _growth(book: Ledger) -> Iterator[list[Any]]:
    for cell in book.select(kind="complexity").cells:
        for size, seconds in zip(cell["extra"]["sizes"], cell["extra"]["seconds"], strict=True):
            yield [cell["method"], cell["axis"], size, seconds, cell["exponent"]]
