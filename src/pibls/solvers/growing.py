"""A factorisation that grows with its matrix: more columns (nodes), more rows (points), never from scratch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

from pibls.checks import check_integer, check_number
from pibls.errors import InputError
from pibls.solvers.base import Factorisation, computing, require_workspace
from pibls.solvers.compressed import Core
from pibls.solvers.dense import EPS, Array, array_namespace, column_major, dense, is_torch, pad
from pibls.solvers.inputs import check_matrix, column_norms, to_library
from pibls.solvers.mixing import Mixing, hartley
from pibls.solvers.rotations import Reduced, Rotations, fold_rows

__all__ = ["Growing"]

_CUTOFF = 6 * EPS
# How much of the cut-off a block may lose before the rank is decided. A first block is cut as LeastSquares cuts it;
# what rounding leaves of later ones, 3 to 4 eps and spread over all their columns, is not worth keeping.
_FIRST_SHARE, _LATER_SHARE = 0.5, 1.0
# Columns whose norms have grown this much more than others by new rows are scaled again: the cut-off compares them.
_UNEVEN = 64.0


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Growing:
    """Least squares with a matrix that grows in both directions; made by :meth:`start`.

    Every block of columns is scaled to unit norms and mixed by its own random orthogonal transform. All orthogonal
    steps so far turn it into coordinates along the directions already kept, and a remainder whose QR factorisation
    shows the new directions; those at the level of rounding are dropped, so that columns that bring nothing new cost
    no memory. New rows are folded into the triangle. At full rank, growing to N × M with a solve at every size on
    the way costs about one QR factorisation of that size; where directions were dropped, each size decides the rank
    once more, on the small triangle.

    The weights are those of minimal norm, measured after column scaling, as from :class:`LeastSquares`. Objects are
    not changed by growing; they share what they have in common.

    Attributes
    ----------
    cutoff
        Directions whose combined norm is below ``cutoff`` times that of the scaled matrix are dropped.
    seed
        Seed of the mixing.

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 100)
    >>> H = np.vander(x, 6, increasing=True)
    >>> small = Growing.start(H[:60, :4])
    >>> grown = small.with_columns(H[:60, 4:]).with_rows(H[60:])
    >>> grown.shape, grown.rank, np.abs(grown.solve(1 + x**5)).round(10).tolist()
    ((100, 6), 6, [1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    >>> grown.with_columns(H[:, :3]).rejected
    3
    """

    cutoff: float
    seed: int
    _rotations: Rotations = field(repr=False)
    _mixings: tuple[Mixing, ...] = field(repr=False)
    # Coordinates of the mixed columns along the kept directions: the leading columns are an upper triangle.
    _table: Array = field(repr=False)
    # Which mixed column each column of the table is.
    _order: Array = field(repr=False)
    # Norms of the columns, now and when they were mixed.
    _norms: Array = field(repr=False)
    _scales: Array = field(repr=False)

    @classmethod
    def start(cls, matrix: Array, *, cutoff: float | None = None, seed: int = 0, overwrite: bool = False) -> Growing:
        """Factorise a first matrix (N × m).

        Parameters
        ----------
        matrix
            The rows and columns to begin with.
        cutoff
            Relative cut-off for directions; by default 6 machine epsilons, as for :class:`LeastSquares`.
        seed
            Seed of the mixing.
        overwrite
            Whether the memory of a Fortran-ordered float64 matrix may be used.
        """
        matrix = check_matrix(matrix, "Growing.start")
        limit = _CUTOFF if cutoff is None else check_number("cutoff", cutoff, "Growing", minimum=0.0, maximum=1.0)
        xp, rows = array_namespace(matrix), int(matrix.shape[0])
        nothing = xp.zeros((0,), dtype=xp.float64, device=matrix.device)
        empty = cls(
            cutoff=limit,
            seed=check_integer("seed", seed, "Growing"),
            _rotations=Rotations(rows),
            _mixings=(),
            _table=xp.zeros((0, 0), dtype=xp.float64, device=matrix.device),
            _order=xp.zeros((0,), dtype=xp.int64, device=matrix.device),
            _norms=nothing,
            _scales=nothing,
        )
        return empty._with_columns(matrix, "Growing.start", "matrix", overwrite)

    @property
    def name(self) -> str:
        """The name its factorisations carry."""
        return "growing"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns given so far."""
        return self._rotations.rows, int(self._order.shape[0])

    @property
    def rank(self) -> int:
        """Numerical rank of the matrix so far."""
        return self.factorisation.rank

    @property
    def rejected(self) -> int:
        """How many directions of the columns brought nothing new."""
        return self.shape[1] - self.rank

    @property
    def condition(self) -> float:
        """Estimate of the condition number after column scaling; infinite where the rank is not full."""
        return self.factorisation.condition

    def with_columns(self, new: Array, *, overwrite: bool = False) -> Growing:
        """Return the factorisation with more columns (N × k), rows in the order they were given.

        With ``overwrite`` the memory of a Fortran-ordered float64 ``new`` may be used.
        """
        return self._with_columns(self._check(new, "with_columns", 0), "Growing.with_columns", "new", overwrite)

    def with_rows(self, new: Array) -> Growing:
        """Return the factorisation with more rows (n × M) of all the columns given so far, rejected ones too."""
        block = self._check(new, "with_rows", 1)
        xp, count, rank = array_namespace(block), int(block.shape[0]), int(self._table.shape[0])
        require_workspace(count, self.shape[1], 3.0 * (rank + count) * self.shape[1], self.name)
        with computing():
            norms = xp.hypot(self._norms, column_norms(block, "Growing.with_rows", name="new"))
            rotations = self._rotations.with_rows(count, at=rank)
            if _unevenly_grown(self._scales, norms):
                return self._scaled_again(xp.concat([self._unmixed(), block], axis=0), rotations, norms)
            return self._folded(self._mixed(block), rotations, norms)

    def solve(self, rhs: Array) -> Array:
        """Return the weights (M,) for a right-hand side (N,), or (M, k) for (N, k), rows in the order given."""
        return self.factorisation.solve(rhs)

    def residual(self, rhs: Array) -> Array:
        """Return z − H w for the least-squares weights w, up to the directions that were dropped."""
        return self.factorisation.residual(rhs)

    @cached_property
    def factorisation(self) -> Factorisation:
        """The matrix so far in the form that is solved: the second and final decision on its rank is made here."""
        with computing():
            # The rows of one factorisation of mixed columns are as good as mixed.
            core = Core.of(self._table, self.cutoff, None if self._rotations.is_single else self.seed)
        return _Grown(
            name=self.name,
            shape=self.shape,
            rank=core.rank,
            condition=core.condition if core.rank == min(self.shape) else float("inf"),
            details={"cutoff": self.cutoff, "directions": float(self._table.shape[0])},
            state=self,
            core=core,
        )

    def _check(self, new: object, method: str, axis: int) -> Array:
        owner, what = f"Growing.{method}", ("rows", "columns")[axis]
        block = check_matrix(new, owner, name="new")
        if block.shape[axis] != self.shape[axis]:
            raise InputError(
                f"The 'new' parameter of {owner} must have {self.shape[axis]} {what}, as many as were given so far. "
                f"Got shape {tuple(block.shape)} instead."
            )
        return block if is_torch(block) == is_torch(self._table) else to_library(block, self._table)

    def _with_columns(self, block: Array, owner: str, name: str, overwrite: bool) -> Growing:
        rows, columns = (int(n) for n in block.shape)
        rank = int(self._table.shape[0])
        in_place = overwrite and dense(block).in_place(block)
        table = (rank + columns) * (self.shape[1] + columns)
        require_workspace(rows, columns, table + (1.0 if in_place else 2.0) * rows * columns, self.name)
        with computing():
            norms = column_norms(block, owner, name=name)
            mixing = Mixing.of(norms, self.seed + len(self._mixings))
            work = block if in_place else dense(block).workspace(rows, columns, block)
            for rows_of, mixed in mixing.blocks(block, None):
                work[rows_of, :] = mixed
            return self._extended(mixing, norms, self._rotations.forward(work), slice(rank, rows))

    def _extended(self, mixing: Mixing, norms: Array, rotated: Array, below: slice) -> Growing:
        """Append mixed columns in rotated coordinates; the rows ``below`` the kept directions may hold new ones."""
        xp, old = array_namespace(rotated), self._table
        (rank, known), columns = old.shape, rotated.shape[1]
        top, rotations, kept = xp.asarray(rotated[:rank, :], copy=True), self._rotations, 0
        # The columns have unit norm, or are zero, and mixing leaves their combined norm.
        share = _LATER_SHARE if self._mixings else _FIRST_SHARE
        floor = share * self.cutoff * math.sqrt(float(xp.sum(xp.astype(norms > 0, xp.float64))))
        reduced = Reduced.of(rotated[below, :], floor)
        if reduced is not None:
            rotations, kept = rotations.then(reduced.orthogonal, below), int(reduced.trapezoid.shape[0])
        table = dense(old).workspace(rank + kept, known + columns, old)
        table[rank:, :] = 0.0
        middle, end = slice(rank, rank + kept), slice(known + kept, known + columns)
        table[:rank, :rank], table[:rank, rank + kept : known + kept] = old[:, :rank], old[:, rank:]
        table[:rank, middle], table[:rank, end] = top[:, :kept], top[:, kept:]
        if reduced is not None:
            table[rank:, middle], table[rank:, end] = reduced.trapezoid[:, :kept], reduced.trapezoid[:, kept:]
        added = known + xp.arange(columns, dtype=xp.int64, device=rotated.device)
        return replace(
            self,
            _rotations=rotations,
            _mixings=(*self._mixings, mixing),
            _table=table,
            _order=xp.concat([self._order[:rank], added[:kept], self._order[rank:], added[kept:]]),
            _norms=xp.concat([self._norms, norms]),
            _scales=xp.concat([self._scales, norms]),
        )

    def _folded(self, new: Array, rotations: Rotations, norms: Array) -> Growing:
        """Append mixed rows: fold them into the triangle, then keep what they add in the columns beyond it."""
        xp, rank = array_namespace(new), int(self._table.shape[0])
        below = slice(rank, rank + new.shape[0])
        table = column_major(self._table)
        size = math.hypot(float(xp.linalg.matrix_norm(table)), float(xp.linalg.matrix_norm(new)))
        for rows, orthogonal in fold_rows(table, new):
            rotations = rotations.then(orthogonal, below, rows)
        reduced = Reduced.of(new[:, rank:], _LATER_SHARE * self.cutoff * size)
        if reduced is not None:
            rotations = rotations.then(reduced.orthogonal, below)
            table = column_major(pad(table, rank + reduced.trapezoid.shape[0]))
            table[rank:, rank:] = reduced.trapezoid
        return replace(self, _rotations=rotations, _table=table, _norms=norms)

    def _scaled_again(self, stacked: Array, rotations: Rotations, norms: Array) -> Growing:
        """Begin again with the kept directions and new rows as the matrix, all columns scaled to their norms now."""
        none = self._norms[:0]
        empty = replace(
            self,
            _rotations=rotations,
            _mixings=(),
            _table=self._table[:0, :0],
            _order=self._order[:0],
            _norms=none,
            _scales=none,
        )
        mixing = Mixing.of(norms, self.seed)
        mixed = array_namespace(stacked).concat([block for _, block in mixing.blocks(stacked, None)], axis=0)
        return empty._extended(mixing, norms, mixed, slice(0, int(stacked.shape[0])))

    def _by_block(self) -> Iterator[tuple[Mixing, slice]]:
        start = 0
        for mixing in self._mixings:
            stop = start + int(mixing.factors.shape[0])
            yield mixing, slice(start, stop)
            start = stop

    def _mixed(self, rows: Array) -> Array:
        """Return rows of the matrix in the mixed columns of the table."""
        places = array_namespace(rows).argsort(self._order)
        mixed = dense(rows).workspace(rows.shape[0], rows.shape[1], rows)
        for mixing, at in self._by_block():
            for rows_of, block in mixing.blocks(rows[:, at], None):
                mixed[rows_of, places[at]] = block
        return mixed

    def _unmixed(self) -> Array:
        """Return the kept directions as rows of the matrix."""
        mixed = array_namespace(self._table).empty_like(self._table)
        mixed[:, self._order] = self._table
        for mixing, at in self._by_block():
            mixed[:, at] = _undo(mixing, mixed[:, at])
        return mixed

    def _weights(self, coefficients: Array) -> Array:
        """Return the weights of the columns for coefficients of the mixed columns of the table."""
        xp = array_namespace(coefficients)
        mixed = xp.empty_like(coefficients)
        mixed[self._order, :] = coefficients
        return xp.concat([mixing.back(mixed[at, :]) for mixing, at in self._by_block()], axis=0)


def _unevenly_grown(scales: Array, norms: Array) -> bool:
    """Return whether new rows made some columns, of those not zero, outgrow others by far."""
    xp = array_namespace(norms)
    present = norms > 0
    growth = xp.where(present, norms, xp.ones_like(norms)) / xp.where(present, scales, xp.ones_like(norms))
    return not float(xp.max(growth)) <= _UNEVEN * float(xp.min(growth))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class _Grown(Factorisation):
    """The factors of a growing matrix, with the rank decided."""

    state: Growing
    core: Core

    @property
    def _like(self) -> Array:
        return self.state._table

    def _weights_and_residual(self, rhs: Array) -> tuple[Array, Array]:
        table, rotations = self.state._table, self.state._rotations
        projected = rotations.forward(pad(rhs, self.shape[0]))
        coefficients = self.core.solve(projected[: table.shape[0], :])
        projected[: table.shape[0], :] -= table @ coefficients
        return self.state._weights(coefficients), rotations.backward(projected)


def _undo(mixing: Mixing, mixed: Array) -> Array:
    """Return the columns that a mixing turned into ``mixed``; those it left out as zero stay zero."""
    xp, factors = array_namespace(mixed), mixing.factors
    present = factors != 0
    divisor = xp.where(present, factors, xp.ones_like(factors)) * float(mixed.shape[1])
    return xp.where(present, hartley(mixed) / divisor, xp.zeros_like(mixed))
