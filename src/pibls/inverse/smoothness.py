"""The size and length of variation of unknown functions that make the data most probable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np
from scipy.linalg import solve_triangular

from pibls.checks import FloatArray
from pibls.inverse.cosines import Cosines, spectrum
from pibls.quadrature.roots import ROUNDING
from pibls.refinement.standards import MOST, NEGLIGIBLE

# Of the extent of the domain; longer ones are sure of no straight line.
_LENGTHS = 0.05 * 10.0 ** np.linspace(0.0, 0.8, 5)
_ORDERS = (1.5, 3.5)  # priors with more derivatives are too sure of what lies between data,
_HIGH_ORDERS = (6.5, 10.5)  # unless these show most waves, and thereby how fast they fall
_SIZES = np.geomspace(1e-3, 1e9, 49)  # of the function's own size, in units of the noise supposed so far


@dataclass(frozen=True)
class Smoothness:
    """Prior of an unknown function: how much it varies, over which share of the domain, how many derivatives it has."""

    size: float
    length: float
    order: float

    def is_near(self, other: Smoothness) -> bool:
        """Tell whether another prior says about the same.

        >>> Smoothness(1.0, 0.5, 3.5).is_near(Smoothness(1.05, 0.5, 3.5))
        True
        """
        alike = (self.length, self.order) == (other.length, other.order)
        return alike and bool(abs(np.log(self.size / other.size)) < NEGLIGIBLE)

    def variances(self, basis: Cosines) -> FloatArray:
        """Return the prior variances of all coefficients in a basis but the constant's: a Matérn process.

        >>> import sympy as sp
        >>> from pibls.geometry import Interval
        >>> from pibls.problem import field
        >>> x = sp.Symbol("x", real=True)
        >>> basis = Cosines.of(field("a", x), Interval((x, 0, 1)))
        >>> float(Smoothness(2.0, 0.3, 3.5).variances(basis).sum().round(6))  # twice the mean square
        8.0
        """
        squares, found = spectrum(basis.waves[1:], self.length, self.order)
        return np.asarray(self.size**2 * found / float(squares @ found))

    def left_out(self, basis: Cosines) -> float:
        """Return the standard deviation of the part of a function that lies beyond the waves of a basis."""
        most = int(basis.waves.max())
        grid = np.array(list(product(range(2 * most + 1), repeat=len(basis.axes))), dtype=np.float64)
        beyond = grid[np.square(grid).sum(axis=1) > most**2]
        shares = [float(np.dot(*spectrum(waves, self.length, self.order))) for waves in (beyond, basis.waves[1:])]
        return float(self.size * np.sqrt(shares[0] / shares[1]))


@dataclass(frozen=True, eq=False)
class LinearisedData:
    """Linearised data in units of the noise."""

    rows: FloatArray  # derivatives by the coefficients of all functions but the constants, one function after the other
    target: FloatArray  # what zero coefficients do not explain
    count: int  # how many data there are, less what all else can explain, of which nothing is known

    @classmethod
    def of(cls, rows: FloatArray, target: FloatArray, others: FloatArray) -> LinearisedData:
        """Project out the other unknowns, and reduce the rows to as many as columns."""
        if others.shape[1]:
            left, values, _ = np.linalg.svd(others, full_matrices=False)
            basis = left[:, values > ROUNDING * values.max(initial=0.0)]
            rows, target = rows - basis @ (basis.T @ rows), target - basis @ (basis.T @ target)
        upper = np.asarray(np.linalg.qr(np.column_stack([rows, target]), mode="r"))
        return cls(upper[:, :-1], upper[:, -1], max(len(target) - others.shape[1], 1))


def most_probable(
    data: LinearisedData,
    bases: tuple[Cosines, ...],
    about: list[Smoothness],
    fixed: list[tuple[float | None, float | None]],
    floor: float | None,
) -> list[Smoothness]:
    """Return the priors that make linearised data most probable, one function after the other.

    Parameters
    ----------
    data
        All that is known.
    bases, about
        The functions, and their priors so far.
    fixed
        Sizes and lengths that are given.
    floor
        Where the noise is not known and found at the same time, the least it may be, by what was supposed so far.
    """
    found = list(about)
    for number, own in enumerate(bases):
        size, length = fixed[number]
        whole = _whitened(data, number, bases, found)
        ratios = found[number].size * _SIZES if size is None or floor is not None else np.array([size])
        best = (-np.inf, found[number], 0.0)
        for orders in (_ORDERS, _HIGH_ORDERS):
            for chosen, order in product(_LENGTHS if length is None else [length], orders):
                unit = Smoothness(1.0, float(chosen), order)
                scores, noise, shown = _evidence(whole, np.sqrt(unit.variances(own)), ratios, floor, size)
                top = int(np.argmax(scores))
                one = (float(scores[top]), replace(unit, size=float(ratios[top] * noise[top])), float(shown[top]))
                best = max(best, one, key=lambda found: found[0])
            if best[2] < MOST:
                break
        found[number] = best[1]
    return found


def _whitened(
    data: LinearisedData, number: int, bases: tuple[Cosines, ...], priors: list[Smoothness]
) -> LinearisedData:
    """Return data on one function in units of the noise, which other functions add to."""
    starts = np.cumsum([0, *(basis.size - 1 for basis in bases)]).tolist()
    blocks = [data.rows[:, a:b] for a, b in pairwise(starts)]
    others = [
        block * np.sqrt(prior.variances(basis))
        for i, (block, basis, prior) in enumerate(zip(blocks, bases, priors, strict=True))
        if i != number
    ]
    if not others:
        return data
    upper = np.asarray(np.linalg.qr(np.vstack([np.hstack(others).T, np.eye(len(data.target))]), mode="r"))
    both = solve_triangular(upper.T, np.column_stack([blocks[number], data.target]), lower=True)
    return LinearisedData(both[:, :-1], both[:, -1], data.count)


def _evidence(
    data: LinearisedData, deviations: FloatArray, ratios: FloatArray, floor: float | None, size: float | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the logarithm of the probability of the data for every ratio of size to noise, and the noise.

    The noise is the most probable one unless it is given, or the size is. Also, the share of waves that data show.
    """
    left, values, _ = np.linalg.svd(data.rows * deviations, full_matrices=False)
    inside, total = left.T @ data.target, float(data.target @ data.target)
    spread = 1.0 + np.square(np.outer(ratios, values))
    outside = max(total - float(inside @ inside), 0.0)
    missing = (np.square(inside) / spread).sum(axis=1) + outside
    noise = np.ones(len(ratios))
    if floor is not None:
        noise = np.maximum(np.sqrt(missing / data.count) if size is None else size / ratios, floor)
    misfit = 2.0 * data.count * np.log(noise) + missing / noise**2
    shown = (1.0 - 1.0 / spread).sum(axis=1) / len(deviations)
    return np.asarray(-0.5 * (np.log(spread).sum(axis=1) + misfit)), noise, np.asarray(shown)
