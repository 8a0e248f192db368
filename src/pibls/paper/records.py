"""A published number beside the measured one, and one rule for whether it is beaten, reproduced or missed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pibls.paper.ledger import Summary

VERDICTS = ("beat", "reproduce", "miss")
_FACTOR = 2.0
_SQUARED = ("mse", "relative_mse", "r2")
MORE_IS_BETTER = ("r2", "reduction", "factor")
# Numbers that are better the nearer they come to this one.
_COMPLETE = {"r2": 1.0, "reduction": 100.0}


@dataclass(frozen=True)
class Record:
    """One number of the paper's tables, or one measured beside them.

    >>> from pibls.paper.ledger import summarise
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

    >>> from pibls.paper.ledger import summarise
    >>> held([Record("6", "advection", "PINN", "test", "mae", 30, 1.0, summarise([0.1, 0.2, 0.9]))])
    (2, 3)
    """
    judged = [(r, r.measured) for r in records if r.published is not None and r.measured]
    return sum(record.held for record, _ in judged), sum(summary.count for _, summary in judged)


def tally(records: Sequence[Record]) -> dict[str, int]:
    """Return how many numbers were published, how many got each verdict, and how many are no worse than published.

    >>> from pibls.paper.ledger import summarise
    >>> tally([Record("6", "advection", "PINN", "test", "mae", 30, 1.0, summarise([0.1]))])
    {'published': 1, 'beat': 1, 'reproduce': 0, 'miss': 0, 'at or below': 1}
    """
    known = [record for record in records if record.published is not None]
    counts = {verdict: sum(r.verdict == verdict for r in known) for verdict in VERDICTS}
    return {"published": len(known), **counts, "at or below": sum(r.ratio <= 1.0 for r in known)}
