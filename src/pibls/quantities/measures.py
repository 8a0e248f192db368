"""All quantities that a solution can be asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import check_points
from pibls.errors import InputError
from pibls.geometry import Domain
from pibls.problem import Field
from pibls.problem.complex_fields import complex_parts
from pibls.problem.field_expressions import Expression
from pibls.problem.operators import resolve
from pibls.problem.printing import text
from pibls.problem.vector_fields import motion_of
from pibls.quantities.events import Doubt, TimeCourse, first_event, in_time, is_relation, mean_in_time
from pibls.quantities.extremes import Extremes
from pibls.quantities.integrals import Integrals
from pibls.quantities.pair import SolutionPair
from pibls.quantities.quantity import Quantity
from pibls.quantities.values import ValueFunction, errors_at
from pibls.quantities.where import where_of
from pibls.solution import Solution

_RULES = 4  # for means in time: each is made at the event that the one before finds


@dataclass(frozen=True, eq=False)
class Measures:
    """The quantities of one solution."""

    solution: Solution

    @cached_property
    def pair(self) -> SolutionPair:
        """The solution beside the richer one."""
        return SolutionPair(self.solution)

    @property
    def domain(self) -> Domain:
        """The domain of the problem."""
        return self.solution.problem.domain

    def value(self, expression: Any) -> ValueFunction:
        """Return an expression as a function of points."""
        parts = [expression]
        if isinstance(expression, sp.Expr) and expression.has(sp.I):
            real, imaginary = complex_parts(resolve(expression, self.domain.space))
            parts = [real] if imaginary == 0 else [real, imaginary]
        made = [ValueFunction(self.pair, self.pair.expression(part, "value"), text(expression)) for part in parts]
        return replace(made[0], imaginary=made[1]) if len(made) > 1 else made[0]

    def integral(self, expression: Any, over: Any, at: Any, *, mean: bool = False) -> Quantity:
        """Return the integral of an expression, or its mean."""
        owner = "mean" if mean else "integral"
        place = where_of(self.domain, over, at, owner)
        return Integrals(self.pair, place).of(self.pair.expression(expression, owner), mean=mean)

    def extreme(self, expression: Any, sign: float, over: Any, at: Any) -> Quantity:
        """Return the largest value of an expression, or with the other sign the smallest."""
        owner = "maximum" if sign > 0 else "minimum"
        place = where_of(self.domain, over, at, owner)
        return Extremes(self.pair, place, self.pair.expression(expression, owner), sign).found()

    def first_time(self, expression: Any, over: Any, at: Any) -> Quantity:
        """Return the first time at which an expression becomes zero, or a relation true."""
        time = self.domain.time
        if time is None:
            raise InputError("first_time is for problems in time, and this domain has none. Use a TimeInterval.")
        relation = is_relation(expression)
        own = self.pair.expression(expression.gts - expression.lts if relation else expression, "first_time")
        if over is None:
            space = self.domain.space
            point = None if at is None else check_points("at", [at], "first_time", len(space))[0]
            course = in_time(self.pair, own, point)

            def error_at(when: float) -> float:
                X = np.append(np.zeros(len(space)) if point is None else point, when)
                return float(errors_at(self.pair, own, X[None])[0])

            return first_event(self.pair, course, error_at, relation=relation, name=text(expression))
        found = Quantity(float(np.mean(self.domain.bounds[-1])), np.inf)
        for _ in range(_RULES):
            when = found.value
            course, doubt = self._means(own, over, when)
            found = first_event(self.pair, course, doubt, relation=relation, name=text(expression))
            if not abs(found.value - when) > found.error or not np.isfinite(found.value):
                break
        return found

    def _means(self, expression: Expression, over: Any, when: float) -> tuple[TimeCourse, Doubt]:
        """Return the mean of an expression as a course in time, by the rule of one time, and its error then."""
        place = where_of(self.domain, over, when, "first_time")
        integrals = Integrals(self.pair, place)
        points, weights, normals = integrals.rule(expression)
        outward = None if normals is None else place.along(normals)
        course = mean_in_time(self.pair, expression, points, weights, outward)
        error = integrals.of(expression, mean=True).error
        return course, lambda _: error

    def flow(self, part: Any, field: Any, at: Any) -> Quantity:
        """Return the flow out through a part of the boundary."""
        carried = list(self.solution.problem.laws.carriers)
        name = field.label if isinstance(field, Field) else field
        if name is None and len(carried) == 1:
            name = carried[0]
        if name not in carried:
            raise InputError(
                "flow needs a field whose equation has second derivatives in space. The problem has "
                f"{', '.join(carried) or 'none'}, and got {name}. Say field=..., or write the flux yourself as "
                "integral(..., over=part)."
            )
        return self.integral(-self.solution.problem.laws.flux(self._field(name)), part, at)

    def force(self, part: Any, fields: Any, at: Any) -> tuple[Quantity, ...]:
        """Return the entries of the traction, integrated over a part of the boundary."""
        carried, space = self.solution.problem.laws.carriers, self.domain.space
        names = [own.label if isinstance(own, Field) else own for own in fields or motion_of(self.solution.problem)]
        if len(names) != len(space) or not set(names) <= set(carried):
            raise InputError(
                f"force needs one displacement or velocity per space coordinate {space}, each with an equation of "
                f"second order. The problem has such equations for {', '.join(carried) or 'no field'}, and got "
                f"{', '.join(map(str, names)) or 'none'}. Say fields=[u, v], or write the traction yourself as "
                "integral(..., over=part)."
            )
        return tuple(self.integral(self.solution.problem.laws.traction(self._field(name)), part, at) for name in names)

    def _field(self, name: str) -> Field:
        return next(call for call in self.solution.problem.fields if call.label == name)
