"""Files that are written as a whole or not at all, and records that JSON can hold."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["finite", "replaced"]


def replaced(target: Path, write: Callable[[Path], object]) -> Path:
    """Have a neighbouring file written, then rename it: the file is there as a whole, or as it was before.

    The neighbour is named after machine and process. Those that a process which was killed has left are removed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = replaced(Path(folder) / "a.txt", lambda place: place.write_text("whole"))
    ...     path.read_text(), len(list(path.parent.iterdir()))
    ('whole', 1)
    """
    stem = f".{target.stem[:40]}.{_machine()}-"
    _sweep(target.parent, stem)
    # The ending stays: it says what a picture is made of.
    neighbour = target.parent / f"{stem}{os.getpid()}-{secrets.token_hex(4)}.part{target.suffix}"
    try:
        os.close(os.open(neighbour, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        write(neighbour)
        with neighbour.open("rb+") as stream:
            os.fsync(stream.fileno())
        neighbour.replace(target)
    finally:
        neighbour.unlink(missing_ok=True)
    return target


def _machine() -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", socket.gethostname())[:40]


def _sweep(folder: Path, stem: str) -> None:
    """Remove neighbours of a file whose processes on this machine are over."""
    with suppress(OSError):
        for entry in folder.iterdir():
            found = re.fullmatch(re.escape(stem) + r"(\d{1,10})-[0-9a-f]{8}\.part.*", entry.name, re.DOTALL)
            if found is not None and not _is_running(int(found[1])):
                entry.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def finite(value: Any, instead: Callable[[float], Any] = lambda _: None) -> Any:
    """Return a record with something else, such as None, for every number that is not finite.

    >>> finite({"a": [1.0, float("nan")]}), finite(float("inf"), str)
    ({'a': [1.0, None]}, 'inf')
    """
    if isinstance(value, Mapping):
        return {str(key): finite(entry, instead) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry, instead) for entry in value]
    if isinstance(value, float):
        return float(value) if abs(value) < float("inf") else instead(value)
    return value
