"""Incremental broad learning: nodes and points are appended to a factorisation that exists already.

A :class:`Grown` is a system of one problem in factorised form. New nodes are new columns and new points new rows; what
was factorised stays. The weights of all widths on the way come at the cost of one more triangular solve each.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.features import BroadNetwork, EnhancementGroup, FeatureGroup
from pibls.geometry import Points
from pibls.methods.fit import residual_record
from pibls.methods.theorems import Evidence, check_theorems
from pibls.problem import Interior, OnPart, Opposite, Problem, Statement
from pibls.runtime import blas_threads
from pibls.solution import Diagnostics, Solution
from pibls.solvers import Growing
from pibls.system import Block as Rows
from pibls.system import System, assemble

__all__ = ["Grown"]


@dataclass(frozen=True, eq=False)
class Grown:
    """The system of a problem in a factorisation that can be extended; made by :meth:`start`.

    Attributes
    ----------
    problem, network
        What is solved, and all nodes so far.
    parts, kept
        The points, in the order in which they were appended, and which of their rows are used; None for all.
    blocks
        The rows, with the factors that bring all later ones to the same size.
    factor, rhs
        The factorised matrix, and the right-hand side.
    columns
        For each column of the matrix, which weight it belongs to: field and node, counted from the first feature
        node, or from −1 downwards for the nodes that come with the domain.

    Examples
    --------
    >>> from pibls.features import draw_network
    >>> from pibls.problems import poisson
    >>> problem = poisson()
    >>> rng = np.random.default_rng(0)
    >>> narrow = draw_network(rng, problem.domain.bounds, [("sin", 40, 2.0)])
    >>> more = draw_network(rng, problem.domain.bounds, [("sin", 80, 3.0)])
    >>> grown = Grown.start(problem, narrow, Points.sample(problem, 300))
    >>> wider = grown.with_nodes(more.features).with_points(Points.sample(problem, 100, seed=1))
    >>> wider.factor.shape, wider.solution().true_error() < 1e-3 * grown.solution().true_error()
    ((508, 120), True)
    """

    problem: Problem
    network: BroadNetwork
    parts: tuple[Points, ...]
    blocks: tuple[Rows, ...]
    factor: Growing
    rhs: FloatArray
    columns: tuple[tuple[int, int], ...]
    seconds: float
    kept: tuple[FloatArray | None, ...] = (None,)

    @classmethod
    def start(cls, problem: Problem, network: BroadNetwork, points: Points) -> Grown:
        """Assemble and factorise a first system; the problem must have no exact conditions."""
        begun = time.perf_counter()
        with blas_threads():
            system = assemble(problem, points, network)
            factor = Growing.start(system.matrix, overwrite=True)
        columns = _columns(problem, network)
        return cls(problem, network, (points,), system.blocks, factor, system.rhs, columns, time.perf_counter() - begun)

    def with_nodes(self, groups: Sequence[FeatureGroup | EnhancementGroup]) -> Grown:
        """Append feature nodes, or enhancement nodes on the features there are: only their own columns are computed."""
        begun = time.perf_counter()
        network = self.network
        features = tuple(group for group in groups if isinstance(group, FeatureGroup))
        enhancement = tuple(group for group in groups if isinstance(group, EnhancementGroup))
        if features and (enhancement or network.enhancement):
            raise InputError(
                "Feature nodes cannot be appended below enhancement nodes, which take all features as their input. "
                "Append enhancement nodes."
            )
        skipped = network.feature_nodes if enhancement else 0
        alone = replace(network, features=features or network.features, enhancement=enhancement, special=())
        wider = replace(
            network,
            features=(*network.features, *features),
            enhancement=(*network.enhancement, *enhancement),
        )
        fields = range(len(self.problem.fields))
        added = np.array([f * alone.size + node for f in fields for node in range(skipped, alone.size)])
        with blas_threads():
            systems = zip((self._rows_of(part, alone) for part in self.parts), self.kept, strict=True)
            pieces = [system.matrix if rows is None else system.matrix[rows] for system, rows in systems]
            block = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
            factor = self.factor.with_columns(block[:, added] if skipped else block, overwrite=True)
        first = network.size - network.special_nodes - skipped
        columns = tuple((f, first + node) for f in fields for node in range(skipped, alone.size))
        seconds = self.seconds + time.perf_counter() - begun
        return replace(self, network=wider, factor=factor, columns=(*self.columns, *columns), seconds=seconds)

    def with_points(self, points: Points) -> Grown:
        """Append points of equations and conditions: only their own rows are computed.

        Statements that have no other points than theirs (measurements, averages, the ends of an interval) stay as
        they are.
        """
        begun = time.perf_counter()
        with blas_threads():
            system = self._rows_of(points, self.network)
            statements = [s for s in self.problem.statements if not s.exact]
            kept = [b for b, s in zip(system.blocks, statements, strict=True) if _has_more_points(s)]
            rows = np.concatenate([np.arange(b.rows.start, b.rows.stop) for b in kept])
            factor = self.factor.with_rows(system.matrix[np.ix_(rows, self._order_of_columns())])
        blocks, start = [], len(self.rhs)
        for block in kept:
            blocks.append(replace(block, rows=slice(start, start + block.count)))
            start += block.count
        return replace(
            self,
            parts=(*self.parts, points),
            kept=(*self.kept, rows),
            blocks=(*self.blocks, *blocks),
            factor=factor,
            rhs=np.concatenate([self.rhs, system.rhs[rows]]),
            seconds=self.seconds + time.perf_counter() - begun,
        )

    def solution(self, settings: dict[str, object] | None = None, seed: int = 0) -> Solution:
        """Return the solution at this size."""
        begun = time.perf_counter()
        with blas_threads():
            weights, residual = self.factor.factorisation.weights_and_residual(self.rhs)
        ordered = np.empty_like(weights)
        ordered[self._order_of_columns()] = weights
        seconds = self.seconds + time.perf_counter() - begun
        size = float(np.linalg.norm(self.rhs))
        norm = float(np.sqrt(sum((b.scale * b.norm) ** 2 * b.count for b in self.blocks)))
        evidence = Evidence(norm, size, ordered, residual, 0.0, 0.0)
        diagnostics = Diagnostics(
            method="PIBLS",
            settings=settings or {},
            seed=seed,
            nodes=self.network.size,
            rows=len(self.rhs),
            solver=self.factor.name,
            rank=self.factor.rank,
            condition=self.factor.condition,
            residuals=residual_record((b, residual[b.rows]) for b in self.blocks),
            theorems=check_theorems(evidence, self.blocks, 0.0),
            seconds={"solve": seconds},
        )
        shape = (len(self.problem.fields), self.network.size)
        return Solution(self.problem, self.network, ordered.reshape(shape), "fitted", diagnostics, growth=self)

    def _rows_of(self, points: Points, network: BroadNetwork) -> System:
        """Assemble rows in the scales of the first ones, which later nodes and points keep."""
        system = assemble(self.problem, points, network)
        blocks = []
        for block, first in zip(system.blocks, self.blocks, strict=False):
            factor = first.scale / block.scale
            system.matrix[block.rows, :] *= factor
            system.rhs[block.rows] *= factor
            blocks.append(replace(block, scale=first.scale))
        return replace(system, blocks=tuple(blocks))

    def _order_of_columns(self) -> Any:
        """For each column of the factorised matrix, its place among the weights of the network as it is now."""
        size, last = self.network.size, self.network.size - self.network.special_nodes - 1
        return np.array([field * size + (node if node >= 0 else last - node) for field, node in self.columns])


def _columns(problem: Problem, network: BroadNetwork) -> tuple[tuple[int, int], ...]:
    nodes = [*range(network.size - network.special_nodes), *range(-1, -network.special_nodes - 1, -1)]
    return tuple((field, node) for field in range(len(problem.fields)) for node in nodes)


def _has_more_points(statement: Statement) -> bool:
    place = statement.place
    if isinstance(place, OnPart):
        return len(place.part.domain.coordinates) > 1
    return isinstance(place, Interior | Opposite)
