"""Least squares with very many rows, which are made block by block and need not be in memory together.

A random sketch adds the rows up, each with a sign, to a few times as many as there are columns. Its factorisation
decides the rank and is a preconditioner, with which the columns are nearly orthonormal; conjugate gradients then need
some tens of passes over the rows for every digit that QR gives. They start from the solution of the sketch: from zero,
rounding errors of the whole right-hand side would be multiplied by the condition number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from pibls.checks import check_integer, check_seed
from pibls.features.forms import slices
from pibls.solvers.dense import EPS, Array, array_namespace, column_major, dense, pad
from pibls.solvers.inputs import check_system, column_norms, to_library
from pibls.solvers.lstsq import URV, LeastSquares
from pibls.solvers.solver import Factorisation, computing, require_workspace


@final
@dataclass(frozen=True, eq=False)
class RowBlocks:
    """A tall matrix whose rows are made when they are needed: ``make`` returns those of a slice.

    >>> rows = RowBlocks((5, 2), lambda own: np.arange(10.0).reshape(5, 2)[own], 2)
    >>> [block.shape for _, block in rows.blocks()]
    [(2, 2), (2, 2), (1, 2)]
    """

    shape: tuple[int, int]
    make: Callable[[slice], Array]
    step: int = 5000  # rows of a block, which a GPU multiplies at full speed

    @classmethod
    def of(cls, matrix: Array) -> RowBlocks:
        """Return the rows of a matrix that is in memory."""
        height, columns = (int(number) for number in matrix.shape)
        return cls((height, columns), lambda own: matrix[own, :])

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield all rows, block by block, with their places."""
        yield from ((own, self.make(own)) for own in slices(self.shape[0], self.step))

    def both(self, weights: Array, rhs: Array | None) -> tuple[Array, Array]:
        """Return e = H w, or e = z − H w for a right-hand side z, and Hᵀ e, in one pass over the rows."""
        xp, parts, total = array_namespace(weights), [], 0.0
        for own, block in self.blocks():
            product = block @ weights
            part = product if rhs is None else rhs[own, :] - product
            parts.append(part)
            total = total + block.T @ part
        return xp.concat(parts, axis=0), total


@final
@dataclass(frozen=True)
class Sketched:
    """Sketch, factorise and refine: for matrices with many more rows than columns.

    Parameters
    ----------
    height
        Rows of the sketch, relative to columns: an error falls to 1/√height with every pass.
    passes
        Passes over all rows, at most.
    seed
        Seed of the sketch.

    >>> rng = np.random.default_rng(0)
    >>> H, z = rng.standard_normal((500, 20)) @ np.diag(np.logspace(0, 10, 20)), rng.standard_normal(500)
    >>> weights = Sketched().factorise(H).solve(z)
    >>> bool(np.allclose(weights, np.linalg.lstsq(H, z)[0], rtol=1e-10))
    True
    """

    name: ClassVar[str] = "sketch"
    height: int = 8
    passes: int = 60
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("height", self.height, "Sketched", minimum=2)
        check_integer("passes", self.passes, "Sketched", minimum=1)
        check_seed(self.seed, "Sketched")

    def factorise(self, matrix: Array, *, ridge: float | Array = 0.0, overwrite: bool = False) -> Factorisation:
        """Factorise a matrix that is in memory; it is kept for the passes, with ``overwrite`` without a copy."""
        matrix, root, rows, columns = check_system(matrix, ridge, "Sketched")
        kept = overwrite and root is None
        require_workspace(rows, columns, (0 if kept else rows) * columns + 2.0 * self.height * columns**2, self.name)
        with computing():
            column_norms(matrix, "Sketched")
            factor = self.factorise_rows(RowBlocks.of(matrix if kept else column_major(matrix, root)))
        return replace(factor, shape=(rows, columns))

    def factorise_rows(self, rows: RowBlocks) -> Factorisation:
        """Factorise a matrix whose rows are made block by block."""
        with computing():
            height = min(self.height * rows.shape[1], rows.shape[0])
            sketch = _sketch(rows.blocks(), rows.shape[0], height, self.seed)
            inner = LeastSquares(seed=self.seed).factorise(sketch, overwrite=True)
        assert isinstance(inner, URV)
        return _Refined(
            name=self.name,
            shape=rows.shape,
            rank=inner.rank,
            condition=inner.condition,
            like=inner.like,
            rows=rows,
            inner=inner,
            solver=self,
        )


def _sketch(blocks: Iterable[tuple[slice, Array]], rows: int, height: int, seed: int) -> Array:
    """Return sums of the rows of each bucket, with random signs; neighbours are in different buckets.

    The blocks of rows, of a matrix or of right-hand sides, come from the first to the last.
    """
    rng, sketch = check_seed(seed, "Sketched"), None
    places, signs, used = np.empty(0, dtype=np.int64), np.empty(0), 0
    for own, block in blocks:
        if sketch is None:
            sketch = dense(block).workspace(height, int(block.shape[1]), block)
            sketch[:, :] = 0.0
        if height == rows:
            sketch[own, :] = block
            continue
        start = 0
        while start < block.shape[0]:
            if used == len(places):
                places, signs, used = rng.permutation(height), rng.choice([-1.0, 1.0], size=height), 0
            count = min(block.shape[0] - start, height - used)
            at = to_library(places[used : used + count].astype(np.float64), block)
            factors = to_library(signs[used : used + count, None], block)
            xp = array_namespace(block)
            sketch[xp.astype(at, xp.int64), :] += factors * block[start : start + count, :]
            start, used = start + count, used + count
    return sketch


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class _Refined(Factorisation):
    """The factorised sketch of a matrix, with its rows."""

    rows: RowBlocks
    inner: URV
    solver: Sketched

    def _weights_and_residual(self, rhs: Array) -> tuple[Array, Array]:
        xp, height, most = array_namespace(rhs), rhs.shape[0], self.solver.passes
        rhs = pad(rhs, self.rows.shape[0])
        blocks = ((own, rhs[own, :]) for own in slices(rhs.shape[0], self.rows.step))
        weights = self.inner.solve(_sketch(blocks, rhs.shape[0], self.inner.shape[0], self.solver.seed))
        # Below this a gradient is rounding: with the preconditioner columns have about unit norm.
        floor = EPS**2 * self.shape[1] * xp.sum(rhs * rhs, axis=0)
        residual, gradient = self.rows.both(weights, rhs)
        left, passes = self.inner.gathered(gradient), 1
        while self.rank and passes < most and bool(xp.any(xp.sum(left * left, axis=0) > floor)):
            before = xp.sum(left * left, axis=0)
            found, used = self._step(left, floor, most - passes)
            better = weights + self.inner.spread(found)
            residual, gradient = self.rows.both(better, rhs)
            left, passes = self.inner.gathered(gradient), passes + used + 1
            weights = better
            if not bool(xp.all(xp.sum(left * left, axis=0) < before / 4.0)):
                break
        return weights, residual[:height, :]

    def _step(self, left: Array, floor: Array, most: int) -> tuple[Array, int]:
        """Return the solution of the preconditioned normal equations by conjugate gradients, and its passes."""
        xp = array_namespace(left)
        direction, found, squares = left, xp.zeros_like(left), xp.sum(left * left, axis=0)
        least = xp.where(floor > 0, floor, xp.ones_like(floor))
        for passes in range(1, most + 1):
            image = self.inner.gathered(self.rows.both(self.inner.spread(direction), None)[1])
            curvature = xp.sum(direction * image, axis=0)
            going = (squares > floor) & (curvature > 0)
            length = xp.where(going, squares / xp.where(going, curvature, least), xp.zeros_like(squares))
            found, left = found + length * direction, left - length * image
            before, squares = squares, xp.sum(left * left, axis=0)
            if bool(xp.all((squares <= floor) | (squares >= before))):
                return found, passes
            direction = left + squares / xp.where(before > 0, before, least) * direction
        return found, most
