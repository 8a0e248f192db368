"""Pilots: small networks that choose the chart and the scale of wide ones, by residuals at held-out points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from pibls.budget import Budget
from pibls.problem import Problem
from pibls.refinement.standards import FALLS, NEGLIGIBLE
from pibls.solution import Solution
from pibls.tuning.charts import Chart, learned_chart, symmetric_chart
from pibls.tuning.fitting import Block, Fitting
from pibls.tuning.scale_search import FEW_AXES, Scale, choose_scale, climb, refine_scale, widened

WIDER = 1.4  # nodes of a wider network, relative to those of the one that it is compared with


@dataclass(frozen=True, eq=False)
class Pilot:
    """A small network: its fits, with their chart; its scale, its held-out residual, and its solution."""

    fitting: Fitting
    scale: Scale
    residual: float
    solution: Solution


@dataclass(eq=False)
class Pilots:
    """The search with pilots of one width for a linear problem, or a linearised one."""

    fitting: Fitting
    nodes: int
    budget: Budget
    tell: Callable[[str, int], None]
    keep: Callable[[Solution, float], None]
    known: dict[tuple[int, Scale], Pilot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.judge = self.fitting.judge(self.nodes)

    def scan(self, problem: Problem, tol: float) -> Pilot:
        """Return the best pilot for a problem, whose symmetry suggests a chart; one that is good enough ends it."""
        if self.fitting.dimension > FEW_AXES:
            return self._charted(problem, tol)

        def enough(scale: Scale) -> bool:
            blocks = ((self.nodes, scale),)
            one, two = self.fitting.fit(blocks), self.fitting.fit(wider(blocks))
            spent = self.fitting.operations(self.nodes) + self.fitting.operations(int(WIDER * self.nodes))
            self.budget.spend(spent)
            return self.fitting.distance(one, two) < tol

        return self._pilot(None, choose_scale(self._score(None), self.fitting.axes, NEGLIGIBLE * tol, enough))

    def refined(self, chart: Chart | None, scale: Scale) -> Pilot:
        """Return the best pilot of a chart at scales near one."""
        return self._pilot(chart, refine_scale(self._score(chart), scale))

    def _charted(self, problem: Problem, tol: float) -> Pilot:
        """Return the best pilot over charts: the one of the symmetry, all coordinates, and those learned from these."""

        def climbed(chart: Chart | None) -> Pilot:
            axes = self.fitting.dimension if chart is None else chart.axes
            return self._pilot(chart, climb(self._score(chart), axes, tol))

        symmetric = symmetric_chart(problem, self.fitting.compare_points)
        best = climbed(symmetric)
        if symmetric is not None and best.residual >= tol:
            best = min(best, climbed(None), key=lambda pilot: pilot.residual)
        while best.residual >= tol:
            found = climbed(learned_chart(best.solution, self.fitting.compare_points))
            if found.residual > FALLS * best.residual:
                return min(best, found, key=lambda pilot: pilot.residual)
            best = found
        return best

    def _score(self, chart: Chart | None) -> Callable[[Scale], float]:
        return lambda scale: self._pilot(chart, scale).residual

    def _pilot(self, chart: Chart | None, scale: Scale) -> Pilot:
        """Return the pilot of a scale, fitted once."""
        if (id(chart), scale) not in self.known:
            fitting = replace(self.fitting, chart=chart)
            self.tell("scan", self.nodes)
            self.budget.spend(fitting.operations(self.nodes))
            solution = fitting.fit([(self.nodes, scale)])
            total = self.judge(solution.evaluate)
            residual = total if np.isfinite(total) else np.inf
            self.known[id(chart), scale] = Pilot(fitting, scale, residual, solution)
            self.keep(solution, residual)
        return self.known[id(chart), scale]


def wider(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the nodes of a wider network: those of another, and more at a somewhat finer scale."""
    nodes = sum(nodes for nodes, _ in blocks)
    more = int(WIDER * nodes) - nodes
    return (*blocks, (more, widened(blocks[-1][1], 1.0 + more / nodes)))
