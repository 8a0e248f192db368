"""Which problems are evolutions: the highest derivatives in time, solved for, as functions of everything else.

A field of order p in time has p states: itself and its first p − 1 derivatives. The equations are solved symbolically
for the derivatives of order p; what is left are rates, functions of the coordinates and of space derivatives of states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.evolution.first_values import initial_states, is_apart, is_initial, is_rate
from pibls.evolution.multipliers import Multiplier, Slot, Solved, State, Unsuitable, find_multipliers
from pibls.problem import Across, Average, Data, Field, MultiIndex, OnPart, Opposite, Problem, Statement
from pibls.problem.analysis import analysis_of
from pibls.problem.evaluate import Function, compile_function, differentiated
from pibls.wellposed.counting import conditions_needed, exceeds, what_lacks
from pibls.wellposed.first_rates import first_rates
from pibls.wellposed.surplus import surplus


@dataclass(frozen=True, eq=False)
class Rate:
    """One rate: a fixed linear part, and the rest with the slots it depends on and its derivatives by them."""

    linear: tuple[tuple[Slot, Function], ...]
    rest: Function | None
    slots: tuple[Slot, ...]
    slopes: tuple[tuple[Slot, Function], ...]


@dataclass(frozen=True, eq=False)
class InTime:
    """A problem in space and time, or in time alone."""

    problem: Problem

    @property
    def space(self) -> Any:
        """The space domain; None for an ordinary differential equation."""
        return getattr(self.problem.domain, "domain", None)

    @property
    def limits(self) -> tuple[float, float]:
        """First and last time."""
        first, last = self.problem.domain.bounds[-1].tolist()
        return first, last


@dataclass(frozen=True, eq=False)
class Evolution(InTime):
    """A problem solved for its highest derivatives in time."""

    orders: Mapping[str, int]  # order in time per field
    # highest derivative in time per field, or what mass makes of it: an expression of the coordinates and of the
    # symbols of slots
    rates: Mapping[str, sp.Expr]
    slots: tuple[Slot, ...]  # what occurs in the rates
    slopes: Mapping[str, Mapping[Slot, sp.Expr]]  # derivatives of the rates by the slots they depend on
    initial: Mapping[State, sp.Expr]  # value of every state at the first time, an expression of the coordinates
    boundary: tuple[Statement, ...]  # statements on the boundary of space
    pulled: tuple[Statement, ...] = ()  # those of them that cannot be built into the functions
    multipliers: tuple[Multiplier, ...] = ()  # fields without a time derivative; neither orders nor rates have them
    # for fields whose highest derivative in time is also differentiated in space, the coefficient of each
    mass: Mapping[str, Mapping[MultiIndex, sp.Expr]] = field(default_factory=dict)
    velocity: float = 0.0  # how fast the coordinate of space moves
    # what the conditions leave open, or which contradict each other, as a sentence; initial values that are not given
    # are zero then
    lacks: str = ""
    # conditions beyond those that determine the solution; boundary does not have them
    surplus: tuple[Statement, ...] = ()

    @property
    def states(self) -> tuple[State, ...]:
        """All states, field by field."""
        return tuple((name, k) for name, order in self.orders.items() for k in range(order))

    @property
    def can_move(self) -> bool:
        """Whether it looks the same from a coordinate that moves: periodic on a line, the same at all places."""
        space = self.space
        if space is None or len(space.coordinates) != 1 or self.mass or self.multipliers:
            return False
        names = {s.form.fields for s in self.boundary if isinstance(s.place, Opposite)}
        # On a line, whatever is given beside periodicity is given at an end.
        periodic = all(isinstance(s.place, Opposite) for s in self.boundary) and len(names) == len(self.orders)
        rates = self.rates.values()
        uniform = not any(space.coordinates[0] in rate.free_symbols or rate.has(Data) for rate in rates)
        return periodic and uniform and set(self.orders.values()) == {1}

    def moving(self, velocity: float) -> Evolution:
        """Return the evolution as seen from a coordinate that moves by so much faster."""
        slots = {slot.state[0]: slot for slot in self.slots if slot.multi_index == (1,)}
        for name in self.orders:
            slots.setdefault(name, Slot((name, 0), (1,), sp.Dummy(f"{name}_x", real=True)))
        rates = {name: rate + sp.Float(velocity) * slots[name].symbol for name, rate in self.rates.items()}
        every = (*(slot for slot in self.slots if slot.multi_index != (1,)), *slots.values())
        slopes, moved = slopes_of(rates, every), self.velocity + velocity
        return replace(self, rates=rates, slots=every, slopes=slopes, velocity=moved)

    def first_values(self, slots: Collection[Slot]) -> Mapping[Slot, Function]:
        """Return some states and slopes at the first time; those that are not known are left out."""
        coordinates, found = self.problem.domain.coordinates, {}
        for slot in slots:
            given = self.initial.get(slot.state)
            if given is not None and not (given.has(Data) and any(slot.multi_index)):
                found[slot] = compile_function(differentiated(given, coordinates, slot.multi_index), coordinates)
        return found

    def first_state(self, X: FloatArray, slots: Collection[Slot]) -> dict[Slot, FloatArray] | None:
        """Return states and slopes at places at the first time; None where one is not known, or not finite."""
        known = self.first_values(slots)
        if not set(slots) <= known.keys():
            return None
        try:
            return {slot: known[slot](X) for slot in slots}
        except ProblemError:
            return None

    @cached_property
    def split_rates(self) -> Mapping[str, Rate]:
        """Every rate, with the part that is linear and has factors known for all times apart from the rest."""
        return {name: self._split(name) for name in self.rates}

    def _split(self, name: str) -> Rate:
        coordinates, symbols = self.problem.domain.coordinates, {slot.symbol for slot in self.slots}
        linear, varying, rest = [], [], self.rates[name]
        for slot, slope in self.slopes[name].items():
            if slope == 0:
                continue
            changing = slope.free_symbols & {*symbols, coordinates[-1]}
            # Terms may cancel only when expanded; what is evaluated is as it was written, for that may overflow.
            if changing and sp.expand(slope).free_symbols & changing:
                varying.append((slot, slope))
            else:
                linear.append((slot, compiled(slope.xreplace(dict.fromkeys(symbols, sp.S.Zero)), coordinates)))
                rest = rest.xreplace({slot.symbol: sp.S.Zero})
        used = tuple(slot for slot, _ in varying)
        extra = tuple(slot.symbol for slot in used)
        slopes = tuple((slot, compiled(slope, coordinates, extra)) for slot, slope in varying)
        return Rate(tuple(linear), None if rest == 0 else compiled(rest, coordinates, extra), used, slopes)

    @property
    def frame(self) -> tuple[float, float, float] | None:
        """The velocity, and start and length of the interval it goes round; None if nothing moves."""
        if not self.velocity:
            return None
        low, high = self.space.bounds[0].tolist()
        return self.velocity, low, high - low

    @property
    def constrained(self) -> tuple[str, ...]:
        """The fields of constraints."""
        found = {name for multiplier in self.multipliers for name in multiplier.constraint.form.fields}
        return tuple(name for name in self.orders if name in found)

    def conditions_on(self, name: str) -> tuple[Statement, ...]:
        """Return the boundary statements of one field that can be built into its functions."""
        return tuple(s for s in self.boundary if s.form.fields == (name,) and s not in self.pulled)


def slopes_of(rates: Mapping[str, sp.Expr], slots: Collection[Slot]) -> dict[str, dict[Slot, sp.Expr]]:
    """Return the derivatives of rates by the slots they depend on."""
    return {name: {s: sp.diff(r, s.symbol) for s in slots if r.has(s.symbol)} for name, r in rates.items()}


def find_evolution(problem: Problem) -> Evolution | Unsuitable:
    """Return a problem solved for its derivatives in time, or why that cannot be done.

    >>> from pibls.problems import klein_gordon, poisson
    >>> evolution = find_evolution(klein_gordon())
    >>> evolution.states, evolution.rates["u"].count_ops()
    ((('u', 0), ('u', 1)), 1)
    >>> find_evolution(poisson())
    Unsuitable(reason='the domain has no time')
    """
    return problem.once(_evolution)


def _evolution(problem: Problem) -> Evolution | Unsuitable:
    time = problem.domain.time
    if time is None:
        return Unsuitable("the domain has no time")
    if problem.parameters:
        return Unsuitable("it has unknown numbers")
    if any(isinstance(s.place, Across) for s in problem.statements):
        return Unsuitable("it has an interface, and functions in space are smooth everywhere")
    if analysis_of(problem).jumps:
        return Unsuitable("the coefficient of a highest derivative in space, or a term of its flux, jumps")
    equations = problem.laws.statements
    names = problem.field_names
    if len(equations) != len(names):
        return Unsuitable(f"it has {len(equations)} equations for {len(names)} fields")
    orders = {name: max(s.form.order_along(time, name) for s in equations) for name in names}
    still = [name for name in names if orders[name] < 1]
    moving = [s for s in equations if any(s.form.order_along(time, name) > 0 for name in names)]
    if not moving or len(moving) + len(still) != len(names):
        what = f"no equation has a time derivative of {still[0]}" if still else "one of its equations has none in time"
        return Unsuitable(what)
    kept = {name: order for name, order in orders.items() if order > 0}
    solved = _solved(moving, kept)
    if isinstance(solved, Unsuitable):
        return solved
    initial, boundary, gauges, problems = _conditions(problem, still, kept)
    constraints = [s for s in equations if s not in moving]
    multipliers = find_multipliers(solved, constraints, still, gauges, boundary)
    if isinstance(multipliers, Unsuitable):
        return multipliers
    solved = solved.without(still)
    pulled = tuple(s for s in boundary if not _built_in(s, time))
    if astray := [s for s in pulled if set(s.form.fields) & set(still)]:
        return Unsuitable(f"{astray[0].name} is a condition on {still[0]}, which follows from the others")
    if problems:
        return Unsuitable(problems[0])
    parts = (tuple(boundary), pulled, multipliers, solved.mass)
    slopes = slopes_of(solved.rates, solved.slots)
    return _judged(Evolution(problem, kept, solved.rates, solved.slots, slopes, initial, *parts))


def _judged(evolution: Evolution) -> Evolution | Unsuitable:
    """Return an evolution with its missing and its surplus conditions."""
    needed = conditions_needed(evolution)
    extra = () if needed is None else surplus(evolution, needed)
    lacks = "" if needed is None else what_lacks(evolution, needed)
    rates = [s for s in evolution.problem.statements if is_rate(s, evolution.problem, evolution.orders)]
    last = [s for s in evolution.problem.statements if is_apart(s, evolution.problem, evolution.orders)]
    missing = {state: sp.S.Zero for state in evolution.states if state not in evolution.initial}
    if last and (needed is None or missing or lacks):  # what is carried along may come from the last time
        return Unsuitable(f"{last[0].name} is given at the last time, or is not a condition on the boundary of space")
    for name, order in missing:
        what = f"{'the time derivative of ' * min(order, 1)}{name} has no initial value"
        if needed is None or exceeds(evolution, needed):
            return Unsuitable(what)
        derivative = f"{name}.diff({evolution.problem.domain.time}{f', {order}' * (order > 1)})" if order else name
        lacks = f"The solution is not unique: {what}. Add one, such as Initial({derivative}, ...)."
    boundary = tuple(s for s in evolution.boundary if s not in extra)
    judged = replace(evolution, initial={**evolution.initial, **missing}, boundary=boundary, lacks=lacks)
    told, unknown = first_rates(judged, rates)
    return replace(judged, lacks=lacks or told, surplus=(*extra, *unknown, *last))


def _conditions(
    problem: Problem, still: list[str], orders: Mapping[str, int]
) -> tuple[dict[State, sp.Expr], list[Statement], list[Statement], list[str]]:
    """Return initial values, boundary statements, averages of still fields, and why others are none of these."""
    initial, reason = initial_states(problem, orders)
    problems, boundary, gauges = [reason] if reason else [], [], []
    for statement in problem.statements[len(problem.equations) :]:
        place, of_still = statement.place, set(statement.form.fields) <= set(still)
        if is_initial(statement, problem) or is_apart(statement, problem, orders):
            continue
        if isinstance(place, Average) and of_still and statement.form.is_linear:
            gauges.append(statement)
        elif reason := _unusable(statement):
            problems.append(reason)
        else:
            boundary.append(statement)
    return initial, boundary, gauges, problems


_Symbols = dict[tuple[str, MultiIndex], sp.Symbol]


def _residuals(equations: list[Statement]) -> tuple[_Symbols, list[sp.Expr]]:
    """Return the residuals with one symbol per field and derivative, the same in all of them."""
    symbols: _Symbols = {}
    residuals = []
    for statement in equations:
        form = statement.form
        own = {}
        for term in form.terms:
            key = (term.field, term.multi_index)
            own[term.slot] = symbols.setdefault(key, sp.Dummy(term.slot.name, real=True))
        # Slots without a term cancel: any value will do for them.
        gone = dict.fromkeys(form.residual.free_symbols - set(form.coordinates) - set(own), sp.S.Zero)
        residuals.append(form.residual.xreplace(own | gone))
    return symbols, residuals


def _solved(equations: list[Statement], orders: Mapping[str, int]) -> Solved | Unsuitable:
    """Solve the equations for the highest time derivatives."""
    symbols, residuals = _residuals(equations)
    tops = {(name, index[:-1]): s for (name, index), s in symbols.items() if index[-1] == orders.get(name)}
    unknowns = list(tops.values())
    rows = [[sp.diff(r, s) for s in unknowns] for r in residuals]
    if any(entry.free_symbols & set(unknowns) for row in rows for entry in row):
        return Unsuitable("it is not linear in its highest time derivatives")
    rest = [r.xreplace(dict.fromkeys(unknowns, sp.S.Zero)) for r in residuals]
    slots = tuple(
        Slot((name, index[-1]), index[:-1], symbol)
        for (name, index), symbol in symbols.items()
        if symbol not in unknowns
    )
    if any(any(index) for _, index in tops):
        time = equations[0].form.coordinates[-1]
        return _with_mass(rows, rest, tuple(tops), Solved({}, slots), {*symbols.values(), time})
    order = [unknowns.index(tops[name, (0,) * (len(next(iter(symbols))[1]) - 1)]) for name in orders]
    rows = [[row[column] for column in order] for row in rows]
    if all(entry == 0 for i, row in enumerate(rows) for j, entry in enumerate(row) if i != j):
        if any(rows[i][i].is_zero for i in range(len(rows))):
            return Unsuitable("one of its equations has no time derivative")
        rates = [-r / rows[i][i] for i, r in enumerate(rest)]
    elif sp.simplify((matrix := sp.Matrix(rows)).det()) == 0:
        return Unsuitable("one of its equations has no time derivative, or two have the same")
    else:
        rates = list(-matrix.LUsolve(sp.Matrix(rest)))
    return Solved({name: _summed(rate) for name, rate in zip(orders, rates, strict=True)}, slots)


def _with_mass(
    rows: list[list[sp.Expr]],
    rest: list[sp.Expr],
    tops: tuple[tuple[str, MultiIndex], ...],
    solved: Solved,
    varying: set[sp.Symbol],
) -> Solved | Unsuitable:
    """Leave derivatives in time that are also differentiated in space to be solved for in the basis."""
    rates: dict[str, sp.Expr] = {}
    mass: dict[str, dict[MultiIndex, sp.Expr]] = {}
    for row, other in enumerate(rest):
        own = {top: rows[row][column] for column, top in enumerate(tops) if rows[row][column] != 0}
        names = {name for name, _ in own}
        if len(names) != 1 or names & rates.keys():
            return Unsuitable("highest time derivatives that are also differentiated in space are coupled")
        if any(value.free_symbols & varying for value in own.values()):
            return Unsuitable("the factors of its highest time derivatives depend on time or on the solution")
        (name,) = names
        if not any(not any(index) for _, index in own):
            return Unsuitable(f"the highest time derivative of {name} occurs only also differentiated in space")
        rates[name], mass[name] = _summed(-other), {index: value for (_, index), value in own.items()}
    return Solved(rates, solved.slots, mass)


def _summed(rate: sp.Expr) -> sp.Expr:
    """Return a rate as a sum; arguments of functions stay: exp(-(t - 9)**2) must not become factors."""
    return sp.expand_mul(rate, deep=False)


def _unusable(statement: Statement) -> str:
    """Say why a condition cannot be kept while time goes on, if it cannot."""
    if not isinstance(statement.place, OnPart | Opposite):
        return f"{statement.name} is not a condition on the boundary of space"
    part = statement.place.part if isinstance(statement.place, OnPart) else statement.place.low
    if part.sample(1).normals[0, -1] != 0.0:
        return f"{statement.name} is given at a piece of the first or the last time, or at both"
    if any(term.multi_index[-1] for term in statement.form.terms):
        return f"{statement.name} has a derivative in time"
    return ""


def _built_in(statement: Statement, time: sp.Symbol) -> bool:
    """Tell whether a condition can be built into the functions: linear, of one field, the same at all times."""
    form = statement.form
    if not form.is_linear or len(form.fields) != 1:
        return False
    if any(time in term.coefficient.free_symbols or term.coefficient.has(Data) for term in form.terms):
        return False
    # Data functions cannot be differentiated in time.
    return not (form.source.has(Data, Field) and time in form.source.free_symbols)


@lru_cache(maxsize=512)
def compiled(expression: sp.Expr, coordinates: tuple[sp.Symbol, ...], extra: tuple[sp.Symbol, ...] = ()) -> Function:
    """Compile an expression; the same one is asked for again on finer and finer features."""
    return compile_function(expression, coordinates, extra)
