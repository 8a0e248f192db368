"""``pibls new``: a problem file to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from pibls.cli.console import Debug, emit, told
from pibls.cli.outputs import check_target, write_text
from pibls.cli.sources import STDIN
from pibls.errors import InputError

__all__ = ["kinds", "new", "starter"]

_USUAL = "poisson"


def kinds() -> list[str]:
    """Return the kinds of starter files.

    >>> kinds()
    ['heat', 'nonlinear', 'ode', 'plate', 'poisson', 'system', 'wave']
    """
    return sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml"))


def _folder() -> Path:
    return Path(str(files("pibls.cli"))) / "starters"


def starter(kind: str) -> str:
    """Return the text of a starter file."""
    known = kinds()
    if kind not in known:
        from pibls.text.source import suggestion

        hint = suggestion(kind, known, f"They are {', '.join(known)}.")
        raise InputError(f"There is no starter {kind[:60]!r}.{hint}")
    return (_folder() / f"{kind}.toml").read_text(encoding="utf-8")


def new(
    kind: Annotated[
        str | None, typer.Argument(help="The kind of problem; without it they are listed.", autocompletion=kinds)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; KIND.toml if left out, - to print it.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
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
        emit(f"wrote {target}\nSolve it with: pibls solve {target}")
