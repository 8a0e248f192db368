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
Found = TypeVar("Found", bound=Estimated)


class Discretisation(Protocol[Approximation, Found]):
    """A way to solve a problem more and more accurately."""

    def compare(self, here: Approximation, /) -> Found:
        """Solve for a better approximation; return both, with the estimated error of the first."""

    def stage(self, found: Found, /) -> Stage:
        """Return the record of a comparison."""

    def is_met(self, found: Found, /) -> bool:
        """Return whether the estimate is within the tolerance and nothing casts doubt on it."""

    def limit(self, found: Found, /) -> Stop | None:
        """Return the reason why refinement cannot help, or None if the discretisation knows of none."""

    def cost(self, found: Found, /) -> Cost:
        """Return the cost of the next comparison."""

    def finer(self, found: Found, /) -> Approximation | None:
        """Return the next, finer approximation, or None if there is none."""


@dataclass(eq=False)
class Course(Generic[Found]):
    """The state of a refinement: its budget, its patience, and all stages and comparisons so far."""

    budget: Budget  # work and time that the refinement may spend
    patience: Patience | None  # rule that ends a refinement whose estimate no longer falls; None disables it
    report: Callable[..., Any]  # called with an action, seconds, a size, a residual and an estimate
    # stages, comparisons: one record and one comparison per stage
    stages: list[Stage] = field(default_factory=list)
    comparisons: list[Found] = field(default_factory=list)

    @property
    def best(self) -> Found:
        """The comparison with the smallest estimate."""
        return min(self.comparisons, key=lambda found: found.estimate)

    def tell(self, doing: str, size: int) -> None:
        """Report an action together with the latest residual and estimate."""
        last = self.stages[-1] if self.stages else Stage(0.0)
        self.report(doing, self.budget.elapsed, size, last.residual, last.estimate)

    def note(self, stage: Stage) -> None:
        """Record a stage, and report it."""
        self.stages.append(stage)
        self.tell("solve", stage.nodes or 0)

    def limit(self, method: Discretisation[Any, Found], found: Found) -> Stop | None:
        """Return the first reason to stop: of the discretisation, of stagnation, or of cost; None to refine again."""
        return (
            method.limit(found)
            or (self.patience and self.patience.limit(self.stages))
            or method.cost(found).limit(self.budget, self.stages)
        )


def refine(method: Discretisation[Approximation, Found], here: Approximation, course: Course[Found]) -> Stop:
    """Refine until the tolerance is met or a limit is reached; return the reason.

    Ctrl-C, a deadline or a memory limit ends the loop early; it raises only if no comparison was finished.
    """
    try:
        while True:
            found = method.compare(here)
            course.comparisons.append(found)
            course.note(method.stage(found))
            if method.is_met(found):
                return Stop(Reason.TOLERANCE)
            if (stop := course.limit(method, found)) is not None:
                return stop
            if (better := method.finer(found)) is None:
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
