"""Functions a solution offers: a field, a derivative of it, the residual of an equation or condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import FloatArray, as_reals, check_choice, check_integer, check_points, cut, shorten
from pibls.errors import InputError
from pibls.geometry.across import BESIDE, points_across
from pibls.geometry.points import PointSet, interior_points
from pibls.problem import (
    Across,
    AnyCondition,
    AtPoints,
    Average,
    Averages,
    Field,
    Interior,
    MultiIndex,
    OnPart,
    Opposite,
    Problem,
    Statement,
    Unknown,
)
from pibls.problem.lowered_equations import lowered
from pibls.problem.statements import condition_statements

if TYPE_CHECKING:
    from pibls.solution.solution import Solution


OUTSIDE = ("nan", "value", "error")


def gather(
    names: tuple[str, ...], X: Any, named: Mapping[str, Any], owner: str, more: tuple[Any, ...] = ()
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """Return an array of points, from an array or from one argument per coordinate, and how to shape the values."""
    if more:
        if named or len(more) + 1 != len(names):
            raise InputError(f"{owner} takes an array of points, or one argument for each coordinate {names}.")
        X, named = None, dict(zip(names, (X, *more), strict=True))
    if X is not None and named:
        raise InputError(f"{owner} takes an array of points or one keyword per coordinate {names}, not both.")
    if X is not None:
        return check_points("X", X, owner, len(names)), lambda values: values
    if set(named) != set(names):
        raise InputError(
            f"{owner} takes an array of points, or a keyword for each coordinate {names}. Got {sorted(named)} instead."
        )
    found = {name: as_reals(named[name]) for name in names}
    try:
        columns = np.broadcast_arrays(*(array for array in found.values() if array is not None))
    except ValueError:
        columns = ()
    if len(columns) < len(names):
        shown = {name: shorten(named[name]) if array is None else array.shape for name, array in found.items()}
        raise InputError(f"The coordinates of {owner} must be real numbers of shapes that fit together. Got {shown}.")
    shape = columns[0].shape
    points = check_points("X", np.stack([c.ravel() for c in columns], axis=1), owner, len(names))
    return points, lambda values: values.reshape(shape)


@dataclass(frozen=True, eq=False)
class ComplexFunction:
    """A complex field of a solution, or a derivative of it, as a function of points."""

    real: FieldFunction
    imaginary: FieldFunction

    def __call__(self, *points: Any, **options: Any) -> Any:
        """Evaluate, as the solution does."""
        return self.real(*points, **options) + 1j * self.imaginary(*points, **options)


@dataclass(frozen=True, eq=False)
class FieldFunction:
    """A field of a solution, or a derivative of it, as a function of points.

    Call it like the solution: on an array, a list, or one keyword per coordinate.
    """

    solution: Solution
    field: str
    multi_index: MultiIndex

    def __call__(self, X: Any = None, *more: Any, outside: str = "nan", **named: Any) -> FloatArray:
        """Evaluate; points outside the domain give NaN, unless ``outside`` is ``"value"`` or ``"error"``."""
        points, shaped = gather(self.solution.coordinate_names, X, named, repr(self), more)
        mask = inside_of(self.solution, points, outside, repr(self))
        values = np.full(len(points), np.nan)
        values[mask] = self.solution.evaluate(points[mask], [(self.field, self.multi_index)])[0]
        return shaped(values)

    def __repr__(self) -> str:
        marks = "".join(n * k for n, k in zip(self.solution.coordinate_names, self.multi_index, strict=True))
        return f"{self.field}_{marks}" if marks else self.field


def inside_of(solution: Solution, points: FloatArray, outside: str, owner: str) -> Any:
    """Tell where values are wanted."""
    check_choice("outside", outside, owner, OUTSIDE)
    if outside == "value":
        return np.ones(len(points), dtype=bool)
    mask = np.asarray(solution.problem.domain.contains(points), dtype=bool)
    if outside == "error" and not mask.all():
        row = int(np.flatnonzero(~mask)[0])
        raise InputError(
            f"{owner} was asked for values outside {solution.problem.domain}: {np.count_nonzero(~mask)} of "
            f"{len(points)} points, first {points[row].tolist()}. Use outside='nan' or 'value' to allow it."
        )
    return mask


@dataclass(frozen=True, eq=False)
class ResidualFunction:
    """Left side minus right side of an equation or condition, as a function of points.

    Call it with points, or use it as an array: then it is evaluated at fresh points of its own place.
    """

    solution: Solution
    statement: Statement

    def __call__(self, X: Any = None, **named: Any) -> FloatArray:
        """Evaluate at points of the place where the equation holds."""
        points, shaped = gather(self.solution.coordinate_names, X, named, "residual")
        place = self.statement.place
        if isinstance(place, Average | Across) or self.statement.targets is not None:
            where = "on average" if isinstance(place, Average | Averages) else "at its own points"
            raise InputError(f"{self.statement.name} holds {where} only; use .values() for its residual.")
        if isinstance(place, Opposite):
            axis = int(np.flatnonzero(place.low.normals(place.low.sample(1).points)[0])[0])
            if not (place.low.contains(points) | place.high.contains(points)).all():
                raise InputError(f"{self.statement.name} holds on opposite faces; give points of one of them.")
            opposite = points.copy()
            opposite[:, axis] = self.solution.problem.domain.bounds[axis].sum() - points[:, axis]
            return shaped(self._at(points, None) - self._at(opposite, None))
        needs = self.statement.form.needs_normals
        normals = place.part.normals(points) if needs and isinstance(place, OnPart) else None
        return shaped(self._at(points, normals))

    def _across(self, X: FloatArray, normals: FloatArray) -> FloatArray:
        """Return the residual on an interface, from fields just beside it on either side."""
        total = np.zeros(len(X))
        step = BESIDE * float(np.ptp(self.solution.problem.domain.bounds, axis=1).max()) * normals
        for form, sign in zip(self.statement.forms, (-1.0, 1.0), strict=True):
            own = X + sign * step
            state = self.solution.evaluate(own, [(term.field, term.multi_index) for term in form.terms])
            total += form.residual_at(own, normals, state)
        return total

    def _at(self, X: FloatArray, normals: FloatArray | None) -> FloatArray:
        form = self.statement.form
        state = self.solution.evaluate(X, [(term.field, term.multi_index) for term in form.terms])
        return np.array(form.residual_at(X, normals, state))

    def values(self, n: int = 500, seed: int = 1) -> FloatArray:
        """Return the residual at ``n`` fresh points of its place (at its own points, for conditions at points)."""
        count = check_integer("n", n, "residual.values", minimum=1)
        place = self.statement.place
        domain = self.solution.problem.domain
        if isinstance(place, Interior):
            return self(interior_points(domain, count, "kronecker", seed))
        if isinstance(place, Average):
            points, weights = domain.quadrature(count)
            return np.atleast_1d(weights @ self._at(points, None) / weights.sum())
        if isinstance(place, AtPoints | Averages):
            values = self._at(place.points, None if isinstance(place, AtPoints) else place.normals)
            if isinstance(place, Averages):
                rule = PointSet(place.points, weights=place.weights, ends=place.ends)
                values = np.array(rule.averaged(values))
            return values if self.statement.targets is None else values - self.statement.targets
        if isinstance(place, Across):
            return self._across(*points_across(place.condition, domain, count, self.statement.name))
        part = place.low if isinstance(place, Opposite) else place.part
        return self(part.sample(count, "kronecker", seed).points)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        del copy
        return self.values().astype(dtype or np.float64)

    def __repr__(self) -> str:
        values = self.values()
        return f"Residual({cut(self.statement.name)}: {np.sqrt(np.mean(values**2)):.1e} rms at {values.size} points)"


def statement_of(problem: Problem, condition: Any) -> Statement:
    """Return the statement of a condition, an equation, or the position of an equation of a problem."""
    if isinstance(condition, int) and not isinstance(condition, bool):
        if not -len(problem.equations) <= condition < len(problem.equations):
            last = len(problem.equations) - 1
            raise InputError(f"The equations are numbered from 0, and the last one is {last}. Got {condition} instead.")
        condition = problem.equations[condition]
    if isinstance(condition, AnyCondition):
        statement = condition_statements(condition, 0, problem.laws)[0]
    else:
        form = lowered(condition, problem.domain, "residual", normals=False)
        statement = Statement("equation", 0, form, Interior())
    calls = {call for form in statement.forms for call in form.expression.atoms(Field)}
    foreign = {call.label for call in calls - set(problem.fields)}
    foreign |= {str(s) for s in statement.form.expression.free_symbols if isinstance(s, Unknown)}
    if foreign:
        raise InputError(
            f"The residual of {statement.name} needs {', '.join(sorted(foreign))}; this solution has only "
            f"{problem.field_names}; write it with the fields of the problem."
        )
    return statement
