"""The numbers of the paper, read from a data file as facts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pibls.checks import shorten
from pibls.errors import InputError

METHODS = ("PI-BLS", "PINN", "PI-ELM", "BPI-ELM")
# The paper has one Poisson equation; its statement and its table belong to two different ones.
PAPER_NAMES: Mapping[str, str] = {
    "advection": "advection",
    "poisson_square": "poisson",
    "poisson_star": "poisson",
    "diffusion_reaction": "diffusion_reaction",
}


@dataclass(frozen=True, eq=False)
class Published:
    """The numbers that the paper prints, by the names of problems of this library; None where it prints nothing.

    >>> paper = published()
    >>> paper.accuracy("advection", "PI-BLS", "test", "relative_rmse")
    0.00066079
    >>> paper.accuracy("poisson_star", "PI-ELM", "test", "mse") is None
    True
    >>> paper.seconds("poisson_star", "PINN"), paper.parameters("advection", 30, "PINN")
    (7.7663, 42022.0)
    """

    values: Mapping[str, Any]

    def sizes(self, problem: str) -> tuple[int, ...]:
        """Return the numbers of training points."""
        return tuple(self._sizes(problem)["train"])

    def test_size(self, problem: str) -> int:
        """Return the number of test points."""
        return int(self._sizes(problem)["test"])

    def table_size(self, problem: str) -> int:
        """Return the number of training points that the table of errors is for."""
        return int(self._sizes(problem)["table"])

    def time_size(self, problem: str) -> int:
        """Return the number of training points that the table of training times is for."""
        return int(self._sizes(problem)["time"])

    def space(self, problem: str, method: str) -> dict[str, list[Any]]:
        """Return the search space of a method: settings and the values they take."""
        spaces = self.values["spaces"][_paper_name(problem)]
        if method not in spaces:
            raise InputError(f"The paper searches the settings of {', '.join(spaces)}. Got {shorten(method)} instead.")
        return {name: list(values) for name, values in spaces[method].items()}

    def accuracy(self, problem: str, method: str, part: str, metric: str) -> float | None:
        """Return an error at the ``"train"`` or ``"test"`` points."""
        table = self.values["accuracy"][_paper_name(problem)]
        if method not in table or metric not in table["metrics"]:
            return None
        return float(table[method][part][table["metrics"].index(metric)])

    def seconds(self, problem: str, method: str, *, per_point: bool = False) -> float | None:
        """Return a training time, in all or per collocation point."""
        found = self.values["seconds"][_paper_name(problem)].get(method)
        return None if found is None else float(found[1 if per_point else 0])

    def parameters(self, problem: str, n_train: int, column: str) -> float | None:
        """Return a number of parameters, ``"PINN"`` or ``"PI-BLS"``, or their ``"reduction"`` or ``"factor"``."""
        found = self.values["parameters"][_paper_name(problem)].get(column)
        sizes = self.sizes(problem)
        return None if found is None or n_train not in sizes else float(found[sizes.index(n_train)])

    def _sizes(self, problem: str) -> Mapping[str, Any]:
        sizes: Mapping[str, Any] = self.values["sizes"][_paper_name(problem)]
        return sizes


def _paper_name(problem: str) -> str:
    if problem not in PAPER_NAMES:
        raise InputError(f"The problems of the paper are {', '.join(PAPER_NAMES)}. Got {shorten(problem)} instead.")
    return PAPER_NAMES[problem]


@cache
def published() -> Published:
    """Return the numbers of the paper."""
    text = files("pibls.paper").joinpath("published.toml").read_text(encoding="utf-8")
    return Published(tomllib.loads(text))
