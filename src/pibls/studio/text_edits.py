"""Changes to single places of a problem file; comments and all the rest stay as they are written."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from pibls.text.positions import Path, Span, find_places
from pibls.text.writer import write_table, write_value


def with_value(text: str, path: Path, value: Any) -> str:
    r"""Return the text with another value, which may be new in its table.

    >>> with_value("a = 1  # one\n[b]\nc = [2, 3]\n", ("b", "c", 1), 5)
    'a = 1  # one\n[b]\nc = [2, 5]\n'
    >>> with_value("a = 1\n[b]\nc = 2\n", ("b", "d"), "x")
    'a = 1\n[b]\nc = 2\nd = "x"\n'
    """
    places = find_places(text)
    if path in places and not _is_heading(places, path):
        span = places[path]
        return text[: span.start] + write_value(value) + text[span.stop :]
    table, line = path[:-1], f"{path[-1]} = {write_value(value)}"
    if not table or (table in places and _is_heading(places, table)):
        at = _end(text, places, table)
        before = text[:at] if not at or text[:at].endswith("\n") else f"{text[:at]}\n"
        return f"{before}{line}\n{text[at:]}"
    if table in places:
        at = places[table].start + 1
        inner = text[at : places[table].stop - 1].strip()
        return f"{text[:at]}{line}{', ' if inner else ''}{text[at:]}"
    return with_table(text, table, {str(path[-1]): value})


def without(text: str, path: Path) -> str:
    r"""Return the text without a key, an entry of a list, or one of several tables.

    >>> without("a = [1, 2, 3]\n[[c]]\nx = 1\n[[c]]\nx = 2  # two\n", ("c", 1))
    'a = [1, 2, 3]\n[[c]]\nx = 1\n'
    >>> without("a = [1, 2, 3]\n", ("a", 1)), without("a = [1]\nb = 2\n", ("b",))
    ('a = [1, 3]\n', 'a = [1]\n')
    """
    places = find_places(text)
    if path not in places:
        return text
    span = places[path]
    if _is_heading(places, path):
        return text[: span.start] + text[_end(text, places, path) :]
    if (*path, "#key") in places:
        start = places[*path, "#key"].start
        if text[text.rfind("\n", 0, start) + 1 : start].strip():  # within braces
            return _cut_entry(text, Span(start, span.stop))
        return text[:start] + text[_line_end(text, span.stop) :]
    return _cut_entry(text, span)


def with_item(text: str, path: Path, value: Any) -> str:
    r"""Return the text with one more entry in a list, which is made if there is none.

    >>> with_item('a = [\n  "x",\n]\n', ("a",), "y"), with_item("a = []\n", ("a",), 1)
    ('a = [\n  "x",\n  "y",\n]\n', 'a = [1]\n')
    """
    places = find_places(text)
    if path not in places:
        return with_value(text, path, [value])
    span = places[path]
    if text[span.start] != "[":
        return f"{text[: span.start]}[{text[span.start : span.stop]}, {write_value(value)}]{text[span.stop :]}"
    inner, close = text[span.start + 1 : span.stop - 1], span.stop - 1
    if not inner.strip():
        return f"{text[: span.start]}[{write_value(value)}]{text[span.stop :]}"
    held = len(inner.rstrip())
    end = span.start + 1 + held
    comma = "" if inner.rstrip().endswith(",") else ","
    if "\n" in inner:
        return f"{text[:end]}{comma}\n  {write_value(value)},{text[end:]}"
    return f"{text[:end]}{comma} {write_value(value)}{text[close:]}"


def with_table(text: str, path: Path, entries: Mapping[str, Any], *, several: bool = False) -> str:
    r"""Return the text with a table in place of the one of that name; one more of them if there may be several.

    >>> print(with_table("a = 1\n[[c]]\nx = 1\n\n[b]\ny = 2\n", ("c",), {"x": 2}, several=True))
    a = 1
    [[c]]
    x = 1
    <BLANKLINE>
    [[c]]
    x = 2
    <BLANKLINE>
    [b]
    y = 2
    <BLANKLINE>
    """
    places = find_places(text)
    name = ".".join(map(str, path))
    heading = f"[[{name}]]" if several else f"[{name}]"
    lines = "\n".join([heading, *write_table(entries)]) + "\n"
    if several:
        if path in places:  # a list of tables on a line
            return with_item(text, path, dict(entries))
        alike = [own for own in places if own[:-1] == path and isinstance(own[-1], int)]
        at = _end(text, places, max(alike, key=lambda own: int(own[-1]))) if alike else len(text)
        return _padded(text[:at], lines, text[at:])
    if path not in places:
        return _padded(text, lines, "")
    if _is_heading(places, path):
        start, stop = places[path].start, _end(text, places, path)
        return text[:start] + lines + text[stop:]
    return _padded(without(text, path), lines, "")


def _padded(before: str, lines: str, after: str) -> str:
    gap = "" if not before.strip() else "\n" if before.endswith("\n") else "\n\n"
    return f"{before}{gap}{lines}{after}"


def _is_heading(places: Mapping[Path, Span], path: Path) -> bool:
    """Tell whether the place of a path is the heading of a table: whatever stands after a key is a value."""
    return path[-1] != "#key" and not any((*path[:count], "#key") in places for count in range(1, len(path) + 1))


def _end(text: str, places: Mapping[Path, Span], table: Path) -> int:
    """Return where the lines of a table end, below which others begin."""
    own = [span for path, span in places.items() if path[: len(table)] == table]
    if not table:
        heads = [span.start for path, span in places.items() if _is_heading(places, path)]
        first = min(heads, default=len(text))
        own = [span for span in own if span.start < first]
    return _line_end(text, max((span.stop for span in own), default=0))


def _line_end(text: str, place: int) -> int:
    """Return the start of the next line after a place, or the place itself if it is the start of the text."""
    found = text.find("\n", place)
    return place if place == 0 else len(text) if found < 0 else found + 1


def _cut_entry(text: str, span: Span) -> str:
    """Remove an entry of a list, with the comma after it or before it."""
    after = text[span.stop :]
    rest = after.lstrip()
    if rest.startswith(","):
        return text[: span.start] + rest[1:].lstrip(" ")
    before = text[: span.start].rstrip()
    return before.removesuffix(",") + after


def names_file(text: str, name: str) -> bool:
    r"""Tell whether a problem file names another file, a comment aside.

    >>> names_file('[domain]\nshape = "plate.stl"  # or "bar.stl"', "plate.stl"), names_file('# "bar.stl"', "bar.stl")
    (True, False)
    """
    return is_toml(text) and repr(name) in repr(tomllib.loads(text))


def is_toml(text: str) -> bool:
    """Tell whether a text can be changed place by place."""
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return False
    return True
