"""How far a solution is from fulfilling its statements: a table, measured when it is first read, and conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import FloatArray
from pibls.problem import OnPart, Problem, Statement
from pibls.problem.analysis import analysis_of
from pibls.solution.diagnostics import Residual
from pibls.solution.field_functions import ResidualFunction
from pibls.system import Evaluate

if TYPE_CHECKING:
    from pibls.solution.solution import Solution


_POINTS = 200


class ResidualTable(Mapping[str, Residual]):
    """Residual of each equation and condition at points of its own, by name.

    A solve does not need these numbers, and a small one takes as long as finding them. Copies and pickles hold the
    numbers alone.

    >>> from pibls import problems, solve
    >>> residuals = solve(problems.advection()).diagnostics.residuals
    >>> list(residuals), residuals["the equation"].rows
    (['the equation', 'Dirichlet(u = 1 on left)'], 200)
    """

    def __init__(self, solution: Solution) -> None:
        self._solution = solution

    @cached_property
    def _table(self) -> dict[str, Residual]:
        found = {}
        for statement in self._solution.problem.statements:
            values = ResidualFunction(self._solution, statement).values(_POINTS, seed=7)
            found[statement.name] = Residual(root_mean_square(values), float(np.abs(values).max()), len(values))
        return found

    def __getitem__(self, name: str) -> Residual:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return repr(self._table)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._table,)


def root_mean_square(values: FloatArray) -> float:
    """Return the root of the mean square, also of values whose squares are past the range of numbers.

    >>> root_mean_square(np.array([3e200, -3e200]))
    3e+200
    """
    largest = float(np.abs(values).max(initial=0.0))
    return largest * float(np.sqrt(np.mean((values / largest) ** 2))) if largest > 0 else 0.0


def relative_miss(evaluate: Evaluate, statement: Statement, least: float = 0.0) -> float:
    """Return how far a solution is from keeping a condition, relative to its largest part, or a larger size."""
    form, place = statement.form, statement.place
    if not isinstance(place, OnPart):
        return 0.0  # a single value, or an average: that they differ plainly is all that can be told
    X, normals = place.part.sample(_POINTS, "kronecker", 1)
    state = evaluate(X, [(term.field, term.multi_index) for term in form.terms])
    parts = [f(X, normals) * own for f, own in zip(form.coefficient_functions, state, strict=True)]
    size = max(least, *(root_mean_square(own) for own in [form.source_function(X, normals), *parts]))
    return root_mean_square(form.residual_at(X, normals, state)) / size if size > 0 else 0.0


def lasting_miss(problem: Problem, evaluate: Evaluate) -> float:
    """Return how far a solution is from its initial values if waves last: then it is as far from the later ones.

    Waves too short for its functions may be as invisible to a better solution, so that comparing does not show them.
    """
    if not analysis_of(problem).keeps_waves:
        return 0.0
    first, X = OnPart(problem.domain.parts["initial"]), problem.domain.sample(_POINTS, "kronecker", 1)

    def missed(statement: Statement) -> float:
        slots = [(term.field, term.multi_index) for term in statement.form.terms]
        return relative_miss(evaluate, statement, max(map(root_mean_square, evaluate(X, slots))))

    given = (s for s in problem.statements if s.place == first and s.form.order == 0)
    return max(map(missed, given), default=0.0)
