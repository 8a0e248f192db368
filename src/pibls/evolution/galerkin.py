"""The ordinary differential equation in time that an evolution becomes on a basis in space.

The rates are projected on the basis in the inner product of the quadrature rule. As every function of the basis keeps
the boundary conditions, this is the weak (Galerkin) form: integrating by parts would change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.evolution import cost
from pibls.evolution.basis import Basis, Trace, at_times
from pibls.evolution.constraint import traces_of
from pibls.evolution.form import Evolution, Rate, compiled
from pibls.evolution.multipliers import Slot, State
from pibls.evolution.penalty import Penalty
from pibls.problem import MultiIndex
from pibls.refinement.standards import NEGLIGIBLE

Known = dict[tuple[State, MultiIndex], FloatArray]


@dataclass(frozen=True, eq=False)
class Galerkin:
    """An evolution on a basis: the right side of an ordinary differential equation for the coefficients.

    The state holds, state by state of the evolution, the coefficients in the kernel of its boundary conditions.
    """

    evolution: Evolution
    basis: Basis

    @cached_property
    def traces(self) -> dict[str, Trace]:
        """The part of the basis that keeps the conditions, field by field."""
        return traces_of(self.evolution, self.basis)

    @cached_property
    def spans(self) -> dict[State, slice]:
        """Where the coefficients of every state are."""
        spans: dict[State, slice] = {}
        start = 0
        for name, k in self.evolution.states:
            # Fields of a constraint share their coefficients.
            partners = [spans[other, k] for other in self.evolution.constrained if (other, k) in spans]
            if name in self.evolution.constrained and partners:
                spans[name, k] = partners[0]
                continue
            spans[name, k] = slice(start, start + self.traces[name].kernel.shape[1])
            start = spans[name, k].stop
        return spans

    @cached_property
    def tops(self) -> dict[str, slice]:
        """Where the highest state of every field is."""
        return {name: self.spans[name, order - 1] for name, order in self.evolution.orders.items()}

    @property
    def _zero(self) -> MultiIndex:
        return (0,) * int(self.basis.rule.points.shape[1])

    @cached_property
    def _made(self) -> dict[tuple[int, MultiIndex], FloatArray]:
        return {}

    def _functions(self, name: str, index: MultiIndex) -> FloatArray:
        """Return a derivative of the functions of a field at the points of the rule; fields may share them."""
        own = self.traces[name]
        key = (id(own), index)
        if key not in self._made:
            self._made[key] = self.basis.at_rule([index])[index] @ own.kernel
        return self._made[key]

    @cached_property
    def _tests(self) -> dict[str, FloatArray]:
        weights = self.basis.rule.weights[:, None]
        return {
            name: np.ascontiguousarray((self._functions(name, self._zero) * weights).T)
            for name in self.evolution.orders
        }

    @cached_property
    def _projections(self) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """The projections of rates at the points of the rule, and of those in the basis, through the mass."""
        acting, drag = dict(self._tests), {name: own.kernel.T for name, own in self.traces.items()}
        X = at_times(self.basis.rule.points, np.array([self.evolution.limits[0]]))
        coordinates = self.evolution.problem.domain.coordinates
        for name, terms in self.evolution.mass.items():
            functions = self.basis.at_rule(terms)
            sum_ = sum(compiled(factor, coordinates)(X)[:, None] * functions[i] for i, factor in terms.items())
            whole = self._tests[name] @ sum_
            inverse = np.linalg.inv(whole @ self.traces[name].kernel)
            acting[name], drag[name] = inverse @ self._tests[name], inverse @ whole
        return acting, drag

    @property
    def _acting(self) -> dict[str, FloatArray]:
        return self._projections[0]

    @cached_property
    def _operators(self) -> dict[tuple[str, State], FloatArray]:
        """The fixed linear part of each rate, from each state, in the whole basis."""
        X = at_times(self.basis.rule.points, np.zeros(1))
        found: dict[tuple[str, State], Any] = {}
        for name, rate in self.evolution.split_rates.items():
            for slot, coefficient in rate.linear:
                factor = coefficient(X)[:, None] if coefficient.constant is None else coefficient.constant
                product = self._acting[name] @ (factor * self.basis.at_rule([slot.multi_index])[slot.multi_index])
                found[name, slot.state] = found.get((name, slot.state), 0) + product
        return found

    @cached_property
    def _unpulled(self) -> FloatArray:
        """The part of the Jacobian that is the same at all times, without penalties."""
        size = max(s.stop for s in self.spans.values())
        matrix = np.zeros((size, size))
        for (name, k), span in self.spans.items():
            if k + 1 < self.evolution.orders[name]:
                matrix[span, self.spans[name, k + 1]] = np.eye(span.stop - span.start)
        for (name, state), product in self._operators.items():
            matrix[self.tops[name], self.spans[state]] += product @ self.traces[state[0]].kernel
        return matrix

    @cached_property
    def _penalties(self) -> list[tuple[Penalty, dict[str, float]]]:
        """The conditions that are not built in, each as strong as the equation acts on its finest functions."""
        evolution, found = self.evolution, []
        free = [name for name in evolution.orders if name not in evolution.constrained and len(self._zero) > 1]
        fixed = [statement for name in free for statement in evolution.conditions_on(name)]
        (first, last), start = evolution.limits, self.initial()
        acting = self._sloped(self._unpulled, first, start) if fixed or evolution.pulled else None
        for statement in (*fixed, *evolution.pulled):
            penalty, strengths = Penalty.of(statement, self.basis, is_fixed=statement in fixed), {}
            for name, rows in penalty.rows(first, self._fields(np.array([first]), start[None])).items():
                assert acting is not None
                own = rows @ self.traces[name].kernel
                size, speed = _norm(own.T @ own), _norm(acting[self.tops[name], self.spans[name, 0]])
                strengths[name] = max(speed, 1.0 / (last - first)) / (NEGLIGIBLE * size) if size > 0 else 0.0
            found.append((penalty, strengths))
        return found

    @cached_property
    def _linear(self) -> FloatArray:
        """The part of the Jacobian that is the same at all times."""
        matrix = self._unpulled.copy()
        for penalty, strengths in self._penalties:
            for name, strength in strengths.items() if penalty.is_fixed else ():
                rows = penalty.fixed_rows
                matrix[self.tops[name], self.spans[name, 0]] -= strength * rows.T @ rows
        return matrix

    @property
    def _pulls(self) -> list[tuple[Penalty, dict[str, float]]]:
        """The penalties that change with fields or in time."""
        return [own for own in self._penalties if not own[0].is_fixed]

    def _fields(self, times: FloatArray, states: FloatArray) -> dict[str, FloatArray]:
        """Return the coefficients of every field in the whole basis."""
        return {
            name: states[:, self.spans[name, 0]] @ self.traces[name].kernel.T + self.traces[name].lifted(times)
            for name in self.evolution.orders
        }

    @cached_property
    def is_linear(self) -> bool:
        """Whether the Jacobian is constant."""
        return not self._pulls and not any(rate.slopes for rate in self.evolution.split_rates.values())

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return len(self._linear)

    @property
    def preparation(self) -> float:
        """Operations that it takes to prepare all this, basis included."""
        points, (nodes, size) = len(self.basis.rule.points), self.basis.transform.shape
        products = len(self._operators) * self.size * points * size
        shared = len(self.evolution.constrained) * size
        return cost.basis(points, nodes, size, len(self.basis.cache)) + cost.dense(
            2.0 * products + cost.SINGULAR * points * shared**2
        )

    @cached_property
    def costs(self) -> tuple[float, float]:
        """Operations of the rates at one time, and of the Jacobian."""
        points, size = len(self.basis.rule.points), self.basis.size
        slots = {(slot.state, slot.multi_index) for rate in self.evolution.split_rates.values() for slot in rate.slots}
        products, slopes, numbers = self.size**2 + len(slots) * points * size, 0.0, 0.0
        for name, rate in self.evolution.split_rates.items():
            if rate.rest is not None:
                products += points * len(self._acting[name])
                numbers += points * (1.0 + rate.rest.expression.count_ops())
            for slot, _ in rate.slopes:
                slopes += points * len(self._functions(slot.state[0], slot.multi_index).T) * len(self._acting[name])
        return cost.dense(2.0 * products) + cost.PER_NUMBER * numbers, cost.dense(2.0 * slopes)

    @property
    def step_costs(self) -> tuple[float, float]:
        """Operations of factors for a step, and of solving with them."""
        return cost.factorisations(self.size), cost.substitutions(self.size)

    def sizes(self, states: FloatArray) -> FloatArray:
        """Return the L2 norm of every state, root mean square over space."""
        return np.stack([np.linalg.norm(states[:, span], axis=1) for span in self._parts.values()], axis=1)

    @cached_property
    def _parts(self) -> dict[State, slice]:
        """The states that have coefficients of their own."""
        shared = self.evolution.constrained[1:]
        return {state: span for state, span in self.spans.items() if state[0] not in shared}

    def initial(self) -> FloatArray:
        """Return the projection of the initial values."""
        result = np.zeros(len(self._unpulled))
        for (name, k), span in self.spans.items():
            result[span] += self._tests[name] @ (self._wanted(name, k) - self._lifted(name, k))
        return result

    def initial_values(self, name: str, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the initial values of a field at the points of the rule, as given and as the state has them."""
        own = self.basis.cache[self._zero] @ (self.traces[name].kernel @ state[self.spans[name, 0]])
        return self._wanted(name, 0), own + self._lifted(name, 0)

    def _wanted(self, name: str, k: int) -> FloatArray:
        value = compiled(self.evolution.initial[name, k], self.evolution.problem.domain.coordinates)
        return value(at_times(self.basis.rule.points, np.array([self.evolution.limits[0]])))

    def _lifted(self, name: str, k: int) -> FloatArray:
        """Return the part of an initial value that comes from boundary data."""
        first = np.array([self.evolution.limits[0]])
        return np.asarray(self.basis.cache[self._zero] @ self.traces[name].lifted(first, k)[0])

    def reach(self, times: FloatArray) -> FloatArray:
        """Return how large the lifted data of every state is at times."""
        return np.array([np.linalg.norm(self.traces[name].lifted(times, k), axis=1).max() for name, k in self._parts])

    def rates(self, times: FloatArray, states: FloatArray) -> FloatArray:
        """Return the time derivative of the coefficients, one row per time."""
        result = states @ self._linear.T
        for (name, state), product in self._operators.items():
            if (own := self.traces[state[0]]).lifting is not None:
                result[:, self.tops[name]] += own.lifted(times, state[1]) @ product.T
        known: Known = {}
        for name, rate in self.evolution.split_rates.items():
            top, own = self.tops[name], self.traces[name]
            if rate.rest is not None:
                result[:, top] += self.rest_values(rate, times, states, known) @ self._acting[name].T
            if own.lifting is not None:
                result[:, top] -= own.lifted(times, self.evolution.orders[name]) @ self._projections[1][name].T
        for penalty, strengths in self._penalties:
            for name, strength in strengths.items() if penalty.is_fixed else ():
                if (drive := penalty.drive(times)) is not None:
                    result[:, self.tops[name]] -= strength * drive
        for pull, strengths in self._pulls:
            for name, force in pull.force(times, self._fields(times, states)).items():
                result[:, self.tops[name]] -= strengths[name] * force @ self.traces[name].kernel
        return result

    def rest_values(self, rate: Rate, times: FloatArray, states: FloatArray, known: Known) -> FloatArray:
        """Return the part of a rate that is not fixed and linear, at all points and times, shape (times, points)."""
        assert rate.rest is not None
        found = [self.slot_values(slot, times, states, known).ravel() for slot in rate.slots]
        return rate.rest(at_times(self.basis.rule.points, times), None, found).reshape(len(times), -1)

    def slot_values(self, slot: Slot, times: FloatArray, states: FloatArray, known: Known) -> FloatArray:
        """Return a slot at all points and times, shape (times, points)."""
        key = (slot.state, slot.multi_index)
        if key not in known:
            (name, order), own = slot.state, self.traces[slot.state[0]]
            known[key] = states[:, self.spans[slot.state]] @ self._functions(name, slot.multi_index).T
            if own.lifting is not None:
                known[key] += own.lifted(times, order) @ self.basis.at_rule([slot.multi_index])[slot.multi_index].T
        return known[key]

    def jacobian(self, time: float, state: FloatArray) -> FloatArray:
        """Return the derivative of the rates by the coefficients."""
        if self.is_linear:
            return self._linear
        matrix = self._sloped(self._linear, time, state)
        for rows, strengths in self._pulling(time, state):
            for name in rows:
                for other in rows:
                    matrix[self.tops[name], self.spans[other, 0]] -= strengths[name] * rows[name].T @ rows[other]
        return matrix

    def _pulling(self, time: float, state: FloatArray) -> list[tuple[dict[str, FloatArray], dict[str, float]]]:
        """Return the derivative of pulled conditions by coefficients, and how strong each is.

        Without the derivative of g', which vanishes with g.
        """
        made = []
        for pull, strengths in self._pulls:
            found = pull.rows(time, self._fields(np.array([time]), state[None]))
            made.append(({name: own @ self.traces[name].kernel for name, own in found.items()}, strengths))
        return made

    def _sloped(self, fixed: FloatArray, time: float, state: FloatArray) -> FloatArray:
        """Return the Jacobian: its fixed part, and that of the other terms."""
        matrix, by_state = fixed.copy(), dict[tuple[str, State], Any]()
        for name, slot, slope in self._slopes(np.array([time]), state[None]):
            combined = slope[:, None] * self._functions(slot.state[0], slot.multi_index)
            by_state[name, slot.state] = by_state.get((name, slot.state), 0) + combined
        for (name, own), combined in by_state.items():
            matrix[self.tops[name], self.spans[own]] += self._acting[name] @ combined
        return matrix

    def _slopes(self, times: FloatArray, states: FloatArray) -> Iterator[tuple[str, Slot, FloatArray]]:
        """Yield the derivative of every rate by every slot that is not fixed, at points, times slowest."""
        known, X = Known(), at_times(self.basis.rule.points, times)
        for name, rate in self.evolution.split_rates.items():
            found = [self.slot_values(slot, times, states, known).ravel() for slot in rate.slots]
            for slot, slope in rate.slopes:
                yield name, slot, slope(X, None, found)

    def tangent(self, times: FloatArray, states: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the function from vectors, (times, n, sides), to the Jacobian at times and states times these."""
        terms = []
        for name, slot, slope in self._slopes(times, states):
            functions, factors = self._functions(slot.state[0], slot.multi_index), slope.reshape(len(times), -1, 1)
            terms.append((self.tops[name], self._acting[name], factors, functions, self.spans[slot.state]))
        pulling = [self._pulling(time, state) for time, state in zip(times, states, strict=True)]

        def product(sides: FloatArray) -> FloatArray:
            result = self._linear @ sides
            for number, pulls in enumerate(pulling):
                for rows, strengths in pulls:
                    gap = sum(own @ sides[number, self.spans[name, 0]] for name, own in rows.items())
                    for name, own in rows.items():
                        result[number, self.tops[name]] -= strengths[name] * (own.T @ gap)
            for top, acting, factors, functions, span in terms:
                result[:, top] += acting @ (factors * (functions @ sides[:, span]))
            return np.asarray(result)

        return product

    @property
    def is_plain(self) -> bool:
        """Whether every field has coefficients of its own."""
        return not (self.evolution.multipliers or self.evolution.constrained)

    def restated(self, evolution: Evolution) -> Galerkin:
        """Return another evolution on this basis, with all that both have in common."""
        made = Galerkin(evolution, self.basis)
        if not self.is_like(made):
            return made
        # The functions that keep conditions are the same, and so is what rates make of them if these are.
        shared = ["traces", "_made", "_tests"] if not any(t.data for t in made.traces.values()) else ["_tests"]
        if evolution.rates == self.evolution.rates and evolution.mass == self.evolution.mass:
            shared += ["_projections", "_operators", "_unpulled"]
        vars(made).update({name: getattr(self, name) for name in shared})
        return made

    def is_like(self, other: Galerkin) -> bool:
        """Tell whether another evolution on this basis has the same coefficients."""
        kernels = [(own.kernel, other.traces[name].kernel) for name, own in self.traces.items()]
        return self.is_plain and all(np.array_equal(one, two) for one, two in kernels)

    def started(self, state: State, values: FloatArray) -> FloatArray:
        """Return the coefficients of initial values of a state: from (points, sides) to (n, sides)."""
        result = np.zeros((self.size, values.shape[1]))
        result[self.spans[state]] = self._tests[state[0]] @ values
        return result

    def forced(self, name: str, rates: FloatArray) -> FloatArray:
        """Return the rates of coefficients from those of a field: from (times, points, sides) to (times, n, sides)."""
        result = np.zeros((len(rates), self.size, rates.shape[2]))
        result[:, self.tops[name]] = self._acting[name] @ rates
        return result


def _norm(matrix: FloatArray) -> float:
    """Return a bound of the largest singular value that costs nothing."""
    size = np.abs(matrix)
    return float(np.sqrt(size.sum(axis=0).max() * size.sum(axis=1).max()))
