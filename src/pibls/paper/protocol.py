"""The paper's protocol for one problem and method: fit the selected method to all points, measure its errors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.methods.fit import found_device, recorded, row_scaling
from pibls.paper.cells import Cell
from pibls.paper.grids import CLASSES, Grid
from pibls.paper.made import device_name
from pibls.paper.pinn import PINN, PinnFit, fit_together
from pibls.paper.setting import Setting
from pibls.paper.theorems import LeastSquaresProblem, check_theorems
from pibls.problem import Problem
from pibls.report import metrics
from pibls.report.views import View
from pibls.solution import Solution
from pibls.solvers import solver
from pibls.status import Status
from pibls.system import assemble
from pibls.tuning.automatic import Method, solve

GRAPH, _MAP = 201, 61  # points of a curve, and along each side of a map
_SHORT, _LONG = 200, 600  # evaluations of two trainings whose difference in time tells that of an evaluation


def parameters(method: Method, problem: Problem) -> int:
    """Return how many numbers a method trains.

    >>> from pibls import PIBLS, problems
    >>> parameters(PIBLS(feature_groups=13, feature_nodes=10, enhancement_nodes=105), problems.advection())
    235
    """
    if isinstance(method, PINN):
        return method.parameters(len(problem.domain.coordinates), len(problem.fields))
    any_method: Any = method
    return int(any_method.nodes) * len(problem.fields)


def curves(solution: Solution) -> dict[str, Any]:
    """Return solution, source and residual over a grid for the figures, NaN outside of the domain.

    Rows are the second coordinate, as in a picture.
    """
    problem = solution.problem
    axes = tuple(range(len(problem.domain.coordinates)))
    view = View(problem.domain, axes, {}, GRAPH if len(axes) == 1 else _MAP)
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


Fitted = tuple[Solution, Cell]
"""A fit to all points of a setting, and the entries of its cell: settings, time, errors there and at test points."""


def fit_timed(method: Method, setting: Setting, *, warm: bool = False) -> Fitted:
    """Fit a method to all points of a setting; ``warm`` fits once before, so that nothing is loaded in the timed fit.

    >>> from pibls import PIELM
    >>> _, entries = fit_timed(PIELM(nodes=100, scale=2.0), Setting("advection", 30, seed=0))
    >>> entries["test"]["relative_rmse"] < 1e-2, entries["settings"]["nodes"]
    (True, 100)
    """
    if warm:
        method.fit(setting.problem, setting.points, seed=setting.seed)
    # What the processor worked: what else it does meanwhile does not count.
    start = time.process_time()
    solution = method.fit(setting.problem, setting.points, seed=setting.seed)
    return _fitted(method, setting, solution, time.process_time() - start, {})


def time_all(wanted: Sequence[tuple[Method, Setting]]) -> list[Fitted]:
    """Fit methods one by one with nothing beside them, and time each.

    Networks are trained side by side, which gives the same weights. Two short trainings of each alone tell the seconds
    of an evaluation and of all that comes before, and from these those of its whole training.
    """
    if not isinstance(wanted[0][0], PINN):
        return [fit_timed(method, setting, warm=not i) for i, (method, setting) in enumerate(wanted)]
    _alone(*wanted[0], _SHORT)  # loads what is to be loaded
    result = []
    for (method, setting), (solution, entries) in zip(wanted, fit_all(wanted), strict=True):
        short, long = (_alone(method, setting, count) for count in (_SHORT, _LONG))
        each = max(0.0, long - short) / (_LONG - _SHORT)
        seconds = short + (entries["extra"]["evaluations"] - _SHORT) * each
        extra = {**entries["extra"], "seconds_per_evaluation": each}
        result.append((solution, {**entries, "seconds": seconds, "extra": extra}))
    return result


def _alone(method: Method, setting: Setting, evaluations: int) -> float:
    """Return the seconds of a short training of one network."""
    pinn: Any = method
    adam = evaluations * pinn.adam_iterations // (pinn.adam_iterations + pinn.lbfgs_iterations)
    brief = replace(pinn, adam_iterations=adam, lbfgs_iterations=evaluations - adam)
    start = time.perf_counter()
    brief.fit(setting.problem, setting.points, seed=setting.seed, device=found_device())
    return time.perf_counter() - start


def fit_all(wanted: Sequence[tuple[Method, Setting]]) -> list[Fitted]:
    """Fit methods to all points of settings of one problem; networks are trained side by side, and share the time."""
    fits = [PinnFit(m, s.problem, s.points, s.seed) for m, s in wanted if isinstance(m, PINN)]
    if not fits:
        return [fit_timed(method, setting) for method, setting in wanted]
    start = time.perf_counter()
    solutions = fit_together(fits, found_device())
    seconds = (time.perf_counter() - start) / len(fits)
    where = device_name()
    return [
        _fitted(m, s, found, seconds, {"evaluations": found.diagnostics.stages[-1].iteration, "device": where})
        for (m, s), found in zip(wanted, solutions, strict=True)
    ]


def _fitted(method: Method, setting: Setting, solution: Solution, seconds: float, extra: Cell) -> Fitted:
    # A PINN answers Ctrl-C with the best weights so far; a study must not take them for the result.
    if solution.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    train, test = setting.errors(solution)
    entries = {"settings": recorded(method), "seconds": seconds, "train": train, "test": test, "extra": extra}
    return solution, {**entries, "parameters": parameters(method, setting.problem)}


def checked(method: Any, setting: Setting) -> dict[str, Any]:
    """Return the checks of the theorems on a method with a solver, at the points of a setting."""
    network = method.draw(setting.problem.domain.bounds, setting.seed)
    scaling = row_scaling(method.lambda_b, method.lambda_i)
    system = assemble(setting.problem, setting.points, network, scaling)
    matrix = np.asfortranarray(system.matrix)

    def solve(rhs: FloatArray, ridge: float) -> FloatArray:
        return np.asarray(solver(method.solver).factorise(matrix, ridge=ridge).solve(rhs))

    return check_theorems(LeastSquaresProblem(matrix, np.array(system.rhs), method.lambda_reg), solve)


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
        "extra": {"estimate": solution.error_estimate, "status": solution.status, "rows": solution.diagnostics.rows},
    }
