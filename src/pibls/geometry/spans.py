"""Pieces of curves without gaps, and parameters that give a density."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from pibls.checks import BoolArray, FloatArray
from pibls.geometry.patch import FlippedPatch, Located, Patch, SurfaceRule
from pibls.geometry.restricted import RestrictedPatch
from pibls.geometry.rules import gauss

__all__ = ["SpanPatch", "Warp", "smooth_spans"]


_PANELS = 32
_ORDER = 8
_ROUNDS = 60


@dataclass(frozen=True)
class Warp:
    """The map of [0, 1] onto itself under which even parameters get a given density."""

    density: Callable[[FloatArray], FloatArray]

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        knots = np.linspace(0.0, 1.0, _PANELS + 1)
        return knots, np.concatenate([[0.0], np.cumsum(self._integral(knots[:-1], knots[1:]))])

    def _integral(self, start: FloatArray, stop: FloatArray) -> FloatArray:
        nodes, weights = gauss(_ORDER)
        s = start[:, None] + nodes * (stop - start)[:, None]
        return np.asarray((self.density(s.ravel()).reshape(s.shape) @ weights) * (stop - start))

    @property
    def total(self) -> float:
        """The integral of the density."""
        return float(self._table[1][-1])

    def inverse(self, fraction: FloatArray) -> FloatArray:
        """Return the parameters up to which fractions of the total lie, by Newton's method kept in a bracket.

        >>> Warp(lambda s: s).inverse(np.array([0.25, 1.0])).round(12)
        array([0.5, 1. ])
        """
        knots, sums = self._table
        target = np.clip(fraction, 0.0, 1.0) * sums[-1]
        panel = np.clip(np.searchsorted(sums, target, side="right") - 1, 0, _PANELS - 1)
        start, low, high = knots[panel], knots[panel], knots[panel + 1]
        s = (low + high) / 2
        for _ in range(_ROUNDS):
            miss = sums[panel] + self._integral(start, s) - target
            low, high = np.where(miss <= 0.0, s, low), np.where(miss > 0.0, s, high)
            slope = self.density(s)
            step = np.divide(miss, slope, out=np.full_like(miss, np.inf), where=slope > 0.0)
            new = np.where((s - step > low) & (s - step < high), s - step, (low + high) / 2)
            if not len(s) or np.abs(new - s).max() <= 1e-15:
                return np.asarray(new)
            s = new
        return np.asarray(s)


@dataclass(frozen=True)
class SpanPatch(Patch):
    """A range of the parameter of a curve."""

    base: Patch
    start: float
    stop: float

    @property
    def parameters(self) -> int:
        """One."""
        return 1

    @property
    def measure(self) -> float:
        """The share of the base; the parameter of a curve is its arc length."""
        return self.base.measure * (self.stop - self.start)

    @property
    def exact(self) -> bool:
        """As the base."""
        return self.base.exact

    def at(self, U: FloatArray) -> Located:
        """Return what the base does there."""
        return self.base.at(self.start + U * (self.stop - self.start))

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points are on the base: its other spans belong to the same part of the boundary."""
        return self.base.contains(X, tolerance)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the normals of the base."""
        return self.base.normals(X)

    def quadrature(self, n: int) -> SurfaceRule:
        """Return Gauss points on the span."""
        nodes, weights = gauss(max(1, n))
        points, normals, _ = self.at(nodes[:, None])
        return points, normals, weights * self.measure


def smooth_spans(patch: Patch) -> list[Patch]:
    """Return a curve as pieces without gaps: what a condition leaves of one may have several."""
    if patch.empty:
        return []
    if isinstance(patch, FlippedPatch):
        return [FlippedPatch(piece) for piece in smooth_spans(patch.base)]
    if not isinstance(patch, RestrictedPatch) or len(patch._pieces) == 1:
        return [patch]
    ends = np.cumsum(patch._pieces[:, 1] - patch._pieces[:, 0])
    cuts = [0.0, *(ends / ends[-1]).tolist()]
    return [SpanPatch(patch, start, stop) for start, stop in pairwise(cuts)]
