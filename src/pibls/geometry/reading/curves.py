"""The data of SVG paths: lines, Bézier curves and arcs, and edges that replace them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pibls.checks import FloatArray, cut
from pibls.errors import FileFormatError

_LETTERS = "MmLlHhVvCcSsQqTtAaZz"
_BLANK = re.compile(r"[\s,]*")
_FLAG = re.compile("[01]")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_WANTED = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
_FAMILY = {"S": "CS", "T": "QT"}
MOST_CURVES = 100_000
_MOST_EDGES = 1000


@dataclass(frozen=True, eq=False)
class Subpath:
    """A chain of Bézier curves by their control points: two for a line, three or four for a curve."""

    curves: tuple[FloatArray, ...]

    @property
    def hull(self) -> FloatArray:
        """All control points."""
        return np.concatenate(self.curves)

    def moved(self, matrix: FloatArray) -> Subpath:
        """Return the path under an affine map."""
        return Subpath(tuple(points @ matrix[:2, :2].T + matrix[:2, 2] for points in self.curves))

    def flattened(self, tolerance: float) -> FloatArray:
        """Return vertices of edges that stay within the tolerance of the curves."""
        found, total = [self.curves[0][:1]], 0
        for points in self.curves:
            found.append(_edges(points, tolerance))
            total += len(found[-1])
            if total > MOST_CURVES:  # the caller refuses what is longer
                break
        return np.concatenate(found)


def _edges(points: FloatArray, tolerance: float) -> FloatArray:
    """Return the ends of edges along a curve, but for the first."""
    degree = len(points) - 1
    # A chord of a curve is off by at most 1/8 of the second derivative, which second differences bound.
    bend = float(np.hypot(*np.diff(points, 2, axis=0).T).max()) * degree * (degree - 1) if degree > 1 else 0.0
    count = 1 if bend == 0.0 else math.ceil(math.sqrt(bend / 8 / max(tolerance, bend * 1e-7)))
    s = np.arange(1, max(1, min(count, _MOST_EDGES)) + 1) / max(1, min(count, _MOST_EDGES))
    basis = [math.comb(degree, k) * s**k * (1 - s) ** (degree - k) for k in range(degree + 1)]
    return np.asarray(np.stack(basis, axis=1) @ points)


def read_path(text: str, source: str) -> list[Subpath]:
    """Return the closed chains of curves that the ``d`` of a path describes; open ones are closed by a line.

    >>> [subpath] = read_path("M 0 0 H 1 V 1 Z", "drawing")
    >>> subpath.flattened(0.1)
    array([[0., 0.],
           [1., 0.],
           [1., 1.],
           [0., 0.]])
    """
    found: list[Subpath] = []
    chain: list[FloatArray] = []
    start = here = np.zeros(2)
    last, control = "", here

    def finish() -> None:
        if chain:
            if not np.array_equal(chain[-1][-1], chain[0][0]):
                chain.append(np.array([chain[-1][-1], chain[0][0]]))
            found.append(Subpath(tuple(chain)))
            chain.clear()

    for number, (command, values) in enumerate(_commands(text, source)):
        kind, base = command.upper(), here if command.islower() else np.zeros(2)
        if number > MOST_CURVES:
            raise FileFormatError(f"{source} has more than {MOST_CURVES} pieces. Simplify the path.")
        if kind == "M":
            finish()
            start = here = base + values
        elif kind == "Z":
            finish()
            here = start
        else:
            curves = _curves(kind, values, here, base, control if last and last in _FAMILY.get(kind, "") else here)
            chain += curves
            here = curves[-1][-1] if curves else here
            control = curves[-1][-2] if curves else here
        last = kind
    finish()
    return found


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
        found = (_FLAG if flag else _NUMBER).match(text, place)
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
