"""Solutions kept in a folder, each under its values and a digest of all that it depends on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pibls.checks import cut, shorten
from pibls.errors import FileFormatError, InputError
from pibls.problem import Problem
from pibls.solution import Solution, load
from pibls.solution.json_records import Arrays, problem_record
from pibls.text.tables import Interpolant


def open_folder(folder: object) -> Path:
    """Return a folder that files can be written to, made if it is not there, or refuse it."""
    if not isinstance(folder, str | Path):
        raise InputError(f"The 'folder' parameter of sweep must be a path. Got {shorten(folder)} instead.")
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The 'folder' parameter of sweep must be a folder that can be written to. Got {shorten(str(place))} "
            f"instead ({error.strerror})."
        ) from error
    return place


def file_of(folder: Path, problem: Problem, values: Mapping[str, Any], options: Mapping[str, Any]) -> Path:
    """Return the file of a problem solved with some options.

    The digest is one of the whole problem and of every option: results of another problem are never taken for its own.
    """
    arrays: Arrays = {}
    record = [problem_record(problem, arrays), dict(options), version("pibls")]
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    for name, node in problem.data.items():
        function = node.function
        if not isinstance(function, Interpolant):
            raise InputError(
                f"The 'folder' parameter of sweep cannot keep results of the data function {name!r}, which is a Python "
                "function: nothing would tell whether it has changed. Leave the folder out, or give it as a table."
            )
        digest.update(f"{name} {function.method}".encode())
        arrays |= {f"{name}.points": function.points, f"{name}.values": function.values}
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {np.shape(array)}".encode() + np.ascontiguousarray(array, dtype=np.float64).tobytes())
    told = ",".join(f"{name}={value}" for name, value in values.items())
    readable = cut(re.sub(r"[^\w.,=+-]", "_", told, flags=re.ASCII), 100)
    return folder / f"{readable}-{digest.hexdigest()[:20]}.pibls"


def kept(path: Path, problem: Problem) -> Solution | None:
    """Return the solution of a file; None if there is none, or if the file is damaged."""
    if not path.is_file():
        return None
    try:
        return load(path, {name: node.function for name, node in problem.data.items()})
    except FileFormatError:
        return None
