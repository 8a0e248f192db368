"""Plain QR: the fastest solver for systems known to have full rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from pibls.errors import SolveError
from pibls.solvers.dense import EPS, Array, Householder, array_namespace, column_major, dense, pad
from pibls.solvers.inputs import check_system, column_norms
from pibls.solvers.solver import Factorisation, computing, require_workspace


@final
@dataclass(frozen=True)
class QR:
    """Unpivoted Householder QR of H, or of Hᵀ for the weights of minimal norm where H has fewer rows than columns.

    A ridge enters as rows √λ·I. A triangle that is singular to working precision is refused, not solved.

    >>> import numpy as np
    >>> QR().factorise(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])).solve(np.array([1.0, 3.0, 5.0])).round(12)
    array([1., 2.])
    """

    name: ClassVar[str] = "qr"

    def factorise(self, matrix: Array, *, ridge: float | Array = 0.0, overwrite: bool = False) -> Factorisation:
        """Factorise H; with ``overwrite`` a tall Fortran-ordered float64 H without ridge is used in place."""
        matrix, root, rows, columns = check_system(matrix, ridge, "QR")
        height = rows if root is None else rows + columns
        wide = height < columns
        source = matrix.T if wide else matrix
        in_place = overwrite and root is None and dense(source).in_place(source)
        copied = 0.0 if in_place else float(height * columns)
        require_workspace(rows, columns, copied + 2.0 * min(height, columns) ** 2, self.name)
        with computing():
            column_norms(matrix, "QR")
            work = source if in_place else column_major(source, root)
            orthogonal = Householder.of(work)
            condition = _condition(orthogonal.triangle)
        return _Orthogonal(
            name=self.name,
            shape=(rows, columns),
            rank=min(height, columns),
            condition=condition,
            like=orthogonal.factors,
            orthogonal=orthogonal,
            wide=wide,
        )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class _Orthogonal(Factorisation):
    """H = Q R, or Hᵀ = Q R where ``wide``."""

    orthogonal: Householder
    wide: bool

    def _weights_and_residual(self, rhs: Array) -> tuple[Array, Array]:
        triangle, solve_triangular = self.orthogonal.triangle, dense(rhs).solve_triangular
        if not self.wide:
            return self.orthogonal.fitted(rhs, lambda block: solve_triangular(triangle, block, transpose=False))
        inner = solve_triangular(triangle, rhs, transpose=True)
        return self.orthogonal.apply(pad(inner, self.shape[1])), rhs - triangle.T @ inner


def _condition(triangle: Array) -> float:
    """Return the condition number of a triangle with unit columns, or refuse one singular to working precision."""
    xp = array_namespace(triangle)
    norms = column_norms(triangle, "QR")
    diagonal = xp.abs(xp.linalg.diagonal(triangle))
    zero = int(xp.sum(xp.astype(diagonal == 0, xp.int64)))
    condition = float("inf") if zero else dense(triangle).triangular_condition(triangle / norms)
    if condition * EPS >= 1.0:
        raise SolveError(
            f"Solver 'qr' needs a matrix of full rank, and this one of width {triangle.shape[1]} is singular to "
            f"working precision (condition number {condition:.1e} after column scaling). "
            "Use solver='lstsq', or add a ridge."
        )
    return condition
