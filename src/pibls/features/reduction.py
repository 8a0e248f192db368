"""Reduced coordinates: sums over the coordinates of a space, in which a function of many variables is one of few.

A function that stays the same when coordinates are exchanged depends on sums of powers of them alone, and near most
points of a space of many dimensions a few of these sums tell all. Nodes that take reduced coordinates have exact
derivatives by the chain rule: a linear differential form in all coordinates becomes one in the reduced ones, with
coefficients that vary over the points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.polynomial import Legendre, Polynomial

from pibls.checks import HIGHEST_ORDER, check_integer
from pibls.errors import FeatureError
from pibls.features.arrays import Array, MultiIndex, float_array, same_home
from pibls.features.forms import Form
from pibls.features.taylor import partitions


@dataclass(frozen=True, eq=False)
class Reduction:
    """Reduced coordinates q_k(x) = Σ_i A_ik P_k(x_i/h_i), with Legendre polynomials P_k of given degrees.

    The sum of two coordinates, and that of their squares up to a factor and a constant:

    >>> sums = Reduction([[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0], (1, 2))
    >>> sums.coordinates(np.array([[3.0, 1.0]])).tolist()
    [[4.0, 14.0]]
    """

    weights: Array  # the factors A, one row per coordinate and one column per reduced coordinate
    half_widths: Array  # the lengths h that coordinates are divided by
    degrees: tuple[int, ...]  # of the polynomials, one per reduced coordinate, each at least one

    def __post_init__(self) -> None:
        owner = type(self).__name__
        weights = float_array("weights", self.weights, owner, (None, len(self.degrees)))
        half = float_array("half_widths", self.half_widths, owner, (weights.shape[0],))
        if not same_home(weights, half) or not bool(array_namespace(half).all(half > 0)):
            raise FeatureError(f"The 'half_widths' of {owner} must be positive, and of the library of the weights.")
        degrees = tuple(
            check_integer("degrees", degree, owner, minimum=1, maximum=HIGHEST_ORDER, error=FeatureError)
            for degree in self.degrees
        )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "half_widths", half)
        object.__setattr__(self, "degrees", degrees)

    @property
    def dimension(self) -> int:
        """Number of all coordinates."""
        return int(self.weights.shape[0])

    @property
    def size(self) -> int:
        """Number of reduced coordinates."""
        return len(self.degrees)

    def to(self, asarray: Callable[[Array], Array]) -> Reduction:
        """Return the same reduction with its arrays passed through ``asarray``."""
        return Reduction(asarray(self.weights), asarray(self.half_widths), self.degrees)

    def coordinates(self, X: Array) -> Array:
        """Return the reduced coordinates (n, k) of points (n, d), which are centred."""
        xp, scaled = array_namespace(X), X / self.half_widths
        found = [_horner(_slope(n, 0), scaled) @ self.weights[:, k] for k, n in enumerate(self.degrees)]
        return xp.stack(found, axis=1)

    def pulled_back(self, X: Array, forms: Sequence[Form]) -> list[Form]:
        """Return linear differential forms in all coordinates as forms in the reduced ones, at centred points.

        ∂^α U(q(x)) is a sum over the ways to split α, by the chain rule; polynomials of one coordinate each have no
        mixed derivatives.

        >>> square = Reduction([[2 / 3]] * 3, [1.0] * 3, (2,))  # |x|² − 1
        >>> laplacian = {(2, 0, 0): 1.0, (0, 2, 0): 1.0, (0, 0, 2): 1.0}
        >>> found = square.pulled_back(np.array([[0.0, 1.0, 2.0]]), [laplacian])[0]  # 6 U′ + 4|x|² U″
        >>> {index: factor.round(9).tolist() for index, factor in found.items()}
        {(1,): [[6.0]], (2,): [[20.0]]}
        """
        scaled = X / self.half_widths
        used = np.asarray(array_namespace(scaled).astype(self.weights != 0.0, scaled.dtype).tolist())

        @cache
        def polynomial(degree: int, order: int) -> Array:
            return _horner(_slope(degree, order), scaled)

        @cache
        def slopes(axis: int, order: int) -> list[tuple[int, Array]]:
            """Return the derivatives of reduced coordinates along one axis that do not vanish: a column (n, 1) each."""
            factors = self.weights[axis, :] / self.half_widths[axis] ** order
            own = [k for k in np.flatnonzero(used[axis]).tolist() if self.degrees[k] >= order]
            return [(k, polynomial(self.degrees[k], order)[:, axis : axis + 1] * factors[k]) for k in own]

        return [_pulled_back(form, self.size, slopes) for form in forms]


def _pulled_back(form: Form, size: int, slopes: Callable[[int, int], list[tuple[int, Array]]]) -> Form:
    found: dict[MultiIndex, Any] = {}
    for alpha, coefficient in form.items():
        for number, parts in partitions(alpha):
            axes = [[(axis, order) for axis, order in enumerate(part) if order] for part in parts]
            if any(len(own) > 1 for own in axes):
                continue
            for factors in product(*(slopes(*own[0]) for own in axes)):
                index = [0] * size
                for k, _ in factors:
                    index[k] += 1
                term = math.prod((slope for _, slope in factors), start=number * coefficient)
                found[tuple(index)] = found[tuple(index)] + term if tuple(index) in found else term
    return found


@cache
def _slope(degree: int, order: int) -> tuple[float, ...]:
    """Return the coefficients of a derivative of a Legendre polynomial, in ascending order."""
    polynomial = Legendre.basis(degree).deriv(order) if order else Legendre.basis(degree)
    return tuple(float(value) for value in polynomial.convert(kind=Polynomial).coef)


def _horner(coefficients: Sequence[float], x: Array) -> Array:
    *lower, leading = coefficients
    total = array_namespace(x).full_like(x, leading)
    for coefficient in reversed(lower):
        total = total * x + coefficient
    return total
