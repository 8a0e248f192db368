"""Searches cells for features that their points miss: narrow ones of data inside, and layers at the ends.

A function is evaluated on lines across the cell, at points that crowd towards the ends, and at points scattered over
the whole domain. The difference from the polynomial through the points of the cell is not resolved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.narrow_features import NarrowFeatures
from pibls.cells.parts import CellPart
from pibls.cells.surface import STEP, Piece
from pibls.checks import FloatArray
from pibls.features.reference import rule_count
from pibls.geometry.sampling import kronecker
from pibls.problem.evaluate import Function
from pibls.problem.symbols import Data
from pibls.refinement.standards import CANDIDATES, MOST

__all__ = ["Probe", "missed_on_lines", "points_on_line"]

_LINES = 6
_SCATTERED = 2**13  # points over the domain; more for functions known by their values only


@lru_cache(maxsize=16)
def _line(count: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return Gauss points of [−1, 1], other points with weights, and the interpolation matrix between them."""
    nodes, shares = np.polynomial.legendre.leggauss(count)
    # Towards the ends distances are halved, down to the step that tells the sides of a face.
    ends = 1.0 - 2.0 ** -np.arange(4.0, -np.log2(STEP))
    others = np.sort(np.concatenate([(nodes[1:] + nodes[:-1]) / 2, ends, -ends]))
    borders = np.concatenate([[-1.0], (others[1:] + others[:-1]) / 2, [1.0]])
    scale = np.arange(count) + 0.5
    table = np.polynomial.legendre.legvander(nodes, count - 1)
    analysis = scale[:, None] * table.T * shares
    return nodes, others, np.diff(borders), np.polynomial.legendre.legvander(others, count - 1) @ analysis


def points_on_line(count: int) -> FloatArray:
    """Return the Gauss points of [−1, 1], followed by the other points."""
    return np.concatenate(_line(count)[:2])


def missed_on_lines(found: FloatArray, count: int) -> FloatArray:
    """Return the L2 errors on [−1, 1] of interpolation at Gauss points, from values on lines.

    Examples
    --------
    >>> s = points_on_line(8)
    >>> cubic, layer = missed_on_lines(np.stack([s**3, np.exp((s - 1) / 1e-5)]), 8)
    >>> bool(cubic < 1e-14), bool(layer > 1e-3)
    (True, True)
    """
    _, _, weights, interpolation = _line(count)
    gap = found[..., count:] - found[..., :count] @ interpolation.T
    return np.asarray(np.sqrt(np.square(gap) @ weights))


@lru_cache(maxsize=6)
def _spread(count: int, dimension: int) -> FloatArray:
    """Return points all over the unit cube."""
    return kronecker(count, dimension)


@lru_cache(maxsize=16)
def _lines(dimension: int, count: int) -> FloatArray:
    """Return points on lines across the cube along every axis, shape (axes, lines, points, dimension)."""
    along = points_on_line(count)
    across = 2.0 * kronecker(_LINES, dimension - 1) - 1.0 if dimension > 1 else np.zeros((1, 0))
    found = np.empty((dimension, len(across), len(along), dimension))
    for axis in range(dimension):
        found[axis, :, :, axis] = along
        found[axis, :, :, np.arange(dimension) != axis] = across.T[:, :, None]
    return found


@dataclass(eq=False)
class Probe:
    """Evaluates functions of data between the points of cells."""

    layout: Layout
    _known: dict[Function, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    _features: dict[Function, NarrowFeatures | None] = field(default_factory=dict)

    def missed(self, parts: Sequence[CellPart], function: Function, known: Sequence[FloatArray]) -> FloatArray:
        """Return by axis the L2 errors of a function interpolated at the points of whole parts."""
        d, count = len(parts[0].half), rule_count(self.layout.reference.degree)
        U, half = _lines(d, count), np.array([part.half for part in parts])
        X = np.array([part.center for part in parts])[:, None] + half[:, None] * U.reshape(-1, d)
        values = function(X.reshape(-1, d)).reshape(len(parts), *U.shape[:-1])
        scale = np.sqrt(np.prod(half, axis=1) * 2.0 ** (d - 1))
        found = missed_on_lines(values, count).max(axis=2) * scale[:, None]
        return np.asarray(np.maximum(found, self._scattered(parts, function, known)[:, None]))

    def missed_features(
        self, part: CellPart, function: Function, known: FloatArray, unit: float | None = None
    ) -> FloatArray:
        """Return by axis the L2 norm of narrow features of a function that the points of a part miss.

        ``known`` are its values there. For a coefficient, ``unit`` is the size of the derivative that it multiplies.
        """
        if (features := self.features(function, inside=True)) is None:
            return np.zeros(len(part.half))

        def place(U: FloatArray) -> FloatArray:
            return np.asarray(part.center + part.half * U)

        root = self.layout.root
        outer = np.stack([part.cell.low <= root.low, part.cell.high >= root.high])

        def values(U: FloatArray) -> FloatArray:
            X = place(U)
            # Beyond an interface the function is another one.
            return np.where(self.layout.tree_domain.materials(X) == part.material, function(X), known[0])

        found = features.missed(place, values, known, outer, unit=unit)
        return np.asarray(found * float(np.sqrt(np.prod(part.half))))

    def missed_on(self, piece: Piece, function: Function, known: FloatArray, unit: float | None = None) -> float:
        """Return the same on a piece of the boundary."""
        if not len(piece.box) or (features := self.features(function, inside=False)) is None:
            return 0.0
        low, high = piece.box.T

        def at(U: FloatArray) -> tuple[FloatArray, FloatArray]:
            X, normals, _ = piece.patch.at(low + (high - low) * (U + 1) / 2)
            return X, normals

        outer = np.stack([low <= 0.0, high >= 1.0])
        found = features.missed(lambda U: at(U)[0], lambda U: function(*at(U)), known, outer, unit=unit)
        return float(found.max(initial=0.0) * np.sqrt(piece.patch.measure * np.prod((high - low) / 2)))

    def features(self, function: Function, inside: bool) -> NarrowFeatures | None:
        """Return the search for narrow features of a function, or None if it cannot have any.

        Jumps inside the domain are interfaces already, so the search leaves them out.
        """
        if function not in self._features:
            found = NarrowFeatures(function, not (inside and self.layout.tree_domain.interfaces))
            self._features[function] = found if found.places else None
        return self._features[function]

    def _scattered(self, parts: Sequence[CellPart], function: Function, known: Sequence[FloatArray]) -> FloatArray:
        """Return the same from points all over the domain, if the function is far larger there than at a part."""
        if function not in self._known:
            root, tree_domain = self.layout.root, self.layout.tree_domain
            X = _spread(CANDIDATES if function.expression.has(Data) else _SCATTERED, len(root.low))
            X = root.low + root.size * X
            X = X if tree_domain.is_box else X[tree_domain.inside(X)]
            self._known[function] = X, np.abs(function(X))
        X, values = self._known[function]
        found, largest = np.zeros(len(parts)), values.max(initial=0.0)
        for number, (part, own) in enumerate(zip(parts, known, strict=True)):
            if largest > (least := float(np.abs(own).max()) / MOST):
                inside = values[((part.cell.low < X) & (part.cell.high > X)).all(axis=1)]
                square = np.square(inside[inside > least]).sum()
                found[number] = np.sqrt(part.volume / max(len(inside), 1) * square)
        return found
