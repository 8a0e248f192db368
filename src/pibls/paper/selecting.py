"""The search of the paper: every setting of a space, by cross-validation, at the scale that suits its activation.

Networks that are trained run a race: training every setting of a space as long as the final fit would take days. Here
all start with a few evaluations; the better quarter, by cross-validation, is trained four times as long, and so on. The
last ones are trained about half as long as the final fit. Each length starts afresh, and is noted when it is finished:
a race that was killed goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pibls.errors import PiblsError
from pibls.features import activation
from pibls.methods.fit import found_device
from pibls.paper.cells import Store
from pibls.paper.cross_validation import Candidate, CrossValidation, SearchJob, first_of_the_best, search, search_all
from pibls.paper.grids import Grid, lengths, scales
from pibls.paper.setting import Setting
from pibls.tuning.automatic import Method

FOLDS = 5
SCORES = ("exact", "residual")
LENGTHS = (250, 1000, 4000, 16_000)
_KEPT, _FEWEST = 4, 2  # one of so many goes on, and so many at least

Entry = tuple[Setting, Sequence[Any]]
"""A setting and the methods that race on it."""


@dataclass(frozen=True, eq=False)
class Selection:
    """The choice of a search by one score: the method as it is to be fitted to all points, and its mean score.

    Beside it, how many settings were tried, scales included, and the time of the search for all scores.
    """

    method: Method
    score: float
    configurations: int
    seconds: float
    course: Mapping[str, Any] = field(default_factory=dict)  # of a race: who led after every length

    @property
    def costs(self) -> dict[str, float]:
        """The cost of the search, as cells tell it."""
        return {"search_seconds": self.seconds, "configurations": self.configurations}

    @property
    def extra(self) -> dict[str, Any]:
        """The rest that cells tell of the search."""
        return {"cv_score": self.score, **({"course": self.course} if self.course else {})}


def select_all(
    grid: Grid, settings: Sequence[Setting], scores: Sequence[str] = SCORES, store: Store | None = None
) -> list[dict[str, Selection]]:
    """Search a space for several settings of one problem; networks that are trained are raced side by side for all.

    A race writes down how far it has come to the ``store``, and goes on from there.
    """
    if grid.method == "PINN" and settings:
        return _raced(grid, settings, store)
    return [_searched(grid, setting, scores) for setting in settings]


def _searched(grid: Grid, setting: Setting, scores: Sequence[str]) -> dict[str, Selection]:
    """Find the scale of every activation that can solve the problem, per score, then search all settings there."""

    def validated(methods: Sequence[Method]) -> Mapping[str, CrossValidation]:
        return search(methods, setting.problem, setting.points, folds=FOLDS, seed=setting.seed, scores=scores)

    start = time.process_time()
    pilots: dict[str, Mapping[str, Any]] = {}
    refusals: list[PiblsError] = []
    for name in grid.space["activation"]:
        try:
            pilots[name] = validated(grid.pilots(name, scales(setting.problem)))
        except PiblsError as error:
            refusals.append(error)
    if not pilots:
        raise refusals[-1]
    wanted = {s: grid.methods({name: pilot[s].best.scale for name, pilot in pilots.items()}) for s in scores}
    # Scores may want different scales; what both ask for, or a pilot has shown, is fitted once.
    known = {repr(row.method) for pilot in pilots.values() for row in pilot[scores[0]].table}
    union = {repr(m): m for methods in wanted.values() for m in methods if repr(m) not in known}
    parts = [*pilots.values(), *([validated(list(union.values()))] if union else [])]
    seconds = time.process_time() - start
    result = {}
    for score, methods in wanted.items():
        rows = {repr(row.method): row for part in parts for row in part[score].table}
        best = first_of_the_best([rows[repr(method)] for method in methods])
        winner: Any = best.method
        tried = len({repr(method) for method in methods} | known)
        result[score] = Selection(replace(winner, **grid.final), best.mean, tried, seconds)
    return result


def _raced(grid: Grid, settings: Sequence[Setting], store: Store | None) -> list[dict[str, Selection]]:
    """Race the pilots of every activation that the equation admits, then all settings at the scales that won."""
    problem = settings[0].problem
    order = max(statement.form.order for statement in problem.statements)
    names = [name for name in grid.space["activation"] if activation(name).smoothness >= order]

    choices = scales(problem)
    pilots = race([(s, grid.pilots(name, choices)) for s in settings for name in names], FOLDS, LENGTHS, store)
    own = [dict(zip(names, pilots[i : i + len(names)], strict=True)) for i in range(0, len(pilots), len(names))]
    won = [{name: pilot.winner.method.scale for name, pilot in raced.items()} for raced in own]
    found = race([(s, grid.methods(w)) for s, w in zip(settings, won, strict=True)], FOLDS, LENGTHS, store)
    result = []
    for before, last in zip(own, found, strict=True):
        winner: Any = last.winner.method
        tried = last.entrants + sum(pilot.entrants for pilot in before.values())
        seconds = last.seconds + sum(pilot.seconds for pilot in before.values())
        course = {"leaders": last.record, "pilots": {name: pilot.record for name, pilot in before.items()}}
        method = replace(winner, **grid.final)
        result.append({"exact": Selection(method, last.winner.mean, tried, seconds, course)})
    return result


@dataclass(frozen=True, eq=False)
class Raced:
    """The result of a race: who led after every length, the last one the winner; entrants and seconds."""

    leaders: tuple[Candidate, ...]
    entrants: int
    seconds: float

    @property
    def winner(self) -> Any:
        """Who led in the end."""
        return self.leaders[-1]

    @property
    def record(self) -> list[dict[str, Any]]:
        """The leaders after every length, to be stored: their settings, without the length itself, and scores."""
        settings = [{k: v for k, v in leader.settings.items() if k not in lengths(1)} for leader in self.leaders]
        return [{"settings": own, "score": one.mean} for own, one in zip(settings, self.leaders, strict=True)]


def race(entries: Sequence[Entry], folds: int, course: Sequence[int], store: Store | None = None) -> list[Raced]:
    """Race the methods of every entry; networks of all entries are trained side by side.

    >>> from pibls import PINN
    >>> (raced,) = race([(Setting("advection", 10, 0), [PINN(width) for width in (1, 2, 8)])], 2, (20, 40))
    >>> len(raced.leaders), raced.entrants
    (2, 3)
    """
    alive = [list(methods) for _, methods in entries]
    leaders: list[list[Candidate]] = [[] for _ in entries]
    seconds = [0.0 for _ in entries]
    for length in course:
        trained = [[replace(method, **lengths(length)) for method in methods] for methods in alive]
        settings = (setting for setting, _ in entries)
        scored = _scored(list(zip(settings, trained, strict=True)), folds, store)
        for number, (means, spent) in enumerate(scored):
            table = [Candidate(method, mean, ()) for method, mean in zip(trained[number], means, strict=True)]
            leaders[number].append(first_of_the_best(table))
            seconds[number] += spent
            ranked = sorted(range(len(means)), key=means.__getitem__)
            kept = sorted(ranked[: max(_FEWEST, -(-len(ranked) // _KEPT))])
            alive[number] = [alive[number][i] for i in kept]
    counts = [len(methods) for _, methods in entries]
    return [Raced(tuple(own), count, spent) for own, count, spent in zip(leaders, counts, seconds, strict=True)]


def _scored(entries: Sequence[Entry], folds: int, store: Store | None) -> list[tuple[Sequence[float], float]]:
    """Return the scores of the methods of every entry and the seconds they took, as noted or from a search now."""
    names = [repr((setting, folds, methods)) for setting, methods in entries]
    known = {name: note for name in names if store is not None and (note := store.note(name)) is not None}
    new = {name: entry for name, entry in zip(names, entries, strict=True) if name not in known}
    jobs = [SearchJob(methods, s.problem, s.points, s.seed) for s, methods in new.values()]
    found = search_all(jobs, folds=folds, scores=("exact",), device=found_device()) if jobs else []
    for name, result in zip(new, found, strict=True):
        known[name] = [row.mean for row in result["exact"].table], result["exact"].seconds
        if store is not None:
            store.write_note(name, known[name])
    return [known[name] for name in names]
