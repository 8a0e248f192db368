"""Nonlinear least squares: one damped Gauss–Newton iteration for fields on cells, wide networks and unknown numbers."""

from pibls.newton.gauss_newton import LENGTHS, End, Iteration, crawls, descend, falls, record, shortened

__all__ = ["LENGTHS", "End", "Iteration", "crawls", "descend", "falls", "record", "shortened"]
