"""The method of lines as one function: an evolution and a tolerance in, a checked solution out."""

from __future__ import annotations

import numpy as np

from pibls.budget import Budget
from pibls.checks import check_integer, check_number, shorten
from pibls.errors import InputError
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.basis import compressed
from pibls.evolution.cell_evolution import evolve_on_cells, suits_stages, transits
from pibls.evolution.constraint import leak
from pibls.evolution.design import Design
from pibls.evolution.form import Evolution, find_evolution
from pibls.evolution.multipliers import Unsuitable
from pibls.evolution.refinement_in_time import RefinementInTime, Report
from pibls.problem import Problem
from pibls.refinement.standards import SLIGHT
from pibls.runtime import blas_threads
from pibls.solution import Solution


def evolve(
    problem: Problem,
    *,
    tol: float = 1e-6,
    seed: int = 0,
    budget: Budget | float = 10.0,
    report: Report | None = None,
    assume_well_posed: bool = False,
    stages: bool = True,
) -> Solution | Unsuitable:
    """Follow an evolution in time: on cells in space, or by broad features and a stiff integrator.

    An evolution in the plane is followed on a tree of cells by implicit steps, each of which
    is a few solves with the same factors. Others are solved by the method of lines:
    Features are refined until a finer solution, integrated more accurately, agrees to the tolerance; where the
    solution has fronts, steep nodes and quadrature points are placed along the way they take. On a line, boundary
    conditions hold exactly, by construction; in more dimensions they are met as accurately as the equation. Problems
    that are no evolution give an :class:`Unsuitable` with the reason. See :func:`pibls.solve` for the parameters.

    >>> from pibls.problems import heat_robin
    >>> solution = evolve(heat_robin(), tol=1e-8)
    >>> solution.status, solution.true_error() < 1e-8
    ('converged', True)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"evolve takes a Problem. Got {shorten(problem)} instead.")
    tolerance = check_number("tol", tol, "evolve", minimum=0, exclusive=True)
    if not isinstance(budget, Budget):
        budget = Budget(check_number("budget", budget, "evolve", minimum=0, exclusive=True))
    first = check_integer("seed", seed, "evolve", minimum=0)
    evolution, telling = find_evolution(problem), report or (lambda *_: None)
    if isinstance(evolution, Evolution) and (reason := open_to_flow(evolution, first)):
        return Unsuitable(reason)
    if stages and suits_stages(problem):
        return evolve_on_cells(problem, tolerance, first, budget, telling)
    if isinstance(evolution, Unsuitable):
        return evolution
    with blas_threads(most=1):
        return RefinementInTime(evolution, tolerance, first, budget, telling, assume_well_posed).run()


def open_to_flow(evolution: Evolution, seed: int) -> str:
    """Say why a flow cannot be followed in time, if it leaves by a part of the boundary."""
    if not evolution.multipliers:
        return ""
    with blas_threads(most=1):
        basis = compressed(*Design.of(evolution).draw(1.0, np.random.default_rng(seed)))
        if leak(evolution, basis) <= SLIGHT:
            return ""
    return f"the boundary is open to {evolution.multipliers[0].name}: its flux is not given on all of it"


def suits_lines(problem: Problem) -> bool:
    """Tell whether lines are tried first.

    For what moves nonlinearly, where space has more than one dimension, so that cells in space and time are dear, and
    where more happens than a network over all of space and time can hold. In more than four coordinates that network is
    the only one that can be afforded.
    """
    return problem.domain.time is not None and problem.once(_suits_lines)


def _suits_lines(problem: Problem) -> bool:
    if not problem.is_linear or len(problem.domain.space) > 1:
        return len(problem.domain.coordinates) <= 4
    evolution = find_evolution(problem) if len(problem.domain.coordinates) < 4 else None
    # Conditions beyond those that are needed are better left to a check than to a compromise.
    return isinstance(evolution, Evolution) and (
        bool(evolution.surplus) or SETTINGS.eventful < transits(evolution) < np.inf
    )
