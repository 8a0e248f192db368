"""Choices made for the user: scales, widths, points, and when to stop."""

from pibls.tuning.automatic import Method, solve
from pibls.tuning.prepared import Prepared, prepare
from pibls.tuning.progress import Progress

__all__ = ["Method", "Prepared", "Progress", "prepare", "solve"]
