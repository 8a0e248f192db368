"""The path all linear methods share: network → system → weights → solution."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pibls.checks import FloatArray, as_reals, check_number, cut, shorten
from pibls.errors import InputError, MissingDependencyError, PiblsError, SolveError
from pibls.features import Activation, BroadNetwork
from pibls.geometry import Points
from pibls.problem import Problem
from pibls.runtime import blas_threads, require_memory
from pibls.solution import Diagnostics, Residual, Solution
from pibls.solvers import Solver, constrained
from pibls.solvers.inputs import to_host
from pibls.status import Status
from pibls.system import (
    Balanced,
    Block,
    Penalties,
    RowScaling,
    System,
    assemble,
    check_points_match,
    check_squares,
    system_bytes,
)


@dataclass(frozen=True)
class Recipe:
    """How to turn a network into a solution, and how to record it."""

    method: str
    settings: Mapping[str, Any]
    seed: int
    scaling: RowScaling
    ridge: float
    solver: Solver


def check_fit(problem: object, points: object, nodes: int, owner: str) -> None:
    """Refuse problems that cannot be fitted before anything is drawn or allocated."""
    if not isinstance(problem, Problem) or not isinstance(points, Points):
        kind, value = ("Problem", problem) if not isinstance(problem, Problem) else ("Points", points)
        remedy = "Sample points with Points.sample(problem, interior=1000)." if kind == "Points" else ""
        raise InputError(f"{owner}.fit takes a {kind}. Got {shorten(value)} instead. {remedy}".rstrip())
    check_points_match(problem, points)
    check_squares(problem)
    rows = sum(points.sets[statement.source].rows for statement in problem.statements)
    require_memory(
        system_bytes(problem, points, nodes), f"{owner} with {nodes} nodes on {rows} rows", "Use fewer nodes or points."
    )


def on_device(network: BroadNetwork, device: Any) -> BroadNetwork:
    """Return the network on a torch device, or as it is if none is asked for."""
    return network if device is None else network.to(placing(device))


def placing(device: Any, dtype: Any = None) -> Callable[[Any], Any]:
    """Return a function that brings arrays to a torch device; refuse a device that torch does not have."""
    try:
        import torch
    except ImportError:
        raise MissingDependencyError(
            f"The device {shorten(device)} needs PyTorch, which is not installed; install pibls[torch]."
        ) from None

    def place(array: Any) -> Any:
        try:
            return torch.as_tensor(np.array(array), device=device, dtype=dtype)
        except (RuntimeError, TypeError, ValueError, AssertionError) as error:
            raise InputError(
                f"The 'device' parameter must be a device that torch has here; 'cpu' always works. "
                f"Got {shorten(device)} instead ({cut(str(error))})."
            ) from error

    return place


def found_device() -> str | None:
    """Return the GPU that torch has, or None: without torch, without a GPU, or without its double precision.

    >>> found_device() in (None, "cuda")
    True
    """
    try:
        import torch
    except ImportError:
        return None
    return "cuda" if torch.cuda.is_available() else None


def fit(problem: Problem, points: Points, network: BroadNetwork, recipe: Recipe) -> Solution:
    """Assemble, solve and wrap up."""
    start = time.perf_counter()
    with blas_threads():
        system = assemble(problem, points, network, recipe.scaling)
        assembled = time.perf_counter()
        weights, residuals, factor = _solved(system, recipe)
    seconds = {"assembly": assembled - start, "solve": time.perf_counter() - assembled}
    return finished(problem, network, recipe, system, weights, residuals, factor, seconds=seconds)


def finished(
    problem: Problem,
    network: BroadNetwork,
    recipe: Recipe,
    system: System,
    weights: FloatArray,
    residuals: tuple[FloatArray, FloatArray],
    factor: Any,
    status: Status = Status.FITTED,
    **told: Any,
) -> Solution:
    """Return weights with their record, from the residuals of rows, and of those that hold exactly."""
    soft, hard = residuals
    pairs = [(block, soft[block.rows]) for block in system.blocks]
    pairs += [(block, hard[block.rows]) for block in system.constraint_blocks]
    diagnostics = Diagnostics(
        method=recipe.method,
        settings=recipe.settings,
        seed=recipe.seed,
        nodes=network.size,
        rows=len(soft) + len(hard),
        solver=factor.name,
        rank=factor.rank,
        condition=factor.condition,
        residuals=residual_record(pairs),
        **told,
    )
    shape = (len(problem.fields), network.size)
    return Solution(problem, network.to_numpy(), weights.reshape(shape), status, diagnostics)


def _solved(system: System, recipe: Recipe) -> tuple[FloatArray, tuple[FloatArray, FloatArray], Any]:
    """Return weights, the residuals of rows and of those that hold exactly, and the factor; solvers may be strange."""
    try:
        return _solve(system, recipe)
    except PiblsError:
        raise
    except Exception as error:
        raise SolveError(
            f"The solver {shorten(recipe.solver)} failed with {type(error).__name__}: {cut(str(error), 120)}. Check "
            "that it factorises to a Factorisation, or use the solver 'lstsq'."
        ) from error


def _solve(system: System, recipe: Recipe) -> tuple[FloatArray, tuple[FloatArray, FloatArray], Any]:
    rows, columns = system.shape
    factor: Any
    if system.constraints is None:
        factor = recipe.solver.factorise(system.matrix, ridge=recipe.ridge, overwrite=True)
        _check_factor(factor, recipe.solver)
        weights = _checked(factor.solve(system.rhs), columns, "weights", recipe.solver)
        residual = _checked(factor.residual(system.rhs), rows, "residuals", recipe.solver)
        return weights, (residual, np.empty(0)), factor
    factor = constrained(recipe.solver, system.matrix, system.constraints, ridge=recipe.ridge)
    found = factor.solve(system.rhs, system.constraint_rhs)
    violation = to_host(system.constraint_rhs - system.constraints @ found)
    residual = to_host(system.rhs - system.matrix @ found)
    return _checked(found, columns, "weights", recipe.solver), (residual, violation), factor


def _check_factor(factor: object, solver: Solver) -> None:
    wanted = ("solve", "residual", "name", "rank", "condition")
    if not all(hasattr(factor, name) for name in wanted):
        raise SolveError(
            f"The solver {shorten(solver)} factorised the matrix to {shorten(factor)}, which lacks one of "
            f"{', '.join(wanted)}. Return a Factorisation."
        )


def _checked(values: Any, count: int, name: str, solver: Solver) -> FloatArray:
    """Return the numbers of a solver as an array; refuse another count of them, or some that are not finite."""
    array = as_reals(values)
    if array is None or array.shape != (count,) or not np.isfinite(array).all():
        raise SolveError(
            f"The solver {shorten(solver)} must return {count} finite {name}. Got {shorten(values)} instead. "
            "Add a ridge with lambda_reg, or use the solver 'lstsq'."
        )
    return array


def residual_record(pairs: Iterable[tuple[Block, FloatArray]]) -> dict[str, Residual]:
    """Residual per block, back in the units of its equation; blocks of one name are told apart by a number."""
    result: dict[str, Residual] = {}
    for number, (block, values) in enumerate(pairs, start=1):
        # Units last: in those of the equation, squares may be out of range.
        rows = values * (1.0 if block.noise is None else block.noise)
        name = block.name if block.name not in result else f"{block.name} [{number}]"
        rms, largest = float(np.sqrt(np.mean(rows**2))), float(np.abs(rows).max())
        result[name] = Residual(rms / block.scale, largest / block.scale, block.count)
    return result


Scale = float | Sequence[float]

# Rows under a larger penalty would push the equation below round-off.
_LARGEST_PENALTY = 1e24


def check_penalties(lambda_b: float | None, lambda_i: float | None, owner: str) -> None:
    """Refuse penalties that are not positive numbers.

    >>> check_penalties(0.01, None, "PIELM")
    """
    for name, value in (("lambda_b", lambda_b), ("lambda_i", lambda_i)):
        if value is not None:
            check_number(name, value, owner, minimum=0, exclusive=True, maximum=_LARGEST_PENALTY)


def row_scaling(lambda_b: float | None, lambda_i: float | None) -> RowScaling:
    """Return the scaling that penalties ask for: balanced if none is given, else as in the paper.

    >>> row_scaling(0.01, None)
    Penalties(boundary=0.01, initial=1.0)
    """
    if lambda_b is None and lambda_i is None:
        return Balanced()
    return Penalties(*(1.0 if value is None else float(value) for value in (lambda_b, lambda_i)))


def recorded(method: Any) -> dict[str, Any]:
    """Return the settings of a method as plain values that a file can hold."""
    return {f.name: _plain(getattr(method, f.name)) for f in fields(method)}


def _plain(value: Any) -> Any:
    if isinstance(value, Activation):
        return value.name
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else str(value)
