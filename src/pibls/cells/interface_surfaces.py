"""Interfaces in space: zero surfaces of a level function, integrated as graphs over coordinate planes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.line_quadrature import LINES, NODES, quadrature_on_lines
from pibls.cells.surface import Rule
from pibls.checks import BoolArray, FloatArray
from pibls.geometry.sampling import kronecker
from pibls.problem.level import Level
from pibls.quadrature.roots import CLOSE, HALVINGS, SCAN, bracketed
from pibls.refinement.standards import CANDIDATES, MOST, NEGLIGIBLE, PLAIN, POINTS

Materials = Callable[[FloatArray], Any]


def changes(materials: Materials, X: FloatArray, normals: FloatArray, size: float) -> BoolArray:
    """Return at which points of a surface of some size the materials on both sides differ."""
    step = CLOSE * size * normals
    return np.asarray(materials(X + step) != materials(X - step))


@dataclass(frozen=True, eq=False)
class InterfaceSurface:
    """The zero surface of a level function between two materials, in a box and inside a domain."""

    level: Level
    inside: Callable[[FloatArray], BoolArray]
    materials: Materials
    low: FloatArray
    high: FloatArray
    seeds: FloatArray = field(default_factory=lambda: np.empty((0, 3)))

    def within(self, low: FloatArray, high: FloatArray) -> list[InterfaceSurface]:
        """Return the surface in a smaller box, if there is any."""
        own = replace(self, low=low, high=high, seeds=self.points)
        return [own] if len(own.points) else []

    @cached_property
    def points(self) -> FloatArray:
        """Some points of the surface, including those found in a larger box: it may be a sliver."""
        return _between(np.concatenate([self._around[self._held], self.seeds]), self.low, self.high)

    @cached_property
    def _held(self) -> BoolArray:
        return self.has(self._around)

    def rule(self, low: FloatArray, high: FloatArray, count: int) -> Rule | None:
        """Return its quadrature rule, which is exact enough for any degree; the box is its own."""
        del low, high, count
        return self._rule

    @cached_property
    def _rule(self) -> Rule | None:
        graphs = self._graphs() if len(self.points) else ()
        rules = [rule for graph in graphs if len((rule := graph.rule()).weights)]
        return Rule.joined(rules) if rules else None

    def _graphs(self, halvings: int = 0) -> Iterator[Graph]:
        """Yield graphs that together are the surface: the box is halved until each half contains one graph."""
        low, high, last, X = self.low, self.high, halvings == HALVINGS, self.points
        # The lines cover the bounding box of the surface, which may be small in its cell.
        tight = np.stack([X.min(axis=0), X.max(axis=0)]) + NEGLIGIBLE * np.outer([-1, 1], high - low)
        if (tight[1] - tight[0] < MOST * (high - low)).any() and not last:
            for own in self.within(np.maximum(low, tight[0]), np.minimum(high, tight[1])):
                yield from own._graphs(halvings)
            return
        normals = self.normals(X)
        least = np.maximum(normals.min(axis=0), -normals.max(axis=0))
        axis, upright = int(least.argmax()), float(least.max())
        graph = Graph(self, axis, float(np.sign(normals[0, axis])), not self._held.all())
        if last or (upright > MOST and graph.has(X)):
            yield graph
            return
        # The cut is in the middle of the surface, so that no tip is isolated.
        cut, middle = int(np.ptp(X, axis=0).argmax()), (X.min(axis=0) + X.max(axis=0)) / 2
        ahead = np.arange(len(low)) == (axis if upright > MOST else cut)
        for ends in ((low, np.where(ahead, middle, high)), (np.where(ahead, middle, low), high)):
            for own in self.within(*ends):
                yield from own._graphs(halvings + 1)

    @cached_property
    def _around(self) -> FloatArray:
        """Some zeros of the level function in the box and around it, projected from nearby points."""
        low, high, tries = self.low, self.high, SCAN**2
        depth = NEGLIGIBLE * (high - low)
        while True:
            X = low - depth + (high - low + 2 * depth) * kronecker(tries, len(low))
            steep = np.linalg.norm(self.level.gradient(X), axis=1)
            near = np.abs(self.level(X)) < float(depth.min()) * steep
            found = self.level.pulled(self.level.pulled(X[near]))
            found = _between(found, low - depth, high + depth)
            if not near.any() or len(_between(found, low, high)) >= POINTS or tries >= CANDIDATES:
                return found
            tries *= 4

    def has(self, X: FloatArray) -> BoolArray:
        """Return which zeros of the level function belong to the surface."""
        size = float((self.high - self.low).min())
        return np.asarray(self.inside(X) & changes(self.materials, X, self.normals(X), size))

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the unit gradients of the level function."""
        slopes = self.level.gradient(X)
        return np.asarray(slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300))


def _between(X: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    return X[((low < X) & (high > X)).all(axis=1)]


@dataclass(frozen=True, eq=False)
class Graph:
    """A surface in a box that every line along an axis meets at most once; more than the box may cut it off."""

    surface: InterfaceSurface
    axis: int
    rise: float
    cut: bool

    def rule(self) -> Rule:
        """Return quadrature points, with weights that sum to the area."""
        low, high = (np.delete(end, self.axis) for end in (self.surface.low, self.surface.high))
        V, weights, _ = quadrature_on_lines(self._there, low, high, LINES, NODES)
        X = self._over(V)
        normals = self.surface.normals(X)
        return Rule(X, normals, weights / np.abs(normals[:, self.axis]))

    def has(self, X: FloatArray) -> bool:
        """Return whether the graph contains all of the given points of the surface."""
        V = np.delete(X, self.axis, axis=1)
        ends = self._ends(V)
        return bool((ends[0] * ends[1] <= 0).all()) and bool(
            (np.abs(self._over(V) - X) <= PLAIN * (self.surface.high - self.surface.low)).all()
        )

    def _placed(self, V: FloatArray, t: Any) -> FloatArray:
        X = np.empty((len(V), len(self.surface.low)))
        X[:, np.arange(len(self.surface.low)) != self.axis], X[:, self.axis] = V, t
        return X

    def _ends(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the level function at both ends of lines."""
        ends = np.repeat([self.surface.low[self.axis], self.surface.high[self.axis]], len(V))
        values = self.surface.level(self._placed(np.concatenate([V, V]), ends))
        return values[: len(V)], values[len(V) :]

    def _there(self, V: FloatArray) -> BoolArray:
        """Return whether lines meet the surface, with one column per condition."""
        low, high = self._ends(V)
        held = [low * self.rise < 0, high * self.rise >= 0]
        if self.cut:
            own = np.ones(len(V), dtype=np.bool_)
            met = held[0] & held[1]
            own[met] = self.surface.has(self._over(V[met]))
            held.append(own)
        return np.stack(held, axis=1)

    def _over(self, V: FloatArray) -> FloatArray:
        """Return where lines meet the surface."""
        low, high = (np.full(len(V), end[self.axis]) for end in (self.surface.low, self.surface.high))
        return self._placed(V, bracketed(lambda t, row: self.surface.level(self._placed(V[row], t)), low, high))
