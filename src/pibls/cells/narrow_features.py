"""Narrow features of expressions: peaks, steps and inclusions that few sample points would meet.

An exponential is as narrow as its argument is steep. The argument itself, often a polynomial, shows from afar where it
is largest. So each argument is maximised within a cell, and the expression is evaluated at the maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from pibls.checks import BoolArray, FloatArray
from pibls.errors import ProblemError
from pibls.geometry.sampling import kronecker
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.program import Program
from pibls.problem.symbols import Data
from pibls.quadrature.roots import CLOSE, ROUNDING, SCAN
from pibls.refinement import VISIBLE
from pibls.refinement.standards import MOST, POINTS, SLIGHT

__all__ = ["NarrowFeatures"]

Place = Callable[[FloatArray], FloatArray]

_STEPS = (sp.tanh, sp.erf, sp.erfc, sp.atan, sp.sign, sp.Heaviside)
_STEEP = 15.0  # an argument that varies less over a cell makes no feature narrower than the point spacing


def _largest(values: FloatArray) -> FloatArray:
    return values


def _smallest(values: FloatArray) -> FloatArray:
    return -values


def _zero(values: FloatArray) -> FloatArray:
    return -np.abs(values)


def _pole(values: FloatArray) -> FloatArray:
    return -_STEEP * np.log(np.abs(values) + 1e-300)


@dataclass(frozen=True, eq=False)
class NarrowFeatures:
    """Searches a compiled expression for narrow features; ``switches`` includes its jumps."""

    function: Function
    switches: bool = True

    @cached_property
    def places(self) -> dict[sp.Expr, list[Place]]:
        """Subexpressions, each with the functions of it that are largest where the whole expression may be narrow."""
        found: dict[sp.Expr, list[Place]] = {}
        for inner, height in _inner(self.function.expression, self.switches):
            if inner.free_symbols and not inner.free_symbols - set(self.function.coordinates):
                own = found.setdefault(inner, [])
                if height not in own:
                    own.append(height)
        return found

    @cached_property
    def _poles(self) -> BoolArray:
        """Which heights belong to powers that may be infinite."""
        return np.array([height is _pole for own in self.places.values() for height in own], dtype=np.bool_)

    @cached_property
    def _relative(self) -> BoolArray:
        """Which heights are meaningful only relative to each other."""
        return np.array([_is_relative(inner, own) for inner, own in self.places.items() for _ in own], dtype=np.bool_)

    @cached_property
    def _asked(self) -> list[tuple[bool, list[Place]]]:
        """For each subexpression, whether it contains a user's function, and its heights."""
        return [(bool(inner.has(Data)), heights) for inner, heights in self.places.items()]

    @cached_property
    def _functions(self) -> list[Function]:
        return [compile_function(inner, self.function.coordinates) for inner in self.places if inner.has(Data)]

    @cached_property
    def _plain(self) -> Program:
        return Program.of([inner for inner in self.places if not inner.has(Data)], self.function.coordinates)

    def _heights(self, X: FloatArray) -> FloatArray:
        """Return all heights at points, shape (heights, points); values that are not finite become −∞."""
        data, row = iter(self._functions), 0
        found = np.empty((len(self._relative), len(X)))
        with np.errstate(all="ignore"):
            plain = iter(self._plain(*X.T))
            for given, heights in self._asked:
                values = np.broadcast_to(_tried(next(data), X) if given else next(plain), (len(X),))
                if self._relative[row]:
                    values = values * _contrast(values)
                for height in heights:
                    found[row] = height(values)
                    row += 1
        found[~np.isfinite(found)] = -np.inf
        return found

    def missed(
        self, place: Place, values: Place, known: FloatArray, outer: BoolArray, *, unit: float | None = None
    ) -> FloatArray:
        """Return by axis how much of an expression lies in narrow features that the known values do not show.

        Parameters
        ----------
        place
            Maps the cube [−1, 1]ᵈ to the coordinates.
        values
            Evaluates the expression on the cube.
        known
            Its values at the points of the cell.
        outer
            Which lower and upper faces of the cube lie on the boundary, shape (2, d).
        unit
            For a coefficient, the size of the derivative it multiplies. A coefficient that is many times too small is
            as bad as one that is many times too large. Its values on the boundary are ignored, since they may be
            infinite.
        """
        dimension = outer.shape[1]
        found = np.zeros(dimension)
        low, high = float(known.min()), float(known.max())
        size = max(abs(low), abs(high))
        U = _samples(dimension)
        heights = self._heights(place(U))
        finite = np.isfinite(heights)
        spread = heights.max(axis=1) - np.where(finite, heights, np.inf).min(axis=1)
        (steep,) = np.nonzero(finite.any(axis=1) & (spread >= _STEEP))
        for number, top in zip(steep, self._climbed(place, U[heights[steep].argmax(axis=1)], steep), strict=True):
            at_boundary = (np.stack([top < CLOSE - 1.0, top > 1.0 - CLOSE]) & outer).any()
            if at_boundary and (unit is not None or self._poles[number]):
                continue
            try:
                value = float(values(top[None])[0])
                beyond = max(low - value, value - high)
                if beyond <= VISIBLE * (high - low) + ROUNDING * size:
                    continue
                widths = _widths(top, values, value, beyond)
            except ProblemError:
                continue  # infinite, which no cell resolves, or outside the domain
            if unit is not None:
                least = max(min(size, abs(value)), ROUNDING * max(size, abs(value)))
                beyond = max(unit * beyond, min(1.0, unit * size) * beyond / least)
            found = np.maximum(found, (widths < MOST) * beyond * np.sqrt(np.prod(np.minimum(widths, 2.0))))
        return found

    def _climbed(self, place: Place, starts: FloatArray, numbers: Any) -> FloatArray:
        """Return the maximum of each height in the cube, each searched from its own start."""
        count, d = starts.shape
        around = _around(d)
        step, found, going = np.full((count, 1), 0.5), starts.copy(), np.arange(count)
        # Relative heights may lead in circles: the number of rounds is that of halvings to the shortest step.
        for _ in range(np.finfo(np.float64).nmant if count else 0):
            rows = np.arange(len(going))
            tried = _off_faces(found[going, None] + step[going, None] * around)
            heights = self._heights(place(tried.reshape(-1, d)))[numbers[going]]
            heights = heights.reshape(len(going), len(going), -1)[rows, rows]
            best = tried[rows, heights.argmax(axis=1)]
            moved = np.abs(best - found[going]).max(axis=1, keepdims=True) > 0.9 * step[going]
            step[going], found[going] = np.where(moved, step[going], step[going] * 2 ** (d + 1) / (SCAN - 1)), best
            even = heights.max(axis=1) - heights.min(axis=1) <= SLIGHT
            going = going[(~even | self._relative[numbers[going]]) & (step[going, 0] > np.finfo(np.float64).eps)]
            if not len(going):
                break
        return found


def _off_faces(U: FloatArray) -> FloatArray:
    """Return the nearest places of the cube that are not on its faces."""
    return np.clip(U, ROUNDING - 1.0, 1.0 - ROUNDING)


@lru_cache(maxsize=3)
def _samples(dimension: int) -> FloatArray:
    """Return the places of the cube where the search starts."""
    return _off_faces(2.0 * kronecker(POINTS, dimension) - 1.0)


@lru_cache(maxsize=3)
def _around(dimension: int) -> FloatArray:
    """Return the places that are tried around a given one: every second point of a scan per axis that there is."""
    along = np.linspace(-1.0, 1.0, (SCAN - 1) // 2**dimension + 1)
    return np.stack(np.meshgrid(*[along] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)


def _inner(expression: sp.Expr, switches: bool) -> Iterator[tuple[sp.Expr, Place]]:
    """Yield subexpressions, each with a function of it that is largest where the whole expression is narrow."""
    for node in sp.preorder_traversal(expression):
        if isinstance(node, sp.exp):
            yield node.args[0], _largest
        elif isinstance(node, _STEPS):
            yield node.args[0], _zero
        elif isinstance(node, sp.Pow) and node.exp.is_number and node.exp.is_negative:
            yield node.base, _pole
        elif isinstance(node, Data) or (switches and isinstance(node, Relational)):
            inner = node if isinstance(node, Data) else node.lhs - node.rhs
            yield inner, _smallest
            yield inner, _largest


def _is_relative(inner: sp.Expr, heights: list[Place]) -> bool:
    """Return whether the steepness that makes an expression narrow is unknown."""
    return inner.has(Data) or _smallest in heights


def _tried(function: Function, X: FloatArray) -> FloatArray:
    """Return values of a user's function, which need not be defined outside the domain."""
    try:
        return function(X)
    except ProblemError:
        return np.full(len(X), np.nan)


def _contrast(values: FloatArray) -> float:
    """Return a factor that makes values steep, if they vary at all."""
    finite = values[np.isfinite(values)]
    spread = float(np.ptp(finite)) if len(finite) else 0.0
    return 2.0 * _STEEP / spread if spread > 0 else 1.0


def _widths(top: FloatArray, values: Place, value: float, beyond: float) -> FloatArray:
    """Return the distance along each axis within which values stay close to the one at the top."""
    d = len(top)
    lengths = 2.0 ** np.arange(np.floor(np.log2(ROUNDING)), 1.0)
    rays = top + lengths[:, None, None, None] * np.stack([np.eye(d), -np.eye(d)])
    clipped = _off_faces(rays)
    inside = (rays == clipped).all(axis=-1)
    found = values(clipped.reshape(-1, d)).reshape(inside.shape)
    changed = inside & (np.abs(found - value) > 0.5 * beyond)
    reached = np.where(changed.any(axis=0), lengths[changed.argmax(axis=0)], 2.0)
    return np.asarray(reached.min(axis=0))
