"""What the paper claims, and what came out: each claim confirmed, refuted, or dependent on something that is named."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pibls.paper.findings import Findings
from pibls.paper.ledger import PROBLEMS, label
from pibls.paper.published import METHODS
from pibls.paper.records import own_numbers, tally

__all__ = ["Claim", "Duel", "claims", "duel", "standings"]

_LEVEL = 1.1  # ratio of medians below which two methods are level
_SURE = 0.05  # of the sign test over seeds
_ENOUGH = 6  # seeds with which the sign test can be sure at all
_OWN = [problem for problem in PROBLEMS if problem != "poisson_square"]  # the published numbers belong to these


@dataclass(frozen=True)
class Duel:
    """Errors of two methods on the same points: the ratio of the medians, and on how many seeds the first is lower."""

    problem: str
    n_train: int
    first: str
    second: str
    medians: tuple[float, float]
    lower: int
    seeds: int

    @property
    def ratio(self) -> float:
        """How many times larger the median of the second is."""
        return self.medians[1] / self.medians[0] if self.medians[0] else math.inf

    @property
    def chance(self) -> float:
        """Return how probable so uneven a result is if both are equally good: the sign test, two-sided.

        >>> Duel("advection", 30, "PI-BLS", "PINN", (1.0, 2.0), 10, 10).chance
        0.001953125
        """
        few = min(self.lower, self.seeds - self.lower)
        return min(1.0, 2.0 * sum(math.comb(self.seeds, k) for k in range(few + 1)) / 2.0**self.seeds)

    @property
    def word(self) -> str:
        """Whether the first is ``"better"`` or ``"worse"``, or both are ``"level"``.

        They are level within a factor of 1.1 of each other, or where the sign test over at least six seeds, or the
        seeds and the medians, do not agree on a winner.
        """
        if max(self.ratio, 1.0 / self.ratio if self.ratio else math.inf) <= _LEVEL:
            return "level"
        if self.seeds >= _ENOUGH and self.chance > _SURE:
            return "level"
        better = self.ratio > 1.0
        return "level" if better != (2 * self.lower > self.seeds) else "better" if better else "worse"


def duel(found: Findings, problem: str, first: str, second: str, n: int = 0) -> Duel | None:
    """Return the comparison of two methods over the seeds that both have; None where there are none."""
    n = n or found.paper.table_size(problem)
    book = found.book.select(kind="accuracy", problem=problem, n_train=n, score="exact")
    errors = [
        {c["seed"]: c["test"].get("relative_rmse", math.nan) for c in book.select(method=m).cells}
        for m in (first, second)
    ]
    common = sorted(errors[0].keys() & errors[1].keys())
    if not common:
        return None
    medians = [found.error("accuracy", problem, method, n).measured for method in (first, second)]
    lower = sum(errors[0][seed] < errors[1][seed] for seed in common)
    values = tuple(summary.median for summary in medians if summary)
    return Duel(problem, n, first, second, (values[0], values[1]), lower, len(common))


def standings(found: Findings, problem: str, n: int = 0) -> list[Duel]:
    """Return PI-BLS against every other method that was run."""
    pairs = (duel(found, problem, "PI-BLS", other, n) for other in METHODS if other != "PI-BLS")
    return [pair for pair in pairs if pair is not None]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the verdict on it and what the verdict rests on."""

    claim: str
    verdict: str
    why: str


def claims(found: Findings) -> list[Claim]:
    """Return the paper's claims with what came out."""
    return [_accuracy(found), _published(found), _points(found), _parameters(found), _times(found), _theorems(found)]


def _many(value: float) -> str:
    """Return a factor as people write it.

    >>> _many(3.14159), _many(0.5), _many(3912.0)
    ('3.1', '0.5', '3900')
    """
    return f"{float(f'{value:.2g}'):g}"


def _told(pair: Duel) -> str:
    other = label(pair.second)
    if pair.word == "level":
        return f"level with {other}"
    size = _many(pair.ratio if pair.word == "better" else 1.0 / pair.ratio)
    return f"{pair.word} than {other} by a factor of {size}"


def _accuracy(found: Findings) -> Claim:
    pairs = {problem: standings(found, problem) for problem in _OWN}
    parts = [f"{PROBLEMS[p]} {', '.join(map(_told, own))}" for p, own in pairs.items() if own]
    words = {pair.word for own in pairs.values() for pair in own}
    verdict = "not run" if not words else "confirmed" if words == {"better"} else "refuted"
    claim = "PI-BLS consistently outperforms PINN, PI-ELM and B-PI-ELM in accuracy"
    return Claim(claim, verdict, f"PI-BLS is, on {'; on '.join(parts)}." if parts else "")


def _published(found: Findings) -> Claim:
    counts = tally(own_numbers([r for r in found.accuracy if r.method == "PI-BLS"]))
    known = counts["beat"] + counts["reproduce"] + counts["miss"]
    verdict = "not run" if not known else "confirmed" if counts["miss"] == 0 else "refuted"
    told = f"of {counts['published']} published errors {counts['beat']} are beaten by more than a factor of two"
    more = f"{counts['reproduce']} reproduced within it, {counts['miss']} missed"
    return Claim("PI-BLS reaches the errors of tables 6 to 8", verdict, f"{told}, {more}.")


def _points(found: Findings) -> Claim:
    every = [pair for p in _OWN for n in found.paper.sizes(p) for pair in standings(found, p, n)]
    counts = {word: sum(pair.word == word for pair in every) for word in ("better", "level", "worse")}
    verdict = "not run" if not every else "confirmed" if counts["better"] == len(every) else "refuted"
    seeds = sorted({pair.seeds for pair in every})
    told = f"of {len(every)} comparisons with another method PI-BLS is better in {counts['better']}, "
    told += f"level in {counts['level']}, worse in {counts['worse']}"
    over = f" ({seeds[0]} to {seeds[-1]} seeds each)" if len(seeds) > 1 else ""
    return Claim("PI-BLS has the lowest errors at every number of points", verdict, f"{told}{over}.")


def _parameters(found: Findings) -> Claim:
    cut = [
        r.measured.median
        for r in own_numbers(found.parameters)
        if r.quantity == "reduction" and r.measured and r.n_train == found.paper.table_size(r.problem)
    ]
    verdict = "not run" if not cut else "confirmed" if min(cut) >= 96.5 else "refuted"
    why = (
        f"PI-BLS as selected has {min(cut):.1f} to {max(cut):.1f} % fewer, at the points of tables 6 to 8."
        if cut
        else ""
    )
    return Claim("PI-BLS has 96.5 to 99.6 % fewer trainable parameters than PINN", verdict, why)


def _times(found: Findings) -> Claim:
    parts = []
    for problem in _OWN:
        costs = (found.number("accuracy", problem, m, "seconds", score="exact").measured for m in ("PINN", "PI-BLS"))
        slow, fast = (summary.median if summary else math.nan for summary in costs)
        parts += [f"{_many(slow / fast)} on {PROBLEMS[problem]}"] if slow / fast > 0 else []
    why = (
        "one fit of PI-BLS on one core is faster than the share of one PINN in a batch on a GPU by a factor of "
        f"{', '.join(parts)}. It depends on the hardware, on how long a PINN is trained and on how many share the GPU; "
        "46.3 % for Poisson is not what the paper's own table says (7.1 %)."
        if parts
        else ""
    )
    return Claim("PI-BLS reduces the training time by 24.6, 46.3 and 24.0 %", "depends" if parts else "not run", why)


def _theorems(found: Findings) -> Claim:
    rows = found.theorems
    models, held = sum(len(row.found) for row in rows), sum(row.held for row in rows)
    verdict = "not run" if not models else "confirmed" if models == held else "refuted"
    told = f"{held} of {models} checks hold on the selected models, and wrong weights fail them"
    claim = "the theorems on residual, stability and sensitivity hold"
    return Claim(claim, verdict, f"{told}; the printed bounds are true and loose." if models else "")
