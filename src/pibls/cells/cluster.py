"""One large solve on many machines: workers of a Dask cluster factorise subtrees, and only fronts travel.

A worker assembles and factorises a few subtrees and keeps the factors; the fronts of all come here and are joined.
Right-hand sides go up and unknowns down in the same way. All tasks are pure: Dask makes again what a lost worker had.
"""

from __future__ import annotations

import heapq
import math
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pibls.cells import subtrees
from pibls.cells.batches import Factors
from pibls.cells.branches import Branch, Branches
from pibls.cells.factored_tree import Batch, FactoredTree, Unknowns
from pibls.cells.inexact_factors import refined, sensitivity
from pibls.cells.order import along_halves, cheapest
from pibls.cells.parts import CellPart
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.cells.subtrees import (
    Path,
    Subtree,
    SubtreeReport,
    TreeRecipe,
    TreeSetting,
    at_path,
    elimination_of,
    splits_of,
)
from pibls.cells.tree import Cell, leaves
from pibls.checks import FloatArray
from pibls.errors import SolveError
from pibls.runtime import blas_threads
from pibls.solvers.elimination import DependentError

__all__ = ["ClusterSolver", "ClusterWorkers"]

# Subtrees of a worker, so that all are equally busy although subtrees differ; each has at least as many parts.
_PER_WORKER = 4


@dataclass(frozen=True, eq=False)
class ClusterWorkers:
    """The workers of a cluster."""

    client: Any

    @property
    def workers(self) -> list[str]:
        """Addresses of all workers, in order."""
        return sorted(self.client.nthreads())

    def shared(self, what: Any) -> Any:
        """Return something as the result of a task: workers pass it on, and it is not lost with any of them."""
        return self.client.submit(_same, what, pure=False)

    def do(self, function: Callable[..., Any], *given: Any, owner: str) -> Any:
        """Have a worker call a function; another one does if it is lost."""
        return self.client.submit(function, *given, workers=[owner], allow_other_workers=True, pure=False)

    def gathered(self, futures: Sequence[Any]) -> list[Any]:
        """Return results, from workers to this process without a detour."""
        try:
            return list(self.client.gather(list(futures), direct=True))
        except DependentError:
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "distributed":
                raise
            raise SolveError(
                f"The cluster lost a part of the solve ({type(error).__name__}: {error}). Workers that end again and "
                "again lack memory: give them more, or start more of them."
            ) from error


@dataclass(frozen=True, eq=False)
class _RemoteSubtree:
    """A subtree on its worker."""

    owner: str
    subtree: Any  # the future of a Subtree
    parts: tuple[CellPart, ...]
    numbers: float  # that it holds


@dataclass(frozen=True, eq=False)
class _Unknowns:
    """Unknowns of all subtrees, on their workers, and the balance sums of the branches above."""

    values: list[Any]
    sums: FloatArray


@dataclass(eq=False)
class _FarTree:
    """A factorised tree: subtrees on workers, and the branches above them here."""

    crew: ClusterWorkers
    pieces: list[_RemoteSubtree]
    tree: FactoredTree
    count: int

    @property
    def numbers(self) -> float:
        """Numbers that the fullest machine holds."""
        machines: dict[str, float] = {}
        for piece in self.pieces:
            machine = piece.owner.rpartition(":")[0]
            machines[machine] = machines.get(machine, 0.0) + piece.numbers
        return max(machines.values())

    def each(self, function: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
        """Have the owner of every subtree call a function of it."""
        many = zip(self.pieces, *given, strict=True)
        return [self.crew.do(function, piece.subtree, *own, owner=piece.owner) for piece, *own in many]

    def gathered(self, function: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
        """Return the results of a function of every subtree."""
        return self.crew.gathered(self.each(function, *given))

    def same(self, value: Any) -> list[Any]:
        """Return one value for all subtrees."""
        return [value] * len(self.pieces)

    def solved(self, before: _Unknowns | None, *, zero: bool = False) -> _Unknowns:
        """Return the unknowns for the right-hand sides of the problem, or zero ones, corrected from those before."""
        values = self.same(None) if before is None else before.values
        risen = self.each(subtrees.passed_up, values, self.same(zero))
        return self.settled(risen, before)

    def settled(self, risen: list[Any], before: _Unknowns | None) -> _Unknowns:
        """Return the unknowns from right-hand sides that have passed up the subtrees: on, and down again."""
        sent = [
            self.crew.do(subtrees.front_of, own, owner=piece.owner)
            for own, piece in zip(risen, self.pieces, strict=True)
        ]
        fronts = self.crew.gathered(sent)
        none = np.empty((1, 0, fronts[0].shape[2]))
        lifted = {batch: (none, front) for batch, front in zip(self.batches, fronts, strict=True)}
        return self.lowered(risen, self.tree.solved_from(lifted, None if before is None else before.sums), before)

    def lowered(
        self, risen: list[Any], found: Unknowns, before: _Unknowns | None, *, probing: bool = False
    ) -> _Unknowns:
        """Return the unknowns by back substitution, from those above the subtrees, added to those before."""
        around = [found.shared[batch][0] for batch in self.batches]
        old = self.same(None) if before is None else before.values
        values = self.each(subtrees.passed_down, risen, around, old, self.same(probing))
        return _Unknowns(values, found.sums if before is None else found.sums + before.sums)

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The subtrees as batches of the tree above."""
        return self.tree.batches[: len(self.pieces)]

    def probed(self, seed: int) -> _Unknowns:
        """Return the unknowns for random right-hand sides of all branches."""
        risen = self.each(subtrees.random_right_hand_sides, [(seed, 5, number) for number in range(len(self.pieces))])
        return self.lowered(risen, self.tree.probed(np.random.default_rng((seed, 5))), None, probing=True)

    def change(self, unknowns: _Unknowns) -> float:
        """Return the size of the last change of unknowns, relative to those before."""
        sent = [
            self.crew.do(subtrees.norms_of, own, owner=piece.owner)
            for own, piece in zip(unknowns.values, self.pieces, strict=True)
        ]
        squares = np.square(np.array(self.crew.gathered(sent))).sum(axis=0)
        change, norms = np.sqrt(squares)
        return float((change / np.where(norms > 0, norms, 1.0)).max(initial=0.0))

    def square(self, unknowns: _Unknowns) -> float:
        """Return the squared L2 norm of the functions."""
        return math.fsum(self.gathered(subtrees.square_of, unknowns.values))

    def missed(self, unknowns: _Unknowns) -> float:
        """Return the squared norm of all rows and balance sums times unknowns."""
        above = (self.tree.sum_weights[:, :, None] * unknowns.sums)[len(self.pieces) :]
        return math.fsum([*self.gathered(subtrees.missed, unknowns.values), float(np.square(above).sum())])

    def iterated(self, unknowns: _Unknowns, scale: float) -> _Unknowns:
        """Return the unknowns, scaled, after a step of inverse iteration."""
        return self.settled(self.each(subtrees.functions_passed_up, unknowns.values, self.same(scale)), None)

    def cleared(self, unknowns: _Unknowns) -> _Unknowns:
        """Return the unknowns without the part that rows see."""
        return self.solved(unknowns, zero=True)

    def weights(self, unknowns: _Unknowns) -> tuple[dict[CellPart, FloatArray], dict[CellPart, float]]:
        """Return weights and residual norms of all parts."""
        weights: dict[CellPart, FloatArray] = {}
        norms: dict[CellPart, float] = {}
        for piece, (own, left) in zip(self.pieces, self.gathered(subtrees.weights_of, unknowns.values), strict=True):
            weights.update(zip(piece.parts, own, strict=True))
            norms.update(zip(piece.parts, left.tolist(), strict=True))
        return weights, norms


@dataclass(eq=False)
class ClusterSolver(TreeSolver):
    """Solves a linear problem on trees with the workers of a Dask client; small trees are solved here."""

    client: Any = None
    _far: _FarTree | None = None
    _rotations: bool = False
    _setting: Any = None
    _owners: dict[Path, str] = field(default_factory=dict)

    def over(self, rows: Rows) -> TreeSolver:
        """Return a solver with the same workers for other rows."""
        return ClusterSolver(rows, client=self.client)

    @property
    def memory(self) -> float:
        """Bytes held by the last solution on the fullest machine, approximately."""
        return super().memory if self._far is None else 8.0 * self._far.numbers

    def solve(self, root: Cell) -> Fit:
        """Return the solution on a tree."""
        crew = ClusterWorkers(self.client)
        workers = crew.workers
        parts = self.layout.parts_of(leaves(root))
        if not workers or len(parts) < _PER_WORKER**2 * len(workers):
            self._far = None
            with blas_threads(1):
                return super().solve(root)
        pieces = _cut(root, lambda leaf: len(self.layout.parts(leaf)), _PER_WORKER * len(workers))
        far, found = self._solved_far(crew, workers, root, pieces)
        self._far = far
        weights, norms = far.weights(found)
        every = {part: weights[part] for part in parts}
        size = len(every) * self.rows.width
        return Fit(root, tuple(every), every, {part: norms[part] for part in every}, size)

    def weakest(self, seed: int = 0) -> tuple[float, dict[CellPart, FloatArray]]:
        """Return the sensitivity of the last solution to changes of its data, and the function that changes most."""
        far = self._far
        if far is None:
            return super().weakest(seed)
        found, unknowns = sensitivity(far, far.probed(seed), far.count, is_exact=self._rotations)
        return found, far.weights(unknowns)[0]

    def _solved_far(
        self, crew: ClusterWorkers, workers: list[str], root: Cell, pieces: Mapping[Path, int]
    ) -> tuple[_FarTree, _Unknowns]:
        """Return the factorised tree and its unknowns; by rotations from now on, if Gram matrices fail."""
        try:
            far = self._factorised_far(crew, workers, root, pieces)
            found = self._refined_far(far)
        except DependentError:
            found = None
        if found is not None:
            return far, found
        self._rotations = True
        far = self._factorised_far(crew, workers, root, pieces)
        return far, far.solved(None)

    def _refined_far(self, far: _FarTree) -> _Unknowns | None:
        """Return the unknowns; None if Gram matrices are not accurate enough."""

        def step(found: _Unknowns) -> tuple[_Unknowns, float]:
            found = far.solved(found)
            return found, far.change(found)

        return refined(far.solved(None), step, is_exact=self._rotations)

    def _factorised_far(
        self, crew: ClusterWorkers, workers: list[str], root: Cell, pieces: Mapping[Path, int]
    ) -> _FarTree:
        """Have all subtrees factorised, and join their fronts."""
        paths = [path for path, count in pieces.items() if count]
        self._owners = _owners(paths, pieces, workers, self._owners)
        every = {path: tuple(self.layout.parts_of(leaves(at_path(root, path)))) for path in paths}
        recipe = crew.shared(TreeRecipe(self._set(every[paths[0]][0]), splits_of(root), tuple(paths), self._rotations))
        made = [crew.do(Subtree.made, recipe, path, owner=self._owners[path]) for path in paths]
        told = crew.gathered(
            [crew.do(subtrees.report_of, own, owner=self._owners[path]) for own, path in zip(made, paths, strict=True)]
        )
        above = Branches(self.local)
        found = [_branch(above, own, every[path]) for own, path in zip(told, paths, strict=True)]
        holders: Counter[Any] = Counter()
        for own in told:
            holders.update(dict(zip(own.places, own.part_counts, strict=True)))
        fronts = {branch: own.front for branch, own in zip(found, told, strict=True)}
        known = {at_path(root, path): (number,) for number, path in enumerate(paths)}
        order = cheapest(
            along_halves(root, lambda cell: known.get(cell, None if cell.halves else ()), len(paths)),
            [dict(zip(own.places, own.sizes, strict=True)) for own in told],
            range(len(told)),
            self.rows.balances.count,
        )
        branches = above.joined(list(found), order, holders, {})
        tree = Factors(elimination_of(self._rotations)).factorised(branches, above.total, fronts)
        joined = above.work + math.fsum(own.work[1] for own in told)
        self.local.work += math.fsum(own.work[0] for own in told)
        self.local.count += sum(map(len, every.values()))
        self.branches.work += joined
        self._last = sum(map(len, every.values())), joined
        return _FarTree(
            crew,
            [
                _RemoteSubtree(self._owners[path], future, every[path], own.numbers)
                for path, future, own in zip(paths, made, told, strict=True)
            ],
            tree,
            tree.count + sum(own.eliminated for own in told),
        )

    def _set(self, part: CellPart) -> TreeSetting:
        """Return the setting of all trees."""
        if self._setting is None:
            layout = self.layout
            self._setting = TreeSetting(
                uuid.uuid4().hex,
                layout.problem,
                replace(layout.reference),  # without what it has evaluated
                layout.seed,
                layout.is_stable,
                self.local.tree_sum_unit(part),
            )
        setting: TreeSetting = self._setting
        return setting


def _same(what: Any) -> Any:
    return what


def _branch(branches: Branches, told: SubtreeReport, parts: tuple[CellPart, ...]) -> Branch:
    """Return a subtree as a branch that is factorised elsewhere."""
    counts = dict(zip(told.places, told.part_counts, strict=True))
    at = branches.numbered(told.places, told.sizes)
    units = np.ones(len(told.sum_weights) + len(at))
    return Branch(told.places, told.sizes, at, parts[told.part], told.sum_weights, told.ends, counts, units=units)


def _cut(root: Cell, count: Callable[[Cell], int], wanted: int) -> dict[Path, int]:
    """Return the paths to about as many subtrees as are wanted, the largest split first, and their numbers of parts.

    >>> tree = Cell(np.zeros(1), np.ones(1)).halved(0)
    >>> _cut(tree, lambda leaf: 1, 2)
    {(0,): 1, (1,): 1}
    """
    sizes: dict[Cell, int] = {}

    def counted(cell: Cell) -> int:
        sizes[cell] = sum(map(counted, cell.halves)) if cell.halves else count(cell)
        return sizes[cell]

    heap: list[tuple[int, Path, Cell]] = [(-counted(root), (), root)]
    found: dict[Path, int] = {}
    while heap and len(heap) + len(found) < wanted:
        size, path, cell = heapq.heappop(heap)
        if not cell.halves:
            found[path] = -size
        for number, half in enumerate(cell.halves):
            heapq.heappush(heap, (-sizes[half], (*path, number), half))
    return dict(sorted((found | {path: -size for size, path, _ in heap}).items()))


def _owners(
    paths: Sequence[Path], sizes: Mapping[Path, int], workers: Sequence[str], before: Mapping[Path, str]
) -> dict[Path, str]:
    """Return a worker for every subtree: the one that has it, unless that has too much; else the least busy.

    >>> _owners([(0,), (1,)], {(0,): 2, (1,): 2}, ["a", "b"], {(1,): "a"})
    {(0,): 'b', (1,): 'a'}
    """
    fair = sum(sizes[path] for path in paths) / len(workers)
    load, found = dict.fromkeys(workers, 0), {}
    largest_first = sorted(paths, key=lambda path: (path not in before, -sizes[path], path))
    for path in largest_first:
        own = before.get(path, "")
        if own not in load or load[own] >= fair:
            own = min(workers, key=lambda worker: (load[worker], worker))
        found[path] = own
        load[own] += sizes[path]
    return {path: found[path] for path in paths}
