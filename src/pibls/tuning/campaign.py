"""The course of an automatic solve: choose scales with pilots, grow, estimate, and know when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np

from pibls.features import BroadNetwork
from pibls.geometry import Points
from pibls.runtime import available_memory, blas_threads
from pibls.solution import Solution
from pibls.system import system_bytes
from pibls.tuning.choice import SOLVES_NOTHING, Choice
from pibls.tuning.growth import Grown
from pibls.tuning.judge import Judge, Verdict
from pibls.tuning.laboratory import Block, Laboratory, Scale
from pibls.tuning.posedness import MET, Ambiguity, find_ambiguity, is_perturbed, joint_defects, stay_apart
from pibls.tuning.progress import Progress
from pibls.tuning.scan import widened

__all__ = ["Campaign", "Outcome", "Stage", "estimated_error"]

_FAR = 1.5  # a widening that pays for choosing the scale once more
_HOPEFUL = 10.0  # predictions of the error are rarely further off
_LEAST_WIDENING = 1.3
_MARGIN = 5.0
_CERTIFIED_COST = 2.3  # a fit and the richer one, in times of the fit alone
_CURVED = 3
_MEMORY_SHARE = 0.5
_PAYING = 0.5
_SCAN_SHARE = 0.2
_UNRESOLVED = 0.1
_PATIENCE = 5
_PATIENT = 3.0
_REFUTED = 3.0
_NO_PROGRESS = 0.2


@dataclass(frozen=True)
class Stage:
    """One width: its held-out residual, estimated error, and the seconds since the start."""

    nodes: int
    rows: int
    residual: float
    estimate: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best solution found, what limits it, and the way there."""

    solution: Solution
    richer: Solution | None
    estimate: float
    status: str
    message: str
    stages: tuple[Stage, ...]
    seconds: float
    scan_seconds: float

    def finished(self) -> Solution:
        """Return the solution with its status, estimate and history."""
        diagnostics = replace(
            self.solution.diagnostics,
            message=self.message,
            stages=tuple(asdict(stage) for stage in self.stages),
            seconds={"scan": self.scan_seconds, "solve": self.seconds - self.scan_seconds},
        )
        richer = None if self.richer is None else (cast(BroadNetwork, self.richer.network), self.richer.weights)
        return replace(
            self.solution,
            status=self.status,
            error_estimate=self.estimate,
            diagnostics=diagnostics,
            richer=richer,
        )


@dataclass(eq=False)
class _Candidate:
    """A network of one width, fitted and judged; certified once it was compared with a richer one."""

    blocks: list[Block]
    solution: Solution
    verdict: Verdict
    grown: Grown | None
    points: Points
    judge: Judge
    seconds: float

    @property
    def nodes(self) -> int:
        return sum(block.nodes for block in self.blocks)


@dataclass(eq=False)
class Campaign:
    """One automatic solve."""

    lab: Laboratory
    tol: float
    budget: float
    report: Callable[[Progress], None]
    known: Sequence[Scale] = ()
    started: float = field(default_factory=time.perf_counter)
    started_work: float = field(default_factory=time.process_time)
    stages: list[Stage] = field(default_factory=list)
    best: Solution | None = None
    richer: Solution | None = None
    estimate: float = np.inf
    worst_part: str = ""
    contradictory: bool = False
    scanned: float = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def spent(self) -> float:
        """Seconds of the budget that are gone: those of work, so that a busy machine does not change what is found.

        Waiting for other programs counts only by a third.
        """
        return max(min(self.elapsed, time.process_time() - self.started_work), self.elapsed / _PATIENT)

    def run(self) -> Outcome:
        """Solve, and say what came of it; an interrupt returns the best solution so far."""
        ambiguity = None
        try:
            with blas_threads(most=1):
                ambiguity = self.ambiguity()
            if ambiguity is None:
                width = self.choice.begin()
                self.contradictory = self.choice.impossible
                self.scanned = self.elapsed
                limit = self._grow(self.choice.blocks(width))
            else:
                limit = "It is not determined."
                self._certify(self._candidate([Block(2 * self.lab.pilot_nodes, (3.0,) * self.lab.axes)]))
        except KeyboardInterrupt:
            if self.best is None:
                raise
            limit = "It was interrupted. Run it again to go on."
        if self.best is None:
            raise AssertionError("a campaign has at least one stage")
        status, message = self._verdict(limit, ambiguity)
        return Outcome(
            self.best, self.richer, self.estimate, status, message, tuple(self.stages), self.elapsed, self.scanned
        )

    def ambiguity(self) -> Ambiguity | None:
        """Return a function that the conditions leave open, if there is one."""
        found = []
        for nodes in (self.lab.pilot_nodes * 2 // 3, self.lab.pilot_nodes * 4 // 3):
            network = self.lab.network([Block(nodes, (3.0,) * self.lab.axes)])
            found.append(find_ambiguity(self.lab.problem, self.lab.points(nodes), network))
        return found[1] if found[1].hides_more_than(found[0]) else None

    @cached_property
    def choice(self) -> Choice:
        """The scale of the features."""
        return Choice(
            self.lab,
            self.tol,
            report=lambda nodes: self.report(Progress("scan", self.elapsed, nodes, *self._last())),
            hurry=lambda: self.spent > _SCAN_SHARE * self.budget,
            hopeless=self.find_contradiction,
            known=self.known,
        )

    def _grow(self, blocks: list[Block]) -> str:
        """Widen until the tolerance is met; return what stopped it otherwise."""
        while True:
            candidate = self._candidate(blocks)
            hopeful = self.stages[-1].estimate <= _HOPEFUL * self.tol or len(self.stages) == 1
            if hopeful:
                self._certify(candidate)
            if hopeful and self.estimate <= self.tol:
                return ""
            if (
                not self.contradictory
                and len(self.stages) == 1
                and candidate.verdict.total > max(MET, _NO_PROGRESS * self.choice.pilot[1])
            ):
                self.contradictory = self.find_contradiction()
            if self.contradictory:
                return "Its statements contradict each other."
            width = self._next_width(candidate)
            if limit := self._limit(candidate, width):
                if not hopeful:
                    self._certify(candidate)
                return limit if self.estimate > self.tol else ""
            if self.lab.axes == 1 or (len(self.stages) == 1 and width > _FAR * candidate.nodes):
                begun = self.elapsed
                blocks = self.choice.wider(width)
                self.scanned += self.elapsed - begun
            else:
                blocks = [*candidate.blocks, *self.choice.more(candidate.blocks, width - candidate.nodes)]

    def _candidate(self, blocks: list[Block]) -> _Candidate:
        """Fit and judge one width."""
        nodes = sum(block.nodes for block in blocks)
        points, judge = self.lab.points(nodes), self.lab.judge(nodes)
        self.report(Progress("solve", self.elapsed, nodes, *self._last()))
        chosen = self._fit(blocks, points, judge)
        self.worst_part = chosen.verdict.worst
        residual = chosen.verdict.total
        last = self.stages[-1] if self.stages else None
        # Until it is certified, a width is taken to have gained as much accuracy as its residual has.
        predicted = np.inf if last is None else last.estimate * residual / last.residual
        rows = chosen.solution.diagnostics.rows
        self.stages.append(Stage(nodes, rows, residual, predicted, self.elapsed))
        return chosen

    def _fit(self, blocks: list[Block], points: Points, judge: Judge) -> _Candidate:
        begun = self.spent
        grown = self.lab.grown(blocks, points)
        solution = self.lab.fit(blocks, points) if grown is None else self.lab.solution(blocks, grown)
        return _Candidate(blocks, solution, judge(solution), grown, points, judge, self.spent - begun)

    def _certify(self, candidate: _Candidate) -> None:
        """Estimate the error by the distance to a richer network; keep the solution if it is the best so far.

        The richer network has half as many nodes again, appended to the factorisation at hand.
        """
        self.report(Progress("estimate", self.elapsed, candidate.nodes, *self._last()))
        blocks = [*candidate.blocks, *self.choice.more(candidate.blocks)]
        if self._layered:
            # Points may miss a layer: a network on the same ones would miss it too.
            richer = self.lab.fit(blocks, self.lab.other().points(sum(block.nodes for block in blocks)))
        elif candidate.grown is None:
            richer = self.lab.fit(blocks, candidate.points)
        else:
            groups = self.lab.network(blocks).features[len(candidate.blocks) :]
            richer = self.lab.solution(blocks, candidate.grown.with_nodes(groups))
        residuals = candidate.verdict.total, candidate.judge(richer).total
        estimate = estimated_error(*residuals, self.lab.distance(candidate.solution, richer))
        if residuals[0] * self.lab.turns(candidate.solution) > 1.0:
            # What the equation misses adds up over time to more than the solution, and two networks may do so alike.
            estimate = max(estimate, 1.0)
        if self.best is not None:
            # Two networks can agree by accident; a third one refutes them if its own error does not explain why not.
            apart, seen = (
                self.lab.distance(self.best, candidate.solution),
                self.lab.distance(candidate.solution, self.best),
            )
            if apart > _REFUTED * self.estimate and seen > _REFUTED * estimate:
                self.estimate = apart
        if self.best is None or estimate < self.estimate:
            self.best, self.richer, self.estimate = candidate.solution, richer, estimate
        self.stages[-1] = replace(self.stages[-1], estimate=estimate, seconds=self.elapsed)

    @cached_property
    def _layered(self) -> bool:
        return is_perturbed(self.lab.problem)

    def _next_width(self, candidate: _Candidate) -> int:
        """Return the width at which the tolerance should be met, from how the residual has fallen so far."""
        earlier = [(s.nodes, s.residual) for s in self.stages[:-1]] or [self.choice.pilot]
        (narrow, before), (nodes, now) = earlier[-1], (candidate.nodes, candidate.verdict.total)
        power = 1.0 / min(self.lab.axes, _CURVED)
        fallen = float(np.log(before / now)) if 0 < now < before else 0.0
        wanted = float(np.log(_MARGIN * self.stages[-1].estimate / self.tol))
        most = 2.0
        if fallen > 0 and nodes > narrow and np.isfinite(wanted):
            step = (nodes**power - narrow**power) * max(0.0, wanted) / fallen
            most = ((nodes**power + step) / nodes**power) ** (1 / power)
        return int(nodes * min(2.0, max(_LEAST_WIDENING, most)))

    def _last(self) -> tuple[float | None, float | None]:
        return (self.stages[-1].residual, self.estimate) if self.stages else (None, None)

    def _limit(self, candidate: _Candidate, width: int) -> str:
        """Return what forbids or makes pointless another stage, in words."""
        stages = self.stages
        hopeful = stages[-1].estimate > _UNRESOLVED and len(stages) < _PATIENCE
        if len(stages) >= 3 and not hopeful and min(s.estimate for s in stages[-2:]) > _PAYING * stages[-3].estimate:
            if self.estimate < 1e-12:
                return "Round-off limits it: no more digits are to be had in double precision. Ask for a larger tol."
            return (
                "The features limit it: widening the network no longer pays. The solution may have a layer, a corner "
                "or a jump that random nodes do not follow; give a method with scales by hand, or split the domain."
            )
        if self.spent + _CERTIFIED_COST * (width / candidate.nodes) ** 3 * candidate.seconds > self.budget:
            return (
                f"The time limits it: {width} nodes would take longer than the budget of {self.budget:g} s. "
                "Give a larger budget, such as budget=60."
            )
        needed = system_bytes(self.lab.problem, self.lab.points(width), width)
        if needed > _MEMORY_SHARE * available_memory():
            return f"The memory limits it: {width} nodes would need {needed / 2**30:.1f} GiB."
        return ""

    def _verdict(self, limit: str, ambiguity: Ambiguity | None) -> tuple[str, str]:
        if ambiguity is not None:
            return "ill-posed", ambiguity.in_words(self.lab.problem, self.lab.compare_points)
        if self.contradictory:
            return "ill-posed", (
                f"The equations and conditions contradict each other: {self.worst_part} keeps a relative residual of "
                f"{self.stages[-1].residual:.1g} however wide the network is, though the best compromise is found. "
                "Check signs and values, or remove a condition."
            )
        if not limit:
            return "converged", f"The estimated error {self.estimate:.1e} is within the tolerance {self.tol:g}."
        return "stalled", f"The estimated error is {self.estimate:.1e}, above the tolerance {self.tol:g}. {limit}"

    def find_contradiction(self) -> bool:
        """Tell whether the statements can each be met, but not together, however wide the network.

        An unresolved solution looks like that too, until the network is widened; a layer or a corner even then, so
        problems that have those are not asked.
        """
        if self._layered or self.lab.has_plain_corners:
            return False
        defects = []
        for doublings in range(3):
            nodes = self.lab.pilot_nodes * 2**doublings
            blocks = self.lab.blocks(nodes, widened((3.0,) * self.lab.axes, 2.0**doublings))
            defects.append(joint_defects(self.lab.problem, self.lab.points(nodes), self.lab.network(blocks)))
        return stay_apart(defects)


def estimated_error(own: float, richer: float, distance: float) -> float:
    """Return the relative error of a network, from its held-out residual, that of a richer one, and their distance.

    A richer network is the better one, and the distance is the error, unless its residual says otherwise; and both may
    be wrong alike where the equation is hardly solved at all.

    >>> [round(estimated_error(own, other, 0.01), 4) for own, other in ((1e-3, 1e-6), (1e-3, 1e-3), (0.5, 0.5))]
    [0.01, 0.0071, 1.0]
    """
    share = own / float(np.hypot(own, richer)) if own > 0 else 1.0
    return max(share * distance, 1.0) if own > SOLVES_NOTHING else share * distance
