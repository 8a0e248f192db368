"""The sizes that errors of fields are relative to.

Components of a vector are measured by the size of the vector: which of them is small depends on the coordinates. Any
other field is measured by its own size; but a field that is zero has none. Equations say how large it could be: in
u_t = v_x on a time T and a length L, v is of the size u L/T. A field far below that is measured by a hundredth of it
instead, unless it has data of its own: a trace of a substance is given by a value or a source that is not zero, however
small, and counts by its own size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem import AtPoints, OnPart, Problem, Statement
from pibls.problem.vector_fields import vectors_of

if TYPE_CHECKING:
    from pibls.solution.solution import Solution

SHARE = 0.01
"""Share of the size that equations suggest for a field below which its own size counts as nothing."""

_POINTS = 50
_SAMPLES = 2000  # points at which two solutions are compared all over the domain


def reference_sizes(problem: Problem, sizes: Mapping[str, float]) -> dict[str, float]:
    """Return the size that the error of each field is relative to, from the sizes of all fields.

    >>> from pibls.problems import stokes
    >>> reference_sizes(stokes(), {"p": 7.0, "u": 4.0, "v": 3.0})
    {'p': 7.0, 'u': 5.0, 'v': 5.0}
    """
    natural = natural_sizes(problem, sizes)
    found = {name: max(size, SHARE * natural[name]) for name, size in sizes.items()}
    for vector in vectors_of(problem):
        found |= dict.fromkeys(vector, float(np.linalg.norm([sizes[name] for name in vector])))
    return found


def natural_sizes(problem: Problem, sizes: Mapping[str, float]) -> dict[str, float]:
    """Return how large each field could be, and is at least: as large as balances another in a linear equation.

    Where two fields meet in several equations, or by way of a third, the way that suggests least counts.
    Derivatives are taken to divide by half the widths of the domain.
    """
    if len(sizes) == 1 or not 0 < max(sizes.values()) < np.inf:
        return dict(sizes)
    own = np.array([sizes[name] for name in problem.field_names])
    suggested = (own[:, None] * problem.once(_gains)).max(axis=0)
    told = problem.once(_given) > np.finfo(np.float64).eps / SHARE * suggested
    found = np.where(told, own, np.maximum(own, suggested))
    return dict(zip(problem.field_names, found.tolist(), strict=True))


def _given(problem: Problem) -> FloatArray:
    """Return the size that each field is given by values and sources in statements of that field alone."""
    half, found = np.ptp(problem.domain.bounds, axis=1) / 2, np.zeros(len(problem.fields))
    for statement, size, X, normals in sources(problem):
        form = statement.form
        if form.is_linear and len(form.fields) == 1:
            largest = max(
                float(np.abs(function(X, normals)).max()) / float(np.prod(half ** np.array(term.multi_index)))
                for term, function in zip(form.terms, form.coefficient_functions, strict=True)
            )
            field = problem.field_names.index(form.fields[0])
            found[field] = max(found[field], size / largest)
    return found


def sources(problem: Problem) -> Iterator[tuple[Statement, float, FloatArray, FloatArray | None]]:
    """Yield statements with data that are not zero, their largest value, and the points and normals it is one of."""
    for statement in problem.statements:
        place, normals = statement.place, None
        if statement.form.source == 0:
            continue
        if isinstance(place, OnPart):
            X, normals = place.part.sample(_POINTS, "kronecker", 1)
        else:
            X = place.points if isinstance(place, AtPoints) else problem.domain.sample(_POINTS, "kronecker", 1)
        try:
            yield statement, float(np.abs(statement.form.source_function(X, normals)).max()), X, normals
        except ProblemError:
            continue  # data may be infinite in a corner


def _gains(problem: Problem) -> FloatArray:
    """Return the size that a field of size one suggests for each other; zero where nothing connects them."""
    names = problem.field_names
    gains = np.full((len(names), len(names)), np.inf)
    for own in _factors(problem):
        factors = np.array([own.get(name, np.nan) for name in names])
        gains = np.fmin(gains, factors[:, None] / factors)
    # No field is passed twice: each round would suggest less.
    np.fill_diagonal(gains, np.inf)
    gains = np.minimum(gains, (gains[:, :, None] * gains).min(axis=1))
    return np.where(np.isfinite(gains), gains, 0.0)


def _factors(problem: Problem) -> list[dict[str, float]]:
    """Return how strongly each field enters each linear equation that has several."""
    half = np.ptp(problem.domain.bounds, axis=1) / 2
    X = problem.domain.sample(_POINTS, "kronecker", 1)
    found = []
    for statement in problem.statements:
        form = statement.form
        if not (statement.is_equation and form.is_linear and len(form.fields) > 1):
            continue
        own = dict.fromkeys(form.fields, 0.0)
        for term, function in zip(form.terms, form.coefficient_functions, strict=True):
            size = float(np.sqrt(np.mean(np.square(function(X))))) / float(np.prod(half ** np.array(term.multi_index)))
            own[term.field] = max(own[term.field], size)
        own = {name: factor for name, factor in own.items() if factor > 0}
        if len(own) > 1:
            found.append(own)
    return found


def errors_by_field(solution: Solution, X: FloatArray, roots: FloatArray) -> dict[str, float]:
    """Return the estimated error of each field, from the distance of a solution to a richer one at weighted points.

    The largest is the estimated error of the solution; one that is not known is that of all fields.

    >>> from pibls import problems, solve
    >>> solution = solve(problems.stokes(), tol=1e-4)
    >>> sorted(solution.error_estimates), max(solution.error_estimates.values()) == solution.error_estimate
    (['p', 'u', 'v'], True)
    """
    names, estimate = solution.problem.field_names, solution.error_estimate or 0.0
    if len(names) == 1 or solution.richer is None or not np.isfinite(estimate):
        return dict.fromkeys(names, estimate)
    found = _distances(solution, X, roots)
    worst = max(found.values())
    return {name: estimate * (error / worst if worst > 0.0 else 1.0) for name, error in found.items()}


def share_of_distance(solution: Solution) -> float:
    """Return the estimated error of a solution over its distance to the other one of the estimate.

    It is above one if the distance was extrapolated, and below one if the other solution is the worse one of both.

    >>> from pibls import problems, solve
    >>> round(share_of_distance(solve(problems.helmholtz(), tol=1e-2)), 1)
    1.0
    >>> share_of_distance(solve(problems.annulus(), tol=1e-6)) < 0.5
    True
    """
    estimate = solution.error_estimate
    if solution.richer is None or not estimate or not np.isfinite(estimate):
        return 1.0
    apart = max(_distances(solution, *solution.spread(_SAMPLES, seed=1)).values())
    return float(estimate / apart) if apart > 0.0 else 1.0


def _distances(solution: Solution, X: FloatArray, roots: FloatArray) -> dict[str, float]:
    """Return the relative distance of each field to that of the other solution of the estimate, at weighted points."""
    names, both = solution.problem.field_names, (solution, solution.richer_solution)
    wanted = [(name, (0,) * X.shape[1]) for name in names]
    own, other = (dict(zip(names, made.evaluate(X, wanted), strict=True)) for made in both)
    sizes = reference_sizes(solution.problem, {name: float(linalg.norm(roots * own[name])) for name in names})
    return {n: float(linalg.norm(roots * (own[n] - other[n]))) / (sizes[n] or 1.0) for n in names}


def field_scales(problem: Problem, sizes: FloatArray) -> FloatArray:
    """Return the sizes that errors are relative to, from those of the fields in order; one where none is known."""
    if len(sizes) > 1:
        found = reference_sizes(problem, dict(zip(problem.field_names, sizes.tolist(), strict=True)))
        sizes = np.array([found[name] for name in problem.field_names])
    return np.where(sizes > 0.0, sizes, 1.0)
