"""Many least-squares problems with the same rows under different weights and ridges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import scipy.linalg

from pibls.checks import FloatArray

__all__ = ["SmallSystem", "block_norms", "orthonormal"]

_EPS = float(np.finfo(np.float64).eps)
# Reciprocal condition above which a triangular solve gives every digit that singular values would.
_SAFE = 1e-8
_BLOCK = 32  # columns that LAPACK handles at once


def orthonormal(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Q and L with H = L Qᵀ and orthonormal columns of Q, for H with fewer rows than columns.

    >>> basis, small = orthonormal(np.array([[3.0, 4.0, 0.0]]))
    >>> abs(small), bool(np.allclose(small @ basis.T, [[3.0, 4.0, 0.0]]))
    (array([[5.]]), True)
    """
    basis, triangle = scipy.linalg.qr(matrix.T, mode="economic", check_finite=False)
    return np.asarray(basis), np.ascontiguousarray(triangle.T)


def block_norms(squares: FloatArray, counts: Sequence[int]) -> list[float]:
    """Return the root mean square of the norms of the rows of each block, from their squares.

    >>> block_norms(np.array([1.0, 7.0, 9.0]), (2, 1))
    [2.0, 3.0]
    """
    return [float(np.sqrt(squares[a:b].mean())) for a, b in pairwise(accumulate(counts, initial=0))]


@dataclass(frozen=True, eq=False)
class SmallSystem:
    """Rows in blocks, to be solved for any factors of the blocks and any ridge.

    Solutions have minimal norm where the rows leave a choice, with directions dropped that are nothing but rounding.

    Attributes
    ----------
    matrix, rhs
        The rows, without factors.
    counts
        Number of rows of each block.
    columns
        Number of weights that the columns stand for, which sets the level of rounding.

    Examples
    --------
    >>> system = SmallSystem(np.array([[1.0], [1.0]]), np.array([0.0, 1.0]), (1, 1), 1)
    >>> system.solve((1.0, 1.0)), system.solve((1.0, 3.0)).round(3), system.solve((1.0, 1.0), ridge=2.0)
    (array([0.5]), array([0.9]), array([0.25]))
    """

    matrix: FloatArray
    rhs: FloatArray
    counts: tuple[int, ...]
    columns: int

    @cached_property
    def norms(self) -> list[float]:
        """Root mean square of the norms of the rows, per block."""
        return block_norms(np.einsum("ij,ij->i", self.matrix, self.matrix), self.counts)

    def scaled(self, factors: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        """Return matrix and right-hand side with the blocks multiplied by factors."""
        rows = np.repeat(np.asarray(factors, dtype=np.float64), self.counts)
        return self.matrix * rows[:, None], self.rhs * rows

    def solve(self, factors: tuple[float, ...], ridge: float = 0.0) -> FloatArray:
        """Return the weights for factors of the blocks and a ridge."""
        rows, columns = self.matrix.shape
        if ridge > 0.0 and rows < columns:
            basis, square = self._in_basis
            return np.asarray(basis @ square.solve(factors, ridge))
        if rows >= columns:
            triangle, projected = self._triangle(factors)
            if ridge > 0.0:
                triangle, projected = _with_ridge(triangle, projected, ridge)
            if ridge > 0.0 or _well_conditioned(triangle):
                return np.asarray(scipy.linalg.solve_triangular(triangle, projected, check_finite=False))
        return self._of_minimal_norm(factors)

    @cached_property
    def _in_basis(self) -> tuple[FloatArray, SmallSystem]:
        """An orthonormal basis of the rows, and the system in it, with as many columns as rows."""
        basis, matrix = orthonormal(self.matrix)
        return basis, SmallSystem(matrix, self.rhs, self.counts, self.columns)

    def _triangle(self, factors: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
        """Return R and Qᵀz of the rows with factors; one factorisation serves all ridges."""
        if factors not in self._cache:
            matrix, rhs = self.scaled(factors)
            q, triangle = scipy.linalg.qr(matrix, mode="economic", check_finite=False)
            self._cache[factors] = (triangle, q.T @ rhs)
        return self._cache[factors]

    @cached_property
    def _cache(self) -> dict[tuple[float, ...], tuple[FloatArray, FloatArray]]:
        return {}

    def _of_minimal_norm(self, factors: tuple[float, ...]) -> FloatArray:
        """Return the weights without ridge; where no block stands in the way of another, factors do not matter."""
        weights, rank = self._balanced
        return weights if rank == len(self._reduced.rhs) else self._reduced._minimal(factors)[0]

    @cached_property
    def _balanced(self) -> tuple[FloatArray, int]:
        return self._reduced._minimal([1.0 / norm if norm > 0 else 1.0 for norm in self.norms])

    def _minimal(self, factors: Sequence[float]) -> tuple[FloatArray, int]:
        """Return the weights of minimal norm, and the rank."""
        matrix, rhs = self.scaled(factors)
        cutoff = max(len(self.rhs), self.columns) * _EPS
        # A third of the cost of singular values, and the same answer but for rounding.
        weights, _, rank, _ = scipy.linalg.lstsq(matrix, rhs, cond=cutoff, lapack_driver="gelsy", check_finite=False)
        return np.asarray(weights), int(rank)

    @cached_property
    def _reduced(self) -> SmallSystem:
        """The same system in as few rows as each block needs: many points on a boundary often say the same."""
        ends = np.cumsum((0, *self.counts))
        pieces = [_distinct(self.matrix[a:b], self.rhs[a:b], self.columns) for a, b in pairwise(ends)]
        matrices, sides = zip(*pieces, strict=True)
        return SmallSystem(np.concatenate(matrices), np.concatenate(sides), tuple(map(len, sides)), self.columns)


def _distinct(rows: FloatArray, rhs: FloatArray, columns: int) -> tuple[FloatArray, FloatArray]:
    """Return rows of the same least-squares problem, as many as the rank; those left out are rounding."""
    basis, triangle, order = scipy.linalg.qr(rows, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diagonal(triangle))
    rank = max(1, int(np.count_nonzero(sizes > max(len(rows), columns) * _EPS * sizes[0])))
    if rank == len(rows):
        return rows, rhs
    distinct = np.empty((rank, rows.shape[1]))
    distinct[:, order] = triangle[:rank]
    return distinct, basis[:, :rank].T @ rhs


def _with_ridge(triangle: FloatArray, projected: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
    """Return triangle and right-hand side of [R; √λ I] w = [Qᵀz; 0], for a third of what it costs without the zeros."""
    count = len(triangle)
    augmented = np.zeros((count + 1, count + 1), order="F")
    augmented[:count, :count], augmented[:count, count] = triangle, projected
    below = np.zeros((count, count + 1), order="F")
    np.fill_diagonal(below, np.sqrt(ridge))
    block = min(_BLOCK, count + 1)
    factor, _, _, _ = scipy.linalg.lapack.dtpqrt(count, block, augmented, below, overwrite_b=1)
    return factor[:count, :count], factor[:count, count]


def _well_conditioned(triangle: FloatArray) -> bool:
    reciprocal, _ = scipy.linalg.lapack.dtrcon(triangle)
    return bool(reciprocal > _SAFE)
