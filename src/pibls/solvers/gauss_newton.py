"""Nonlinear least squares by Gauss–Newton: directions from a rank-safe factorisation, step rules composed with them.

Each direction solves min ‖J d + r‖² (with rows √μ D d below it where it is damped) by a factorisation of the linear
solvers. JᵀJ is never formed: Jacobians of random features have condition numbers near 1e16, and squaring them would
leave no digit. One factorisation serves several steps as long as they contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pibls.errors import SolveError
from pibls.solvers.base import Solver, computing
from pibls.solvers.dense import Array
from pibls.solvers.lstsq import LeastSquares
from pibls.solvers.step_rules import (
    NOT_WORTH,
    FullStep,
    LineSearch,
    Model,
    Point,
    StepRule,
    Tangent,
    TrustRegion,
)
from pibls.system import System

__all__ = ["Descent", "Iteration", "gauss_newton"]

_REMOVABLE = 0.03  # share of the residual that a converged iteration could still remove
_ROUND_OFF = 1e-14  # of the largest residual: what is below cannot be told from rounding
_DIGITS = 1e-12  # of the largest residual: no step rule can be asked for less
_PATIENCE, _CRAWLING = 6, 0.9  # so many factorisations for less than a tenth of the residual: no solution is near
_CONTRACTING = 0.2
_VANISHED = 10.0
_REFINEMENTS = 2
_MOST_CHORDS = 12


@dataclass(frozen=True)
class Iteration:
    """One step: norm of the residual after it, what the linear model could remove, length and damping of the step."""

    residual: float
    removable: float
    length: float
    damping: float
    factorised: bool


@dataclass(frozen=True, eq=False)
class Descent:
    """What an iteration came to.

    Attributes
    ----------
    point
        Weights and residual at the end.
    tangent
        The last linear model that was factorised.
    status
        ``"converged"``: no step would remove a noticeable part of the residual; ``"stagnated"``: no step rule finds a
        better point; ``"unfinished"``: the iterations ran out.
    history
        The steps.
    """

    point: Point
    tangent: Tangent
    status: str
    history: tuple[Iteration, ...]


def gauss_newton(
    model: Model,
    start: Array,
    *,
    rules: Sequence[StepRule] = (LineSearch(), TrustRegion()),
    first: System | None = None,
    solver: Solver | None = None,
    most: int = 30,
) -> Descent:
    """Minimise ‖r(w)‖ by Gauss–Newton steps.

    Parameters
    ----------
    model
        Residuals and their linearisation.
    start
        Weights to start from.
    rules
        Step rules, tried in this order until one of them accepts a step.
    first
        A system whose solution, added to ``start``, begins the iteration: from a state that is not one of weights.
    solver
        What factorises; :class:`LeastSquares` if left out.
    most
        Most factorisations.

    Examples
    --------
    Rosenbrock's function, whose valley is curved:

    >>> import numpy as np
    >>> class Valley:
    ...     def residual(self, w):
    ...         return np.array([10 * (w[1] - w[0] ** 2), 1 - w[0]]), np.empty(0)
    ...
    ...     def system(self, w):
    ...         return System(np.array([[-20 * w[0], 10.0], [-1.0, 0.0]]), -self.residual(w)[0], ())
    >>> found = gauss_newton(Valley(), np.array([-1.2, 1.0]))
    >>> found.status, found.point.weights.round(10).tolist()
    ('converged', [1.0, 1.0])
    """
    with computing():
        return _iterate(model, start, rules, first, LeastSquares() if solver is None else solver, most)


def _iterate(
    model: Model, start: Array, rules: Sequence[StepRule], first: System | None, solver: Solver, most: int
) -> Descent:
    here = _first_point(model, start, first)
    largest = here.norm
    history: list[Iteration] = []
    for count in range(most):
        foreign = first is not None and count == 0
        system = first if first is not None and count == 0 else model.system(here.weights)
        tangent = Tangent(system, solver)
        found = (rule.advance(model, here, tangent) for rule in ((FullStep(),) if foreign else rules))
        trial = next((trial for trial in found if trial is not None), None)
        if trial is None:
            left = here.removable(tangent.step(here)[1])
            status = "converged" if left <= max(NOT_WORTH * here.norm, _DIGITS * largest) else "stagnated"
            return Descent(here, tangent, status, tuple(history))
        tangent, before, here = trial.tangent, here, trial.point
        largest = max(largest, here.norm)
        history.append(Iteration(here.norm, trial.removable, trial.length, tangent.damping, True))
        if here.norm <= _ROUND_OFF * largest:
            return Descent(_refined(model, here, tangent), tangent, "converged", tuple(history))
        recent = [step.residual for step in history if step.factorised][-_PATIENCE:]
        if len(recent) == _PATIENCE and here.norm > _CRAWLING * recent[0]:
            return Descent(here, tangent, "stagnated", tuple(history))
        if tangent.damping > 0 or trial.length < 1.0:
            if trial.removable <= _REMOVABLE * before.norm and before.norm - here.norm <= 1e-3 * before.norm:
                return Descent(here, tangent, "converged", tuple(history))
            continue
        floor = max(_ROUND_OFF * largest, tangent.rounding(here.weights))
        here, done = _chords(model, here, tangent, trial.removable, floor, history)
        if done:
            return Descent(here, tangent, "converged", tuple(history))
    return Descent(here, tangent, "unfinished", tuple(history))


def _first_point(model: Model, start: Array, first: System | None) -> Point:
    if first is not None:
        # Its residual is that of the linear model: at the start itself the equation may not even be defined.
        hard = first.rhs[:0] if first.constraint_rhs is None else -first.constraint_rhs
        return Point(start, -first.rhs, hard)
    point = Point.of(model, start)
    if point is None:
        model.residual(start)  # raises what is wrong with the start, by name and place
        raise SolveError("The residual overflows at the start of gauss_newton. Start from smaller weights.")
    return point


def _chords(
    model: Model, here: Point, tangent: Tangent, before: float, floor: float, history: list[Iteration]
) -> tuple[Point, bool]:
    """Go on with the factorisation at hand while it contracts; tell whether nothing is left to remove."""
    for _ in range(_MOST_CHORDS):
        step, change = tangent.step(here)
        removable = here.removable(change)
        # Rows that must vanish are done only when they do.
        done = removable <= max(_REMOVABLE * here.norm, floor) and here.violation <= _VANISHED * floor
        if removable > _CONTRACTING * before and not done:
            return here, False
        point = Point.of(model, here.weights + step)
        if point is None or (not done and point.norm >= here.norm):
            return here, False
        if point.norm < here.norm:
            here = point
            history.append(Iteration(here.norm, removable, 1.0, 0.0, False))
        if done:
            return _refined(model, here, tangent), True
        before = removable
    return here, False


def _refined(model: Model, here: Point, tangent: Tangent) -> Point:
    """Remove the rounding errors of the solve itself, as far as the residual shows them."""
    for _ in range(_REFINEMENTS if tangent.system.constraints is None else 0):
        point = Point.of(model, here.weights + tangent.correction(here)[0])
        if point is None or point.norm >= here.norm:
            break
        here = point
    return here
