"""One network, wider and wider: for many coordinates, point clouds and devices, where there are no cells.

A scale is chosen with pilots. Then each network is compared with the next wider one, on points of its own: their
distance is the error of the narrower one. Work is counted and not timed, so that equal calls give equal answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from pibls.budget import Budget
from pibls.errors import PiblsError, ProblemError
from pibls.features import BroadNetwork
from pibls.limits import STOPS, in_words
from pibls.problem import Problem
from pibls.runtime import available_memory
from pibls.solution import Solution, Stage
from pibls.solution.stages import more_budget
from pibls.solution.starts import checked_continuation, given_start, one, zero
from pibls.status import Status
from pibls.system import Evaluate, check_known, linearised, system_bytes
from pibls.tuning.fitting import Block, Fitting, Scale, estimated_error
from pibls.tuning.posedness import MET, ambiguity_of, contradicts
from pibls.tuning.progress import Progress
from pibls.tuning.scales import choose_scale, refine_scale, widened

__all__ = ["solve_wide"]

_WIDER = 1.4
_PILOT_LEVELS, _HARDLY_SOLVED = (1, 2, 4), 0.1  # where no pilot solves anything, wider ones decide on the scale
_EASY = 1e-8  # a pilot that does so well leaves a network of twice its width next to round-off
_MARGIN = 30.0  # a pilot better than the tolerance by so much ends the search
_QUICK = 3.0  # by so much the error should fall from width to width; else the scale is chosen again
_PAYING, _UNRESOLVED, _PATIENCE = 0.5, 0.1, 6
_MEMORY_SHARE = 0.5
_ROUNDING = 1e-12
_CONTRADICTION = (
    "The equations and conditions contradict each other: they keep a residual however wide the network is, though the "
    "best compromise is found. Check signs and values, or remove a condition."
)
_COARSE, _PLAUSIBLE, _NO_SOLUTION = 1e-3, 0.03, 1e-2  # residuals of nonlinear problems


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A network of one width, and its residual at held-out points."""

    blocks: tuple[Block, ...]
    solution: Solution
    residual: float

    @property
    def nodes(self) -> int:
        return sum(nodes for nodes, _ in self.blocks)


@dataclass(eq=False)
class _Widening:
    """One solve.

    Attributes
    ----------
    state
        For a nonlinear problem, the widest solution so far: where the next fit starts from.
    scale, width
        The scale that was chosen, and for which width.
    """

    fitting: Fitting
    tol: float
    budget: Budget
    report: Callable[[Progress], None]
    assume_well_posed: bool = False
    state: Evaluate | None = None
    scale: Scale = ()
    width: int = 0
    scanned: float = 0.0
    stages: list[Stage] = field(default_factory=list)
    best: tuple[float, _Fitted, _Fitted] | None = None

    @property
    def problem(self) -> Problem:
        return self.fitting.problem

    @property
    def elapsed(self) -> float:
        return self.budget.elapsed

    def run(self, start: Evaluate | None) -> Solution:
        """Solve, and say what came of it; an interrupt returns the best solution so far."""
        verdict = ""
        try:
            if not self.problem.is_linear:
                self.state = self._coarse(start)
            linear = self._linear(self.state)
            verdict = ("" if self.assume_well_posed else ambiguity_of(linear, self.budget)) or self._choose(linear)
            self.scanned = self.elapsed
            limit = self._widen(linear, once=bool(verdict))
            if limit and not verdict and (self.stages[0].residual or 0.0) > MET and self._contradicts(linear):
                verdict = _CONTRADICTION
        except STOPS as stop:
            if self.best is None:
                raise
            limit = in_words(stop)
        return self._solution(limit, verdict)

    def _linear(self, state: Evaluate | None) -> Fitting:
        """Return fits of the problem linearised at a state, on NumPy: what pilots are made by."""
        problem = self.problem if state is None else linearised(self.problem, state)
        return replace(self.fitting, problem=problem, device=None)

    def _coarse(self, start: Evaluate | None) -> Evaluate:
        """Return a first solution of a nonlinear problem, by Gauss–Newton steps of small networks."""
        found: list[tuple[float, Evaluate]] = []
        reason = ""
        for first in [zero, one] if start is None else [start]:
            state = first
            for level in _PILOT_LEVELS:
                if found and self.budget.late:
                    break
                nodes = level * self.fitting.pilot_nodes
                try:
                    scale, _ = self._scan(self._linear(state), nodes, _COARSE)
                    fitted = self._fitted(((nodes, scale),), state, close=False)
                except PiblsError as error:
                    reason = reason or str(error)
                    break
                state = fitted.solution.evaluate
                found.append((fitted.residual, state))
                if fitted.residual < _PLAUSIBLE:
                    return state
        if not found:
            tried = "zero, one" if start is None else "the given one"
            raise ProblemError(
                f"The equations have no finite value at any start that was tried ({tried}): {reason} Give a function "
                "to start from, such as solve(problem, start={u: 1 + x})."
            )
        return min(found, key=lambda pair: pair[0])[1]

    def _scan(self, linear: Fitting, nodes: int, tol: float) -> tuple[Scale, float]:
        def enough(scale: Scale) -> bool:
            blocks = ((nodes, scale),)
            one, two = linear.fit(blocks), linear.fit(_wider(blocks))
            self.budget.spend(linear.operations(nodes) + linear.operations(int(_WIDER * nodes)))
            return linear.distance(one, two) < tol

        return choose_scale(self._score(linear, nodes), linear.axes, tol / _MARGIN, linear.time_axis, enough)

    def _score(self, linear: Fitting, nodes: int) -> Callable[[Scale], float]:
        """Return the residual of pilots of a width by their scales, each computed once."""
        known: dict[Scale, float] = {}
        judge = linear.judge(nodes)

        def score(scale: Scale) -> float:
            if scale not in known:
                self._tell("scan", nodes)
                self.budget.spend(linear.operations(nodes))
                total = judge(linear.fit([(nodes, scale)])).total
                known[scale] = total if np.isfinite(total) else np.inf
            return known[scale]

        return score

    def _choose(self, linear: Fitting) -> str:
        """Choose the scale, with wider pilots as long as none solves anything; say if none ever will."""
        for level in _PILOT_LEVELS:
            nodes = level * linear.pilot_nodes
            scale, left = self._scan(linear, nodes, self.tol)
            if left < _HARDLY_SOLVED:
                break
            if level == 1 and self._contradicts(linear):
                self.scale, self.width = scale, nodes
                return _CONTRADICTION
        # What a pilot just meets, twice its width meets with digits to spare.
        ratio = 2 if nodes == linear.pilot_nodes else 1
        self.scale, self.width = widened(scale, ratio), ratio * nodes
        if left > _EASY:
            self.scale = refine_scale(self._score(linear, self.width), self.scale)
        return ""

    def _widen(self, linear: Fitting, *, once: bool) -> str:
        """Fit wider and wider networks until two agree; return what stopped it before, in words."""
        width = self.width or 2 * self.fitting.pilot_nodes
        here = self._fitted(((width, self.scale or (3.0,) * linear.axes),), self.state)
        while True:
            other = self._fitted(_wider(here.blocks), self.state)
            if self._compare(here, other) <= self.tol or once:
                return ""
            here = other
            following = int(_WIDER * here.nodes)
            if limit := self._limit(here, following):
                return limit
            last = [stage.estimate or 0.0 for stage in self.stages[-2:]]
            slow = len(last) > 1 and last[1] > last[0] / _QUICK
            again = 3 * linear.operations(here.nodes) + self.fitting.operations(following, here.solution)
            if slow and self.budget.affords(again):
                here = self._rescaled(linear, here)

    def _rescaled(self, linear: Fitting, here: _Fitted) -> _Fitted:
        """Try other scales at the width at hand: what suits narrow networks may not suit wide ones."""
        scale = widened(self.scale, here.nodes / self.width)
        self.scale, self.width = refine_scale(self._score(linear, here.nodes), scale), here.nodes
        other = self._fitted(((self.width, self.scale),), self.state)
        return min(here, other, key=lambda fitted: fitted.residual)

    def _fitted(self, blocks: tuple[Block, ...], state: Evaluate | None, *, close: bool = True) -> _Fitted:
        nodes = sum(nodes for nodes, _ in blocks)
        self._tell("solve", nodes)
        solution = self.fitting.fit(blocks, state, close=close)
        self.budget.spend(self.fitting.operations(nodes, solution))
        if state is not None:
            self.state = solution.evaluate
        return _Fitted(blocks, solution, self.fitting.judge(nodes)(solution).total)

    def _compare(self, here: _Fitted, other: _Fitted) -> float:
        """Estimate the error of a network by its distance to a wider one; keep the best so far."""
        self._tell("estimate", here.nodes)
        # Both at the same points: some may lie in a layer that others miss.
        judge = self.fitting.judge(other.nodes)
        residuals = judge(here.solution).total, judge(other.solution).total
        estimate = estimated_error(*residuals, self.fitting.distance(here.solution, other.solution))
        unsolved = not self.problem.is_linear and here.residual > _NO_SOLUTION
        if unsolved or here.residual * self.fitting.turns(here.solution) > 1.0:
            # Two networks that solve nothing may be alike; and what an equation misses adds up over time.
            estimate = max(1.0, estimate)
        rows = here.solution.diagnostics.rows
        self.stages.append(Stage(self.elapsed, here.nodes, rows, residual=here.residual, estimate=estimate))
        if self.best is None or estimate < self.best[0]:
            self.best = estimate, here, other
        return estimate

    def _tell(self, stage: str, nodes: int) -> None:
        last = self.stages[-1] if self.stages else Stage(0.0)
        self.report(Progress(stage, self.elapsed, nodes, last.residual, last.estimate))

    def _limit(self, here: _Fitted, width: int) -> str:
        """Return what forbids or makes pointless another width, in words."""
        last = [stage.estimate or 0.0 for stage in self.stages]
        hopeful = last[-1] > _UNRESOLVED and len(last) < _PATIENCE
        if len(last) > 2 and not hopeful and min(last[-2:]) > _PAYING * last[-3]:
            if min(last) < _ROUNDING:
                return "Round-off limits it: no more digits are to be had in double precision. Ask for a larger tol."
            # Networks that do not converge may be wrong alike: their residual knows more than their distance.
            estimate, here, other = cast(tuple[float, _Fitted, _Fitted], self.best)
            self.best = max(estimate, here.residual), here, other
            return (
                "The features limit it: widening the network no longer pays. The solution may have a layer, a corner "
                "or a jump that random nodes do not follow; give a method with scales by hand, or split the domain."
            )
        if not self.budget.affords(self.fitting.operations(width, here.solution)):
            return (
                f"The budget limits it: {width} nodes would take more than {self.budget.nominal:g} nominal seconds. "
                f"{more_budget(self.budget.nominal, self.stages)}"
            )
        needed = system_bytes(self.problem, self.fitting.points(width), width)
        if needed > _MEMORY_SHARE * available_memory():
            return f"The memory limits it: {width} nodes would need {needed / 2**30:.1f} GiB."
        return self.budget.late

    def _contradicts(self, linear: Fitting) -> bool:
        return not self.assume_well_posed and not self.budget.late and contradicts(linear, self.budget)

    def _solution(self, limit: str, verdict: str) -> Solution:
        assert self.best is not None
        estimate, here, other = self.best
        status, message = Status.ILL_POSED, verdict
        if not verdict:
            status = Status.STALLED if limit else Status.CONVERGED
            place = "above" if estimate > self.tol else "within"
            message = f"The estimated error {estimate:.1e} is {place} the tolerance {self.tol:g}. {limit}".rstrip()
            if limit and here.solution.status == Status.STALLED:
                message = f"{message} {here.solution.diagnostics.message}"
        diagnostics = replace(
            here.solution.diagnostics,
            message=message,
            stages=tuple(self.stages),
            seconds={"scan": self.scanned, "solve": self.elapsed - self.scanned},
        )
        richer = cast(BroadNetwork, other.solution.network), other.solution.weights
        made = replace(here.solution, status=status, error_estimate=estimate, diagnostics=diagnostics)
        return replace(made, richer=richer)


def solve_wide(
    problem: Problem,
    tol: float,
    budget: Budget | float,
    seed: int,
    report: Callable[[Progress], None],
    *,
    device: Any = None,
    assume_well_posed: bool = False,
    start: object = None,
    continuation: Sequence[Problem] = (),
) -> Solution:
    """Solve a problem by one network that is widened until a wider one agrees; see :func:`pibls.solve`.

    Examples
    --------
    >>> from pibls.problems import poisson_nd
    >>> solution = solve_wide(poisson_nd(4), 1e-6, 10.0, 0, lambda _: None)
    >>> solution.status, solution.true_error() < 1e-6
    ('converged', True)
    """
    check_known(problem)
    shared = Budget.of(budget)
    guess = None if start is None else given_start(start, problem)
    for easier in () if problem.is_linear else checked_continuation(continuation, problem):
        run = _Widening(Fitting(easier, seed, device), max(tol, _COARSE), shared, report, assume_well_posed)
        guess = run.run(guess).evaluate
    return _Widening(Fitting(problem, seed, device), tol, shared, report, assume_well_posed).run(guess)


def _wider(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the nodes of a wider network: those of another, and more at a somewhat finer scale."""
    nodes = sum(nodes for nodes, _ in blocks)
    more = int(_WIDER * nodes) - nodes
    return (*blocks, (more, widened(blocks[-1][1], 1.0 + more / nodes)))
