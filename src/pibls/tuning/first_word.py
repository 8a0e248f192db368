"""The first word on a problem, before anything is solved: whether its conditions are as many as it needs.

The answer is certain: for steady transport, coefficients that vanish at the boundary and problems with measurements
nothing is said. Evolutions are also checked for unbounded growth of short waves, and for characteristics that meet.
"""

from __future__ import annotations

from pibls.evolution import Evolution, find_evolution
from pibls.problem import Averages, OnPart, Problem
from pibls.problem.shocks import fronts_of
from pibls.wellposed.characteristics import carried
from pibls.wellposed.counting import bare_parts, conditions_needed
from pibls.wellposed.stability import unbounded_growth
from pibls.wellposed.uniqueness import free_level, free_motion, free_potential, leaves_at_will

__all__ = ["first_word"]

_QUESTIONS = (bare_parts, free_level, free_motion, free_potential, leaves_at_will)


def first_word(problem: Problem) -> str:
    """Say why a problem has no solution that its conditions determine, as far as counting tells; else an empty text."""
    return "" if _is_given_everywhere(problem) else problem.once(_told)


def _told(problem: Problem) -> str:
    measured = any(s.targets is not None or isinstance(s.place, Averages) for s in problem.statements)
    if problem.parameters or problem.unknown_functions or measured:
        return ""
    evolution = find_evolution(problem) if problem.domain.time is not None else None
    if problem.once(fronts_of) is not None:
        return ""  # shocks are followed
    if isinstance(evolution, Evolution) and (
        told := evolution.lacks or unbounded_growth(evolution) or carried(evolution)
    ):
        return told
    if problem.domain.space and (backwards := _backwards(problem)):
        return backwards
    return next(filter(None, (ask(problem) for ask in _QUESTIONS)), "")


def _backwards(problem: Problem) -> str:
    """Say which field is given at the last time instead of the first, if its equation diffuses."""
    given = [(s, s.place.part) for s in problem.statements if isinstance(s.place, OnPart)]
    final = getattr(problem.domain, "final", None)
    last = [s for s, part in given if part == final]
    others = problem.with_statements([s for s in problem.statements if s not in last])
    forward = find_evolution(others) if last else None
    if not isinstance(forward, Evolution):
        return ""
    for name, count in (conditions_needed(forward) or {}).items():
        first = any(name in s.form.fields for s, part in given if part == problem.domain.initial)
        if count and forward.orders[name] == 1 and not first and any(name in s.form.fields for s in last):
            return (
                f"The solution is unstable: {name} is given at the last time and not at the first, and its equation "
                f"diffuses. Diffusion damps short waves fastest, so the last values do not determine the past. Give "
                f"Initial({name}, ...) instead, or check the signs of the highest derivatives."
            )
    return ""


def _is_given_everywhere(problem: Problem) -> bool:
    """Tell whether each field has conditions of its own, all along the boundary, for half of its derivatives."""
    given = [s.form for s in problem.statements if s.place == OnPart(problem.domain.boundary) and s.form.is_linear]
    for name in problem.field_names:
        own = [{term.order for term in form.terms} for form in given if form.fields == (name,)]
        orders = (term.order for form in problem.laws.forms for term in form.terms if term.field == name)
        if {0} not in own or 2 * len(own) < max(orders, default=0):
            return False
    return problem.domain.time is None
