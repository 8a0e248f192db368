"""Scores of trained networks: the trainings of all folds, settings and seeds of a search, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import FeatureError, PiblsError, SolveError
from pibls.methods import PINN
from pibls.methods.pinn import PinnFit, Together, train_together
from pibls.problem import MultiIndex
from pibls.tuning.shared_rows import Key, Scorer

__all__ = ["TrainedJob", "scores_of_trained"]


@dataclass(frozen=True, eq=False)
class TrainedJob:
    """A network to be scored by cross-validation."""

    method: PINN
    scorer: Scorer
    seed: int


def scores_of_trained(jobs: Sequence[TrainedJob], device: Any = None) -> list[list[Sequence[float]] | PiblsError]:
    """Return the scores per fold of every network, or why it cannot be trained."""
    found: list[list[Sequence[float]] | PiblsError] = [[() for _ in job.scorer.folds] for job in jobs]
    fits, places = [], []
    for number, job in enumerate(jobs):
        try:
            for division in job.scorer.folds:
                job.method.check(job.scorer.problem, division.train, job.seed)
        except (FeatureError, SolveError) as refusal:
            found[number] = refusal
            continue
        fits += [PinnFit(job.method, job.scorer.problem, d.train, job.seed) for d in job.scorer.folds]
        places += [(number, fold) for fold in range(len(job.scorer.folds))]
    for together in train_together(fits, device):
        here = [places[number] for number in together.numbers]
        for (number, fold), rows in zip(here, _scored(together, [(jobs[j].scorer, f) for j, f in here]), strict=True):
            scores = found[number]
            if isinstance(scores, list):
                scores[fold] = rows
    return found


def _scored(together: Together, where: Sequence[tuple[Scorer, int]]) -> list[list[float]]:
    """Return the scores of networks that were trained together, each at the points held out of its own fold."""
    sets = [scorer.folds[fold].held.sets for scorer, fold in where]
    arrays = [[a for s in own for a in (s.points, s.partner) if a is not None] for own in sets]
    values = together.evaluate([np.concatenate(own) for own in arrays], [index for _, index in where[0][0].keys])
    result = []
    for number, (scorer, fold) in enumerate(where):
        own = _Values(arrays[number], {a: v[number] for a, v in values.items()}, scorer.problem.field_names)
        result.append([scorer.score(own, fold, score) for score in scorer.scores])
    return result


@dataclass(frozen=True, eq=False)
class _Values:
    """Derivatives of fields that are known at some points: what a judge asks a solution for."""

    arrays: Sequence[FloatArray]
    values: dict[MultiIndex, FloatArray]  # (points of all arrays, fields)
    names: Sequence[str]

    def evaluate(self, X: FloatArray, wanted: Sequence[Key]) -> list[FloatArray]:
        start = 0
        for array in self.arrays:
            if np.array_equal(X, array[: len(X)]):
                break
            start += len(array)
        rows = slice(start, start + len(X))
        return [self.values[index][rows, self.names.index(name)] for name, index in wanted]
