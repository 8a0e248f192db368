"""Points divided into folds: those that each fit of a cross-validation sees, and those that it is judged at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pibls.errors import InputError
from pibls.geometry import Points, PointSet
from pibls.problem import Problem

IndexArray = npt.NDArray[np.intp]

# A set of conditions loses points to the held-out part only if it can spare two per fold.
_FEWEST_PER_FOLD = 2


@dataclass(frozen=True, eq=False)
class Fold:
    """One division of the points."""

    # train, held: the points of the fit, and those that it is judged at
    train: Points
    held: Points
    # train_rows, held_rows: which points of each set of the whole they are, one array per set
    train_rows: tuple[IndexArray, ...]
    held_rows: tuple[IndexArray, ...]


def split(problem: Problem, points: Points, folds: int, seed: int) -> tuple[Fold, ...]:
    """Divide points at random into folds of equal size.

    Sets of conditions with too few points, averages and measurements are whole in every fold, on both sides.

    >>> from pibls.problems import advection
    >>> problem = advection()
    >>> first, *_ = split(problem, Points.sample(problem, interior=20), folds=5, seed=0)
    >>> first.train, first.held
    (Points(interior 16, conditions 1), Points(interior 4, conditions 1))
    """
    if len(points.interior) < folds:
        raise InputError(
            f"Cross-validation with {folds} folds needs at least {folds} interior points. Got {len(points.interior)}. "
            "Sample more points, or use fewer folds."
        )
    rng = np.random.default_rng(seed)
    whole = {id(points.sets[s.source]) for s in problem.statements if s.targets is not None}
    inside = {id(points.sets[s.source]) for s in problem.statements if s.is_equation}
    divisions: dict[int, list[tuple[PointSet, PointSet, IndexArray, IndexArray]]] = {}
    for where in points.sets:
        if id(where) in divisions:
            continue
        fewest = folds if id(where) in inside else _FEWEST_PER_FOLD * folds
        if id(where) in whole or where.weights is not None or len(where) < fewest:
            every = np.arange(where.rows)
            divisions[id(where)] = [(where, where, every, every)] * folds
        else:
            parts = np.array_split(rng.permutation(len(where)), folds)
            divisions[id(where)] = [_divided(where, np.sort(part)) for part in parts]
    return tuple(_fold([divisions[id(where)][number] for where in points.sets]) for number in range(folds))


def _divided(where: PointSet, held: IndexArray) -> tuple[PointSet, PointSet, IndexArray, IndexArray]:
    train = np.setdiff1d(np.arange(len(where)), held)
    return where.picked(train), where.picked(held), train, held


def _fold(divided: Sequence[tuple[PointSet, PointSet, IndexArray, IndexArray]]) -> Fold:
    train_sets, held_sets, train_rows, held_rows = zip(*divided, strict=True)
    return Fold(Points(train_sets), Points(held_sets), train_rows, held_rows)
