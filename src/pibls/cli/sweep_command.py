"""``pibls sweep``: a problem file solved for many values of its parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pibls.cli.console import CODES, WRONG, Debug, Force, Json, emit_json, emit_table, note, told
from pibls.cli.outputs import check_target, refuse_other, write_text
from pibls.cli.sources import STDIN, ZOO, SourceName, assigned, goals
from pibls.errors import InputError

if TYPE_CHECKING:
    from pibls.problem import Problem
    from pibls.sweeps.sweep import SweepProgress

_RANGE = re.compile(r"([^:,]+):([^:,]+):(\d{1,6})(lin|log)?")


def sweep(
    source: SourceName,
    given: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUES", help="Values of a parameter: 1,2,3 or 0:1:11 or 1:100:20log."),
    ],
    folder: Annotated[
        Path | None, typer.Option(help="Keep every solution here, and reuse those already there.")
    ] = None,
    tol: Annotated[float | None, typer.Option(help="Relative L2 error to reach.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed: the same one gives the same solutions.")] = None,
    budget: Annotated[float | None, typer.Option(help="Work for each search, in seconds of 10¹⁰ operations.")] = None,
    processes: Annotated[
        int | None,
        typer.Option("--processes", "--workers", help="Processes to run at once; the available cores if left out."),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on a Dask cluster: address of its scheduler, or its scheduler file."),
    ] = None,
    netcdf: Annotated[Path | None, typer.Option(help="Write all results, with fields on a grid, as netCDF.")] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write quantities, status and estimated error of every point.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Solve a problem file for all combinations of values of its parameters.

    With --folder, finished solutions are kept: interrupt at any time, run again, and only the rest is solved.
    """
    kept = "" if folder is None else f"Finished solutions are kept in {folder}; run the same command again to continue."
    with told(debug, kept, as_json="sweep" if as_json else ""):
        if source == STDIN or source.startswith(ZOO):
            raise InputError(f"sweep solves a problem file that has parameters. Got {source!r} instead.")
        from pibls.text import read_file

        file = read_file(source)
        axes = _axes(given, file.parameters)
        for kind, path in (("netcdf", netcdf), ("csv", csv)):
            if path is not None:
                refuse_other(kind, check_target(f"--{kind}", path), force=force)
        options = {name: value for name, value in vars(file.solve).items() if value is not None}
        options |= {k: v for k, v in {"tol": tol, "seed": seed, "budget": budget}.items() if v is not None}
        from pibls.report.grid_values import csv_text, write_netcdf
        from pibls.sweeps import sweep as solve_all

        asked: dict[str, Any] = {**options, **axes, "folder": folder, "progress": _tell}
        wanted = goals(file.quantities)
        with _executor(processes, executor) as crew:
            found = solve_all(_Making(str(Path(source).resolve())), executor=crew, quantities=wanted, **asked)
        numbers = [name for name in (*wanted, *(f"{name}_error" for name in wanted)) if name in found]
        names = [*axes, *numbers, "status", "error_estimate", "message"]
        rows = found[names[len(axes) :]].to_dataframe().reset_index()[names].to_numpy(dtype=object).tolist()
        if netcdf is not None:
            write_netcdf(found, netcdf.resolve())
        if csv is not None:
            write_text(csv, csv_text(names, rows))
        raise typer.Exit(_shown(names, rows, [*axes, *wanted], as_json=as_json))


def _shown(names: list[str], rows: list[list[Any]], titles: list[str], *, as_json: bool) -> int:
    """Show the results of all points, as JSON or as a table with some of the columns, and return the exit code."""
    code = _code({row[-3] for row in rows})
    if as_json:
        emit_json("sweep", {"exit_code": code, "points": [dict(zip(names, row, strict=True)) for row in rows]})
    else:
        shown = [[*(f"{row[names.index(t)]:g}" for t in titles), row[-3], f"{row[-2]:.1e}"] for row in rows]
        emit_table([*titles, "status", "error estimate"], shown, right=[*titles, "error estimate"])
    return code


def _axes(given: list[str], parameters: Sequence[str]) -> dict[str, list[float]]:
    """Return the values of parameters by name, or refuse those that the file does not have."""
    axes = {name: values_of(name, text) for name, text in assigned(given).items()}
    if strange := sorted(set(axes) - set(parameters)):
        has = f"its parameters are {', '.join(parameters)}" if parameters else "it has no table [parameters]"
        raise InputError(f"The problem file has no parameter {strange[0]!r}; {has}.")
    return axes


@dataclass(frozen=True)
class _Making:
    """Makes the problem of a file for values of its parameters."""

    source: str

    def __call__(self, **values: float) -> Problem:
        """Return the problem for values by name."""
        from pibls.text import read_file

        return read_file(self.source, values={name: repr(value) for name, value in values.items()}).problem


@contextmanager
def _executor(processes: int | None, address: str | None) -> Iterator[Any]:
    """Yield a number of processes, or the client of a cluster at an address."""
    if address is None:
        yield processes
        return
    if processes is not None:
        raise InputError("--executor runs on the workers of a cluster, and --processes here. Leave one of them out.")
    from pibls.sweeps.workers import connected

    with connected(address) as client:
        yield client


def values_of(name: str, text: str) -> list[float]:
    """Return the values of a parameter: a list with commas, or start:stop:count with lin or log after it.

    >>> values_of("k", "1,2.5"), values_of("k", "0:1:3"), values_of("k", "1:100:3log")
    ([1.0, 2.5], [0.0, 0.5, 1.0], [1.0, 10.0, 100.0])
    """
    import numpy as np

    found = _RANGE.fullmatch(text)
    if found is None:
        return [_number(name, piece) for piece in text.split(",")]
    low, high = _number(name, found[1]), _number(name, found[2])
    if found[4] != "log":
        return [float(value) for value in np.linspace(low, high, int(found[3]))]
    if not low * high > 0:
        raise InputError(f"--set {name}={text} needs two ends of one sign for steps of equal ratio.")
    return [float(value) for value in np.geomspace(low, high, int(found[3]))]


def _number(name: str, piece: str) -> float:
    try:
        return float(piece)
    except ValueError:
        raise InputError(
            f"--set {name} takes numbers: a list such as 1,2,3 or a range such as 0:1:11 or 1:100:20log. "
            f"Got {piece!r} instead."
        ) from None


def _tell(progress: SweepProgress) -> None:
    note(str(progress))


def _code(seen: set[str]) -> int:
    """Return the exit code of the worst of all results."""
    codes = {str(status): code for status, code in CODES.items()}
    return max(codes[status] for status in seen) if seen <= set(codes) else WRONG
