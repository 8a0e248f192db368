"""How mixed derivatives of an equation flow across faces, and which rotations do no work in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import block_diag

from pibls.cells.balances import Turn, turns_of
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.features import MultiIndex
from pibls.geometry.points import interior_points
from pibls.problem import OnPart, Statement
from pibls.quadrature.roots import CLOSE, SCAN

if TYPE_CHECKING:
    from pibls.cells.rows import Rows

__all__ = ["MixedDerivatives", "both"]

Key = tuple[int, int, int, int]
"""An equation, a field, an axis across which a mixed derivative flows, and the other axis of the derivative."""
Coefficients = Mapping[tuple[Any, MultiIndex], FloatArray]
"""The coefficients of the derivatives of fields in a statement, at points."""


@dataclass(eq=False)
class MixedDerivatives:
    """The flow of mixed derivatives, from the rows of a problem and the fluxes of equations written as divergences.

    These fluxes take symbolic work, which most problems need not do.
    """

    rows: Rows
    fluxes: Callable[[], Sequence[Statement | None]]

    def share(self, i: int, number: int, axis: int, other: int) -> float:
        """Return the share of a mixed derivative of a field in an equation that flows across the faces of an axis."""
        return self._shares.get((i, number, axis, other), 0.5)

    @cached_property
    def _shares(self) -> dict[Key, float]:
        """The shares of mixed derivatives that flow across the faces of one of their axes.

        The equation alone does not determine it. Flux conditions do, and where there are none, equations that are
        written as divergences. Without any, the share does not matter.
        """
        linear = [statement for statement in self.rows.problem.statements if statement.form.is_linear]
        sides = [(own, *own.place.part.sample(SCAN)) for own in linear if isinstance(own.place, OnPart)]
        names, found = self.rows.problem.field_names, dict[Key, float]()
        for i, (equation, flux) in enumerate(zip(self.rows.equations, self.fluxes(), strict=True)):
            if flux is not None and flux.form.is_linear:
                found |= self._shares_of(i, flux)
            terms = equation.form.terms if equation in linear else ()
            keys = [(i, names.index(t.field), one, two) for t in terms for one, two in _mixed(t.multi_index)]
            pairs = self._pairs(equation, sides) if keys else ()
            found |= _given_shares({key: found.get(key, 0.5) for key in keys}, pairs)
        return found

    def _pairs(
        self, equation: Statement, sides: Iterable[tuple[Statement, FloatArray, FloatArray]]
    ) -> Iterator[tuple[Coefficients, Coefficients, FloatArray]]:
        """Return the coefficients of an equation and of each condition at points of its side, and the normals there."""
        for own, X, normals in sides:
            try:
                yield self._at(equation, X, None), self._at(own, X, normals), normals
            except ProblemError:
                continue  # coefficients may be infinite on the boundary, as in polar coordinates

    def _at(self, statement: Statement, X: FloatArray, normals: FloatArray | None) -> Coefficients:
        """Return the coefficients of a linear statement at points."""
        terms = self.rows.terms(statement, X, normals, [])
        return {(n, index): np.broadcast_to(value, len(X)) for n, index, value in terms}

    def _means(
        self, statement: Statement, X: FloatArray, normals: FloatArray | None
    ) -> dict[tuple[int, MultiIndex], float]:
        """Return the mean coefficients of a linear statement at points."""
        return {(n, index): float(np.mean(v)) for n, index, v in self.rows.terms(statement, X, normals, [])}

    def _shares_of(self, i: int, flux: Statement) -> dict[Key, float]:
        """Return the shares of the mixed derivatives of an equation that is written as a divergence."""
        X, d = self._somewhere, self._somewhere.shape[1]
        along = [self._means(flux, X, np.tile(normal, (len(X), 1))) for normal in np.eye(d)]
        found = {}
        for axis, other in permutations(range(len(self.rows.problem.domain.space)), 2):
            for number in range(len(self.rows.problem.field_names)):
                own = along[axis].get((number, self.rows.along(other, 1)), 0.0)
                whole = own + along[other].get((number, self.rows.along(axis, 1)), 0.0)
                if whole != 0.0:
                    found[i, number, axis, other] = own / whole
        return found

    @cached_property
    def _somewhere(self) -> FloatArray:
        """A few points of the domain."""
        return interior_points(self.rows.problem.domain, SCAN, "sobol", 0)

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The rotations that do no work, so that moments balance; none along periodic axes or in time."""
        problem, d = self.rows.problem, len(self.rows.problem.domain.space)
        several = len(self.rows.equations) > 1 and all(e.form.is_linear for e in self.rows.equations)
        if problem.domain.time is not None or not several:
            return ()
        axes = [axis for axis in range(d) if axis not in self.rows.traces.periodic]
        return turns_of([[self._along(i, axis) for axis in range(d)] for i in range(len(self.rows.equations))], axes)

    def _along(self, i: int, axis: int) -> dict[tuple[int, MultiIndex], FloatArray]:
        """Return the coefficients of the flux of a linear equation along an axis at a few points of the domain."""
        X, found = self._somewhere, {}
        d = X.shape[1]
        for number, index, value in self.rows.terms(self.rows.equations[i], X, None, []):
            other = next((k for k in range(d) if index == both(d, axis, k)), None)
            if other is not None:
                share = self.share(i, number, axis, other) if other != axis else 1.0
                found[number, self.rows.along(other, 1)] = share * value * np.ones(len(X))
        return found


def _given_shares(
    known: Mapping[Key, float], pairs: Iterable[tuple[Coefficients, Coefficients, FloatArray]]
) -> dict[Key, float]:
    """Return the shares of the mixed derivatives of an equation that follow from flux conditions.

    A condition is a multiple of the flux if with some shares it agrees at all of its points. ``pairs`` are the
    coefficients of the equation and of a condition at points of the boundary, and the normals there. A share that no
    condition determines stays the known one, and so do all of them where two conditions contradict each other.

    >>> one, normals = np.ones(2), np.eye(2)
    >>> equation = {(0, (2, 0)): 3 * one, (0, (0, 2)): one, (1, (1, 1)): 3 * one}
    >>> traction = {(0, (1, 0)): 6 * normals[:, 0], (0, (0, 1)): 2 * normals[:, 1]}
    >>> traction |= {(1, (1, 0)): 2 * normals[:, 1], (1, (0, 1)): 4 * normals[:, 0]}
    >>> found = _given_shares({(0, 1, 0, 1): 0.5}, [(equation, traction, normals)])
    >>> {key: round(share, 9) for key, share in found.items()}
    {(0, 1, 0, 1): 0.666666667, (0, 1, 1, 0): 0.333333333}
    """
    multiples, others, rights = list[FloatArray](), list[FloatArray](), list[FloatArray]()
    for rows in (_flux_rows(*pair, known) for pair in pairs):
        if _agreed(*rows) is not None:
            for every, own in zip((multiples, others, rights), rows, strict=True):
                every.append(own)
    found = _agreed(block_diag(*multiples), np.concatenate(others), np.concatenate(rights)) if rights else None
    if found is None:
        return {}
    shares = {key: share + more for (key, share), more in zip(known.items(), found.tolist(), strict=True)}
    return shares | {(i, n, other, axis): 1.0 - share for (i, n, axis, other), share in shares.items()}


def _agreed(multiples: FloatArray, others: FloatArray, right: FloatArray) -> FloatArray | None:
    """Return by how much shares exceed the known ones where conditions agree with a flux; None where they do not."""
    matrix, size = np.hstack([multiples, others]), CLOSE * np.linalg.norm(right)
    found = np.linalg.lstsq(matrix, right)[0]
    count = multiples.shape[1]
    agree = np.linalg.norm(matrix @ found - right) <= size < np.linalg.norm(multiples @ found[:count])
    return np.asarray(found[count:]) if agree else None


def _flux_rows(
    equation: Coefficients, condition: Coefficients, normals: FloatArray, known: Mapping[Key, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rows by which a multiple of a condition is the flux, one for each derivative and point.

    Their columns are the multiple, and by how much each share exceeds the known one.
    """
    d, nothing = normals.shape[1], np.zeros(len(normals))
    slopes = [(n, k) for n in dict.fromkeys(n for n, _ in [*equation, *condition]) for k in range(d)]
    multiple = np.array([condition.get((n, both(d, k, -1)), nothing) for n, k in slopes])
    right = np.array([equation.get((n, both(d, k, k)), nothing) * normals[:, k] for n, k in slopes])
    others = np.zeros((len(known), *right.shape))
    for other, ((_, n, axis, along), share) in zip(others, known.items(), strict=True):
        value = equation[n, both(d, axis, along)]
        there, back = slopes.index((n, along)), slopes.index((n, axis))
        other[there], other[back] = -value * normals[:, axis], value * normals[:, along]
        right[there] += share * value * normals[:, axis]
        right[back] += (1.0 - share) * value * normals[:, along]
    one, two = (max(float(np.abs(own).max()), sys.float_info.min) for own in (multiple, right))
    return multiple.reshape(-1, 1) / one, others.reshape(len(known), -1).T / two, right.ravel() / two


def _mixed(index: MultiIndex) -> list[tuple[int, int]]:
    """Return the pair of axes of a derivative that is once along each of two axes; of others none."""
    return list(combinations(np.flatnonzero(index).tolist(), 2)) if sum(index) == 2 else []


@lru_cache(maxsize=64)
def both(dimension: int, one: int, two: int) -> MultiIndex:
    """Return the multi-index of a derivative along two axes, or twice along one."""
    return tuple((axis == one) + (axis == two) for axis in range(dimension))
