"""The paper's protocol for one problem and method: random points, search, fit to all of them, errors elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pibls import problems
from pibls.checks import FloatArray, check_choice, check_integer
from pibls.errors import PiblsError
from pibls.geometry import Points
from pibls.methods import PINN
from pibls.methods.settings import recorded
from pibls.problem import Problem
from pibls.report import metrics
from pibls.report.views import View
from pibls.solution import Solution
from pibls.status import Status
from pibls.studies.grids import CLASSES, Grid, scales
from pibls.studies.published import PAPER_NAMES, published
from pibls.tuning.automatic import Method, solve
from pibls.tuning.cross_validation import CrossValidation, first_of_the_best, search

__all__ = ["FOLDS", "SCORES", "Fitted", "Selection", "Setting", "curves", "fit_timed", "parameters", "select"]

FOLDS = 5
SCORES = ("exact", "residual")
# The paper says how many points are inside, not how many are on the boundary and at the first time.
# The paper's smallest ridge needs many boundary rows to be felt little; in time, half as many tell as much.
_CONDITIONS_PER_INTERIOR = {"advection": 1.0, "poisson": 2.0, "diffusion_reaction": 0.5}
_TRAIN, _CONDITIONS, _TEST = 1, 2, 3
_GRAPH, _MAP = 201, 61


@dataclass(frozen=True)
class Setting:
    """A problem of the paper with random points of a seed.

    The interior points are independent and uniform, as in the paper. Those of the conditions are spread evenly; there
    are twice as many on the boundary as inside for the Poisson equation, and half as many on the boundary and half as
    many at the first time for diffusion and reaction. The paper says nothing about them.

    Examples
    --------
    >>> setting = Setting("advection", 30, seed=0)
    >>> setting.points, setting.test_points.shape
    (Points(interior 30, conditions 1), (100, 1))
    """

    name: str
    n_train: int
    seed: int

    def __post_init__(self) -> None:
        check_choice("name", self.name, "Setting", tuple(PAPER_NAMES))
        check_integer("n_train", self.n_train, "Setting", minimum=1)
        check_integer("seed", self.seed, "Setting")

    @cached_property
    def problem(self) -> Problem:
        """The problem itself."""
        made: Problem = getattr(problems, self.name)()
        return made

    @cached_property
    def points(self) -> Points:
        """The points of the fit."""
        count = max(1, round(_CONDITIONS_PER_INTERIOR[PAPER_NAMES[self.name]] * self.n_train))
        even = Points.sample(self.problem, 1, count, count, method="kronecker", seed=self._seed(_CONDITIONS))
        inside = Points.sample(self.problem, self.n_train, method="uniform", seed=self._seed(_TRAIN))
        return Points((inside.sets[0], *even.sets[1:]))

    @cached_property
    def test_points(self) -> FloatArray:
        """Independent points at which the solution is judged."""
        count = published().test_size(self.name)
        return np.asarray(self.problem.domain.sample(count, "uniform", self._seed(_TEST)))

    def _seed(self, purpose: int) -> int:
        entropy = (self.seed, purpose, self.n_train, list(PAPER_NAMES).index(self.name))
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    def errors(self, solution: Solution) -> tuple[dict[str, float], dict[str, float]]:
        """Return the nine metrics at the training and at the test points."""
        train = metrics(solution, points=self.points.interior)
        return dict(train), dict(metrics(solution, points=self.test_points))


@dataclass(frozen=True, eq=False)
class Selection:
    """What a search chose by one score: the method as it is to be fitted to all points, and its mean score.

    Beside it, how many settings were tried, scales included, and the time of the search for all scores.
    """

    method: Method
    score: float
    configurations: int
    seconds: float


def select(grid: Grid, setting: Setting, scores: Sequence[str] = SCORES) -> dict[str, Selection]:
    """Search a space by cross-validation, for every score from the same fits."""

    def validated(methods: list[Method]) -> dict[str, CrossValidation]:
        return search(methods, setting.problem, setting.points, folds=FOLDS, seed=setting.seed, scores=scores)

    chosen, pilots = _scales(grid, setting, validated, scores)
    wanted = {score: grid.methods(chosen[score]) for score in scores}
    # Scores may want different scales; what both ask for, or a pilot has shown, is fitted once.
    known = {repr(row.method) for pilot in pilots for row in pilot[scores[0]].table}
    union = {repr(m): m for methods in wanted.values() for m in methods if repr(m) not in known}
    parts = [*pilots, *([validated(list(union.values()))] if union else [])]
    seconds = sum(part[scores[0]].seconds for part in parts)
    result = {}
    for score in scores:
        rows = {repr(row.method): row for part in parts for row in part[score].table}
        best = first_of_the_best([rows[repr(method)] for method in wanted[score]])
        tried = len({repr(method) for method in wanted[score]} | known)
        winner: Any = best.method
        result[score] = Selection(replace(winner, **grid.final), best.mean, tried, seconds)
    return result


def _scales(
    grid: Grid, setting: Setting, validated: Any, scores: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], list[Mapping[str, CrossValidation]]]:
    """Return the best scale per score and activation; activations that cannot solve the problem are left out."""
    chosen: dict[str, dict[str, Any]] = {score: {} for score in scores}
    pilots, refusal = [], None
    for activation in grid.space["activation"]:
        try:
            choices = scales(setting.problem, grid.space_scales, grid.time_scales)
            found = validated(grid.pilots(activation, choices))
        except PiblsError as error:
            refusal = error
            continue
        pilots.append(found)
        for score in scores:
            best: Any = found[score].best
            chosen[score][activation] = best.scale
    if not pilots and refusal is not None:
        raise refusal
    return chosen, pilots


def parameters(method: Method, problem: Problem) -> int:
    """Return how many numbers a method trains.

    >>> from pibls import PIBLS
    >>> parameters(PIBLS(feature_groups=13, feature_nodes=10, enhancement_nodes=105), problems.advection())
    235
    """
    if isinstance(method, PINN):
        return method.parameters(len(problem.domain.coordinates), len(problem.fields))
    any_method: Any = method
    return int(any_method.nodes) * len(problem.fields)


def curves(solution: Solution) -> dict[str, Any]:
    """Return solution, source and residual over a grid, NaN outside of the domain: what the figures show.

    Rows are the second coordinate, as in a picture.
    """
    problem = solution.problem
    axes = tuple(range(len(problem.domain.coordinates)))
    view = View(problem.domain, axes, {}, _GRAPH if len(axes) == 1 else _MAP)
    form = problem.statements[0].form
    residual = view.evaluate(solution.residual(0))
    source = view.evaluate(lambda X: -np.asarray(form.source_function(X, None)) * np.ones(len(X)))
    values = {
        "exact": view.evaluate(lambda X: problem.exact_values(X)[problem.field_names[0]]),
        "predicted": view.evaluate(solution),
        "source_exact": source,
        "source_predicted": source + residual,
        "residual": np.abs(residual),
    }
    names = ("x", "y") if problem.domain.time is None else ("x", "t")
    grids = {name: grid.tolist() for name, grid in zip(names, view.grids, strict=False)}
    return grids | {name: array.tolist() for name, array in values.items()}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit to all points of a setting: its time, its errors at those points, and at the test points."""

    solution: Solution
    settings: Mapping[str, Any]
    seconds: float
    train: Mapping[str, float]
    test: Mapping[str, float]
    parameters: int

    @property
    def entries(self) -> dict[str, Any]:
        """The entries of a cell."""
        named = {name: getattr(self, name) for name in ("settings", "seconds", "train", "test", "parameters")}
        return {**named, "theorems": plain(self.solution.diagnostics.theorems)}


def fit_timed(method: Method, setting: Setting, *, warm: bool = False) -> Fitted:
    """Fit a method to all points of a setting; ``warm`` fits once before, so that nothing is loaded in the timed fit.

    Examples
    --------
    >>> from pibls import PIELM
    >>> fitted = fit_timed(PIELM(nodes=100, scale=2.0), Setting("advection", 30, seed=0))
    >>> fitted.test["relative_rmse"] < 1e-2, fitted.settings["nodes"]
    (True, 100)
    """
    problem, points = setting.problem, setting.points
    if warm:
        method.fit(problem, points, seed=setting.seed)
    start = time.perf_counter()
    solution = method.fit(problem, points, seed=setting.seed)
    seconds = time.perf_counter() - start
    # A PINN answers Ctrl-C with the best weights so far; a study must not take them for the result.
    if solution.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    train, test = setting.errors(solution)
    return Fitted(solution, recorded(method), seconds, train, test, parameters(method, problem))


def rebuilt(name: str, settings: Mapping[str, Any]) -> Method:
    """Return the method of stored settings.

    >>> rebuilt("PI-ELM", {"nodes": 23, "scale": [12.0, 0.5]}).nodes
    23
    """
    return CLASSES[name](**settings)


def solve_cell(setting: Setting) -> dict[str, Any]:
    """Return the entries of a cell for a plain solve, which chooses its points and settings itself."""
    problem = setting.problem
    start = time.perf_counter()
    solution = solve(problem, seed=setting.seed, progress=False)
    seconds = time.perf_counter() - start
    return {
        "settings": plain(solution.diagnostics.settings),
        "test": dict(metrics(solution, points=setting.test_points)),
        "seconds": seconds,
        "parameters": solution.diagnostics.nodes * len(problem.fields),
        "theorems": plain(solution.diagnostics.theorems),
        "extra": {"estimate": solution.error_estimate, "status": solution.status, "rows": solution.diagnostics.rows},
    }


def plain(value: Any) -> Any:
    """Return a record as lists and dictionaries.

    >>> plain({"scales": (1.0, 2.0)})
    {'scales': [1.0, 2.0]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
