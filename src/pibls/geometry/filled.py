"""The space between the points of a cloud: simplices of its triangulation that are no larger than its gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import BoolArray, FloatArray

_MOST_COORDINATES = 4  # triangulations of more have too many simplices
_GAP = 4.0  # circumscribed radius, over the largest distance of a point to its neighbour, across which a cloud holds
_EDGE = 1.5  # the same where all corners are on the boundary: larger ones span holes and notches


@dataclass(frozen=True, eq=False)
class Filling:
    """The space between points, in one to four coordinates.

    Attributes
    ----------
    triangulation
        Of all points, or None where there is none: too few, all in a plane, or too many coordinates.
    filled
        Which of its simplices belong to the domain.
    """

    triangulation: Any
    filled: BoolArray

    @classmethod
    def of(cls, interior: FloatArray, boundary: FloatArray) -> Filling:
        """Triangulate points; those of the boundary come last.

        >>> square = np.array([[i, j] for i in range(4) for j in range(4)], dtype=float)
        >>> Filling.of(square, np.empty((0, 2))).contains(np.array([[1.5, 1.2], [3.5, 1.0]]))
        array([ True, False])
        """
        from scipy.spatial import Delaunay, KDTree, QhullError

        points = np.concatenate([interior, boundary])
        dimension = points.shape[1]
        if dimension == 1:
            return cls._on_a_line(points[:, 0])
        try:
            found = Delaunay(points) if len(points) > dimension + 1 and dimension <= _MOST_COORDINATES else None
        except QhullError:
            found = None
        if found is None:
            return cls(None, np.empty(0, dtype=np.bool_))
        spacing = KDTree(points).query(points, k=2)[0][:, 1]
        corners = found.simplices
        on_boundary = (corners >= len(interior)).all(axis=1)
        largest = np.where(on_boundary, _EDGE * spacing[corners].max(axis=1), _GAP * spacing.max())
        return cls(found, _radii(points[corners]) <= largest)

    @classmethod
    def _on_a_line(cls, points: FloatArray) -> Filling:
        places = np.unique(points)
        gaps = np.diff(places)
        return cls(places, gaps <= _GAP * 2.0 * np.median(gaps) if len(gaps) else np.empty(0, dtype=np.bool_))

    def contains(self, X: FloatArray) -> BoolArray:
        """Tell which points lie between those of the cloud."""
        if self.triangulation is None or not len(self.filled):
            return np.zeros(len(X), dtype=np.bool_)
        if isinstance(self.triangulation, np.ndarray):
            place = np.searchsorted(self.triangulation, X[:, 0], side="right") - 1
            known = (place >= 0) & (place < len(self.filled))
        else:
            place = self.triangulation.find_simplex(X)
            known = place >= 0
        return np.asarray(known & self.filled[np.where(known, place, 0)])


def _radii(corners: FloatArray) -> FloatArray:
    """Return the radius of the sphere through the corners of each simplex; infinite for flat ones."""
    edges = corners[:, 1:] - corners[:, :1]
    squares = (edges**2).sum(axis=2)
    flat = np.abs(np.linalg.det(edges)) <= 1e-12 * squares.max(axis=1) ** (edges.shape[2] / 2)
    centers = np.linalg.solve(np.where(flat[:, None, None], np.eye(edges.shape[2]), 2 * edges), squares[..., None])
    radii = np.sqrt((centers[..., 0] ** 2).sum(axis=1))
    return np.where(flat, np.inf, radii)
