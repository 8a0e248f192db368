"""NUMBERS: what a solution is asked for, each with its error."""

from pibls.quantities.measures import Measures
from pibls.quantities.points import ValueFunction
from pibls.quantities.quantity import Quantity

__all__ = ["Measures", "Quantity", "ValueFunction"]
