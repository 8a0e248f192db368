"""Block Arnoldi iteration with the inverse of a shifted problem, on one tree of cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.evaluation import PlacedStatement
from pibls.cells.fitters import LinearFitter
from pibls.cells.layout import Layout
from pibls.cells.outcome import network_of
from pibls.cells.parts import CellPart
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.quadrature.roots import ROUNDING
from pibls.refinement.standards import NEGLIGIBLE
from pibls.solution.celled import CellNetwork
from pibls.spectrum.pencil import Pencil, applied

SPARE = 2  # functions in a block beyond the eigenvalues that are asked for: the last ones converge slowly
_STEPS = 30  # blocks at most
_DEPENDENT = 1e-10  # of a block: directions that are rounding

Functions = FloatArray
"""Weights of functions on all parts, shape (functions, parts, fields, functions of a cell)."""


@dataclass(frozen=True, eq=False)
class Modes:
    """Eigenvalues on a tree, nearest to the shift first, and the weights of their eigenfunctions."""

    layout: Layout  # the problem on its domain
    fit: Fit  # the tree
    values: Any  # the eigenvalues
    missed: FloatArray  # what the iteration and rounding leave of each, by its distance from the shift
    weights: dict[CellPart, Any]  # shape (eigenfunctions, fields, functions); complex where eigenvalues are
    residuals: dict[CellPart, FloatArray]  # that each eigenfunction leaves in the rows of every part
    starts: Fit  # these eigenfunctions and some more as fields, to start from on another tree

    @cached_property
    def residual(self) -> float:
        """The largest residual of an eigenfunction, in terms of its size."""
        return float(self.left.max())

    @cached_property
    def left(self) -> FloatArray:
        """The residual of each eigenfunction."""
        return np.asarray(np.sqrt(sum(np.square(own) for own in self.residuals.values())))

    @cached_property
    def as_fields(self) -> Fit:
        """All eigenfunctions side by side as the fields of one fit: real parts, and imaginary ones if there are any."""
        parts = {part: np.concatenate(own, axis=0) for part, own in self.weights.items()}
        if any(own.imag.any() for own in parts.values()):
            parts = {part: np.concatenate([own.real, own.imag]) for part, own in parts.items()}
        residuals = {part: float(np.linalg.norm(own)) for part, own in self.residuals.items()}
        return replace(self.fit, weights={part: own.real for part, own in parts.items()}, residuals=residuals)

    @cached_property
    def network(self) -> CellNetwork:
        """The functions to start from as a network."""
        return network_of(self.layout, self.starts)

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
        values = network_of(self.layout, self.as_fields).evaluate(X, [zero])[zero]
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

    @cached_property
    def numbers(self) -> dict[CellPart, int]:
        """The number of each part."""
        return {part: number for number, part in enumerate(self.fit.parts)}

    @property
    def fields(self) -> int:
        """Number of fields of the problem."""
        return len(self.pencil.problem.field_names)

    def whole(self, functions: Any) -> Any:
        """Return functions as they are; pairs of real fields ψ as ψ − i J ψ, where J multiplies them by i.

        J then is multiplication by i, so that eigenvalues are those of the complex problem, once each.
        """
        return functions - 1j * self.pencil.turned(functions) if self.pencil.is_complex else functions

    def first(self, count: int, rng: np.random.Generator, near: Modes | None) -> Any:
        """Return functions to start with: made of random waves as sources, and of eigenfunctions nearby."""
        layout = self.linear.layout
        low, size = layout.root.low, layout.root.size
        turns = rng.standard_normal((len(layout.root.low), count)) * 2.0 * np.sqrt(count)
        phases = rng.uniform(0.0, 2.0 * np.pi, count)
        signs = {id(s.form): rng.standard_normal(count) for s in layout.problem.statements}

        def sources(own: PlacedStatement, part: CellPart) -> FloatArray:
            held = signs.get(id(own.statement.form))
            if held is None:
                return np.zeros((len(own.points), count + self._known(near)))
            waves = held * np.sin((own.points - low) / size @ turns + phases)
            return np.hstack([waves, *([] if near is None else [self._seen(near, own, part)])])

        found = self.stacked(self.linear.solver.solve_for(sources).columns)
        self._spend(count + self._known(near))
        return self.whole(self._doubled(found, np.zeros_like(found)))

    def stacked(self, columns: dict[CellPart, Any]) -> Functions:
        """Return functions given part by part as one array."""
        return np.stack([columns[part] for part in self.fit.parts], axis=1)

    def fields_of(self, functions: Any) -> Fit:
        """Return the real parts of functions side by side as the fields of one fit."""
        functions, width = functions.real, functions.shape[3]
        return replace(self.fit, weights={p: functions[:, k].reshape(-1, width) for p, k in self.numbers.items()})

    def _known(self, near: Modes | None) -> int:
        return 0 if near is None else near.network.size // self.fields

    def _seen(self, near: Modes, own: PlacedStatement, part: CellPart) -> FloatArray:
        """Return the terms of a statement with the eigenvalue, for functions on another tree, as columns."""
        _, once, twice = self.coefficients.get(id(own.statement.form), ({}, {}, {}))
        terms = once or twice
        around = near.around(part.center)
        if around is not None:
            functions = near.starts.weights[around].reshape(self._known(near), self.fields, -1)
            return applied(near.layout, own, around, terms, functions)
        found = np.zeros((len(own.points), self._known(near)))
        values = near.network.evaluate(own.points, list(dict.fromkeys(index for _, index in terms))) if terms else {}
        for (number, index), coefficient in terms.items():
            found += coefficient(own.points, own.normals)[:, None] * values[index][:, number :: self.fields]
        return np.nan_to_num(found)

    def _doubled(self, own: Functions, before: Functions) -> Functions:
        """Return functions; in a quadratic problem also the products of the eigenvalue with them."""
        return np.concatenate([own, before + self.shift * own], axis=2) if self.pencil.is_quadratic else own

    def _spend(self, sides: int) -> None:
        self.linear.budget.spend(self.linear.solver.memory * sides)

    def inverted(self, functions: Any) -> Any:
        """Return the inverse of the shifted problem, applied to functions."""
        real = functions.real
        return self.whole(self._doubled(self.stacked(self._solved(real).columns), real[:, :, : self.fields]))

    def _solved(self, functions: Functions, *, back: bool = False) -> Fit:
        """Solve the shifted problem with the terms of functions that the eigenvalue multiplies as sources.

        With ``back`` it is also solved with itself, applied to them point by point: they come back but for rounding.
        """
        layout, fields = self.linear.layout, self.fields

        def sources(own: PlacedStatement, part: CellPart) -> FloatArray:
            plain, once, twice = self.coefficients.get(id(own.statement.form), ({}, {}, {}))
            every = functions[:, self.numbers[part]]
            here = every[:, :fields]
            found = linear = applied(layout, own, part, once, here)
            if twice:
                found = found + applied(layout, own, part, twice, every[:, fields:] + self.shift * here)
            if not back:
                return found
            whole = applied(layout, own, part, plain, here) + self.shift * linear
            return np.hstack([found, -whole - self.shift**2 * applied(layout, own, part, twice, here)])

        self._spend(len(functions) * (1 + back))
        return self.linear.solver.solve_for(sources)

    def residual(self, values: Any, functions: Any) -> tuple[dict[CellPart, FloatArray], Any]:
        """Return the residuals that eigenfunctions of size one leave in the rows of every part, and their rounding.

        Residuals are in the units of rows; rounding is a change of functions.
        """
        if self.pencil.is_quadratic:
            functions = np.concatenate([functions, functions * values[:, None, None, None]], axis=2)
        # The imaginary part of a complex field says nothing new.
        halves = [functions.real, *([functions.imag] if values.imag.any() and not self.pencil.is_complex else [])]
        every, count = np.concatenate(halves), len(halves) * len(values)
        solved = self._solved(every, back=True)
        away = np.abs(values - self.shift)
        sizes = {
            part: np.linalg.norm(own[:count].reshape(len(halves), -1), axis=0) for part, own in solved.left.items()
        }
        change = self.stacked(solved.columns)[count:] - every[:, :, : self.fields]
        change = self.whole(self._doubled(change, np.zeros_like(change)))
        parts = np.split(change, len(halves))
        return {part: own * away for part, own in sizes.items()}, parts[0] + 1j * parts[1] if len(parts) > 1 else change

    def sampled(self, functions: Any) -> Any:
        """Return numbers, as columns, whose squares sum to those of functions over the domain.

        In whole parts these are weights, and in cut ones values at points times roots of weights.
        """
        whole = np.array([part.whole for part in self.fit.parts])
        scales = np.sqrt([part.extent for part in self.fit.parts if part.whole])
        found = [(functions[:, whole] * scales[:, None, None]).reshape(len(functions), -1)]
        for part, values in self._values(functions, [part for part in self.fit.parts if not part.whole]):
            found.append((np.sqrt(part.weights) * values).reshape(len(functions), -1))
        return np.concatenate(found, axis=1).T

    def sizes(self, functions: Any) -> FloatArray:
        """Return the size of functions in the mean square over the domain, or of real parts of complex ones."""
        every = self._values(functions.real if self.pencil.is_complex else functions, self.fit.parts)
        squares = ((np.abs(own) ** 2).sum(axis=1) @ part.integrals for part, own in every)
        # Exact weights of cut parts may be negative, and so may be their sum on a very coarse tree.
        return np.asarray(np.sqrt(np.abs(sum(squares))))

    def _values(self, functions: Any, parts: Sequence[CellPart]) -> Iterator[tuple[CellPart, Any]]:
        """Yield functions at the points of parts, shape (functions, fields, points)."""
        layout = self.linear.layout
        zero = (0,) * layout.reference.dimension
        for part in parts:
            yield part, functions[:, self.numbers[part]] @ layout.functions_at(part, part.points, [zero])[zero].T


def modes_of(
    pencil: Pencil,
    linear: LinearFitter,
    fit: Fit,
    shift: float,
    target: complex,
    number: int,
    tol: float,
    seed: int,
    near: Modes | None = None,
) -> Modes:
    """Return the eigenvalues nearest to a target, and their eigenfunctions, on the tree that was solved last.

    The inverse of the problem at the shift acts on a growing basis as a small matrix: if μ is one of its eigenvalues,
    the shift plus 1/μ is one of the problem. The iteration ends when all that are as near to the shift as any that is
    nearer to the target can be leave next to nothing. It starts from random functions, and from eigenfunctions on
    another tree if there are any.
    """
    arnoldi = _Arnoldi(pencil, linear, fit, shift)
    rng = np.random.default_rng((seed, len(fit.parts), linear.layout.reference.degree))
    image = arnoldi.first(SPARE if near is not None else number + SPARE, rng, near)
    samples = arnoldi.sampled(image)
    blocks, bases = image[:0], samples[:, :0]
    matrix, size = np.zeros((0, 0)), float(np.linalg.norm(samples, ord=2))
    before = np.zeros(0)
    for _ in range(_STEPS):
        block, basis, triangle = _orthonormal(image, samples, size)
        if not len(block):
            break
        below = np.zeros((len(triangle), matrix.shape[1]), dtype=matrix.dtype)
        below[:, matrix.shape[1] - triangle.shape[1] :] = triangle if len(blocks) else 0.0
        matrix = np.vstack([matrix, below])
        blocks, bases = np.concatenate([blocks, block]), np.hstack([bases, basis])
        image = arnoldi.inverted(block)
        samples, height = _less(arnoldi.sampled(image), bases)
        size = float(np.linalg.norm(height, ord=2))
        image = image - np.tensordot(height.T, blocks, axes=1)
        matrix = np.hstack([matrix, height])
        values, vectors = _largest_first(matrix)
        order, reach = _nearest(values, target - shift, number)
        lost = np.linalg.norm(samples @ vectors[-len(block) :, :reach], axis=0) / np.abs(values[:reach])
        # Near known functions, the error of a value is the square of that if they are at right angles: else it moves.
        known = np.append(before, np.full(len(values), np.inf))[:reach]
        moved = np.abs(values[:reach] - known) / np.abs(values[:reach])
        missing = lost if near is None else np.minimum(lost, np.maximum(lost**2, moved))
        before = values
        if (missing <= NEGLIGIBLE * tol).all():
            break
    more = vectors[:, : number + SPARE]
    # Vectors of equal eigenvalues may be nearly parallel: every direction counts, however short.
    more = more if pencil.is_complex else np.hstack([more.real, more.imag])
    ways, scales, _ = np.linalg.svd(more, full_matrices=False)
    ways = ways[:, scales > _DEPENDENT * scales[0]]
    starts = arnoldi.fields_of(np.tensordot(ways.T, blocks[:, :, : arnoldi.fields], axes=1))
    found = np.tensordot(vectors[:, order].T, blocks, axes=1)
    # Left eigenvectors, as functions of samples.
    left = np.linalg.pinv(vectors)[order] @ bases.conj().T
    return _normalised(arnoldi, shift + 1.0 / values[order], found, starts, left, missing[order], tol)


def _largest_first(matrix: Any) -> tuple[Any, Any]:
    """Return the eigenvalues of a matrix, the largest first, and their eigenvectors as columns."""
    values, vectors = np.linalg.eig(matrix)
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], vectors[:, order]


def _nearest(values: Any, target: complex, number: int) -> tuple[Any, int]:
    """Return which 1/μ of falling size are nearest to a target, and how many may be as near.

    Those can be as near that are no farther from zero than the target and the farthest of them together.
    """
    away = np.abs(1.0 / values - target)
    order = np.argsort(away, kind="stable")[:number]
    reach = (abs(target) + away[order].max()) * (1.0 + ROUNDING)
    return order, max(int((np.abs(values) * reach >= 1.0).sum()), int(order.max()) + 1)


def _less(samples: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return samples less their part in a basis, and that part; twice is enough for rounding."""
    height = basis.conj().T @ samples
    samples = samples - basis @ height
    more = basis.conj().T @ samples
    return samples - basis @ more, height + more


def _orthonormal(functions: Functions, samples: FloatArray, size: float) -> tuple[Functions, FloatArray, FloatArray]:
    """Return orthonormal functions, their samples, and how the given ones depend on them; rounding is left out."""
    left, scales, right = np.linalg.svd(samples, full_matrices=False)
    kept = scales > _DEPENDENT * size
    made = np.tensordot(right[kept].conj() / scales[kept, None], functions, axes=1)
    return made, left[:, kept], scales[kept, None] * right[kept]


def _normalised(
    arnoldi: _Arnoldi, values: Any, functions: Any, starts: Fit, left: Any, missing: FloatArray, tol: float
) -> Modes:
    """Return eigenfunctions of size one, as real as they can be."""
    samples = arnoldi.sampled(functions[:, :, : arnoldi.fields])
    turn = samples[np.abs(samples).argmax(axis=0), np.arange(samples.shape[1])]
    scale = np.conj(turn) / np.abs(turn) / np.linalg.norm(samples, axis=0)
    # Of two equal eigenvalues rounding makes a pair, whose real and imaginary part are eigenfunctions.
    real = np.abs(values.imag) <= tol * np.abs(values - arnoldi.shift)
    second = real & (values.imag < 0) & (not arnoldi.pencil.is_complex)
    functions = functions * np.where(second, 1j * scale, scale)[:, None, None, None]
    if not arnoldi.pencil.is_complex:
        functions = np.where(real[:, None, None, None], functions.real, functions)
    functions = functions / arnoldi.sizes(functions[:, :, : arnoldi.fields])[:, None, None, None]
    values = np.where(real, values.real, values)
    residuals, change = arnoldi.residual(values, functions[:, :, : arnoldi.fields])
    # Rounding moves an eigenvalue by the entry of its own change, which is as large by chance as those of the others.
    entries = np.linalg.solve(left @ arnoldi.sampled(functions), left @ arnoldi.sampled(change))
    missed = np.linalg.norm(left, axis=1) * missing + np.linalg.norm(entries, axis=1)
    weights = {part: functions[:, number, : arnoldi.fields] for part, number in arnoldi.numbers.items()}
    return Modes(arnoldi.linear.layout, arnoldi.fit, values, missed, weights, residuals, starts)
