"""The ordinary differential equation in time that an evolution becomes on a basis in space.

The rates are projected on the basis in the inner product of the quadrature rule. As every function of the basis keeps
the boundary conditions, this is the weak (Galerkin) form: integrating by parts would change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.lines.basis import Basis, Trace
from pibls.lines.constraint import Recovery, traces_of
from pibls.lines.form import Evolution, compiled
from pibls.lines.multipliers import Slot, State
from pibls.lines.pull import Pull, Pulls
from pibls.lines.radau import STAGES, Trajectory, legendre_weights, stage_times
from pibls.lines.rates import Rate, split

__all__ = ["Galerkin"]

_PENALTY = 10.0
_NOTHING = 1e-18


@dataclass(frozen=True, eq=False)
class Galerkin:
    """An evolution on a basis: the right side of an ordinary differential equation for the coefficients.

    The state holds, state by state of the evolution, the coefficients in the kernel of its boundary conditions.
    """

    evolution: Evolution
    basis: Basis
    traces: dict[str, Trace] = field(init=False)
    _spans: dict[State, slice] = field(init=False)
    _rates: dict[str, Rate] = field(init=False)
    _values: dict[tuple[str, Any], FloatArray] = field(init=False)
    _lifted: dict[tuple[str, Any], FloatArray] = field(init=False)
    _tests: dict[str, FloatArray] = field(init=False)
    _acting: dict[str, FloatArray] = field(init=False)
    _drag: dict[str, FloatArray] = field(init=False)
    _linear: FloatArray = field(init=False)
    _linear_lifted: dict[Any, FloatArray] = field(init=False)
    _pull: dict[str, FloatArray] = field(init=False)
    _pulls: Pulls = field(init=False)

    def __post_init__(self) -> None:
        evolution, basis = self.evolution, self.basis
        traces = traces_of(evolution, basis)
        self._set("traces", traces)
        spans: dict[State, slice] = {}
        start = 0
        for name, k in evolution.states:
            # Fields of a constraint share their coefficients.
            partners = [spans[other, k] for other in evolution.constrained if (other, k) in spans]
            if name in evolution.constrained and partners:
                spans[name, k] = partners[0]
                continue
            spans[name, k] = slice(start, start + traces[name].kernel.shape[1])
            start = spans[name, k].stop
        self._set("_spans", spans)
        self._set("_rates", {name: split(evolution, rate) for name, rate in evolution.rates.items()})
        self._prepare()
        self._weigh()
        self._assemble()
        self._penalise()
        if evolution.pulled:
            self._prepare_pulls()

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _prepare(self) -> None:
        """Evaluate what the rates need at the points of the rule, once."""
        zero = (0,) * (self.basis.rule.points.shape[1])
        needed = {
            slot.multi_index for rate in self._rates.values() for slot in (*rate.slots, *(s for s, _ in rate.linear))
        }
        functions = self.basis.at_rule([zero, *sorted(needed - {zero})])
        values, lifted, tests = {}, {}, {}
        made: dict[tuple[int, Any], FloatArray] = {}
        for rate in self._rates.values():
            for slot in rate.slots:
                name = slot.state[0]
                own = self.traces[name]
                key = (id(own), slot.multi_index)
                if key not in made:
                    made[key] = functions[slot.multi_index] @ own.kernel
                values[name, slot.multi_index] = made[key]
                if own.lifting is not None:
                    lifted[name, slot.multi_index] = functions[slot.multi_index] @ own.lifting
        for name in self.evolution.orders:
            key = (id(self.traces[name]), zero)
            if key not in made:
                made[key] = functions[zero] @ self.traces[name].kernel
            tests[name] = np.ascontiguousarray((made[key] * self.basis.rule.weights[:, None]).T)
        self._set("_values", values)
        self._set("_lifted", lifted)
        self._set("_tests", tests)

    def _weigh(self) -> None:
        """Prepare the projection of rates, where it takes one through the mass, and what moving lifted data costs."""
        acting, drag = dict(self._tests), {}
        X = self._points(np.array([self.evolution.limits[0]]))
        coordinates = self.evolution.problem.domain.coordinates
        for name, own in self.traces.items():
            mass = own.kernel.T
            if name in self.evolution.mass:
                terms = self.evolution.mass[name]
                functions = self.basis.at_rule(terms)
                sum_ = sum(compiled(factor, coordinates)(X)[:, None] * functions[i] for i, factor in terms.items())
                whole = self._tests[name] @ sum_
                inverse = np.linalg.inv(whole @ own.kernel)
                acting[name], mass = inverse @ self._tests[name], inverse @ whole
            if own.lifting is not None:
                drag[name] = mass @ own.lifting
        self._set("_acting", acting)
        self._set("_drag", drag)

    def _assemble(self) -> None:
        """Build the part of the Jacobian that is the same at all times, and what it does to the lifted data."""
        size = max(s.stop for s in self._spans.values())
        matrix = np.zeros((size, size))
        lifted: dict[Any, Any] = {}
        X = np.hstack([self.basis.rule.points, np.zeros((len(self.basis.rule.points), 1))])
        for (name, k), span in self._spans.items():
            if k + 1 < self.evolution.orders[name]:
                matrix[span, self._spans[name, k + 1]] = np.eye(span.stop - span.start)
                continue
            for slot, coefficient in self._rates[name].linear:
                own = self.traces[slot.state[0]]
                factor = coefficient(X)[:, None] if coefficient.constant is None else coefficient.constant
                product = self._acting[name] @ (factor * self.basis.cache[slot.multi_index])
                matrix[span, self._spans[slot.state]] += product @ own.kernel
                if own.lifting is not None:
                    lifted[name, slot.state] = lifted.get((name, slot.state), 0) + product @ own.lifting
        self._set("_linear", matrix)
        self._set("_linear_lifted", lifted)

    def _penalise(self) -> None:
        """Pull fields to their boundary data, as strongly as the equation acts on its finest functions."""
        self._set("_pull", {})
        self._set("_pulls", Pulls((), {}, {}, {}))
        penalised = {name: own for name, own in self.traces.items() if own.rows is not None}
        acting = self.jacobian(self.evolution.limits[0], self.initial()).copy() if penalised else self._linear
        for name, own in penalised.items():
            assert own.rows is not None
            assert own.weights is not None
            weighed = own.rows * own.weights[:, None]
            mass = own.rows.T @ weighed
            if np.abs(mass).max() < _NOTHING:
                continue
            top, span = self._spans[name, self.evolution.orders[name] - 1], self._spans[name, 0]
            strength = _PENALTY * _norm(acting[top, span]) / _norm(mass)
            self._linear[top, span] -= strength * mass
            if own.data:
                self._pull[name] = strength * weighed

    def _prepare_pulls(self) -> None:
        """Prepare the conditions that are not built in, each as strong as the equation acts on its finest functions."""
        first, start = self.evolution.limits[0], self.initial()
        acting = self.jacobian(first, start)
        coefficients = self._fields(np.array([first]), start[None])
        tops = {name: self._spans[name, order - 1] for name, order in self.evolution.orders.items()}
        spans = {name: self._spans[name, 0] for name in tops}
        found = []
        for statement in self.evolution.pulled:
            pull, strengths = Pull.of(statement, self.basis), {}
            for name, rows in pull.rows(first, coefficients).items():
                own = rows @ self.traces[name].kernel
                size = max(_norm(own.T @ own), _NOTHING)
                strengths[name] = _PENALTY * max(_norm(acting[tops[name], spans[name]]), 1.0) / size
            found.append((pull, strengths))
        kernels = {name: own.kernel for name, own in self.traces.items()}
        self._set("_pulls", Pulls(tuple(found), kernels, tops, spans))

    def _fields(self, times: FloatArray, states: FloatArray) -> dict[str, FloatArray]:
        """Return the coefficients of every field in the whole basis."""
        return {name: self._whole(name, 0, times, states[:, self._spans[name, 0]]) for name in self.evolution.orders}

    @property
    def is_linear(self) -> bool:
        """Whether the Jacobian is constant."""
        return not self._pulls and not any(rate.slopes for rate in self._rates.values())

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return len(self._linear)

    def sizes(self, states: FloatArray) -> FloatArray:
        """Return the L2 norm of every state, root mean square over space."""
        return np.stack([np.linalg.norm(states[:, span], axis=1) for span in self._parts.values()], axis=1)

    @property
    def _parts(self) -> dict[State, slice]:
        """The states that have coefficients of their own."""
        shared = self.evolution.constrained[1:]
        return {state: span for state, span in self._spans.items() if state[0] not in shared}

    def fastest(self, state: FloatArray, rates: FloatArray) -> float:
        """Return how fast the fastest field changes, relative to its size; infinite where there is nothing yet."""
        found = 0.0
        for name, order in self.evolution.orders.items():
            size = np.linalg.norm(state[self._spans[name, 0]])
            speed = np.linalg.norm(rates[self._spans[name, order - 1]])
            if speed > 0:
                found = max(found, float(speed / size) ** (1 / order) if size > 0 else np.inf)
        return found

    def initial(self) -> FloatArray:
        """Return the projection of the initial values."""
        result = np.zeros(self.size)
        for (name, k), span in self._spans.items():
            result[span] += self._tests[name] @ (self._wanted(name, k) - self._lift(name, k))
        return result

    def initial_values(self, name: str, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the initial values of a field at the points of the rule, as given and as the state has them."""
        zero = (0,) * self.basis.rule.points.shape[1]
        own = self.basis.cache[zero] @ (self.traces[name].kernel @ state[self._spans[name, 0]])
        return self._wanted(name, 0), own + self._lift(name, 0)

    def _wanted(self, name: str, k: int) -> FloatArray:
        first = np.array([self.evolution.limits[0]])
        value = compiled(self.evolution.initial[name, k], self.evolution.problem.domain.coordinates)
        return value(self._points(first))

    def _lift(self, name: str, k: int) -> FloatArray | float:
        own = self.traces[name]
        if own.lifting is None:
            return 0.0
        zero = (0,) * self.basis.rule.points.shape[1]
        return np.asarray(
            self.basis.cache[zero] @ (own.lifting @ own.values(np.array([self.evolution.limits[0]]), k)[0])
        )

    def reach(self, times: FloatArray) -> FloatArray:
        """Return how large the lifted data of every state is at times."""
        sizes = []
        for name, k in self._parts:
            own = self.traces[name]
            sizes.append(
                0.0
                if own.lifting is None
                else float(np.linalg.norm(own.values(times, k) @ own.lifting.T, axis=1).max())
            )
        return np.array(sizes)

    def _points(self, times: FloatArray) -> FloatArray:
        points = self.basis.rule.points
        return np.hstack([np.tile(points, (len(times), 1)), np.repeat(times, len(points))[:, None]])

    def rates(self, times: FloatArray, states: FloatArray) -> FloatArray:
        """Return the time derivative of the coefficients, one row per time."""
        result = states @ self._linear.T
        for (name, state), product in self._linear_lifted.items():
            top = self._spans[name, self.evolution.orders[name] - 1]
            result[:, top] += self.traces[state[0]].values(times, state[1]) @ product.T
        slots: dict[tuple[State, Any], FloatArray] = {}
        for name, rate in self._rates.items():
            order = self.evolution.orders[name]
            top = self._spans[name, order - 1]
            if rate.rest is not None:
                found = [self._slot(slot, times, states, slots).ravel() for slot in rate.slots]
                values = rate.rest(self._points(times), None, found)
                result[:, top] += values.reshape(len(times), -1) @ self._acting[name].T
            own = self.traces[name]
            if name in self._pull:
                result[:, top] += own.values(times) @ self._pull[name]
            if own.lifting is not None:
                result[:, top] -= own.values(times, order) @ self._drag[name].T
        if self._pulls:
            self._pulls.add_rates(times, self._fields(times, states), result)
        return result

    def _slot(
        self, slot: Slot, times: FloatArray, states: FloatArray, known: dict[tuple[State, Any], FloatArray]
    ) -> FloatArray:
        """Return a slot at all points and times, shape (times, points)."""
        key = (slot.state, slot.multi_index)
        if key not in known:
            name, k = slot.state
            values = states[:, self._spans[slot.state]] @ self._values[name, slot.multi_index].T
            if (name, slot.multi_index) in self._lifted:
                values = values + self.traces[name].values(times, k) @ self._lifted[name, slot.multi_index].T
            known[key] = values
        return known[key]

    def jacobian(self, time: float, state: FloatArray) -> FloatArray:
        """Return the derivative of the rates by the coefficients."""
        if self.is_linear:
            return self._linear
        matrix = self._linear.copy()
        times, states = np.array([time]), state[None]
        X = self._points(times)
        known: dict[tuple[State, Any], FloatArray] = {}
        for name, rate in self._rates.items():
            top = self._spans[name, self.evolution.orders[name] - 1]
            found = [self._slot(slot, times, states, known).ravel() for slot in rate.slots]
            by_state: dict[State, Any] = {}
            for slot, slope in rate.slopes:
                factor = slope(X, None, found)[:, None]
                by_state[slot.state] = (
                    by_state.get(slot.state, 0) + factor * self._values[slot.state[0], slot.multi_index]
                )
            for own, combined in by_state.items():
                matrix[top, self._spans[own]] += self._acting[name] @ combined
        if self._pulls:
            self._pulls.add_jacobian(time, self._fields(times, states), matrix)
        return matrix

    def expanded(self, trajectory: Trajectory) -> Trajectory:
        """Return the trajectory of all fields in the whole basis, boundary data included, field by field."""
        steps = np.diff(trajectory.breaks)
        nodes = [np.append(t, stage_times(t, h)) for t, h in zip(trajectory.breaks[:-1], steps, strict=True)]
        times = np.concatenate(nodes)
        found = {}
        for name in self.evolution.orders:
            own = self.traces[name]
            piece = trajectory.coefficients[:, :, self._spans[name, 0]] @ own.kernel.T
            if own.lifting is not None:
                data = own.values(times).reshape(len(steps), STAGES + 1, -1)
                piece = piece + (legendre_weights() @ data) @ own.lifting.T
            found[name] = piece
        for multiplier in self.evolution.multipliers:
            recovery = Recovery.of(multiplier, self.evolution, self.basis)
            values = [recovery(t, self._lacking(t, trajectory(t), recovery.names)) for t in nodes]
            found[multiplier.name] = legendre_weights() @ np.array(values)
        names = self.evolution.problem.field_names
        return Trajectory(trajectory.breaks, np.concatenate([found[name] for name in names], axis=2))

    def _lacking(self, times: FloatArray, states: FloatArray, names: tuple[str, ...]) -> dict[str, FloatArray]:
        """Return what the rates lack at the points of the rule to be those of the solution: (times, points) each."""
        moving = self.rates(times, states)
        X = self._points(times)
        zero = (0,) * self.basis.rule.points.shape[1]
        known: dict[tuple[State, Any], FloatArray] = {}
        result = {}
        for name in names:
            order, rate = self.evolution.orders[name], self._rates[name]
            lacking = (
                self._whole(name, order, times, moving[:, self._spans[name, order - 1]]) @ self.basis.cache[zero].T
            )
            for slot, factor in rate.linear:
                state = states[:, self._spans[slot.state]]
                values = self._whole(*slot.state, times, state) @ self.basis.cache[slot.multi_index].T
                lacking = lacking - factor(X).reshape(len(times), -1) * values
            if rate.rest is not None:
                found = [self._slot(slot, times, states, known).ravel() for slot in rate.slots]
                lacking = lacking - rate.rest(X, None, found).reshape(len(times), -1)
            result[name] = lacking
        return result

    def _whole(self, name: str, k: int, times: FloatArray, part: FloatArray) -> FloatArray:
        """Return the coefficients of a field differentiated ``k`` times in time, in the whole basis."""
        own = self.traces[name]
        lifted = 0.0 if own.lifting is None else own.values(times, k) @ own.lifting.T
        return np.asarray(part @ own.kernel.T + lifted)


def _norm(matrix: FloatArray) -> float:
    """Return a bound of the largest singular value that costs nothing."""
    size = np.abs(matrix)
    return float(np.sqrt(size.sum(axis=0).max() * size.sum(axis=1).max()))
