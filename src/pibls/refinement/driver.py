"""The loop of every refinement: solve, compare with a better solution, and go on until both agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pibls.budget import Budget
from pibls.limits import STOPS, in_words
from pibls.refinement.stopping import Cost, Patience, Reason, Stop
from pibls.solution import Stage


class Estimated(Protocol):
    """An approximation beside a better one."""

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
        """Tell whether the estimate is within the tolerance, and to be believed."""

    def limit(self, found: Found, /) -> Stop | None:
        """Return why nothing finer would help, if the discretisation knows that."""

    def cost(self, found: Found, /) -> Cost:
        """Return the cost of the next comparison."""

    def finer(self, found: Found, /) -> Approximation | None:
        """Return the approximation to go on from, or None if there is none."""


@dataclass(eq=False)
class Course(Generic[Found]):
    """A refinement as far as it has come."""

    budget: Budget  # what may be spent
    patience: Patience | None  # when stages that bring nothing end it
    report: Callable[..., Any]  # called with what is being done, seconds, a size, a residual and an estimated error
    # stages, every: records and comparisons so far
    stages: list[Stage] = field(default_factory=list)
    every: list[Found] = field(default_factory=list)

    @property
    def best(self) -> Found:
        """The comparison with the least estimate."""
        return min(self.every, key=lambda found: found.estimate)

    def tell(self, doing: str, size: int) -> None:
        """Report an action, with the last residual and estimate."""
        last = self.stages[-1] if self.stages else Stage(0.0)
        self.report(doing, self.budget.elapsed, size, last.residual, last.estimate)

    def note(self, stage: Stage) -> None:
        """Record a stage, and report it."""
        self.stages.append(stage)
        self.tell("solve", stage.nodes or 0)

    def limit(self, method: Discretisation[Any, Found], found: Found) -> Stop | None:
        """Return why not to go on, or None."""
        return (
            method.limit(found)
            or (self.patience and self.patience.limit(self.stages))
            or method.cost(found).limit(self.budget, self.stages)
        )


def refine(method: Discretisation[Approximation, Found], here: Approximation, course: Course[Found]) -> Stop:
    """Refine until the tolerance is met or something forbids to go on; return which.

    Ctrl-C, a limit, and memory that runs out end it with what there is, if there is a comparison.
    """
    try:
        while True:
            found = method.compare(here)
            course.every.append(found)
            course.note(method.stage(found))
            if method.is_met(found):
                return Stop(Reason.TOLERANCE)
            if (stop := course.limit(method, found)) is not None:
                return stop
            if (better := method.finer(found)) is None:
                return Stop(Reason.EXHAUSTED, "nothing finer can be solved")
            here = better
    except STOPS as stopped:
        if not course.every:
            raise
        return Stop(Reason.INTERRUPTED, in_words(stopped))


def extrapolated(apart: float, *falls: float) -> float:
    """Return the error of an approximation that is some way apart from a better one.

    The better one has an error, too: the smallest of the given ratios of it to that of the first one. If every further
    refinement leaves the same share, the distances make a geometric series.

    >>> extrapolated(0.5, 0.5), extrapolated(0.5, 0.9, 0.0)
    (1.0, 0.5)
    """
    return apart / (1.0 - min(falls))
