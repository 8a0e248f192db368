"""The methods that a search goes through: the paper's spaces, and one beyond them.

The paper does not say how its random weights are distributed, and their range decides more than anything else. Each
search therefore has two stages, both by the same cross-validation: for every activation, the scale that suits the
widest network of the space, with unit penalties and the smallest ridge; then all of the paper's settings at that scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from pibls.checks import check_choice
from pibls.methods import PIBLS, PIELM, PINN, BayesianPIELM
from pibls.problem import Problem
from pibls.studies.published import METHODS, published
from pibls.tuning.automatic import Method

__all__ = ["BEYOND", "CLASSES", "SPACE_SCALES", "TIME_SCALES", "Grid", "grid", "scales"]

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

# PINN is trained, which takes seconds where the others take milliseconds: a search trains less than the final fit.
# The quick grid is what an expert would try first: two widths, the smooth activation, unit penalties.
_QUICK_PINN: Mapping[str, Sequence[Any]] = {"width": (23, 63), "activation": ("tanh",), "lambda_b": (1.0,)}
_SEARCH_TRAINING: Mapping[str, Mapping[str, int]] = {
    "quick": {"adam_iterations": 50, "lbfgs_iterations": 100},
    "full": {"adam_iterations": 500, "lbfgs_iterations": 500},
}
_FINAL_TRAINING: Mapping[str, Mapping[str, int]] = {
    "quick": {"adam_iterations": 300, "lbfgs_iterations": 1000},
    "full": {"adam_iterations": 1000, "lbfgs_iterations": 10_000},
}

CLASSES: Mapping[str, Callable[..., Method]] = {
    "PI-BLS": PIBLS,
    "PI-ELM": PIELM,
    "BPI-ELM": BayesianPIELM,
    "PINN": PINN,
}
_WITH_SOLVER = ("PI-BLS", "PI-ELM")


@dataclass(frozen=True)
class Grid:
    """The search space of one method on one problem.

    Attributes
    ----------
    method
        Name of the method.
    space
        Settings and the values they take.
    fixed
        Settings that are not searched.
    final
        Settings that differ in the final fit: the length of a training.
    scaled
        Whether the method has random weights whose scale is to be chosen.
    """

    method: str
    space: Mapping[str, Sequence[Any]]
    fixed: Mapping[str, Any]
    final: Mapping[str, Any]
    scaled: bool

    def pilots(self, activation: str, choices: Sequence[Any]) -> list[Method]:
        """Return the widest network with one activation at every scale."""
        widest = {name: max(v) for name, v in self.space.items() if name != "activation" and name != "lambda_reg"}
        if "lambda_reg" in self.space:
            widest["lambda_reg"] = min(self.space["lambda_reg"])
        return [self._make({**widest, "activation": activation, "scale": scale}) for scale in choices]

    def methods(self, chosen: Mapping[str, Any]) -> list[Method]:
        """Return every combination of settings, at the scale chosen for its activation."""
        names = list(self.space)
        result = []
        for values in product(*self.space.values()):
            settings = dict(zip(names, values, strict=True))
            if self.scaled:
                if settings["activation"] not in chosen:
                    continue
                settings["scale"] = chosen[settings["activation"]]
            result.append(self._make(settings))
        return result

    @property
    def size(self) -> int:
        """Number of combinations."""
        count = 1
        for values in self.space.values():
            count *= len(values)
        return count

    def _make(self, settings: Mapping[str, Any]) -> Method:
        return CLASSES[self.method](**self.fixed, **settings)


def grid(problem: str, method: str, profile: str = "full", *, beyond: bool = False) -> Grid:
    """Return the search space of a method on a problem.

    Examples
    --------
    >>> grid("diffusion_reaction", "PI-BLS").size, grid("poisson_star", "PI-ELM").size
    (729, 99)
    >>> grid("advection", "PINN", "quick").size
    2
    """
    check_choice("method", method, "grid", METHODS)
    check_choice("profile", profile, "grid", ("quick", "full"))
    if beyond:
        return Grid(method, BEYOND, _solver(method, BEYOND), {}, scaled=True)
    space = published().space(problem, method)
    if method != "PINN":
        return Grid(method, space, _solver(method, space), {}, scaled=True)
    layers = {"layers": space.pop("layers")[0]}
    if profile == "quick":
        space = {name: list(_QUICK_PINN.get(name, [1.0])) for name in space}
    return Grid(method, space, {**layers, **_SEARCH_TRAINING[profile]}, _FINAL_TRAINING[profile], scaled=False)


def _solver(method: str, space: Mapping[str, Any]) -> dict[str, Any]:
    """Return the solver: weights of minimal norm, as the paper's closed forms give them; a ridge makes them unique."""
    if method not in _WITH_SOLVER:
        return {}
    return {"solver": "lstsq" if "lambda_reg" in space else "svd"}


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
    pairs = product(SPACE_SCALES, TIME_SCALES)
    return [tuple(time if i == axis else space for i in range(len(domain.coordinates))) for space, time in pairs]
