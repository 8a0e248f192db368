"""Which features and which quadrature rule: whole waves along periodic coordinates, waves and steep nodes elsewhere.

Where a solution has fronts, nodes and points follow a *gauge*: the local length over which the solution changes, from
the steepest slope that was ever seen there. It may grow only slowly with the distance from a front, so that what lies
between fronts and smooth parts is resolved too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.features import BroadNetwork, FeatureGroup, activation
from pibls.features.scales import draw_features, draw_steep_features
from pibls.geometry.rules import tensor
from pibls.lines.basis import Rule

__all__ = ["STEEPEST", "Design", "Gauge", "Monitor"]

STEEPEST = 5000.0  # nothing is resolved beyond this: a jump would have no end

_GRADING = 0.6
_LONGEST = 1.0  # a gauge never exceeds half the domain
_NODES_PER_GAUGE = 9.0
_STEEPNESS = 1.0
_SPREAD = math.log(2.0)
_BASE = (14.0, 50)  # waves beside the steep nodes: largest wave number, and how many
_PANEL = 10
_POINTS_PER_NODE = 2.5
_WAVES = {1: 10.0, 2: 3.5, 3: 2.8}
_FEWEST_WAVES = 2.0
_NODES = {1: 40, 2: 110, 3: 300}
_MANY_NODES = 500
_POINTS = {1: 2.5, 2: 3.0, 3: 3.0}


@dataclass(frozen=True, eq=False)
class Monitor:
    """How steep a solution gets, in coordinates normalised to [−1, 1].

    Attributes
    ----------
    places
        Points, shape (n, d).
    slopes
        The steepest gradient there over all times, divided by the range of the field, shape (n, d).
    """

    places: FloatArray
    slopes: FloatArray

    @property
    def steepness(self) -> FloatArray:
        """Lengths of the slopes."""
        return np.asarray(np.linalg.norm(self.slopes, axis=1))

    @property
    def peak(self) -> float:
        """The steepest of all."""
        return float(self.steepness.max())

    def sharpened(self, places: FloatArray, factor: float) -> Monitor:
        """Return a monitor of one coordinate that makes its gauge shorter by a factor near the given places."""
        gauge = Gauge.of(self)
        slopes = np.minimum(factor / gauge.at(places[:, 0]), STEEPEST)
        return Monitor(np.vstack([self.places, places]), np.concatenate([self.slopes, slopes[:, None]]))


@dataclass(frozen=True, eq=False)
class Gauge:
    """The local length of a solution along one normalised coordinate, as a graded function.

    >>> gauge = Gauge.of(Monitor(np.array([[-1.0], [0.0], [1.0]]), np.array([[0.1], [50.0], [0.1]])))
    >>> float(gauge.lengths[1]), float(gauge.lengths[0].round(2))
    (0.02, 0.62)
    """

    places: FloatArray
    lengths: FloatArray

    @classmethod
    def of(cls, monitor: Monitor) -> Gauge:
        """Return the gauge of a monitored solution."""
        places, rows = np.unique(monitor.places[:, 0], return_inverse=True)
        steepness = np.zeros(len(places))
        np.maximum.at(steepness, rows, monitor.steepness)
        own = 1.0 / np.maximum(steepness, 1.0 / _LONGEST)
        # The lengths may grow by so much per distance: forwards, then backwards.
        reached = np.minimum.accumulate(own - _GRADING * places) + _GRADING * places
        back = np.minimum.accumulate((reached + _GRADING * places)[::-1])[::-1] - _GRADING * places
        return cls(places, back)

    @property
    def _mass(self) -> FloatArray:
        density = 1.0 / self.lengths
        return np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(self.places)))

    @property
    def total(self) -> float:
        """How many lengths the domain has."""
        return float(self._mass[-1])

    def spread(self, fractions: FloatArray) -> FloatArray:
        """Return places such that equal differences of fractions hold equally many lengths."""
        return np.interp(fractions * self.total, self._mass, self.places)

    def at(self, places: FloatArray) -> FloatArray:
        """Return the lengths at places."""
        return np.interp(places, self.places, self.lengths)


@dataclass(frozen=True, eq=False)
class Design:
    """Draws features and a rule for a space domain, of any fineness.

    Parameters
    ----------
    space
        The space domain.
    periodic
        For each coordinate whether the solution repeats along it.
    monitor
        Where the solution is steep, if it is.
    """

    space: Any
    periodic: tuple[bool, ...]
    monitor: Monitor | None = None

    @property
    def dimension(self) -> int:
        """Number of space coordinates."""
        return len(self.periodic)

    @property
    def half(self) -> FloatArray:
        """Half the widths of the domain."""
        return np.asarray(np.ptp(self.space.bounds, axis=1) / 2)

    @property
    def center(self) -> FloatArray:
        """The middle of the domain."""
        return np.asarray(self.space.bounds.mean(axis=1))

    def excess(self, monitor: Monitor) -> float:
        """Return how much steeper a solution is, where it is worst, than what the features are made for."""
        if self.monitor is None:
            return math.inf
        if self.dimension > 1:
            return monitor.peak / self.monitor.peak
        # Place by place: what an unresolved solution showed elsewhere says nothing about here.
        return float(np.max(monitor.steepness * Gauge.of(self.monitor).at(monitor.places[:, 0])))

    def nodes(self, fineness: float) -> int:
        """Return about how many features there are."""
        if self.monitor is not None and self.dimension == 1:
            return _BASE[1] + int(_NODES_PER_GAUGE * fineness * Gauge.of(self.monitor).total)
        if all(self.periodic):
            return int((2 * self._harmonics(fineness) + 1) ** self.dimension)
        return int(_NODES.get(self.dimension, _MANY_NODES) * fineness**self.dimension)

    def draw(self, fineness: float, rng: np.random.Generator) -> tuple[BroadNetwork, Rule]:
        """Return features and a quadrature rule; twice the fineness resolves half the length."""
        if self.dimension == 1 and self.monitor is not None:
            return self._graded(fineness, Gauge.of(self.monitor), rng)
        if all(self.periodic):
            return self._harmonic(fineness)
        groups = [self._waves(self.nodes(fineness), _WAVES.get(self.dimension, _FEWEST_WAVES) * fineness, rng)]
        if self.monitor is not None:
            groups.append(self._steep(self.nodes(fineness) // 2, fineness, rng))
        return BroadNetwork(self.center, tuple(groups)), self._rule(sum(group.nodes for group in groups))

    def _waves(self, nodes: int, largest: float, rng: np.random.Generator) -> FeatureGroup:
        group = draw_features(rng, self.half, "sin", nodes, largest / math.sqrt(3.0))
        if not any(self.periodic):
            return group
        weights = group.weights.copy()
        for axis, repeats in enumerate(self.periodic):
            if repeats:
                unit = math.pi / self.half[axis]
                weights[axis] = unit * np.round(weights[axis] / unit)
        return FeatureGroup(activation("sin"), weights, group.bias)

    def _steep(self, nodes: int, fineness: float, rng: np.random.Generator) -> FeatureGroup:
        assert self.monitor is not None
        chance = self.monitor.steepness / self.monitor.steepness.sum()
        rows = rng.choice(len(chance), size=nodes, p=chance)
        return draw_steep_features(rng, self.half, self.monitor.places[rows], fineness * self.monitor.slopes[rows])

    def _rule(self, nodes: int) -> Rule:
        return Rule(*self.space.quadrature(int(_POINTS.get(self.dimension, 3.0) * nodes) + 60))

    def _harmonics(self, fineness: float) -> int:
        return max(2, round(_WAVES.get(self.dimension, _FEWEST_WAVES) * fineness))

    def _harmonic(self, fineness: float) -> tuple[BroadNetwork, Rule]:
        """Return all waves that fit into the period, up to a wave number, and the trapezoid rule."""
        most = self._harmonics(fineness)
        lattice = np.stack(np.meshgrid(*[np.arange(-most, most + 1)] * self.dimension, indexing="ij"), axis=-1)
        waves = lattice.reshape(-1, self.dimension)
        # Of each wave and its mirror image one is a sine and the other a cosine.
        first = [tuple(wave) > (0,) * self.dimension for wave in waves.tolist()]
        phases = np.where(first, 0.0, math.pi / 2)
        weights = (waves * (math.pi / self.half)).T
        side = 4 * most + 2
        U, scale = tensor(*[(np.arange(side) / side, np.full(side, 1.0 / side))] * self.dimension)
        low, high = self.space.bounds.T
        rule = Rule(low + U * (high - low), scale * self.space.measure)
        return BroadNetwork(
            self.center, (FeatureGroup(activation("sin"), np.ascontiguousarray(weights), phases),)
        ), rule

    def _graded(self, fineness: float, gauge: Gauge, rng: np.random.Generator) -> tuple[BroadNetwork, Rule]:
        count = max(10, int(_NODES_PER_GAUGE * fineness * gauge.total))
        places = gauge.spread((np.arange(count) + rng.random(count)) / count)
        slopes = _STEEPNESS * fineness / gauge.at(places) * np.exp(_SPREAD * rng.uniform(-1.0, 1.0, count))
        steep = FeatureGroup(activation("tanh"), (slopes / self.half[0])[None, :], -slopes * places)
        waves, nodes = _BASE
        groups = [self._waves(nodes, waves, rng), steep]
        panels = max(6, math.ceil(_POINTS_PER_NODE * (count + nodes) / _PANEL))
        edges = gauge.spread(np.linspace(0.0, 1.0, panels + 1))
        edges[0], edges[-1] = -1.0, 1.0
        knots, weights = np.polynomial.legendre.leggauss(_PANEL)
        width = np.diff(edges)[:, None] / 2
        points = ((edges[:-1] + edges[1:])[:, None] / 2 + width * knots).ravel()
        scale = self.half[0] * (width * weights).ravel()
        return BroadNetwork(self.center, tuple(groups)), Rule(self.center + self.half * points[:, None], scale)
