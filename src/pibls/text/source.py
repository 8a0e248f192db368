"""Text that knows where it came from, so that an error can point at it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pibls.errors import TextError

__all__ = ["Text", "suggestion"]

_WIDTH = 100
_INDENT = "    "


@dataclass(frozen=True)
class Text:
    """A piece of text and its place in a source.

    Attributes
    ----------
    text
        The piece itself, escapes resolved.
    source
        The whole file, or the piece again if it came from no file.
    offsets
        For every character of ``text``, and for its end, the index in ``source``.
    path
        Name of the file, if there is one.
    """

    text: str
    source: str
    offsets: Sequence[int]
    path: str | None = None

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
    """Return a line, cut to what fits, with carets below some of it."""
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
