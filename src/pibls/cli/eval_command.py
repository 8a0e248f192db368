"""``pibls eval``: values and derivatives of a saved solution at points of a CSV file."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pibls.cli.console import Debug, Force, emit, note, told
from pibls.cli.outputs import chosen_target, write_text
from pibls.cli.sources import STDIN
from pibls.errors import InputError, TextError

if TYPE_CHECKING:
    from pibls.checks import FloatArray
    from pibls.problem import MultiIndex
    from pibls.solution import Solution


TableOfPoints = tuple[list[str], list[list[str]], "FloatArray"]  # heading and rows as they stand there, their points


def evaluate(
    saved: Annotated[Path, typer.Argument(metavar="SAVED", help="A solution written by `pibls solve --save`.")],
    at: Annotated[str, typer.Option(help="CSV file of points whose first line names the coordinates; - for stdin.")],
    out: Annotated[
        Path | None, typer.Option("--csv", help="The file to write; by default standard output (-).")
    ] = None,
    derivative: Annotated[
        list[str] | None, typer.Option(help="A derivative to add, such as u_xx; repeat for more.")
    ] = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Evaluate a saved solution at points.

    The output has all columns of the CSV file and one more per field and derivative. Values outside the domain are
    extrapolated, with a warning.
    """
    with told(debug):
        target = chosen_target("csv", out, force=force)
        from pibls.solution import load

        solution = load(saved)
        wanted = _wanted(solution, derivative or [])
        heading, rows, points = read_points(at, solution.coordinate_names, tuple(wanted))
        _warn_outside(solution, points)
        values = solution.evaluate(points, list(wanted.values()))
        columns = zip(*(column.tolist() for column in values), strict=True)
        full = [[*entries, *numbers] for entries, numbers in zip(rows, columns, strict=True)]
        from pibls.report.grid_values import csv_text

        text = csv_text([*heading, *wanted], full)
        if target is None:
            emit(text.rstrip("\n"), as_is=True)
        else:
            write_text(target, text)


def _wanted(solution: Solution, derivatives: list[str]) -> dict[str, tuple[str, MultiIndex]]:
    """Return the columns to add by name: the fields, then derivatives."""
    from pibls.text.formulas import make_names
    from pibls.text.positions import suggestion

    problem = solution.problem
    zero = (0,) * len(problem.domain.coordinates)
    wanted = {name: (name, zero) for name in problem.field_names}
    names = make_names(problem.domain.coordinates, problem.fields)
    known = [f"{name}_{symbol}" for name in problem.field_names for symbol in solution.coordinate_names]
    for text in derivatives:
        ways = [(text, zero)] if text in problem.field_names else names.derivatives(text)
        if len(ways) != 1:
            why = "can be read in two ways" if ways else "is no derivative of this solution"
            hint = suggestion(text, known, f"Write a field, an underscore and coordinates, such as {known[0]}.")
            raise InputError(f"--derivative {text[:60]} {why}.{'' if ways else hint}")
        wanted[text] = ways[0]
    return wanted


def _warn_outside(solution: Solution, points: FloatArray) -> None:
    inside = solution.problem.domain.contains(points)
    count = int((~inside).sum())
    if count:
        first = points[~inside][0].tolist()
        note(
            f"Warning: {count} of {len(points)} points lie outside {solution.problem.domain}, first {first}; values "
            "there are extrapolated and may be far off."
        )


def read_points(name: str, coordinates: tuple[str, ...], added: tuple[str, ...] = ()) -> TableOfPoints:
    """Read points from a CSV file, or standard input, whose first line names the coordinates among other columns.

    Columns that are to be ``added`` must not be there already.
    """
    shown = "standard input" if name == STDIN else name
    try:
        # Newlines inside quotes are the business of the CSV reader.
        options: dict[str, Any] = {"encoding": "utf-8-sig", "newline": ""}
        with io.TextIOWrapper(sys.stdin.buffer, **options) if name == STDIN else Path(name).open(**options) as stream:
            return _rows(csv.reader(stream), shown, coordinates, added)
    except TextError:
        raise
    except OSError as error:
        raise InputError(f"The points of --at {name} cannot be read: {error.strerror}. Check the path.") from error
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise InputError(f"The points of --at, {shown}, cannot be read as CSV: {error}.") from error


def _rows(reader: Any, name: str, coordinates: tuple[str, ...], added: tuple[str, ...]) -> TableOfPoints:
    import numpy as np

    from pibls.problem.columns import entries_of, numbers_in

    heading = [entry.strip() for entry in next(reader, [])]
    missing = [coordinate for coordinate in coordinates if heading.count(coordinate) != 1]
    if missing:
        found = ",".join(heading)[:120] or "nothing"
        message = f"The first line must name each coordinate once: {','.join(coordinates)}. Got {found}."
        raise TextError(message, path=name)
    if taken := [column for column in heading if column in added]:
        raise TextError(f"The column {taken[0]!r} is there already and would be added; rename it.", path=name)
    places = [heading.index(coordinate) for coordinate in coordinates]
    entries, points = [], []
    for row in entries_of(reader, heading, name):
        if not any(entry.strip() for entry in row):
            raise TextError("The entries of this row are empty; remove it.", path=name, line=reader.line_num)
        points.append(numbers_in(row, places, heading, name, reader.line_num))
        entries.append(row)
    if not entries:
        raise TextError("There are no rows below the first line.", path=name)
    return heading, entries, np.array(points)
