"""Interfaces: curves and surfaces inside the domain at which data jump, in pieces like those of its boundary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from pibls.cells.interface_surfaces import InterfaceSurface, Materials, changes
from pibls.cells.surface import Piece
from pibls.checks import BoolArray, FloatArray
from pibls.geometry import Domain, Product
from pibls.geometry.patch import TimedPatch
from pibls.problem.level import Level
from pibls.quadrature.roots import CLOSE, held_ranges


def interface_pieces(
    level: Level,
    others: Sequence[Level],
    domain: Domain,
    inside: Callable[[FloatArray], BoolArray],
    materials: Materials,
) -> list[Piece] | list[InterfaceSurface]:
    """Return the pieces in a domain of the zeros of a level function at which the material changes.

    The material changes only at zeros of this level function and of ``others``.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls import Disk
    >>> x, y = sp.symbols("x y", real=True)
    >>> disk = Disk((x, y), (0, 0), 1)
    >>> level = Level.of(x + y, (x, y))
    >>> (piece,) = interface_pieces(level, [], disk, lambda X: disk.level(X) > 0, lambda X: (level(X) > 0).astype(int))
    >>> round(float(piece.patch.measure * np.diff(piece.box[0])[0]), 9)
    2.0
    """
    from pibls.cells.contours import contours, has_zeros  # imports much of SciPy, which most problems do not need

    symbols = domain.coordinates
    if not _is_curve(level, domain):
        return [InterfaceSurface(level, inside, materials, *domain.bounds.T)] if has_zeros(level, domain.bounds) else []
    if len(symbols) == 2:
        pieces = (Piece(curve, np.array([[0.0, 1.0]])) for curve in contours(level, domain.bounds))
        return [half for piece in pieces for half in _kept(piece, others, inside, materials)]
    flat = Level.of(level.expression, symbols[:-1])
    start, stop = domain.bounds[-1]
    curves = contours(flat, domain.bounds[:-1])
    pieces = (Piece(TimedPatch(curve, start, stop), np.array([[0.0, 1.0], [0.0, 1.0]])) for curve in curves)
    return [half for piece in pieces for half in _kept(piece, others, inside, materials)]


def _is_curve(level: Level, domain: Domain) -> bool:
    """Return whether the zeros of a level function are curves in a plane, possibly extended through time."""
    symbols = domain.coordinates
    steady = isinstance(domain, Product) and not level.expression.has(symbols[-1])
    return len(symbols) == 2 or (len(symbols) == 3 and steady)


def _kept(
    piece: Piece, others: Sequence[Level], inside: Callable[[FloatArray], BoolArray], materials: Materials
) -> list[Piece]:
    """Return the pieces of a curve that lie inside the domain, between two materials."""
    held = [
        replace(piece, box=np.vstack([[span], piece.box[1:]]))
        for whole in split_at(piece, others)
        for span in held_ranges(lambda s, whole=whole: inside(along(whole, s)), *whole.box[0])
    ]
    return [
        own for own in held if changes(materials, *own.patch.at(own.box.mean(axis=1)[None])[:2], own.patch.measure)[0]
    ]


def split_at(piece: Piece, levels: Sequence[Level]) -> list[Piece]:
    """Return a curve, possibly extended through time, cut at the zeros of level functions; surfaces are left whole."""
    if not levels or len(piece.box) - (isinstance(piece.patch, TimedPatch) and len(piece.box) > 1) != 1:
        return [piece]
    zeros = sorted(end for level in levels for end in _zeros(piece, level))
    # Two level functions may be zero in the same place, up to rounding.
    apart = [end for before, end in pairwise([-np.inf, *zeros]) if end - before > CLOSE]
    cuts = [piece.box[0, 0], *apart, piece.box[0, 1]]
    return [replace(piece, box=np.vstack([[span], piece.box[1:]])) for span in pairwise(cuts) if span[1] > span[0]]


def ends_of_interfaces(pieces: Sequence[Piece], bounds: FloatArray) -> FloatArray:
    """Return the ends of interfaces in a plane: at the boundary, and where they meet each other."""
    ends = [along(piece, piece.box[0])[:, :2] for piece in pieces]
    least = CLOSE * float(np.ptp(bounds[:2]))
    return np.concatenate([np.empty((0, 2)), *(X for X in ends if np.ptp(X, axis=0).max() > least)])


def switches_on(outlines: Sequence[tuple[Sequence[Piece], Sequence[Level]]], bounds: FloatArray) -> FloatArray:
    """Return the ends of boundary pieces of a plane domain at which conditions switch: there a level is zero."""
    found, slack = [np.empty((0, 2))], CLOSE * float(np.ptp(bounds))
    for pieces, levels in outlines:
        X = np.concatenate([np.empty((0, 2)), *(along(piece, piece.box[0]) for piece in pieces)])
        for level in levels if len(X) else ():
            near = np.abs(level(X)) <= slack * np.linalg.norm(level.gradient(X), axis=1)
            found.append(X[near])
    return np.concatenate(found)


def along(piece: Piece, s: FloatArray) -> FloatArray:
    """Return points of a piece by its first parameter."""
    rest = piece.box[1:].mean(axis=1)
    return np.asarray(piece.patch.at(np.hstack([s[:, None], np.tile(rest, (len(s), 1))]))[0])


def _zeros(piece: Piece, level: Level) -> list[float]:
    """Return the zeros of a level function along the first parameter of a piece."""
    start, stop = piece.box[0]
    spans = held_ranges(lambda s: level(along(piece, s)) > 0, start, stop)
    return [end for span in spans for end in span if abs(end - piece.box[0]).min() > CLOSE]
