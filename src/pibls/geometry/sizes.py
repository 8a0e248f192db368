"""Checks of the sizes and places of solids."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pibls.errors import GeometryError
from pibls.geometry.base import describe

__all__ = ["check_sizes", "written"]

Vector = tuple[float, ...]

_SMALLEST = 1e-12
_MOST_DIGITS = 90


def check_sizes(owner: str, sizes: Mapping[str, float], place: Vector) -> None:
    """Refuse lengths that double precision cannot hold beside each other and the coordinates."""
    largest = max(*sizes.values(), *map(abs, place))
    for name, size in sizes.items():
        if size <= _SMALLEST * largest or abs(math.log10(size)) > _MOST_DIGITS:
            raise GeometryError(
                f"The '{name}' parameter of {owner} must give a solid that double precision can hold. Got {size!r} "
                f"at {place} instead. Shift or scale the coordinates."
            )


def written(point: Vector) -> str:
    """Return a point as a person would write it.

    >>> written((0.0, 0.5))
    '(0, 0.5)'
    """
    return f"({', '.join(map(describe, point))})"
