"""Charts: the coordinates that nodes take, found from the problem and from solutions of it.

In many dimensions nodes must not look in all directions alike. A chart has reduced coordinates, which the symmetry of
the problem suggests, and a frame: the directions that nodes look along, and how finely. The frame is learned. Gradients
of a rough solution show the directions along which it changes; nodes drawn along these give a better solution, whose
gradients show the directions better. Which chart is the best is judged by residuals at points that no fit has seen.

A problem with one solution that stays the same when coordinates are exchanged or reflected has a solution that stays
the same. Every statement is compared with itself at changed points, for random values of the fields and their
derivatives that change along: what agrees there agrees everywhere, but for chance. A wrong answer costs time alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pibls.checks import FloatArray
from pibls.features import BroadNetwork, FeatureGroup
from pibls.features.reduction import Reduction
from pibls.problem import Interior, MultiIndex, OnPart, Problem, Statement
from pibls.quadrature.roots import CLOSE
from pibls.refinement.standards import MOST, POINTS
from pibls.solution import Solution
from pibls.tuning.scale_search import FEW_AXES


@dataclass(frozen=True, eq=False)
class Chart:
    """Reduced coordinates, or all of them, and the frame that weights of nodes are drawn in."""

    frame: FloatArray  # directions as columns, each as long as the scale of nodes along it
    reduction: Reduction | None = None

    @property
    def axes(self) -> int:
        """Number of directions."""
        return int(self.frame.shape[1])

    def along(self, X: FloatArray) -> FloatArray:
        """Return how far points, which are centred, lie along each direction from their mean."""
        Y = X if self.reduction is None else self.reduction.coordinates(X)
        return np.asarray((Y - Y.mean(axis=0)) @ self.frame)

    def network(self, center: FloatArray, groups: Sequence[FeatureGroup]) -> BroadNetwork:
        """Return a network of groups that were drawn along the directions."""
        own = tuple(replace(group, weights=self.frame @ group.weights) for group in groups)
        return BroadNetwork(center, own, (), self.reduction)


def symmetric_chart(problem: Problem, X: FloatArray) -> Chart | None:
    """Return sums over coordinates that can be exchanged, of even polynomials where these can be reflected.

    Functions of m coordinates that can be exchanged are functions of m such sums. They are scaled to the same size at
    the points X. Without a symmetry there is no such chart.
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


class Orbit(NamedTuple):
    """Coordinates of space that can be exchanged with each other."""

    axes: tuple[int, ...]
    even: bool  # whether each can be reflected at the middle of the domain too


class _Change(NamedTuple):
    """An exchange of two coordinates, or the reflection of one."""

    order: list[int]  # where each coordinate is taken from
    signs: FloatArray

    def derivative(self, alpha: MultiIndex) -> tuple[MultiIndex, float]:
        """Return the derivative that a derivative of the changed function is, and its sign."""
        return tuple(alpha[axis] for axis in self.order), float(np.prod(self.signs**alpha))


def orbits(problem: Problem) -> tuple[Orbit, ...]:
    """Return the coordinates of space, those together that can be exchanged without a change of the problem."""
    dimension, time = len(problem.domain.coordinates), problem.domain.time
    axes = [axis for axis, symbol in enumerate(problem.domain.coordinates) if symbol != time]
    samples = [_sampled(problem, statement) for statement in problem.statements]
    if any(sample is None for sample in samples):
        return tuple(Orbit((axis,), False) for axis in axes)

    def hold(changes: Sequence[_Change]) -> list[bool]:
        pairs = zip(problem.statements, samples, strict=True)
        found = [_invariant(problem, statement, *sample, changes) for statement, sample in pairs if sample is not None]
        return list(np.logical_and.reduce(found))

    straight, ones = np.arange(dimension), np.ones(dimension)
    found: list[Orbit] = []
    while axes:
        first, *others = axes
        swapped = [np.where(straight == first, other, np.where(straight == other, first, straight)) for other in others]
        exchanged = hold([_Change(order.tolist(), ones) for order in swapped]) if others else []
        own = (first, *(other for other, same in zip(others, exchanged, strict=True) if same))
        reflected = _Change(straight.tolist(), np.where(straight == first, -1.0, 1.0))
        found.append(Orbit(own, bool(hold([reflected])[0])))
        axes = [axis for axis in axes if axis not in own]
    return tuple(found)


def _sampled(problem: Problem, statement: Statement) -> tuple[FloatArray, FloatArray | None] | None:
    """Return points of a statement, with normals on the boundary; None if it has points of its own."""
    place, count = statement.place, 1 + POINTS // len(problem.domain.coordinates)
    if statement.targets is not None or not isinstance(place, Interior | OnPart):
        return None
    if isinstance(place, OnPart):
        return tuple(place.part.sample(count, "kronecker", 1))
    return problem.domain.sample(count, "kronecker", 1), None


def _invariant(
    problem: Problem, statement: Statement, X: FloatArray, normals: FloatArray | None, changes: Sequence[_Change]
) -> npt.NDArray[np.bool_]:
    """Tell for each change whether it leaves a statement as it is."""
    region = statement.place.part if isinstance(statement.place, OnPart) else problem.domain
    middle, form = problem.domain.bounds.mean(axis=1), statement.form
    keys = [(term.field, term.multi_index) for term in form.terms]
    drawn = np.random.default_rng(0).standard_normal((len(keys), len(X)))
    state = dict(zip(keys, drawn, strict=True))
    where, turned, states, closed = [X], [normals], [drawn], []
    for change in changes:
        images = [(name, *change.derivative(alpha)) for name, alpha in keys]
        closed.append(all((name, alpha) in state for name, alpha, _ in images))
        where.append(middle + change.signs * (X - middle)[:, change.order])
        turned.append(None if normals is None else change.signs * normals[:, change.order])
        states.append(np.array([sign * state.get((name, alpha), drawn[0]) for name, alpha, sign in images]))
    points, values = np.concatenate(where), np.concatenate(states, axis=1)
    outward = None if normals is None else np.concatenate([own for own in turned if own is not None])
    residual = form.residual_at(points, outward, list(values)).reshape(len(where), -1)
    same = np.abs(residual[1:] - residual[0]).max(axis=1) <= CLOSE * np.abs(residual[0]).max()
    inside = np.asarray(region.contains(points)).reshape(len(where), -1)[1:].all(axis=1)
    return np.asarray(same & inside & np.array(closed))
