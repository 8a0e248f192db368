"""The loop of every refinement: solve, compare with a better solution, and refine until both agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pibls.budget import Budget
from pibls.limits import STOPS, in_words
from pibls.refinement.stopping import Cost, Patience, Reason, Stop
from pibls.solution import Stage


class Estimated(Protocol):
    """An approximation together with a better one."""

    @property
    def estimate(self) -> float:
        """Estimated error of the approximation."""


Approximation = TypeVar("Approximation")
Compared = TypeVar("Compared", bound=Estimated)


class Discretisation(Protocol[Approximation, Compared]):
    """A way to solve a problem more and more accurately."""

    def compare(self, here: Approximation, /) -> Compared:
        """Solve for a better approximation; return both, with the estimated error of the first."""

    def stage(self, comparison: Compared, /) -> Stage:
        """Return the record of a comparison."""

    def is_met(self, comparison: Compared, /) -> bool:
        """Return whether the estimate is within the tolerance and nothing casts doubt on it."""

    def limit(self, comparison: Compared, /) -> Stop | None:
        """Return the reason why refinement cannot help, or None if the discretisation knows of none."""

    def cost(self, comparison: Compared, /) -> Cost:
        """Return the cost of the next comparison."""

    def finer(self, comparison: Compared, /) -> Approximation | None:
        """Return the next, finer approximation, or None if there is none."""


@dataclass(eq=False)
class Course(Generic[Compared]):
    """The state of a refinement: its budget, its patience, and all stages and comparisons so far."""

    budget: Budget  # work and time that the refinement may spend
    patience: Patience | None  # rule that ends a refinement whose estimate no longer falls; None disables it
    report: Callable[..., Any]  # called with an action, seconds, a size, a residual and an estimate
    # stages, comparisons: one record and one comparison per stage
    stages: list[Stage] = field(default_factory=list)
    comparisons: list[Compared] = field(default_factory=list)

    @property
    def best(self) -> Compared:
        """The comparison with the smallest estimate."""
        return min(self.comparisons, key=lambda comparison: comparison.estimate)

    def tell(self, doing: str, size: int) -> None:
        """Report an action together with the latest residual and estimate."""
        last = self.stages[-1] if self.stages else Stage(0.0)
        self.report(doing, self.budget.elapsed, size, last.residual, last.estimate)

    def note(self, stage: Stage) -> None:
        """Record a stage, and report it."""
        self.stages.append(stage)
        self.tell("solve", stage.nodes or 0)

    def limit(self, method: Discretisation[Any, Compared], comparison: Compared) -> Stop | None:
        """Return the first reason to stop: of the discretisation, of stagnation, or of cost; None to refine again."""
        return (
            method.limit(comparison)
            or (self.patience and self.patience.limit(self.stages))
            or method.cost(comparison).limit(self.budget, self.stages)
        )


def refine(method: Discretisation[Approximation, Compared], here: Approximation, course: Course[Compared]) -> Stop:
    """Refine until the tolerance is met or a limit is reached; return the reason.

    Ctrl-C, a deadline or a memory limit ends the loop early; it raises only if no comparison was finished.
    """
    try:
        while True:
            comparison = method.compare(here)
            course.comparisons.append(comparison)
            course.note(method.stage(comparison))
            if method.is_met(comparison):
                return Stop(Reason.TOLERANCE)
            if (stop := course.limit(method, comparison)) is not None:
                return stop
            if (better := method.finer(comparison)) is None:
                return Stop(Reason.EXHAUSTED, "nothing finer can be solved. Ask for a larger tol")
            here = better
    except STOPS as stopped:
        if not course.comparisons:
            raise
        return Stop(Reason.INTERRUPTED, in_words(stopped))


def extrapolated(apart: float, *falls: float) -> float:
    """Return the error of an approximation, from its distance to a better one.

    Each further refinement is assumed to leave the same share of the error, the smallest of ``falls``: the distances
    are then a geometric series with that ratio.

    >>> extrapolated(0.5, 0.5), extrapolated(0.5, 0.9, 0.0)
    (1.0, 0.5)
    """
    return apart / (1.0 - min(falls))
