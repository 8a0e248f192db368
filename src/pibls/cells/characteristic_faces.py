"""Faces along characteristics, across which an equation leaves its highest normal derivative free.

A jump that an equation of first order carries along a characteristic is free. How much a wave jumps there is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pibls.cells.parts import Face
from pibls.refinement.standards import PLAIN

if TYPE_CHECKING:
    from pibls.cells.rows import Rows

__all__ = ["is_characteristic"]


def is_characteristic(rows: Rows, face: Face) -> bool:
    """Return whether a face on an interface is along a characteristic of a single equation of order one or two."""
    if len(rows.equations) != 1 or len(rows.orders) != 1 or face.normals is None:
        return False
    (equation,), normals = rows.equations, face.normals
    order, symbol, sizes = equation.form.order, np.zeros(len(normals)), np.zeros(len(normals))
    for _, index, value in rows.only_terms(equation, face.below, rows.traces.inward(face.below, face), None):
        if sum(index) == order:
            symbol += value * np.prod(normals ** np.array(index), axis=1)
            sizes += np.abs(value)
    return order <= 2 and not (np.abs(symbol) > PLAIN**2 * sizes).any()
