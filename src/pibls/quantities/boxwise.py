"""Rules for integrals over a place, box by box: Gauss points where a box is whole, lines through it where it is cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from pibls.cells.line_quadrature import LineQuadrature
from pibls.cells.surface import STEP, Piece, Rule, pieces, pieces_within, rules_of
from pibls.checks import BoolArray, FloatArray, IntArray
from pibls.geometry import Box, Domain, Product, TimeInterval
from pibls.geometry.base import Region
from pibls.quadrature.roots import CLOSE, ROUNDING, held_ranges
from pibls.quadrature.rules import gauss, tensor
from pibls.quantities.where import Where
from pibls.solution.celled import CellNetwork
from pibls.solution.evolved import EvolvedNetwork
from pibls.solution.evolved_cells import EvolvedCells, EvolvedLegs
from pibls.solution.json_records import Network

BOXED = 3  # coordinates in which places are divided into boxes
EDGE = 1e-10  # share of an integral to which ends of lines in a box are found; boxes that agree as well are not halved
_MORE = 4  # points along an axis that the better of two rules has more

Inside = Callable[[FloatArray], Any]


@dataclass(frozen=True, eq=False)
class RulePoints:
    """Points with weights, the number of the box that each is in, and normals on surfaces."""

    points: FloatArray
    weights: FloatArray
    box: IntArray
    normals: FloatArray | None = None

    def where(self, keep: BoolArray) -> RulePoints:
        """Return some of the points."""
        normals = None if self.normals is None else self.normals[keep]
        return RulePoints(self.points[keep], self.weights[keep], self.box[keep], normals)


@dataclass(frozen=True, eq=False)
class Bounded:
    """A box, the kinds of points in it, and the pieces of surfaces: those that cut it, and those of the place."""

    low: FloatArray
    high: FloatArray
    kinds: tuple[int, ...] = (0,)
    cuts: tuple[Piece, ...] = ()
    held: tuple[Piece, ...] = ()
    number: int = -1  # in the tree of a network

    @property
    def chords(self) -> FloatArray:
        """Both ends of the curves that cut it: boundaries have their kinks there."""
        ends = [piece.patch.at(piece.box.T)[0] for piece in self.cuts if piece.patch.parameters == 1]
        return np.array(ends).reshape(-1, 2, len(self.low))

    @property
    def is_cut(self) -> bool:
        """Whether a surface runs through its inside, not only along its sides."""
        return len(self.kinds) > 1 or any(not _beside(piece, self) for piece in self.cuts)


def _beside(piece: Piece, box: Bounded) -> bool:
    """Tell whether a piece lies in a side of a box."""
    U = tensor(*[gauss(3)] * len(piece.box))[0]
    X = piece.patch.at(piece.box[:, 0] + (piece.box[:, 1] - piece.box[:, 0]) * U)[0]
    room = CLOSE * (box.high - box.low)
    along = (np.abs(X - box.low) <= room).all(axis=0) | (np.abs(X - box.high) <= room).all(axis=0)
    return bool(along.any())


@dataclass(eq=False)
class Patchwork:
    """A place, divided into boxes."""

    place: Where
    kind: Callable[[FloatArray], Any] | None  # tells kinds of points apart
    boxes: list[Bounded]
    line_quadratures: dict[Any, LineQuadrature]  # of boxes that are cut, in the plane: they are the same at many times

    @classmethod
    def over(
        cls, place: Where, network: Network, bounds: FloatArray, line_quadratures: dict[Any, LineQuadrature]
    ) -> Patchwork:
        """Return a place divided into the boxes on which a network is smooth."""
        cells = network.space if isinstance(network, EvolvedCells | EvolvedLegs) else network
        branch = cells.branch if isinstance(cells, CellNetwork) else None
        made = cls(place, None if branch is None else lambda X: branch(place.lifted(X)), [], line_quadratures)
        shapes = [place.domain] if place.region in (None, place.domain) else [place.domain, place.region]
        cuts = tuple(piece for shape in shapes if not is_box(shape) for piece in _pieces(shape.boundary.patches))
        held = () if place.part is None else tuple(_pieces(place.part.patches))
        bounds = np.asarray(bounds, dtype=np.float64)
        whole = Bounded(bounds[:, 0], bounds[:, 1], (0,), cuts, held)
        if isinstance(network, CellNetwork):
            made.boxes = made._along(network, whole)
        elif isinstance(network, EvolvedCells | EvolvedLegs):
            made.boxes = made._divided([(whole, *ends) for ends in zip(*network.boxes(bounds), strict=True)])
        elif isinstance(network, EvolvedNetwork):
            made.boxes = made._divided([(whole, *ends) for ends in _steps(bounds, network.breaks)])
        else:
            made.boxes = made._divided([(whole, whole.low, whole.high)])
        return made

    def _along(self, network: CellNetwork, whole: Bounded) -> list[Bounded]:
        """Return the cells of a network with the pieces in them: a half has only pieces of the whole."""
        boxes, found = network.boxes(np.stack([whole.low, whole.high], axis=1)), []
        level = self._divided([(whole, whole.low, whole.high)], [0])
        while level:
            leaves = [box for box in level if network.tree[box.number, 0] < 0]
            found += [box for box in leaves if np.diff(network.tree[box.number, 1:])[0] > 0]
            halves = [
                (box, *boxes[half].T, half)
                for box in level
                if network.tree[box.number, 0] >= 0
                for half in network.tree[box.number, 1:].tolist()
            ]
            level = self._divided([half[:3] for half in halves], [half[3] for half in halves])
        if network.branch is None:
            return found
        kinds = [np.unique(network.kinds[slice(*network.tree[box.number, 1:])]) for box in found]
        return [replace(box, kinds=tuple(own.tolist())) for box, own in zip(found, kinds, strict=True)]

    def _divided(
        self, halves: Sequence[tuple[Bounded, FloatArray, FloatArray]], numbers: Sequence[int] | None = None
    ) -> list[Bounded]:
        """Return boxes within others, with the pieces that are in each, and without those that have nothing of it."""
        region, time = self.place.region or self.place.domain, self.place.time
        made: list[Bounded] = []
        for k, (whole, low, high) in enumerate(halves):
            if time is not None and len(low) > len(region.coordinates):
                if not (low[-1] <= time <= high[-1]) or (time == high[-1] and time < self.place.latest):
                    continue
                low, high = low[:-1], high[:-1]
            low, high = np.maximum(low, region.bounds[:, 0]), np.minimum(high, region.bounds[:, 1])
            if (high > low).all():
                number = -1 if numbers is None else numbers[k]
                made.append(Bounded(low, high, whole.kinds, whole.cuts, whole.held, number))
        pairs = [(piece, box.low, box.high) for box in made for piece in (*box.cuts, *box.held)]
        within, found = iter(pieces_within(pairs)), []
        for box in made:
            cuts, held = (tuple(own for _ in given for own in next(within)) for given in (box.cuts, box.held))
            found.append(replace(box, cuts=cuts, held=held))
        if self.place.part is not None:
            return [box for box in found if box.held]
        return [box for box in found if box.is_cut or self._inside((box.low + box.high)[None] / 2)[0]]

    def _inside(self, X: FloatArray) -> Any:
        """Tell which points are in the domain and in the region."""
        held = np.ones(len(X), dtype=np.bool_)
        for shape in dict.fromkeys((self.place.domain, self.place.region)):
            if shape is not None and not is_box(shape):
                space = shape.domain if isinstance(shape, Product) else shape
                assert isinstance(space, Region)
                level = space.level(X[:, : space.dimension])
                held &= np.asarray(level > ROUNDING * space.thickness + space.rounding)
        return held

    def split(self, chosen: Sequence[int]) -> Patchwork:
        """Return the halves, along all axes, of some of the boxes."""
        made = Patchwork(self.place, self.kind, [], self.line_quadratures)
        for number in chosen:
            box = self.boxes[number]
            middle = (box.low + box.high) / 2
            halves = [
                (box, np.where(side, middle, box.low), np.where(side, box.high, middle))
                for side in product((False, True), repeat=len(middle))
            ]
            made.boxes += made._divided(halves)
        return made

    @property
    def count(self) -> int:
        """Number of boxes."""
        return len(self.boxes)

    @property
    def edges(self) -> list[float]:
        """The share of each box that is not known where lines end, or kinds of points behind a surface change."""
        if self.place.part is None:
            return [EDGE if box.is_cut else 0.0 for box in self.boxes]
        return [STEP if len(box.kinds) > 1 else 0.0 for box in self.boxes]

    def rules(self, order: int) -> list[RulePoints]:
        """Return a better and a worse rule, the latter with about so many points along each axis of a box."""
        return [self.points(order + _MORE), self.points(order)]

    def points(self, order: int) -> RulePoints:
        """Return a rule with about so many points along each axis of a box."""
        surface = self.place.part is not None
        found: list[tuple[FloatArray, FloatArray, IntArray, FloatArray | None]] = []
        whole = [number for number, box in enumerate(self.boxes) if not surface and not box.is_cut]
        if whole:
            found.append((*self._whole(whole, order), None))
        for number in sorted(set(range(len(self.boxes))) - set(whole)):
            box = self.boxes[number]
            rules = self._on(box, order) if surface else [self._cut(box, kind, order) for kind in box.kinds]
            found += [(r.points, r.weights, np.full(len(r.weights), number), r.normals) for r in rules]
        if not found:
            d = len(self.place.domain.coordinates)
            return RulePoints(np.empty((0, d)), np.empty(0), np.empty(0, dtype=np.int64), np.empty((0, d)))
        points, weights, box_of, normals = zip(*found, strict=True)
        along = np.concatenate(normals) if surface else None
        return RulePoints(np.concatenate(points), np.concatenate(weights), np.concatenate(box_of), along)

    def _whole(self, numbers: list[int], order: int) -> tuple[FloatArray, FloatArray, IntArray]:
        low, high = (np.array([getattr(self.boxes[n], end) for n in numbers]) for end in ("low", "high"))
        U, shares = tensor(*[gauss(order)] * low.shape[1])
        X = low[:, None] + (high - low)[:, None] * U
        weights = np.prod(high - low, axis=1)[:, None] * shares
        return X.reshape(-1, low.shape[1]), weights.ravel(), np.repeat(numbers, len(shares))

    def _on(self, box: Bounded, order: int) -> list[Rule]:
        """Return points of the surfaces of a place in a box, apart by the kind of the points behind them."""
        rules: list[Rule | None] = []
        for piece in box.held:
            for kind in box.kinds if piece.patch.parameters else box.kinds[:1]:
                beside = None if len(box.kinds) == 1 else partial(self._is_kind, kind=kind, kinds=box.kinds)
                curves = _along(piece, beside) if beside and piece.patch.parameters == 1 else [piece]
                rules += rules_of([(own, box.low, box.high, order) for own in curves], beside)
        return [rule for rule in rules if rule is not None]

    def _is_kind(self, X: FloatArray, kind: int, kinds: tuple[int, ...]) -> Any:
        """Tell which points are of a kind; those of a kind that a box does not know count as its last."""
        assert self.kind is not None
        found = self.kind(X)
        return ~np.isin(found, kinds[:-1]) if kind == kinds[-1] else found == kind

    def _cut(self, box: Bounded, kind: int, order: int) -> Rule:
        """Return points of a box that is cut, of one kind."""
        time = isinstance(self.place.domain, Product)

        def inside(X: FloatArray) -> Any:
            full = np.column_stack([X, np.full(len(X), (box.low + box.high)[-1] / 2)]) if time else X
            held = self._inside(full)
            return held & (self.kind(full) == kind) if self.kind is not None and len(box.kinds) > 1 else held

        space = slice(0, len(box.low) - time)
        low, high = box.low[space], box.high[space]
        if len(low) == 2:
            when = (self.place.time, box.low[-1]) if len(box.kinds) > 1 else None
            key = (self.place.domain, self.place.region, kind, when, low.tobytes(), high.tobytes())
            if key not in self.line_quadratures:
                self.line_quadratures[key] = _through(inside, low, high, box.chords[:, :, :2])
            X, weights = _lines(self.line_quadratures[key], order)
        else:
            X, weights = _filled(inside, low, high, order)
        if time:
            s, shares = gauss(order)
            times = box.low[-1] + (box.high[-1] - box.low[-1]) * s
            X = np.column_stack([np.repeat(X, len(s), axis=0), np.tile(times, len(X))])
            weights = np.outer(weights, shares * (box.high[-1] - box.low[-1])).ravel()
        return Rule(X, np.zeros_like(X), weights)


def _along(piece: Piece, beside: Inside) -> list[Piece]:
    """Return the pieces of a curve that have points of one kind behind them."""

    def held(s: FloatArray) -> Any:
        X, normals, _ = piece.patch.at(s[:, None])
        return beside(X - STEP * piece.patch.measure * np.diff(piece.box[0]) * normals)

    return [replace(piece, box=np.array([span])) for span in held_ranges(held, *piece.box[0])]


def _filled(inside: Inside, low: FloatArray, high: FloatArray, order: int) -> tuple[FloatArray, FloatArray]:
    """Return points and weights of the inner part of a box of one to three coordinates."""
    if len(low) == 1:
        nodes, own = gauss(order)
        ends = held_ranges(lambda t: inside(t[:, None]), float(low[0]), float(high[0]))
        start, stop = np.array(ends).reshape(-1, 2).T
        width = (stop - start)[:, None]
        return (start[:, None] + width * nodes).reshape(-1, 1), (width * own).ravel()
    if len(low) == 2:
        return _lines(_through(inside, low, high, np.empty((0, 2, 2))), order)
    found = []
    for place, share in zip(*gauss(order), strict=True):
        at = low[0] + (high[0] - low[0]) * place

        def across(Y: FloatArray, at: float = float(at)) -> Any:
            return inside(np.column_stack([np.full(len(Y), at), Y]))

        Y, weights = _filled(across, low[1:], high[1:], order)
        found.append((np.column_stack([np.full(len(Y), at), Y]), share * (high[0] - low[0]) * weights))
    return np.concatenate([points for points, _ in found]), np.concatenate([shares for _, shares in found])


def _through(inside: Inside, low: FloatArray, high: FloatArray, chords: FloatArray) -> LineQuadrature:
    """Return the lines through the inner part of a rectangle."""
    return LineQuadrature(lambda X, _: inside(X), low[None], high[None], chords=chords)


def _lines(filling: LineQuadrature, order: int) -> tuple[FloatArray, FloatArray]:
    # Lengths of lines are like roots where these begin and end: there are more lines than points on each.
    return filling.rules([(3 * order, order)])[0][:2]


def is_box(shape: Domain) -> bool:
    """Tell whether a domain is a box, in space and time."""
    space = shape.domain if isinstance(shape, Product) else shape
    return isinstance(space, Box | TimeInterval)


def _pieces(patches: Sequence[Any]) -> list[Piece]:
    return [piece for patch in patches for piece in pieces(patch)]


def _steps(bounds: FloatArray, breaks: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return the boxes between times."""
    low, high = bounds.T
    return [(np.append(low[:-1], a), np.append(high[:-1], b)) for a, b in pairwise(breaks)]
