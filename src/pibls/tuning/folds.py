"""Points divided into folds: what each fit of a cross-validation sees, and what it is judged at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pibls.errors import InputError
from pibls.geometry import Points, PointSet
from pibls.problem import Problem

__all__ = ["Fold", "split"]

IndexArray = npt.NDArray[np.intp]

# A set of conditions loses points to the held-out part only if it can spare two per fold.
_FEWEST_PER_FOLD = 2


@dataclass(frozen=True, eq=False)
class Fold:
    """One division of the points.

    Attributes
    ----------
    train, held
        The points of the fit, and those that it is judged at.
    train_rows, held_rows
        Which points of each set of the whole they are, one array per set.
    """

    train: Points
    held: Points
    train_rows: tuple[IndexArray, ...]
    held_rows: tuple[IndexArray, ...]


def split(problem: Problem, points: Points, folds: int, seed: int) -> tuple[Fold, ...]:
    """Divide points at random into folds of equal size.

    Sets of conditions with too few points, averages and measurements are whole in every fold, on both sides.

    Examples
    --------
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
    parts = _parts(problem, points, folds, np.random.default_rng(seed))
    return tuple(_fold(points, parts, number) for number in range(folds))


def _parts(
    problem: Problem, points: Points, folds: int, rng: np.random.Generator
) -> dict[int, tuple[IndexArray, ...] | None]:
    """Return the held-out points of every fold, by identity of the set; None for sets that stay whole."""
    whole = {id(points.sets[s.source]) for s in problem.statements if s.targets is not None}
    inside = {id(points.sets[s.source]) for s in problem.statements if s.is_equation}
    parts: dict[int, tuple[IndexArray, ...] | None] = {}
    for where in points.sets:
        if id(where) in parts:
            continue
        fewest = folds if id(where) in inside else _FEWEST_PER_FOLD * folds
        if id(where) in whole or where.weights is not None or len(where) < fewest:
            parts[id(where)] = None
        else:
            parts[id(where)] = tuple(np.sort(part) for part in np.array_split(rng.permutation(len(where)), folds))
    return parts


def _fold(points: Points, parts: dict[int, tuple[IndexArray, ...] | None], number: int) -> Fold:
    chosen: dict[int, tuple[PointSet, PointSet, IndexArray, IndexArray]] = {}
    for where in points.sets:
        if id(where) in chosen:
            continue
        part = parts[id(where)]
        if part is None:
            every = np.arange(where.rows)
            chosen[id(where)] = (where, where, every, every)
        else:
            held = part[number]
            train = np.setdiff1d(np.arange(len(where)), held)
            chosen[id(where)] = (_subset(where, train), _subset(where, held), train, held)
    picked = [chosen[id(where)] for where in points.sets]
    train_sets, held_sets, train_rows, held_rows = zip(*picked, strict=True)
    return Fold(Points(train_sets), Points(held_sets), train_rows, held_rows)


def _subset(where: PointSet, rows: IndexArray) -> PointSet:
    normals, partner = (None if a is None else a[rows] for a in (where.normals, where.partner))
    return PointSet(where.points[rows], normals, partner)
