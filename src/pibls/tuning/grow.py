"""Growth of a solution: more points where the residual is large, more nodes where the solution is steep.

A solution by cells is split further instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pibls.cells.growth import grow_cells
from pibls.checks import FloatArray, check_integer
from pibls.errors import InputError
from pibls.features import BroadNetwork, EnhancementGroup, FeatureGroup
from pibls.features.scales import draw_enhancement, draw_features, draw_steep_features
from pibls.geometry import Points, PointSet
from pibls.geometry.points import interior_points
from pibls.methods import Recipe, fit
from pibls.problem import Interior, OnPart, Opposite, Problem, Statement
from pibls.refinement.standards import NEGLIGIBLE
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork
from pibls.solvers import LeastSquares
from pibls.system import Balanced, check_linear
from pibls.tuning.fitting import COMPARED, ROWS_PER_NODE
from pibls.tuning.judge import Judge
from pibls.tuning.scale_search import widened

_CANDIDATES = 8  # candidates per point that is chosen
_PEAKED = 5.0  # times as steep as on average: that is where half of the nodes go


def grow(solution: Solution, nodes: int, points: int) -> Solution:
    """Return the solution with so many more nodes and points; see :meth:`pibls.Solution.grow`."""
    more_nodes = check_integer("nodes", nodes, "grow", minimum=0)
    more_points = check_integer("points", points, "grow", minimum=0)
    network = solution.network
    points_before = None if isinstance(network, CellNetwork) else _points(solution)
    if more_nodes == more_points == 0:
        return solution
    if points_before is None or not isinstance(network, BroadNetwork):
        return grow_cells(solution, more_nodes, more_points)
    # Each growth draws anew: how many nodes and points there are tells it from earlier ones.
    rows = sum(map(len, points_before.sets))
    rng = np.random.default_rng(np.random.SeedSequence((solution.diagnostics.seed, network.size, rows)))
    where = points_before
    if more_points:
        where = _joined(solution.problem, where, residual_points(solution, more_points, rng))
    if more_nodes:
        network = with_nodes(network, new_nodes(solution, more_nodes, rng))
    recipe = Recipe("PIBLS", solution.diagnostics.settings, solution.diagnostics.seed, Balanced(), 0.0, LeastSquares())
    grown = fit(solution.problem, where, network, recipe)
    message = f"Grown by {more_nodes} nodes and {grown.diagnostics.rows - solution.diagnostics.rows} rows."
    # What was as wide before is now the narrower of two: their distance is the error it had, not the one left.
    return replace(grown, diagnostics=replace(grown.diagnostics, message=message), points=where)


def _points(solution: Solution) -> Points:
    """Return the points of a solution that was grown, or new ones for one by another method or from a file."""
    if solution.points is not None:
        return solution.points
    if not isinstance(solution.network, BroadNetwork):
        raise InputError(
            f"A solution by {solution.diagnostics.method} cannot grow: its weights do not come from one least-squares "
            "problem. Solve again with a smaller tol, or use PIBLS."
        )
    check_linear(solution.problem)
    interior = int(ROWS_PER_NODE * solution.network.size)
    return Points.sample(solution.problem, interior, seed=solution.diagnostics.seed)


def _joined(problem: Problem, points: Points, more: Points) -> Points:
    """Append points of equations and conditions.

    Statements that have no other points than theirs (measurements, averages, the ends of an interval) stay as they are.
    """
    joined: dict[int, PointSet] = {}
    for statement in problem.statements:
        own, new = points.sets[statement.source], more.sets[statement.source]
        if id(own) not in joined:
            joined[id(own)] = own.joined(new) if _has_more_points(statement) else own
    return Points(tuple(joined[id(own)] for own in points.sets))


def _has_more_points(statement: Statement) -> bool:
    place = statement.place
    if isinstance(place, OnPart):
        return len(place.part.domain.coordinates) > 1
    return isinstance(place, Interior | Opposite)


def with_nodes(network: BroadNetwork, groups: Sequence[FeatureGroup | EnhancementGroup]) -> BroadNetwork:
    """Return a network with more nodes."""
    return replace(
        network,
        features=(*network.features, *(g for g in groups if isinstance(g, FeatureGroup))),
        enhancement=(*network.enhancement, *(g for g in groups if isinstance(g, EnhancementGroup))),
    )


def residual_points(solution: Solution, count: int, rng: np.random.Generator) -> Points:
    """Return points at which the residual of a solution is large: its size is their density, over a floor."""
    problem = solution.problem
    seed = int(rng.integers(2**31))
    wanted = Points.sample(problem, count, method="kronecker", seed=seed)
    judge = Judge(problem, Points.sample(problem, _CANDIDATES * count, method="kronecker", seed=seed))
    densities: dict[int, FloatArray] = {}
    for _, statement in judge.judged:
        where = judge.points.sets[statement.source]
        if where.weights is None:
            size = np.abs(judge.residual(solution.evaluate, statement))
            scaled = size / max(float(size.mean()), 1e-300)
            densities[id(where)] = densities.get(id(where), np.zeros(len(where))) + scaled
    chosen: dict[int, PointSet] = {}
    for few, many in zip(wanted.sets, judge.points.sets, strict=True):
        if id(many) not in chosen:
            chosen[id(many)] = _chosen(few, many, densities.get(id(many)), rng)
    return Points(tuple(chosen[id(many)] for many in judge.points.sets))


def _chosen(few: PointSet, many: PointSet, density: FloatArray | None, rng: np.random.Generator) -> PointSet:
    if density is None or len(many) <= len(few):
        return few
    total = float(density.sum())
    even = np.full(len(many), 1.0 / len(many))
    # Some points are spread evenly, so that no part of the domain is left out.
    chance = NEGLIGIBLE * even + (1 - NEGLIGIBLE) * (density / total if total > 0 else even)
    rows = np.sort(rng.choice(len(many), size=len(few), replace=False, p=chance / chance.sum()))
    return many.picked(rows)


def steepness(solution: Solution, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how steep a solution is at points, and in which direction, in coordinates normalised to [−1, 1].

    The steepness is the length of the gradient over the range of the values; of several fields the steepest counts.
    """
    half = np.ptp(solution.problem.domain.bounds, axis=1) / 2
    axes = len(half)
    units = [tuple(int(i == axis) for i in range(axes)) for axis in range(axes)]
    best, direction = np.zeros(len(X)), np.zeros((len(X), axes))
    for name in solution.problem.field_names:
        values, *slopes = solution.evaluate(X, [(name, (0,) * axes), *((name, unit) for unit in units)])
        gradient = np.stack(slopes, axis=1) * half / max(float(np.ptp(values)), 1e-300)
        size = np.linalg.norm(gradient, axis=1)
        steeper = size > best
        best[steeper], direction[steeper] = size[steeper], gradient[steeper] / size[steeper, None]
    return best, direction


def new_nodes(solution: Solution, count: int, rng: np.random.Generator) -> list[FeatureGroup] | list[EnhancementGroup]:
    """Draw nodes like those there are, a little finer; where the solution has steep places, half of them are there."""
    network, bounds = solution.network, solution.problem.domain.bounds
    assert isinstance(network, BroadNetwork)
    if network.enhancement:
        last = network.enhancement[-1]
        spread = float(np.std(last.weights)) * float(np.sqrt(network.feature_nodes / 2))
        return [draw_enhancement(rng, last.activation, network.feature_nodes, count, spread)]
    half = np.ptp(bounds, axis=1) / 2
    group = network.features[-1]
    spread_per_axis = np.std(group.weights, axis=1) * half
    periodic = group.activation.periodic
    finer = widened((1.0,), 1.0 + count / network.size)[0]
    scale = finer * spread_per_axis * (1.0 if periodic else float(np.sqrt(3.0)))
    X = interior_points(solution.problem.domain, 2 * COMPARED, "kronecker", int(rng.integers(2**31)))
    steep, direction = steepness(solution, X)
    placed = count // 2 if float(steep.max()) > _PEAKED * float(steep.mean()) else 0
    groups = []
    if count > placed:
        floor = max(1e-3, 1e-3 * float(scale.max()))
        groups.append(draw_features(rng, half, group.activation, count - placed, np.maximum(scale, floor)))
    if placed:
        rows = rng.choice(len(X), size=placed, p=steep / steep.sum())
        centers = (X[rows] - bounds.mean(axis=1)) / half
        groups.append(draw_steep_features(rng, half, centers, steep[rows, None] * direction[rows]))
    return groups
