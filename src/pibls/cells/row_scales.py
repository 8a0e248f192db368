"""Scales of equations and fields on a cell, from the sizes of their terms.

Rows are scaled to units of the solution: the residual of an equation is divided by its largest term for a field of size
one that varies over the cell. In a system each field has its own unit, too: in Stokes flow a pressure on a cell of size
h is as large as a velocity times ν/h. Each equation is assigned to one field such that the product of the assigned
terms is largest; the units make every assigned term one and no other term larger.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from pibls.checks import BoolArray, FloatArray

__all__ = ["Scales", "scales_of"]


class Scales(NamedTuple):
    """A factor per equation, and a unit per field."""

    factors: FloatArray
    units: FloatArray


def scales_of(sizes: FloatArray, orders: FloatArray) -> Scales:
    """Return a factor per equation and a unit per field.

    Parameters
    ----------
    sizes
        Largest term of each field (column) in each equation (row), for a field of size one that varies over the cell.
    orders
        Highest order of derivative of each field; the unit of the field with the highest order is 1.

    Examples
    --------
    Stokes flow, ν = 1, on a cell with h = 0.1: the unit of pressure is 1/h, the factor of the mass balance is h.

    >>> sizes = np.array([[100.0, 0.0, 10.0], [0.0, 100.0, 10.0], [10.0, 10.0, 0.0]])
    >>> factors, units = scales_of(sizes, np.array([2, 2, 1]))
    >>> factors.round(6).tolist(), units.round(6).tolist()
    ([0.01, 0.01, 0.1], [1.0, 1.0, 10.0])
    """
    equations, fields = sizes.shape
    units = np.ones(fields)
    if fields > 1 and equations == fields:
        logs = np.log(np.maximum(sizes, sys.float_info.min))
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(-logs)
        matched = logs[rows, columns]
        if (sizes[rows, columns] > 0).all():
            units = np.exp(_potentials(logs, sizes > 0, columns, matched, orders))
    largest = (sizes * units).max(axis=1)
    largest[largest == 0.0] = 1.0
    return Scales(1.0 / largest, units)


def _potentials(
    logs: FloatArray, present: BoolArray, columns: FloatArray, matched: FloatArray, orders: FloatArray
) -> FloatArray:
    """Return the logarithms of the units: the largest ones for which no term exceeds the assigned one."""
    found = np.zeros(len(columns))
    for _ in range(len(columns)):
        bounds = np.where(present, found[columns][:, None] + matched[:, None] - logs, np.inf)
        found = np.minimum(found, bounds.min(axis=0))
    joined = np.eye(len(columns), dtype=bool)
    joined |= present.T.astype(int) @ present.astype(int) > 0
    for _ in range(len(columns)):
        joined = joined @ joined
    # Fields that no equation couples have separate units.
    first = [max(np.flatnonzero(row), key=lambda f: (orders[f], -f)) for row in joined]
    return np.asarray(found - found[first])
