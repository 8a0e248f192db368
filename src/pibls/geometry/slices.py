"""A quadrature rule for any plane shape: lines across it, and Gauss points on the inner segments of each line.

Where lines begin or cease to meet the shape (the top of a hole, a vertex), the lengths inside are not smooth, at worst
like a square root. Panels between those heights, with lines crowded towards their ends, are as good as for smooth ones.
So are points that crowd towards re-entrant corners, where solutions are not smooth.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray
from pibls.geometry.patch import FlippedPatch, Patch
from pibls.geometry.restricted import RestrictedPatch
from pibls.quadrature.roots import bracketed, switched
from pibls.quadrature.rules import crowded, gauss

if TYPE_CHECKING:
    from pibls.geometry.base import Region


_SCAN = 512
_FEWEST, _FEWEST_CROWDED = 3, 10
_CROWDED = 1.5
_SAME = 1e-9


def slices(shape: Region, n: int, area: float) -> tuple[FloatArray, FloatArray]:
    """Return points and weights of a rule with about ``n`` nodes for integrals over a plane shape of a given area.

    >>> import sympy as sp
    >>> from pibls.geometry import Disk, Rectangle
    >>> x, y = sp.symbols("x y")
    >>> plate = Rectangle((x, -1, 1), (y, -1, 1)) - Disk((x, y), (0, 0), 0.5)
    >>> X, weights = slices(plate, 600, 3.2)
    >>> bool(abs(weights.sum() - (4 - math.pi / 4)) < 1e-9)
    True
    """
    from pibls.geometry.landmarks import corners  # which are found with the help of this file

    # The lines are closer together than the points on them, by as much as they are crowded.
    spacing = math.sqrt(_CROWDED * area / n)
    marks = _marks(shape)
    heights, steps = _lines(_distinct(marks[:, 1], shape.bounds[1]), spacing)
    left, right, row = _segments(shape, heights, _distinct(marks[:, 0], shape.bounds[0]))
    bends = np.unique([corner.point[0] for corner in corners(shape)])
    left, right, row = _divided(left, right, row, bends)
    points, weights = [np.empty((0, 2))], [np.empty(0)]
    counts = np.maximum(_FEWEST, np.ceil((right - left) / spacing)).astype(np.int64)
    for count in np.unique(counts):
        own = counts == count
        nodes, shares = crowded(max(_FEWEST_CROWDED, int(count))) if len(bends) else gauss(int(count))
        width = (right - left)[own, None]
        x = (left[own, None] + width * nodes).ravel()
        points.append(np.stack([x, np.repeat(heights[row[own]], len(nodes))], axis=1))
        weights.append((steps[row[own], None] * width * shares).ravel())
    return np.concatenate(points), np.concatenate(weights)


def ends(patch: Patch) -> FloatArray:
    """Return the ends of a curve: first those of whole edges, which are exact, then those found by bisection."""
    if isinstance(patch, FlippedPatch):
        return ends(patch.base)
    if isinstance(patch, RestrictedPatch):
        cuts, _, _ = patch.base.at(patch._pieces.reshape(-1, 1))
        return np.concatenate([ends(patch.base), cuts])
    return patch.at(np.array([[0.0], [1.0]]))[0]


def _marks(shape: Region) -> FloatArray:
    """Return all vertices, and the tops and bottoms of all curves."""
    patches = shape.boundary.patches
    return np.concatenate([*(ends(patch) for patch in patches), *(_turns(patch) for patch in patches)])


def _distinct(values: FloatArray, limits: FloatArray) -> FloatArray:
    """Return values between limits, and these, in order and each once."""
    low, high = limits
    found = np.sort(np.concatenate([limits, values[(values > low) & (values < high)]]))
    return np.asarray(found[np.append(True, np.diff(found) > _SAME * (high - low))])


def _turns(patch: Patch) -> FloatArray:
    """Return the points at which a curve turns from rising to falling or back."""
    while isinstance(patch, FlippedPatch | RestrictedPatch):
        patch = patch.base
    cells = np.linspace(0.0, 1.0, _SCAN + 1)
    # Normals are upright there; those of round-off, along an edge that runs level, do not turn.
    leaning = patch.at(cells[:, None])[1][:, 0]
    leaning = np.where(np.abs(leaning) > _SAME, np.sign(leaning), 0.0)
    (turned,) = np.nonzero((leaning[1:] != leaning[:-1]) & (leaning[:-1] != 0.0))
    s = bracketed(lambda s, _: patch.at(s[:, None])[1][:, 0], cells[turned], cells[turned + 1])
    return patch.at(s[:, None])[0] if len(turned) else np.empty((0, 2))


def _lines(levels: FloatArray, spacing: float) -> tuple[FloatArray, FloatArray]:
    """Return heights and weights of lines in the panels between levels."""
    heights, weights = [], []
    for low, high in pairwise(levels):
        nodes, shares = crowded(max(_FEWEST, math.ceil(_CROWDED * (high - low) / spacing)))
        heights.append(low + (high - low) * nodes)
        weights.append((high - low) * shares)
    return np.concatenate(heights), np.concatenate(weights)


def _divided(
    left: FloatArray, right: FloatArray, row: IntArray, cuts: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return segments of lines divided at some places."""
    for cut in cuts.tolist():
        across = (left < cut) & (right > cut)
        left = np.concatenate([left, np.full(int(across.sum()), cut)])
        right, row = np.concatenate([np.where(across, cut, right), right[across]]), np.concatenate([row, row[across]])
    return left, right, row


def _segments(shape: Region, heights: FloatArray, marks: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return left and right ends of the inner segments of each line, and the number of the line.

    Marks, and the middles between them, are looked at too: the shape may be thin there.
    """
    low, high = shape.bounds[0]
    margin = 1e-3 * (high - low)
    even = np.linspace(low - margin, high + margin, _SCAN + 1)
    cells = np.unique(np.concatenate([even, marks, (marks[1:] + marks[:-1]) / 2]))

    def inside(x: FloatArray, row: IntArray) -> BoolArray:
        return np.asarray(shape.level(np.stack([x, heights[row]], axis=1)) > 0.0)

    row, a, b, _ = switched(inside, np.tile(cells, (len(heights), 1)))
    # Outside at both ends, a line goes in and out in turns.
    crossings = (a + b) / 2
    return crossings[0::2], crossings[1::2], row[0::2]
