"""The automatic solve by cells: follow the data, solve, compare with a finer tree, refine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from pibls.cells.measure import distances
from pibls.cells.parts import Layout
from pibls.cells.refine import Marker, follow_data
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, Glue
from pibls.cells.switches import hidden_jump
from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import FloatArray
from pibls.features.reference import draw_reference
from pibls.problem import Problem
from pibls.runtime import available_memory, format_bytes
from pibls.solution import Diagnostics, Solution
from pibls.solution.celled import CellNetwork
from pibls.solution.diagnostics import Residual
from pibls.solution.functions import ResidualFunction
from pibls.solution.sizes import reference_sizes

__all__ = ["Fitter", "Linear", "Loop", "degree_for", "field_sizes", "first_tree", "network_of", "solve_cells"]

RATE = 1e10  # operations that count as a second
PER_CELL = 5e6  # operations that the handling of a cell counts for
_DEGREES = {
    1: ((1e-4, 10), (1e-7, 14), (0.0, 18)),
    2: ((1e-4, 9), (1e-7, 13), (0.0, 17)),
    3: ((1e-4, 6), (1e-7, 8), (0.0, 10)),
}
_PER_WEIGHT = 20.0  # operations of a cell by the third power of its weights
_DATA_BUDGET, _FEWEST_CELLS = 0.2, 16
_DOUBTFUL = 8  # so many trees in a row without a solution: there is none, or none can be found
_UNDETERMINED = 1e6  # answers beyond this are those of a solution to which something can be added
_UNMET, _PLAIN, _STAYS = 100.0, 1e-3, 0.5
_FALLS = 0.01  # rows that lack so much less than three trees before: the solution is still being found
_ROUNDING = 1e-10
_PATIENCE = 4  # trees in a row that bring nothing
_ENTRIES = 4.0  # numbers kept for a cell, over the square of its weights
_GROWTH = {1: 2.0, 2: 2.0, 3: 6.0}  # what the next tree costs, over what the last one did
_RESIDUAL_POINTS = 200


def degree_for(dimension: int, tol: float) -> int:
    """Return the degree of the functions on a cell for a tolerance."""
    return next(degree for least, degree in _DEGREES[dimension] if tol >= least)


class Fitter(Protocol):
    """Solves a problem on one tree after another."""

    @property
    def layout(self) -> Layout:
        """The domain."""

    @property
    def flops(self) -> float:
        """Operations so far."""

    def fit(self, root: Cell, near: Fit | None) -> Fit:
        """Return the solution on a tree, given one on a coarser tree."""

    def doubt(self, fit: Fit) -> str:
        """Return why a fit may be no solution at all, as a sentence, or an empty string."""

    def answer(self) -> float:
        """Return how strongly the last solution answers to changes of what it must meet."""

    def richer(self) -> Fitter | None:
        """Return what solves the same problem with richer cells, if there is a use for it."""


@dataclass(eq=False)
class Linear:
    """Solves a linear problem on trees."""

    glue: Glue
    cells: int = 0
    _richer: Linear | None = None

    @property
    def layout(self) -> Layout:
        """The domain."""
        return self.glue.layout

    @property
    def flops(self) -> float:
        """Operations so far."""
        own = self.glue.flops + PER_CELL * self.cells
        return own if self._richer is None else own + self._richer.flops

    def fit(self, root: Cell, near: Fit | None) -> Fit:
        """Return the solution on a tree; where it starts from does not matter."""
        del near
        found = self.glue.solve(root)
        self.cells += len(found.parts)
        return found

    def doubt(self, fit: Fit) -> str:
        """Return an empty string: a linear problem is solved in one go."""
        del fit
        return ""

    def answer(self) -> float:
        """Return how strongly the last solution answers to changes of what it must meet."""
        return self.glue.weakest()[0]

    def richer(self) -> Linear | None:
        """Return what solves the same problem with functions of two degrees more: one would miss odd or even ones.

        On a line more cells cost no more than that.
        """
        reference = self.layout.reference
        if reference.dimension == 1:
            return None
        if self._richer is None:
            higher = draw_reference(reference.dimension, reference.degree + 2, self.layout.seed)
            self._richer = Linear(Glue(Rows(Layout(self.problem, higher, self.layout.seed))))
        return self._richer

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.layout.problem


@dataclass(frozen=True, eq=False)
class Compared:
    """A solution, another one that is better, the cells of that one, and what they say of the first one's error."""

    fit: Fit
    other: Fit
    layout: Layout
    estimate: float
    answer: float


@dataclass(eq=False)
class Loop:
    """One solve: from a first tree to finer ones, until two of them agree."""

    fitter: Fitter
    tol: float
    budget: float
    seed: int
    report: Callable[..., None]
    undetermined: float = _UNDETERMINED
    stages: list[dict[str, float]] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.fitter.layout.problem

    @cached_property
    def hidden(self) -> str:
        """What of the problem cells cannot see, as a sentence."""
        return hidden_jump(self.problem)

    def run(self, fit: Fit) -> Solution:
        """Solve, from the solution on a first tree on; an interrupt returns the best solution so far."""
        marker = Marker(self.fitter.layout)
        found: Compared | None = None
        answers = [self.fitter.answer()]
        doubtful = 0
        try:
            while True:
                before = self.fitter.flops
                sizes = field_sizes(self.problem, fit)
                found = self.compared(fit, marker)
                answers.append(found.answer)
                self.note(fit, found.estimate, answers[-2])
                unsolved = self.fitter.doubt(fit) or self.fitter.doubt(found.other)
                doubtful = doubtful + 1 if unsolved else 0
                doubt = self.hidden or unsolved or self._unmet(fit, found.other, sizes)
                if found.estimate <= self.tol and not doubt and answers[-1] < self.undetermined:
                    message = f"The estimated error {found.estimate:.1e} is within the tolerance {self.tol:g}."
                    return self.solution(found, found.estimate, "converged", message)
                limit = self._limit(self.fitter.flops - before, answers)
                if doubtful == _DOUBTFUL:
                    limit = "Finer cells do not help."
                if limit:
                    break
                fit = found.other if found.layout is self.fitter.layout else self._more_cells(fit, marker, sizes)
        except KeyboardInterrupt:
            if found is None:
                raise
            doubt, limit = "", "It was interrupted. Run it again to go on."
        # A coarse tree that tells little of a solution may be compared with a finer one that is in no doubt.
        serious = self.fitter.doubt(found.other) or (doubt and not self.fitter.doubt(found.fit))
        estimate = max(1.0, found.estimate) if serious else found.estimate
        message = f"The estimated error is {estimate:.1e}, above the tolerance {self.tol:g}. {limit} {doubt}"
        return self.solution(found, estimate, "stalled", message.rstrip())

    def _more_cells(self, fit: Fit, marker: Marker, sizes: FloatArray) -> Fit:
        return self.fitter.fit(marker.refined(fit, sizes), fit)

    def compared(self, fit: Fit, marker: Marker) -> Compared:
        """Compare a solution with a better one: by richer cells where it is smooth, on a finer tree elsewhere."""
        found = self._with_richer_cells(fit) if marker.is_smooth(fit) else None
        return self._with_more_cells(fit, marker) if found is None else found

    def _with_more_cells(self, fit: Fit, marker: Marker) -> Compared:
        other = self._more_cells(fit, marker, field_sizes(self.problem, fit))
        layout = self.fitter.layout
        estimate = self._relative(*distances(layout, fit, layout, other)[:2])
        return Compared(fit, other, layout, estimate, self.fitter.answer())

    def _with_richer_cells(self, fit: Fit) -> Compared | None:
        """Compare a solution with the one by richer cells on the same tree: enough where it is smooth, and cheaper."""
        richer = self.fitter.richer()
        if richer is None:
            return None
        other = richer.fit(fit.root, fit)
        estimate = self._relative(*distances(self.fitter.layout, fit, richer.layout, other)[:2])
        return Compared(fit, other, richer.layout, estimate, richer.answer())

    def note(self, fit: Fit, estimate: float, answer: float) -> None:
        """Record a stage, and tell it."""
        seconds = time.perf_counter() - self.started
        facts = {"cells": len(fit.parts), "nodes": fit.unknowns, "rows": fit.rows, "residual": fit.residual}
        self.stages.append({**facts, "estimate": estimate, "answer": answer, "seconds": seconds})
        self.report("solve", seconds, fit.unknowns, fit.residual, estimate)

    def _unmet(self, fit: Fit, other: Fit, sizes: FloatArray) -> str:
        """Return a sentence where rows lack much, and no less on the finer tree: then nothing may fulfil them."""
        much = other.residual > max(_UNMET * self.tol, _PLAIN) * float(sizes.max())
        if much and other.residual > _STAYS * fit.residual:
            return (
                "What equations and conditions lack does not fall as cells are split: they may contradict each other."
            )
        return ""

    def _limit(self, flops: float, answers: list[float]) -> str:
        last = [s["estimate"] for s in self.stages]
        if min(answers[-2:]) > self.undetermined:
            return "Nothing determines it."
        falls = len(last) > 3 and self.stages[-1]["residual"] < _FALLS * self.stages[-4]["residual"]
        recent, earlier = last[-_PATIENCE:], last[:-_PATIENCE]
        if earlier and last[-1] < 0.1 and min(recent) > 0.5 * min(earlier) and not falls:
            if last[-1] < _ROUNDING:
                return "Round-off limits it: no more digits are to be had in double precision. Ask for a larger tol."
            return "Splitting cells no longer pays: what limits it is not where cells are."
        growth = _GROWTH[self.fitter.layout.reference.dimension]
        width = self.fitter.layout.reference.size * len(self.problem.field_names)
        needed = 8.0 * _ENTRIES * width**2 * growth * self.stages[-1]["cells"]
        if needed > available_memory() / 2:
            return f"The memory limits it: a finer tree of cells would take about {format_bytes(needed)}."
        if (self.fitter.flops + growth * flops) / RATE > self.budget:
            return (
                f"The budget limits it: a finer tree of cells would take more than {self.budget:g} nominal seconds. "
                f"Give a larger budget, such as budget={10 * self.budget:g}."
            )
        return ""

    def _relative(self, apart: FloatArray, size: FloatArray) -> float:
        own = dict(zip(self.problem.field_names, size.tolist(), strict=True))
        found = np.array(list(reference_sizes(self.problem, own).values()))
        return float((apart / np.where(found > 0, found, 1.0)).max())

    def solution(self, found: Compared, estimate: float, status: str, message: str) -> Solution:
        """Return a fit as a solution, with its record."""
        fit = found.fit
        network, richer = network_of(self.fitter.layout, fit), network_of(found.layout, found.other)
        reference = self.fitter.layout.reference
        settings = {"cells": len(fit.parts), "degree": reference.degree, "functions": reference.size}
        record = Diagnostics(
            "Cells",
            settings,
            self.seed,
            fit.unknowns,
            fit.rows,
            "elimination along the tree",
            None,
            self.stages[-1]["answer"] if self.stages else None,
            {},
            seconds={"total": time.perf_counter() - self.started},
            message=message,
            stages=tuple(self.stages),
        )
        eye = np.eye(network.size)
        made = Solution(self.problem, network, eye, status, record, estimate, richer=(richer, eye))
        return replace(made, diagnostics=replace(record, residuals=residuals_of(made)))


def residuals_of(solution: Solution) -> dict[str, Residual]:
    """Return how well a solution meets each equation and condition at points of its own."""
    found = {}
    for statement in solution.problem.statements:
        values = ResidualFunction(solution, statement).values(_RESIDUAL_POINTS, seed=7)
        rms, largest = float(np.sqrt(np.mean(values**2))), float(np.abs(values).max())
        found[statement.name] = Residual(rms, largest, len(values))
    return found


def field_sizes(problem: Problem, fit: Fit) -> FloatArray:
    """Return what the error of each field is relative to."""
    squares = np.zeros(len(problem.field_names))
    for part, weights in fit.weights.items():
        squares += np.prod(part.half) * np.square(weights).sum(axis=1)
    own = dict(zip(problem.field_names, np.sqrt(squares).tolist(), strict=True))
    found = np.array(list(reference_sizes(problem, own).values()))
    return np.where(found > 0, found, 1.0)


def network_of(layout: Layout, fit: Fit) -> CellNetwork:
    """Return a fit as a network."""
    tree: list[list[int]] = []
    cuts: list[float] = []
    parts: list[Any] = []
    samples, owners = [np.empty((0, len(fit.root.low)))], [np.empty(0, dtype=np.int64)]

    def walk(cell: Cell) -> int:
        number = len(tree)
        tree.append([-1, len(parts), len(parts)])
        cuts.append(0.0)
        if cell.halves:
            first, second = (walk(half) for half in cell.halves)
            tree[number] = [cell.axis, first, second]
            cuts[number] = cell.at
            return number
        own = layout.parts(cell)
        for part in own:
            if len(own) > 1:
                samples.append(part.points)
                owners.append(np.full(len(part.points), len(parts)))
            parts.append(part)
        tree[number][2] = len(parts)
        return number

    walk(fit.root)
    transform = layout.reference.transform
    return CellNetwork(
        layout.reference.network,
        np.array(tree, dtype=np.int64),
        np.array(cuts),
        np.array([part.center for part in parts]),
        np.array([part.half for part in parts]),
        np.array([fit.weights[part] @ transform.T for part in parts]),
        np.concatenate(samples),
        np.concatenate(owners),
    )


def first_tree(rows: Rows, tol: float, root: Cell | None = None, *, budget: float = 10.0) -> Cell:
    """Return a tree whose cells resolve the data, and on a torus no cell meets itself."""
    if root is None:
        root = rows.layout.root
        for axis in rows.periodic:
            root = refined(root, {leaf: [(axis, None)] for leaf in leaves(root)})
        while crossed := {leaf: [plane] for leaf in leaves(root) if (plane := leaf.crossed()) is not None}:
            root = refined(root, crossed)
    most = budget * RATE / (PER_CELL + _PER_WEIGHT * rows.width**3)
    return follow_data(root, rows, tol, max(_FEWEST_CELLS, int(_DATA_BUDGET * most)))


def solve_cells(problem: Problem, tol: float, budget: float, seed: int, report: Callable[..., None]) -> Solution:
    """Solve a linear problem in one to three coordinates by cells."""
    d = len(problem.domain.coordinates)
    rows = Rows(Layout(problem, draw_reference(d, degree_for(d, tol), seed), seed))
    linear = Linear(Glue(rows))
    loop = Loop(linear, tol, budget, seed, report)
    return loop.run(linear.fit(first_tree(rows, tol, budget=budget), None))
