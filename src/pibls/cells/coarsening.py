"""Coarsening: cells whose union resolves a solution as well are united."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.outcome import network_of
from pibls.cells.parts import CellPart
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell, leaves
from pibls.checks import FloatArray
from pibls.features import MultiIndex
from pibls.refinement import SMALLEST
from pibls.solution.celled import CellNetwork

__all__ = ["coarsened", "divided"]


def coarsened(layout: Layout, fit: Fit, sizes: FloatArray, root: Cell, most: float, needed: Collection[Cell]) -> Cell:
    """Return a tree in which cells are united, as long as all unions together miss a solution by no more than an error.

    Only leaves of the tree of the solution are united, and none to one of the boxes that need to be divided.
    """
    network, known, left = network_of(layout, fit), set[Cell](), most**2
    free = {leaf: leaf for leaf in leaves(fit.root)}
    missed = dict.fromkeys(free, 0.0)
    while True:
        pairs = [one for one in _pairs(root) if all(half in free for half in one.halves)]
        found = {}
        for pair in pairs:
            union = pair.halves[0].parent
            if union is None or union in known or union in needed:
                continue
            own = _missed(layout, union, layout.parts_of(pair.halves), network, sizes)
            if own <= left:
                found[pair] = union, own
            known.add(union)
        if not found:
            return root
        united: dict[Cell, Cell] = {}
        for pair, (union, own) in sorted(found.items(), key=lambda item: item[1][1]):
            before = sum(missed[half] for half in pair.halves)
            if own - before <= left:
                united[pair], missed[union], free[union] = union, own, union
                left -= own - before
        if not united:
            return root
        root = _united(root, united)


def divided(root: Cell) -> set[Cell]:
    """Return the boxes that a tree divides."""
    return {box for leaf in leaves(root) for box in leaf.boxes[1:]}


def _pairs(cell: Cell) -> list[Cell]:
    """Return the boxes whose halves are leaves."""
    if not cell.halves:
        return []
    below = [pair for half in cell.halves for pair in _pairs(half)]
    return below or ([cell] if not any(half.halves for half in cell.halves) else [])


def _united(cell: Cell, united: dict[Cell, Cell]) -> Cell:
    """Return a tree without the halves of some boxes."""
    if cell in united:
        return united[cell]
    if not cell.halves:
        return cell
    halves = tuple(_united(half, united) for half in cell.halves)
    same = all(one is two for one, two in zip(halves, cell.halves, strict=True))
    return cell if same else replace(cell, halves=halves)


def _missed(layout: Layout, union: Cell, below: list[CellPart], network: CellNetwork, sizes: FloatArray) -> float:
    """Return the square of the relative error with which a union fits a solution, which its halves see better."""
    zero: MultiIndex = (0,) * layout.reference.dimension
    found, parts = 0.0, layout.parts(union)
    for part in parts:
        every = below if len(parts) == 1 else [part]
        X = np.concatenate([own.points for own in every])
        roots = np.sqrt(np.concatenate([own.weights for own in every]))[:, None]
        nodes = roots * layout.functions_at(part, X, [zero])[zero]
        rest = roots * network.evaluate(X, [zero])[zero] / sizes
        found += float(np.square(rest - nodes @ np.linalg.lstsq(nodes, rest, rcond=SMALLEST)[0]).sum())
    return found
