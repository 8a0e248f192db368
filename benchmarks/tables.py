"""The tables and measured sentences of README and docs, written from the files in ``benchmarks/results``.

    python -m benchmarks.tables                        # write them anew
    python -m benchmarks.tables --check                # say which are out of step; exit status 1 if any is
    python -m benchmarks.tables --keep out/accuracy.csv  # make this run the one that is told, and write them anew

A file holds the runs of one benchmark (``COMMANDS``), rounded to four digits; its first line says by which command,
when, at which commit and on which machine. What is written stands between ``<!-- table: NAME -->`` and ``<!-- end -->``
and is made by the function of that name in :mod:`benchmarks.tables_written`; within a line, so are single figures.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = Path(__file__).parent / "results"
BLOCK = re.compile(r"<!-- table: ([\w-]+) -->(\n?).*?<!-- end -->", flags=re.DOTALL)
COMMANDS = {
    "accuracy": "python -m benchmarks.accuracy --csv out/accuracy.csv",
    "assembly": "OMP_NUM_THREADS=1 python -m benchmarks.assembly --sizes 10000x2000 --csv out/assembly.csv",
    "cells": "python -m benchmarks.cells --csv out/cells.csv",
    "golden": "python -m benchmarks.golden --keep",
    "gpu": "one fit of helmholtz_high per number of nodes, best of three",
    "inverse_bound": "python -m benchmarks.inverse bound --seeds 10 --summary out/inverse_bound.csv --problems "
    "heat_diffusivity brinkman_forchheimer klein_gordon_mass wave_speed robin_coefficient burgers_coefficients "
    "kdv_coefficients lorenz_parameters source_position two_layer_darcy",
    "inverse_coverage": "python -m benchmarks.inverse coverage --seeds 200 --summary out/inverse_coverage.csv",
    "inverse_starts": "python -m benchmarks.inverse starts --seeds 30 --summary out/inverse_starts.csv --problems "
    "heat_diffusivity brinkman_forchheimer klein_gordon_mass wave_speed robin_coefficient",
    "peers": "python -m benchmarks.peers --csv out/peers.csv",
    "peers_inverse": "python -m benchmarks.peers_inverse --share 0.2 --csv out/peers_inverse.csv",
    "scale": "python -m benchmarks.scale",
    "settings": "python -m benchmarks.settings --keep",
    "windows": "python -m benchmarks.inverse windows --seeds 200 --summary out/windows.csv",
}
UNTOLD = ("message", "wall")  # long, or in no table
Row = dict[str, str]


@dataclass(frozen=True)
class Results:
    """The runs of a benchmark, and where they come from."""

    made: dict[str, str]
    rows: list[Row]

    def when(self) -> str:
        """Return the day of the run in words.

        >>> Results({"date": "2026-03-04"}, []).when()
        '4 March 2026'
        """
        day = datetime.fromisoformat(self.made["date"])
        return f"{day.day} {day:%B %Y}"


@cache
def results(name: str) -> Results:
    """Return the kept runs of a benchmark, or those of a set of the golden table."""
    if name not in COMMANDS:
        golden = results("golden")
        return Results(golden.made, [row for row in golden.rows if row["set"] == name])
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        made = json.loads(file.readline().removeprefix("#"))
        return Results(made, list(csv.DictReader(file)))


def keep(path: Path) -> None:
    """Keep the runs in a file of a benchmark as those that are told; its name says which."""
    if path.stem not in COMMANDS:
        raise SystemExit(f"{path}: must be named after a benchmark, one of {', '.join(COMMANDS)}.")
    with path.open(newline="", encoding="utf-8") as file:
        rows = [{key: _short(value) for key, value in row.items() if key not in UNTOLD} for row in csv.DictReader(file)]
    made = provenance(path.stem, datetime.fromtimestamp(path.stat().st_mtime, tz=UTC))
    with (FOLDER / path.name).open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {json.dumps(made)}\n")
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _short(value: str) -> str:
    try:
        return value if value.lstrip("-").isdigit() else f"{float(value):.4g}"
    except ValueError:
        return value


def provenance(name: str, when: datetime | None = None) -> dict[str, str]:
    """Return by which command, when, at which commit and on which machine a table was made."""
    made = {"command": COMMANDS[name], "date": f"{when or datetime.now(tz=UTC):%Y-%m-%d}"}
    return made | {"commit": commit_of(ROOT), "machine": machine()}


def commit_of(root: Path) -> str:
    """Return the last commit that changed the library, and whether files differ from it; unknown where git is not."""
    commands = (("log", "-1", "--format=%h"), ("status", "--porcelain"))
    try:
        last, changed = (
            subprocess.run(["git", *words, "--", "src"], cwd=root, capture_output=True, text=True, check=True).stdout
            for words in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{last.strip()}-dirty" if changed.strip() else last.strip()


def machine() -> str:
    """Return the processor and the number of cores in words."""
    known = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text()) if sys.platform == "linux" else None
    return f"{known.group(1) if known else platform.processor()}, {os.cpu_count()} cores"


def power(value: float | str, digits: int = 0) -> str:
    """Return a number as docs write it.

    >>> power(2.31e-7), power(2.31e-7, 1), power("0.2")
    ('2e-7', '2.3e-7', '2e-1')
    """
    number, exponent = f"{float(value):.{digits}e}".split("e")
    return f"{number}e{int(exponent)}"


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table as docs write it."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows).replace("|  |", "| |").replace(" --- ", "---")


def pages() -> list[Path]:
    """Return every file with something measured in it."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in files if "<!-- table:" in path.read_text(encoding="utf-8")]


def written(text: str) -> str:
    """Return a text in which everything between markers is made anew."""
    from benchmarks.tables_written import TABLES

    def made(found: re.Match[str]) -> str:
        name, lines = found[1], "\n\n" if found[2] else ""
        return f"<!-- table: {name} -->{lines}{TABLES[name]()}{lines}<!-- end -->"

    return BLOCK.sub(made, text)


def out_of_step() -> list[str]:
    """Return the names of the tables that are not what the results say, each with its file."""
    wrong = []
    for path in pages():
        text = path.read_text(encoding="utf-8")
        pairs = zip(BLOCK.finditer(text), BLOCK.finditer(written(text)), strict=True)
        wrong += [f"{path.relative_to(ROOT)}: {found[1]}" for found, made in pairs if found[0] != made[0]]
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit with 1 where something is out of step"
    )
    parser.add_argument("--keep", type=Path, nargs="+", default=[], metavar="CSV", help="files of benchmarks to keep")
    options = parser.parse_args()
    for path in options.keep:
        keep(path)
    wrong = out_of_step()
    print("\n".join(wrong) or "Every table is what the results say.")
    if options.check:
        sys.exit(bool(wrong))
    for path in pages():
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
