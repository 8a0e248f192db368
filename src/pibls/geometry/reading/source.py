"""Files with shapes, opened within limits, and how errors name them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pibls.checks import cut, shorten
from pibls.errors import FileFormatError, InputError, MissingDependencyError, PiblsError

__all__ = ["guarded", "missing", "read_bytes", "read_string"]

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
        raise InputError(f"The file {cut(str(path))} cannot be read: {error}. Check the path.") from error
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
