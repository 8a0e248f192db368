"""Columns of numbers from CSV files."""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pibls.checks import FloatArray, cut
from pibls.errors import PiblsError, TextError
from pibls.reading import check_pieces, read_bytes


def read_csv(path: Path, name: str) -> Mapping[str, FloatArray]:
    """Return the columns of a CSV file, which errors call ``name``, by the names in its first line."""
    try:
        content = read_bytes(path)
        check_pieces(content, "CSV", name)
        with io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="") as stream:
            return _columns(csv.reader(stream), name)
    except TextError:
        raise
    except PiblsError as error:
        raise TextError(str(error), path=name) from error
    except (ValueError, csv.Error) as error:
        raise TextError(f"The file cannot be read as CSV: {cut(str(error))}.", path=name) from error


def _columns(reader: Any, name: str) -> Mapping[str, FloatArray]:
    heading = [entry.strip() for entry in next(reader, [])]
    if not heading or not all(heading) or len(set(heading)) < len(heading) or _is_number(heading[0]):
        raise TextError("The first line of a table must name its columns, each once: x,y,value.", path=name)
    values = array("d")
    for row in entries_of(reader, heading, name):
        values.extend(numbers_in(row, range(len(row)), heading, name, reader.line_num))
    if not values:
        raise TextError("The table has no rows below its first line.", path=name)
    table = np.array(values).reshape(-1, len(heading))
    return dict(zip(heading, table.T, strict=True))


def entries_of(reader: Any, heading: list[str], name: str) -> Iterator[list[str]]:
    """Yield the rows of a CSV file below its heading but for blank lines, or refuse one with too many or too few."""
    for row in reader:
        if len(row) < 2 and not "".join(row).strip():
            continue
        if len(row) != len(heading):
            message = f"There are {len(row)} entries, and {len(heading)} columns are named in the first line."
            raise TextError(message, path=name, line=reader.line_num)
        yield row


def numbers_in(row: list[str], columns: Iterable[int], heading: list[str], name: str, line: int) -> list[float]:
    """Return the numbers in some columns of a row, or refuse an entry that is none."""
    for place in columns:
        if not _is_number(row[place]):
            message = f"{cut(repr(row[place]))} in column {heading[place]!r} is not a finite number, such as -1.5e3."
            raise TextError(message, path=name, line=line, column=place + 1)
    return [float(row[place]) for place in columns]


def _is_number(entry: str) -> bool:
    try:
        # Python reads 1_0 and digits of other scripts as well.
        return entry.isascii() and "_" not in entry and math.isfinite(float(entry))
    except ValueError:
        return False
