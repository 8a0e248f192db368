"""Problems without a closed form, with values of their solutions computed to many digits by another method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from pibls.checks import FloatArray
from pibls.problem import Problem
from pibls.problems.everyday import VALUES
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


# The values are in ``everyday_values.json``.
#
# l_shape_unit_load: from the method of particular solutions: -y²/2, the functions r^(2k/3) sin(2kθ/3) of the re-entrant
# corner, z² log z around every corner, and harmonic polynomials, 154 in all, fitted to zero on the boundary. The error
# is harmonic, so that its largest value on the boundary, 2e-14, bounds it inside; poles clustered at the corners, as a
# second basis, give the same to 1e-13.
#
# bratu_unforced: from Chebyshev collocation in both coordinates with Newton's method, 41 × 41 points, for u minus the
# solution s of −Δs = 1, whose terms r² log r at the corners come from its series; 33 × 33 points give the same to
# 2e-13.


def references() -> Mapping[str, Reference]:
    """Return the problems whose solution is known at points only, by name.

    Examples
    --------
    >>> reference = references()["l_shape_unit_load"]
    >>> reference.points[0], float(reference.values[0].round(9)), reference.accuracy
    (array([-0.5,  0.5]), 0.131052962, 1e-12)
    """
    found = {}
    for problem in (bratu_unforced, l_shape_unit_load):
        table = VALUES[problem.__name__]
        points, values = np.array(table["points"]), np.array(table["values"]["u"])
        found[problem.__name__] = Reference(problem, points, values, table["accuracy"])
    return MappingProxyType(found)
