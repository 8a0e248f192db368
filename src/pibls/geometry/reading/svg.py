"""Closed paths of SVG drawings: lines, Bézier curves and arcs, and edges that replace them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, cut, shorten
from pibls.errors import FileFormatError, GeometryError
from pibls.geometry.base import Region
from pibls.geometry.reading.plane import NamedRing, check_number, make_shape
from pibls.geometry.reading.source import check_known
from pibls.geometry.rings import Edges, signed_area
from pibls.reading import read_string

_LARGEST = 20_000_000
_MOST_ELEMENTS = 10_000
_SHARE = 1e-3
_HIDDEN = ("defs", "clipPath", "mask", "symbol", "marker", "pattern", "metadata", "style", "script", "title", "desc")
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_LETTERS = "MmLlHhVvCcSsQqTtAaZz"
_BLANK = re.compile(r"[\s,]*")
_WANTED = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
_FAMILY = {"S": "CS", "T": "QT"}
_MOST_CURVES = 100_000
_MOST_EDGES = 1000

Chain = list[FloatArray]
"""A closed chain of Bézier curves by their control points: two for a line, three or four for a curve."""


@dataclass(frozen=True, eq=False)
class _Element:
    title: str
    name: str | None
    rule: str
    paths: list[Chain]


def from_svg(path: Path, coordinates: tuple[sp.Symbol, ...], tolerance: float | None, region: str | None) -> Region:
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
    curves = [points for element in elements for chain in element.paths for points in chain]
    hull = np.concatenate(curves or [np.zeros((1, 2))])
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
            chains = read_path(data, f"{source}, {title}")
            paths = [[points @ own[:2, :2].T + own[:2, 2] for points in chain] for chain in chains]
            curves += sum(map(len, paths))
            if curves > _MOST_CURVES:
                raise FileFormatError(f"{source} has more than {_MOST_CURVES} lines and curves. Simplify the drawing.")
            yield _Element(title, node.get("id"), rule, paths)
        todo += [(child, own, rule) for child in reversed(list(node))]


def _style(node: ElementTree.Element, key: str) -> str | None:
    found = re.search(rf"(?:^|;)\s*{key}\s*:\s*([\w-]+)", node.get("style", ""))
    return found[1] if found else node.get(key)


def _rotation(angle: float, x: float = 0.0, y: float = 0.0) -> list[list[float]]:
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return [[c, -s, x - c * x + s * y], [s, c, y - s * x - c * y]]


# By the name of a transform: how many numbers it has, and the first two rows of its matrix.
_TRANSFORMS: Mapping[str, tuple[tuple[int, ...], Callable[..., list[list[float]]]]] = {
    "matrix": ((6,), lambda a, b, c, d, e, f: [[a, c, e], [b, d, f]]),
    "translate": ((1, 2), lambda x, y=0.0: [[1.0, 0.0, x], [0.0, 1.0, y]]),
    "scale": ((1, 2), lambda *v: [[v[0], 0.0, 0.0], [0.0, v[-1], 0.0]]),
    "rotate": ((1, 3), _rotation),
    "skewX": ((1,), lambda angle: [[1.0, math.tan(math.radians(angle)), 0.0], [0.0, 1.0, 0.0]]),
    "skewY": ((1,), lambda angle: [[1.0, 0.0, 0.0], [math.tan(math.radians(angle)), 1.0, 0.0]]),
}


def _matrix(text: str, source: str) -> FloatArray:
    whole = np.eye(3)
    for kind, inside in re.findall(rf"({'|'.join(_TRANSFORMS)})\s*\(([^()]*)\)", text):
        values = [float(entry) for entry in re.findall(_NUMBER, inside)]
        counts, rows = _TRANSFORMS[kind]
        if len(values) not in counts:
            raise FileFormatError(f"{source} has a transform that cannot be read: {cut(f'{kind}({inside})')}.")
        whole = whole @ np.array([*rows(*values), [0.0, 0.0, 1.0]])
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
    for chain in element.paths:
        ring = flattened(chain, tolerance)
        if len(ring) and np.array_equal(ring[0], ring[-1]):
            ring = ring[:-1]
        total += len(ring)
        check_number(total, source)
        if len(ring) >= 3 and signed_area(ring) != 0.0:
            rings.append(np.stack([ring[:, 0], bottom - ring[:, 1]], axis=1))
    if not rings:
        raise GeometryError(f"{source}: {element.title} encloses no area. Close the path, or leave it out.")
    edges = Edges(rings)
    up, down = edges.crossings().T
    if element.rule == "evenodd":
        before = (up + down) % 2 == 1
        within = ~before
    else:
        before, within = up != down, up - down + np.sign(edges.areas) != 0
    titles = [element.title + (f", subpath {k}" if len(rings) > 1 else "") for k in range(len(rings))]
    return [NamedRing(rings[k], titles[k], bool(before[k])) for k in np.flatnonzero(before != within)]


def flattened(chain: Chain, tolerance: float) -> FloatArray:
    """Return vertices of edges that stay within the tolerance of the curves."""
    found, total = [chain[0][:1]], 0
    for points in chain:
        found.append(_edges(points, tolerance))
        total += len(found[-1])
        if total > _MOST_CURVES:  # the caller refuses what is longer
            break
    return np.concatenate(found)


def _edges(points: FloatArray, tolerance: float) -> FloatArray:
    """Return the ends of edges along a curve, but for the first."""
    degree = len(points) - 1
    # A chord of a curve is off by at most 1/8 of the second derivative, which second differences bound.
    bend = float(np.hypot(*np.diff(points, 2, axis=0).T).max()) * degree * (degree - 1) if degree > 1 else 0.0
    count = 1 if bend == 0.0 else math.ceil(math.sqrt(bend / 8 / max(tolerance, bend * 1e-7)))
    s = np.arange(1, (most := max(1, min(count, _MOST_EDGES))) + 1) / most
    basis = [math.comb(degree, k) * s**k * (1 - s) ** (degree - k) for k in range(degree + 1)]
    return np.asarray(np.stack(basis, axis=1) @ points)


def read_path(text: str, source: str) -> list[Chain]:
    """Return the closed chains of curves that the ``d`` of a path describes; open ones are closed by a line.

    >>> [chain] = read_path("M 0 0 H 1 V 1 Z", "drawing")
    >>> flattened(chain, 0.1)
    array([[0., 0.],
           [1., 0.],
           [1., 1.],
           [0., 0.]])
    """
    chains: list[Chain] = [[]]
    start = here = np.zeros(2)
    last, control = "", here
    for number, (command, values) in enumerate(_commands(text, source)):
        kind, base = command.upper(), here if command.islower() else np.zeros(2)
        if number > _MOST_CURVES:
            raise FileFormatError(f"{source} has more than {_MOST_CURVES} pieces. Simplify the path.")
        if kind in "MZ":
            chains.append([])
            start = here = base + values if kind == "M" else start
        else:
            curves = _curves(kind, values, here, base, control if last and last in _FAMILY.get(kind, "") else here)
            chains[-1] += curves
            here, control = curves[-1][-1], curves[-1][-2]
        last = kind
    for chain in filter(None, chains):
        if not np.array_equal(chain[-1][-1], chain[0][0]):
            chain.append(np.array([chain[-1][-1], chain[0][0]]))
    return [chain for chain in chains if chain]


def _commands(text: str, source: str) -> Iterator[tuple[str, FloatArray]]:
    """Yield the commands of a path with their numbers; a command may be followed by the numbers of several."""
    command, values, place = "", list[float](), 0
    while (place := _BLANK.match(text, place).end()) < len(text):  # type: ignore[union-attr]
        if text[place] in _LETTERS:
            if values:
                raise FileFormatError(f"{source}: the path has too few numbers before character {place}.")
            command, place = text[place], place + 1
            if command in "Zz":
                yield command, np.empty(0)
            continue
        # The two flags of an arc are one digit each, and need no space between them.
        flag = command in ("A", "a") and len(values) in (3, 4)
        found = re.compile("[01]" if flag else _NUMBER).match(text, place)
        if found is None or not command or command in "Zz":
            raise FileFormatError(
                f"{source}: the path cannot be read from character {place} on, {cut(repr(text[place : place + 20]))}. "
                "It is damaged; save the drawing again."
            )
        values.append(float(found[0]))
        place = found.end()
        if len(values) == _WANTED[command.upper()]:
            yield command, np.array(values)
            values = []
            command = {"M": "L", "m": "l"}.get(command, command)
    if values:
        raise FileFormatError(f"{source}: the path ends in the middle of a command; it is cut short.")


def _curves(kind: str, values: FloatArray, here: FloatArray, base: FloatArray, control: FloatArray) -> list[FloatArray]:
    if kind in "HV":
        target = here.copy()
        target["HV".index(kind)] = base["HV".index(kind)] + values[0]
        return [np.array([here, target])]
    if kind == "A":
        return _arc(here, base + values[5:], values)
    points = base + values.reshape(-1, 2)
    if kind in "ST":
        points = np.vstack([2 * here - control, points])
    return [np.vstack([here, points])]


def _arc(start: FloatArray, stop: FloatArray, values: FloatArray) -> list[FloatArray]:
    """Return an elliptic arc as cubic curves, an eighth of a turn each (within 1e-6 of the radius)."""
    rx, ry = np.abs(values[:2])
    if rx == 0.0 or ry == 0.0 or np.array_equal(start, stop):
        return [np.array([start, stop])]
    c, s = math.cos(math.radians(values[2])), math.sin(math.radians(values[2]))
    turn = np.array([[c, s], [-s, c]])
    # The ellipse as a unit circle, enlarged where it is too small to reach.
    p = turn @ (start - stop) / 2 / [rx, ry]
    reach = max(1.0, float(np.hypot(*p)))
    rx, ry, p = rx * reach, ry * reach, p / reach
    size = float(p @ p)
    side = math.sqrt(max(0.0, 1.0 / size - 1.0)) * (1.0 if bool(values[3]) != bool(values[4]) else -1.0)
    center = side * np.array([p[1], -p[0]])
    first, last = (math.atan2(*(q - center)[::-1]) for q in (p, -p))
    sweep = (last - first) % (2 * math.pi)
    sweep = sweep if values[4] else sweep - 2 * math.pi
    knots = np.linspace(first, first + sweep, max(1, math.ceil(abs(sweep) / (math.pi / 4) - 1e-9)) + 1)
    back = turn.T * [rx, ry]
    middle = (start + stop) / 2 + back @ center
    found = []
    for a, b in pairwise(knots.tolist()):
        k = 4 / 3 * math.tan((b - a) / 4)
        ends = np.array([[math.cos(a), math.sin(a)], [math.cos(b), math.sin(b)]])
        along = np.stack([-ends[:, 1], ends[:, 0]], axis=1) * k
        found.append(middle + np.array([ends[0], ends[0] + along[0], ends[1] - along[1], ends[1]]) @ back.T)
    found[0][0], found[-1][-1] = start, stop
    return found
