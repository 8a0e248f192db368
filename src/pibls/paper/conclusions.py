"""The claims of the paper, each with a verdict: confirmed, refuted, or dependent on something that is named.

Every number and every word of comparison stands as ``[[name]]text[[]]``: the page makes a span of it, whose name it is
looked up by again, and other documents print the text alone.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from pibls.paper.findings import Findings
from pibls.paper.ledger import PROBLEMS, label, own_numbers, tally
from pibls.paper.published import METHODS

NAMED = re.compile(r"\[\[([^]]+)\]\](.*?)\[\[\]\]")

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
    runs = [found.runs(problem, method, n=n) for method in (first, second)]
    errors = [{c["seed"]: c["test"].get("relative_rmse", math.nan) for c in own.cells} for own in runs]
    common = errors[0].keys() & errors[1].keys()
    if not common:
        return None
    one, other = (summary.median for own in runs if (summary := own.summary("test", "relative_rmse")))
    lower = sum(errors[0][seed] < errors[1][seed] for seed in common)
    return Duel(problem, n, first, second, (one, other), lower, len(common))


def standings(found: Findings, problem: str, n: int = 0) -> list[Duel]:
    """Return PI-BLS against every other method that was run."""
    pairs = (duel(found, problem, "PI-BLS", other, n) for other in METHODS if other != "PI-BLS")
    return [pair for pair in pairs if pair is not None]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the verdict on it and the evidence for the verdict."""

    claim: str
    verdict: str
    why: str  # with names

    @property
    def plain(self) -> str:
        """The evidence for the verdict, without names.

        >>> Claim("a claim", "confirmed", "in [[comparisons|all]]3[[]] cases.").plain
        'in 3 cases.'
        """
        return NAMED.sub(r"\2", self.why)


def claims(found: Findings) -> list[Claim]:
    """Return the paper's claims with their verdicts."""
    return [_accuracy(found), _published(found), _points(found), _parameters(found), _times(found), _theorems(found)]


def _many(value: float) -> str:
    """Return a factor as people write it.

    >>> _many(3.14159), _many(0.5), _many(3912.0)
    ('3.1', '0.5', '3900')
    """
    return f"{float(f'{value:.2g}'):g}"


def _named(value: object, name: str) -> str:
    """Return a count or a word with its name; a factor is told with two digits, and its name says so."""
    return f"[[{name}|~2]]{_many(value)}[[]]" if isinstance(value, float) else f"[[{name}]]{value}[[]]"


def _told(pair: Duel) -> str:
    word = _named(pair.word, f"standing|{pair.problem}|{pair.second}|{pair.n_train}")
    if pair.word == "level":
        return f"{word} with {label(pair.second)}"
    which, size = ("ratio", pair.ratio) if pair.word == "better" else ("inverse", 1.0 / pair.ratio)
    size_told = _named(size, f"duel|{pair.problem}|{pair.second}|{which}")
    return f"{word} than {label(pair.second)} by a factor of {size_told}"


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
    told = {key: _named(n, f"verdicts|accuracy of PI-BLS (tables 6, 7a, 8)|{key}") for key, n in counts.items()}
    why = f"of {told['published']} published errors {told['beat']} are beaten by more than a factor of two, "
    why += f"{told['reproduce']} reproduced within it, {told['miss']} missed."
    return Claim("PI-BLS reaches the errors of tables 6 to 8", verdict, why)


def _points(found: Findings) -> Claim:
    every = [pair for p in _OWN for n in found.paper.sizes(p) for pair in standings(found, p, n)]
    counts = {word: sum(pair.word == word for pair in every) for word in ("better", "level", "worse")}
    verdict = "not run" if not every else "confirmed" if counts["better"] == len(every) else "refuted"
    seeds = sorted({pair.seeds for pair in every})
    more = {"all": len(every), "fewest": min(seeds, default=0), "most": max(seeds, default=0)}
    told = {key: _named(n, f"comparisons|{key}") for key, n in (counts | more).items()}
    why = f"of {told['all']} comparisons with another method PI-BLS is better in {told['better']}, "
    why += f"level in {told['level']}, worse in {told['worse']}"
    over = f" ({told['fewest']} to {told['most']} seeds each)" if len(seeds) > 1 else ""
    return Claim("PI-BLS has the lowest errors at every number of points", verdict, f"{why}{over}.")


def _parameters(found: Findings) -> Claim:
    cut = [r.measured.median for r in own_numbers(found.parameters) if r.quantity == "reduction" and r.measured]
    verdict = "not run" if not cut else "confirmed" if min(cut) >= 96.5 else "refuted"
    least, most = (_named(f"{end(cut, default=0.0):.1f}", f"reductions|{end.__name__}") for end in (min, max))
    rows = _named(len(cut), "reductions|rows")
    why = f"PI-BLS as selected has {least} to {most} % fewer, over {rows} rows of table 10." if cut else ""
    return Claim("PI-BLS has 96.5 to 99.6 % fewer trainable parameters than PINN", verdict, why)


def _times(found: Findings) -> Claim:
    parts = []
    for problem in _OWN:
        n = found.paper.time_size(problem)
        costs = (found.number("time", problem, m, "seconds", n=n).measured for m in ("PINN", "PI-BLS"))
        slow, fast = (summary.median if summary else math.nan for summary in costs)
        factor = _named(slow / fast, f"alone|{problem}")
        parts += [f"{factor} on {PROBLEMS[problem]} with {n} points"] if slow / fast > 0 else []
    why = (
        "one fit of PI-BLS on one core is faster than one training of a PINN alone on a GPU by a factor of "
        f"{', '.join(parts)}. It depends on the hardware and on how long a PINN is trained; "
        "46.3 % for Poisson is not what the paper's own table says (7.1 %)."
        if parts
        else ""
    )
    return Claim("PI-BLS reduces the training time by 24.6, 46.3 and 24.0 %", "depends" if parts else "not run", why)


def _theorems(found: Findings) -> Claim:
    rows = found.theorems
    models, held = sum(len(row.found) for row in rows), sum(row.held for row in rows)
    verdict = "not run" if not models else "confirmed" if models == held else "depends"
    why = "of the minimiser they are true, with loose bounds; of the weights that were computed, "
    why += f"{_named(held, 'checks|held')} of {_named(models, 'checks|all')} checks hold, which wrong weights fail."
    if models > held:
        excess = _named(max(ratio for row in rows for ratio in row.excess), "checks|excess")
        why += (
            f" Where a check fails, rounding is up to {excess} times that of a stable solver: the paper's closed form "
        )
        why += "computes with HᵀH, which costs digits."
    return Claim("the theorems on residual, stability and sensitivity hold", verdict, why if models else "")
