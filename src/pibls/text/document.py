"""A TOML text and its tables, read key by key, with errors that point at the key or the value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pibls.checks import check_choice, shorten
from pibls.errors import PiblsError, TextError
from pibls.text.expressions import read_expression
from pibls.text.positions import Path, Span, Text, find_places, suggestion
from pibls.text.vocabulary import Names

Made = TypeVar("Made")

_LONGEST = 200_000
_LONGEST_LINE = 50_000
# Python's reader needs memory that grows with the square of the parts of one dotted key.
_DOTTED = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){8}""")
_REMEDIES = {
    "Invalid value": ' Text needs quotes, as in value = "0".',
    "Cannot overwrite": " Give each key once; every condition begins with [[conditions]], in double brackets.",
    "Unclosed array": " Close its bracket.",
}
_POSITION = re.compile(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", re.DOTALL)


@dataclass(frozen=True)
class Document:
    """The source of a problem, where it came from, and where everything in it stands."""

    source: str
    name: str | None
    folder: FilePath | None
    places: Mapping[Path, Span]
    folders: tuple[FilePath, ...] = ()
    files: list[FilePath] = field(default_factory=list)  # those that were read beside it

    def text(self, path: Path, value: str) -> Text:
        """Return a string of the document with the places of its characters."""
        place = self.place(path)
        offsets = place.offsets
        if offsets is None or len(offsets) != len(value) + 1:
            offsets = (place.start,) * (len(value) + 1)
        return Text(value, self.source, offsets, self.name)

    def place(self, path: Path) -> Span:
        """Return where a value or key stands, or else the table it would be in."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Span(0, 0))

    def error(self, path: Path, message: str) -> TextError:
        """Return an error that points at a value, at a key, or at the heading of a table."""
        place = self.place(path)
        whole = Text(self.source, self.source, range(len(self.source) + 1), self.name)
        return whole.error(message, place.start, place.stop)


def parse_document(
    source: str, name: str | None = None, folder: FilePath | None = None, folders: tuple[FilePath, ...] = ()
) -> tuple[Document, Table]:
    """Read TOML within limits, and return the document and its outermost table.

    Files it names are looked for in ``folder``; those in ``folders`` may be named too.

    >>> parse_document('title = "heat"')[1].string("title")
    'heat'
    """
    source = source.replace("\r\n", "\n")
    whole = Text(source, source, range(len(source) + 1), name)
    if len(source) > _LONGEST:
        message = f"The file has more than {_LONGEST} characters. Put long tables into CSV files."
        raise whole.error(message, _LONGEST)
    for line in re.finditer(r"[^\n]{%d}" % _LONGEST_LINE, source):  # noqa: UP031
        raise whole.error(f"The line has more than {_LONGEST_LINE} characters; break it.", line.end() - 1)
    if dotted := _DOTTED.search(source):
        raise whole.error("A key has too many parts; use tables.", dotted.start(), dotted.end())
    try:
        data = tomllib.loads(source)
        places = find_places(source)
    except tomllib.TOMLDecodeError as error:
        raise _syntax(whole, str(error)) from None
    except (ValueError, RecursionError):
        raise whole.error("This TOML cannot be read: a number too long, or brackets too deep.") from None
    document = Document(source, name, folder, places, folders)
    return document, Table(document, (), data)


def _syntax(whole: Text, message: str) -> TextError:
    found = _POSITION.match(message)
    if found is None or found[2] is None:
        return whole.error(f"This is not TOML: {found[1] if found else message}.", len(whole.source))
    lines = whole.source.split("\n")
    start = sum(len(line) + 1 for line in lines[: int(found[2]) - 1]) + int(found[3]) - 1
    remedy = next((words for part, words in _REMEDIES.items() if part in message), "")
    return whole.error(f"This is not TOML: {found[1]}.{remedy}", start)


@dataclass(frozen=True)
class Table:
    """A table of a document; values read from it are checked for their type."""

    document: Document
    path: Path
    data: Mapping[str, Any]

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def error(self, key: str | None, message: str) -> TextError:
        """Return an error that points at the value of a key, or at the table."""
        return self.document.error(self.path if key is None else (*self.path, key), message)

    def allow(self, *keys: str) -> None:
        """Refuse keys that are not among these."""
        for key in self.data:
            if key not in keys:
                place = (*self.path, key, "#key")
                known = f"The keys here are {', '.join(keys)}."
                hint = suggestion(key, keys, known)
                raise self.document.error(place, f"There is no key {shorten(key)} here.{hint}")

    def need(self, key: str, example: str) -> Any:
        """Return a value that has to be there."""
        if key not in self.data:
            raise self.error(None, f"The key {key!r} is missing. Write {example}.")
        return self.data[key]

    def _typed(self, key: str, kind: type | tuple[type, ...], what: str) -> Any:
        value = self.data[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(key, f"{key} must be {what}. Got {shorten(value)} instead.")
        return value

    def string(self, key: str, default: str = "") -> str:
        """Return a string."""
        return str(self._typed(key, str, "text in quotes")) if key in self else default

    def flag(self, key: str, default: bool = False) -> bool:
        """Return true or false."""
        return bool(self._typed(key, bool, "true or false")) if key in self else default

    def integer(self, key: str) -> int | None:
        """Return a whole number, or None if there is none."""
        return int(self._typed(key, int, "a whole number")) if key in self else None

    def choice(self, key: str, owner: str, choices: tuple[str, ...]) -> str:
        """Return one of some words."""
        return self.attempt(key, check_choice, key, self.string(key), owner, choices)

    def items(self, key: str) -> list[Any]:
        """Return a list."""
        return list(self._typed(key, list, "a list in square brackets"))

    def strings(self, key: str) -> list[str]:
        """Return a list of strings; a single one counts as a list."""
        if isinstance(self.data.get(key), str):
            return [self.data[key]]
        values = self.items(key)
        for i, value in enumerate(values):
            if not isinstance(value, str):
                raise self.document.error((*self.path, key, i), f"{key} must be a list of text. Got {shorten(value)}.")
        return values

    def table(self, key: str) -> Table:
        """Return a table, empty if there is none."""
        value = self._typed(key, dict, "a table") if key in self else {}
        return Table(self.document, (*self.path, key), value)

    def tables(self, key: str) -> list[Table]:
        """Return a list of tables."""
        values = self.items(key) if key in self else []
        for i, value in enumerate(values):
            if not isinstance(value, dict):
                message = f"{key} must be a list of tables. Got {shorten(value)} in it."
                raise self.document.error((*self.path, key, i), message)
        return [Table(self.document, (*self.path, key, i), value) for i, value in enumerate(values)]

    def at(self, *path: str | int) -> Any:
        """Return a value below this table."""
        value: Any = self.data
        for step in path:
            value = value[step]
        return value

    def paths(self, key: str) -> list[Path]:
        """Return where the strings of a list stand; a single one counts as a list."""
        strings = self.strings(key)
        return [(key,)] if isinstance(self.data[key], str) else [(key, i) for i in range(len(strings))]

    def texts(self, key: str) -> list[Text]:
        """Return strings to be read as formulas; a single one counts as a list."""
        return [self.text(*path) for path in self.paths(key)]

    def text(self, *path: str | int) -> Text:
        """Return a string below this table, to be read as a formula; numbers are formulas too."""
        value = self.at(*path)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            message = f"{path[0]} must be a formula in quotes, or a number. Got {shorten(value)} instead."
            raise self.document.error((*self.path, *path), message)
        return self.document.text((*self.path, *path), value if isinstance(value, str) else repr(value))

    def formula(self, names: Names, key: str) -> Any:
        """Return the expression that a formula says."""
        return read_expression(self.text(key), names).expression

    def number(self, names: Names, *path: str | int) -> Any:
        """Return a constant, given as a number or as a formula, as a SymPy number."""
        piece = self.text(*path)
        found = read_expression(piece, names)
        if found.number is None:
            raise piece.error("A number is needed here; this depends on something.", 0, len(piece.text))
        return found.expression

    def numbers(self, names: Names, *path: str | int) -> list[float]:
        """Return a list of constants."""
        return [float(self.number(names, *path, i)) for i in range(len(self._list(*path)))]

    def several(self, names: Names, key: str) -> list[float] | float | None:
        """Return one constant or a list of them; None if there is none."""
        if key not in self:
            return None
        return self.numbers(names, key) if isinstance(self.data[key], list) else float(self.number(names, key))

    def rows(self, names: Names, key: str) -> list[list[float]]:
        """Return a list of points."""
        return [self.numbers(names, key, i) for i in range(len(self._list(key)))]

    def _list(self, *path: str | int) -> list[Any]:
        value = self.at(*path)
        if not isinstance(value, list):
            message = f"{path[0]} must be a list in square brackets here. Got {shorten(value)} instead."
            raise self.document.error((*self.path, *path), message)
        return value

    def attempt(self, key: str | None, make: Callable[..., Made], *arguments: Any, **options: Any) -> Made:
        """Call something of the library; its refusals point at the value of a key."""
        try:
            return make(*arguments, **options)
        except TextError:
            raise
        except PiblsError as error:
            raise self.error(key, str(error)) from error
