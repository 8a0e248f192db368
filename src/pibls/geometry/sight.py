"""Which of several pieces a point belongs to: that of the nearest sample it can see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

__all__ = ["owners_in_sight"]

FloatArray = npt.NDArray[np.float64]
_NEAREST = 16
_BETWEEN = (0.5, 0.25, 0.75)


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

    Parameters
    ----------
    samples, owners
        Points of the pieces, and the number of the piece each is in.
    scale
        What distances are measured in, along each axis.
    X
        The points.
    clear
        Tells which places can be seen through.
    strict
        Points that see no sample are owned by −1.

    Examples
    --------
    The point is nearer to the sample beyond the wall y = 0.

    >>> samples, point = np.array([[0.0, -0.1], [0.4, 0.1]]), np.array([[0.0, 0.02]])
    >>> owners_in_sight(samples, np.array([7, 8]), np.ones(2), point).tolist()
    [7]
    >>> owners_in_sight(samples, np.array([7, 8]), np.ones(2), point, lambda X: X[:, 1] > 0).tolist()
    [8]
    """
    owners = np.asarray(owners)
    finder = cKDTree(samples / scale)
    if clear is None or not len(X) or (owners == owners[0]).all():
        return owners[finder.query(X / scale)[1]]
    nearest = finder.query(X / scale, k=min(_NEAREST, len(samples)))[1].reshape(len(X), -1)
    found, open_rows = owners[nearest[:, 0]], np.flatnonzero((owners[nearest] != owners[nearest[:, :1]]).any(axis=1))
    for column in range(nearest.shape[1]):
        there = samples[nearest[open_rows, column]]
        seen = np.ones(len(open_rows), dtype=np.bool_)
        for share in _BETWEEN:
            seen[seen] = clear((X[open_rows] + share * (there - X[open_rows]))[seen])
        found[open_rows[seen]] = owners[nearest[open_rows[seen], column]]
        open_rows = open_rows[~seen]
        if not len(open_rows):
            break
    if strict:
        found[open_rows] = -1
    return found
