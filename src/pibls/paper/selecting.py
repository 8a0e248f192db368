"""The search of the paper: every setting of a space, by cross-validation, at the scale that suits its activation."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pibls.errors import PiblsError
from pibls.features import activation
from pibls.paper.cells import Notes
from pibls.paper.cross_validation import CrossValidation, first_of_the_best, search
from pibls.paper.grids import Grid, scales
from pibls.paper.racing import LENGTHS, Entry, Raced, race
from pibls.paper.setting import Setting
from pibls.tuning.automatic import Method

FOLDS = 5
SCORES = ("exact", "residual")


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


def select_all(
    grid: Grid, settings: Sequence[Setting], scores: Sequence[str] = SCORES, notes: Notes | None = None
) -> list[dict[str, Selection]]:
    """Search a space for several settings of one problem; networks that are trained are raced side by side for all.

    A race writes down how far it has come to ``notes``, and goes on from there.
    """
    if grid.method == "PINN":
        return _raced(grid, settings, notes)
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


def _raced(grid: Grid, settings: Sequence[Setting], notes: Notes | None) -> list[dict[str, Selection]]:
    """Race the pilots of every activation that the equation admits, then all settings at the scales that won."""
    problem, device = settings[0].problem, training_device()
    order = max(statement.form.order for statement in problem.statements)
    names = [name for name in grid.space["activation"] if activation(name).smoothness >= order]

    choices = scales(problem)
    entries = [Entry(s, grid.pilots(name, choices)) for s in settings for name in names]
    pilots = race(entries, FOLDS, LENGTHS, device, notes)
    own = [dict(zip(names, pilots[i : i + len(names)], strict=True)) for i in range(0, len(pilots), len(names))]
    entries = [Entry(s, grid.methods(_won(o))) for s, o in zip(settings, own, strict=True)]
    found = race(entries, FOLDS, LENGTHS, device, notes)
    result = []
    for before, last in zip(own, found, strict=True):
        winner: Any = last.winner.method
        tried = last.entrants + sum(pilot.entrants for pilot in before.values())
        seconds = last.seconds + sum(pilot.seconds for pilot in before.values())
        course = {"leaders": last.record, "pilots": {name: pilot.record for name, pilot in before.items()}}
        method = replace(winner, **grid.final)
        result.append({"exact": Selection(method, last.winner.mean, tried, seconds, course)})
    return result


def _won(pilots: Mapping[str, Raced]) -> dict[str, Any]:
    """Return the scale that won, by activation."""
    methods: dict[str, Any] = {name: pilot.winner.method for name, pilot in pilots.items()}
    return {name: method.scale for name, method in methods.items()}


def training_device() -> str | None:
    """Return where networks are trained: on a GPU if torch is there and has one."""
    torch = _torch()
    return "cuda" if torch is not None and torch.cuda.is_available() else None


def device_name() -> str:
    """Return the name of the device that networks are trained on."""
    torch = _torch()
    return str(torch.cuda.get_device_name()) if training_device() else "CPU"


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch
