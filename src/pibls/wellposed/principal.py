"""The principal part of equations, in the sense of Douglis and Nirenberg, and how many conditions it asks for.

Each equation i has a weight s, each field j a weight t, so that no derivative of j in i is of higher order than s + t;
derivatives of that order are the principal part. Where its determinant vanishes in no direction, the equations are
elliptic, and need half as many conditions on every piece of the boundary as the determinant has degrees; on a line they
need as many in all as it has degrees. Where coefficients vanish or are infinite at the boundary, nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.problem import Problem, Statement
from pibls.refinement.standards import NEGLIGIBLE, PLAIN, POINTS, SLIGHT


@dataclass(frozen=True, eq=False)
class Subsystem:
    """Fields that occur in as many equations only: conditions on other fields cannot take the place of theirs."""

    equations: tuple[Statement, ...]
    fields: tuple[str, ...]
    # rows, columns: weights of the equations and of the fields
    rows: list[int]
    columns: list[int]

    @property
    def degree(self) -> int:
        """The degree of the determinant of the principal part."""
        return sum(self.rows) + sum(self.columns)


def subsystems_of(problem: Problem) -> tuple[Subsystem, ...]:
    """Return all fields as a subsystem, and those of them that are one too; none where equations are more or fewer."""
    equations, names = problem.laws.statements, problem.field_names
    if len(equations) != len(names):
        return ()
    orders = np.full((len(names), len(names)), -np.inf)
    for row, equation in enumerate(equations):
        for term in equation.form.terms:
            column = names.index(term.field)
            orders[row, column] = max(orders[row, column], term.order)
    matched = _matched(orders)
    if matched is None:
        return ()
    found = {_closed(orders, matched, {column}) for column in range(len(names))} | {frozenset(range(len(names)))}
    return tuple(
        _subsystem(problem, orders, matched, fields) for fields in sorted(found, key=lambda own: (len(own), *own))
    )


def _matched(orders: FloatArray) -> list[int] | None:
    """Return the field of each equation, so that the sum of the orders is largest; None if there is no such choice."""
    if len(orders) == 1:
        return [0]
    from scipy.optimize import linear_sum_assignment

    try:
        _, columns = linear_sum_assignment(-orders)
    except ValueError:  # some equations have no field of their own
        return None
    return list(map(int, columns))


def _closed(orders: FloatArray, matched: Sequence[int], fields: set[int]) -> frozenset[int]:
    """Return fields together with those that the equations in which they occur are there for."""
    while True:
        rows = np.flatnonzero((orders[:, sorted(fields)] > -np.inf).any(axis=1))
        more = fields | {matched[row] for row in rows.tolist()}
        if more == fields:
            return frozenset(fields)
        fields = more


def _subsystem(problem: Problem, orders: FloatArray, matched: Sequence[int], fields: frozenset[int]) -> Subsystem:
    columns = sorted(fields)
    rows = [matched.index(column) for column in columns]
    own = orders[np.ix_(rows, columns)]
    weights = np.zeros(len(rows))
    for _ in rows:  # the weight of a field is at least what its derivatives ask for in every equation
        weights = np.maximum(weights, (own - (np.diag(own) - weights)[:, None]).max(axis=0))
    equations = problem.laws.statements
    names = tuple(problem.field_names[column] for column in columns)
    weighted = (np.stack([np.diag(own) - weights, weights])).astype(np.int64).tolist()
    return Subsystem(tuple(equations[row] for row in rows), names, *weighted)


def conditions_of(problem: Problem, subsystem: Subsystem) -> int | None:
    """Return how many conditions a subsystem needs on every piece of the boundary, on a line in all; None if not known.

    >>> from pibls.problems import beam, helmholtz, poisson, stokes
    >>> [conditions_of(own, subsystems_of(own)[-1]) for own in (poisson(), stokes(), beam(), helmholtz())]
    [1, 2, 4, 1]
    """
    domain = problem.domain
    is_line = len(domain.coordinates) == 1
    if not is_line and (domain.boundary.empty or domain.time is not None):
        return None
    linear = all(equation.form.is_linear for equation in subsystem.equations)
    try:
        parts = [
            _principal(problem, subsystem, size)
            for size in ((0.0,) if linear else (0.0, NEGLIGIBLE, 1.0, 1.0 / NEGLIGIBLE))
        ]
    except PiblsError:
        return None  # coefficients may be infinite at the boundary, as in polar coordinates
    if any(part is None or not part.is_elliptic for part in parts):
        return None
    return subsystem.degree if is_line else subsystem.degree // 2


@dataclass(frozen=True, eq=False)
class _Principal:
    """The principal part at points: where it stands, its derivatives, and the factor of each at every point."""

    entries: list[tuple[int, int, FloatArray, FloatArray]]  # row, column, multi-index, factors
    half: FloatArray  # of the sides of the domain

    @property
    def is_elliptic(self) -> bool:
        """Whether its determinant plainly vanishes in no direction, and at no point."""
        points, axes = len(self.entries[0][-1]), len(self.half)
        rng, directions = np.random.default_rng(0), np.eye(axes)[None]
        if axes > 1:
            directions = np.concatenate([directions[0], rng.normal(size=(POINTS, axes))])[None]
        found = self._determinants(directions)
        sizes = np.abs(found)
        largest, alike = sizes.max(axis=1), (np.sign(found) == np.sign(found[:, :1])).all()
        least = sizes.min(axis=1)
        for spread in (NEGLIGIBLE, SLIGHT, PLAIN) if axes > 1 else ():
            best = np.broadcast_to(directions, (points, *directions.shape[1:]))[np.arange(points), sizes.argmin(axis=1)]
            directions = best[:, None] + spread * rng.normal(size=(points, POINTS // 10, axes))
            directions[:, 0] = best
            sizes = np.abs(self._determinants(directions))
            least = np.minimum(least, sizes.min(axis=1))
        return bool(alike and (least > PLAIN * largest).all() and largest.min() > PLAIN * np.median(largest))

    def _determinants(self, directions: FloatArray) -> FloatArray:
        """Return the determinant at points in directions, which may be the same at all points."""
        waves = directions / np.linalg.norm(directions, axis=-1, keepdims=True) / self.half
        count = 1 + max(row for row, *_ in self.entries)
        matrices = np.zeros((len(self.entries[0][-1]), directions.shape[1], count, count))
        for row, column, index, factors in self.entries:
            matrices[:, :, row, column] += factors[:, None] * np.prod(waves**index, axis=-1)
        return np.asarray(np.linalg.det(matrices))


def _principal(problem: Problem, subsystem: Subsystem, size: float) -> _Principal | None:
    """Return the principal part at states of a size; None where coefficients are much larger at the boundary."""
    inside, rng = problem.domain.sample(POINTS // 10, "kronecker", 1), np.random.default_rng(0)
    X = np.concatenate([inside, _rim(problem)])
    values: dict[tuple[str, tuple[int, ...]], FloatArray] = {}
    entries = []
    for row, equation in enumerate(subsystem.equations):
        form = equation.form
        slots = [(term.field, term.multi_index) for term in form.terms]
        for slot in slots:
            values.setdefault(slot, size * rng.normal(size=len(X)))
        state = () if form.is_linear else [values[slot] for slot in slots]
        for term, function in zip(form.terms, form.coefficient_functions, strict=True):
            factors = function(X, None, state)
            if PLAIN * np.abs(factors[len(inside) :]).max() > np.abs(factors[: len(inside)]).max():
                return None
            column = subsystem.fields.index(term.field) if term.field in subsystem.fields else -1
            if column >= 0 and term.order == subsystem.rows[row] + subsystem.columns[column]:
                entries.append((row, column, np.array(term.multi_index), factors))
    return _Principal(entries, np.ptp(problem.domain.bounds, axis=1) / 2)


def _rim(problem: Problem) -> FloatArray:
    """Return points of the boundary, on a line its ends."""
    bounds = problem.domain.bounds
    if len(bounds) == 1:
        return np.asarray(bounds, dtype=np.float64).T
    return np.asarray(problem.domain.boundary.sample(POINTS // 3, "kronecker", 1).points)
