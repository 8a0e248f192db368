"""The course of an automatic solve: choose scales with pilots, grow, estimate, and know when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from pibls.problem import Problem
from pibls.runtime import available_memory, blas_threads
from pibls.solution import Solution
from pibls.system import system_bytes
from pibls.tuning.judge import Verdict, root_mean_square
from pibls.tuning.laboratory import Block, Laboratory
from pibls.tuning.posedness import Ambiguity, find_ambiguity, joint_defects
from pibls.tuning.progress import Progress
from pibls.tuning.scan import Scan, choose_scale

__all__ = ["Campaign", "Outcome", "Stage"]

_PILOT = {1: 60, 2: 120, 3: 200}
_PILOT_MANY = 300
_WIDENING = 1.2  # nodes added later get finer scales
_RETUNE = (1.5, 2.2)
_RETUNE_GAIN = 0.8
_SCAN_MARGIN = 30.0
_NEXT_COST = 6.0  # doubling the width multiplies the time of a stage by up to eight
_MEMORY_SHARE = 0.5
_PAYING = 0.5
_LEVELS = (1, 2, 4)
_SOLVES_NOTHING = 0.3
_SCAN_SHARE = 0.2
_UNRESOLVED = 0.1
_PATIENCE = 5
_PERTURBED = 0.05
_STAYS = 0.85
_UNSOLVED = 0.02
_FAILED = 10.0
_LEAST_SHARE = 0.03


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
    estimate: float
    status: str
    message: str
    stages: tuple[Stage, ...]
    seconds: float

    def finished(self) -> Solution:
        """Return the solution with its status, estimate and history."""
        diagnostics = replace(
            self.solution.diagnostics,
            message=self.message,
            stages=tuple(asdict(stage) for stage in self.stages),
            seconds={"total": self.seconds},
        )
        return replace(self.solution, status=self.status, error_estimate=self.estimate, diagnostics=diagnostics)


@dataclass(eq=False)
class Campaign:
    """One automatic solve."""

    lab: Laboratory
    tol: float
    budget: float
    report: Callable[[Progress], None]
    started: float = field(default_factory=time.perf_counter)
    stages: list[Stage] = field(default_factory=list)
    best: Solution | None = None
    estimate: float = np.inf
    worst_part: str = ""
    scale: tuple[float, ...] = ()
    nothing_solved: bool = False

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    def run(self) -> Outcome:
        """Solve, and say what came of it; an interrupt returns the best solution so far."""
        ambiguity = None
        try:
            with blas_threads(most=1):
                ambiguity = self._ambiguity()
                blocks = self._scan() if ambiguity is None else []
            if ambiguity is None:
                limit = self._grow(blocks)
            else:
                limit = "It is not determined."
                self._stage([Block(2 * self.pilot_nodes, (3.0,) * self.lab.axes)])
        except KeyboardInterrupt:
            if self.best is None:
                raise
            limit = "It was interrupted. Run it again to go on."
        if self.best is None:
            raise AssertionError("a campaign has at least one stage")
        status, message = self._verdict(limit, ambiguity)
        return Outcome(self.best, self.estimate, status, message, tuple(self.stages), self.elapsed)

    @property
    def pilot_nodes(self) -> int:
        """Width of a pilot."""
        width = _PILOT.get(self.lab.axes, _PILOT_MANY)
        return width if len(self.lab.problem.fields) == 1 else max(40, int(width / 1.6))

    def _ambiguity(self) -> Ambiguity | None:
        """Return a function that the conditions leave open, if there is one."""
        found = []
        for nodes in (self.pilot_nodes * 2 // 3, self.pilot_nodes * 4 // 3):
            network = self.lab.network([Block(nodes, (3.0,) * self.lab.axes)])
            found.append(find_ambiguity(self.lab.problem, self.lab.points(nodes), network))
        return found[1] if found[1].hides_more_than(found[0]) else None

    def _scan(self) -> list[Block]:
        """Choose the scale with pilots, and with wider ones as long as none of them solves anything."""
        for level in _LEVELS:
            nodes = level * self.pilot_nodes
            scan = self._scan_with(nodes)
            if scan.score < _SOLVES_NOTHING or self.elapsed > _SCAN_SHARE * self.budget:
                break
        self.scale = scan.scale
        self.nothing_solved = scan.score >= _SOLVES_NOTHING
        # A margin: what a pilot just meets, twice its width meets with digits to spare.
        return [Block(2 * nodes if nodes == self.pilot_nodes else nodes, scan.scale)]

    def _scan_with(self, nodes: int) -> Scan:
        points, judge = self.lab.points(nodes), self.lab.judge(nodes)

        fits: dict[tuple[float, ...], Solution] = {}

        def pilot(scale: tuple[float, ...]) -> Verdict:
            self.report(Progress("scan", self.elapsed, nodes))
            fits[scale] = self.lab.fit([Block(nodes, scale)], points)
            return judge(fits[scale])

        def accept(scale: tuple[float, ...]) -> bool:
            twin = self.lab.other()
            return self.lab.distance(fits[scale], twin.fit([Block(nodes, scale)], twin.points(nodes))) < self.tol

        enough = self.tol / _SCAN_MARGIN
        return choose_scale(pilot, self.lab.axes, enough, time_axis=self.lab.time_axis, accept=accept)

    def _grow(self, blocks: list[Block]) -> str:
        """Widen until the tolerance is met; return what stopped it otherwise."""
        while True:
            begun = self.elapsed
            blocks = self._stage(blocks)
            if self.estimate <= self.tol or (self.nothing_solved and self._contradictory()):
                return ""
            if limit := self._limit(blocks, self.elapsed - begun):
                return limit
            nodes = sum(block.nodes for block in blocks)
            blocks = [*blocks, Block(nodes, _scaled(blocks[-1].scale, _WIDENING))]

    def _stage(self, blocks: list[Block]) -> list[Block]:
        """Fit one width and its twin; keep the solution if its estimate is the best so far."""
        nodes = sum(block.nodes for block in blocks)
        points, judge = self.lab.points(nodes), self.lab.judge(nodes)
        self.report(Progress("solve", self.elapsed, nodes, *self._last()))
        solution = self.lab.fit(blocks, points)
        verdict = judge(solution)
        if len(self.stages) == 1:
            for factor in _RETUNE:
                others = [Block(nodes, _scaled(blocks[0].scale, factor))]
                candidate = self.lab.fit(others, points)
                judged = judge(candidate)
                if judged.total > _RETUNE_GAIN * verdict.total:
                    break
                solution, verdict, blocks = candidate, judged, others
        self.report(Progress("estimate", self.elapsed, nodes, *self._last()))
        other = self.lab.other()
        twin = other.fit(blocks, other.points(nodes))
        share = _share(verdict.total, judge(twin).total)
        estimate = self.lab.distance(solution, twin) * share
        if estimate < self.estimate or self.best is None:
            self.best, self.estimate = solution, estimate
        self.worst_part = verdict.worst
        rows = solution.diagnostics.rows
        self.stages.append(Stage(nodes, rows, verdict.total, estimate, self.elapsed))
        return blocks

    def _last(self) -> tuple[float | None, float | None]:
        return (self.stages[-1].residual, self.estimate) if self.stages else (None, None)

    def _limit(self, blocks: Sequence[Block], seconds: float) -> str:
        """Return what forbids or makes pointless another stage, in words."""
        stages = self.stages
        nodes = 2 * sum(block.nodes for block in blocks)
        hopeful = stages[-1].estimate > _UNRESOLVED and len(stages) < _PATIENCE
        if len(stages) >= 3 and not hopeful and min(s.estimate for s in stages[-2:]) > _PAYING * stages[-3].estimate:
            if self.estimate < 1e-12:
                return "Round-off limits it: no more digits are to be had in double precision. Ask for a larger tol."
            return (
                "The features limit it: widening the network no longer pays. The solution may have a layer, a corner "
                "or a jump that random nodes do not follow; give a method with scales by hand, or split the domain."
            )
        if self.elapsed + _NEXT_COST * seconds > self.budget:
            return (
                f"The time limits it: {nodes} nodes would take longer than the budget of {self.budget:g} s. "
                "Give a larger budget, such as budget=60."
            )
        needed = system_bytes(self.lab.problem, self.lab.points(nodes), nodes)
        if needed > _MEMORY_SHARE * available_memory():
            return f"The memory limits it: {nodes} nodes would need {needed / 2**30:.1f} GiB."
        return ""

    def _verdict(self, limit: str, ambiguity: Ambiguity | None) -> tuple[str, str]:
        if ambiguity is not None:
            return "ill-posed", self._ambiguous(ambiguity)
        if self._contradictory():
            return "ill-posed", (
                f"The equations and conditions contradict each other: {self.worst_part} keeps a relative residual of "
                f"{self.stages[-1].residual:.1g} however wide the network is, though the best compromise is found. "
                "Check signs and values, or remove a condition."
            )
        if not limit:
            return "converged", f"The estimated error {self.estimate:.1e} is within the tolerance {self.tol:g}."
        return "stalled", f"The estimated error is {self.estimate:.1e}, above the tolerance {self.tol:g}. {limit}"

    def _ambiguous(self, ambiguity: Ambiguity) -> str:
        X = self.lab.compare_points
        zero = (0,) * X.shape[1]
        values = ambiguity.network.evaluate(X, [zero])[zero] @ ambiguity.weights.T
        row, column = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
        names = (symbol.name for symbol in self.lab.problem.domain.coordinates)
        place = ", ".join(f"{name}={value:.2g}" for name, value in zip(names, X[row], strict=True))
        what = f"{self.lab.problem.field_names[column]}, largest near {place},"
        if ambiguity.is_unseen:
            return (
                f"The solution is not unique: a change of {what} leaves every equation and condition as it is (to "
                f"{ambiguity.visibility:.0e}). Add the condition that is missing: a boundary part without one, an "
                "initial value or velocity, or a gauge such as Mean(u, 0). With incompatible data there is no solution."
            )
        return (
            f"The solution is unstable: a change of {what} of size one changes the equations and conditions by only "
            f"{ambiguity.visibility:.0e}, and the finer it is the less. Data cannot determine it, as in a heat "
            "equation run backwards; give conditions at the other end."
        )

    def _contradictory(self) -> bool:
        """Tell whether the residual stays however wide the network, though each statement can be met by itself."""
        last = self.stages[-1].residual
        stays = len(self.stages) >= 3 and last > _STAYS * self.stages[-3].residual
        if last < _UNSOLVED or not (stays or self.nothing_solved) or _is_perturbed(self.lab.problem):
            return False
        nodes = 2 * self.pilot_nodes
        network = self.lab.network([Block(nodes, self.scale)])
        together, alone = joint_defects(self.lab.problem, self.lab.points(nodes), network)
        return together > _UNSOLVED and alone < 0.1 * together


def _is_perturbed(problem: Problem) -> bool:
    """Tell whether lower-order terms dominate: then an unresolved layer or wave looks like a contradiction."""
    widths = np.ptp(problem.domain.bounds, axis=1) / 2
    X = problem.domain.sample(50, "kronecker", 1)
    for statement in problem.statements:
        sizes: dict[int, float] = {}
        for term, function in zip(statement.form.terms, statement.form.coefficient_functions, strict=True):
            if statement.is_equation:
                size = root_mean_square(function(X)) / float(np.prod(widths ** np.array(term.multi_index)))
                sizes[term.order] = max(size, sizes.get(term.order, 0.0))
        if sizes and sizes[max(sizes)] < _PERTURBED * max(sizes.values()):
            return True
    return False


def _scaled(scale: tuple[float, ...], factor: float) -> tuple[float, ...]:
    return tuple(value * factor for value in scale)


def _share(own: float, other: float) -> float:
    """Return the part of the distance between twins that the first one has.

    Twins err alike, so each has the distance over √2; only where one has failed by its held-out residual, most of the
    distance is the other's.
    """
    if own > _FAILED * other:
        return 1.0
    if other > _FAILED * own:
        return max(_LEAST_SHARE, _FAILED * own / other)
    return float(np.sqrt(0.5))
