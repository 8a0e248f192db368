"""The automatic solver for nonlinear problems: a coarse solution first, then the course of a linear solve around it.

A coarse network finds a solution by damped Gauss–Newton steps, from simple starts and by continuation where that
fails. Linearised there, the problem is linear: scales are chosen and well-posedness is judged as for any linear
problem. Every wider network then takes a few steps from the best solution so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from pibls.errors import PiblsError, ProblemError
from pibls.features import BroadNetwork
from pibls.features.harmonic import HarmonicGroup, draw_special
from pibls.features.jumps import draw_jumps
from pibls.geometry import Domain, Points
from pibls.geometry.landmarks import corners
from pibls.methods import Recipe
from pibls.methods.fit import on_device
from pibls.methods.nonlinear import fit_nonlinear
from pibls.problem import Problem
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.solution.starts import checked_continuation, given_start, zero
from pibls.solvers import LeastSquares
from pibls.system import Balanced, Evaluate, check_known, linearised
from pibls.tuning.campaign import Campaign
from pibls.tuning.coarse import coarse_solution
from pibls.tuning.growth import Grown
from pibls.tuning.judge import Judge, Verdict
from pibls.tuning.jumps import eased, jump_corners
from pibls.tuning.laboratory import Block, Laboratory
from pibls.tuning.pilots import Pilots
from pibls.tuning.progress import Progress

__all__ = ["NonlinearLaboratory", "laboratory_near", "solve_nonlinear"]

_HARDLY_SOLVED, _HARDLY_SOLVED_AT_JUMPS = 1e-2, 0.1
_MUCH_BETTER = 0.3
_CORNER_SCALES = ((1.5, 1.5), (3.0, 3.0), (6.0, 6.0))
_SYSTEM_SCALES = _CORNER_SCALES[:2]  # pilots of a system are dear
_CERTIFIED, _LEAST_STEP = 2.4, 1.3  # cost of a certified width in fits; the least widening that is worth it
_HOPELESS = 1e3  # relative residual of what is no solution at all


@dataclass(eq=False)
class _Latest:
    """The widest solution so far, which the next fit starts from."""

    state: Evaluate
    nodes: int = 0


@dataclass(frozen=True, eq=False)
class _TwofoldJudge(Judge):
    """Judges by a linearised problem, but whole solutions by the nonlinear one."""

    whole: Judge

    def __call__(self, solution: Solution) -> Verdict:
        try:
            return self.whole(solution)
        except ProblemError:
            # The equation has no value there: nothing is further from a solution.
            return Verdict(dict.fromkeys((name for name, _ in self.judged), _HOPELESS))


@dataclass(frozen=True, eq=False, kw_only=True)
class NonlinearLaboratory(Laboratory):
    """Fits of a nonlinear problem; ``problem`` is its linearisation at a coarse solution.

    Attributes
    ----------
    whole
        The nonlinear problem.
    latest
        Where fits start from.
    """

    whole: Problem
    latest: _Latest

    def fit_network(
        self, network: BroadNetwork, points: Points, settings: Mapping[str, Any] = MappingProxyType({})
    ) -> Solution:
        """Fit a network at points, by Gauss–Newton steps from the widest solution so far."""
        recipe = Recipe("PIBLS", settings, self.seed, Balanced(), 0.0, LeastSquares())
        placed = on_device(network, self.device)
        solution = fit_nonlinear(self.whole, points, placed, recipe, self.latest.state, near=True)
        if solution.network.size >= self.latest.nodes:
            self.latest.state, self.latest.nodes = solution.evaluate, solution.network.size
        return solution

    def grown(self, blocks: Sequence[Block], points: Points) -> Grown | None:
        """Return None: a factorisation to append to belongs to one linear system."""
        del blocks, points
        return None

    def judge(self, nodes: int) -> Judge:
        """Return a judge of solutions by the nonlinear problem, and of pilots by the linear one they are fitted to."""
        judge = super().judge(nodes)
        return _TwofoldJudge(judge.problem, judge.points, Judge(self.whole, judge.points))


@dataclass(eq=False)
class _SteadyCampaign(Campaign):
    """A campaign that widens as far as the time left allows."""

    def _next_width(self, candidate: Any) -> int:
        wanted, left = super()._next_width(candidate), max(0.0, self.budget - self.spent)
        affordable = candidate.nodes * (left / (_CERTIFIED * candidate.seconds)) ** (1 / 3)
        return min(wanted, max(int(affordable), int(_LEAST_STEP * candidate.nodes)))


def laboratory_near(solution: Solution, seed: int, device: Any = None) -> Laboratory:
    """Return a laboratory for the problem of a solution, whose fits start from it where that matters."""
    if solution.problem.is_linear:
        return Laboratory(solution.problem, seed, device=device)
    lab = _laboratory(solution.problem, seed)
    return _nonlinear_near(replace(solution, problem=lab.problem), lab, device)


def _laboratory(problem: Problem, seed: int) -> Laboratory:
    """Return a laboratory that knows where given values jump."""
    jumps = jump_corners(problem)
    nodes = draw_jumps(cast(Domain, problem.domain), jumps)
    return Laboratory(eased(problem, jumps), seed, jumps=jumps, corner_nodes=nodes)


def _nonlinear_near(solution: Solution, lab: Laboratory, device: Any) -> NonlinearLaboratory:
    whole, state = solution.problem, solution.evaluate
    return NonlinearLaboratory(
        linearised(whole, state),
        lab.seed,
        device=device,
        jumps=lab.jumps,
        corner_nodes=lab.corner_nodes,
        whole=whole,
        latest=_Latest(state),
    )


def solve_nonlinear(
    problem: Problem,
    tol: float,
    budget: float,
    seed: int,
    report: Callable[[Progress], None],
    *,
    device: Any = None,
    start: object = None,
    continuation: Sequence[Problem] = (),
) -> Solution:
    """Solve a nonlinear problem to a tolerance; see :func:`pibls.solve`.

    Examples
    --------
    >>> from pibls.problems import cubic_reaction
    >>> solution = solve_nonlinear(cubic_reaction(), 1e-8, 10.0, 0, lambda _: None)
    >>> solution.status, solution.true_error() < 1e-8
    ('converged', True)
    """
    check_known(problem)
    lab = _laboratory(problem, seed)
    if len(problem.fields) > 1:
        lab = _with_singular_corners(lab)
    begun = Campaign(lab, tol, budget, report)
    state = None if start is None else given_start(start, problem)
    for easier in checked_continuation(continuation, problem):
        state = coarse_solution(eased(easier, lab.jumps), begun, state).solution.evaluate
    coarse = coarse_solution(lab.problem, begun, state)
    if coarse.failure:
        return _failed(replace(coarse.solution, problem=problem), coarse.failure, begun)
    near = _nonlinear_near(coarse.solution, lab, device)
    near = replace(near, corner_nodes=_corner_nodes(near))
    # Pilots of a system are dear; those of one field can all be tried.
    scales = coarse.scales if len(problem.fields) > 1 else ()
    campaign = _SteadyCampaign(
        near, tol, budget, report, started=begun.started, started_work=begun.started_work, known=scales
    )
    hardly = _HARDLY_SOLVED_AT_JUMPS if lab.jumps else _HARDLY_SOLVED
    return replace(_remarked(campaign.run().finished(), coarse.remark, hardly), problem=problem)


def _corner_nodes(lab: NonlinearLaboratory) -> tuple[HarmonicGroup, ...]:
    """Return nodes for the corners of a plane domain: terms such as r² log r are weak, but limit the accuracy."""
    domain = cast(Domain, lab.whole.domain)
    single = len(lab.whole.fields) == 1 and lab.axes == 2 and domain.time is None
    if not single or lab.jumps or not corners(domain, 0.0):
        return lab.corner_nodes
    nodes = draw_special(domain)
    return nodes if _much_better(replace(lab, corner_nodes=nodes), lab) else ()


def _with_singular_corners(lab: Laboratory) -> Laboratory:
    """Return a laboratory of a system that treats all corners as if values jumped there, if that does much better.

    A flow is not smooth at the corner of a wall and of one that stretches, though its velocity is continuous.
    """
    domain = cast(Domain, lab.problem.domain)
    if lab.axes != 2 or domain.time is not None or lab.jumps or not (ends := corners(domain, 0.0)):
        return lab
    special = replace(lab, problem=eased(lab.problem, ends), jumps=ends, corner_nodes=draw_jumps(domain, ends))
    try:
        at_zero = replace(special, problem=linearised(special.problem, zero))
        return special if _much_better(at_zero, replace(at_zero, corner_nodes=())) else lab
    except PiblsError:
        # The equations have no value at zero.
        return lab


def _much_better(one: Laboratory, two: Laboratory) -> bool:
    """Tell whether pilots of one laboratory leave much smaller residuals than those of the other."""
    nodes = one.pilot_nodes
    with blas_threads(most=1):
        scales = _CORNER_SCALES if len(one.problem.fields) == 1 else _SYSTEM_SCALES
        first, second = (min(map(Pilots(lab, nodes).score, scales)) for lab in (one, two))
    return first < _MUCH_BETTER * second


def _remarked(solution: Solution, remark: str, hardly: float) -> Solution:
    """Add what is known of other solutions; take back the estimate where no width solved the equations."""
    left = min(stage["residual"] for stage in solution.diagnostics.stages)
    estimate = solution.error_estimate
    if left > hardly and solution.status == "stalled" and estimate is not None:
        # Two networks that are no solutions may be alike.
        estimate = max(1.0, estimate)
        remark = (
            f"The equations keep a relative residual of {left:.1g}: a layer is not resolved, or there is no solution "
            f"on the whole domain, as when it blows up or a branch turns back. {remark}"
        ).rstrip()
    message = f"{solution.diagnostics.message} {remark}".rstrip()
    diagnostics = replace(solution.diagnostics, message=message)
    return replace(solution, error_estimate=estimate, diagnostics=diagnostics)


def _failed(found: Solution, failure: str, begun: Campaign) -> Solution:
    diagnostics = replace(found.diagnostics, message=failure, seconds={"total": begun.elapsed})
    return replace(found, status="ill-posed", error_estimate=np.inf, diagnostics=diagnostics)
