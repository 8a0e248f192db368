"""UNKNOWNS: numbers and functions of a problem that measurements determine, with intervals that mean what they say."""

from pibls.inverse.solve import solve_inverse, unmeasured

__all__ = ["solve_inverse", "unmeasured"]
