"""How much of the study is run: in minutes, or all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pibls.paper.published import METHODS, PAPER_NAMES

_MANY, _FEW = 10, 3  # seeds


@dataclass(frozen=True)
class Profile:
    """How much of the study is run."""

    seeds: Mapping[
        str, int
    ]  # per method that is run, at the number of points of the paper's table; in the wider space too
    other_seeds: int  # at the other numbers of points
    trained_seeds: int  # there, of networks that are trained
    solves: int  # seeds of plain solves
    covered: tuple[str, ...]  # problems on which bands are held against the solution
    aside: tuple[str, ...] = ()  # problems that have a few seeds only, and a few numbers of points

    def count(self, problem: str, seeds: int) -> int:
        """Return how many of some seeds are run on a problem."""
        return min(seeds, _FEW) if problem in self.aside else seeds

    def others(self, method: str) -> int:
        """Return how many seeds of a method are run at the numbers of points beside the table's."""
        return self.trained_seeds if method == "PINN" else self.other_seeds

    def sizes(self, problem: str, others: Sequence[int]) -> Sequence[int]:
        """Return which of the numbers of points beside the table's are run."""
        return others[::_FEW] if problem in self.aside else others


PROFILES: Mapping[str, Profile] = {
    "quick": Profile(
        # PINNs take hours on two cores; those of the full study come with the library.
        seeds={"PI-BLS": _MANY, "PI-ELM": 5, "BPI-ELM": _FEW},
        other_seeds=1,
        trained_seeds=0,
        solves=5,
        covered=("advection", "poisson_star"),
        # The paper's table is of the star.
        aside=("poisson_square",),
    ),
    "full": Profile(dict.fromkeys(METHODS, _MANY), _MANY, _FEW, _MANY, tuple(PAPER_NAMES)),
}
