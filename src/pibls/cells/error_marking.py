"""Error marking: which cells to split, and across which axes, from how rough a solution is on each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.measure import Tails, shares_of, stacked, tails_of
from pibls.cells.parts import CellPart
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import FloatArray
from pibls.refinement import VISIBLE

__all__ = ["ErrorMarking", "Splits", "cuts_along"]

Splits = dict[Cell, list[tuple[int, float | None]]]
Mark = tuple[float, ...]

_REST = 0.02  # of all that is rough (squared), in cells that are not split, or may have it from others
_LACKING_SHARE = 0.5  # of all that rows lack, in cells that are split
_LEVELS, _SOME_LEVELS = 3, 2  # towards a landmark, at once: where cells are split in any case, and elsewhere
_FELT = 1e-5  # of all that is rough (squared): what is singular at a point is felt everywhere
_SIDEWAYS = 0.1  # an axis this much smoother than the roughest one is not split


def cuts_along(tails: FloatArray, least: float = 0.0) -> list[tuple[int, float | None]]:
    """Return cuts in halves across the axes along which a cell is about as rough as along the roughest one.

    >>> cuts_along(np.array([1.0, 0.05, 0.2]))
    [(0, None), (2, None)]
    """
    return [(int(axis), None) for axis in np.flatnonzero(tails >= max(least, _SIDEWAYS * tails.max()))]


@dataclass(eq=False)
class ErrorMarking:
    """Chooses splits from solutions with the functions of one layout."""

    layout: Layout
    _known: tuple[Fit | None, bytes, dict[CellPart, FloatArray]] = field(default=(None, b"", {}))

    @property
    def tails(self) -> Tails:
        """Measures roughness."""
        return tails_of(self.layout.reference)

    def splits(self, fit: Fit, sizes: FloatArray, most: float = math.inf) -> tuple[Splits, float]:
        """Return the splits of the cells that hold nearly all that is rough, and of those that lack most.

        Where that would give too many new cells only the roughest are split; the share of all that is rough in those
        that were chosen and are split comes with them.
        """
        tails = self.rough(fit, sizes)
        rough = {part: float(np.linalg.norm(values)) for part, values in tails.items()}
        chosen = [*_bulk(rough, 1.0 - _REST), *_bulk(fit.residuals, _LACKING_SHARE)]
        splits: Splits = {}
        wanted = held = 0.0
        for part in dict.fromkeys(chosen):
            wanted += rough[part] ** 2
            cuts = self.cuts(part.cell, tails[part])
            if most > 0:
                splits[part.cell] = cuts
                held += rough[part] ** 2
                most -= 2 ** len(cuts) - 1
        return splits, held / wanted if wanted > 0 else 1.0

    def rough(self, fit: Fit, sizes: FloatArray) -> dict[CellPart, FloatArray]:
        """Return how rough the roughest field is on every part, along each axis; that of the last fit is kept."""
        if self._known[0] is not fit or self._known[1] != sizes.tobytes():
            halves, weights = stacked(fit)
            tails = self.tails.of_weights(weights, halves)
            zero = (0,) * halves.shape[1]
            for number, part in enumerate(fit.parts):
                if not part.whole:
                    values = self.layout.nodes(part, part.points, [zero])[zero]
                    tails[number] = self.tails.of_cut(weights[number], part, values)
            found = (tails * (shares_of(self.layout, fit) / sizes)[:, :, None]).max(axis=1)
            self._known = fit, sizes.tobytes(), dict(zip(fit.parts, found, strict=True))
        return self._known[2]

    def cuts(self, cell: Cell, tails: FloatArray) -> list[tuple[int, float | None]]:
        """Return the axes to halve a cell across: those along which it is rough."""
        cuts = cuts_along(tails) if tails.max() > 0 else [(int(cell.size.argmax()), None)]
        # What is rough across an edge, a cell cannot tell from what is rough along it.
        spared = set(range(len(tails))) - {*cell.across, int(tails.argmax())}
        return [cut for cut in cuts if cut[0] not in spared]

    def is_smooth(self, fit: Fit) -> bool:
        """Tell whether a solution is smooth on all parts."""
        return bool(self.tails.are_smooth(stacked(fit)[1]).all())

    def seems_smooth(self, fit: Fit, sizes: FloatArray) -> bool:
        """Tell whether it is smooth where nearly all that is rough is, and can only be smooth elsewhere.

        In cells in which a solution is next to nothing, coefficients are errors that come from others, and do not fall.
        """
        smooth = self.tails.are_smooth(stacked(fit)[1])
        left = [part for part, own in zip(fit.parts, smooth, strict=True) if not own]
        if any(part.cell.has_corner or not part.whole for part in left):
            return False
        rough = {part: float(tails @ tails) for part, tails in self.rough(fit, sizes).items()}
        return sum(rough[part] for part in left) <= _REST * sum(rough.values())

    def refined(self, fit: Fit, sizes: FloatArray, goal: float = 1.0, most: float = math.inf) -> tuple[Cell, float]:
        """Return a finer tree, split towards landmarks at which the solution is not smooth, and its share of splits.

        A level halves the error at a crack, where it falls most slowly.
        """
        splits, share = self.splits(fit, sizes, most)
        root, levels = refined(fit.root, splits), self._levels(fit, self.rough(fit, sizes), splits, goal)
        for level in range(max(levels.values(), default=0)):
            cells, marks = leaves(root), {mark for mark, count in levels.items() if count > level}
            if len(cells) > len(fit.parts) + most:
                break
            marked = [leaf for leaf in cells if not marks.isdisjoint(leaf.corners)]
            root = refined(root, {leaf: [(axis, None) for axis in leaf.across] for leaf in marked})
        return self.layout.trimmed(root), share

    def _levels(self, fit: Fit, rough: Mapping[CellPart, FloatArray], splits: Splits, goal: float) -> Counter[Mark]:
        """Return how often cells are split towards each landmark.

        That is once, so that a finer solution is finer there, and more often where it is singular. Where most of all
        that is rough is, it is until the error has fallen to its goal, and does not show beside what it was.
        """
        found, around, flat = Counter[Mark](), Counter[Mark](), set[Mark]()
        # What a solution does at a crossing is known: cells only have to take it up.
        known = {tuple(crossing.point.tolist()) for crossing in self.layout.ground.crossings}
        for part, smooth in zip(fit.parts, self.tails.are_smooth(stacked(fit)[1]), strict=True):
            marks, alone = part.cell.corners - known, len(part.cell.corners) == 1
            around.update(dict.fromkeys(marks, float(rough[part] @ rough[part])) if alone else {})
            if not smooth:
                # What is singular at a point is so in all cells around it; of a cut cell, coefficients tell little. A
                # cell with several corners is too large to tell which of them it is.
                flat |= marks if alone and not len(part.cell.edges) else set()
                deep = not marks.isdisjoint(flat) and (part.cell in splits or not part.whole)
                found |= Counter(dict.fromkeys(marks, _LEVELS if deep else 1))
        total, most = sum(float(tails @ tails) for tails in rough.values()), -math.log2(min(goal, VISIBLE))
        found |= Counter({mark: _SOME_LEVELS for mark in flat if around[mark] > _FELT * total})
        return found | Counter({mark: math.ceil(most) for mark in flat if around[mark] > total / 2})


def _bulk(values: Mapping[CellPart, float], share: float) -> list[CellPart]:
    """Return the fewest parts whose values hold a share of the square sum of all."""
    total, held, chosen = sum(value**2 for value in values.values()), 0.0, []
    for part in sorted(values, key=lambda one: -values[one]):
        chosen.append(part)
        held += values[part] ** 2
        if held >= share * total:
            break
    return chosen
