"""``pibls solve``: a problem file in; an answer, its error, and files out."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pibls.cli.console import Debug, Force, Json, emit, emit_json, in_words, note, stage_lines, to_json, told
from pibls.cli.outputs import is_stdout, plan, write_text
from pibls.cli.sources import Source, SourceName, assigned, goals, read_source, true_error
from pibls.errors import InputError, PiblsError
from pibls.writing import replaced

if TYPE_CHECKING:
    from pibls.cli.result import Result
    from pibls.quantities import Quantity
    from pibls.solution import Solution


# The one that takes most work to make again comes first; the record last, as it lists the others.
_ORDER = ("save", "csv", "netcdf", "vtk", "plot", "animate", "json")


def solve(
    source: SourceName,
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the file; repeat for more.")
    ] = None,
    tol: Annotated[float | None, typer.Option(help="Relative L2 error to reach.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed: the same one gives the same solution.")] = None,
    budget: Annotated[float | None, typer.Option(help="Work for the search, in seconds of 10¹⁰ operations.")] = None,
    deadline: Annotated[float | None, typer.Option(help="End the search after so many real seconds.")] = None,
    memory: Annotated[str | None, typer.Option(help='Memory that the solve may take, such as "2 GB".')] = None,
    assume_well_posed: Annotated[
        bool, typer.Option("--assume-well-posed", help="Do not check whether the problem determines its solution.")
    ] = False,
    relative: Annotated[
        str | None, typer.Option(help='Errors relative to the size of fields in the whole "domain", or "local".')
    ] = None,
    device: Annotated[str | None, typer.Option(help='A torch device such as "cuda".')] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture: .png, .pdf or .svg.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the solution, for `pibls eval` and pibls.load.")] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write values and estimated errors on a grid; - for standard output.")
    ] = None,
    netcdf: Annotated[Path | None, typer.Option(help="Write values and estimated errors on a grid as netCDF.")] = None,
    vtk: Annotated[
        Path | None, typer.Option(help="Write a mesh for ParaView: .vtu or .vtk; .pvd for a series of times.")
    ] = None,
    animate: Annotated[Path | None, typer.Option(help="Write a film through time: .gif or .mp4.")] = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no result; see the exit code.")] = False,
    debug: Debug = False,
) -> None:
    """Solve a problem and say how accurate the answer is.

    Options given here override those of the problem file. Ctrl-C and SIGTERM end the search; the best answer so far is
    printed and written, and the exit code is 130 or 143.
    """
    with told(debug, "There is no solution yet.", as_json="solve" if as_json else ""):
        found = read_source(source, assigned(given or []))
        options = {"tol": tol, "seed": seed, "budget": budget, "deadline": deadline, "memory": memory}
        options |= {"relative": relative, "device": device}
        options["assume_well_posed"] = assume_well_posed or None
        to_stdout = is_stdout(csv)
        if to_stdout and as_json:
            raise InputError("--csv - and --json both write to standard output. Name a file, as in --csv values.csv.")
        places = {"plot": plot, "csv": None if to_stdout else csv, "json": None, "save": save}
        files = plan(places | {"netcdf": netcdf, "vtk": vtk, "animate": animate}, found, force=force)
        if to_stdout:
            files.pop("csv", None)
        result = run(found, options, files, progress=False if quiet else stage_lines())
        if as_json:
            emit_json("solve", result.record())
        elif to_stdout:
            _values_to_stdout(result, quiet)
        elif not quiet:
            emit(str(result), as_is=True)
        for kind, words in result.failed.items():
            note(f"Error: the output {kind} was not written: {words}")
        raise typer.Exit(result.code)


def _values_to_stdout(result: Result, quiet: bool) -> None:
    """Print the values alone on standard output; the report of the solution goes to standard error."""
    from pibls.report.grid_values import grid_csv

    emit(grid_csv(result.solution).rstrip("\n"), as_is=True)
    if not quiet:
        note(str(result), as_is=True)


def run(source: Source, given: dict[str, Any], files: dict[str, Path], progress: Any = False) -> Result:
    """Solve and write files; options given win over those of the problem file, and these over the defaults."""
    from pibls.cli.result import Result
    from pibls.tuning import solve as solve_problem

    defaults = inspect.signature(solve_problem).parameters
    options = {name: defaults[name].default for name in given}
    for choice in (vars(source.solve), given):
        options |= {name: value for name, value in choice.items() if value is not None}
    begun = time.perf_counter()
    solution = solve_problem(source.problem, progress=progress, **options)
    seconds = time.perf_counter() - begun
    numbers = {name: _number(goal, solution) for name, goal in goals(source.quantities).items()}
    result = Result(source, solution, options, true_error(source, solution), seconds, numbers)
    for kind in _ORDER:
        if kind in files:
            result = _with_file(result, kind, files[kind])
    return result


def _number(goal: Callable[[Solution], Quantity], solution: Solution) -> Quantity:
    """Return a quantity; a solution is not lost because one of its quantities cannot be found."""
    from pibls.quantities import Quantity

    try:
        return goal(solution)
    except PiblsError as error:
        return Quantity(math.nan, math.nan, None, str(error))


def _with_file(result: Result, kind: str, path: Path) -> Result:
    """Write a file; a solution that took long is not lost because one of its files cannot be made."""
    try:
        _write(result, kind, path)
    except KeyboardInterrupt:
        return replace(result, failed={**result.failed, kind: "It was interrupted."})
    except Exception as error:  # whatever a library for pictures does
        return replace(result, failed={**result.failed, kind: in_words(error)})
    return replace(result, files={**result.files, kind: path})


def _write(result: Result, kind: str, path: Path) -> None:
    from pibls.cli.outputs import MAKER

    # A link may lead to a file with another ending.
    solution, place = result.solution, path.resolve()
    writers = {"save": solution.save, "csv": solution.to_csv, "netcdf": solution.to_netcdf, "vtk": solution.to_vtk}
    if kind == "plot":
        ending = path.suffix.lower().lstrip(".")
        says = {"Software" if ending == "png" else "Creator": MAKER}
        replaced(place, partial(solution.plot().savefig, dpi=150, format=ending, metadata=says))
    elif kind == "json":
        write_text(path, to_json("solve", result.record()) + "\n")
    else:
        (writers | {"animate": solution.animate})[kind](place)
