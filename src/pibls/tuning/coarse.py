"""A coarse solution of a nonlinear problem: where to start, what to try when that fails, and which branch it is.

Attempts cost little, for networks are small. They are judged by the residual at points they were not fitted at, so
that an iteration that ends anywhere but at a solution is noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pibls.errors import PiblsError, ProblemError
from pibls.methods import Recipe
from pibls.methods.nonlinear import prepared, wrapped
from pibls.problem import Problem
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.solution.starts import scaled, zero
from pibls.solvers import LeastSquares
from pibls.solvers.gauss_newton import Descent, gauss_newton
from pibls.system import Balanced, Evaluate, Linearisation, States, linearised
from pibls.tuning.campaign import Campaign
from pibls.tuning.laboratory import Laboratory, relative_distance
from pibls.tuning.pilots import Pilots
from pibls.tuning.progress import Progress
from pibls.tuning.scan import Scan, choose_scale
from pibls.tuning.starts import bump, simple_starts

__all__ = ["Coarse", "coarse_solution"]

_PLAUSIBLE, _SURE, _COMPARABLE = 0.03, 1e-3, 10.0
_RESOLVED = 0.1
_LEVELS = (1, 2, 4)
_STAYS = 0.5
_SHARE, _LATEST = 0.3, 0.6  # of the budget: after which no other start, and no other width, is tried
_BRANCH_SHARE = 0.1
_FIRST_SHARE, _SHORTEST_SHARE, _QUICKER = 0.2, 0.01, 1.6
_DIFFERENT = 0.1
_PROMISING, _WIDER = 0.6, (1.5, 2.0, 3.0)
_FEW_STEPS, _MANY_STEPS = 10, 18
_LEADING = 2
_AMPLITUDES = (1.0, -1.0, 8.0, -8.0, 40.0)


@dataclass(frozen=True, eq=False)
class Coarse:
    """A coarse solution.

    Attributes
    ----------
    solution
        The best that was found.
    score
        Its relative residual at held-out points.
    remark
        What a user should know of the way there: another branch, a continuation.
    failure
        Why there seems to be no solution, or an empty string.
    scales
        Feature scales that did best for the problem linearised near the solution.
    """

    solution: Solution
    score: float
    scales: Sequence[tuple[float, ...]]
    remark: str = ""
    failure: str = ""


@dataclass(frozen=True, eq=False)
class _Attempt:
    """One network, and the best point of it."""

    model: Linearisation
    descent: Descent
    solution: Solution
    score: float
    start: str
    scan: Scan
    again: bool = False

    @property
    def resolved(self) -> bool:
        """Whether so many nodes resolve the linear problem at the start."""
        return self.scan.score < _RESOLVED

    @property
    def wants_nodes(self) -> bool:
        """Whether so many nodes do not resolve even the linear problem, or hardly better than the problem itself."""
        return not self.resolved or self.score < _COMPARABLE * self.scan.score

    @property
    def solved(self) -> bool:
        """Whether it is a solution, as far as so many nodes resolve it.

        The problem linearised at a solution is solved about as well as the problem itself; a compromise that is no
        solution can always be improved upon.
        """
        limited = self.again and self.score < min(_PLAUSIBLE, _COMPARABLE * self.scan.score)
        return limited or (self.score < _SURE and self.descent.status == "converged")


@dataclass(eq=False)
class _Bench:
    """Attempts at one problem."""

    problem: Problem
    campaign: Campaign
    tried: list[str]
    reached: float = 1.0

    @property
    def lab(self) -> Laboratory:
        return replace(self.campaign.lab, problem=self.problem)

    def attempt(
        self, name: str, start: Evaluate, nodes: int, *, again: bool = False, most: int = _MANY_STEPS
    ) -> _Attempt | None:
        """Iterate from a start, or once more from a state reached before; None where the equation has no value."""
        self.campaign.report(Progress("scan", self.campaign.elapsed, nodes))
        if name not in self.tried:
            self.tried.append(name)
        try:
            model, scan = self.model(start, nodes)
            first = model.tangent(model.states_of(start))
            descent = gauss_newton(model, model.zeros(), first=first, most=most)
            return replace(self.judged(model, descent, name, scan), again=again)
        except PiblsError:
            return None

    def model(self, start: Evaluate, nodes: int) -> tuple[Linearisation, Scan]:
        """Return the rows of a network of the scale that suits the problem linearised at a start, and the scan."""
        lab = self.lab
        pilots = Pilots(replace(lab, problem=linearised(self.problem, start)), nodes)
        scan = choose_scale(pilots.score, lab.axes, self.campaign.tol, time_axis=lab.time_axis, accept=lambda _: True)
        network = lab.network(lab.blocks(nodes, scan.scale))
        return prepared(self.problem, lab.points(nodes), network, self.recipe, start), scan

    @property
    def recipe(self) -> Recipe:
        return Recipe("PIBLS", {"activation": self.lab.activation}, self.lab.seed, Balanced(), 0.0, LeastSquares())

    def judged(self, model: Linearisation, descent: Descent, name: str, scan: Scan) -> _Attempt:
        solution = wrapped(model, descent, self.recipe, {})
        score = self.lab.judge(model.network.size)(solution).total
        return _Attempt(model, descent, solution, score, name, scan)

    @property
    def late(self) -> bool:
        return self.campaign.spent > _SHARE * self.campaign.budget


def coarse_solution(problem: Problem, campaign: Campaign, start: Evaluate | None) -> Coarse:
    """Return a coarse solution, from a start or from simple ones."""
    bench = _Bench(problem, campaign, [])
    found: list[_Attempt] = []
    with blas_threads(most=1):
        if start is not None:
            # Whoever gives a start wants the solution near it: others are tried only if there is none.
            found = _widening(bench, [("the given start", start)])
        if not (found and found[-1].solved):
            found += _widening(bench, None)
        if not found:
            raise ProblemError(
                f"The equations have no finite value at any start that was tried ({', '.join(bench.tried)}). Give a "
                "function to start from, such as solve(problem, start={u: 1 + x})."
            )
        chosen = min(found, key=lambda attempt: attempt.score)
        remark = _branches(bench, chosen) if chosen.solved else ""
    if chosen.start == "continuation" and chosen.solved:
        remark = f"It was found by continuation from the linear part of the problem. {remark}".strip()
    failure = "" if chosen.solved else _failure(bench, found)
    return Coarse(chosen.solution, chosen.score, chosen.scan.leading(_LEADING), remark, failure)


_Starts = Sequence[tuple[str, Evaluate]]


def _widening(bench: _Bench, starts: _Starts | None) -> list[_Attempt]:
    """Return the best attempts with wider and wider networks, until one solves the problem or the time is up."""
    campaign, found = bench.campaign, list[_Attempt]()
    for level in _LEVELS:
        attempt = _at_level(bench, level * campaign.lab.pilot_nodes, starts, found, last=level == _LEVELS[-1])
        if attempt is not None:
            found.append(attempt)
        if found and (found[-1].solved or campaign.spent > _LATEST * campaign.budget):
            break
    return found


def _at_level(
    bench: _Bench, nodes: int, starts: _Starts | None, found: Sequence[_Attempt], *, last: bool
) -> _Attempt | None:
    """Return the best attempt with networks of one width, from given starts or from simple ones.

    All starts are tried once, with the first width that resolves the linear problem at the start; wider networks go on
    from the best state then.
    """
    if any(attempt.resolved for attempt in found):
        best = min(found, key=lambda attempt: attempt.score)
        return bench.attempt(best.start, best.solution.evaluate, nodes, again=True)
    best_here: _Attempt | None = None
    for name, state in simple_starts(bench.problem, bench.lab, nodes) if starts is None else starts:
        attempt = bench.attempt(name, state, nodes)
        if attempt is not None and attempt.resolved and not attempt.solved:
            # The state that was reached may want other scales than the start did.
            attempt = _better(bench.attempt(name, attempt.solution.evaluate, nodes, again=True), attempt)
        best_here = _better(best_here, attempt)
        # Where not even the linear problem is resolved, or all but a little is solved, more nodes are of more help than
        # another start.
        if best_here is not None and (best_here.solved or bench.late or (best_here.wants_nodes and not last)):
            return best_here
    return best_here if starts is not None else _better(best_here, _followed(bench, nodes))


def _better(one: _Attempt | None, two: _Attempt | None) -> _Attempt | None:
    return min((a for a in (one, two) if a is not None), key=lambda attempt: attempt.score, default=None)


def _followed(bench: _Bench, nodes: int) -> _Attempt | None:
    """Follow the solution from that of the problem linearised at zero, as its nonlinearity is put in by shares."""
    try:
        model, scan = bench.model(zero, nodes)
        base = model.states_of(zero)
        descent = gauss_newton(model.continued(base, 0.0), model.zeros())
    except PiblsError:
        return None
    bench.tried.append("continuation")
    size = max(descent.point.norm, _reference(model, base))
    share, length = 0.0, _FIRST_SHARE
    while share < 1.0 and not bench.late:
        aim = min(1.0, share + length)
        trial = gauss_newton(model.continued(base, aim), descent.point.weights, most=8)
        if trial.status == "converged" and trial.point.norm < _PLAUSIBLE * size:
            share, descent, length = aim, trial, length * _QUICKER
        else:
            length /= 2
            if length < _SHORTEST_SHARE:
                break
    bench.reached = share
    return bench.judged(model, descent, "continuation", scan)


def _reference(model: Linearisation, base: States) -> float:
    return float(np.linalg.norm(model.tangent(base).rhs))


def _failure(bench: _Bench, found: Sequence[_Attempt]) -> str:
    """Say that there seems to be no solution, if wider networks came no closer to one."""
    resolved = [attempt.score for attempt in found if attempt.resolved]
    best = min(found, key=lambda attempt: attempt.score)
    if len(resolved) < 2 or min(resolved) < _STAYS * resolved[0] or best.wants_nodes:
        return ""
    lost = ""
    if bench.reached < 1.0:
        lost = (
            f" Followed from its linear part, the solution is lost where {100 * bench.reached:.0f} % of the "
            "nonlinearity are put in; a branch of solutions may turn back there."
        )
    return (
        f"No solution was found: from {', '.join(bench.tried)} the best compromise keeps a relative residual of "
        f"{min(resolved):.1g} however wide the network is. The problem may have no solution.{lost} Check signs and "
        "parameters; if it has one, start near it with start=, or come from easier problems with continuation=."
    )


def _branches(bench: _Bench, chosen: _Attempt) -> str:
    """Look for another solution from larger starts; say so if there is one."""
    if bench.problem.domain.time is not None:
        return ""
    shape = bump(bench.problem, bench.lab, bench.lab.pilot_nodes)
    if shape is None:
        return ""
    limit = bench.campaign.spent + _BRANCH_SHARE * bench.campaign.budget
    for amplitude in _AMPLITUDES:
        if bench.campaign.spent > limit:
            break
        other = _other(bench, chosen, scaled(shape, amplitude))
        if other is not None:
            sizes = [_size(bench, attempt.solution) for attempt in (chosen, other)]
            return (
                f"The problem has more than one solution: this is the one reached from {chosen.start}, of root mean "
                f"square {sizes[0]:.3g}; another has {sizes[1]:.3g}. Choose by start=."
            )
    return ""


def _other(bench: _Bench, chosen: _Attempt, start: Evaluate) -> _Attempt | None:
    """Return a solution that is not the chosen one, confirmed with wider networks: it may be a sharper one."""
    model, nodes = chosen.model, chosen.model.network.size
    try:
        first = model.tangent(model.states_of(start))
        descent = gauss_newton(model, model.zeros(), first=first, most=_FEW_STEPS)
        found = bench.judged(model, descent, "", chosen.scan)
    except PiblsError:
        return None
    promising = _PROMISING
    for factor in _WIDER:
        if found.score > promising or not _differ(bench, chosen, found):
            return None
        wider = bench.attempt("a larger start", found.solution.evaluate, int(factor * nodes), again=True)
        if wider is None:
            return None
        if wider.solved and _differ(bench, chosen, wider):
            return wider
        found, promising = wider, found.score
    return None


def _differ(bench: _Bench, one: _Attempt, two: _Attempt) -> bool:
    X = bench.lab.compare_points
    return min(relative_distance(a.solution, b.solution, X) for a, b in ((one, two), (two, one))) > _DIFFERENT


def _size(bench: _Bench, solution: Solution) -> float:
    X = bench.lab.compare_points
    zeros = (0,) * X.shape[1]
    values = solution.evaluate(X, [(name, zeros) for name in bench.problem.field_names])
    return float(np.sqrt(np.mean(np.square(values))))
