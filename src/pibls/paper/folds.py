"""Points divided into folds: those that each fit of a cross-validation sees, and those that it is judged at; scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.geometry import Points, PointSet
from pibls.problem import MultiIndex, Problem
from pibls.solution.residuals import root_mean_square
from pibls.system import Evaluate
from pibls.tuning.judge import Judge

IndexArray = npt.NDArray[np.intp]
Key = tuple[str, MultiIndex]

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
    found = (zip(*(divisions[id(where)][number] for where in points.sets), strict=True) for number in range(folds))
    return tuple(Fold(Points(train), Points(held), *rows) for train, held, *rows in found)


def _divided(where: PointSet, held: IndexArray) -> tuple[PointSet, PointSet, IndexArray, IndexArray]:
    train = np.setdiff1d(np.arange(len(where)), held)
    return where.picked(train), where.picked(held), train, held


@dataclass(frozen=True, eq=False)
class Scorer:
    """Problem, points, folds and scores, which all fits of a cross-validation have in common."""

    problem: Problem
    points: Points
    folds: tuple[Fold, ...]
    scores: tuple[str, ...]

    @cached_property
    def judges(self) -> tuple[Judge, ...]:
        """A judge for every fold."""
        return tuple(Judge(self.problem, fold.held) for fold in self.folds)

    def score(self, evaluate: Evaluate, fold: int, score: str) -> float:
        """Return how good a solution is at the points held out of a fold."""
        if score == "residual":
            return self.judges[fold](evaluate)
        X, names = self.folds[fold].held.interior, self.problem.field_names
        values = evaluate(X, [(name, (0,) * X.shape[1]) for name in names])
        errors = [v - self._held_exact[fold][name] for name, v in zip(names, values, strict=True)]
        return float(np.sqrt(sum(root_mean_square(error) ** 2 for error in errors)))

    @cached_property
    def _held_exact(self) -> tuple[dict[str, FloatArray], ...]:
        return tuple(self.problem.exact_values(fold.held.interior) for fold in self.folds)

    @cached_property
    def exact(self) -> dict[str, FloatArray]:
        """The exact solution at the interior points."""
        return self.problem.exact_values(self.points.interior)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The derivatives of fields that scores are made of."""
        zero = (0,) * len(self.problem.domain.coordinates)
        wanted: dict[Key, None] = {(name, zero): None for name in self.problem.field_names}
        if "residual" in self.scores:
            wanted |= {(t.field, t.multi_index): None for s in self.problem.statements for t in s.form.terms}
        return tuple(wanted)
