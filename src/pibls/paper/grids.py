"""The methods that a search goes through: the paper's spaces, and one beyond them.

The paper does not say how its random weights are distributed, and their range decides more than anything else. Each
search therefore has two stages, both by the same cross-validation: for every activation, the scale that suits the
widest network of the space, with unit penalties and the smallest ridge; then all of the paper's settings at that scale.
The first weights of a PINN, which training hardly changes, are chosen in the same way among the same scales, at the
middle width. Its networks run a race (:mod:`selecting`): the longer they are trained, the fewer are left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pibls.checks import check_choice
from pibls.methods import PIBLS, PIELM, BayesianPIELM
from pibls.paper.pinn import PINN
from pibls.paper.published import METHODS, published
from pibls.problem import Problem
from pibls.tuning.automatic import Method

# Radians across half the domain: from nearly linear nodes to some eight waves.
SPACE_SCALES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
TIME_SCALES = (0.5, 1.5)

# Beyond the paper: an activation that it has not, rows balanced by the library instead of penalties, no ridge.
BEYOND: Mapping[str, Sequence[Any]] = {
    "activation": ("sin", "tanh"),
    "feature_groups": (5, 21),
    "feature_nodes": (10, 50),
    "enhancement_nodes": (0, 65),
}

EVALUATIONS = 30_000  # of loss and gradient, that a final training has at most

CLASSES: Mapping[str, Callable[..., Method]] = {
    "PI-BLS": PIBLS,
    "PI-ELM": PIELM,
    "BPI-ELM": BayesianPIELM,
    "PINN": PINN,
}
_WITH_SOLVER = ("PI-BLS", "PI-ELM")
_MOST_ADAM = 1000


@dataclass(frozen=True)
class Grid:
    """The search space of one method on one problem, and the scales to choose from."""

    method: str
    space: Mapping[str, Sequence[Any]]  # settings and the values they take
    fixed: Mapping[str, Any]  # settings that are not searched
    # Settings that differ in the final fit: the length of a training, or the paper's closed form as the solver.
    final: Mapping[str, Any]
    # Settings that differ from those of the widest network while the scale is chosen.
    pilot: Mapping[str, Any] = field(default_factory=dict)

    def pilots(self, activation: str, choices: Sequence[Any]) -> list[Method]:
        """Return the widest network with one activation at every scale."""
        widest = {name: max(v) for name, v in self.space.items() if name != "activation" and name != "lambda_reg"}
        if "lambda_reg" in self.space:
            widest["lambda_reg"] = min(self.space["lambda_reg"])
        settings = {**widest, **self.pilot, "activation": activation}
        return [self._make({**settings, "scale": scale}) for scale in choices]

    def methods(self, chosen: Mapping[str, Any]) -> list[Method]:
        """Return every combination of settings, at the scale chosen for its activation."""
        names = list(self.space)
        result = []
        for values in product(*self.space.values()):
            settings = dict(zip(names, values, strict=True))
            if settings["activation"] in chosen:
                result.append(self._make({**settings, "scale": chosen[settings["activation"]]}))
        return result

    @property
    def size(self) -> int:
        """Number of combinations."""
        return math.prod(len(values) for values in self.space.values())

    def _make(self, settings: Mapping[str, Any]) -> Method:
        return CLASSES[self.method](**self.fixed, **settings)


def grid(problem: str, method: str, *, beyond: bool = False) -> Grid:
    """Return the search space of a method on a problem.

    >>> grid("diffusion_reaction", "PI-BLS").size, grid("poisson_star", "PI-ELM").size
    (729, 99)
    >>> grid("advection", "PINN").size
    99
    """
    check_choice("method", method, "grid", METHODS)
    if beyond:
        return Grid(method, BEYOND, *_solvers(method, BEYOND))
    space = published().space(problem, method)
    if method != "PINN":
        return Grid(method, space, *_solvers(method, space))
    middle = sorted(space["width"])[len(space["width"]) // 2]
    return Grid(method, space, {"layers": space.pop("layers")[0]}, lengths(EVALUATIONS), {"width": middle})


def lengths(evaluations: int) -> dict[str, int]:
    """Return how a training of so many evaluations is divided: Adam has half of a short one.

    >>> lengths(250), lengths(30_000)
    ({'adam_iterations': 125, 'lbfgs_iterations': 125}, {'adam_iterations': 1000, 'lbfgs_iterations': 29000})
    """
    adam = min(evaluations // 2, _MOST_ADAM)
    return {"adam_iterations": adam, "lbfgs_iterations": evaluations - adam}


def _solvers(method: str, space: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the solver of the search, and that of the final fit.

    Without a ridge, a search finds the weights of minimal norm, as the paper's closed form would in exact arithmetic,
    and the final fit is by the library's default, as accurate and faster. With one the weights are unique, and the
    final fit is by the paper's closed form, whose digits such a ridge saves.
    """
    if method not in _WITH_SOLVER:
        return {}, {}
    if "lambda_reg" in space:
        return {"solver": "lstsq"}, {"solver": "normal"}
    return {"solver": "svd"}, {"solver": "lstsq"}


def scales(problem: Problem) -> list[Any]:
    """Return the scales that a search tries: one number for all of space, and one for time.

    >>> from pibls.problems import advection, diffusion_reaction
    >>> scales(advection())[:3], scales(diffusion_reaction())[:3]
    ([1.0, 1.5, 2.0], [(1.0, 0.5), (1.0, 1.5), (1.5, 0.5)])
    """
    domain = problem.domain
    if domain.time is None:
        return list(SPACE_SCALES)
    axis = domain.coordinates.index(domain.time)
    return [
        tuple(t if i == axis else s for i in range(len(domain.coordinates)))
        for s, t in product(SPACE_SCALES, TIME_SCALES)
    ]
