"""Charts: the coordinates that nodes take, found from the problem and from solutions of it.

In many dimensions nodes must not look in all directions alike. A chart has reduced coordinates, which the symmetry of
the problem suggests, and a frame: the directions that nodes look along, and how finely. The frame is learned. Gradients
of a rough solution show the directions along which it changes; nodes drawn along these give a better solution, whose
gradients show the directions better. Which chart is the best is judged by residuals at points that no fit has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pibls.checks import FloatArray
from pibls.features import BroadNetwork, FeatureGroup
from pibls.features.reduction import Reduction
from pibls.problem import Problem
from pibls.refinement.standards import MOST
from pibls.solution import Solution
from pibls.tuning.scale_search import FEW_AXES
from pibls.tuning.symmetry import orbits


@dataclass(frozen=True, eq=False)
class Chart:
    """Reduced coordinates, or all of them, and the frame that weights of nodes are drawn in."""

    frame: FloatArray  # directions as columns, each as long as the scale of nodes along it
    reduction: Reduction | None = None

    @property
    def axes(self) -> int:
        """Number of directions."""
        return int(self.frame.shape[1])

    def network(self, center: FloatArray, groups: Sequence[FeatureGroup]) -> BroadNetwork:
        """Return a network of groups that were drawn along the directions."""
        own = tuple(replace(group, weights=self.frame @ group.weights) for group in groups)
        return BroadNetwork(center, own, (), self.reduction)


def symmetric_chart(problem: Problem, X: FloatArray) -> Chart | None:
    """Return sums over coordinates that can be exchanged, of even polynomials where these can be reflected.

    Functions of m coordinates that can be exchanged are functions of m such sums. They are scaled to the same size at
    the points X. Without a symmetry there is no such chart.

    >>> from pibls.problems import heat_nd
    >>> problem = heat_nd(20)
    >>> symmetric_chart(problem, problem.domain.sample(100)).reduction.degrees
    (1, 2, 3, 4, 5, 6, 1)
    """
    found = problem.once(orbits)
    if all(len(orbit.axes) == 1 and not orbit.even for orbit in found):
        return None
    bounds = problem.domain.bounds
    half, dimension = np.ptp(bounds, axis=1) / 2, len(bounds)
    columns, degrees, scales = list[FloatArray](), list[int](), list[float]()
    sums = [(orbit.axes, 1 + orbit.even, len(orbit.axes)) for orbit in found]
    space = {axis for orbit in found for axis in orbit.axes}
    sums += [((axis,), 1, 1) for axis in range(dimension) if axis not in space]
    for axes, step, count in sums:
        for power in range(min(count, 2 * FEW_AXES)):
            columns.append(np.isin(np.arange(dimension), axes).astype(np.float64))
            degrees.append(step * (power + 1))
            scales.append(MOST**power)
    weights = np.stack(columns, axis=1)
    spread = Reduction(weights, half, tuple(degrees)).coordinates(X - bounds.mean(axis=1)).std(axis=0)
    # Coordinates of a box have this deviation when they are normalised to [−1, 1].
    unit = np.sqrt(3.0) * np.where(spread > 0, spread, 1.0)
    return Chart(np.diag(scales), Reduction(weights / unit, half, tuple(degrees)))


def learned_chart(solution: Solution, X: FloatArray) -> Chart:
    """Return the directions along which a solution changes at points X, and how much, in the coordinates of its nodes.

    >>> from pibls.problems import heat_nd
    >>> from pibls.tuning.fitting import Fitting
    >>> fitting = Fitting(heat_nd(4), 0)
    >>> chart = learned_chart(fitting.fit([(200, (0.5,) * 5)]), fitting.compare_points)
    >>> bool(np.ptp(chart.frame[:4, -1]) < 0.05 * np.abs(chart.frame[0, -1]))  # it changes along the diagonal
    True
    """
    network = solution.network
    assert isinstance(network, BroadNetwork)
    Y, half = X - network.center, np.ptp(solution.problem.domain.bounds, axis=1) / 2
    if network.reduction is not None:
        Y, half = network.reduction.coordinates(Y), np.ones(network.reduction.size)
    nodes = BroadNetwork(np.zeros(len(half)), network.features)
    units = [tuple(int(i == axis) for i in range(len(half))) for axis in range(len(half))]
    slopes = np.stack(nodes.contract(Y, units, solution.weights.T), axis=1) * half[:, None]
    sizes = np.sqrt(np.square(slopes).sum(axis=1).mean(axis=0))
    slopes = slopes / np.where(sizes > 0, sizes, 1.0)
    squares, directions = np.linalg.eigh(np.einsum("nif,njf->ij", slopes, slopes))
    lengths = np.sqrt(np.maximum(squares, 0.0) / max(squares[-1], np.finfo(np.float64).tiny))
    frame = directions * np.maximum(lengths, np.finfo(np.float64).eps) / half[:, None]
    return Chart(frame, network.reduction)
