"""Solutions on two trees at common points: their distance, and values of a coarser solution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.measure import shares_of, sparse_cube
from pibls.cells.parts import CellPart, values_at
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.features.reference import ReferenceNetwork
from pibls.refinement.standards import POINTS

__all__ = ["Overlay", "ancestor_values", "distances"]

Placed = tuple[CellPart, FloatArray]
"""A part and points in it."""


def distances(layout: Layout, coarse: Fit, finer: Layout, fine: Fit) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the L2 distance of two solutions, the size of the finer one, and their largest distance, per field.

    The largest distance is at a point, relative to the largest value of the field; it is zero for an unbounded field.
    The L2 norms of an unbounded field, such as the pressure at the end of a moving lid, are weighted with the relative
    distance from the singular point, because they are infinite otherwise.
    """
    return Overlay.of(layout, coarse.parts, finer, fine.parts).distances(coarse, fine)


@dataclass(eq=False)
class Overlay:
    """The parts of a fine tree, and where they lie in those of a coarse one.

    Attributes
    ----------
    layout, finer
        The layouts of both trees.
    same
        Numbers of the whole parts that both trees have, and the parts of the coarse tree.
    others, shares, ends
        Numbers of all other parts, the weights of their points, and the number of the first point of each.
    fine_at, coarse_at, rows
        The points by parts of the fine tree and by those of the coarse one, and the numbers of the latter points.
    keeps
        Whether the functions at these points are kept, for many solutions.
    """

    layout: Layout
    finer: Layout
    same: tuple[list[int], list[CellPart]]
    others: list[int]
    shares: FloatArray
    ends: list[int]
    fine_at: list[Placed]
    coarse_at: list[Placed]
    rows: list[Any]
    keeps: bool = False

    @classmethod
    def of(
        cls,
        layout: Layout,
        coarse: Sequence[CellPart],
        finer: Layout,
        fine: Sequence[CellPart],
        *,
        keeps: bool = False,
    ) -> Overlay:
        """Lay the parts of a fine tree over those of a coarse one."""
        U, weights, _ = _sparse_rule(layout.reference, len(fine))
        held, cells = {part.cell: part for part in coarse if part.whole}, {part.cell for part in coarse}
        same = [number for number, part in enumerate(fine) if part.whole and part.cell in held]
        others = sorted(set(range(len(fine))) - set(same))
        places = [_some_points(fine[number], U, weights) for number in others]
        fine_at = [(fine[number], X) for number, (X, _) in zip(others, places, strict=True)]
        ends = np.cumsum([0, *(len(X) for X, _ in places)]).tolist()
        coarse_at, homes = _in_ancestors(layout, cells, fine_at) if others else ([], [])
        rows = [ends[number] + own for number, own in homes]
        shares = np.concatenate([np.empty(0), *(own for _, own in places)])
        pairs = same, [held[fine[number].cell] for number in same]
        return cls(layout, finer, pairs, others, shares, ends, fine_at, coarse_at, rows, keeps)

    def distances(self, coarse: Fit, fine: Fit) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the distance of solutions on both trees, as :func:`distances` does."""
        count = len(fine.parts)
        _, weights, known = _sparse_rule(self.layout.reference, count)
        finely = _sparse_rule(self.finer.reference, count)[2]
        fields = len(next(iter(fine.weights.values()), ()))
        apart, size, peaks, largest = np.empty((4, len(fine.parts), fields))
        (same, before), others = self.same, self.others
        if same:
            parts = [fine.parts[number] for number in same]
            new = np.array([fine.weights[part] for part in parts]) @ finely.T
            gap = new - np.array([coarse.weights[part] for part in before]) @ known.T
            volumes = np.prod([part.half for part in parts], axis=1)[:, None]
            apart[same], size[same] = volumes * (np.square(gap) @ weights), volumes * (np.square(new) @ weights)
            peaks[same], largest[same] = np.abs(gap).max(axis=2), np.abs(new).max(axis=2)
        if others:
            new, old, starts = np.concatenate(self._fine(fine)), np.zeros((self.ends[-1], fields)), self.ends[:-1]
            for rows, values in zip(self.rows, self._coarse(coarse), strict=True):
                old[rows] = values
            gap, share = new - old, self.shares[:, None]
            apart[others] = np.add.reduceat(share * np.square(gap), starts)
            size[others] = np.add.reduceat(share * np.square(new), starts)
            peaks[others] = np.maximum.reduceat(np.abs(gap), starts)
            largest[others] = np.maximum.reduceat(np.abs(new), starts)
        shares = shares_of(self.layout, fine)
        most, scale = np.max(peaks, axis=0), np.max(largest, axis=0)
        bounded = (shares.min(axis=0) == 1.0) & (scale > 0.0)
        peak = np.where(bounded, most / np.where(bounded, scale, 1.0), 0.0)
        return np.sqrt((shares**2 * apart).sum(axis=0)), np.sqrt((shares**2 * size).sum(axis=0)), peak

    def _fine(self, fit: Fit) -> list[FloatArray]:
        """Return the fields of the fine solution."""
        if self.keeps:
            return [own @ fit.weights[part].T for (part, _), own in zip(self.fine_at, self._finely, strict=True)]
        return values_at(self.finer.reference, [(part, fit.weights[part], X) for part, X in self.fine_at])

    def _coarse(self, fit: Fit) -> list[FloatArray]:
        """Return the fields of the coarse solution."""
        if self.keeps:
            return [own @ fit.weights[part].T for (part, _), own in zip(self.coarse_at, self._coarsely, strict=True)]
        return values_at(self.layout.reference, [(part, fit.weights[part], X) for part, X in self.coarse_at])

    @cached_property
    def _finely(self) -> list[FloatArray]:
        """The functions of the fine tree at the points."""
        unit = np.eye(self.finer.reference.size)
        return values_at(self.finer.reference, [(part, unit, X) for part, X in self.fine_at])

    @cached_property
    def _coarsely(self) -> list[FloatArray]:
        """The functions of the coarse tree at the points."""
        unit = np.eye(self.layout.reference.size)
        return values_at(self.layout.reference, [(part, unit, X) for part, X in self.coarse_at])


def _sparse_rule(reference: ReferenceNetwork, parts: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a few points of the cube for each of some parts, their weights, and the functions there.

    An error that waves faster than few points can tell is seen too large in one part and too small in another: where
    there are few parts, each has more points.
    """
    return _rule(reference, math.ceil((POINTS / parts) ** (1.0 / reference.dimension)))


@lru_cache(maxsize=64)
def _rule(reference: ReferenceNetwork, least: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    zero = (0,) * reference.dimension
    U, weights = sparse_cube(len(zero), least)
    return U, weights, reference.evaluate(U, [zero])[zero]


def _some_points(part: CellPart, U: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a few points of a part and their weights, given those of a rule on the cube."""
    if part.whole:
        return part.center + part.half * U, weights * float(np.prod(part.half))
    X = part.points[:: max(1, len(part.points) // len(U))]
    return X, np.full(len(X), part.volume / len(X))


def _in_ancestors(layout: Layout, cells: set[Any], given: Sequence[Placed]) -> tuple[list[Placed], list[Any]]:
    """Return points by parts of a tree with given leaves, and which of the given points they are."""
    found, homes = [], []
    below: dict[Cell, list[Cell]] = {}
    for number, (part, X) in enumerate(given):
        cell: Cell | None = part.cell
        while cell is not None and cell not in cells:
            cell = cell.parent
        if cell is None:
            below = below or _by_ancestors(cells)
        for home in below.get(part.cell, []) if cell is None else [cell]:
            (inside,) = np.nonzero(((home.low <= X) & (home.high >= X)).all(axis=1) | (home is cell))
            parts, numbers = layout.parts(home), layout.cutter.part_at(home, X[inside])
            for own in np.unique(numbers).tolist():
                rows = inside[numbers == own]
                found.append((parts[own], X[rows]))
                homes.append((number, rows))
    return found, homes


def _by_ancestors(cells: set[Any]) -> dict[Cell, list[Cell]]:
    """Return the cells in each box that they are parts of."""
    found: dict[Cell, list[Cell]] = {}
    for cell in cells:
        box = cell.parent
        while box is not None:
            found.setdefault(box, []).append(cell)
            box = box.parent
    return found


def ancestor_values(layout: Layout, coarse: Fit, cells: set[Any], given: Sequence[Placed]) -> list[FloatArray]:
    """Return the fields of a coarser solution at points of parts; ``cells`` are the leaves of its tree."""
    fields = len(next(iter(coarse.weights.values())))
    found = [np.zeros((len(X), fields)) for _, X in given]
    places, homes = _in_ancestors(layout, cells, given)
    values = values_at(layout.reference, [(part, coarse.weights[part], X) for part, X in places])
    for (number, rows), own in zip(homes, values, strict=True):
        found[number][rows] = own
    return found
