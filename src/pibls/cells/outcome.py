"""A fit on cells as a network, and the sizes of its fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.measure import shares_of
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.solution.celled import CellNetwork
from pibls.solution.sizes import reference_sizes

__all__ = ["field_sizes", "network_of"]


def field_sizes(layout: Layout, fit: Fit) -> FloatArray:
    """Return what the error of each field is relative to."""
    squares = np.array([np.prod(part.half) * np.square(fit.weights[part]).sum(axis=1) for part in fit.parts])
    sizes = np.sqrt((shares_of(layout, fit) ** 2 * squares).sum(axis=0))
    own = dict(zip(layout.problem.field_names, sizes.tolist(), strict=True))
    found = np.array(list(reference_sizes(layout.problem, own).values()))
    return np.where(found > 0, found, 1.0)


def network_of(layout: Layout, fit: Fit) -> CellNetwork:
    """Return a fit as a network."""
    tree: list[list[int]] = []
    cuts: list[float] = []
    parts: list[Any] = []
    samples, owners = [np.empty((0, len(fit.root.low)))], [np.empty(0, dtype=np.int64)]

    def walk(cell: Cell) -> int:
        number = len(tree)
        tree.append([-1, len(parts), len(parts)])
        cuts.append(0.0)
        if cell.halves:
            first, second = (walk(half) for half in cell.halves)
            tree[number] = [cell.axis, first, second]
            cuts[number] = cell.at
            return number
        own = layout.parts(cell)
        for part in own:
            if len(own) > 1:
                samples.append(part.points)
                owners.append(np.full(len(part.points), len(parts)))
            parts.append(part)
        tree[number][2] = len(parts)
        return number

    walk(fit.root)
    transform = layout.reference.transform
    return CellNetwork(
        layout.reference.network,
        np.array(tree, dtype=np.int64),
        np.array(cuts),
        np.array([part.center for part in parts]),
        np.array([part.half for part in parts]),
        np.array([fit.weights[part] @ transform.T for part in parts]),
        np.concatenate(samples),
        np.concatenate(owners),
        np.array([part.kind for part in parts], dtype=np.int64),
        layout.ground.branch if layout.ground.seams else None,
    )
