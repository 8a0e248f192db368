"""Cross-validation over a grid of methods: which settings suit a problem and its points."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

from pibls.checks import check_choice, check_integer, cut, shorten
from pibls.errors import FeatureError, InputError, PiblsError, ProblemError, SolveError
from pibls.geometry import Points
from pibls.methods.fit import recorded
from pibls.paper.folds import Scorer, split
from pibls.paper.pinn import PINN, PinnFit, train_together
from pibls.paper.shared_fits import Scores, scores_of_family
from pibls.paper.shared_rows import families
from pibls.problem import Problem
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.system import check_points_match
from pibls.tuning.automatic import Method

SCORES = ("residual", "exact")
_LEVEL = 1e-9  # relative difference of scores that is rounding

_Trained = tuple[PINN, Scorer, int]
"""A network to be trained and scored, and its seed."""


@dataclass(frozen=True)
class Candidate:
    """One method of the grid and how it did.

    Attributes
    ----------
    method
        The method.
    mean
        Mean of its scores; infinite if a fit was refused.
    folds
        Score of each fold.
    refusal
        Why the method cannot solve the problem, where it cannot.
    """

    method: Method
    mean: float
    folds: tuple[float, ...]
    refusal: str = ""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the method as plain numbers and words."""
        method: Any = self.method
        return recorded(method) if is_dataclass(method) else {"method": shorten(method)}


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The result of a cross-validation.

    Attributes
    ----------
    best
        The method with the lowest mean score; fit it to all points.
    table
        Every method of the grid, in its order.
    score
        What was compared: ``"residual"`` or ``"exact"``.
    seconds
        Wall-clock time of the whole search.
    """

    best: Method
    table: tuple[Candidate, ...]
    score: str
    seconds: float

    @property
    def winner(self) -> Candidate:
        """The row of the table that belongs to the best method."""
        return first_of_the_best(self.table)

    def __str__(self) -> str:
        refused = sum(bool(candidate.refusal) for candidate in self.table)
        return (
            f"best of {len(self.table)} methods ({refused} refused) by held-out {self.score}, "
            f"{self.winner.mean:.2e}: {cut(repr(self.best), 200)}"
        )


def cross_validate(
    method_grid: Iterable[Method],
    problem: Problem,
    points: Points,
    *,
    folds: int = 5,
    seed: int = 0,
    score: str = "residual",
) -> CrossValidation:
    """Choose among methods by how well they do at points that were held out of their fits.

    The points are divided into folds; every method is fitted to all folds but one and judged at that one, in turn.
    Fits that have work in common share it: networks of one scale and activation are evaluated once, at their widest,
    and every penalty and ridge is then a small solve, so that hundreds of settings take seconds.

    Parameters
    ----------
    method_grid
        Methods, such as ``[PIBLS(scale=s) for s in (1.0, 3.0, 10.0)]``; anything with a ``fit`` will do.
    problem
        The problem.
    points
        All its points, from :meth:`Points.sample`.
    folds
        How many folds; each needs at least one interior point.
    seed
        Seed of the division and of the random nodes.
    score
        ``"residual"``: the residuals at the held-out points, relative to the size of the terms they are made of;
        needs no solution. ``"exact"``: the root-mean-square error there; needs ``problem.exact``.

    Returns
    -------
    CrossValidation
        The best method, and the scores of all. A method that cannot solve the problem (ReLU for a second derivative)
        has an infinite score and says why.

    Examples
    --------
    >>> from pibls import PIELM, problems
    >>> problem = problems.advection()
    >>> grid = [PIELM(nodes=100, activation="sin", scale=s) for s in (0.1, 8.0, 500.0)]
    >>> found = cross_validate(grid, problem, Points.sample(problem, interior=60))
    >>> found.best.scale, len(found.table)
    (8.0, 3)
    """
    check_choice("score", score, "cross_validate", SCORES)
    return search(method_grid, problem, points, folds=folds, seed=seed, scores=(score,))[score]


@dataclass(frozen=True, eq=False)
class SearchJob:
    """One search among many: a grid of methods, and the problem and points they are tried on."""

    methods: Sequence[Method]
    problem: Problem
    points: Points
    seed: int


def search(
    method_grid: Iterable[Method],
    problem: Problem,
    points: Points,
    *,
    folds: int = 5,
    seed: int = 0,
    scores: Sequence[str] = SCORES,
) -> dict[str, CrossValidation]:
    """Return a cross-validation per score, all from the same fits; see :func:`cross_validate`."""
    number = check_integer("seed", seed, "cross_validate")
    (found,) = search_all([SearchJob(_checked_grid(method_grid), problem, points, number)], folds=folds, scores=scores)
    return found


def search_all(
    jobs: Sequence[SearchJob], *, folds: int = 5, scores: Sequence[str] = SCORES, device: Any = None
) -> list[dict[str, CrossValidation]]:
    """Return the result of :func:`search` for every job; trained networks are trained side by side for all."""
    started = time.perf_counter()
    count = check_integer("folds", folds, "cross_validate", minimum=2)
    every: list[Scores] = []
    trained: list[tuple[int, int, _Trained]] = []
    for number, job in enumerate(jobs):
        _check(job.problem, job.points, scores)
        scorer = Scorer(job.problem, job.points, split(job.problem, job.points, count, job.seed), tuple(scores))
        found: Scores = {}
        shared, others = families(job.methods, job.problem)
        with blas_threads():
            for family in shared:
                found |= scores_of_family(family, scorer, job.seed)
            for index in others:
                method = job.methods[index]
                if isinstance(method, PINN):
                    trained.append((number, index, (method, scorer, job.seed)))
                else:
                    found[index] = _fitted_scores(method, scorer, job.seed)
        every.append(found)
    for (number, index, _), rows in zip(trained, _trained_scores([t[-1] for t in trained], device), strict=True):
        every[number][index] = rows
    seconds = (time.perf_counter() - started) / len(jobs)
    return [_results(job, found, scores, seconds) for job, found in zip(jobs, every, strict=True)]


def _results(job: SearchJob, found: Scores, scores: Sequence[str], seconds: float) -> dict[str, CrossValidation]:
    rows = [found[index] for index in range(len(job.methods))]
    if all(isinstance(row, PiblsError) for row in rows):
        raise next(row for row in rows if isinstance(row, PiblsError))
    result = {}
    for position, score in enumerate(scores):
        table = tuple(_candidate(method, row, position) for method, row in zip(job.methods, rows, strict=True))
        result[score] = CrossValidation(first_of_the_best(table).method, table, score, seconds)
    return result


def _candidate(method: Method, row: list[Sequence[float]] | PiblsError, position: int) -> Candidate:
    if isinstance(row, PiblsError):
        return Candidate(method, math.inf, (), str(row))
    values = tuple(math.inf if math.isnan(fold[position]) else float(fold[position]) for fold in row)
    return Candidate(method, float(np.mean(values)), values)


def first_of_the_best(table: Sequence[Candidate]) -> Candidate:
    """Return the first candidate that none is better than but by rounding.

    >>> first_of_the_best([Candidate("a", 1.001, ()), Candidate("b", 1.0 + 1e-15, ()), Candidate("c", 1.0, ())]).method
    'b'
    """
    lowest = min(candidate.mean for candidate in table)
    return next(candidate for candidate in table if candidate.mean <= lowest * (1.0 + _LEVEL))


def _checked_grid(method_grid: Any) -> list[Method]:
    try:
        methods = list(method_grid)
    except TypeError:
        methods = []
    if not methods:
        raise InputError(
            "The 'method_grid' parameter of cross_validate must hold at least one method, such as [PIBLS(scale=3.0)]. "
            f"Got {shorten(method_grid)} instead."
        )
    for method in methods:
        if isinstance(method, type) or not callable(getattr(method, "fit", None)):
            raise InputError(
                "Each entry of 'method_grid' of cross_validate must have a fit, such as PIBLS(scale=3.0). "
                f"Got {shorten(method)} instead."
            )
    return methods


def _check(problem: object, points: object, scores: Sequence[str]) -> None:
    if not isinstance(problem, Problem):
        raise InputError(f"cross_validate takes a Problem second. Got {shorten(problem)} instead.")
    if not isinstance(points, Points):
        raise InputError(
            f"cross_validate takes Points third. Got {shorten(points)} instead. Sample them with "
            "Points.sample(problem, interior=100)."
        )
    check_points_match(problem, points)
    if "exact" in scores and problem.exact is None:
        raise ProblemError(
            "score='exact' of cross_validate needs a problem with an exact solution, and this one has none. Use "
            "score='residual', or give the problem exact=."
        )


def _fitted_scores(method: Method, scorer: Scorer, seed: int) -> list[Sequence[float]] | PiblsError:
    """Return the scores per fold of a method of any kind, by its own fit."""
    rows: list[Sequence[float]] = []
    try:
        for number, fold in enumerate(scorer.folds):
            solution: object = method.fit(scorer.problem, fold.train, seed=seed)
            if not isinstance(solution, Solution):
                raise InputError(
                    "The fit of every method of cross_validate must return a Solution. Got "
                    f"{shorten(solution)} from {shorten(method)} instead."
                )
            rows.append([scorer.score(solution.evaluate, number, score) for score in scorer.scores])
    except (FeatureError, SolveError) as refusal:
        return refusal
    return rows


def _trained_scores(jobs: Sequence[_Trained], device: Any) -> list[list[Sequence[float]] | PiblsError]:
    """Return the scores per fold of networks that are trained, all of them side by side."""
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
    for index, solution in train_together(fits, device):
        number, fold = places[index]
        scorer = jobs[number][1]
        rows[number][fold] = [scorer.score(solution.evaluate, fold, score) for score in scorer.scores]
    return [refusals.get(number, rows[number]) for number in range(len(jobs))]
