"""FUNCTION: a solved problem that can be called, differentiated, checked, saved and drawn."""

from pibls.solution.diagnostics import Diagnostics, Residual, Stage
from pibls.solution.field_functions import FieldFunction, ResidualFunction
from pibls.solution.posterior import Posterior
from pibls.solution.solution import Solution
from pibls.solution.storage import load, save

__all__ = ["Diagnostics", "FieldFunction", "Posterior", "Residual", "ResidualFunction", "Solution", "Stage", "load"]
__all__ += ["save"]
