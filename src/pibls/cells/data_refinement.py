"""Data refinement: splits cells until they resolve sources, coefficients and boundary values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.linalg import block_diag

from pibls.cells.data_roughness import DataRoughness, Roughness
from pibls.cells.error_marking import Splits, cuts_along
from pibls.cells.modes import ModeRefinement
from pibls.cells.parts import CellPart
from pibls.cells.rows import Rows
from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import FloatArray
from pibls.features.reference import rule_count
from pibls.quadrature.rules import gauss, tensor
from pibls.refinement import VISIBLE
from pibls.refinement.patience import TREES
from pibls.refinement.standards import FALLS, SLIGHT

__all__ = ["DataRefinement"]


@lru_cache(maxsize=8)
def _halved_rules(dimension: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss rules of the cube, plain and with one axis halved: points, and a row of weights per rule."""
    whole, halves = gauss(count), gauss(2 * (count // 4))  # an even number, as data may be singular at centres
    panels = np.concatenate([halves[0] / 2, (1 + halves[0]) / 2]), np.tile(halves[1] / 2, 2)
    rules = [tensor(*([whole] * dimension))]
    rules += [tensor(*(panels if a == axis else whole for a in range(dimension))) for axis in range(dimension)]
    weights = block_diag(*(own[None] for _, own in rules))
    return 2.0 * np.concatenate([U for U, _ in rules]) - 1.0, 2.0**dimension * weights


@dataclass(eq=False)
class DataRefinement:
    """Splits cells until they resolve the data of a problem, or only the sources of some forms, given by id."""

    rows: Rows
    only: frozenset[int] | None = None
    _unsure: dict[Cell, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # one measures the roughness of the data, one resolves the waves and layers that the equations support
        self.roughness, self.modes = DataRoughness(self.rows, self.only), ModeRefinement(self.rows)

    def resolving_data(self, root: Cell, tol: float, most: int) -> Cell:
        """Split cells until each resolves the sources, coefficients and boundary values, or there would be too many."""
        while True:
            cells = self.rows.layout.within(root)
            limits = self._limits(cells, tol)
            tails = [_beyond(found, *limits) for found in self.roughness.measured(cells)]
            stay = [number for number, own in enumerate(tails) if own.max() <= 1.0]
            for number, found in zip(stay, self.roughness.search_postponed([cells[n] for n in stay]), strict=True):
                tails[number] = _beyond(found, *limits)
            splits: Splits = {
                cell: cuts_along(own, 1.0) for cell, own in zip(cells, tails, strict=True) if own.max() > 1.0
            }
            few = len(cells) + sum(2 ** len(s) for s in splits.values()) <= most
            before, root = root, refined(root, splits) if splits and few else root
            if root is before:
                return root

    def _limits(self, cells: list[Cell], tol: float) -> tuple[float, float]:
        """Return the roughness that data, and coefficients, may have on a cell."""
        share = min(tol / SLIGHT, VISIBLE)  # solving smooths their errors
        scale = float(np.sqrt(sum(found.square for found in self.roughness.measured(cells))))
        return share * scale, share * float(np.sqrt(np.prod(self.rows.layout.root.size)))

    def misses_features(self, root: Cell, tol: float) -> bool:
        """Return whether data have narrow features that no cell of the tree resolves."""
        if self.only is not None and not self.roughness.may_be_narrow:
            return False
        cells = leaves(root)
        limit, relative = self._limits(cells, tol)
        rough = self.roughness.search_postponed(cells)
        return any(one.narrow.max() > limit or one.coefficients.max() > relative for one in rough)

    def resolving_integrals(self, root: Cell, limit: float, most: float) -> Cell:
        """Split whole cells until their quadrature resolves the integrals of sources, or splitting does not help.

        A source that is infinite at a point has finite integrals. Their error affects the solution everywhere, however
        small the cell is. In a nonlinear problem the error depends on the state, so no cell is split for it.
        """
        while self.rows.problem.is_linear:
            splits: Splits = {}
            for part in self._summable(root):
                missed = self._unsure[part.cell]
                cuts = cuts_along(missed, limit) if missed.max() > limit else []
                if cuts and self._pays(part, cuts):
                    splits[part.cell] = cuts
            most -= sum(2 ** len(own) - 1 for own in splits.values())
            before, root = root, refined(root, splits)
            if root is before or most < 0:
                return before
        return root

    def _summable(self, root: Cell) -> list[CellPart]:
        """Return the whole parts of a tree, after measuring their integration errors."""
        whole = [part for part in self.rows.layout.parts_of(leaves(root)) if part.whole]
        if new := [part for part in whole if part.cell not in self._unsure]:
            missed = self._missed_sums(new, [part.cell for part in new])
            self._unsure |= dict(zip((part.cell for part in new), missed, strict=True))
        return whole

    def integral_error(self, root: Cell) -> float:
        """Return the error of the integrals of sources over all cells; zero if the integrals are infinite."""
        missed = {cell: float(self._unsure[cell].max()) for cell in leaves(root) if cell in self._unsure}
        most = max(missed, key=missed.__getitem__, default=None)
        if most is None or missed[most] == 0.0:
            return 0.0
        (part,) = self.rows.layout.parts(most)
        return sum(missed.values()) / (1.0 - FALLS) if self._pays(part, cuts_along(self._unsure[most])) else 0.0

    def _pays(self, part: CellPart, cuts: list[tuple[int, float | None]]) -> bool:
        """Return whether smaller cells have a smaller integration error: they do unless the integral is infinite.

        Of the tail of something narrow beside a cell, its halves may see more than it did.
        """
        worst, before = part.cell, float(self._unsure[part.cell].max())
        for _ in range(TREES.window):
            boxes = leaves(refined(worst, {worst: cuts}))
            missed = self._missed_sums([part] * len(boxes), boxes).max(axis=1)
            if missed.sum() < FALLS * before:
                return True
            worst, cuts = boxes[int(missed.argmax())], [(axis, None) for axis, _ in cuts]
        return False

    def _missed_sums(self, parts: list[CellPart], boxes: list[Cell]) -> FloatArray:
        """Return the integration error of sources over boxes in parts, by axis, in units of the solution."""
        low, half = np.array([box.low for box in boxes])[:, None], np.array([box.size for box in boxes])[:, None] / 2
        U, weights = _halved_rules(low.shape[2], rule_count(self.rows.layout.reference.degree))
        found, whole = np.zeros((len(boxes), low.shape[2])), self.rows.layout.root.size / 2
        for number, equation in enumerate(self.rows.equations):
            source = equation.form.source_function
            if source.constant is None:
                units = np.array([self.rows.weights(part, whole)[number] for part in parts])
                X = (low + half * (1.0 + U)).reshape(-1, low.shape[2])
                sums = source(X).reshape(len(boxes), -1) @ weights.T
                missed = (units * np.prod(half[:, 0], axis=1))[:, None] * np.abs(sums[:, 1:] - sums[:, :1])
                found = np.maximum(found, missed)
        return found


def _beyond(found: Roughness, limit: float, relative: float) -> FloatArray:
    """Return the roughness of a cell relative to the limits."""
    data = found.data / limit if limit > 0.0 else np.where(found.data > 0.0, np.inf, 0.0)
    return np.maximum(data, found.coefficients / relative)
