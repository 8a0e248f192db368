"""The default: rank-safe least squares at nearly the cost of one unpivoted QR factorisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from pibls.checks import check_number, check_seed
from pibls.solvers.dense import EPS, Array, Householder, array_namespace, column_major, dense, pad
from pibls.solvers.inputs import check_system, column_norms
from pibls.solvers.mixing import Mixing
from pibls.solvers.solver import Factorisation, computing, require_workspace

# Rounding leaves a matrix of exact rank r with a tail of 1 to 4 eps (‖·‖_F, relative) in the second triangle, at any
# size tried up to 4000 × 2000; every eps more costs digits of solutions in smooth features.
_CUTOFF = 6 * EPS
# The first triangle overstates its tail, tens of times and more, so it decides nothing but what is surely noise.
_FIRST_SHARE = 0.5


@final
@dataclass(frozen=True)
class LeastSquares:
    """Randomised rank-revealing least squares (a URV decomposition).

    Columns are scaled to unit norm and mixed by a random orthogonal transform V, so that an ordinary blocked QR
    factorisation H D V = Q T reveals the rank in the trailing rows of T: pivoting, which runs at the speed of
    memory, is not needed (Demmel, Dumitriu and Holtz, 2007). Only if rows fall below the cut-off is T compressed from
    the right too, T = Rᵀ Pᵀ, which separates the singular values sharply enough to decide the rank, and gives the
    weights of minimal norm, measured after column scaling. A ridge enters as rows √λ·I, never through HᵀH.

    Parameters
    ----------
    cutoff
        Directions whose combined norm is below ``cutoff`` times that of the scaled matrix are dropped. The default,
        6 machine epsilons, keeps every digit the data hold.
    seed
        Seed of the mixing.

    >>> import numpy as np
    >>> H = np.vander(np.linspace(0, 1, 50), 12)
    >>> factor = LeastSquares().factorise(np.hstack([H, H]))
    >>> factor.rank
    12
    """

    name: ClassVar[str] = "lstsq"
    cutoff: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            check_number("cutoff", self.cutoff, "LeastSquares", minimum=0.0, maximum=1.0)
        check_seed(self.seed, "LeastSquares")

    def factorise(self, matrix: Array, *, ridge: float | Array = 0.0, overwrite: bool = False) -> Factorisation:
        """Factorise H; with ``overwrite`` a Fortran-ordered float64 H without ridge is factorised in its own memory."""
        matrix, root, rows, columns = check_system(matrix, ridge, "LeastSquares")
        height = rows if root is None else rows + columns
        in_place = overwrite and root is None and dense(matrix).in_place(matrix)
        small = min(height, columns) * columns
        require_workspace(rows, columns, 4.0 * small + (0.0 if in_place else float(height * columns)), self.name)
        cutoff = _CUTOFF if self.cutoff is None else self.cutoff
        with computing():
            norms = column_norms(matrix, "LeastSquares")
            mixing = Mixing.of(norms if root is None else array_namespace(norms).hypot(norms, root), self.seed)
            work = matrix if in_place else dense(matrix).workspace(height, columns, matrix)
            for rows_of, block in mixing.blocks(matrix, root):
                work[rows_of, :] = block
            orthogonal = Householder.of(work)
            core = _Core.of(orthogonal.triangle, cutoff)
        return URV(
            name=self.name,
            shape=(rows, columns),
            rank=core.rank,
            condition=_diagonal_ratio(orthogonal.triangle),
            like=orthogonal.factors,
            orthogonal=orthogonal,
            core=core,
            mixing=mixing,
        )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class URV(Factorisation):
    """H D V = Q T, with T in rank-decided form."""

    orthogonal: Householder
    core: _Core
    mixing: Mixing

    def _weights_and_residual(self, rhs: Array) -> tuple[Array, Array]:
        # The rows of T that the cut dropped count, too: the residual is that of the weights as they are.
        mixed, residual = self.orthogonal.fitted(rhs, self.core.solve)
        return self.mixing.back(mixed), residual

    def spread(self, block: Array) -> Array:
        """Return P·block for the P with which H P has orthonormal columns, as many as the rank."""
        return self.mixing.back(self.core.spread(block))

    def gathered(self, block: Array) -> Array:
        """Return Pᵀ·block."""
        return self.core.gathered(self.mixing.forth(block))


@final
@dataclass(frozen=True, eq=False)
class _Core:
    """The minimum-norm solve with a triangle T (k × M) of decided rank.

    ``right`` holds T[:r]ᵀ = P R where rows of T were dropped, and ``left`` the factorisation of the leading columns of
    Rᵀ where more were dropped then; a step that dropped nothing is None.
    """

    triangle: Array
    rank: int
    right: Householder | None = None
    left: Householder | None = None

    @classmethod
    def of(cls, triangle: Array, cutoff: float) -> _Core:
        tails = tail_norms(triangle)
        floor = cutoff * float(tails[0])
        first = count_above(tails, _FIRST_SHARE * floor)
        if first == triangle.shape[1] or first == 0:
            return cls(triangle, first)
        right = Householder.of(column_major(triangle[:first, :].T))
        rank = count_above(tail_norms(right.triangle), floor)
        left = None if rank == first else Householder.of(column_major(right.triangle[:rank, :].T))
        return cls(triangle, rank, right, left)

    def solve(self, projected: Array) -> Array:
        xp, columns = array_namespace(projected), self.triangle.shape[1]
        if self.rank == 0:
            return xp.zeros((columns, projected.shape[1]), dtype=xp.float64, device=projected.device)
        if self.right is None:
            return self.spread(projected)
        head = projected[: self.right.triangle.shape[0], :]
        return self.spread(head if self.left is None else self.left.apply(head, transpose=True)[: self.rank, :])

    def spread(self, block: Array) -> Array:
        """Return the weights of minimal norm whose image T w has the given coordinates, one for each of the rank."""
        solve_triangular = dense(block).solve_triangular
        if self.right is None:
            return solve_triangular(self.triangle, block, transpose=False)
        if self.left is None:
            inner = solve_triangular(self.right.triangle, block, transpose=True)
        else:
            inner = solve_triangular(self.left.triangle, block, transpose=False)
        return self.right.apply(pad(inner, self.triangle.shape[1]))

    def gathered(self, block: Array) -> Array:
        """Return the transpose of :meth:`spread`, applied to a block."""
        solve_triangular = dense(block).solve_triangular
        if self.right is None:
            return solve_triangular(self.triangle, block, transpose=True)
        inner = self.right.apply(block, transpose=True)[: self.rank, :]
        if self.left is None:
            return solve_triangular(self.right.triangle, inner, transpose=False)
        return solve_triangular(self.left.triangle, inner, transpose=True)


def tail_norms(triangle: Array) -> Array:
    """Return ‖T[r:, r:]‖_F for every r: the error of an upper triangular T cut to its first r rows."""
    xp = array_namespace(triangle)
    squares = xp.sum(triangle * triangle, axis=1)
    return xp.sqrt(xp.flip(xp.cumulative_sum(xp.flip(squares))))


def count_above(tails: Array, floor: float) -> int:
    """Return how many tails are above a floor: the rank that the floor leaves."""
    xp = array_namespace(tails)
    return int(xp.sum(xp.astype(tails > floor, xp.int64)))


def _diagonal_ratio(triangle: Array) -> float:
    xp = array_namespace(triangle)
    diagonal = xp.abs(xp.linalg.diagonal(triangle))
    smallest = float(xp.min(diagonal))
    return float(xp.max(diagonal)) / smallest if smallest > 0 else float("inf")
