"""Tools of all commands: exit codes, the two output streams, and the end of failures."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pibls.errors import DeadlineError, InputError, PiblsError, TextError, printable
from pibls.interrupts import code as interrupted
from pibls.status import Status
from pibls.writing import finite

if TYPE_CHECKING:
    from pibls.tuning.progress import Progress


OK, FAILED, WRONG = 0, 1, 2
CODES: Mapping[Status, int] = {Status.CONVERGED: OK, Status.STALLED: 3, Status.ILL_POSED: 4}
"""Exit codes by the status of a solution."""

SCHEMA = 1
"""Version of all JSON records; it rises when a field is removed or changes its meaning, not when one is added."""

_GAP = 3  # between the columns of a table
_LEAST_ROOM = 24

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files even if they hold something else.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def emit(text: str = "", *, as_is: bool = False) -> None:
    """Print on standard output; a reader that has gone away, as in ``| head``, is no failure.

    What a terminal would obey is escaped, wherever it comes from, but not in data and in text with our own colours.
    """
    _write(text if as_is else printable(text), err=False)


def note(text: str, *, as_is: bool = False) -> None:
    """Print on standard error, escaped in the same way: warnings, and all that is no result."""
    _write(text if as_is else printable(text), err=True)


def shown(name: str | Path) -> str:
    r"""Return the name of a file as it is printed: escaped, and on one line.

    >>> shown("a\x1b[2J\nOK")
    'a\\x1b[2J\\nOK'
    """
    return printable(str(name), kept="")


def stage_lines() -> Callable[[Progress], None] | None:
    """Return a function that prints a line per stage on standard error; None on a terminal, which shows its own.

    A file or the log of a job has no line that could be changed again and again.
    """
    if sys.stderr is not None and sys.stderr.isatty():
        return None
    told: list[tuple[str, int]] = []

    def tell(progress: Progress) -> None:
        stage = progress.stage, progress.nodes
        if told[-1:] != [stage]:
            told.append(stage)
            note(str(progress))

    return tell


def _write(text: str, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    if stream is None:  # closed by who called
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        # A terminal that lacks a letter shows a question mark.
        typer.echo(text.encode(encoding, "replace").decode(encoding), err=err)
    except OSError as error:
        # What is still buffered would fail again when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not err and not isinstance(error, BrokenPipeError):
            raise InputError(f"Standard output cannot be written: {error.strerror}.") from error


def emit_json(command: str, record: Mapping[str, Any]) -> None:
    """Print one JSON object on one line, with the version of its form and the command first."""
    emit(to_json(command, record))


def to_json(command: str, record: Mapping[str, Any]) -> str:
    """Return a record as JSON, which has no NaN and no infinity: they become null.

    >>> to_json("solve", {"error": float("inf")})
    '{"schema": 1, "command": "solve", "error": null}'
    """
    return json.dumps({"schema": SCHEMA, "command": command, **finite(record)}, allow_nan=False)


def emit_table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = (), optional: Sequence[str] = ()
) -> None:
    """Print a table on standard output, columns of numbers to the ``right``; a narrow terminal gets less of it.

    It goes without ``optional`` columns, in this order; of the first it gets as much as there is room for.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # A pipe has no width; a table for it is as wide as it must be.
    console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False)
    columns = {name: [name, *(row[i] for row in rows)] for i, name in enumerate(heading)}
    fitted = fit_columns(columns, console.width, optional)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in fitted:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=True)
    for entries in list(zip(*fitted.values(), strict=True))[1:]:
        table.add_row(*(Text(printable(entry)) for entry in entries))
    with console.capture() as captured:
        console.print(table)
    emit("\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines()), as_is=True)


def fit_columns(columns: Mapping[str, list[str]], width: int, optional: Sequence[str]) -> dict[str, list[str]]:
    """Leave out optional columns, after cutting the first of them, until a table fits.

    >>> table = {"name": ["name", "wave"], "about": ["about", "a string that was plucked and let go"]}
    >>> fit_columns(table, 40, ["about"])["about"]
    ['about', 'a string that was plucked and…']
    >>> list(fit_columns(table, 20, ["about"]))
    ['name']
    """
    kept = dict(columns)
    for name in optional:
        room = width - sum(max(map(len, kept[other])) + _GAP for other in kept if other != name) - _GAP
        if max(map(len, kept[name])) <= room:
            break
        if name == optional[0] and room >= _LEAST_ROOM:
            kept[name] = [text if len(text) <= room else text[: room - 1] + "…" for text in kept[name]]
            break
        del kept[name]
    return kept


@contextmanager
def told(debug: bool, after_interrupt: str = "", *, as_json: str = "") -> Iterator[None]:
    """Turn every failure into a message on stderr and an exit code; tracebacks are for those who ask to ``debug``.

    ``after_interrupt`` is said after Ctrl-C. ``as_json`` names a command that was asked for JSON: then the failure is
    an object on standard output too.
    """
    try:
        yield
    except KeyboardInterrupt:
        note(f"Interrupted. {after_interrupt}".rstrip())
        if as_json:
            emit_json(as_json, {"status": Status.INTERRUPTED, "exit_code": interrupted()})
        raise typer.Exit(interrupted()) from None
    except Exception as error:
        if isinstance(error, typer.Exit):
            raise
        if debug:
            note(traceback.format_exc())
        foreseen = isinstance(error, PiblsError | OSError)
        code = WRONG if foreseen else FAILED
        if isinstance(error, DeadlineError):
            code = CODES[Status.STALLED]
        hint = "" if foreseen or debug else " Run again with --debug for the traceback."
        note(f"Error: {in_words(error)}{hint}")
        if as_json:
            emit_json(as_json, {"status": "error", "exit_code": code, "error": error_record(error)})
        raise typer.Exit(code) from None


def in_words(error: BaseException) -> str:
    """Return the message of an error; only one that points into a file takes more than a line."""
    if isinstance(error, TextError):
        return str(error)
    words = " ".join(str(error).split())
    return words if isinstance(error, PiblsError | OSError) else f"unforeseen {type(error).__name__}: {words}"


def error_record(error: BaseException) -> dict[str, Any]:
    """Return an error for JSON: its kind, its message, and its place if it is in a file."""
    record: dict[str, Any] = {"type": type(error).__name__, "message": in_words(error)}
    if isinstance(error, TextError):
        place = {name: getattr(error, name) for name in ("path", "line", "column", "excerpt")}
        record |= {"message": error.message, **place}
    return record
