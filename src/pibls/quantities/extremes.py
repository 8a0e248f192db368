"""Largest and smallest values of expressions, with their places and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from pibls.cells.surface import Piece
from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.geometry.sampling import kronecker
from pibls.problem.field_expressions import Expression
from pibls.quadrature.roots import ROUNDING, climbed
from pibls.quadrature.rules import tensor
from pibls.quantities.boxwise import BOXED, Bounded, Patchwork
from pibls.quantities.pair import SolutionPair
from pibls.quantities.quantity import Quantity
from pibls.quantities.values import errors_at
from pibls.quantities.where import Where
from pibls.refinement.standards import MOST, NEGLIGIBLE
from pibls.solution.celled import CellNetwork

_FEWEST_BOXES = 64  # for a network that has no cells
_TRIED = 12  # boxes and pieces in which the best candidate is improved
_ROUNDS = 27  # halvings of steps: more would be below rounding
_RINGS, _DIRECTIONS = 4, 200  # around a place, to see whether values grow without bound towards it


@dataclass(frozen=True, eq=False)
class _Chart:
    """A box, or a piece of a surface, as the image of a unit cube."""

    parameters: int
    at: Callable[[FloatArray], tuple[FloatArray, FloatArray]]  # points, and the ways inwards
    is_surface: bool = False


@dataclass(frozen=True, eq=False)
class Extremes:
    """Looks for the largest value of an expression times a sign at one place of a solution."""

    pair: SolutionPair
    place: Where
    expression: Expression
    sign: float

    def found(self) -> Quantity:
        """Return the largest value, times the sign."""
        sign, expression = self.sign, self.expression
        if len(self.place.domain.coordinates) > BOXED or self.place.domain.atoms is not None:
            raise InputError(
                f"Largest and smallest values are found in up to {BOXED} coordinates, on domains with an inside. Got "
                f"{self.place.domain}; use value(expression) at points instead."
            )
        endless = None if expression.needs_normals else self._resolved()
        found = [self._highest(k) for k in range(len(self.pair.both))]
        (value, X, inward), (other, _, _) = found[0], found[-1]
        if endless is not None:
            return Quantity(sign * value, np.inf, endless, "values grow without bound towards this place")
        place = self.place.lifted(self._plain(X))
        place.setflags(write=False)
        if not np.isfinite(value):
            return Quantity(sign * value, np.inf, place[0], "the expression is not finite there")
        normals = -inward if expression.needs_normals else None
        nearby = float(errors_at(self.pair, expression, place, normals, inward)[0])
        return self.pair.quantity(
            sign * value, max(float(self.pair.error(abs(value - other), abs(value))), nearby), place[0]
        )

    def _plain(self, X: FloatArray) -> FloatArray:
        """Return a place without the digits that a search does not find: near a summit values hardly differ."""
        held = self.place.part or self.place.region or self.place.domain
        grain = 10.0 ** np.floor(np.log10(np.sqrt(ROUNDING) * np.ptp(self.place.domain.bounds, axis=1).max()))
        shorter = grain * np.round(X / grain) + 0.0
        return shorter if bool(held.contains(shorter).all()) else X

    @cached_property
    def _work(self) -> Patchwork:
        network = self.pair.finest
        work = Patchwork.over(self.place, network, self.pair.solution.problem.domain.bounds, self.pair.line_quadratures)
        while not isinstance(network, CellNetwork) and 0 < len(work.boxes) < _FEWEST_BOXES:
            work = work.split(range(len(work.boxes)))
        return work

    @cached_property
    def _groups(self) -> list[list[_Chart]]:
        """Boxes, unless the expression is one of surfaces, and pieces of surfaces."""
        whole = self.place.part is None and not self.expression.needs_normals
        pieces = [piece for box in self._work.boxes for piece in (box.held or box.cuts)]
        return [[_of_box(box) for box in self._work.boxes] if whole else [], [_of_piece(piece) for piece in pieces]]

    @cached_property
    def _tables(self) -> list[FloatArray]:
        """The values of both solutions on a grid in every chart of each group: shape (2, charts, points)."""
        found = []
        for charts in self._groups:
            both = [np.empty((0, 1))]
            if charts:
                U = np.tile(self._grid(charts), (len(charts), 1))
                numbers = range(len(self.pair.both))
                both = [self._heights(number, charts, U).reshape(len(charts), -1) for number in numbers]
            found.append(np.stack([both[0], both[-1]]))
        return found

    def _heights(self, number: int, charts: Sequence[_Chart], U: FloatArray) -> FloatArray:
        """Return the values of a solution in charts, each of which has as many rows; nothing is high outside."""
        located = [chart.at(own) for chart, own in zip(charts, np.split(U, len(charts)), strict=True)]
        X, inward = (np.concatenate([own[k] for own in located]) for k in (0, 1))
        held = np.asarray(self.place.domain.contains(X))
        if self.place.region is not None:
            held &= np.asarray(self.place.region.contains(X))
        heights = np.full(len(X), -np.inf)
        if held.any():
            way = self.place.along(inward[held])
            along = -way if charts[0].is_surface else None
            points = self.place.lifted(X[held])
            values = self.pair.values(self.pair.both[number], self.expression, points, along, way)
            heights[held] = np.where(np.isnan(values), np.inf, self.sign * values)
        return heights

    @cached_property
    def _side(self) -> FloatArray:
        """Places along a parameter, both ends among them."""
        count = self.pair.degree // 2 + 3
        return np.asarray((1.0 - np.cos(np.pi * np.arange(count) / (count - 1))) / 2)

    def _grid(self, charts: Sequence[_Chart]) -> FloatArray:
        return tensor(*[(self._side, self._side)] * charts[0].parameters)[0]

    def _highest(self, number: int) -> tuple[float, FloatArray, FloatArray]:
        """Return the largest value of a solution, its place, and the way inwards."""
        top = (-np.inf, np.empty((1, 0)), np.empty((1, 0)))
        for charts, both in zip(self._groups, self._tables, strict=True):
            if not charts:
                continue
            table, grid, p = both[number], self._grid(charts), charts[0].parameters
            tried = np.argsort(-table.max(axis=1), kind="stable")[:_TRIED]
            U, best = grid[table[tried].argmax(axis=1)], [charts[k] for k in tried]
            height = partial(self._heights, number, best)
            if p:
                U = climbed(height, U, np.full(p, np.diff(self._side).max()), np.array([[0.0, 1.0]] * p), _ROUNDS)
            last = np.where(np.isfinite(table[tried].max(axis=1)), height(U), table[tried].max(axis=1))
            if last.max() > top[0]:
                k = int(last.argmax())
                X, inward = best[k].at(U[k : k + 1])
                top = float(last[k]), X, self.place.along(inward)
        if top[0] == -np.inf:
            raise InputError(f"There is nothing of {self.place.name} in the domain. Give another 'over'.")
        return top

    def _resolved(self) -> FloatArray | None:
        """Leave values out of tables that cells do not resolve; return a place towards which they grow without bound.

        In the smallest cells around a singular point derivatives are noise, in which solutions do not agree. What they
        tend to is seen farther away.
        """
        network, groups, tables = self.pair.finest, self._groups, self._tables
        if self.pair.richer is None or not isinstance(network, CellNetwork) or not len(self._space):
            return None
        for _ in range(sum(map(len, groups))):
            tops = [both.max(axis=(0, 2), initial=-np.inf) for both in tables]
            group = int(np.argmax([own.max(initial=-np.inf) for own in tops]))
            chart = int(tops[group].argmax())
            here = tables[group][:, chart]
            point = int(here.max(axis=0).argmax())
            if (
                not np.isfinite(here[:, point]).all()
                or np.ptp(here[:, point]) <= NEGLIGIBLE * np.abs(here[:, point]).max()
            ):
                return None
            place = self.place.lifted(groups[group][chart].at(self._grid(groups[group])[point : point + 1])[0])
            rings = self._rings(network, place)
            if rings is None:
                return None
            radius, grows = rings
            if grows:
                return np.asarray(place[0])
            for charts, both in zip(groups, tables, strict=True):
                for k, own in enumerate(charts):
                    middle = own.at(np.full((1, own.parameters), 0.5))[0]
                    apart = np.abs(self.place.lifted(middle) - place)[0, : len(self._space)]
                    both[:, k] = np.where(apart.max() <= radius, -np.inf, both[:, k])
        return None

    @property
    def _space(self) -> tuple[object, ...]:
        return self.pair.solution.problem.domain.space

    def _rings(self, network: CellNetwork, place: FloatArray) -> tuple[float, bool] | None:
        """Return within which radius of a place nothing is resolved, and whether values grow towards it from there.

        None where cells do not shrink towards the place, or nothing is resolved.
        """
        domain, space = self.pair.solution.problem.domain, len(self._space)
        smallest = float(network.halves[network.locate(place)][0, :space].min())
        ways = 2.0 * kronecker(_DIRECTIONS, space) - 1.0
        ways = ways / np.abs(ways).max(axis=1, keepdims=True)
        ways = np.hstack([ways, np.zeros((len(ways), place.shape[1] - space))])
        widest = float(np.ptp(domain.bounds[:space], axis=1).min()) / 4
        first, heights = 0.0, list[float]()
        for radius in smallest * 2.0 ** np.arange(np.floor(np.log2(widest / smallest))):
            X = place + radius * ways
            X = X[np.asarray(domain.contains(X))]
            if not len(X):
                return None
            own, other = (self.sign * self.pair.values(s, self.expression, X) for s in self.pair.both)
            agree = np.abs(own - other).max() <= NEGLIGIBLE * np.abs(own).max()
            first = radius if agree and not heights else first
            if first:
                heights.append(float(own.max()))
            if len(heights) > _RINGS:
                break
        if len(heights) <= _RINGS:
            return None
        growth = -np.diff(np.log2(heights)) if min(heights) > 0.0 else np.zeros(_RINGS)
        return first, bool(growth.min() > 0.0 and growth[0] >= MOST * growth[-1])


def _of_box(box: Bounded) -> _Chart:
    middle, half = (box.low + box.high) / 2, (box.high - box.low) / 2

    def at(U: FloatArray) -> tuple[FloatArray, FloatArray]:
        X = box.low + (box.high - box.low) * U
        return X, (middle - X) / half

    return _Chart(len(box.low), at)


def _of_piece(piece: Piece) -> _Chart:
    def at(U: FloatArray) -> tuple[FloatArray, FloatArray]:
        X, normals, _ = piece.patch.at(piece.box[:, 0] + (piece.box[:, 1] - piece.box[:, 0]) * U)
        return X, -normals

    return _Chart(len(piece.box), at, is_surface=True)
