"""Problem files: a whole problem as TOML, with its title, solver options and outputs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import WAYS, check_bytes, shorten
from pibls.errors import InputError, PiblsError, TextError, printable
from pibls.problem import AnyCondition, Condition, Interface, Problem
from pibls.problem.measured import Measured, Written
from pibls.problem.symbols import data as data_function
from pibls.text.condition_tables import read_conditions
from pibls.text.document import Table, parse_document
from pibls.text.domains import coordinate_names, read_domain
from pibls.text.expressions import read_equation, read_expression
from pibls.text.formulas import make_names
from pibls.text.positions import Text
from pibls.text.quantity_tables import Asked, read_quantities
from pibls.text.tables import Interpolant, column, local_name, read_columns
from pibls.text.unknown_tables import declared, read_truth, read_unknowns, refuse_taken
from pibls.text.vocabulary import Names

_KEYS = (
    *("title", "domain", "time", "fields", "unknowns", "unknown_numbers", "eigenvalue", "parameters", "data"),
    *("equations", "conditions", "exact", "truth", "quantities", "solve", "output"),
)
_LARGEST = 2_000_000
_MOST_ENTRIES = 1_000  # names, equations or conditions
_MOST_SCATTERED = 200_000  # points that triangles are made of in a few seconds


@dataclass(frozen=True)
class SolveOptions:
    """How a problem shall be solved, as :func:`~pibls.solve` takes it; None leaves an option to it."""

    tol: float | None = None
    seed: int | None = None
    budget: float | None = None
    device: str | None = None
    time: str | None = None
    deadline: float | None = None
    memory: float | str | None = None
    assume_well_posed: bool | None = None
    relative: str | None = None


@dataclass(frozen=True)
class Outputs:
    """Files that shall be made of a solution, relative to the folder of the problem file."""

    plot: str | None = None
    csv: str | None = None
    json: str | None = None
    save: str | None = None
    vtk: str | None = None
    netcdf: str | None = None


@dataclass(frozen=True)
class ProblemFile:
    """The content of a problem file.

    Attributes
    ----------
    title
        What the problem is called.
    problem
        The problem.
    solve
        Solver options.
    output
        Files to be made.
    files
        Files that it reads.
    parameters
        Names of its parameters.
    quantities
        Numbers to take of the solution, by name.
    """

    title: str
    problem: Problem
    solve: SolveOptions = field(default_factory=SolveOptions)
    output: Outputs = field(default_factory=Outputs)
    files: tuple[Path, ...] = ()
    parameters: tuple[str, ...] = ()
    quantities: Mapping[str, Asked] = field(default_factory=dict)


def read_problem(path: str | os.PathLike[str], folders: Iterable[str | os.PathLike[str]] = ()) -> Problem:
    """Read a problem from a TOML file; nothing in the file is run.

    Parameters
    ----------
    path
        The file. CSV tables and shapes that it names are looked for in its folder.
    folders
        Other folders in which files with shapes may lie; no others are read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = '''
    ... unknowns = ["u"]
    ... equations = ["u_xx = -u"]
    ... [domain]
    ... shape = "interval"
    ... x = [0, 1]
    ... [[conditions]]
    ... kind = "dirichlet"
    ... value = "cos(x)"
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cosine.toml"
    ...     _ = path.write_text(text)
    ...     print(read_problem(path))
    Find u(x) with
      u_xx = -u    in Interval((x, 0, 1))
      u = cos(x)   on the boundary
    """
    return read_file(path, folders).problem


def read_file(
    path: str | os.PathLike[str],
    folders: Iterable[str | os.PathLike[str]] = (),
    values: Mapping[str, str] = MappingProxyType({}),
) -> ProblemFile:
    """Read a problem file with its title, solver options and outputs; ``values`` replace those of its parameters."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"The 'path' parameter of read_problem must be a path. Got {shorten(path)} instead.")
    place = Path(path)
    try:
        if place.exists() and not place.is_file() and not place.is_dir():
            raise ValueError("it is a device or a pipe")  # which may never end
        with place.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The file {shorten(str(place))} cannot be read: {reason}. Check the path.") from error
    try:
        source = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = content[: error.start].decode("utf-8-sig", errors="replace")
        row, column_number = start.count("\n") + 1, len(start) - start.rfind("\n")
        message = "The file is not UTF-8 text from here on; save it as UTF-8."
        raise TextError(message, path=str(path), line=row, column=column_number) from None
    return _read(source, str(path), place.parent, tuple(Path(folder) for folder in folders), values)


def read_text(
    text: str, folder: str | os.PathLike[str] | None = None, values: Mapping[str, str] = MappingProxyType({})
) -> ProblemFile:
    """Read a problem from the text of a problem file; CSV tables are looked for in ``folder``."""
    if not isinstance(text, str):
        raise InputError(f"The 'text' parameter of read_text must be a string. Got {shorten(text)} instead.")
    return _read(text, None, None if folder is None else Path(folder), (), values)


def _read(
    source: str, name: str | None, folder: Path | None, folders: tuple[Path, ...], values: Mapping[str, str]
) -> ProblemFile:
    _, table = parse_document(source, name, folder, folders)
    table.allow(*_KEYS)
    for key, value in table.data.items():
        if isinstance(value, dict | list) and len(value) > _MOST_ENTRIES:
            raise table.error(key, f"There are {len(value)} entries here, and {_MOST_ENTRIES} are allowed.")
    names = read_names(table, values)
    place = read_domain(table, names)
    table.need("equations", 'equations = ["u_xx + u_yy = 0"]')
    equations = [read_equation(piece, names) for piece in table.texts("equations")]
    conditions = read_conditions(table, place, names)
    exact = _exact(table, names)
    written = Written(len(names.coordinates))
    try:
        for expression in (*equations, *(part for condition in conditions for part in _expressions(condition))):
            written.add(expression)
        problem = Problem(equations, place.domain, conditions, exact, read_truth(table, names))
    except PiblsError as error:
        raise table.document.error(_culprit(str(error), conditions), str(error)) from error
    entries = table.table("output")
    entries.allow(*(entry.name for entry in fields(Outputs)))
    outputs = Outputs(**{key: local_name(entries, key) for key in entries.data})
    title, files = printable(table.string("title")), tuple(table.document.files)
    parameters = tuple(table.table("parameters").data)
    quantities = read_quantities(table, place, names, problem)
    return ProblemFile(title, problem, _options(table, names, problem), outputs, files, parameters, quantities)


def _expressions(condition: AnyCondition) -> Sequence[sp.Basic]:
    if isinstance(condition, Interface):
        return condition.equations
    return [condition.equation if isinstance(condition, Condition) else condition.u]


def _culprit(message: str, conditions: list[AnyCondition]) -> tuple[str | int, ...]:
    """Return the path of the statement that a refusal by the whole problem begins with."""
    for i, condition in enumerate(conditions):
        if message.startswith(repr(condition)):
            return ("conditions", i)
    for start, key in (("The exact solution", "exact"), ("The true value", "truth"), ("The 'truth'", "truth")):
        if message.startswith(start):
            return (key,)
    found = re.match(r"(?:the )?equation (\d*)", message)
    return ("equations", int(found[1] or 1) - 1) if found else ("equations",)


def read_names(table: Table, given: Mapping[str, str] = MappingProxyType({})) -> Names:
    """Return the names that the formulas of a file may use."""
    names = make_names(coordinate_names(table), ())
    names = read_unknowns(table, names)
    for label in table.table("data").data:
        refuse_taken(table, ("data", label, "#key"), label, names)
        names = declared(names, label, _data(table.table("data").table(label), label, names))
    parameters = table.table("parameters")
    for label in parameters.data:
        refuse_taken(table, ("parameters", label, "#key"), label, names)
        value = _given(label, given, names.plain) or read_expression(parameters.text(label), names.plain)
        names = declared(names, label, value)
    if strange := sorted(set(given) - set(parameters.data)):
        has = f"its parameters are {', '.join(parameters.data)}" if parameters.data else "it has no table [parameters]"
        raise InputError(f"The problem file has no parameter {shorten(strange[0])}; {has}.")
    return names


def _given(label: str, values: Mapping[str, str], names: Names) -> Measured | None:
    """Return a number in the place of a parameter of a file, if one is given."""
    if (value := values.get(label)) is None:
        return None
    found = read_expression(Text(value, value, range(len(value) + 1), f"The value of {label}"), names)
    if found.number is None:
        raise InputError(f"The value of the parameter {label} must be a number. Got {shorten(value)} instead.")
    return found


def _data(table: Table, label: str, names: Names) -> Measured:
    """Return a coefficient that a CSV file tabulates."""
    table.allow("file", "coordinates", "column", "method")
    table.need("file", 'file = "conductivity.csv"')
    symbols = names.symbols
    along = table.strings("coordinates") if "coordinates" in table else list(symbols)
    if not along or not set(along) <= set(symbols) or len(set(along)) < len(along):
        raise table.error("coordinates", f"coordinates must be some of {', '.join(symbols)}, each once.")
    value = table.string("column", label)
    choice = table.choice("method", "data", ("linear", "nearest")) if "method" in table else "linear"
    columns = read_columns(table, "file")
    points = np.stack([column(table, "file", columns, name) for name in along], axis=1)
    values = column(table, "column" if "column" in table else "file", columns, value)
    if choice == "linear" and len(along) > 1 and len(points) > _MOST_SCATTERED:
        message = f"The table has {len(points)} points, and triangles are made of up to {_MOST_SCATTERED}. Thin it out"
        raise table.error("file", f'{message}, or use method = "nearest".')
    if len(np.unique(points, axis=0)) < len(points):
        raise table.error("file", "The table has a point twice; give each point one value.")
    found = Interpolant(table.string("file"), tuple(along), value, choice, points, values)
    function = table.attempt("file", found.prepared)
    return Measured(data_function(label, function, *(symbols[name] for name in along)))


def _exact(table: Table, names: Names) -> dict[str, Any] | None:
    if "exact" not in table:
        return None
    if not isinstance(table.data["exact"], dict):
        return {label: table.formula(names.plain, "exact") for label in list(names.fields)[:1]}
    entries = table.table("exact")
    entries.allow(*names.fields)
    return {label: entries.formula(names.plain, label) for label in entries.data}


def _options(table: Table, names: Names, problem: Problem) -> SolveOptions:
    entries = table.table("solve")
    if "time" in entries and problem.domain.time is None:
        raise entries.error("time", "This is for problems in time; give a table [time], or leave it out.")

    def positive(key: str) -> float:
        value = float(entries.number(names, key))
        if not value > 0:
            raise entries.error(key, f"{key} must be above 0.")
        return value

    def seed(key: str) -> int | None:
        value = entries.integer(key)
        if value is not None and value < 0:
            raise entries.error(key, f"{key} must be 0 or more.")
        return value

    readers: dict[str, Callable[[str], Any]] = {
        **{"tol": positive, "seed": seed, "budget": positive, "device": lambda key: entries.string(key) or None},
        **{"time": lambda key: entries.choice(key, "solve", WAYS), "deadline": positive},
        "memory": lambda key: entries.attempt(key, check_bytes, key, entries.data[key], "solve"),
        "assume_well_posed": lambda key: entries.flag(key) or None,
        "relative": lambda key: entries.choice(key, "solve", ("domain", "local")),
    }
    entries.allow(*readers)
    return SolveOptions(**{key: readers[key](key) for key in entries.data})
