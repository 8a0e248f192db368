"""Arrays of any library of the Python array API, checked on their way in.

``Array`` is a NumPy array or a torch tensor. No common static type exists for them, so it is an alias of ``Any``;
what a function really expects (shape, finite, float64) is checked at run time by :func:`float_array`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj

from pibls.checks import shorten
from pibls.errors import FeatureError

Array: TypeAlias = Any
MultiIndex: TypeAlias = tuple[int, ...]


def float_array(name: str, value: object, owner: str, shape: tuple[int | None, ...]) -> Array:
    """Return ``value`` as a finite float64 array of the given shape (``None``: any positive length), or refuse it.

    Arrays stay in their own library and on their own device; anything else becomes a NumPy array.

    >>> float_array("bias", [1, 2], "FeatureGroup", (None,))
    array([1., 2.])
    """
    wanted = "(" + ", ".join("any" if length is None else str(length) for length in shape) + ",)"[len(shape) > 1 :]
    rule = f"The '{name}' parameter of {owner} must be an array of finite real numbers of shape {wanted}."
    try:
        array: Array = value if is_array_api_obj(value) else np.asarray(value)
        xp = array_namespace(array)
        real = bool(xp.isdtype(array.dtype, ("integral", "real floating")))
    except (TypeError, ValueError):
        raise FeatureError(f"{rule} Got {shorten(value)} instead. Give a rectangular array.") from None
    if not real:
        raise FeatureError(f"{rule} Got entries of type {array.dtype} instead. Convert them to floats.")
    fits = len(array.shape) == len(shape) and all(
        length > 0 if wish is None else length == wish for length, wish in zip(array.shape, shape, strict=True)
    )
    if not fits:
        raise FeatureError(f"{rule} Got shape {tuple(array.shape)} instead. Reshape or transpose it.")
    array = xp.astype(array, xp.float64, copy=False)
    if not bool(xp.all(xp.isfinite(array))):
        raise FeatureError(f"{rule} Got infinite or NaN entries instead. Remove or replace them.")
    return array


def same_home(first: Array, second: Array) -> bool:
    """Whether two arrays belong to the same library and live on the same device.

    >>> same_home(np.zeros(2), np.ones(3))
    True
    """
    return array_namespace(first) is array_namespace(second) and device(first) == device(second)


def check_multi_index(value: object, dimension: int, owner: str) -> MultiIndex:
    """Return ``value`` as a tuple of ``dimension`` plain non-negative ints, or refuse it.

    >>> check_multi_index((2, 0), 2, "evaluate")
    (2, 0)
    """
    if type(value) is tuple and len(value) == dimension and set(map(type, value)) == {int} and min(value) >= 0:
        return value
    if not (
        isinstance(value, tuple)
        and len(value) == dimension
        and all(isinstance(a, int | np.integer) and not isinstance(a, bool) and a >= 0 for a in value)
    ):
        raise FeatureError(
            f"A multi-index of {owner} must be a tuple of {dimension} non-negative integers, one per coordinate. "
            f"Got {shorten(value)} instead. Write ∂²/∂x² in the plane as (2, 0)."
        )
    return tuple(int(a) for a in value)
