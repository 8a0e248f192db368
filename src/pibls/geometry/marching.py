"""The zero set of a function on a lattice: edges in the plane, triangles in space."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np

from pibls.checks import FloatArray, IntArray
from pibls.errors import GeometryError

_SAME = 1e-6


def zero_set(function: Callable[[FloatArray], FloatArray], limits: FloatArray, cells: int) -> FloatArray:
    """Return the simplices on which the linear interpolant of a function is zero, shape (n, d, d).

    Every cell is cut into simplices around its diagonal, so that neighbours agree on the side they share.

    >>> edges = zero_set(lambda X: np.hypot(*X.T) - 1, np.array([[-2.0, 2.0], [-2.0, 2.0]]), 40)
    >>> round(float(np.linalg.norm(edges[:, 1] - edges[:, 0], axis=1).sum()), 1)
    6.3
    """
    d = len(limits)
    axes = [np.linspace(low, high, cells + 1) for low, high in limits]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    values = function(grid)
    shape = (cells + 1,) * d
    edge = np.zeros(shape, dtype=np.bool_)
    for axis in range(d):
        for end in (0, -1):
            edge[(slice(None),) * axis + (end,)] = True
    if not (values < 0.0).any() or (values[edge.ravel()] <= 0.0).any():
        problem = "nowhere negative" if not (values < 0.0).any() else "not positive all along the bounds"
        raise GeometryError(
            f"The function of Implicit must be negative inside and positive on the bounds. It is {problem}, seen on "
            f"{cells} cells. Check its sign, widen the bounds, or give a larger number of 'cells'."
        )
    values = np.where(values == 0.0, np.finfo(np.float64).tiny, values)
    strides = np.array([(cells + 1) ** (d - 1 - axis) for axis in range(d)])
    corner = np.stack(np.meshgrid(*[np.arange(cells)] * d, indexing="ij"), axis=-1).reshape(-1, d) @ strides
    # Only cells where the sign changes are cut.
    offsets = np.stack(np.meshgrid(*[[0, 1]] * d, indexing="ij"), axis=-1).reshape(-1, d) @ strides
    signs = values[corner[:, None] + offsets] < 0.0
    corner = corner[signs.any(axis=1) & ~signs.all(axis=1)]
    found = []
    for order in permutations(range(d)):
        nodes = np.stack([corner + int(step) for step in np.cumsum([0, *strides[list(order)]])], axis=1)
        found += _cut(nodes, grid, values)
    corners = np.concatenate(found)
    return corners if d == 3 else _chained(corners, float(np.diff(limits).max()) / cells)


def _chained(edges: FloatArray, step: float) -> FloatArray:
    """Return edges one after another along the closed curves that they make."""
    flat = edges.reshape(-1, 2)
    _, ids = np.unique(np.round(flat / (_SAME * step)), axis=0, return_inverse=True)
    ends = ids.reshape(-1, 2)
    beside: dict[int, list[int]] = {}
    for k in np.flatnonzero(ends[:, 0] != ends[:, 1]).tolist():
        for end in ends[k].tolist():
            beside.setdefault(end, []).append(k)
    ordered, used = [], np.zeros(len(edges), dtype=np.bool_)
    for first in range(len(edges)):
        if used[first] or ends[first, 0] == ends[first, 1]:
            continue
        edge, at = first, int(ends[first, 0])
        while not used[edge]:
            used[edge] = True
            forward = int(ends[edge, 0]) == at
            ordered.append(edges[edge] if forward else edges[edge, ::-1])
            at = int(ends[edge, 1 if forward else 0])
            edge = next((k for k in beside[at] if not used[k]), edge)
    return np.array(ordered)


def _cut(nodes: IntArray, grid: FloatArray, values: FloatArray) -> list[FloatArray]:
    """Return where simplices given by their nodes are cut, one row of vertices per piece."""
    d = grid.shape[1]
    inside = values[nodes] < 0.0
    # Nodes inside first: then only their number matters.
    nodes = np.take_along_axis(nodes, np.argsort(~inside, axis=1, kind="stable"), axis=1)
    number = inside.sum(axis=1)
    found = []
    for count in range(1, d + 1):
        own = nodes[number == count]
        crossings = [[_crossing(own[:, i], own[:, j], grid, values) for j in range(count, d + 1)] for i in range(count)]
        if count in (1, d):
            found.append(np.stack([point for row in crossings for point in row], axis=1))
        else:  # two and two nodes in space: a quadrilateral
            (a, b), (c, e) = crossings
            found += [np.stack([a, b, e], axis=1), np.stack([a, e, c], axis=1)]
    return found


def _crossing(one: IntArray, two: IntArray, grid: FloatArray, values: FloatArray) -> FloatArray:
    share = values[one] / (values[one] - values[two])
    return np.asarray(grid[one] + share[:, None] * (grid[two] - grid[one]))
