"""Sensitivities of an evolution: by the linearised equation, or differences of runs with the same features and steps.

Such runs depend smoothly on the unknowns, so that differences are as good as derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from pibls.budget import Budget
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.evolution import Evolution, Unsuitable, find_evolution
from pibls.evolution.accuracy import SETTINGS as IN_TIME
from pibls.evolution.basis import at_times
from pibls.evolution.evolve import open_to_flow
from pibls.evolution.galerkin import Galerkin
from pibls.evolution.radau import Integrator, Trajectory, legendre_weights, node_times
from pibls.evolution.refinement_in_time import RefinementInTime
from pibls.evolution.run import integrated, lifted, network_of, widened
from pibls.evolution.sensitivities import sensitivities
from pibls.inverse.cell_forward import Known, banding, ordering
from pibls.inverse.parametric import Dependence, Parametric
from pibls.inverse.response import Forward, finer
from pibls.inverse.thresholds import STEP
from pibls.problem import Interior, MultiIndex, OnPart, Statement
from pibls.quadrature.roots import ROUNDING
from pibls.refinement import VISIBLE
from pibls.refinement.standards import SLIGHT
from pibls.runtime import RATE, blas_threads
from pibls.solution.evolved import EvolvedNetwork
from pibls.solution.posterior import Posterior


@dataclass(frozen=True, eq=False)
class EvolutionResponse:
    """The fields, and their sensitivities: networks that need not have the same features."""

    network: EvolvedNetwork
    sensitivity: EvolvedNetwork
    vector: FloatArray
    made_at: FloatArray

    @property
    def is_aged(self) -> bool:
        """Whether the sensitivities are those at other values nearby."""
        return self.made_at is not self.vector

    def evaluate(self, X: FloatArray, indices: Iterable[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives at points, shape (n, 1 + unknowns, fields): the fields first, then their sensitivities."""
        wanted = list(indices)
        own, theirs = self.network.evaluate(X, wanted), self.sensitivity.evaluate(X, wanted)
        fields = self.network.size
        return {i: np.concatenate([own[i], theirs[i]], axis=1).reshape(len(X), -1, fields) for i in wanted}


@dataclass(frozen=True, eq=False)
class _Followed:
    """A solution at some values of the unknowns, with its system, integrator and trajectory."""

    system: Galerkin
    integrator: Integrator
    course: Trajectory
    network: EvolvedNetwork


@dataclass(frozen=True, eq=False)
class EvolutionForward(Forward):
    """Follows an evolution with the features of the solution at some values of the unknowns."""

    scales: FloatArray
    system: Galerkin
    until: float

    @classmethod
    def around(
        cls,
        parametric: Parametric,
        vector: FloatArray,
        tol: float,
        budget: Budget,
        seed: int,
        scales: FloatArray,
        until: float = np.inf,
        share: float = 1.0,
    ) -> EvolutionForward | Unsuitable:
        """Solve at some values of the unknowns, with a share of the remaining budget.

        The features are kept, to follow others until a time.
        """
        evolution = find_evolution(parametric.at(vector))
        if isinstance(evolution, Unsuitable):
            return evolution
        if reason := open_to_flow(evolution, seed):
            return Unsuitable(reason)
        with blas_threads(most=1):
            lines = RefinementInTime(evolution, tol, seed, budget.part(share), lambda *_: None, plain=True)
            solution = lines.run()
        run = lines.chosen.run
        system = lines.system(run.design, run.fineness)
        assert isinstance(system, Galerkin)
        return cls(parametric, solution, vector, tol, budget, scales, system, until)

    finest = 1e-7  # runs take longer and longer below

    @property
    def error(self) -> float:
        """How wrong solutions made with it may be: steps in time are theirs, and as long as the tolerance lets them."""
        return max(super().error, self._time_tol)

    @property
    def _time_tol(self) -> float:
        return max(IN_TIME.tighter**-2 * self.tol, ROUNDING)

    def respond(self, vector: FloatArray, near: Any = None) -> EvolutionResponse:
        """Return the solution and its sensitivities: those of a response nearby are as good with other features."""
        made = self._followed(vector)
        step = VISIBLE * self._sizes(vector)
        if isinstance(near, EvolutionResponse) and (np.abs(vector - near.made_at) <= step).all():
            return replace(near, network=made.network, vector=vector)
        return EvolutionResponse(made.network, self._sensitivity(vector, made), vector, vector)

    def _sizes(self, vector: FloatArray) -> FloatArray:
        """Return the scales of changes of unknowns; none is next to nothing by chance."""
        sizes = np.maximum(np.abs(vector), SLIGHT * self.scales)
        for span in self.parametric.spans():
            sizes[span] = np.maximum(sizes[span], SLIGHT * float(sizes[span].max()))
        return sizes

    def _sensitivity(self, vector: FloatArray, made: _Followed) -> EvolvedNetwork:
        network = made.network
        if self._drive is not None:
            forces = partial(self._drive.forces, made.system, network, vector)
            found = self._driven(made, forces, self._drive.start(made.system, vector))
        elif (moving := self._moving(vector, made)) is not None:
            found = self._driven(made, partial(moving.forces, made.course), moving.start, moving.lifted(network.breaks))
        else:
            others = ((self._followed(moved, network.breaks).network, size) for moved, size in self._moves(vector))
            every = [(other.coefficients - network.coefficients) / size for other, size in others]
            found = np.concatenate(every, axis=2)
        return replace(network, coefficients=found)

    def _moves(self, vector: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        """Yield the unknowns with each of them moved a little in turn, and by how much."""
        for number, size in enumerate(STEP * self._sizes(vector)):
            moved = vector.copy()
            moved[number] += size
            yield moved, float((moved - vector)[number])

    @cached_property
    def _drive(self) -> Forcing | None:
        return Forcing.of(self.parametric, self.system)

    def _moving(self, vector: FloatArray, made: _Followed) -> Differences | None:
        """Return sensitivities by differences, where moves leave the functions that keep conditions as they are."""
        others = []
        for moved, size in self._moves(vector):
            others.append((self._system(moved), size))
            if not made.system.is_like(others[-1][0]):
                return None
        return Differences(made.system, others)

    def _driven(
        self,
        made: _Followed,
        forces: Callable[[FloatArray], FloatArray],
        start: FloatArray,
        lifted: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Return sensitivities to forces and to changes of start and boundary."""
        with blas_threads(most=1):
            pieces = sensitivities(made.integrator, made.course, forces, start)
        self.budget.spend(made.integrator.operations)
        return np.asarray(widened(made.system, pieces) + lifted)

    def _system(self, vector: FloatArray) -> Galerkin:
        """Return the problem at values of the unknowns on the features of this one."""
        evolution = find_evolution(self.parametric.at(vector))
        if not isinstance(evolution, Evolution):
            raise ProblemError(f"At {vector.tolist()} the problem cannot be followed in time: {evolution.reason}.")
        velocity = self.system.evolution.velocity
        return self.system.restated(evolution.moving(velocity) if velocity else evolution)

    def _followed(self, vector: FloatArray, breaks: FloatArray | None = None) -> _Followed:
        """Return the solution at values of the unknowns, by given steps or by those that it asks for."""
        system = self._system(vector)
        tol = self._time_tol if breaks is None else min(self._time_tol, IN_TIME.cut)
        integrator = Integrator(system, tol, self.budget.left * RATE)
        try:
            with blas_threads(most=1), np.errstate(over="ignore", invalid="ignore"):
                trajectory = integrated(integrator, min(system.evolution.limits[1], self.until), breaks)
        finally:
            self.budget.spend(integrator.operations)
        network = network_of(system, trajectory)
        return _Followed(
            system, replace(integrator, operations=0.0), trajectory, replace(network, frame=self.system.evolution.frame)
        )

    def banded(self, response: EvolutionResponse, factor: FloatArray, known: Known) -> tuple[EvolvedNetwork, Posterior]:
        """Return a response as a network with nodes for its uncertainty, from a factor of the covariance."""
        network, sensitivity = response.network, response.sensitivity
        if sensitivity.transform is not network.transform or len(sensitivity.breaks) != len(network.breaks):
            sensitivity = self._sensitivity(response.vector, self._followed(response.vector, network.breaks))
        pieces, orders, fields, size = network.coefficients.shape
        own = sensitivity.coefficients.reshape(pieces, orders, -1, fields, size)
        moves = np.einsum("kdjfm,jr->kdrfm", own, factor)
        known_part, rest = self._wrong(network.breaks)
        moves[:, :, 0] += known_part
        moves[:, :, -1] += rest
        made = [network.coefficients, moves.reshape(pieces, orders, -1, size)]
        if self.parametric.bases:
            made.append(self._projected(known, network.breaks))
        every = np.concatenate(made, axis=2)[:, :, ordering(self.parametric, 1 + factor.shape[1])]
        return replace(network, coefficients=every), banding(len(self.parametric.problem.fields), factor.shape[1])

    @cached_property
    def _tests(self) -> FloatArray:
        """The matrix from values at the points of the rule to coefficients in the basis."""
        basis = self.system.basis
        zero = (0,) * basis.rule.points.shape[1]
        return np.asarray((basis.at_rule([zero])[zero] * basis.rule.weights[:, None]).T)

    def _wrong(self, breaks: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return errors of the fields as coefficients in the basis, and the rest as if it were a constant.

        Solutions are nearly the best of all combinations of their features: much of the error is none of these.
        """
        rule, tests = self.system.basis.rule, self._tests
        times = node_times(breaks).ravel()
        zero = (0,) * rule.points.shape[1]
        networks: list[Any] = [own.network for own in (self.solution, finer(self.solution))]
        one, two = (network.on_grid(rule.points, times, zero) for network in networks)
        own = np.einsum("mp,ptf->tfm", tests, one - two)
        squares = np.einsum("p,ptf->f", rule.weights, np.square(one - two)) - np.square(own).sum(axis=(0, 2))
        size = np.sqrt(np.maximum(squares, 0.0) / (len(times) * rule.weights.sum()))
        known_part = np.tensordot(legendre_weights(), own.reshape(len(breaks) - 1, -1, *own.shape[1:]), axes=(1, 1))
        rest = np.zeros_like(known_part)
        rest[0] = np.outer(size, tests.sum(axis=1))
        return np.swapaxes(known_part, 0, 1), np.swapaxes(rest, 0, 1)

    def _projected(self, known: Known, breaks: FloatArray) -> FloatArray:
        """Return functions of space and time in the basis: coefficients as those of a network."""
        basis, frame = self.system.basis, self.system.evolution.frame
        found = []
        for times in node_times(breaks):
            X = at_times(basis.rule.points, times)
            if frame is not None:
                velocity, low, length = frame
                X[:, 0] = low + np.mod(X[:, 0] - low + velocity * (X[:, 1] - breaks[0]), length)
            values = known(X).reshape(len(times), len(basis.rule.weights), -1)
            found.append(np.tensordot(legendre_weights(), np.einsum("mp,tpc->tcm", self._tests, values), axes=1))
        return np.array(found)


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
            own, place = parametric.dependence(statement.form), statement.place
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
