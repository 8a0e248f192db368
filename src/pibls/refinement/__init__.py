"""Refinement until two approximations agree: one loop, one estimate, one list of reasons to stop, one verdict.

Cells, evolutions, wide networks and searches for unknowns are discretisations: each solves a problem, compares a
solution with a better one and estimates the cost of the next stage. The driver decides whether to refine again.
"""

from pibls.refinement.driver import Course, Discretisation, Estimated, extrapolated, refine
from pibls.refinement.stopping import SMALLEST, VISIBLE, Cost, Patience, Reason, Stop, verdict

__all__ = [
    "SMALLEST",
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
