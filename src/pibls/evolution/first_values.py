"""Initial values: of fields and of their derivatives in time, as many as the equations need, and those beyond."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from pibls.evolution.multipliers import State
from pibls.problem import AtPoints, Average, OnPart, Problem, Statement
from pibls.problem.evaluate import Within


def is_initial(statement: Statement, problem: Problem) -> bool:
    """Tell whether a statement holds at the first time."""
    return isinstance(statement.place, OnPart) and statement.place.part == problem.domain.initial


def is_apart(statement: Statement, problem: Problem, orders: Mapping[str, int]) -> bool:
    """Tell whether a condition holds at the last time, at points or on average: that is beside all that is needed."""
    place = statement.place
    elsewhere = isinstance(place, AtPoints | Average) or (
        isinstance(place, OnPart) and place.part == getattr(problem.domain, "final", None)
    )
    moves = any(orders.get(name) for name in statement.form.fields)
    return elsewhere and moves and statement.form.is_linear and statement.targets is None


def is_rate(statement: Statement, problem: Problem, orders: Mapping[str, int]) -> bool:
    """Tell whether an initial condition is on a derivative in time for which the equations are solved, or a higher one.

    It is one too many: what such a derivative is at first follows from the equations and the other initial values.
    """
    terms = statement.form.terms
    return (
        is_initial(statement, problem)
        and len(terms) == 1
        and 0 < orders.get(terms[0].field, 0) <= terms[0].multi_index[-1]
    )


def initial_states(problem: Problem, orders: Mapping[str, int]) -> tuple[dict[State, sp.Expr], str]:
    """Return the initial values of fields and of their derivatives in time below their orders, and why one is none."""
    initial: dict[State, sp.Expr] = {}
    for statement in problem.statements[len(problem.equations) :]:
        form = statement.form
        # What a still field is at first follows from the others.
        is_still = not any(orders.get(name) for name in form.fields)
        if not is_initial(statement, problem) or is_still or is_rate(statement, problem, orders):
            continue
        if len(form.terms) != 1 or not form.is_linear or any(form.terms[0].multi_index[:-1]):
            return {}, f"{statement.name} does not give the initial value of one field"
        (term,) = form.terms
        # A material at the first time is that of the place itself, not that beside a boundary.
        value = (-form.source / term.coefficient).replace(Within, lambda material, *_: material)
        if initial.setdefault((term.field, term.multi_index[-1]), value) != value:
            return {}, f"{statement.name} contradicts another initial value"
    return initial, ""
