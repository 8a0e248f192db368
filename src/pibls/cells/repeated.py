"""Solves a linear problem on one tree very often, for combinations of the same right-hand sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pibls.cells.batches import Factors
from pibls.cells.evaluation import Sources
from pibls.cells.factored_tree import Batch, FactoredTree
from pibls.cells.parts import CellPart
from pibls.cells.solve import TreeSolver
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.solvers.elimination import Load
from pibls.solvers.rotations import Rotations, Turned

__all__ = ["Lifted", "Repeated"]

Lifted = dict[Batch, tuple[FloatArray, FloatArray]]
"""Right-hand sides of own unknowns and of fronts, for all batches of parts."""


@dataclass(eq=False)
class Repeated:
    """A factorised tree, and the right-hand sides of columns of sources, transformed by the factors once and for all.

    The rows themselves are rotated, so that no solution needs refinement.
    """

    solver: TreeSolver
    root: Cell
    parts: Sequence[CellPart]
    columns: Sources
    tree: FactoredTree = field(init=False)

    def __post_init__(self) -> None:
        branches = self.solver.branches.of(self.root)
        tree = Factors(Rotations()).of(branches, self.solver.branches.total)
        self.tree = replace(tree, batches=tuple(_spelt_out(batch) for batch in tree.batches))
        self._lifted = self.lifted(self.columns)
        numbers = {part: number for number, part in enumerate(self.parts)}
        self._numbers = {batch: [numbers[own.sample] for own in batch.branches] for batch in self._lifted}

    @property
    def work(self) -> float:
        """Operations of a solution."""
        held = sum(one.size + two.size for one, two in self._lifted.values())
        sizes = (
            batch.factor.size if batch.join else batch.factor.triangle.size + batch.factor.coupling.size
            for batch in self.tree.batches
        )
        # Products with a vector wait for memory.
        return 4.0 * (held + sum(sizes))

    def lifted(self, sources: Sources) -> Lifted:
        """Return the transformed right-hand sides of sources."""
        found: Lifted = {}
        for batch in self.tree.loads:
            assert batch.system is not None
            load = Load.stacked([self.solver.loaded(branch, sources) for branch in batch.branches])
            found[batch] = batch.factor.lifted(batch.system, load)
        return found

    def solve(self, weights: FloatArray, further: Lifted | None = None, number: int = 0) -> FloatArray:
        """Return the solution for a combination of the columns, and for one of further right-hand sides.

        Weights of the columns have the shape (parts, columns), and the solution that of (parts, fields, functions).
        """
        lifted: Lifted = {}
        for batch, pair in self._lifted.items():
            own = weights[self._numbers[batch]][:, :, None]
            made = [matrix @ own for matrix in pair]
            if further is not None:
                made = [one + two[:, :, number : number + 1] for one, two in zip(made, further[batch], strict=True)]
            lifted[batch] = made[0], made[1]
        unknowns = self.tree.up(lifted)
        found = [(self._numbers[batch], self.solver.weights(batch, unknowns)) for batch in unknowns.own]
        result = np.empty((len(self.parts), *found[0][1][0][1].shape[1:]))
        for numbers, every in found:
            for place, (_, own) in zip(numbers, every, strict=True):
                result[place] = own[0]
        return result


def _spelt_out(batch: Batch) -> Batch:
    """Return unions with their rotations as matrices; the right-hand sides of parts are transformed once."""
    if batch.join is None or not isinstance(batch.factor, Turned):
        return batch
    return replace(batch, factor=batch.factor.spelt_out())
