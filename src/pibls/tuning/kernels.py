"""Ridge problems of rows that are known by their inner products alone.

The weights of a ridge problem are combinations of its rows, w = Hᵀc, so that H Hᵀ is all there is to know of a network,
however wide: a fold is some of its rows and columns, a penalty scales them, a ridge is added to the diagonal. Inner
products square the condition number, which a ridge far above their rounding forgives and a smaller one does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from pibls.checks import FloatArray
from pibls.tuning.folds import IndexArray
from pibls.tuning.small_solves import block_norms

__all__ = ["KernelSystem", "outweighs_rounding"]

_EPS = float(np.finfo(np.float64).eps)
# What rounding may be to the ridge, and thereby to the residual of the fit.
_CLEAR = 1e-5


def outweighs_rounding(ridge: float, squares: FloatArray, factors: FloatArray) -> bool:
    """Whether a ridge is far above the rounding of inner products of rows with given squared norms and factors.

    >>> outweighs_rounding(1e-4, np.array([10.0, 10.0]), np.array([1.0, 0.1]))
    True
    >>> outweighs_rounding(1e-14, np.array([10.0, 10.0]), np.array([1.0, 0.1]))
    False
    """
    return bool(_EPS * (squares @ factors**2) < _CLEAR * ridge)


@dataclass(frozen=True, eq=False)
class KernelSystem:
    """Some rows in blocks, to be solved for any factors of the blocks and any ridge that outweighs rounding.

    Attributes
    ----------
    kernel, rhs
        Inner products of all rows, and their right-hand sides, without factors.
    chosen
        The rows that are solved for.
    counts
        Number of chosen rows of each block.

    Examples
    --------
    >>> rows = np.array([[1.0], [1.0], [5.0]])
    >>> system = KernelSystem(rows @ rows.T, np.array([0.0, 1.0, 7.0]), np.array([0, 1]), (1, 1))
    >>> coefficients = system.solve((1.0, 1.0), ridge=2.0)
    >>> coefficients, rows.T @ coefficients
    (array([-0.125,  0.375,  0.   ]), array([0.25]))
    """

    kernel: FloatArray
    rhs: FloatArray
    chosen: IndexArray
    counts: tuple[int, ...]

    @cached_property
    def norms(self) -> list[float]:
        """Root mean square of the norms of the rows, per block."""
        return block_norms(self.kernel.diagonal()[self.chosen], self.counts)

    def solve(self, factors: Sequence[float], ridge: float) -> FloatArray:
        """Return c with the weights Hᵀc, zero at rows that are not solved for."""
        scale = np.repeat(np.asarray(factors, dtype=np.float64), self.counts)
        # Symmetric: its transpose has the order that LAPACK wants.
        gram = (self._among_chosen * scale[:, None] * scale).T
        gram.ravel(order="K")[:: len(gram) + 1] += ridge
        factor, _ = scipy.linalg.lapack.dpotrf(gram, lower=1, clean=0, overwrite_a=1)
        inner, _ = scipy.linalg.lapack.dpotrs(factor, scale * self.rhs[self.chosen], lower=1)
        coefficients = np.zeros(len(self.kernel))
        coefficients[self.chosen] = scale * inner
        return coefficients

    @cached_property
    def _among_chosen(self) -> FloatArray:
        return self.kernel[np.ix_(self.chosen, self.chosen)]
