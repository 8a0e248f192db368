"""Methods: the broad learning system and those it is compared with, each with a ``fit``; and the network of cells."""

from pibls.features.reference import Cells
from pibls.methods.bayesian import BayesianPIELM
from pibls.methods.fit import Recipe, fit
from pibls.methods.pibls import PIBLS, PIELM
from pibls.methods.pinn import PINN

__all__ = ["PIBLS", "PIELM", "PINN", "BayesianPIELM", "Cells", "Recipe", "fit"]
