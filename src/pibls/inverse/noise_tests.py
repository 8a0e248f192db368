"""Whether residuals look like noise: by their size, and by how much neighbours are alike."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincc, ndtr, ndtri

from pibls.checks import FloatArray
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import AtPoints, Statement
from pibls.problem.domain import DomainLike

_NEIGHBOURS = 2  # of every datum, that are compared with it: on a line, those on both sides


def size_of(residuals: FloatArray, robust: bool) -> float:
    """Return the root mean square of residuals, without outliers if there may be some.

    >>> round(size_of(np.array([1.0, -1.0, 0.5, 100.0]), robust=True), 4)
    1.4826
    """
    if robust:
        return float(np.median(np.abs(residuals)) / ndtri(0.75))
    return float(np.sqrt(np.mean(np.square(residuals))))


def too_large(scaled: FloatArray, free: float, robust: bool = False) -> bool:
    """Tell whether residuals in units of their stated noise are larger than chance makes them.

    If there may be outliers, these are no more than half of the data.

    >>> too_large(np.full(20, 1.0), 1.0), too_large(np.full(20, 3.0), 1.0)
    (False, True)
    >>> too_large(np.array([0.5, 0.2, 1e3]), 0.0, robust=True)
    False
    """
    if robust:
        return bool(np.median(np.abs(scaled)) > SETTINGS.sure)
    degrees = max(len(scaled) - free, 0.5)
    return bool(gammaincc(degrees / 2, float(scaled @ scaled) / 2) < 2.0 * ndtr(-SETTINGS.sure))


def alike(statement: Statement, residual: FloatArray, domain: DomainLike) -> bool:
    """Tell whether residuals of neighbours have the same sign more often than chance makes it so.

    The sign test over pairs of neighbours: on a line, it is the test by the number of runs.
    """
    count = len(residual)
    if not isinstance(statement.place, AtPoints) or count <= _NEIGHBOURS:
        return False
    from scipy.spatial import cKDTree

    X = statement.place.points / np.ptp(np.asarray(domain.bounds), axis=1)
    _, near = cKDTree(X).query(X, k=_NEIGHBOURS + 1)
    ends = np.column_stack([np.repeat(np.arange(count), _NEIGHBOURS + 1), near.ravel()])
    # Neighbours are each other's neighbours. Of independent signs, products over different pairs are uncorrelated.
    pairs = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    signs = np.sign(residual)[pairs]
    return bool(float(signs.prod(axis=1).sum()) / np.sqrt(len(pairs)) > SETTINGS.sure)
