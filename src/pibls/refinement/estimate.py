"""The error of an approximation, from its distance to a better one."""

from __future__ import annotations

__all__ = ["extrapolated"]


def extrapolated(apart: float, *falls: float) -> float:
    """Return the error of an approximation that is some way apart from a better one.

    The better one has an error, too: the smallest of the given ratios of it to that of the first one. If every further
    refinement leaves the same share, the distances make a geometric series.

    >>> extrapolated(0.5, 0.5), extrapolated(0.5, 0.9, 0.0)
    (1.0, 0.5)
    """
    return apart / (1.0 - min(falls))
