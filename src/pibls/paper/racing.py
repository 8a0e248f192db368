"""The search for networks that are trained: a race in which fewer and fewer are trained longer and longer.

Training every setting of a space as long as the final fit would take days. Here all start with a few evaluations; the
better quarter, by cross-validation, is trained four times as long, and so on. The last ones are trained about as
long as the final fit, so that a longer search would choose between the same few. Each length starts afresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pibls.paper.grids import lengths
from pibls.tuning.cross_validation import Candidate, SearchJob, first_of_the_best, search_all

__all__ = ["LENGTHS", "Raced", "race"]

LENGTHS = (250, 1000, 4000, 16_000)
_KEPT, _FEWEST = 4, 2  # one of so many goes on, and so many at least


@dataclass(frozen=True, eq=False)
class Raced:
    """What came of a race: who led after every length, the last one the winner; entrants and seconds."""

    leaders: tuple[Candidate, ...]
    entrants: int
    seconds: float

    @property
    def winner(self) -> Candidate:
        """Who led in the end."""
        return self.leaders[-1]

    @property
    def record(self) -> list[dict[str, Any]]:
        """The leaders after every length, to be stored."""
        return [{"settings": _untrained(leader.settings), "score": leader.mean} for leader in self.leaders]


def _untrained(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the length of the training."""
    return {name: value for name, value in settings.items() if name not in lengths(1)}


def _trained(methods: Sequence[Any], length: int) -> list[Any]:
    """Return methods with the length of their training."""
    return [replace(method, **lengths(length)) for method in methods]


def race(jobs: Sequence[SearchJob], folds: int, course: Sequence[int], device: Any = None) -> list[Raced]:
    """Race the methods of every job; networks of all jobs are trained side by side.

    Examples
    --------
    >>> from pibls import PINN, Points, problems
    >>> problem = problems.advection()
    >>> points = Points.sample(problem, interior=10)
    >>> job = SearchJob([PINN(width) for width in (1, 2, 8)], problem, points, 0)
    >>> (raced,) = race([job], 2, (20, 40))
    >>> len(raced.leaders), raced.entrants
    (2, 3)
    """
    alive = [list(job.methods) for job in jobs]
    leaders: list[list[Candidate]] = [[] for _ in jobs]
    seconds = [0.0 for _ in jobs]
    for length in course:
        told = [replace(job, methods=_trained(own, length)) for job, own in zip(jobs, alive, strict=True)]
        found = search_all(told, folds=folds, scores=("exact",), device=device)
        for number, result in enumerate(found):
            table = result["exact"].table
            leaders[number].append(first_of_the_best(table))
            seconds[number] += result["exact"].seconds
            means = [row.mean for row in table]
            ranked = sorted(range(len(means)), key=means.__getitem__)
            kept = sorted(ranked[: max(_FEWEST, -(-len(ranked) // _KEPT))])
            alive[number] = [alive[number][i] for i in kept]
    return [Raced(tuple(own), len(job.methods), spent) for job, own, spent in zip(jobs, leaders, seconds, strict=True)]
