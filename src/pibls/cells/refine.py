"""Which cells to split, and across which axes: where data are rough, and later where solutions are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.cells.measure import Tails, missed_along, tails_of
from pibls.cells.parts import CellPart, Layout
from pibls.cells.probe import Probe, missed_on_line
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit
from pibls.cells.surface import Piece
from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem import Statement
from pibls.problem.evaluate import Function

__all__ = ["Marker", "follow_data"]

Splits = dict[Cell, list[tuple[int, float | None]]]

_REST, _LEAST_REST, _MOST_REST = 0.3, 1e-4, 0.02  # of all that is rough (squared), in the cells that are not split
_LACKING_SHARE = 0.5  # of all that rows lack, likewise
_SIDEWAYS = 0.1  # an axis this much smoother than the roughest one is not split
_DATA_SHARE = 100.0  # data need not be better than this many tolerances: solving smooths them
_ROUNDS = 60
_LEVELS = 3  # towards a landmark, at once


@dataclass(frozen=True, eq=False)
class Marker:
    """Chooses splits from a solution."""

    layout: Layout

    @property
    def tails(self) -> Tails:
        """Measures roughness."""
        return tails_of(self.layout.reference)

    def splits(self, fit: Fit, sizes: FloatArray, goal: float, most: float = math.inf) -> tuple[Splits, float]:
        """Return the splits of the cells that hold nearly all that is rough, and of those that lack most.

        The others hold less than the error is to fall by, which is the goal, or a fixed share if that is more. Where
        that would give too many new cells only the roughest are split; the share of all that is rough in those that
        were chosen and are split comes with them.
        """
        rest = min(max((_REST * goal) ** 2, _LEAST_REST), _MOST_REST)
        tails = {
            part: (self.tails.of_weights(weights, part) / sizes[:, None]).max(axis=0)
            for part, weights in fit.weights.items()
        }
        rough = {part: float(np.linalg.norm(values)) for part, values in tails.items()}
        chosen = [*_bulk(rough, 1.0 - rest), *_bulk(fit.residuals, _LACKING_SHARE)]
        splits: Splits = {}
        wanted = held = 0.0
        for part in dict.fromkeys(chosen):
            wanted += rough[part] ** 2
            cuts = self.cuts(part.cell, tails[part])
            if most > 0:
                splits[part.cell] = cuts
                held += rough[part] ** 2
                most -= 2 ** len(cuts) - 1
        return splits, held / wanted if wanted > 0 else 1.0

    def cuts(self, cell: Cell, tails: FloatArray) -> list[tuple[int, float | None]]:
        """Return the axes to halve a cell across: those along which it is rough."""
        axes = np.flatnonzero(tails >= _SIDEWAYS * tails.max()) if tails.max() > 0 else [int(cell.size.argmax())]
        return [(int(axis), None) for axis in axes]

    def is_smooth(self, fit: Fit) -> bool:
        """Tell whether a solution is smooth on all parts."""
        return all(self.tails.is_smooth(weights) for weights in fit.weights.values())

    def refined(self, fit: Fit, sizes: FloatArray, goal: float = 1.0, most: float = math.inf) -> tuple[Cell, float]:
        """Return a finer tree, split some more times towards the landmarks at which the solution is not smooth.

        The share of what was to be split comes with it.
        """
        splits, share = self.splits(fit, sizes, goal, most)
        root = refined(fit.root, splits)
        rough = {
            part.cell
            for part, weights in fit.weights.items()
            if part.cell.has_corner and not self.tails.is_smooth(weights)
        }
        for _ in range(_LEVELS if rough else 0):
            marked = [leaf for leaf in leaves(root) if leaf.has_corner and _comes_from(leaf, rough)]
            root = refined(root, {leaf: [(axis, None) for axis in range(len(leaf.low))] for leaf in marked})
        return root, share


def _bulk(values: Mapping[CellPart, float], share: float) -> list[CellPart]:
    """Return the fewest parts whose values hold a share of the square sum of all."""
    total, held, chosen = sum(value**2 for value in values.values()), 0.0, []
    for part in sorted(values, key=lambda one: -values[one]):
        chosen.append(part)
        held += values[part] ** 2
        if held >= share * total:
            break
    return chosen


def _comes_from(leaf: Cell, ancestors: set[Cell]) -> bool:
    cell: Cell | None = leaf
    while cell is not None:
        if cell in ancestors:
            return True
        cell = cell.parent
    return False


def _source(statement: Statement, X: FloatArray | None = None) -> Function | None:
    """Return the source of a statement, or None: a nonlinear one may have no value at zero."""
    try:
        found = statement.form.source_function
        if X is not None and not statement.form.is_linear:
            found(X)
    except ProblemError:
        if statement.form.is_linear:
            raise
        return None
    return found


def follow_data(root: Cell, rows: Rows, tol: float, most: int) -> Cell:
    """Split cells until sources, coefficients and boundary values are resolved on each, or there are too many."""
    follower = _Follower(rows, tails_of(rows.layout.reference), Probe(rows.layout))
    done: dict[Cell, tuple[FloatArray, float]] = {}
    for _ in range(_ROUNDS):
        cells = leaves(root)
        for cell in cells:
            if cell not in done:
                done[cell] = follower.roughness(cell)
        scale = float(np.sqrt(sum(done[cell][1] for cell in cells)))
        limit = _DATA_SHARE * tol * scale
        splits: Splits = {}
        for cell in cells:
            tails = done[cell][0]
            if tails.max() > limit:
                splits[cell] = [(int(a), None) for a in np.flatnonzero(tails >= max(limit, _SIDEWAYS * tails.max()))]
        if not splits or len(cells) + sum(2 ** len(s) for s in splits.values()) > most:
            return root
        root = refined(root, splits)
    return root


@dataclass(frozen=True, eq=False)
class _Follower:
    """Measures how rough the data of a problem are on a cell, in units of the solution."""

    rows: Rows
    tails: Tails
    probe: Probe

    def roughness(self, cell: Cell) -> tuple[FloatArray, float]:
        """Return the roughness along each axis, and the square of the size of the data."""
        rough, size = np.zeros(len(cell.low)), 0.0
        for part in self.rows.layout.parts(cell):
            for own, square in (self._inside(part), self._boundary(part)):
                rough = np.maximum(rough, own)
                size += square
        return rough, size

    def _inside(self, part: CellPart) -> tuple[FloatArray, float]:
        factors = self._factors(part)
        rough, size = np.zeros(len(part.half)), 0.0
        for factor, equation in zip(factors, self.rows.equations, strict=True):
            function = _source(equation, part.points)
            if function is None or function.constant == 0.0:
                continue
            values = factor * function(part.points)
            size += float(part.weights @ np.square(values))
            if function.constant is None:
                rough = np.maximum(rough, self._rough(part, values))
                if part.whole:
                    rough = np.maximum(rough, factor * self.probe.missed(part, function, id(equation)))
        return rough, size

    def _factors(self, part: CellPart) -> FloatArray:
        if self.rows.problem.is_linear:
            return self.rows.balance(part)[0]
        return np.array([float((part.half**2).min())] * len(self.rows.equations))

    def _rough(self, part: CellPart, values: FloatArray) -> FloatArray:
        if part.whole:
            return self.tails.of_values(values, part.half)
        reference = self.rows.layout.reference
        zero = (0,) * reference.dimension
        few = math.comb(max(reference.degree - 2, 1) + reference.dimension, reference.dimension)
        basis = reference.evaluate(part.local(part.points), [zero])[zero][:, :few]
        roots = np.sqrt(part.weights)
        left = (
            values * roots
            - (basis * roots[:, None]) @ np.linalg.lstsq(basis * roots[:, None], values * roots, rcond=1e-10)[0]
        )
        return np.full(len(part.half), float(np.linalg.norm(left)))

    def _boundary(self, part: CellPart) -> tuple[FloatArray, float]:
        layout, cell = self.rows.layout, part.cell
        rough, size = np.zeros(len(part.half)), 0.0
        count = layout.reference.degree + 1
        for place, held in layout.pieces(cell).items():
            for statement in self.rows.problem.statements:
                if statement.place != place or place is None:
                    continue
                function = _source(statement)
                if function is None or function.constant == 0.0:
                    continue
                for piece in held:
                    if not piece.is_plain:
                        continue
                    rule = piece.rule(cell.low, cell.high, count)
                    if rule is None:
                        continue
                    unit = self._unit(statement, part, rule)
                    depth = float((np.abs(rule.normals) @ (2 * part.half)).mean())
                    values = function(rule.points, rule.normals) / unit
                    size += depth * float(rule.weights @ np.square(values))
                    if function.constant is None and len(values) > 2:
                        own = missed_along(values * np.sqrt(depth), rule.weights, len(piece.box), count)
                        own = max(own, np.sqrt(depth) / unit * self._on_curve(piece, function))
                        rough = np.maximum(rough, own * (np.ptp(part.local(rule.points), axis=0) > 0.1))
        return rough, size

    def _on_curve(self, piece: Piece, function: Any) -> float:
        """Return what Gauss points on a curve miss of a function."""
        if len(piece.box) != 1:
            return 0.0
        start, stop = piece.box[0]

        def along(s: FloatArray) -> FloatArray:
            X, normals, _ = piece.patch.at(start + (stop - start) * (s[:, None] + 1) / 2)
            return np.asarray(function(X, normals))

        length = piece.patch.measure * (stop - start)
        return missed_on_line(along, self.rows.layout.reference.degree + 1) * float(np.sqrt(length / 2))

    def _unit(self, statement: Any, part: CellPart, rule: Any) -> float:
        if not statement.form.is_linear:
            return 1.0
        terms, _ = self.rows.lowered(statement, part, rule.points, rule.normals)
        return float(self.rows.sizes(terms, part.half).max()) or 1.0
