"""``pibls eigen``: the eigenvalues of a problem file, each with its error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pibls.cli.console import CODES, Debug, Force, Json, emit, emit_json, told
from pibls.cli.outputs import check_target, refuse_other
from pibls.cli.sources import complete, read_source
from pibls.errors import InputError

if TYPE_CHECKING:
    from pibls.spectrum import Spectrum


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
            refuse_other("save", check_target("--save", target), force=force)
        found = read_source(source)
        from pibls.spectrum import eigen as find

        wishes = found.solve
        options: dict[str, Any] = {"tol": tol or wishes.tol, "seed": wishes.seed, "budget": wishes.budget}
        given = {key: value for key, value in options.items() if value is not None}
        spectrum = find(found.problem, number, _number(near), **given)
        for target, solution in zip(targets, spectrum.solutions, strict=False):
            solution.save(target)
        if as_json:
            emit_json("eigen", _record(spectrum))
        else:
            lines = (f"{_shown(value)}  ± {error:.1e}" for value, error in _pairs(spectrum))
            emit("\n".join([*lines, spectrum.message]))
        raise typer.Exit(CODES[spectrum.status])


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix or '.pibls'}")


def _number(text: str | None) -> complex | None:
    try:
        return None if text is None else complex(text.replace("i", "j").replace(" ", ""))
    except ValueError:
        raise InputError(f"--near must be a number such as 2.5 or 0.2+0.1j. Got {text!r}.") from None


def _pairs(spectrum: Spectrum) -> list[tuple[complex, float]]:
    return list(zip(spectrum.values.tolist(), spectrum.errors.tolist(), strict=True))


def _shown(value: complex) -> str:
    return f"{value:.15g}" if isinstance(value, float) else f"{value.real:.15g}{value.imag:+.15g}i"


def _record(spectrum: Spectrum) -> dict[str, Any]:
    pairs = _pairs(spectrum)
    return {
        "status": spectrum.status,
        "message": spectrum.message,
        "eigenvalues": [
            {"real": complex(value).real, "imaginary": complex(value).imag, "error": error} for value, error in pairs
        ],
    }
