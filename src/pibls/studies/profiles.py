"""How much of the study is run: in minutes, or all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pibls.studies.published import METHODS, PAPER_NAMES

__all__ = ["PROFILES", "Profile"]

_MANY, _FEW = 10, 3  # seeds


@dataclass(frozen=True)
class Profile:
    """How much of the study is run."""

    seeds: Mapping[str, int]  # per method at the number of points that the paper's table is for; in the wider space too
    other_seeds: Mapping[str, int]  # per method at the other numbers of points
    pinn_sizes: int  # at how many of those a PINN is trained, the smallest first
    runs: Mapping[str, int]  # timed fits per method
    solves: int  # seeds of plain solves
    covered: tuple[str, ...]  # problems on which bands are held against the solution
    aside: tuple[str, ...] = ()  # problems that have a few seeds only, and a few numbers of points; a PINN one

    def count(self, problem: str, seeds: int) -> int:
        """Return how many of some seeds are run on a problem."""
        return min(seeds, _FEW) if problem in self.aside else seeds

    def sizes(self, problem: str, method: str, others: Sequence[int]) -> Sequence[int]:
        """Return at which of the numbers of points beside the table's a method is run."""
        if problem in self.aside:
            return [] if method == "PINN" else others[::_FEW]
        return others[: self.pinn_sizes] if method == "PINN" else others


_EVERY = dict.fromkeys(METHODS, _MANY)
PROFILES: Mapping[str, Profile] = {
    "quick": Profile(
        seeds={**_EVERY, "PI-ELM": 5, "BPI-ELM": _FEW, "PINN": 1},
        other_seeds=dict.fromkeys(METHODS, 1),
        pinn_sizes=1,
        runs={**_EVERY, "PINN": 1},
        solves=5,
        covered=("advection", "poisson_star"),
        # The paper's table is of the star.
        aside=("poisson_square",),
    ),
    "full": Profile(_EVERY, _EVERY, 5, _EVERY, _MANY, tuple(PAPER_NAMES)),
}
