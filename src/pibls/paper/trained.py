"""Scores of trained networks: the trainings of all folds, settings and seeds of a search, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import FeatureError, PiblsError, SolveError
from pibls.paper.folds import Key, Scorer
from pibls.paper.pinn import PINN, PinnFit, train_together
from pibls.problem import MultiIndex

TrainedJob = tuple[PINN, Scorer, int]
"""A network to be scored by cross-validation, and its seed."""


def scores_of_trained(jobs: Sequence[TrainedJob], device: Any = None) -> list[list[Sequence[float]] | PiblsError]:
    """Return the scores per fold of every network, or why it cannot be trained."""
    rows: list[list[Sequence[float]]] = [[() for _ in scorer.folds] for _, scorer, _ in jobs]
    refusals: dict[int, PiblsError] = {}
    fits, places = [], []
    for number, (method, scorer, seed) in enumerate(jobs):
        try:
            method.check(scorer.problem, scorer.folds[0].train, seed)
        except (FeatureError, SolveError) as refusal:
            refusals[number] = refusal
            continue
        fits += [PinnFit(method, scorer.problem, fold.train, seed) for fold in scorer.folds]
        places += [(number, fold) for fold in range(len(scorer.folds))]
    # While a GPU trains one batch, this machine scores the one before.
    with ThreadPoolExecutor(1) as pool:
        scored = []
        for together in train_together(fits, device):
            here = [places[number] for number in together.numbers]
            where = [(jobs[number][1], fold) for number, fold in here]
            arrays = [_held(scorer, fold) for scorer, fold in where]
            wanted = [index for _, index in where[0][0].keys]
            values = together.evaluate([np.concatenate(own) for own in arrays], wanted)
            scored.append((here, pool.submit(_scored, where, arrays, values)))
        for here, future in scored:
            for (number, fold), row in zip(here, future.result(), strict=True):
                rows[number][fold] = row
    return [refusals.get(number, rows[number]) for number in range(len(jobs))]


def _held(scorer: Scorer, fold: int) -> list[FloatArray]:
    sets = scorer.folds[fold].held.sets
    return [a for s in sets for a in (s.points, s.partner) if a is not None]


def _scored(
    where: Sequence[tuple[Scorer, int]],
    arrays: Sequence[Sequence[FloatArray]],
    values: Mapping[MultiIndex, FloatArray],
) -> list[list[float]]:
    """Return the scores of networks, each at the points held out of its own fold."""
    result = []
    for number, (scorer, fold) in enumerate(where):
        own = _Values(arrays[number], {a: v[number] for a, v in values.items()}, scorer.problem.field_names)
        result.append([scorer.score(own.evaluate, fold, score) for score in scorer.scores])
    return result


@dataclass(frozen=True, eq=False)
class _Values:
    """Derivatives of fields at known points, as a judge asks a solution for them."""

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
