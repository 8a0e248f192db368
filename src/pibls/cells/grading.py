"""Trees whose cells shrink towards small surfaces and corners."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import FloatArray
from pibls.quadrature.roots import CLOSE

__all__ = ["approached", "graded"]

_AROUND = (1.5, 2.0, 3.0)  # largest side of a cell beside a small surface, by its half extents or the distance


def graded(root: Cell, middles: FloatArray, halves: FloatArray, most: float) -> Cell:
    """Return a tree whose cells shrink towards small surfaces, given by centres and half extents.

    A half extent is infinite along an axis on which the surface is not small. If there would be more than ``most``
    cells, they shrink less, or not at all.

    >>> tree = graded(Cell(np.zeros(2), np.ones(2)), np.array([[0.25, 0.5]]), np.array([[0.125, np.inf]]), 10)
    >>> [leaf.high.tolist() for leaf in leaves(tree)]
    [[0.125, 1.0], [0.25, 1.0], [0.4375, 1.0], [0.625, 1.0], [1.0, 1.0]]
    """
    for around in _AROUND if len(middles) else ():
        found = root
        while len(leaves(found)) <= most:
            cuts = {leaf: [cut] for leaf in leaves(found) if (cut := _towards(leaf, middles, halves, around))}
            if not cuts:
                return found
            found = refined(found, cuts)
    return root


def approached(root: Cell, sizes: Mapping[tuple[float, ...], float], most: float) -> Cell:
    """Return a tree whose cells at corners are no larger than given: they shrink to a quarter from one to the next.

    They do so until there are ``most`` cells.

    >>> tree = approached(Cell(np.zeros(2), np.ones(2), marks=np.zeros((1, 2))), {(0.0, 0.0): 0.1}, 10)
    >>> [leaf.high.tolist() for leaf in leaves(tree)][:3], len(leaves(tree))
    ([[0.0625, 0.0625], [0.0625, 0.25], [0.25, 0.0625]], 7)
    """
    while len(cells := leaves(root)) < most and (
        cuts := {
            leaf: leaf.cuts_to_corners()
            for leaf in cells
            if leaf.is_divisible and any(leaf.size_at_corners > sizes.get(own, np.inf) for own in leaf.corners)
        }
    ):
        root = refined(root, cuts)
    return root


def _towards(cell: Cell, middles: FloatArray, halves: FloatArray, around: float) -> tuple[int, float | None] | None:
    """Return axis and position (None: middle) of the cut of a cell that is too large beside a small surface."""
    gaps = np.maximum(np.maximum(cell.low - middles, middles - cell.high), 0.0)
    far = np.linalg.norm(np.where(np.isfinite(halves), gaps, 0.0), axis=1, keepdims=True)
    over = np.where(cell.size > around * (1.0 + CLOSE) * np.maximum(far, halves), cell.size, 0.0)
    if not over.any():
        return None
    thing, axis = np.unravel_index(over.argmax(), over.shape)
    at, room = float(middles[thing, axis]), CLOSE * cell.size[axis]
    return int(axis), at if cell.low[axis] + room < at < cell.high[axis] - room else None
