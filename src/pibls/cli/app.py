"""The application: its commands, its version, and the help on exit codes."""

from __future__ import annotations

from typing import Annotated

import typer

from pibls.cli.bench import bench
from pibls.cli.check import check
from pibls.cli.doctor import doctor
from pibls.cli.eigen_command import eigen
from pibls.cli.eval_command import evaluate
from pibls.cli.reproduce import reproduce
from pibls.cli.show import show
from pibls.cli.solve_command import solve
from pibls.cli.studio_command import studio
from pibls.cli.sweep_command import sweep
from pibls.cli.zoo import list_zoo, new

_EXIT_CODES = (
    "Exit codes: 0 converged, or done; 1 unforeseen failure; 2 bad input; 3 stalled, the tolerance was not met; "
    "4 ill-posed; 130 interrupted."
)

app = typer.Typer(
    name="pibls",
    help="Solve differential equations without meshing or training; every answer says how accurate it is.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pibls {version('pibls')}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Solve differential equations without meshing or training; every answer says how accurate it is."""


app.command(epilog=_EXIT_CODES)(solve)
app.command(epilog=_EXIT_CODES)(sweep)
app.command(epilog=_EXIT_CODES)(eigen)
app.command()(show)
app.command()(check)
app.command("eval")(evaluate)
app.command("list")(list_zoo)
app.command()(studio)
app.command()(new)
app.command()(doctor)
app.command()(bench)
app.command()(reproduce)
