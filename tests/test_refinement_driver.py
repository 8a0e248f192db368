"""The driver decides when a refinement ends: on discretisations that are nothing but lists of errors."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest

from pibls import Status
from pibls.budget import Budget
from pibls.refinement import Cost, Course, Patience, Reason, Stop, extrapolated, refine, verdict
from pibls.solution import Stage

PATIENT = Patience("It no longer pays.", window=3, pays=0.5, rounding=1e-12)


@dataclass(frozen=True)
class Found:
    level: int
    estimate: float


@dataclass
class Listed:
    """Approximations are levels, whose estimated errors are listed; a level costs so many operations."""

    estimates: list[float]
    tol: float = 1e-6
    costs: float = 0.0
    memory: float = 0.0
    residuals: list[float] = field(default_factory=list)
    doubtful: set[int] = field(default_factory=set)
    ends_at: int = 10**9
    lost_at: int = 10**9
    interrupted_at: int = 10**9
    compared: list[int] = field(default_factory=list)
    budget: Budget = field(default_factory=lambda: Budget(10.0))

    def compare(self, here: int) -> Found:
        if here == self.interrupted_at:
            raise KeyboardInterrupt
        self.compared.append(here)
        self.budget.spend(self.costs)
        return Found(here, self.estimates[here])

    def stage(self, found: Found) -> Stage:
        residual = self.residuals[found.level] if self.residuals else None
        return Stage(0.0, nodes=found.level, residual=residual, estimate=found.estimate)

    def is_met(self, found: Found) -> bool:
        return found.estimate <= self.tol and found.level not in self.doubtful

    def limit(self, found: Found) -> Stop | None:
        return Stop(Reason.EXHAUSTED, "there is nothing finer") if found.level == self.ends_at else None

    def cost(self, found: Found) -> Cost:
        return Cost(f"level {found.level + 1}", self.costs, self.memory)

    def finer(self, found: Found) -> int | None:
        return None if found.level == self.lost_at else found.level + 1


def course_of(listed: Listed, patience: Patience = PATIENT) -> tuple[Stop, Course[Found]]:
    course: Course[Found] = Course(listed.budget, patience, lambda *_: None)
    return refine(listed, 0, course), course


def test_it_ends_with_the_first_estimate_within_the_tolerance():
    listed = Listed([1e-2, 1e-4, 1e-6, 1e-8])
    stop, course = course_of(listed)
    assert stop.reason is Reason.TOLERANCE
    assert listed.compared == [0, 1, 2]
    assert [stage.estimate for stage in course.stages] == [1e-2, 1e-4, 1e-6]
    assert course.best.level == 2


def test_an_estimate_in_doubt_is_not_believed():
    listed = Listed([1e-9, 1e-9, 1e-9], doubtful={0, 1})
    assert course_of(listed)[0].reason is Reason.TOLERANCE
    assert listed.compared == [0, 1, 2]


def test_nothing_is_begun_that_the_budget_does_not_hold():
    listed = Listed([10.0**-k for k in range(20)], costs=3e10, tol=0.0)
    stop, course = course_of(listed)
    assert stop.reason is Reason.BUDGET
    assert len(listed.compared) == 3  # nine of ten nominal seconds
    assert "level 3 would take more than 10 nominal seconds" in str(stop)
    assert "budget=100" in str(stop)
    assert len(course.stages) == 3


def test_a_budget_that_would_not_help_is_not_advised():
    listed = Listed([1e-3, 1e-4, 0.99e-4], costs=3e10)
    assert "unlikely to help" in str(course_of(listed)[0])


def test_nothing_is_begun_that_memory_does_not_hold(monkeypatch):
    monkeypatch.setattr("pibls.refinement.stopping.available_memory", lambda: 2.0**30)
    stop, _ = course_of(Listed([1e-2, 1e-3], memory=2.0**31))
    assert (stop.reason, str(stop)) == (
        Reason.MEMORY,
        "The memory limits the accuracy: level 1 would need 2 GiB. Ask for a larger tol, or give more memory.",
    )
    assert Cost("half", 0.0, 2.0**30, share=0.4).limit(Budget(1.0), []).reason is Reason.MEMORY
    assert Cost("all", 0.0, 2.0**30).limit(Budget(1.0), []) is None


def test_a_deadline_ends_it_between_stages():
    listed = Listed([1e-2, 1e-3], budget=Budget(10.0, deadline=0.0))
    stop, course = course_of(listed)
    assert stop.reason is Reason.DEADLINE
    assert "0 s have passed" in str(stop)
    assert len(course.comparisons) == 1


@pytest.mark.parametrize(
    ("estimates", "reason"),
    [
        ([1e-3, 0.9e-3, 0.8e-3, 0.7e-3], Reason.STAGNATION),
        ([1e-3, 0.9e-3, 0.8e-3, 0.4e-3, 1e-7], Reason.TOLERANCE),
        ([1e-13, 1e-13, 1e-13, 1e-13], Reason.ROUNDING),
    ],
)
def test_stages_that_bring_nothing_end_it(estimates, reason):
    tol = 1e-6 if reason is not Reason.ROUNDING else 0.0
    assert course_of(Listed(estimates, tol=tol))[0].reason is reason


def test_a_lucky_agreement_does_not_hide_that_nothing_falls():
    lucky = [1e-2, 1e-2, 1e-2, 1e-2, 1e-2, 1e-4, 1e-2, 1e-2]
    stages = [Stage(0.0, estimate=e) for e in lucky]
    means = Patience("Means.", window=4, pays=0.2, means=True)
    assert PATIENT.limit(stages[:7]) is None
    assert means.limit(stages) is not None
    # Where nothing is resolved yet, twice as many stages are waited for.
    assert means.limit([Stage(0.0, estimate=1e-2)] * 8) is None
    assert means.limit([Stage(0.0, estimate=1e-2)] * 9) is not None
    assert means.limit([Stage(0.0, estimate=1e-4)] * 5) is not None


def test_a_solution_that_is_still_being_found_is_waited_for():
    patience = Patience("Flat.", window=2, pays=0.5, falls=0.2)
    flat = [1e-3] * 4
    falling = [Stage(0.0, estimate=e, residual=10.0**-k) for k, e in enumerate(flat)]
    assert patience.limit(falling) is None
    assert patience.limit([Stage(0.0, estimate=e, residual=1.0) for e in flat]) is not None
    rough = Patience("Rough.", window=2, pays=0.5, unresolved=0.1, least=5)
    assert rough.limit([Stage(0.0, estimate=1.0)] * 4) is None
    assert rough.limit([Stage(0.0, estimate=1.0)] * 5) is not None


def test_a_discretisation_that_knows_its_end_is_asked_first():
    stop, _ = course_of(Listed([1e-2, 1e-2], ends_at=1, costs=4e10))
    assert (stop.reason, str(stop)) == (Reason.EXHAUSTED, "Refinement would not help: there is nothing finer.")


def test_it_ends_where_nothing_finer_can_be_solved():
    stop, course = course_of(Listed([1e-2, 1e-3, 1e-9], lost_at=1))
    assert stop.reason is Reason.EXHAUSTED
    assert course.best.level == 1


def test_an_interrupt_keeps_what_there_is():
    stop, course = course_of(Listed([1e-2, 1e-4, 1e-3], interrupted_at=3))
    assert stop.reason is Reason.INTERRUPTED
    assert course.best.estimate == 1e-4
    with pytest.raises(KeyboardInterrupt):
        course_of(Listed([1e-2], interrupted_at=0))


def test_estimates_are_those_of_a_geometric_series():
    errors = [0.3**k for k in range(8)]
    distances = [a - b for a, b in itertools.pairwise(errors)]
    for error, apart, before in zip(errors[1:], distances[1:], distances, strict=False):
        assert extrapolated(apart, apart / before, 0.8) == pytest.approx(error)


@pytest.mark.parametrize("reason", list(Reason))
def test_only_a_tolerance_that_is_met_converges(reason):
    stop = Stop(reason, "This ends it.", "Do that.")
    status, message = verdict(1e-6, 1e-7, stop, "A remark.")
    assert (status == Status.CONVERGED) == (reason is Reason.TOLERANCE)
    assert message.endswith(" A remark.")
    assert "{" not in message
    assert "not known" in verdict(1e-6, np.inf, Stop(Reason.INTERRUPTED, "It ended."))[1]
