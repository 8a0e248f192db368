"""How mixed derivatives of an equation flow across faces, and which rotations do no work in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from pibls.cells.balances import Turn, turns_of
from pibls.checks import FloatArray
from pibls.features import MultiIndex
from pibls.geometry.points import interior_points
from pibls.problem import OnPart, Statement
from pibls.quadrature.roots import CLOSE, SCAN

if TYPE_CHECKING:
    from pibls.cells.rows import Rows

__all__ = ["MixedDerivatives", "both"]

Key = tuple[int, int, int, int]
"""An equation, a field, an axis across which a mixed derivative flows, and the other axis of the derivative."""


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

        The equation alone does not determine it. Equations that are written as divergences do, and so do flux
        conditions. Without any, the share does not matter.
        """
        found: dict[Key, float] = {}
        for statement in self.rows.problem.statements:
            if isinstance(statement.place, OnPart) and statement.form.is_linear:
                X, normals = statement.place.part.sample(1)
                axis = int(np.abs(normals[0]).argmax())
                if abs(normals[0, axis]) >= 1 - CLOSE:
                    given = self._means(statement, X, normals)
                    for i, equation in enumerate(self.rows.equations):
                        if equation.form.is_linear:
                            found.update(_given_shares(self._means(equation, X, None), given, i, axis))
        for i, given_flux in enumerate(self.fluxes()):
            if given_flux is not None and given_flux.form.is_linear:
                found.update(self._shares_of(i, given_flux))
        return found

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
    own: dict[tuple[int, MultiIndex], float], given: dict[tuple[int, MultiIndex], float], i: int, axis: int
) -> dict[Key, float]:
    """Return the shares of mixed derivatives of an equation that follow from a condition on a side across an axis."""
    d = len(next(iter(own))[1])
    along = [tuple(int(k == one) for k in range(d)) for one in range(d)]
    normal = [(n, value) for (n, index), value in given.items() if index == along[axis] and value]
    ratios = [own[n, both(d, axis, axis)] / value for n, value in normal if own.get((n, both(d, axis, axis)))]
    found = {}
    for other in range(d) if ratios else ():
        for (number, index), value in own.items():
            if other != axis and index == both(d, axis, other) and value:
                share = ratios[0] * given.get((number, along[other]), 0.0) / value
                found[i, number, axis, other], found[i, number, other, axis] = share, 1.0 - share
    return found


@lru_cache(maxsize=64)
def both(dimension: int, one: int, two: int) -> MultiIndex:
    """Return the multi-index of a derivative along two axes, or twice along one."""
    return tuple((axis == one) + (axis == two) for axis in range(dimension))
