"""Mode refinement: splits cells until they resolve the waves and boundary layers that the equations support.

Along one axis, an equation with frozen coefficients has solutions exp(λ s): the modes. Boundary conditions may excite a
mode that no source shows. A wave (imaginary λ) fills the domain. A mode that decays or grows (real part of λ) forms a
layer at an end of the domain. Cells that are too coarse find neither, and their solution says little about where to
split.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from pibls.cells.error_marking import Splits
from pibls.cells.measure import sparse_cube
from pibls.cells.rows import Rows
from pibls.cells.tree import Cell, refined
from pibls.checks import ComplexArray, FloatArray
from pibls.errors import ProblemError
from pibls.refinement import VISIBLE
from pibls.refinement.standards import PLAIN

__all__ = ["ModeRefinement"]


@dataclass(eq=False)
class ModeRefinement:
    """Splits cells until they resolve the modes of the linear equations of a problem."""

    rows: Rows
    _cuts: dict[Cell, list[tuple[int, float | None]]] = field(default_factory=dict)  # of all cells that were looked at
    _planes: set[tuple[int, float]] = field(default_factory=set)  # axes and positions of cuts

    def refined(self, root: Cell, tol: float, most: int) -> Cell:
        """Return a tree that resolves layers and waves; waves only if there are at most so many cells."""
        root = self.resolving_layers(root, tol)
        return self.resolving_waves(root, tol, most) or root

    @property
    def _count(self) -> int:
        return self.rows.layout.trace_degree + 1

    def resolving_waves(self, root: Cell, tol: float, most: int) -> Cell | None:
        """Return a tree that resolves waves, or None if it would have more than so many cells.

        What cells miss of a wave adds up along its way through the domain.
        """
        if not self._axes:
            return root
        share, longest = self._limits_of_waves(tol)
        turned = self._wave_numbers([root], share)[0] * root.size / 2
        share, longest = self._limits_of_waves(tol / max(1.0, float(turned.max()) / longest))
        while True:
            cells = self.rows.layout.within(root)
            if len(cells) > most:
                return None
            turns = self._wave_numbers(cells, share) * np.array([cell.size for cell in cells]) / 2
            splits: Splits = {
                cell: [(int(axis), None) for axis in np.flatnonzero(own)]
                for cell, own in zip(cells, turns > longest, strict=True)
            }
            before, root = root, refined(root, splits)
            if root is before:
                return root

    def _limits_of_waves(self, tol: float) -> tuple[float, float]:
        """Return the share of a mode that cells may miss, and the longest half of a cell, by the length of the mode.

        A polynomial of degree n on a cell whose half is h radians misses (e h / 2n)^n of a wave. Richer cells resolve
        modes to the last digits later.
        """
        share = min(tol / PLAIN, VISIBLE)
        return share, 2.0 * self._count / math.e * share ** (1.0 / self._count)

    def resolving_layers(self, root: Cell, tol: float) -> Cell:
        """Cut off a cell where a layer at an end of the domain is too thin to be seen by polynomials on the whole cell.

        Polynomials of degree n see layers of width h / n² at the ends of a cell of size h. The cell that is cut off
        contains the layer down to rounding, and is halved towards the end until it resolves it.
        """
        while self._axes:
            cells = self.rows.layout.within(root)
            self._cuts |= {cell: self._cut(cell, tol) for cell in cells if cell not in self._cuts}
            before, root = root, refined(root, {cell: self._cuts[cell] for cell in cells})
            if root is before:
                break
        return root

    def _cut(self, cell: Cell, tol: float) -> list[tuple[int, float | None]]:
        """Return where a cell is cut because of layers."""
        cuts: dict[int, float | None] = {}
        folds, (_, longest) = -math.log(sys.float_info.epsilon), self._limits_of_waves(tol)
        for axis, above in self._ends(cell):
            reach, size = self._reach(cell, axis, folds, above=above), cell.size[axis]
            inner = float((cell.low if above else cell.high)[axis])
            if reach * self._count**2 < folds * size:
                depth = min(reach, size / 2)
            elif (axis, inner) in self._planes and folds * size > 2.0 * longest * reach:
                depth = size / 2
            else:
                continue
            cuts[axis] = where = float(cell.high[axis] - depth if above else cell.low[axis] + depth)
            self._planes.add((axis, where))
        return list(cuts.items())

    @cached_property
    def _axes(self) -> list[int]:
        """The axes along which some field has derivatives of several orders in one linear equation."""
        found: set[int] = set()
        if not self.rows.problem.is_linear:
            return []
        for equation in self.rows.equations:
            for axis, name in product(range(self.rows.orders.shape[1]), self.rows.problem.field_names):
                indices = [term.multi_index for term in equation.form.terms if term.field == name]
                if len({index[axis] for index in indices if sum(index) == index[axis]}) > 1:
                    found.add(axis)
        return sorted(found)

    def _ends(self, cell: Cell) -> Iterator[tuple[int, bool]]:
        """Yield the axes and sides at which a cell ends at the boundary, at another material, or where data jump."""
        tree_domain, root, X = self.rows.layout.tree_domain, self.rows.layout.root, _sampled(cell.low, cell.high)
        planes = root.marks[np.isfinite(root.marks).sum(axis=1) == 1] if len(root.marks) else np.empty((0, X.shape[1]))
        if not tree_domain.is_box and not tree_domain.inside(X).all():
            return
        for axis, above in product(set(self._axes) - set(self.rows.traces.periodic), (False, True)):
            end, last = ((own.high if above else own.low)[axis] for own in (cell, root))
            beyond = X.copy()
            beyond[:, axis] = end + (1 if above else -1) * tree_domain.side_offset(cell)
            if (
                end == last
                or end in planes[:, axis]
                or not tree_domain.inside(beyond).any()
                or (tree_domain.materials(X) != tree_domain.materials(beyond)).all()
            ):
                yield axis, above

    def _reach(self, cell: Cell, axis: int, folds: float, *, above: bool) -> float:
        """Return the distance from an end of a cell within which its fastest mode decays by so many e-folds.

        The mode decays with its least rate there. If the rate falls as fast as the distance grows, there is no layer.
        """
        low, high, reach = cell.low.copy(), cell.high.copy(), 0.0
        end = float(cell.high[axis] if above else cell.low[axis])
        near = self.rows.layout.tree_domain.side_offset(cell)
        while reach < cell.size[axis]:
            far = max(reach, near)
            low[axis], high[axis] = (end - far, end - near) if above else (end + near, end + far)
            modes = self._modes(_sampled(low, high)[:, None], axis)
            rates = [(own.real if above else -own.real).max(axis=1).min() for own in modes]
            rate = float(max(rates, default=0.0))
            before, reach = reach, folds / rate if rate > 0 else math.inf
            if reach <= 2.0 * before:
                break
        return reach

    def _wave_numbers(self, cells: list[Cell], share: float) -> FloatArray:
        """Return the largest wave number in each cell along each axis, without waves that decay within the cell."""
        tree_domain, sizes = self.rows.layout.tree_domain, np.array([cell.size for cell in cells])
        X = np.array([_sampled(cell.low, cell.high) for cell in cells])
        if self.rows.is_constant:
            X = X[:1, :1]
        elif not tree_domain.is_box:
            inside = tree_domain.inside(X.reshape(-1, X.shape[2])).reshape(X.shape[:2])
            X = np.where(inside[:, :, None], X, X[np.arange(len(X)), inside.argmax(axis=1)][:, None])
        found = np.zeros_like(sizes)
        for axis in self._axes:
            decayed = -math.log(share) / sizes[:, axis, None]
            for own in self._modes(X, axis):
                waves = np.where(np.abs(own.real) < decayed, np.abs(own.imag), 0.0)
                found[:, axis] = np.maximum(found[:, axis], waves.max(axis=1))
        return found

    def _modes(self, X: FloatArray, axis: int) -> Iterator[ComplexArray]:
        """Yield the exponents λ of the modes of each equation and field along an axis, at points of many cells.

        Points have shape (cells, points, axes), and exponents (cells, points times number of modes).
        """
        flat = X.reshape(-1, X.shape[2])
        for equation in self.rows.equations:
            try:
                terms = self.rows.terms(equation, flat, None, [])
            except ProblemError:
                continue
            for number in range(len(self.rows.orders)):
                pure = {sum(index): value for n, index, value in terms if n == number and sum(index) == index[axis]}
                order = max(pure, default=0)
                if len(pure) < 2 or order < self.rows.orders[number, axis]:
                    continue
                # The eigenvalues of the companion matrix are the zeros of the characteristic polynomial.
                companion = np.zeros((len(flat), order, order))
                companion[:, np.arange(1, order), np.arange(order - 1)] = 1.0
                with np.errstate(all="ignore"):
                    for power in range(order):
                        companion[:, power, -1] = np.nan_to_num(
                            -pure.get(power, 0.0) / pure[order], posinf=0.0, neginf=0.0
                        )
                yield np.linalg.eigvals(companion).astype(np.complex128).reshape(len(X), -1)


def _sampled(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return a few points of a box."""
    return np.asarray(low + (high - low) * (1.0 + sparse_cube(len(low))[0]) / 2)
