"""A solution beside the richer one: expressions at points of both, and how much of an error both may miss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from pibls.cells.line_quadrature import LineQuadrature
from pibls.checks import FloatArray, IntArray
from pibls.features.reference import orthonormal
from pibls.geometry.across import BESIDE
from pibls.problem import MultiIndex
from pibls.problem.field_expressions import Expression
from pibls.problem.unknown_numbers import open_in
from pibls.quadrature.roots import CLOSE
from pibls.quantities.quantity import Quantity
from pibls.refinement.standards import NEGLIGIBLE
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork
from pibls.solution.json_records import Network

_UNKNOWN = 12  # degree of a network that has none
_HIGHEST = 2  # degrees that a rougher solution lacks: one alone may be missing for symmetry
_LEAST = 2.0  # distances to the richer solution in an error: up to half of it, the richer solution shares
_ASIDE = 1e-6  # of a part: how far from a wall one is plainly on one side


@dataclass(frozen=True, eq=False)
class SolutionPair:
    """A solution, and the richer one if there is any."""

    solution: Solution
    line_quadratures: dict[Any, LineQuadrature] = field(default_factory=dict)  # lines through boxes that are cut

    @cached_property
    def richer(self) -> Solution | None:
        """The richer solution."""
        return None if self.solution.richer is None else self.solution.richer_solution

    @cached_property
    def rougher(self) -> Solution | None:
        """The solution by cells without the highest degrees of its functions, if a richer one shares cells with it.

        In cells that both have in common they hardly differ, whatever their error is.
        """
        own, degree = self.solution.network, self.solution.diagnostics.settings.get("degree")
        other = None if self.richer is None else self.richer.network
        if not isinstance(own, CellNetwork) or not isinstance(other, CellNetwork) or degree is None:
            return None
        if self.solution.error_estimate is None or other.reference.size != own.reference.size:
            return None
        transform = orthonormal(own.reference, math.comb(degree + own.dimension, degree), degree).transform
        low = math.comb(max(0, degree - _HIGHEST) + own.dimension, own.dimension)
        coefficients = own.weights @ transform / np.square(transform).sum(axis=0)
        coefficients[..., low:] = 0.0
        return replace(self.solution, network=replace(own, weights=coefficients @ transform.T), richer=None)

    @property
    def degree(self) -> int:
        """The degree of the functions on a cell."""
        return int(self.solution.diagnostics.settings.get("degree", _UNKNOWN))

    @property
    def finest(self) -> Network:
        """The network with more cells."""
        networks = [solution.network for solution in self.both]
        return max(networks, key=lambda network: network.cells if isinstance(network, CellNetwork) else 0)

    @cached_property
    def both(self) -> list[Solution]:
        """The solution, and the richer one."""
        return [self.solution] if self.richer is None else [self.solution, self.richer]

    def expression(self, expression: object, owner: str) -> Expression:
        """Return an expression of fields, with the values of parameters and unknown numbers put in."""
        problem, found = self.solution.problem, self.solution.parameters
        known = {} if found is None else {p: sp.Float(found[p.name].value) for p in problem.parameters}
        stated, values = problem.origin or (problem, {})
        known |= {symbol: values[symbol.name] for symbol in open_in(stated.parameters) if symbol.name in values}
        return Expression.of(expression, self.solution.problem, known, owner)

    def values(
        self,
        solution: Solution,
        expression: Expression,
        X: FloatArray,
        normals: FloatArray | None = None,
        inward: FloatArray | None = None,
    ) -> FloatArray:
        """Return an expression at points; ``inward`` points to the side on which fields are meant."""

        def beside(side: float) -> FloatArray:
            return X if inward is None else X - side * _aside(solution, X)[:, None] * inward

        def state(Y: FloatArray, wanted: Sequence[tuple[str, MultiIndex]], side: float) -> Sequence[FloatArray]:
            network = solution.network
            if inward is None or not isinstance(network, CellNetwork):
                return solution.evaluate(Y, wanted)
            parts = network.locate(Y - side * _aside(solution, Y)[:, None] * inward)
            found = network.evaluate(Y, dict.fromkeys(index for _, index in wanted), parts)
            rows = {name: solution.weights[i] for i, name in enumerate(solution.problem.field_names)}
            return [found[index] @ rows[name] for name, index in wanted]

        return expression.at(X, normals, state, beside)

    def compared(
        self,
        expression: Expression,
        X: FloatArray,
        normals: FloatArray | None = None,
        inward: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return an expression at points, and as far away from that as its error is.

        That is its value by the richer solution; in cells that both share, by the solution without its highest degrees
        if that is farther away.
        """
        own = self.values(self.solution, expression, X, normals, inward)
        if self.richer is None:
            return own, own
        other = self.values(self.richer, expression, X, normals, inward)
        if self.rougher is not None and len(shared := self._shared(X, inward)):
            sides = (None if way is None else way[shared] for way in (normals, inward))
            rough = self.values(self.rougher, expression, X[shared], *sides)
            farther = np.abs(rough - own[shared]) > np.abs(other[shared] - own[shared])
            other[shared] = np.where(farther, rough, other[shared])
        return own, other

    def _shared(self, X: FloatArray, inward: FloatArray | None) -> IntArray:
        """Return which points are in cells that both solutions have."""
        sizes = []
        for solution in self.both:
            network = solution.network
            assert isinstance(network, CellNetwork)
            Y = X if inward is None else X + _aside(solution, X)[:, None] * inward
            sizes.append(network.halves[network.locate(Y)])
        return np.flatnonzero((np.abs(sizes[0] - sizes[1]) <= CLOSE * sizes[0]).all(axis=1))

    def error(self, apart: Any, size: Any) -> Any:
        """Return the error of a number of some size, from its distance to that of the richer solution.

        An error in cells that both solutions share spreads to all others, and the distance does not show it: no number
        counts as known better than by a negligible share of the estimated error.
        """
        estimate = self.solution.error_estimate
        if self.rougher is None or estimate is None or not np.isfinite(estimate):
            return self.magnified * apart
        return np.maximum(self.magnified * apart, NEGLIGIBLE * estimate * size)

    @property
    def magnified(self) -> float:
        """By how much errors are larger than distances to the other solution of the estimate."""
        share = self.solution.distance_share
        return max(share, _LEAST * min(1.0, share))

    def quantity(self, value: float, error: float, place: FloatArray | None = None, note: str = "") -> Quantity:
        """Return a quantity; without a richer solution, nothing is known of its error."""
        if self.richer is None:
            method = self.solution.diagnostics.method
            note = f"the solution by {method} has no richer one beside it that would tell the error"
            return Quantity(value, np.nan, place, note)
        return Quantity(value, error, place, note)


def _aside(solution: Solution, X: FloatArray) -> FloatArray:
    """Return how far from points one is plainly on one side of a wall."""
    network = solution.network
    if isinstance(network, CellNetwork):
        return np.asarray(_ASIDE * network.halves[network.locate(X)].min(axis=1))
    return np.full(len(X), BESIDE * float(np.ptp(solution.problem.domain.bounds, axis=1).max()))
