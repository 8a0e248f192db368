"""Tables of the report: headings, rows and notes, and how they read in HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass

from pibls.studies.report_ledger import Summary
from pibls.studies.report_records import Record

__all__ = ["Entry", "Table", "compared", "measured", "number", "score", "text"]

NOT_RUN = "not run"


@dataclass(frozen=True)
class Entry:
    """One cell of a table: markup, and how many columns and rows it spans."""

    markup: str
    columns: int = 1
    rows: int = 1
    kind: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the report.

    Attributes
    ----------
    anchor
        Name within the page.
    caption
        What it shows, as markup.
    heads
        Rows of headings.
    rows
        Rows of entries; the first of each is its heading.
    notes
        Markup below it.
    """

    anchor: str
    caption: str
    heads: tuple[tuple[Entry, ...], ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()

    def to_html(self) -> str:
        """Return the table as a figure of the page."""
        head = "".join(f"<tr>{''.join(_cell(e, 'th', 'col') for e in row)}</tr>" for row in self.heads)
        body = "".join(
            f"<tr>{_cell(row[0], 'th', 'row')}{''.join(_cell(e, 'td', '') for e in row[1:])}</tr>" for row in self.rows
        )
        notes = "".join(f'<p class="note">{note}</p>' for note in self.notes)
        return (
            f'<figure class="table" id="{self.anchor}"><figcaption>{self.caption}</figcaption><div class="scroll">'
            f"<table><thead>{head}</thead><tbody>{body}</tbody></table></div>{notes}</figure>"
        )


def _cell(entry: Entry, tag: str, scope: str) -> str:
    spans = (f' colspan="{entry.columns}"' if entry.columns > 1 else "") + (
        f' rowspan="{entry.rows}"' if entry.rows > 1 else ""
    )
    scope = (
        f' scope="{scope}group"' if scope and max(entry.columns, entry.rows) > 1 else f' scope="{scope}"' * bool(scope)
    )
    kind = f' class="{entry.kind}"' if entry.kind else ""
    return f"<{tag}{spans}{scope}{kind}>{entry.markup}</{tag}>"


def text(*words: str, columns: int = 1, rows: int = 1, kind: str = "words") -> tuple[Entry, ...]:
    """Return entries of plain text, escaped.

    >>> text("a < b")[0].markup
    'a &lt; b'
    """
    return tuple(Entry(html.escape(word), columns, rows, kind) for word in words)


def number(value: float) -> str:
    """Return a number with three digits, as people write it in a table.

    >>> number(0.00012345), number(0.5), number(34222.0), number(float("inf"))
    ('1.23e-4', '0.500', '34222', '∞')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0 or 0.1 <= abs(value) < 1e6:
        return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}" if value else "0"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def score(value: float) -> str:
    """Return an R² score, by its distance to one where it is close.

    >>> score(0.95), score(0.99999)
    ('0.950', '1 − 1.00e-5')
    """
    return f"1 − {number(1 - value)}" if 0.99 < value < 1 else number(value)


def measured(summary: Summary | None, write: Callable[[float], str] = number, profile: str = "quick") -> str:
    """Return a median with the worst in brackets, as markup, or the profile that would measure it."""
    if summary is None:
        return f'<span class="absent">{NOT_RUN}</span> <span class="worst">({profile})</span>'
    worst = f' <span class="worst">[{write(summary.worst)}]</span>' if summary.count > 1 else ""
    return f"<b>{write(summary.median)}</b>{worst}"


def compared(record: Record, write: Callable[[float], str] = number) -> Entry:
    """Return a median, and below it the worst in brackets and the verdict, as an entry."""
    verdict, summary = record.comparison.verdict, record.comparison.measured
    if summary is None:
        return Entry(measured(None, profile=record.profile), kind="measured")
    worst = f'<span class="worst">[{write(summary.worst)}]</span>' if summary.count > 1 else ""
    badge = f'<span class="verdict {verdict}">{verdict}</span>' if verdict else ""
    return Entry(f"<b>{write(summary.median)}</b><br>{worst} {badge}", kind="measured")
