"""How good a solution is, from quantities a user has: its residual at points the solve never saw.

Residuals of different equations have different units, and so have those of one equation under features of different
scales. Each is therefore compared with the size of the terms it is made of: 1 means nothing is solved, 1e-16 that the
terms cancel to round-off. The points are held out of the fits but used to choose between them, so that the residual of
what was chosen is a little flattered; the error estimate does not rest on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

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
_VANISHING = float(np.sqrt(np.finfo(np.float64).eps))


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges solutions of one problem at one set of held-out points."""

    problem: Problem
    points: Points
    _known: dict[Statement, tuple[FloatArray, tuple[Any, ...]]] = field(default_factory=dict, repr=False)

    @cached_property
    def judged(self) -> tuple[tuple[str, Statement], ...]:
        """The statements that are judged, by names that differ; measurements have no other points to be judged at."""
        names: dict[str, Statement] = {}
        for number, statement in enumerate(self.problem.statements, start=1):
            if statement.targets is None:
                name = statement.name if statement.name not in names else f"{statement.name} [{number}]"
                names[name] = statement
        return tuple(names.items())

    def __call__(self, evaluate: Evaluate) -> float:
        """Return the relative residual of a solution, or of anything whose derivatives are known at the points."""
        return float(np.sqrt(sum(value**2 for value in self.residuals(evaluate).values())))

    def residuals(self, evaluate: Evaluate) -> dict[str, float]:
        """Return the relative residual of every statement."""
        sizes, found = self.references(evaluate), {}
        for name, statement in self.judged:
            residual = root_mean_square(self.residual(evaluate, statement))
            found[name] = residual / sizes[name] if sizes[name] > 0 else residual
        return found

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
            known, factors = self._parts(statement, evaluate)
            source, sizes_of = root_mean_square(known), [root_mean_square(np.asarray(own)) for own in factors]
            terms = tuple(zip(statement.form.terms, sizes_of, strict=True))
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

    def _parts(self, statement: Statement, evaluate: Evaluate | None) -> tuple[FloatArray, tuple[Any, ...]]:
        """Return source and coefficients at the points of a statement, or of its linearisation at a solution."""
        where, form = self.points.sets[statement.source], statement.form
        X, normals, functions = where.points, where.normals, form.coefficient_functions
        if form.is_linear and statement not in self._known:
            factors = tuple(f.constant if f.constant is not None else f(X, normals) for f in functions)
            self._known[statement] = np.array(form.source_function(X, normals)), factors
        if form.is_linear:
            return self._known[statement]
        assert evaluate is not None
        state = evaluate(X, [(term.field, term.multi_index) for term in form.terms])
        factors = tuple(function(X, normals, state) for function in functions)
        source = form.residual_function(X, normals, state)
        return source - sum(c * values for c, values in zip(factors, state, strict=True)), factors

    def residual(self, evaluate: Evaluate, statement: Statement) -> FloatArray:
        """Return the residual of a statement at its held-out points."""
        where = self.points.sets[statement.source]
        wanted = [(term.field, term.multi_index) for term in statement.form.terms]
        state = evaluate(where.points, wanted)
        if not statement.form.is_linear:
            found = statement.form.residual_function(where.points, where.normals, state)
            return found if where.weights is None else np.array(where.averaged(found))
        source, coefficients = self._parts(statement, evaluate)
        residual: FloatArray = source
        if where.partner is not None:
            residual = np.zeros(len(where))
            state = [here - there for here, there in zip(state, evaluate(where.partner, wanted), strict=True)]
        for coefficient, values in zip(coefficients, state, strict=True):
            residual = residual + coefficient * values
        return residual if where.weights is None else np.array(where.averaged(residual))
