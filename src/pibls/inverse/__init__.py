"""UNKNOWNS: numbers and functions that measurements determine, with intervals that hold as often as stated."""

from pibls.inverse.fixed import is_fixed, solve_fixed, unmeasured
from pibls.inverse.search import solve_inverse

__all__ = ["is_fixed", "solve_fixed", "solve_inverse", "unmeasured"]
