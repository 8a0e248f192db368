"""Nonlinear problems with a given network: Gauss–Newton steps, and a record of how they went."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.features import BroadNetwork
from pibls.geometry import Points
from pibls.methods.fit import Recipe, residual_record
from pibls.problem import Problem
from pibls.runtime import blas_threads
from pibls.solution import Diagnostics, Solution
from pibls.solvers.gauss_newton import Descent, gauss_newton
from pibls.solvers.step_rules import LineSearch, TrustRegion
from pibls.system import Evaluate, Linearisation

__all__ = ["fit_nonlinear"]

_FEW_STEPS, _MANY_STEPS = 8, 30
_MESSAGES = {
    "converged": "The Gauss–Newton iteration converged.",
    "stagnated": "The Gauss–Newton iteration found no better point. Use more nodes, or start closer to a solution with "
    "pibls.solve(start=).",
    "unfinished": "The Gauss–Newton iteration ran out of steps. Start closer to a solution with pibls.solve(start=).",
}


def fit_nonlinear(
    problem: Problem,
    points: Points,
    network: BroadNetwork,
    recipe: Recipe,
    start: Evaluate | None = None,
    *,
    near: bool = False,
) -> Solution:
    """Solve a nonlinear problem with one network.

    Parameters
    ----------
    problem, points, network, recipe
        What to solve, where, with which nodes and how; there can be no ridge.
    start
        A function to start from, of any network; zero if left out.
    near
        Whether the start is close to a solution: then no time is spent on what only helps from afar.
    """
    begun = time.perf_counter()
    if recipe.ridge != 0.0:
        raise InputError(
            "The 'lambda_reg' parameter must be 0 for nonlinear problems, whose steps are damped where needed. "
            f"Got {recipe.ridge:g} instead."
        )
    with blas_threads():
        rows = Linearisation.of(problem, points, network)
        model = rows.balanced(rows.states(rows.zeros()) if start is None else rows.states_of(start), recipe.scaling)
        assembled = time.perf_counter()
        first = None if start is None else model.tangent(model.states_of(start))
        rules, most = ((LineSearch(),), _FEW_STEPS) if near else ((LineSearch(), TrustRegion()), _MANY_STEPS)
        descent = gauss_newton(model, model.zeros(), first=first, solver=recipe.solver, rules=rules, most=most)
    seconds = {"assembly": assembled - begun, "solve": time.perf_counter() - assembled}
    return _wrapped(model, descent, recipe, seconds)


def _wrapped(model: Linearisation, descent: Descent, recipe: Recipe, seconds: dict[str, float]) -> Solution:
    """Return the end of an iteration as a solution with its record."""
    system, factor = descent.tangent.system, descent.tangent.factor
    soft, hard = _host(descent.point.soft), _host(descent.point.hard)
    pairs = [
        *((block, soft[block.rows]) for block in system.blocks),
        *((block, hard[block.rows]) for block in system.constraint_blocks),
    ]
    diagnostics = Diagnostics(
        method=recipe.method,
        settings=recipe.settings,
        seed=recipe.seed,
        nodes=model.network.size,
        rows=len(soft) + len(hard),
        solver=factor.name,
        rank=factor.rank,
        condition=factor.condition,
        residuals=residual_record(pairs),
        seconds=seconds,
        message=_MESSAGES[descent.status],
        iterations=tuple({name: float(value) for name, value in asdict(step).items()} for step in descent.history),
    )
    weights = _host(descent.point.weights).reshape(len(model.problem.fields), model.network.size)
    return Solution(model.problem, model.network.to_numpy(), weights, "fitted", diagnostics)


def _host(array: Any) -> FloatArray:
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)
