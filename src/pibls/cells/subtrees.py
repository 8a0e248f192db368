"""Subtrees that are factorised apart from each other: each keeps its factors, and tells its front to the rest.

Every function here is pure: it can be run again anywhere. A subtree that is sent elsewhere is made anew there from its
recipe, so that factors never travel.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from pibls.cells.batches import Factors
from pibls.cells.branches import Branch
from pibls.cells.factored_tree import Batch, FactoredTree, Unknowns
from pibls.cells.layout import Layout
from pibls.cells.local import CoarseSide, Link
from pibls.cells.parts import CellPart, Face
from pibls.cells.rows import Rows
from pibls.cells.solve import TreeSolver, zero_loads
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.features.reference import ReferenceNetwork
from pibls.problem import Problem
from pibls.runtime import one_core
from pibls.solvers.elimination import Elimination, Front, Load
from pibls.solvers.grams import Grams
from pibls.solvers.rotations import Rotations

__all__ = [
    "Path",
    "TreeRecipe",
    "TreeSetting",
    "Subtree",
    "SubtreeReport",
    "Values",
    "at_path",
    "elimination_of",
    "splits_of",
]

Path = tuple[int, ...]
"""The way from the root to a cell: the number of a half at every split."""
Splits = tuple[tuple[int, float] | None, ...]
"""Axis and position at which cells are halved, None for leaves; a cell comes before its halves."""
_ONE_AT_A_TIME = threading.Lock()  # rows keep what they have evaluated, for one thread


@dataclass(frozen=True, eq=False)
class TreeSetting:
    """All that trees of one problem have in common."""

    token: str  # settings with one token are equal
    problem: Problem
    reference: ReferenceNetwork  # functions of a high degree differ from machine to machine if they are drawn again
    seed: int
    is_stable: bool
    unit: FloatArray  # of balance sums


@dataclass(frozen=True, eq=False)
class TreeRecipe:
    """One tree, how it is cut into subtrees, and how these are factorised."""

    setting: TreeSetting
    splits: Splits
    paths: tuple[Path, ...]
    rotations: bool


@dataclass(frozen=True, eq=False)
class SubtreeReport:
    """The front of a subtree, and all that the rest of the tree must know of it.

    Attributes
    ----------
    front
        Its front, over its balance sums and its shared unknowns.
    places, sizes, part_counts
        The places where it shares unknowns, under names that are the same everywhere; how many in each, and how many of
        its parts hold it.
    sum_weights, ends, part
        As of :class:`~pibls.cells.branches.Branch`; the part by its number.
    numbers, eliminated, work
        Floating-point numbers it holds, unknowns it eliminates, and operations of its parts and of its unions.
    """

    front: Front
    places: tuple[Any, ...]
    sizes: tuple[int, ...]
    part_counts: tuple[int, ...]
    sum_weights: FloatArray
    ends: tuple[FloatArray, FloatArray]
    part: int
    numbers: float
    eliminated: int
    work: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Values:
    """Unknowns of a subtree, in the order of its batches."""

    own: list[FloatArray]
    shared: list[FloatArray]
    sums: FloatArray
    norms: tuple[FloatArray, FloatArray]  # of the last change, and of the unknowns before it


@dataclass(eq=False)
class _Home:
    """The rows of a setting in this process, and the solvers of the subtrees that it has factorised last."""

    rows: Rows
    unit: FloatArray
    solvers: dict[Path, tuple[TreeSolver, dict[bool, Factors]]] = field(default_factory=dict)
    _last: tuple[Splits, Cell] | None = None

    def tree(self, splits: Splits) -> Cell:
        """Return a tree; the last one is kept, because its subtrees ask for it one after the other."""
        if self._last is None or self._last[0] != splits:
            self._last = splits, _grown(self.rows.layout.root, iter(splits))
        return self._last[1]

    def solver(self, path: Path, paths: Sequence[Path]) -> tuple[TreeSolver, dict[bool, Factors]]:
        """Return the solver of a subtree; those of subtrees that are gone are dropped."""
        self.solvers = {old: own for old, own in self.solvers.items() if old in paths}
        if path not in self.solvers:
            solver = TreeSolver(self.rows)
            solver.local.unit = self.unit
            self.solvers[path] = solver, {False: Factors(Grams()), True: Factors(Rotations())}
        return self.solvers[path]


# By token; a home is gone when no subtree is left.
_homes: WeakValueDictionary[str, _Home] = WeakValueDictionary()


def _home(setting: TreeSetting) -> _Home:
    found = _homes.get(setting.token)
    if found is None:
        layout = Layout(setting.problem, setting.reference, setting.seed, is_stable=setting.is_stable)
        found = _homes[setting.token] = _Home(Rows(layout), setting.unit)
    return found


@dataclass(eq=False)
class Subtree:
    """A factorised subtree."""

    recipe: TreeRecipe
    path: Path
    home: _Home
    solver: TreeSolver
    branches: list[Branch]
    tree: FactoredTree
    told: SubtreeReport

    @classmethod
    def made(cls, recipe: TreeRecipe, path: Path) -> Subtree:
        """Assemble and factorise a subtree."""
        with _ONE_AT_A_TIME, one_core():
            home = _home(recipe.setting)
            root = home.tree(recipe.splits)
            solver, factors = home.solver(path, recipe.paths)
            before = solver.local.work, solver.branches.work
            branches = solver.branches.of_tree(root, at_path(root, path))
            tree = factors[recipe.rotations].factorised(branches, solver.branches.total, whole=False)
            solver.local.keep([branch.part for branch in branches if not branch.halves])
            work = solver.local.work - before[0], solver.branches.work - before[1]
            return cls(recipe, path, home, solver, branches, tree, _told(solver, branches, tree, work))

    def __reduce__(self) -> tuple[Any, ...]:
        return Subtree.made, (self.recipe, self.path)

    def __sizeof__(self) -> int:
        return int(8 * self.told.numbers)

    @cached_property
    def part_batches(self) -> list[Batch]:
        """The batches of parts."""
        return list(self.tree.loads)

    def unknowns(self, values: Values) -> Unknowns:
        """Return unknowns by batch and branch."""
        own, shared = (dict(zip(self.part_batches, each, strict=True)) for each in (values.own, values.shared))
        return Unknowns(own, shared, values.sums)

    def right_hand_sides(self, values: Values | None, *, zero: bool) -> dict[Batch, Load]:
        """Return the right-hand sides, or zero ones, less the rows times unknowns."""
        given = zero_loads(self.tree) if zero else self.tree.loads
        return given if values is None else self.tree.residuals(given, self.unknowns(values))


PassedUp = tuple[list[FloatArray], FloatArray]
"""Right-hand sides of the batches of a subtree, and of its front."""


def report_of(subtree: Subtree) -> SubtreeReport:
    """Return the front of a subtree, and all that the rest must know of it."""
    return subtree.told


def passed_up(subtree: Subtree, values: Values | None, zero: bool) -> PassedUp:
    """Pass right-hand sides up: those of the problem or zero ones, less the rows times unknowns."""
    with one_core():
        loads, lifted = subtree.right_hand_sides(values, zero=zero), {}
        for batch, load in loads.items():
            assert batch.system is not None
            lifted[batch] = batch.factor.lifted(batch.system, load)
        return _raised(subtree, lifted, None if values is None else values.sums)


def functions_passed_up(subtree: Subtree, values: Values, scale: float) -> PassedUp:
    """Pass the unknowns themselves up as right-hand sides, for a step of inverse iteration."""
    with one_core():
        return _raised(subtree, subtree.solver.lifted_back(subtree.tree, subtree.unknowns(values), scale), None)


def random_right_hand_sides(subtree: Subtree, seed: tuple[int, ...]) -> PassedUp:
    """Return random right-hand sides."""
    rng = np.random.default_rng(seed)
    rights = [rng.standard_normal((len(own.branches), own.factor.own, 1)) for own in subtree.tree.batches]
    return rights, np.empty((0, 1))


def front_of(right: PassedUp) -> FloatArray:
    """Return the right-hand side of the front."""
    return right[1]


def passed_down(subtree: Subtree, right: PassedUp, given: FloatArray, before: Values | None, probing: bool) -> Values:
    """Return unknowns by back substitution, added to those before, from the sums and the shared ones of the root."""
    with one_core():
        tree, count = subtree.tree, len(subtree.tree.top.sum_weights)
        rights = dict(zip(tree.batches, right[0], strict=True))
        change = tree.descended(rights, given[None, :count], given[count:], probing=probing)
        old = None if before is None else subtree.unknowns(before)
        found = change if old is None else old.changed(change)
        norms = change.norms, np.zeros_like(change.norms) if old is None else old.norms
        batches = subtree.part_batches
        return Values(
            [found.own[batch] for batch in batches],
            [found.shared[batch] for batch in batches],
            found.sums,
            norms,
        )


def norms_of(values: Values) -> tuple[FloatArray, FloatArray]:
    """Return the sizes of the last change, and of the unknowns before it."""
    return values.norms


def square_of(subtree: Subtree, values: Values) -> float:
    """Return the squared L2 norm of the functions."""
    with one_core():
        return subtree.solver.square(subtree.unknowns(values))


def missed(subtree: Subtree, values: Values) -> float:
    """Return the squared norm of the rows, and of the balance sums, times unknowns."""
    with one_core():
        left, sums = (
            subtree.right_hand_sides(values, zero=True).values(),
            subtree.tree.sum_weights[:, :, None] * values.sums,
        )
        return sum(float(load.squares[:, 0].sum()) for load in left) + float(np.square(sums).sum())


def weights_of(subtree: Subtree, values: Values) -> tuple[FloatArray, FloatArray]:
    """Return weights and residual norms of all parts in order, for the first right-hand side."""
    with one_core():
        unknowns, left = subtree.unknowns(values), subtree.right_hand_sides(values, zero=False)
        found = {part: own[0] for batch in unknowns.own for part, own in subtree.solver.weights(batch, unknowns)}
        norms = {
            branch.part: root
            for batch, load in left.items()
            for branch, root in zip(batch.branches, np.sqrt(load.squares[:, 0]), strict=True)
        }
        parts = [branch.part for branch in subtree.branches if not branch.halves]
        return np.stack([found[part] for part in parts]), np.array([norms[part] for part in parts])


def splits_of(root: Cell) -> Splits:
    """Return the splits of a tree.

    >>> splits_of(Cell(np.zeros(1), np.ones(1)).halved(0))
    ((0, 0.5), None, None)
    """
    found: list[tuple[int, float] | None] = []
    cells = [root]
    while cells:
        cell = cells.pop()
        found.append((cell.axis, cell.at) if cell.halves else None)
        cells += reversed(cell.halves)
    return tuple(found)


def at_path(root: Cell, path: Path) -> Cell:
    """Return the cell at the end of a path."""
    for half in path:
        root = root.halves[half]
    return root


def _grown(cell: Cell, splits: Any) -> Cell:
    """Return a tree with the given splits; cells that an earlier tree had are the same objects."""
    split = next(splits)
    if split is None:
        return cell
    halved = cell.halved(*split)
    return replace(halved, halves=tuple(_grown(half, splits) for half in halved.halves))


def _raised(subtree: Subtree, lifted: Any, sums: FloatArray | None) -> PassedUp:
    rights, front = subtree.tree.ascended(lifted, sums)
    return [rights[batch] for batch in subtree.tree.batches], front


def _told(solver: TreeSolver, branches: list[Branch], tree: FactoredTree, work: tuple[float, float]) -> SubtreeReport:
    top, names = tree.top, _Names(solver)
    parts = [branch.part for branch in branches if not branch.halves]
    return SubtreeReport(
        tree.last.front,
        tuple(names.of(place) for place in top.shared),
        top.sizes,
        tuple(top.part_counts[place] for place in top.shared),
        top.sum_weights,
        top.ends,
        parts.index(top.part),
        tree.numbers,
        tree.count,
        work,
    )


@dataclass(eq=False)
class _Names:
    """Names of the places where parts share unknowns, the same in every process."""

    solver: TreeSolver

    def of(self, place: Any) -> Any:
        """Return the name of a face, a coarse side or a link."""
        if isinstance(place, Face):
            faces = self.solver.branches.sharing.alike(place)
            kind = (place.axis, place.shift != 0.0, place.normals is not None)
            return ("face", self._part(place.below), self._part(place.above), kind, faces.index(place))
        if isinstance(place, CoarseSide):
            return ("side", self._part(place.part), place.axis, place.is_upper)
        assert isinstance(place, Link)
        rows, domain = self.solver.rows, self.solver.layout.tree_domain
        every = [*rows.averages, *domain.corner_singularities]
        return ("link", self._part(place.below), self._part(place.above), every.index(place.of))

    def _part(self, part: CellPart) -> tuple[bytes, bytes, int]:
        parts = self.solver.layout.parts(part.cell)
        return part.cell.low.tobytes(), part.cell.high.tobytes(), parts.index(part)


def elimination_of(rotations: bool) -> Elimination:
    """Return the method of elimination."""
    return Rotations() if rotations else Grams()
