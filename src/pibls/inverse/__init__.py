"""UNKNOWNS: numbers and functions of a problem that measurements determine, with intervals that mean what they say."""

from pibls.inverse.fixed import is_fixed, solve_fixed, unmeasured
from pibls.inverse.solve import solve_inverse

__all__ = ["is_fixed", "solve_fixed", "solve_inverse", "unmeasured"]
