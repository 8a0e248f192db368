"""Numbers that further conditions fix, such as eigenvalues: fields that do not vary, found together with the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import sympy as sp
from scipy.special import ndtri

from pibls.budget import Budget
from pibls.cells import solve_cells_nonlinear, suits_cells
from pibls.cells.loop import UNDETERMINED
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.evolution import Evolution, find_evolution
from pibls.inverse.parametric import substituted
from pibls.problem import OnPart, Problem, Unknown, field
from pibls.refinement.standards import MOST, POINTS
from pibls.solution import Solution
from pibls.solution.parameters import Parameter, Parameters
from pibls.status import Status
from pibls.wellposed.counting import conditions_needed, exceeding, exceeds
from pibls.wellposed.principal import conditions_of, subsystems_of


def is_fixed(problem: Problem) -> bool:
    """Tell whether measurements are exact conditions, one for each unknown number."""
    if not problem.parameters or problem.unknown_functions:
        return False
    measured = [s for s in problem.statements if s.targets is not None]
    count = sum(len(s.targets) for s in measured if s.targets is not None)
    return all(s.exact for s in measured) and count <= len(problem.parameters)


def solve_fixed(problem: Problem, tol: float, budget: Budget, seed: int, report: Callable[..., None]) -> Solution:
    """Find numbers that conditions fix.

    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Condition, Dirichlet, coordinates, unknown
    >>> x = coordinates("x")
    >>> u, k, line = field("u", x), unknown("k", start=8), Interval((x, 0, 1))
    >>> steep = Condition(sp.Eq(u.diff(x), 1), on=line.left)
    >>> problem = Problem(-u.diff(x, 2) - k * u, line, [Dirichlet(u, 0), steep])
    >>> found = solve_fixed(problem, 1e-6, Budget(10.0), 0, lambda *_: None)
    >>> bool(abs(found.parameters["k"].value - np.pi**2) < 1e-8)
    True
    """
    guesses = [k.first_guess for k in problem.parameters]
    sizes = [abs(guess) or 1.0 for guess in guesses]
    if _asks_no_more(substituted(problem, dict(zip(problem.parameters, map(sp.Float, guesses), strict=True)))):
        raise ProblemError(unmeasured(problem))
    larger = _with_fields(problem, guesses, sizes)
    found = solve_cells_nonlinear(larger, tol, budget, seed, report) if suits_cells(larger) else None
    if found is None or _is_open(found):
        raise ProblemError(unmeasured(problem))
    X = problem.domain.sample(POINTS, "kronecker", 0)
    columns = found.evaluate(X, [(k.name, (0,) * X.shape[1]) for k in problem.parameters])
    rows = zip(problem.parameters, guesses, sizes, columns, strict=True)
    entries = tuple(_entry(k, guess + size * own, found.error_estimate) for k, guess, size, own in rows)
    values = {k: sp.Float(entry.value) for k, entry in zip(problem.parameters, entries, strict=True)}
    kept = [larger.field_names.index(name) for name in problem.field_names]
    return replace(
        found,
        problem=substituted(problem, values),
        weights=found.weights[kept],
        richer=None if found.richer is None else (found.richer[0], found.richer[1][kept]),
        parameters=Parameters(entries, np.eye(len(entries))),
        diagnostics=replace(
            found.diagnostics, message=f"{', '.join(map(str, entries))}. {found.diagnostics.message}", residuals={}
        ),
    )


def _asks_no_more(problem: Problem) -> bool:
    """Tell whether there are only as many conditions as determine the fields alone, or fewer."""
    given = [s for s in problem.statements if not s.is_equation]
    if not all(isinstance(s.place, OnPart) and s.form.is_linear for s in given):
        return False
    if problem.domain.time is not None and problem.domain.space:
        evolution = find_evolution(problem)
        counts = conditions_needed(evolution) if isinstance(evolution, Evolution) else None
        return isinstance(evolution, Evolution) and counts is not None and not exceeds(evolution, counts)
    systems = subsystems_of(problem)
    needed = conditions_of(problem, systems[-1]) if systems else None
    if needed is None or len(problem.domain.coordinates) > 1:
        return needed is not None and not exceeding(problem, given, needed)[0]
    return bool(sum(s.place.part.measure for s in given if isinstance(s.place, OnPart)) <= needed)


def _is_open(found: Solution) -> bool:
    """Tell whether something can be added to a solution that did not converge."""
    answers = [stage.answer for stage in found.diagnostics.stages if stage.answer is not None]
    endless = min(answers[-2:], default=0.0) > UNDETERMINED or (found.error_estimate or 0.0) > MOST
    return found.status == Status.ILL_POSED or (endless and found.status != Status.CONVERGED)


def _with_fields(problem: Problem, guesses: list[float], sizes: list[float]) -> Problem:
    """Return a problem with a field for every number: by how many times a size it is more than its first guess."""
    coordinates = problem.domain.coordinates
    fields = [field(k.name, *coordinates) for k in problem.parameters]
    rows = zip(problem.parameters, guesses, sizes, fields, strict=True)
    values = {k: guess + size * own for k, guess, size, own in rows}
    return substituted(problem, values, [own.diff(symbol) for own in fields for symbol in coordinates])


def _entry(number: Unknown, values: FloatArray, estimate: float | None) -> Parameter:
    """Return a number from its values at points, which should all be the same."""
    value = float(np.mean(values))
    error = max(float(np.std(values)), (1.0 if estimate is None else estimate) * abs(value))
    sure = float(ndtri(0.975))
    found = Parameter(number.name, value, error, (value - sure * error, value + sure * error), error)
    low, high = number.bounds or (None, None)
    if (low is not None and value < low) or (high is not None and value > high):
        raise ProblemError(
            f"Conditions fix {found}, which is outside of its bounds. Give another start, as "
            f"unknown('{number.name}', start=...), or other bounds."
        )
    return found


def unmeasured(problem: Problem) -> str:
    """Say that nothing was measured that could determine the unknowns of a problem."""
    names = ", ".join([*map(str, problem.parameters), *map(str, problem.unknown_functions)])
    return (
        f"Nothing was measured that could determine {names}, and no further condition does, such as the size or the "
        "slope of u at a point, that agrees with the others. Add what was measured as Observation(u, points, values), "
        "or give priors and solve with uncertainty=True."
    )
