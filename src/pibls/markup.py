"""Tables for notebooks: plain HTML in which every text is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_LEFT = "style='text-align:left'"


def facts(entries: Iterable[tuple[object, object]]) -> str:
    """Return a table of names and values; a value of several lines keeps them.

    >>> facts([("status", "a < b")])
    "<table><tr><th style='text-align:left'>status</th><td style='text-align:left'>a &lt; b</td></tr></table>"
    """
    rows = (f"<tr><th {_LEFT}>{_text(name)}</th><td {_LEFT}>{_text(value)}</td></tr>" for name, value in entries)
    return f"<table>{''.join(rows)}</table>"


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a name on top of each column.

    >>> table(["k"], [["<b>"]])
    "<table><tr><th style='text-align:left'>k</th></tr><tr><td style='text-align:left'>&lt;b&gt;</td></tr></table>"
    """
    titles = "".join(f"<th {_LEFT}>{_text(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td {_LEFT}>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{titles}</tr>{body}</table>"


def _text(value: object) -> str:
    return html.escape(str(value)).replace("\n", "<br>")
