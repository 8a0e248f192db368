"""The minimum-norm solve with a wide matrix whose leading columns are triangular, of a rank still to be decided."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from pibls.checks import check_seed
from pibls.solvers.dense import EPS, Array, Householder, array_namespace, column_major, dense, pad
from pibls.solvers.lstsq import count_above, tail_norms
from pibls.solvers.mixing import Mixing, hartley

__all__ = ["Core"]

# The first triangle overstates its tail, tens of times and more, so it decides nothing but what is surely noise.
_FIRST_SHARE = 0.5
# A triangle counts as close to singular past this multiple of √k/cutoff, by its condition in the 1-norm. No value parts
# them all: a triangle of 2000 tanh nodes that solves to all its digits came out at 1.3, one with a direction of mere
# rounding at 2.4. Too low a multiple costs time only.
_NEAR_SINGULAR = 2.0


@final
@dataclass(frozen=True, eq=False)
class Core:
    """Weights of minimal norm for T w = h, T of k × M with k ≤ M.

    A square triangle that is not close to singular is used as it is. Otherwise the rows are shuffled and mixed if need
    be, so that (U T)ᵀ = P R reveals the rank in the trailing rows of R; where some fall below the cut-off, or the
    triangle is close to singular, the transpose of what is left is factorised once more, which separates the small
    singular values sharply enough to decide.

    ``triangle`` is what is solved with; ``right``, ``mixed`` and ``left`` are P, U and the second factorisation, and
    ``null`` begins with an orthonormal basis of what the directions dropped by it do not see.
    """

    columns: int
    rank: int
    condition: float
    triangle: Array
    mixed: _Rows | None = None
    right: Householder | None = None
    left: Householder | None = None
    null: Householder | None = None

    @classmethod
    def of(cls, table: Array, cutoff: float, seed: int | None) -> Core:
        """Decide the rank: directions of a combined norm up to ``cutoff`` times that of the table are dropped.

        Parameters
        ----------
        table
            The matrix T; its leading columns are an upper triangle.
        cutoff
            Relative cut-off.
        seed
            Of the mixing of the rows; None where they are those of one QR factorisation of mixed columns, which is as
            good.
        """
        height, columns = table.shape
        if height == 0:
            return cls(columns, 0, float("inf"), table)
        limit = _NEAR_SINGULAR * math.sqrt(height) / max(cutoff, EPS)
        if height == columns and (condition := _condition(table)) < limit:
            return cls(columns, height, condition, table)
        work = dense(table).workspace(columns, height, table)
        rows = None if seed is None else _Rows.of(table, seed)
        if rows is None:
            work[:, :] = table.T
        else:
            for rows_of, block in rows.mixing.blocks(table[rows.order, :].T, None):
                work[rows_of, :] = block[:, rows.places]
        right = Householder.of(work)
        tails = tail_norms(right.triangle)
        floor = cutoff * float(tails[0])
        first = count_above(tails, floor if rows is None else _FIRST_SHARE * floor)
        if first == height and (condition := _condition(right.triangle)) < limit:
            return cls(columns, height, condition, right.triangle, rows, right)
        left = Householder.of(column_major(right.triangle[: max(first, 1), :].T))
        rank = count_above(tail_norms(left.triangle), floor)
        triangle = left.triangle[:rank, :rank]
        null = _null_space(triangle, left.triangle[:rank, rank:])
        return cls(columns, rank, _condition(triangle), triangle, rows, right, left, null)

    def solve(self, head: Array) -> Array:
        """Return the weights (M, k) for right-hand sides h."""
        solve_triangular = dense(head).solve_triangular
        if self.rank == 0:
            return pad(head[:0, :], self.columns)
        if self.right is None:
            return solve_triangular(self.triangle, head, transpose=False)
        mixed = head if self.mixed is None else self.mixed.apply(head)
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


@final
@dataclass(frozen=True, eq=False)
class _Rows:
    """A random orthogonal mixing of rows that are no equals: those of a triangle fall off from block to block.

    Low frequencies of neighbours are all but dependent, whatever the signs: only where the rows are shuffled, and their
    frequencies too, does every leading part of the mixture see every direction.
    """

    order: Array
    places: Array
    mixing: Mixing

    @classmethod
    def of(cls, table: Array, seed: int) -> _Rows:
        xp, height = array_namespace(table), table.shape[0]
        rng = check_seed(seed, "Core")
        order, places = (xp.asarray(rng.permutation(height), device=table.device) for _ in range(2))
        return cls(order, places, Mixing.of(xp.ones((height,), dtype=xp.float64, device=table.device), seed))

    def apply(self, head: Array) -> Array:
        """Return the mixture of rows."""
        return hartley(head[self.order, :].T * self.mixing.factors)[:, self.places].T


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
