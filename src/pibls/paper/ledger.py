"""The stored cells of a study, picked and summarised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Cell = Mapping[str, Any]

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
        return Ledger(tuple(c for c in self.cells if all(c.get(key) == value for key, value in wanted.items())))

    @property
    def stored(self) -> int:
        """How many of the cells come with the library."""
        return sum(bool(cell.get("stored")) for cell in self.cells)

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
