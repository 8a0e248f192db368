"""Solves a linear problem on one tree very often, for combinations of the same right-hand sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pibls.cells.batches import Factors
from pibls.cells.branches import Branch
from pibls.cells.compiled_leaves import IntArray, Leaves
from pibls.cells.compiled_tree import CompiledTree
from pibls.cells.evaluation import Sources
from pibls.cells.factored_tree import FactoredTree
from pibls.cells.parts import CellPart
from pibls.cells.prepared_tree import units_of
from pibls.cells.solve import TreeSolver
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.solvers.elimination import DependentError, Elimination
from pibls.solvers.grams import Grams
from pibls.solvers.rotations import Rotations

__all__ = ["Lifted", "Repeated"]

Lifted = list[tuple[FloatArray, FloatArray]]
"""Own unknowns without the shared ones, and right-hand sides of fronts, for all groups of leaves."""


@dataclass(eq=False)
class Repeated:
    """A factorised tree, and the right-hand sides of columns of sources, transformed by the factors once and for all.

    Solutions are not refined: the state before dominates the equations of a short step, so that Gram matrices are
    accurate as a rule. Whether they are is measured: one refinement must change a solution by no more than a share
    of it, the ``accuracy``; otherwise rows are rotated.
    """

    solver: TreeSolver
    root: Cell
    parts: Sequence[CellPart]
    columns: Sources
    accuracy: float

    def __post_init__(self) -> None:
        branches = self.solver.branches.of_tree(self.root)
        self._tree = CompiledTree.of(self._factored(branches, Factors(Grams())))
        lifted = (np.concatenate(own, axis=1) for own in self.lifted(self.columns))
        self._lifted = [np.ascontiguousarray(own.transpose(0, 2, 1, 3)) for own in lifted]
        numbers = {part: number for number, part in enumerate(self.parts)}
        self._numbers = [_numbers(leaves, numbers) for leaves in self._tree.leaves]
        self._units = [units_of(leaves, self.solver) for leaves in self._tree.leaves]

    def _factored(self, branches: list[Branch], factors: Factors) -> FactoredTree:
        """Return the factors of a tree, by rotations if the given ones are not accurate."""
        try:
            tree = factors.factorised(branches, self.solver.branches.total)
            found = tree.solved(tree.loads)
            change = tree.correction(tree.residuals(tree.loads, found), found)[1]
            if isinstance(factors.elimination, Rotations) or change <= self.accuracy:
                return tree
        except DependentError:
            pass
        return self._factored(branches, Factors(Rotations()))

    @property
    def elimination(self) -> Elimination:
        """How unknowns were eliminated: by Gram matrices, or by rotations."""
        return self._tree.tree.elimination

    @property
    def numbers(self) -> float:
        """Number of floating-point numbers that a solution needs."""
        return float(self._tree.numbers + sum(own.size for own in self._lifted))

    @property
    def work(self) -> float:
        """Operations of a solution."""
        return 4.0 * self.numbers  # products with a vector wait for memory

    def lifted(self, sources: Sources) -> Lifted:
        """Return the transformed right-hand sides of sources."""
        found = []
        for leaves in self._tree.leaves:
            loads = {branch: self.solver.loaded(branch, sources) for _, _, branch in leaves.branches}
            found.append(leaves.raised(loads))
        return found

    def solve(self, weights: FloatArray, further: Lifted | None = None, number: int = 0) -> FloatArray:
        """Return the solution for a combination of the columns, and for one of further right-hand sides.

        Weights of the columns have the shape (parts, columns), and the solution that of (parts, fields, functions).
        """
        lifted: Lifted = []
        for k, (leaves, matrices) in enumerate(zip(self._tree.leaves, self._lifted, strict=True)):
            both, own = (matrices @ weights[self._numbers[k], :, None]).swapaxes(1, 2), leaves.coupled.shape[1]
            made = both[:, :own], both[:, own:]
            if further is not None:
                made = made[0] + further[k][0][..., number, None], made[1] + further[k][1][..., number, None]
            lifted.append(made)
        _, solved = self._tree.spread(lifted)
        result = np.empty((len(self.parts) + 1, *self._units[0].shape[3:4], self.solver.layout.reference.size))
        for leaves, both, units, numbers in zip(self._tree.leaves, solved, self._units, self._numbers, strict=True):
            own = both[:, : leaves.coupled.shape[1]].transpose(0, 2, 3, 1)
            result[numbers] = (own.reshape(*own.shape[:3], units.shape[3], -1) * units[..., None])[:, :, 0]
            for system, column, branch in leaves.branches:
                if branch.ties.singular:
                    others = both[system, leaves.coupled.shape[1] :, column]
                    self.solver.add_singularities(branch, result[numbers[system, column]][None], others)
        return result[:-1]


def _numbers(leaves: Leaves, numbers: dict[CellPart, int]) -> IntArray:
    """Return the numbers of the parts in each system and column of leaves; −1 where there is none."""
    found = np.full((len(leaves.slots), len(leaves.slots[0])), -1, dtype=np.int64)
    for system, column, branch in leaves.branches:
        found[system, column] = numbers[branch.part]
    return found
