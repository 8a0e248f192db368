"""The page: one file that needs no network, reads well on a screen and on paper."""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass
from importlib.resources import files

from pibls.studies.report_table import Table

__all__ = ["Image", "Section", "page"]


@dataclass(frozen=True)
class Image:
    """A figure of the report.

    Attributes
    ----------
    name
        Its file name without ending, and its name within the page.
    title
        What it is, in a few words; read out where pictures are not shown.
    caption
        What it shows, as markup.
    svg
        The picture, or None where the cells for it were not run.
    """

    name: str
    title: str
    caption: str
    svg: bytes | None

    def to_html(self) -> str:
        """Return the figure with its picture inlined."""
        if self.svg is None:
            picture = '<p class="absent">not run</p>'
        else:
            source = base64.b64encode(self.svg).decode("ascii")
            picture = f'<img alt="{html.escape(self.title, quote=True)}" src="data:image/svg+xml;base64,{source}">'
        return f'<figure id="{self.name}">{picture}<figcaption>{self.caption}</figcaption></figure>'


@dataclass(frozen=True)
class Section:
    """A part of the page: paragraphs (markup), tables and figures in the order in which they are read."""

    anchor: str
    title: str
    parts: tuple[str | Table | Image, ...]

    def to_html(self) -> str:
        """Return the section."""
        body = "\n".join(_part(part) for part in self.parts)
        return f'<section id="{self.anchor}"><h2>{html.escape(self.title)}</h2>\n{body}\n</section>'


def _part(part: str | Table | Image) -> str:
    if not isinstance(part, str):
        return part.to_html()
    return part if part.startswith("<") else f"<p>{part}</p>"


def page(title: str, lead: str, sections: tuple[Section, ...]) -> str:
    """Return the whole document.

    >>> text = page("A study", "What was done.", (Section("one", "First", ("Words.",)),))
    >>> '<a href="#one">First</a>' in text, "http" in text
    (True, False)
    """
    style = files("pibls.studies").joinpath("report.css").read_text(encoding="utf-8")
    links = "".join(f'<li><a href="#{s.anchor}">{html.escape(s.title)}</a></li>' for s in sections)
    body = "\n".join(section.to_html() for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style></head>\n<body>\n"
        f"<header><h1>{html.escape(title)}</h1>{lead}</header>\n"
        f'<nav aria-label="Contents"><h2>Contents</h2><ol>{links}</ol></nav>\n<main>\n{body}\n</main></body></html>\n'
    )
