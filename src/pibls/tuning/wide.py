"""One network, wider and wider: for many coordinates, point clouds and devices, where there are no cells.

A scale is chosen with pilots. Then each network is compared with the next wider one, on points of its own: their
distance is the error of the narrower one. Work is counted and not timed, so that equal calls give equal answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from pibls.budget import Budget
from pibls.errors import PiblsError, ProblemError
from pibls.features import BroadNetwork
from pibls.limits import keep
from pibls.problem import Problem
from pibls.refinement import VISIBLE, Cost, Course, Reason, Stop, refine, verdict
from pibls.refinement.patience import NETWORKS
from pibls.refinement.standards import FALLS, MOST, NEGLIGIBLE, PLAIN, SLIGHT
from pibls.solution import Solution, Stage
from pibls.solution.start_states import checked_continuation, given_start, one, zero
from pibls.status import Status
from pibls.system import Evaluate, check_known, linearised, system_bytes
from pibls.tuning.charts import learned_chart
from pibls.tuning.correction import Correction
from pibls.tuning.fitting import Block, Fitting, of_unknown_error
from pibls.tuning.pilots import WIDER, Pilot, Pilots, wider
from pibls.tuning.progress import Progress
from pibls.tuning.scale_search import FEW_AXES, Scale, widened
from pibls.wellposed.contradiction import contradiction_of, find_clash
from pibls.wellposed.sensitivity import SCALE, ambiguity_of

_PILOT_LEVELS = (1, 2, 4)  # where no pilot solves anything, wider ones decide on the scale


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A network of one width, and its residual at held-out points."""

    blocks: tuple[Block, ...]
    solution: Solution
    residual: float

    @property
    def nodes(self) -> int:
        return sum(nodes for nodes, _ in self.blocks)


@dataclass(frozen=True, eq=False)
class _Pair:
    """A network, a wider one, and the estimated error of the first."""

    here: _Fitted
    wider: _Fitted
    estimate: float


@dataclass(eq=False)
class _Widening:
    """One solve."""

    fitting: Fitting
    tol: float
    budget: Budget
    report: Callable[[Progress], None]
    assume_well_posed: bool = False
    state: Evaluate | None = None  # for a nonlinear problem, the widest solution so far: where the next fit starts from
    # scale, width: the scale that was chosen, and for which width
    scale: Scale = ()
    width: int = 0
    scanned: float = 0.0
    flaw: str = ""  # why the problem is ill-posed
    least: float = np.inf  # the least residual so far

    def __post_init__(self) -> None:
        self.linear = self.fitting
        self.course: Course[_Pair] = Course(self.budget, NETWORKS, lambda *facts: self.report(Progress(*facts)))

    @property
    def problem(self) -> Problem:
        return self.fitting.problem

    @cached_property
    def correction(self) -> Correction:
        """The part of an error that a chart hides, as far as a pilot in all coordinates sees it."""
        return Correction(self._linear(self.state))

    def run(self, start: Evaluate | None) -> Solution:
        """Solve, and tell the outcome; an interrupt returns the best solution so far."""
        if not self.problem.is_linear:
            self.state = self._coarse(start)
        self.fitting = replace(self.fitting, chart=None)
        self.linear = self._linear(self.state)
        self.flaw = "" if self.assume_well_posed else self._clash() or ambiguity_of(self.linear, self.budget)
        self.flaw = self.flaw or self._choose(self.linear)
        self.scanned = self.budget.elapsed
        width = self.width or 2 * self.fitting.pilot_nodes
        first = self._fitted(((width, self.scale or (SCALE,) * self.linear.axes),), self.state)
        stop = refine(self, first, self.course)
        stalled = stop.reason is not Reason.TOLERANCE and not stop.reason.is_outer
        if stalled and not self.flaw and (self.course.stages[0].residual or 0.0) > VISIBLE:
            self.flaw = self._contradiction(self.linear)
        return self._solution(stop)

    def _clash(self) -> str:
        """Say which conditions give different values for the same thing, if by more than a small part of a solution."""
        if (clash := find_clash(self.problem)) is None:
            return ""
        pilot = ((self.linear.pilot_nodes, (SCALE,) * self.linear.axes),)
        return clash.in_words(self._fitted(pilot, self.state).solution, self.tol)

    def _linear(self, state: Evaluate | None) -> Fitting:
        """Return fits of the problem linearised at a state, on NumPy, for pilots."""
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
                    pilot = self._pilots(self._linear(state), nodes).scan(self.problem, PLAIN)
                    self.fitting = replace(self.fitting, chart=pilot.fitting.chart)
                    fitted = self._fitted(((nodes, pilot.scale),), state, close=False)
                except PiblsError as error:
                    reason = reason or str(error)
                    break
                state = fitted.solution.evaluate
                found.append((fitted.residual, state))
                if fitted.residual < VISIBLE:
                    return state
        if not found:
            tried = "zero, one" if start is None else "the given one"
            raise ProblemError(
                f"The equations have no finite value at any start that was tried ({tried}): {reason} Give a function "
                "to start from, such as solve(problem, start={u: 1 + x})."
            )
        return min(found, key=lambda pair: pair[0])[1]

    def _pilots(self, linear: Fitting, nodes: int) -> Pilots:
        return Pilots(linear, nodes, self.budget, self.course.tell, self._keep)

    def _choose(self, linear: Fitting) -> str:
        """Choose chart and scale, with wider pilots as long as none solves anything; say if none ever will."""
        before = np.inf
        for level in _PILOT_LEVELS:
            nodes = level * linear.pilot_nodes
            pilots = self._pilots(linear, nodes)
            pilot = pilots.scan(self.problem, self.tol)
            # Beyond three coordinates twice the nodes are hardly finer along each.
            hopeless = linear.dimension > FEW_AXES and pilot.residual > FALLS * before
            before = pilot.residual
            if pilot.residual < NEGLIGIBLE or hopeless:
                break
            if level == 1 and (verdict := self._contradiction(linear)):
                self._take(pilot, nodes, pilot.scale)
                return verdict
        # What a pilot just meets, twice its width meets with digits to spare.
        ratio = 2 if nodes == linear.pilot_nodes else 1
        self._take(pilot, ratio * nodes, widened(pilot.scale, ratio))
        if linear.dimension <= FEW_AXES and pilot.residual > NEGLIGIBLE * self.tol:
            pilots = self._pilots(linear, self.width)
            self.scale = pilots.refined(None, self.scale).scale
        return ""

    def _take(self, pilot: Pilot, width: int, scale: Scale) -> None:
        """Use the chart of a pilot from now on, with a scale for networks of a width."""
        self.width, self.scale = width, scale
        self.fitting, self.linear = (replace(own, chart=pilot.fitting.chart) for own in (self.fitting, self.linear))

    def _rescaled(self, here: _Fitted) -> _Fitted:
        """Try other scales and directions at the width at hand: those of narrow networks may not suit wide ones."""
        plain, scale = self.linear, widened(self.scale, here.nodes / self.width)
        pilots, chart = self._pilots(plain, here.nodes), self.fitting.chart
        if plain.dimension > FEW_AXES:
            chart = learned_chart(here.solution, self.fitting.compare_points)
            scale = (max(scale),) * chart.axes
        pilot = pilots.refined(chart, scale)
        old = self.fitting, self.linear, self.scale, self.width
        self._take(pilot, here.nodes, pilot.scale)
        other = self._fitted(((self.width, self.scale),), self.state)
        if other.residual < here.residual:
            return other
        self.fitting, self.linear, self.scale, self.width = old
        return here

    def _fitted(self, blocks: tuple[Block, ...], state: Evaluate | None, *, close: bool = True) -> _Fitted:
        nodes = sum(nodes for nodes, _ in blocks)
        self.course.tell("solve", nodes)
        solution = self.fitting.fit(blocks, state, close=close)
        self.budget.spend(self.fitting.operations(nodes, solution))
        if state is not None:
            self.state = solution.evaluate
        residual = self.fitting.judge(nodes)(solution.evaluate)
        self._keep(solution, residual)
        return _Fitted(blocks, solution, residual)

    def _keep(self, solution: Solution, residual: float) -> None:
        """Keep the solution with the least residual, in case that there is no time to compare any."""
        if solution.problem is self.problem and residual < self.least:
            self.least = residual
            keep(self.problem, partial(of_unknown_error, solution))

    def compare(self, here: _Fitted) -> _Pair:
        """Estimate the error of a network by its distance to a wider one."""
        finer = self._fitted(wider(here.blocks), self.state)
        self.course.tell("estimate", here.nodes)
        estimate = self.fitting.estimate(here.solution, finer.solution, finer.nodes)
        if self.fitting.chart is not None:
            self.budget.spend(self.linear.operations(self.linear.pilot_nodes))
            estimate = float(np.hypot(estimate, self.correction.size(here.solution)))
        unsolved = not self.problem.is_linear and here.residual > SLIGHT
        if unsolved or here.residual * self.fitting.turns(here.solution) > 1.0:
            # Two networks that solve nothing may be alike; and what an equation misses adds up over time.
            estimate = max(1.0, estimate)
        return _Pair(here, finer, estimate)

    def stage(self, found: _Pair) -> Stage:
        """Return the record of a width."""
        here, rows = found.here, found.here.solution.diagnostics.rows
        return Stage(self.budget.elapsed, here.nodes, rows, residual=here.residual, estimate=found.estimate)

    def is_met(self, found: _Pair) -> bool:
        """Tell whether two widths agree; for an ill-posed problem one comparison is enough."""
        return found.estimate <= self.tol or bool(self.flaw)

    def limit(self, found: _Pair) -> Stop | None:
        """Return the reason if a wider network solves nothing either, beyond three coordinates."""
        left, axes = found.wider.residual, self.fitting.dimension
        if axes <= FEW_AXES or found.estimate < 1.0 or left < FALLS * found.here.residual:
            return None
        few, many = ((own.nodes, own.residual) for own in (found.here, found.wider))
        words = (
            f"random nodes do not follow the solution in {axes} coordinates. {few[0]} nodes leave a relative residual "
            f"of {few[1]:.1g}, and {many[0]} leave {many[1]:.1g}. It may have layers along the boundary."
        )
        return Stop(Reason.EXHAUSTED, words)

    def cost(self, found: _Pair) -> Cost:
        """Return the cost of the next width."""
        width = int(WIDER * found.wider.nodes)
        work = self.fitting.operations(width, found.wider.solution)
        memory = system_bytes(self.problem, self.fitting.points(width), width)
        return Cost(f"{width} nodes", work, memory, MOST)

    def finer(self, found: _Pair) -> _Fitted:
        """Return the wider network; with another scale where estimates fall slowly."""
        here, last = found.wider, [pair.estimate for pair in self.course.comparisons[-2:]]
        slow = len(last) > 1 and last[1] > MOST * last[0]
        again = 3 * self.linear.operations(here.nodes) + self.cost(found).operations
        return self._rescaled(here) if slow and self.budget.affords(again) else here

    def _contradiction(self, linear: Fitting) -> str:
        return "" if self.assume_well_posed or self.budget.late else contradiction_of(linear, self.budget)

    def _solution(self, stop: Stop) -> Solution:
        best = self.course.best
        fitted, estimate = best.here.solution, best.estimate
        if stop.reason is Reason.STAGNATION:
            # Networks that do not converge may be wrong alike: their residual knows more than their distance.
            estimate = max(estimate, best.here.residual)
        unfinished = stop.reason is not Reason.TOLERANCE and fitted.status == Status.STALLED
        remark = fitted.diagnostics.message if unfinished else ""
        status, message = verdict(self.tol, estimate, stop, remark, flaw=self.flaw)
        diagnostics = replace(
            fitted.diagnostics,
            message=message,
            stages=tuple(self.course.stages),
            seconds={"scan": self.scanned, "solve": self.budget.elapsed - self.scanned},
        )
        richer = cast(BroadNetwork, best.wider.solution.network), best.wider.solution.weights
        return replace(fitted, status=status, error_estimate=estimate, diagnostics=diagnostics, richer=richer)


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
    """Solve a problem by one network that is widened until a wider one agrees; see :func:`pibls.solve`."""
    check_known(problem)
    shared = Budget.of(budget)
    guess = None if start is None else given_start(start, problem)
    for easier in () if problem.is_linear else checked_continuation(continuation, problem):
        run = _Widening(Fitting(easier, seed, device), max(tol, PLAIN), shared, report, assume_well_posed)
        guess = run.run(guess).evaluate
    return _Widening(Fitting(problem, seed, device), tol, shared, report, assume_well_posed).run(guess)
