"""Solutions kept in a folder, each under its values and a digest of all that it depends on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pibls.checks import cut, shorten
from pibls.errors import FileFormatError, InputError
from pibls.geometry.part import Off
from pibls.geometry.restricted import Predicate
from pibls.problem import Problem
from pibls.problem.domain import is_part
from pibls.problem.encoding import encode
from pibls.solution import Solution, load
from pibls.solution.json_records import Arrays, problem_record
from pibls.text.condition_tables import TextPredicate
from pibls.text.tables import Interpolant

Function = TypeVar("Function")


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
    return place.resolve()  # for workers that run elsewhere


def file_of(folder: Path, problem: Problem, values: Mapping[str, Any], options: Mapping[str, Any]) -> Path:
    """Return the file of a problem solved with some options.

    The digest is one of the whole problem and of every option: results of another problem are never taken for its own.
    """
    arrays: Arrays = {}
    chosen = [
        _known(p, TextPredicate, f"the predicate of {part.name}") for part in _parts(problem) for p in _chosen(part)
    ]
    record = [problem_record(problem, arrays), [encode(p.condition) for p in chosen], dict(options), version("pibls")]
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    for name, node in problem.data.items():
        function = _known(node.function, Interpolant, f"the data function {name!r}")
        digest.update(f"{name} {function.method}".encode())
        arrays |= {f"{name}.points": function.points, f"{name}.values": function.values}
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {np.shape(array)}".encode() + np.ascontiguousarray(array, dtype=np.float64).tobytes())
    told = ",".join(f"{name}={value}" for name, value in values.items())
    readable = cut(re.sub(r"[^\w.,=+-]", "_", told, flags=re.ASCII), 100)
    return folder / f"{readable}-{digest.hexdigest()[:20]}.pibls"


def _known(function: Any, kind: type[Function], what: str) -> Function:
    """Return a function that is known by its content, or refuse one that is not."""
    if not isinstance(function, kind):
        raise InputError(
            f"The 'folder' parameter of sweep cannot keep results of a problem with {what}, which is a Python "
            "function: nothing would tell whether it has changed. Leave the folder out, or read it all from a file."
        )
    return function


def _parts(problem: Problem) -> Iterator[Any]:
    """Yield the parts of boundaries on which conditions hold and measurements were made."""
    for condition in problem.conditions:
        places = [getattr(condition, "on", None), *(getattr(condition, "regions", None) or ())]
        yield from (place for place in places if is_part(place))


def _chosen(part: Any) -> Iterator[Any]:
    """Yield the functions by which points of a part were chosen."""
    for patch in part.patches:
        while patch is not None:
            keep = getattr(patch, "keep", None)
            if isinstance(keep, Predicate):
                yield keep.function
            elif isinstance(keep, Off):
                yield from _chosen(keep.part)
            patch = getattr(patch, "base", None)


def kept(path: Path, problem: Problem) -> Solution | None:
    """Return the solution of a file; None if there is none, or if the file is damaged."""
    if not path.is_file():
        return None
    try:
        found = load(path, {name: node.function for name, node in problem.data.items()})
    except FileFormatError:
        return None
    return replace(found, problem=problem)  # which knows its parameters
