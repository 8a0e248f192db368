"""The paper's protocol for one problem and method: random points, search, fit to all of them, errors elsewhere."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from pibls import problems
from pibls.checks import FloatArray, check_choice, check_integer
from pibls.errors import PiblsError
from pibls.geometry import Points
from pibls.methods import PINN
from pibls.methods.pinn import PinnFit, fit_together
from pibls.methods.settings import recorded, row_scaling
from pibls.methods.theorems import exact_weights
from pibls.problem import Problem
from pibls.report import metrics
from pibls.report.views import View
from pibls.solution import Solution
from pibls.status import Status
from pibls.studies.grids import CLASSES, Grid, scales
from pibls.studies.published import PAPER_NAMES, published
from pibls.system import assemble
from pibls.tuning.automatic import Method, solve
from pibls.tuning.cross_validation import CrossValidation, SearchJob, first_of_the_best, search_all

__all__ = [
    "FOLDS",
    "SCORES",
    "Fitted",
    "Selection",
    "Setting",
    "curves",
    "error_as_searched",
    "fit_all",
    "fit_timed",
    "parameters",
    "select",
    "select_all",
    "training_device",
]

FOLDS = 5
SCORES = ("exact", "residual")
# The paper says how many points are inside, not how many are on the boundary and at the first time.
# The paper's smallest ridge needs many boundary rows to be felt little; in time, half as many tell as much.
_CONDITIONS_PER_INTERIOR = {"advection": 1.0, "poisson": 2.0, "diffusion_reaction": 0.5}
_TRAIN, _CONDITIONS, _TEST = 1, 2, 3
_GRAPH, _MAP = 201, 61
_WARM = 20  # iterations of a training that is not timed


@cache
def _problem(name: str) -> Problem:
    made: Problem = getattr(problems, name)()
    return made


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
        """The problem itself, the same for all settings."""
        return _problem(self.name)

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
    return select_all(grid, [setting], scores)[0]


def select_all(grid: Grid, settings: Sequence[Setting], scores: Sequence[str] = SCORES) -> list[dict[str, Selection]]:
    """Search a space for several settings of one problem; what is trained is trained side by side for all."""
    device = training_device() if grid.method == "PINN" else None

    def validated(methods: Sequence[Sequence[Method]]) -> list[Mapping[str, CrossValidation]]:
        jobs = [SearchJob(m, s.problem, s.points, s.seed) for m, s in zip(methods, settings, strict=True)]
        return list(search_all(jobs, folds=FOLDS, scores=scores, device=device))

    chosen, pilots = _scales(grid, settings, validated, scores)
    wanted = [{score: grid.methods(own[score]) for score in scores} for own in chosen]
    # Scores may want different scales; what both ask for, or a pilot has shown, is fitted once.
    known = {repr(row.method) for pilot in pilots for row in pilot[0][scores[0]].table}
    unions = [{repr(m): m for ms in own.values() for m in ms if repr(m) not in known} for own in wanted]
    parts = [*pilots, *([validated([list(union.values()) for union in unions])] if all(unions) else [])]
    return [_selection(grid, own, [part[i] for part in parts], known) for i, own in enumerate(wanted)]


def _selection(
    grid: Grid,
    wanted: Mapping[str, Sequence[Method]],
    parts: Sequence[Mapping[str, CrossValidation]],
    known: Collection[str],
) -> dict[str, Selection]:
    """Return what was chosen for one setting, from all that was tried for it."""
    result = {}
    for score, methods in wanted.items():
        rows = {repr(row.method): row for part in parts for row in part[score].table}
        best = first_of_the_best([rows[repr(method)] for method in methods])
        tried = len({repr(method) for method in methods} | set(known))
        winner: Any = best.method
        seconds = sum(part[score].seconds for part in parts)
        result[score] = Selection(replace(winner, **grid.final), best.mean, tried, seconds)
    return result


def _scales(
    grid: Grid, settings: Sequence[Setting], validated: Any, scores: Sequence[str]
) -> tuple[list[dict[str, dict[str, Any]]], list[list[Mapping[str, CrossValidation]]]]:
    """Return the best scale per setting, score and activation, without activations that cannot solve the problem."""
    chosen: list[dict[str, dict[str, Any]]] = [{score: {} for score in scores} for _ in settings]
    pilots: list[list[Mapping[str, CrossValidation]]] = []
    refusal = None
    for activation in grid.space["activation"]:
        try:
            choices = scales(settings[0].problem, grid.space_scales, grid.time_scales)
            found = validated([grid.pilots(activation, choices)] * len(settings))
        except PiblsError as error:
            refusal = error
            continue
        pilots.append(found)
        for own, part in zip(chosen, found, strict=True):
            for score in scores:
                best: Any = part[score].best
                own[score][activation] = best.scale
    if not pilots and refusal is not None:
        raise refusal
    return chosen, pilots


def training_device() -> str | None:
    """Return where networks are trained: on a GPU if torch has one."""
    import torch

    return "cuda" if torch.cuda.is_available() else None


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
    theorems: Mapping[str, Any] = field(default_factory=dict)  # what takes more than the fit itself

    @property
    def entries(self) -> dict[str, Any]:
        """The entries of a cell."""
        named = {name: getattr(self, name) for name in ("settings", "seconds", "train", "test", "parameters")}
        return {**named, "theorems": {**self.solution.diagnostics.theorems, **self.theorems}}


def fit_timed(method: Method, setting: Setting, *, warm: bool = False) -> Fitted:
    """Fit a method to all points of a setting; ``warm`` fits once before, so that nothing is loaded in the timed fit.

    Examples
    --------
    >>> from pibls import PIELM
    >>> fitted = fit_timed(PIELM(nodes=100, scale=2.0), Setting("advection", 30, seed=0))
    >>> fitted.test["relative_rmse"] < 1e-2, fitted.settings["nodes"]
    (True, 100)
    """
    where = {"device": training_device()} if isinstance(method, PINN) else {}
    if warm:
        # Few iterations load all that a training needs.
        first = replace(method, adam_iterations=_WARM, lbfgs_iterations=_WARM) if isinstance(method, PINN) else method
        first.fit(setting.problem, setting.points, seed=setting.seed, **where)
    start = time.perf_counter()
    solution = method.fit(setting.problem, setting.points, seed=setting.seed, **where)
    return _fitted(method, setting, solution, time.perf_counter() - start)


def fit_all(wanted: Sequence[tuple[Method, Setting]]) -> list[Fitted]:
    """Fit methods to all points of settings of one problem; networks are trained side by side, and share the time."""
    fits = [PinnFit(m, s.problem, s.points, s.seed) for m, s in wanted if isinstance(m, PINN)]
    if not fits:
        return [fit_timed(method, setting) for method, setting in wanted]
    start = time.perf_counter()
    solutions = fit_together(fits, training_device())
    seconds = (time.perf_counter() - start) / len(fits)
    return [_fitted(m, s, found, seconds) for (m, s), found in zip(wanted, solutions, strict=True)]


def _fitted(method: Method, setting: Setting, solution: Solution, seconds: float) -> Fitted:
    # A PINN answers Ctrl-C with the best weights so far; a study must not take them for the result.
    if solution.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    train, test = setting.errors(solution)
    counted = parameters(method, setting.problem)
    return Fitted(solution, recorded(method), seconds, train, test, counted, _exact_weights(method, setting, solution))


def _exact_weights(method: Any, setting: Setting, solution: Solution) -> dict[str, Any]:
    """Return how far a solution with a ridge is from weights that meet all rows, where there are such."""
    ridge = getattr(method, "lambda_reg", 0.0)
    if not ridge:
        return {}
    network: Any = solution.network
    system = assemble(setting.problem, setting.points, network, row_scaling(method.lambda_b, method.lambda_i))
    found = exact_weights(system.matrix, system.rhs, ridge, solution.weights.ravel())
    return {found.theorem: found.record} if found else {}


def error_as_searched(method: Any, grid: Grid, setting: Setting) -> dict[str, float]:
    """Return the test error of a method solved as in the search, where that is another solver than in the final fit."""
    if "solver" not in grid.fixed:
        return {}
    solution = replace(method, solver=grid.fixed["solver"]).fit(setting.problem, setting.points, seed=setting.seed)
    return {"as_searched": setting.errors(solution)[1]["relative_rmse"]}


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
        "settings": solution.diagnostics.settings,
        "test": dict(metrics(solution, points=setting.test_points)),
        "seconds": seconds,
        "parameters": solution.diagnostics.nodes * len(problem.fields),
        "theorems": solution.diagnostics.theorems,
        "extra": {"estimate": solution.error_estimate, "status": solution.status, "rows": solution.diagnostics.rows},
    }
