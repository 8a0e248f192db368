"""The size and length of variation of unknown functions that make the data most probable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise, product

import numpy as np
import sympy as sp
from scipy.linalg import solve_triangular

from pibls.checks import FloatArray
from pibls.features.reference import Memory
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import Field, MultiIndex, Problem
from pibls.problem import data as data_function
from pibls.problem.domain import DomainLike
from pibls.problem.evaluate import compile_function
from pibls.quadrature.roots import ROUNDING
from pibls.refinement.standards import MOST, NEGLIGIBLE

# Of the extent of the domain; longer ones are sure of no straight line.
_LENGTHS = 0.05 * 10.0 ** np.linspace(0.0, 0.8, 5)
# Priors with many derivatives are too sure of what lies between data, unless these show most waves and how they fall.
ORDERS = (1.5, 3.5, 6.5, 10.5)
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


def spanned(columns: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the span of columns."""
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > ROUNDING * values.max(initial=0.0)])


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
            basis = spanned(others)
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
    """Return the priors that make linearised data most probable, one function after the other, from those so far.

    Sizes and lengths may be fixed. Where the noise is found at the same time, the floor is the least it may be, by what
    was supposed so far.
    """
    found = list(about)
    for number, own in enumerate(bases):
        size, length = fixed[number]
        whole = _whitened(data, number, bases, found)
        ratios = found[number].size * _SIZES if size is None or floor is not None else np.array([size])
        best = (-np.inf, found[number], 0.0)
        for orders in (ORDERS[:2], ORDERS[2:]):
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


_WAVES = {1: 40, 2: 12, 3: 6}  # half-waves along each axis that a basis has


@dataclass(frozen=True, eq=False)
class Cosines:
    """Cosines on a box around the domain, over the coordinates that a function depends on.

    Their coefficients have independent normal priors. Variances fall with the wave number as in a Matérn process:
    ``size² (1 + |length · wave number|²)^(−smoothness − d/2)``, scaled so that the function varies by about ``size``.
    """

    name: str  # name of the function
    axes: tuple[int, ...]  # which coordinates of the domain it depends on
    # low, length: start and lengths of the box
    low: FloatArray
    length: FloatArray
    waves: FloatArray  # half-waves along each axis, one row per cosine; the first is the constant
    _seen: Memory = field(default_factory=Memory)

    @classmethod
    def of(cls, function: Field, domain: DomainLike) -> Cosines:
        """Return a basis for a function on a domain."""
        axes = tuple(domain.coordinates.index(c) for c in function.args)
        bounds = np.asarray(domain.bounds, dtype=np.float64)[list(axes)]
        span = bounds[:, 1] - bounds[:, 0]
        most = _WAVES[len(axes)]
        waves = np.array([k for k in product(range(most + 1), repeat=len(axes)) if sum(i * i for i in k) <= most**2])
        order = np.lexsort((*waves.T, np.square(waves).sum(axis=1)))
        low, length = bounds[:, 0] - SETTINGS.beyond * span, (1 + 2 * SETTINGS.beyond) * span
        return cls(function.label, axes, low, length, waves[order].astype(np.float64))

    @property
    def size(self) -> int:
        """Number of cosines."""
        return len(self.waves)

    @property
    def extent(self) -> FloatArray:
        """Lengths of the domain along its axes."""
        return np.asarray(self.length / (1 + 2 * SETTINGS.beyond))

    def relative(self, length: float | None) -> float | None:
        """Return a length in units of the domain."""
        return None if length is None else float(length / np.mean(self.extent))

    def first(self, function: Field, problem: Problem) -> FloatArray:
        """Return the coefficients of the start of a function: a constant, or the nearest to an expression."""
        found = np.zeros(self.size)
        if function.start is None:
            found[0] = 1.0 if _is_factor(function, problem) else 0.0
            return found
        start = compile_function(function.start, problem.domain.coordinates)
        if start.constant is not None:
            found[0] = start.constant
            return found
        X = problem.domain.sample(8 * self.size, "kronecker", 0)
        return np.asarray(np.linalg.lstsq(self.values(X, (0,) * X.shape[1]), start(X), rcond=1e-8)[0])

    def values(self, X: FloatArray, multi_index: MultiIndex) -> FloatArray:
        """Return a derivative of every cosine at points of the domain: shape (n, size)."""
        place = X[:, list(self.axes)].tobytes()  # a function of space is the same at all times
        made = self._seen.recalled(place, [multi_index], lambda new: {index: self._values(X, index) for index in new})
        return made[multi_index]

    def _values(self, X: FloatArray, multi_index: MultiIndex) -> FloatArray:
        if any(order and axis not in self.axes for axis, order in enumerate(multi_index)):
            return np.zeros((len(X), self.size))
        found = np.ones((len(X), self.size))
        for number, axis in enumerate(self.axes):
            # Many functions share a wave along an axis.
            waves, used = np.unique(self.waves[:, number], return_inverse=True)
            rates, order = np.pi * waves / self.length[number], multi_index[axis]
            phase = (X[:, axis, None] - self.low[number]) * rates
            found *= (rates**order * np.cos(phase + order * np.pi / 2))[:, used]
        return found

    def known(self, node: sp.Expr, coefficients: FloatArray) -> sp.Expr:
        """Return the function with given coefficients, or a derivative of it, as a known function."""
        inner = node.expr if isinstance(node, sp.Derivative) else node
        orders = dict.fromkeys(inner.args, 0)
        for symbol, count in node.variable_count if isinstance(node, sp.Derivative) else ():
            if symbol not in orders:
                return sp.S.Zero
            orders[symbol] += int(count)
        dimension = max(self.axes) + 1
        index = [0] * dimension
        for axis, order in zip(self.axes, orders.values(), strict=True):
            index[axis] = order

        def evaluated(*columns: FloatArray) -> FloatArray:
            X = np.zeros((len(columns[0]), dimension))
            X[:, list(self.axes)] = np.stack(columns, axis=1)
            return np.asarray(self._values(X, tuple(index)) @ coefficients)

        marks = "".join(str(s) * n for s, n in orders.items())
        return data_function(f"{self.name}_{marks}" if marks else self.name, evaluated, *inner.args)


def _is_factor(function: Field, problem: Problem) -> bool:
    """Tell whether a function multiplies fields, rather than standing by itself like a source."""
    terms = [(t, s.form) for s in problem.statements for t in s.form.terms if t.field == function.label]
    return any(set(form.slots) & term.coefficient.free_symbols for term, form in terms)


def spectrum(waves: FloatArray, length: float, smoothness: float) -> tuple[FloatArray, FloatArray]:
    """Return the mean squares of cosines, and their variances in a prior up to a factor."""
    # A cosine has a mean square of a half along each axis in which it is not constant.
    squares = 0.5 ** np.count_nonzero(waves, axis=1)
    frequencies = np.pi * np.linalg.norm(waves, axis=1) / (1 + 2 * SETTINGS.beyond)
    return squares, (1.0 + (length * frequencies) ** 2) ** (-smoothness - waves.shape[1] / 2) / squares
