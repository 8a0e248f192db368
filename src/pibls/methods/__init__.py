"""Methods: the broad learning system and what it is compared with, each with a ``fit``."""

from pibls.methods.fit import Recipe, fit
from pibls.methods.pibls import PIBLS, PIELM

__all__ = ["PIBLS", "PIELM", "Recipe", "fit"]
