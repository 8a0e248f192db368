"""States along characteristics, on cells: of linear transport, and of conservation laws, cut along their shocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pibls.budget import Budget
from pibls.cells.layout import Layout
from pibls.cells.linear import start_of
from pibls.cells.local import PER_CELL
from pibls.cells.outcome import Comparison, network_of, solution_of
from pibls.cells.parts import CellPart, part_values
from pibls.cells.solve import Fit
from pibls.cells.state import projected
from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import FloatArray
from pibls.problem.shocks import Fronts
from pibls.problem.transport import Transport
from pibls.quadrature.roots import CLOSE, SCAN
from pibls.refinement.standards import CANDIDATES, MOST, NEGLIGIBLE
from pibls.refinement.stopping import Reason, Stop, verdict
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork

__all__ = ["solve_along_characteristics"]


def solve_along_characteristics(carried: Fronts | Transport, tol: float, budget: Budget, seed: int) -> Solution:
    """Return a solution on cells that resolve the states along its characteristics.

    The error is the distance to these states at points that no cell was fitted at.
    """
    start = start_of(carried.problem, tol, budget.part(NEGLIGIBLE), seed)
    layout, root, share = start.data.rows.layout, start.root, MOST
    fitting = _Fitting(carried, layout, budget, carried.followed(_entrances(carried, root), CANDIDATES))
    while True:
        fit, affordable = fitting.resolved(root, share * tol)
        estimate = _estimate(carried, network_of(layout, fit), seed)
        if estimate <= tol or not affordable:
            break
        root, share = fit.root, NEGLIGIBLE * share
    richer = replace(fitting, layout=layout.enriched(2))
    found = Comparison(fit, layout, richer.fit(fit.root), richer.layout, estimate, 1.0)
    within = Stop(Reason.BUDGET, "finer cells would take more", f"Give a larger budget than {budget.nominal:g}.")
    status, message = verdict(tol, estimate, Stop(Reason.TOLERANCE) if estimate <= tol else within, carried.told)
    return solution_of(found, estimate, status, message, seed, seconds=budget.elapsed)


def _entrances(carried: Fronts | Transport, root: Cell) -> FloatArray:
    """Return places on the sides by which characteristics enter, close to each other where data are narrow."""
    shares, found = (np.arange(SCAN) + 0.5)[:, None] / SCAN, [np.empty((0, 2))]
    for cell in leaves(root):
        for axis, side in enumerate(carried.entrances.tolist()):
            if min(abs(cell.low[axis] - side), abs(cell.high[axis] - side)) <= CLOSE * cell.size[axis]:
                X = cell.low + shares * cell.size
                X[:, axis] = side
                found.append(X)
    return np.concatenate(found)


@dataclass(eq=False)
class _Fitting:
    """Fits the states along characteristics on cells; those of a part are found once."""

    carried: Fronts | Transport
    layout: Layout
    budget: Budget
    watched: FloatArray  # points where something narrow may be that is not at the points of large cells
    _states: dict[CellPart, FloatArray] = field(default_factory=dict)
    _weights: dict[CellPart, FloatArray] = field(default_factory=dict)

    def resolved(self, root: Cell, tol: float) -> tuple[Fit, bool]:
        """Return a fit on a tree with cells as accurate as asked, and whether the budget affords them."""
        each = PER_CELL + float(self.layout.reference.size) ** 3
        while True:
            fit = self.fit(root)
            squares = [part.volume * float(np.mean(self._states[part] ** 2)) for part in fit.parts]
            limit = tol * np.sqrt(sum(squares) / len(squares))
            missed = self._overlooked(fit)
            rough = {p.cell: [(0, None), (1, None)] for p, own in fit.residuals.items() if max(own, missed[p]) > limit}
            if not rough or not self.budget.affords(each * 4 * len(rough)):
                return fit, not rough
            self.budget.spend(each * 4 * len(rough))
            root = refined(root, rough)

    def fit(self, root: Cell) -> Fit:
        """Return the best fit on a tree, with the L2 error of every part."""
        parts = self.layout.parts_of(leaves(root))
        if new := [part for part in parts if part not in self._states]:
            values = self.carried.values(np.concatenate([part.points for part in new]))
            ends = np.cumsum([len(part.points) for part in new])[:-1]
            self._states |= dict(zip(new, np.split(values, ends), strict=True))
        known = {part: own for part, own in self._weights.items() if part in self._states}
        self._weights = projected(self.layout, root, lambda part, _: self._states[part][:, None], known)
        missed = {part: self._missed(part) for part in parts}
        return Fit(root, tuple(parts), self._weights, missed, sum(own.size for own in self._weights.values()))

    def _overlooked(self, fit: Fit) -> dict[CellPart, float]:
        """Return the error of every part at the watched points, as if it were so everywhere."""
        network = network_of(self.layout, fit)
        which = network.locate(self.watched)
        squares, counts = np.zeros(len(fit.parts)), np.bincount(which, minlength=len(fit.parts))
        gaps = network.evaluate(self.watched, [(0, 0)])[0, 0][:, 0] - self._wanted
        np.add.at(squares, which, gaps**2)
        means = squares / np.maximum(counts, 1)
        return {part: float(np.sqrt(part.volume * own)) for part, own in zip(fit.parts, means, strict=True)}

    @cached_property
    def _wanted(self) -> FloatArray:
        return self.carried.values(self.watched)

    def _missed(self, part: CellPart) -> float:
        left = part_values(self.layout.reference, part, self._weights[part], part.points)[:, 0] - self._states[part]
        return float(np.sqrt(part.volume * np.mean(left**2)))


def _estimate(carried: Fronts | Transport, network: CellNetwork, seed: int) -> float:
    """Return the relative error of a network at random points of every cell."""
    X, volumes = network.spread(np.asarray(carried.problem.domain.bounds), CANDIDATES, seed)
    wanted = carried.values(X)
    left = network.evaluate(X, [(0, 0)])[0, 0][:, 0] - wanted
    return float(np.sqrt(volumes @ left**2 / (volumes @ wanted**2)))
