"""A domain drawn with characters, and the places of its conditions, as pictures of it show them."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer

from pibls.checks import FloatArray, cut
from pibls.problem import AtPoints, Averages, OnPart, Opposite, Problem

_WIDTH, _LEAST_HEIGHT, _MOST_HEIGHT = 60, 5, 24
_TIME_HEIGHT = 14
_WIDEST = 110
_CELL = 2.0  # characters are twice as high as they are wide
_COLOURS = (
    *(typer.colors.CYAN, typer.colors.YELLOW, typer.colors.GREEN, typer.colors.MAGENTA),
    *(typer.colors.BLUE, typer.colors.RED),
)
_INSIDE, _LINE, _OPEN, _OUTSIDE = "░", "─", "█", " "
_ASCII = str.maketrans({_INSIDE: ".", _LINE: "-", _OPEN: "#"})
_SIGNS = string.digits[1:] + string.ascii_letters
_POINTS = {1: 2, 2: 1500, 3: 600}


@dataclass(frozen=True, eq=False)
class Mark:
    """A place, and all conditions that hold there."""

    sign: str  # the character that stands for it
    conditions: tuple[str, ...]  # the conditions in words
    # points of the place in the coordinates that are shown; None for what has no place there, such as an average
    points: FloatArray | None


def shown_axes(problem: Problem) -> tuple[int, ...]:
    """Return the coordinates that a picture shows: those of space, and time beside one of space; none beyond three.

    >>> from pibls import problems
    >>> shown_axes(problems.heat_2d()), shown_axes(problems.wave()), shown_axes(problems.poisson_6d())
    ((0, 1), (0, 1), ())
    """
    domain = problem.domain
    space, count = len(domain.space), len(domain.coordinates)
    shown = count if space < 2 else space
    return tuple(range(shown)) if shown <= 3 else ()


def marks(problem: Problem) -> list[Mark]:
    """Return where conditions hold: the places where the same ones do, with points of them, and those without place."""
    axes, count = shown_axes(problem), len(problem.equations)
    words = [repr(condition) for condition in problem.conditions]
    # A periodic condition makes a statement per derivative, all in one place.
    places = list({statement.source: statement.place for statement in problem.statements[count:]}.values())
    samples = [_sample(problem, place, axes) for place in places]
    located = [i for i, points in enumerate(samples) if points is not None]
    found = []
    if located:
        X = np.concatenate([points for points in samples if points is not None])
        holds = np.stack([_holds(places[i], X, samples[i]) for i in located], axis=1)
        groups, first, which = np.unique(holds, axis=0, return_index=True, return_inverse=True)
        for group in np.argsort(first):
            conditions = tuple(words[i] for i, here in zip(located, groups[group], strict=True) if here)
            found.append((conditions, X[which.ravel() == group][:, list(axes)]))
    found += [((text,), None) for i, text in enumerate(words) if i not in located]
    return [Mark(_SIGNS[i % len(_SIGNS)], *entry) for i, entry in enumerate(found)]


def _sample(problem: Problem, place: Any, axes: tuple[int, ...]) -> FloatArray | None:
    """Return points of the place of a condition, if it has one in the picture."""
    if axes and isinstance(place, AtPoints | Averages):
        return np.asarray(place.points)
    parts = [part for part in _parts(place) if axes and not _fills(problem, part, axes)]
    return np.concatenate([_of_part(part, axes) for part in parts]) if parts else None


def _holds(place: Any, X: FloatArray, own: Any) -> Any:
    """Tell at which points a condition holds; its own are among them, whatever rounding does."""
    known = {tuple(point) for point in own.tolist()}
    held = np.array([tuple(point) in known for point in X.tolist()])
    for part in _parts(place):
        held |= part.contains(X)
    return held


def _parts(place: Any) -> tuple[Any, ...]:
    """Return the parts of the boundary that a condition holds on."""
    if isinstance(place, Opposite):
        return place.low, place.high
    return (place.part,) if isinstance(place, OnPart) else ()


def _of_part(part: Any, axes: tuple[int, ...]) -> FloatArray:
    return np.asarray(part.sample(_POINTS[len(axes)], "kronecker", 0).points)


def _fills(problem: Problem, part: Any, axes: tuple[int, ...]) -> bool:
    """Tell whether a part is the whole of space at one time, and time is not shown."""
    domain: Any = problem.domain
    return len(axes) < len(domain.coordinates) and part in (domain.initial, domain.final)


def open_boundary(problem: Problem) -> FloatArray | None:
    """Return points of the boundary and of the first time, to see where no condition holds."""
    axes = shown_axes(problem)
    parts = [problem.domain.boundary, problem.domain.initial]
    known = [part for part in parts if part is not None and not part.empty and not _fills(problem, part, axes)]
    return np.concatenate([_of_part(part, axes) for part in known])[:, list(axes)] if known and axes else None


def sketch(problem: Problem, encoding: str = "utf-8", *, coloured: bool = False) -> str:
    """Return a picture of the domain of a problem in one or two dimensions, and a legend of its conditions.

    >>> from pibls import problems
    >>> print(sketch(problems.beam()))
    1──────────────────────────────────────────────────────────2
    0                                                          1
    along x
      1  Dirichlet(u = 0 on the boundary)
         Condition(u_x = 0 on left)
      2  Dirichlet(u = 0 on the boundary)
         Condition(u_xx = 0 on right)
    """
    found, axes = marks(problem), shown_axes(problem)
    lines = _picture(problem, found, axes, coloured) if len(axes) in (1, 2) else []
    is_open = any(_OPEN in line for line in lines)
    for mark in found:
        sign = mark.sign if mark.points is not None and lines else " "
        lines += [f"  {_styled(sign, found, coloured)}  {cut(mark.conditions[0], _WIDEST)}"]
        lines += [f"     {cut(words, _WIDEST)}" for words in mark.conditions[1:]]
    if is_open:
        lines.append(f"  {_OPEN}  no condition")
    text = "\n".join(lines)
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        text = text.translate(_ASCII)
    return text


def _picture(problem: Problem, found: list[Mark], axes: tuple[int, ...], coloured: bool) -> list[str]:
    limits = np.asarray(problem.domain.bounds[list(axes)])
    width, height = _size(problem, limits)
    cells = _inside(problem, limits, width, height)
    edge = open_boundary(problem)
    if edge is not None:
        _put(cells, limits, edge, _OPEN)
    for mark in found:
        if mark.points is not None:
            _put(cells, limits, mark.points, mark.sign)
    names = [problem.domain.coordinates[axis].name for axis in axes]
    rows = ["".join(_styled(sign, found, coloured) for sign in row) for row in cells]
    ends = [[f"{value:.4g}" for value in pair] for pair in limits]
    margin = max(map(len, ends[1])) + 1 if len(axes) == 2 else 0
    if margin:
        sides = [ends[1][1], *[""] * (height - 2), ends[1][0]]
        rows = [f"{side:>{margin - 1}} {row}" for side, row in zip(sides, rows, strict=True)]
    gap = " " * (width - len(ends[0][0]) - len(ends[0][1]))
    caption = f"along {names[0]}" if len(names) == 1 else f"{names[0]} to the right, {names[1]} upwards"
    return [*(row.rstrip() for row in rows), " " * margin + ends[0][0] + gap + ends[0][1], caption]


def _size(problem: Problem, limits: FloatArray) -> tuple[int, int]:
    """Return columns and rows, to scale in space."""
    if len(limits) == 1:
        return _WIDTH, 1
    if problem.domain.time is not None and len(problem.domain.space) == 1:
        return _WIDTH, _TIME_HEIGHT
    across, along = (float(high - low) for low, high in limits)
    height = _WIDTH * along / across / _CELL
    if height <= _MOST_HEIGHT:
        return _WIDTH, max(_LEAST_HEIGHT, round(height))
    return max(16, round(_MOST_HEIGHT * _CELL * across / along)), _MOST_HEIGHT


def _inside(problem: Problem, limits: FloatArray, width: int, height: int) -> Any:
    """Return a character per cell, by whether its middle is in the domain."""
    domain: Any = problem.domain
    cells = np.full((height, width), _OUTSIDE, dtype="<U1")
    if domain.atoms is not None:
        _put(cells, limits, domain.atoms, _INSIDE)
        return cells
    counts = (width, height)[: len(limits)]
    middles = [low + (high - low) * (np.arange(n) + 0.5) / n for (low, high), n in zip(limits, counts, strict=True)]
    plane = np.stack([axis.ravel() for axis in np.meshgrid(*middles)], axis=1)
    X = np.tile(domain.bounds[:, 0], (len(plane), 1))
    X[:, : plane.shape[1]] = plane
    mask = np.asarray(domain.contains(X), dtype=bool).reshape(height, width)[::-1]
    cells[mask] = _INSIDE if len(limits) == 2 else _LINE
    return cells


def _put(cells: Any, limits: FloatArray, points: FloatArray, sign: str) -> None:
    """Write a character into every cell that has one of the points."""
    height, width = cells.shape
    place = (points - limits[:, 0]) / np.ptp(limits, axis=1)
    columns = np.clip((place[:, 0] * width).astype(int), 0, width - 1)
    rows = np.clip((place[:, 1] * height).astype(int), 0, height - 1) if len(limits) == 2 else 0 * columns
    cells[height - 1 - rows, columns] = sign


def _styled(sign: str, found: list[Mark], coloured: bool) -> str:
    signs = [mark.sign for mark in found] if coloured else []
    return typer.style(sign, fg=_COLOURS[signs.index(sign) % len(_COLOURS)], bold=True) if sign in signs else sign
