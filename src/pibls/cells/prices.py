"""Prices of the next solution on cells: its work, and the cells that fit into budget and memory."""

from __future__ import annotations

import math
from typing import Any

from pibls.cells.error_marking import ErrorMarking
from pibls.cells.fitters import Fitter
from pibls.cells.outcome import Comparison
from pibls.cells.overlay import distances
from pibls.cells.solve import Fit
from pibls.checks import FloatArray
from pibls.refinement import Cost, Course
from pibls.refinement.standards import MOST
from pibls.runtime import available_memory

__all__ = [
    "affords_richer",
    "beside_poorer",
    "is_cheaper_poorer",
    "is_cheaper_richer",
    "next_cost",
    "richer_work",
    "room",
]

POWER = 2.0  # with which work grows with the number of functions
GROWTH = 1.5  # least growth of cells and work from one tree to the next


def room(fitter: Fitter, course: Course[Any], fit: Fit, times: float = 1.0) -> float:
    """Return how many more cells memory and budget allow, if a solve with them costs ``times`` as much as one.

    The first solution needs a comparison: the budget always allows to double its cells.
    """
    cells = len(fit.parts)
    affordable = 1.0 if course.stages else float(cells)
    growth = float((available_memory() / max(fitter.memory, 1.0)) ** (1.0 / _memory_power(fitter)))
    fitting = max(1.0, cells * (growth - 1.0))
    while affordable < fitting:
        more = GROWTH * affordable
        if not course.budget.affords(times * fitter.work(cells + more, more)):
            break
        affordable = more
    return min(affordable, fitting)


def _memory_power(fitter: Fitter) -> float:
    """Return the power with which memory grows with the number of cells: fronts are as large as cuts of the domain."""
    dimension: int = fitter.layout.reference.dimension
    return max(1.0, 2.0 - 2.0 / dimension)


def affords_richer(fitter: Fitter, course: Course[Any], fit: Fit, times: float = 1.0) -> bool:
    """Return whether the budget allows a solution with two degrees more on the same tree, ``times`` over."""
    cells = len(fit.parts)
    return course.budget.affords(times * richer_work(fitter) * fitter.work(cells, cells))


def beside_poorer(fitter: Fitter, course: Course[Comparison], fit: Fit, sensitivity: float) -> Comparison | None:
    """Return a solution of two degrees less on the same tree, compared with a given one; None if that is too much.

    It costs a share of the given one.
    """
    if fitter.layout.reference.dimension == 1:
        return None
    poorer, cells = fitter.enriched(-2), len(fit.parts)
    if poorer is None or not course.budget.affords(fitter.work(cells, cells) / richer_work(poorer)):
        return None
    other, layout = poorer.fit(fit.root, fit), poorer.layout
    found = Comparison(other, layout, fit, fitter.layout, math.inf, sensitivity)
    return found.measured(distances(layout, other, fitter.layout, fit))


def richer_work(fitter: Fitter) -> float:
    """Return the work of cells with two degrees more, relative to the present ones."""
    d, degree = fitter.layout.reference.dimension, fitter.layout.reference.degree
    return float((math.comb(degree + 2 + d, d) / math.comb(degree + d, d)) ** POWER)


def is_cheaper_richer(fitter: Fitter, marker: ErrorMarking, fit: Fit, sizes: FloatArray) -> bool:
    """Return whether richer cells cost less than a finer tree, and give as reliable a comparison."""
    cells, new = len(fit.parts), marker.wanted(fit, sizes)
    cheaper = richer_work(fitter) * fitter.work(cells, cells) < fitter.work(cells + new, new)
    return cheaper and marker.seems_smooth(fit, sizes)


def is_cheaper_poorer(fitter: Fitter, marker: ErrorMarking, fit: Fit, sizes: FloatArray) -> bool:
    """Return whether poorer cells cost less than half of a finer tree, and give as reliable a comparison."""
    cells, new = len(fit.parts), marker.wanted(fit, sizes)
    cheaper = fitter.work(cells, cells) / richer_work(fitter) < MOST * fitter.work(cells + new, new)
    return cheaper and not marker.is_singular(fit)


def next_cost(fitter: Fitter, course: Course[Any], comparison: Comparison, wanted: int, *, is_smooth: bool) -> Cost:
    """Return the cost of the next tree with so many more cells, or of richer cells for a smooth solution."""
    times = 1.0 + richer_work(fitter) if comparison.is_on_one_tree else 1.0
    fit = comparison.latest
    cells = len(fit.parts)
    growth = 1.0 + min(wanted, room(fitter, course, fit, times)) / cells
    needed = fitter.memory * growth ** _memory_power(fitter)
    work = times * min(fitter.work(cells + wanted, wanted), GROWTH * fitter.work(cells, cells))
    richer = is_smooth and affords_richer(fitter, course, fit, max(1.0, times - 1.0))
    return Cost("a finer tree of cells", 0.0 if richer else work, needed)
