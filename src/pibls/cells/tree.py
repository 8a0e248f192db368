"""Boxes that are halved across one axis at a time: a binary tree whose leaves are the cells.

Trees are immutable. Refining a tree makes a new one that shares all unchanged subtrees, so that results for a cell can
be stored under the cell itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pibls.checks import FloatArray
from pibls.quadrature.roots import CLOSE, ROUNDING
from pibls.refinement import VISIBLE
from pibls.refinement.standards import MOST, PLAIN

__all__ = ["Cell", "Contact", "contacts", "leaves", "refined", "split_along_lines", "split_at_planes"]

_PLACES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.35, 0.65)  # candidate positions of a split, as shares of the side
# Best ratio of neighbouring cells near any power of the distance, (√2 − 1)² (Gui, Babuška), to six binary digits: cells
# of equal size are then equal to the last one, and share their rows.
_BESIDE = 11 / 64


@dataclass(frozen=True, eq=False)
class Cell:
    """A box, whole or halved across one axis.

    Attributes
    ----------
    low, high
        Its lowest and highest corner.
    parent
        The box it is a half of.
    axis, at, halves
        The axis and position at which it is halved, and its halves; halves are empty for a leaf.
    marks
        Points through which it is preferably halved, if they are not too near its ends. A NaN coordinate means any
        value.
    edges
        Sharp edges through which it is preferably halved, by their ends, shape (edges, 2, axes).
    blunt_edges
        Blunt edges, through which it is halved across one axis only: rows of the axis, then both ends.
    ridges
        Convex edges at which conditions change, by their ends: it is halved across them, not along them.
    tangents
        Points at which a split would touch the boundary: rows of the axis, then the point.
    """

    low: FloatArray
    high: FloatArray
    parent: Cell | None = field(default=None, repr=False)
    depth: int = 0
    axis: int = -1
    at: float = np.nan
    halves: tuple[Cell, ...] = field(default=(), repr=False)
    marks: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    tangents: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    edges: FloatArray = field(default_factory=lambda: np.empty((0, 2, 0)))
    blunt_edges: FloatArray = field(default_factory=lambda: np.empty((0, 1)))
    ridges: FloatArray = field(default_factory=lambda: np.empty((0, 2, 0)))

    @property
    def size(self) -> FloatArray:
        """The lengths of its sides."""
        return self.high - self.low

    @cached_property
    def ends(self) -> list[tuple[float, float]]:
        """Its lower and upper end along each axis."""
        return list(zip(self.low.tolist(), self.high.tolist(), strict=True))

    @property
    def boxes(self) -> list[Cell]:
        """Itself and all boxes that it is a part of."""
        return [self, *(self.parent.boxes if self.parent else [])]

    @cached_property
    def contacts_across(self) -> list[Contact]:
        """The contacts of leaves across the position at which it is halved."""
        return _across(self.halves[0], self.halves[1], self.axis, 0.0) if self.halves else []

    @property
    def has_corner(self) -> bool:
        """Whether it has a corner: a mark that is not a plane, or a sharp edge."""
        return bool(self.corners)

    @cached_property
    def corners(self) -> frozenset[tuple[float, ...]]:
        """Its marks that are points, or lines in time, and its sharp edges."""
        finite = np.isfinite(self.marks)
        points = (tuple(mark[own].tolist()) for mark, own in zip(self.marks, finite, strict=True) if own.sum() > 1)
        return frozenset([*points, *(tuple(edge.ravel().tolist()) for edge in self.edges)])

    @property
    def axes_to_corners(self) -> list[int]:
        """The axes to halve it across towards its corners; the direction of parallel edges is left out."""
        return self._axes_across(self.edges, _ends(self.blunt_edges))

    @property
    def axes_across_edges(self) -> list[int]:
        """The axes along which it may be rough near its edges and ridges: their direction, if parallel, is left out."""
        return self._axes_across(self.edges, _ends(self.blunt_edges), self.ridges)

    def _axes_across(self, *lines: FloatArray) -> list[int]:
        """Return the axes without the direction of lines, if these are parallel and there are no other corners."""
        every = [own for own in lines if len(own)]
        if not every or len(self.edges) < len(self.corners):
            return list(range(len(self.low)))
        ways = np.subtract(*np.concatenate(every).swapaxes(0, 1))
        along = np.abs(ways) > (1.0 - CLOSE) * np.linalg.norm(ways, axis=1, keepdims=True)
        return np.flatnonzero(~along.all(axis=0)).tolist()

    def beside_edges(self, axis: int) -> float | None:
        """Return where to cut it across an axis if edges, ridges or points where edges meet lie at one end; else None.

        >>> cell = Cell(np.zeros(3), np.ones(3), edges=np.array([[[0.0, 0, 0], [0, 0, 1]]]))
        >>> [cell.beside_edges(axis) for axis in range(3)] == [_BESIDE, _BESIDE, None]
        True
        """
        return self._beside(axis, 3, _BESIDE)

    @property
    def size_at_corners(self) -> float:
        """Its largest side across the edges at its corners."""
        return float(self.size[self.axes_to_corners].max())

    def cuts_to_corners(self) -> list[tuple[int, float | None]]:
        """Return the cuts that leave a quarter of it at its corners, if these lie at its ends; else halves.

        >>> Cell(np.zeros(2), np.ones(2), marks=np.array([[1.0, 0.5]])).cuts_to_corners()
        [(0, 0.75), (1, None)]
        """
        return [(axis, self._beside(axis, 2, MOST**2)) for axis in self.axes_to_corners]

    def _beside(self, axis: int, least: int, share: float) -> float | None:
        """Return where to cut off a share at one end, if edges, or marks with so many coordinates, lie only there."""
        points = self.marks[np.isfinite(self.marks).sum(axis=1) >= least] if len(self.marks) else self.marks
        every = [own for own in (self.edges, self.ridges, np.stack([points, points], axis=1)) if len(own)]
        lines = np.concatenate(every) if every else np.empty((0, 2, len(self.low)))
        low, high, room = float(self.low[axis]), float(self.high[axis]), CLOSE * float(self.size[axis])
        at_low, at_high = (bool((np.abs(lines[:, :, axis] - end) < room).all(axis=1).any()) for end in (low, high))
        if at_low == at_high:
            return None
        return low + share * (high - low) if at_low else high - share * (high - low)

    def edge_inside(self) -> tuple[int, float] | None:
        """Return axis and position of the cut along an edge inside it that is farthest from its sides, or None."""
        low, high = self.low + CLOSE * self.size, self.high - CLOSE * self.size
        blunt_edges = self.blunt_edges[_segments_inside(_ends(self.blunt_edges), low, high)]
        found = [(int(axis), edge[0, axis]) for edge in self.edges for axis in np.flatnonzero(edge[0] == edge[1])]
        found += [(int(row[0]), row[1 + int(row[0])]) for row in blunt_edges]
        depths = {(axis, float(at)): min(at - low[axis], high[axis] - at) for axis, at in found}
        best = max(depths, key=depths.__getitem__, default=None)
        return best if best is not None and depths[best] > 0.0 else None

    @property
    def is_divisible(self) -> bool:
        """Whether there are digits left for halves, if it was halved equally often across all axes."""
        return bool(0.5 ** (self.depth / len(self.low) + 1) >= ROUNDING)

    def plane_inside(self) -> tuple[int, float] | None:
        """Return axis and position of a plane among its marks that runs through its inside, or None."""
        slack = CLOSE * self.size
        for mark in self.marks:
            (axes,) = np.isfinite(mark).nonzero()
            if (
                len(axes) == 1
                and self.low[axes[0]] + slack[axes[0]] < mark[axes[0]] < self.high[axes[0]] - slack[axes[0]]
            ):
                return int(axes[0]), float(mark[axes[0]])
        return None

    def halved(self, axis: int, at: float | None = None) -> Cell:
        """Return the box halved across an axis, at the preferred position or a given one.

        >>> cell = Cell(np.zeros(2), np.ones(2)).halved(0)
        >>> [half.high.tolist() for half in cell.halves]
        [[0.5, 1.0], [1.0, 1.0]]
        """
        where = self._middle(axis) if at is None else at
        if (axis, where) not in self._halved:
            self._halved[axis, where] = self._made(axis, where)
        return self._halved[axis, where]

    @cached_property
    def _halved(self) -> dict[tuple[int, float], Cell]:
        """The results of :meth:`halved`, so that every caller gets the same cells."""
        return {}

    def _made(self, axis: int, where: float) -> Cell:
        below, above = self.high.copy(), self.low.copy()
        below[axis] = above[axis] = where
        ends = ((self.low, below), (above, self.high))
        halves = tuple(self._half(*end) for end in ends)
        return replace(self, axis=axis, at=float(where), halves=halves)

    def _half(self, low: FloatArray, high: FloatArray) -> Cell:
        """Return a half, with the marks, tangents, edges and ridges that it holds; most cells have none."""
        marks, tangents, edges, blunt, ridges = self.marks, self.tangents, self.edges, self.blunt_edges, self.ridges
        if len(marks) or len(tangents):
            marks, tangents = marks[_held(marks, low, high)], tangents[_held(tangents[:, 1:], low, high, slack=PLAIN)]
        if len(edges) or len(blunt) or len(ridges):
            edges, ridges = edges[_segments_inside(edges, low, high)], ridges[_segments_inside(ridges, low, high)]
            blunt = blunt[_segments_inside(_ends(blunt), low, high)]
        return Cell(low, high, self, self.depth + 1, -1, np.nan, (), marks, tangents, edges, blunt, ridges)

    def _middle(self, axis: int) -> float:
        low, high = float(self.low[axis]), float(self.high[axis])
        touched = self.tangents[self.tangents[:, 0] == axis, 1 + axis] if len(self.tangents) else np.empty(0)

        def clear(places: FloatArray, room: float) -> npt.NDArray[np.bool_]:
            return np.asarray(np.abs(places[:, None] - touched).min(axis=1, initial=np.inf) > room * (high - low))

        if len(self.marks) or len(self.edges) or len(self.blunt_edges):
            level = self.edges[self.edges[:, 0, axis] == self.edges[:, 1, axis], 0, axis] if len(self.edges) else []
            folded = self.blunt_edges[self.blunt_edges[:, 0] == axis, 1 + axis] if len(self.blunt_edges) else []
            values = np.concatenate([self.marks[:, axis] if len(self.marks) else [], level, folded])
            values = values[np.abs(values - (low + high) / 2) < MOST * (high - low) / 2]
            values = values[clear(values, CLOSE)]
            if len(values):
                return float(values[np.abs(values - (low + high) / 2).argmin()])
        places = low + (high - low) * np.array(_PLACES)
        return float(places[clear(places, VISIBLE).argmax()])


@dataclass(frozen=True, eq=False)
class Contact:
    """The common part of the sides of two cells: a flat box; shifted by ``shift`` for the second, if periodic."""

    below: Cell
    above: Cell
    axis: int
    low: FloatArray
    high: FloatArray
    shift: float = 0.0


def _held(points: FloatArray, low: FloatArray, high: FloatArray, slack: float = CLOSE) -> npt.NDArray[np.bool_]:
    """Return which points lie in a box, enlarged by a margin."""
    if not len(points):
        return np.zeros(0, dtype=np.bool_)
    room = slack * (high - low)
    inside = (points >= low - room) & (points <= high + room)
    return np.asarray((inside | np.isnan(points)).all(axis=1))


def _ends(blunt_edges: FloatArray) -> FloatArray:
    """Return the ends of blunt edges."""
    return blunt_edges[:, 1:].reshape(len(blunt_edges), 2, blunt_edges.shape[1] // 2)


def _segments_inside(edges: FloatArray, low: FloatArray, high: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which segments have more than a point in a closed box."""
    if not len(edges):
        return np.zeros(0, dtype=np.bool_)
    start, way = edges[:, 0], edges[:, 1] - edges[:, 0]
    room = CLOSE * (high - low)
    level = way == 0.0
    inside = (start >= low - room) & (start <= high + room)
    first, last = ((end - start) / np.where(level, 1.0, way) for end in (low - room, high + room))
    begin = np.where(level, np.where(inside, 0.0, 1.0), np.minimum(first, last)).max(axis=1)
    end = np.where(level, np.where(inside, 1.0, 0.0), np.maximum(first, last)).min(axis=1)
    shared = np.minimum(end, 1.0) - np.maximum(begin, 0.0)
    return np.asarray(shared * np.abs(way).max(axis=1) > 2.0 * room.max())


def leaves(cell: Cell) -> list[Cell]:
    """Return the leaves of a tree, in order."""
    if not cell.halves:
        return [cell]
    return [leaf for half in cell.halves for leaf in leaves(half)]


def refined(cell: Cell, splits: Mapping[Cell, Sequence[tuple[int, float | None]]]) -> Cell:
    """Return the tree with some leaves split across axes, one after the other; the rest is shared."""
    if not splits:
        return cell
    if not cell.halves:
        return _split(cell, list(splits.get(cell, ())))
    below = {leaf: cuts for leaf, cuts in splits.items() if leaf.ends[cell.axis][0] < cell.at}
    above = {leaf: cuts for leaf, cuts in splits.items() if leaf not in below}
    one, two = cell.halves
    halves = refined(one, below), refined(two, above)
    return cell if halves[0] is one and halves[1] is two else replace(cell, halves=halves)


def split_at_planes(root: Cell) -> Cell:
    """Return a tree whose leaves end at all planes among its marks."""
    while cuts := {leaf: [plane] for leaf in leaves(root) if (plane := leaf.plane_inside()) is not None}:
        root = refined(root, cuts)
    return root


def split_along_lines(root: Cell) -> Cell:
    """Return a tree whose leaves end at all edges along which they can be cut."""
    while cuts := {leaf: [cut] for leaf in leaves(root) if (cut := leaf.edge_inside()) is not None}:
        root = refined(root, cuts)
    return root


def _split(cell: Cell, cuts: list[tuple[int, float | None]]) -> Cell:
    if not cuts or not cell.is_divisible:
        return cell
    (axis, at), *rest = cuts
    halved = cell.halved(axis, at)
    return replace(halved, halves=tuple(_split(half, rest) for half in halved.halves)) if rest else halved


def contacts(root: Cell, periodic: Sequence[int] = (), near: Cell | None = None) -> list[Contact]:
    """Return all contacts of two leaves, also across the ends of periodic axes; or those of leaves that touch a cell.

    >>> tree = Cell(np.zeros(2), np.ones(2)).halved(0)
    >>> tree = refined(tree, {tree.halves[0]: [(1, None)]})
    >>> len(contacts(tree)), len(contacts(tree, periodic=[0]))
    (3, 5)
    """
    found: list[Contact] = []

    def add(cell: Cell) -> None:
        if cell.halves and (near is None or _touch(cell, near)):
            for half in cell.halves:
                add(half)
            found.extend(
                cell.contacts_across if near is None else _across(cell.halves[0], cell.halves[1], cell.axis, 0.0, near)
            )

    add(root)
    for axis in periodic:
        found += _across(root, root, axis, float(root.high[axis] - root.low[axis]), near)
    return found


def _touch(one: Cell, two: Cell) -> bool:
    """Return whether two closed boxes meet."""
    return all(a <= d and c <= b for (a, b), (c, d) in zip(one.ends, two.ends, strict=True))


def _meet(one: Sequence[tuple[float, float]], two: Sequence[tuple[float, float]], axis: int) -> bool:
    """Return whether two boxes have more than an end in common along every axis but one."""
    for other, (low, high) in enumerate(one):
        if other != axis and (high <= two[other][0] or two[other][1] <= low):
            return False
    return True


def _across(below: Cell, above: Cell, axis: int, shift: float, near: Cell | None = None) -> list[Contact]:
    """Return the contacts of the leaves of one box with those of the next box along an axis; or those near a cell."""
    found, pairs = [], [(below, above)]
    while pairs:
        one, two = pairs.pop()
        # Most pairs do not meet.
        if not _meet(one.ends, two.ends, axis) or not (near is None or _touch(one, near) or _touch(two, near)):
            continue
        if one.halves:
            pairs += [(half, two) for half in (one.halves[1:] if one.axis == axis else one.halves[::-1])]
        elif two.halves:
            pairs += [(one, half) for half in (two.halves[:1] if two.axis == axis else two.halves[::-1])]
        else:
            low, high = np.maximum(one.low, two.low), np.minimum(one.high, two.high)
            low[axis] = high[axis] = one.high[axis]
            found.append(Contact(one, two, axis, low, high, shift))
    return found
