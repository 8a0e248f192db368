"""Solves a linear problem on one tree for source after source: evaluate, multiply, compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pibls.cells.branches import Branch
from pibls.cells.compiled_leaves import IntArray, Leaves
from pibls.cells.compiled_tree import CompiledTree, Solved, Vectors
from pibls.cells.evaluation import PlacedStatement
from pibls.cells.fitters import LinearFitter
from pibls.cells.inexact_factors import refined
from pibls.cells.outcome import Comparison
from pibls.cells.overlay import Overlay
from pibls.cells.parts import CellPart
from pibls.cells.solve import Fit, TreeSolver
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.problem import Form
from pibls.refinement.standards import SLIGHT

__all__ = ["PreparedPair", "PreparedTree", "units_of"]

Values = Callable[[PlacedStatement], FloatArray]
"""Returns the sources of a statement at its points, one column per right-hand side."""


@dataclass(frozen=True, eq=False)
class _Equations:
    """The equations of parts in a group of leaves, as maps from sources at points to loads.

    Attributes
    ----------
    at
        Numbers of the points among those of all parts, shape (systems, points of all equations, columns).
    weights, sums
        Weight of each point in least squares, and the matrices from sources to balance sums.
    factors
        Orthogonal factors of the rows, one for each system or one for all; None if the rows are not turned.
    """

    at: IntArray
    weights: FloatArray
    sums: FloatArray
    factors: FloatArray | None

    @classmethod
    def of(cls, leaves: Leaves, solver: TreeSolver, starts: dict[PlacedStatement, int]) -> _Equations:
        """Collect the equations of parts, from the number of the first point of each."""
        known = {branch: solver.local.part_rows(branch.part) for _, _, branch in leaves.branches}
        points = {
            branch: np.concatenate([starts[own] + np.arange(len(own.points)) for own in rows.stated_equations])
            for branch, rows in known.items()
        }
        shape = len(leaves.slots), max(map(len, points.values())), len(leaves.slots[0])
        at, weights = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
        sums = np.zeros((shape[0], solver.rows.balances.count, *shape[1:]))
        for number, column, branch in leaves.branches:
            rows, count = known[branch], len(points[branch])
            at[number, :count, column] = points[branch]
            weights[number, :count, column] = -np.concatenate([own.factors for own in rows.stated_equations])
            each = np.split(np.eye(count), np.cumsum([len(own.points) for own in rows.stated_equations])[:-1])
            tested = rows.balances.integrated(branch.part, each)
            sums[number, :, :count, column] = -solver.local.stiffness(branch.part) * tested
        first = [known[own[0]].factor for own in leaves.slots if own[0] is not None]
        if first[0] is None:
            return cls(at, weights, sums, None)
        distinct = first[:1] if all(own is first[0] for own in first) else first
        factors = np.zeros((len(distinct), shape[1], first[0].shape[1]))
        for one, own in zip(factors, distinct, strict=True):
            assert own is not None
            one[: len(own)] = own
        return cls(at, weights, sums, factors)

    def vector(self, sources: FloatArray) -> FloatArray:
        """Return the loads of equations and balances, from the sources at all points."""
        values = sources.take(self.at, axis=0)
        count, points, columns, sides = values.shape
        balance = (self.sums[..., None] * values[:, None]).sum(axis=2)
        right = values * self.weights[..., None]
        if self.factors is None:
            return np.concatenate([right, balance], axis=1)
        alone = len(self.factors) == 1
        together = right.transpose(1, 0, 2, 3).reshape(1, points, -1) if alone else right.reshape(count, points, -1)
        turned = self.factors.transpose(0, 2, 1) @ together
        rest = np.linalg.norm(together - self.factors @ turned, axis=1, keepdims=True)
        found = np.concatenate([turned, rest], axis=1)
        if alone:
            return np.concatenate([found.reshape(-1, count, columns, sides).transpose(1, 0, 2, 3), balance], axis=1)
        return np.concatenate([found.reshape(count, -1, columns, sides), balance], axis=1)


@dataclass(eq=False)
class PreparedTree:
    """A tree that a solver has factorised, prepared for many sources of the equations.

    Attributes
    ----------
    solver, root
        The solver, and the tree.
    tol
        Tolerance of solutions: rounding below a slight share of it is not refined.
    """

    solver: TreeSolver
    root: Cell
    tol: float

    def __post_init__(self) -> None:
        self._tree = CompiledTree.of(self.solver.factored(self.root))
        rows = {branch: self.solver.local.part_rows(branch.part) for branch in self._branches}
        self.stated = [own for branch in self._branches for own in rows[branch].stated_equations]
        ends = np.cumsum([0, *(len(own.points) for own in self.stated)]).tolist()
        starts = dict(zip(self.stated, ends, strict=False))
        self._equations = [_Equations.of(leaves, self.solver, starts) for leaves in self._tree.leaves]
        self._units = [units_of(leaves, self.solver) for leaves in self._tree.leaves]

    @property
    def parts(self) -> tuple[CellPart, ...]:
        """The parts of the tree."""
        return tuple(branch.part for branch in self._branches)

    @cached_property
    def _branches(self) -> list[Branch]:
        return [branch for leaves in self._tree.leaves for _, _, branch in leaves.branches]

    @cached_property
    def points(self) -> dict[int, tuple[IntArray, FloatArray, FloatArray]]:
        """For each form of an equation, the numbers of its points among all, the points, and its own sources there."""
        ends = np.cumsum([0, *(len(own.points) for own in self.stated)])
        every: dict[int, list[int]] = {}
        for number, own in enumerate(self.stated):
            every.setdefault(id(own.statement.form), []).append(number)
        return {
            form: (
                np.concatenate([np.arange(ends[number], ends[number + 1]) for number in numbers]),
                np.concatenate([self.stated[number].points for number in numbers]),
                np.concatenate([self.stated[number].source for number in numbers]),
            )
            for form, numbers in every.items()
        }

    @cached_property
    def _own(self) -> tuple[Vectors, Solved] | None:
        """Loads and unknowns of the conditions of the problem, with sources that are zero."""
        return self._conditioned(lambda own: own.source[:, None])

    def _conditioned(self, values: Values) -> tuple[Vectors, Solved] | None:
        """Return loads and unknowns for given conditions and zero sources; None if the factors are not accurate."""

        def sources(own: PlacedStatement, part: CellPart) -> FloatArray:
            del part
            return 0.0 * values(own) if id(own.statement.form) in self.points else values(own)

        loads = {branch: self.solver.loaded(branch, sources) for branch in self._branches}
        every = [leaves.stacked(loads) for leaves in self._tree.leaves]
        found = self._refined(every, self._tree.solved(every))
        return None if found is None else (every, found)

    @cached_property
    def _is_exact(self) -> bool:
        """Whether the factors alone are accurate enough, for sources that are random."""
        sources = np.random.default_rng(len(self.stated)).standard_normal(
            (sum(len(own.points) for own in self.stated), 1)
        )
        tree, first = self._tree, self._loads(sources)
        unknowns, each = tree.solved(first)
        change = tree.solved(tree.residuals(tree.completed(first), each), unknowns)
        return tree.ratio(change[1], each) <= SLIGHT * self.tol

    def _loads(self, sources: FloatArray) -> Vectors:
        """Return the loads of equations and balances, from the sources at the points of all parts."""
        padded = np.concatenate([sources, np.zeros((1, sources.shape[1]))])
        return [own.vector(padded) for own in self._equations]

    def _refined(self, loads: Vectors, start: Solved) -> Solved | None:
        """Return the unknowns for given loads, from a start close to them; None if refinement does not contract."""
        tree = self._tree

        def step(found: Solved) -> tuple[Solved, float]:
            change = tree.solved(tree.residuals(loads, found[1]), found[0])
            return (found[0] + change[0], _sum(found[1], change[1])), tree.ratio(change[1], found[1])

        return refined(start, step)

    def fit(self, sources: FloatArray, values: Values | None = None) -> Fit | None:
        """Return solutions as columns for sources at the points of all parts, and for other conditions if given.

        Return None if the factors are not accurate.
        """
        known = self._own if values is None else self._conditioned(values)
        if known is None:
            return None
        tree, first, (every, (unknowns, each)) = self._tree, self._loads(sources), known
        change, own = tree.solved(first)
        every = _sum(every, tree.completed(first))
        start = unknowns + change, _sum(each, own)
        found = start if self._is_exact else self._refined(every, start)
        if found is None:
            return None
        return self._made(found[1], [np.sqrt((own * own).sum(axis=1)) for own in tree.residuals(every, found[1])])

    def _made(self, found: Vectors, left: Vectors) -> Fit:
        """Return unknowns as weights of parts, and their residuals."""
        columns: dict[CellPart, FloatArray] = {}
        residuals: dict[CellPart, FloatArray] = {}
        for leaves, both, each, units in zip(self._tree.leaves, found, left, self._units, strict=True):
            own = leaves.rows.shape[2] - leaves.at.shape[1]
            weights = both[:, :own].transpose(0, 2, 3, 1)
            weights = weights.reshape(*weights.shape[:3], units.shape[3], -1) * units[..., None]
            for number, column, branch in leaves.branches:
                made = weights[number, column]
                if branch.ties.singular:
                    self.solver.add_singularities(branch, made, both[number, own:, column])
                columns[branch.part], residuals[branch.part] = made, each[number, column]
        return Fit(self.root, tuple(columns), {}, {}, len(columns) * self.solver.rows.width, columns, residuals)


def _sum(one: Vectors, two: Vectors) -> Vectors:
    """Return the sum of vectors."""
    return [own + other for own, other in zip(one, two, strict=True)]


def units_of(leaves: Leaves, solver: TreeSolver) -> FloatArray:
    """Return the units of weights, shape (systems, columns, 1, fields)."""
    found = np.ones((len(leaves.slots), len(leaves.slots[0]), 1, len(solver.rows.problem.field_names)))
    for number, column, branch in leaves.branches:
        found[number, column] = solver.local.part_rows(branch.part).units / math.sqrt(branch.part.extent)
    return found


@dataclass(eq=False)
class PreparedPair:
    """Two trees of one problem, prepared for many sources: one for the solutions, and a better one to compare with."""

    one: PreparedTree
    two: PreparedTree

    @classmethod
    def of(cls, found: Comparison, fitter: LinearFitter, tol: float) -> PreparedPair:
        """Prepare the trees of a comparison for a tolerance, with the factors of the fitter that made it."""
        pairs = (found.better_layout, found.better.root), (found.fit_layout, found.fit.root)
        two, one = (PreparedTree(fitter.solver_of(layout), root, tol) for layout, root in pairs)
        return cls(one, two)

    @cached_property
    def _overlay(self) -> Overlay:
        (coarse, fine), (one, two) = (self.one.solver.layout, self.two.solver.layout), (self.one, self.two)
        return Overlay.of(coarse, one.parts, fine, two.parts, keeps=True)

    def solved(self, changed: Sequence[dict[int, Form]]) -> Iterator[tuple[Fit, Fit, FloatArray]]:
        """Yield both solutions with their distance, size and largest distance at a point, for each of many problems.

        A problem is given by its forms with other sources, by the id of the form that they replace.
        """
        one, two = self._fits(changed)
        if one is None or two is None:
            return
        gaps = self._overlay.distances(one.side_by_side, two.side_by_side)
        each = np.reshape(gaps, (3, len(changed), -1)).transpose(1, 0, 2)
        for number in range(len(changed)):
            yield one.side(number), two.side(number), each[number]

    def _fits(self, changed: Sequence[dict[int, Form]]) -> tuple[Fit | None, Fit | None]:
        """Return the solutions on both trees, as columns; every source is evaluated once at the points of both."""
        trees = self.one, self.two
        found = [np.empty((sum(len(own.points) for own in tree.stated), len(changed))) for tree in trees]
        forms = self.one.points
        for form in forms:
            X = np.concatenate([tree.points[form][1] for tree in trees])
            for number, new in enumerate(changed):
                values = new[form].source_function(X) if form in new else None
                for tree, columns in zip(trees, found, strict=True):
                    rows, places, own = tree.points[form]
                    if values is None:
                        columns[rows, number] = own
                    else:
                        columns[rows, number], values = values[: len(places)], values[len(places) :]
        if all(new.keys() <= forms.keys() for new in changed):
            return self.one.fit(found[0]), self.two.fit(found[1])

        def values_of(own: PlacedStatement) -> FloatArray:
            form = id(own.statement.form)
            each = (
                new[form].source_function(own.points, own.normals) if form in new else own.source for new in changed
            )
            return np.stack(list(each), axis=1)

        return self.one.fit(found[0], values_of), self.two.fit(found[1], values_of)
