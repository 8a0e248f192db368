"""The server of the studio: on this machine only, behind a token, with one page per window."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pibls.errors import MissingDependencyError
from pibls.studio.crew import Allowance, Crew
from pibls.studio.doorkeeper import Doorkeeper

HERE = "127.0.0.1"
_STATIC = Path(__file__).parent / "static"
_HEAD = """<link rel="stylesheet" href="/studio/studio.css"><script src="/studio/board.js"></script>
<script src="/studio/picture.js"></script><script src="/studio/keys.js"></script>"""


def require_packages() -> None:
    """Refuse to go on without the packages that pages are made with, and say how to install them."""
    if not all(find_spec(name) for name in ("nicegui", "latex2mathml")):
        raise MissingDependencyError(
            "The studio needs the packages nicegui and latex2mathml, which are not installed. Install them with pip "
            "install 'pibls[studio]'."
        )


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        return int(probe.getsockname()[1])


async def _answers(port: int) -> bool:
    """Tell whether somebody listens on a port."""
    try:
        _, writer = await asyncio.open_connection(HERE, port)
    except OSError:
        return False
    writer.close()
    return True


def serve(
    text: str,
    starters: Mapping[str, str],
    path: Path | None = None,
    *,
    port: int | None = None,
    show: bool = True,
    tell: Callable[[str], None] = print,
    allowance: Allowance | None = None,
) -> None:
    """Serve the studio until it is interrupted.

    New pages start with the ``text``, which is saved to ``path`` if it came from there; files that it names lie beside
    it. ``tell`` is called with the address, and a browser opens if it shall ``show``.
    """
    require_packages()
    crew = Crew(allowance or Allowance())
    crew.prepare()  # it loads while the packages of the page do
    try:
        _serve(crew, text, starters, path, port or free_port(), show, tell)
    finally:
        crew.dismiss()


def _serve(
    crew: Crew,
    text: str,
    starters: Mapping[str, str],
    path: Path | None,
    port: int,
    show: bool,
    tell: Callable[[str], None],
) -> None:
    from nicegui import app, ui

    from pibls.studio.page import StudioPage
    from pibls.studio.session import Session

    token = secrets.token_urlsafe(24)
    app.add_static_files("/studio", _STATIC)
    app.add_middleware(Doorkeeper, port=port, token=token, largest=crew.allowance.upload)

    @ui.page("/", title="pibls studio", favicon="∫")  # type: ignore[untyped-decorator]
    async def index(client: Any) -> None:
        ui.add_head_html(_HEAD)
        session = Session(crew, text, None if path is None else path.parent)
        client.on_delete(session.close)
        page = StudioPage(ui, session, starters, path)
        ui.colors(primary="#2458d3")
        page.build()
        await client.connected(timeout=30)
        fragment = await client.run_javascript("location.hash.slice(1)", timeout=10)
        if fragment:
            page.open_fragment(str(fragment))
        page.changed()

    @app.on_startup  # type: ignore[untyped-decorator]
    async def announce() -> None:
        while not await _answers(port):
            await asyncio.sleep(0.01)
        tell(f"http://{HERE}:{port}/?token={token}")

    ui.run(
        host=HERE,
        port=port,
        title="pibls studio",
        show=f"/?token={token}" if show else False,
        reload=False,
        show_welcome_message=False,
        dark=None,
        binding_refresh_interval=None,
        message_history_length=30,  # pictures are among them
        tailwind=True,
    )
