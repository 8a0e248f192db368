"""Meshes of gmsh, formats 2.2, 4.0 and 4.1, as text or binary.

Nothing is as large as a number in the file says: numbers of nodes are looked up, and lists end where the file does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from pibls.checks import FloatArray, IntArray

Groups = list[tuple[str, IntArray, list[str | None]]]
"""Kinds of cells with their nodes, corners first, and the names of their physical groups."""

CORNERS = {"line": 2, "triangle": 3, "quad": 4, "tetra": 4, "hexahedron": 8, "wedge": 6, "pyramid": 5}
DIMENSION = {"line": 1, "triangle": 2, "quad": 2} | dict.fromkeys(("tetra", "hexahedron", "wedge", "pyramid"), 3)
# By the number of a type: its kind, and how many nodes it has.
_TYPES: Mapping[int, tuple[str, int]] = {
    number: (kind, nodes)
    for kind, types in {
        "line": {1: 2, 8: 3, 26: 4, 27: 5, 28: 6},
        "triangle": {2: 3, 9: 6, 20: 9, 21: 10, 22: 12, 23: 15, 24: 15, 25: 21},
        "quad": {3: 4, 10: 9, 16: 8, 36: 16, 37: 25, 38: 36},
        "tetra": {4: 4, 11: 10, 29: 20, 30: 35, 31: 56},
        "hexahedron": {5: 8, 12: 27, 17: 20, 92: 64, 93: 125},
        "wedge": {6: 6, 13: 18, 18: 15, 90: 40},
        "pyramid": {7: 5, 14: 14, 19: 13},
        "vertex": {15: 1},
    }.items()
    for number, nodes in types.items()
}
_MOST_BLOCKS = 100_000


@dataclass
class _Numbers:
    """The numbers of a section, taken one after the other."""

    content: bytes
    text: bool
    size: int  # bytes of a count
    place: int = 0

    @cached_property
    def _words(self) -> FloatArray:
        return np.array(self.content.split(), dtype=np.float64)

    def take(self, kind: str, count: Any) -> Any:
        """Return the next numbers: of kind i or n whole ones, the latter as long as counts are, of kind d any."""
        if self.text:
            found, step = self._words[self.place : self.place + int(count)], int(count)
        else:
            of = np.dtype({"i": "<i4", "d": "<f8", "n": f"<u{self.size}"}[kind])
            found, step = np.frombuffer(self.content, of, int(count), self.place), int(count) * of.itemsize
        if len(found) != count:
            raise ValueError("a list ends too early")
        self.place += step
        return found if kind == "d" else _whole(found)

    def one(self, kind: str) -> int:
        """Return the next whole number."""
        return int(self.take(kind, 1)[0])

    def rows(self, count: int) -> tuple[IntArray, FloatArray]:
        """Return the next nodes, each a number and its coordinates."""
        if self.text:
            rows = self.take("d", 4 * count).reshape(count, 4)
            return _whole(rows[:, 0]), rows[:, 1:]
        found = np.frombuffer(self.content, [("number", "<i4"), ("place", "<f8", (3,))], count, self.place)
        self.place += found.nbytes
        return _whole(found["number"]), found["place"]

    def rest(self) -> list[int]:
        """Return all numbers that are left, whole ones."""
        size = len(self._words) if self.text else len(self.content) // 4
        return cast(list[int], self.take("i", size - self.place).tolist())

    def line(self) -> int:
        """Return the whole number on the next line, which binary files have as text, too."""
        if self.text:
            return self.one("n")
        head, _, self.content = self.content.partition(b"\n")
        return int(head)


def _whole(numbers: Any) -> IntArray:
    if not (np.abs(numbers) < 2.0**53).all() or (numbers != np.floor(numbers)).any():
        raise ValueError("a number is not whole, or too large")
    return np.asarray(numbers.astype(np.int64))


def read_gmsh(content: bytes) -> tuple[FloatArray, Groups]:
    """Return the nodes of a mesh and its cells, which number them from 0."""
    head = re.search(rb"\$MeshFormat\s+(\d\.?\d*)\s+([01])\s+([48])\s*\n(.{4})", content, flags=re.DOTALL)
    if head is None or (head[2] == b"1" and int.from_bytes(head[4], "little") != 1):
        raise ValueError("it has no header of gmsh, or the bytes of its numbers in reverse order")
    version, text, size = head[1].decode(), head[2] == b"0", int(head[3])
    sections = {name: _Numbers(body, text, size) for name, body in _sections(content)}
    if not version.startswith(("2", "4")) or not {b"Nodes", b"Elements"} <= set(sections):
        raise ValueError(f"format {version} is not known, or nodes or elements are missing")
    head_names = sections[b"PhysicalNames"].content if b"PhysicalNames" in sections else b""
    named = re.findall(rb'\b(\d{1,15})\s+(\d{1,15})\s+"([^"\n]*)"', head_names)
    names = {(int(dim), int(tag)): name.decode("utf-8", "replace") for dim, tag, name in named}
    (numbers, points), blocks = (_old if version.startswith("2") else _new)(sections, version in ("4", "4.0"))
    order = np.argsort(numbers, kind="stable")
    known = numbers[order]
    if (np.diff(known) == 0).any():
        raise ValueError("two nodes have the same number")
    groups: Groups = []
    titles: dict[tuple[int, int], str | None] = {}  # of lists of tags, which whole blocks share
    for kind, nodes, tags in blocks:
        places = np.minimum(np.searchsorted(known, nodes), len(known) - 1)
        if not len(known) or (known[places] != nodes).any():
            raise ValueError("cells have nodes that it does not have")
        if d := DIMENSION.get(kind):
            for own in tags:
                if (d, id(own)) not in titles:
                    titles[d, id(own)] = next((names[d, int(tag)] for tag in own if (d, int(tag)) in names), None)
            groups.append((kind, order[places], [titles[d, id(own)] for own in tags]))
    return points, groups


def _sections(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 0
    while found := re.compile(rb"\$(\w+)[ \t]*\r?\n").search(content, place):
        place = content.find(b"$End" + found[1], found.end())
        if place < 0:
            raise ValueError(f"the section {found[1].decode()} has no end")
        yield found[1], content[found.end() : place]
        place += len(found[0])


Blocks = list[tuple[str, IntArray, Any]]  # kinds of cells, numbers of their nodes, numbers of their physical groups
Nodes = tuple[IntArray, FloatArray]


def _old(sections: Mapping[bytes, _Numbers], _: bool) -> tuple[Nodes, Blocks]:
    """Read nodes and elements of format 2: an element on each line, or some of one type after each other."""
    nodes, elements = sections[b"Nodes"], sections[b"Elements"]
    found: dict[str, tuple[list[list[int]], list[list[int]]]] = {}
    left, place, flat = elements.line(), 0, elements.rest()
    while left > 0:
        number, many, tags = [flat[place + 1], 1, flat[place + 2]] if elements.text else flat[place : place + 3]
        kind, length = _TYPES[number]
        start = tags + (not elements.text)  # binary ones begin with their number
        place, stop = place + 3, place + 3 + many * (start + length)
        if tags < 0 or many < 1 or stop > len(flat):
            raise ValueError("a list ends too early")
        rows = [flat[k : k + start + length] for k in range(place, stop, start + length)]
        cells, groups = found.setdefault(kind, ([], []))
        cells += [row[start:] for row in rows]
        groups += [row[start - tags : start][:1] for row in rows]
        left, place = left - many, stop
    return nodes.rows(nodes.line()), [
        (kind, np.array([cell[: CORNERS.get(kind, 1)] for cell in own[0]]), own[1]) for kind, own in found.items()
    ]


def _new(sections: Mapping[bytes, _Numbers], first: bool) -> tuple[Nodes, Blocks]:
    """Read nodes and elements of format 4, whose first version has their numbers in another order."""
    physical = _entities(sections[b"Entities"], first) if b"Entities" in sections else {}
    nodes, elements, header = sections[b"Nodes"], sections[b"Elements"], 2 if first else 4
    parts: list[Nodes] = []
    for _ in range(_few(nodes.take("n", header)[0])):
        if nodes.take("i", 3)[2]:
            raise ValueError("its nodes have parameters")
        count = nodes.one("n")
        parts.append(
            nodes.rows(count) if first else (nodes.take("n", count), nodes.take("d", 3 * count).reshape(count, 3))
        )
    blocks: Blocks = []
    for _ in range(_few(elements.take("n", header)[0])):
        place, number = elements.take("i", 2).tolist(), elements.one("i")
        kind, length = _TYPES[number]
        count = elements.one("n")
        cells = elements.take("i" if first else "n", count * (1 + length)).reshape(count, 1 + length)
        tags = physical.get(tuple(place[::-1] if first else place), ())
        blocks.append((kind, cells[:, 1:], [tags] * count))
    return (np.concatenate([own for own, _ in parts]), np.concatenate([own for _, own in parts])), blocks


def _few(count: int) -> int:
    """Return a number of blocks or entities, each of which takes some microseconds."""
    if count > _MOST_BLOCKS:
        raise ValueError(f"it has more than {_MOST_BLOCKS} blocks or entities")
    return count


def _entities(numbers: _Numbers, first: bool) -> dict[tuple[int, ...], IntArray]:
    """Return the physical groups of points, curves, surfaces and volumes, by dimension and number."""
    found: dict[tuple[int, ...], IntArray] = {}
    for dimension, count in enumerate(numbers.take("n", 4)):
        for _ in range(_few(count)):
            tag = numbers.one("i")
            numbers.take("d", 3 if dimension == 0 and not first else 6)  # where it is
            found[dimension, tag] = numbers.take("i", numbers.one("n"))
            if dimension:
                numbers.take("i", numbers.one("n"))  # its ends
    return found
