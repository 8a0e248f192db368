"""Where the cells of a solution meet, in a picture."""

from __future__ import annotations

import numpy as np

from pibls.checks import FloatArray
from pibls.report.views import CloudView, View
from pibls.solution.celled import CellNetwork

__all__ = ["cell_walls"]


def cell_walls(network: CellNetwork, view: View | CloudView) -> FloatArray:
    """Return where cells meet in a view: positions (k,) along a line, segments (k, 2, 2) from end to end in a plane.

    Each is where one box was halved, so that none is drawn twice.
    """
    bounds = np.asarray(view.domain.bounds, dtype=np.float64)
    boxes = network.boxes(bounds)
    axes, fixed = (view.axes, view.fixed) if isinstance(view, View) else (tuple(range(len(bounds))), {})
    shown = np.isin(network.tree[:, 0], axes)
    for axis, value in fixed.items():
        low, high = boxes[:, axis].T
        # A point on a wall belongs to the cell below it, as in the network.
        shown &= ((low < value) | (low == bounds[axis, 0])) & ((value <= high) | (high == bounds[axis, 1]))
    cuts, across = network.cuts[shown], network.tree[shown, 0]
    if len(axes) == 1:
        return np.sort(cuts)
    segments = boxes[shown][:, list(axes)]
    segments[np.arange(len(cuts)), (across == axes[1]).astype(int)] = cuts[:, None]
    return np.asarray(segments.transpose(0, 2, 1))
