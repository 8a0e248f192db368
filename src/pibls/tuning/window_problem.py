"""A problem on a window of its time: which can be cut so, and from where each starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.geometry import Domain, TimeInterval
from pibls.geometry.patch import TimedPatch
from pibls.problem import AnyCondition, Condition, Initial, Mean, Periodic, Problem, data
from pibls.problem.conditions import INITIAL
from pibls.solution import Solution

__all__ = ["check_marchable", "window_problem"]


def check_marchable(problem: Problem) -> None:
    """Refuse what cannot be marched through."""

    def refuse(reason: str) -> None:
        raise InputError(f"This problem cannot be solved with time='windows': {reason}. Use time='space-time'.")

    if problem.domain.time is None:
        raise InputError("This problem cannot be solved with time='windows': the domain has no time. Leave it out.")
    if problem.parameters:
        refuse("it has unknown numbers")
    for condition in problem.conditions:
        if not isinstance(condition, Condition | Periodic | Mean) or isinstance(
            getattr(condition, "on", 0), np.ndarray
        ):
            refuse(f"{condition!r} is given at points of space and time")
        if isinstance(condition, Condition) and _is_part_of_time(condition.on, "final"):
            refuse(f"{condition!r} is given at the last time")
    if not any(_is_initial(condition) for condition in problem.conditions):
        refuse("it has no initial values")


def _is_initial(condition: AnyCondition) -> bool:
    return isinstance(condition, Condition) and (condition.on is INITIAL or _is_part_of_time(condition.on, "initial"))


def _is_part_of_time(on: Any, name: str) -> bool:
    return getattr(on, "name", "") == name and getattr(on.domain, "time", None) is not None


def window_problem(problem: Problem, start: float, stop: float, before: Solution | None) -> Problem:
    """Return a problem on a part of its time; it starts from a solution there, or from its own initial values.

    Examples
    --------
    >>> from pibls.problems import heat_robin
    >>> window_problem(heat_robin(), 0.0, 0.25, None).domain.bounds[-1].tolist()
    [0.0, 0.25]
    """
    domain = cast(Domain, problem.domain)
    t = cast(sp.Symbol, domain.time)
    interval = TimeInterval(t, start, stop)
    space = getattr(domain, "domain", None)
    window = interval if space is None else space * interval
    conditions = [_moved(c, problem, window) for c in problem.conditions if before is None or not _is_initial(c)]
    if before is not None:
        conditions += _starts(problem, before, start)
    return Problem(problem.equations, window, conditions)


def _moved(condition: AnyCondition, problem: Problem, window: Any) -> AnyCondition:
    """Return a condition on the window, where it was posed on a part of the whole time."""
    if not isinstance(condition, Condition):
        return condition
    on: Any = condition.on
    if _is_initial(condition):
        return replace(condition, on=INITIAL)
    if on is None or on.domain != problem.domain:
        return condition
    if not all(isinstance(patch, TimedPatch) for patch in on.patches):
        raise InputError(
            f"This problem cannot be solved with time='windows': {condition!r} holds where a function of space and "
            "time says so. Pose it on a part of space, or use time='space-time'."
        )
    start, stop = window.bounds[-1].tolist()
    patches = tuple(TimedPatch(patch.base, start, stop) for patch in on.patches)
    return replace(condition, on=replace(on, domain=window, patches=patches))


def _starts(problem: Problem, before: Solution, moment: float) -> list[AnyCondition]:
    """Return initial conditions that continue a solution: values, and derivatives in time below the highest."""
    t = cast(sp.Symbol, problem.domain.time)
    space = problem.domain.coordinates[:-1]
    result: list[AnyCondition] = []
    for unknown in problem.fields:
        order = max(s.form.order_along(t, unknown.label) for s in problem.statements if s.is_equation)
        for k in range(order):
            values = _Frozen(before, unknown.label, (*(0,) * len(space), k), moment)
            value = data(f"before_{unknown.label}_{k}", values, *space) if space else sp.Float(float(values()[0]))
            result.append(Initial(unknown.diff(t, k) if k else unknown, value))
    return result


@dataclass(frozen=True, eq=False)
class _Frozen:
    """A derivative of a field at one time, as a function of space."""

    solution: Solution
    name: str
    multi_index: tuple[int, ...]
    moment: float

    def __call__(self, *columns: FloatArray) -> FloatArray:
        count = len(columns[0]) if columns else 1
        X = np.column_stack([*columns, np.full(count, self.moment)])
        return self.solution.evaluate(X, [(self.name, self.multi_index)])[0]
