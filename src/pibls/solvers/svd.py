"""Truncated singular value decomposition: the most expensive solver, and the one that shows most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from pibls.checks import check_number
from pibls.errors import SolveError
from pibls.solvers.dense import EPS, Array, array_namespace, column_major, dense
from pibls.solvers.inputs import check_system, column_norms
from pibls.solvers.solver import Factorisation, computing, require_workspace


@final
@dataclass(frozen=True)
class SVD:
    """Least squares by the singular values of H, the small ones dropped.

    One ridge λ for all columns damps every direction by σ/(σ² + λ); one per column enters as rows √λ below H. Columns
    are not scaled, so ``condition`` is that of H itself, and weights have minimal norm as they are.

    Parameters
    ----------
    cutoff
        Singular values at or below ``cutoff`` times the largest are dropped; by default machine epsilon times the
        larger side of H, the level rounding leaves.

    >>> import numpy as np
    >>> factor = SVD().factorise(np.diag([3.0, 1.0, 0.0]))
    >>> factor.rank, factor.solve(np.array([3.0, 2.0, 1.0])).tolist()
    (2, [1.0, 2.0, 0.0])
    """

    name: ClassVar[str] = "svd"
    cutoff: float | None = None

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            check_number("cutoff", self.cutoff, "SVD", minimum=0.0, maximum=1.0)

    def factorise(self, matrix: Array, *, ridge: float | Array = 0.0, overwrite: bool = False) -> Factorisation:
        """Decompose H; both sets of singular vectors are kept, so ``overwrite`` saves no memory here."""
        del overwrite
        matrix, root, rows, columns = check_system(matrix, ridge, "SVD")
        uniform = root is None or float(root[0]) == float(array_namespace(root).max(root)) == float(
            array_namespace(root).min(root)
        )
        height = rows if uniform else rows + columns
        require_workspace(rows, columns, 2.0 * height * columns + 6.0 * min(height, columns) * columns, self.name)
        with computing():
            column_norms(matrix, "SVD")
            u, sigma, vt = decompose(matrix if uniform else column_major(matrix, root), self.name)
        largest, smallest = float(sigma[0]), float(sigma[-1])
        cutoff = max(rows, columns) * EPS if self.cutoff is None else self.cutoff
        rank = sum(value > cutoff * largest for value in sigma.tolist())
        return _Truncated(
            name=self.name,
            shape=(rows, columns),
            rank=rank,
            condition=largest / smallest if smallest > 0 else float("inf"),
            like=sigma,
            left=u[:rows, :rank],
            right=vt[:rank, :].T,
            sigma=sigma[:rank],
            damping=0.0 if root is None or not uniform else float(root[0]),
        )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class _Truncated(Factorisation):
    """H = U Σ Vᵀ with the small singular values dropped; ``damping`` is √λ."""

    left: Array
    right: Array
    sigma: Array
    damping: float

    def _weights_and_residual(self, rhs: Array) -> tuple[Array, Array]:
        projected = self.left.T @ rhs
        # 1/(σ + λ/σ) is σ/(σ² + λ) without the squares that overflow or vanish.
        inner = projected / (self.sigma + self.damping * (self.damping / self.sigma))[:, None]
        return self.right @ inner, rhs - self.left @ (self.sigma[:, None] * inner)


def decompose(matrix: Array, name: str) -> tuple[Array, Array, Array]:
    """Return the thin singular value decomposition of a finite matrix."""
    triple = dense(matrix).svd(matrix)
    if triple is None:
        raise SolveError(
            f"The singular value decomposition in solver '{name}' did not converge on a matrix of "
            f"{tuple(matrix.shape)}. Use solver='lstsq', or rescale the rows."
        )
    return triple
