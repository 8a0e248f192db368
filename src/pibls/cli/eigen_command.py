"""``pibls eigen``: the eigenvalues of a problem file, each with its error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pibls.cli.console import CODES, Debug, Force, Json, emit, emit_json, told
from pibls.cli.outputs import chosen_target
from pibls.cli.sources import complete, read_source
from pibls.errors import InputError


def eigen(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A problem file with an eigenvalue, or -.", autocompletion=complete)
    ],
    number: Annotated[int, typer.Option(help="How many eigenvalues to find.")] = 6,
    near: Annotated[
        str | None, typer.Option(help="Find those nearest to this number, such as 2.5 or 0.2+0.1j; else the lowest.")
    ] = None,
    tol: Annotated[float | None, typer.Option(help="Largest relative error of an eigenvalue.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Save eigenfunctions here, with a number before the extension .pibls.")
    ] = None,
    as_json: Json = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Find eigenvalues of a problem file, with their errors."""
    with told(debug):
        targets = [] if save is None else [_numbered(save, place + 1) for place in range(number)]
        for target in targets:
            chosen_target("save", target, force=force)
        found = read_source(source)
        from pibls.spectrum import eigen as find

        options = {"tol": tol or found.solve.tol, "seed": found.solve.seed, "budget": found.solve.budget}
        given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
        spectrum = find(found.problem, number, _number(near), **given)
        for target, solution in zip(targets, spectrum.solutions, strict=False):
            solution.save(target)
        pairs = list(zip(spectrum.values.tolist(), spectrum.errors.tolist(), strict=True))
        if as_json:
            values = [{"real": complex(v).real, "imaginary": complex(v).imag, "error": error} for v, error in pairs]
            emit_json("eigen", {"status": spectrum.status, "message": spectrum.message, "eigenvalues": values})
        else:
            emit("\n".join([*(f"{_shown(value)}  ± {error:.1e}" for value, error in pairs), spectrum.message]))
        raise typer.Exit(CODES[spectrum.status])


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix or '.pibls'}")


def _number(text: str | None) -> complex | None:
    try:
        return None if text is None else complex(text.replace("i", "j").replace(" ", ""))
    except ValueError:
        raise InputError(f"--near must be a number such as 2.5 or 0.2+0.1j. Got {text!r}.") from None


def _shown(value: complex) -> str:
    return f"{value:.15g}" if isinstance(value, float) else f"{value.real:.15g}{value.imag:+.15g}i"
