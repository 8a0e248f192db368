"""All numbers that decide in the search for unknowns, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SETTINGS", "InverseSettings"]


@dataclass(frozen=True)
class InverseSettings:
    """Numbers that decide in a search for unknowns.

    Attributes
    ----------
    rounding
        Shares below this are rounding: some hundred operations lose that much in double precision.
    finest
        Relative accuracy beyond which cells of high degree gain nothing but rounding.
    coarse
        Relative accuracy of solutions while unknowns are looked for, and of bases of functions: noise is mostly more.
    certain
        Relative noise of conditions on unknown functions: ten times as much as bases may miss.
    slight, negligible, most
        A hundredth, a tenth, a half of something: hardly a part of it, a part that does not matter beside the rest, and
        the larger part.
    foretold
        Share of a change by which linear models may be wrong and still be used.
    nonlinear
        Change of a coordinate (a logarithm, or a share of a scale) from which on linear models do not hold.
    sure
        Standard deviations beyond which chance explains nothing: one in 16 000.
    huber
        Standard deviations beyond which outliers count by their size: 95 % as efficient without outliers (Huber).
    away
        Standard deviations of the first look at what data allow beside the best fit: about where 95 % end.
    settled
        Standard deviations that numbers may move by on a finer tree, where measurements determine fields as well.
    accuracy
        Times the error of solutions, below which predictions may be errors: estimates are mostly within three times.
    largest
        Coordinates beyond this are out of all proportion: a factor of e¹⁰, or ten scales.
    longest
        Change of a coordinate in one step: logarithms of more than that are seldom linear.
    step
        Relative change of an unknown for differences: half of the digits that are left of a solution.
    points
        Points all over a domain that sample a function.
    samples
        Points on the way from one measurement to the next, and measurements that are looked at.
    rounds
        How often something is repeated that mostly settles after one or two times.
    starts, alternatives
        Starts at most where the first comes to nothing, and where others may fit as well.
    decades
        Decades about a start without bounds that other starts are spread over.
    early
        Early measurements per unknown that a search begins with, and times as many that come next.
    share
        Share of the remaining budget for one solution while unknowns are looked for.
    denominator
        Ratios of small integers have no larger one.
    stricter
        Times as much that equations count next beside measurements.
    probes
        Draws of noise that tell about fields: their size to a seventh.
    beyond
        Share of the domain that bases of functions reach beyond it: no slope is favoured at its ends.
    """

    rounding: float = 1e-13
    finest: float = 1e-10
    coarse: float = 1e-4
    certain: float = 1e-3
    slight: float = 0.01
    negligible: float = 0.1
    most: float = 0.5
    foretold: float = 0.02
    nonlinear: float = 0.2
    sure: float = 4.0
    huber: float = 1.345
    away: float = 2.0
    settled: float = 0.3
    accuracy: float = 30.0
    largest: float = 10.0
    longest: float = 1.5
    step: float = 1e-5
    points: int = 200
    samples: int = 48
    rounds: int = 4
    starts: int = 8
    alternatives: int = 3
    decades: float = 3.0
    early: int = 3
    share: float = 0.2
    denominator: int = 4
    stricter: float = 4.0
    probes: int = 24
    beyond: float = 0.25


SETTINGS = InverseSettings()
