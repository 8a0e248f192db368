"""Faces along characteristics, across which an equation leaves its highest normal derivative free.

A jump that an equation of first order carries along a characteristic is free. One that a wave equation carries there
obeys an equation along the characteristic, so that what is differentiated in it is continuous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pibls.cells.evaluation import Term
from pibls.cells.parts import Face
from pibls.refinement.standards import PLAIN

if TYPE_CHECKING:
    from pibls.cells.rows import Rows

__all__ = ["carried_terms"]


def carried_terms(rows: Rows, face: Face) -> list[Term] | None:
    """Return the derivative along a characteristic that is continuous across a face, or None if it is on none.

    It is empty for an equation of first order. For Σ aᵢⱼ ∂ᵢⱼu + Σ bᵢ ∂ᵢu + c u = f it is 2 (a n)·∇u + (b·n) u, divided
    by 2 |a n|.
    """
    if len(rows.equations) != 1 or len(rows.orders) != 1 or face.normals is None:
        return None
    (equation,), normals, count = rows.equations, face.normals, len(face.points)
    order, symbol, sizes = equation.form.order, np.zeros(count), np.zeros(count)
    along, lower = np.zeros_like(normals), np.zeros(count)
    for _, index, value in rows.only_terms(equation, face.below, rows.traces.inward(face.below, face), None):
        if sum(index) == order:
            symbol += value * np.prod(normals ** np.array(index), axis=1)
            sizes += np.abs(value)
        axes = [axis for axis, times in enumerate(index) for _ in range(times)]
        if len(axes) == 2 == order:
            for one, two in (axes, axes[::-1]):
                along[:, one] += 0.5 * value * normals[:, two]
        elif len(axes) == 1 and order == 2:
            lower += value * normals[:, axes[0]]
    if order > 2 or (np.abs(symbol) > PLAIN**2 * sizes).any():
        return None
    if order == 1:
        return []
    size, zero = np.linalg.norm(along, axis=1), (0,) * normals.shape[1]
    slopes = [(0, rows.along(axis, 1), along[:, axis] / size) for axis in range(normals.shape[1])]
    return [*slopes, (0, zero, lower / (2 * size))]
