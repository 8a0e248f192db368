"""Surplus: conditions beyond those that determine a solution, which agree with it or contradict it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pibls.checks import FloatArray
from pibls.problem import AtPoints, Average, OnPart, Problem, Statement
from pibls.problem.analysis import analysis_of
from pibls.refinement.standards import POINTS, SLIGHT
from pibls.wellposed.counting import counted, exceeds, named, sampled
from pibls.wellposed.principal import conditions_of, subsystems_of

if TYPE_CHECKING:
    from pibls.evolution.form import Evolution


def surplus(evolution: Evolution, needed: dict[str, int]) -> tuple[Statement, ...]:
    """Return conditions beyond those that determine a solution: it either keeps them by itself, or there is none."""
    if len(needed) > 1 or evolution.pulled or not all(isinstance(s.place, OnPart) for s in evolution.boundary):
        return ()
    ((_, enough),) = needed.items()
    if not enough or not exceeds(evolution, needed):
        return ()
    return _beyond(sampled(evolution.problem), evolution.problem, evolution.boundary, enough)


def _beyond(
    X: FloatArray, problem: Problem, given: Sequence[Statement], enough: int | FloatArray
) -> tuple[Statement, ...]:
    """Return conditions without which those on parts are just enough at points all along the boundary.

    Those of lower order are kept first, and of the same order those that hold on more of the boundary.
    """
    kept, parts = list[Statement](), [s for s in given if isinstance(s.place, OnPart)]
    for statement in sorted(parts, key=lambda s: (s.form.order, -counted(problem, X, [s]).sum())):
        if not (counted(problem, X, [*kept, statement]) > enough).any():
            kept.append(statement)
    if (counted(problem, X, kept) < enough).any():
        return ()
    return tuple(s for s in given if s not in kept)


def surplus_of(problem: Problem) -> tuple[Statement, ...]:
    """Return conditions on one field without which it may be determined.

    That is known on a line, of elliptic equations, and where values are carried in.

    >>> from pibls.geometry import Interval, Rectangle
    >>> from pibls.problem import Dirichlet, Mean, Neumann, coordinates, field, laplacian
    >>> x, y = coordinates("x y")
    >>> u, square = field("u", x, y), Rectangle((x, 0, 1), (y, 0, 1))
    >>> conditions = [Neumann(u, 0, on=square.left), Dirichlet(u, 0), Mean(u, 0)]
    >>> [s.name for s in surplus_of(Problem(laplacian(u) - u**3, square, conditions))]
    ['Neumann(dn(u) = 0 on left)', 'Mean(u = 0 on average)']
    >>> w, line = field("w", x), Interval((x, 0, 1))
    >>> ends = [Dirichlet(w, x), Dirichlet(w.diff(x), 2, on=line.left)]
    >>> [[s.name for s in surplus_of(Problem(w.diff(x, k), line, ends))] for k in (2, 3)]
    [['Dirichlet(w_x = 2 on left)'], []]
    """
    given = [s for s in problem.statements if not s.is_equation]
    usual = (s.form.is_linear and s.weight == 1.0 and s.targets is None for s in given)
    if not all(usual) or not all(isinstance(s.place, OnPart | AtPoints | Average) for s in given):
        return ()
    if len(problem.domain.coordinates) == 1:
        return _beyond_on_line(problem, given)
    if len(problem.fields) > 1 or problem.domain.time is not None or len(given) < 2:
        return ()
    if (carried := _entering(problem)) is not None:
        return _beyond(carried[0], problem, given, carried[1])
    enough = [conditions_of(problem, subsystem) for subsystem in subsystems_of(problem)]
    return _beyond(sampled(problem), problem, given, enough[0]) if enough and enough[0] else ()


def _entering(problem: Problem) -> tuple[FloatArray, FloatArray] | None:
    """Return points of the boundary and how many values enter there, one or none; None if none are carried through.

    Where values are carried along the boundary, they may be given or not.
    """
    forms = problem.laws.forms
    carries = len(forms) == len(problem.fields) == 1 and forms[0].is_linear and forms[0].order == 1
    if not carries or problem.domain.time is not None or problem.domain.boundary.empty:
        return None
    X = sampled(problem)
    normals, through, fastest = problem.domain.boundary.normals(X), np.zeros(len(X)), 0.0
    for term, function in zip(forms[0].terms, forms[0].coefficient_functions, strict=True):
        if term.order:
            speed = function(X, normals)
            through += speed * normals[:, term.multi_index.index(1)]
            fastest = max(fastest, float(np.abs(speed).max()))
    across = np.abs(through) > SLIGHT * fastest
    return X[across], np.where(through[across] < 0, 1.0, 0.0)


def end_by_end(problem: Problem) -> Problem:
    """Return a problem whose conditions on several named parts are several, on a line and where values are carried.

    Any other problem is returned as it is.
    """
    if len(problem.domain.coordinates) != 1 and _entering(problem) is None:
        return problem
    found = list[Statement]()
    for statement in problem.statements:
        part = statement.place.part if isinstance(statement.place, OnPart) else None
        ends = {
            name: end
            for name, end in named(problem).items()
            if part is not None and part.contains(end.sample(POINTS, "kronecker").points).all()
        }
        if part is None or not np.isclose(sum(end.measure for end in ends.values()), part.measure):
            found.append(statement)
            continue
        before, on, _ = statement.name.rpartition(" on ")
        found += [replace(statement, place=OnPart(end), name=f"{before}{on}{name})") for name, end in ends.items()]
    return problem.with_statements(found)


def _beyond_on_line(problem: Problem, given: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return conditions on a line without which there are as many as determine a solution.

    Those inside come before those at the ends, and the last before the first. Least squares put what they contradict
    into an ever smaller cell, where nothing is seen of it.
    """

    def count(statement: Statement) -> int:
        place = statement.place
        if isinstance(place, OnPart):
            return int(place.part.measure)
        return len(place.points) if isinstance(place, AtPoints) else 1

    beyond, found = sum(map(count, given)) - int(analysis_of(problem).orders.sum()), list[Statement]()
    for statement in (s for at_end in (False, True) for s in given[::-1] if isinstance(s.place, OnPart) == at_end):
        if count(statement) <= beyond:
            beyond -= count(statement)
            found.append(statement)
    return () if beyond else tuple(found)
