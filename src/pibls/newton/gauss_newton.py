"""A damped Gauss–Newton iteration over anything that can be linearised, and the rule by which steps are shortened.

Each step solves the problem linearised at a state. The linear model promises how much the square sum of residuals
falls; a step is taken as far as it keeps a share of that promise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol, TypeVar

State = TypeVar("State")
Model = TypeVar("Model")

LENGTHS = tuple(0.4**power for power in range(5))  # backtracking by 0.4: five trials reach 1/40 of a step
_SUFFICIENT = 1e-2  # share of the promised decrease that a step must bring (Armijo's rule)
_PATIENCE, _CRAWLING = 6, 0.9  # six steps that gain less than a tenth: no solution is near


class End(Enum):
    """How an iteration ended, in words."""

    SETTLED = "The Gauss–Newton iteration converged."
    STAGNATED = (
        "The Gauss–Newton iteration found no better point. Use more nodes, or start closer to a solution with "
        "pibls.solve(start=)."
    )
    UNFINISHED = "The Gauss–Newton iteration ran out of steps. Start closer to a solution with pibls.solve(start=)."


class Iteration(Protocol[State, Model]):
    """A least-squares problem and its rule for steps."""

    def linearise(self, here: State, /) -> Model:
        """Return the problem linearised at a state, with its solution."""

    def settled(self, here: State, model: Model, /) -> State | None:
        """Return the last state if further steps change nothing, else None."""

    def step(self, here: State, model: Model, /) -> State | None:
        """Return a better state, as far along the step as the search rule allows, or None."""

    def judged(self, before: State, model: Model, here: State | None, /) -> End | None:
        """Return how the iteration ends after a step, or after finding none; None to go on."""


def descend(target: Iteration[State, Model], here: State, most: int) -> tuple[State, End]:
    """Take at most so many steps from a state; return the last state and how the iteration ended.

    >>> class Root:
    ...     linearise = staticmethod(lambda x: x - (x**2 - 2) / (2 * x))
    ...     settled = staticmethod(lambda x, goal: goal if abs(goal - x) < 1e-12 else None)
    ...     step = staticmethod(lambda x, goal: goal)
    ...     judged = staticmethod(lambda before, goal, x: None)
    >>> x, end = descend(Root(), 1.0, most=10)
    >>> round(x, 12), end.name, descend(Root(), 1.0, most=2)[1].name
    (1.414213562373, 'SETTLED', 'UNFINISHED')
    """
    for _ in range(most):
        model = target.linearise(here)
        if (last := target.settled(here, model)) is not None:
            return last, End.SETTLED
        there = target.step(here, model)
        end = target.judged(here, model, there)
        here = here if there is None else there
        if there is None or end is not None:
            return here, end or End.STAGNATED
    return here, End.UNFINISHED


def falls(before: float, after: float, promised: float) -> bool:
    """Tell whether the square of a residual falls by a share of the decrease that a linear model promises."""
    return after < before and before**2 - after**2 >= _SUFFICIENT * promised


def shortened(
    norm: float, removable: float, trial: Callable[[float], tuple[float, State]]
) -> tuple[float, State] | None:
    """Return the longest part of a step with which the residual falls as promised, and the trial there.

    ``removable`` is the part of the residual that the whole step removes in the linear model; ``trial`` returns the
    norm of the residual after a part of the step, and the state.

    >>> shortened(1.0, 1.0, lambda length: (abs(1.0 - 4.0 * length), "there"))
    (0.4, 'there')
    >>> shortened(1.0, 1.0, lambda length: (1.0 + length, "there"))
    """
    for length in LENGTHS:
        there, state = trial(length)
        if falls(norm, there, (1.0 - (1.0 - length) ** 2) * removable**2):
            return length, state
    return None


def crawls(course: Sequence[tuple[float, ...]]) -> bool:
    """Tell whether none of some measures of progress, such as residuals, fell noticeably over the last steps.

    >>> crawls([(1.0,)] * 6), crawls([(1.0,)] * 5), crawls([(0.5**k,) for k in range(9)])
    (True, False, False)
    """
    recent = course[-_PATIENCE:]
    return len(recent) == _PATIENCE and all(
        now > _CRAWLING * then for now, then in zip(recent[-1], recent[0], strict=True)
    )


def record(residual: float, removable: float, length: float, damping: float = 0.0) -> dict[str, float]:
    """Return the record of a step: residual after it, the part it could have removed, its length and damping."""
    return {"residual": residual, "removable": removable, "length": length, "damping": damping}
