"""Colour scales: even steps for values, symmetric about zero for signed ones, decades for errors and residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm, Normalize

from pibls.checks import FloatArray

SEQUENTIAL = "viridis"
DIVERGING = "RdBu_r"
MAGNITUDE = "magma"

_SIGNED_SHARE = 0.1
_TAIL = 0.02
_DEEPEST = 1e-8
_ENDS = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}


@dataclass(frozen=True, eq=False)
class Scale:
    """A colour map and how values are spread over it."""

    norm: Any
    colours: str
    extend: str = "neither"  # the ends of the colour bar beyond which there are values


def value_scale(values: FloatArray, *, steep: bool = False) -> Scale:
    """Return the scale for values: symmetric about zero if both signs matter, from lowest to highest otherwise.

    A sign counts as soon as it reaches a tenth of the largest size, so that round-off below zero does not change the
    picture of a positive solution. What is ``steep``, such as a stress in a corner, may be so much larger in one place
    that nothing would be seen elsewhere: then the scale ends before it, and the colour bar shows that it does.

    >>> scale = value_scale(np.array([-0.5, 2.0]))
    >>> scale.colours, scale.norm.vmin, scale.norm.vmax
    ('RdBu_r', -2.0, 2.0)
    """
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    low, high = least, most
    if steep:
        middle, ends = float(np.nanmedian(values)), np.nanquantile(values, [_TAIL, 1.0 - _TAIL])
        reach = 3.0 * float(np.abs(ends - middle).max())
        if reach > 0.0:
            low, high = max(low, middle - reach), min(high, middle + reach)
    scale = _spread_over(low, high)
    below, above = least < scale.norm.vmin, most > scale.norm.vmax
    return replace(scale, extend=_ENDS[below, above])


def _spread_over(low: float, high: float) -> Scale:
    largest = max(abs(low), abs(high))
    if low < 0.0 < high and min(-low, high) >= _SIGNED_SHARE * largest:
        largest = _rounded_up(largest, largest)
        return Scale(Normalize(-largest, largest), DIVERGING)
    if high - low <= 1e-9 * largest or largest == 0.0:
        pad = 0.5 * largest or 0.5
        low, high = low - pad, high + pad
    return Scale(Normalize(-_rounded_up(-low, high - low), _rounded_up(high, high - low)), SEQUENTIAL)


def _rounded_up(limit: float, extent: float) -> float:
    """Return the next round number if it is within 0.2 % of the extent, so that 0.9998 does not lose the tick at 1."""
    unit = 10.0 ** math.floor(math.log10(extent)) / 10
    # Adding zero turns a rounded −0.0, which would be labelled as such, into 0.0.
    rounded = math.ceil(limit / unit) * unit + 0.0
    return rounded if 0.0 <= rounded - limit <= 0.002 * extent else limit


def decades(values: FloatArray) -> tuple[float, float] | None:
    """Return the range worth showing of sizes that span decades, or None where all are zero.

    It leaves out the lowest 2 % (a signed error passes through zero somewhere) and what is 8 decades below the
    largest, and is at least one decade.

    >>> decades(np.logspace(-30, 0, 301))
    (1e-08, 1.0)
    """
    positive = values[values > 0.0]
    if positive.size == 0:
        return None
    high = float(positive.max())
    low = max(float(np.quantile(positive, _TAIL)), _DEEPEST * high)
    return min(low, high / 10), high


def magnitude_scale(values: FloatArray) -> Scale:
    """Return the logarithmic scale for sizes; zeros get its lowest colour.

    >>> magnitude_scale(np.array([1e-6, 1e-5, 1e-3])).norm.vmax
    0.001
    """
    limits = decades(values)
    if limits is None:
        return Scale(Normalize(0.0, 1.0), MAGNITUDE)
    return Scale(LogNorm(*limits, clip=True), MAGNITUDE)
