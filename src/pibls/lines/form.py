"""Which problems are evolutions: the highest derivatives in time, solved for, as functions of everything else.

A field of order p in time has p states: itself and its first p − 1 derivatives. The equations are solved symbolically
for the derivatives of order p; what is left are rates, functions of the coordinates and of space derivatives of states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from pibls.problem import Data, Field, MultiIndex, OnPart, Opposite, Problem, Statement
from pibls.problem.evaluate import Function, compile_function

__all__ = ["Evolution", "Slot", "State", "Unsuitable", "compiled", "find_evolution"]

State = tuple[str, int]
"""A field and how often it is differentiated in time."""


@dataclass(frozen=True)
class Unsuitable:
    """Why a problem is not an evolution that can be followed in time; false as a condition.

    >>> bool(Unsuitable("it has no time"))
    False
    """

    reason: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True)
class Slot:
    """A space derivative of a state, and the symbol that stands for it in a rate."""

    state: State
    multi_index: MultiIndex
    symbol: sp.Symbol


@dataclass(frozen=True, eq=False)
class Evolution:
    """A problem solved for its highest derivatives in time.

    Attributes
    ----------
    problem
        The problem.
    orders
        Order in time per field.
    rates
        Highest derivative in time per field, an expression of the coordinates and of the symbols of ``slots``.
    slots
        What occurs in the rates.
    initial
        Value of every state at the first time, an expression of the coordinates.
    boundary
        Statements on the boundary of space.
    """

    problem: Problem
    orders: Mapping[str, int]
    rates: Mapping[str, sp.Expr]
    slots: tuple[Slot, ...]
    initial: Mapping[State, sp.Expr]
    boundary: tuple[Statement, ...]

    @property
    def states(self) -> tuple[State, ...]:
        """All states, field by field."""
        return tuple((name, k) for name, order in self.orders.items() for k in range(order))

    @property
    def space(self) -> Any:
        """The space domain; None for an ordinary differential equation."""
        return getattr(self.problem.domain, "domain", None)

    @property
    def limits(self) -> tuple[float, float]:
        """First and last time."""
        first, last = self.problem.domain.bounds[-1].tolist()
        return first, last

    def conditions_on(self, name: str) -> tuple[Statement, ...]:
        """Return the boundary statements of one field."""
        return tuple(s for s in self.boundary if s.form.fields == (name,))


def find_evolution(problem: Problem) -> Evolution | Unsuitable:
    """Return a problem solved for its derivatives in time, or why that cannot be done.

    Examples
    --------
    >>> from pibls.problems import klein_gordon, poisson
    >>> evolution = find_evolution(klein_gordon())
    >>> evolution.states, evolution.rates["u"].count_ops()
    ((('u', 0), ('u', 1)), 1)
    >>> find_evolution(poisson())
    Unsuitable(reason='the domain has no time')
    """
    time = problem.domain.time
    if time is None:
        return Unsuitable("the domain has no time")
    if problem.parameters:
        return Unsuitable("it has unknown numbers")
    equations = [s for s in problem.statements if s.is_equation]
    names = problem.field_names
    if len(equations) != len(names):
        return Unsuitable(f"it has {len(equations)} equations for {len(names)} fields")
    orders = {name: max(s.form.order_along(time, name) for s in equations) for name in names}
    if still := [name for name, order in orders.items() if order < 1]:
        return Unsuitable(f"no equation has a time derivative of {still[0]}")
    solved = _solved(equations, orders)
    if isinstance(solved, Unsuitable):
        return solved
    initial, boundary, problems = _conditions(problem, time)
    rates, slots = solved
    evolution = Evolution(problem, orders, rates, slots, initial, tuple(boundary))
    if missing := [state for state in evolution.states if state not in initial]:
        name, order = missing[0]
        problems.append(Unsuitable(f"{name}{' differentiated in time' * min(order, 1)} has no initial value"))
    return problems[0] if problems else evolution


def _conditions(problem: Problem, time: sp.Symbol) -> tuple[dict[State, sp.Expr], list[Statement], list[Unsuitable]]:
    """Return initial values, boundary statements, and why others are neither."""
    initial: dict[State, sp.Expr] = {}
    boundary, problems = [], []
    for statement in problem.statements[len(problem.equations) :]:
        if isinstance(statement.place, OnPart) and statement.place.part == problem.domain.initial:
            found = _initial(statement)
            problems += [found] if isinstance(found, Unsuitable) else []
            initial |= {} if isinstance(found, Unsuitable) else found
        elif isinstance(statement.place, OnPart) and statement.place.part == getattr(problem.domain, "final", None):
            problems.append(Unsuitable(f"{statement.name} is given at the last time"))
        elif reason := _unusable(statement, time):
            problems.append(Unsuitable(reason))
        else:
            boundary.append(statement)
    return initial, boundary, problems


def _solved(
    equations: list[Statement], orders: Mapping[str, int]
) -> tuple[dict[str, sp.Expr], tuple[Slot, ...]] | Unsuitable:
    """Solve the equations for the highest time derivatives."""
    symbols: dict[tuple[str, MultiIndex], sp.Symbol] = {}
    residuals = []
    for statement in equations:
        form = statement.form
        known = set(form.coordinates)
        own = {}
        for term in form.terms:
            key = (term.field, term.multi_index)
            own[term.slot] = symbols.setdefault(key, sp.Dummy(f"{term.field}_{term.multi_index}", real=True))
        # Slots without a term cancel: any value will do for them.
        gone = dict.fromkeys(form.residual.free_symbols - known - set(own), sp.S.Zero)
        residuals.append(form.residual.xreplace(own | gone))
    tops = {}
    for (name, index), symbol in symbols.items():
        if index[-1] == orders[name]:
            if any(index[:-1]):
                return Unsuitable(f"the highest time derivative of {name} is also differentiated in space")
            tops[name] = symbol
    unknowns = [tops[name] for name in orders]
    matrix = sp.Matrix([[sp.diff(r, s) for s in unknowns] for r in residuals])
    if matrix.free_symbols & set(unknowns):
        return Unsuitable("it is not linear in its highest time derivatives")
    rest = sp.Matrix([r.xreplace(dict.fromkeys(unknowns, sp.S.Zero)) for r in residuals])
    if matrix.is_diagonal():
        if any(entry.is_zero for entry in matrix.diagonal()):
            return Unsuitable("one of its equations has no time derivative")
        rates = [-r / a for r, a in zip(rest, matrix.diagonal(), strict=True)]
    elif sp.simplify(matrix.det()) == 0:
        return Unsuitable("one of its equations has no time derivative, or two have the same")
    else:
        rates = list(-matrix.LUsolve(rest))
    slots = tuple(
        Slot((name, index[-1]), index[:-1], symbol)
        for (name, index), symbol in symbols.items()
        if symbol not in unknowns
    )
    return {name: sp.expand(rate) for name, rate in zip(orders, rates, strict=True)}, slots


def _initial(statement: Statement) -> dict[State, sp.Expr] | Unsuitable:
    form = statement.form
    if len(form.terms) != 1 or not form.is_linear or any(form.terms[0].multi_index[:-1]):
        return Unsuitable(f"{statement.name} does not give the initial value of one field")
    (term,) = form.terms
    return {(term.field, term.multi_index[-1]): -form.source / term.coefficient}


def _unusable(statement: Statement, time: sp.Symbol) -> str:
    """Say why a condition cannot be built into the features, if it cannot."""
    form = statement.form
    if not isinstance(statement.place, OnPart | Opposite):
        return f"{statement.name} is not a condition on the boundary of space"
    if not form.is_linear:
        return f"{statement.name} is not linear"
    if len(form.fields) != 1:
        return f"{statement.name} couples several fields"
    if any(term.multi_index[-1] for term in form.terms):
        return f"{statement.name} has a derivative in time"
    if any(time in term.coefficient.free_symbols or term.coefficient.has(Data) for term in form.terms):
        return f"the coefficients of {statement.name} depend on time"
    if form.source.has(Data, Field) and time in form.source.free_symbols:
        return f"the data function of {statement.name} would have to be differentiated in time"
    return ""


@lru_cache(maxsize=512)
def compiled(expression: sp.Expr, coordinates: tuple[sp.Symbol, ...], extra: tuple[sp.Symbol, ...] = ()) -> Function:
    """Compile an expression; the same one is asked for again on finer and finer features."""
    return compile_function(expression, coordinates, extra)
