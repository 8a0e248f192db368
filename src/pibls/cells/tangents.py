"""Points at which sides of cells would touch a curved boundary, and would leave a cusp beside it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pibls.cells.surface import Piece
from pibls.checks import FloatArray
from pibls.geometry.patch import AffinePatch, TimedPatch
from pibls.quadrature.roots import CLOSE, ROUNDING, SCAN, climbed


def tangents(outline: Iterable[Piece], dimension: int) -> FloatArray:
    """Return where boundary normals are parallel to an axis, except on flat pieces: the axis, then the point.

    A NaN coordinate (time) means any value.
    """
    found = [np.empty((0, 1 + dimension))]
    for piece in outline:
        timed = isinstance(piece.patch, TimedPatch)
        if isinstance(piece.patch.base if isinstance(piece.patch, TimedPatch) else piece.patch, AffinePatch):
            continue
        if len(piece.box) > timed:
            found.append(_on_piece(piece, timed))
    rows = np.concatenate(found)
    # Rounding hides the places of summits within the root of its share.
    grain = np.sqrt(ROUNDING) * (np.nanmax(np.abs(rows), initial=0.0) or 1.0)
    return rows[np.unique(np.round(rows / grain), axis=0, return_index=True)[1]]


def _on_piece(piece: Piece, timed: bool) -> FloatArray:
    box = piece.box[: len(piece.box) - timed]
    middle = piece.box[len(box) :].mean(axis=1)

    def normals(U: FloatArray) -> FloatArray:
        return np.asarray(piece.patch.at(np.hstack([U, np.tile(middle, (len(U), 1))]))[1])

    count = 2 * SCAN - 1 if len(box) == 1 else SCAN
    step = (box[:, 1] - box[:, 0]) / (count - 1)
    grid = np.stack(np.meshgrid(*[np.arange(count)] * len(box), indexing="ij"), axis=-1)
    sampled = normals(box[:, 0] + grid.reshape(-1, len(box)) * step)
    found = [np.empty((0, 1 + sampled.shape[1]))]
    if np.ptp(sampled, axis=0).max() < CLOSE:
        return found[0]
    from scipy.ndimage import label, maximum_filter

    # A normal that is parallel to an axis differs no more from the nearest sample than samples do from each other.
    at_grid = sampled.reshape(*grid.shape[:-1], -1)
    spread = sum(np.square(np.diff(at_grid, axis=k)).sum(axis=-1).max() for k in range(len(box)))
    for axis in range(sampled.shape[1] - timed):
        sizes = np.abs(sampled[:, axis]).reshape(grid.shape[:-1])
        near = 2.0 * (1.0 - sizes) <= spread
        highest, count_of = label(near & (sizes == maximum_filter(sizes, 3)), np.ones((3,) * len(box)))
        # One place of a plateau, as on flat pieces, is enough.
        starts = np.array([grid[highest == number + 1][0] for number in range(count_of)]).reshape(-1, len(box))

        def height(U: FloatArray, axis: int = axis) -> FloatArray:
            return np.abs(normals(U)[:, axis])

        U = climbed(height, box[:, 0] + starts * step, step, box)
        X = np.array(piece.patch.at(np.hstack([U, np.tile(middle, (len(U), 1))]))[0])
        X[:, X.shape[1] - timed :] = np.nan
        parallel = 1.0 - np.abs(normals(U)[:, axis]) < CLOSE
        found.append(np.column_stack([np.full(len(X), axis), X])[parallel])
    return np.concatenate(found)
