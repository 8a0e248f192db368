"""Fits of a cross-validation that share their work.

Networks of one scale and activation differ only in width, and draws are nested: the narrow network is the leading
columns of the widest. Its rows are therefore computed once, at all points. Where the weights do not depend on the basis
and there are fewer rows than columns, they are written in an orthonormal basis of the space they span, H = L Qᵀ, once
for all folds: a fold is then some rows of the small matrix L, penalties scale them, and the ridge ‖w‖² is ‖v‖² of
w = Q v. Every combination of penalties and ridges is one small solve, and all of a fold are judged together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import scipy.linalg

from pibls.checks import FloatArray
from pibls.errors import FeatureError, PiblsError, SolveError
from pibls.methods import BayesianPIELM
from pibls.methods.fit import row_scaling
from pibls.methods.marginal_likelihood import Group, maximise
from pibls.paper.folds import IndexArray, Key, Scorer
from pibls.paper.shared_rows import Family, Shared, SharedRows, columns, width
from pibls.solvers import SVD, solver

Scores = dict[int, list[Sequence[float]] | PiblsError]

_EPS = float(np.finfo(np.float64).eps)
_CLEAR = 1e-6  # what the rounding of inner products may be to a ridge, and thereby to the residual of the fit


def scores_of_family(family: Family, scorer: Scorer, seed: int) -> Scores:
    """Return, by place in the grid, the scores of every member per fold, or why it cannot be fitted."""
    try:
        network = max(family.values(), key=width).draw(scorer.problem.domain.bounds, seed)
        rows = SharedRows.of(scorer, network)
    except (FeatureError, SolveError) as refusal:
        return dict.fromkeys(family, refusal)
    groups: dict[tuple[int, bool], dict[int, Shared]] = {}
    for index, method in family.items():
        groups.setdefault((width(method), _any_basis(method)), {})[index] = method
    result: Scores = {}
    for (_, any_basis), members in groups.items():
        own = rows.part(columns(next(iter(members.values())), network)).whole(scorer.problem.field_names)
        result |= _scores_of_group(members, scorer, own.compressed() if any_basis else own)
    return result


def _any_basis(method: Shared) -> bool:
    """Whether the weights do not depend on the basis: they have minimal norm, or a ridge makes them unique."""
    if isinstance(method, BayesianPIELM):
        return True
    return solver(method.solver) == SVD() or (method.lambda_reg > 0 and method.solver in ("lstsq", "qr"))


def _scores_of_group(members: Family, scorer: Scorer, rows: SharedRows) -> Scores:
    """Score methods that share their rows, fold by fold."""
    refused: Scores = {}
    found: dict[int, list[Sequence[float]]] = {index: [] for index in members}
    for number, fold in enumerate(scorer.folds):
        places = rows.places(scorer.problem, fold.train_rows)
        matrix, rhs = (array[np.concatenate(places)] for array in (rows.matrix, rows.rhs))
        counts = [len(own) for own in places]
        norms = _block_norms(matrix, counts)
        known: dict[tuple[float, ...], Scaled] = {}
        weights: dict[int, FloatArray] = {}
        for index, method in members.items():
            if index in refused:
                continue
            scaling = row_scaling(method.lambda_b, method.lambda_i)
            factors = tuple(scaling.scales(scorer.problem.statements, norms))
            if factors not in known:
                scale = np.repeat(factors, counts)
                known[factors] = Scaled(matrix * scale[:, None], rhs * scale, rows.weights)
            try:
                weights[index] = known[factors].weights(method)
            except (FeatureError, SolveError) as refusal:
                refused[index] = refusal
        if weights:
            judged = _judged(np.column_stack(list(weights.values())), scorer, number, rows)
            for index, scores in zip(weights, judged, strict=True):
                found[index].append(scores)
    return {index: refused.get(index, values) for index, values in found.items()}


def _block_norms(matrix: FloatArray, counts: Sequence[int]) -> list[float]:
    """Return the root mean square of the norms of the rows of each block."""
    squares = np.einsum("ij,ij->i", matrix, matrix)
    return [float(np.sqrt(squares[a:b].mean())) for a, b in pairwise(accumulate(counts, initial=0))]


@dataclass(frozen=True, eq=False)
class Scaled:
    """Rows of one fold under given penalties, to be solved as any method would.

    >>> from pibls import PIELM
    >>> rows = Scaled(np.array([[1.0], [1.0]]), np.array([0.0, 1.0]), 1)
    >>> rows.weights(PIELM(solver="svd")), rows.weights(PIELM(lambda_reg=2.0))
    (array([0.5]), array([0.25]))
    """

    # matrix, rhs: the rows
    matrix: FloatArray
    rhs: FloatArray
    columns: int  # number of weights that the columns stand for, which sets the level of rounding

    def weights(self, method: Shared) -> FloatArray:
        """Return the weights of a method, by the cheapest way to weights as good as those of its own solver."""
        if isinstance(method, BayesianPIELM):
            return maximise([Group(self.matrix, self.rhs)], method.iterations, self.columns)[0].mean
        ridge = method.lambda_reg
        if _any_basis(method) and ridge == 0:
            # Of minimal norm, for a third of the cost of singular values, and the same but for rounding.
            cutoff = max(len(self.rhs), self.columns) * _EPS
            options = {"cond": cutoff, "lapack_driver": "gelsy", "check_finite": False}
            return np.asarray(scipy.linalg.lstsq(self.matrix, self.rhs, **options)[0])
        if _any_basis(method) and _EPS * np.trace(self._products) < _CLEAR * ridge:
            # Inner products square the condition number, which a ridge far above their rounding forgives.
            gram = self._products.copy()
            np.fill_diagonal(gram, gram.diagonal() + ridge)
            if self._dual:
                return np.asarray(self.matrix.T @ _definite_solve(gram, self.rhs))
            return _definite_solve(gram, self.matrix.T @ self.rhs)
        factor = solver(method.solver).factorise(np.asfortranarray(self.matrix), ridge=ridge)
        return np.asarray(factor.solve(self.rhs))

    @property
    def _dual(self) -> bool:
        """Whether inner products of rows are fewer than those of columns."""
        rows, columns = self.matrix.shape
        return bool(rows < columns)

    @cached_property
    def _products(self) -> FloatArray:
        return self.matrix @ self.matrix.T if self._dual else self.matrix.T @ self.matrix


def _definite_solve(matrix: FloatArray, rhs: FloatArray) -> FloatArray:
    # The transpose of a symmetric matrix has the order that LAPACK wants.
    factor = scipy.linalg.cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(scipy.linalg.cho_solve(factor, rhs, check_finite=False))


def _judged(weights: FloatArray, scorer: Scorer, number: int, rows: SharedRows) -> list[list[float]]:
    """Return the scores of every column of weights."""
    inside = scorer.folds[number].held_rows[0]
    values = {key: derivative[inside] @ weights for key, derivative in rows.derivatives.items()}
    scores = {
        "exact": lambda: _errors(values, scorer, inside),
        "residual": lambda: _residuals(weights, values, scorer, number, rows),
    }
    found = [scores[score]() for score in scorer.scores]
    return [[float(value) for value in row] for row in zip(*found, strict=True)]


def _errors(values: Mapping[Key, FloatArray], scorer: Scorer, inside: IndexArray) -> FloatArray:
    zero = (0,) * len(scorer.problem.domain.coordinates)
    squares = [_mean_square(values[name, zero] - exact[inside, None]) for name, exact in scorer.exact.items()]
    return np.asarray(np.sqrt(np.sum(squares, axis=0)))


def _residuals(
    weights: FloatArray, values: Mapping[Key, FloatArray], scorer: Scorer, number: int, rows: SharedRows
) -> FloatArray:
    judge = scorer.judges[number]
    sizes = judge.references_of(values)
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
