"""Random orthogonal mixing of columns: signs, then a Hartley transform, at the cost of one FFT per row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from pibls.checks import check_seed
from pibls.solvers.dense import Array, array_namespace
from pibls.solvers.inputs import to_library

# Rows are transformed in blocks of this many entries: they stay in the cache, and need no second copy of the matrix.
_BLOCK = 2**17


def hartley(rows: Array) -> Array:
    """Return the discrete Hartley transform of every row, Σ_j a_j (cos + sin)(2πjk/M): real, and its own inverse × M.

    >>> import numpy as np
    >>> a = np.array([[1.0, 2.0, 0.0, -1.0, 5.0]])
    >>> bool(np.allclose(hartley(hartley(a)) / 5, a))
    True
    """
    xp = array_namespace(rows)
    columns = rows.shape[1]
    spectrum = xp.fft.rfft(rows, axis=1)
    real, imag = xp.real(spectrum), xp.imag(spectrum)
    half = columns // 2 + 1
    mixed = xp.empty_like(rows)
    mixed[:, :half] = real - imag
    mixed[:, half:] = xp.flip(real[:, 1 : columns - half + 1] + imag[:, 1 : columns - half + 1], axis=1)
    return mixed


@final
@dataclass(frozen=True, eq=False)
class Mixing:
    """The transform D V of columns: D scales them to unit norm, V is orthogonal and spreads each over all.

    ``factors`` holds the diagonal of D times the random signs and 1/√M of V; zero columns have factor 0, so that they
    neither enter the matrix nor get a weight.
    """

    factors: Array

    @classmethod
    def of(cls, norms: Array, seed: int) -> Mixing:
        """Draw the mixing for columns of the given norms."""
        xp = array_namespace(norms)
        columns = int(norms.shape[0])
        signs = to_library(check_seed(seed, "Mixing").choice([-1.0, 1.0], size=columns), norms)
        safe = xp.where(norms > 0, norms, xp.ones_like(norms))
        return cls(xp.where(norms > 0, signs / (safe * math.sqrt(columns)), xp.zeros_like(norms)))

    def blocks(self, matrix: Array, root: Array | None) -> Iterator[tuple[slice, Array]]:
        """Yield the rows of H D V, then those of √λ D V, block by block with their places."""
        rows, columns = matrix.shape
        step = max(1, _BLOCK // columns)
        for start in range(0, rows, step):
            block = matrix[start : start + step, :]
            yield slice(start, start + block.shape[0]), hartley(block * self.factors)
        if root is None:
            return
        xp = array_namespace(matrix)
        for start in range(0, columns, step):
            width = min(step, columns - start)
            block = xp.zeros((width, columns), dtype=xp.float64, device=matrix.device)
            index = xp.arange(width, device=matrix.device)
            block[index, start + index] = (root * self.factors)[start : start + width]
            yield slice(rows + start, rows + start + width), hartley(block)

    def back(self, mixed: Array) -> Array:
        """Return the weights D V v of columns v."""
        return (hartley(mixed.T) * self.factors).T

    def forth(self, weights: Array) -> Array:
        """Return Vᵀ D w for columns w: the transpose of :meth:`back`, since a Hartley transform is symmetric."""
        return hartley(weights.T * self.factors).T
