"""Pieces of curves without gaps, and parameters that give a density."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import leggauss, legint, legval, legvander

from pibls.checks import FloatArray, IntArray
from pibls.geometry.patch import DerivedPatch, FlippedPatch, Located, Patch, TimedPatch
from pibls.geometry.restricted import RestrictedPatch
from pibls.quadrature.roots import bracketed

_PANELS, _MOST_PANELS = 32, 2**12
_ORDER = 10


@dataclass(frozen=True)
class Warp:
    """The map of [0, 1] onto itself under which even parameters get a given density.

    The density is replaced by Legendre series on panels, which are halved until its integral settles.
    """

    density: Callable[[FloatArray], FloatArray]

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """Coefficients of the density in each panel, and its integrals up to the ends of the panels."""
        nodes, weights = leggauss(_ORDER)
        # Legendre polynomials are orthogonal for the rule, too.
        project = (legvander(nodes, _ORDER - 1) * weights[:, None]).T * (np.arange(_ORDER)[:, None] + 0.5)
        panels, previous = _PANELS, np.inf
        while True:
            places = (np.arange(panels)[:, None] + (nodes + 1.0) / 2.0) / panels
            series = project @ self.density(places.ravel()).reshape(places.shape).T
            sums = np.concatenate([[0.0], np.cumsum(series[0]) / panels])
            if abs(sums[-1] - previous) <= 1e-14 * sums[-1] or panels >= _MOST_PANELS:
                return series, sums
            panels, previous = 2 * panels, sums[-1]

    @cached_property
    def _rises(self) -> FloatArray:
        """Coefficients of the integrals of the density from the start of each panel, in panels of length two."""
        return np.asarray(legint(self._table[0], lbnd=-1))

    @property
    def total(self) -> float:
        """The integral of the density."""
        return float(self._table[1][-1])

    def inverse(self, fraction: FloatArray) -> FloatArray:
        """Return the parameters up to which fractions of the total lie.

        >>> Warp(lambda s: s).inverse(np.array([0.25, 1.0])).round(12)
        array([0.5, 1. ])
        """
        series, sums = self._table
        panels = len(sums) - 1
        target = np.clip(fraction, 0.0, 1.0) * sums[-1]
        panel = np.clip(np.searchsorted(sums, target, side="right") - 1, 0, panels - 1)
        # In panels of length two, in which series are at home.
        target = (target - sums[panel]) * (2 * panels)
        mean = series[0, panel]
        guess = np.clip(target / np.where(mean > 0.0, mean, np.inf) - 1.0, -1.0, 1.0)

        def miss(s: FloatArray, rows: IntArray) -> FloatArray:
            return np.asarray(legval(s, self._rises[:, panel[rows]], tensor=False) - target[rows])

        s = bracketed(miss, np.full(len(target), -1.0), np.ones(len(target)), guess)
        return np.asarray((panel + (s + 1.0) / 2.0) / panels)


@dataclass(frozen=True)
class _SpanPatch(DerivedPatch):
    """A range of the parameter of a curve; points of its other spans, of the same part of the boundary, are on it."""

    start: float
    stop: float

    @property
    def measure(self) -> float:
        # The parameter of a curve is its arc length.
        return self.base.measure * (self.stop - self.start)

    def at(self, U: FloatArray) -> Located:
        return self.base.at(self.start + U * (self.stop - self.start))


def smooth_spans(patch: Patch) -> list[tuple[float, float]]:
    """Return the ranges of the first parameter in which a patch is smooth; a curve that was cut may have gaps."""
    if isinstance(patch, FlippedPatch | TimedPatch):
        return smooth_spans(patch.base) if patch.base.parameters else [(0.0, 1.0)]
    if not isinstance(patch, RestrictedPatch) or patch.parameters != 1:
        return [(0.0, 1.0)]
    lengths = patch._pieces[:, 1] - patch._pieces[:, 0]
    ends = np.cumsum(lengths) / lengths.sum()
    found = []
    inner = smooth_spans(patch.base)
    for start, stop, (a, b) in zip(np.append(0.0, ends[:-1]), ends, patch._pieces, strict=True):
        rate = (stop - start) / (b - a)
        cuts = [(max(a, lo), min(b, hi)) for lo, hi in inner]
        found += [(float(start + (lo - a) * rate), float(start + (hi - a) * rate)) for lo, hi in cuts if hi > lo]
    return found


def smooth_pieces(patch: Patch) -> list[Patch]:
    """Return a curve as pieces without gaps."""
    spans = [] if patch.empty else smooth_spans(patch)
    return [patch] if len(spans) == 1 else [_SpanPatch(patch, start, stop) for start, stop in spans]
