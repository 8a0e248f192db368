"""Streamlines of a vector that is known on a grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pibls.checks import FloatArray


def streamlines(
    grids: Sequence[FloatArray], across: FloatArray, along: FloatArray, count: int = 12, steps: int = 160
) -> list[FloatArray]:
    """Return curves that follow a vector, evenly spread: none enters a square of the page that another has passed.

    There are ``count`` squares along each side, and up to ``steps`` steps along a curve either way.

    >>> x = np.linspace(0.0, 1.0, 20)
    >>> lines = streamlines([x, x], np.ones((20, 20)), np.zeros((20, 20)))
    >>> len(lines), bool(np.ptp(lines[0][:, 1]) < 1e-12)
    (12, True)
    """
    size = len(grids[0])
    length = np.hypot(across, along)
    longest = float(np.nanmax(length)) if np.isfinite(length).any() else 0.0
    if not longest:
        return []
    spans = np.array([float(grid[-1] - grid[0]) for grid in grids])
    # In units of the picture, so that a step is as long along both axes.
    field = np.stack([across / spans[0], along / spans[1]], axis=-1)
    seen = np.zeros((count, count), dtype=bool)
    middles = (np.arange(count) + 0.5) / count
    found = []
    for row in middles:
        for column in middles:
            start = np.array([column, row])
            if seen[_square(start, count)] or not np.isfinite(_at(field, start, size)).all():
                continue
            here = _square(start, count)
            passed: set[tuple[int, int]] = {here}
            back, forth = (_followed(field, start, sign * 1.2 / steps, steps, size, seen, passed) for sign in (-1, 1))
            for square in passed:
                seen[square] = True
            line = np.array([*back[::-1], start, *forth])
            if len(line) > 8:
                found.append(np.array([grid[0] for grid in grids]) + line * spans)
    return found


def _followed(
    field: FloatArray,
    start: FloatArray,
    step: float,
    steps: int,
    size: int,
    seen: FloatArray,
    passed: set[tuple[int, int]],
) -> list[FloatArray]:
    """Return the points of a curve from a start on, by steps of equal length to the middle of each."""
    points, here = [], start
    for _ in range(steps):
        slope = _unit(_at(field, here, size))
        if slope is not None:
            slope = _unit(_at(field, here + 0.5 * step * slope, size))
        if slope is None:
            break
        here = here + step * slope
        if not ((here > 0.0) & (here < 1.0)).all():
            break
        square = _square(here, len(seen))
        if seen[square] and square not in passed:
            break
        passed.add(square)
        points.append(here)
    return points


def _unit(vector: FloatArray) -> FloatArray | None:
    length = float(np.hypot(*vector))
    return vector / length if np.isfinite(length) and length > 0.0 else None


def _at(field: FloatArray, place: FloatArray, size: int) -> FloatArray:
    """Interpolate a vector between the four points of the grid around a place."""
    column, row = np.clip(place, 0.0, 1.0) * (size - 1)
    i, j = min(int(row), size - 2), min(int(column), size - 2)
    a, b = row - i, column - j
    upper = (1 - b) * field[i + 1, j] + b * field[i + 1, j + 1]
    return np.asarray((1 - a) * ((1 - b) * field[i, j] + b * field[i, j + 1]) + a * upper)


def _square(place: FloatArray, count: int) -> tuple[int, int]:
    column, row = np.minimum((place * count).astype(int), count - 1)
    return int(row), int(column)
