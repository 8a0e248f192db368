"""Nonlinear problems with a given network: Gauss–Newton steps, each the solve of a linearised problem.

Solved for are the weights after a step, not the step itself: they have minimal norm then, and large weights that early,
rough states needed do not stay for ever. JᵀJ is never formed: Jacobians of random features have condition numbers near
1e16, and squaring them would leave no digit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_numpy_array

from pibls.checks import FloatArray
from pibls.errors import InputError, PiblsError
from pibls.features import BroadNetwork
from pibls.geometry import Points
from pibls.methods.fit import Recipe, finished
from pibls.newton import End, crawls, descend, falls, record, shortened
from pibls.problem import MultiIndex, Problem, Statement
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.solution.start_states import one, zero
from pibls.solvers import Solver, constrained
from pibls.solvers.inputs import to_host
from pibls.status import Status
from pibls.system import Block, Evaluate, Fixed, RowScaling, System, assemble, check_known, linearised

_FEW_STEPS, _MANY_STEPS = 12, 40
_REMOVABLE = 0.03  # share of the residual that a converged iteration could still remove
_NOT_WORTH = 0.3  # where shortening does not help, and no larger share could be removed, damping does not either
_ROUND_OFF = 1e-14  # of the largest residual: what is below cannot be told from rounding
_EXACTING = 1e3  # rows that must vanish count so many times
_DAMPINGS = (1e-8, 1e-5, 1e-2)  # relative to the squares of the column norms


def fit_nonlinear(
    problem: Problem,
    points: Points,
    network: BroadNetwork,
    recipe: Recipe,
    start: Evaluate | None = None,
    *,
    near: bool = False,
) -> Solution:
    """Solve a nonlinear problem with one network, from a function of any network; there can be no ridge.

    Left out, the start is zero, or one where zero is no start. If it is ``near`` a solution, no time is spent on what
    only helps from afar.

    >>> from pibls import PIELM, Points, problems
    >>> problem = problems.nonlinear_spring()
    >>> solution = PIELM(nodes=60, activation="sin", scale=3.0).fit(problem, Points.sample(problem, 150))
    >>> solution.true_error() < 1e-8, solution.diagnostics.message
    (True, 'The Gauss–Newton iteration converged.')
    """
    begun = time.perf_counter()
    check_known(problem)
    if recipe.ridge != 0.0:
        raise InputError(
            "The 'lambda_reg' parameter must be 0 for nonlinear problems, whose steps are damped where needed. "
            f"Got {recipe.ridge:g} instead."
        )

    def fitted(first: Evaluate | None) -> Solution:
        descent = _Descent(_Model(problem, points, network, recipe.scaling), recipe.solver, near)
        here, end = descent.run(first)
        return descent.solution(recipe, here, end, {"solve": time.perf_counter() - begun})

    with blas_threads():
        try:
            return fitted(start)
        except PiblsError:
            if start is not None:
                raise
            # At zero an equation may have no value, or a square no slope.
            return fitted(one)


@dataclass(frozen=True, eq=False)
class _Point:
    """Weights, and the residuals there: of rows of least squares, and of rows that must vanish."""

    weights: Any
    soft: Any
    hard: Any

    @cached_property
    def norm(self) -> float:
        """Norm of the residual; infinite where it is not a number."""
        total = float(np.hypot(_norm(self.soft), _EXACTING * _norm(self.hard)))
        return total if total == total else float("inf")


@dataclass(eq=False)
class _Model:
    """The rows of a nonlinear problem for one network, linearised at any state."""

    problem: Problem
    points: Points
    network: BroadNetwork
    scaling: RowScaling
    known: dict[tuple[tuple[int, ...], bytes], dict[MultiIndex, Any]] = field(default_factory=dict)

    def evaluate(self, weights: Any) -> Evaluate:
        """Return the function of some weights; derivatives of the nodes are computed once per set of points."""
        names, size = self.problem.field_names, self.network.size

        def state(X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
            nodes = self.known.setdefault((X.shape, X.tobytes()), {})
            nodes.update(self.network.evaluate(X, dict.fromkeys(a for _, a in wanted if a not in nodes)))
            parts = {name: weights[i * size : (i + 1) * size] for i, name in enumerate(names)}
            return [to_host(nodes[alpha] @ parts[name]) for name, alpha in wanted]

        return state

    def system(self, state: Evaluate) -> System:
        """Return the rows linearised at a state; the scales of the first ones stay, so that residuals compare."""
        system = assemble(linearised(self.problem, state), self.points, self.network, self.scaling)
        self.scaling = Fixed(tuple(block.scale for block in system.blocks))
        return system

    def point(self, weights: Any, system: System) -> _Point | None:
        """Return the residuals at weights; None where they are not finite."""
        state = self.evaluate(weights)
        statements = self.problem.statements
        soft = system.matrix @ weights - system.rhs
        hard = soft[:0] if system.constraints is None else system.constraints @ weights - system.constraint_rhs
        try:
            for rows, blocks, exact in ((soft, system.blocks, False), (hard, system.constraint_blocks, True)):
                for statement, block in zip((s for s in statements if s.exact is exact), blocks, strict=True):
                    if not statement.form.is_linear:
                        rows[block.rows] = self._place(self._residual_of(statement, block, state))
        except PiblsError:
            # A trial step may leave the domain of a logarithm or overflow an exponential.
            return None
        found = _Point(weights, soft, hard)
        return found if found.norm < float("inf") else None

    def _residual_of(self, statement: Statement, block: Block, state: Evaluate) -> FloatArray:
        where, form = self.points.sets[statement.source], statement.form
        values = form.residual_function(
            where.points, where.normals, state(where.points, [(t.field, t.multi_index) for t in form.terms])
        )
        if where.weights is not None:
            values = np.array(where.averaged(values))
        values = values if statement.targets is None else values - statement.targets
        return block.scale * (values if statement.noise is None else values / statement.noise)

    def zeros(self) -> Any:
        """Return weights of zero."""
        return self._place(np.zeros(self.network.size * len(self.problem.fields)))

    def _place(self, array: FloatArray) -> Any:
        like = self.network.center
        if is_numpy_array(like):
            return array
        return array_namespace(like).asarray(np.array(array), dtype=like.dtype, device=like.device)


@dataclass(frozen=True, eq=False)
class _Linear:
    """The rows linearised at a point, and the weights that solve them.

    ``removable`` is the part of the residual at the point that a whole step removes, and ``floor`` is its rounding.
    """

    system: System
    goal: Any
    removable: float
    floor: float


@dataclass(eq=False)
class _Descent:
    """A nonlinear problem for one network, as the target of an iteration."""

    model: _Model
    solver: Solver
    near: bool
    history: list[dict[str, float]] = field(default_factory=list)
    largest: float = 0.0
    factor: Any = None
    latest: System | None = None

    def run(self, start: Evaluate | None) -> tuple[_Point, End]:
        """Iterate; return the last point and how the iteration ended."""
        model, most = self.model, _FEW_STEPS if self.near else _MANY_STEPS
        here = None
        if start is None:
            here = model.point(model.zeros(), model.system(model.evaluate(model.zeros())))
        if here is None:
            # From a function that is none of the network: wherever it leads.
            system = self.latest = model.system(zero if start is None else start)
            goal = self._goal(system)[0]
            here = model.point(goal, system)
            if here is None:
                return model.point(model.zeros(), system) or _Point(goal, system.rhs, system.rhs[:0]), End.STAGNATED
            self.history.append(record(here.norm, here.norm, 1.0))
            most -= 1
        return descend(self, here, most)

    def linearise(self, here: _Point) -> _Linear:
        """Solve the rows linearised at a point."""
        system = self.latest = self.model.system(self.model.evaluate(here.weights))
        goal, promised = self._goal(system)
        self.largest = max(self.largest, here.norm)
        removable = float(np.hypot(_norm(here.soft - promised), _EXACTING * _norm(here.hard)))
        return _Linear(system, goal, removable, max(1e-12 * self.largest, _rounding(system, goal)))

    def settled(self, here: _Point, linear: _Linear) -> None:
        """Return nothing: a last step is always taken."""

    def step(self, here: _Point, linear: _Linear) -> _Point | None:
        """Shorten the step until the residual falls; damp it from afar where no length will do."""

        def trial(length: float) -> tuple[float, _Point | None]:
            point = self.model.point(here.weights + length * (linear.goal - here.weights), linear.system)
            return (np.inf if point is None else point.norm), point

        length, damping, there = 0.0, 0.0, None
        if (found := shortened(here.norm, linear.removable, trial)) is not None:
            length, there = found
        elif not self.near and linear.removable > _NOT_WORTH * here.norm:
            length, damping, there = 1.0, *self._damped(here, linear.system)
        if there is not None:
            self.history.append(record(there.norm, linear.removable, length, damping))
        return there

    def judged(self, before: _Point, linear: _Linear, here: _Point | None) -> End | None:
        """Return how the iteration ends after a step, or None."""
        if here is None:
            return End.SETTLED if linear.removable <= max(_NOT_WORTH * before.norm, linear.floor) else End.STAGNATED
        if here.norm <= _ROUND_OFF * self.largest or linear.removable <= max(_REMOVABLE * before.norm, linear.floor):
            return End.SETTLED
        return End.STAGNATED if crawls([(step["residual"],) for step in self.history]) else None

    def _goal(self, system: System) -> tuple[Any, Any]:
        """Return the weights that solve the linear rows, and the residual of these rows then."""
        if system.constraints is not None:
            self.factor = constrained(self.solver, system.matrix, system.constraints)
            goal = self.factor.solve(system.rhs, system.constraint_rhs)
        else:
            self.factor = self.solver.factorise(system.matrix)
            goal = self.factor.solve(system.rhs)
        return goal, system.matrix @ goal - system.rhs

    def _damped(self, here: _Point, system: System) -> tuple[float, _Point | None]:
        """Return the smallest damping (Levenberg–Marquardt) whose step lowers the residual, and the point there."""
        xp = array_namespace(system.matrix)
        squares = xp.sum(system.matrix * system.matrix, axis=0)
        for damping in _DAMPINGS if system.constraints is None else ():
            step = self.solver.factorise(system.matrix, ridge=damping * squares).solve(-here.soft)
            point, aim = self.model.point(here.weights + step, system), _norm(here.soft + system.matrix @ step)
            if point is not None and falls(here.norm, point.norm, max(0.0, here.norm**2 - aim**2)):
                return damping, point
        return 0.0, None

    def solution(self, recipe: Recipe, here: _Point, end: End, seconds: dict[str, float]) -> Solution:
        """Return the end of the iteration as a solution with its record."""
        assert self.latest is not None
        weights, soft, hard = (to_host(array) for array in (here.weights, here.soft, here.hard))
        status = Status.FITTED if end is End.SETTLED else Status.STALLED
        where = self.model.problem, self.model.network, recipe, self.latest, weights, (soft, hard), self.factor
        return finished(*where, status, seconds=seconds, message=end.value, iterations=tuple(self.history))


def _rounding(system: System, weights: Any) -> float:
    """Return the size of the rounding errors in a residual of such weights."""
    norm = array_namespace(system.matrix).linalg.matrix_norm
    hard = 0.0 if system.constraints is None else _EXACTING * float(norm(system.constraints))
    return float(np.finfo(np.float64).eps) * math.hypot(float(norm(system.matrix)), hard) * _norm(weights)


def _norm(array: Any) -> float:
    return float(array_namespace(array).linalg.vector_norm(array))
