"""Symmetry of a problem: which coordinates can be exchanged, and which can be reflected.

A problem with one solution that stays the same under such a change has a solution that stays the same. Every statement
is compared with itself at changed points, for random values of the fields and their derivatives that change along: what
agrees there agrees everywhere, but for chance. A wrong answer costs time alone, since what is built on it is judged by
its residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pibls.checks import FloatArray
from pibls.problem import Interior, MultiIndex, OnPart, Problem, Statement
from pibls.quadrature.roots import CLOSE
from pibls.refinement.standards import POINTS


@dataclass(frozen=True)
class Orbit:
    """Coordinates of space that can be exchanged with each other."""

    axes: tuple[int, ...]
    even: bool  # whether each can be reflected at the middle of the domain too


@dataclass(frozen=True, eq=False)
class _Change:
    """An exchange of two coordinates, or the reflection of one."""

    order: tuple[int, ...]  # where each coordinate is taken from
    signs: FloatArray

    def points(self, X: FloatArray, middle: FloatArray) -> FloatArray:
        return np.asarray(middle + self.signs * (X - middle)[:, self.order])

    def index(self, alpha: MultiIndex) -> tuple[MultiIndex, float]:
        """Return the derivative that a derivative of the changed function is, and its sign."""
        return tuple(alpha[axis] for axis in self.order), float(np.prod(self.signs**alpha))


def orbits(problem: Problem) -> tuple[Orbit, ...]:
    """Return the coordinates of space, those together that can be exchanged without a change of the problem.

    >>> from pibls.problems import heat_nd, poisson_nd
    >>> orbits(heat_nd(3))
    (Orbit(axes=(0, 1, 2), even=False),)
    """
    dimension = len(problem.domain.coordinates)
    time = problem.domain.time
    axes = [axis for axis in range(dimension) if problem.domain.coordinates[axis] != time]
    samples = [_sampled(problem, statement) for statement in problem.statements]
    if any(sample is None for sample in samples):
        return tuple(Orbit((axis,), False) for axis in axes)

    def holds(changes: Sequence[_Change]) -> list[bool]:
        found = np.ones(len(changes), dtype=np.bool_)
        for statement, sample in zip(problem.statements, samples, strict=True):
            assert sample is not None
            found &= _invariant(problem, statement, *sample, changes)
        return [bool(value) for value in found]

    found: list[Orbit] = []
    while axes:
        first, *others = axes
        exchanged = holds([_exchange(first, other, dimension) for other in others]) if others else []
        own = (first, *(other for other, same in zip(others, exchanged, strict=True) if same))
        found.append(Orbit(own, holds([_reflection(first, dimension)])[0]))
        axes = [axis for axis in axes if axis not in own]
    return tuple(found)


def _exchange(one: int, two: int, dimension: int) -> _Change:
    order = list(range(dimension))
    order[one], order[two] = two, one
    return _Change(tuple(order), np.ones(dimension))


def _reflection(axis: int, dimension: int) -> _Change:
    return _Change(tuple(range(dimension)), np.where(np.arange(dimension) == axis, -1.0, 1.0))


def _sampled(problem: Problem, statement: Statement) -> tuple[FloatArray, FloatArray | None] | None:
    """Return points of a statement, with normals on the boundary; None if it has points of its own."""
    place, count = statement.place, 1 + POINTS // len(problem.domain.coordinates)
    if statement.targets is not None or not isinstance(place, Interior | OnPart):
        return None
    if isinstance(place, OnPart):
        samples = place.part.sample(count, "kronecker", 1)
        return samples.points, samples.normals
    return problem.domain.sample(count, "kronecker", 1), None


def _invariant(
    problem: Problem, statement: Statement, X: FloatArray, normals: FloatArray | None, changes: Sequence[_Change]
) -> npt.NDArray[np.bool_]:
    """Tell for each change whether it leaves a statement as it is."""
    region = statement.place.part if isinstance(statement.place, OnPart) else problem.domain
    middle, form = problem.domain.bounds.mean(axis=1), statement.form
    keys = [(term.field, term.multi_index) for term in form.terms]
    drawn = np.random.default_rng(0).standard_normal((len(keys), len(X)))
    state = dict(zip(keys, drawn, strict=True))
    where, turned, states, closed = [X], [normals], [drawn], []
    for change in changes:
        images = [(name, *change.index(alpha)) for name, alpha in keys]
        closed.append(all((name, alpha) in state for name, alpha, _ in images))
        where.append(change.points(X, middle))
        turned.append(None if normals is None else change.signs * normals[:, change.order])
        states.append(np.array([sign * state.get((name, alpha), drawn[0]) for name, alpha, sign in images]))
    points, values = np.concatenate(where), np.concatenate(states, axis=1)
    outward = None if normals is None else np.concatenate([own for own in turned if own is not None])
    residual = form.residual_at(points, outward, list(values)).reshape(len(where), -1)
    same = np.abs(residual[1:] - residual[0]).max(axis=1) <= CLOSE * np.abs(residual[0]).max()
    inside = np.asarray(region.contains(points)).reshape(len(where), -1)[1:].all(axis=1)
    return np.asarray(same & inside & np.array(closed))
