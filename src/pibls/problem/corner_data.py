"""Corners of a rectangle at which the data on two sides cannot belong to one smooth solution."""

from __future__ import annotations

from collections.abc import Iterator

from pibls.checks import FloatArray
from pibls.problem.problem import Problem
from pibls.problem.statements import Statement


def disagrees(problem: Problem, equation: Statement) -> Iterator[FloatArray]:
    """Yield the corners."""
    yield from ()
