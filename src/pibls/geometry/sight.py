"""Which of several pieces a point belongs to: that of the nearest sample it can see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray

_NEAREST = 16
_BETWEEN = (0.5, 0.25, 0.75)
_LOOKS = 32


def _seen(
    here: FloatArray, there: FloatArray, shares: Sequence[float], clear: Callable[[FloatArray], Any]
) -> BoolArray:
    """Tell for which pairs of points the places between them can be seen through."""
    seen = np.ones(len(here), dtype=np.bool_)
    for share in shares:
        seen[seen] = clear((here + share * (there - here))[seen])
    return seen


def owners_in_sight(
    samples: FloatArray,
    owners: Any,
    scale: FloatArray,
    X: FloatArray,
    clear: Callable[[FloatArray], Any] | None = None,
    *,
    strict: bool = False,
) -> Any:
    """Return the owner of the nearest sample that a point sees, or else of the nearest one.

    ``owners`` are the numbers of the pieces that samples are in, ``scale`` the unit of distances along each axis, and
    ``clear`` tells which places can be seen through. With ``strict``, points that see no sample are owned by −1.

    The point is nearer to the sample beyond the wall y = 0.

    >>> samples, point = np.array([[0.0, -0.1], [0.4, 0.1]]), np.array([[0.0, 0.02]])
    >>> owners_in_sight(samples, np.array([7, 8]), np.ones(2), point).tolist()
    [7]
    >>> owners_in_sight(samples, np.array([7, 8]), np.ones(2), point, lambda X: X[:, 1] > 0).tolist()
    [8]
    """
    owners = np.asarray(owners)
    if (owners == owners[0]).all():
        return np.full(len(X), owners[0])
    from scipy.spatial import cKDTree  # takes as long to import as all of the geometry

    found = owners[cKDTree(samples / scale).query(X / scale)[1]]
    if clear is None or not len(X):
        return found
    rows = np.arange(len(X))
    # All samples at first, then those of each piece: at the tip of a thin one, all that are near may be of others.
    for some in (np.arange(len(samples)), *(np.flatnonzero(owners == owner) for owner in np.unique(owners))):
        own = cKDTree(samples[some] / scale)
        nearest = some[own.query(X[rows] / scale, k=min(_NEAREST, len(some)))[1].reshape(len(rows), -1)]
        for column in nearest.T:
            left = np.flatnonzero(rows >= 0)
            if not len(left):
                break
            seen = _seen(X[rows[left]], samples[column[left]], _BETWEEN, clear)
            found[rows[left[seen]]] = owners[column[left[seen]]]
            rows[left[seen]] = -1
        rows = rows[rows >= 0]
        if not len(rows):
            break
    if strict:
        found[rows] = -1
    return found


def joined_in_sight(
    samples: FloatArray, owners: Any, scale: FloatArray, clear: Callable[[FloatArray], Any]
) -> IntArray:
    """Return owners with those of pieces that see each other made one: along a sharp edge a grid leaves specks.

    >>> samples, owners = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 4.0]]), np.array([1, 2, 3])
    >>> joined_in_sight(samples, owners, np.ones(2), lambda X: X[:, 1] < 2).tolist()
    [2, 2, 3]
    """
    from scipy.spatial import cKDTree

    found = np.array(owners, dtype=np.int64)
    for owner in np.argsort(np.bincount(found), kind="stable"):
        own = found == owner
        if not own.any() or own.all():
            continue
        gaps, nearest = cKDTree(samples[~own] / scale).query(samples[own] / scale)
        looks = np.argsort(gaps)[:_LOOKS]
        seen = _seen(samples[own][looks], samples[~own][nearest[looks]], [k / 8 for k in range(1, 8)], clear)
        if seen.any():
            found[own] = found[~own][nearest[looks[seen][0]]]
    return found
