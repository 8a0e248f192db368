"""Measurements, their noise, and priors: the rows of the search; and whether residuals are noise or have a pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaincc, ndtr, ndtri, stdtr

from pibls.checks import BoolArray, FloatArray
from pibls.inverse.coordinates import Coordinates
from pibls.inverse.parametric import Parametric
from pibls.inverse.response import Response, predicted
from pibls.inverse.smoothness import spanned
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import AtPoints, Statement
from pibls.quadrature.roots import ROUNDING
from pibls.refinement.standards import MOST, NEGLIGIBLE, POINTS, SLIGHT

if TYPE_CHECKING:
    from pibls.inverse.descent import Place


@dataclass(frozen=True, eq=False)
class Measurements:
    """All measurements of a problem, one set after the other, and priors."""

    parametric: Parametric
    coordinates: Coordinates
    floor: float = 0.0  # share of the size of measurements that solutions are wrong by: no noise is less
    # means, deviations: prior of the coefficients of unknown functions; that of numbers is in their coordinates
    means: FloatArray = field(default_factory=lambda: np.zeros(0))
    deviations: FloatArray = field(default_factory=lambda: np.zeros(0))
    until: float = np.inf  # time after which measurements are left aside
    left_out: tuple[float, ...] = ()  # standard deviation of what every unknown function has beyond its basis
    taken: float = 0.0  # how many degrees of freedom fields took that measurements helped to determine

    @property
    def wrong(self) -> float:
        """Share of measurements that predictions are wrong by at least."""
        return max(self.floor, ROUNDING)

    @cached_property
    def kept(self) -> BoolArray:
        """Which rows are not left aside."""
        if np.isinf(self.until):
            return np.ones(len(self.targets), dtype=bool)
        early = [
            s.place.points[:, -1] <= self.until for s in self.parametric.observations if isinstance(s.place, AtPoints)
        ]
        return np.concatenate(early)

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """Where the rows of every set stand."""
        ends = np.cumsum([0, *(len(s.targets) for s in self.parametric.observations if s.targets is not None)])
        return tuple(slice(a, b) for a, b in zip(ends.tolist(), ends.tolist()[1:], strict=False))

    @property
    def sets(self) -> list[tuple[Statement, slice]]:
        """Every set, measurements first, and where its rows stand."""
        return list(zip(self.parametric.observations, self.spans, strict=True))

    @property
    def measured(self) -> list[tuple[Statement, slice]]:
        """The measurements alone, and where their rows stand."""
        return self.sets[: len(self.parametric.measured)]

    @cached_property
    def targets(self) -> FloatArray:
        """All that was measured."""
        return np.concatenate(
            [np.empty(0), *(s.targets for s in self.parametric.observations if s.targets is not None)]
        )

    @cached_property
    def robust(self) -> BoolArray:
        """Which rows may be outliers."""
        huber = [np.full(span.stop - span.start, s.loss == "huber") for s, span in self.sets]
        return np.concatenate([np.empty(0, dtype=bool), *huber])

    @cached_property
    def sizes(self) -> FloatArray:
        """How large the measurements of a set are, per row."""
        roots = [np.sqrt(np.mean(np.square(self.targets[span]))) for span in self.spans]
        found = np.array([root if root > 0 else 1.0 for root in roots])
        return np.repeat(found, [span.stop - span.start for span in self.spans])

    @property
    def estimated(self) -> bool:
        """Whether the noise of some set is found from the data."""
        return any(map(_is_estimated, self.parametric.observations))

    def compared(self, response: Response, vector: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return predictions less measurements, and the derivative of these by the unknowns."""
        found = [predicted(self.parametric, s, response, vector) for s in self.parametric.observations]
        values, slopes = np.concatenate([own for own, _ in found]), np.vstack([own for _, own in found])
        reach, point = self.reach(response, vector), self.coordinates.point(vector)
        numbers, large = len(self.parametric.problem.parameters), self.coordinates.sizes(point)
        with np.errstate(divide="ignore"):
            shares = np.where(np.arange(len(vector)) < numbers, 1.0 / (large * self.coordinates.rates(point)), 0.0)
        for span in self.spans:
            # Of an unknown that is out of reach, or does nothing anywhere, solutions show their errors alone.
            nothing = SETTINGS.accuracy * float(np.linalg.norm(values[span])) * shares
            least = np.maximum(np.linalg.norm(reach[span], axis=0), nothing)
            seen = np.linalg.norm(slopes[span], axis=0) > self.wrong * least
            slopes[span] = np.where(seen, slopes[span], 0.0)
        return values - self.targets, slopes

    def reach(self, response: Response, vector: FloatArray) -> FloatArray:
        """Return the largest sensitivity of each measured quantity to each unknown, anywhere in the domain.

        Of averages, it is the largest one among those measured.
        """
        found = np.zeros((len(self.targets), self.parametric.size))
        for statement, span in self.sets:
            elsewhere = self._about if isinstance(statement.place, AtPoints) else None
            slopes = np.abs(predicted(self.parametric, statement, response, vector, elsewhere).slopes)
            found[span] = np.where(np.isfinite(slopes), slopes, 0.0).max(axis=0)
        return found

    @cached_property
    def _about(self) -> FloatArray:
        """Points all over the domain and at its first time, but for times that are left aside."""
        domain = self.parametric.problem.domain
        X = domain.sample(POINTS, "kronecker", 0)
        if domain.time is None:
            return X
        axis, first = domain.coordinates.index(domain.time), X.copy()
        first[:, axis] = domain.bounds[axis][0]  # what fades at once is there
        X[:, axis] = np.minimum(X[:, axis], self.until)
        return np.vstack([X, first])

    def within_error(self, change: FloatArray) -> bool:
        """Tell whether predictions change by less than solutions are wrong by."""
        return bool(np.mean(np.square(change / self.sizes)[self.kept]) <= self.wrong**2)

    def weighed(self, residual: FloatArray, free: float = 0.0) -> Weighed:
        """Return the noise of every row, found from residuals where it is not given.

        ``free`` is how many unknowns were fitted, which made residuals smaller than the noise, as fields did.
        """
        noise = self.wrong * self.sizes
        count = max(len(residual), 1)
        share = max(1.0 - (free + self.taken) / count, 1.0 / count)
        relative = residual / self.sizes
        every = [np.empty(0), *(relative[span][self.kept[span]] for s, span in self.sets if _is_estimated(s))]
        for statement, span in self.sets:
            if statement.noise is not None:
                noise[span] = statement.noise / np.sqrt(statement.weight)
            elif _is_estimated(statement):
                own = relative[span][self.kept[span]] if self.kept[span].any() else relative[span]
                # So few values do not tell their own noise, but all together may.
                own = own if len(own) >= SETTINGS.rounds else np.concatenate(every)
                size = size_of(own, statement.loss == "huber") / np.sqrt(share)
                noise[span] = np.maximum(size * self.sizes[span], noise[span])
        return Weighed(self, noise, np.where(self.robust, _huber_weights(residual / noise), 1.0) * self.kept)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Measurements with the noise and the weight of every row."""

    measurements: Measurements
    noise: FloatArray
    weights: FloatArray

    def rows(self, here: Place) -> tuple[FloatArray, FloatArray]:
        """Return the rows of a step in coordinates, and their residuals: data first, then priors."""
        factors = np.sqrt(self.weights) / self.noise
        priors, missing = self.prior(here.point)
        return np.vstack([here.slopes * factors[:, None], priors]), np.concatenate([here.residual * factors, missing])

    def leverage(self, here: Place) -> FloatArray:
        """Return Q such that noise of size one leaves residuals with the covariance I − Q Qᵀ in the data."""
        return spanned(self.rows(here)[0])[: len(here.residual)]

    def prior(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows of priors, and their residuals."""
        m, coordinates = self.measurements, self.measurements.coordinates
        numbers = len(m.parametric.problem.parameters)
        vector = coordinates.vector(point)
        deviations = np.concatenate([coordinates.deviations[:numbers], m.deviations])
        means = np.concatenate([coordinates.means[:numbers], m.means])
        with_prior = np.flatnonzero(np.isfinite(deviations))
        rows = np.zeros((len(with_prior), len(point)))
        rows[np.arange(len(with_prior)), with_prior] = (coordinates.rates(point) / deviations)[with_prior]
        return rows, ((vector - means) / deviations)[with_prior]

    def misfit(self, here: Place) -> float:
        """Return the square sum of all rows; outliers count by their size."""
        sizes = np.abs(here.residual / self.noise)
        squares = np.square(sizes)
        outside = self.measurements.robust & (sizes > SETTINGS.huber)
        squares = np.where(outside, 2.0 * SETTINGS.huber * sizes - SETTINGS.huber**2, squares)
        return float(squares[self.measurements.kept].sum() + np.square(self.prior(here.point)[1]).sum())


def _is_estimated(statement: Statement) -> bool:
    """Tell whether noise is neither given nor known to be none."""
    return statement.noise is None and not statement.exact


def _huber_weights(scaled: FloatArray) -> FloatArray:
    """Return by how much less a residual counts the farther out it is.

    >>> _huber_weights(np.array([0.5, -2.69]))
    array([1. , 0.5])
    """
    return SETTINGS.huber / np.maximum(np.abs(scaled), SETTINGS.huber)


def size_of(residuals: FloatArray, robust: bool) -> float:
    """Return the root mean square of residuals, without outliers if there may be some.

    >>> round(size_of(np.array([1.0, -1.0, 0.5, 100.0]), robust=True), 4)
    1.4826
    """
    if robust:
        return float(np.median(np.abs(residuals)) / ndtri(0.75))
    return float(np.sqrt(np.mean(np.square(residuals))))


def too_large(scaled: FloatArray, free: float, robust: bool = False) -> bool:
    """Tell whether residuals in units of their stated noise are larger than chance makes them.

    If there may be outliers, these are no more than half of the data.

    >>> too_large(np.full(20, 1.0), 1.0), too_large(np.full(20, 3.0), 1.0)
    (False, True)
    >>> too_large(np.array([0.5, 0.2, 1e3]), 0.0, robust=True)
    False
    """
    if robust:
        return bool(np.median(np.abs(scaled)) > SETTINGS.sure)
    degrees = max(len(scaled) - free, 0.5)
    return bool(gammaincc(degrees / 2, float(scaled @ scaled) / 2) < 2.0 * ndtr(-SETTINGS.sure))


def far_out(scaled: FloatArray, leverage: FloatArray) -> tuple[int, float]:
    """Return how many residuals are too large beside all smaller ones, and the probability of the least probable.

    Each is compared with the size of the smaller ones (Rosner's test for outliers, with Student's distribution), down
    to the median. Residuals are in units of the noise, and their covariance is I − Q Qᵀ for the ``leverage`` Q.

    >>> noise = np.sin(np.arange(1.0, 41.0) ** 2)
    >>> far_out(noise, np.zeros((40, 0)))[1] > 0.1
    True
    >>> count, chance = far_out(np.append(noise, [20.0, -30.0]), np.zeros((42, 0)))
    >>> count, chance < 1e-9
    (2, True)
    """
    taken = np.square(leverage).sum(axis=1)
    sizes = np.sort(np.abs(scaled) / np.sqrt(np.maximum(1.0 - taken, SLIGHT)))
    counts = np.arange(1, len(sizes) + 1)
    degrees = counts - 1.0 - taken.sum()
    shares = np.square(sizes) / np.maximum(np.cumsum(np.square(sizes)), 1e-300)
    looked_at = (counts > MOST * len(sizes)) & (degrees >= 1.0)
    ratios = np.sqrt(shares * np.maximum(degrees, 1.0) / np.maximum(1.0 - shares, ROUNDING))
    chances = np.where(looked_at, 2.0 * counts * stdtr(np.maximum(degrees, 1.0), -ratios), 1.0)
    outliers = np.flatnonzero(chances < SETTINGS.chance)
    return len(sizes) - int(outliers.min(initial=len(sizes))), float(min(chances.min(initial=1.0), 1.0))


def chance_of(statement: Statement, scaled: FloatArray, leverage: FloatArray) -> float:
    """Return the probability with which noise makes residuals of neighbours as much alike as they are.

    Residuals e are in units of the noise, and their covariance is I − Q Qᵀ for the ``leverage`` Q. The measure of
    likeness is eᵀ W e / eᵀ e, where W falls exponentially with the distance of two measurements: over the spacing of
    neighbours, and over the geometric mean of that and the extent of all. Either may show a pattern.

    >>> place = np.linspace(0, 1, 20)[:, None]
    >>> measured = Statement("u", 0, None, AtPoints(place))
    >>> wave, nothing = np.sin(2 * np.pi * place[:, 0]), np.zeros((20, 0))
    >>> chance_of(measured, wave, nothing) < 1e-4 < 0.1 < chance_of(measured, wave[np.arange(20) * 7 % 20], nothing)
    True
    """
    if not isinstance(statement.place, AtPoints) or not scaled.any():
        return 1.0
    own = np.unique(np.linspace(0, len(scaled) - 1, min(len(scaled), POINTS)).round().astype(int))
    X, Q, e = statement.place.points[own], leverage[own], scaled[own]
    if statement.loss == "huber":
        e = np.clip(e, -SETTINGS.huber, SETTINGS.huber)
    extent = np.ptp(X, axis=0)
    X = X / np.where(extent > 0, extent, 1.0)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    spacing = float(np.mean(np.where(distances > 0, distances, np.inf).min(axis=1))) if extent.any() else 1.0
    squares, vectors = np.linalg.eigh(np.eye(len(own)) - Q @ Q.T)
    root = vectors * np.sqrt(np.maximum(squares, 0.0))
    found = []
    for range_ in (spacing, np.sqrt(spacing)):
        weights = np.exp(-distances / range_)
        likeness = float(e @ weights @ e / (e @ e))
        if likeness < NEGLIGIBLE:
            return 1.0  # neighbours are not alike at all: the fit took what they have in common
        found.append(_positive(np.linalg.eigvalsh(root.T @ weights @ root - likeness * root.T @ root)))
    return 1.0 - (1.0 - min(found)) ** len(found)


def _positive(values: FloatArray) -> float:
    """Return the probability that a sum of squares of normal numbers, each times a value, is positive.

    This is the saddlepoint approximation of Lugannani and Rice; the second probability is 2/3.

    >>> round(_positive(np.array([1.0, -1.0])), 6), round(_positive(np.array([3.0, -1.0])), 2)
    (0.5, 0.66)
    """
    values = values[np.abs(values) > ROUNDING * np.abs(values).max(initial=0.0)]
    if (values >= 0).all() or (values <= 0).all():
        return float(values.sum() >= 0)
    from scipy.optimize import brentq

    def slope(t: float) -> float:
        return float((values / (1.0 - 2.0 * t * values)).sum())

    within = 1.0 - ROUNDING
    t = float(brentq(slope, within / (2.0 * values.min()), within / (2.0 * values.max())))
    rest = 1.0 - 2.0 * t * values
    w = float(np.sign(t) * np.sqrt(max(np.log(rest).sum(), 0.0)))
    v = t * float(np.sqrt(2.0 * np.square(values / rest).sum()))
    # Next to the middle both are the same but for rounding.
    return 0.5 if abs(w) < np.sqrt(ROUNDING) else float(ndtr(-w - np.log(v / w) / w))
