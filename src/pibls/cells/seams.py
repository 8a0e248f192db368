"""Seams: curves and surfaces inside the domain at which data switch, in pieces like those of its boundary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pibls.cells.contours import Contour, contours, zeros
from pibls.cells.surface import Piece, Rule, ranges
from pibls.checks import FloatArray
from pibls.geometry import Domain, Product
from pibls.geometry.base import BoolArray
from pibls.geometry.patch import TimedPatch
from pibls.geometry.sampling import kronecker
from pibls.problem.level import Level

__all__ = ["Sheet", "crossings", "is_curve", "seam_pieces", "split_at"]

_ZERO = 1e-9
_GRID = 9
_DEPTH = 0.1  # of a box: half the thickness of the shell that points of a surface come from
_MOST_TRIES = 2**15


def seam_pieces(level: Level, domain: Domain, inside: Callable[[FloatArray], BoolArray]) -> list[Piece] | list[Sheet]:
    """Return the pieces inside a domain of the curves or surfaces on which a level is zero.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls import Disk
    >>> x, y = sp.symbols("x y", real=True)
    >>> disk = Disk((x, y), (0, 0), 1)
    >>> (piece,) = seam_pieces(Level.of(x + y, (x, y)), disk, lambda X: disk.level(X) > 0)
    >>> round(float(piece.patch.measure * np.diff(piece.box[0])[0]), 9)
    2.0
    """
    symbols = domain.coordinates
    if not is_curve(level, domain):
        return [Sheet(level)] if len(zeros(level, domain.bounds)) else []
    if len(symbols) == 2:
        return [piece for curve in contours(level, domain.bounds) for piece in _kept(curve, inside)]
    flat = Level.of(level.expression, symbols[:-1])
    start, stop = domain.bounds[-1]
    middle = (start + stop) / 2

    def inside_then(X: FloatArray) -> BoolArray:
        return inside(np.hstack([X, np.full((len(X), 1), middle)]))

    return [
        Piece(TimedPatch(curve, start, stop), np.vstack([piece.box, [[0.0, 1.0]]]))
        for curve in contours(flat, domain.bounds[:-1])
        for piece in _kept(curve, inside_then)
    ]


def is_curve(level: Level, domain: Domain) -> bool:
    """Tell whether a level is zero on curves of a plane, which may be the same at all times."""
    symbols = domain.coordinates
    steady = isinstance(domain, Product) and not level.expression.has(symbols[-1])
    return len(symbols) == 2 or (len(symbols) == 3 and steady)


def _kept(curve: Contour, inside: Callable[[FloatArray], BoolArray]) -> list[Piece]:
    return [Piece(curve, np.array([span])) for span in ranges(lambda s: inside(curve.at(s[:, None])[0]), 0.0, 1.0)]


@dataclass(frozen=True, eq=False)
class Sheet:
    """A surface in space on which a level is zero."""

    level: Level

    def within(self, low: FloatArray, high: FloatArray) -> list[Sheet]:
        """Return the surface if any of it is in a box."""
        axes = [np.linspace(a, b, _GRID) for a, b in zip(low, high, strict=True)]
        X = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
        values = self.level(X)
        if np.nanmin(values) < 0 < np.nanmax(values):
            return [self]
        nearest = X[[np.nanargmin(np.abs(values))]]
        dip = self.level.pulled(nearest)
        step = (high - low) / (_GRID - 1)
        return [self] if ((dip > low) & (dip < high) & (np.abs(dip - nearest) <= step)).all() else []

    def rule(self, low: FloatArray, high: FloatArray, count: int) -> Rule | None:
        """Return points of the surface in a box, about ``count`` squared: those next to it, moved onto it."""
        wanted, tries = count**2, 16 * count**2
        depth = _DEPTH * (high - low)
        while True:
            X = low - depth + (high - low + 2 * depth) * kronecker(tries, len(low))
            slopes = self.level.gradient(X)
            steep = np.maximum(np.linalg.norm(slopes, axis=1), 1e-300)
            # A shell of even thickness around the surface has as many points per area everywhere.
            thick = float(depth.min())
            near = np.abs(self.level(X)) < thick * steep
            found = self.level.pulled(X[near])
            found = found[((found > low) & (found < high)).all(axis=1)]
            if len(found) >= wanted or tries >= _MOST_TRIES:
                break
            tries *= 4
        if not len(found):
            return None
        area = len(found) * float(np.prod(high - low + 2 * depth)) / tries / (2 * thick)
        few = np.linspace(0, len(found) - 1, min(wanted, len(found))).round().astype(int)
        slopes = self.level.gradient(found[few])
        normals = slopes / np.linalg.norm(slopes, axis=1, keepdims=True)
        return Rule(found[few], normals, np.full(len(few), area / len(few)))


def split_at(piece: Piece, levels: Sequence[Level]) -> list[Piece]:
    """Return a piece of a curve, carried through time or not, cut where levels are zero; others are left whole."""
    if not levels or len(piece.box) - isinstance(piece.patch, TimedPatch) != 1:
        return [piece]
    cuts = [piece.box[0, 0], *sorted(end for level in levels for end in _zeros(piece, level)), piece.box[0, 1]]
    return [Piece(piece.patch, np.vstack([[span], piece.box[1:]])) for span in pairwise(cuts) if span[1] > span[0]]


def crossings(piece: Piece, other: Level) -> FloatArray:
    """Return where another level is zero on a piece."""
    return _along(piece, np.array(_zeros(piece, other)))


def _along(piece: Piece, s: FloatArray) -> FloatArray:
    """Return points of a piece by its first parameter."""
    rest = piece.box[1:].mean(axis=1)
    return np.asarray(piece.patch.at(np.hstack([s[:, None], np.tile(rest, (len(s), 1))]))[0])


def _zeros(piece: Piece, level: Level) -> list[float]:
    """Return where a level changes sign along the first parameter of a piece."""
    spans = ranges(lambda s: level(_along(piece, s)) > 0, *piece.box[0])
    return [end for span in spans for end in span if abs(end - piece.box[0]).min() > _ZERO]
