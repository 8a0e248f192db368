"""Parts of cells, faces between parts, and polynomials on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import lapack

from pibls.cells.surface import Rule
from pibls.cells.tree import Cell
from pibls.checks import FloatArray, IntArray
from pibls.features.reference import ReferenceNetwork
from pibls.problem.level import Level
from pibls.refinement import SMALLEST
from pibls.refinement.standards import MOST

__all__ = ["CellPart", "Face", "exact_weights", "legendre", "part_values", "polynomials", "values_at"]

_PROPORTION = 30.0  # largest sum of changes of quadrature weights, relative to the volume


@dataclass(frozen=True, eq=False)
class CellPart:
    """A connected piece of one material in a cell, with coordinates fitted to it.

    Attributes
    ----------
    cell
        The cell that contains it.
    center, half
        Centre and half sides of its bounding box, on which the reference coordinates are ±1.
    points, weights
        Interior points, and positive weights that sum to its volume.
    whole
        Whether it is the whole cell; its points are then those of the reference rule.
    boundary
        Quadrature points on each boundary part with conditions.
    integral
        Weights of the points that integrate polynomials exactly, if known; they may be negative.
    material
        The number of its material.
    """

    cell: Cell
    center: FloatArray
    half: FloatArray
    points: FloatArray
    weights: FloatArray
    whole: bool
    boundary: Mapping[Any, Rule] = field(default_factory=dict)
    integral: FloatArray | None = None
    material: int = 0

    @cached_property
    def integrals(self) -> FloatArray:
        """The exact weights if they are known, else the positive ones."""
        return self.weights if self.integral is None else self.integral

    @property
    def volume(self) -> float:
        """The volume of the part."""
        return float(self.weights.sum())

    @cached_property
    def extent(self) -> float:
        """The volume of its bounding box, relative to the reference cube."""
        return float(np.prod(self.half))

    def depth(self, normals: FloatArray) -> float:
        """Return the depth of the part behind a surface with given normals."""
        return float((np.abs(normals) @ (2 * self.half)).mean())

    def local(self, X: FloatArray) -> FloatArray:
        """Return points in the coordinates of the reference network."""
        return (X - self.center) / self.half


@dataclass(frozen=True, eq=False)
class Face:
    """A piece of surface between two parts, with orthonormal polynomials for the traces they share.

    ``basis`` and ``slopes`` are the polynomials and their derivatives along the axes of the face, times roots of
    weights. It lies on the sides of two cells, across an axis; or, with normals of its own, on an interface. Interface
    conditions replace continuity; the number of each among the statements comes with the part on its inner side. A
    whole face is the entire contact of two whole parts, with continuity only.
    """

    below: CellPart
    above: CellPart
    axis: int
    points: FloatArray
    weights: FloatArray
    basis: FloatArray
    slopes: FloatArray | None
    shift: float = 0.0
    whole: bool = False
    normals: FloatArray | None = None
    conditions: Mapping[int, CellPart] = field(default_factory=dict)
    level: Level | None = None  # whose zeros the face is on, if it is on an interface

    @cached_property
    def area(self) -> float:
        """The area of the face."""
        return float(self.weights.sum())

    @cached_property
    def thickness(self) -> float:
        """Depth of the thinner one of both parts, normal to the face."""
        if self.normals is not None:
            return min(side.depth(self.normals) for side in (self.below, self.above))
        return 2.0 * float(min(self.below.half[self.axis], self.above.half[self.axis]))


def part_values(reference: ReferenceNetwork, part: CellPart, weights: FloatArray, X: FloatArray) -> FloatArray:
    """Return the fields of a part at points, shape (points, fields)."""
    return values_at(reference, [(part, weights, X)])[0]


def values_at(
    reference: ReferenceNetwork, given: Sequence[tuple[CellPart, FloatArray, FloatArray]]
) -> list[FloatArray]:
    """Return the fields of parts, with given weights, at points; nodes are evaluated together at all of them."""
    zero = (0,) * reference.dimension
    found: list[FloatArray] = [np.empty(0)] * len(given)
    cut = [number for number, (part, _, _) in enumerate(given) if not part.whole]
    for number in set(range(len(given))).difference(cut):
        part, weights, X = given[number]
        found[number] = np.asarray(reference.evaluate_again(part.local(X), [zero])[zero] @ weights.T)
    for some in reference.chunks([len(given[number][2]) for number in cut]):
        places = [part.local(X) for part, _, X in (given[number] for number in cut[some])]
        nodes = reference.network.evaluate(np.concatenate(places), [zero])[zero]
        for number, own in zip(cut[some], np.split(nodes, np.cumsum([len(X) for X in places])[:-1]), strict=True):
            found[number] = np.asarray(own @ (reference.transform @ given[number][1].T))
    return found


def exact_weights(
    local: FloatArray, weights: FloatArray, around: Rule, center: FloatArray, half: FloatArray, degree: int
) -> FloatArray:
    """Return weights close to the given ones that integrate polynomials over a part exactly.

    The moments follow from the boundary of the part by the divergence theorem, along the first axis.

    Examples
    --------
    >>> from pibls.features.reference import cube_rule
    >>> X, w = cube_rule(1, 4)
    >>> zero, one = np.zeros(4), np.ones(4)
    >>> sides = [Rule(np.stack([c * one, X[:, 0]], axis=1), np.stack([c * one, zero], axis=1), w) for c in (-1.0, 1.0)]
    >>> points = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    >>> found = exact_weights(points, np.full(40, 0.1), Rule.joined(sides), np.zeros(2), np.ones(2), 3)
    >>> bool(abs(found @ points[:, 0] ** 2 - 4 / 3) < 1e-12)
    True
    """
    edge, (powers, others, number) = (around.points - center) / half, _powers(len(half), degree)
    tables = _tables(edge, degree + 1)
    rising = np.empty((len(edge), degree + 1))
    rising[:, 0] = edge[:, 0]
    rising[:, 1:] = (tables[0][:, 2:] - tables[0][:, :-2]) / (2 * np.arange(1, degree + 1) + 1)
    flux = half[0] * around.weights * around.normals[:, 0]
    # Points with equal powers of the other coordinates are summed once.
    moments = (rising.T * flux @ _product(tables[1:], others))[powers[0], number]
    # The first moment is the volume. If it disagrees with the scattered points, the outline is incomplete.
    if abs(moments[0] - weights.sum()) > MOST * weights.sum():
        return weights
    weights = weights * (moments[0] / weights.sum())
    totals, values = powers.sum(axis=0), _product(_tables(local, degree), powers)
    missing = moments - weights @ values
    size = values.shape[1]
    factored, scales, _, _ = lapack.dgeqrf(values, 64 * size)
    diagonal = np.abs(np.diag(factored))
    for most in range(degree, 0, -1):
        count = int((totals <= most).sum())
        if count > len(local):
            continue
        if diagonal[:count].min() > SMALLEST * diagonal[:count].max():
            right = np.zeros((len(local), 1), order="F")
            right[:count, 0] = lapack.dtrtrs(factored[:count, :count], missing[:count], trans=1)[0]
            change = lapack.dormqr("L", "N", factored[:, : len(scales)], scales, right, 64 * size)[0][:, 0]
        else:
            change = np.linalg.lstsq(values[:, :count].T, missing[:count], rcond=SMALLEST)[0]
        # Very large weights mean that there are too few points.
        if np.abs(change).sum() <= _PROPORTION * weights.sum():
            return np.asarray(weights + change)
    return weights


@lru_cache(maxsize=32)
def _powers(dimension: int, degree: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the exponents of all products of a total degree, those without the first coordinate, and the map between.

    >>> [own.tolist() for own in _powers(2, 1)]
    [[[0, 0, 1], [0, 1, 0]], [[0, 1]], [0, 1, 0]]
    """
    powers = np.array(sorted((i for i in product(range(degree + 1), repeat=dimension) if sum(i) <= degree), key=sum)).T
    others, number = np.unique(powers[1:], axis=1, return_inverse=True)
    return powers, others, number.ravel()


def _tables(local: FloatArray, degree: int) -> list[FloatArray]:
    """Return the Legendre polynomials up to a degree of every coordinate of the points."""
    return list(np.polynomial.legendre.legvander(local.T, degree))


def _product(tables: list[FloatArray], powers: IntArray) -> FloatArray:
    """Return products of polynomials, one factor per coordinate."""
    found = tables[0][:, powers[0]]
    for table, own in zip(tables[1:], powers[1:], strict=True):
        found *= table[:, own]
    return found


def legendre(local: FloatArray, degree: int) -> FloatArray:
    """Return products of Legendre polynomials up to a total degree at points of the cube.

    >>> legendre(np.array([[0.5, -1.0]]), 1).tolist()
    [[1.0, -1.0, 0.5]]
    """
    return _product(_tables(local, degree), _powers(local.shape[1], degree)[0])


def polynomials(X: FloatArray, weights: FloatArray, degree: int) -> tuple[FloatArray, FloatArray | None]:
    """Return polynomials of a total degree at points, orthonormal in the weights, and their derivatives by axis.

    Both are times roots of the weights. Where the points do not tell all polynomials apart, there are no derivatives.

    >>> basis, slopes = polynomials(np.array([[-3.0], [0.0], [3.0]]), np.array([1.0, 4.0, 1.0]), 1)
    >>> bool(np.allclose(basis.T @ basis, np.eye(2))), slopes.shape
    (True, (1, 3, 2))
    >>> bool(np.allclose(slopes[0, 1, 1] * 6.0, 2.0 * (basis[2, 1] - basis[0, 1])))
    True
    """
    roots = np.sqrt(weights)[:, None]
    if not X.shape[1]:
        return np.ones((1, 1)), None
    low, high = X.min(axis=0), X.max(axis=0)
    steps = np.where(high > low, 2.0 / np.where(high > low, high - low, 1.0), 0.0)
    local = (X - (low + high) / 2) * steps
    values = legendre(local, degree)
    values = values[:, : max(1, len(X) - 1)] if len(X) <= values.shape[1] else values
    basis, triangle = np.linalg.qr(values * roots)
    diagonal = np.abs(np.diag(triangle))
    kept = diagonal > SMALLEST * diagonal.max()
    if not kept.all():
        return basis[:, kept], None
    slopes = [_sloped(local, degree, axis)[:, : values.shape[1]] * (step * roots) for axis, step in enumerate(steps)]
    return basis, np.linalg.solve(triangle.T, np.stack(slopes).transpose(0, 2, 1)).transpose(0, 2, 1)


def _sloped(local: FloatArray, degree: int, axis: int) -> FloatArray:
    """Return the derivatives of :func:`legendre` along an axis."""
    tables = _tables(local, degree)
    tables[axis] = tables[axis][:, :degree] @ np.polynomial.legendre.legder(np.eye(degree + 1))[:degree]
    return _product(tables, _powers(local.shape[1], degree)[0])
