"""Files that a page hands to the browser: the problem, scripts, tables, meshes, pictures and films."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pibls.studio.scripts import to_notebook, to_script

if TYPE_CHECKING:
    from pibls.studio.page import StudioPage


class Downloads:
    """Everything that can be taken away from a page."""

    kinds: Mapping[str, str] = {
        "toml": "Problem file",
        "py": "Python script",
        "ipynb": "Notebook",
        "png": "Picture",
        "gif": "Film",
        "csv": "Table (CSV)",
        "vtu": "Mesh (VTK)",
        "pibls": "Solution (pibls)",
    }

    def __init__(self, page: StudioPage) -> None:
        self.page = page

    def start(self, kind: str) -> None:
        """Make a file and hand it over."""
        self.page.start(self._made(kind))

    def problem(self) -> None:
        """Hand over the problem file."""
        self.start("toml")

    async def _made(self, kind: str) -> None:
        page = self.page
        record, eigenvalue = page.record, bool((page.record.get("problem") or {}).get("eigenvalue"))
        title = str(record.get("title", ""))
        tol = float(record.get("tol", 1e-4))
        texts = {
            "toml": lambda: page.text,
            "py": lambda: to_script(page.text, tol, eigenvalue=eigenvalue),
            "ipynb": lambda: to_notebook(page.text, tol, title, eigenvalue=eigenvalue),
        }
        if kind in texts:
            content = texts[kind]().encode()
        else:
            page.status.tell(f"Making the {self.kinds[kind].lower()} …")
            content = await page.session.write(kind)
        stem = re.sub(r"[^A-Za-z0-9]+", "_", title).strip("_").lower() or "problem"
        with page.root:
            page.ui.download.content(content, f"{stem}.{kind}")
        page.status.tell(f"{self.kinds[kind]}: {stem}.{kind}, {len(content) / 1000:.0f} kB.")
