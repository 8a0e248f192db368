"""Prices of the next solution on cells: its work, and the cells that fit into budget and memory."""

from __future__ import annotations

import math
from typing import Any

from pibls.cells.fitters import Fitter
from pibls.cells.solve import Fit
from pibls.refinement import Course
from pibls.runtime import available_memory

__all__ = ["GROWTH", "POWER", "affords_richer", "richer_work", "room"]

POWER = 2.0  # with which work grows with the number of functions, and memory with that of cells
GROWTH = 1.5  # least growth of cells and work from one tree to the next


def room(fitter: Fitter, course: Course[Any], fit: Fit, times: float = 1.0) -> float:
    """Return how many more cells memory and budget allow, if a solve with them costs ``times`` as much.

    The first solution needs a comparison: the budget always allows to double its cells.
    """
    cells = len(fit.parts)
    work = 1.0 if course.stages else float(cells)
    memory = max(1.0, cells * (available_memory() / (POWER * max(fitter.memory, 1.0)) - 1.0))
    while work < memory and course.budget.affords(times * fitter.work(cells + GROWTH * work, GROWTH * work)):
        work *= GROWTH
    return min(work, memory)


def affords_richer(fitter: Fitter, course: Course[Any], fit: Fit, times: float = 1.0) -> bool:
    """Return whether the budget allows a solution with two degrees more on the same tree, ``times`` over."""
    cells = len(fit.parts)
    return course.budget.affords(times * richer_work(fitter) * fitter.work(cells, cells))


def richer_work(fitter: Fitter) -> float:
    """Return the work of cells with two degrees more, relative to the present ones."""
    d, degree = fitter.layout.reference.dimension, fitter.layout.reference.degree
    return float((math.comb(degree + 2 + d, d) / math.comb(degree + d, d)) ** POWER)
