"""Nodes for corners where given values jump: what a lid does to the fluid at its end.

Around such a corner a solution is a function of the angle alone, to leading order, and its pressure or flux like 1/r.
With w = (x + iy − c)/R in polar form r e^{iθ}, a jump of values wants θ; that of a velocity, which has no divergence,
wants w̄/w as well, and 1/w for the pressure (Taylor 1962). Terms of order r with θ and θ² are what inertia adds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pibls.features.harmonic import HarmonicGroup
from pibls.geometry import Domain
from pibls.geometry.landmarks import Corner, clearance

__all__ = ["draw_jumps"]

# Exponents of w and of w̄, power of θ, whether there is a factor log w.
_LEADING = ((0, 0, 1, False), (-1, 1, 0, False), (-1, 0, 0, False))
_NEXT = ((0, 0, 0, True), (1, 0, 1, False), (1, 0, 2, False), (-1, 2, 0, False), (-1, 2, 1, False), (-1, 2, 2, False))


def draw_jumps(domain: Domain, corners: Sequence[Corner]) -> tuple[HarmonicGroup, ...]:
    """Return nodes for corners at which given values jump, one group for each.

    The angle is cut along the direction that halves the wedge outside; a corner from which that ray comes back to the
    domain gets no nodes.

    Parameters
    ----------
    domain : Domain
        A domain in the plane.
    corners : sequence of Corner

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls.geometry import Rectangle
    >>> from pibls.geometry.landmarks import corners
    >>> x, y = sp.symbols("x y")
    >>> square = Rectangle((x, 0, 1), (y, 0, 1))
    >>> groups = draw_jumps(square, corners(square, 0.0))
    >>> len(groups), groups[0].nodes
    (4, 17)
    """
    return tuple(_group(domain, c) for c in corners if math.isinf(clearance(domain, c.point, c.direction)))


def _group(domain: Domain, corner: Corner) -> HarmonicGroup:
    rows = [
        (exponent, conjugate, angle, logarithm, part)
        for exponent, conjugate, angle, logarithm in (*_LEADING, *_NEXT)
        for part in ("real", "imag")
        # A power of r² times θ is real.
        if part == "real" or logarithm or exponent != conjugate
    ]
    exponents, conjugates, angles, logarithms, parts = zip(*rows, strict=True)
    point, nodes = np.array(corner.point), len(rows)
    reach = float(np.hypot(*np.abs(domain.bounds - point[:, None]).max(axis=1)))
    return HarmonicGroup(
        np.tile(point, (nodes, 1)),
        np.array(exponents, dtype=np.float64),
        np.full(nodes, math.remainder(corner.direction + math.pi, 2 * math.pi)),
        np.full(nodes, reach),
        parts,
        logarithms,
        conjugates,
        angles,
    )
