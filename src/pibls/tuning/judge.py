"""How good a solution is, from quantities a user has: its residual at points the solve never saw.

Residuals of different equations have different units, and so have those of one equation under features of different
scales. Each is therefore compared with the size of the terms it is made of: 1 means nothing is solved, 1e-16 that the
terms cancel to round-off. The points are held out of the fits but used to choose between them, so that the residual of
what was chosen is a little flattered; the error estimate does not rest on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np

from pibls.checks import FloatArray
from pibls.geometry import Points
from pibls.problem import MultiIndex, Problem, Statement
from pibls.refinement.standards import POINTS
from pibls.solution.residuals import root_mean_square
from pibls.solution.sizes import SHARE, natural_sizes
from pibls.system import Evaluate

# Share of what its fields and the domain suggest below which all terms of a statement count as zero, as those of
# u_xx = 0 are: their residual is rounding, and relative to nothing.
_VANISHING = 1e-8


class Evaluates(Protocol):
    """The object of a judgement: a solution, or anything that knows its derivatives at the points of the judge."""

    def evaluate(self, X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
        """Return derivatives of fields at points."""
        ...


@dataclass(frozen=True)
class Verdict:
    """Relative residuals at held-out points, per statement."""

    parts: Mapping[str, float]

    @property
    def total(self) -> float:
        """Root of the sum of squares over the statements."""
        return float(np.sqrt(sum(value**2 for value in self.parts.values())))


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges solutions of one problem at one set of held-out points."""

    problem: Problem
    points: Points

    @cached_property
    def judged(self) -> tuple[tuple[str, Statement], ...]:
        """The statements that are judged, by names that differ; measurements have no other points to be judged at."""
        names: dict[str, Statement] = {}
        for number, statement in enumerate(self.problem.statements, start=1):
            if statement.targets is None:
                name = statement.name if statement.name not in names else f"{statement.name} [{number}]"
                names[name] = statement
        return tuple(names.items())

    def __call__(self, solution: Evaluates) -> Verdict:
        """Return the relative residual of every statement."""
        sizes = self.references(solution.evaluate)
        parts: dict[str, float] = {}
        for name, statement in self.judged:
            residual = root_mean_square(self.residual(solution.evaluate, statement))
            parts[name] = residual / sizes[name] if sizes[name] > 0 else residual
        return Verdict(parts)

    def references(self, evaluate: Evaluate) -> dict[str, float]:
        """Return the size of each statement, which its residual is relative to: that of its terms, if not zero."""
        keys = [(name, (0,) * len(self._half)) for name in self.problem.field_names]
        keys += [(t.field, t.multi_index) for s in self.problem.statements for t in s.form.terms]
        keys = list(dict.fromkeys(keys))
        values = evaluate(self.points.interior[:POINTS], keys)
        columns = {key: value[:, None] for key, value in zip(keys, values, strict=True)}
        return {name: float(size.item()) for name, size in self.references_of(columns, evaluate).items()}

    def references_of(
        self, values: Mapping[tuple[str, MultiIndex], FloatArray], evaluate: Evaluate | None = None
    ) -> dict[str, FloatArray]:
        """Return the references for many solutions, from derivatives with a column for each.

        One that is no solution of a linear problem is evaluated at the points of statements.
        """
        squares = {key: np.mean(value[:POINTS] ** 2, axis=0) for key, value in values.items()}
        fields = self._natural(squares)
        share = _VANISHING if len(self.problem.field_names) == 1 else SHARE
        sizes: dict[str, FloatArray] = {}
        for name, statement in self.judged:
            source, coefficients = self._magnitudes(statement, evaluate)
            terms = tuple(zip(statement.form.terms, coefficients, strict=True))
            total = sum((c**2 * squares[t.field, t.multi_index] for t, c in terms), np.zeros(()))
            expected = (c * fields[t.field] / np.prod(self._half**t.multi_index) for t, c in terms)
            least = share * reduce(np.maximum, expected, np.zeros(()))
            sizes[name] = np.maximum(np.sqrt(source**2 + total), least)
        return sizes

    def _natural(self, squares: Mapping[tuple[str, MultiIndex], FloatArray]) -> dict[str, FloatArray]:
        """Return how large each field could be, from mean squares with an entry for each solution."""
        names, zero = self.problem.field_names, (0,) * len(self._half)
        own = {name: np.sqrt(squares[name, zero]) for name in names}
        if len(names) == 1:
            return own
        columns = zip(*(sizes.tolist() for sizes in own.values()), strict=True)
        natural = [natural_sizes(self.problem, dict(zip(names, sizes, strict=True))) for sizes in columns]
        return {name: np.array([sizes[name] for sizes in natural]) for name in names}

    @cached_property
    def _half(self) -> FloatArray:
        """Half the widths of the domain."""
        return np.asarray(np.ptp(self.problem.domain.bounds, axis=1) / 2)

    def _magnitudes(self, statement: Statement, evaluate: Evaluate | None) -> tuple[float, list[float]]:
        """Return root mean squares of source and coefficients of a statement, or of its linearisation."""
        source, coefficients = (
            self._known(statement) if statement.form.is_linear else self._tangent(evaluate, statement)
        )
        return root_mean_square(source), [root_mean_square(np.asarray(own)) for own in coefficients]

    def _tangent(self, evaluate: Evaluate | None, statement: Statement) -> tuple[FloatArray, tuple[Any, ...]]:
        assert evaluate is not None
        form, where = statement.form, self.points.sets[statement.source]
        state = evaluate(where.points, [(term.field, term.multi_index) for term in form.terms])
        coefficients = tuple(function(where.points, where.normals, state) for function in form.coefficient_functions)
        source = form.residual_function(where.points, where.normals, state)
        return source - sum(c * values for c, values in zip(coefficients, state, strict=True)), coefficients

    def _known(self, statement: Statement) -> tuple[FloatArray, tuple[Any, ...]]:
        """Return the source and the coefficients of a linear statement at its points, evaluated once."""
        if statement not in self._cache:
            where, form = self.points.sets[statement.source], statement.form
            X, normals = where.points, where.normals
            factors = tuple(f.constant if f.constant is not None else f(X, normals) for f in form.coefficient_functions)
            self._cache[statement] = np.array(form.source_function(X, normals)), factors
        return self._cache[statement]

    @cached_property
    def _cache(self) -> dict[Statement, tuple[FloatArray, tuple[Any, ...]]]:
        return {}

    def residual(self, evaluate: Evaluate, statement: Statement) -> FloatArray:
        """Return the residual of a statement at its held-out points."""
        where = self.points.sets[statement.source]
        wanted = [(term.field, term.multi_index) for term in statement.form.terms]
        state = evaluate(where.points, wanted)
        if not statement.form.is_linear:
            found = statement.form.residual_function(where.points, where.normals, state)
            return found if where.weights is None else np.array(where.averaged(found))
        source, coefficients = self._known(statement)
        residual: FloatArray = source
        if where.partner is not None:
            residual = np.zeros(len(where))
            state = [here - there for here, there in zip(state, evaluate(where.partner, wanted), strict=True)]
        for coefficient, values in zip(coefficients, state, strict=True):
            residual = residual + coefficient * values
        return residual if where.weights is None else np.array(where.averaged(residual))
