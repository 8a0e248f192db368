"""Error marking: selects the cells to split, and the axes, from the roughness of a solution."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pibls.cells.fitters import highest_degree
from pibls.cells.layout import Layout
from pibls.cells.measure import TAIL, Decay, shares_of, stacked, tails_of
from pibls.cells.parts import CellPart
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import BoolArray, FloatArray
from pibls.refinement import VISIBLE
from pibls.refinement.standards import MOST, NEGLIGIBLE, PLAIN, SLIGHT

__all__ = ["ErrorMarking", "Mark", "Option", "Splits", "cuts_along"]

Splits = dict[Cell, list[tuple[int, float | None]]]
Mark = tuple[float, ...]


_REST = 0.02  # share of the squared roughness in cells that are not split, or that neighbours may have caused
_LEVELS = 3  # of splits towards a singular landmark in cells that are split anyway; one less elsewhere


class Option(NamedTuple):
    """Cells that meet an error: which ones are split, how many there are then, and how many times the functions."""

    splits: Splits
    cells: int
    growth: float


def cuts_along(tails: FloatArray, least: float = 0.0) -> list[tuple[int, float | None]]:
    """Return halving cuts across all axes along which the roughness of a cell is not negligible.

    >>> cuts_along(np.array([1.0, 0.05, 0.2]))
    [(0, None), (2, None)]
    """
    return [(int(axis), None) for axis in np.flatnonzero(tails >= max(least, NEGLIGIBLE * tails.max()))]


@dataclass(eq=False)
class ErrorMarking:
    """Selects cells to split, from solutions with the functions of one layout."""

    layout: Layout
    _known: tuple[Fit | None, bytes, dict[CellPart, FloatArray]] = field(default=(None, b"", {}))
    _decay: tuple[Fit | None, Decay | None] = (None, None)
    _total: tuple[float, int] = (0.0, sys.maxsize)  # roughness of the last solution, and its number of parts
    # Whether roughness fell since the tree before, but by less than half of what it does where solutions are smooth.
    _falls_slowly: bool = False

    def decay(self, fit: Fit) -> Decay:
        """Return how the coefficients of a solution decay; kept for the last fit."""
        known, found = self._decay
        if known is not fit or found is None:
            found = tails_of(self.layout.reference).decay(fit.parts, stacked(fit)[1], self.layout.triangle)
            self._decay = fit, found
        return found

    def splits(self, fit: Fit, sizes: FloatArray, most: float = math.inf) -> tuple[Splits, float]:
        """Return the splits of the cells with nearly all of the roughness, and of those with half of the residual.

        At most about ``most`` new cells are made, the roughest first. The second value is the share of the selected
        roughness in the cells that are split.
        """
        along_axes = self.rough(fit, sizes)
        roughness = {part: float(np.linalg.norm(tails)) for part, tails in along_axes.items()}
        at_edges = self.decay(fit).smooth if self._falls_slowly else self._parts_not_singular(fit)
        is_smooth = dict(zip(fit.parts, at_edges.tolist(), strict=True))
        selected = dict.fromkeys([*_bulk(roughness, 1.0 - _REST), *_bulk(fit.residuals, MOST)])
        splits: Splits = {}
        in_selected = in_split = 0.0
        for part in selected:
            in_selected += roughness[part] ** 2
            cuts = self.cuts(part.cell, along_axes[part], is_smooth[part])
            if most > 0 and part.cell.is_divisible:
                splits[part.cell] = cuts
                in_split += roughness[part] ** 2
                most -= 2 ** len(cuts) - 1
        return splits, in_split / in_selected if in_selected > 0 else 1.0

    def wanted(self, fit: Fit, sizes: FloatArray) -> int:
        """Return how many more cells it asks for."""
        return sum(2 ** len(axes) - 1 for axes in self.splits(fit, sizes)[0].values())

    def errors(self, fit: Fit, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the expected error of each part, and the ratio by which its coefficients fall, from its roughness."""
        decay = self.decay(fit)
        last, before = (np.linalg.norm(own / sizes, axis=1) for own in (decay.last, decay.before))
        falls = np.minimum(last / np.where(before > 0, before, 1.0), 1.0)
        return falls * np.array([np.linalg.norm(own) for own in self.rough(fit, sizes).values()]), falls

    def expected(self, fit: Fit, sizes: FloatArray) -> float:
        """Return the expected error of a solution: coefficients go on to fall as they fell, as geometric series."""
        errors, falls = self.errors(fit, sizes)
        return float(np.linalg.norm(errors / np.maximum(1.0 - falls, SLIGHT)))

    def options(self, fit: Fit, sizes: FloatArray, goal: float) -> dict[int, Option]:
        """Return the cells that meet an error, if they become richer by some degrees.

        Errors of parts fall as their coefficients do. Parts that hold more than the goal then are split.
        """
        tails, degree, d = self.rough(fit, sizes), self.layout.reference.degree, self.layout.reference.dimension
        errors, falls = self.errors(fit, sizes)
        found = {}
        for more in range(0, highest_degree(d) - degree + 1, 2):
            left = errors * falls ** (more / self._quarter)
            order = np.argsort(left)
            parts = [fit.parts[k] for k in order[np.cumsum(np.square(left[order])) > goal**2].tolist()]
            splits = {part.cell: self.cuts(part.cell, tails[part], True) for part in parts if part.cell.is_divisible}
            cells = len(fit.parts) + sum(2 ** len(cuts) - 1 for cuts in splits.values())
            found[more] = Option(splits, cells, math.comb(degree + more + d, d) / math.comb(degree + d, d))
        return found

    def share(self, fit: Fit, sizes: FloatArray, root: Cell) -> float:
        """Return the share of the squared roughness in cells that a finer tree splits."""
        squares = {part: float(tails @ tails) for part, tails in self.rough(fit, sizes).items()}
        kept, total = set(leaves(root)), sum(squares.values())
        return sum(own for part, own in squares.items() if part.cell not in kept) / total if total > 0 else 1.0

    def rough(self, fit: Fit, sizes: FloatArray) -> dict[CellPart, FloatArray]:
        """Return the roughness of the roughest field on every part, along each axis; kept for the last fit."""
        if self._known[0] is not fit or self._known[1] != sizes.tobytes():
            found = (self.decay(fit).rough * (shares_of(self.layout, fit) / sizes)[:, :, None]).max(axis=1)
            if self._known[0] is not fit:
                now, (before, cells) = float(np.linalg.norm(found)), self._total
                least = (cells / len(found)) ** (MOST * self.layout.reference.degree / self.layout.reference.dimension)
                self._falls_slowly = cells < len(found) and now > least * before
                self._total = now, len(found)
            self._known = fit, sizes.tobytes(), dict(zip(fit.parts, found, strict=True))
        return self._known[2]

    def cuts(self, cell: Cell, tails: FloatArray, smooth: bool) -> list[tuple[int, float | None]]:
        """Return how to cut a cell: across the axes along which it is rough, near edges where it is not smooth."""
        cuts = cuts_along(tails) if tails.max() > 0 else [(int(cell.size.argmax()), None)]
        # Near an edge, roughness across the edge also appears along it.
        spared = set(range(len(tails))) - {*cell.axes_across_edges, int(tails.argmax())}
        return [(axis, None if smooth else cell.beside_edges(axis)) for axis, _ in cuts if axis not in spared]

    def _parts_not_singular(self, fit: Fit) -> BoolArray:
        """Return on which parts a solution does not look singular: where it is smooth, or where it is smooth nowhere.

        If no part is smooth, a singular landmark looks the same as waves that cells do not resolve yet.
        """
        smooth = self.decay(fit).smooth
        return smooth if smooth.any() else ~smooth

    def may_hide_corners(self, fit: Fit, sizes: FloatArray, tol: float) -> bool:
        """Return whether a finer tree would show nothing of corners, because cells are only halved so far.

        A solution whose roughness is slight beside the tolerance has no corners to hide.
        """
        if not any(part.cell.has_corner for part in fit.parts) or self.decay(fit).smooth.any():
            return False
        return math.sqrt(sum(float(own @ own) for own in self.rough(fit, sizes).values())) > SLIGHT * tol

    def is_smooth(self, fit: Fit) -> bool:
        """Return whether a solution is smooth on all parts."""
        return bool(self.decay(fit).smooth.all())

    def is_singular(self, fit: Fit) -> bool:
        """Return whether a solution is not smooth at a corner."""
        return any(part.cell.has_corner for part, own in zip(fit.parts, self.decay(fit).smooth, strict=True) if not own)

    def left_per_degree(self, fit: Fit) -> FloatArray:
        """Return the share of the error of each field that one degree more leaves, from the decay of coefficients."""
        return np.asarray(self.decay(fit).left_per_quarter ** (1.0 / self._quarter))

    @property
    def _quarter(self) -> float:
        """Number of degrees in the highest quarter."""
        return (1.0 - TAIL) * self.layout.reference.degree

    def seems_smooth(self, fit: Fit, sizes: FloatArray) -> bool:
        """Return whether a solution is smooth wherever it has a notable roughness, and no doubt arises elsewhere.

        Where a solution is nearly zero, its coefficients are errors from other cells, and do not decay.
        """
        if self.is_singular(fit):
            return False
        left = [part for part, own in zip(fit.parts, self.decay(fit).smooth, strict=True) if not own]
        rough = {part: float(tails @ tails) for part, tails in self.rough(fit, sizes).items()}
        return sum(rough[part] for part in left) <= _REST * sum(rough.values())

    def refined(
        self, fit: Fit, sizes: FloatArray, goal: float = 1.0, most: float = math.inf, given: Splits | None = None
    ) -> tuple[Cell, float]:
        """Return a finer tree, with extra levels towards singular landmarks, and the share of the roughness it splits.

        One level halves the error at a crack tip, where it falls most slowly. ``given`` are splits of which it is
        known that they pay.
        """
        splits, share = self.splits(fit, sizes, most) if given is None else (given, 1.0)
        root, levels = refined(fit.root, splits), self._levels(fit, self.rough(fit, sizes), splits, goal)
        for level in range(max(levels.values(), default=0)):
            cells, marks = leaves(root), {mark for mark, count in levels.items() if count > level}
            if len(cells) > len(fit.parts) + most:
                break
            marked = [leaf for leaf in cells if not marks.isdisjoint(leaf.corners)]
            root = refined(root, {leaf: [(a, leaf.beside_edges(a)) for a in leaf.axes_to_corners] for leaf in marked})
        return self.layout.trimmed(root), share

    def _levels(self, fit: Fit, rough: Mapping[CellPart, FloatArray], splits: Splits, goal: float) -> Counter[Mark]:
        """Return the number of levels of splits towards each landmark.

        One level where a part is not smooth, more where the solution is singular. Where one landmark has most of the
        roughness, the levels suffice for the error goal.
        """
        levels, around, singular = Counter[Mark](), Counter[Mark](), set[Mark]()
        # The behaviour at a corner singularity is known: its functions are part of the solution.
        known = {tuple(singularity.point.tolist()) for singularity in self.layout.tree_domain.corner_singularities}
        for part, smooth in zip(fit.parts, self._parts_not_singular(fit), strict=True):
            marks, alone = part.cell.corners - known, len(part.cell.corners) == 1
            around.update(dict.fromkeys(marks, float(rough[part] @ rough[part])) if alone else {})
            if not smooth:
                # A solution that is singular at a point is rough in all cells around it. The coefficients of a cut cell
                # say little. A cell with several landmarks is too large to show which one is singular.
                singular |= {mark for mark in marks if alone and len(mark) == 2}
                deep = not marks.isdisjoint(singular) and (part.cell in splits or not part.whole)
                levels |= Counter(dict.fromkeys(marks, _LEVELS if deep else 1))
        total, most = sum(float(tails @ tails) for tails in rough.values()), -math.log2(min(goal, VISIBLE))
        levels |= Counter({mark: _LEVELS - 1 for mark in singular if around[mark] > PLAIN**2 * total})
        return levels | Counter({mark: math.ceil(most) for mark in singular if around[mark] > total / 2})


def _bulk(values: Mapping[CellPart, float], share: float) -> list[CellPart]:
    """Return the fewest parts whose values hold a share of the sum of squares."""
    total, held, chosen = sum(value**2 for value in values.values()), 0.0, []
    for part in sorted(values, key=lambda one: -values[one]):
        chosen.append(part)
        held += values[part] ** 2
        if held >= share * total:
            break
    return chosen
