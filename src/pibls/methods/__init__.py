"""Methods: the broad learning system and its relatives, each with a ``fit``; and the network of cells."""

from pibls.features.reference import Cells
from pibls.methods.bayesian import BayesianPIELM
from pibls.methods.fit import Recipe, fit
from pibls.methods.pibls import PIBLS, PIELM

__all__ = ["PIBLS", "PIELM", "BayesianPIELM", "Cells", "Recipe", "fit"]
