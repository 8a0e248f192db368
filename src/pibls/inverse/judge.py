"""Whether residuals look like noise: by their size, and by how much neighbours are alike."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import gammaincc

from pibls.checks import FloatArray
from pibls.problem import AtPoints, Statement

__all__ = ["alike", "too_large"]

_SURE = 1e-5  # probability at which chance is no explanation
_ALIKE = 4.0  # standard deviations, likewise
_FEWEST = 8
_BOTH = 1.6  # neighbours are each other's neighbours: pairs count nearly twice


def too_large(scaled: FloatArray, free: float) -> bool:
    """Tell whether residuals in units of their stated noise are larger than chance makes them.

    >>> too_large(np.full(20, 1.0), 1.0), too_large(np.full(20, 3.0), 1.0)
    (False, True)
    """
    degrees = max(len(scaled) - free, 0.5)
    return bool(gammaincc(degrees / 2, float(scaled @ scaled) / 2) < _SURE)


def alike(statement: Statement, lacking: FloatArray, extents: FloatArray) -> bool:
    """Tell whether residuals of neighbours have the same sign more often than chance makes it so.

    The sign test by nearest neighbours: on a line, it is the test by the number of runs.
    """
    count = len(lacking)
    if not isinstance(statement.place, AtPoints) or count < _FEWEST:
        return False
    X = statement.place.points / extents
    _, pairs = cKDTree(X).query(X, k=2)
    # Repeated points have themselves as second neighbours.
    neighbours = np.where(pairs[:, 0] == np.arange(count), pairs[:, 1], pairs[:, 0])
    signs = np.sign(lacking)
    return bool(float(signs @ signs[neighbours]) / np.sqrt(_BOTH * count) > _ALIKE)
