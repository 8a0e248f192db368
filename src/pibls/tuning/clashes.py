"""Conditions that give the same thing twice, and not the same value: at the same places, or beyond what is needed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pibls.checks import FloatArray
from pibls.features import MultiIndex
from pibls.geometry import Interval
from pibls.problem import OnPart, Problem, Statement
from pibls.solution import Solution

__all__ = ["Clash", "clash_beyond", "find_clash", "find_surplus"]

Slot = tuple[str, MultiIndex]

_POINTS = 100
_FEW = 0.02  # share of the places of a condition: two sides of a corner have it in common, and may differ there
_DIGITS, _SLOPES = 1e-9, 1e-6  # to which values are the same, and what solutions of other conditions give
_MOST = 1e-3  # of the size of a solution, however large the tolerance is


@dataclass(frozen=True, eq=False)
class Clash:
    """Two conditions on the same things at the same place.

    Attributes
    ----------
    names
        What they are called.
    slots
        The fields and derivatives in them, with the size of their coefficients.
    place
        Where they differ most.
    values
        What each gives there.
    """

    names: tuple[str, str]
    slots: dict[Slot, float]
    place: FloatArray
    values: tuple[float, float]

    def in_words(self, solution: Solution, tol: float) -> str:
        """Say what contradicts what, if that is more than a small part of the terms of these conditions."""
        X = solution.problem.domain.sample(_POINTS, "kronecker", 3)
        state = solution.evaluate(X, list(self.slots))
        sizes = (float(np.abs(own).max()) for own in state)
        size = max(factor * own for factor, own in zip(self.slots.values(), sizes, strict=True))
        first, second = self.values
        if abs(first - second) <= min(tol, _MOST) * max(size, abs(first), abs(second)):
            return ""
        symbols = solution.problem.domain.coordinates
        place = ", ".join(f"{s.name}={v:.3g}" for s, v in zip(symbols, self.place, strict=True))
        return (
            f"The conditions contradict each other: {self.names[0]} and {self.names[1]} give the same thing twice, and "
            f"near {place} one says {first:.6g} and the other {second:.6g}. Restrict one of them with on=..., or "
            "remove it."
        )


def find_clash(problem: Problem) -> Clash | None:
    """Return two conditions that differ on what they both give.

    Examples
    --------
    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Dirichlet, coordinates, field
    >>> x = coordinates("x")
    >>> u, line = field("u", x), Interval((x, 0, 1))
    >>> conditions = [Dirichlet(u, 0), Dirichlet(u, 1, on=line.right)]
    >>> find_clash(Problem(u.diff(x, 2), line, conditions)).values
    (0.0, 1.0)
    >>> find_clash(Problem(u.diff(x, 2), line, [*conditions[:1], Dirichlet(u, 0, on=line.right)]))
    """
    given = [s for s in problem.statements if isinstance(s.place, OnPart) and s.form.is_linear and s.targets is None]
    found = (_clash(one, two) for one, two in combinations(given, 2))
    return next((clash for clash in found if clash is not None), None)


def find_surplus(problem: Problem) -> Statement | None:
    """Return the last condition at the ends of a line without which there are as many as determine a solution.

    Least squares put what it contradicts into an ever smaller cell at that end, where nothing is seen of it.

    Examples
    --------
    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Dirichlet, coordinates, field
    >>> x = coordinates("x")
    >>> u, line = field("u", x), Interval((x, 0, 1))
    >>> conditions = [Dirichlet(u, x), Dirichlet(u.diff(x), 2, on=line.left)]
    >>> find_surplus(Problem(u.diff(x, 2), line, conditions)).name
    'Dirichlet(u_x = 2 on left)'
    >>> find_surplus(Problem(u.diff(x, 3), line, conditions))
    """
    equations, conditions = ([s for s in problem.statements if s.is_equation is own] for own in (True, False))
    ends = [s.place.part.measure for s in conditions if isinstance(s.place, OnPart) and s.weight == 1.0]
    if not isinstance(problem.domain, Interval) or len(ends) < len(conditions):
        return None
    (along,) = problem.domain.coordinates
    needed = sum(max(e.form.order_along(along, name) for e in equations) for name in problem.field_names)
    found = [s for s, count in zip(conditions, ends, strict=True) if count == sum(ends) - needed]
    return found[-1] if found else None


def clash_beyond(surplus: Statement, solution: Solution) -> Clash | None:
    """Return what a condition and the solution of all others differ by."""
    assert isinstance(surplus.place, OnPart)
    form, (X, normals) = surplus.form, surplus.place.part.sample(_POINTS, "kronecker", 1)
    slots = [(term.field, term.multi_index) for term in form.terms]
    given = 0.0 - form.source_function(X, normals)
    found = form.residual_function(X, normals, solution.evaluate(X, slots)) + given
    sizes = [float(np.abs(own(X, normals)).max()) for own in form.coefficient_functions]
    names = surplus.name, "what the other conditions determine"
    return _differing(names, dict(zip(slots, sizes, strict=True)), X, (given, found), _SLOPES)


def _clash(one: Statement, two: Statement) -> Clash | None:
    slots = [(term.field, term.multi_index) for term in one.form.terms]
    others = [(term.field, term.multi_index) for term in two.form.terms]
    if sorted(slots) != sorted(others) or {one.weight, two.weight} != {1.0}:
        return None
    parts = [s.place.part for s in (one, two) if isinstance(s.place, OnPart)]
    small, large = sorted(parts, key=lambda part: part.measure)
    samples = small.sample(_POINTS, "kronecker", 1)
    shared = large.contains(samples.points)
    if shared.mean() <= _FEW:
        return None
    X, normals = samples.points[shared], samples.normals[shared]
    first, second = (_row(s, slots, X, normals) for s in (one, two))
    if not np.allclose(first[:-1], second[:-1], atol=_DIGITS):
        return None
    factors = dict(zip(slots, np.abs(first[:-1]).max(axis=1).tolist(), strict=True))
    return _differing((one.name, two.name), factors, X, (first[-1], second[-1]), _DIGITS)


def _differing(
    names: tuple[str, str],
    slots: dict[Slot, float],
    X: FloatArray,
    values: tuple[FloatArray, FloatArray],
    digits: float,
) -> Clash | None:
    """Return where two values of the same thing differ most, unless they are the same."""
    first, second = values
    apart = np.abs(first - second)
    worst = int(apart.argmax())
    if apart[worst] <= digits * max(np.abs(first).max(), np.abs(second).max()):
        return None
    return Clash(names, slots, X[worst], (float(first[worst]), float(second[worst])))


def _row(s: Statement, slots: list[Slot], X: FloatArray, normals: FloatArray) -> FloatArray:
    """Return the coefficients of a condition at points, of size one in all, and what it gives."""
    own = {(t.field, t.multi_index): f for t, f in zip(s.form.terms, s.form.coefficient_functions, strict=True)}
    found = np.stack([*(own[slot](X, normals) for slot in slots), 0.0 - s.form.source_function(X, normals)])
    largest = np.take_along_axis(found, np.abs(found[:-1]).argmax(axis=0)[None], axis=0)
    scale = np.sqrt(np.square(found[:-1]).sum(axis=0)) * np.where(largest < 0, -1.0, 1.0)
    return np.asarray(found / np.where(scale == 0, 1.0, scale))
