"""Faces along characteristics, across which an equation leaves its highest normal derivative free."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pibls.cells.parts import Face
from pibls.refinement.standards import PLAIN

if TYPE_CHECKING:
    from pibls.cells.rows import Rows

__all__ = ["is_characteristic"]


def is_characteristic(rows: Rows, face: Face) -> bool:
    """Return whether the one equation of a problem has no highest derivative along the normals of a face."""
    if len(rows.equations) != 1 or len(rows.orders) != 1 or face.normals is None:
        return False
    (equation,), total, sizes = rows.equations, np.zeros(len(face.points)), np.zeros(len(face.points))
    for _, index, value in rows.only_terms(equation, face.below, rows.traces.inward(face.below, face), None):
        if sum(index) == equation.form.order:
            own = value * np.prod(face.normals ** np.array(index), axis=1)
            total, sizes = total + own, sizes + np.abs(value) * np.ones_like(total)
    return bool((np.abs(total) <= PLAIN**2 * sizes).all())
