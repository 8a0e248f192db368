"""Bayesian linear regression: the precisions of weights and noise that make the right-hand sides most probable.

The weights have the prior N(0, 1/α), and the rows of group g carry noise of precision β_g. All follows from singular
values of the rows times √β_g; HᵀH, which would square their condition, is never formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
import scipy.linalg

from pibls.checks import FloatArray
from pibls.solvers.svd import decompose

_EPS = float(np.finfo(np.float64).eps)
_CLOSE = 1e-3  # in log evidence, which is known to about 1 at best
_RANGE = 1e-200, 1e200
_SCAN = 100


@dataclass(frozen=True, eq=False)
class Group:
    """Rows that share one noise; ``precision`` where it is known."""

    matrix: FloatArray
    rhs: FloatArray
    precision: float | None = None


@dataclass(frozen=True)
class Precisions:
    """Precision α of the weights and β of the noise of each group."""

    alpha: float
    betas: tuple[float, ...]


Step: TypeAlias = tuple[Precisions, float]
"""Precisions and the logarithm of the evidence for them."""


@dataclass(frozen=True, eq=False)
class Inference:
    """The posterior for given precisions, and the numbers that the next ones follow from."""

    precisions: Precisions  # what it is for
    mean: FloatArray  # of the weights
    evidence: float  # logarithm of the probability density of the right-hand sides
    # number of weights that the rows determine rather than the prior (γ), as a share of each group
    determined: tuple[float, ...]
    residuals: tuple[float, ...]  # sum of the squared residuals of each group
    # singular_values, directions: of the rows times √β; one column of directions per value
    singular_values: FloatArray
    directions: FloatArray

    @property
    def variances(self) -> FloatArray:
        """Variance of the weights along each direction."""
        return np.asarray(1.0 / (self.singular_values**2 + self.precisions.alpha))

    @property
    def factor(self) -> FloatArray:
        """F with covariance F Fᵀ of the weights."""
        return np.asarray(self.directions * np.sqrt(self.variances))


class NoisyRows:
    """Groups prepared so that an inference costs one decomposition, or none if all rows share one noise.

    ``weights`` is how many weights the columns stand for, where these are a basis of the space that rows span.

    >>> found = NoisyRows([Group(np.eye(2), np.array([1.0, 2.0]))]).infer(Precisions(1.0, (3.0,)))
    >>> found.mean, found.variances
    (array([0.75, 1.5 ]), array([0.25, 0.25]))
    """

    def __init__(self, groups: Sequence[Group], weights: int = 0) -> None:
        self.groups = tuple(groups)
        self.columns = groups[0].matrix.shape[1]
        self.weights = max(weights, self.columns)
        self.count = sum(len(group.rhs) for group in groups)
        self._pieces = [_compressed(np.column_stack([g.matrix, g.rhs])) for g in groups]
        self._even = self._decomposed((1.0,) * len(groups))

    def _decomposed(self, betas: Sequence[float]) -> tuple[FloatArray, FloatArray, FloatArray]:
        weighted = [math.sqrt(beta) * piece[:, :-1] for beta, piece in zip(betas, self._pieces, strict=True)]
        missing = self.columns - sum(map(len, weighted))
        # Rows of zeros complete the right singular vectors: directions that nothing but the prior speaks of.
        matrix = np.concatenate([*weighted, np.zeros((max(0, missing), self.columns))])
        u, sigma, vt = decompose(np.asfortranarray(matrix), "svd")
        return u, sigma, vt

    def infer(self, precisions: Precisions) -> Inference:
        """Return the posterior for given precisions: the ridge solution, and its covariance."""
        alpha, betas = precisions.alpha, precisions.betas
        if len(set(betas)) > 1:
            u, sigma, vt = self._decomposed(betas)
        else:
            u, sigma, vt = self._even
            sigma = math.sqrt(betas[0]) * sigma
        scaled = [math.sqrt(beta) * piece[:, -1] for beta, piece in zip(betas, self._pieces, strict=True)]
        rhs = np.concatenate([*scaled, np.zeros(len(u) - sum(map(len, scaled)))])
        total = sigma**2 + alpha
        projected = u.T @ rhs
        mean = vt.T @ (sigma * projected / total)
        leverages = np.square(u) @ (sigma**2 / total)
        misfit = np.square(rhs - u @ (sigma**2 / total * projected))
        spans = [slice(a, b) for a, b in pairwise(accumulate(map(len, scaled), initial=0))]
        residuals = tuple(float(misfit[s].sum()) / beta for s, beta in zip(spans, betas, strict=True))
        counts = [len(group.rhs) for group in self.groups]
        evidence = 0.5 * (
            sum(n * math.log(beta / (2 * math.pi)) for n, beta in zip(counts, betas, strict=True))
            - float(np.log1p(sigma**2 / alpha).sum())
            - float(misfit.sum())
            - alpha * float(mean @ mean)
        )
        determined = tuple(float(leverages[s].sum()) for s in spans)
        return Inference(precisions, mean, evidence, determined, residuals, sigma, vt.T)

    @property
    def rounding(self) -> float:
        """Variance that rounding alone gives to the rows, over that of the weights: α/β is never below it.

        Singular values below the rounding of the largest are noise of the machine. With a smaller ratio they would
        count, the evidence would have a maximum that fits the right-hand sides by them, and which of the maxima is the
        highest would differ from machine to machine.
        """
        size = max(self.weights, self.count)
        return float(max(_RANGE[0], (size * _EPS * float(self._even[1][0])) ** 2))

    def start(self) -> Precisions:
        """Return the best precisions if all groups had the same noise, from a scan over its ratio to the prior.

        Evidence has several maxima, one of them at weights of zero; going uphill from the best of a scan finds a high
        one.
        """
        u, sigma, _ = self._even
        rhs = np.concatenate([piece[:, -1] for piece in self._pieces])
        along = u[: len(rhs)].T @ rhs
        projected = np.square(along)
        # What no weights can reach. The difference of the squares would be rounding, now above and now below zero.
        rest = float(np.square(rhs - u[: len(rhs)] @ along).sum())
        ratios = np.geomspace(self.rounding, float(sigma[0]) ** 2 / _EPS, _SCAN)
        growth = 1.0 + sigma**2 / ratios[:, None]
        variances = (rest + (1.0 / growth) @ projected) / self.count
        usable = np.flatnonzero(variances > 0)
        if not len(usable):
            return Precisions(1.0, (1.0,) * len(self.groups))
        evidence = -self.count * np.log(variances[usable]) - np.log(growth[usable]).sum(axis=1)
        best = usable[np.argmax(evidence)]
        return Precisions(float(ratios[best] / variances[best]), (float(1.0 / variances[best]),) * len(self.groups))

    def limited(self, wanted: Precisions) -> Precisions:
        """Keep precisions within double precision, noise above that of rounding, and known noise as it is."""
        low, high = _RANGE
        square = sum(float(group.rhs @ group.rhs) for group in self.groups) / self.count
        ceiling = min(high, 1.0 / max(low, (10 * _EPS) ** 2 * square))  # what rounding leaves to the rows
        alpha = min(high, max(low, wanted.alpha))
        betas = [
            min(ceiling, alpha / self.rounding, max(low, beta)) if group.precision is None else group.precision
            for beta, group in zip(wanted.betas, self.groups, strict=True)
        ]
        return Precisions(alpha, tuple(betas))


def _compressed(rows: FloatArray) -> FloatArray:
    """Return as few rows of the same norm in every direction: the triangular factor."""
    if rows.shape[0] <= rows.shape[1]:
        return rows
    return np.asarray(scipy.linalg.qr(rows, mode="r")[0][: rows.shape[1]])


def maximise(groups: Sequence[Group], iterations: int, weights: int = 0) -> tuple[Inference, list[Step]]:
    """Return the inference at the best precisions found, and the steps to it, of rising evidence.

    The fixed point of MacKay is fast but may overshoot; the step of expectation maximisation, which cannot, is taken
    where it does.
    """
    rows = NoisyRows(groups, weights)
    now = rows.infer(rows.limited(rows.start()))
    course = [(now.precisions, now.evidence)]
    while len(course) < iterations:
        following = rows.infer(rows.limited(_fixed_point(now, groups)))
        if not following.evidence > now.evidence:
            following = rows.infer(rows.limited(_expectation(now, rows)))
        if not following.evidence > now.evidence:
            break
        gain, now = following.evidence - now.evidence, following
        course.append((now.precisions, now.evidence))
        if gain < _CLOSE:
            break
    return now, course


def _fixed_point(now: Inference, groups: Sequence[Group]) -> Precisions:
    square = float(now.mean @ now.mean)
    pairs = zip(groups, now.determined, now.residuals, strict=True)
    betas = tuple(_ratio(max(0.0, len(group.rhs) - used), rest) for group, used, rest in pairs)
    return Precisions(_ratio(sum(now.determined), square), betas)


def _expectation(now: Inference, rows: NoisyRows) -> Precisions:
    # Weights beyond the space of the rows have the variance of the prior.
    unseen = (rows.weights - rows.columns) / now.precisions.alpha
    square = float(now.mean @ now.mean) + float(now.variances.sum()) + unseen
    known = zip(rows.groups, now.determined, now.residuals, now.precisions.betas, strict=True)
    betas = tuple(_ratio(len(group.rhs), rest + used / beta) for group, used, rest, beta in known)
    return Precisions(_ratio(rows.weights, square), betas)


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else math.inf
