"""``pibls list``: the problems of the zoo."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pibls.cli.console import Debug, Json, emit, emit_json, emit_table, shown, told
from pibls.cli.outputs import check_target, write_text
from pibls.cli.sources import STDIN
from pibls.errors import InputError

if TYPE_CHECKING:
    from pibls.problem import Problem


_COLUMNS = ("name", "kind", "order", "dimensions", "fields", "solution", "about")


def list_zoo(
    linear: Annotated[
        bool | None, typer.Option("--linear/--nonlinear", help="Only linear problems, or only nonlinear ones.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the zoo of ready problems; solve one with `pibls solve zoo:NAME`."""
    with told(debug, as_json="list" if as_json else ""):
        found = entries(linear)
        if as_json:
            emit_json("list", {"problems": found})
            return
        cells = [[entry[column] for column in _COLUMNS] for entry in found]
        rows = [[", ".join(cell) if isinstance(cell, list) else str(cell) for cell in row] for row in cells]
        emit_table(_COLUMNS, rows, ("order",), optional=("about", "fields", "order", "dimensions"))
        emit(f"{len(found)} problems. Solve one with: pibls solve zoo:{found[0]['name']}")


def entries(linear: bool | None = None) -> list[dict[str, Any]]:
    """Return the traits of every problem of the zoo, by name."""
    from pibls import problems

    told = dict.fromkeys(problems.without_exact(), "none") | dict.fromkeys(problems.references(), "values at points")
    every = problems.catalogue(linear=linear)
    known = [_entry(name, build, build(), told.get(name, "")) for name, build in every.items()]
    known += [_entry(name, i.problem, i.problem(), f"ill-posed: {i.kind}") for name, i in problems.ill_posed().items()]
    return [entry for entry in known if linear is None or entry["linear"] == linear]


def _entry(name: str, build: Callable[[], Problem], problem: Problem, solution: str = "") -> dict[str, Any]:
    from pibls.problem import Data
    from pibls.problems import about

    domain = problem.domain
    if not solution:
        computed = any(expression.has(Data) for expression in (problem.exact or {}).values())
        solution = "reference" if computed else "exact"
    space, time = len(domain.space), domain.time is not None
    sort = "ODE" if len(domain.coordinates) == 1 else "PDE"
    return {
        "name": name,
        "linear": problem.is_linear,
        "kind": f"{'linear' if problem.is_linear else 'nonlinear'} {sort}"
        + (" system" if len(problem.fields) > 1 else ""),
        "order": max(statement.form.order for statement in problem.statements if statement.is_equation),
        "dimensions": f"{space} + time" if space and time else "time" if time else str(space),
        "coordinates": [symbol.name for symbol in domain.coordinates],
        "fields": list(problem.field_names),
        "solution": solution,
        "about": about(build),
    }


_USUAL = "poisson"


def kinds() -> list[str]:
    """Return the kinds of starter files.

    >>> kinds()
    ['body', 'drum', 'heat', 'nonlinear', 'ode', 'plate', 'poisson', 'system', 'wave']
    """
    return sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml"))


def _folder() -> Path:
    return Path(str(files("pibls.cli"))) / "starters"


def starter(kind: str) -> str:
    """Return the text of a starter file."""
    known = kinds()
    if kind not in known:
        from pibls.text.positions import suggestion

        hint = suggestion(kind, known, f"They are {', '.join(known)}.")
        raise InputError(f"There is no starter {kind[:60]!r}.{hint}")
    return (_folder() / f"{kind}.toml").read_text(encoding="utf-8")


def new(
    kind: Annotated[
        str | None, typer.Argument(help="The kind of problem; without it, list the kinds.", autocompletion=kinds)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write, by default KIND.toml; - prints it.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    debug: Debug = False,
) -> None:
    """Write a commented problem file to start from."""
    with told(debug):
        if kind is None and out is None:
            for name in kinds():
                emit(f"{name:<10} {starter(name).splitlines()[0].lstrip('# ')}")
            emit(f"\nWrite one with: pibls new {_USUAL}")
            return
        chosen = kind or _USUAL
        text = starter(chosen)
        target = Path(f"{chosen}.toml") if out is None else out
        if str(target) == STDIN:
            emit(text.rstrip("\n"))
            return
        check_target("--out", target)
        if target.exists() and not force:
            raise InputError(f"The file {target} is there already. Choose another with --out, or replace it: --force.")
        write_text(target, text)
        verb = "eigen" if "\neigenvalue" in text else "solve"
        emit(f"wrote {shown(target)}\nSolve it with: pibls {verb} {shown(target)}")
