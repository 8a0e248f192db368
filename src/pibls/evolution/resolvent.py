"""The resolvent of an evolution: the problem in space that a field proportional to exp(z t) solves.

An implicit step of an evolution consists of such problems. Derivatives in time become powers of z, in equations and in
conditions alike, so that constraints, pressures, conditions with time derivatives and mixed derivatives need no
treatment of their own. The terms of an equation that are nonlinear, or whose coefficients depend on time, are
linearised at one state and one time; what that leaves is their remainder, which acts on the field like a source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sympy as sp
from sympy.core.function import Application

from pibls.evolution.first_values import initial_states, is_initial
from pibls.evolution.form import InTime, compiled
from pibls.evolution.multipliers import State, Unsuitable
from pibls.geometry.part import Part
from pibls.geometry.patch import TimedPatch
from pibls.problem import (
    Across,
    AtPoints,
    Averages,
    Field,
    MultiIndex,
    OnPart,
    Opposite,
    Problem,
    Statement,
    field,
    unknown,
)
from pibls.problem.analysis import analysis_of
from pibls.problem.conditions import Condition, Mean, Periodic, residual_of
from pibls.problem.evaluate import Function, Within, differentiated
from pibls.problem.interface import Interface
from pibls.problem.lowering import Form
from pibls.problem.operators import Divergence, SpaceDerivative
from pibls.problem.switches import has_branches
from pibls.problem.unknown_numbers import put_into

_Z = unknown("z_of_the_resolvent")
_TIME = unknown("time_of_the_resolvent")


@dataclass(frozen=True, eq=False)
class Varying:
    """The terms of an equation that are nonlinear or depend on time, with its source."""

    value: Function  # their sum, a function of the coordinates, time included, and of slots
    slots: tuple[tuple[int, MultiIndex], ...]  # number of the field and space derivative that each stands for
    slopes: tuple[Function, ...]  # derivatives of the sum by the slots
    # the field whose highest time derivative is in the equation, its order there, and the coefficient in space
    field: int
    order: int
    mass: Function

    @cached_property
    def operations(self) -> int:
        """Number of operations of the sum at one point."""
        return int(self.value.expression.count_ops()) + 2 * len(self.slots)


@dataclass(frozen=True, eq=False)
class Past:
    """How a statement of the resolvent depends on data and on the state before."""

    form: Form  # the statement as it was given, in space and time
    # its terms with time derivatives: number of the field, space derivative, order in time, coefficient
    terms: tuple[tuple[int, MultiIndex, int, Function], ...]
    varying: (
        Varying | None
    )  # terms that are nonlinear or depend on time; None where all are linear and constant in time


@dataclass(frozen=True, eq=False)
class Resolvent(InTime):
    """An evolution as a problem in space."""

    orders: tuple[int, ...]  # order in time of each field; zero for those without a time derivative
    initial: Mapping[State, sp.Expr]  # every field at the first time, and its derivatives below its order

    @cached_property
    def varying(self) -> tuple[Varying, ...]:
        """The varying terms of all equations that have some."""
        return tuple(past.varying for own in self._pattern[1] for past in own if past.varying is not None)

    def at(self, z: float, time: float | None = None) -> tuple[Problem, dict[int, Past]]:
        """Return the problem in space for a number, and the past of its statements by their forms.

        Coefficients that depend on time are those at a time, or at the first one.
        """
        values = {_Z: sp.Float(z), _TIME: sp.Float(self.limits[0] if time is None else time)}
        pattern, pasts = self._pattern
        statements = [_with_numbers(s, values) for s in pattern.statements]
        problem = pattern.with_statements(statements, equations=put_into(pattern.equations, values))
        pairs = zip(statements, pasts, strict=True)
        return problem, {id(form): past for s, own in pairs for form, past in zip(s.forms, own, strict=True)}

    @cached_property
    def _pattern(self) -> tuple[Problem, list[list[Past]]]:
        """The problem in space for any number, and the past of the forms of its statements."""
        given, space = self.problem, self.space
        fields = {name: field(name, *space.coordinates) for name in given.field_names}
        time = given.domain.coordinates[-1]
        walk = _Walk(space.coordinates, time, fields)
        of_source: dict[int, list[Statement]] = {}
        for statement in given.statements:
            if not is_initial(statement, given):
                of_source.setdefault(statement.source, []).append(statement)
        equations = []
        for number, own in enumerate(given.equations):
            form, expression = of_source[number][0].form, residual_of(own, "the equation")
            if _varies(form, time):
                whole = replace(walk, keeps_data=True)(expression).xreplace({time: _TIME})
                equations.append(whole + self._start(form))
            else:
                equations.append(walk(expression) + self._source(form))
        conditions = [
            _moved(own, walk, space, [sum(map(self._source, s.forms)) for s in of_source[number]])
            for number, own in enumerate(given.conditions, len(given.equations))
            if number in of_source
        ]
        problem = Problem(equations, space, conditions)
        pasts = [[self._past(form) for form in s.forms] for own in of_source.values() for s in own]
        return problem.with_statements(problem.statements, list(fields.values())), pasts

    def _history(self, form: Form) -> list[tuple[int, MultiIndex, int, sp.Expr]]:
        """Return the terms of a form with time derivatives."""
        return [
            (self.problem.field_names.index(t.field), t.multi_index[:-1], t.multi_index[-1], t.coefficient)
            for t in form.terms
            if t.multi_index[-1]
        ]

    def _past(self, form: Form) -> Past:
        time = self.problem.domain.coordinates[-1]
        terms = ((*own[:3], compiled(own[3], self.space.coordinates)) for own in self._history(form))
        return Past(form, tuple(terms), self._varying(form) if _varies(form, time) else None)

    def _varying(self, form: Form) -> Varying:
        """Return the terms of an equation that are nonlinear or depend on time."""
        names, time = self.problem.field_names, form.coordinates[-1]
        changing = {*form.slots, time}
        own = [t for t in form.terms if t.coefficient.free_symbols & changing]
        # A term whose slope depends on nothing that changes is a summand of its own.
        rest = form.residual.xreplace({t.slot: sp.S.Zero for t in form.terms if t not in own})
        extra = tuple(t.slot for t in own)
        (name, _, order, mass) = max(self._history(form), key=lambda term: term[2])
        return Varying(
            compiled(rest, form.coordinates, extra),
            tuple((names.index(t.field), t.multi_index[:-1]) for t in own),
            tuple(compiled(t.coefficient, form.coordinates, extra) for t in own),
            name,
            order,
            compiled(mass, self.space.coordinates),
        )

    def _source(self, form: Form) -> sp.Expr:
        """Return the source of a statement at the first time, which cells shall resolve."""
        time = self.problem.domain.coordinates[-1]
        # A condition finds by itself which materials are beside it.
        source = form.source.replace(Within, lambda material, *_: material)
        return source.xreplace({time: sp.Float(self.limits[0])}) + self._start(form)

    def _start(self, form: Form) -> sp.Expr:
        """Return the source that the initial values cause."""
        *space, _ = self.problem.domain.coordinates
        found = sp.S.Zero
        for number, index, order, coefficient in self._history(form):
            for below in range(order):
                start = self.initial[self.problem.field_names[number], below]
                found -= coefficient * _Z ** (order - below) * differentiated(start, tuple(space), index)
        return found


@dataclass(frozen=True, eq=False)
class _Walk:
    """Writes expressions of fields in time as expressions of their resolvents."""

    space: tuple[sp.Symbol, ...]
    time: sp.Symbol
    fields: Mapping[str, Any]  # in space, by name
    keeps_data: bool = False  # whether summands without fields stay

    def __call__(self, expression: sp.Expr, order: int = 0) -> sp.Expr:
        """Return an expression, differentiated in time so often; data are left out, unless they are kept."""
        if not expression.has(Field):
            return expression
        if isinstance(expression, Field):
            return _Z**order * self.fields[expression.label]
        if isinstance(expression, sp.Derivative):
            counts = dict(expression.variable_count)
            inner = self(expression.expr, order + int(counts.pop(self.time, 0)))
            return sp.Derivative(inner, *counts.items()) if counts else inner
        if isinstance(expression, SpaceDerivative) and expression.args[1] == self.time:
            return sp.S.Zero
        if isinstance(expression, Divergence) and len(expression.args) > len(self.space):
            return Divergence(*(self(own, order) for own in expression.args[:-1]))
        # A factor is kept, a summand without fields is data.
        kept = self.keeps_data or isinstance(expression, sp.Mul | SpaceDerivative)
        arguments = [self(own, order) if own.has(Field) or kept else sp.S.Zero for own in expression.args]
        return expression.func(*arguments)


def _with_numbers(statement: Statement, values: dict[sp.Symbol, sp.Expr]) -> Statement:
    # Where nothing depends on the number, as across interfaces, a statement is the same for all numbers.
    if not any(values.keys() & form.residual.free_symbols for form in statement.forms):
        return statement
    return replace(statement, form=statement.form.with_values(values))


def _moved(condition: Any, walk: _Walk, space: Any, sources: Sequence[sp.Expr]) -> Any:
    """Return a condition of the evolution as one of its resolvent."""
    if isinstance(condition, Condition):
        equation = walk(residual_of(condition.equation, condition.label)) + sources[0]
        return replace(condition, equation=equation, on=_in_space(condition.on, space), label=condition.label)
    if isinstance(condition, Periodic | Mean):
        return replace(condition, u=walk(condition.u))
    assert isinstance(condition, Interface)
    pairs = zip(condition.equations, sources, strict=True)
    equations = [walk(residual_of(own, condition.label)) + source for own, source in pairs]
    return Interface(equations, condition.on, weight=condition.weight)


def _in_space(part: Any, space: Any) -> Any:
    """Return a part of the boundary of space and time as one of the boundary of space."""
    if part is None or not _lasts(part):
        return part
    return Part(space, part.name, tuple(patch.base for patch in part.patches))


def find_resolvent(problem: Problem) -> Resolvent | Unsuitable:
    """Return an evolution as a problem in space, or why that cannot be done.

    >>> from pibls.problems import heat_robin, poisson
    >>> find_resolvent(poisson())
    Unsuitable(reason='the domain has no time')
    >>> resolvent = find_resolvent(heat_robin())
    >>> print(resolvent.at(2.0)[0].statements[0].form.expression.coeff(resolvent.at(2.0)[0].fields[0]))
    2.00000000000000
    """
    return problem.once(_resolvent)


def _resolvent(problem: Problem) -> Resolvent | Unsuitable:
    if problem.domain.time is None:
        return Unsuitable("the domain has no time")
    if not problem.domain.space:
        return Unsuitable("the domain has no space")
    if problem.parameters or problem.unknown_functions:
        return Unsuitable("it has unknown numbers or functions")
    if analysis_of(problem).jumps and any(flux and has_branches(flux.source) for flux in analysis_of(problem).fluxes):
        return Unsuitable("a term without fields of a flux jumps")
    if reason := next(filter(None, (_hindrance(s, problem) for s in problem.statements)), ""):
        return Unsuitable(reason)
    terms = [t for s in problem.statements if not is_initial(s, problem) for form in s.forms for t in form.terms]
    orders = {
        name: max((t.multi_index[-1] for t in terms if t.field == name), default=0) for name in problem.field_names
    }
    if not any(orders.values()):
        return Unsuitable("no equation has a time derivative")
    initial, reason = initial_states(problem, orders)
    if reason:
        return Unsuitable(reason)
    states = [(name, below) for name, order in orders.items() for below in range(order)]
    if missing := next((state for state in states if state not in initial), None):
        return Unsuitable(f"{'the time derivative of ' * min(missing[1], 1)}{missing[0]} has no initial value")
    if reason := _unsplit(problem, orders):
        return Unsuitable(reason)
    return Resolvent(problem, tuple(orders.values()), initial)


def _hindrance(statement: Statement, problem: Problem) -> str:
    """Say why a statement cannot be written in space alone, if it cannot."""
    time, place = problem.domain.coordinates[-1], statement.place
    if isinstance(place, AtPoints | Averages) or statement.targets is not None:
        return f"{statement.name} holds at points"
    if not statement.is_equation and any(_varies(form, time) for form in statement.forms):
        return f"{statement.name} is not linear, or its coefficients depend on time"
    parts = [place.part] if isinstance(place, OnPart) else [place.low] if isinstance(place, Opposite) else []
    if any(part != problem.domain.initial and not _lasts(part) for part in parts):
        return f"{statement.name} does not hold at all times"
    if isinstance(place, Across) and (
        time in place.condition.free_symbols or any(t.multi_index[-1] for form in statement.forms for t in form.terms)
    ):
        return f"{statement.name} holds on an interface that moves, or has a derivative in time"
    return ""


def _lasts(part: Part) -> bool:
    return all(isinstance(patch, TimedPatch) for patch in part.patches)


def _varies(form: Form, time: sp.Symbol) -> bool:
    """Tell whether a form is nonlinear, or has coefficients that depend on time."""
    return not form.is_linear or any(time in term.coefficient.free_symbols for term in form.terms)


def _unsplit(problem: Problem, orders: Mapping[str, int]) -> str:
    """Say why the varying terms of an equation cannot be left to the state by which it moves, if they cannot."""
    time, moves = problem.domain.coordinates[-1], [t for s in problem.statements for f in s.forms for t in f.terms]
    for statement in (s for s in problem.statements if s.is_equation and _varies(s.form, time)):
        form, name = statement.form, statement.name
        own = [t for t in form.terms if t.multi_index[-1]]
        changing = {*form.slots, time}
        if not own or any(t.coefficient.free_symbols & changing for t in own):
            return f"{name} has no time derivative whose coefficient is constant in time"
        top = max(own, key=lambda t: t.multi_index[-1])
        others = [t for t in moves if t.field == top.field and t.multi_index[-1] == orders[top.field]]
        if len({t.field for t in own}) > 1 or any(any(t.multi_index[:-1]) for t in own) or others != [top]:
            return f"{name} does not give one time derivative by itself"
        if any(time in own.free_symbols and has_branches(own) for own in form.residual.atoms(Application)):
            return f"{name} has a jump that moves"
    return ""
