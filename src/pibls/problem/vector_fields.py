"""Vectors among the fields of a problem: their components mix when the coordinates are rotated."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem.lowering import Form
from pibls.problem.problem import Problem
from pibls.quadrature.roots import CLOSE

__all__ = ["vectors_of"]

Vectors = tuple[tuple[str, ...], ...]


def vectors_of(problem: Problem) -> Vectors:
    """Return the fields that are components of vectors, in the order of the coordinates of space.

    The derivatives in the equations keep their form if coordinates and vectors are rotated together, and lose it if
    only the fields are.

    >>> from pibls.problems import elasticity, poisson, stokes
    >>> vectors_of(elasticity()), vectors_of(stokes()), vectors_of(poisson())
    ((('u', 'v'),), (('u', 'v'),), ())
    """
    return problem.once(_found)


def motion_of(problem: Problem) -> tuple[str, ...]:
    """Return the displacements or velocities of a problem, in the order of the coordinates of space.

    They are the vector of second order in its equations; without one, all fields of second order, as their equations
    follow each other; without any, all fields.

    >>> from pibls.problems import poisson, stokes
    >>> motion_of(stokes()), motion_of(poisson())
    (('u', 'v'), ('u',))
    """
    carriers = problem.laws.carriers
    known = (own for own in vectors_of(problem) if set(own) <= set(carriers))
    return next(known, tuple(sorted(carriers, key=carriers.__getitem__)) or problem.field_names)


def _found(problem: Problem) -> Vectors:
    names, space = problem.field_names, len(problem.domain.space)
    if space < 2 or len(names) < space:
        return ()
    symbol = _Symbol(problem)
    return next((own for own in _choices(names, space) if symbol.is_kept(own)), ())


def _choices(names: tuple[str, ...], size: int) -> Iterator[Vectors]:
    """Yield possible vectors: single ones first, then two at a time."""
    for one in permutations(names, size):
        yield (one,)
    for one in permutations(names, size):
        for two in permutations([name for name in names if name not in one], size):
            if names.index(one[0]) < names.index(two[0]):
                yield one, two


class _Symbol:
    """The equations with numbers in the place of derivatives, at one point and for some directions."""

    def __init__(self, problem: Problem) -> None:
        self.names, domain = problem.field_names, problem.domain
        self.space = [domain.coordinates.index(symbol) for symbol in domain.space]
        self.terms: list[tuple[int, int, tuple[int, ...], float]] = []
        X = domain.sample(1, "kronecker", 1)
        for i, form in enumerate(problem.laws.forms):
            for k, (term, depends) in enumerate(zip(form.terms, form.depends, strict=True)):
                # Terms without derivatives may single out a direction, as gravity does.
                if not depends and any(term.multi_index[axis] for axis in self.space):
                    self.terms.append((i, self.names.index(term.field), term.multi_index, _value(form, k, X)))
        self.count = len(problem.laws.forms)
        rng = np.random.default_rng(0)
        self.directions = rng.standard_normal((4 * len(self.names), len(domain.coordinates)))

    def at(self, directions: FloatArray) -> FloatArray:
        """Return the matrices of equations over fields, one for each direction."""
        found = np.zeros((len(directions), self.count, len(self.names)), dtype=directions.dtype)
        for i, field, index, value in self.terms:
            found[:, i, field] += value * np.prod(directions ** np.array(index), axis=1)
        return found

    def is_kept(self, vectors: Vectors) -> bool:
        """Return whether rotations of coordinates and vectors together keep all equations, and those of fields not."""
        here = self.at(self.directions)
        if not all(here[:, :, self.names.index(name)].any() for own in vectors for name in own):
            return False
        for a, b in combinations(range(len(self.space)), 2):
            turned, fields = np.zeros(self.directions.shape), np.zeros((len(self.names),) * 2)
            turned[:, self.space[a]] = -self.directions[:, self.space[b]]
            turned[:, self.space[b]] = self.directions[:, self.space[a]]
            for own in vectors:
                one, two = self.names.index(own[a]), self.names.index(own[b])
                fields[one, two], fields[two, one] = -1.0, 1.0
            step = 1e-30  # a complex step: the imaginary part is the derivative, without a difference
            change = self.at(self.directions + 1j * step * turned).imag / step
            if not _is_combined(here, change + here @ fields) or _is_combined(here, here @ fields):
                return False
        return True


def _value(form: Form, number: int, X: FloatArray) -> float:
    """Return a coefficient that does not depend on the state at a point; zero where it is not finite."""
    slots = [] if form.is_linear else [np.zeros(len(X))] * len(form.terms)
    try:
        return float(np.ravel(form.coefficient_functions[number](X, None, slots))[0])
    except ProblemError:
        return 0.0


def _is_combined(rows: FloatArray, change: FloatArray) -> bool:
    """Return whether one matrix takes the rows of every direction to their change: equations are combined anew."""
    known, wanted = (own.transpose(1, 0, 2).reshape(own.shape[1], -1).T for own in (rows, change))
    matrix = np.linalg.lstsq(known, wanted, rcond=CLOSE)[0]
    return bool(np.abs(wanted - known @ matrix).max() <= CLOSE * max(np.abs(wanted).max(), 1e-300))
