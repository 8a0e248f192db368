"""Fitters solve a problem on one tree after another: their protocol, and the fitter of linear problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pibls.budget import Budget
from pibls.cells.layout import Layout
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.cells.tree import Cell
from pibls.checks import FloatArray

__all__ = ["DEGREES", "Fitter", "LinearFitter", "degree_for", "highest_degree"]

DEGREES = {
    1: ((1e-4, 10), (1e-7, 14), (0.0, 18)),
    2: ((1e-4, 9), (1e-7, 13), (0.0, 17)),
    3: ((1e-4, 8), (1e-7, 10), (0.0, 12)),
}


def degree_for(dimension: int, tol: float) -> int:
    """Return the degree of the functions on a cell for a tolerance."""
    return next(degree for least, degree in DEGREES[dimension] if tol >= least)


def highest_degree(dimension: int) -> int:
    """Return the highest degree that cells may reach: one step beyond that for the finest tolerance.

    >>> highest_degree(2)
    19
    """
    return degree_for(dimension, 0.0) + 2


class Fitter(Protocol):
    """Solves a problem on one tree after another."""

    @property
    def layout(self) -> Layout:
        """The problem on its domain."""

    def work(self, cells: float, new: float) -> float:
        """Return the operations for a tree of ``cells`` cells, of which ``new`` are new."""

    @property
    def memory(self) -> float:
        """Bytes held by the last solution and by the one it was compared with."""

    def fit(self, root: Cell, near: Fit | None) -> Fit:
        """Return the solution on a tree, starting near one on a coarser tree."""

    def doubt(self, fit: Fit) -> str:
        """Return a sentence why a fit may not be a solution, or an empty string."""

    def sensitivity(self) -> float:
        """Return the sensitivity of the last solution to changes of its data."""

    def spread(self, fit: Fit, sizes: FloatArray) -> float:
        """Return how many times as large as the smallest field the largest one is, in the units of the equations."""

    def richer(self) -> Fitter | None:
        """Return a fitter with functions of two degrees more, or None if a finer tree is as good."""

    def enriched(self, degrees: int) -> Fitter | None:
        """Return a fitter with functions of ``degrees`` degrees more, or None."""


@dataclass(eq=False)
class LinearFitter:
    """Solves a linear problem on trees."""

    solver: TreeSolver
    budget: Budget
    _richer: LinearFitter | None = None

    @property
    def layout(self) -> Layout:
        """The problem on its domain."""
        return self.solver.layout

    def work(self, cells: float, new: float) -> float:
        """Return the operations for a tree of ``cells`` cells, of which ``new`` are new."""
        return self.solver.work(cells, new)

    @property
    def memory(self) -> float:
        """Bytes held by the last solution and by the one it was compared with."""
        return self.solver.memory + (0.0 if self._richer is None else self._richer.memory)

    def fit(self, root: Cell, near: Fit | None) -> Fit:
        """Return the solution on a tree; a linear problem needs no start."""
        del near
        return self._spent(self.solver.solve, root)

    def prepare(self, root: Cell) -> Fit:
        """Factorise a tree for right-hand sides that come later."""
        return self._spent(self.solver.prepare, root)

    def _spent(self, make: Callable[[Cell], Fit], root: Cell) -> Fit:
        before = self.solver.flops
        try:
            return make(root)
        finally:
            self.budget.spend(self.solver.flops - before)

    def doubt(self, fit: Fit) -> str:
        """Return an empty string: a linear problem is solved directly."""
        del fit
        return ""

    def sensitivity(self) -> float:
        """Return the sensitivity of the last solution to changes of its data."""
        return self.solver.weakest()[0]

    def spread(self, fit: Fit, sizes: FloatArray) -> float:
        """Return how many times as large as the smallest field the largest one is, in the units of the equations."""
        found = sizes / self.solver.rows.scales(fit.parts[0]).units
        return float(found.max() / found.min()) if found.min() > 0.0 else 1.0

    def richer(self) -> LinearFitter | None:
        """Return a fitter with functions of two degrees more: one degree may add only odd or even functions.

        On an interval return None, since more cells cost no more.
        """
        reference = self.layout.reference
        if reference.dimension == 1:
            return None
        if self._richer is None:
            self._richer = self.enriched(2)
        return self._richer

    def solver_of(self, layout: Layout) -> TreeSolver:
        """Return the solver with the functions of a layout; a known one has its factors."""
        known = (own.solver for own in (self, self._richer) if own is not None and own.layout is layout)
        return next(known, None) or self.solver.over(Rows(layout))

    def of_degree(self, degree: int) -> LinearFitter:
        """Return the fitter with functions of a given degree; known ones are reused."""
        for own in (self, self._richer):
            if own is not None and own.layout.reference.degree == degree:
                return own
        return self.enriched(degree - self.layout.reference.degree)

    def enriched(self, degrees: int) -> LinearFitter:
        """Return a fitter with functions of ``degrees`` degrees more."""
        return LinearFitter(self.solver.over(Rows(self.layout.enriched(degrees))), self.budget)
