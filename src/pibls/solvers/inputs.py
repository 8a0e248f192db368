"""Checks and column norms that every solver needs before it may trust a matrix, a right-hand side or a ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from pibls.checks import shorten
from pibls.errors import InputError, SolveError
from pibls.solvers.dense import Array, array_namespace, is_torch

# Columns are looked at in blocks of this many entries, so that no check needs a second copy of the matrix.
_BLOCK = 2**20
# A column below this norm counts as zero: dividing by it would overflow.
_SMALLEST_NORM = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)


def check_matrix(matrix: object, owner: str, *, name: str = "matrix") -> Array:
    """Return a matrix as a float64 array of its own library, or refuse it; finiteness is left to the norms."""
    array = _as_float64(name, matrix, owner)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            f"The '{name}' parameter of {owner} must be a matrix with at least one row and one column. "
            f"Got an array of shape {tuple(array.shape)} instead. Check that points and features were given."
        )
    return array


def check_system(matrix: object, ridge: object, owner: str) -> tuple[Array, Array | None, int, int]:
    """Return a checked matrix, √λ for every column or None, and the numbers of rows and columns."""
    array = check_matrix(matrix, owner)
    return array, check_ridge(ridge, array, owner), *(int(number) for number in array.shape)


def check_rhs(rhs: object, rows: int, like: Array, owner: str, *, name: str = "rhs") -> Array:
    """Return a right-hand side of shape (rows,) or (rows, k) in the library of ``like``, or refuse it."""
    array = _as_float64(name, rhs, owner)
    if array.ndim not in (1, 2) or array.shape[0] != rows:
        raise InputError(
            f"The '{name}' parameter of {owner} must have shape ({rows},) or ({rows}, k), one row per row of the "
            f"matrix. Got shape {tuple(array.shape)} instead."
        )
    if is_torch(like) != is_torch(array):
        array = to_library(array, like)
    _require_finite(name, array[:, None] if array.ndim == 1 else array, owner)
    return array


def check_ridge(ridge: object, matrix: Array, owner: str) -> Array | None:
    """Return √λ for every column, or None where the ridge is zero throughout."""
    columns = int(matrix.shape[1])
    values = np.asarray(to_host(ridge))
    if values.dtype.kind not in "iuf" or values.shape not in ((), (columns,)):
        raise InputError(
            f"The 'ridge' parameter of {owner} must be one number, or one for each of the {columns} columns. "
            f"Got {shorten(ridge)} instead."
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise InputError(
            f"The 'ridge' parameter of {owner} must be finite and not negative. Got {shorten(ridge)} instead. "
            "A ridge of 0 adds nothing."
        )
    if not values.any():
        return None
    return to_library(np.sqrt(np.broadcast_to(values, (columns,)).astype(np.float64)), matrix)


def column_norms(matrix: Array, owner: str, *, name: str = "matrix") -> Array:
    """Return the Euclidean norm of every column without overflow; a non-finite entry is refused by its place."""
    xp = array_namespace(matrix)
    rows, columns = matrix.shape
    step = max(1, _BLOCK // rows)
    norms = []
    for start in range(0, columns, step):
        block = matrix[:, start : start + step]
        peak = xp.maximum(xp.max(block, axis=0), -xp.min(block, axis=0))
        if not bool(xp.all(xp.isfinite(peak))):
            _require_finite(name, matrix, owner)
        peak = xp.where(peak < _SMALLEST_NORM, xp.ones_like(peak), peak)
        relative = block / peak
        norms.append(peak * xp.sqrt(xp.sum(relative * relative, axis=0)))
    result = xp.concat(norms)
    if not bool(xp.all(xp.isfinite(result))):
        raise SolveError(f"The '{name}' of {owner} has columns whose norm overflows. Rescale its rows.")
    return xp.where(result < _SMALLEST_NORM, xp.zeros_like(result), result)


def to_host(value: Any) -> Any:
    """Bring a torch tensor to NumPy; leave everything else alone."""
    if isinstance(value, np.ndarray) or not is_torch(value):
        return value
    return value.detach().cpu().numpy()


def to_library(array: Any, like: Array) -> Array:
    """Bring an array to the library and device of another."""
    if not is_torch(like):
        return to_host(array)
    import torch

    return torch.as_tensor(np.ascontiguousarray(array), dtype=torch.float64, device=like.device)


def _as_float64(name: str, value: object, owner: str) -> Array:
    if is_torch(value):
        return _torch_float64(name, value, owner)
    try:
        array = np.asarray(value)
    except Exception:
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise _not_real(name, value, owner)
    # Long doubles past the range become inf here, and are then refused by their place like any other.
    with np.errstate(over="ignore"):
        return array.astype(np.float64, copy=False)


def _torch_float64(name: str, value: Any, owner: str) -> Array:
    import torch

    if value.is_complex() or value.dtype == torch.bool or value.layout != torch.strided:
        raise _not_real(name, value, owner)
    return value.detach().to(torch.float64)


def _not_real(name: str, value: object, owner: str) -> InputError:
    return InputError(
        f"The '{name}' parameter of {owner} must be a dense array of real numbers. Got {shorten(value)} instead. "
        "Give a NumPy array or a torch tensor."
    )


def _require_finite(name: str, matrix: Array, owner: str) -> None:
    xp = array_namespace(matrix)
    bad = ~xp.isfinite(matrix)
    count = int(xp.sum(xp.astype(bad, xp.int64)))
    if count:
        row, column = divmod(int(xp.argmax(xp.astype(xp.reshape(bad, (-1,)), xp.int64))), int(matrix.shape[1]))
        raise SolveError(
            f"The '{name}' of {owner} has {count} entries that are not finite, the first at row {row}, column "
            f"{column} ({float(matrix[row, column])}). Check the equation's coefficients and source at that point, "
            "and the feature scale."
        )
