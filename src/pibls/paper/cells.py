"""Results of a study on disk: one file per cell, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pibls.checks import cut, shorten
from pibls.errors import FileFormatError
from pibls.writing import replaced

Cell = dict[str, Any]
# Part of every key: cells of another way of computing them are not mistaken for these.
_FORMAT = 3
_FOLDER, _NOTES, _FAILURES = "cells", "races", "failures.txt"


@dataclass(frozen=True)
class Spec:
    """The subject of a cell; its key is derived from this and nothing else.

    >>> spec = Spec("accuracy", "advection", "PI-BLS", 30, 0, "exact")
    >>> len(spec.key), spec.key == Spec("accuracy", "advection", "PI-BLS", 30, 1, "exact").key
    (32, False)
    """

    kind: str  # "accuracy", "beyond", "curve", "coverage", "time", "complexity" or "solve"
    problem: str
    method: str
    n_train: int  # interior points
    seed: int  # of points and nodes
    score: str | None = None  # what the settings were chosen by, where they were
    variant: str = ""  # what else distinguishes it: the axis of a complexity

    @property
    def key(self) -> str:
        """Name of the file, without its ending."""
        return _key(json.dumps({**asdict(self), "format": _FORMAT}, sort_keys=True))

    def cell(self, **entries: Any) -> Cell:
        """Return a cell with the entries of this specification, the given ones, and empty ones for the rest."""
        empty: Cell = {name: {} for name in ("settings", "train", "test", "theorems", "extra")}
        empty |= {"seconds": 0.0, "search_seconds": 0.0, "configurations": 0, "parameters": 0, "made": {}}
        return {**self.told, **empty, **entries, "versions": versions()}

    @property
    def told(self) -> dict[str, Any]:
        """The words in which a cell describes itself."""
        return {name: value for name, value in asdict(self).items() if name != "variant"}


@dataclass(frozen=True)
class Store:
    """The folder of the cells of a study."""

    out: Path

    @property
    def folder(self) -> Path:
        """Where the cells are."""
        return self.out / _FOLDER

    def path(self, spec: Spec) -> Path:
        """Return the file of a cell."""
        return self.folder / f"{spec.key}.json"

    def has(self, spec: Spec) -> bool:
        """Whether a cell is there."""
        return self.path(spec).exists()

    def write(self, spec: Spec, cell: Mapping[str, Any]) -> None:
        """Store a cell: readers see all of it or nothing, also if the machine stops in between."""
        _write(self.path(spec), cell)

    def note(self, name: str) -> Any:
        """Return the note under a name, such as how far a race has come, or None."""
        path = self._note_path(name)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def write_note(self, name: str, value: Any) -> None:
        """Note a value under a name, for a run that goes on from there."""
        _write(self._note_path(name), value)

    def _note_path(self, name: str) -> Path:
        return self.out / _NOTES / f"{_key(name)}.json"

    @property
    def failures(self) -> list[str]:
        """The tasks that failed in the last run, and why."""
        path = self.out / _FAILURES
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def write_failures(self, failures: Sequence[str]) -> None:
        """Keep the failures of a run, line by line; a run without failures leaves no such file."""
        path = self.out / _FAILURES
        if failures:
            lines = "".join(f"{' '.join(line.split())}\n" for line in failures)
            replaced(path, lambda place: place.write_text(lines, encoding="utf-8"))
        else:
            path.unlink(missing_ok=True)

    def read(self, spec: Spec) -> Cell | None:
        """Return a cell, or None if there is none."""
        path = self.path(spec)
        if not path.exists():
            return None
        cell = _read(path)
        if any(cell.get(name) != value for name, value in spec.told.items()):
            raise _unreadable(path, f"it is not about {', '.join(str(value) for value in spec.told.values())}")
        return cell


def read_cells(out: str | Path) -> list[Cell]:
    """Return all cells that a study has stored, in the order of their keys."""
    return [_read(path) for path in sorted(Store(Path(out)).folder.glob("[!.]*.json"))]


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, default=dict)  # records may be mappings of other kinds
    replaced(path, lambda place: place.write_text(text, encoding="utf-8"))


def _read(path: Path) -> Cell:
    try:
        cell = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(path, cut(str(error))) from error
    if not isinstance(cell, dict):
        raise _unreadable(path, f"it holds {shorten(cell)}")
    return cell


def _unreadable(path: Path, why: str) -> FileFormatError:
    return FileFormatError(f"The cell {path} cannot be read ({why}). Delete it; the next run computes it again.")


@cache
def versions() -> dict[str, str]:
    """Return the versions that results may depend on."""
    found = {"python": platform.python_version()}
    for name in ("pibls", "numpy", "scipy", "sympy", "torch"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
