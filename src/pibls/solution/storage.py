"""Save and load solutions: one zip file of a JSON record and plain NumPy arrays, without pickles.

The file holds ``solution.json`` (format, version, problem, structure of the network, diagnostics), one ``.npy`` member
per array and ``digest.json`` with a checksum of every member, all uncompressed, so that any language can read it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import FloatArray, cut, refusal, shorten
from pibls.errors import FileFormatError, printable
from pibls.features.deep import DeepNetwork
from pibls.problem import Problem
from pibls.reading import check_pieces, parsed_json
from pibls.runtime import require_memory
from pibls.solution.diagnostics import Diagnostics, from_plain, to_plain
from pibls.solution.json_records import (
    Arrays,
    Functions,
    Network,
    RicherNetwork,
    check_combinations,
    combinations,
    network_from,
    network_record,
    problem_from,
    problem_record,
)
from pibls.solution.parameters import Parameters
from pibls.solution.posterior import posterior_from, posterior_record
from pibls.status import Status
from pibls.writing import replaced

if TYPE_CHECKING:
    from pibls.solution.solution import Solution


FORMAT = "pibls-solution"
VERSION = 1
_RECORD, _DIGEST = "solution.json", "digest.json"
_RICHER = "richer_"
_MOST_MEMBERS = 10_000
_LARGEST_RECORD = 20_000_000  # bytes; as Python objects they take up to twenty times as much


def save(solution: Solution, path: str | Path) -> Path:
    """Write a solution to a file, replacing it as a whole or not at all.

    Returns
    -------
    Path
        Where it was written.
    """
    target = _path(path)
    arrays: Arrays = {"weights": solution.weights}
    record = {
        "format": FORMAT,
        "version": VERSION,
        "problem": problem_record(solution.problem, arrays),
        "network": network_record(solution.network, arrays),
        "status": solution.status,
        "error_estimate": to_plain(solution.error_estimate),
        "diagnostics": solution.diagnostics.as_dict(),
        "posterior": posterior_record(solution.posterior, arrays),
        "richer": _richer_record(solution, arrays),
        "parameters": None if solution.parameters is None else solution.parameters.as_dict(),
    }
    members = {f"{name}.npy": _array_bytes(array) for name, array in arrays.items()}
    members[_RECORD] = json.dumps(record, indent=1, allow_nan=False).encode()
    check_pieces(members[_RECORD], "JSON", "The record of the solution")
    check_combinations(combinations(record["problem"]["domain"]))
    if len(members[_RECORD]) > _LARGEST_RECORD:
        raise FileFormatError(
            f"The record of the solution has {len(members[_RECORD])} bytes, and up to {_LARGEST_RECORD} can be read "
            "again. Simplify the shape, or give its triangles as a file."
        )
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    members[_DIGEST] = json.dumps(digests, indent=1).encode()
    _write(target, members)
    return target


def _richer_record(solution: Solution, arrays: Arrays) -> dict[str, Any] | None:
    if solution.richer is None:
        return None
    network, weights = solution.richer
    own: Arrays = {"weights": weights}
    record = network_record(network, own)
    arrays.update({f"{_RICHER}{name}": array for name, array in own.items()})
    return record


def _richer_from(
    record: Any, arrays: Mapping[str, FloatArray], problem: Problem, source: Path, data: Functions
) -> tuple[RicherNetwork, FloatArray] | None:
    if record is None:
        return None
    own = {name.removeprefix(_RICHER): array for name, array in arrays.items() if name.startswith(_RICHER)}
    network = network_from(record, own, data)
    if isinstance(network, DeepNetwork):
        raise ValueError("the richer network is not a broad one")
    _check_fit(problem, network, own["weights"], source)
    return network, own["weights"]


def _path(path: str | Path) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise FileFormatError(f"A file name is needed. Got {shorten(path)} instead.") from None


def _refuse_special(path: Path) -> None:
    """Refuse devices and pipes: reading may never end, and writing would put a file in their place."""
    try:
        special = path.exists() and not path.is_file() and not path.is_dir()
    except (OSError, ValueError):
        special = False
    if special or "\0" in str(path):
        raise FileFormatError(f"{shorten(str(path))} is not the name of a plain file. Choose another name.")


def _array_bytes(array: FloatArray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array, dtype=np.float64), allow_pickle=False)
    return buffer.getvalue()


def _write(target: Path, members: Mapping[str, bytes]) -> None:
    def write(place: Path) -> None:
        with zipfile.ZipFile(place, "w", zipfile.ZIP_STORED) as archive:
            for member, content in members.items():
                archive.writestr(zipfile.ZipInfo(member), content)

    write_file(target, write)


def write_file(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Have a neighbouring file written and rename it, so that a crash leaves the old file whole; return the path."""
    target = _path(path)
    _refuse_special(target)
    try:
        return replaced(target, write)
    except OSError as error:
        remedy = "" if target.parent.is_dir() else " Choose a folder that exists."
        raise FileFormatError(f"{target} cannot be written: {error.strerror or error}.{remedy}") from error


def load(path: str | Path, data: Functions | None = None) -> Solution:
    """Read a solution that :meth:`Solution.save` wrote.

    Parameters
    ----------
    path
        The file.
    data
        Python callables of the problem's ``data`` functions by name. They are not stored; only residuals need them.

    Examples
    --------
    >>> import tempfile
    >>> from pibls import problems, solve
    >>> solution = solve(problems.advection())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(solution.save(f"{folder}/run.pibls"))
    >>> bool((again([0.3]) == solution([0.3])).all())
    True
    """
    from pibls.solution.solution import Solution

    if not isinstance(data, Mapping | None):
        raise refusal("data", "load", "map names to functions, such as {'f': numpy.sin}", data)
    source = _path(path)
    members = _read(source)
    record = _json(members[_RECORD], source)
    _check_version(record, source)
    try:
        _show(record)
        names = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]
        arrays = {name: _array(members[f"{name}.npy"], name) for name in names}
        problem = problem_from(record["problem"], arrays, data or {})
        network = network_from(record["network"], arrays, data or {})
        _check_fit(problem, network, arrays["weights"], source)
        estimate = from_plain(record["error_estimate"])
        solution = Solution(
            problem,
            network,
            arrays["weights"],
            Status(record["status"]),
            Diagnostics.from_dict(record["diagnostics"]),
            None if estimate is None else _estimate(estimate),
            posterior_from(record.get("posterior"), arrays),
            _richer_from(record.get("richer"), arrays, problem, source, data or {}),
            parameters=None if (own := record.get("parameters")) is None else Parameters.from_dict(own),
        )
        str(solution)  # a record that cannot be told is damaged
        return solution
    except FileFormatError:
        raise
    # A forged record can make any part of the rebuilding fail, in any way.
    except Exception as error:
        raise FileFormatError(
            f"{source} is not a valid solution file: {cut(str(error), 400)}. Save the solution again."
        ) from error


def _estimate(value: object) -> float:
    """Return an estimated error, which may be infinite but is a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0.0:
        raise ValueError(f"the estimated error cannot be {shorten(value)}")
    return float(value)


def _read(source: Path) -> dict[str, bytes]:
    _refuse_special(source)
    try:
        size = source.stat().st_size
        with zipfile.ZipFile(source) as archive:
            entries = archive.infolist()
            _check_entries(entries, size, source)
            require_memory(2.0 * size, f"Reading {source}", "Close other programs.")
            members = {entry.filename: archive.read(entry) for entry in entries}
    except FileFormatError:
        raise
    except FileNotFoundError:
        raise FileFormatError(f"There is no file {source}. Check the path.") from None
    except OSError as error:
        raise FileFormatError(f"{source} cannot be read: {error.strerror}.") from error
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise FileFormatError(
            f"{source} is damaged or is not a pibls file ({error}); copy it again or save the solution again."
        ) from error
    if _RECORD not in members or _DIGEST not in members:
        raise FileFormatError(f"{source} is not a pibls solution file: it lacks {_RECORD} or {_DIGEST}.")
    digests = _json(members[_DIGEST], source)
    contents = {name: hashlib.sha256(content).hexdigest() for name, content in members.items() if name != _DIGEST}
    if contents != digests:
        changed = [name for name in sorted({*contents, *digests}) if contents.get(name) != digests.get(name)]
        raise FileFormatError(f"{source} was changed after it was saved ({changed[0]}); use the original file.")
    return members


def _check_entries(entries: list[zipfile.ZipInfo], size: int, source: Path) -> None:
    """Refuse, before anything is read, members that pibls never writes or that add up to more than the file."""
    names = [entry.filename for entry in entries]
    records = [entry for entry in entries if entry.filename in (_RECORD, _DIGEST)]
    many = f"a member twice, or more than {_MOST_MEMBERS} of them"
    faults = {
        "compressed members": any(entry.compress_type != zipfile.ZIP_STORED for entry in entries),
        many: len(set(names)) < len(names) or len(names) > _MOST_MEMBERS,
        "members that are larger than itself": sum(entry.file_size for entry in entries) > size,
        f"a record of over {_LARGEST_RECORD} bytes": any(entry.file_size > _LARGEST_RECORD for entry in records),
    }
    for fault, found in faults.items():
        if found:
            raise FileFormatError(f"{source} has {fault}, which pibls never writes; it was changed.")


def _json(content: bytes, source: Path) -> dict[str, Any]:
    name = f"The record of {source}"
    value = parsed_json(content, name, parse_constant=_finite_number, parse_float=_finite_number)
    if not isinstance(value, dict):
        raise FileFormatError(f"{source} is damaged: its record is not an object.")
    return value


def _finite_number(digits: str) -> float:
    number = float(digits)
    if not np.isfinite(number):
        raise ValueError("a number is not finite")
    return number


def _show(value: Any) -> Any:
    """Return a record whose texts can all be printed, changed in its place."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        for key in [key for key in value if not key.isprintable()]:
            value[printable(key)] = value.pop(key)
    for key, entry in list(value.items()) if isinstance(value, dict) else enumerate(value):
        if isinstance(entry, str | dict | list):
            value[key] = _show(entry)
    return value


def _check_version(record: Mapping[str, Any], source: Path) -> None:
    if record.get("format") != FORMAT:
        raise FileFormatError(f"{source} is not a pibls solution file: its format is {shorten(record.get('format'))}.")
    version = record.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise FileFormatError(
            f"{source} has format version {shorten(version)}, and this pibls reads 1 to {VERSION}; update pibls."
        )


def _check_fit(problem: Problem, network: Network, weights: FloatArray, source: Path) -> None:
    expected = (len(problem.fields), network.size)
    if weights.shape != expected or network.dimension != len(problem.domain.coordinates):
        raise FileFormatError(
            f"{source} is not a valid solution file: its problem, network and weights {weights.shape} do not belong "
            "together. Save the solution again."
        )


def _array(content: bytes, name: str) -> FloatArray:
    """Return an array of the form that pibls writes, whose length is known before it is made."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise FileFormatError(f"The array {name} of the file has version {version}, which pibls never writes.")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype != np.float64:
        raise FileFormatError(f"An array of the file has type {dtype} instead of float64; it was changed.")
    if any(side < 0 for side in shape) or 8 * math.prod(shape) != len(content) - stream.tell():
        raise FileFormatError(f"The array {name} of the file is not as long as it says; it was changed.")
    flat = np.frombuffer(content, dtype=np.float64, offset=stream.tell())
    if name.endswith("weights") and not np.isfinite(flat).all():
        raise FileFormatError(f"The array {name} of the file has entries that are not finite numbers.")
    return flat.reshape(shape, order="F" if fortran else "C").copy()
