"""The dense factorisations each array library does best, under one set of names.

NumPy arrays go to SciPy's LAPACK, torch tensors to ``torch.linalg`` on their own device. Solvers are written once on
top of :class:`Dense` and of the array API.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from array_api_compat import array_namespace as array_namespace

Array = Any
EPS = float(np.finfo(np.float64).eps)
# Width of the panels of the blocked QR factorisation: wide enough for matrix products at full speed.
_PANEL = 128


class Dense:
    """Factorisations and triangular solves by SciPy's LAPACK, on Fortran-ordered arrays so that nothing is copied."""

    def workspace(self, rows: int, columns: int, like: Array) -> Array:
        """Return an uninitialised float64 matrix in the layout the factorisations work on in place."""
        return np.empty((rows, columns), dtype=like.dtype, order="F")

    def in_place(self, matrix: Array) -> bool:
        """Return whether :meth:`householder` can work in the memory of ``matrix``."""
        return bool(matrix.flags.f_contiguous and matrix.flags.writeable)

    def householder(self, matrix: Array) -> tuple[Array, Array]:
        """Return Householder vectors with R above them, and their factors; ``matrix`` may be overwritten."""
        from scipy.linalg import lapack

        # geqrt, recursive within wide panels, is about a quarter faster than geqrf at 10 000 × 2000.
        vectors, factors, _ = lapack.dgeqrt(min(_PANEL, *matrix.shape), matrix, overwrite_a=True)
        return vectors, factors

    def rotate(self, vectors: Array, factors: Array, block: Array, *, transpose: bool, right: bool) -> Array:
        """Return Q·block or Qᵀ·block (from the right: block·Q or block·Qᵀ)."""
        from scipy.linalg import lapack

        block = np.array(block, dtype=np.float64, order="F")
        side, trans, reflectors = "R" if right else "L", "T" if transpose else "N", vectors[:, : factors.shape[1]]
        return lapack.dgemqrt(reflectors, factors, block, side=side, trans=trans, overwrite_c=True)[0]

    def solve_triangular(self, triangle: Array, block: Array, *, transpose: bool) -> Array:
        """Solve R x = block (or Rᵀ x = block) for an upper triangular R."""
        from scipy.linalg import lapack

        return lapack.dtrtrs(triangle, block, trans=int(transpose))[0]

    def triangular_condition(self, triangle: Array) -> float:
        """Return the condition number, in the 1-norm, of an upper triangular matrix without zeros on its diagonal."""
        from scipy.linalg import lapack

        reciprocal = float(lapack.dtrcon(triangle, norm="1", uplo="U")[0])
        return 1.0 / reciprocal if reciprocal > 0 else float("inf")

    def svd(self, matrix: Array) -> tuple[Array, Array, Array] | None:
        """Return the thin singular value decomposition, or None where it did not converge."""
        from scipy.linalg import LinAlgError, svd

        # gesdd now and then fails to converge where the slower gesvd does not.
        for driver in ("gesdd", "gesvd"):
            try:
                u, sigma, vt = svd(matrix, full_matrices=False, check_finite=False, lapack_driver=driver)
            except LinAlgError:
                continue
            return u, sigma, vt
        return None

    def cholesky(self, matrix: Array) -> Array | None:
        """Return the upper Cholesky factor, or None where the matrix is not positive definite."""
        from scipy.linalg import lapack

        factor, info = lapack.dpotrf(matrix, lower=False, clean=True)
        return factor if info == 0 else None


@final
class _Torch(Dense):
    """The same by torch.linalg, on the device of the tensors."""

    def workspace(self, rows: int, columns: int, like: Array) -> Array:
        import torch

        return torch.empty((columns, rows), dtype=torch.float64, device=like.device).T

    def in_place(self, matrix: Array) -> bool:
        # Views that repeat one element (from ``expand``) cannot be written to.
        return all(stride > 0 for stride in matrix.stride())

    def householder(self, matrix: Array) -> tuple[Array, Array]:
        import torch

        vectors, factors = torch.geqrf(matrix)
        return vectors, factors

    def rotate(self, vectors: Array, factors: Array, block: Array, *, transpose: bool, right: bool) -> Array:
        import torch

        reflectors = vectors[:, : factors.shape[0]]
        return torch.ormqr(reflectors, factors, block, left=not right, transpose=transpose)

    def solve_triangular(self, triangle: Array, block: Array, *, transpose: bool) -> Array:
        import torch

        matrix = triangle.T if transpose else triangle
        return torch.linalg.solve_triangular(matrix, block, upper=not transpose)

    def triangular_condition(self, triangle: Array) -> float:
        import torch

        # torch has no estimator; the inverse of a triangle costs a sixth of the QR factorisation of a square.
        identity = torch.eye(triangle.shape[0], dtype=torch.float64, device=triangle.device)
        inverse = self.solve_triangular(triangle, identity, transpose=False)
        product = float(torch.linalg.matrix_norm(triangle, 1) * torch.linalg.matrix_norm(inverse, 1))
        return product if np.isfinite(product) else float("inf")

    def svd(self, matrix: Array) -> tuple[Array, Array, Array] | None:
        import torch

        try:
            u, sigma, vt = torch.linalg.svd(matrix, full_matrices=False)
        except torch.linalg.LinAlgError:
            return None
        return u, sigma, vt

    def cholesky(self, matrix: Array) -> Array | None:
        import torch

        factor, info = torch.linalg.cholesky_ex(matrix, upper=True)
        return factor if int(info) == 0 else None


def is_torch(array: object) -> bool:
    """Return whether an array is a torch tensor, without importing torch."""
    return type(array).__module__.partition(".")[0] == "torch"


def dense(array: Array) -> Dense:
    """Return the factorisations for the library of an array."""
    return _Torch() if is_torch(array) else Dense()


def pad(block: Array, rows: int) -> Array:
    """Return a new block with zero rows appended up to ``rows``."""
    xp = array_namespace(block)
    padded = xp.zeros((rows, block.shape[1]), dtype=xp.float64, device=block.device)
    padded[: block.shape[0], :] = block
    return padded


def column_major(matrix: Array, diagonal: Array | None = None) -> Array:
    """Return a copy in the layout the factorisations work in, with the rows of a diagonal matrix below if asked.

    With ``diagonal`` √λ those rows turn ridge regression into ordinary least squares.

    >>> import numpy as np
    >>> column_major(np.array([[1.0, 2.0]]), np.array([3.0, 4.0])).tolist()
    [[1.0, 2.0], [3.0, 0.0], [0.0, 4.0]]
    """
    rows, columns = matrix.shape
    target = dense(matrix).workspace(rows if diagonal is None else rows + columns, columns, matrix)
    if diagonal is not None:
        target[rows:, :] = 0.0
        index = array_namespace(matrix).arange(columns, device=matrix.device)
        target[rows + index, index] = diagonal
    target[:rows, :] = matrix
    return target


@final
@dataclass(frozen=True, eq=False)
class Householder:
    """An orthogonal matrix Q kept as Householder vectors, and the triangle R with matrix = Q R.

    >>> import numpy as np
    >>> factor = Householder.of(np.array([[3.0, 1.0], [4.0, 2.0]], order="F"))
    >>> bool(np.allclose(factor.apply(factor.triangle), [[3, 1], [4, 2]]))
    True
    """

    vectors: Array
    factors: Array
    triangle: Array

    @classmethod
    def of(cls, matrix: Array) -> Householder:
        """Factorise a float64 matrix, in its own memory where the library can."""
        vectors, factors = dense(matrix).householder(matrix)
        height = min(vectors.shape)
        # The transpose is in row-major order, which NumPy passes over twice as fast.
        return cls(vectors, factors, array_namespace(vectors).tril(vectors[:height, :].T).T)

    def apply(self, block: Array, *, transpose: bool = False, right: bool = False) -> Array:
        """Return Q·block, with ``transpose`` Qᵀ·block, and with ``right`` the products from the other side."""
        return dense(block).rotate(self.vectors, self.factors, block, transpose=transpose, right=right)

    def fitted(self, rhs: Array, solve: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Return w = solve(leading rows of Qᵀ·rhs) and the residual rhs − Q R w, whatever the solve leaves of it."""
        rows = self.triangle.shape[0]
        projected = self.apply(pad(rhs, self.vectors.shape[0]), transpose=True)
        weights = solve(projected[:rows, :])
        projected[:rows, :] -= self.triangle @ weights
        return weights, self.apply(projected)[: rhs.shape[0], :]
