"""Every number of the report as comma-separated values; what depends on the clock goes to files of its own."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pibls.studies.report_ledger import Cell, Ledger
from pibls.studies.report_records import Record

__all__ = ["write_files"]

_CURVES = ("exact", "predicted", "source_exact", "source_predicted", "residual")
_WHERE = ("kind", "problem", "method", "score", "n_train", "seed")


def write_files(folder: Path, book: Ledger, compared: Sequence[Record], timed: Sequence[Record]) -> tuple[Path, ...]:
    """Write all files and return their paths.

    ``comparison.csv``, ``errors.csv``, ``settings.csv``, ``theorems.csv``, ``curves.csv`` and ``coverage.csv`` are the
    same for the same study on the same machine, however often it was interrupted; ``times.csv``, ``seconds.csv`` and
    ``growth.csv`` hold what was timed.
    """
    head = ("table", "problem", "method", "part", "quantity", "n_train", "published", "median", "worst", "best")
    verdict = (*head, "runs", "ratio", "verdict")
    content: dict[str, tuple[Sequence[str], Iterable[Sequence[Any]]]] = {
        "comparison.csv": (verdict, map(_record, compared)),
        "times.csv": (verdict, map(_record, timed)),
        "errors.csv": ((*_WHERE, "part", "metric", "value"), _errors(book)),
        "settings.csv": ((*_WHERE, "parameters", "configurations", "setting", "value"), _settings(book)),
        "theorems.csv": (
            (*_WHERE, "theorem", "measured", "paper_bound", "sharp_bound", "holds"),
            _theorems(book),
        ),
        "curves.csv": ((*_WHERE, "row", "column", *_CURVES), _curves(book)),
        "coverage.csv": (("problem", "n_train", "repetition", "inside", "error", "noise"), _coverage(book)),
        "seconds.csv": ((*_WHERE, "seconds", "search_seconds"), _seconds(book)),
        "growth.csv": (("method", "axis", "size", "seconds", "exponent"), _growth(book)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (columns, rows) in content.items():
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_plain(value) for value in row] for row in rows)
        paths.append(folder / name)
        paths[-1].write_text(buffer.getvalue(), encoding="utf-8")
    return tuple(paths)


def _fitted(book: Ledger) -> tuple[Cell, ...]:
    """Return the cells with numbers of their own: a curve is of a model that an accuracy cell is about."""
    return tuple(cell for cell in book.cells if cell["kind"] not in ("curve", "complexity"))


def _plain(value: Any) -> Any:
    return repr(value) if isinstance(value, float) else value


def _where(cell: Cell) -> list[Any]:
    return [cell.get(key) for key in _WHERE]


def _record(record: Record) -> list[Any]:
    found, summary = record.comparison, record.comparison.measured
    row = [record.table, record.problem, record.method, record.part, record.quantity, record.n_train, found.published]
    if summary is None:
        return [*row, *[None] * 5, found.verdict]
    ratio = None if found.published is None else found.ratio
    return [*row, summary.median, summary.worst, summary.best, summary.count, ratio, found.verdict]


def _errors(book: Ledger) -> Iterable[list[Any]]:
    for cell in _fitted(book):
        for part in ("train", "test"):
            for metric, value in sorted((cell.get(part) or {}).items()):
                yield [*_where(cell), part, metric, value]


def _settings(book: Ledger) -> Iterable[list[Any]]:
    for cell in _fitted(book):
        for name, value in sorted((cell.get("settings") or {}).items()):
            yield [*_where(cell), cell.get("parameters"), cell.get("configurations"), name, value]


def _theorems(book: Ledger) -> Iterable[list[Any]]:
    for cell in _fitted(book):
        for name, values in sorted((cell.get("theorems") or {}).items()):
            bounds = [values.get(key) for key in ("measured", "paper_bound", "sharp_bound", "holds")]
            yield [*_where(cell), name, *bounds]


def _seconds(book: Ledger) -> Iterable[list[Any]]:
    for cell in _fitted(book):
        yield [*_where(cell), cell.get("seconds"), cell.get("search_seconds")]


def _curves(book: Ledger) -> Iterable[list[Any]]:
    """Yield the values behind the figures, row by row; nothing where the grid leaves the domain."""
    for cell in book.select(kind="curve").cells:
        pictures = [np.atleast_2d(np.asarray(cell["extra"][name], dtype=np.float64)) for name in _CURVES]
        for place in np.argwhere(np.isfinite(pictures[0])):
            yield [*_where(cell), *place.tolist(), *(f"{picture[tuple(place)]:.9g}" for picture in pictures)]


def _coverage(book: Ledger) -> Iterable[list[Any]]:
    for cell in book.select(kind="coverage").cells:
        runs = zip(*(cell["extra"][name] for name in ("inside", "errors", "noise")), strict=True)
        for repetition, values in enumerate(runs):
            yield [cell["problem"], cell["n_train"], repetition, *values]


def _growth(book: Ledger) -> Iterable[list[Any]]:
    for cell in book.select(kind="complexity").cells:
        for size, seconds in zip(cell["extra"]["sizes"], cell["extra"]["seconds"], strict=True):
            yield [cell["method"], cell["axis"], size, seconds, cell["exponent"]]
