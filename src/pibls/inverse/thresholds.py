"""All numbers that decide in the search for unknowns, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class InverseSettings:
    """Numbers that decide in a search for unknowns; ``settings.huber`` is one of them."""

    coarse: float = 1e-4  # accuracy of solutions while unknowns are looked for, and of bases: noise is mostly more
    nonlinear: float = 0.2  # change of a logarithm, or of a share of a scale, that linear models do not follow
    sure: float = 4.0  # standard deviations beyond which chance explains nothing: one in 16 000
    chance: float = 1e-3  # probability below which a pattern of residuals is no chance
    huber: float = 1.345  # standard deviations beyond which outliers count by their size: 95 % efficient (Huber)
    away: float = 2.0  # standard deviations of the first look beside the best fit: about where 95 % end
    settled: float = 0.3  # standard deviations that numbers may move by on a finer tree, found together with fields
    accuracy: float = 30.0  # times the error of solutions that may be errors: estimates are mostly within three times
    largest: float = 10.0  # coordinates beyond are out of all proportion: a factor of e¹⁰, or ten scales
    longest: float = 1.5  # change of a logarithm in one step: more is seldom linear
    samples: int = 48  # points from one measurement to the next, and measurements that are looked at for oscillations
    rounds: int = 4  # repetitions of something that mostly settles after one or two, and other starts to compare with
    starts: int = 8  # starts at most, where the first comes to nothing
    decades: float = 3.0  # decades about a start without bounds that other starts are spread over
    early: int = 3  # early measurements per unknown that a search begins with, and times as many that come next
    share: float = 0.2  # share of the remaining budget for one solution while unknowns are looked for
    denominator: int = 4  # largest denominator of ratios of small integers
    stricter: float = 4.0  # times as much that equations count next beside measurements
    probes: int = 24  # draws of noise that tell the uncertainty of fields: to a seventh
    beyond: float = 0.25  # share of the domain that bases reach beyond it: no slope is favoured at its ends


SETTINGS = InverseSettings()
STEP = float(np.cbrt(np.finfo(np.float64).eps))  # relative change of an unknown for differences
