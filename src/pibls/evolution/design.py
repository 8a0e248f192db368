"""Which features and which quadrature rule: whole waves along periodic coordinates, waves and steep nodes elsewhere.

Where a solution on a line has fronts, nodes and points follow a *gauge*: the local length over which the solution
changes, from the steepest slope that was ever seen there. It may grow only slowly with the distance from a front, so
that what lies between fronts and smooth parts is resolved too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.evolution.basis import QuadratureRule
from pibls.evolution.form import Evolution
from pibls.features import BroadNetwork, FeatureGroup, activation
from pibls.features.scales import draw_features
from pibls.problem import Opposite
from pibls.quadrature.rules import periodic, tensor

STEEPEST = 5000.0  # nothing is resolved beyond this: a jump would have no end

_GRADING = 0.6
_NODES_PER_GAUGE = 9.0
_PANEL = 10
# By the number of coordinates, the last ones also for more of them.
_WAVES = (10.0, 3.5, 2.8, 2.0)
_NODES = (40, 110, 300, 500)
_POINTS = 3.0  # of the rule, for each node


@dataclass(frozen=True, eq=False)
class Monitor:
    """How steep a solution gets along a coordinate normalised to [−1, 1], and its local length, a graded function.

    >>> monitor = Monitor(np.array([-1.0, 0.0, 1.0]), np.array([0.1, 50.0, 0.1]))
    >>> monitor.at(np.array([0.0, -1.0])).round(2)
    array([0.02, 0.62])
    """

    places: FloatArray
    steepness: FloatArray  # the steepest slope there over all times, divided by the range of the field

    @property
    def peak(self) -> float:
        """The steepest of all."""
        return float(self.steepness.max())

    def sharpened(self, places: FloatArray, factor: float) -> Monitor:
        """Return a monitor with lengths that are shorter by a factor near the given places."""
        steepness = np.minimum(factor / self.at(places), STEEPEST)
        return Monitor(np.append(self.places, places), np.append(self.steepness, steepness))

    @cached_property
    def gauge(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Places in order, the lengths there, and how many lengths lie before each."""
        places, rows = np.unique(self.places, return_inverse=True)
        steepness = np.zeros(len(places))
        np.maximum.at(steepness, rows, self.steepness)
        own = 1.0 / np.maximum(steepness, 1.0)  # no longer than half the domain
        # The lengths may grow by so much per distance: forwards, then backwards.
        reached = np.minimum.accumulate(own - _GRADING * places) + _GRADING * places
        lengths = np.minimum.accumulate((reached + _GRADING * places)[::-1])[::-1] - _GRADING * places
        density = 1.0 / lengths
        return places, lengths, np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(places)))

    @property
    def total(self) -> float:
        """How many lengths the domain has."""
        return float(self.gauge[2][-1])

    def spread(self, fractions: FloatArray) -> FloatArray:
        """Return places such that equal differences of fractions hold equally many lengths."""
        return np.interp(fractions * self.total, self.gauge[2], self.gauge[0])

    def at(self, places: FloatArray) -> FloatArray:
        """Return the lengths at places."""
        return np.interp(places, self.gauge[0], self.gauge[1])


@dataclass(frozen=True, eq=False)
class Design:
    """Draws features and a rule for a space domain, of any fineness."""

    space: Any
    periodic: tuple[bool, ...]  # for each coordinate whether the solution repeats along it
    monitor: Monitor | None = None  # on a line, where the solution is steep, if it is

    @classmethod
    def of(cls, evolution: Evolution) -> Design:
        """Return the design of features while nothing is known of the solution."""

        def repeats(coordinate: str) -> bool:
            return all(
                any(isinstance(s.place, Opposite) and s.place.low.name == f"{coordinate}_min" for s in conditions)
                for conditions in map(evolution.conditions_on, evolution.problem.field_names)
            )

        space = evolution.space
        return cls(space, () if space is None else tuple(repeats(symbol.name) for symbol in space.coordinates))

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

    def of_dimension(self, values: tuple[float, ...]) -> float:
        """Return the value for the dimension of space, of one per dimension; the last is also for more."""
        return values[min(max(self.dimension, 1), len(values)) - 1]

    def excess(self, monitor: Monitor) -> float:
        """Return the largest ratio of the slope of a solution to that which the features are made for."""
        if self.monitor is None:
            return math.inf
        # Place by place: what an unresolved solution showed elsewhere says nothing about here.
        return float(np.max(monitor.steepness * self.monitor.at(monitor.places)))

    def nodes(self, fineness: float) -> int:
        """Return about how many features there are."""
        if self.monitor is not None:
            return _NODES[0] + int(_NODES_PER_GAUGE * fineness * self.monitor.total)
        if all(self.periodic):
            return int((2 * self.harmonics(fineness) + 1) ** self.dimension)
        return int(self.of_dimension(_NODES) * fineness**self.dimension)

    def draw(self, fineness: float, rng: np.random.Generator) -> tuple[BroadNetwork, QuadratureRule]:
        """Return features and a quadrature rule; twice the fineness resolves half the length."""
        if self.monitor is not None:
            return self._graded(fineness, self.monitor, rng)
        if all(self.periodic):
            return self._harmonic(fineness)
        nodes = self.nodes(fineness)
        waves = self._waves(nodes, self.of_dimension(_WAVES) * fineness, rng)
        rule = self.space.quadrature(int(_POINTS * nodes) + 60)
        return BroadNetwork(self.center, (waves,)), QuadratureRule(*rule)

    def _waves(self, nodes: int, largest: float, rng: np.random.Generator) -> FeatureGroup:
        group = draw_features(rng, self.half, "sin", nodes, largest / math.sqrt(3.0))
        unit = (math.pi / self.half)[:, None]
        whole = np.where(np.array(self.periodic)[:, None], unit * np.round(group.weights / unit), group.weights)
        return FeatureGroup(activation("sin"), whole, group.bias)

    def harmonics(self, fineness: float) -> int:
        """Return the highest number of waves along a periodic axis."""
        return max(2, round(self.of_dimension(_WAVES) * fineness))

    def _harmonic(self, fineness: float) -> tuple[BroadNetwork, QuadratureRule]:
        """Return all waves that fit into the period, up to a wave number, and the trapezoid rule."""
        most = self.harmonics(fineness)
        side = 4 * most + 2
        U, scale = tensor(*[periodic(side)] * self.dimension)
        low, high = self.space.bounds.T
        rule = QuadratureRule(low + U * (high - low), scale * self.space.measure)
        return harmonics(self.center, math.pi / self.half, most), rule

    def _graded(self, fineness: float, gauge: Monitor, rng: np.random.Generator) -> tuple[BroadNetwork, QuadratureRule]:
        count = max(10, int(_NODES_PER_GAUGE * fineness * gauge.total))
        places = gauge.spread((np.arange(count) + rng.random(count)) / count)
        slopes = fineness / gauge.at(places) * np.exp(math.log(2.0) * rng.uniform(-1.0, 1.0, count))
        steep = FeatureGroup(activation("tanh"), (slopes / self.half[0])[None, :], -slopes * places)
        groups = (self._waves(_NODES[0], _WAVES[0], rng), steep)
        panels = max(6, math.ceil(_POINTS * (count + _NODES[0]) / _PANEL))
        edges = gauge.spread(np.linspace(0.0, 1.0, panels + 1))
        edges[0], edges[-1] = -1.0, 1.0
        knots, weights = np.polynomial.legendre.leggauss(_PANEL)
        width = np.diff(edges)[:, None] / 2
        points = ((edges[:-1] + edges[1:])[:, None] / 2 + width * knots).ravel()
        scale = self.half[0] * (width * weights).ravel()
        return BroadNetwork(self.center, groups), QuadratureRule(self.center + self.half * points[:, None], scale)


def harmonics(center: FloatArray, units: FloatArray, most: int) -> BroadNetwork:
    """Return all waves up to a number along each axis, a sine and a cosine of each, given the first wave numbers."""
    lattice = np.stack(np.meshgrid(*[np.arange(-most, most + 1)] * len(units), indexing="ij"), axis=-1)
    waves = lattice.reshape(-1, len(units))
    first = [tuple(wave) > (0,) * len(units) for wave in waves.tolist()]
    weights = np.ascontiguousarray((waves * units).T)
    group = FeatureGroup(activation("sin"), weights, np.where(first, 0.0, math.pi / 2))
    return BroadNetwork(center, (group,))
