"""Every published number beside what was measured for it: the one source of tables, verdicts and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from pibls.report.metrics import METRICS
from pibls.studies.published import METHODS, Published
from pibls.studies.report_ledger import PROBLEMS, Ledger, Summary
from pibls.studies.report_verdict import Comparison, compare
from pibls.studies.tasks import plan

__all__ = [
    "VERDICTS",
    "Record",
    "accuracy_records",
    "own_numbers",
    "parameter_records",
    "tally",
    "time_records",
    "verdict_counts",
]

VERDICTS = ("beat", "reproduce", "miss", "not run")
ACCURACY_TABLES = {"advection": "6", "poisson_star": "7a", "poisson_square": "7b", "diffusion_reaction": "8"}


@dataclass(frozen=True)
class Record:
    """One number of the paper's tables, or one measured beside them.

    Attributes
    ----------
    table
        Number of the table in the paper.
    problem, method, n_train
        What it is about.
    part
        ``"train"`` or ``"test"`` points, empty where it is about neither.
    quantity
        Which number it is.
    comparison
        The number as published and as measured.
    profile
        The smallest profile of the study that measures it.
    """

    table: str
    problem: str
    method: str
    part: str
    quantity: str
    n_train: int
    comparison: Comparison
    profile: str = "quick"


@cache
def _planned(profile: str) -> frozenset[tuple[str, str, str, int]]:
    return frozenset((t.kind, t.problem, t.method, t.n_train) for stage in plan(profile) for t in stage)


def smallest_profile(kind: str, problem: str, method: str, n_train: int) -> str:
    """Return the smallest profile that runs a cell.

    >>> smallest_profile("accuracy", "advection", "PINN", 30), smallest_profile("accuracy", "advection", "PINN", 25)
    ('quick', 'full')
    """
    return "quick" if (kind, problem, method, n_train) in _planned("quick") else "full"


def accuracy_records(book: Ledger, published: Published, score: str = "exact") -> list[Record]:
    """Return the errors of all methods on all problems at the tables' numbers of points."""
    return [record for problem in PROBLEMS for record in _accuracy(book, published, problem, score)]


def _accuracy(book: Ledger, published: Published, problem: str, score: str) -> Iterator[Record]:
    n = published.table_size(problem)
    cells = book.select(kind="accuracy", problem=problem, score=score, n_train=n)
    for part in ("test", "train"):
        for metric in METRICS:
            better = "high" if metric == "r2" else "low"
            for method in METHODS:
                value = published.accuracy(problem, method, part, metric)
                found = cells.select(method=method).summary(part, metric, better=better)
                comparison = compare(value, found, metric, better=better)
                yield Record(ACCURACY_TABLES[problem], problem, method, part, metric, n, comparison)


def time_records(book: Ledger, published: Published) -> list[Record]:
    """Return training times of all methods on all problems, in all and per collocation point."""
    records = []
    for problem in PROBLEMS:
        n = published.time_size(problem)
        for method in METHODS:
            found = book.select(kind="time", problem=problem, method=method, n_train=n).summary("seconds")
            for per_point in (False, True):
                share = _scaled(found, 1.0 / n) if per_point else found
                value = published.seconds(problem, method, per_point=per_point)
                name = "seconds per point" if per_point else "seconds"
                records.append(Record("9", problem, method, "", name, n, compare(value, share, "seconds")))
    return records


def parameter_records(book: Ledger, published: Published, profile: str) -> list[Record]:
    """Return how many parameters the selected models have, and how many times fewer PI-BLS has than PINN.

    Only the full profile selects the width of a PINN.
    """
    return [record for problem in PROBLEMS for record in _parameters(book, published, problem, profile)]


def _parameters(book: Ledger, published: Published, problem: str, profile: str) -> Iterator[Record]:
    for n in published.sizes(problem):
        cells = book.select(kind="accuracy", problem=problem, score="exact", n_train=n)
        counts = {method: cells.select(method=method).summary("parameters") for method in METHODS}
        if profile != "full":
            counts["PINN"] = None
        for method, found in counts.items():
            value = published.parameters(problem, n, method)
            needed = "full" if method == "PINN" else smallest_profile("accuracy", problem, method, n)
            yield Record("10", problem, method, "", "parameters", n, compare(value, found, "parameters"), needed)
        for column in ("reduction", "factor"):
            value = published.parameters(problem, n, column)
            found = _saving(counts["PINN"], counts["PI-BLS"], column)
            comparison = compare(value, found, column, better="high")
            yield Record("10", problem, "PI-BLS", "", column, n, comparison, "full")


def _saving(large: Summary | None, small: Summary | None, column: str) -> Summary | None:
    """Return by what share, or how many times, the median PI-BLS is smaller than the median PINN."""
    if large is None or small is None:
        return None
    value = 100 * (1 - small.median / large.median) if column == "reduction" else large.median / small.median
    return Summary(value, value, value, 1)


def _scaled(summary: Summary | None, factor: float) -> Summary | None:
    if summary is None:
        return None
    return Summary(summary.median * factor, summary.worst * factor, summary.best * factor, summary.count)


def own_numbers(records: Sequence[Record]) -> list[Record]:
    """Return the records without the unit square, whose published numbers belong to another problem."""
    return [record for record in records if record.problem != "poisson_square"]


def verdict_counts(records: Sequence[Record]) -> dict[str, int]:
    """Return how many numbers were published, how many got each verdict, and how many medians are no larger."""
    known = [record.comparison for record in records if record.comparison.published is not None]
    counts = {verdict: sum(c.verdict == verdict for c in known) for verdict in VERDICTS}
    return {"published": len(known), **counts, "at or below": sum(c.ratio <= 1.0 for c in known)}


def tally(records: Sequence[Record]) -> str:
    """Return the counts of verdicts in words.

    >>> from pibls.studies.report_ledger import summarise
    >>> tally([Record("6", "advection", "PINN", "test", "mae", 30, compare(1.0, summarise([0.1]), "mae"))])
    '1 published numbers: 1 beat, 0 reproduce, 0 miss, 0 not run; 1 at or below the published value.'
    """
    counts = verdict_counts(records)
    words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
    return f"{counts['published']} published numbers: {words}; {counts['at or below']} at or below the published value."
