"""Which cells to split, and across which axes: where data are rough, and later where solutions are."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from pibls.cells.layout import Layout
from pibls.cells.measure import Tails, missed_along, shares_of, tails_of
from pibls.cells.parts import CellPart
from pibls.cells.probe import Probe, missed_on_line
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit
from pibls.cells.surface import Piece, Rule
from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.features import MultiIndex
from pibls.features.reference import rule_count
from pibls.geometry.rules import gauss, tensor
from pibls.problem import Statement
from pibls.problem.evaluate import Function

__all__ = ["Follower", "Marker"]

Splits = dict[Cell, list[tuple[int, float | None]]]
Mark = tuple[float, ...]

_REST, _LEAST_REST, _MOST_REST = 0.3, 1e-4, 0.02  # of all that is rough (squared), in the cells that are not split
_LACKING_SHARE = 0.5  # of all that rows lack, likewise
_ELSEWHERE = 0.01  # of all that is rough (squared), in cells that may have it from others
_SIDEWAYS = 0.1  # an axis this much smoother than the roughest one is not split
_DATA_SHARE = 100.0  # data need not be better than this many tolerances: solving smooths them
_WAVE_SHARE = 1000.0  # waves need not either: richer cells make up for that, and coarser ones do not find them
_ROUGHEST = 0.03  # of their size, however large the tolerance is
_SMALL = 1 / 16  # of a cell: boundary pieces that are smaller are not lost in it
_ROUNDS = 60
_NONE = 1e-300
_PLAINLY = 0.02  # share of a function that is rough at the points of a cell
_LEVELS, _SOME_LEVELS = 3, 2  # towards a landmark, at once: where cells are split in any case, and elsewhere
_FELT = 1e-5  # of all that is rough (squared): what is singular at a point is felt everywhere
_SLOWLY = 3.0  # what is missed, over what halves of a cell make of it: integrals may converge slowly
_FEW = 4  # points along an axis, to look at coefficients
_PAYS = 0.75  # what halves of a cell may miss of an integral, over what the cell does


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
        return self._chosen(fit, self.rough(fit, sizes), goal, most)

    def _chosen(self, fit: Fit, tails: Mapping[CellPart, FloatArray], goal: float, most: float) -> tuple[Splits, float]:
        rest = min(max((_REST * goal) ** 2, _LEAST_REST), _MOST_REST)
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

    def rough(self, fit: Fit, sizes: FloatArray) -> dict[CellPart, FloatArray]:
        """Return how rough the roughest field is on every part, along each axis."""
        shares = shares_of(self.layout, fit) / sizes
        return {
            part: (self._tails(part, fit.weights[part]) * share[:, None]).max(axis=0)
            for part, share in zip(fit.parts, shares, strict=True)
        }

    def _tails(self, part: CellPart, weights: FloatArray) -> FloatArray:
        if part.whole:
            return self.tails.of_weights(weights, part)
        zero = (0,) * len(part.half)
        return self.tails.of_cut(weights, part, self.layout.nodes(part, part.points, [zero])[zero])

    def cuts(self, cell: Cell, tails: FloatArray) -> list[tuple[int, float | None]]:
        """Return the axes to halve a cell across: those along which it is rough."""
        axes = np.flatnonzero(tails >= _SIDEWAYS * tails.max()) if tails.max() > 0 else [int(cell.size.argmax())]
        # What is rough across an edge, a cell cannot tell from what is rough along it.
        spared = set(range(len(tails))) - {*cell.across, int(tails.argmax())}
        return [(int(axis), None) for axis in axes if axis not in spared]

    def is_smooth(self, fit: Fit) -> bool:
        """Tell whether a solution is smooth on all parts."""
        return all(self.tails.is_smooth(weights) for weights in fit.weights.values())

    def seems_smooth(self, fit: Fit, sizes: FloatArray) -> bool:
        """Tell whether it is smooth where nearly all that is rough is, and can only be smooth elsewhere.

        In cells in which a solution is next to nothing, coefficients are errors that come from others, and do not fall.
        """
        left = [part for part, weights in fit.weights.items() if not self.tails.is_smooth(weights)]
        if any(part.cell.has_corner or not part.whole for part in left):
            return False
        rough = {part: float(tails @ tails) for part, tails in self.rough(fit, sizes).items()}
        return sum(rough[part] for part in left) <= _ELSEWHERE * sum(rough.values())

    def refined(self, fit: Fit, sizes: FloatArray, goal: float = 1.0, most: float = math.inf) -> tuple[Cell, float]:
        """Return a finer tree, split towards the landmarks at which the solution is not smooth.

        That is once, so that a finer solution is finer there, and more often the more of what is rough is around them.
        The share of what was to be split comes with it.
        """
        tails = self.rough(fit, sizes)
        splits, share = self._chosen(fit, tails, goal, most)
        root = refined(fit.root, splits)
        levels = self._levels(fit, tails, splits)
        for level in range(max(levels.values(), default=0)):
            marks = {mark for mark, count in levels.items() if count > level}
            around = {part.cell for part in fit.parts if not marks.isdisjoint(part.cell.corners)}
            marked = [leaf for leaf in leaves(root) if leaf.has_corner and _comes_from(leaf, around)]
            root = refined(root, {leaf: [(axis, None) for axis in leaf.across] for leaf in marked})
        return self.layout.trimmed(root), share

    def _levels(self, fit: Fit, rough: Mapping[CellPart, FloatArray], splits: Splits) -> dict[Mark, int]:
        """Return how often cells are split towards each landmark."""
        total, around, found, flat = 0.0, defaultdict[Mark, float](float), Counter[Mark](), set[Mark]()
        # What a solution does at a crossing is known: cells only have to take it up.
        known = {tuple(crossing.point.tolist()) for crossing in self.layout.ground.crossings}
        for part, tails in rough.items():
            own = float(tails @ tails)
            total += own
            alone = len(part.cell.corners) == 1
            for mark in part.cell.corners - known:
                around[mark] += own if alone else 0.0
                # What is singular at a point is so in all cells around it; of a cut cell, coefficients tell little. A
                # cell with several corners is too large to tell which of them it is.
                if not self.tails.is_smooth(fit.weights[part]):
                    deep = alone and (part.cell in splits or not part.whole) and not len(part.cell.edges)
                    found[mark] = max(found[mark], _LEVELS if deep else 1)
                    flat |= {mark} if alone and not len(part.cell.edges) else set()
        found |= Counter({mark: _SOME_LEVELS for mark in flat if around[mark] > _FELT * total})
        return {mark: count * (2 if around[mark] > total / 2 else 1) for mark, count in found.items()}


@dataclass(eq=False)
class _Roughness:
    """How rough data are on a cell, along each axis.

    Attributes
    ----------
    data
        Sources and boundary values, in units of the solution.
    spots
        What of them is narrow and not seen by any point.
    coefficients
        The same of coefficients, in terms of themselves; infinite where a piece of boundary is lost in the cell.
    square
        Square of the size of the data.
    plain
        Sources that points of parts see to be rough, with factors and values: split cells need no search for spots.
    """

    data: FloatArray
    spots: FloatArray
    coefficients: FloatArray
    square: float = 0.0
    plain: list[tuple[CellPart, float, Function, FloatArray]] = field(default_factory=list)


def _coefficients(statement: Statement, names: Sequence[str]) -> Iterator[tuple[Function, tuple[int, MultiIndex]]]:
    """Yield the coefficients of a linear statement that vary, with what they multiply."""
    form = statement.form
    for term, function in zip(form.terms, form.coefficient_functions, strict=True):
        if form.is_linear and function.constant is None:
            yield function, (list(names).index(term.field), term.multi_index)


def _says_nothing(statement: Statement) -> bool:
    """Tell whether a condition has numbers for coefficients, and zero for a source: cells have nothing to resolve."""
    form = statement.form
    return form.is_linear and form.is_constant and form.source_function.constant == 0.0


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


@lru_cache(maxsize=8)
def _halved_rules(dimension: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss rules of the cube, plain and with halves along each axis: points, and a row of weights each."""
    whole, halves = gauss(count), gauss(2 * (count // 4))  # an even number, as data may be singular at centres
    panels = np.concatenate([halves[0] / 2, (1 + halves[0]) / 2]), np.tile(halves[1] / 2, 2)
    rules = [tensor(*([whole] * dimension))]
    rules += [tensor(*(panels if a == axis else whole for a in range(dimension))) for axis in range(dimension)]
    weights = block_diag(*(own[None] for _, own in rules))
    return 2.0 * np.concatenate([U for U, _ in rules]) - 1.0, 2.0**dimension * weights


@dataclass(eq=False)
class Follower:
    """Splits cells until they resolve the data of a problem, in units of the solution."""

    rows: Rows
    _done: dict[Cell, _Roughness] = field(default_factory=dict)
    _unsure: dict[Cell, FloatArray] = field(default_factory=dict)

    @cached_property
    def tails(self) -> Tails:
        """Measures roughness."""
        return tails_of(self.rows.layout.reference)

    @cached_property
    def probe(self) -> Probe:
        """Looks for what points miss."""
        return Probe(self.rows.layout)

    def waved(self, root: Cell, tol: float, most: int) -> Cell:
        """Split cells until they resolve the waves that equations let through, unless there would be too many.

        Conditions on the boundary may send waves through all of a domain that no source speaks of. On coarser cells
        they are not found at all, and what is found says little of where to split.
        """
        first, count = root, self.rows.layout.least_degree + 1
        share = min(_WAVE_SHARE * tol, _ROUGHEST)
        # What polynomials miss of a wave, by half a cell in radians: (e h / 2n)^n.
        longest = 2.0 * count / math.e * share ** (1.0 / count)
        may_wave = any(term.order == 0 for equation in self.rows.equations for term in equation.form.terms)
        for _ in range(_ROUNDS if may_wave and self.rows.problem.is_linear else 0):
            turns = {cell: self._wave_numbers(cell) * cell.size / 2 for cell in self._within(root)}
            if len(turns) > most:
                return first
            splits: Splits = {
                cell: [(int(axis), None) for axis in np.flatnonzero(own > longest)] for cell, own in turns.items()
            }
            if not any(splits.values()):
                return root
            root = refined(root, splits)
        return root

    def _within(self, root: Cell) -> list[Cell]:
        """Return the cells of a tree that have something of the domain."""
        ground = self.rows.layout.ground
        return [
            cell
            for cell in leaves(root)
            if any(ground.pieces(cell).values()) or ground.inside((cell.low + cell.high)[None] / 2).all()
        ]

    def _wave_numbers(self, cell: Cell) -> FloatArray:
        """Return the largest number of radians per length along each axis with which solutions oscillate in a cell."""
        X = cell.low + cell.size * _halved_rules(len(cell.low), _FEW)[0] / 2 + cell.size / 2
        X = X if self.rows.layout.ground.is_box else X[self.rows.layout.ground.inside(X)]
        if self.rows.is_constant and len(X):
            return self._constant_waves
        return self._waves_at(X)

    @cached_property
    def _constant_waves(self) -> FloatArray:
        """The same where coefficients are numbers."""
        return self._waves_at(self.rows.layout.root.low[None])

    def _waves_at(self, X: FloatArray) -> FloatArray:
        """Return the same of some points of a cell."""
        found = np.zeros(X.shape[1])
        for equation in self.rows.equations if len(X) else ():
            try:
                terms = {term[:2]: term[2] for term in self.rows.terms(equation, X, None, [])}
            except ProblemError:
                continue
            for (number, index), value in terms.items():
                axis, order = int(np.argmax(index)), sum(index)
                rest = terms.get((number, (0,) * len(index)))
                if rest is None or order != max(index) or order % 2 or order < self.rows.orders[number, axis]:
                    continue
                with np.errstate(all="ignore"):
                    powers = np.nan_to_num((-1) ** (order // 2 + 1) * rest / value, posinf=0.0)
                found[axis] = max(found[axis], float(np.max(powers)) ** (1.0 / order) if np.max(powers) > 0 else 0.0)
        return found

    def followed(self, root: Cell, tol: float, most: int) -> Cell:
        """Split cells until sources, coefficients and boundary values are resolved on each, or there are too many."""
        for _ in range(_ROUNDS):
            cells = self._within(root)
            splits: Splits = {}
            limit, relative = self._limits(cells, tol)
            for cell in cells:
                tails = self._beyond(self._rough(cell), limit, relative)
                if tails.max() <= 1.0:
                    tails = self._beyond(self._searched(cell), limit, relative)
                if tails.max() > 1.0:
                    axes = np.flatnonzero(tails >= max(1.0, _SIDEWAYS * tails.max()))
                    splits[cell] = [(int(axis), None) for axis in axes]
            if not splits or len(cells) + sum(2 ** len(s) for s in splits.values()) > most:
                return root
            root = refined(root, splits)
        return root

    @staticmethod
    def _beyond(found: _Roughness, limit: float, relative: float) -> FloatArray:
        """Return how rough a cell is, in terms of how rough it may be."""
        return np.maximum(found.data / max(limit, _NONE), found.coefficients / relative)

    def summed(self, root: Cell, limit: float, most: float) -> Cell:
        """Split whole cells until their points tell the integrals of sources, or splitting does not help.

        A source that is infinite at a point has finite integrals. What is missed of them near the point is felt
        everywhere, however small a cell is. In a nonlinear problem it depends on the state by how much: cells stay.
        """
        for _ in range(_ROUNDS if self.rows.problem.is_linear else 0):
            splits: Splits = {}
            for cell in leaves(root):
                parts = self.rows.layout.parts(cell)
                if len(parts) != 1 or not parts[0].whole:
                    continue
                if cell not in self._unsure:
                    self._unsure[cell] = self._missed_sums(parts[0], cell.low, cell.high)
                missed = self._unsure[cell]
                axes = np.flatnonzero(missed > max(limit, _SIDEWAYS * missed.max()))
                if len(axes) and self._pays(parts[0], cell, axes.tolist()):
                    splits[cell] = [(int(axis), None) for axis in axes]
            most -= sum(2 ** len(own) - 1 for own in splits.values())
            if not splits or most < 0:
                return root
            root = refined(root, splits)
        return root

    def left_out(self, root: Cell) -> float:
        """Return what points of all cells miss of the integrals of sources, if these are finite."""
        missed = {cell: float(self._unsure[cell].max()) for cell in leaves(root) if cell in self._unsure}
        most = max(missed, key=missed.__getitem__, default=None)
        if most is None or missed[most] == 0.0:
            return 0.0
        axes = np.flatnonzero(self._unsure[most] >= _SIDEWAYS * missed[most]).tolist()
        (part,) = self.rows.layout.parts(most)
        return _SLOWLY * sum(missed.values()) if self._pays(part, most, axes) else 0.0

    def _pays(self, part: CellPart, cell: Cell, axes: list[int]) -> bool:
        """Tell whether less is missed by halves of a cell: that is not so where integrals are infinite."""
        boxes = leaves(refined(cell, {cell: [(axis, None) for axis in axes]}))
        missed = sum(self._missed_sums(part, box.low, box.high).max() for box in boxes)
        return bool(missed < _PAYS * self._unsure[cell].max())

    def _missed_sums(self, part: CellPart, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return what points of a box miss of the integrals of sources, by axis, in units of the solution."""
        d, half = len(low), (high - low) / 2
        U, weights = _halved_rules(d, rule_count(self.rows.layout.reference.degree))
        unit = self.rows.weights(part, self.rows.layout.root.size / 2)
        found = np.zeros(d)
        for factor, equation in zip(unit, self.rows.equations, strict=True):
            source = equation.form.source_function
            if source.constant is not None:
                continue
            sums = weights @ source(low + half * (1.0 + U))
            found = np.maximum(found, factor * float(np.prod(half)) * np.abs(sums[1:] - sums[0]))
        return found

    def unseen(self, root: Cell, tol: float) -> bool:
        """Tell whether data have narrow features that no cell of a tree sees."""
        cells = leaves(root)
        limit, relative = self._limits(cells, tol)
        rough = [self._searched(cell) for cell in cells]
        return any(one.spots.max() > limit or one.coefficients.max() > relative for one in rough)

    def _limits(self, cells: list[Cell], tol: float) -> tuple[float, float]:
        """Return how rough data may be, and coefficients."""
        share = min(_DATA_SHARE * tol, _ROUGHEST)
        scale = float(np.sqrt(sum(self._rough(cell).square for cell in cells)))
        return share * scale, share * float(np.sqrt(np.prod(self.rows.layout.root.size)))

    def _rough(self, cell: Cell) -> _Roughness:
        if cell not in self._done:
            self._done[cell] = found = _Roughness(*np.zeros((3, len(cell.low))))
            for part in self.rows.layout.parts(cell):
                self._inside(part, found)
                self._boundary(part, found)
            pieces, extents = self.rows.layout.ground.extents
            small = (extents < _SMALL * cell.size) | np.isnan(extents)
            for k in np.flatnonzero(small.all(axis=1)).tolist():
                inside = (pieces[k] >= cell.low) & (pieces[k] <= cell.high)
                if inside.all(axis=1).any():
                    found.coefficients = np.where(np.isnan(extents[k]), found.coefficients, np.inf)
        return self._done[cell]

    def _inside(self, part: CellPart, found: _Roughness) -> None:
        factors, units = self._balance(part)
        for factor, equation in zip(factors, self.rows.equations, strict=True):
            for function, (number, index) in _coefficients(equation, self.rows.problem.field_names):
                unit = factor * units[number] / float(np.prod(part.half ** np.array(index)))
                own = self.probe.missed_at_spots(part, function, function(part.points), unit)
                found.coefficients = np.maximum(found.coefficients, own)
            source = _source(equation, part.points)
            if source is None or source.constant == 0.0:
                continue
            known = source(part.points)
            values = factor * known
            found.square += float(part.weights @ np.square(values))
            if source.constant is None:
                rough = self._roughness(part, values)
                found.data = np.maximum(found.data, rough)
                search = part, float(factor), source, known
                if np.linalg.norm(rough) > _PLAINLY * np.sqrt(part.weights @ np.square(values)):
                    found.plain.append(search)
                else:
                    self._search(*search, found)
                if part.whole:
                    found.data = np.maximum(found.data, factor * self.probe.missed(part, source, known))

    def _search(self, part: CellPart, factor: float, source: Function, known: FloatArray, found: _Roughness) -> None:
        """Look for what of a source is narrower than points tell."""
        spots = factor * self.probe.missed_at_spots(part, source, known)
        found.spots = np.maximum(found.spots, spots)
        found.data = np.maximum(found.data, spots)

    def _searched(self, cell: Cell) -> _Roughness:
        """Return how rough data are on a cell that stays: what is plain there may be the faint end of something."""
        found = self._rough(cell)
        while found.plain:
            self._search(*found.plain.pop(), found)
        return found

    def _balance(self, part: CellPart) -> tuple[FloatArray, FloatArray]:
        """Return a factor per equation and a unit per field."""
        if self.rows.problem.is_linear:
            return self.rows.balance(part)
        factor = float((part.half**2).min())
        return np.full(len(self.rows.equations), factor), np.ones(len(self.rows.problem.field_names))

    def _roughness(self, part: CellPart, values: FloatArray) -> FloatArray:
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

    def _boundary(self, part: CellPart, found: _Roughness) -> None:
        layout, cell = self.rows.layout, part.cell
        count = layout.reference.degree + 1
        for place, held in layout.ground.pieces(cell).items():
            for statement in self.rows.problem.statements:
                if statement.place != place or place is None or _says_nothing(statement):
                    continue
                for piece in held:
                    rule = piece.rule(cell.low, cell.high, count) if piece.is_plain else None
                    # What lies on both sides of a seam is told by the points of each.
                    if rule is not None and (layout.ground.kinds(rule.points) == part.kind).all():
                        self._on_piece(part, statement, piece, rule, found)

    def _on_piece(self, part: CellPart, statement: Statement, piece: Piece, rule: Rule, found: _Roughness) -> None:
        """Look at the data of a condition on a piece of the boundary."""
        along = np.ptp(part.local(rule.points), axis=0) > 0.1
        depth = float((np.abs(rule.normals) @ (2 * part.half)).mean())
        sizes = self._sizes(statement, part, rule)
        unit = float(sizes.max()) or 1.0
        for function, (_, index) in _coefficients(statement, self.rows.problem.field_names):
            own = 1.0 / (unit * float(np.prod(part.half ** np.array(index))))
            missed = self.probe.missed_on(piece, function, function(rule.points, rule.normals), own)
            found.coefficients = np.maximum(found.coefficients, np.sqrt(depth) * missed * along)
        source = _source(statement)
        if source is None or source.constant == 0.0:
            return
        values = source(rule.points, rule.normals) / unit
        found.square += depth * float(rule.weights @ np.square(values))
        if source.constant is None and len(values) > 2:
            count = self.rows.layout.reference.degree + 1
            spots = np.sqrt(depth) / unit * self.probe.missed_on(piece, source, values * unit)
            own = missed_along(values * np.sqrt(depth), rule.weights, len(piece.box), count)
            own = max(own, spots, np.sqrt(depth) / unit * self._on_curve(piece, source))
            found.spots = np.maximum(found.spots, spots * along)
            found.data = np.maximum(found.data, own * along)

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

    def _sizes(self, statement: Statement, part: CellPart, rule: Rule) -> FloatArray:
        """Return the size of the terms of a condition, by field."""
        if not statement.form.is_linear:
            return np.ones(1)
        return self.rows.sizes(self.rows.only_terms(statement, part, rule.points, rule.normals), part.half)
