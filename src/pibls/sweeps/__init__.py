"""AGAIN: the same problem for many values of its parameters."""

from pibls.sweeps.sweep import sweep

__all__ = ["sweep"]
