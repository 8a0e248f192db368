"""NUMBERS: values, integrals, extremes and events of a solution, each with its error."""

from pibls.quantities.goals import Goal, asked, first_time, flow, integral, maximum, mean, minimum
from pibls.quantities.measures import Measures
from pibls.quantities.quantity import Quantity
from pibls.quantities.values import ValueFunction

__all__ = [
    "Goal",
    "Measures",
    "Quantity",
    "ValueFunction",
    "asked",
    "first_time",
    "flow",
    "integral",
    "maximum",
    "mean",
]
__all__ += ["minimum"]
