"""A problem of the paper with the points of a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from pibls import problems
from pibls.checks import FloatArray, check_choice, check_integer
from pibls.geometry import Points, PointSet, Star
from pibls.geometry.star import SymbolicRadius
from pibls.paper.published import PAPER_NAMES, published
from pibls.problem import Problem
from pibls.report import metrics
from pibls.solution import Solution

# The paper says how many points are inside, not how many are on the boundary and at the first time.
# The paper's smallest ridge needs many boundary rows to be felt little; in time, half as many tell as much.
_CONDITIONS_PER_INTERIOR = {"advection": 1.0, "poisson": 2.0, "diffusion_reaction": 0.5}
_TRAIN, _CONDITIONS, _TEST = 1, 2, 3


@cache
def _problem(name: str) -> Problem:
    made: Problem = getattr(problems, name)()
    return made


@dataclass(frozen=True)
class Setting:
    """A problem of the paper with random points of a seed.

    The interior points are independent: uniform, and on the star, as in the paper, uniform in its polar coordinates,
    angle and share of the radius, so that they are denser near the centre. The test points are drawn likewise. Those of
    the conditions are spread evenly; there
    are twice as many on the boundary as inside for the Poisson equation, and half as many on the boundary and half as
    many at the first time for diffusion and reaction. The paper says nothing about them.

    >>> setting = Setting("advection", 30, seed=0)
    >>> setting.points, setting.test_points.shape
    (Points(interior 30, conditions 1), (100, 1))
    """

    name: str
    n_train: int
    seed: int

    def __post_init__(self) -> None:
        check_choice("name", self.name, "Setting", tuple(PAPER_NAMES))
        check_integer("n_train", self.n_train, "Setting", minimum=1)
        check_integer("seed", self.seed, "Setting")

    @cached_property
    def problem(self) -> Problem:
        """The problem itself, the same for all settings."""
        return _problem(self.name)

    @cached_property
    def points(self) -> Points:
        """The points of the fit."""
        count = max(1, round(_CONDITIONS_PER_INTERIOR[PAPER_NAMES[self.name]] * self.n_train))
        even = Points.sample(self.problem, 1, count, count, method="kronecker", seed=self._seed(_CONDITIONS))
        return Points((PointSet(self._inside(self.n_train, _TRAIN)), *even.sets[1:]))

    @cached_property
    def test_points(self) -> FloatArray:
        """Independent points at which the solution is judged."""
        return self._inside(published().test_size(self.name), _TEST)

    def _inside(self, count: int, purpose: int) -> FloatArray:
        domain = self.problem.domain
        if not isinstance(domain, Star):
            return np.asarray(domain.sample(count, "uniform", self._seed(purpose)))
        rng = np.random.default_rng(self._seed(purpose))
        turns, shares = rng.random((2, count))
        edge = SymbolicRadius(domain.radius)(2 * np.pi * turns)
        ray = np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], axis=1)
        return np.asarray(domain.center + (shares * edge)[:, None] * ray)

    def _seed(self, purpose: int) -> int:
        entropy = (self.seed, purpose, self.n_train, list(PAPER_NAMES).index(self.name))
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    def errors(self, solution: Solution) -> tuple[dict[str, float], dict[str, float]]:
        """Return the nine metrics at the training and at the test points."""
        train = metrics(solution, points=self.points.interior)
        return dict(train), dict(metrics(solution, points=self.test_points))
