"""Sensitivities of an evolution: how unknowns enter its equations, boundary data and initial values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pibls.checks import FloatArray
from pibls.evolution.basis import at_times
from pibls.evolution.galerkin import Galerkin
from pibls.evolution.radau import Trajectory
from pibls.evolution.run import lifted
from pibls.inverse.parametric import Dependence, Parametric
from pibls.problem import Interior, OnPart, Statement
from pibls.solution.evolved import EvolvedNetwork


@dataclass(frozen=True, eq=False)
class Forcing:
    """Where unknowns act on an evolution."""

    parametric: Parametric
    # the equation of every field, and which of its terms is the highest derivative in time
    equations: dict[str, tuple[Dependence, int]]
    # initial conditions, with the field and the order of the derivative in time that they give
    initial: dict[tuple[str, int], Dependence]

    @classmethod
    def of(cls, parametric: Parametric, system: Galerkin) -> Forcing | None:
        """Return where unknowns act, if they do so in equations for one rate each and in initial values alone."""
        evolution = system.evolution
        if evolution.mass or evolution.velocity or not system.is_plain:
            return None
        equations, initial = {}, {}
        for statement in parametric.stated:
            own, place = parametric.dependence(statement), statement.place
            if isinstance(place, Interior):
                tops = [i for i, t in enumerate(own.terms) if t.multi_index[-1] == evolution.orders.get(t.field)]
                if len(tops) != 1:
                    return None
                equations[own.terms[tops[0]].field] = own, tops[0]
            elif isinstance(place, OnPart) and place.part == parametric.problem.domain.initial:
                ((name, index),) = own.wanted
                initial[name, index[-1]] = own
            elif _is_unknown(parametric, statement):
                return None
        return cls(parametric, equations, initial) if len(equations) == len(parametric.names) else None

    def forces(self, system: Galerkin, network: EvolvedNetwork, vector: FloatArray, times: FloatArray) -> FloatArray:
        """Return the derivative of rates by the unknowns, shape (times, n, unknowns)."""
        basis, names = system.basis, self.parametric.names
        X = at_times(basis.rule.points, times)
        result = np.zeros((len(times), system.size, self.parametric.size))
        for field, (own, top) in self.equations.items():
            functions = basis.at_rule(dict.fromkeys(index[:-1] for _, index in own.wanted))
            state = [
                (network.states(times, index[-1])[:, names.index(name)] @ functions[index[:-1]].T).ravel()
                for name, index in own.wanted
            ]
            values = own.values(X, state, vector)
            slopes = own.slopes(X, None, values) / -own.by_term[top](X, None, values)[:, None]
            result += system.forced(field, slopes.reshape(len(times), -1, slopes.shape[1]))
        return result

    def start(self, system: Galerkin, vector: FloatArray) -> FloatArray:
        """Return the derivative of the first state by the unknowns, shape (n, unknowns)."""
        X = at_times(system.basis.rule.points, np.array([system.evolution.limits[0]]))
        result = np.zeros((system.size, self.parametric.size))
        for state, own in self.initial.items():
            values = own.values(X, [np.zeros(len(X))], vector)
            (factor,) = (f for t, f in zip(own.terms, own.by_term, strict=True) if t.field == state[0])
            result += system.started(state, own.slopes(X, None, values) / -factor(X, None, values)[:, None])
        return result


@dataclass(frozen=True, eq=False)
class Differences:
    """An evolution beside others on the same functions: one with each unknown moved a little, and by how much."""

    system: Galerkin
    others: list[tuple[Galerkin, float]]

    def forces(self, course: Trajectory, times: FloatArray) -> FloatArray:
        """Return the derivative of rates by the unknowns, shape (times, n, unknowns)."""
        states = course(times)
        own = self.system.rates(times, states)
        return np.stack([(other.rates(times, states) - own) / size for other, size in self.others], axis=2)

    @property
    def start(self) -> FloatArray:
        """The derivative of the first state by the unknowns, shape (n, unknowns)."""
        own = self.system.initial()
        return np.stack([(other.initial() - own) / size for other, size in self.others], axis=1)

    def lifted(self, breaks: FloatArray) -> FloatArray:
        """Return the derivative of boundary data by the unknowns, in the whole basis: (k, degree + 1, sides, m)."""
        own = lifted(self.system, breaks)
        return np.concatenate([(lifted(other, breaks) - own) / size for other, size in self.others], axis=2)


def _is_unknown(parametric: Parametric, statement: Statement) -> bool:
    """Tell whether a statement has unknowns."""
    numbers = set(parametric.problem.parameters) & statement.form.expression.free_symbols
    return bool(numbers or set(statement.form.fields) - set(parametric.names))
