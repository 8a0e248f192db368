"""Scalar conservation laws u_t + f(u)_x = 0 on a line, written with a speed f′(u) that depends on u alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.problem.evaluate import compile_function
from pibls.problem.lowering import Form
from pibls.problem.places import OnPart, Opposite
from pibls.problem.problem import Problem
from pibls.problem.statements import Statement
from pibls.problem.switches import factors_of, zeros
from pibls.quadrature.roots import CLOSE, SCAN
from pibls.quadrature.rules import gauss

Values = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Break:
    """A place at which initial values switch, with the values on both sides."""

    place: float
    left: float
    right: float

    def shifted(self, shift: float) -> Break:
        """Return its copy at a distance."""
        return replace(self, place=self.place + shift)


@dataclass(frozen=True, eq=False)
class ConservationLaw:
    """A conservation law with initial values on a line, and constant values at ends where characteristics enter.

    Beyond such an end the line goes on with the value given there: characteristics from there carry it inside. A line
    that is periodic goes on with its own values.
    """

    problem: Problem
    state: sp.Symbol
    speed_expression: sp.Expr
    initial: sp.Expr
    ends: tuple[float | None, float | None]
    is_periodic: bool = False

    @property
    def bounds(self) -> FloatArray:
        """Ends of the line, and of time."""
        return np.asarray(self.problem.domain.bounds, dtype=np.float64)

    @property
    def until(self) -> float:
        """The time from first to last."""
        return float(np.ptp(self.bounds[1]))

    @cached_property
    def shifts(self) -> FloatArray:
        """The distances of the copies of the line from which something may come: none but itself if not periodic."""
        length = float(np.ptp(self.bounds[0]))
        count = int(self.is_periodic) * int(np.ceil(self.reach / length))
        return np.asarray(length * np.arange(-count, count + 1))

    def _within(self, feet: FloatArray) -> FloatArray:
        """Return the places of the line with the same initial state, or the nearest ones."""
        low, high = self.bounds[0].tolist()
        if self.is_periodic:
            return np.asarray(low + np.mod(feet - low, high - low))
        return np.clip(feet, low, high)

    @cached_property
    def reach(self) -> float:
        """The length of the line, and the farthest that characteristics lead."""
        places = np.linspace(float(self.bounds[0, 0]), float(self.bounds[0, 1]), SCAN**2)
        ends = np.concatenate([self.at(places), [end for end in self.ends if end is not None]])
        return float(np.abs(self.speed(ends)).max()) * self.until + float(np.ptp(places))

    @cached_property
    def speed(self) -> Values:
        """The speed of characteristics by state."""
        return _of(self.speed_expression, self.state)

    @cached_property
    def flux(self) -> Values:
        """The flux by state, the integral of the speed."""
        return _of(sp.integrate(sp.expand(self.speed_expression), self.state), self.state)

    @cached_property
    def _given(self) -> Values:
        (x,), time = self.problem.domain.space, self.problem.domain.time
        return _of(self.initial.subs(time, self.bounds[1, 0]), x)

    def at(self, feet: FloatArray) -> FloatArray:
        """Return the initial state at places, also beyond the ends."""
        low, high = self.bounds[0]
        found = self._given(self._within(feet))
        for end, beyond in zip(self.ends, (feet < low, feet > high), strict=True):
            found = found if end is None else np.where(beyond, end, found)
        return np.asarray(found)

    def pace(self, feet: FloatArray) -> FloatArray:
        """Return the speed at which characteristics start from places."""
        return self.speed(self.at(feet))

    @cached_property
    def slopes(self) -> Values:
        """The derivative of the initial speed by the place, on the line, beside its jumps."""
        (x,), time = self.problem.domain.space, self.problem.domain.time
        real = sp.Dummy(real=True)  # absolute values of others have no slopes
        pace = self.speed_expression.subs(self.state, self.initial.subs({time: self.bounds[1, 0], x: real}))
        slopes = _of(pace.diff(real).replace(sp.DiracDelta, lambda *_: sp.S.Zero), real)
        return lambda feet: slopes(self._within(feet))

    @cached_property
    def breaks(self) -> tuple[Break, ...]:
        """Where initial values switch, or differ from those given at an end; in a period, if it is periodic."""
        (x,), (low, high) = self.problem.domain.space, self.bounds[0]
        s, near = np.linspace(low, high, SCAN**2), CLOSE * (high - low)
        found = {float(low)} if self.is_periodic else {float(low), float(high)}
        for factor in factors_of([self.initial], (x,)):
            found |= set(zeros(_of(factor, x), s))
        if self.is_periodic and self._is_smooth(float(low), near):
            found.remove(float(low))
        sides = [(place, *self.at(np.array([place - near, place + near])).tolist()) for place in sorted(found)]
        return tuple(Break(*own) for own in sides)

    def _is_smooth(self, place: float, near: float) -> bool:
        """Tell whether values and slopes are the same on both sides of a place."""
        s, sides = np.linspace(self.bounds[0, 0], self.bounds[0, 1], SCAN**2), np.array([place - near, place + near])
        pairs = ((own(sides), own(s) * np.ones(len(s))) for own in (self.at, self.slopes))
        return all(np.ptp(two) <= np.sqrt(CLOSE) * np.abs(every).max() for two, every in pairs)

    @cached_property
    def stretches(self) -> list[tuple[float, float]]:
        """The stretches between places at which initial values switch; of a period, if it is periodic."""
        edges, length = [own.place for own in self.breaks], float(np.ptp(self.bounds[0]))
        if not edges:
            # No profile folds where its speed rises fastest.
            s = np.linspace(self.bounds[0, 0], self.bounds[0, 1], SCAN**2)
            edges = [float(s[self.slopes(s).argmax()])]
        return list(pairwise([*edges, edges[0] + length] if self.is_periodic else edges))

    def sums(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the integrals of the initial state between places."""
        nodes, weights = gauss(2 * SCAN)
        known = {*self.bounds[0].tolist(), *(own.place for own in self.breaks)}
        edges = sorted({place + shift for place in known for shift in self.shifts.tolist()})
        total = np.zeros(len(low))
        for start, stop in pairwise([-np.inf, *edges, np.inf]):
            a, b = np.clip(low, start, stop), np.clip(high, start, stop)
            feet = a[:, None] + (b - a)[:, None] * nodes
            total += (b - a) * (self.at(feet.ravel()).reshape(feet.shape) @ weights)
        return total


def conservation_law(problem: Problem) -> ConservationLaw | None:
    """Return a problem as a conservation law, or None if it is none of the kind.

    >>> import pibls as pb
    >>> x, t = pb.coordinates("x t")
    >>> u, line = pb.field("u", x, t), pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    >>> law = conservation_law(Problem(u.diff(t) + u * u.diff(x), line, [pb.Initial(u, sp.Heaviside(0.5 - x))]))
    >>> law.speed(np.array([3.0])), law.flux(np.array([3.0])), [own.place for own in law.breaks]
    (array([3.]), array([4.5]), [0.0, 0.5, 1.0])
    """
    domain = problem.domain
    if problem.is_linear or len(problem.fields) != 1 or domain.time is None or len(domain.coordinates) != 2:
        return None
    equations = problem.laws.forms
    speed = _speed(equations[0]) if len(equations) == 1 else None
    if speed is None:
        return None
    initial: sp.Expr | None = None
    ends: list[float | None] = [None, None]
    is_periodic = False
    for statement in (s for s in problem.statements if not s.is_equation):
        value = value_given(statement)
        if value == 0 and isinstance(statement.place, Opposite):
            is_periodic = True
            continue
        if value is None or not isinstance(statement.place, OnPart):
            return None
        if statement.place.part == domain.initial:
            initial = value
            continue
        places = np.concatenate([patch.at(np.array([[0.5]]))[0] for patch in statement.place.part.patches])[:, 0]
        for k, end in enumerate(domain.bounds[0]):
            if (places == end).any():
                if value.free_symbols:
                    return None
                ends[k] = float(value)
    if initial is None or (is_periodic and ends != [None, None]):
        return None
    return ConservationLaw(problem, *speed, initial, (ends[0], ends[1]), is_periodic)


def _speed(equation: Form) -> tuple[sp.Symbol, sp.Expr] | None:
    """Return the symbol of the state and the speed if an equation is u_t + c(u) u_x = 0, else None."""
    slots = {term.multi_index: term.slot for term in equation.terms}
    if set(slots) != {(0, 0), (1, 0), (0, 1)}:
        return None
    state, along, ahead = (slots[index] for index in ((0, 0), (1, 0), (0, 1)))
    residual = equation.residual
    rate, factor = residual.diff(ahead), residual.diff(along)
    if rate.free_symbols or sp.expand(residual - rate * ahead - factor * along) != 0:
        return None
    speed = sp.expand(factor / rate)
    return (state, speed) if speed.is_polynomial(state) and speed.free_symbols == {state} else None


def value_given(statement: Statement) -> sp.Expr | None:
    """Return the value that a condition gives to the field, or None if it gives another one."""
    form = statement.form
    if not form.is_linear or len(form.terms) != 1 or form.order:
        return None
    return -form.source / form.terms[0].coefficient


def _of(expression: sp.Expr, symbol: sp.Symbol) -> Values:
    """Return an expression of one symbol as a function."""
    function = compile_function(expression, (symbol,))
    return lambda values: function(np.reshape(values, (-1, 1)))
