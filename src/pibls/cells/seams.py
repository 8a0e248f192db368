"""Seams: curves and surfaces inside the domain at which data switch, in pieces like those of its boundary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from pibls.cells.contours import contours, zeros
from pibls.cells.surface import Piece, Rule, ranges
from pibls.checks import BoolArray, FloatArray
from pibls.geometry import Domain, Product
from pibls.geometry.patch import TimedPatch
from pibls.geometry.sampling import kronecker
from pibls.problem.level import Level

__all__ = ["Sheet", "along", "seam_pieces", "split_at"]

Kinds = Callable[[FloatArray], Any]

_ZERO = 1e-9
_TO_ROUNDING = 10  # rounds in which a place is found: deep cells are tiny beside the curve
_BESIDE = 1e-9
_GRID = 9
_DEPTH = 0.1  # of a box: half the thickness of the shell that points of a surface come from
_MOST_TRIES = 2**15


def seam_pieces(
    level: Level, others: Sequence[Level], domain: Domain, inside: Callable[[FloatArray], BoolArray], kinds: Kinds
) -> list[Piece] | list[Sheet]:
    """Return the pieces inside a domain of the curves or surfaces on which a level is zero and kinds change.

    Kinds change nowhere else than at zeros of this level and of others.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls import Disk
    >>> x, y = sp.symbols("x y", real=True)
    >>> disk = Disk((x, y), (0, 0), 1)
    >>> level = Level.of(x + y, (x, y))
    >>> (piece,) = seam_pieces(level, [], disk, lambda X: disk.level(X) > 0, lambda X: (level(X) > 0).astype(int))
    >>> round(float(piece.patch.measure * np.diff(piece.box[0])[0]), 9)
    2.0
    """
    symbols = domain.coordinates
    if not _is_curve(level, domain):
        return [Sheet(level, inside, kinds)] if len(zeros(level, domain.bounds)) else []
    if len(symbols) == 2:
        pieces = (Piece(curve, np.array([[0.0, 1.0]])) for curve in contours(level, domain.bounds))
        return [half for piece in pieces for half in _kept(piece, others, inside, kinds)]
    flat = Level.of(level.expression, symbols[:-1])
    start, stop = domain.bounds[-1]
    curves = contours(flat, domain.bounds[:-1])
    pieces = (Piece(TimedPatch(curve, start, stop), np.array([[0.0, 1.0], [0.0, 1.0]])) for curve in curves)
    return [half for piece in pieces for half in _kept(piece, others, inside, kinds)]


def _is_curve(level: Level, domain: Domain) -> bool:
    """Tell whether a level is zero on curves of a plane, which may be the same at all times."""
    symbols = domain.coordinates
    steady = isinstance(domain, Product) and not level.expression.has(symbols[-1])
    return len(symbols) == 2 or (len(symbols) == 3 and steady)


def _kept(
    piece: Piece, others: Sequence[Level], inside: Callable[[FloatArray], BoolArray], kinds: Kinds
) -> list[Piece]:
    """Return the pieces of a curve that are inside a domain, and between two kinds."""
    held = [
        Piece(piece.patch, np.vstack([[span], piece.box[1:]]))
        for whole in split_at(piece, others)
        for span in ranges(lambda s, whole=whole: inside(along(whole, s)), *whole.box[0])
    ]
    return [own for own in held if _changes(kinds, *own.patch.at(own.box.mean(axis=1)[None])[:2], own.patch.measure)[0]]


def _changes(kinds: Kinds, X: FloatArray, normals: FloatArray, size: float) -> BoolArray:
    """Tell at which points of a surface of some size the kinds on both sides differ."""
    step = _BESIDE * size * normals
    return np.asarray(kinds(X + step) != kinds(X - step))


@dataclass(frozen=True, eq=False)
class Sheet:
    """A surface in space on which a level is zero."""

    level: Level
    inside: Callable[[FloatArray], BoolArray]
    kinds: Kinds

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

    def rule(self, low: FloatArray, high: FloatArray, count: int, *, turns: bool = False) -> Rule | None:
        """Return points of the surface in a box, about ``count`` squared: those next to it, moved onto it."""
        del turns  # which cannot be told
        wanted, tries = count**2, 16 * count**2
        depth = _DEPTH * (high - low)
        while True:
            X = low - depth + (high - low + 2 * depth) * kronecker(tries, len(low))
            slopes = self.level.gradient(X)
            steep = np.maximum(np.linalg.norm(slopes, axis=1), 1e-300)
            # A shell of even thickness around the surface has as many points per area everywhere.
            thick = float(depth.min())
            near = np.abs(self.level(X)) < thick * steep
            # Twice: what is beside the surface is told from what is on it by much less than a cell.
            found = self.level.pulled(self.level.pulled(X[near]))
            found = found[((found > low) & (found < high)).all(axis=1)]
            found = found[self.inside(found) & _changes(self.kinds, found, self._normals(found), thick)]
            if len(found) >= wanted or tries >= _MOST_TRIES:
                break
            tries *= 4
        if not len(found):
            return None
        area = len(found) * float(np.prod(high - low + 2 * depth)) / tries / (2 * thick)
        few = np.linspace(0, len(found) - 1, min(wanted, len(found))).round().astype(int)
        return Rule(found[few], self._normals(found[few]), np.full(len(few), area / len(few)))

    def _normals(self, X: FloatArray) -> FloatArray:
        slopes = self.level.gradient(X)
        return np.asarray(slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300))


def split_at(piece: Piece, levels: Sequence[Level]) -> list[Piece]:
    """Return a piece of a curve, carried through time or not, cut where levels are zero; others are left whole."""
    if not levels or len(piece.box) - isinstance(piece.patch, TimedPatch) != 1:
        return [piece]
    cuts = [piece.box[0, 0], *sorted(end for level in levels for end in _zeros(piece, level)), piece.box[0, 1]]
    return [Piece(piece.patch, np.vstack([[span], piece.box[1:]])) for span in pairwise(cuts) if span[1] > span[0]]


def along(piece: Piece, s: FloatArray) -> FloatArray:
    """Return points of a piece by its first parameter."""
    rest = piece.box[1:].mean(axis=1)
    return np.asarray(piece.patch.at(np.hstack([s[:, None], np.tile(rest, (len(s), 1))]))[0])


def _zeros(piece: Piece, level: Level) -> list[float]:
    """Return where a level changes sign along the first parameter of a piece."""
    start, stop = piece.box[0]
    spans = ranges(lambda s: level(along(piece, s)) > 0, start, stop, _TO_ROUNDING)
    return [end for span in spans for end in span if abs(end - piece.box[0]).min() > _ZERO]
