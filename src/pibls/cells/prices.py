"""Prices of the next solution on cells: its work, the cells that fit into budget and memory, and its rate of gain."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pibls.cells.error_marking import ErrorMarking
from pibls.cells.fitters import Fitter
from pibls.cells.outcome import Comparison
from pibls.cells.overlay import distances
from pibls.cells.solve import Fit
from pibls.checks import FloatArray
from pibls.refinement import Cost, Course
from pibls.refinement.standards import FALLS, SLIGHT
from pibls.runtime import available_memory

__all__ = ["affords_richer", "beside_poorer", "beyond", "is_cheaper_richer", "next_cost", "poorer_work"]
__all__ += ["rate_on_trees", "richer_work", "room", "unseen_rate"]

POWER = 2.0  # with which work grows with the number of functions
GROWTH = 1.5  # least growth of cells and work from one tree to the next


def room(fitter: Fitter, course: Course[Any], fit: Fit, times: float = 1.0) -> float:
    """Return how many more cells memory and budget allow, if a solve with them costs ``times`` as much as one.

    The first solution needs a comparison: the budget always allows to double its cells.
    """
    cells = len(fit.parts)
    affordable = 1.0 if course.stages else float(cells)
    more = GROWTH * affordable
    growth = float((available_memory() / max(fitter.memory, 1.0)) ** (1.0 / _memory_power(fitter)))
    fitting = max(1.0, cells * (growth - 1.0))
    while affordable < fitting and course.budget.affords(times * fitter.work(cells + more, more)):
        affordable, more = more, GROWTH * more
    return min(affordable, fitting)


def _memory_power(fitter: Fitter) -> float:
    """Return the power with which memory grows with the number of cells: fronts are as large as cuts of the domain."""
    return max(1.0, 2.0 - 2.0 / float(fitter.layout.reference.dimension))


def affords_richer(fitter: Fitter, course: Course[Any], fit: Fit, times: float = 1.0) -> bool:
    """Return whether the budget allows a solution with two degrees more on the same tree, ``times`` over."""
    return course.budget.affords(times * richer_work(fitter) * fitter.work(len(fit.parts), len(fit.parts)))


def beside_poorer(
    fitter: Fitter, course: Course[Any], marker: ErrorMarking, fit: Fit, sensitivity: float, most: float
) -> Comparison | None:
    """Return a solution with its error, from one of two degrees less on its tree; None if that is too much work."""
    share, cells = poorer_work(fitter), len(fit.parts)
    poorer, work = fitter.enriched(-2) if share else None, share * fitter.work(cells, cells)
    if poorer is None or work > most or not course.budget.affords(work):
        return None
    found = Comparison(poorer.fit(fit.root, fit), poorer.layout, fit, fitter.layout, math.inf, sensitivity)
    found = found.measured(distances(poorer.layout, found.fit, fitter.layout, fit))
    # Errors are assumed to fall as residuals do, or more slowly where residuals do not show them.
    rate = max(found.fall_of_residual, SLIGHT, unseen_rate(found, marker))
    error = found.apart * beyond(rate) / FALLS
    return replace(found.swapped, estimate=error) if found.fall_of_residual <= FALLS else None


def beyond(rate: float) -> float:
    """Return the error of the better one of two solutions relative to their distance, if errors fall by a rate.

    >>> beyond(0.5), beyond(1.0)
    (1.0, inf)
    """
    return rate / (1.0 - rate) if rate < 1.0 else math.inf


def unseen_rate(last: Comparison, marker: ErrorMarking) -> float:
    """Return the ratio of errors on one tree that residuals do not show: of small fields, and at corners.

    Errors of a small field fall more slowly than the residual by as much as its coefficients fall more slowly than
    those of the largest one. At the end of a crack, which is worst, the error is inversely proportional to the degree.
    """
    own = next((fit for fit, layout in last.solved if layout is marker.layout), None)
    if own is None or not last.is_on_one_tree:
        return 0.0
    poor, rich = last.fit_layout.reference.degree, last.better_layout.reference.degree
    at_corners = poor / rich if marker.is_singular(own) else 0.0
    left, sizes = marker.left_per_degree(own) ** (rich - poor), last.sizes
    relative = last.fall_of_residual * left / max(float(left[sizes.argmax()]), sys.float_info.min)
    small = np.minimum(left, relative)[sizes < SLIGHT * sizes.max()]
    return max(at_corners, float(small.max(initial=0.0)))


def richer_work(fitter: Fitter, degrees: int = 2) -> float:
    """Return the work of cells with some degrees more, relative to the present ones."""
    d, degree = fitter.layout.reference.dimension, fitter.layout.reference.degree
    return float((math.comb(degree + degrees + d, d) / math.comb(degree + d, d)) ** POWER)


def poorer_work(fitter: Fitter) -> float:
    """Return the work of cells with two degrees less, relative to the present ones; zero where they tell no error."""
    return (fitter.layout.reference.dimension > 1) * fitter.layout.problem.is_linear * richer_work(fitter, -2)


def is_cheaper_richer(fitter: Fitter, marker: ErrorMarking, fit: Fit, sizes: FloatArray) -> bool:
    """Return whether richer cells cost less than a finer tree, and give as reliable a comparison."""
    cells, new = len(fit.parts), marker.wanted(fit, sizes)
    cheaper = richer_work(fitter) * fitter.work(cells, cells) < fitter.work(cells + new, new)
    return cheaper and marker.seems_smooth(fit, sizes)


def next_cost(fitter: Fitter, course: Course[Any], comparison: Comparison, wanted: int, *, is_smooth: bool) -> Cost:
    """Return the cost of the next tree with so many more cells, or of richer cells for a smooth solution."""
    times = 1.0 + richer_work(fitter) if comparison.is_on_one_tree else 1.0
    fit, cells = comparison.latest, len(comparison.latest.parts)
    growth = 1.0 + min(wanted, room(fitter, course, fit, times)) / cells
    needed = fitter.memory * growth ** _memory_power(fitter)
    work = times * min(fitter.work(cells + wanted, wanted), GROWTH * fitter.work(cells, cells))
    richer = is_smooth and affords_richer(fitter, course, fit, max(1.0, times - 1.0))
    return Cost("a finer tree of cells", 0.0 if richer else work, needed)


def rate_on_trees(falls: Sequence[float], cells: Sequence[int]) -> float:
    """Return the ratio of the error on the last of four trees to that on the one before; 1 if it is not known.

    It is known if distances fell twice. A tree that a limit kept small is better only in proportion to its growth.

    >>> rate_on_trees([0.25, 0.04], [1, 10, 100, 1000]), round(rate_on_trees([0.25, 0.04], [1, 16, 256, 1024]), 3)
    (0.25, 0.5)
    """
    before, now = math.log(cells[-2] / cells[0]) / 2.0, math.log(cells[-1] / cells[-2])
    if len(falls) < 2 or before <= 0.0:
        return 1.0
    return float(max(falls[-2:]) ** min(1.0, now / before))
