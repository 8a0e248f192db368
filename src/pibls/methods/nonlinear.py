"""Nonlinear problems with a given network: Gauss–Newton steps, each the solve of a linearised problem.

Solved for are the weights after a step, not the step itself: they have minimal norm then, and large weights that early,
rough states needed do not stay for ever. JᵀJ is never formed: Jacobians of random features have condition numbers near
1e16, and squaring them would leave no digit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_numpy_array

from pibls.checks import FloatArray
from pibls.errors import InputError, PiblsError
from pibls.features import BroadNetwork
from pibls.geometry import Points
from pibls.methods.fit import Recipe, host, residual_record
from pibls.problem import MultiIndex, Problem, Statement
from pibls.runtime import blas_threads
from pibls.solution import Diagnostics, Solution
from pibls.solution.starts import one, zero
from pibls.solvers import Solver, constrained
from pibls.status import Status
from pibls.system import Block, Evaluate, Fixed, RowScaling, System, assemble, check_known, linearised

__all__ = ["fit_nonlinear"]

_FEW_STEPS, _MANY_STEPS = 12, 40
_REMOVABLE = 0.03  # share of the residual that a converged iteration could still remove
_NOT_WORTH = 0.3  # where shortening does not help, and no larger share could be removed, damping does not either
_ROUND_OFF = 1e-14  # of the largest residual: what is below cannot be told from rounding
_EXACTING = 1e3  # rows that must vanish count so many times
_SUFFICIENT, _SHRINK, _SHORTEST = 1e-2, 0.4, 2e-2
_DAMPINGS = (1e-8, 1e-5, 1e-2)  # relative to the squares of the column norms
_PATIENCE, _CRAWLING = 6, 0.9  # so many steps for less than a tenth of the residual: no solution is near


class _End(Enum):
    """How an iteration ended, in words."""

    SETTLED = "The Gauss–Newton iteration converged."
    STAGNATED = (
        "The Gauss–Newton iteration found no better point. Use more nodes, or start closer to a solution with "
        "pibls.solve(start=)."
    )
    UNFINISHED = "The Gauss–Newton iteration ran out of steps. Start closer to a solution with pibls.solve(start=)."


def fit_nonlinear(
    problem: Problem,
    points: Points,
    network: BroadNetwork,
    recipe: Recipe,
    start: Evaluate | None = None,
    *,
    near: bool = False,
) -> Solution:
    """Solve a nonlinear problem with one network.

    Parameters
    ----------
    problem, points, network, recipe
        What to solve, where, with which nodes and how; there can be no ridge.
    start
        A function to start from, of any network; zero if left out, or one where zero is no start.
    near
        Whether the start is close to a solution: then no time is spent on what only helps from afar.

    Examples
    --------
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
    with blas_threads():
        try:
            descent = _Descent(_Model(problem, points, network, recipe.scaling), recipe.solver)
            end = descent.run(start, near=near)
        except PiblsError:
            if start is not None:
                raise
            # At zero an equation may have no value, or a square no slope.
            descent = _Descent(_Model(problem, points, network, recipe.scaling), recipe.solver)
            end = descent.run(one, near=near)
    return descent.solution(recipe, end, {"solve": time.perf_counter() - begun})


@dataclass(frozen=True, eq=False)
class _Point:
    """Weights, and what rows lack there: those of least squares, and those that must vanish."""

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
            return [host(nodes[alpha] @ parts[name]) for name, alpha in wanted]

        return state

    def system(self, state: Evaluate) -> System:
        """Return the rows linearised at a state; the scales of the first ones stay, so that residuals compare."""
        system = assemble(linearised(self.problem, state), self.points, self.network, self.scaling)
        self.scaling = Fixed(tuple(block.scale for block in system.blocks))
        return system

    def point(self, weights: Any, system: System) -> _Point | None:
        """Return what rows lack at weights; None where it has no finite value."""
        state = self.evaluate(weights)
        statements = self.problem.statements
        soft = system.matrix @ weights - system.rhs
        hard = soft[:0] if system.constraints is None else system.constraints @ weights - system.constraint_rhs
        try:
            for rows, blocks, exact in ((soft, system.blocks, False), (hard, system.constraint_blocks, True)):
                for statement, block in zip((s for s in statements if s.exact is exact), blocks, strict=True):
                    if not statement.form.is_linear:
                        rows[block.rows] = self._place(self._lacking(statement, block, state))
        except PiblsError:
            # A trial step may leave the domain of a logarithm or overflow an exponential.
            return None
        found = _Point(weights, soft, hard)
        return found if found.norm < float("inf") else None

    def _lacking(self, statement: Statement, block: Block, state: Evaluate) -> FloatArray:
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


@dataclass(eq=False)
class _Descent:
    """An iteration: where it is, and how it got there."""

    model: _Model
    solver: Solver
    history: list[dict[str, float]] = field(default_factory=list)
    here: _Point | None = None
    factor: Any = None
    latest: System | None = None

    def run(self, start: Evaluate | None, *, near: bool) -> _End:
        """Iterate; return how it ended."""
        model, largest = self.model, 0.0
        if start is None:
            state = model.evaluate(model.zeros())
            self.here = model.point(model.zeros(), model.system(state))
        for _ in range(_FEW_STEPS if near else _MANY_STEPS):
            before = self.here
            system = self.latest = model.system(model.evaluate(before.weights) if before else start or zero)
            goal, promised = self._goal(system)
            if before is None:
                # From a function that is none of the network: wherever it leads.
                self.here = model.point(goal, system)
                if self.here is None:
                    self.here = model.point(model.zeros(), system) or _Point(goal, system.rhs, system.rhs[:0])
                    return _End.STAGNATED
                self._note(self.here, self.here.norm, 1.0, 0.0)
                largest = self.here.norm
                continue
            largest = max(largest, before.norm)
            removable = float(np.hypot(_norm(before.soft - promised), _EXACTING * _norm(before.hard)))
            floor = max(1e-12 * largest, _rounding(system, goal))
            found = self._shortened(before, system, goal, promised) or (
                None if near or removable <= _NOT_WORTH * before.norm else self._damped(before, system)
            )
            if found is None:
                return _End.SETTLED if removable <= max(_NOT_WORTH * before.norm, floor) else _End.STAGNATED
            self.here, length, damping = found
            self._note(self.here, removable, length, damping)
            if self.here.norm <= _ROUND_OFF * largest or removable <= max(_REMOVABLE * before.norm, floor):
                return _End.SETTLED
            recent = [step["residual"] for step in self.history[-_PATIENCE:]]
            if len(recent) == _PATIENCE and recent[-1] > _CRAWLING * recent[0]:
                return _End.STAGNATED
        return _End.UNFINISHED

    def _goal(self, system: System) -> tuple[Any, Any]:
        """Return the weights that solve the linear rows, and what those lack then."""
        if system.constraints is not None:
            self.factor = constrained(self.solver, system.matrix, system.constraints)
            goal = self.factor.solve(system.rhs, system.constraint_rhs)
        else:
            self.factor = self.solver.factorise(system.matrix)
            goal = self.factor.solve(system.rhs)
        return goal, system.matrix @ goal - system.rhs

    def _shortened(self, here: _Point, system: System, goal: Any, promised: Any) -> tuple[_Point, float, float] | None:
        """Return the longest step that lowers the residual by a share of what the linear rows promise."""
        length = 1.0
        while length >= _SHORTEST:
            point = self.model.point(here.weights + length * (goal - here.weights), system)
            aim = _norm(here.soft + length * (promised - here.soft))
            if point is not None and _falls(here, point, aim):
                return point, length, 0.0
            length *= _SHRINK
        return None

    def _damped(self, here: _Point, system: System) -> tuple[_Point, float, float] | None:
        """Return the step of the smallest damping (Levenberg–Marquardt) that lowers the residual."""
        if system.constraints is not None:
            return None
        xp = array_namespace(system.matrix)
        squares = xp.sum(system.matrix * system.matrix, axis=0)
        for damping in _DAMPINGS:
            step = self.solver.factorise(system.matrix, ridge=damping * squares).solve(-here.soft)
            point = self.model.point(here.weights + step, system)
            if point is not None and _falls(here, point, _norm(here.soft + system.matrix @ step)):
                return point, 1.0, damping
        return None

    def _note(self, point: _Point, removable: float, length: float, damping: float) -> None:
        facts = {"residual": point.norm, "removable": removable, "length": length, "damping": damping}
        self.history.append({**facts, "factorised": 1.0})

    def solution(self, recipe: Recipe, end: _End, seconds: dict[str, float]) -> Solution:
        """Return the end of the iteration as a solution with its record."""
        assert self.here is not None
        assert self.latest is not None
        soft, hard = host(self.here.soft), host(self.here.hard)
        pairs = [(block, soft[block.rows]) for block in self.latest.blocks]
        pairs += [(block, hard[block.rows]) for block in self.latest.constraint_blocks]
        problem, network = self.model.problem, self.model.network
        diagnostics = Diagnostics(
            method=recipe.method,
            settings=recipe.settings,
            seed=recipe.seed,
            nodes=network.size,
            rows=len(soft) + len(hard),
            solver=self.factor.name,
            rank=self.factor.rank,
            condition=self.factor.condition,
            residuals=residual_record(pairs),
            seconds=seconds,
            message=end.value,
            iterations=tuple(self.history),
        )
        status = Status.FITTED if end is _End.SETTLED else Status.STALLED
        weights = host(self.here.weights).reshape(len(problem.fields), network.size)
        return Solution(problem, network.to_numpy(), weights, status, diagnostics)


def _falls(here: _Point, there: _Point, aim: float) -> bool:
    promised = max(0.0, here.norm**2 - aim**2)
    return there.norm < here.norm and here.norm**2 - there.norm**2 >= _SUFFICIENT * promised


def _rounding(system: System, weights: Any) -> float:
    """Return the size of the rounding errors in a residual of such weights."""
    xp = array_namespace(system.matrix)
    return float(np.finfo(np.float64).eps) * float(xp.linalg.matrix_norm(system.matrix)) * _norm(weights)


def _norm(array: Any) -> float:
    return float(array_namespace(array).linalg.vector_norm(array))
