"""The residual table of a solution, measured when it is first read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import FloatArray
from pibls.solution.diagnostics import Residual
from pibls.solution.field_functions import ResidualFunction

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
