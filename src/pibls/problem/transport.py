"""Linear transport with constant coefficients in two coordinates: straight characteristics that carry the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem.conservation import value_given
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.places import OnPart
from pibls.problem.problem import Problem
from pibls.quadrature.roots import CLOSE, SCAN


@dataclass(frozen=True, eq=False)
class Transport:
    """A field that changes along straight lines at a constant rate: d·∇u + γu = 0, given where the lines enter a box.

    One coordinate may be time.
    """

    problem: Problem
    direction: FloatArray
    rate: float
    given: tuple[tuple[Any, Function], ...]  # parts of the boundary, and the values given there

    told = "Values were carried along characteristics."

    @property
    def bounds(self) -> FloatArray:
        """The sides of the box."""
        return np.asarray(self.problem.domain.bounds, dtype=np.float64)

    @cached_property
    def entrances(self) -> FloatArray:
        """The coordinate of the side by which lines enter along each axis; not finite where none do."""
        found = np.where(self.direction > 0, self.bounds[:, 0], self.bounds[:, 1])
        return np.where(self.direction == 0.0, -np.inf, found)

    def feet(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return where the lines through points entered, and how long ago."""
        ago = np.full(X.shape, np.inf)
        enters = np.isfinite(self.entrances)
        ago[:, enters] = (X - self.entrances)[:, enters] / self.direction[enters]
        axis, since = ago.argmin(axis=1), ago.min(axis=1)
        feet = X - since[:, None] * self.direction
        feet[np.arange(len(X)), axis] = self.entrances[axis]
        return np.clip(feet, *self.bounds.T), since

    def values(self, X: FloatArray) -> FloatArray:
        """Return the field at points."""
        feet, since = self.feet(X)
        found = np.full(len(X), np.nan)
        for part, value in self.given:
            rows = np.flatnonzero(np.isnan(found) & part.contains(feet))
            found[rows] = value(feet[rows])
        return np.asarray(found * np.exp(-self.rate * since))

    def followed(self, feet: FloatArray, most: int) -> FloatArray:
        """Return points on the lines that enter at some places, scattered along them."""
        count = max(1, most // max(1, len(feet)))
        places = (np.arange(len(feet) * count) + 0.5) * (np.sqrt(5.0) - 1.0) / 2.0
        feet, shares = np.repeat(feet, count, axis=0), np.mod(places, 1.0)
        ends = self.bounds[np.arange(2), (self.direction > 0).astype(int)]
        left, leaves = np.full(feet.shape, np.inf), np.isfinite(self.entrances)
        left[:, leaves] = (ends - feet)[:, leaves] / self.direction[leaves]
        X = feet + (shares * left.min(axis=1))[:, None] * self.direction
        return np.asarray(np.clip(X, *self.bounds.T))

    def is_given(self) -> bool:
        """Tell whether values are given once at all entrances, and nowhere else."""
        shares = (np.arange(SCAN) + 0.5)[:, None] / SCAN
        for axis, side in ((axis, side) for axis in (0, 1) for side in (0, 1)):
            X = self.bounds[:, 0] + shares * np.ptp(self.bounds, axis=1)
            X[:, axis] = self.bounds[axis, side]
            counts = sum(part.contains(X).astype(int) for part, _ in self.given)
            if not np.all(counts == int(self.entrances[axis] == self.bounds[axis, side])):
                return False
        return True


def transport_of(problem: Problem) -> Transport | None:
    """Return a problem as one of transport along straight lines, or None if it is none of the kind.

    >>> import pibls as pb
    >>> x, t = pb.coordinates("x t")
    >>> u, line = pb.field("u", x, t), pb.Interval((x, 0, 2)) * pb.TimeInterval(t, 0, 1)
    >>> given = [pb.Initial(u, x**2), pb.Dirichlet(u, t**2, on=line.left)]
    >>> transport = transport_of(Problem(u.diff(t) + 3 * u.diff(x), line, given))
    >>> transport.values(np.array([[1.5, 0.1], [0.3, 0.6]])).round(6)
    array([1.44, 0.25])
    """
    domain = problem.domain
    equations = problem.laws.statements
    if len(equations) != 1 or len(problem.fields) != 1 or len(domain.coordinates) != 2 or not problem.is_linear:
        return None
    form = equations[0].form
    if form.order != 1 or form.source != 0 or not all(term.coefficient.is_real for term in form.terms):
        return None
    factors = {term.multi_index: float(term.coefficient) for term in form.terms if term.coefficient.is_number}
    # A box is all of its bounds.
    box = abs(domain.measure - float(np.prod(np.ptp(domain.bounds, axis=1)))) <= CLOSE * domain.measure
    given = _given(problem)
    if len(factors) < len(form.terms) or not box or given is None:
        return None
    direction, rate = np.array([factors.get(index, 0.0) for index in ((1, 0), (0, 1))]), factors.get((0, 0), 0.0)
    # A steady flow may be followed either way.
    size = direction[1] if domain.time is not None else float(np.abs(direction).max())
    for scale in (size,) if domain.time is not None else (size, -size):
        if scale == 0.0:
            return None
        found = Transport(problem, direction / scale, rate / scale, given)
        try:
            if found.is_given() and np.isfinite(found.values(domain.sample(SCAN, "kronecker", 1))).all():
                return found
        except ProblemError:
            return None
    return None


def _given(problem: Problem) -> tuple[tuple[Any, Function], ...] | None:
    """Return the values that conditions give on parts of the boundary; None if there are others."""
    given = []
    for statement in (s for s in problem.statements if not s.is_equation):
        value = value_given(statement)
        if value is None or not isinstance(statement.place, OnPart):
            return None
        given.append((statement.place.part, compile_function(value, problem.domain.coordinates)))
    return tuple(given)
