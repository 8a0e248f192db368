"""Corner singularities: powers of the distance that solve the equation near a point where several materials meet.

Cells that are graded towards the point resolve such a power slowly if it is small, and the error there spreads
everywhere. So the solution near the point is written as a sum of these functions, with amplitudes as shared unknowns,
plus a remainder that cells resolve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.cells.parts import CellPart, Face, part_values
from pibls.cells.tree import Cell
from pibls.checks import BoolArray, FloatArray
from pibls.features import MultiIndex
from pibls.problem import Across, AtPoints, Average, Problem, Statement
from pibls.quadrature.roots import CLOSE, HALVINGS, ROUNDING, SCAN, bracketed, climbed, narrowed

if TYPE_CHECKING:
    from pibls.cells.layout import Layout
    from pibls.cells.rows import Rows
    from pibls.cells.tree_domain import TreeDomain


@dataclass(frozen=True, eq=False)
class CornerSingularity:
    """A point where sectors of different materials meet, with the singular functions around it.

    Attributes
    ----------
    point
        The point.
    starts, widths
        Start angle and opening angle of each sector.
    exponents
        Exponent of each function.
    amplitudes
        One complex number per function and sector: the function is the real part of amplitude times power.
    radius
        Radius within which the sectors are exact.
    """

    point: FloatArray
    starts: FloatArray
    widths: FloatArray
    exponents: FloatArray
    amplitudes: Any
    radius: float

    @property
    def size(self) -> int:
        """Number of functions."""
        return len(self.exponents)

    def around(self, cells: Sequence[Cell]) -> tuple[float, list[Cell]]:
        """Return the half side of a square around the point, and the cells that fill it; (0, []) if none do.

        Cells at its edge are at most about as large as their distance from the point.
        """
        away = np.array([np.maximum(np.abs(c.low - self.point), np.abs(c.high - self.point)).max() for c in cells])
        near = np.array([np.maximum(np.maximum(c.low - self.point, self.point - c.high), 0.0).max() for c in cells])
        half = self.radius / np.sqrt(2.0)
        for _ in range(HALVINGS):
            inside = away <= half * (1 + CLOSE)
            if inside[near < half / 4].all():
                return half, [cell for cell, held in zip(cells, inside, strict=True) if held]
            half /= 2
        return 0.0, []

    def values(self, part: CellPart, X: FloatArray, index: MultiIndex) -> FloatArray:
        """Return a derivative of every function at points of a part, shape (points, functions)."""
        inside = (part.points - self.point) @ np.array([1.0, 1.0j])
        middles = self.starts + self.widths / 2
        aside = np.abs(np.angle(inside[:, None] * np.exp(-1j * middles))) - self.widths / 2
        sector = int(np.bincount(aside.argmin(axis=1), minlength=len(self.widths)).argmax())
        turned = np.exp(-1j * middles[sector])
        order, found = sum(index), np.empty((len(X), self.size))
        z = (X - self.point) @ np.array([1.0, 1.0j]) * turned / self.radius
        for k, exponent in enumerate(self.exponents):
            factor = np.prod(exponent - np.arange(order)) * (turned / self.radius) ** order * 1j ** index[1]
            start = np.exp(1j * exponent * self.widths[sector] / 2)
            found[:, k] = (self.amplitudes[k, sector] * start * factor * z ** (exponent - order)).real
        return found

    def traced(self, rows: Rows, part: CellPart, face: Face) -> FloatArray:
        """Return the trace coefficients of the functions on a face, in the order of the trace rows."""
        unit, depth = rows.traces.units(face), face.thickness
        found = []
        for number, order in rows.traces.continuous_across(face):
            terms = rows.flux.shared_terms(part, face, number, order)
            values = sum(np.reshape(v, (-1, 1)) * self.values(part, face.points, index) for _, index, v in terms)
            scale = np.sqrt(depth * face.weights) * (depth / 2) ** order / unit[number]
            found.append(face.basis.T @ (values * scale[:, None]))
        return np.vstack(found)

    def projected(self, layout: Layout, part: CellPart) -> FloatArray:
        """Return the weights of a part that fit the functions best in L2, shape (functions, weights)."""
        eye = np.eye(layout.reference.size)
        roots = np.sqrt(part.weights)[:, None]
        nodes = part_values(layout.reference, part, eye, part.points)
        values = self.values(part, part.points, (0, 0))
        return np.asarray(np.linalg.lstsq(nodes * roots, values * roots, rcond=1e-12)[0].T)


def powers(widths: Sequence[float], coefficients: Sequence[float], most: float) -> Iterator[tuple[float, Any]]:
    """Yield the exponents below ``most`` of solutions r^s of div(a grad u) = 0, with amplitudes by sector.

    The sectors, each with a constant coefficient, fill the full angle.

    Examples
    --------
    >>> quarters = [np.pi / 2] * 4
    >>> [round(power, 9) for power, _ in powers(quarters, [3 + 8**0.5, 1, 3 + 8**0.5, 1], 2)]
    [0.5, 1.5]
    """

    def steps(power: float) -> list[FloatArray]:
        turns = [power * width for width in widths]
        return [
            np.array([[np.cos(t), np.sin(t) / a], [-a * np.sin(t), np.cos(t)]])
            for t, a in zip(turns, coefficients, strict=True)
        ]

    def gap(power: float) -> float:
        # A solution is periodic: once around, value and flux return, so the transfer matrix has the eigenvalue one.
        return float(np.trace(reduce(lambda one, two: two @ one, steps(power))) - 2.0)

    for power in _roots(gap, most):
        if abs(power - round(power)) < np.sqrt(ROUNDING):
            continue  # a polynomial
        around = reduce(lambda one, two: two @ one, steps(power))
        _, sizes, vectors = np.linalg.svd(around - np.eye(2))
        for vector in vectors[sizes < np.sqrt(ROUNDING) * max(1.0, float(np.abs(around).max()))]:
            state, amplitudes = vector, []
            for step, a in zip(steps(power), coefficients, strict=True):
                amplitudes.append(complex(state[0], -state[1] / a))
                state = step @ state
            yield power, np.array(amplitudes) / np.abs(amplitudes).max()


def _roots(function: Any, most: float) -> list[float]:
    """Return the zeros of a function that is positive on very short intervals only, if at all."""

    def each(s: FloatArray) -> FloatArray:
        return np.array([function(power) for power in s.ravel()])

    X = np.linspace(0.0, most, SCAN**2)[1:]
    values = each(X)
    (left,) = np.nonzero(values[:-1] * values[1:] < 0)
    (tops,) = np.nonzero((values[:-2] <= values[1:-1]) & (values[1:-1] >= values[2:]) & (values[1:-1] <= 0))
    whole = np.array([[0.0, most]])
    summits = climbed(each, X[1 + tops, None], X[:1], whole)[:, 0]
    heights = each(summits)
    above, level = heights > 0, (heights <= 0) & (heights > -CLOSE)
    low = np.concatenate([X[left], X[tops[above]], summits[above]])
    high = np.concatenate([X[left + 1], summits[above], X[tops[above] + 2]])
    return sorted([*bracketed(lambda s, _: each(s), low, high).tolist(), *summits[level].tolist()])


def corner_singularities(tree_domain: TreeDomain, marks: FloatArray) -> tuple[CornerSingularity, ...]:
    """Return the corner singularities of a plane problem.

    ``marks`` are points and coordinate planes; a plane has NaN along the axes it extends in.
    """
    problem = tree_domain.problem
    equations = problem.laws.statements
    if (
        len(problem.domain.space) != 2
        or problem.domain.time is not None
        or len(equations) != 1
        or not equations[0].form.is_linear
        or equations[0].form.is_constant
        or any(isinstance(s.place, Across | AtPoints | Average) for s in problem.statements)
    ):
        return ()
    candidates = [point for point in _candidates(tree_domain, marks) if tree_domain.inside(point[None]).all()]
    found = (_singularity(tree_domain, equations[0], point) for point in candidates)
    return tuple(one for one in found if one is not None)


def _candidates(tree_domain: TreeDomain, marks: FloatArray) -> list[FloatArray]:
    """Return the points at which curves or planes of jumps end or meet."""
    planes = [row for row in marks if np.isnan(row).sum() == 1]
    points = [row for row in marks if np.isfinite(row).all()]
    points += [np.where(np.isnan(one), two, one) for one, two in combinations(planes, 2)]
    size = np.ptp(tree_domain.domain.bounds, axis=1)
    kept: list[FloatArray] = []
    for point in points:
        if np.isfinite(point).all() and all(np.abs((point - one) / size).max() > CLOSE for one in kept):
            kept.append(point)
    return kept


def _singularity(tree_domain: TreeDomain, equation: Statement, point: FloatArray) -> CornerSingularity | None:
    angles = 2 * np.pi * (np.arange(SCAN**2) + 0.5) / SCAN**2
    coefficient = _Coefficient(tree_domain.problem, equation)
    radius = float(np.ptp(tree_domain.domain.bounds, axis=1).max())
    for _ in range(HALVINGS):
        radius /= 2
        rings = [coefficient.at(tree_domain, point, share * radius, angles) for share in 0.5 ** np.arange(HALVINGS)]
        if all(ring is not None and _alike(ring, rings[-1]) for ring in rings):
            break
    else:
        return None
    ring = rings[-1]
    assert ring is not None
    (changes,) = np.nonzero(np.abs(ring - np.roll(ring, 1)) > CLOSE * np.abs(ring).max())
    if len(changes) < 2:
        return None
    starts = np.array([coefficient.edge(tree_domain, point, radius, angles[k - 1], angles[k]) for k in changes])
    widths = np.diff(np.append(starts, starts[0] + 2 * np.pi))
    own = [*powers(widths.tolist(), ring[changes].tolist(), equation.form.order)]
    if not own:
        return None
    return CornerSingularity(
        point, starts, widths, np.array([p for p, _ in own]), np.array([a for _, a in own]), radius
    )


def _alike(one: FloatArray, two: FloatArray | None) -> bool:
    return two is not None and bool((np.abs(one - two) <= CLOSE * np.abs(two).max()).mean() == 1.0)


@dataclass(frozen=True, eq=False)
class _Coefficient:
    """The diffusion coefficient of an equation a Δu = f without further terms."""

    problem: Problem
    equation: Statement

    def at(self, tree_domain: TreeDomain, point: FloatArray, radius: float, angles: FloatArray) -> FloatArray | None:
        """Return the coefficient on a circle; None if the equation has another form or the domain ends there."""
        X = point + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        low, high = np.asarray(tree_domain.domain.bounds).T
        if not tree_domain.inside(X).all() or not ((low < X) & (high > X)).all():
            return None
        terms: dict[MultiIndex, FloatArray] = {(2, 0): np.zeros(len(X)), (0, 2): np.zeros(len(X))}
        form = self.equation.form
        for term, function in zip(form.terms, form.coefficient_functions, strict=True):
            terms[term.multi_index] = function(X) * np.ones(len(X))
        first, second = terms.pop((2, 0)), terms.pop((0, 2))
        size = np.abs(first).max()
        clean = all(np.abs(value).max() * radius ** (2 - sum(i)) <= CLOSE * size for i, value in terms.items())
        same = np.abs(first - second).max() <= CLOSE * size and (np.sign(first) == np.sign(first[0])).all()
        return np.abs(first) if clean and same and size > 0 else None

    def edge(self, tree_domain: TreeDomain, point: FloatArray, radius: float, low: float, high: float) -> float:
        """Return the angle between two others at which the coefficient jumps."""
        low = low - 2 * np.pi if low > high else low
        before = self.at(tree_domain, point, radius / 2, np.array([low]))

        def same(angles: FloatArray) -> BoolArray:
            ring = self.at(tree_domain, point, radius / 2, angles.ravel())
            if ring is None or before is None:
                return np.zeros(angles.shape, dtype=np.bool_)
            return np.asarray(np.abs(ring - before) <= CLOSE * before).reshape(angles.shape)

        return float(np.mean(narrowed(same, np.array([low]), np.array([high]))))
