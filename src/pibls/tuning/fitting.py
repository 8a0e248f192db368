"""Fits of one problem by networks of sine nodes: of any width, at any scale, with points to match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.features import BroadNetwork, FeatureGroup
from pibls.features.scales import draw_features, draw_sparse_features
from pibls.geometry import Points, PointSet
from pibls.geometry.points import interior_points
from pibls.methods import Recipe, fit
from pibls.methods.fit import on_device
from pibls.methods.nonlinear_fit import fit_nonlinear
from pibls.problem import Problem
from pibls.refinement import Reason, Stop, verdict
from pibls.refinement.standards import MOST, NEGLIGIBLE
from pibls.runtime import device_for
from pibls.solution import Solution
from pibls.solution.sizes import field_scales
from pibls.solvers import LeastSquares
from pibls.system import Balanced, Evaluate
from pibls.tuning.charts import Chart
from pibls.tuning.judge import Judge
from pibls.tuning.scale_search import FEW_AXES, Scale, widened
from pibls.wellposed.sensitivity import SCALE

Block = tuple[int, Scale]
"""Nodes that were drawn together: how many, and at which scale."""

_PILOT = 60  # nodes of a pilot, for each of up to five coordinates
ROWS_PER_NODE = 2.2
_SPARSE_AXES = 2  # coordinates that some nodes see, where there are many
COMPARED = 1000  # points at which solutions are compared, and most that are held out
_PER_ENTRY = 100.0  # multiplications that an entry of a matrix counts for before it is factorised


@dataclass(frozen=True, eq=False)
class Fitting:
    """A problem, the seed of all nodes and points, and where the arithmetic runs."""

    problem: Problem
    seed: int
    device: Any = None
    chart: Chart | None = None
    drawn: dict[tuple[int, str, Chart | None], Points] = field(
        default_factory=dict, repr=False
    )  # points that were drawn before

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.problem.domain.coordinates)

    @property
    def axes(self) -> int:
        """Number of axes that nodes have a scale along."""
        return self.dimension if self.chart is None else self.chart.axes

    @property
    def pilot_nodes(self) -> int:
        """Width of a pilot: the narrowest network that tells one scale from another."""
        width = _PILOT * min(self.dimension, 5)
        return width if len(self.problem.fields) == 1 else max(40, int(width / 1.6))

    def seed_for(self, purpose: str = "") -> int:
        """Return the seed of nodes, or one that has nothing to do with those for other purposes."""
        return int(np.random.SeedSequence((self.seed, *purpose.encode())).generate_state(1)[0])

    def points(self, nodes: int) -> Points:
        """Return points for a network of so many nodes."""
        share = 1.0 if self.dimension <= FEW_AXES else MOST  # the boundary has as many
        count, purpose = max(20, int(share * ROWS_PER_NODE * nodes)), f"points of {nodes} nodes"
        if self.chart is None:
            return self._sampled(count, purpose)
        key = count, purpose, self.chart
        if key not in self.drawn:
            few, many = self._sampled(count, purpose), self._sampled(int(count / NEGLIGIBLE), purpose)
            picked = {id(own): self._reaching(own, most, self.chart) for own, most in zip(few, many, strict=True)}
            self.drawn[key] = Points(tuple(picked[id(own)] for own in few))
        return self.drawn[key]

    def _reaching(self, few: PointSet, many: PointSet, chart: Chart) -> PointSet:
        """Return some points, and half as many more: the farthest of many others along the directions of a chart.

        In many dimensions hardly any point of a sample lies near a corner, where a network fitted to it extrapolates.
        """
        if few.weights is not None or len(many) <= len(few):
            return few
        far = np.square(chart.along(many.points - self.problem.domain.bounds.mean(axis=1))).sum(axis=1)
        return few.joined(many.picked(np.argsort(-far)[: int(MOST * len(few))]))

    def _sampled(self, count: int, purpose: str) -> Points:
        # Most of a box of many dimensions is boundary; left to itself it would take nearly all rows.
        boundary, initial = (None, None) if self.dimension <= FEW_AXES else (count, count // 4)
        key = count, purpose, None
        if key not in self.drawn:
            seed = self.seed_for(purpose)
            drawn = Points.sample(self.problem, count, boundary, initial, method="kronecker", seed=seed)
            self.drawn[key] = drawn
        return self.drawn[key]

    def network(self, blocks: Sequence[Block]) -> BroadNetwork:
        """Draw a network; each block is drawn for itself, so that a longer list keeps the nodes of a shorter one."""
        bounds = self.problem.domain.bounds
        half = np.ptp(bounds, axis=1) / 2 if self.chart is None else np.ones(self.axes)
        children = np.random.default_rng(self.seed_for()).spawn(len(blocks))
        groups = [g for block, rng in zip(blocks, children, strict=True) for g in _groups(block, half, rng)]
        if self.chart is None:
            return BroadNetwork(bounds.mean(axis=1), tuple(groups))
        return self.chart.network(bounds.mean(axis=1), groups)

    def pilot(self, times: int) -> BroadNetwork:
        """Return a network so many times as wide as a pilot, before a scale is chosen: the wider, the finer it is."""
        return self.network([(times * self.pilot_nodes, widened((SCALE,) * self.axes, times))])

    def fit(self, blocks: Sequence[Block], near: Evaluate | None = None, *, close: bool = False) -> Solution:
        """Fit a network of some blocks at points of its own; see :meth:`fit_network`."""
        settings = {"activation": "sin", "features": [[nodes, list(scale)] for nodes, scale in blocks]}
        points = self.points(sum(nodes for nodes, _ in blocks))
        return self.fit_network(self.network(blocks), points, near, close=close, settings=settings)

    def fit_network(
        self,
        network: BroadNetwork,
        points: Points,
        near: Evaluate | None = None,
        *,
        close: bool = False,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> Solution:
        """Fit a network at points; a nonlinear problem from a state ``near``, which may be ``close`` to a solution."""
        recipe = Recipe("PIBLS", settings, self.seed, Balanced(), 0.0, LeastSquares())
        placed = on_device(network, device_for(self.device, self.operations(network.size)))
        if self.problem.is_linear:
            return fit(self.problem, points, placed, recipe)
        return fit_nonlinear(self.problem, points, placed, recipe, near, near=close)

    def operations(self, nodes: int, solution: Solution | None = None) -> float:
        """Return the multiplications of a fit of so many nodes, in as many steps as a solution took."""
        rows = sum(self.points(nodes).sets[s.source].rows for s in self.problem.statements)
        columns = nodes * len(self.problem.fields)
        steps = 1 if solution is None else max(1, len(solution.diagnostics.iterations))
        return steps * rows * columns * (columns + _PER_ENTRY)

    def judge(self, nodes: int) -> Judge:
        """Return a judge with held-out points, fewer than a network of so many nodes is fitted at."""
        return Judge(self.problem, self._sampled(min(COMPARED, max(150, nodes)), "held out"))

    @cached_property
    def compare_points(self) -> FloatArray:
        """Points at which solutions are compared."""
        # In many dimensions most of an error may lie in corners that hardly any point comes near.
        count = COMPARED if self.dimension <= FEW_AXES else int(COMPARED / NEGLIGIBLE)
        return interior_points(self.problem.domain, count, "kronecker", self.seed_for("compared"))

    def distance(self, one: Solution, two: Solution) -> float:
        """Return the relative L2 distance of two solutions; with several fields, the largest.

        A field that is zero, or nearly, is measured by what the others suggest for it.
        """
        X, names = self.compare_points, self.problem.field_names
        first, second = (
            solution.evaluate(X, [(name, (0,) * self.dimension) for name in names]) for solution in (one, two)
        )
        apart, own = (np.linalg.norm(values, axis=1) for values in (np.subtract(first, second), np.array(first)))
        return float((apart / field_scales(self.problem, own)).max())

    def estimate(self, one: Solution, richer: Solution, nodes: int) -> float:
        """Return the relative error of a solution by a richer one, judged at points for so many nodes.

        Both at the same points: some may lie in a layer that others miss.
        """
        judge = self.judge(nodes)
        return estimated_error(judge(one.evaluate), judge(richer.evaluate), self.distance(one, richer))

    def turns(self, solution: Solution) -> float:
        """Return how often a solution changes by its own size from the first time to the last; zero without a time."""
        time = self.problem.domain.time
        if time is None:
            return 0.0
        axis = self.problem.domain.coordinates.index(time)
        names, zero = self.problem.field_names, (0,) * self.dimension
        once = tuple(int(i == axis) for i in range(self.dimension))
        low, high = self.problem.domain.bounds[axis].tolist()
        values = solution.evaluate(self.compare_points, [(name, index) for name in names for index in (zero, once)])
        sizes = [float(np.linalg.norm(value)) for value in values]
        found = [rate / size for size, rate in zip(sizes[::2], sizes[1::2], strict=True) if size > 0]
        return float(high - low) * max(found, default=0.0)


def _groups(block: Block, half: FloatArray, rng: np.random.Generator) -> list[FeatureGroup]:
    """Draw the nodes of a block; in many dimensions a part of them sees few coordinates."""
    nodes, scale = block
    if len(half) <= FEW_AXES:
        return [draw_features(rng, half, "sin", nodes, scale)]
    sparse = int(MOST * nodes)
    first, second = rng.spawn(2)
    return [
        draw_features(first, half, "sin", nodes - sparse, scale),
        draw_sparse_features(second, half, "sin", sparse, scale, _SPARSE_AXES),
    ]


def of_unknown_error(solution: Solution, why: str) -> Solution:
    """Return a solution whose error there was no time to estimate."""
    status, message = verdict(0.0, np.inf, Stop(Reason.INTERRUPTED, why), solution.diagnostics.message)
    return replace(solution, status=status, diagnostics=replace(solution.diagnostics, message=message))


def estimated_error(own: float, richer: float, distance: float) -> float:
    """Return the relative error of a network, from its held-out residual, that of a richer one, and their distance.

    A richer network is the better one, and the distance is the error, unless its residual says otherwise; and both may
    be wrong alike where the equation is hardly solved at all.
    """
    share = max(NEGLIGIBLE, own / float(np.hypot(own, richer))) if own > 0 else 1.0
    return max(share * distance, 1.0) if own > NEGLIGIBLE else share * distance
