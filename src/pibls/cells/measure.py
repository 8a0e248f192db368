"""Roughness of solutions and functions along each axis of a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart, part_values
from pibls.cells.solve import Fit
from pibls.checks import BoolArray, FloatArray
from pibls.features.reference import ReferenceNetwork, cube_rule, rule_count
from pibls.problem import Average
from pibls.quadrature.roots import ROUNDING
from pibls.refinement.standards import NEGLIGIBLE, PLAIN

__all__ = [
    "TAIL",
    "Decay",
    "Tails",
    "average_error",
    "missed_along",
    "shares_of",
    "sparse_cube",
    "stacked",
    "tails_of",
]

TAIL = 0.75  # share of the degree above which coefficients are the highest ones
_SPARSE = 7  # points along each axis of a part at which solutions are compared and modes are found; 4 in space
_SMOOTH = 0.2  # ratio of the highest coefficients to the next lower ones, below which a function is smooth
_RINGS, _UNRESOLVED = 4, 2  # rings around a landmark, by powers of two, and how many innermost ones are not resolved


@lru_cache(maxsize=32)
def _analysis(count: int) -> FloatArray:
    """Return the matrix from values at Gauss points of [−1, 1] to coefficients of orthonormal Legendre polynomials."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    table = np.polynomial.legendre.legvander(nodes, count - 1) * np.sqrt(np.arange(count) + 0.5)
    return np.asarray(table.T * weights)


def _analysed(values: FloatArray, dimension: int, count: int) -> FloatArray:
    """Return the coefficients of orthonormal Legendre products, from rows of values at Gauss points of the cube.

    One axis is transformed at a time: the matrix for all axes would need too much memory.
    """
    for _ in range(dimension):
        # Each axis in turn comes first and moves to the end.
        values = (_analysis(count) @ values.reshape(len(values), count, -1)).swapaxes(1, 2)
    return values.reshape(len(values), -1)


class Decay(NamedTuple):
    """L2 norms of parts of a solution, by cell part and field.

    Attributes
    ----------
    rough
        The rough part along each axis.
    last, before, size
        The part in the highest quarter of degrees, the part in the quarter below, and the whole field.
    nothing
        Share of the whole field below which coefficients are rounding errors.
    """

    rough: FloatArray
    last: FloatArray
    before: FloatArray
    size: FloatArray
    nothing: float

    @property
    def smooth(self) -> BoolArray:
        """On which parts all coefficients decay quickly with the degree, as for smooth functions."""
        least = np.maximum(_SMOOTH * self.before, self.nothing * self.size)
        return np.asarray((self.last <= least).all(axis=1))

    @property
    def left_per_quarter(self) -> FloatArray:
        """The share of the error of each field that a quarter more degrees leaves."""
        last, before = (np.sqrt(np.square(own).sum(axis=0)) for own in (self.last, self.before))
        return np.asarray(np.minimum(last / np.where(before > 0, before, 1.0), 1.0))


@dataclass(frozen=True, eq=False)
class Tails:
    """Measures the contribution of the highest degrees along each axis to a function on a cell."""

    reference: ReferenceNetwork

    @cached_property
    def _degrees(self) -> Any:
        """Degrees of the Legendre coefficients along each axis, one row per coefficient."""
        along = np.arange(rule_count(self.reference.degree))
        return np.stack([g.ravel() for g in np.meshgrid(*[along] * self.reference.dimension, indexing="ij")], axis=1)

    @cached_property
    def _coefficients(self) -> FloatArray:
        """Legendre coefficients of the functions, one column per function."""
        zero, count = (0,) * self.reference.dimension, rule_count(self.reference.degree)
        return _analysed(self.reference.on_rule([zero])[zero].T, len(zero), count).T

    def _rough(self, least: float) -> list[BoolArray]:
        """Return for each axis which coefficients have a high total degree, mostly along that axis."""
        total, d = self._degrees.sum(axis=1), self.reference.dimension
        return [(total >= least) & (self._degrees[:, axis] >= total / (d + 0.5)) for axis in range(d)]

    @cached_property
    def _operators(self) -> list[FloatArray]:
        return [self._coefficients[own] for own in self._rough(TAIL * self.reference.degree)]

    def decay(
        self, parts: Sequence[CellPart], weights: FloatArray, triangle: Callable[[CellPart], FloatArray]
    ) -> Decay:
        """Return how the coefficients of fields on parts decay, given their weights, shape (parts, fields, functions).

        ``triangle`` is the matrix from weights of a cut part to coefficients of functions that are orthonormal in it.
        """
        roots = np.sqrt(np.prod([part.half for part in parts], axis=1))[:, None]
        last, before = (roots * np.linalg.norm(weights @ step.T, axis=-1) for step in self._steps)
        rough = np.stack([np.linalg.norm(weights @ operator.T, axis=-1) for operator in self._operators], axis=-1)
        found = Decay(roots[:, :, None] * rough, last, before, roots * np.linalg.norm(weights, axis=-1), self._nothing)
        for number, part in enumerate(parts):
            if not part.whole:
                self._measure_cut(found, number, triangle(part) @ weights[number].T)
        return found

    def _measure_cut(self, found: Decay, number: int, coefficients: FloatArray) -> None:
        """Measure a field on a cut part by orthonormal functions: values outside the domain do not count."""
        lower, low = (self._below(share) for share in (2 * TAIL - 1, TAIL))
        left = np.linalg.norm(coefficients[low:], axis=0)
        found.last[number], found.before[number] = left, np.linalg.norm(coefficients[lower:low], axis=0)
        found.size[number], size = np.linalg.norm(coefficients, axis=0), np.linalg.norm(found.rough[number], axis=1)
        found.rough[number] *= (left / np.where(size > 0, size, 1.0))[:, None]

    def _below(self, share: float) -> int:
        """Return the number of functions below a share of the degree."""
        d = self.reference.dimension
        return min(math.comb(math.ceil(share * self.reference.degree) - 1 + d, d), self.reference.size)

    @cached_property
    def _steps(self) -> tuple[FloatArray, FloatArray]:
        """Coefficients of the functions in the highest quarter of degrees, and in the quarter below."""
        share = self._degrees.sum(axis=1) / self.reference.degree
        return self._coefficients[share >= TAIL], self._coefficients[(share >= 2 * TAIL - 1) & (share < TAIL)]

    @cached_property
    def _nothing(self) -> float:
        """Relative size of the highest coefficients of a quadratic, which are rounding errors."""
        coefficients, plain = self._coefficients, self._coefficients[self._degrees.sum(axis=1) <= 2]
        # Rounding errors make functions of high degree not quite orthonormal.
        weights = np.linalg.solve(coefficients.T @ coefficients, plain.T)
        return max(ROUNDING, float(np.linalg.norm(self._steps[0] @ weights, axis=0).max()) / NEGLIGIBLE)

    def of_values(self, values: FloatArray, halves: FloatArray) -> FloatArray:
        """Return by axis the L2 norm of degrees beyond those of a second-order residual, from values at the rule."""
        found = _analysed(values, self.reference.dimension, rule_count(self.reference.degree))
        rough = [np.linalg.norm(found[:, own], axis=1) for own in self._missed]
        return np.asarray(np.sqrt(np.prod(halves, axis=1))[:, None] * np.stack(rough, axis=1))

    @cached_property
    def _missed(self) -> list[BoolArray]:
        """Which coefficients exceed the degree of the residual of a second-order equation, along each axis."""
        return self._rough(self.reference.degree - 1)


@lru_cache(maxsize=16)
def tails_of(reference: ReferenceNetwork) -> Tails:
    """Return the measure of roughness in the functions of a reference network."""
    return Tails(reference)


def missed_along(values: FloatArray, weights: FloatArray, parameters: int, count: int) -> float:
    """Return the L2 error of a fit by polynomials of degree below ``count − 2``, from values at surface points."""
    if len(values) != count**parameters:
        return 0.0  # scattered points: the roughness shows in the solution
    degrees = np.indices((count,) * parameters).max(axis=0).ravel()
    high = _analysed(values[None], parameters, count)[0, degrees >= count - 2]
    return float(np.linalg.norm(high) * np.sqrt(weights.sum() / 2**parameters))


def sparse_cube(dimension: int, least: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return a few points of the cube [−1, 1]ᵈ, not less than wanted along each axis, and their weights."""
    return cube_rule(dimension, max(_SPARSE if dimension < 3 else 4, least))


def stacked(fit: Fit) -> tuple[FloatArray, FloatArray]:
    """Return half sides and weights of all parts of a fit: shapes (parts, axes), (parts, fields, functions)."""
    return np.array([part.half for part in fit.parts]), np.array([fit.weights[part] for part in fit.parts])


def shares_of(layout: Layout, fit: Fit) -> FloatArray:
    """Return the weight of each part for each field: 1, except for fields that are not square integrable.

    At such a landmark every ring has as much of the squared norm as the next one, which is twice as wide.
    """
    marks = layout.tree_domain.landmarks
    if not len(marks):
        return np.ones((len(fit.parts), len(next(iter(fit.weights.values()), ()))))
    (halves, weights), d = stacked(fit), len(layout.problem.domain.space)
    squares = np.prod(halves, axis=1)[:, None] * np.square(weights).sum(axis=2)
    found, centers = np.ones(squares.shape), np.array([part.center for part in fit.parts])[:, :d]
    for mark in marks[:, :d]:
        near = np.maximum(np.abs((centers - mark) / layout.root.size[:d]).max(axis=1), ROUNDING)
        rings = np.floor(np.log2(near)).astype(int)
        inner = np.arange(rings.min() + _UNRESOLVED, min(rings.min() + _UNRESOLVED + _RINGS, -_UNRESOLVED))
        if len(inner) < _RINGS:
            continue
        held = np.array([squares[rings == ring].sum(axis=0) for ring in inner])
        if not held.all():
            continue
        rise = np.polyfit(inner, np.log2(held), 1)[0]
        endless = (rise < NEGLIGIBLE) & (held.min(axis=0) > PLAIN * squares.sum(axis=0))
        found[:, endless] = np.minimum(found[:, endless], np.minimum(near, 1.0)[:, None])
    return found


def average_error(layout: Layout, fit: Fit) -> float:
    """Return the error of averages over the domain, in the L2 norm of the fields they determine.

    Parts without exact moments are integrated at scattered points; the difference of two halves estimates the error.
    """
    if not any(isinstance(s.place, Average) for s in layout.problem.statements):
        return 0.0
    squares = np.zeros(len(layout.problem.field_names))
    for part, weights in fit.weights.items():
        if part.whole or part.integral is not None:
            continue
        X, shares = layout.quadrature(part)
        values = shares[:, None] * part_values(layout.reference, part, weights, X)
        squares += np.square(values[::2].sum(axis=0) - values[1::2].sum(axis=0))
    return float(np.sqrt(squares.max(initial=0.0) / layout.volume))
