"""Fits of one problem at any width and scale: what the automatic solver experiments with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from pibls.features import BroadNetwork, draw_network
from pibls.features.harmonic import HarmonicGroup, draw_special
from pibls.geometry import Domain, Points
from pibls.geometry.landmarks import corners, holes
from pibls.geometry.points import interior_points
from pibls.methods import Recipe, fit
from pibls.methods.fit import on_device
from pibls.problem import Problem
from pibls.solution import Solution
from pibls.solvers import LeastSquares
from pibls.system import Balanced
from pibls.tuning.judge import Judge

__all__ = ["Block", "Laboratory", "relative_distance"]

Scale = tuple[float, ...]
_ROWS_PER_NODE = 2.2
_COMPARE_POINTS = 1000
_HELD_OUT = 31
_COMPARE = 77


@dataclass(frozen=True)
class Block:
    """Nodes that were added together: how many, and at which scale."""

    nodes: int
    scale: Scale


@dataclass(frozen=True, eq=False)
class Laboratory:
    """A problem, the seed of all randomness, and where the arithmetic runs.

    Members with different ``twin`` numbers share nothing: neither nodes nor points.
    """

    problem: Problem
    seed: int
    twin: int = 0
    device: Any = None
    activation: str = "sin"

    @property
    def axes(self) -> int:
        """Number of coordinates."""
        return len(self.problem.domain.coordinates)

    @property
    def time_axis(self) -> int | None:
        """Position of the time coordinate."""
        time = self.problem.domain.time
        return None if time is None else self.problem.domain.coordinates.index(time)

    def other(self) -> Laboratory:
        """Return an independent laboratory for the same problem."""
        return replace(self, twin=self.twin + 1)

    def _seed(self, purpose: int) -> int:
        return int(np.random.SeedSequence((self.seed, self.twin, purpose)).generate_state(1)[0])

    def points(self, nodes: int) -> Points:
        """Return points for a network of so many nodes."""
        interior = max(20, int(_ROWS_PER_NODE * nodes))
        # Harmonic nodes are invisible to Laplace's equation: only boundary points determine them.
        boundary = 8 * (int(interior**0.5) + self.special_nodes) if self._special else None
        return Points.sample(self.problem, interior, boundary, method="kronecker", seed=self._seed(nodes))

    @property
    def special_nodes(self) -> int:
        """Number of nodes that come with the domain."""
        return sum(group.nodes for group in self._special)

    def network(self, blocks: Sequence[Block]) -> BroadNetwork:
        """Draw the network; each block is drawn for itself, so that a longer list keeps the nodes of a shorter one."""
        rng = np.random.default_rng(self._seed(0))
        specs = [(self.activation, block.nodes, block.scale) for block in blocks]
        network = draw_network(rng, self.problem.domain.bounds, specs)
        return replace(network, special=self._special) if self._special else network

    @cached_property
    def _special(self) -> tuple[HarmonicGroup, ...]:
        """Nodes that know the corners and holes of a plane domain."""
        domain = self.problem.domain
        return (
            draw_special(cast(Domain, domain))
            if self.axes == 2 and domain.time is None and _has_landmarks(domain)
            else ()
        )

    def fit(self, blocks: Sequence[Block], points: Points) -> Solution:
        """Fit a network at points."""
        settings = {"activation": self.activation, "features": [[b.nodes, list(b.scale)] for b in blocks]}
        recipe = Recipe("PIBLS", settings, self.seed, Balanced(), 0.0, LeastSquares())
        return fit(self.problem, points, on_device(self.network(blocks), self.device), recipe)

    def judge(self, nodes: int) -> Judge:
        """Return a judge with held-out points, fewer than a network of so many nodes is fitted at."""
        held = Points.sample(self.problem, max(150, nodes), method="kronecker", seed=self._seed(_HELD_OUT))
        return Judge(self.problem, held)

    @cached_property
    def compare_points(self) -> Any:
        """Points at which solutions are compared, the same for twins."""
        seed = int(np.random.SeedSequence((self.seed, _COMPARE)).generate_state(1)[0])
        return interior_points(self.problem.domain, _COMPARE_POINTS, "kronecker", seed)

    def distance(self, one: Solution, two: Solution) -> float:
        """Return the relative L2 distance of two solutions; with several fields, the largest."""
        return relative_distance(one, two, self.compare_points)


def _has_landmarks(domain: Any) -> bool:
    return bool(corners(domain) or holes(domain))


def relative_distance(one: Solution, two: Solution, X: Any) -> float:
    """Return the relative L2 distance of two solutions over points; with several fields, the largest."""
    zero = (0,) * X.shape[1]
    wanted = [(name, zero) for name in one.problem.field_names]
    distances = []
    for first, second in zip(one.evaluate(X, wanted), two.evaluate(X, wanted), strict=True):
        size = float(np.linalg.norm(first))
        distances.append(float(np.linalg.norm(first - second)) / (size if size > 0 else 1.0))
    return max(distances)
