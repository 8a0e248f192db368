"""Ways out of a page: files for the browser, scripts that solve the problem, and an address that holds it."""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pibls.errors import InputError

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

    async def _made(self, kind: str) -> None:
        page = self.page
        record, eigenvalue = page.record, bool(page.problem.get("eigenvalue"))
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
        old = kind not in texts and page.session.solved != page.text
        since = " It shows the problem as it was solved, which has changed since." if old else ""
        page.status.tell(
            f"{self.kinds[kind]}: {stem}.{kind}, {len(content) / 1000:.0f} kB.{since}", "warn" if old else ""
        )


_SOLVE = """problem = read_text(PROBLEM).problem
solution = pb.solve(problem, tol={tol!r})
print(solution)
print(solution.diagnostics.message)
"""
_EIGEN = """problem = read_text(PROBLEM).problem
spectrum = pb.eigen(problem, number=6, tol={tol!r})
print(spectrum)
solution = spectrum.solutions[0]
"""
_START = "import pibls as pb\nfrom pibls.text import read_text\n"


def quoted(text: str) -> str:
    r"""Return a text as a Python string over several lines.

    >>> import ast
    >>> ast.literal_eval(quoted('a = "x"\nb = 1\\2\n'))
    'a = "x"\nb = 1\\2\n'
    """
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    escaped = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in escaped)
    return f'"""\\\n{escaped}"""' if escaped.endswith("\n") else f'"""\\\n{escaped}\n"""'


def to_script(text: str, tol: float, *, eigenvalue: bool = False) -> str:
    """Return a script that solves a problem file and draws its solution."""
    solving = (_EIGEN if eigenvalue else _SOLVE).format(tol=tol)
    return f'{_START}\nPROBLEM = {quoted(text)}\n\n{solving}solution.plot().savefig("solution.png", dpi=150)\n'


def to_notebook(text: str, tol: float, title: str, *, eigenvalue: bool = False) -> str:
    """Return a notebook that solves a problem file and draws its solution."""
    solving = (_EIGEN if eigenvalue else _SOLVE).format(tol=tol)
    codes = [f"{_START}\nPROBLEM = {quoted(text)}", solving.rstrip("\n"), "solution.plot()"]
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "title", "metadata": {}, "source": f"# {title or 'A problem'}"}
    ]
    cells += [
        {"cell_type": "code", "id": f"cell{i}", "metadata": {}, "execution_count": None, "outputs": [], "source": code}
        for i, code in enumerate(codes)
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def to_fragment(text: str) -> str:
    """Return a text as letters, digits and a few signs.

    >>> of_fragment(to_fragment("equations = []"))
    'equations = []'
    """
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode("ascii").rstrip("=")


def of_fragment(fragment: str, longest: int = 200_000) -> str:
    """Return the text of a fragment; one that is damaged, or would be very long, is refused."""
    try:
        packed = base64.b64decode(fragment + "=" * (-len(fragment) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(packed, 4 * longest)
        text = content.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError, ValueError) as error:
        raise InputError("The address has no problem in it that can be read. Copy all of it.") from error
    if unpacking.unconsumed_tail or not unpacking.eof or len(text) > longest:
        raise InputError(f"The address is cut off, or its problem has more than {longest} characters.")
    return text
