"""Growing a solution on cells: its tree is split where the solution is rough until it is large enough."""

from __future__ import annotations

from dataclasses import replace

from pibls.budget import Budget
from pibls.cells.error_marking import ErrorMarking
from pibls.cells.fitters import LinearFitter
from pibls.cells.layout import Layout
from pibls.cells.loop import Loop
from pibls.cells.outcome import Comparison, field_sizes
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.cells.tree import Cell
from pibls.errors import InputError
from pibls.features.reference import Cells, draw_reference
from pibls.refinement import Course
from pibls.refinement.patience import TREES
from pibls.runtime import blas_threads, require_memory
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork
from pibls.status import Status

__all__ = ["grow_cells", "tree_of"]


def grow_cells(solution: Solution, nodes: int, points: int) -> Solution:
    """Return a solution on a finer tree, with at least so many more weights and interior points, and a new estimate.

    Examples
    --------
    >>> from pibls import problems, solve
    >>> coarse = solve(problems.helmholtz(), tol=1e-3)
    >>> fine = grow_cells(coarse, nodes=100, points=0)
    >>> fine.network.cells > coarse.network.cells, fine.error_estimate < coarse.error_estimate
    (True, True)
    """
    network, record, problem = solution.network, solution.diagnostics, solution.problem
    if not isinstance(network, CellNetwork) or "degree" not in record.settings or not problem.is_linear:
        raise InputError(
            f"A solution by {record.method} grows by cells if pibls.solve made it for a linear problem. Solve again "
            "with a smaller tol."
        )
    cell_nodes = Cells.recorded(record.settings)
    reference = draw_reference(network.dimension, record.settings["degree"], record.seed, cell_nodes)
    layout = Layout(problem, reference, record.seed)
    linear = LinearFitter(TreeSolver(Rows(layout)), Budget(float("inf")))
    course: Course[Comparison] = Course(linear.budget, TREES, lambda *_: None, list(record.stages))
    loop = Loop(linear, 0.0, course, record.seed)
    marker = ErrorMarking(layout)
    with blas_threads(most=1):
        fit = start = linear.fit(tree_of(network, layout.root), None)
        needed = linear.memory * (1.0 + nodes / start.unknowns)
        require_memory(needed, f"Growing by {nodes} weights", "Grow by fewer.")
        while fit is start or fit.unknowns < start.unknowns + nodes or _inside(fit) < _inside(start) + points:
            fit = linear.fit(marker.refined(fit, field_sizes(layout, fit))[0], fit)
        loop.sensitivities.append(linear.sensitivity())
        found = loop.compare(fit)
        course.note(loop.stage(found))
        message = (
            f"Grown by {fit.unknowns - start.unknowns} weights and {_inside(fit) - _inside(start)} points, to "
            f"{len(fit.parts)} cells. The estimated error is {found.estimate:.1e}."
        )
        return loop.solution(found, found.estimate, Status.FITTED, message)


def tree_of(network: CellNetwork, root: Cell) -> Cell:
    """Return the tree of cells of a network, from the root cell of its domain."""

    def built(cell: Cell, number: int) -> Cell:
        axis, first, second = network.tree[number].tolist()
        if axis < 0:
            return cell
        halved = cell.halved(axis, float(network.cuts[number]))
        below, above = halved.halves
        return replace(halved, halves=(built(below, first), built(above, second)))

    return built(root, 0)


def _inside(fit: Fit) -> int:
    """Return the number of points at which the equations hold."""
    return sum(len(part.points) for part in fit.parts)
