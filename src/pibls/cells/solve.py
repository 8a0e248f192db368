"""Solves a linear problem on a tree of cells: least squares by elimination along the tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pibls.cells.batches import Factors
from pibls.cells.branches import Branch, Branches
from pibls.cells.evaluation import Sources
from pibls.cells.factored_tree import Batch, FactoredTree, Unknowns
from pibls.cells.inexact_factors import refined, sensitivity
from pibls.cells.local import LocalSystems
from pibls.cells.parts import CellPart, values_at
from pibls.cells.rows import Rows
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.runtime import device_for, seldom_collected
from pibls.solvers.elimination import DependentError, Load
from pibls.solvers.grams import Grams
from pibls.solvers.inputs import to_host
from pibls.solvers.rotations import Rotations
from pibls.solvers.stacks import placed

__all__ = ["Fit", "TreeSolver", "zero_loads"]


Loads = Callable[[FactoredTree], dict[Batch, Load]]
"""Returns the right-hand sides of the parts of a factorised tree."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A solution on a tree: the weights of every part.

    Attributes
    ----------
    root
        The tree.
    parts
        The parts of all leaves.
    weights
        Weights of each part, shape (fields, functions).
    residuals
        Residual norm of each part, in units of the solution.
    unknowns
        Number of weights.
    columns, left
        Solutions for several right-hand sides, if there are any, shape (sides, fields, functions), and residual norms
        of each part, by side.
    """

    root: Cell
    parts: tuple[CellPart, ...]
    weights: dict[CellPart, FloatArray]
    residuals: dict[CellPart, float] = field(default_factory=dict)
    unknowns: int = 0
    columns: dict[CellPart, FloatArray] = field(default_factory=dict)
    left: dict[CellPart, FloatArray] = field(default_factory=dict)

    def side(self, number: int) -> Fit:
        """Return the solution for one of several right-hand sides."""
        weights = {part: own[number] for part, own in self.columns.items()}
        return Fit(self.root, self.parts, weights, {p: own[number] for p, own in self.left.items()}, self.unknowns)

    @property
    def side_by_side(self) -> Fit:
        """The solutions for several right-hand sides as one solution with as many times the fields."""
        weights = {part: own.reshape(-1, own.shape[2]) for part, own in self.columns.items()}
        return Fit(self.root, self.parts, weights, {}, self.unknowns)

    @property
    def residual(self) -> float:
        """Norm of all residuals, in units of the solution."""
        return float(np.sqrt(sum(value**2 for value in self.residuals.values())))


@dataclass(eq=False)
class TreeSolver:
    """Solves one problem on one tree after another; unchanged branches are factorised once."""

    rows: Rows
    local: LocalSystems = field(init=False)
    branches: Branches = field(init=False)
    _factors: Factors = field(init=False)
    _root: Cell = field(init=False)  # the last tree
    _branches: list[Branch] = field(default_factory=list)
    _tree: FactoredTree | None = None  # its factorisation; None if the tree has no part, or Gram matrices fail
    _device: Any = field(init=False)  # that a tree may be factorised on
    _projected: dict[Any, FloatArray] = field(default_factory=dict)
    _last: tuple[int, float] = (1, 0.0)  # cells of the last tree, and operations of its unions

    def __post_init__(self) -> None:
        self.local = LocalSystems(self.rows)
        self.branches = Branches(self.local)
        self.layout = self.rows.layout
        self._device = self.layout.reference.nodes.device
        self._factors = Factors(Grams(device_for(self._device, 0.0)))

    @property
    def flops(self) -> float:
        """Operations so far."""
        return self.branches.work + self.local.work

    def work(self, cells: float, new: float) -> float:
        """Return the operations for a tree of ``cells`` cells, of which ``new`` are new, from those of the last tree.

        Branches share fewer unknowns than they have, and the work of a union grows with the third power of their
        number.
        """
        d, (count, merged) = self.layout.reference.dimension, self._last
        unit = self.local.work / max(self.local.count, 1)
        power: float = max(3.0 * (d - 1) / d, 1.0)
        return unit * new + merged * math.pow(cells / count, power)

    @property
    def memory(self) -> float:
        """Bytes held by the last solution, approximately."""
        return 8.0 * self._tree.numbers if self._tree is not None else 0.0

    def factored(self, root: Cell) -> FactoredTree:
        """Return the factorisation of a tree, which is made unless it is the last one."""
        if self._tree is None or self._root is not root:
            self.solve(root)  # which tells whether Gram matrices are accurate enough
        assert self._tree is not None
        return self._tree

    def over(self, rows: Rows) -> TreeSolver:
        """Return a solver of the same kind for other rows."""
        return TreeSolver(rows)

    def solve(self, root: Cell) -> Fit:
        """Return the solution on a tree."""
        fit = self.prepare(root)
        return self._solved(lambda tree: tree.loads).side(0) if fit.parts else fit

    @seldom_collected()
    def prepare(self, root: Cell) -> Fit:
        """Factorise a tree, and return its parts without a solution."""
        joined = self.branches.work
        self._root, self._branches = root, self.branches.of_tree(root)
        self._tree = self._factorised(self._factors) if self._branches else None
        parts = tuple(branch.part for branch in self._branches if not branch.halves)
        if self.branches.work > joined:
            self._last = len(parts), self.branches.work - joined
        self.local.keep(parts)
        return Fit(root, parts, {}, unknowns=len(parts) * self.rows.width)

    def solve_for(self, sources: Sources) -> Fit:
        """Return solutions on the last tree for other right-hand sides, as columns, without a new factorisation."""

        def given(tree: FactoredTree) -> dict[Batch, Load]:
            every = {batch: [self.loaded(branch, sources) for branch in batch.branches] for batch in tree.loads}
            return {batch: Load.stacked(own).placed(tree.elimination.device) for batch, own in every.items()}

        return self._solved(given)

    def _solved(self, given: Loads) -> Fit:
        """Return the solutions on the last tree for given loads, as columns."""
        unknowns, left = self._eliminated(given)
        found = {part: own for batch in unknowns.own for part, own in self.weights(batch, unknowns)}
        every = {branch.part: found[branch.part] for branch in self._branches if not branch.halves}
        missed = {
            branch.part: root
            for batch, load in left.items()
            for branch, root in zip(batch.branches, np.sqrt(load.squares), strict=True)
        }
        size = len(every) * self.rows.width
        return Fit(self._root, tuple(every), {}, {}, size, every, {part: missed[part] for part in every})

    def loaded(self, branch: Branch, sources: Sources) -> Load:
        """Return the right-hand sides of a part for other sources."""
        assert branch.system is not None
        return self.local.right_hand_sides(branch.part, branch.ties, branch.system, sources)

    def _eliminated(self, given: Loads) -> tuple[Unknowns, dict[Batch, Load]]:
        """Return the unknowns of the last tree for given loads, and the residuals of its rows.

        Gram matrices give half of the digits, and iterative refinement the rest. Where refinement does not contract,
        rotations are used for this tree and all later ones.
        """
        if self._tree is not None and (found := _refined(self._tree, given(self._tree))) is not None:
            return found
        self._factors = Factors(Rotations())
        self._tree = self._factorised(self._factors)
        assert self._tree is not None
        loads = given(self._tree)
        solved = self._tree.solved(loads)
        return solved, self._tree.residuals(loads, solved)

    def _factorised(self, factors: Factors) -> FactoredTree | None:
        """Factorise the last tree; None if Gram matrices fail. A tree too large for a device is factorised in NumPy."""
        device = device_for(self._device, sum(branch.operations for branch in self._branches))
        if device != factors.elimination.device and isinstance(factors.elimination, Grams):
            factors = self._factors = Factors(Grams(device))
        try:
            return factors.factorised(self._branches, self.branches.total)
        except DependentError:
            return None
        except RuntimeError as error:
            if factors.elimination.device is None or "out of memory" not in str(error):
                raise
        self._device = None
        return self._factorised(factors)

    def weakest(self, seed: int = 0) -> tuple[float, dict[CellPart, FloatArray]]:
        """Return the sensitivity of the last solution to changes of its data, and the function that changes most.

        It is near one for a well-posed problem, and unbounded if a function can be added to the solution without
        changing any row. Random right-hand sides show it; where Gram matrices make it large, inverse iteration does,
        and the rows verify it.
        """
        tree = self._tree
        if tree is None:
            return 0.0, {}
        start = tree.probed(np.random.default_rng((seed, 5)))
        found, unknowns = sensitivity(self, start, tree.count, is_exact=not isinstance(tree.elimination, Grams))
        return found, {part: own[0] for batch in unknowns.own for part, own in self.weights(batch, unknowns)}

    def square(self, unknowns: Unknowns) -> float:
        """Return the squared L2 norm of the functions; a cut part counts only inside the domain."""
        pairs = [pair for batch in unknowns.own for pair in self.weights(batch, unknowns)]
        scaled = [(part, every[0] / self.local.part_rows(part).units[:, None]) for part, every in pairs]
        cut = [(part, weights, _fewer(part.points)) for part, weights in scaled if not part.whole]
        values = values_at(self.layout.reference, cut) if cut else []
        means = (part.volume * float(np.square(v).sum()) / len(v) for (part, _, _), v in zip(cut, values, strict=True))
        return sum(means) + sum(part.extent * float(np.square(own).sum()) for part, own in scaled if part.whole)

    @property
    def _last_tree(self) -> FactoredTree:
        assert self._tree is not None
        return self._tree

    def missed(self, unknowns: Unknowns) -> float:
        """Return the squared norm of all rows and balance sums times the unknowns."""
        tree = self._last_tree
        left = tree.residuals(zero_loads(tree), unknowns).values()
        sums = tree.sum_weights[:, :, None] * to_host(unknowns.sums)
        return sum(float(load.squares[:, 0].sum()) for load in left) + float(np.square(sums).sum())

    def iterated(self, unknowns: Unknowns, scale: float) -> Unknowns:
        """Return the unknowns, scaled, after a step of inverse iteration."""
        return self._last_tree.solved_from(self.lifted_back(self._last_tree, unknowns, scale))

    def cleared(self, unknowns: Unknowns) -> Unknowns:
        """Return the unknowns without the part that rows see."""
        tree = self._last_tree
        return unknowns.changed(tree.solved(tree.residuals(zero_loads(tree), unknowns), unknowns.sums))

    def lifted_back(self, tree: FactoredTree, unknowns: Unknowns, scale: float) -> dict[Batch, tuple[Any, Any]]:
        """Return the unknowns, scaled, as right-hand sides of the normal equations."""
        lifted = {}
        for batch, own in unknowns.own.items():
            right, values = np.zeros((len(own), batch.factor.own + batch.factor.coupling.shape[2], 1)), to_host(own)
            for k, branch in enumerate(batch.branches):
                right[k, : self.rows.width] = scale / branch.weight**2 * self._weighed(branch.part, values[k])
            lifted[batch] = batch.factor.up(placed(right, tree.elimination.device))
        return lifted

    def _weighed(self, part: CellPart, own: FloatArray) -> FloatArray:
        """Return the unknowns of a part times the Gram matrix of its functions."""
        if part.whole:
            return own
        zero = (0,) * len(part.half)
        nodes = _fewer(self.layout.functions_at(part, part.points, [zero])[zero])
        found = (own.reshape(-1, self.layout.reference.size) @ nodes.T) @ nodes
        return np.asarray(found.reshape(-1, 1) * (part.volume / part.extent / len(nodes)))

    def weights(self, batch: Batch, unknowns: Unknowns) -> list[tuple[CellPart, FloatArray]]:
        """Return the weights of the parts of a batch, shape (sides, fields, functions)."""
        parts = [branch.part for branch in batch.branches]
        units = np.stack([self.local.part_rows(part).units / math.sqrt(part.extent) for part in parts])
        own = to_host(unknowns.own[batch]).transpose(0, 2, 1)
        every = own.reshape(*own.shape[:2], units.shape[1], -1) * units[:, None, :, None]
        for branch, weights, others in zip(batch.branches, every, to_host(unknowns.shared[batch]), strict=True):
            if branch.ties.singular:
                self.add_singularities(branch, weights, others)
        return list(zip(parts, every, strict=True))

    def add_singularities(self, branch: Branch, weights: FloatArray, others: FloatArray) -> None:
        """Add the functions of corner singularities to ``weights``, those of a part, in place."""
        starts = len(others) - branch.width + np.cumsum([0, *branch.sizes])
        ends = dict(zip(branch.shared, starts.tolist(), strict=False))
        for singularity, link in branch.ties.singular.items():
            key = (singularity, branch.part)
            if key not in self._projected:
                self._projected[key] = singularity.projected(self.layout, branch.part)
            numbers = others[ends[link] : ends[link] + singularity.size]
            weights += np.tensordot(numbers.T, self._projected[key], axes=1)


def _refined(tree: FactoredTree, loads: dict[Batch, Load]) -> tuple[Unknowns, dict[Batch, Load]] | None:
    """Return the unknowns for given loads and the residuals; None if Gram matrices are not accurate enough."""

    def step(now: tuple[Unknowns, dict[Batch, Load]]) -> tuple[tuple[Unknowns, dict[Batch, Load]], float]:
        unknowns, left = now
        change, ratio = tree.correction(left, unknowns)
        unknowns = unknowns.changed(change)
        return (unknowns, tree.residuals(loads, unknowns)), ratio

    try:
        found = tree.solved(loads)
    except DependentError:
        return None
    return refined((found, tree.residuals(loads, found)), step, is_exact=not isinstance(tree.elimination, Grams))


def _fewer(points: FloatArray) -> FloatArray:
    """Return every fourth of the points of a cut part, or of values there: enough for a norm."""
    return points[::4]


def zero_loads(tree: FactoredTree) -> dict[Batch, Load]:
    """Return zero right-hand sides for all parts."""
    return {
        batch: Load(*(0.0 * own[:, :, :1] for own in (load.equation, load.rows, load.heavy)))
        for batch, load in tree.loads.items()
    }
