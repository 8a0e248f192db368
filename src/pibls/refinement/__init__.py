"""Refinement until two approximations agree: one loop, one estimate, one way to stop, one record, one verdict.

Cells, lines and wide networks are discretisations: they solve, compare with a finer solution, and say what that costs.
The driver decides when to go on.
"""

from pibls.refinement.driver import Course, Discretisation, Estimated, extrapolated, refine
from pibls.refinement.stopping import ROUNDING, VISIBLE, Cost, Patience, Reason, Stop, verdict

__all__ = [
    "ROUNDING",
    "VISIBLE",
    "Cost",
    "Course",
    "Discretisation",
    "Estimated",
    "Patience",
    "Reason",
    "Stop",
    "extrapolated",
    "refine",
    "verdict",
]
