"""Orthogonal transformations of a row space that is still growing, kept as the steps they were made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from pibls.solvers.dense import Array, Householder, array_namespace, column_major
from pibls.solvers.lstsq import count_above, tail_norms

__all__ = ["Reduced", "Rotations", "fold_rows"]

# Panels of a triangle that new rows are folded into: as wide as the rows are many, within these limits.
_PANELS = (32, 256)


@final
@dataclass(frozen=True)
class _Insertion:
    """The next ``count`` rows that were given take their place at ``at``."""

    at: int
    count: int


@final
@dataclass(frozen=True, eq=False)
class _Reflection:
    """Householder reflections of the rows ``head`` and ``tail``, taken together."""

    orthogonal: Householder
    head: slice
    tail: slice

    def apply(self, block: Array, *, transpose: bool) -> Array:
        """Return the block reflected; its memory may be used."""
        width = self.head.stop - self.head.start
        if self.tail == slice(0, block.shape[0]):
            return self.orthogonal.apply(block, transpose=transpose, overwrite=True)
        if not width:
            block[self.tail, :] = self.orthogonal.apply(block[self.tail, :], transpose=transpose)
            return block
        both = array_namespace(block).concat([block[self.head, :], block[self.tail, :]], axis=0)
        both = self.orthogonal.apply(both, transpose=transpose)
        block[self.head, :], block[self.tail, :] = both[:width, :], both[width:, :]
        return block


@final
@dataclass(frozen=True, eq=False)
class Rotations:
    """An orthogonal matrix Q on rows that come in batches, as the sequence of steps that built it.

    Later batches are inserted between the directions kept so far, which stay in front, and the rest.

    >>> import numpy as np
    >>> steps = Rotations(2).with_rows(1, at=1)
    >>> steps.forward(np.array([[1.0], [2.0], [3.0]])).ravel().tolist()
    [1.0, 3.0, 2.0]
    >>> steps.backward(np.array([[1.0], [3.0], [2.0]])).ravel().tolist()
    [1.0, 2.0, 3.0]
    """

    first: int
    steps: tuple[_Insertion | _Reflection, ...] = ()

    @property
    def rows(self) -> int:
        """Rows given so far."""
        return self.first + sum(step.count for step in self.steps if isinstance(step, _Insertion))

    @property
    def is_single(self) -> bool:
        """Whether all of it comes from one factorisation."""
        return sum(isinstance(step, _Reflection) for step in self.steps) <= 1

    def with_rows(self, count: int, *, at: int) -> Rotations:
        """Return the rotations with ``count`` more rows, inserted at a place."""
        return Rotations(self.first, (*self.steps, _Insertion(at, count)))

    def then(self, orthogonal: Householder, tail: slice, head: slice = slice(0, 0)) -> Rotations:
        """Return the rotations followed by the transpose of another one, on the rows of ``head`` and ``tail``."""
        return Rotations(self.first, (*self.steps, _Reflection(orthogonal, head, tail)))

    def forward(self, block: Array) -> Array:
        """Return Qᵀ·block for rows in the order they were given; the memory of ``block`` may be used."""
        current, given = block[: self.first, :], self.first
        for step in self.steps:
            if isinstance(step, _Reflection):
                current = step.apply(current, transpose=True)
                continue
            new = block[given : given + step.count, :]
            current = array_namespace(block).concat([current[: step.at, :], new, current[step.at :, :]], axis=0)
            given += step.count
        return current

    def backward(self, block: Array) -> Array:
        """Return Q·block, rows in the order they were given; the memory of ``block`` may be used."""
        batches = []
        for step in reversed(self.steps):
            if isinstance(step, _Reflection):
                block = step.apply(block, transpose=False)
                continue
            stop = step.at + step.count
            batches.append(block[step.at : stop, :])
            block = array_namespace(block).concat([block[: step.at, :], block[stop:, :]], axis=0)
        return array_namespace(block).concat([block, *reversed(batches)], axis=0) if batches else block


@final
@dataclass(frozen=True, eq=False)
class Reduced:
    """The directions a block of columns spans beyond a floor, and its coordinates in them (upper trapezoidal)."""

    orthogonal: Householder
    trapezoid: Array

    @classmethod
    def of(cls, block: Array, floor: float) -> Reduced | None:
        """Factorise a block and drop trailing directions of a combined norm up to ``floor``; None where all are.

        The memory of the block may be used.
        """
        xp = array_namespace(block)
        # Along columns one product of vectors does it; the norm of a matrix makes two more copies on the way.
        if 0 in block.shape or not float(xp.linalg.vector_norm(xp.reshape(block.T, (-1,)))) > floor:
            return None
        full = Householder.of(block)
        kept = count_above(tail_norms(full.triangle), floor)
        if not kept:
            return None
        trapezoid = xp.asarray(full.triangle[:kept, :], copy=True)
        vectors = full.vectors if kept == full.vectors.shape[1] else column_major(full.vectors[:, :kept])
        # LAPACK's factors are a triangle per panel, torch's one number per reflection.
        factors = full.factors[:kept, :kept] if full.factors.ndim == 2 else full.factors[:kept]
        return cls(Householder(vectors, factors, trapezoid), trapezoid)


def fold_rows(table: Array, new: Array) -> Iterator[tuple[slice, Householder]]:
    """Eliminate the leading columns of new rows by a table whose leading columns are triangular; both are overwritten.

    Yields the reflections with the rows of the table that they join to all new rows.
    """
    xp, count = array_namespace(table), table.shape[0]
    width = min(max(new.shape[0], _PANELS[0]), _PANELS[1])
    for start in range(0, count, width):
        stop = min(start + width, count)
        rows, panel = slice(start, stop), slice(start, stop)
        both = xp.concat([table[rows, panel], new[:, panel]], axis=0)
        orthogonal = Householder.of(column_major(both))
        table[rows, panel], new[:, panel] = orthogonal.triangle, 0.0
        both = xp.concat([table[rows, stop:], new[:, stop:]], axis=0)
        if stop < table.shape[1]:
            both = orthogonal.apply(both, transpose=True)
            table[rows, stop:], new[:, stop:] = both[: stop - start, :], both[stop - start :, :]
        yield rows, orthogonal
