"""Every error the library raises on purpose.

Each message names the refused value, the rule it broke and a remedy. Catch :class:`PiblsError` to catch them all.
"""

from __future__ import annotations

from typing import Self

__all__ = ["DeadlineError", "FeatureError", "FileFormatError", "GeometryError", "InputError", "MissingDependencyError"]
__all__ += ["PiblsError", "ProblemError", "ResourceError", "SolveError", "TextError", "printable"]


def printable(text: str, kept: str = "\n\t") -> str:
    r"""Return a text with everything escaped that a terminal would obey and not show, but for ``kept`` letters.

    >>> printable("a\x1b[2Jb\u202ec")
    'a\\x1b[2Jb\\u202ec'
    >>> printable("name\nof a file", kept="")
    'name\\nof a file'
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in kept else letter.encode("unicode_escape").decode()
        for letter in text
    )


class PiblsError(Exception):
    """Base of every error the library raises on purpose; its message is safe to print, whatever a file held."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(PiblsError, ValueError):
    """An argument has the wrong type, shape or value."""


class ProblemError(PiblsError, ValueError):
    """The equations, fields and conditions do not make a problem."""


class GeometryError(PiblsError, ValueError):
    """A shape, boundary part or point set cannot be built or used as asked."""


class FeatureError(PiblsError, ValueError):
    """The features cannot be built as asked, or cannot represent the equation."""


class SolveError(PiblsError, RuntimeError):
    """The linear system cannot be solved as asked."""


class ResourceError(PiblsError, MemoryError):
    """The arrays asked for would not fit into memory; raised before anything is allocated."""

    def __new__(cls, *args: object) -> Self:
        """Make the error as any other, since those who unpickle errors for Dask call this by name."""
        return Exception.__new__(cls, *args)


class DeadlineError(PiblsError, TimeoutError):
    """The deadline passed before there was a solution to return."""


class FileFormatError(PiblsError, ValueError):
    """A saved file is damaged, was changed, or was written by a newer version."""


class MissingDependencyError(PiblsError, ImportError):
    """An optional package is needed for this and is not installed."""


class TextError(PiblsError, ValueError):
    """A formula or a problem file cannot be read; the message points at the place.

    Attributes
    ----------
    message
        What is wrong and what to do.
    path
        The file, or None for a text that came from elsewhere.
    line, column
        Where it is, both counted from one.
    excerpt
        The line it is on and a line of carets below it.
    """

    def __init__(
        self, message: str, *, path: str | None = None, line: int = 1, column: int = 1, excerpt: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.column = column
        self.excerpt = excerpt

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}"
        head = f"{place if self.path is None else f'{self.path}, {place}'}: {self.message}"
        return printable(f"{head}\n{self.excerpt}" if self.excerpt else head)
