"""Files of rows: a dataclass per line, written as lines come, and read again however the writing ended."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

Row = TypeVar("Row")
_READ: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str, "bool": lambda word: word == "True"}


def columns(kind: type[Any], untold: Iterable[str] = ()) -> list[str]:
    """Return the names of the fields of a dataclass."""
    return [entry.name for entry in fields(kind) if entry.name not in untold]


def parsed(kind: type[Row], text: str) -> list[Row]:
    """Return the rows of a table; remarks after ``#`` and a line that was cut off are left out."""
    kinds = {entry.name: _READ[str(entry.type)] for entry in fields(kind)}  # type: ignore[arg-type]
    found = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    whole = [row for row in found if None not in row.values() and None not in row]
    return [kind(**{key: kinds[key](value) for key, value in row.items()}) for row in whole]


def load(kind: type[Row], path: Path) -> list[Row]:
    """Return the rows of a file; none where there is no file."""
    return parsed(kind, path.read_text(encoding="utf-8")) if path.exists() else []


def save(kind: type[Any], path: Path, rows: Iterable[Any], *, head: str = "", untold: Iterable[str] = ()) -> None:
    """Write a file anew."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(head)
        writer = csv.DictWriter(file, columns(kind, untold), lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(_line(row) for row in rows)


@contextmanager
def added(kind: type[Any], path: Path) -> Iterator[Callable[[Iterable[Any]], None]]:
    """Give a function that adds rows to a file at once; a file that was cut off is made whole first."""
    save(kind, path, load(kind, path))
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns(kind), lineterminator="\n")

        def add(rows: Iterable[Any]) -> None:
            writer.writerows(_line(row) for row in rows)
            file.flush()

        yield add


def _line(row: Any) -> dict[str, str]:
    return {k: f"{v:.6g}" if isinstance(v, float) else " ".join(str(v).split()) for k, v in asdict(row).items()}
