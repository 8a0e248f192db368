"""The closed forms of broad learning: the normal equations, kept for comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from pibls.checks import check_choice
from pibls.errors import InputError, SolveError
from pibls.solvers.dense import Array, array_namespace, column_major, dense
from pibls.solvers.inputs import check_system, column_norms
from pibls.solvers.solver import Factorisation, computing, require_workspace


@final
@dataclass(frozen=True)
class NormalEquations:
    """Cholesky on HᵀH + λI (primal) or on HHᵀ + λI (dual).

    Forming HᵀH squares the condition number: of a matrix with condition number 10⁸ all sixteen digits are gone, and the
    matrices of smooth random features reach 10¹⁶ and beyond. That is why this solver, though the fastest and
    the one the broad-learning literature prints, is never the default.

    Parameters
    ----------
    form
        ``"primal"`` w = (HᵀH + λI)⁻¹Hᵀz, cheaper for N ≥ M; ``"dual"`` w = Hᵀ(HHᵀ + λI)⁻¹z, cheaper for N < M;
        ``"auto"`` takes the cheaper. For λ > 0 they are equal.

    >>> import numpy as np
    >>> H, z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]), np.array([1.0, 2.0])
    >>> primal, dual = (NormalEquations(form).factorise(H, ridge=0.1).solve(z) for form in ("primal", "dual"))
    >>> bool(np.allclose(primal, dual))
    True
    """

    name: ClassVar[str] = "normal"
    form: Literal["auto", "primal", "dual"] = "auto"

    def __post_init__(self) -> None:
        check_choice("form", self.form, "NormalEquations", ("auto", "primal", "dual"))

    def factorise(self, matrix: Array, *, ridge: float | Array = 0.0, overwrite: bool = False) -> Factorisation:
        """Factorise the Gram matrix; H is needed later too, so a copy is kept, with ``overwrite`` H itself."""
        matrix, root, rows, columns = check_system(matrix, ridge, "NormalEquations")
        dual = self.form == "dual" or (self.form == "auto" and rows < columns)
        side = rows if dual else columns
        require_workspace(rows, columns, 2.0 * side * side + (0.0 if overwrite else float(rows * columns)), self.name)
        with computing():
            column_norms(matrix, "NormalEquations")
            gram = _gram(matrix, root, dual=dual)
            factor = dense(gram).cholesky(gram)
        if factor is None or not math.isfinite(float(array_namespace(gram).sum(array_namespace(gram).abs(factor)))):
            raise SolveError(
                f"Solver 'normal' needs a positive definite {'HHᵀ' if dual else 'HᵀH'} + λI, and this one of {side} × "
                f"{side} is not, to working precision. Give a larger ridge, or use solver='lstsq'."
            )
        return _Gram(
            name=self.name,
            shape=(rows, columns),
            rank=side,
            condition=dense(factor).triangular_condition(factor),
            like=factor,
            matrix=matrix if overwrite else column_major(matrix),
            factor=factor,
            dual=dual,
        )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class _Gram(Factorisation):
    """CᵀC = HᵀH + λI, or HHᵀ + λI where ``dual``."""

    matrix: Array
    factor: Array
    dual: bool

    def _weights_and_residual(self, rhs: Array) -> tuple[Array, Array]:
        weights = self.matrix.T @ self._gram_solve(rhs) if self.dual else self._gram_solve(self.matrix.T @ rhs)
        return weights, rhs - self.matrix @ weights

    def _gram_solve(self, block: Array) -> Array:
        solve_triangular = dense(block).solve_triangular
        return solve_triangular(self.factor, solve_triangular(self.factor, block, transpose=True), transpose=False)


def _gram(matrix: Array, root: Array | None, *, dual: bool) -> Array:
    xp = array_namespace(matrix)
    gram = matrix @ matrix.T if dual else matrix.T @ matrix
    if root is None:
        return gram
    if dual and float(xp.min(root)) != float(xp.max(root)):
        raise InputError(
            "The 'ridge' parameter of NormalEquations must be one number in the dual form. Got different values per "
            "column instead. Use form='primal', or solver='lstsq'."
        )
    index = xp.arange(gram.shape[0], device=gram.device)
    gram[index, index] += root[0] * root[0] if dual else root * root
    return gram
