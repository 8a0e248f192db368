"""Choices made for the user."""

from pibls.tuning.automatic import Method, Progress, solve

__all__ = ["Method", "Progress", "solve"]
