"""Whether a measured number reproduces, beats or misses a published one: one rule for every table."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pibls.studies.report_ledger import Summary

__all__ = ["RULE", "Comparison", "compare"]

FACTOR = 2.0
SQUARED = ("mse", "relative_mse", "r2")
# Numbers that are better the nearer they come to this one.
_COMPLETE = {"r2": 1.0, "reduction": 100.0}
RULE = (
    "A number is <b>beaten</b> where the median over the seeds is less than half of the published one, "
    "<b>reproduced</b> where it is within a factor of two of it, and <b>missed</b> where it is more than twice as "
    "large. Squared measures (MSE, relative MSE) are held to the same rule in their roots, which is a factor of four, "
    "and the R² score by its distance to one, likewise. Of ratios in favour of PI-BLS (fewer parameters) more is "
    "better; a reduction in per cent is judged by what it leaves. The paper gives one value per number and no spread; "
    "the brackets in the tables show how far the worst seed is from the median. Whether a median is at or below the "
    "published value is counted separately. On the unit square (table 7b) the published numbers belong to another "
    "problem: verdicts are shown, and not counted."
)


@dataclass(frozen=True)
class Comparison:
    """A published number and what was measured for it.

    Attributes
    ----------
    published
        The number in the paper, or None where it has none.
    measured
        Median, worst and best over the seeds, or None where it was not run.
    verdict
        ``"beat"``, ``"reproduce"``, ``"miss"``, ``"not run"``, or ``""`` where nothing was published.
    ratio
        Cost of the median over cost of the published number: below one is better.
    """

    published: float | None
    measured: Summary | None
    verdict: str
    ratio: float


def compare(published: float | None, measured: Summary | None, metric: str, *, better: str = "low") -> Comparison:
    """Hold a measured number against a published one.

    >>> from pibls.studies.report_ledger import summarise
    >>> compare(1e-3, summarise([4e-4]), "rmse").verdict
    'beat'
    >>> compare(1e-3, summarise([3e-3]), "mse").verdict
    'reproduce'
    >>> compare(0.9, summarise([0.5]), "r2", better="high").verdict
    'miss'
    >>> compare(99.0, summarise([-5.0]), "reduction", better="high").verdict
    'miss'
    """
    if published is None or measured is None:
        return Comparison(published, measured, "" if published is None else "not run", math.nan)
    ratio = _cost_ratio(measured.median, published, metric, better)
    limit = FACTOR**2 if metric in SQUARED else FACTOR
    verdict = "beat" if ratio < 1 / limit else "reproduce" if ratio <= limit else "miss"
    return Comparison(published, measured, verdict, ratio)


def _cost_ratio(measured: float, published: float, metric: str, better: str) -> float:
    if metric in _COMPLETE:
        measured, published = (_COMPLETE[metric] - value for value in (measured, published))
    elif better == "high":
        measured, published = published, measured
    if measured == published:
        return 1.0
    return measured / published if published else math.inf
