"""Closed paths of SVG drawings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, cut, shorten
from pibls.errors import FileFormatError, GeometryError
from pibls.geometry.base import Region
from pibls.geometry.reading.curves import MOST_CURVES, Subpath, read_path
from pibls.geometry.reading.plane import NamedRing, check_number, make_shape
from pibls.geometry.reading.source import check_known
from pibls.geometry.rings import nesting, signed_area
from pibls.reading import read_string

_LARGEST = 20_000_000
_MOST_ELEMENTS = 10_000
_SHARE = 1e-3
_HIDDEN = ("defs", "clipPath", "mask", "symbol", "marker", "pattern", "metadata", "style", "script", "title", "desc")
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_TRANSFORM = re.compile(r"(matrix|translate|scale|rotate|skewX|skewY)\s*\(([^()]*)\)")


@dataclass(frozen=True, eq=False)
class _Element:
    title: str
    name: str | None
    rule: str
    paths: tuple[Subpath, ...]


def from_svg(
    path: Path, coordinates: tuple[sp.Symbol, sp.Symbol], tolerance: float | None, region: str | None
) -> Region:
    """Return the shape within the closed paths of a drawing, curves replaced by edges within the tolerance.

    The second coordinate points upwards, from the lower edge of the drawing where that is known.
    """
    root = _parsed(path)
    source = cut(path.name)
    elements = list(_elements(root, np.eye(3), source))
    if region is not None:
        check_known(region, (element.name for element in elements), source, "shape")
        elements = [element for element in elements if element.name == region]
    if not elements:
        raise FileFormatError(f"{source} has no path, polygon, rectangle, circle or ellipse. Convert text to paths.")
    hull = np.concatenate([subpath.hull for element in elements for subpath in element.paths] or [np.zeros((1, 2))])
    if not np.isfinite(hull).all() or float(np.abs(hull).max()) > 1e15:
        raise FileFormatError(f"{source} has coordinates that are not finite, or beyond 1e15. Scale the drawing.")
    allowed = _SHARE * float(np.ptp(hull, axis=0).max()) if tolerance is None else tolerance
    bottom = _bottom(root)
    rings: list[NamedRing] = []
    for element in elements:
        rings += _filled(element, allowed, bottom, source)
    return make_shape(rings, coordinates, source)


def _parsed(path: Path) -> ElementTree.Element:
    text = read_string(path, _LARGEST, "XML")
    # Entities are the one way in which a small file of XML becomes a large one.
    if "<!ENTITY" in text:
        raise FileFormatError(f"{cut(path.name)} declares entities, which are not read. Save it as plain SVG.")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise FileFormatError(
            f"{cut(path.name)} is no XML: {cut(str(error))}. It is damaged or cut short; save it again."
        ) from None
    if _tag(root) != "svg":
        raise FileFormatError(f"{cut(path.name)} is no SVG: its outermost element is {cut(_tag(root))}.")
    return root


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rsplit("}", 1)[-1]


def _bottom(root: ElementTree.Element) -> float:
    """Return the height of the lower edge of the drawing, 0 where it is not given."""
    box = [float(entry) for entry in re.findall(_NUMBER, root.get("viewBox", ""))]
    if len(box) == 4:
        return box[1] + box[3]
    found = re.match(_NUMBER, root.get("height", ""))
    return float(found[0]) if found and not root.get("height", "").endswith("%") else 0.0


def _elements(root: ElementTree.Element, matrix: FloatArray, source: str) -> Iterator[_Element]:
    """Yield the shapes of a drawing with the transforms they are under."""
    todo = [(root, matrix, "nonzero")]
    count = curves = 0
    while todo:
        node, above, rule = todo.pop()
        count += 1
        if count > _MOST_ELEMENTS:
            raise FileFormatError(f"{source} has more than {_MOST_ELEMENTS} elements. Keep the shape only.")
        if _tag(node) in _HIDDEN or _style(node, "display") == "none":
            continue
        own = above @ _matrix(node.get("transform", ""), source)
        rule = _style(node, "fill-rule") or rule
        title = f"{_tag(node)} {node.get('id')!r}" if node.get("id") else f"{_tag(node)} number {count - 1}"
        data = _path_of(node, f"{source}, {title}")
        if data:
            paths = tuple(part.moved(own) for part in read_path(data, f"{source}, {title}"))
            curves += sum(len(part.curves) for part in paths)
            if curves > MOST_CURVES:
                raise FileFormatError(f"{source} has more than {MOST_CURVES} lines and curves. Simplify the drawing.")
            yield _Element(title, node.get("id"), rule, paths)
        todo += [(child, own, rule) for child in reversed(list(node))]


def _style(node: ElementTree.Element, key: str) -> str | None:
    found = re.search(rf"(?:^|;)\s*{key}\s*:\s*([\w-]+)", node.get("style", ""))
    return found[1] if found else node.get(key)


def _matrix(text: str, source: str) -> FloatArray:
    whole = np.eye(3)
    for kind, inside in _TRANSFORM.findall(text):
        v = [float(entry) for entry in re.findall(_NUMBER, inside)]
        one = np.eye(3)
        if kind == "matrix" and len(v) == 6:
            one[:2] = [[v[0], v[2], v[4]], [v[1], v[3], v[5]]]
        elif kind == "translate" and len(v) in (1, 2):
            one[:2, 2] = [v[0], v[1] if len(v) > 1 else 0.0]
        elif kind == "scale" and len(v) in (1, 2):
            one[0, 0], one[1, 1] = v[0], v[-1]
        elif kind == "rotate" and len(v) in (1, 3):
            c, s = math.cos(math.radians(v[0])), math.sin(math.radians(v[0]))
            px, py = v[1:] if len(v) == 3 else (0.0, 0.0)
            one[:2] = [[c, -s, px - c * px + s * py], [s, c, py - s * px - c * py]]
        elif kind in ("skewX", "skewY") and len(v) == 1:
            one[(0, 1) if kind == "skewX" else (1, 0)] = math.tan(math.radians(v[0]))
        else:
            raise FileFormatError(f"{source} has a transform that cannot be read: {cut(f'{kind}({inside})')}.")
        whole = whole @ one
    return whole


def _path_of(node: ElementTree.Element, title: str) -> str:
    """Return a shape as the data of a path, nothing for other elements."""

    def number(key: str, default: float = 0.0) -> float:
        value = node.get(key)
        if value is None:
            return default
        found = re.fullmatch(rf"({_NUMBER})\s*(?:px)?", value.strip())
        if found is None:
            raise FileFormatError(f"{title}: {key} must be a number without a unit. Got {shorten(value)} instead.")
        return float(found[1])

    tag = _tag(node)
    if tag == "path":
        return node.get("d", "")
    if tag == "polygon":
        return f"M {node.get('points', '')} Z"
    if tag == "rect":
        x, y, w, h = (number(key) for key in ("x", "y", "width", "height"))
        return f"M {x} {y} h {w} v {h} h {-w} Z" if w and h else ""
    if tag in ("circle", "ellipse"):
        rx, ry = (number("r"),) * 2 if tag == "circle" else (number("rx"), number("ry"))
        x, y = number("cx"), number("cy")
        arcs = f"A {rx} {ry} 0 0 1 {x - rx} {y} A {rx} {ry} 0 0 1 {x + rx} {y}"
        return f"M {x + rx} {y} {arcs} Z" if rx and ry else ""
    return ""


def _filled(element: _Element, tolerance: float, bottom: float, source: str) -> list[NamedRing]:
    """Return the rings that bound the filled area of an element."""
    rings: list[FloatArray] = []
    total = 0
    for subpath in element.paths:
        ring = subpath.flattened(tolerance)
        if len(ring) and np.array_equal(ring[0], ring[-1]):
            ring = ring[:-1]
        total += len(ring)
        check_number(total, source)
        if len(ring) >= 3 and signed_area(ring) != 0.0:
            rings.append(np.stack([ring[:, 0], bottom - ring[:, 1]], axis=1))
    if not rings:
        raise GeometryError(f"{source}: {element.title} encloses no area. Close the path, or leave it out.")
    signs = np.array([np.sign(signed_area(ring)) for ring in rings])
    inside = nesting(rings)
    if element.rule == "evenodd":
        before = inside.sum(axis=1) % 2 == 1
        within = ~before
    else:
        winding = inside[:, signs > 0].sum(axis=1) - inside[:, signs < 0].sum(axis=1)
        before, within = winding != 0, winding + signs != 0
    titles = [element.title + (f", subpath {k}" if len(rings) > 1 else "") for k in range(len(rings))]
    return [NamedRing(rings[k], titles[k], bool(before[k])) for k in np.flatnonzero(before != within)]
