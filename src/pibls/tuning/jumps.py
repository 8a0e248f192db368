"""Corners where the given values of a field jump: found, looked at closely, and not allowed to drown all else.

At the ends of a moving lid a velocity has two values, its derivatives grow like 1/r and the equation has terms like
1/r². Least squares at random points would see little but the point that happens to be nearest to the corner. So rows
count less towards such a corner, in proportion to the terms in them; more points lie there, so that no flow slips
through between the corner and the first of them; and nodes that know the singularity are added to the network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from pibls.checks import FloatArray
from pibls.geometry import Domain, Points, PointSet
from pibls.geometry.landmarks import Corner, corners
from pibls.problem import Form, OnPart, Problem, Statement
from pibls.problem.evaluate import Function

__all__ = ["eased", "graded", "jump_corners"]

_CLOSE = 1e-6  # of the size of the domain: where values on both sides of a corner are compared
_JUMP = 1e-2  # of the largest given value
_SAMPLES = 64
_REACH = 0.5  # of the size of the domain: rows count less within
_POWERS = (0.5, 1.5, 2.0)  # by order of derivative: how fast rows vanish; found best for a cavity's corners
_SHARE, _CLUSTERING, _NEAREST = 5, 3.0, 1e-4  # every fifth point is pulled to a corner, by t³ of its distance


def jump_corners(problem: Problem) -> tuple[Corner, ...]:
    """Return the corners of a plane domain at which the given values of a field jump.

    Examples
    --------
    >>> from pibls.problems import cavity, kovasznay
    >>> [corner.point for corner in jump_corners(cavity())], jump_corners(kovasznay())
    ([(0.0, 1.0), (1.0, 1.0)], ())
    """
    domain = problem.domain
    if len(domain.coordinates) != 2 or domain.time is not None:
        return ()
    by_field: dict[str, list[Statement]] = {}
    for statement in filter(_gives_values, problem.statements):
        by_field.setdefault(statement.form.fields[0], []).append(statement)
    # What one condition gives is one formula: it has no two values at a corner.
    several = [given for given in by_field.values() if len(given) > 1]
    found = []
    for corner in corners(cast(Domain, domain), 0.0) if several else ():
        sides = _sides(corner, _CLOSE * float(np.ptp(domain.bounds, axis=1).max()))
        if any(_jumps(given, sides) for given in several):
            found.append(corner)
    return tuple(found)


def _gives_values(statement: Statement) -> bool:
    form = statement.form
    return isinstance(statement.place, OnPart) and form.is_linear and len(form.terms) == 1 and form.order == 0


def _sides(corner: Corner, distance: float) -> FloatArray:
    """Return a point of either side of a corner, next to it."""
    inward = corner.direction + math.pi
    angles = np.array([inward - corner.angle / 2, inward + corner.angle / 2])
    return np.array(corner.point) + distance * np.column_stack([np.cos(angles), np.sin(angles)])


def _jumps(given: Sequence[Statement], sides: FloatArray) -> bool:
    values = [list(_values(given, side[None, :])) for side in sides]
    if not all(values):
        return False
    largest = max(float(np.abs(_value(s, _part(s).sample(_SAMPLES, "kronecker", 0).points)).max()) for s in given)
    return abs(values[0][0] - values[1][0]) > _JUMP * largest


def _part(statement: Statement) -> Any:
    return cast(OnPart, statement.place).part


def _values(given: Sequence[Statement], X: FloatArray) -> Iterator[float]:
    for statement in given:
        if bool(_part(statement).contains(X)[0]):
            yield float(_value(statement, X)[0])


def _value(statement: Statement, X: FloatArray) -> FloatArray:
    normals, form = _part(statement).normals(X), statement.form
    values: FloatArray = -form.source_function(X, normals) / form.coefficient_functions[0](X, normals)
    return values


def eased(problem: Problem, corners: Sequence[Corner]) -> Problem:
    """Return the same problem with its equations and conditions multiplied by powers of r/√(r² + R²) at corners."""
    if not corners:
        return problem
    reach = _REACH * float(np.ptp(problem.domain.bounds, axis=1).max())
    centers = np.array([corner.point for corner in corners])

    def nearness(X: FloatArray) -> FloatArray:
        squares = ((X[:, None, :] - centers) ** 2).sum(axis=2)
        product: FloatArray = np.sqrt(squares / (squares + reach**2)).prod(axis=1)
        return product

    return problem.with_statements([_eased_statement(statement, nearness) for statement in problem.statements])


_Factor = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class _EasedForm(Form):
    """A form times a function of the points."""

    factor: _Factor

    @cached_property
    def source_function(self) -> Function:
        return super().source_function.times(self.factor)

    @cached_property
    def residual_function(self) -> Function:
        return super().residual_function.times(self.factor)

    @cached_property
    def coefficient_functions(self) -> tuple[Function, ...]:
        return tuple(function.times(self.factor) for function in super().coefficient_functions)


def _eased_statement(statement: Statement, nearness: _Factor) -> Statement:
    form = statement.form
    if not statement.is_equation and not isinstance(statement.place, OnPart):
        return statement
    power = _POWERS[min(form.order, 2)]
    parts = (form.expression, form.residual, form.terms, form.source, form.coordinates, form.is_linear)
    return replace(statement, form=_EasedForm(*parts, lambda X: nearness(X) ** power))


def graded(problem: Problem, points: Points, corners: Sequence[Corner], seed: int) -> Points:
    """Return the points with every fifth one pulled towards a corner, as far as it stays where it belongs."""
    if not corners:
        return points
    rng = np.random.default_rng(seed)
    pulled: dict[int, PointSet] = {}
    for statement in problem.statements:
        own = points.sets[statement.source]
        if id(own) not in pulled:
            where = _part(statement) if isinstance(statement.place, OnPart) else problem.domain
            movable = statement.is_equation or isinstance(statement.place, OnPart)
            pulled[id(own)] = _pulled(own, where, corners, rng) if movable else own
    return Points(tuple(pulled[id(own)] for own in points.sets))


def _pulled(own: PointSet, where: Any, corners: Sequence[Corner], rng: np.random.Generator) -> PointSet:
    points = own.points.copy()
    # On a boundary most points cannot move to a corner, which is on another side.
    every = _SHARE if own.normals is None else 2
    for number, corner in enumerate(corners):
        chosen = np.arange(len(points))[number :: len(corners)][::every]
        shares = np.maximum(_NEAREST, rng.random(len(chosen)) ** _CLUSTERING)[:, None]
        moved = np.array(corner.point) + shares * (points[chosen] - corner.point)
        stays = np.asarray(where.contains(moved), dtype=np.bool_)
        points[chosen[stays]] = moved[stays]
    return PointSet(points, None if own.normals is None else where.normals(points), own.partner)
