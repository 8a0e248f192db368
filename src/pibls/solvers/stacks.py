"""Stacks of matrices, in NumPy or on a device of torch: triangles, Cholesky factors, and the way between both."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.linalg.blas import dtrsm

from pibls.solvers.dense import Array, array_namespace, is_torch
from pibls.solvers.inputs import to_host

__all__ = ["cholesky", "conditions", "library", "placed", "transposed", "triangular", "zeros"]


def library(array: Array) -> Any:
    """Return the namespace of an array."""
    return np if isinstance(array, np.ndarray) else array_namespace(array)


def placed(array: Array, device: Any = None) -> Array:
    """Return an array on a device of torch, or in NumPy if there is none.

    >>> placed(np.ones(2)).tolist()
    [1.0, 1.0]
    """
    if device is None:
        return to_host(array)
    if is_torch(array):
        return array.to(device)
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Return zeros in the library and on the device of another array."""
    if isinstance(like, np.ndarray):
        return np.zeros(shape)
    return library(like).zeros(shape, dtype=like.dtype, device=like.device)


def transposed(stack: Array) -> Array:
    """Return the transposes of a stack of matrices."""
    return stack.transpose(0, 2, 1) if isinstance(stack, np.ndarray) else stack.mT


def triangular(triangles: Array, right: Array, *, trans: bool = False) -> Array:
    """Solve with upper triangles, or their transposes: one for each right-hand side, or one for all of them.

    >>> triangular(np.array([[[2.0, 1.0], [0.0, 4.0]]]), np.ones((2, 2, 1))).tolist()
    [[[0.375], [0.25]], [[0.375], [0.25]]]
    """
    count, size, sides = right.shape
    if 0 in right.shape:
        return right
    if not isinstance(right, np.ndarray):
        import torch

        # A broadcast triangle is one product for all right-hand sides if these stand beside each other.
        alone = len(triangles) == 1 and count > 1
        given = right.permute(1, 0, 2).reshape(1, size, count * sides) if alone else right
        found = torch.linalg.solve_triangular(triangles.mT if trans else triangles, given, upper=not trans)
        return found.reshape(size, count, sides).permute(1, 0, 2) if alone else found
    if len(triangles) == 1:
        together = np.ascontiguousarray(right.transpose(1, 0, 2)).reshape(size, count * sides)
        found = _solved(triangles[0], together.copy(), trans=trans)
        return np.asarray(found.reshape(size, count, sides).transpose(1, 0, 2))
    found = np.array(right, order="C")
    for number in range(count):
        _solved(triangles[number], found[number], trans=trans)
    return found


def _solved(triangle: Array, right: Array, *, trans: bool) -> Array:
    """Solve with an upper triangle in place; where a pivot is zero, nothing is solved.

    Seen from the right, rows are what columns are from the left: nothing has to be written in another order.
    """
    if triangle.diagonal().all():
        dtrsm(1.0, triangle, right.T, side=1, trans_a=not trans, overwrite_b=True)
    return right


def cholesky(grams: Array) -> tuple[Array, list[bool]]:
    """Return upper triangles of a stack of Gram matrices, and which of these are positive definite.

    >>> triangles, good = cholesky(np.array([[[4.0, 2.0], [2.0, 5.0]], [[0.0, 1.0], [1.0, 0.0]]]))
    >>> triangles[0].tolist(), good
    ([[2.0, 1.0], [0.0, 2.0]], [True, False])
    """
    count, size, _ = grams.shape
    if not isinstance(grams, np.ndarray):
        import torch

        triangles, info = torch.linalg.cholesky_ex(grams, upper=True)
        return triangles, (info == 0).tolist()
    if not size:
        return np.zeros((count, 0, 0)), [True] * count
    try:
        # The transposes of lower triangles stand in the order in which LAPACK wants upper ones.
        return transposed(np.linalg.cholesky(grams)), [True] * count
    except np.linalg.LinAlgError:
        if count == 1:
            return np.zeros((1, size, size)), [False]
    pairs = [cholesky(grams[number : number + 1]) for number in range(count)]
    triangles = transposed(np.concatenate([transposed(own) for own, _ in pairs]))
    return triangles, [good for _, (good,) in pairs]


def conditions(triangles: Array) -> Array:
    """Return the reciprocal condition numbers of a stack of upper triangles, approximately.

    >>> conditions(np.array([[[1.0, 0.0], [0.0, 4.0]]])).tolist()
    [0.25]
    """
    if not isinstance(triangles, np.ndarray):
        import torch

        eye = torch.eye(triangles.shape[1], dtype=triangles.dtype, device=triangles.device)
        inverse = torch.linalg.solve_triangular(triangles, eye.expand_as(triangles), upper=True)
        norms = [own.abs().sum(1).amax(1) for own in (triangles, inverse)]
        return to_host(torch.nan_to_num(1.0 / (norms[0] * norms[1])))
    return np.array([lapack.dtrcon(triangle)[0] for triangle in triangles])
