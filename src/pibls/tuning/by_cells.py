"""Solves by cells, and what they mean where they do not converge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pibls.cells import solve_cells
from pibls.problem import OnPart, Problem
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.tuning.campaign import Campaign
from pibls.tuning.laboratory import Laboratory
from pibls.tuning.progress import Progress

__all__ = ["solve_by_cells", "suits_cells"]

_MOST_COORDINATES = 3
_SENSITIVE = 100.0  # answers of well-posed problems are of the size of one
_UNMET = 0.1
_POINTS = 200


def suits_cells(problem: Problem) -> bool:
    """Tell whether a problem can be solved on a tree of cells: one to three coordinates, and a domain with an inside."""
    domain = problem.domain
    return len(domain.coordinates) <= _MOST_COORDINATES and getattr(domain, "atoms", None) is None


def solve_by_cells(
    problem: Problem, tol: float, budget: float, seed: int, report: Callable[[Progress], None]
) -> Solution:
    """Solve a linear problem by cells; where that fails, find out whether the problem is to blame."""
    with blas_threads(most=1):
        solution = solve_cells(problem, tol, budget, seed, lambda *facts: report(Progress(*facts)))
        sensitive = solution.diagnostics.stages[-1]["answer"] > _SENSITIVE
        if not sensitive and (solution.status == "converged" or not _is_unmet(solution)):
            return solution
        return _judged(solution, tol, budget, seed)


def _is_unmet(solution: Solution) -> bool:
    """Tell whether a condition is plainly not fulfilled."""
    for statement in solution.problem.statements:
        if not isinstance(statement.place, OnPart):
            continue
        samples = statement.place.part.sample(_POINTS, "sobol", 3)
        form = statement.form
        state = solution.evaluate(samples.points, [(term.field, term.multi_index) for term in form.terms])
        left = form.residual_function(samples.points, samples.normals, state)
        source = form.source_function(samples.points, samples.normals)
        size = max(np.abs(source).max(), np.abs(left - source).max())
        if np.sqrt(np.mean(left**2)) > _UNMET * size:
            return True
    return False


def _judged(solution: Solution, tol: float, budget: float, seed: int) -> Solution:
    """Return a solution as ill-posed if the problem leaves something open, or contradicts itself."""
    campaign = Campaign(Laboratory(solution.problem, seed), tol, budget, lambda _: None)
    ambiguity = campaign.ambiguity()
    if ambiguity is not None:
        message = ambiguity.in_words(solution.problem, campaign.lab.compare_points)
    elif campaign.find_contradiction():
        worst = max(solution.diagnostics.residuals.items(), key=lambda item: item[1].rms)
        message = (
            f"The equations and conditions contradict each other: {worst[0]} keeps a residual of {worst[1].rms:.1g} "
            "however many cells there are, though the best compromise is found. Check signs and values, or remove a "
            "condition."
        )
    else:
        return solution
    return replace(solution, status="ill-posed", diagnostics=replace(solution.diagnostics, message=message))
