"""The table of runs: cells picked and summarised, and numbers of them beside the published ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pibls.paper.cells import Cell

VERDICTS = ("beat", "reproduce", "miss")
_FACTOR = 2.0
_SQUARED = ("mse", "relative_mse", "r2")
MORE_IS_BETTER = ("r2", "reduction", "factor")
# Numbers that are better the nearer they come to this one.
_COMPLETE = {"r2": 1.0, "reduction": 100.0}
PROBLEMS = {
    "advection": "advection",
    "poisson_star": "Poisson, star domain",
    "poisson_square": "Poisson, unit square",
    "diffusion_reaction": "diffusion–reaction",
}


def label(method: str) -> str:
    """Return the name of a method as the paper writes it.

    >>> label("BPI-ELM"), label("PINN")
    ('B-PI-ELM', 'PINN')
    """
    return {"BPI-ELM": "B-PI-ELM", "solve": "pb.solve"}.get(method, method)


@dataclass(frozen=True)
class Summary:
    """A number over seeds: its median (of one seed: the number), its worst and best value, and how many there are."""

    median: float
    worst: float
    best: float
    count: int
    stored: int = 0  # how many of them come with the library
    values: tuple[float, ...] = field(default=(), repr=False)  # all of them, the best first


def summarise(values: Iterable[float], *, better: str = "low", stored: int = 0) -> Summary | None:
    """Return median, worst and best of numbers, or None where there are none.

    A run that gave no finite number counts as the worst there can be; it is never left out.

    >>> summarise([1.0, 3.0, 2.0])
    Summary(median=2.0, worst=3.0, best=1.0, count=3, stored=0)
    >>> summarise([0.9, 0.99], better="high").worst
    0.9
    """
    sign = 1.0 if better == "low" else -1.0
    costs = sorted(math.inf if math.isnan(value) else sign * value for value in values)
    if not costs:
        return None
    # The mean of the two middle ones would be NaN where they are −∞ and ∞; the upper one never flatters.
    middle = costs[len(costs) // 2] if math.isinf(costs[len(costs) // 2]) else float(np.median(costs))
    values = tuple(sign * cost for cost in costs)
    return Summary(sign * middle, values[-1], values[0], len(values), stored, values)


@dataclass(frozen=True)
class Ledger:
    """Cells of a study in a fixed order, so that reports do not depend on when each was finished."""

    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, cells: Iterable[Cell]) -> Ledger:
        """Return the cells sorted by subject."""
        return cls(tuple(sorted(cells, key=_rank)))

    def __len__(self) -> int:
        return len(self.cells)

    def select(self, **wanted: Any) -> Ledger:
        """Return the cells whose entries have the given values.

        >>> book = Ledger.of([{"kind": "time", "seed": 1}, {"kind": "solve", "seed": 0}])
        >>> book.select(kind="time").cells
        ({'kind': 'time', 'seed': 1},)
        """
        cells = self.cells
        for key, value in wanted.items():
            cells = tuple([cell for cell in cells if cell.get(key) == value])
        return Ledger(cells)

    @property
    def stored(self) -> int:
        """How many of the cells come with the library."""
        return sum(bool(cell.get("stored")) for cell in self.cells)

    @property
    def origins(self) -> list[dict[str, Any]]:
        """Where the cells come from: each command, commit, machine and date, with how many cells it gave."""
        counts = Counter(tuple(sorted(cell["made"].items())) for cell in self.cells)
        return [{**dict(origin), "cells": count} for origin, count in sorted(counts.items())]

    def distinct(self, key: str) -> list[Any]:
        """Return the different values of an entry, sorted."""
        return sorted({cell[key] for cell in self.cells if cell.get(key) is not None})

    def numbers(self, *path: str) -> list[float]:
        """Return one number of every cell, by the keys that lead to it; NaN where a cell lacks it."""
        return [_number(cell, path) for cell in self.cells]

    def summary(self, *path: str, better: str = "low") -> Summary | None:
        """Return median, worst and best of one number over the cells."""
        return summarise(self.numbers(*path), better=better, stored=self.stored)


def _number(cell: Cell, path: tuple[str, ...]) -> float:
    value: Any = cell
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) else math.nan


def _rank(cell: Cell) -> tuple[Any, ...]:
    names = tuple(str(cell.get(key) or "") for key in ("kind", "problem", "method", "score", "axis"))
    return (*names, *(int(cell.get(key) or 0) for key in ("n_train", "seed")))


@dataclass(frozen=True)
class Record:
    """One number of the paper's tables, or one measured beside them.

    >>> Record("6", "advection", "PINN", "test", "rmse", 30, 1e-3, summarise([4e-4])).verdict
    'beat'
    >>> Record("6", "advection", "PINN", "test", "mse", 30, 1e-3, summarise([3e-3])).verdict
    'reproduce'
    """

    table: str  # its number in the paper
    problem: str
    method: str
    part: str  # "train" or "test" points, empty where it is about neither
    quantity: str
    n_train: int
    published: float | None
    measured: Summary | None
    kind: str = ""  # of the cells that it was measured in
    score: str = ""  # what their settings were chosen by

    @property
    def name(self) -> str:
        """The key of a printed number: kind, problem, method, points, score, part and quantity."""
        return "|".join(
            map(str, (self.kind, self.problem, self.method, self.n_train, self.score, self.part, self.quantity))
        )

    def beside(self, published: float | None, table: str) -> Record:
        """Return the same measured number beside a published one."""
        return replace(self, published=published, table=table)

    @property
    def ratio(self) -> float:
        """Cost of the measured number over cost of the published one: below one is better."""
        return self._ratio(self.measured.median) if self.measured else math.nan

    def _ratio(self, cost: float) -> float:
        if self.published is None:
            return math.nan
        published = self.published
        if self.quantity in _COMPLETE:
            cost, published = (_COMPLETE[self.quantity] - value for value in (cost, published))
        elif self.quantity in MORE_IS_BETTER:
            cost, published = published, cost
        if cost == published:
            return 1.0
        return cost / published if published else math.inf

    @property
    def verdict(self) -> str:
        """``"beat"``, ``"reproduce"``, ``"miss"``, or ``""`` where nothing was published or measured."""
        return "" if self.published is None or self.measured is None else self._judged(self.ratio)

    @property
    def held(self) -> int:
        """For how many seeds the verdict on the median is true; one that beats a number reproduces it, too."""
        if not self.verdict or self.measured is None:
            return 0
        found = [self._judged(self._ratio(value)) for value in self.measured.values]
        return found.count(self.verdict) + (found.count("beat") if self.verdict == "reproduce" else 0)

    def _judged(self, ratio: float) -> str:
        limit = _FACTOR**2 if self.quantity in _SQUARED else _FACTOR
        return "beat" if ratio < 1 / limit else "reproduce" if ratio <= limit else "miss"


def own_numbers(records: Sequence[Record]) -> list[Record]:
    """Return the records without the unit square, whose published numbers belong to another problem."""
    return [record for record in records if record.problem != "poisson_square"]


def held(records: Sequence[Record]) -> tuple[int, int]:
    """Return for how many seeds the verdicts on the medians are true, and how many there are.

    >>> held([Record("6", "advection", "PINN", "test", "mae", 30, 1.0, summarise([0.1, 0.2, 0.9]))])
    (2, 3)
    """
    judged = [(r, r.measured) for r in records if r.published is not None and r.measured]
    return sum(record.held for record, _ in judged), sum(summary.count for _, summary in judged)


def tally(records: Sequence[Record]) -> dict[str, int]:
    """Return how many numbers were published, how many got each verdict, and how many are no worse than published.

    >>> tally([Record("6", "advection", "PINN", "test", "mae", 30, 1.0, summarise([0.1]))])
    {'published': 1, 'beat': 1, 'reproduce': 0, 'miss': 0, 'at or below': 1}
    """
    known = [record for record in records if record.published is not None]
    counts = {verdict: sum(r.verdict == verdict for r in known) for verdict in VERDICTS}
    return {"published": len(known), **counts, "at or below": sum(r.ratio <= 1.0 for r in known)}
