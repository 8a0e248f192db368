"""Rules for integrals over curved domains in space: parts of cells, with weights that follow from their surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pibls.cells.growth import tree_of
from pibls.cells.layout import Layout
from pibls.cells.tree import Cell, leaves, refined
from pibls.features.reference import Cells, draw_reference
from pibls.geometry import Domain
from pibls.problem import Problem
from pibls.quantities.boxwise import RulePoints
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork

_FEWER = 2  # degrees that the worse of two rules integrates exactly


@dataclass(frozen=True, eq=False)
class Parts:
    """The domain of a solution in space, or a region of it, divided into the parts of cells."""

    layouts: tuple[Layout, Layout]  # for a better and a worse rule
    cells: list[Cell]

    @classmethod
    def of(cls, solution: Solution, network: CellNetwork, degree: int, region: Domain) -> Parts:
        """Return the parts of the cells of a network in a region."""
        record, domain = solution.diagnostics, solution.problem.domain
        problem = Problem(solution.problem.equations, region if region == domain else domain & region, [])
        kind = Cells.recorded(record.settings)
        better = Layout(problem, draw_reference(network.dimension, degree, record.seed, kind), record.seed)
        fewer = draw_reference(network.dimension, max(1, degree - _FEWER), record.seed, kind)
        worse = Layout(problem, fewer, record.seed, better.tree_domain)
        low, high = domain.bounds.T
        return cls((better, worse), leaves(tree_of(network, Cell(low.copy(), high.copy()))))

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.cells)

    @property
    def edges(self) -> list[float]:
        """The share of each cell that is not known where lines end: none, weights are exact."""
        return [0.0] * len(self.cells)

    def rules(self, order: int) -> list[RulePoints]:
        """Return a better and a worse rule; their orders are those of the cells."""
        del order
        found = []
        for layout in self.layouts:
            layout.parts_of(self.cells)
            held = [(part, k) for k, cell in enumerate(self.cells) for part in layout.parts(cell)]
            rules = [layout.quadrature(part) for part, _ in held]
            boxes = [np.full(len(weights), k) for (_, weights), (_, k) in zip(rules, held, strict=True)]
            nothing = np.empty((0, len(layout.problem.domain.coordinates)))
            X = np.concatenate([nothing, *(points for points, _ in rules)])
            weights = np.concatenate([nothing[:, 0], *(own for _, own in rules)])
            found.append(RulePoints(X, weights, np.concatenate([np.empty(0, dtype=np.int64), *boxes])))
        return found

    def split(self, chosen: Sequence[int]) -> Parts:
        """Return the halves, along all axes, of some of the cells."""
        halves = [
            leaf
            for number in chosen
            for leaf in leaves(refined(self.cells[number], {self.cells[number]: [(axis, None) for axis in range(3)]}))
        ]
        return Parts(self.layouts, halves)
