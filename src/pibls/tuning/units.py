"""Units for linear problems with data so large or so small that their squares are beyond floating-point numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import sympy as sp

from pibls.problem import Across, Form, Problem, Statement
from pibls.solution import Solution
from pibls.solution.residuals import ResidualTable
from pibls.solution.sizes import sources


def unit_of(problem: Problem) -> float:
    """Return the size of the data of a linear problem as a power of two, if squares would not hold it; else one.

    >>> import sympy as sp
    >>> from pibls import Dirichlet, Interval, coordinates, field
    >>> x = coordinates("x")
    >>> u, line = field("u", x), Interval((x, 0, 1))
    >>> [unit_of(Problem(u.diff(x, 2), line, [Dirichlet(u, sp.Float(size))])) for size in (3.0, 2.0**800)]
    [1.0, 6.668014432879854e+240]
    """
    limits = np.finfo(np.float64)
    least, most = float(limits.smallest_normal) ** 0.25, float(limits.max) ** 0.25
    # Data are looked at only if a number is written in them that is so large or so small.
    numbers = {abs(number) for s in problem.statements for number in s.form.source.atoms(sp.Number)}
    if not problem.is_linear or all(number == 0 or least < number < most for number in numbers):
        return 1.0
    largest = max((size for _, size, *_ in sources(problem)), default=0.0)
    return 1.0 if largest == 0.0 or least < largest < most else float(2.0 ** np.floor(np.log2(largest)))


def solved_in(unit: float, problem: Problem, solve: Callable[[Problem], Solution]) -> Solution:
    """Solve a linear problem whose data are divided by a unit, and return its solution with that unit."""
    found = solve(problem.with_statements([_divided(statement, unit) for statement in problem.statements]))
    richer = None if found.richer is None else (found.richer[0], unit * found.richer[1])
    made = replace(found, problem=problem, weights=unit * found.weights, richer=richer)
    return replace(made, diagnostics=replace(found.diagnostics, residuals=ResidualTable(made)))


def _divided(statement: Statement, unit: float) -> Statement:
    def form(own: Form) -> Form:
        source = own.source / unit
        return replace(own, residual=own.residual - own.source + source, source=source)

    place, targets = statement.place, statement.targets
    if isinstance(place, Across):
        place = replace(place, outside=form(place.outside))
    given = None if targets is None else targets / unit
    noise = None if statement.noise is None else statement.noise / unit
    return replace(statement, form=form(statement.form), place=place, targets=given, noise=noise)
