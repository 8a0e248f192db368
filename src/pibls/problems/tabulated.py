"""Problems without a closed form, with values of their solutions computed to many digits by another method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from pibls.checks import FloatArray
from pibls.problem import Problem
from pibls.problems.nonlinear import bratu_unforced
from pibls.problems.shapes import l_shape_unit_load

__all__ = ["Reference", "references"]


@dataclass(frozen=True, eq=False)
class Reference:
    """A problem and the values of its solution at some points.

    Attributes
    ----------
    problem
        Builds the problem.
    points, values
        Points of the domain, shape (n, d), and the n values of its one field there; neither can be written to.
    accuracy
        Bound for the absolute error of the values.
    """

    problem: Callable[[], Problem]
    points: FloatArray
    values: FloatArray
    accuracy: float

    def __post_init__(self) -> None:
        self.points.setflags(write=False)
        self.values.setflags(write=False)


# From the method of particular solutions: -y²/2, the functions r^(2k/3) sin(2kθ/3) of the re-entrant corner, z² log z
# around every corner, and harmonic polynomials, 154 in all, fitted to zero on the boundary. The error is harmonic, so
# that its largest value on the boundary, 2e-14, bounds it inside; poles clustered at the corners, as a second basis,
# give the same to 1e-13.
_L_SHAPE_UNIT_LOAD = (
    (-0.5, 0.5, 0.13105296203056),
    (-0.25, 0.25, 0.14414583738119),
    (-0.75, 0.75, 0.06046351863299),
    (0.5, 0.5, 0.10236215765604),
    (-0.5, -0.5, 0.10236215765604),
    (-0.1, 0.1, 0.09806646991817),
    (-0.01, 0.01, 0.02334596305368),
    (0.0, 0.5, 0.13575435415094),
    (0.25, 0.75, 0.08976966788825),
    (-0.75, -0.25, 0.08976966788825),
    (0.75, 0.25, 0.05308100882913),
    (0.05, 0.02, 0.01490616272782),
)

# From Chebyshev collocation in both coordinates with Newton's method, 41 × 41 points, for u minus the solution s of
# −Δs = 1, whose terms r² log r at the corners come from its series; 33 × 33 points give the same to 2e-13.
_BRATU_UNFORCED = (
    (0.5, 0.5, 0.07810102269760),
    (0.25, 0.25, 0.04759770635039),
    (0.25, 0.5, 0.06052938590708),
    (0.75, 0.4, 0.05854822247212),
    (0.1, 0.1, 0.01353943572667),
    (0.05, 0.5, 0.01639274129774),
    (0.9, 0.2, 0.02175122920069),
    (0.02, 0.03, 0.00134245116220),
    (0.33, 0.66, 0.06398959452950),
    (0.6, 0.95, 0.01594091432556),
)


def references() -> Mapping[str, Reference]:
    """Return the problems whose solution is known at points only, by name.

    Examples
    --------
    >>> reference = references()["l_shape_unit_load"]
    >>> reference.points[0], float(reference.values[0].round(9)), reference.accuracy
    (array([-0.5,  0.5]), 0.131052962, 1e-12)
    """
    found = {}
    for problem, rows in ((bratu_unforced, _BRATU_UNFORCED), (l_shape_unit_load, _L_SHAPE_UNIT_LOAD)):
        table = np.array(rows)
        found[problem.__name__] = Reference(problem, table[:, :-1].copy(), table[:, -1].copy(), 1e-12)
    return MappingProxyType(found)
