"""The error of the better one of two solutions, from the rate at which errors fall."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pibls.cells.error_marking import ErrorMarking
from pibls.cells.outcome import Comparison
from pibls.refinement.patience import TREES
from pibls.refinement.standards import FALLS, SLIGHT

__all__ = ["error_of_better", "rate_on_trees"]


def error_of_better(last: Comparison, comparisons: Sequence[Comparison], marker: ErrorMarking) -> float | None:
    """Return the error of the better one of two solutions, or None if no rate of errors is known.

    On one tree errors fall as residuals do; from tree to tree, as distances did. One comparison vouches for two digits.
    """
    if last.is_on_one_tree:
        error, share, rate = last.estimate, FALLS, last.fall_of_residual
    else:
        latest = comparisons[-3:]
        falls = [own.fall_of_distance for own in latest[-2:] if own.fall_of_distance is not None]
        cells = [*(len(own.fit.parts) for own in latest), len(last.better.parts)]
        error, share, rate = last.apart, TREES.pays, rate_on_trees(falls, cells)
    if not rate <= TREES.pays:
        return None
    rate = max(rate, SLIGHT, _unseen_rate(last, marker))
    return error * rate / (1.0 - rate) / share


def _unseen_rate(last: Comparison, marker: ErrorMarking) -> float:
    """Return the ratio of errors on one tree that residuals do not show: of small fields, and at corners.

    At the end of a crack, where errors fall most slowly, they fall with the first power of the degree.
    """
    own = next((fit for fit, layout in last.solved if layout is marker.layout), None)
    if own is None or not last.is_on_one_tree:
        return 0.0
    poor, rich = last.fit_layout.reference.degree, last.better_layout.reference.degree
    at_corners = poor / rich if marker.is_singular(own) else 0.0
    return float(max(at_corners, marker.left_of_small(own, last.sizes) ** (rich - poor)))


def rate_on_trees(falls: Sequence[float], cells: Sequence[int]) -> float:
    """Return the ratio of the error on the last of four trees to that on the one before; 1 if it is not known.

    It is known if distances fell twice. A tree that a limit kept small is better only in proportion to its growth.

    >>> rate_on_trees([0.25, 0.04], [1, 10, 100, 1000]), round(rate_on_trees([0.25, 0.04], [1, 16, 256, 1024]), 3)
    (0.25, 0.5)
    """
    before, now = math.log(cells[-2] / cells[0]) / 2.0, math.log(cells[-1] / cells[-2])
    if len(falls) < 2 or before <= 0.0:
        return 1.0
    return float(max(falls[-2:]) ** min(1.0, now / before))
