"""The interface of all solvers: factorise a matrix once, then solve for any number of right-hand sides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from pibls.errors import SolveError
from pibls.limits import require_time
from pibls.runtime import blas_threads, require_memory
from pibls.solvers.dense import Array, array_namespace
from pibls.solvers.inputs import check_rhs


@contextmanager
def computing() -> Iterator[None]:
    """Run a block on as many threads as there are cores, without NumPy warnings: results are checked by value."""
    with blas_threads(), np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        yield


@dataclass(frozen=True, eq=False, kw_only=True)
class Factorisation(ABC):
    """A factorised matrix H, ready for right-hand sides z."""

    name: str  # the solver that made it
    shape: tuple[int, int]  # rows and columns of H
    rank: int  # numerical rank that the solver used
    # estimate of the condition number of what was factorised, with columns scaled to unit norm where the solver scales
    # them. Past 1e16 it says only that H is singular to working precision
    condition: float
    like: Array  # an array of the library and device that the factors live on

    def solve(self, rhs: Array) -> Array:
        """Return the weights of shape (M,) for one right-hand side (N,), or (M, k) for k of them (N, k)."""
        return self.weights_and_residual(rhs)[0]

    def weights_and_residual(self, rhs: Array) -> tuple[Array, Array]:
        """Return the weights and the residual z − H w together, for little more than one of them."""
        weights, residual = self._run(rhs)
        if not bool(array_namespace(weights).all(array_namespace(weights).isfinite(weights))):
            raise SolveError(
                f"The weights from solver '{self.name}' overflowed: matrix and right-hand side differ too much in "
                "size. Rescale the rows, or add a ridge."
            )
        return weights, residual

    def residual(self, rhs: Array) -> Array:
        """Return z − H w for the least-squares weights w, of the shape of ``rhs``."""
        return self._run(rhs)[1]

    def _run(self, rhs: Array) -> tuple[Array, Array]:
        array = check_rhs(rhs, self.shape[0], self.like, f"{self.name}.solve")
        block = array[:, None] if array.ndim == 1 else array
        with computing():
            pair = self._weights_and_residual(block)
        return (pair[0][:, 0], pair[1][:, 0]) if array.ndim == 1 else pair

    @abstractmethod
    def _weights_and_residual(self, rhs: Array) -> tuple[Array, Array]:
        """Return weights (M, k) and residual (N, k) for a checked right-hand side (N, k)."""


@runtime_checkable
class Solver(Protocol):
    """A way to solve min ‖H w − z‖² + λ‖w‖²."""

    @property
    def name(self) -> str:
        """The name it is looked up by, and that its factorisations carry."""
        ...

    def factorise(self, matrix: Array, *, ridge: float | Array = 0.0, overwrite: bool = False) -> Factorisation:
        """Factorise H (N × M) with ridge λ ≥ 0, one number or one per column; ``overwrite`` lets H's memory be used."""
        ...


def require_workspace(rows: int, columns: int, doubles: float, name: str) -> None:
    """Refuse a factorisation whose workspace, in float64 numbers, would not fit into memory, or whose time is over."""
    require_time(2.0 * rows * columns * min(rows, columns))
    require_memory(
        8.0 * doubles,
        f"Solver '{name}' on a matrix of {rows} × {columns}",
        "Use fewer points or features, or pass overwrite=True with a Fortran-ordered float64 matrix.",
    )
