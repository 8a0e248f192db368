"""How large fields and equations are beside each other on a cell of a given size.

Rows count in units of the solution: what is missing in an equation is multiplied by what the equation would make of it
within the cell. For several fields this takes their own units too: in Stokes flow a pressure on a cell of size h is as
large as a velocity times ν/h. Both follow from the sizes of the terms alone: equations are assigned to fields so that
the product of their terms is largest, and scales are chosen such that those terms become one and no other is larger.
"""

from __future__ import annotations

import numpy as np

from pibls.checks import FloatArray

__all__ = ["balanced"]

_ABSENT = -1e3


def balanced(sizes: FloatArray, orders: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a factor per equation and a unit per field, from the largest term of each field in each equation.

    Parameters
    ----------
    sizes
        Largest term of each field (column) in each equation (row), where a field is one and varies over the cell.
    orders
        Highest order of derivative per field; the unit of the field with the highest one is 1.

    Examples
    --------
    Stokes flow, ν = 1, on a cell with h = 0.1: pressures count in units of 1/h, the equation of mass h times.

    >>> sizes = np.array([[100.0, 0.0, 10.0], [0.0, 100.0, 10.0], [10.0, 10.0, 0.0]])
    >>> rows, units = balanced(sizes, np.array([2, 2, 1]))
    >>> rows.round(6).tolist(), units.round(6).tolist()
    ([0.01, 0.01, 0.1], [1.0, 1.0, 10.0])
    """
    equations, fields = sizes.shape
    units = np.ones(fields)
    if fields > 1 and equations == fields:
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(sizes), _ABSENT)
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(-logs)
        matched = logs[rows, columns]
        if (matched > _ABSENT).all():
            units = np.exp(_potentials(logs, columns, matched, orders))
    largest = (sizes * units).max(axis=1)
    return 1.0 / np.where(largest > 0, largest, 1.0), units


def _potentials(logs: FloatArray, columns: FloatArray, matched: FloatArray, orders: FloatArray) -> FloatArray:
    """Return the logarithms of the units: the largest for which no term exceeds the one its equation is assigned."""
    found = np.zeros(len(columns))
    for _ in range(len(columns)):
        bounds = np.where(logs > _ABSENT, found[columns][:, None] + matched[:, None] - logs, np.inf)
        found = np.minimum(found, bounds.min(axis=0))
    joined = np.eye(len(columns), dtype=bool)
    present = logs > _ABSENT
    joined |= present.T.astype(int) @ present.astype(int) > 0
    for _ in range(len(columns)):
        joined = joined @ joined
    # Fields that no equation connects keep units of their own.
    first = [max(np.flatnonzero(row), key=lambda f: (orders[f], -f)) for row in joined]
    return np.asarray(found - found[first])
