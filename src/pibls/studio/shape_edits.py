"""Shapes of a problem file as a hand moves them: handles to drag, shapes that are added and taken away."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pibls.studio.text_edits import with_table, with_value
from pibls.text.positions import Path

Entries = dict[str, Any]

JOINED = ("union", "intersection", "difference")
_NOT_AXES = ("shape", "name")


@dataclass(frozen=True)
class Handle:
    """A point of a drawing that moves a number of a shape."""

    path: Path  # of the shape
    kind: str  # move, corner, radius, vertex or end
    index: int
    x: float
    y: float

    @property
    def label(self) -> str:
        """The handle in words, for those who cannot see it."""
        return f"{self.kind} {self.index + 1}" if self.kind in ("corner", "vertex", "end") else self.kind


def leaves(domain: Mapping[str, Any], path: Path = ("domain",)) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the shapes that a domain is joined from, with their paths in the file."""
    if domain.get("shape") in JOINED and isinstance(domain.get("of"), list):
        for i, part in enumerate(domain["of"]):
            if isinstance(part, dict):
                yield from leaves(part, (*path, "of", i))
    else:
        yield path, domain


def handles(text: str) -> list[Handle]:
    r"""Return the handles of all shapes on a line or in the plane; numbers given as formulas have none.

    >>> [handle.kind for handle in handles('[domain]\nshape = "disk"\ncenter = [1, 2]\nradius = 3')]
    ['move', 'radius']
    """
    domain = tomllib.loads(text).get("domain")
    return [handle for path, shape in leaves(domain) for handle in _of(path, shape)] if isinstance(domain, dict) else []


def _of(path: Path, shape: Mapping[str, Any]) -> Iterator[Handle]:
    kind = shape.get("shape")
    axes = [shape[key] for key in shape if key not in _NOT_AXES]
    if kind == "interval" and len(axes) == 1 and _are_numbers(axes[0]):
        yield from (Handle(path, "end", i, float(value), 0.0) for i, value in enumerate(axes[0]))
    elif kind in ("rectangle", "box") and len(axes) == 2 and all(_are_numbers(axis) for axis in axes):
        (left, right), (low, high) = axes
        yield Handle(path, "move", 0, (left + right) / 2, (low + high) / 2)
        yield from (Handle(path, "corner", n, axes[0][i], axes[1][j]) for n, (i, j) in enumerate(_corners()))
    elif kind in ("disk", "star"):
        center = shape.get("center", [0.0, 0.0])
        if _are_numbers(center) and len(center) == 2:
            yield Handle(path, "move", 0, *map(float, center))
            if kind == "disk" and _are_numbers([shape.get("radius")]):
                yield Handle(path, "radius", 0, center[0] + shape["radius"], float(center[1]))
    elif kind == "polygon":
        vertices = shape.get("vertices", [])
        if vertices and all(_are_numbers(vertex) and len(vertex) == 2 for vertex in vertices):
            middle = [sum(vertex[axis] for vertex in vertices) / len(vertices) for axis in (0, 1)]
            yield Handle(path, "move", 0, *middle)
            yield from (Handle(path, "vertex", i, *map(float, vertex)) for i, vertex in enumerate(vertices))


def _corners() -> tuple[tuple[int, int], ...]:
    """Return which ends of both axes the corners of a rectangle have, one after the other around it."""
    return ((0, 0), (1, 0), (1, 1), (0, 1))


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) in (int, float) and math.isfinite(value) for value in values)


def dragged(text: str, handle: Handle, x: float, y: float, step: float) -> str:
    r"""Return the text with the numbers that a handle moves; they are rounded to multiples of a step.

    >>> text = '[domain]\nshape = "disk"\nradius = 3'
    >>> dragged(text, handles(text)[1], 2.501, 0.0, 0.01).splitlines()[-1]
    'radius = 2.5'
    """
    shape: Any = tomllib.loads(text)
    for key in handle.path:
        shape = shape[key]
    names = [key for key in shape if key not in _NOT_AXES]
    if handle.kind == "end":
        return with_value(text, (*handle.path, names[0], handle.index), _rounded(x, step))
    if handle.kind == "corner":
        i, j = _corners()[handle.index]
        text = with_value(text, (*handle.path, names[0], i), _rounded(x, step))
        return with_value(text, (*handle.path, names[1], j), _rounded(y, step))
    if handle.kind == "vertex":
        return with_value(text, (*handle.path, "vertices", handle.index), [_rounded(x, step), _rounded(y, step)])
    if handle.kind == "radius":
        center = shape.get("center", [0.0, 0.0])
        radius = max(step, _rounded(math.hypot(x - center[0], y - center[1]), step))
        return with_value(text, (*handle.path, "radius"), radius)
    return _moved(text, handle, shape, names, (x - handle.x, y - handle.y), step)


def _moved(
    text: str, handle: Handle, shape: Mapping[str, Any], names: list[str], by: tuple[float, float], step: float
) -> str:
    if shape["shape"] in ("disk", "star"):
        center = [_rounded(old + own, step) for old, own in zip(shape.get("center", [0.0, 0.0]), by, strict=True)]
        return with_value(text, (*handle.path, "center"), center)
    if shape["shape"] == "polygon":
        vertices = [[_rounded(old + own, step) for old, own in zip(v, by, strict=True)] for v in shape["vertices"]]
        return with_value(text, (*handle.path, "vertices"), vertices)
    for name, own in zip(names, by, strict=True):
        text = with_value(text, (*handle.path, name), [_rounded(old + own, step) for old in shape[name]])
    return text


def _rounded(value: float, step: float) -> float:
    digits = max(0, -math.floor(math.log10(step)))
    return round(round(value / step) * step, digits)


def with_shape(text: str, kind: str, how: str, bounds: list[list[float]]) -> str:
    r"""Return the text with one more shape, joined to the domain by union, difference or intersection.

    >>> text = '[domain]\nshape = "disk"\nradius = 1\n'
    >>> print(with_shape(text, "disk", "difference", [[-1, 1], [-1, 1]]))
    [domain]
    shape = "difference"
    of = [
      {shape = "disk", radius = 1, name = "part1"},
      {shape = "disk", center = [0, 0], radius = 0.4, name = "hole1"},
    ]
    <BLANKLINE>
    """
    data = tomllib.loads(text)
    domain: Entries = data["domain"]
    taken = {str(shape.get("name", "")) for _, shape in leaves(domain)} | {str(domain.get("name", ""))}
    new = _new_shape(kind, bounds, free_name("hole" if how == "difference" else "part", taken))
    if domain.get("shape") == how:
        whole = {**domain, "of": [*domain["of"], new]}
    else:
        base = domain if domain.get("name") else {**domain, "name": free_name("part", taken)}
        whole = {"shape": how, "of": [base, new]}
        if kind in ("rectangle", "polygon") and domain.get("shape") == kind:
            text = _prefixed(text, data, base["name"], kind)
    return with_table(text, ("domain",), whole)


def _prefixed(text: str, data: Mapping[str, Any], name: str, kind: str) -> str:
    """Name the sides of the first of two shapes of one kind, which their conditions name without it."""
    sides = ("left", "right", "bottom", "top")
    for i, condition in enumerate(data.get("conditions", [])):
        on = condition.get("on")
        listed = [on] if isinstance(on, str) else on if isinstance(on, list) else []
        own = [
            f"{name}.{side}" if side in sides or (kind == "polygon" and str(side).startswith("edge")) else side
            for side in listed
        ]
        if own != listed:
            text = with_value(text, ("conditions", i, "on"), own[0] if isinstance(on, str) else own)
    return text


def _new_shape(kind: str, bounds: list[list[float]], name: str) -> Entries:
    """Return a shape in the middle of bounds, a fifth as large."""
    (left, right), (low, high) = bounds
    step = 10.0 ** math.floor(math.log10(max(right - left, high - low) / 20))
    cx, cy = _rounded((left + right) / 2, step), _rounded((low + high) / 2, step)
    r = max(step, _rounded(min(right - left, high - low) / 5, step))
    if kind == "disk":
        return {"shape": "disk", "center": [cx, cy], "radius": r, "name": name}
    if kind == "rectangle":
        return {"shape": "rectangle", "x": [cx - r, cx + r], "y": [cy - r, cy + r], "name": name}
    corners = [[cx - r, cy - r], [cx + r, cy - r], [cx, cy + r]]
    return {"shape": "polygon", "vertices": [[round(v, 12) for v in corner] for corner in corners], "name": name}


def free_name(stem: str, taken: set[str]) -> str:
    """Return a name with the lowest number that nobody has."""
    return next(name for number in range(1, 1000) if (name := f"{stem}{number}") not in taken)


def without_shape(text: str, path: Path) -> str:
    r"""Return the text without a shape; of two that were joined, the other one is left.

    >>> text = with_shape('[domain]\nshape = "disk"\nradius = 1\n', "disk", "union", [[-1, 1], [-1, 1]])
    >>> without_shape(text, ("domain", "of", 1)).splitlines()[:3]
    ['[domain]', 'shape = "disk"', 'radius = 1']
    """
    domain: Entries = tomllib.loads(text)["domain"]
    return with_table(text, ("domain",), _left(domain, path[1:]))


def _left(shape: Entries, path: Path) -> Entries:
    if not path:
        return shape
    number = int(path[1])
    parts = list(shape["of"])
    if len(path) == 2:
        del parts[number]
    else:
        parts[number] = _left(parts[number], path[2:])
    if len(parts) > 1:
        return {**shape, "of": parts}
    return parts[0]  # type: ignore[no-any-return]
