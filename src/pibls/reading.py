"""Files that are read within limits: of bytes, and of the pieces that a parser makes of them.

What a parser takes grows with the pieces of a text, not with its bytes: a list of JSON takes forty times its two
letters. So pieces are counted before any is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pibls.checks import cut
from pibls.errors import FileFormatError, InputError, PiblsError

__all__ = ["check_headings", "check_pieces", "parsed_json", "read_bytes", "read_string"]

_LARGEST = 50_000_000
_CHUNK = 2**20
_MOST_HEADINGS = 1_000
# What begins or ends a piece (nothing: white space), and how many are read in about two seconds and 300 MB.
_PIECES: Mapping[str, tuple[bytes, int]] = {
    "JSON": (b"[{,:", 2_000_000),
    "XML": (b"<=", 500_000),
    "CSV": (b",\r\n", 3_000_000),
    "words": (b"", 5_000_000),
}


def read_bytes(path: Path, largest: int = _LARGEST) -> bytes:
    """Return the content of a plain file that is not too large."""
    try:
        if not path.is_file():
            problem = "is a folder or a device" if path.exists() else "does not exist"
            raise InputError(f"The file {cut(str(path))} cannot be read: it {problem}. Check the path.")
        size = path.stat().st_size
        if size > largest:
            raise FileFormatError(
                f"{cut(path.name)} has {size // 1_000_000} MB; up to {largest // 1_000_000} are read. Thin it out."
            )
        with path.open("rb") as stream:
            content = stream.read(largest + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, PiblsError):
            raise
        raise InputError(f"The file {cut(str(path))} cannot be read: {cut(str(error))}. Check the path.") from error
    if not content.strip():
        raise FileFormatError(f"{cut(path.name)} is empty. Write it again.")
    return content


def read_string(path: Path, largest: int, kind: str) -> str:
    """Return the content of a text file with a bounded number of pieces."""
    content = read_bytes(path, largest)
    check_pieces(content, kind, cut(path.name))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{cut(path.name)} is no UTF-8 text from byte {error.start} on. Save it as UTF-8, or give it the "
            "extension of its format."
        ) from None


def check_pieces(content: bytes, kind: str, name: str) -> None:
    """Refuse a text of so many pieces that reading it would take long, or much memory.

    >>> check_pieces(b"[" * 3_000_000, "JSON", "a.json")
    Traceback (most recent call last):
        ...
    pibls.errors.FileFormatError: a.json has over 2000000 entries, more than are read. Thin it out.
    """
    marks, most = _PIECES[kind]
    if marks:
        count = sum(content.count(bytes([mark])) for mark in marks)
    else:
        count = sum(len(content[start : start + _CHUNK].split()) for start in range(0, len(content), _CHUNK))
    if count > most:
        raise FileFormatError(f"{name} has over {most} entries, more than are read. Thin it out.")


def check_headings(content: bytes, pattern: bytes, name: str) -> None:
    """Refuse a text with so many headings that a reader which looks each up among all would take very long.

    >>> check_headings(b"solid a " * 2000, b"solid", "a.stl")
    Traceback (most recent call last):
        ...
    pibls.errors.FileFormatError: a.stl has over 1000 sections, more than are read. Write fewer, longer ones.
    """
    found = re.finditer(pattern, content)
    if sum(1 for _ in islice(found, _MOST_HEADINGS + 1)) > _MOST_HEADINGS:
        raise FileFormatError(
            f"{name} has over {_MOST_HEADINGS} sections, more than are read. Write fewer, longer ones."
        )


def parsed_json(content: bytes | str, name: str, **readers: Any) -> Any:
    """Return the value of a JSON text; ``readers`` are those of :func:`json.loads`."""
    check_pieces(content.encode("utf-8", "replace") if isinstance(content, str) else content, "JSON", name)
    try:
        return json.loads(content, **readers)
    except json.JSONDecodeError as error:
        raise FileFormatError(
            f"{name} is no JSON: {error.msg} (line {error.lineno}, column {error.colno}). It is damaged or cut short; "
            "write it again."
        ) from None
    except (ValueError, RecursionError) as error:
        fault = "brackets too deep" if isinstance(error, RecursionError) else str(error)
        raise FileFormatError(f"{name} is no JSON that can be read: {cut(fault)}. It is damaged.") from None
