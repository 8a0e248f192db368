"""Boxes around points in which the error of a network is alike: its cells, steps in time, and parts of the domain."""

from __future__ import annotations

import numpy as np

from pibls.checks import FloatArray, IntArray
from pibls.solution.celled import CellNetwork
from pibls.solution.evolved import EvolvedNetwork, pieces_of
from pibls.solution.evolved_cells import EvolvedCells, EvolvedLegs
from pibls.solution.json_records import Network


def boxes_around(network: Network, X: FloatArray, bounds: FloatArray, functions: int) -> tuple[FloatArray, IntArray]:
    """Return the bounds of boxes, shape (boxes, d, 2), and the number of the box of every point.

    Where a network has no cells, a box has about so many functions along each axis.

    >>> line = EvolvedNetwork(None, np.ones((1, 1)), np.array([0.0, 2.0, 3.0]), np.ones((2, 1, 1, 1)))
    >>> boxes, number = boxes_around(line, np.array([[0.5], [2.5], [1.0]]), np.array([[0.0, 3.0]]), 8)
    >>> boxes.squeeze().tolist(), number.tolist()
    ([[0.0, 2.0], [2.0, 3.0]], [0, 1, 0])
    """
    if isinstance(network, EvolvedCells | EvolvedLegs):
        found = network.boxes_at(X)
    elif isinstance(network, EvolvedNetwork):
        piece = pieces_of(network.breaks, X[:, -1])
        steps = np.stack([network.breaks[piece], network.breaks[piece + 1]], axis=1)
        found = np.concatenate([_in_space(network, X[:, :-1], bounds[:-1], functions), steps[:, None]], axis=1)
    else:
        found = _in_space(network, X, bounds, functions)
    boxes, number = np.unique(found, axis=0, return_inverse=True)
    return boxes, number.ravel()


def _in_space(network: Network, X: FloatArray, bounds: FloatArray, functions: int) -> FloatArray:
    """Return the box of every point, without the steps in time of an evolution."""
    if isinstance(network, CellNetwork):
        part, ends = network.locate(X), (network.centers - network.halves, network.centers + network.halves)
        return np.stack([end[part] for end in ends], axis=2)
    if X.shape[1] == 0:
        return np.empty((len(X), 0, 2))
    every = network.features if isinstance(network, EvolvedNetwork) else network.size
    count = max(1, round(every ** (1 / X.shape[1]) / functions))
    low, width = bounds[:, 0], np.ptp(bounds, axis=1) / count
    start = low + width * np.clip(np.floor((X - low) / width), 0, count - 1)
    return np.stack([start, start + width], axis=2)
