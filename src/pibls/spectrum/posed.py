"""Whether conditions determine eigenfunctions: too few of them, or too many, are counted whatever the eigenvalue."""

from __future__ import annotations

import numpy as np

from pibls.problem import AtPoints, Average, OnPart, Problem, Statement
from pibls.refinement.standards import POINTS
from pibls.solution import Solution
from pibls.spectrum.pencil import Pencil
from pibls.wellposed.counting import bare_parts
from pibls.wellposed.surplus import end_by_end, surplus_of
from pibls.wellposed.uniqueness import free_level, free_motion


def flaw_of(pencil: Pencil, value: float) -> str:
    """Say where conditions are missing, or which fields have no level; else an empty text."""
    ordinary = _ordinary(pencil, value)
    return bare_parts(ordinary) or free_level(ordinary) or free_motion(ordinary)


def one_too_many(pencil: Pencil, value: float) -> tuple[tuple[Statement, ...], Problem]:
    """Return the conditions beyond those that determine eigenfunctions, and the problem without them."""
    problem, ordinary = end_by_end(pencil.problem), end_by_end(_ordinary(pencil, value))
    beyond = surplus_of(ordinary)
    pairs = zip(problem.statements, ordinary.statements, strict=True)
    found = tuple(own for own, other in pairs if other in beyond)
    if any(s.form.residual.has(pencil.symbol) for s in found):
        return (), problem
    return found, problem.with_statements([s for s in problem.statements if s not in found])


def missed(solution: Solution, statement: Statement) -> float:
    """Return how far an eigenfunction is from keeping a condition, relative to the size that its terms have inside."""
    form, place = statement.form, statement.place
    inside = solution.problem.domain.sample(POINTS, "kronecker", 1)
    slots = [(term.field, term.multi_index) for term in form.terms]
    sizes = [float(np.abs(own).max()) for own in solution.evaluate(inside, slots)]
    X, normals = (place.points, None) if isinstance(place, AtPoints) else (inside, None)
    if isinstance(place, OnPart):
        X, normals = place.part.sample(POINTS, "kronecker", 1)
    left = form.residual_at(X, normals, solution.evaluate(X, slots))
    factors = (np.abs(own(X, normals)).max() for own in form.coefficient_functions)
    size = max(factor * own for factor, own in zip(factors, sizes, strict=True))
    return float(np.abs(left.mean() if isinstance(place, Average) else left).max() / size)


def _ordinary(pencil: Pencil, value: float) -> Problem:
    """Return the problem with a number in the place of the eigenvalue, and the equations as they were written."""
    found = pencil.at(value)
    return found.with_statements(found.statements, equations=pencil.problem.equations)
