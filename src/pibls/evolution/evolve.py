"""The method of lines as one function: an evolution and a tolerance in, a checked solution out."""

from __future__ import annotations

import numpy as np

from pibls.budget import Budget
from pibls.checks import FloatArray, check_integer, check_number, shorten
from pibls.errors import InputError, ProblemError
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.basis import compressed
from pibls.evolution.constraint import leak
from pibls.evolution.design import Design
from pibls.evolution.form import Evolution, compiled, find_evolution
from pibls.evolution.multipliers import Unsuitable
from pibls.evolution.refinement_in_time import RefinementInTime, Report
from pibls.problem import Problem
from pibls.problem.analysis import analysis_of
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
) -> Solution | Unsuitable:
    """Solve an evolution by the method of lines: broad features in space, a stiff integrator in time.

    Features are refined until a finer solution, integrated more accurately, agrees to the tolerance; where the
    solution has fronts, steep nodes and quadrature points are placed along the way they take. On a line, boundary
    conditions hold exactly, by construction; in more dimensions they are met as accurately as the equation.

    Parameters
    ----------
    problem
        A problem on ``space * TimeInterval``, or on a ``TimeInterval`` alone, that can be solved for its highest
        derivatives in time; linear or not.
    tol
        Relative L2 error to reach.
    seed
        Seed of the nodes.
    budget
        Nominal seconds after which nothing finer is tried, or the budget that this shares with other tries. Operations
        are counted, so that the same call gives the same solution everywhere.
    report
        Called as ``report(stage, seconds, features, residual, estimate)`` at every step.
    assume_well_posed
        Whether the problem is known to have one solution: then none is called ill-posed.

    Returns
    -------
    Solution, or Unsuitable
        ``status`` is ``"converged"``, ``"stalled"``, or ``"ill-posed"`` for a solution that ceases to exist or that the
        conditions do not determine; problems that are no evolution give an :class:`Unsuitable` with the reason.

    Examples
    --------
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
    found = followed(problem, tolerance, first, budget, report, assume_well_posed=assume_well_posed)
    return found if isinstance(found, Unsuitable) else found[0]


def followed(
    problem: Problem,
    tol: float,
    seed: int,
    budget: Budget,
    report: Report | None = None,
    *,
    assume_well_posed: bool = False,
) -> tuple[Solution, RefinementInTime] | Unsuitable:
    """Solve an evolution as :func:`evolve` does; return the lines as well."""
    evolution = find_evolution(problem)
    if isinstance(evolution, Unsuitable):
        return evolution
    with blas_threads(most=1):
        lines = RefinementInTime(evolution, tol, seed, budget, report or (lambda *_: None), assume_well_posed)
        basis = (
            compressed(*Design.of(evolution).draw(1.0, np.random.default_rng(seed))) if evolution.multipliers else None
        )
        if basis is not None and leak(evolution, basis) > SETTINGS.slight:
            name = evolution.multipliers[0].name
            return Unsuitable(f"the boundary is open to {name}: its flux is not given on all of it")
        return lines.run(), lines


def transits(evolution: Evolution) -> float:
    """Return how much happens: the rate at which the initial values change, relative to them, times the duration.

    A wave of which a period takes one unit of time has 2π per unit; not finite for initial values that are zero. Values
    that jump count for what they are beside the jump, and those of Python functions as if they stayed.

    >>> from pibls.problems import advection_long
    >>> evolution = find_evolution(advection_long())
    >>> round(transits(evolution)) if evolution else None
    1000
    """
    first, last = evolution.limits
    X, weights = (
        (np.empty((1, 0)), np.ones(1)) if evolution.space is None else evolution.space.quadrature(SETTINGS.points)
    )
    X = np.column_stack([X, np.full(len(X), first)])
    try:
        rates = _first_rates(evolution, X)
        sizes = {name: compiled(evolution.initial[name, 0], evolution.problem.domain.coordinates)(X) for name in rates}
    except (ProblemError, np.linalg.LinAlgError):
        return 0.0
    found = 0.0
    for name, rate in rates.items():
        speed, size = (float(np.sqrt(weights @ np.square(own))) for own in (rate, sizes[name]))
        if speed > 0:
            found = max(found, (speed / size) ** (1 / evolution.orders[name]) if size > 0 else np.inf)
    return (last - first) * found


def _first_rates(evolution: Evolution, X: FloatArray) -> dict[str, FloatArray]:
    """Return the highest derivative in time of each field at points of the first time, by a linear problem."""
    coordinates, names = evolution.problem.domain.coordinates, list(evolution.orders)
    equations = [
        e.form for e in analysis_of(evolution.problem).equations if any(t.multi_index[-1] for t in e.form.terms)
    ]
    matrix, rest = np.zeros((len(X), len(equations), len(names))), np.zeros((len(X), len(equations)))
    for row, form in enumerate(equations):
        rest[:, row] = form.source_function(X)
        for term, coefficient in zip(form.terms, form.coefficient_functions, strict=True):
            *index, order = term.multi_index
            state = evolution.initial.get((term.field, order))
            if order == evolution.orders.get(term.field) and not any(index):
                matrix[:, row, names.index(term.field)] = coefficient(X)
            elif state is not None:
                value = state.diff(*zip(coordinates, index, strict=False)) if any(index) else state
                rest[:, row] += coefficient(X) * compiled(value, coordinates)(X)
    return dict(zip(names, -np.linalg.solve(matrix, rest[:, :, None])[:, :, 0].T, strict=True))


def suits_lines(problem: Problem) -> bool:
    """Tell whether lines are tried first.

    For what moves nonlinearly, where space alone has three dimensions, and where more happens than a network over all
    of space and time can hold.
    """
    return problem.domain.time is not None and problem.once(_suits_lines)


def _suits_lines(problem: Problem) -> bool:
    if not problem.is_linear or len(problem.domain.coordinates) == 4:
        return True
    evolution = find_evolution(problem) if len(problem.domain.coordinates) < 4 else None
    # Conditions beyond those that are needed are better left to a check than to a compromise.
    return isinstance(evolution, Evolution) and (
        bool(evolution.surplus) or SETTINGS.eventful < transits(evolution) < np.inf
    )
