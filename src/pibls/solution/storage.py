"""Save and load solutions: one zip file of a JSON record and plain NumPy arrays, without pickles.

The file holds ``solution.json`` (format, version, problem, structure of the network, diagnostics), one ``.npy`` member
per array and ``digest.json`` with a checksum of every member, all uncompressed, so that any language can read it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import FloatArray, shorten
from pibls.errors import FileFormatError, InputError
from pibls.features.deep import DeepNetwork
from pibls.problem import Problem
from pibls.solution.diagnostics import Diagnostics, from_plain, to_plain
from pibls.solution.parameters import Parameters
from pibls.solution.posterior import posterior_from, posterior_record
from pibls.solution.records import (
    Arrays,
    Network,
    RicherNetwork,
    network_from,
    network_record,
    problem_from,
    problem_record,
)
from pibls.status import Status

if TYPE_CHECKING:
    from pibls.solution.solution import Solution

__all__ = ["FORMAT", "VERSION", "load", "save"]

FORMAT = "pibls-solution"
VERSION = 1
_RECORD, _DIGEST = "solution.json", "digest.json"
_RICHER = "richer_"


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
    record: Any,
    arrays: Mapping[str, FloatArray],
    problem: Problem,
    source: Path,
    data: Mapping[str, Callable[..., Any]],
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
    """Write a neighbouring file first and rename it, so that a crash leaves the old file whole."""
    _refuse_special(target)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise FileFormatError(f"{target} cannot be written: {error.strerror}. Choose a folder that exists.") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
                for member, content in members.items():
                    archive.writestr(zipfile.ZipInfo(member), content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(target)
    except OSError as error:
        raise FileFormatError(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def load(path: str | Path, data: Mapping[str, Callable[..., Any]] | None = None) -> Solution:
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
        raise InputError(
            f"The 'data' parameter of load must map names to functions, such as {{'f': numpy.sin}}. "
            f"Got {shorten(data)} instead."
        )
    source = _path(path)
    members = _read(source)
    record = _json(members[_RECORD], source)
    _check_version(record, source)
    try:
        arrays = {n.removesuffix(".npy"): _array(c) for n, c in members.items() if n.endswith(".npy")}
        problem = problem_from(record["problem"], arrays, data or {})
        network = network_from(record["network"], arrays, data or {})
        _check_fit(problem, network, arrays["weights"], source)
        return Solution(
            problem,
            network,
            arrays["weights"],
            Status(record["status"]),
            Diagnostics.from_dict(record["diagnostics"]),
            from_plain(record["error_estimate"]),
            posterior_from(record.get("posterior"), arrays),
            _richer_from(record.get("richer"), arrays, problem, source, data or {}),
            parameters=None if (own := record.get("parameters")) is None else Parameters.from_dict(own),
        )
    except FileFormatError:
        raise
    # A forged record can make any part of the rebuilding fail, in any way.
    except Exception as error:
        raise FileFormatError(f"{source} is not a valid solution file: {error}. Save the solution again.") from error


def _read(source: Path) -> dict[str, bytes]:
    _refuse_special(source)
    try:
        with zipfile.ZipFile(source) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise FileFormatError(f"{source} has compressed members, which pibls never writes; it was changed.")
            members = {entry.filename: archive.read(entry) for entry in entries}
    except FileNotFoundError:
        raise FileFormatError(f"There is no file {source}.") from None
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


def _json(content: bytes, source: Path) -> dict[str, Any]:
    try:
        value = json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{source} is damaged: its record is not JSON ({error}).") from error
    if not isinstance(value, dict):
        raise FileFormatError(f"{source} is damaged: its record is not an object.")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_version(record: Mapping[str, Any], source: Path) -> None:
    if record.get("format") != FORMAT:
        raise FileFormatError(f"{source} is not a pibls solution file: its format is {shorten(record.get('format'))}.")
    version = record.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise FileFormatError(
            f"{source} has format version {shorten(version)}, and this pibls reads up to {VERSION}; update pibls."
        )


def _check_fit(problem: Problem, network: Network, weights: FloatArray, source: Path) -> None:
    expected = (len(problem.fields), network.size)
    if weights.shape != expected or network.dimension != len(problem.domain.coordinates):
        raise FileFormatError(
            f"{source} is not a valid solution file: its problem, network and weights {weights.shape} do not belong "
            "together. Save the solution again."
        )


def _array(content: bytes) -> FloatArray:
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.dtype != np.float64:
        raise FileFormatError(f"An array of the file has type {array.dtype} instead of float64; it was changed.")
    return np.asarray(array)
