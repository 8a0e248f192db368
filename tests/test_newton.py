"""The Gauss–Newton iteration on functions of one number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest

from pibls.newton import End, crawls, descend, falls, shortened


@dataclass
class Scalar:
    """Minimises f(x)², by tangents."""

    f: object
    slope: object
    tiny: float = 1e-12
    lengths: list = field(default_factory=list)
    course: list = field(default_factory=list)

    def linearise(self, x):
        return x - self.f(x) / self.slope(x)

    def settled(self, x, goal):
        return goal if abs(goal - x) <= self.tiny else None

    def step(self, x, goal):
        found = shortened(
            abs(self.f(x)), abs(self.f(x)), lambda a: (abs(self.f(x + a * (goal - x))), x + a * (goal - x))
        )
        if found is None:
            return None
        self.lengths.append(found[0])
        return found[1]

    def judged(self, before, goal, x):
        if x is not None:
            self.course.append((abs(self.f(x)),))
        return End.STAGNATED if crawls(self.course) else None


def arctangent():
    return Scalar(math.atan, lambda x: 1 / (1 + x**2))


def test_whole_steps_near_a_root_converge_like_squares():
    x, end = descend(target := arctangent(), 0.5, 20)
    assert end is End.SETTLED
    assert abs(x) < 1e-12
    assert target.lengths == [1.0] * len(target.lengths)
    assert len(target.lengths) <= 5


def test_steps_that_overshoot_are_shortened():
    # Whole steps of Newton's method for the arctangent run away from starts beyond 1.39.
    x, end = descend(target := arctangent(), 5.0, 30)
    assert end is End.SETTLED
    assert abs(x) < 1e-12
    assert min(target.lengths) < 1.0
    residuals = [own for (own,) in target.course]
    assert residuals == sorted(residuals, reverse=True)


def test_without_a_root_it_stagnates_and_with_few_steps_it_is_unfinished():
    nothing = Scalar(lambda x: x**2 + 1, lambda x: 2 * x)
    assert descend(nothing, 3.0, 50)[1] is End.STAGNATED
    assert descend(arctangent(), 5.0, 1)[1] is End.UNFINISHED


@pytest.mark.parametrize(("after", "enough"), [(0.999, False), (0.99, True), (1.0, False)])
def test_a_residual_must_fall_by_a_share_of_the_promise(after, enough):
    assert falls(1.0, after, 1.0) is enough
