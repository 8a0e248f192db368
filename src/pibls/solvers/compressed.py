"""The minimum-norm solve with a wide matrix whose leading columns are triangular, of a rank still to be decided."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from pibls.solvers.dense import EPS, Array, Householder, array_namespace, column_major, dense, pad
from pibls.solvers.lstsq import count_above, tail_norms
from pibls.solvers.mixing import Mixing, hartley

__all__ = ["Core"]

# The first triangle overstates its tail, tens of times and more, so it decides nothing but what is surely noise.
_FIRST_SHARE = 0.5
# A triangle counts as close to singular past this multiple of √k/cutoff, by its condition in the 1-norm. Of 192 with a
# direction of mere rounding none came out below 9; one of 2000 tanh nodes that solves to all its digits, at 1.3.
_NEAR_SINGULAR = 3.0


@final
@dataclass(frozen=True, eq=False)
class Core:
    """Weights of minimal norm for T w = h, T of k × M with k ≤ M.

    A square triangle that is not close to singular is used as it is. Otherwise the rows are mixed at random if need
    be, so that (U T)ᵀ = P R reveals the rank in the trailing rows of R; where some fall below the cut-off, or the
    triangle is close to singular, the transpose of what is left is factorised once more, which separates the small
    singular values sharply enough to decide.

    ``triangle`` is what is solved with; ``right``, ``mixing`` and ``left`` are P, U and the second factorisation, and
    ``null`` begins with an orthonormal basis of what the directions dropped by it do not see.
    """

    columns: int
    rank: int
    condition: float
    triangle: Array
    mixing: Mixing | None = None
    right: Householder | None = None
    left: Householder | None = None
    null: Householder | None = None

    @classmethod
    def of(cls, table: Array, cutoff: float, mixing: Mixing | None) -> Core:
        """Decide the rank: directions of a combined norm up to ``cutoff`` times that of the table are dropped.

        Parameters
        ----------
        table
            The matrix T; its leading columns are an upper triangle.
        cutoff
            Relative cut-off.
        mixing
            Of the rows; None where they are those of one QR factorisation of mixed columns, which is as good.
        """
        height, columns = table.shape
        if height == 0:
            return cls(columns, 0, float("inf"), table)
        limit = _NEAR_SINGULAR * math.sqrt(height) / max(cutoff, EPS)
        if height == columns and (condition := _condition(table)) < limit:
            return cls(columns, height, condition, table)
        work = dense(table).workspace(columns, height, table)
        if mixing is None:
            work[:, :] = table.T
        else:
            for rows_of, block in mixing.blocks(table.T, None):
                work[rows_of, :] = block
        right = Householder.of(work)
        tails = tail_norms(right.triangle)
        floor = cutoff * float(tails[0])
        first = count_above(tails, floor if mixing is None else _FIRST_SHARE * floor)
        if first == height and (condition := _condition(right.triangle)) < limit:
            return cls(columns, height, condition, right.triangle, mixing, right)
        left = Householder.of(column_major(right.triangle[: max(first, 1), :].T))
        rank = count_above(tail_norms(left.triangle), floor)
        triangle = left.triangle[:rank, :rank]
        null = _null_space(triangle, left.triangle[:rank, rank:])
        return cls(columns, rank, _condition(triangle), triangle, mixing, right, left, null)

    def solve(self, head: Array) -> Array:
        """Return the weights (M, k) for right-hand sides h."""
        solve_triangular = dense(head).solve_triangular
        if self.rank == 0:
            return pad(head[:0, :], self.columns)
        if self.right is None:
            return solve_triangular(self.triangle, head, transpose=False)
        mixed = head if self.mixing is None else hartley(head.T * self.mixing.factors).T
        if self.left is None:
            inner = solve_triangular(self.triangle, mixed, transpose=True)
        else:
            mixed = self.left.apply(mixed, transpose=True)[: self.rank, :]
            inner = solve_triangular(self.triangle, mixed, transpose=False)
        if self.null is not None:
            # What the directions dropped last could take over makes the weights shorter: project it out.
            parts = self.null.apply(pad(inner, self.null.vectors.shape[0]), transpose=True)
            parts[: self.null.vectors.shape[1], :] = 0.0
            inner = self.null.apply(parts)
        return self.right.apply(pad(inner, self.columns))


def _null_space(triangle: Array, rest: Array) -> Householder | None:
    """Return an orthogonal matrix whose leading columns span the null space of [triangle, rest]."""
    if 0 in rest.shape:
        return None
    xp, width = array_namespace(rest), rest.shape[1]
    dependent = dense(rest).solve_triangular(triangle, column_major(rest), transpose=False)
    identity = xp.eye(width, dtype=xp.float64, device=rest.device)
    return Householder.of(column_major(xp.concat([-dependent, identity], axis=0)))


def _condition(triangle: Array) -> float:
    xp = array_namespace(triangle)
    singular = triangle.shape[0] == 0 or not bool(xp.all(xp.linalg.diagonal(triangle) != 0))
    return float("inf") if singular else dense(triangle).triangular_condition(triangle)
