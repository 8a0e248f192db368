"""Block Arnoldi iteration with the inverse of a shifted problem, on one tree of cells."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.evaluation import Stated
from pibls.cells.fitters import LinearFitter
from pibls.cells.layout import Layout
from pibls.cells.outcome import network_of
from pibls.cells.parts import CellPart
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.refinement.standards import SLIGHT
from pibls.solution.celled import CellNetwork
from pibls.spectrum.pencil import Pencil, applied

SPARE = 2  # functions in a block beyond the eigenvalues that are asked for: the last ones converge slowly
_STEPS = 30  # blocks at most
_DEPENDENT = 1e-10  # of a block: directions that are rounding

Weights = dict[CellPart, FloatArray]


@dataclass(frozen=True, eq=False)
class Modes:
    """Eigenvalues on a tree, nearest to the shift first, and the weights of their eigenfunctions."""

    layout: Layout  # the problem on its domain
    fit: Fit  # the tree
    values: Any  # the eigenvalues
    missed: FloatArray  # what the iteration and rounding leave of each, by its distance from the shift
    weights: dict[CellPart, Any]  # shape (eigenfunctions, fields, functions); complex where eigenvalues are
    residuals: dict[CellPart, FloatArray]  # that each eigenfunction leaves in the rows of every part

    @cached_property
    def residual(self) -> float:
        """The largest residual of an eigenfunction, in terms of its size."""
        return float(np.sqrt(sum(np.square(own) for own in self.residuals.values())).max())

    @cached_property
    def as_fields(self) -> Fit:
        """All eigenfunctions side by side as the fields of one fit: real parts, and imaginary ones if there are any."""
        parts = {part: np.concatenate(own, axis=0) for part, own in self.weights.items()}
        if self.values.imag.any():
            parts = {part: np.concatenate([own.real, own.imag]) for part, own in parts.items()}
        residuals = {part: float(np.linalg.norm(own)) for part, own in self.residuals.items()}
        return replace(self.fit, weights={part: own.real for part, own in parts.items()}, residuals=residuals)

    @cached_property
    def network(self) -> CellNetwork:
        """All eigenfunctions as a network."""
        return network_of(self.layout, self.as_fields)

    @cached_property
    def _alone(self) -> dict[Cell, CellPart]:
        """The part of every cell that has only one."""
        counts = Counter(part.cell for part in self.fit.parts)
        return {part.cell: part for part in self.fit.parts if counts[part.cell] == 1}

    def around(self, point: FloatArray) -> CellPart | None:
        """Return the part in whose cell a point is, or None if there are several."""
        cell = self.fit.root
        while cell.halves:
            cell = cell.halves[int(point[cell.axis] > cell.at)]
        return self._alone.get(cell)

    def at(self, X: FloatArray) -> Any:
        """Return the eigenfunctions at points, all fields of one below each other, as columns."""
        zero = (0,) * X.shape[1]
        values = self.network.evaluate(X, [zero])[zero]
        fields, count = next(iter(self.weights.values())).shape[1], len(self.values)
        values = np.concatenate([values[:, number::fields] for number in range(fields)])
        return values[:, :count] + (1j * values[:, count:] if values.shape[1] > count else 0.0)

    def one(self, number: int) -> tuple[Fit, Fit]:
        """Return the real and the imaginary part of an eigenfunction as fits."""
        real, imaginary = ({part: get(own[number]) for part, own in self.weights.items()} for get in (np.real, np.imag))
        return replace(self.fit, weights=real), replace(self.fit, weights=imaginary)


@dataclass(eq=False)
class _Arnoldi:
    """A basis of functions on which the inverse of a shifted problem acts as a small matrix."""

    pencil: Pencil
    linear: LinearFitter
    fit: Fit
    shift: float

    @cached_property
    def coefficients(self) -> dict[int, tuple[dict[Any, Any], ...]]:
        """How statements depend on the eigenvalue."""
        return self.pencil.by_form(self.linear.layout.problem)

    @property
    def fields(self) -> int:
        """Number of fields of the problem."""
        return len(self.pencil.problem.field_names)

    def first(self, count: int, rng: np.random.Generator, near: Modes | None) -> Weights:
        """Return functions to start with: made of random waves as sources, and of eigenfunctions nearby."""
        layout = self.linear.layout
        low, size = layout.root.low, layout.root.size
        turns = rng.standard_normal((len(layout.root.low), count)) * 2.0 * np.sqrt(count)
        phases = rng.uniform(0.0, 2.0 * np.pi, count)
        signs = {id(s.form): rng.standard_normal(count) for s in layout.problem.statements}

        def sources(own: Stated, part: CellPart) -> FloatArray:
            held = signs.get(id(own.statement.form))
            if held is None:
                return np.zeros((len(own.points), count + self._known(near)))
            waves = held * np.sin((own.points - low) / size @ turns + phases)
            return np.hstack([waves, *([] if near is None else [self._seen(near, own, part)])])

        found = self.linear.solver.again(sources).columns
        self._spend(count + self._known(near))
        return {part: self._doubled(own, np.zeros_like(own)) for part, own in found.items()}

    def _known(self, near: Modes | None) -> int:
        return 0 if near is None else near.network.size // self.fields

    def _seen(self, near: Modes, own: Stated, part: CellPart) -> FloatArray:
        """Return the terms of a statement with the eigenvalue, for functions on another tree, as columns."""
        _, once, twice = self.coefficients.get(id(own.statement.form), ({}, {}, {}))
        terms = once or twice
        around = near.around(part.center)
        if around is not None:
            functions = near.as_fields.weights[around].reshape(self._known(near), self.fields, -1)
            return applied(near.layout, own, around, terms, functions)
        found = np.zeros((len(own.points), self._known(near)))
        values = near.network.evaluate(own.points, list(dict.fromkeys(index for _, index in terms))) if terms else {}
        for (number, index), coefficient in terms.items():
            found += coefficient(own.points, own.normals)[:, None] * values[index][:, number :: self.fields]
        return np.nan_to_num(found)

    def _doubled(self, own: FloatArray, before: FloatArray) -> FloatArray:
        """Return functions; in a quadratic problem also the products of the eigenvalue with them."""
        return np.concatenate([own, before + self.shift * own], axis=1) if self.pencil.is_quadratic else own

    def _spend(self, sides: int) -> None:
        self.linear.budget.spend(self.linear.solver.memory * sides)

    def inverted(self, weights: Weights) -> Weights:
        """Return the inverse of the shifted problem, applied to functions."""
        made = self._solved(weights)
        return {part: self._doubled(own, weights[part][:, : self.fields]) for part, own in made.columns.items()}

    def _solved(self, weights: Weights) -> Fit:
        """Solve the shifted problem with the terms of functions that the eigenvalue multiplies as sources."""
        layout, fields = self.linear.layout, self.fields

        def sources(own: Stated, part: CellPart) -> FloatArray:
            _, once, twice = self.coefficients.get(id(own.statement.form), ({}, {}, {}))
            here = weights[part][:, :fields]
            found = applied(layout, own, part, once, here)
            if twice:
                found += applied(layout, own, part, twice, weights[part][:, fields:] + self.shift * here)
            return found

        self._spend(len(next(iter(weights.values()))))
        return self.linear.solver.again(sources)

    def residual(self, values: Any, weights: dict[CellPart, Any]) -> dict[CellPart, FloatArray]:
        """Return the residuals that eigenfunctions of size one leave in the rows of every part, in their own units."""
        every = {part: np.concatenate([own, own * values[:, None, None]], axis=1) for part, own in weights.items()}
        if not self.pencil.is_quadratic:
            every = weights
        if not values.imag.any():
            left = self._solved({part: own.real for part, own in every.items()}).left
            return {part: own * np.abs(values - self.shift) for part, own in left.items()}
        made = self._solved({part: np.concatenate([own.real, own.imag]) for part, own in every.items()})
        halves = {part: np.split(own, 2) for part, own in made.left.items()}
        return {part: np.hypot(*own) * np.abs(values - self.shift) for part, own in halves.items()}

    def sampled(self, weights: Weights) -> FloatArray:
        """Return functions at the points of all parts, times roots of weights, as columns."""
        found = [np.sqrt(part.weights)[:, None] * values for part, values in self._values(weights)]
        return np.concatenate([own.reshape(-1, own.shape[2]) for own in found])

    def sizes(self, weights: Weights) -> FloatArray:
        """Return the size of functions in the mean square over the domain."""
        squares = ((np.abs(own) ** 2).sum(axis=0).T @ part.integrals for part, own in self._values(weights))
        # Exact weights of cut parts may be negative, and so may be their sum on a very coarse tree.
        return np.asarray(np.sqrt(np.abs(sum(squares))))

    def _values(self, weights: Weights) -> Iterator[tuple[CellPart, FloatArray]]:
        """Yield functions at the points of every part, shape (fields, points, functions)."""
        layout = self.linear.layout
        zero = (0,) * layout.reference.dimension
        for part, own in weights.items():
            nodes = layout.nodes(part, part.points, [zero])[zero]
            yield part, np.einsum("nm,sfm->fns", nodes, own, optimize=True)


def modes_of(
    pencil: Pencil,
    linear: LinearFitter,
    fit: Fit,
    shift: float,
    number: int,
    tol: float,
    seed: int,
    near: Modes | None = None,
) -> Modes:
    """Return the eigenvalues nearest to a shift, and their eigenfunctions, on the tree that was solved last.

    The inverse of the problem at the shift acts on a growing basis as a small matrix: if μ is one of its eigenvalues,
    the shift plus 1/μ is one of the problem. The iteration ends when the wanted ones leave next to nothing. It starts
    from random functions, and from eigenfunctions on another tree if there are any.
    """
    arnoldi = _Arnoldi(pencil, linear, fit, shift)
    rng = np.random.default_rng((seed, len(fit.parts), linear.layout.reference.degree))
    blocks: list[Weights] = []
    bases: list[FloatArray] = []
    image = arnoldi.first(SPARE if near is not None else number + SPARE, rng, near)
    samples = arnoldi.sampled(image)
    matrix, size = np.zeros((0, 0)), float(np.linalg.norm(samples, ord=2))
    for _ in range(_STEPS):
        block, basis, triangle = _orthonormal(image, samples, size)
        if not basis.shape[1]:
            break
        below = np.zeros((len(triangle), matrix.shape[1]))
        below[:, matrix.shape[1] - triangle.shape[1] :] = triangle if blocks else 0.0
        matrix = np.vstack([matrix, below])
        blocks, bases = [*blocks, block], [*bases, basis]
        image = arnoldi.inverted(block)
        samples, height = _less(arnoldi.sampled(image), np.hstack(bases))
        size = float(np.linalg.norm(height, ord=2))
        image = {
            part: own - np.tensordot(height.T, np.concatenate([before[part] for before in blocks]), axes=1)
            for part, own in image.items()
        }
        matrix = np.hstack([matrix, height])
        values, vectors = np.linalg.eig(matrix)
        order = np.argsort(-np.abs(values), kind="stable")[:number]
        lost = np.linalg.norm(samples @ vectors[-basis.shape[1] :, order], axis=0)
        if (lost <= SLIGHT * tol * np.abs(values[order])).all():
            break
    turned = vectors[:, order].T
    weights = {
        part: np.tensordot(turned, np.concatenate([own[part][:, : arnoldi.fields] for own in blocks]), axes=1)
        for part in fit.parts
    }
    # What rounding does to an eigenvalue goes with the angle between its right and left eigenvector.
    angles = np.linalg.norm(np.linalg.pinv(vectors), axis=1)[order]
    missed = angles * (lost / np.abs(values[order]) + sys.float_info.epsilon * math.sqrt(fit.unknowns))
    return _normalised(arnoldi, shift + 1.0 / values[order], weights, missed, tol)


def _less(samples: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return samples less their part in a basis, and that part; twice is enough for rounding."""
    height = basis.T @ samples
    samples = samples - basis @ height
    more = basis.T @ samples
    return samples - basis @ more, height + more


def _orthonormal(weights: Weights, samples: FloatArray, size: float) -> tuple[Weights, FloatArray, FloatArray]:
    """Return orthonormal functions, their samples, and how the given ones depend on them; rounding is left out."""
    left, scales, right = np.linalg.svd(samples, full_matrices=False)
    kept = scales > _DEPENDENT * size
    turned = right[kept] / scales[kept, None]
    made = {part: np.tensordot(turned, own, axes=1) for part, own in weights.items()}
    return made, left[:, kept], scales[kept, None] * right[kept]


def _normalised(arnoldi: _Arnoldi, values: Any, weights: dict[CellPart, Any], missed: FloatArray, tol: float) -> Modes:
    """Return eigenfunctions of size one, as real as they can be."""
    samples = arnoldi.sampled(weights)
    turn = samples[np.abs(samples).argmax(axis=0), np.arange(samples.shape[1])]
    scale = np.conj(turn) / np.abs(turn) / np.linalg.norm(samples, axis=0)
    # Of two equal eigenvalues rounding makes a pair, whose real and imaginary part are eigenfunctions.
    real = np.abs(values.imag) <= tol * np.abs(values - arnoldi.shift)
    second = real & (values.imag < 0)
    scale = np.where(second, 1j * scale, scale)
    weights = {part: own * scale[:, None, None] for part, own in weights.items()}
    weights = {part: np.where(real[:, None, None], own.real, own) for part, own in weights.items()}
    sizes = arnoldi.sizes(weights)
    weights = {part: own / sizes[:, None, None] for part, own in weights.items()}
    values = np.where(real, values.real, values)
    return Modes(arnoldi.linear.layout, arnoldi.fit, values, missed, weights, arnoldi.residual(values, weights))
