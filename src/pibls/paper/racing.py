"""The search for networks that are trained: a race in which fewer and fewer are trained longer and longer.

Training every setting of a space as long as the final fit would take days. Here all start with a few evaluations; the
better quarter, by cross-validation, is trained four times as long, and so on. The last ones are trained about half
as long as the final fit. Each length starts afresh, and is noted when it is finished: a race that was killed goes on
from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pibls.paper.cells import Notes
from pibls.paper.cross_validation import Candidate, SearchJob, first_of_the_best, search_all
from pibls.paper.grids import lengths
from pibls.paper.setting import Setting

LENGTHS = (250, 1000, 4000, 16_000)
_KEPT, _FEWEST = 4, 2  # one of so many goes on, and so many at least


@dataclass(frozen=True, eq=False)
class Raced:
    """The result of a race: who led after every length, the last one the winner; entrants and seconds."""

    leaders: tuple[Candidate, ...]
    entrants: int
    seconds: float

    @property
    def winner(self) -> Candidate:
        """Who led in the end."""
        return self.leaders[-1]

    @property
    def record(self) -> list[dict[str, Any]]:
        """The leaders after every length, to be stored: their settings, without the length itself, and scores."""
        settings = [{k: v for k, v in leader.settings.items() if k not in lengths(1)} for leader in self.leaders]
        return [{"settings": own, "score": one.mean} for own, one in zip(settings, self.leaders, strict=True)]


@dataclass(frozen=True, eq=False)
class Entry:
    """The methods that race on one setting."""

    setting: Setting
    methods: Sequence[Any]

    def trained(self, length: int) -> Entry:
        """Return the entry with methods that are trained so long."""
        return replace(self, methods=[replace(method, **lengths(length)) for method in self.methods])

    @property
    def job(self) -> SearchJob:
        """The search that scores its methods."""
        return SearchJob(self.methods, self.setting.problem, self.setting.points, self.setting.seed)


def race(
    entries: Sequence[Entry], folds: int, course: Sequence[int], device: Any = None, notes: Notes | None = None
) -> list[Raced]:
    """Race the methods of every entry; networks of all entries are trained side by side.

    Examples
    --------
    >>> from pibls import PINN
    >>> entry = Entry(Setting("advection", 10, 0), [PINN(width) for width in (1, 2, 8)])
    >>> (raced,) = race([entry], 2, (20, 40))
    >>> len(raced.leaders), raced.entrants
    (2, 3)
    """
    alive = list(entries)
    leaders: list[list[Candidate]] = [[] for _ in entries]
    seconds = [0.0 for _ in entries]
    for length in course:
        told = [entry.trained(length) for entry in alive]
        for number, (means, spent) in enumerate(_scored(told, folds, device, notes)):
            table = [Candidate(method, mean, ()) for method, mean in zip(told[number].methods, means, strict=True)]
            leaders[number].append(first_of_the_best(table))
            seconds[number] += spent
            ranked = sorted(range(len(means)), key=means.__getitem__)
            kept = sorted(ranked[: max(_FEWEST, -(-len(ranked) // _KEPT))])
            alive[number] = replace(alive[number], methods=[alive[number].methods[i] for i in kept])
    return [
        Raced(tuple(own), len(entry.methods), spent)
        for entry, own, spent in zip(entries, leaders, seconds, strict=True)
    ]


def _scored(
    entries: Sequence[Entry], folds: int, device: Any, notes: Notes | None
) -> list[tuple[Sequence[float], float]]:
    """Return the scores of the methods of every entry and the seconds they took, as noted or from a search now."""
    names = [repr((entry.setting, folds, entry.methods)) for entry in entries]
    known = {name: note for name in names if notes is not None and (note := notes.read(name)) is not None}
    new = {name: entry for name, entry in zip(names, entries, strict=True) if name not in known}
    jobs = [entry.job for entry in new.values()]
    found = search_all(jobs, folds=folds, scores=("exact",), device=device) if jobs else []
    for name, result in zip(new, found, strict=True):
        known[name] = [row.mean for row in result["exact"].table], result["exact"].seconds
        if notes is not None:
            notes.write(name, known[name])
    return [known[name] for name in names]
