"""``pibls studio``: problems in a browser, from an equation to a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pibls.cli.console import Debug, emit, told
from pibls.cli.sources import LARGEST
from pibls.cli.zoo import kinds, starter
from pibls.errors import InputError

_FIRST = "plate"


def studio(
    file: Annotated[Path | None, typer.Argument(help="A problem file to open and to save to.")] = None,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on; by default a free one.", min=1024, max=65535)
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    debug: Debug = False,
) -> None:
    """Open the studio: a page on this machine to write, draw, solve and look at problems.

    Only this machine can reach the page, and only with the token in its address. Ctrl-C ends it.
    """
    with told(debug):
        from pibls.studio.serving import require_packages, serve

        require_packages()
        text = starter(_FIRST) if file is None else _text(file)
        starters = {kind: starter(kind) for kind in kinds()}
        place = None if file is None else file.resolve()
        serve(text, starters, place, port=port, show=browser, tell=lambda address: emit(f"pibls studio: {address}"))


def _text(file: Path) -> str:
    """Return the text of a file, whichever problem it holds: the page tells its errors."""
    try:
        content = file.read_bytes()[: LARGEST + 1]
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"The file {file} cannot be read: {reason}. Check the path.") from error
