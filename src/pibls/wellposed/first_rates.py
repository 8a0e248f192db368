"""Rates at the first time, which follow from the equations and the initial values and may also be given.

An equation of order p in time is started by p initial values. The derivative of order p follows at the first time, and
a condition on it says either the same or something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem import Statement
from pibls.problem.evaluate import compile_function
from pibls.refinement.standards import PLAIN, POINTS
from pibls.wellposed.counting import equations_in_words

if TYPE_CHECKING:
    from pibls.evolution.form import Evolution


def first_rates(evolution: Evolution, given: Sequence[Statement]) -> tuple[str, tuple[Statement, ...]]:
    """Say which condition on a first rate contradicts the others; return those of which initial values tell nothing."""
    unknown = []
    for statement in given:
        rates = _rates(evolution, statement)
        if rates is None:
            unknown.append(statement)
            continue
        X, found, sizes = rates
        (term,) = statement.form.terms
        own = 0.0 - statement.form.source_function(X) / statement.form.coefficient_functions[0](X)
        worst = int(np.argmax(np.abs(own - found)))
        if abs(own[worst] - found[worst]) <= PLAIN**2 * max(float(np.abs(own).max()), sizes):
            continue
        names = (symbol.name for symbol in evolution.problem.domain.coordinates)
        place = ", ".join(f"{name}={value:.3g}" for name, value in zip(names, X[worst], strict=True))
        equations = [s for s in evolution.problem.laws.statements if term.field in s.form.fields]
        return (
            f"The conditions contradict each other: {statement.name} and what "
            f"{equations_in_words(evolution.problem, equations)} makes of the initial values set the same "
            f"quantity, and near {place} one says {own[worst]:.6g} and the other {found[worst]:.6g}. Remove it."
        ), ()
    return "", tuple(unknown)


def _rates(evolution: Evolution, statement: Statement) -> tuple[FloatArray, FloatArray, float] | None:
    """Return places, the rates that equations and initial values say there, and the size of their terms, if known."""
    (term,) = statement.form.terms
    highest = term.multi_index[-1] == evolution.orders[term.field] and not any(term.multi_index[:-1])
    if not highest or evolution.mass or evolution.multipliers:
        return None
    coordinates, first = evolution.problem.domain.coordinates, evolution.limits[0]
    places = np.zeros((1, 0)) if evolution.space is None else evolution.space.sample(POINTS, "kronecker", 1)
    X = np.column_stack([places, np.full(len(places), first)])
    if (state := evolution.first_state(X, evolution.slots)) is None:
        return None
    symbols, values = tuple(slot.symbol for slot in state), list(state.values())
    try:
        found = compile_function(evolution.rates[term.field], coordinates, symbols)(X, None, values)
        slopes = {
            slot: compile_function(slope, coordinates, symbols)(X, None, values)
            for slot, slope in evolution.slopes[term.field].items()
        }
    except ProblemError:
        return None
    sizes = [float(np.abs(slope * state[slot]).max()) for slot, slope in slopes.items()]
    return X, found, max([float(np.abs(found).max()), *sizes])
