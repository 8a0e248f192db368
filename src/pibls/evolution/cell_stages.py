"""Steps of an evolution on a tree of cells: a few resolvents each, whose factors serve every step of equal length."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pibls.budget import Budget
from pibls.cells.evaluation import Sources, Stated, power
from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart
from pibls.cells.rows import Rows
from pibls.cells.solve import TreeSolver
from pibls.cells.tree import Cell, leaves
from pibls.checks import FloatArray
from pibls.evolution.basis import at_times
from pibls.evolution.form import compiled
from pibls.evolution.rational import ORDER, data_nodes, data_weights, pole, step_weights, still_weights, term_weights
from pibls.evolution.resolvent import Past, Resolvent

__all__ = ["CellStages", "States", "Step"]

_PASSES = 4.0  # operations of a back-substitution, for each byte of factors: refinement repeats it

States = FloatArray
"""Weights of all states: shape (parts, orders in time, fields, functions)."""


_During = tuple[float, float, dict[int, FloatArray]]
"""Start and length of a step, and the data of statements for all of its resolvents."""


@dataclass(frozen=True, eq=False)
class _Factors:
    """The factors of the resolvent for steps of one length."""

    z: float
    solver: TreeSolver
    pasts: dict[int, Past]


@dataclass(frozen=True, eq=False)
class Step:
    """The solution over one step.

    Attributes
    ----------
    series
        Legendre coefficients of all fields, shape (degree + 1, parts, fields, functions).
    end
        All states at its end.
    terms
        The size of what each of the last four orders adds to the fields at its end.
    residual
        The largest that a resolvent leaves in its rows.
    """

    series: FloatArray
    end: States
    terms: FloatArray
    residual: float


@dataclass(eq=False)
class CellStages:
    """An evolution on one tree of cells."""

    resolvent: Resolvent
    layout: Layout
    root: Cell
    budget: Budget
    _factors: dict[float, _Factors] = field(default_factory=dict)

    @cached_property
    def parts(self) -> tuple[CellPart, ...]:
        """The parts of all cells, in order."""
        return tuple(self.layout.parts_of(leaves(self.root)))

    @cached_property
    def _numbers(self) -> dict[CellPart, int]:
        return {part: number for number, part in enumerate(self.parts)}

    @cached_property
    def _grams(self) -> list[FloatArray | None]:
        """Roots of the Gram matrices of the functions of cut parts, inside the domain; None for whole parts."""
        return [None if part.whole else np.linalg.qr(self._rooted(part), mode="r") for part in self.parts]

    def _rooted(self, part: CellPart) -> FloatArray:
        """Return the functions of a part at its points, times roots of weights."""
        zero = (0,) * len(part.half)
        return np.asarray(np.sqrt(part.weights)[:, None] * self.layout.nodes(part, part.points, [zero])[zero])

    def sizes(self, weights: FloatArray) -> FloatArray:
        """Return the L2 size of each field, from weights of shape (parts, fields, functions)."""
        squares = np.zeros(weights.shape[1])
        for part, own, root in zip(self.parts, weights, self._grams, strict=True):
            rooted = np.sqrt(np.prod(part.half)) * own if root is None else own @ root.T
            squares += np.square(rooted).sum(axis=1)
        return np.sqrt(squares)

    @property
    def factor_work(self) -> float:
        """Operations of factors."""
        return next(reversed(self._factors.values())).solver.flops

    @property
    def step_work(self) -> float:
        """Operations of a step."""
        return ORDER * _PASSES * next(reversed(self._factors.values())).solver.memory

    @property
    def memory(self) -> float:
        """Bytes held by all factors."""
        return sum(own.solver.memory for own in self._factors.values())

    def affords(self, h: float) -> bool:
        """Tell whether the budget allows a step of a length."""
        if not self._factors:
            return True
        return self.budget.affords(self.step_work + (0.0 if h in self._factors else self.factor_work))

    def factors(self, h: float) -> _Factors:
        """Return the factors for steps of a length."""
        if h not in self._factors:
            z = 1.0 / (pole() * h)
            problem, pasts = self.resolvent.at(z)
            solver = TreeSolver(Rows(self.layout.restated(problem)))
            solver.solve(self.root)
            self.budget.spend(solver.flops)
            self._factors[h] = _Factors(z, solver, pasts)
        return self._factors[h]

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

    def step(self, time: float, h: float, states: States) -> Step:
        """Return the solution over a step."""
        factors, residual, every = self.factors(h), 0.0, [states]
        data: dict[int, FloatArray] = {}
        for number in range(ORDER):
            made = factors.solver.again(self._sources(factors, (time, h, data), number, every[-1]))
            self.budget.spend(_PASSES * factors.solver.memory)
            residual = max(residual, made.side(0).residual)
            new = np.empty_like(states)
            new[:, 0] = np.stack([made.columns[part][0] for part in self.parts])
            for order in range(1, states.shape[1]):
                new[:, order] = factors.z * (new[:, order - 1] - every[-1][:, order - 1])
            every.append(new)
        stacked = np.stack(every)
        end, series = step_weights()
        found = np.tensordot(series, stacked[:, :, 0], axes=1)
        if still := [number for number, order in enumerate(self.resolvent.orders) if order == 0]:
            found[-1, :, still] = 0.0
            found[:-1, :, still] = np.tensordot(still_weights(), stacked[1:, :, 0][:, :, still], axes=1)
        terms = np.array([self.sizes(own) for own in np.tensordot(term_weights(), stacked[:, :, 0], axes=1)])
        return Step(found, np.tensordot(end, stacked, axes=1), terms, residual)

    def _given(self, own: Stated, past: Past, during: _During, number: int) -> FloatArray | float:
        """Return the data of a statement for a resolvent of a step; those that depend on time are kept."""
        time, h, known = during
        source = past.form.source
        if source == 0:
            return 0.0
        if self.resolvent.problem.domain.coordinates[-1] not in source.free_symbols:
            return past.form.source_function(at_times(own.points, np.array([time])), _timed(own, 1))
        if id(own) not in known:
            times = time + h * data_nodes()
            values = past.form.source_function(at_times(own.points, times), _timed(own, len(times)))
            known[id(own)] = data_weights() @ values.reshape(len(times), -1)
        return np.asarray(known[id(own)][number])

    def _sources(self, factors: _Factors, during: _During, number: int, states: States) -> Sources:
        """Return the sources of a resolvent: its data, and the state before."""

        def sources(own: Stated, part: CellPart) -> FloatArray:
            past, found = factors.pasts.get(id(own.statement.form)), np.zeros(len(own.points))
            if past is None:
                return found[:, None]
            found += self._given(own, past, during, number)
            if past.terms:
                here = states[self._numbers[part]]
                nodes = self.layout.nodes(part, own.points, list({index for _, index, _, _ in past.terms}))
                for name, index, order, coefficient in past.terms:
                    weights = here[:order, name].T @ factors.z ** np.arange(order, 0, -1)
                    found -= coefficient(own.points, own.normals) * (nodes[index] @ weights) / power(part.half, index)
            return found[:, None]

        return sources


def _timed(own: Stated, count: int) -> FloatArray | None:
    """Return the normals of a statement in space and time, as often as there are times."""
    if own.normals is None:
        return None
    return np.tile(np.column_stack([own.normals, np.zeros(len(own.normals))]), (count, 1))
