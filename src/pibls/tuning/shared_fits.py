"""Fits of a cross-validation that share their work.

Networks of one scale and activation differ only in width, and draws are nested: the narrow network is the leading
columns of the widest. Its rows are therefore computed once, at all points. With a ridge, their inner products are all
that folds, penalties and ridges need. Without one, or with one too small for that, and where there are fewer rows than
columns, they are written in an orthonormal basis of the space they span, H = L Qᵀ, once for all folds: a fold is then
some rows of the small matrix L, penalties scale them, and the ridge ‖w‖² is ‖v‖² of w = Q v. Every combination of
penalties and ridges is one small solve, and all of a fold are judged together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import FeatureError, PiblsError, SolveError
from pibls.methods import BayesianPIELM
from pibls.methods.evidence import Group, maximise
from pibls.methods.settings import row_scaling
from pibls.problem import Problem
from pibls.solvers import SVD, solver
from pibls.tuning.families import Family, Shared, width
from pibls.tuning.folds import IndexArray
from pibls.tuning.kernels import KernelSystem, outweighs_rounding
from pibls.tuning.shared_rows import Key, Rows, Scorer
from pibls.tuning.small_solves import SmallSystem, block_norms

__all__ = ["scores_of_family"]

Members = Mapping[int, Shared]
Scores = dict[int, list[Sequence[float]] | PiblsError]


def scores_of_family(family: Family, scorer: Scorer, seed: int) -> Scores:
    """Return, by place in the grid, the scores of every member per fold, or why it cannot be fitted."""
    try:
        network = family.network(scorer.problem, seed)
        rows = Rows.of(scorer, network)
    except (FeatureError, SolveError) as refusal:
        return dict.fromkeys(family.members, refusal)
    result: Scores = {}
    by_width: dict[int, dict[int, Shared]] = {}
    for index, method in family.members.items():
        by_width.setdefault(width(method), {})[index] = method
    for members in by_width.values():
        columns = family.columns(next(iter(members.values())), network)
        result |= _scores_of_width(members, scorer, rows.part(columns).whole(scorer.problem.field_names))
    return result


def _scores_of_width(members: Members, scorer: Scorer, rows: Rows) -> Scores:
    """Score the methods of one network, each by the cheapest way to weights as good as those of its own solver."""
    kernel = _by_kernel(members, scorer.problem, rows)
    rest = {index: method for index, method in members.items() if index not in kernel}
    small = {index: method for index, method in rest.items() if _any_basis(method)}
    own = {index: method for index, method in rest.items() if index not in small}
    result: Scores = {}
    if kernel:
        result |= _scores_of_group(kernel, scorer, rows.kernel(), kernel=True)
    if small:
        result |= _scores_of_group(small, scorer, rows.compressed(), kernel=False)
    if own:
        result |= _scores_of_group(own, scorer, rows, kernel=False)
    return result


def _by_kernel(members: Members, problem: Problem, rows: Rows) -> Members:
    """Return the methods whose ridge allows for inner products, where these are no more work than the rows."""
    count, columns = rows.matrix.shape
    if count > 2 * columns:
        return {}
    squares = np.einsum("ij,ij->i", rows.matrix, rows.matrix)
    counts = np.diff((*rows.starts, count)).tolist()
    norms = block_norms(squares, counts)

    def allows(method: Shared) -> bool:
        if isinstance(method, BayesianPIELM) or not _any_basis(method) or not method.lambda_reg > 0:
            return False
        return outweighs_rounding(method.lambda_reg, squares, np.repeat(_factors(method, problem, norms), counts))

    return {index: method for index, method in members.items() if allows(method)}


def _any_basis(method: Shared) -> bool:
    """Whether the weights do not depend on the basis: they have minimal norm, or a ridge makes them unique."""
    if isinstance(method, BayesianPIELM):
        return True
    chosen = solver(method.solver)
    return chosen == SVD() or (method.lambda_reg > 0 and method.solver in ("lstsq", "qr"))


def _scores_of_group(members: Members, scorer: Scorer, rows: Rows, *, kernel: bool) -> Scores:
    problem = scorer.problem
    refused: Scores = {}
    found: dict[int, list[Sequence[float]]] = {index: [] for index in members}
    for number, fold in enumerate(scorer.folds):
        system = _system(rows, rows.places(problem, fold.train_rows), kernel=kernel)
        weights: dict[int, FloatArray] = {}
        for index, method in members.items():
            if index in refused:
                continue
            try:
                weights[index] = _weights(method, system, _factors(method, problem, system.norms))
            except (FeatureError, SolveError) as refusal:
                refused[index] = refusal
        if weights:
            judged = _judged(np.column_stack(list(weights.values())), scorer, number, rows)
            for index, scores in zip(weights, judged, strict=True):
                found[index].append(scores)
    return {index: refused.get(index, values) for index, values in found.items()}


def _system(rows: Rows, places: Sequence[IndexArray], *, kernel: bool) -> KernelSystem | SmallSystem:
    chosen, counts = np.concatenate(places), tuple(map(len, places))
    if kernel:
        return KernelSystem(rows.matrix, rows.rhs, chosen, counts)
    return SmallSystem(rows.matrix[chosen], rows.rhs[chosen], counts, rows.weights)


def _factors(method: Shared, problem: Problem, norms: Sequence[float]) -> tuple[float, ...]:
    return tuple(row_scaling(method.lambda_b, method.lambda_i).scales(problem.statements, norms))


def _weights(method: Shared, system: KernelSystem | SmallSystem, factors: tuple[float, ...]) -> FloatArray:
    if isinstance(system, KernelSystem):
        assert not isinstance(method, BayesianPIELM)
        return system.solve(factors, method.lambda_reg)
    if not isinstance(method, BayesianPIELM) and _any_basis(method):
        return system.solve(factors, method.lambda_reg)
    matrix, rhs = system.scaled(factors)
    if isinstance(method, BayesianPIELM):
        found, _ = maximise([Group(matrix, rhs)], method.iterations)
        return found.mean
    factor = solver(method.solver).factorise(np.asfortranarray(matrix), ridge=method.lambda_reg, overwrite=True)
    return np.asarray(factor.solve(rhs))


def _judged(weights: FloatArray, scorer: Scorer, number: int, rows: Rows) -> list[list[float]]:
    """Return the scores of every column of weights."""
    inside = scorer.folds[number].held_rows[0]
    values = {key: derivative[inside] @ weights for key, derivative in rows.derivatives.items()}
    scores = {
        "exact": lambda: _errors(values, scorer, inside),
        "residual": lambda: _residuals(weights, values, scorer, number, rows),
    }
    columns = [scores[score]() for score in scorer.scores]
    return [[float(value) for value in row] for row in zip(*columns, strict=True)]


def _errors(values: Mapping[Key, FloatArray], scorer: Scorer, inside: IndexArray) -> FloatArray:
    zero = (0,) * len(scorer.problem.domain.coordinates)
    squares = [_mean_square(values[name, zero] - exact[inside, None]) for name, exact in scorer.exact.items()]
    return np.asarray(np.sqrt(np.sum(squares, axis=0)))


def _residuals(
    weights: FloatArray, values: Mapping[Key, FloatArray], scorer: Scorer, number: int, rows: Rows
) -> FloatArray:
    judge = scorer.judges[number]
    sizes = judge.linear_references(values)
    held = rows.places(scorer.problem, scorer.folds[number].held_rows)
    places = dict(zip(scorer.problem.statements, held, strict=True))
    total = np.zeros(weights.shape[1])
    for name, statement in judge.judged:
        chosen = places[statement]
        squares = _mean_square(rows.matrix[chosen] @ weights - rows.rhs[chosen, None])
        total += squares / np.where(sizes[name] > 0, sizes[name], 1.0) ** 2
    return np.asarray(np.sqrt(total))


def _mean_square(values: FloatArray) -> FloatArray:
    return np.asarray(np.mean(values * values, axis=0))
