"""Fits of one problem at any width and scale: what the automatic solver experiments with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from pibls.checks import FloatArray
from pibls.features import BroadNetwork, FeatureGroup
from pibls.features.harmonic import HarmonicGroup, draw_special
from pibls.features.scales import draw_features, draw_sparse_features
from pibls.geometry import Domain, Points
from pibls.geometry.landmarks import Corner, corners, find_cut, holes
from pibls.geometry.points import interior_points
from pibls.methods import Recipe, fit
from pibls.methods.fit import on_device
from pibls.problem import Problem
from pibls.solution import Solution
from pibls.solution.sizes import reference_sizes
from pibls.solvers import LeastSquares
from pibls.system import Balanced
from pibls.tuning.growth import Grown
from pibls.tuning.judge import Judge
from pibls.tuning.jumps import graded

__all__ = ["Block", "Laboratory", "Scale", "relative_distance"]

Scale = tuple[float, ...]
_PILOT, _PILOT_MANY = {1: 60, 2: 120, 3: 200}, 300
_ROWS_PER_NODE = 2.2
_FULL_FACES = 3
_FEW_AXES = 4
_ROWS_PER_NODE_MANY = 1.3
_INITIAL_PER_NODE_MANY = 0.3
_SPARSE_SHARE = 0.4
_COMPARE_POINTS, _COMPARE_POINTS_LINE = 1000, 8000  # on a line they are cheap, and find thin layers
_HELD_OUT, _MOST_HELD_OUT = 31, 1000
_COMPARE = 77


@dataclass(frozen=True, eq=False)
class Block:
    """Nodes that were added together.

    Attributes
    ----------
    nodes, scale
        How many, and at which scale.
    active
        How many coordinates a node sees at most; all of them if None.
    group
        The nodes themselves, where they were not drawn at a scale but placed.
    """

    nodes: int
    scale: Scale
    active: int | None = None
    group: FeatureGroup | None = None

    def record(self) -> list[Any]:
        """Return what a solution keeps of it in its settings."""
        placed = ["placed"] if self.group is not None else []
        return [self.nodes, list(self.scale), *([] if self.active is None else [f"{self.active} axes"]), *placed]


@dataclass(frozen=True, eq=False)
class Laboratory:
    """A problem, the seed of all randomness, and where the arithmetic runs.

    Members with different ``twin`` numbers share nothing: neither nodes nor points. Given values jump at the corners
    ``jumps``, where more points lie; ``corner_nodes`` are added to every network.
    """

    problem: Problem
    seed: int
    twin: int = 0
    device: Any = None
    activation: str = "sin"
    jumps: tuple[Corner, ...] = ()
    corner_nodes: tuple[HarmonicGroup, ...] = ()

    @property
    def axes(self) -> int:
        """Number of coordinates."""
        return len(self.problem.domain.coordinates)

    @property
    def time_axis(self) -> int | None:
        """Position of the time coordinate."""
        time = self.problem.domain.time
        return None if time is None else self.problem.domain.coordinates.index(time)

    @property
    def pilot_nodes(self) -> int:
        """Width of a pilot: the narrowest network that tells one scale from another."""
        width = _PILOT.get(self.axes, _PILOT_MANY)
        return width if len(self.problem.fields) == 1 else max(40, int(width / 1.6))

    def other(self) -> Laboratory:
        """Return an independent laboratory for the same problem."""
        return replace(self, twin=self.twin + 1)

    def _seed(self, purpose: int) -> int:
        return int(np.random.SeedSequence((self.seed, self.twin, purpose)).generate_state(1)[0])

    def points(self, nodes: int) -> Points:
        """Return points for a network of so many nodes."""
        interior = max(20, int(_ROWS_PER_NODE * nodes))
        boundary = initial = None
        if self.axes > _FULL_FACES:
            # Most of a box of many dimensions is boundary; left to itself it would take nearly all rows.
            interior = boundary = max(20, int(_ROWS_PER_NODE_MANY * nodes))
            initial = max(20, int(_INITIAL_PER_NODE_MANY * nodes))
        if self._special:
            # Harmonic nodes are invisible to Laplace's equation: only boundary points determine them.
            boundary = 8 * (int(interior**0.5) + self.special_nodes)
        seed = self._seed(nodes)
        points = Points.sample(self.problem, interior, boundary, initial, method="kronecker", seed=seed)
        return graded(self.problem, points, self.jumps, seed)

    def blocks(self, nodes: int, scale: Scale) -> list[Block]:
        """Return blocks that make so many nodes of a scale; in many dimensions a part of them see few coordinates."""
        if self.axes <= _FEW_AXES:
            return [Block(nodes, scale)]
        sparse = int(_SPARSE_SHARE * nodes)
        return [Block(nodes - sparse, scale), Block(sparse, scale, active=2)]

    @property
    def special_nodes(self) -> int:
        """Number of nodes that come with the domain."""
        return sum(group.nodes for group in self._special)

    def network(self, blocks: Sequence[Block]) -> BroadNetwork:
        """Draw the network; each block is drawn for itself, so that a longer list keeps the nodes of a shorter one."""
        bounds = self.problem.domain.bounds
        half = (bounds[:, 1] - bounds[:, 0]) / 2
        children = np.random.default_rng(self._seed(0)).spawn(len(blocks))
        groups = tuple(self._group(block, half, rng) for block, rng in zip(blocks, children, strict=True))
        return BroadNetwork(bounds.mean(axis=1), groups, special=self._special)

    def _group(self, block: Block, half: FloatArray, rng: np.random.Generator) -> FeatureGroup:
        if block.group is not None:
            return block.group
        if block.active is not None:
            return draw_sparse_features(rng, half, self.activation, block.nodes, block.scale, block.active)
        return draw_features(rng, half, self.activation, block.nodes, block.scale)

    @cached_property
    def _special(self) -> tuple[HarmonicGroup, ...]:
        """Nodes that know the corners and holes of a plane domain."""
        domain = self.problem.domain
        plane = self.axes == 2 and domain.time is None
        landmarks = draw_special(cast(Domain, domain)) if plane and _has_landmarks(domain) else ()
        return (*landmarks, *self.corner_nodes)

    @cached_property
    def has_plain_corners(self) -> bool:
        """Whether there are re-entrant corners whose singular functions the networks lack.

        Such a problem may look like one that cannot be solved, however wide the network.
        """
        domain: Any = self.problem.domain
        found = corners(domain)
        flat = self.axes == 2 and domain.time is None
        return bool(found) and not (flat and all(find_cut(domain, corner) is not None for corner in found))

    def fit(self, blocks: Sequence[Block], points: Points) -> Solution:
        """Fit a network at points."""
        return self.fit_network(self.network(blocks), points, self._settings(blocks))

    def fit_network(
        self, network: BroadNetwork, points: Points, settings: Mapping[str, Any] = MappingProxyType({})
    ) -> Solution:
        """Fit a network that was made elsewhere."""
        recipe = Recipe("PIBLS", settings, self.seed, Balanced(), 0.0, LeastSquares())
        return fit(self.problem, points, on_device(network, self.device), recipe)

    def grown(self, blocks: Sequence[Block], points: Points) -> Grown | None:
        """Return the factorised system to which nodes and points can be appended, where that can be done.

        Conditions that hold exactly, and other devices, want a solve from the start.
        """
        if self.device is not None or any(statement.exact for statement in self.problem.statements):
            return None
        return Grown.start(self.problem, self.network(blocks), points)

    def solution(self, blocks: Sequence[Block], grown: Grown) -> Solution:
        """Return the solution of a factorised system of these blocks."""
        return grown.solution(self._settings(blocks), self.seed)

    def _settings(self, blocks: Sequence[Block]) -> dict[str, Any]:
        return {"activation": self.activation, "features": [block.record() for block in blocks]}

    def judge(self, nodes: int) -> Judge:
        """Return a judge with held-out points, fewer than a network of so many nodes is fitted at."""
        count = min(_MOST_HELD_OUT, max(150, nodes))
        # In many dimensions the boundary would take nearly all of the points.
        many = self.axes > _FULL_FACES
        boundary, initial = (count, count // 4) if many else (None, None)
        seed = self._seed(_HELD_OUT)
        held = Points.sample(self.problem, count, boundary, initial, method="kronecker", seed=seed)
        return Judge(self.problem, held)

    @cached_property
    def compare_points(self) -> Any:
        """Points at which solutions are compared, the same for twins."""
        seed = int(np.random.SeedSequence((self.seed, _COMPARE)).generate_state(1)[0])
        count = _COMPARE_POINTS if self.axes > 1 else _COMPARE_POINTS_LINE
        return interior_points(self.problem.domain, count, "kronecker", seed)

    def distance(self, one: Solution, two: Solution) -> float:
        """Return the relative L2 distance of two solutions; with several fields, the largest."""
        return relative_distance(one, two, self.compare_points)

    def turns(self, solution: Solution) -> float:
        """Return how often a solution changes by its own size from the first time to the last; zero without a time."""
        axis = self.time_axis
        if axis is None:
            return 0.0
        names, zero = self.problem.field_names, (0,) * self.axes
        once = tuple(int(i == axis) for i in range(self.axes))
        low, high = self.problem.domain.bounds[axis].tolist()
        values = solution.evaluate(self.compare_points, [(name, index) for name in names for index in (zero, once)])
        sizes = [float(np.linalg.norm(value)) for value in values]
        found = [rate / size for size, rate in zip(sizes[::2], sizes[1::2], strict=True) if size > 0]
        return float(high - low) * max(found, default=0.0)


def _has_landmarks(domain: Any) -> bool:
    return bool(corners(domain) or holes(domain))


def relative_distance(one: Solution, two: Solution, X: Any) -> float:
    """Return the relative L2 distance of two solutions over points; with several fields, the largest.

    A field that is zero, or nearly, is measured by what the others suggest for it.
    """
    zero = (0,) * X.shape[1]
    names = one.problem.field_names
    first, second = (solution.evaluate(X, [(name, zero) for name in names]) for solution in (one, two))
    own = {name: float(np.linalg.norm(values)) for name, values in zip(names, first, strict=True)}
    sizes = reference_sizes(one.problem, own)
    apart = (float(np.linalg.norm(a - b)) for a, b in zip(first, second, strict=True))
    return max(d / (sizes[name] if sizes[name] > 0 else 1.0) for name, d in zip(names, apart, strict=True))
