"""Where an expression does something narrow: peaks, steps and inclusions that few points would ever meet.

An exponential is as narrow as its argument is steep, and the argument itself, a polynomial more often than not, tells
from afar where it is largest. So arguments are climbed within a cell, and the expression is looked at where that ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.geometry.base import BoolArray
from pibls.geometry.sampling import kronecker
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.symbols import Data

__all__ = ["Spots"]

Place = Callable[[FloatArray], FloatArray]

_STEPS = (sp.tanh, sp.erf, sp.erfc, sp.atan, sp.sign, sp.Heaviside)
_STEEP = 15.0  # an argument that varies by less over a cell is no narrower than its points tell
_SAMPLES = {1: 65, 2: 128, 3: 256}
_ROUNDS = 70
_INSIDE, _NEAR = 1.0 - 1e-12, 1.0 - 1e-6  # not at the faces of a cell, and nearly there
_DIGITS = 1e-12
_TOLD = 0.05  # values a little beyond those of the points of a cell are told by them
_WIDE = 0.5  # of half a cell: what is wider shows at its points
_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Spots:
    """Looks for the narrow features of a compiled expression."""

    function: Function

    @cached_property
    def _heights(self) -> list[Place]:
        """Functions that are largest where something may be narrow."""
        found = []
        for inner, height in _inner(self.function.expression):
            if inner.free_symbols - set(self.function.coordinates):
                continue
            try:
                compiled = compile_function(inner, self.function.coordinates)
            except ProblemError:
                continue
            if compiled.constant is None:
                found.append(_guarded(compiled, height))
        return found

    def missed(
        self, place: Place, values: Place, known: FloatArray, outer: BoolArray, *, unit: float | None = None
    ) -> FloatArray:
        """Return how much of an expression on a cube lies at narrow places that known values do not tell of, by axis.

        Parameters
        ----------
        place
            From the cube [−1, 1]ᵈ to the coordinates.
        values
            The expression on the cube.
        known
            Its values at the points of a cell.
        outer
            Which faces of the cube, lower and upper ones, are at the boundary: shape (2, d).
        unit
            For a coefficient, the size of what it multiplies. It is as bad for it to be many times smaller as to be
            many times larger; what it does right at the boundary is not looked at, as it may be infinite there.
        """
        dimension = outer.shape[1]
        found = np.zeros(dimension)
        low, high = float(known.min()), float(known.max())
        size = max(abs(low), abs(high))
        for height in self._heights:
            U = _INSIDE * (2.0 * kronecker(_SAMPLES[dimension], dimension) - 1.0)
            heights = height(place(U))
            if not np.isfinite(heights).any() or np.nanmax(heights) - np.nanmin(heights) < _STEEP:
                continue
            top = _climbed(_composed(height, place), U[np.nanargmax(heights)])
            at_boundary = (np.stack([top < -_NEAR, top > _NEAR]) & outer).any()
            try:
                value = float(values(top[None])[0])
            except ProblemError:
                continue  # infinite there, which nothing can resolve
            beyond = max(low - value, value - high)
            if beyond <= _TOLD * (high - low) + _DIGITS * size or (unit is not None and at_boundary):
                continue
            widths = _widths(top, values, value, beyond)
            if unit is not None:
                least = max(min(size, abs(value)), _DIGITS * max(size, abs(value)))
                beyond = max(unit * beyond, min(1.0, unit * size) * beyond / least)
            found = np.maximum(found, (widths < _WIDE) * beyond * np.sqrt(np.prod(np.minimum(widths, 2.0))))
        return found


def _inner(expression: sp.Expr) -> Iterator[tuple[sp.Expr, Place]]:
    """Yield expressions inside another one, each with a function of it that is largest where the other is narrow."""
    for node in sp.preorder_traversal(expression):
        if isinstance(node, sp.exp):
            yield node.args[0], lambda g: g
        elif isinstance(node, _STEPS):
            yield node.args[0], lambda g: -np.abs(g)
        elif isinstance(node, sp.Pow) and node.exp.is_number and node.exp.is_negative:
            yield node.base, lambda g: -_STEEP * np.log(np.abs(g) + 1e-300)
        elif isinstance(node, Relational):
            inner = node.lhs - node.rhs
            yield inner, lambda g: -_contrast(g)
            yield inner, lambda g: _contrast(g)
        elif isinstance(node, Data):
            yield node, lambda g: -_contrast(g)
            yield node, lambda g: _contrast(g)


def _contrast(values: FloatArray) -> FloatArray:
    """Return values in units in which they are steep."""
    spread = float(np.ptp(values[np.isfinite(values)])) if np.isfinite(values).any() else 0.0
    return values * (2.0 * _STEEP / spread) if len(values) > 1 and spread > 0 else values


def _guarded(function: Function, height: Place) -> Place:
    def call(X: FloatArray) -> FloatArray:
        try:
            return np.asarray(height(np.asarray(function(X))))
        except ProblemError:
            return np.full(len(X), np.nan)

    return call


def _composed(height: Place, place: Place) -> Place:
    return lambda V: height(place(V))


def _climbed(height: Place, start: FloatArray) -> FloatArray:
    """Return the highest place of the cube near a first one."""
    d = len(start)
    around = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 5)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    step, place = 0.5, start
    for _ in range(_ROUNDS):
        tried = np.clip(place + step * around, -_INSIDE, _INSIDE)
        found = height(tried)
        best = tried[np.nanargmax(found)] if np.isfinite(found).any() else place
        step /= 1.0 if np.abs(best - place).max() > 0.9 * step else 2.0
        place = best
    return place


def _widths(top: FloatArray, values: Place, value: float, beyond: float) -> FloatArray:
    """Return how far from a place values stay near the one there, along each axis."""
    d = len(top)
    lengths = 2.0 ** -np.arange(_HALVINGS, -1.0, -1.0)
    rays = top + lengths[:, None, None, None] * np.stack([np.eye(d), -np.eye(d)])
    inside = (np.abs(rays) <= _INSIDE).all(axis=-1)
    found = values(np.clip(rays, -_INSIDE, _INSIDE).reshape(-1, d)).reshape(inside.shape)
    changed = inside & (np.abs(found - value) > 0.5 * beyond)
    reached = np.where(changed.any(axis=0), lengths[changed.argmax(axis=0)], 2.0)
    return np.asarray(reached.min(axis=0))
