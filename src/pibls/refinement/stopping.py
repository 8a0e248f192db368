"""Why a refinement ends: a reason with its sentence and remedy, and the verdict on the solve."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from pibls.budget import Budget
from pibls.refinement.standards import FALLS, NEGLIGIBLE
from pibls.runtime import available_memory, format_bytes
from pibls.solution import Stage
from pibls.status import Status

VISIBLE = 0.03  # share of a solution that is visible on a plot: an error below this is plausible
SMALLEST = 1e-10  # estimates below this are limited by round-off: refinement no longer pays
GLANCE = 0.3  # nominal seconds for problems without a solution, and for the test whether there is one


class Reason(Enum):
    """Why a refinement ends: a name, and a sentence whose braces the discretisation fills in."""

    TOLERANCE = "tolerance", ""
    BUDGET = "budget", "The budget limits the accuracy: {0}. {1}"
    MEMORY = "memory", "The memory limits the accuracy: {0} would need {1}. Ask for a larger tol, or give more memory."
    DEADLINE = "deadline", "{0}"
    ROUNDING = "rounding", "Round-off limits the accuracy: double precision has no more digits. Ask for a larger tol."
    STAGNATION = "stagnation", "Refinement no longer pays: {0}."
    EXHAUSTED = "exhausted", "Refinement would not help: {0}."
    LOST = "lost", "{0}"
    INTERRUPTED = "interrupt", "{0}"

    @property
    def sentence(self) -> str:
        """The sentence, with braces for the facts."""
        return self.value[1]

    @property
    def is_outer(self) -> bool:
        """Whether the reason is external (memory, deadline, interrupt) and so says nothing about the problem.

        >>> Reason.MEMORY.is_outer, Reason.STAGNATION.is_outer
        (True, False)
        """
        return self in (Reason.MEMORY, Reason.DEADLINE, Reason.INTERRUPTED)


@dataclass(frozen=True)
class Stop:
    """A reason with its facts.

    >>> print(Stop(Reason.MEMORY, "a finer tree", "3 GiB"))
    The memory limits the accuracy: a finer tree would need 3 GiB. Ask for a larger tol, or give more memory.
    """

    reason: Reason
    fact: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        return self.reason.sentence.format(self.fact, self.remedy)


@dataclass(frozen=True)
class Cost:
    """The estimated cost of the next stage."""

    words: str  # the next stage, for messages: "a finer tree of cells"
    operations: float  # operations that the budget has not counted yet
    # memory, share: bytes needed, and the share of the available memory that they may take
    memory: float = 0.0
    share: float = 1.0

    def limit(self, budget: Budget, stages: Sequence[Stage]) -> Stop | None:
        """Return the limit that the next stage would exceed, or None."""
        if self.memory > self.share * available_memory():
            return Stop(Reason.MEMORY, self.words, format_bytes(self.memory))
        if not budget.affords(self.operations):
            too_much = f"{self.words} would take more than {budget.nominal:g} nominal seconds"
            return Stop(Reason.BUDGET, too_much, more_budget(budget.nominal, stages))
        return Stop(Reason.DEADLINE, budget.late) if budget.late else None


@dataclass(frozen=True)
class Patience:
    """The rule that ends a refinement whose estimates no longer fall."""

    words: str  # likely cause, for the message
    window: int  # number of latest estimates that are compared with the earlier ones
    pays: float  # factor to which the latest estimates must have fallen
    rounding: float = 0.0  # estimates below this are limited by round-off
    # unresolved, least: while the last estimate exceeds ``unresolved``, at least ``least`` stages are made
    unresolved: float = np.inf
    least: int = 0
    # means, resolved: compare the geometric means of two windows instead of the best of one window with the estimate
    # before it, because a single stage may agree with the next by chance. While every estimate exceeds resolved, the
    # window is doubled
    means: bool = False
    resolved: float = 1e-3
    falls: float = 0.0  # residuals that fell by this factor over three stages show that the solution is still forming

    def limit(self, stages: Sequence[Stage]) -> Stop | None:
        """Return the reason to stop if the estimates stagnate, or None.

        >>> patience = Patience("the solution may have a jump", 2, 0.5, rounding=1e-12)
        >>> print(patience.limit([Stage(0.0, estimate=e) for e in (1e-3, 9e-4, 8e-4)]))
        Refinement no longer pays: the solution may have a jump.
        >>> patience.limit([Stage(0.0, estimate=e) for e in (1e-3, 9e-4, 1e-4)])
        """
        estimates = [max(s.estimate, sys.float_info.epsilon) for s in stages if s.estimate is not None]
        if not self._stagnates(estimates):
            return None
        if min(estimates) < self.rounding:
            return Stop(Reason.ROUNDING)
        residuals = [s.residual or 0.0 for s in stages]
        falling = len(residuals) > 3 and residuals[-1] < self.falls * residuals[-4]
        early = estimates[-1] > self.unresolved and len(estimates) < self.least
        return None if early or falling else Stop(Reason.STAGNATION, self.words)

    def _stagnates(self, estimates: list[float]) -> bool:
        if not self.means:
            recent, earlier = estimates[-self.window :], estimates[: -self.window]
            return bool(earlier) and min(recent) > self.pays * earlier[-1]
        window = self.window if min(estimates, default=1.0) < self.resolved else 2 * self.window
        recent, earlier = estimates[-window:], estimates[-2 * window : -window]
        return bool(earlier) and float(np.mean(np.log(recent)) - np.mean(np.log(earlier))) > float(np.log(self.pays))


def verdict(tol: float, estimate: float, stop: Stop | None, *remarks: str, flaw: str = "") -> tuple[Status, str]:
    """Return the status and the message of a solve, from its estimate, its reason to stop and a flaw of the problem.

    >>> verdict(1e-6, 2e-7, Stop(Reason.TOLERANCE))
    ('converged', 'The estimated error 2.0e-07 is within the tolerance 1e-06.')
    >>> verdict(1e-6, 2e-5, Stop(Reason.INTERRUPTED, "It was interrupted."))[1]
    'The estimated error is 2.0e-05, above the tolerance 1e-06. It was interrupted.'
    """
    words = [remark for remark in remarks if remark]
    if flaw:
        return Status.ILL_POSED, flaw
    if stop is None or stop.reason is Reason.TOLERANCE:
        message = f"The estimated error {estimate:.1e} is within the tolerance {tol:g}"
        return Status.CONVERGED, " ".join([f"{message}.", *words])
    place = f"is {estimate:.1e}, {'above' if estimate > tol else 'within'} the tolerance {tol:g}"
    known = place if np.isfinite(estimate) else "is not known"
    return Status.STALLED, " ".join(filter(None, [f"The estimated error {known}.", str(stop), *words]))


def more_budget(given: float, stages: Sequence[Stage]) -> str:
    """Return the remedy for an exhausted budget: a larger one, unless the estimate has stopped falling.

    >>> falling = [Stage(0.1, estimate=1e-2), Stage(0.2, estimate=1e-3)]
    >>> more_budget(10.0, falling)
    'Give a larger budget, such as budget=100.'
    >>> more_budget(10.0, falling[::-1])
    'The estimate no longer falls, so a larger budget is unlikely to help.'
    """
    known = [stage.estimate for stage in stages if stage.estimate is not None]
    # Estimates above 0.1, where no digit is known, say nothing about the rate.
    if len(known) > 1 and FALLS * min(known[:-1]) < known[-1] < NEGLIGIBLE:
        return "The estimate no longer falls, so a larger budget is unlikely to help."
    return f"Give a larger budget, such as budget={given / NEGLIGIBLE:g}."
