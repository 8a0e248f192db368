"""``pibls reproduce``: the study of the paper and its report."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pibls.cli.console import Debug, emit, shown, told
from pibls.errors import InputError, SolveError


class Amount(StrEnum):
    """How much of the study to run."""

    quick = "quick"
    full = "full"


def reproduce(
    profile: Annotated[
        Amount, typer.Option(help="quick: some minutes on two cores, with stored PINNs; full: everything, with torch.")
    ] = Amount.quick,
    out: Annotated[Path, typer.Option(help="Folder of cells, figures, files and report.")] = Path("out/reproduce"),
    workers: Annotated[
        int | None, typer.Option(help="Processes to run at once; the available cores if left out.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Problem, method, kind of cells, N=30 or seed=0; repeat to narrow."),
    ] = None,
    report_only: Annotated[bool, typer.Option("--report-only", help="Run nothing; report what is stored.")] = False,
    debug: Debug = False,
) -> None:
    """Run the experiments of the paper and write a report of published beside measured numbers.

    Results are stored as they are finished: interrupt at any time, run again, and only missing ones are computed.
    """
    with told(debug, f"Finished results are kept in {out}; run the same command again to continue."):
        from pibls.paper.report import write_report
        from pibls.paper.runner import run_study

        if report_only and (only or workers is not None):
            raise InputError("--report-only runs nothing and tells all that is stored. Leave out --only and --workers.")
        failures = () if report_only else run_study(out, profile=profile.value, workers=workers, only=only)
        emit(f"report: {shown(write_report(out, profile=profile.value))}")
        if failures:
            raise SolveError(
                f"{len(failures)} tasks of the study failed; the report is written without them. The first: "
                f"{failures[0]} Run again to try only those."
            )
