"""AGAIN: the same problem for many values of its parameters."""

from pibls.sweeps.sweep import sweep
from pibls.sweeps.uncertainty import Uncertainty, uncertainty

__all__ = ["Uncertainty", "sweep", "uncertainty"]
