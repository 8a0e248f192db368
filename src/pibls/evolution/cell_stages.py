"""Steps of an evolution on a tree of cells: a few resolvents each, whose factors serve every step of equal length."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import sympy as sp

from pibls.budget import Budget
from pibls.cells.error_marking import ErrorMarking
from pibls.cells.evaluation import PlacedStatement, Sources, power
from pibls.cells.layout import Layout
from pibls.cells.outcome import network_of
from pibls.cells.parts import CellPart
from pibls.cells.repeated import Lifted, Repeated
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.cells.state import TreeState
from pibls.cells.tree import Cell, leaves
from pibls.checks import BoolArray, FloatArray
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.basis import at_times
from pibls.evolution.form import compiled
from pibls.evolution.rational import (
    ORDER,
    data_nodes,
    data_weights,
    node_weights,
    pole,
    step_weights,
    still_weights,
    term_weights,
)
from pibls.evolution.remainders import AlikeParts, Remainders, groups_of
from pibls.evolution.resolvent import Past, Resolvent
from pibls.refinement.standards import MOST, NEGLIGIBLE, PLAIN
from pibls.runtime import available_memory
from pibls.solution.sizes import field_scales

States = FloatArray
"""Weights of all states: shape (parts, orders in time, fields, functions)."""


@dataclass(eq=False)
class _Factors:
    """The factors of the resolvent for steps of one length."""

    z: float
    h: float
    solves: Repeated
    pasts: dict[int, Past]
    time: sp.Symbol
    _steady: Lifted | None = None

    def data(self, start: float) -> tuple[Lifted | None, bool]:
        """Return the right-hand sides of data for all resolvents of a step, and whether they differ from each other."""
        sources = [past.form.source for past in self.pasts.values() if past.varying is None]
        if all(source == 0 for source in sources):
            return None, False
        if any(self.time in source.free_symbols for source in sources):
            return self.solves.lifted(self._given(start + self.h * data_nodes(), data_weights())), True
        if self._steady is None:
            self._steady = self.solves.lifted(self._given(np.array([start]), np.ones((1, 1))))
        return self._steady, False

    def _given(self, times: FloatArray, weights: FloatArray) -> Sources:
        """Return data at times, in combinations."""

        def sources(own: PlacedStatement, part: CellPart) -> FloatArray:
            del part
            past = self.pasts.get(id(own.statement.form))
            if past is None or past.varying is not None or past.form.source == 0:
                return np.zeros((len(own.points), len(weights)))
            normals = None
            if own.normals is not None:
                normals = np.tile(np.column_stack([own.normals, np.zeros(len(own.normals))]), (len(times), 1))
            values = past.form.source_function(at_times(own.points, times), normals)
            return np.asarray((weights @ values.reshape(len(times), -1)).T)

        return sources


@dataclass(frozen=True, eq=False)
class Step:
    """The solution over one step."""

    series: FloatArray  # Legendre coefficients of all fields, shape (degree + 1, parts, fields, functions)
    end: States  # all states at its end
    terms: FloatArray  # the size of what each of the last four orders adds to the fields at its end
    last: States  # what the last order adds to all states


def side_by_side(weights: FloatArray) -> FloatArray:
    """Return weights of several times as those of one state: from (times, parts, fields, functions) to three axes."""
    aside = np.moveaxis(weights, 0, 1)
    return aside.reshape(len(aside), -1, aside.shape[-1])


@dataclass(eq=False)
class CellStages:
    """An evolution on one tree of cells."""

    resolvent: Resolvent
    layout: Layout
    root: Cell
    budget: Budget
    tol: float
    _factors: dict[float, _Factors] = field(default_factory=dict)
    linearisations: int = 0
    works: tuple[float, float] = (0.0, 0.0)  # of all factors so far, and of all steps
    _remainders: Remainders | None = None
    _fewest: int = 0  # iterations of the first step after a linearisation
    _held: float = 0.0  # bytes of factors that were given back
    _excess: float = 0.0  # work of all iterations beyond that number since then

    @cached_property
    def _groups(self) -> list[AlikeParts]:
        return groups_of(self.layout, self.parts)

    @cached_property
    def parts(self) -> tuple[CellPart, ...]:
        """The parts of all cells, in order."""
        return tuple(self.layout.parts_of(leaves(self.root)))

    def _rooted(self, part: CellPart) -> FloatArray:
        """Return the functions of a part at its points, times roots of weights."""
        zero = (0,) * len(part.half)
        return np.asarray(np.sqrt(part.weights)[:, None] * self.layout.functions_at(part, part.points, [zero])[zero])

    def sizes(self, weights: FloatArray) -> FloatArray:
        """Return the L2 size of each field, from weights of shape (parts, fields, functions)."""
        squares = np.zeros(weights.shape[1])
        whole = np.array([part.whole for part in self.parts])
        halves = np.array([np.prod(part.half) for part in self.parts])
        squares += halves[whole] @ np.square(weights[whole]).sum(axis=2)
        for number in np.flatnonzero(~whole).tolist():
            squares += np.square(weights[number] @ self.layout.triangle(self.parts[number]).T).sum(axis=1)
        return np.sqrt(squares)

    def scales(self, sizes: FloatArray) -> FloatArray:
        """Return the sizes that errors are relative to: none is far smaller than that of the largest field."""
        return field_scales(self.resolvent.problem, np.maximum(np.maximum(sizes, PLAIN * sizes.max()), 1e-300))

    def fit(self, weights: FloatArray) -> Fit:
        """Return weights of shape (parts, fields, functions) as a fit."""
        residuals = dict.fromkeys(self.parts, 0.0)
        return Fit(self.root, self.parts, dict(zip(self.parts, weights, strict=True)), residuals, weights.size)

    @cached_property
    def moving(self) -> BoolArray:
        """Which fields have a time derivative."""
        return np.array(self.resolvent.orders) > 0

    def unresolved(self, states: States) -> float:
        """Return the relative error of a state that its cells cause."""
        weights, scales = states[:, 0, self.moving], self.scales(self.sizes(states[:, 0]))[self.moving]
        errors, _ = ErrorMarking(self.layout).errors(self.fit(weights), scales)
        return float(np.linalg.norm(errors))

    @property
    def factor_work(self) -> float:
        """Operations of factors."""
        return next(reversed(self._factors.values())).solves.solver.flops

    @property
    def step_work(self) -> float:
        """Operations of a step, or of one iteration of a step."""
        evaluated = 0.0 if self._remainders is None else self._remainders.work(ORDER)
        return ORDER * next(reversed(self._factors.values())).solves.work + evaluated

    def _spend(self, factors: float, steps: float) -> None:
        """Count work."""
        self.works = self.works[0] + factors, self.works[1] + steps
        self.budget.spend(factors + steps)

    @property
    def memory(self) -> float:
        """Bytes that all factors hold, or held."""
        return sum(8.0 * own.solves.numbers for own in self._factors.values()) or self._held

    def affords(self, h: float) -> bool:
        """Tell whether the budget allows a step of a length."""
        if not self._factors:
            return self.budget.left > 0.0
        return self.budget.affords(self.step_work + (0.0 if h in self._factors else self.factor_work))

    def factors(self, h: float) -> _Factors:
        """Return the factors for steps of a length."""
        if h not in self._factors:
            # Factors of many lengths would fill the memory; the oldest are the least likely to be needed again.
            while self._factors and self.memory > NEGLIGIBLE * available_memory():
                del self._factors[next(iter(self._factors))]
            z, rest = 1.0 / (pole() * h), self._remainders
            problem, pasts = self.resolvent.at(z, None if rest is None else rest.time)
            state = None
            if rest is not None:
                state = TreeState(self.layout, dict(zip(self.parts, rest.weights, strict=True)))
            solver = TreeSolver(Rows(self.layout.restated(problem), state))
            accuracy = SETTINGS.stage_share * self.tol / np.abs(step_weights()[0]).sum()
            solves = Repeated(solver, self.root, self.parts, self._columns(z, pasts), accuracy)
            self._spend(solver.flops, 0.0)
            self._factors[h] = _Factors(z, h, solves, pasts, self.resolvent.problem.domain.coordinates[-1])
        return self._factors[h]

    def _columns(self, z: float, pasts: dict[int, Past]) -> Sources:
        """Return the sources of the resolvent, one column for each weight of a state before."""
        orders, size = max(self.resolvent.orders), self.layout.reference.size
        fields = len(self.resolvent.orders)

        def sources(own: PlacedStatement, part: CellPart) -> FloatArray:
            found = np.zeros((len(own.points), orders, fields, size))
            past = pasts.get(id(own.statement.form))
            terms = () if past is None else past.terms
            nodes = (
                self.layout.functions_at(part, own.points, list({index for _, index, _, _ in terms})) if terms else {}
            )
            for name, index, order, coefficient in terms:
                values = coefficient(own.points, own.normals)[:, None] * nodes[index] / power(part.half, index)
                for below in range(order):
                    found[:, below, name] -= z ** (order - below) * values
            return found.reshape(len(found), -1)

        return sources

    def initial(self) -> States:
        """Return the initial values, projected on the functions of cells."""
        problem = self.resolvent.problem
        functions = {
            (problem.field_names.index(name), order): compiled(value, problem.domain.coordinates)
            for (name, order), value in self.resolvent.initial.items()
        }
        shape = len(self.parts), max(self.resolvent.orders), len(problem.fields), self.layout.reference.size
        found = np.zeros(shape)
        for number, part in enumerate(self.parts):
            X = at_times(part.points, np.array(self.resolvent.limits[:1]))
            values = np.stack([function(X) for function in functions.values()], axis=1)
            roots = np.sqrt(part.weights)[:, None]
            weights = np.linalg.lstsq(self._rooted(part), roots * values, rcond=None)[0]
            for column, (name, order) in enumerate(functions):
                found[number, order, name] = weights[:, column]
        return found

    def projected(self, other: CellStages, states: States) -> tuple[States, FloatArray]:
        """Return states on another tree, projected on the functions of this one, and how far each field is missed."""
        if self.root is other.root and self.layout.reference is other.layout.reference:
            return states, np.zeros(states.shape[2])
        count, zero = int(np.prod(states.shape[1:3])), (0,) * self.layout.reference.dimension
        network = network_of(other.layout, other.fit(states.reshape(len(states), count, -1)))
        found = np.empty((len(self.parts), count, self.layout.reference.size))
        squares = np.zeros(states.shape[2])
        for group in self._groups:
            values = network.evaluate(group.points, [zero])[zero].reshape(len(group.parts), -1, count).swapaxes(1, 2)
            made = found[list(group.numbers)] = values @ group.fitting
            nodes = self.layout.functions_at(group.parts[0], group.parts[0].points, [zero])[zero]
            missed = (values - made @ nodes.T)[:, : states.shape[2]]
            weights = np.stack([part.weights for part in group.parts])
            squares += np.einsum("pfn,pn->f", np.square(missed), weights)
        return found.reshape(len(found), *states.shape[1:3], -1), np.sqrt(squares)

    def on(self, layout: Layout, root: Cell) -> CellStages:
        """Return the same evolution on another tree."""
        return CellStages(self.resolvent, layout, root, self.budget, self.tol)

    def release(self) -> None:
        """Give back the memory of all factors."""
        self._held = self.memory
        self._factors.clear()

    def step(self, time: float, h: float, states: States) -> Step | None:
        """Return the solution over a step; None if the nonlinear iteration does not converge."""
        if not self.resolvent.varying:
            return self.rough(time, h, states)
        if self._remainders is None or self._excess > self.factor_work:
            self._linearise(time, states)
        fresh = self._fewest == 0
        found = self._iterated(time, h, states)
        if found is None and not fresh:
            self._linearise(time, states)
            found = self._iterated(time, h, states)
        return found

    def rough(self, time: float, h: float, states: States) -> Step:
        """Return a rough solution over a step, without remainders."""
        factors = self.factors(h)
        return self._step(self._powers(factors, states, factors.data(time)))

    def lasting(self, h: float, step: Step) -> float:
        """Return for how long the error of a step lasts: the sum of the squares that further steps leave, times h."""
        later = self._step(self._powers(self.factors(h), step.last, (None, False))).end
        before, after = (self.sizes(own[:, 0])[self.moving] for own in (step.last, later))
        left = float((after / np.maximum(before, 1e-300)).max())
        return h / (1.0 - left**2) if left < 1.0 else np.inf

    def _linearise(self, time: float, states: States) -> None:
        """Linearise varying terms at a state; all factors are made anew."""
        self._factors.clear()
        self._remainders = Remainders(self._groups, self.resolvent.varying, states.shape[1], time, states[:, 0])
        self._fewest, self._excess = 0, 0.0
        self.linearisations += 1

    def _iterated(self, time: float, h: float, states: States) -> Step | None:
        """Return the solution over a step, by iteration with remainders as data; None if that does not converge."""
        assert self._remainders is not None
        factors, times = self.factors(h), time + h * data_nodes()
        data, tol = factors.data(time), max(self.tol, self.unresolved(states))
        values = np.repeat(states[None, :, 0], ORDER, axis=0)
        before = np.inf
        for number in range(1, SETTINGS.rounds + 1):
            rates = np.tensordot(data_weights(), self._remainders.rates(times, values), axes=1) / factors.z
            stacked = self._powers(factors, states, data, rates)
            new = self._at_nodes(stacked)
            change = self._largest(new - values)
            reach = np.maximum(self._largest(states[None, :, 0]), self._largest(new))
            moved = float((change / self.scales(reach)).max())
            fall, values, before = moved / before if number > 1 else MOST, new, moved
            if not fall < 1.0 and not moved <= tol:
                return None
            # All further iterations together change it by a geometric series.
            if not fall < 1.0 or moved * fall <= (1.0 - fall) * SETTINGS.stage_share * tol:
                self._fewest = self._fewest or number
                self._excess += (number - self._fewest) * self.step_work
                return self._step(stacked)
        return None

    def _largest(self, values: FloatArray) -> FloatArray:
        """Return the largest size of each field over some times, from weights of shape (times, parts, ...)."""
        return np.asarray(self.sizes(side_by_side(values)).reshape(len(values), -1).max(axis=0))

    def _at_nodes(self, stacked: FloatArray) -> FloatArray:
        """Return the fields at the times of data, from the powers of the resolvent."""
        found = np.tensordot(node_weights(), stacked[:, :, 0], axes=1)
        if (still := ~self.moving).any():
            known = np.tensordot(np.linalg.inv(data_weights()), stacked[1:, :, 0][:, :, still], axes=1)
            found[:, :, still] = known
        return found

    def _powers(
        self,
        factors: _Factors,
        states: States,
        data: tuple[Lifted | None, bool],
        rates: FloatArray | None = None,
    ) -> FloatArray:
        """Return the states after each power of the resolvent, beginning with none."""
        every, (lifted, differ) = [states], data
        for number in range(ORDER):
            new, before = np.empty_like(states), every[-1]
            moved = before if rates is None else before + rates[number]
            new[:, 0] = factors.solves.solve(moved.reshape(len(before), -1), lifted, number if differ else 0)
            for order in range(1, states.shape[1]):
                new[:, order] = factors.z * (new[:, order - 1] - before[:, order - 1])
            every.append(new)
        self._spend(0.0, self.step_work)
        return np.stack(every)

    def _step(self, stacked: FloatArray) -> Step:
        """Return the solution over a step from the powers of the resolvent."""
        end, series = step_weights()
        found = np.tensordot(series, stacked[:, :, 0], axes=1)
        if (still := ~self.moving).any():
            found[-1, :, still] = 0.0
            found[:-1, :, still] = np.tensordot(still_weights(), stacked[1:, :, 0][:, :, still], axes=1)
        terms = np.array([self.sizes(own) for own in np.tensordot(term_weights(), stacked[:, :, 0], axes=1)])
        last = np.tensordot(term_weights()[-1], stacked, axes=1)
        return Step(found, np.tensordot(end, stacked, axes=1), terms, last)
