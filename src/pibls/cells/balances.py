"""The functions that balances are tested with: one for each equation, and the rotations of an elastic body.

Integrated over a part, the equations say that forces balance. Where the stress is symmetric, moments balance as well:
a rotation does no work inside the body. Without that, small cells could exert a couple that turns everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from pibls.cells.parts import CellPart
from pibls.checks import FloatArray
from pibls.quadrature.roots import CLOSE

__all__ = ["Balances", "Turn", "turns_of"]

Flux = Mapping[Any, FloatArray]
"""The coefficients of the derivatives of fields in the flux of an equation along one axis, at a few points."""


class Turn(NamedTuple):
    """A rotation in the plane of two axes, and the equations of the forces along them."""

    axes: tuple[int, int]
    equations: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Balances:
    """The functions that the balance of every part is tested with.

    Attributes
    ----------
    equations
        Number of equations, each of which is tested with the function one.
    turns
        The rotations. Those of a part turn about its centre, those of the tree about a common one.
    center, radius
        The common centre, and the distance from it at which a rotation moves by one.

    Examples
    --------
    A force at a point has a moment about the centre of a part, and about that of the tree.

    >>> from types import SimpleNamespace
    >>> balances = Balances(2, (Turn((0, 1), (0, 1)),), np.zeros(2), 2.0)
    >>> part, point = SimpleNamespace(center=np.array([3.0, -2.0]), half=np.ones(2)), np.array([[4.0, -2.0]])
    >>> own = balances.summed(balances.tests(part, point)[:, None] * np.array([[3.0], [5.0]]))
    >>> own.ravel().tolist()
    [3.0, 5.0, 5.0]
    >>> whole = np.linalg.solve(balances.shift(part, np.ones(3)), own * balances.levers(part)[:, None])
    >>> whole.ravel().tolist(), (4 * 5 + 2 * 3) / 2
    ([3.0, 5.0, 13.0], 13.0)
    """

    equations: int
    turns: tuple[Turn, ...]
    center: FloatArray
    radius: float

    @property
    def count(self) -> int:
        """Number of balances of a part."""
        return self.equations + len(self.turns)

    def tests(self, part: CellPart, X: FloatArray) -> FloatArray:
        """Return one and, if there are rotations, the levers along every axis, at points: shape (functions, points)."""
        ones = np.ones((1, len(X)))
        return np.concatenate([ones, ((X - part.center) / part.half.max()).T]) if self.turns else ones

    def summed(self, values: FloatArray) -> FloatArray:
        """Return the balances from the equations tested with the functions, shape (functions, equations, ...)."""
        if not self.turns:
            return np.asarray(values[0])
        moments = [values[1 + a, j] - values[1 + b, i] for (a, b), (i, j) in self.turns]
        return np.concatenate([values[0], moments])

    def integrated(self, part: CellPart, values: Sequence[FloatArray]) -> FloatArray:
        """Return the balances of values at the points of a part, an array for each equation."""
        weights = self.tests(part, part.points) * part.integrals
        return self.summed(np.stack([weights @ own for own in values], axis=1))

    def of_equations(self, values: FloatArray) -> FloatArray:
        """Return one value per balance from one per equation: that of a moment is the smaller one of its forces."""
        moments = [min(values[i], values[j]) for _, (i, j) in self.turns]
        return np.concatenate([values, moments]) if moments else values

    def levers(self, part: CellPart) -> FloatArray:
        """Return the length of the levers of a part, relative to those of the tree, for every balance."""
        return np.repeat([1.0, part.half.max() / self.radius], [self.equations, len(self.turns)])

    def shift(self, part: CellPart, units: FloatArray) -> FloatArray:
        """Return the matrix from the balances of the tree to those of a part.

        ``units`` are those of the balances of the tree. The levers of the part are taken to be as long.
        """
        found, away = np.eye(self.count), (part.center - self.center) / self.radius
        for k, ((a, b), (i, j)) in enumerate(self.turns, self.equations):
            found[k, j], found[k, i] = -away[a] * units[k] / units[j], away[b] * units[k] / units[i]
        return found


def turns_of(fluxes: Sequence[Sequence[Flux]], axes: Sequence[int]) -> tuple[Turn, ...]:
    """Return the rotations that do no work in the equations with given fluxes, by equation and axis.

    >>> one = np.ones(1)
    >>> stress = [[{"u_x": 2 * one}, {"u_y": one, "v_x": one}], [{"u_y": one, "v_x": one}, {"v_y": 2 * one}]]
    >>> turns_of(stress, [0, 1])
    (Turn(axes=(0, 1), equations=(0, 1)),)
    >>> turns_of([[{"u_x": one}, {"u_y": one}], [{"v_x": one}, {"v_y": one}]], [0, 1])
    ()
    """
    found = []
    for a, b in combinations(axes, 2):
        for i, j in permutations(range(len(fluxes)), 2):
            one, two = fluxes[i][b], fluxes[j][a]
            size = max((np.abs(value).max() for value in one.values()), default=0.0)
            gaps = [np.abs(one.get(key, 0.0) - two.get(key, 0.0)).max() for key in {**one, **two}]
            if size > 0.0 and max(gaps) <= CLOSE * size:
                found.append(Turn((a, b), (i, j)))
    return tuple(found)
