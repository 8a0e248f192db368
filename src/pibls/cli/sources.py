"""Where a problem comes from: a problem file, standard input, or the zoo."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from pibls.cli.console import shown
from pibls.errors import InputError, PiblsError

if TYPE_CHECKING:
    from pibls.problem import Problem
    from pibls.problems import Reference
    from pibls.quantities import Goal
    from pibls.solution import Solution
    from pibls.text import Outputs, ProblemFile, SolveOptions
    from pibls.text.quantity_tables import Asked


ZOO = "zoo:"
STDIN = "-"
LARGEST = 2_000_000


@dataclass(frozen=True, eq=False)
class Source:
    """A problem with the options that came with it."""

    name: str  # as it was asked for
    title: str  # what it is called
    problem: Problem
    # solve, output: solver options and outputs that the file names
    solve: SolveOptions
    output: Outputs
    folder: Path = field(default_factory=Path)  # where the outputs that a file names belong
    path: Path | None = None  # the file, if it is one
    files: tuple[Path, ...] = ()  # those that it reads
    quantities: Mapping[str, Asked] = field(default_factory=dict)  # numbers to take of the solution
    reference: Reference | None = None  # values at points, for problems of the zoo without a closed form


def read_source(name: str, values: Mapping[str, str] = MappingProxyType({})) -> Source:
    """Return the problem of a file, of standard input (``-``) or of the zoo (``zoo:NAME``), at values of parameters."""
    from pibls.text import read_file

    if name.startswith(ZOO):
        if values:
            raise InputError(f"--set gives values to the parameters of a problem file, and {name} is none.")
        return zoo_problem(name.removeprefix(ZOO))
    if name == STDIN:
        return _from_stdin(values)
    path = Path(name)
    if not path.exists() and name in zoo():
        raise InputError(f"There is no file {name}. The problem of the zoo is called {ZOO}{name}.")
    return _of_file(name, read_file(path, values=values), shown(path.stem), path.parent, path)


def _of_file(name: str, file: ProblemFile, title: str, folder: Path, path: Path | None) -> Source:
    read = (folder, path, file.files, file.quantities)
    return Source(name, file.title or title, file.problem, file.solve, file.output, *read)


def _from_stdin(values: Mapping[str, str]) -> Source:
    from pibls.text import read_text

    if sys.stdin is None:
        raise InputError("Standard input is closed. Name a problem file.")
    content = sys.stdin.buffer.read(LARGEST + 1)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"Standard input is not UTF-8 text ({error}); convert it to UTF-8.") from None
    return _of_file(STDIN, read_text(text, Path(), values), "standard input", Path(), None)


def goals(quantities: Mapping[str, Asked]) -> dict[str, Goal]:
    """Return the quantities of a problem file as functions of a solution."""
    from pibls.quantities import Goal

    return {name: Goal(own.kind, own.subject, dict(own.others)) for name, own in quantities.items()}


def zoo_problem(name: str) -> Source:
    """Return a problem of the zoo by name."""
    from pibls.problems import references
    from pibls.text import Outputs, SolveOptions
    from pibls.text.positions import suggestion

    known = zoo()
    if name not in known:
        hint = suggestion(name, known, "See `pibls list`.")
        raise InputError(f"The zoo has no problem {name[:60]!r}.{hint}")
    problem = known[name]()
    return Source(ZOO + name, name, problem, SolveOptions(), Outputs(), reference=references().get(name))


def zoo() -> Mapping[str, Callable[[], Problem]]:
    """Return every problem of the zoo by name."""
    from pibls import problems

    return problems.zoo()


def true_error(source: Source, solution: Solution) -> float | None:
    """Return the relative L2 error, where the exact solution or values of it are known; None elsewhere."""
    import numpy as np

    reference = source.reference
    if reference is not None:
        distance = np.linalg.norm(solution(reference.points) - reference.values)
        return float(distance / np.linalg.norm(reference.values))
    if source.problem.exact is None:
        return None
    try:
        return solution.true_error()
    except PiblsError:  # an exact solution of zero has no relative error
        return None


def complete(incomplete: str) -> list[str]:
    """Return completions of a problem's name for a shell: names of the zoo, problem files and folders."""
    names: list[str] = []
    if ZOO.startswith(incomplete[: len(ZOO)]) and incomplete:
        names += [ZOO + name for name in zoo() if (ZOO + name).startswith(incomplete)]
    elif not incomplete:
        names.append(ZOO)
    start = Path(incomplete)
    folder = start if incomplete.endswith("/") or not incomplete else start.parent
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        entries = []
    shown = [entry for entry in entries if not entry.name.startswith(".")]
    files = [f"{entry}/" if entry.is_dir() else str(entry) for entry in shown]
    return names + [file for file in files if file.startswith(incomplete) and file.endswith(("/", ".toml"))]


def assigned(words: Sequence[str]) -> dict[str, str]:
    """Return the values of ``--set NAME=VALUE`` by name.

    >>> assigned(["k=3", "load=1,2"])
    {'k': '3', 'load': '1,2'}
    """
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = (part.strip() for part in word.partition("="))
        if not (name and sign and value) or name in found:
            raise InputError(f"--set takes NAME=VALUE, each name once, such as --set k=3. Got {word!r} instead.")
        found[name] = value
    return found


SourceName = Annotated[
    str,
    typer.Argument(
        metavar="FILE|zoo:NAME", help="A problem file, - for standard input, or zoo:NAME.", autocompletion=complete
    ),
]
