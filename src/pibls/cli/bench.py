"""``pibls bench``: how well the plain solve does on problems of the zoo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pibls.cli.console import Debug, Force, Json, emit, emit_json, emit_table, note, told
from pibls.cli.outputs import chosen_target, is_stdout, write_text
from pibls.cli.sources import zoo, zoo_problem
from pibls.errors import InputError
from pibls.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator


DEFAULT = (
    *("advection", "beam", "damped_oscillator", "oscillator", "poisson", "helmholtz", "variable_coefficient"),
    *("annulus", "wave", "heat_robin", "stokes", "bratu_1d"),
)
"""A dozen that take a second or so each."""

_COLUMNS = ("problem", "seed", "status", "error_estimate", "true_error", "nodes", "seconds")
_NUMBERS = ("seed", "error_estimate", "true_error", "nodes", "seconds")


def _complete(incomplete: str) -> list[str]:
    return [name for name in zoo() if name.startswith(incomplete)]


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="Problems of the zoo; by default a dozen fast ones.", autocompletion=_complete
        ),
    ] = None,
    tol: Annotated[float | None, typer.Option(help="Relative L2 error to reach.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run, from 0.")] = 1,
    budget: Annotated[float | None, typer.Option(help="Work for each search, in seconds of 10¹⁰ operations.")] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write the rows here too; - for standard output instead of the table.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Solve problems of the zoo with nothing chosen by hand; compare estimated and true errors.

    The exit code is 0 when all runs have ended, whatever their status.
    """
    with told(debug, as_json="bench" if as_json else ""):
        if is_stdout(csv) and as_json:
            raise InputError("--csv - and --json both write to standard output. Name a file, as in --csv rows.csv.")
        target = chosen_target("csv", csv, force=force)
        chosen = [zoo_problem(name.removeprefix("zoo:")) for name in names or DEFAULT]
        rows = []
        for row in _runs(chosen, {"tol": tol, "budget": budget}, seeds):
            rows.append(row)
            if not as_json:
                note(f"{row['problem']}, seed {row['seed']}: {row['status']}, {row['seconds']:.1f} s")
        from pibls.report.grid_values import csv_text

        written = csv_text(_COLUMNS, [["" if row[name] is None else row[name] for name in _COLUMNS] for row in rows])
        if target is not None:
            write_text(target, written)
        if is_stdout(csv):
            emit(written.rstrip("\n"))
        elif as_json:
            emit_json("bench", {"runs": rows})
        else:
            emit_table(_COLUMNS, [[_shown(name, row[name]) for name in _COLUMNS] for row in rows], _NUMBERS)
            met = sum(row["status"] == Status.CONVERGED for row in rows)
            emit(f"{met} of {len(rows)} runs converged, {sum(row['seconds'] for row in rows):.1f} s in all")


def _runs(chosen: list[Any], options: dict[str, Any], seeds: int) -> Iterator[dict[str, Any]]:
    from pibls.cli.solve_command import run

    for source in chosen:
        for seed in range(seeds):
            record = run(source, {**options, "seed": seed, "device": None}, {}).record()
            yield {"problem": source.title, **{name: record[name] for name in _COLUMNS[1:]}}


def _shown(name: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if name == "seconds" else f"{value:.1e}"
    return "–" if value is None else str(value)
