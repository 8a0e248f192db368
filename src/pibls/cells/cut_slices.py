"""The slices of cut cells (one per material) and their connected pieces, found for all cells at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pibls.cells.surface import STEP, Rule
from pibls.cells.tree import Cell
from pibls.checks import BoolArray, FloatArray
from pibls.geometry.sight import joined_in_sight
from pibls.refinement.standards import MOST

if TYPE_CHECKING:
    from pibls.cells.tree_domain import TreeDomain

__all__ = ["KnownCuts", "Slice", "SlicePieces", "find_components"]

_GRID = {1: 65, 2: 25, 3: 11}  # grid points per axis, by dimension
_FAR = 2.0  # distance in grid steps beyond which a boundary point belongs to a separate piece


@dataclass(frozen=True, eq=False)
class Slice:
    """One material in a cut cell: quadrature points on its outline, and those of the conditions by place."""

    cell: Cell
    outline: Rule
    rules: dict[Any, Rule]
    material: int

    @property
    def key(self) -> tuple[Cell, int]:
        """The cell and the material identify a slice."""
        return self.cell, self.material

    @cached_property
    def near(self) -> FloatArray:
        """Points just inside the outline."""
        return self.outline.points - STEP * float(self.cell.size.min()) * self.outline.normals


class SlicePieces(NamedTuple):
    """Points of a slice, the label of each point's piece, the grid steps, and the number of grid points."""

    grid: FloatArray
    labels: Any
    step: FloatArray
    evenly: int


@dataclass(eq=False)
class KnownCuts:
    """All that is known of cuts from the domain alone, so that cells of any degree have it in common.

    Attributes
    ----------
    slice_pieces
        The connected pieces of each slice, by its key; None for an empty one.
    side_intervals
        For each slice in a plane, its intervals on the sides of its cell: axes, directions, starts and ends.
    contact_ranges
        For each contact in a plane, the intervals of it that lie inside the domain.
    """

    slice_pieces: dict[tuple[Cell, int], SlicePieces | None] = field(default_factory=dict)
    side_intervals: dict[tuple[Cell, int], tuple[Any, FloatArray, FloatArray, FloatArray]] = field(default_factory=dict)
    contact_ranges: dict[Any, list[tuple[float, float]]] = field(default_factory=dict)


def find_components(tree_domain: TreeDomain, slices: list[Slice]) -> None:
    """Find the connected pieces of slices on grids in fitted boxes, and store them with the tree domain."""
    if not slices:
        return
    known = tree_domain.cuts.slice_pieces
    known.update({own.key: None for own in slices})
    low, high = _boxes(tree_domain, slices)
    there = np.flatnonzero((high > low).all(axis=1)).tolist()
    found = [slices[k] for k in there]
    for own, fitted in zip(found, _pieces(tree_domain, found, low[there], high[there]), strict=True):
        known[own.key] = fitted


def _boxes(tree_domain: TreeDomain, slices: list[Slice]) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the boxes around slices; an empty slice has low > high."""
    lowest, highest = (np.array([getattr(own.cell, end) for own in slices]) for end in ("low", "high"))
    low, high = lowest.copy(), highest.copy()
    near_low = np.array([own.near.min(axis=0, initial=np.inf) for own in slices])
    near_high = np.array([own.near.max(axis=0, initial=-np.inf) for own in slices])
    shrinking = np.arange(len(slices))
    while len(shrinking):
        grid, inside, step = _grid(tree_domain, [slices[k] for k in shrinking], low[shrinking], high[shrinking])
        grid_low = np.where(inside[..., None], grid, np.inf).min(axis=1) - step / 2
        grid_high = np.where(inside[..., None], grid, -np.inf).max(axis=1) + step / 2
        new_low = np.maximum(np.minimum(grid_low, near_low[shrinking]), lowest[shrinking])
        new_high = np.minimum(np.maximum(grid_high, near_high[shrinking]), highest[shrinking])
        smaller = ((new_high - new_low) < MOST * (high - low)[shrinking]).any(axis=1)
        low[shrinking], high[shrinking] = new_low, new_high
        shrinking = shrinking[smaller & (new_high > new_low).all(axis=1)]
    return low, high


def _grid(
    tree_domain: TreeDomain, slices: Sequence[Slice], low: FloatArray, high: FloatArray
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return a grid in each of many boxes, which points are in the slices, and the grid steps."""
    d = low.shape[1]
    axis = (np.arange(_GRID[d]) + 0.5) / _GRID[d]
    U = np.stack([g.ravel() for g in np.meshgrid(*[axis] * d, indexing="ij")], axis=1)
    grid = low[:, None] + (high - low)[:, None] * U
    X, row = grid.reshape(-1, d), np.repeat(np.arange(len(slices)), len(U))
    inside = tree_domain.inside_each(X, row, [own.cell for own in slices])
    if tree_domain.interfaces:
        inside &= tree_domain.materials(X) == np.repeat([own.material for own in slices], len(U))
    return grid, inside.reshape(grid.shape[:2]), (high - low) / _GRID[d]


def _pieces(
    tree_domain: TreeDomain, slices: Sequence[Slice], low: FloatArray, high: FloatArray
) -> Iterator[SlicePieces | None]:
    """Yield the points of each slice with the labels of their connected pieces."""
    from scipy.ndimage import generate_binary_structure, label

    if not slices:
        return
    (grid, inside, step), d = _grid(tree_domain, slices, low, high), low.shape[1]
    beside = np.zeros((3,) * (d + 1), dtype=np.bool_)
    beside[1] = generate_binary_structure(d, 1)
    labels = label(inside.reshape(len(slices), *[_GRID[d]] * d), beside)[0].reshape(inside.shape)
    for own, X, there, names, gap in zip(slices, grid, inside, labels, step, strict=True):
        points, found = X[there], names[there].astype(np.int64)
        evenly = len(points)
        if evenly and np.ptp(found):
            found = joined_in_sight(
                points, found, gap, partial(tree_domain.is_material, material=own.material, cell=own.cell)
            )
        if d == 3 and len(own.near):
            points, found = _with_specks(points, found, gap, own.near)
        yield SlicePieces(points, found, gap, evenly) if len(points) else None


def _with_specks(grid: FloatArray, labels: Any, step: FloatArray, near: FloatArray) -> tuple[FloatArray, Any]:
    """Return the grid points, plus boundary points far from all of them, which are small separate pieces."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    # One of several close points is enough.
    near = near[np.unique(np.round(near / step), axis=0, return_index=True)[1]]
    tree = cKDTree(np.concatenate([grid, near]) / step)
    pairs = tree.query_pairs(_FAR, output_type="ndarray")
    size = (tree.n, tree.n)
    _, found = connected_components(coo_array((np.ones(len(pairs)), pairs.T), size), directed=False)
    alone = ~np.isin(found[len(grid) :], found[: len(grid)])
    specks = found[len(grid) :][alone] + 1 + labels.max(initial=0)
    return np.concatenate([grid, near[alone]]), np.concatenate([labels, specks])
