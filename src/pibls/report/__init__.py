"""PEOPLE: how good a solution is, in numbers and in pictures."""

from pibls.report.metrics import metrics
from pibls.report.plots import plot

__all__ = ["metrics", "plot"]
