"""Where the keys and values of a TOML file are, so that an error can point at them.

Python's own reader gives values without places. This one gives places without values, for a text that Python's
reader has accepted: it therefore only has to find its way, not to judge.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pibls.errors import TextError

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_SCALAR = re.compile(r"[^,\]}#\n]*")
# Up to two quotes more may stand before three that close.
_STRING = re.compile(
    r'"""\n?(?P<escaped_lines>(?:\\.|[^\\])*?)"""(?!")|"(?P<escaped>(?:\\.|[^"\\])*)"'
    r"|'''\n?(?P<lines>.*?)'''(?!')|'(?P<plain>[^']*)'",
    re.DOTALL,
)
_CHARACTER = re.compile(r"\\(?:x..|u.{4}|U.{8}|(?P<joined>\s+)|.)|.", re.DOTALL)


@dataclass(frozen=True)
class Span:
    """Where a value stands: from ``start`` to ``stop``; for a string, where each of its characters is."""

    start: int
    stop: int
    offsets: tuple[int, ...] | None = None


def find_places(source: str) -> Mapping[Path, Span]:
    r"""Return the place of every value of a valid TOML text by its path, and of every table by its heading.

    >>> places = find_places('a = 1\n[b]\nc = ["x", "yz"]\n')
    >>> places["a",], places["b", "c", 1]
    (Span(start=4, stop=5, offsets=None), Span(start=20, stop=24, offsets=(21, 22, 23)))
    """
    finder = _Finder(source)
    finder.document()
    return finder.places


@dataclass
class _Finder:
    source: str
    position: int = 0
    places: dict[Path, Span] = field(default_factory=dict)
    counts: dict[Path, int] = field(default_factory=dict)

    def document(self) -> None:
        table: Path = ()
        while True:
            self.skip(_BLANK)
            if self.position >= len(self.source):
                return
            if self.source[self.position] == "[":
                table = self.heading()
            else:
                self.pair(table)

    def skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.source, self.position)
        if found:
            self.position = found.end()

    def heading(self) -> Path:
        start = self.position
        double = self.source.startswith("[[", start)
        self.position += 1 + double
        names = self.keys()
        self.position += 1 + double
        path = self.resolved(names[:-1]) + names[-1:]
        if double:
            self.counts[path] = self.counts.get(path, -1) + 1
            path = (*path, self.counts[path])
        self.places[path] = Span(start, self.position)
        return path

    def resolved(self, names: Path) -> Path:
        """Add to names of arrays of tables the number of their last table so far."""
        path: Path = ()
        for name in names:
            path = (*path, name)
            if path in self.counts:
                path = (*path, self.counts[path])
        return path

    def keys(self) -> Path:
        names: list[str] = []
        while True:
            self.skip(_SPACE)
            if self.source[self.position] in "\"'":
                names.append(self.text_of(self.string()))
            else:
                found = _BARE.match(self.source, self.position)
                assert found is not None
                names.append(found.group())
                self.position = found.end()
            self.skip(_SPACE)
            if self.source[self.position] != ".":
                return tuple(names)
            self.position += 1

    def text_of(self, place: Span) -> str:
        return "".join(self.source[offset] for offset in (place.offsets or ())[:-1])

    def pair(self, table: Path) -> None:
        start = self.position
        path = table + self.keys()
        stop = start + len(self.source[start : self.position].rstrip())
        self.places.setdefault((*path, "#key"), Span(start, stop))
        self.position += 1
        self.value(path)

    def value(self, path: Path) -> None:
        self.skip(_SPACE)
        start, first = self.position, self.source[self.position]
        if first in "\"'":
            self.places[path] = self.string()
            return
        if first == "[":
            self.members(path, "]")
        elif first == "{":
            self.members(path, "}")
        else:
            self.skip(_SCALAR)
            text = self.source[start : self.position].rstrip()
            self.position = start + len(text)
        self.places[path] = Span(start, self.position)

    def members(self, path: Path, closing: str) -> None:
        self.position += 1
        number = 0
        while True:
            self.skip(_BLANK)
            if self.source[self.position] == ",":
                self.position += 1
            elif self.source[self.position] == closing:
                self.position += 1
                return
            elif closing == "]":
                self.value((*path, number))
                number += 1
            else:
                self.pair(path)

    def string(self) -> Span:
        start, found = self.position, _STRING.match(self.source, self.position)
        assert found is not None
        self.position = found.end()
        assert found.lastgroup is not None
        first, last = found.span(found.lastgroup)
        offsets = list(range(first, last))
        if found.lastgroup.startswith("escaped"):
            characters = _CHARACTER.finditer(self.source, first, last)
            # A backslash at the end of a line swallows the line break and what is blank after it.
            offsets = [one.start() for one in characters if not one["joined"]]
        return Span(start, self.position, (*offsets, last))


_WIDTH = 100
_INDENT = "    "


@dataclass(frozen=True)
class Text:
    """A piece of text and its place in a source."""

    text: str  # the piece itself, escapes resolved
    source: str  # the whole file, or the piece again if it came from no file
    offsets: Sequence[int]  # for every character of text, and for its end, the index in source
    path: str | None = None  # name of the file, if there is one

    @classmethod
    def plain(cls, text: str) -> Text:
        """Return a text that is its own source.

        >>> str(Text.plain("a + ?").error("What is this?", 4)).splitlines()
        ['line 1, column 5: What is this?', '    a + ?', '        ^']
        """
        return cls(text, text, range(len(text) + 1))

    def error(self, message: str, start: int = 0, stop: int | None = None) -> TextError:
        """Return an error that points at the characters from ``start`` up to ``stop``."""
        last = len(self.offsets) - 1
        first = self.offsets[min(start, last)]
        end = self.offsets[min(max(start + 1 if stop is None else stop, start + 1), last)]
        begin = self.source.rfind("\n", 0, first) + 1
        finish = self.source.find("\n", first)
        row = self.source[begin : len(self.source) if finish < 0 else finish]
        column = first - begin
        return TextError(
            message,
            path=self.path,
            line=self.source.count("\n", 0, first) + 1,
            column=column + 1,
            excerpt=_excerpt(row, column, max(1, min(end - first, len(row) - column))),
        )


def _excerpt(row: str, column: int, length: int) -> str:
    """Return a line, cut to fit, with carets below some of it."""
    begin = max(0, min(column - _WIDTH // 2, len(row) - _WIDTH))
    shown = "".join(c if c.isprintable() else " " for c in row[begin : begin + _WIDTH])
    front, back = "..." * (begin > 0), "..." * (begin + _WIDTH < len(row))
    carets = "^" * max(1, min(length, begin + _WIDTH - column))
    pad = " " * (len(front) + column - begin)
    return f"{_INDENT}{front}{shown}{back}\n{_INDENT}{pad}{carets}"


def suggestion(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a question after the known name that is closest, or ``otherwise``.

    >>> suggestion("sinn", ["sin", "cos"])
    " Did you mean 'sin'?"
    """
    close = difflib.get_close_matches(name[:80], sorted(set(known)), n=1, cutoff=0.6)
    if close:
        return f" Did you mean {close[0]!r}?"
    return f" {otherwise}" if otherwise else ""
