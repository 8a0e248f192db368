"""What the settings of all methods have in common: penalties, and how settings are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from pibls.checks import check_number
from pibls.features import Activation
from pibls.system import Balanced, Penalties, RowScaling

__all__ = ["Scale", "check_penalties", "recorded", "row_scaling"]

Scale = float | Sequence[float]

# Rows under a larger penalty would push the equation below round-off.
_LARGEST_PENALTY = 1e24


def check_penalties(lambda_b: float | None, lambda_i: float | None, owner: str) -> None:
    """Refuse penalties that are not positive numbers.

    >>> check_penalties(0.01, None, "PIELM")
    """
    for name, value in (("lambda_b", lambda_b), ("lambda_i", lambda_i)):
        if value is not None:
            check_number(name, value, owner, minimum=0, exclusive=True, maximum=_LARGEST_PENALTY)


def row_scaling(lambda_b: float | None, lambda_i: float | None) -> RowScaling:
    """Return the scaling that penalties ask for: balanced if none is given, else as in the paper.

    >>> row_scaling(0.01, None)
    Penalties(boundary=0.01, initial=1.0)
    """
    if lambda_b is None and lambda_i is None:
        return Balanced()
    return Penalties(_or_one(lambda_b), _or_one(lambda_i))


def _or_one(value: float | None) -> float:
    return 1.0 if value is None else float(value)


def recorded(method: Any) -> dict[str, Any]:
    """Return the settings of a method as what a file can hold."""
    return {f.name: _plain(getattr(method, f.name)) for f in fields(method)}


def _plain(value: Any) -> Any:
    if isinstance(value, Activation):
        return value.name
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else str(value)
