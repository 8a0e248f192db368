"""Files with shapes, opened within limits, and how errors name them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pibls.checks import FloatArray, cut, shorten
from pibls.errors import FileFormatError, GeometryError, InputError, MissingDependencyError, PiblsError

_LARGEST = 200_000_000


def read_bytes(path: Path, largest: int = _LARGEST) -> bytes:
    """Return the content of a plain file that is not too large."""
    try:
        if not path.is_file():
            problem = "is a folder or a device" if path.exists() else "does not exist"
            raise InputError(f"The file {cut(str(path))} cannot be read: it {problem}. Check the path.")
        size = path.stat().st_size
        if size > largest:
            raise FileFormatError(
                f"{cut(path.name)} has {size // 1_000_000} MB; up to {largest // 1_000_000} are read. "
                "Simplify the shape."
            )
        with path.open("rb") as stream:
            content = stream.read(largest + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, PiblsError):
            raise
        raise InputError(f"The file {cut(str(path))} cannot be read: {cut(str(error))}. Check the path.") from error
    if not content.strip():
        raise FileFormatError(f"{cut(path.name)} is empty. Write the shape again.")
    return content


def read_string(path: Path, largest: int = _LARGEST) -> str:
    """Return the content of a text file."""
    content = read_bytes(path, largest)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{cut(path.name)} is no UTF-8 text from byte {error.start} on. Save it as UTF-8, or give it the "
            "extension of its format."
        ) from None


def check_known(region: str, names: Iterable[str | None], source: str, what: str) -> None:
    """Refuse a name that nothing in a file has."""
    known = list(dict.fromkeys(name for name in names if name is not None))
    if region not in known:
        listed = ", ".join(map(cut, known[:10])) or "none"
        raise FileFormatError(f"{source} has no {what} named {shorten(region)}. Names in it: {listed}.")


def check_finite(points: FloatArray, source: str, what: str) -> None:
    """Refuse points with coordinates that are no finite numbers."""
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(bad):
        raise FileFormatError(f"{source}: {what.format(bad[0])} is not finite, {points[bad[0]].tolist()}. Remove it.")


@contextmanager
def named(source: str) -> Iterator[None]:
    """Have errors about a shape say where it came from."""
    try:
        yield
    except GeometryError as error:
        raise GeometryError(f"{source}: {error}") from error


@contextmanager
def guarded(name: str, what: str) -> Iterator[None]:
    """Turn whatever a reader of a format raises on a damaged file into an error that says which file."""
    try:
        yield
    except PiblsError:
        raise
    except (Exception, SystemExit) as error:
        detail = f"{type(error).__name__}: {shorten(str(error))}"
        raise FileFormatError(
            f"{cut(name)} cannot be read as {what} ({detail}). It is damaged or cut short, or has another format."
        ) from error


def missing(package: str, what: str) -> MissingDependencyError:
    """Return the error that a package has to be installed."""
    return MissingDependencyError(
        f"Reading {what} needs the package {package}, which is not installed. "
        "Install it with pip install 'pibls[shapes]'."
    )
