"""A quadrature rule for what of a box lies inside a domain: Gauss points on stretches of lines through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pibls.checks import FloatArray, IntArray
from pibls.geometry.rules import gauss, tensor

__all__ = ["filled"]

_SCAN = 17
_BISECTIONS = 30


def filled(
    inside: Callable[[FloatArray], Any], low: FloatArray, high: FloatArray, axis: int, lines: int, nodes: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return points on lines along an axis, their weights, and the number of the stretch that each is on.

    Lines are two to a panel across every other axis. The lengths inside are continuous, if not smooth, so that errors
    fall with the square of the panels, where those of scattered points would fall like the square root of their number.

    Examples
    --------
    >>> X, weights, _ = filled(lambda X: np.hypot(*X.T) < 1, np.zeros(2), np.ones(2), 0, 32, 3)
    >>> bool(abs(weights.sum() - np.pi / 4) < 1e-3)
    True
    """
    places, shares = gauss(2)
    panels = lines // 2
    across = ((np.arange(panels)[:, None] + places).ravel() / panels, np.tile(shares / panels, panels))
    V, areas = tensor(*[across] * (len(low) - 1))
    others = np.arange(len(low)) != axis

    def at(row: Any, t: FloatArray) -> FloatArray:
        X = np.empty((len(t), len(low)))
        X[:, others] = V[row]
        X[:, axis] = t
        return low + (high - low) * X

    scan = np.linspace(0.0, 1.0, _SCAN)
    rows = np.repeat(np.arange(len(V)), _SCAN)
    held = np.asarray(inside(at(rows, np.tile(scan, len(V))))).reshape(len(V), _SCAN)
    row, left = np.nonzero(held[:, 1:] != held[:, :-1])
    a, b, before = scan[left], scan[left + 1], held[row, left]
    for _ in range(_BISECTIONS if len(row) else 0):
        middle = (a + b) / 2
        same = inside(at(row, middle)) == before
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    every = np.arange(len(V))
    row = np.concatenate([every, row, every])
    cuts = np.concatenate([np.zeros(len(V)), (a + b) / 2, np.ones(len(V))])
    order = np.lexsort((cuts, row))
    row, cuts = row[order], cuts[order]
    # From the start of a line on, every other stretch is inside.
    count = np.arange(len(row)) - np.searchsorted(row, row)
    own = (row[1:] == row[:-1]) & (held[row[:-1], 0] ^ (count[:-1] % 2 == 1)) & (np.diff(cuts) > 0.0)
    row, start, stop = row[:-1][own], cuts[:-1][own], cuts[1:][own]
    places, shares = gauss(nodes)
    t = start[:, None] + (stop - start)[:, None] * places
    weights = (areas[row] * (stop - start))[:, None] * shares * float(np.prod(high - low))
    return at(np.repeat(row, nodes), t.ravel()), weights.ravel(), np.repeat(np.arange(len(row)), nodes)
