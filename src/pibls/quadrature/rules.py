"""Quadrature rules on the unit interval and their products."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from pibls.checks import FloatArray

Rule = tuple[FloatArray, FloatArray]

_PANEL = 64


def side(n: float, dimension: int) -> int:
    """Return the number of nodes per axis of a product rule with about ``n`` nodes.

    >>> side(100, 2), side(1, 3)
    (10, 1)
    """
    return max(1, round(math.pow(n, 1.0 / max(dimension, 1))))


def gauss(n: int) -> Rule:
    """Return Gauss-Legendre nodes and weights on [0, 1]; beyond 64 nodes, in equal panels.

    >>> nodes, weights = gauss(3)
    >>> float(round(weights @ nodes**5, 15))
    0.166666666666667
    """
    panels = -(-n // _PANEL)
    nodes, weights = _gauss_panel(-(-n // panels))
    starts = np.arange(panels) / panels
    return (starts[:, None] + nodes / panels).ravel(), np.tile(weights / panels, panels)


@lru_cache(maxsize=_PANEL)
def _gauss_panel(n: int) -> Rule:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1.0) / 2.0, weights / 2.0


def crowded(n: int) -> Rule:
    """Return a rule on [0, 1] for functions that are like roots at the ends, and good for smooth ones.

    >>> nodes, weights = crowded(20)
    >>> float((weights @ nodes**0.5).round(9))
    0.666666667
    """
    nodes, weights = gauss(n)
    return nodes**2 * (3.0 - 2.0 * nodes), 6.0 * nodes * (1.0 - nodes) * weights


def periodic(n: int) -> Rule:
    """Return the trapezoid rule on [0, 1) for periodic functions, spectrally accurate for smooth ones.

    >>> periodic(4)[0]
    array([0.  , 0.25, 0.5 , 0.75])
    """
    return np.arange(n) / n, np.full(n, 1.0 / n)


def tensor(*rules: Rule) -> tuple[FloatArray, FloatArray]:
    """Return the product of one-dimensional rules: nodes (n, d) and weights (n,).

    >>> nodes, weights = tensor(gauss(2), periodic(3))
    >>> nodes.shape, float(weights.sum().round(12))
    ((6, 2), 1.0)
    """
    if not rules:
        return np.empty((1, 0)), np.ones(1)
    grids = np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij")
    scales = np.meshgrid(*(weights for _, weights in rules), indexing="ij")
    return np.stack([g.ravel() for g in grids], axis=1), np.prod(np.stack(scales), axis=0).ravel()
