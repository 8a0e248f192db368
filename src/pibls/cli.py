"""The command line: ``pibls reproduce`` runs the study of the paper and writes its report."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from pibls.errors import PiblsError

__all__ = ["app"]

# Exit codes: what the shell reports for a wrong command line, an unforeseen failure, and Ctrl-C.
WRONG, FAILED, INTERRUPTED = 2, 1, 130

app = typer.Typer(
    name="pibls",
    help="Solve differential equations with broad random-feature networks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Profile(StrEnum):
    """How much of the study to run."""

    quick = "quick"
    full = "full"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pibls {version('pibls')}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Solve differential equations with broad random-feature networks."""


@app.command()
def reproduce(
    profile: Annotated[
        Profile, typer.Option(help="quick: ten minutes on two cores, PINN at a reduced grid; full: everything.")
    ] = Profile.quick,
    out: Annotated[Path, typer.Option(help="Folder of cells, figures, files and report.")] = Path("out/reproduce"),
    workers: Annotated[
        int | None, typer.Option(help="Processes to run at once; the available cores if left out.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Problem, method or kind of cells to run; repeat for more, and to narrow.")
    ] = None,
    report_only: Annotated[bool, typer.Option("--report-only", help="Run nothing; report what is stored.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Run the experiments of the paper and write a report of published beside measured numbers.

    Every result is stored as it is finished: interrupt at any time, run again, and only what is missing is computed.
    """
    with _told(debug, f"What is finished is kept in {out}; run the same command again to go on."):
        from pibls.studies.report import write_report
        from pibls.studies.runner import run_study

        if not report_only:
            run_study(out, profile=profile.value, workers=workers, only=only)
        typer.echo(f"report: {write_report(out, profile=profile.value)}")


@contextmanager
def _told(debug: bool, after_interrupt: str) -> Iterator[None]:
    """Turn every failure into one line on stderr and an exit code; tracebacks are for those who ask."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. {after_interrupt}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if debug:
            typer.echo(traceback.format_exc(), err=True)
        foreseen = isinstance(error, PiblsError | OSError)
        words = " ".join(str(error).split()) if foreseen else f"unforeseen {type(error).__name__}: {error}"
        hint = "" if foreseen or debug else " Run again with --debug for the traceback."
        typer.echo(f"Error: {words}{hint}", err=True)
        raise typer.Exit(WRONG if foreseen else FAILED) from None
