"""A run as a solution, with its residuals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pibls.lines.accuracy import SETTINGS
from pibls.lines.form import Evolution
from pibls.lines.run import Run
from pibls.problem import OnPart, Statement
from pibls.solution import Solution
from pibls.solution.diagnostics import Diagnostics
from pibls.solution.field_functions import ResidualFunction
from pibls.solution.residuals import root_mean_square
from pibls.status import Status

__all__ = ["relative_miss", "relative_residual", "solution_of"]


def solution_of(evolution: Evolution, run: Run, seed: int) -> Solution:
    """Return a run as a solution whose error is not known yet."""
    settings = {
        "fineness": round(run.fineness, 3),
        "coefficients": run.size,
        "steps": len(run.network.coefficients),
        "velocity": round(evolution.velocity, 6),
        "steepest": None if run.design.monitor is None else round(run.design.monitor.peak, 1),
    }
    size = (run.width, run.points)
    record = Diagnostics("Lines", settings, seed, *size, "Radau IIA of order 13", None, None, {})
    network = replace(run.network, frame=evolution.frame)
    return Solution(evolution.problem, network, np.eye(len(evolution.problem.fields)), Status.STALLED, record)


def relative_residual(solution: Solution, until: float) -> float:
    """Return the residual of the equations up to a time, relative to their largest term."""
    where = solution.problem.domain.sample(SETTINGS.points, "kronecker", 1)
    where[:, -1] = np.minimum(where[:, -1], until)
    worst = 0.0
    for statement in solution.problem.statements:
        if statement.is_equation:
            keys = [(term.field, term.multi_index) for term in statement.form.terms]
            largest = max(root_mean_square(values) for values in solution.evaluate(where, keys))
            found = root_mean_square(ResidualFunction(solution, statement)(where))
            worst = max(worst, found / largest if largest > 0 else found)
    return worst


def relative_miss(solution: Solution, statement: Statement) -> float:
    """Return how far a solution is from keeping a condition, relative to the largest part of it."""
    form, part = statement.form, statement.place
    assert isinstance(part, OnPart)
    X, normals = part.part.sample(SETTINGS.points, "kronecker", 1)
    state = solution.evaluate(X, [(term.field, term.multi_index) for term in form.terms])
    parts = [f(X, normals) * own for f, own in zip(form.coefficient_functions, state, strict=True)]
    size = max(root_mean_square(own) for own in [form.source_function(X, normals), *parts])
    return root_mean_square(form.residual_at(X, normals, state)) / size if size > 0 else 0.0
