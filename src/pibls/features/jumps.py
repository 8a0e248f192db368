"""Nodes for corners where given values jump: what a lid does to the fluid at its end.

Around such a corner a solution is a function of the angle alone, to leading order, and its pressure or flux like 1/r.
With w = (x + iy − c)/R in polar form r e^{iθ}, a jump of values wants θ; that of a velocity, which has no divergence,
wants w̄/w as well, and 1/w for the pressure (Taylor 1962). Terms of order r with θ and θ² are what inertia adds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pibls.features.harmonic import HarmonicGroup
from pibls.geometry import Domain
from pibls.geometry.landmarks import Corner, find_cut

__all__ = ["draw_jumps"]

# Exponents of w and of w̄, power of θ, whether there is a factor log w.
_LEADING = ((0, 0, 1, False), (-1, 1, 0, False), (-1, 0, 0, False))
_NEXT = ((0, 0, 0, True), (1, 0, 1, False), (1, 0, 2, False), (-1, 2, 0, False), (-1, 2, 1, False), (-1, 2, 2, False))


def draw_jumps(domain: Domain, corners: Sequence[Corner]) -> tuple[HarmonicGroup, ...]:
    """Return nodes for corners at which given values jump, all in one group, or no group if there are none.

    The angle is cut along a straight line outside; a corner from which every such line comes back to the domain gets no
    nodes.

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
    >>> [group] = draw_jumps(square, corners(square, 0.0)[:2])
    >>> group.nodes
    34
    """
    cuts = {corner: cut for corner in corners if (cut := find_cut(domain, corner)) is not None}
    return (_group(domain, cuts),) if cuts else ()


def _group(domain: Domain, cuts: Mapping[Corner, float]) -> HarmonicGroup:
    rows = [
        (exponent, conjugate, angle, logarithm, part)
        for exponent, conjugate, angle, logarithm in (*_LEADING, *_NEXT)
        for part in ("real", "imag")
        # A power of r² times θ is real.
        if part == "real" or logarithm or exponent != conjugate
    ]
    exponents, conjugates, angles, logarithms, parts = (column * len(cuts) for column in zip(*rows, strict=True))
    points = np.array([corner.point for corner in cuts])
    reach = np.hypot(*np.abs(domain.bounds - points[:, :, None]).max(axis=2).T)
    inward = [math.remainder(cut + math.pi, 2 * math.pi) for cut in cuts.values()]
    return HarmonicGroup(
        np.repeat(points, len(rows), axis=0),
        np.array(exponents, dtype=np.float64),
        np.repeat(inward, len(rows)),
        np.repeat(reach, len(rows)),
        parts,
        logarithms,
        conjugates,
        angles,
    )
