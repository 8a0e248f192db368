"""The automatic solve of a nonlinear problem on cells: a coarse solution first, then the loop of a linear solve.

Every finer tree starts from the solution on the last one and takes a few Gauss–Newton steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pibls.budget import Budget
from pibls.cells.coarse import Coarse, CoarseAttempts
from pibls.cells.data_refinement import DataRefinement
from pibls.cells.fitters import degree_for
from pibls.cells.iterate import NewtonFitter
from pibls.cells.layout import Layout
from pibls.cells.linear import first_tree
from pibls.cells.loop import UNDETERMINED, Diagnose, Loop
from pibls.cells.outcome import Comparison, network_of
from pibls.cells.parts import CellPart
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit
from pibls.cells.starts import values_from
from pibls.cells.state import missed, projected
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.features.reference import SINES, Cells, draw_reference
from pibls.limits import keep
from pibls.problem import Problem
from pibls.refinement import Course
from pibls.refinement.patience import TREES
from pibls.refinement.standards import NEGLIGIBLE, PLAIN
from pibls.solution import Solution
from pibls.solution.start_states import checked_continuation, given_start
from pibls.status import Status

__all__ = ["solve_cells_nonlinear"]


def solve_cells_nonlinear(
    problem: Problem,
    tol: float,
    budget: Budget | float,
    seed: int,
    report: Callable[..., None],
    *,
    start: object = None,
    continuation: Sequence[Problem] = (),
    assume_well_posed: bool = False,
    nodes: Cells = SINES,
    diagnose: Diagnose | None = None,
    early: Diagnose | None = None,
) -> Solution:
    """Solve a nonlinear problem in one to three coordinates by cells; see :func:`pibls.solve`.

    ``early`` diagnoses the coarse solution, or the last where there is no coarse one, and ``diagnose`` the last.

    Examples
    --------
    >>> from pibls.problems import cubic_reaction
    >>> solution = solve_cells_nonlinear(cubic_reaction(), 1e-8, 10.0, 0, lambda *_: None)
    >>> solution.status, solution.true_error() < 1e-8
    ('converged', True)
    """
    shared = Budget.of(budget)
    for easier in checked_continuation(continuation, problem):
        start = solve_cells_nonlinear(easier, max(tol, PLAIN), shared, seed, report, start=start, nodes=nodes)
    newton = NewtonFitter(_layout(problem, max(tol, PLAIN), seed, nodes), max(tol, PLAIN), shared)
    course: Course[Comparison] = Course(shared, TREES, report)
    # Layers move nearly freely, and still have a position.
    loose = np.inf if assume_well_posed else UNDETERMINED / NEGLIGIBLE
    loop = Loop(newton, tol, course, seed, undetermined=loose, diagnose=early)
    return _solved(loop, newton, start, diagnose)


def _solved(loop: Loop, newton: NewtonFitter, start: object, diagnose: Diagnose | None) -> Solution:
    """Solve on a first tree, then on finer ones; the solution on these is diagnosed if that on coarse ones was not."""
    problem, tol, seed = newton.layout.problem, loop.tol, loop.seed
    d = len(problem.domain.coordinates)
    loop.course.tell("scan", 0)
    loop.data = DataRefinement(Rows(newton.layout))
    root = first_tree(loop.data, max(tol, PLAIN))
    given = None if start is None else values_from(given_start(start, problem), problem)
    attempts = CoarseAttempts(newton, loop.course.budget, seed)
    coarse = attempts.solution(root, given)
    if coarse.failure:
        return _uncompared(loop, coarse, Status.ILL_POSED if np.isfinite(loop.undetermined) else Status.STALLED)
    fit = coarse.descent.fit
    asked = [own for own in (diagnose, loop.diagnose) if own is not None]
    if coarse.solved and loop.diagnose is not None:
        # What determines a solution shows on a coarse one, before much is spent on finer ones.
        glance = _uncompared(loop, coarse, Status.STALLED)
        if glance.status == Status.ILL_POSED:
            return glance
        asked.remove(loop.diagnose)
    loop.diagnose = partial(_first_flaw, asked)
    keep(problem, partial(loop.unfinished, newton.layout, fit))
    if degree_for(d, tol) != newton.layout.reference.degree:
        layout = _layout(problem, tol, seed, newton.layout.reference.nodes)
        richer = NewtonFitter(layout, tol, newton.budget, newton.curvature, newton.history)
        fit = _carried(newton, richer, fit, coarse.trees)
        loop.fitter = newton = richer
    loop.remark = coarse.remark
    if given is None and np.isfinite(loop.undetermined):
        loop.ends = partial(attempts.end_beyond, coarse.trees[-1])
    solution = loop.run(fit)
    record = replace(solution.diagnostics, iterations=tuple(newton.history))
    lost = solution.status == Status.STALLED and ((solution.error_estimate or 0.0) >= 1.0 or bool(loop.doubt))
    if lost and loop.ends is not None and (words := loop.ends()):
        record = replace(record, message=f"No solution was found. {words}")
        return replace(solution, status=Status.ILL_POSED, error_estimate=np.inf, diagnostics=record)
    return replace(solution, diagnostics=record)


def _first_flaw(asked: Sequence[Diagnose], solution: Solution, loop: Loop) -> tuple[str, str]:
    """Return the first sentence why a problem is ill-posed that one of several diagnoses finds."""
    found = (own(solution, loop) for own in asked)
    return next((told for told in found if told[0]), ("", ""))


def _carried(newton: NewtonFitter, richer: NewtonFitter, fit: Fit, trees: Sequence[Cell]) -> Fit:
    """Return the solution with richer functions, on the coarsest tree on which they resolve it."""
    network, data = network_of(newton.layout, fit), DataRefinement(Rows(richer.layout))
    zero = (0,) * network.dimension

    def values(part: CellPart, X: FloatArray) -> FloatArray:
        del part
        return network.evaluate(X, [zero])[zero]

    for tree in trees:
        root = first_tree(data, richer.tol, tree)
        weights = projected(richer.layout, root, values)
        if missed(richer.layout, weights, values) < PLAIN:
            break
    return richer.settle(root, values, weights).fit


def _layout(problem: Problem, tol: float, seed: int, nodes: Cells) -> Layout:
    dimension = len(problem.domain.coordinates)
    return Layout(problem, draw_reference(dimension, degree_for(dimension, tol), seed, nodes))


def _uncompared(loop: Loop, coarse: Coarse, status: Status) -> Solution:
    fit, layout = coarse.descent.fit, loop.fitter.layout
    return loop.solution(Comparison(fit, layout, fit, layout, np.inf, 1.0), np.inf, status, coarse.failure)
