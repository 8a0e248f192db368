"""How good a solution is, from quantities a user has: its residual at points the solve never saw.

Residuals of different equations have different units, and so have those of one equation under features of different
scales. Each is therefore compared with the size of the terms it is made of: 1 means nothing is solved, 1e-16 that the
terms cancel to round-off. The points are held out of the fits but used to choose between them, so that the residual of
what was chosen is a little flattered; the error estimate does not rest on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.geometry import Points, PointSet
from pibls.problem import MultiIndex, Problem, Statement
from pibls.solution import Solution

__all__ = ["Judge", "Verdict", "root_mean_square"]

_SIZE_POINTS = 200
_Magnitudes = Mapping[tuple[str, MultiIndex], float]


@dataclass(frozen=True)
class Verdict:
    """Relative residuals at held-out points, per statement."""

    parts: Mapping[str, float]

    @property
    def total(self) -> float:
        """Root of the sum of squares over the statements."""
        return float(np.sqrt(sum(value**2 for value in self.parts.values())))

    @property
    def worst(self) -> str:
        """Name of the statement with the largest relative residual."""
        return max(self.parts, key=lambda name: self.parts[name])


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges solutions of one problem at one set of held-out points."""

    problem: Problem
    points: Points

    def __call__(self, solution: Solution) -> Verdict:
        """Return the relative residual of every statement."""
        sizes = self.magnitudes(solution)
        parts: dict[str, float] = {}
        for statement in self.problem.statements:
            where = self.points.sets[statement.source]
            residual, size = _residual_and_size(solution, statement, where, sizes)
            if statement.targets is not None:
                # Held-out points have no measurements; the fit itself judges those.
                continue
            parts[statement.name] = residual / size if size > 0 else residual
        return Verdict(parts)

    def magnitudes(self, solution: Solution) -> _Magnitudes:
        """Return the root-mean-square size inside the domain of every derivative that occurs."""
        keys = list({(t.field, t.multi_index): None for s in self.problem.statements for t in s.form.terms})
        values = solution.evaluate(self.points.interior[:_SIZE_POINTS], keys)
        return {key: root_mean_square(value) for key, value in zip(keys, values, strict=True)}


def root_mean_square(values: Any) -> float:
    """Return the root mean square of an array.

    >>> root_mean_square([3.0, 4.0, 0.0, 0.0])
    2.5
    """
    return float(np.sqrt(np.mean(np.square(np.asarray(values, dtype=np.float64)))))


def _residual_and_size(
    solution: Solution, statement: Statement, where: PointSet, sizes: _Magnitudes
) -> tuple[float, float]:
    """Return the residual of a statement and the size of the terms it is made of."""
    form = statement.form
    X, normals = where.points, where.normals
    wanted = [(term.field, term.multi_index) for term in form.terms]
    state = solution.evaluate(X, wanted)
    source: FloatArray = np.array(form.source_function(X, normals))
    size = root_mean_square(source) ** 2
    residual = source
    opposite = None if where.partner is None else solution.evaluate(where.partner, wanted)
    if opposite is not None:
        residual = np.zeros(len(X))
        state = [here - there for here, there in zip(state, opposite, strict=True)]
    for term, function, values in zip(form.terms, form.coefficient_functions, state, strict=True):
        coefficient: Any = function.constant if function.constant is not None else function(X, normals)
        residual = residual + coefficient * values
        size += root_mean_square(coefficient) ** 2 * sizes[term.field, term.multi_index] ** 2
    if where.weights is not None:
        residual = np.atleast_1d(where.weights @ residual)
    return root_mean_square(residual), float(np.sqrt(size))
