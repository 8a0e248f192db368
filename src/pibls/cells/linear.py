"""The automatic solve of a linear problem on cells: a first tree that resolves the data, then finer trees."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pibls.budget import Budget
from pibls.cells.data_refinement import DataRefinement
from pibls.cells.fitters import DEGREES, LinearFitter, degree_for
from pibls.cells.grading import graded
from pibls.cells.layout import Layout
from pibls.cells.local import PER_CELL
from pibls.cells.loop import UNDETERMINED, Diagnose, Loop
from pibls.cells.rows import Rows
from pibls.cells.solve import TreeSolver
from pibls.cells.tree import Cell, leaves, refined, split_along_lines, split_at_planes
from pibls.features.reference import SINES, Cells, draw_reference
from pibls.problem import Averages, Problem
from pibls.refinement import Course
from pibls.refinement.patience import TREES
from pibls.refinement.standards import FIRST, MOST
from pibls.runtime import RATE
from pibls.solution import Solution

__all__ = ["Start", "first_tree", "solve_cells", "start_of", "suits_cells"]

_FEWEST_CELLS = 16  # that data may ask for, however small the budget is
_PER_WEIGHT = 8.0  # operations per cell over the third power of its number of weights


def suits_cells(problem: Problem) -> bool:
    """Return whether cells can solve a problem: one to three coordinates, and a domain with an interior.

    Averages over regions would couple distant cells.
    """
    domain = problem.domain
    if any(isinstance(s.place, Averages) for s in problem.statements):
        return False
    return len(domain.coordinates) in DEGREES and getattr(domain, "atoms", None) is None


def first_tree(data: DataRefinement, tol: float, root: Cell | None = None, *, budget: float = 10.0) -> Cell:
    """Return a tree that resolves the data; along a periodic axis it has at least two cells."""
    rows, most = data.rows, _most_cells(data.rows, FIRST * budget)
    root = data.modes.refined(_aligned(rows, root, most), tol, most)
    return rows.layout.trimmed(data.resolving_data(root, tol, most))


def _work_per_cell(rows: Rows) -> float:
    return PER_CELL + _PER_WEIGHT * float(rows.width) ** 3


def _most_cells(rows: Rows, budget: float) -> int:
    """Return the largest number of cells that a budget pays for."""
    return max(_FEWEST_CELLS, int(budget * RATE / _work_per_cell(rows)))


def _aligned(rows: Rows, root: Cell | None, most: int) -> Cell:
    """Return a tree whose cells follow edges and planes of the domain, and shrink towards its small parts."""
    if root is None:
        root = rows.layout.root
        for axis in rows.traces.periodic:
            root = refined(root, {leaf: [(axis, None)] for leaf in leaves(root)})
        if len(root.edges) or len(root.blunt_edges):
            root = split_along_lines(root)
        root = rows.layout.trimmed(root)
        space = slice(len(rows.problem.domain.space))
        while long := {
            leaf: [(int(leaf.size[space].argmax()), None)]
            for leaf in leaves(root)
            if not len(leaf.blunt_edges)
            and MOST * leaf.size[space].max(initial=0.0) > leaf.size[space].min(initial=np.inf)
        }:
            root = refined(root, long)
            if len(leaves(root)) > _FEWEST_CELLS:
                break
        root = split_at_planes(root) if len(root.marks) else root
    return graded(root, *rows.layout.tree_domain.small_surfaces, most)


class Start(NamedTuple):
    """The data of a problem with its rows, and a first tree that resolves them."""

    data: DataRefinement
    root: Cell


def start_of(
    problem: Problem,
    tol: float,
    budget: Budget | float = 10.0,
    seed: int = 0,
    nodes: Cells = SINES,
    is_stable: bool = False,
) -> Start:
    """Return the data and the first tree of a solve."""
    d, left = len(problem.domain.coordinates), Budget.of(budget).left
    reference = draw_reference(d, degree_for(d, tol), seed, nodes)
    plain = DataRefinement(Rows(Layout(problem, reference, seed, is_stable=is_stable)))
    data, root = _following_waves(plain, tol, left)
    return Start(data, first_tree(data, tol, root, budget=left))


def _following_waves(data: DataRefinement, tol: float, budget: float) -> Start:
    """Return the data for the degree whose cells resolve the waves of the equations with the least work, and the cells.

    A wave takes fewer functions on large cells of a high degree than on small cells of a low one. Cells that do not
    resolve it say nothing of the solution: where needed, waves take the whole budget.
    """
    layout = data.rows.layout
    root = _aligned(data.rows, None, _most_cells(data.rows, FIRST * budget))
    found, least, most = Start(data, root), math.inf, max(_FEWEST_CELLS, int(budget * RATE / PER_CELL))
    for degree in range(layout.reference.degree, degree_for(layout.reference.dimension, 0.0) + 1, 2):
        more = degree - layout.reference.degree
        own = DataRefinement(Rows(layout.enriched(more))) if more else data
        waves = own.modes.resolving_waves(root, tol, most)
        work = math.inf if waves is None else _work(own.rows, waves)
        if waves is not None and work < min(least, max(budget * RATE, _FEWEST_CELLS * _work_per_cell(own.rows))):
            found, least = Start(own, waves), work
        if waves is root:
            break
    return found


def _work(rows: Rows, root: Cell) -> float:
    """Return the operations for the cells of a tree; with constant coefficients, whole cells share their factors."""
    cells, tree_domain = rows.layout.within(root), rows.layout.tree_domain
    if rows.is_constant:
        tree_domain.find_pieces(cells)
    alone = sum(not rows.is_constant or any(tree_domain.pieces(cell).values()) for cell in cells)
    return len(cells) * PER_CELL + max(1, alone) * _PER_WEIGHT * float(rows.width) ** 3


def solve_cells(
    problem: Problem,
    tol: float,
    budget: Budget | float,
    seed: int,
    report: Callable[..., None],
    *,
    undetermined: float = UNDETERMINED,
    nodes: Cells = SINES,
    start: Start | None = None,
    diagnose: Diagnose | None = None,
    solver: Callable[[Rows], TreeSolver] = TreeSolver,
) -> Solution:
    """Solve a linear problem in one to three coordinates on cells; ``diagnose`` tests whether it is well-posed."""
    shared = Budget.of(budget)
    start = start or start_of(problem, tol, shared, seed, nodes)
    linear = LinearFitter(solver(start.data.rows), shared)
    loop = Loop(linear, tol, Course(shared, TREES, report), seed, start.data, undetermined, diagnose=diagnose)
    return loop.run(linear.fit(start.root, None))
