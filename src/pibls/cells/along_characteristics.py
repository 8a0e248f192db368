"""Conservation laws with shocks: states along characteristics, on cells that are cut along the shocks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pibls.budget import Budget
from pibls.cells.fitters import degree_for
from pibls.cells.layout import Layout
from pibls.cells.local import PER_CELL
from pibls.cells.outcome import Comparison, network_of, solution_of
from pibls.cells.parts import CellPart, part_values
from pibls.cells.solve import Fit
from pibls.cells.state import projected
from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import FloatArray
from pibls.features.reference import draw_reference
from pibls.problem.shocks import Fronts
from pibls.refinement.standards import CANDIDATES, MOST, NEGLIGIBLE
from pibls.refinement.stopping import Reason, Stop, verdict
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork

__all__ = ["solve_along_characteristics"]


def solve_along_characteristics(fronts: Fronts, tol: float, budget: Budget, seed: int) -> Solution:
    """Return the solution of a conservation law on cells that resolve the states along its characteristics.

    The error is the distance to these states at points that no cell was fitted at.
    """
    layout = Layout(fronts.law.problem, draw_reference(2, degree_for(2, tol), seed))
    fitting, root, share = _Fitting(fronts, layout, budget), layout.root, MOST
    while True:
        fit, affordable = fitting.resolved(root, share * tol)
        estimate = _estimate(fronts, network_of(layout, fit), seed)
        if estimate <= tol or not affordable:
            break
        root, share = fit.root, NEGLIGIBLE * share
    richer = _Fitting(fronts, layout.enriched(2), budget)
    found = Comparison(fit, layout, richer.fit(fit.root), richer.layout, estimate, 1.0)
    within = Stop(Reason.BUDGET, "finer cells would take more", f"Give a larger budget than {budget.nominal:g}.")
    status, message = verdict(tol, estimate, Stop(Reason.TOLERANCE) if estimate <= tol else within, _words(fronts))
    return solution_of(found, estimate, status, message, seed, seconds=budget.elapsed)


@dataclass(eq=False)
class _Fitting:
    """Fits the states along characteristics on cells; those of a part are found once."""

    fronts: Fronts
    layout: Layout
    budget: Budget
    _states: dict[CellPart, FloatArray] = field(default_factory=dict)
    _weights: dict[CellPart, FloatArray] = field(default_factory=dict)

    def resolved(self, root: Cell, tol: float) -> tuple[Fit, bool]:
        """Return a fit on a tree with cells as accurate as asked, and whether the budget affords them."""
        each = PER_CELL + float(self.layout.reference.size) ** 3
        while True:
            fit = self.fit(root)
            squares = [part.volume * float(np.mean(self._states[part] ** 2)) for part in fit.parts]
            limit = tol * np.sqrt(sum(squares) / len(squares))
            rough = {part.cell: [(0, None), (1, None)] for part, own in fit.residuals.items() if own > limit}
            if not rough or not self.budget.affords(each * 4 * len(rough)):
                return fit, not rough
            self.budget.spend(each * 4 * len(rough))
            root = refined(root, rough)

    def fit(self, root: Cell) -> Fit:
        """Return the best fit on a tree, with the L2 error of every part."""
        parts = self.layout.parts_of(leaves(root))
        if new := [part for part in parts if part not in self._states]:
            values = self.fronts.values(np.concatenate([part.points for part in new]))
            ends = np.cumsum([len(part.points) for part in new])[:-1]
            self._states |= dict(zip(new, np.split(values, ends), strict=True))
        known = {part: own for part, own in self._weights.items() if part in self._states}
        self._weights = projected(self.layout, root, lambda part, _: self._states[part][:, None], known)
        missed = {part: self._missed(part) for part in parts}
        return Fit(root, tuple(parts), self._weights, missed, sum(own.size for own in self._weights.values()))

    def _missed(self, part: CellPart) -> float:
        left = part_values(self.layout.reference, part, self._weights[part], part.points)[:, 0] - self._states[part]
        return float(np.sqrt(part.volume * np.mean(left**2)))


def _estimate(fronts: Fronts, network: CellNetwork, seed: int) -> float:
    """Return the relative error of a network at random points of every cell."""
    X, volumes = network.spread(np.asarray(fronts.law.problem.domain.bounds), CANDIDATES, seed)
    wanted = fronts.values(X)
    left = network.evaluate(X, [(0, 0)])[0, 0][:, 0] - wanted
    return float(np.sqrt(volumes @ left**2 / (volumes @ wanted**2)))


def _words(fronts: Fronts) -> str:
    """Say which fronts there are."""
    law = fronts.law
    (x,), time, ((low, high), (start, _)) = law.problem.domain.space, law.problem.domain.time, law.bounds
    inside = [s for s in fronts.shocks if not law.is_periodic or low <= s.places[0] < high]
    told = [f"{time} = {start + s.times[0]:.6g}, {x} = {s.places[0]:.6g}" for s in inside]
    shocks = f" Shocks start at {'; '.join(told)}: they conserve {law.problem.field_names[0]}." if told else ""
    return f"States were found along characteristics.{shocks}"
