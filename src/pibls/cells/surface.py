"""Pieces of a boundary inside a box, however small the box is.

A piece is a smooth patch over a box of its parameters. The pieces in a cell are found from those in its parent, so that
a cell of a millionth of the domain has as many boundary points as any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pibls.cells.line_quadrature import LineQuadrature
from pibls.checks import BoolArray, FloatArray, IntArray
from pibls.geometry.patch import AffinePatch, FlippedPatch, Patch, TimedPatch
from pibls.geometry.restricted import RestrictedPatch
from pibls.geometry.sampling import kronecker
from pibls.geometry.spans import smooth_spans
from pibls.quadrature.roots import SCAN, held_ranges, ranges_held
from pibls.quadrature.rules import gauss, tensor
from pibls.refinement.standards import PLAIN, POINTS

__all__ = ["STEP", "Piece", "Rule", "pieces", "pieces_within", "rules_of"]

Beside = Callable[[FloatArray], BoolArray]

STEP = 1e-7  # relative to the box: inward step that decides on which side of a box face a patch in that face lies
_FINER = 3  # times as many grid steps for a second look at a surface


@dataclass(frozen=True, eq=False)
class Rule:
    """Quadrature points of a surface with outward normals, and weights that sum to its area.

    Points with equal ``runs`` lie along one smooth piece, with the same parts on either side; −1 marks scattered
    points.
    """

    points: FloatArray
    normals: FloatArray
    weights: FloatArray
    runs: Any = None

    def __post_init__(self) -> None:
        if self.runs is None:
            object.__setattr__(self, "runs", np.full(len(self.weights), -1))

    @staticmethod
    def joined(rules: Sequence[Rule]) -> Rule:
        """Return several rules as one."""
        if len(rules) == 1:
            return rules[0]
        starts = np.cumsum([0, *(1 + r.runs.max(initial=-1) for r in rules)])
        runs = [np.where(r.runs < 0, -1, r.runs + start) for r, start in zip(rules, starts[:-1], strict=True)]
        X, normals, weights = (
            np.concatenate([getattr(r, name) for r in rules]) for name in ("points", "normals", "weights")
        )
        return Rule(X, normals, weights, np.concatenate(runs))

    def chosen(self, mask: BoolArray) -> Rule:
        """Return a selection of the points."""
        return Rule(self.points[mask], self.normals[mask], self.weights[mask], self.runs[mask])

    def flipped(self) -> Rule:
        """Return the same surface with opposite normals."""
        return Rule(self.points, -self.normals, self.weights, self.runs)

    def together(self, values: Any) -> Any:
        """Return for each point the value at the middle of its run.

        >>> rule = Rule(np.zeros((4, 2)), np.zeros((4, 2)), np.ones(4), np.array([0, 0, 0, -1]))
        >>> rule.together(np.array([5, 7, 9, 9])).tolist()
        [7, 7, 7, 9]
        """
        found = np.array(values)
        for run in range(1 + self.runs.max(initial=-1)):
            rows = np.flatnonzero(self.runs == run)
            if len(rows):
                found[rows] = values[rows[len(rows) // 2]]
        return found


def pieces(patch: Patch) -> list[Piece]:
    """Return the smooth pieces of a patch."""
    if patch.empty:
        return []
    if patch.parameters == 0:
        return [Piece(patch, np.empty((0, 2)))]
    rest = [(0.0, 1.0)] * (patch.parameters - 1)
    return [Piece(patch, np.array([span, *rest])) for span in smooth_spans(patch)]


def pieces_within(pairs: Sequence[tuple[Any, FloatArray, FloatArray]]) -> list[list[Any]]:
    """Return the pieces within boxes, for many pairs of piece and box; curves of one patch are treated together."""
    found: list[list[Any]] = [[] for _ in pairs]
    curves: dict[int, list[int]] = {}
    for number, (piece, low, high) in enumerate(pairs):
        if isinstance(piece, Piece) and piece.patch.parameters == 1:
            curves.setdefault(id(piece.patch), []).append(number)
        else:
            found[number] = piece.within(low, high)
    for numbers in curves.values():
        piece = pairs[numbers[0]][0]
        box = np.array([pairs[number][0].box[0] for number in numbers])
        low, high = (np.array([pairs[number][k] for number in numbers]) for k in (1, 2))
        for row, begin, end in zip(*piece._ranges(box, low, high), strict=True):
            found[numbers[row]].append(replace(piece, box=np.array([[begin, end]])))
    return found


def rules_of(
    wanted: Sequence[tuple[Any, FloatArray, FloatArray, int]], beside: Beside | None = None, *, turns: bool = True
) -> list[Rule | None]:
    """Return the rules of many pieces, each in a box with a number of points per parameter.

    Gauss points serve where nothing is cut off. A piece that ``turns`` by more than a quarter gets more points, unless
    that is switched off, because a polynomial oscillates more along it. In space, points that are not ``beside`` a
    given material are cut off, too. Pieces of one patch come together.
    """
    found: list[Rule | None] = [None] * len(wanted)
    curves: dict[int, list[int]] = {}
    cut: dict[int, list[tuple[int, list[int]]]] = {}
    for number, (piece, low, high, count) in enumerate(wanted):
        if not isinstance(piece, Piece):
            found[number] = piece.rule(low, high, count)
        elif piece.patch.parameters == 1:
            curves.setdefault(id(piece.patch), []).append(number)
        else:
            counts = _counts(piece.patch, piece.box[None], count)[0] if turns else [count] * len(piece.box)
            found[number] = piece.uncut(low, high, counts, beside)
            if found[number] is None:
                cut.setdefault(id(piece.patch), []).append((number, counts))
    for some in cut.values():
        for (number, _), rule in zip(some, _cut([(*wanted[n][:3], own) for n, own in some], beside), strict=True):
            found[number] = rule
    for numbers in curves.values():
        patch, box = wanted[numbers[0]][0].patch, np.array([wanted[number][0].box for number in numbers])
        counts = [wanted[number][3] for number in numbers]
        turning = turns and not isinstance(patch, AffinePatch)
        rules = [gauss(count) for (count,) in (_counts(patch, box, counts) if turning else zip(counts, strict=True))]
        U = np.concatenate([start + (stop - start) * V for (V, _), ((start, stop),) in zip(rules, box, strict=True)])
        X, normals, keep = patch.at(U[:, None])
        assert keep is None or keep.all()
        ends = np.cumsum([len(weights) for _, weights in rules])
        for number, (_, weights), ((start, stop),), end in zip(numbers, rules, box, ends.tolist(), strict=True):
            own = slice(end - len(weights), end)
            runs = np.zeros(len(weights), dtype=np.int64)
            found[number] = Rule(X[own], normals[own], weights * ((stop - start) * _whole(patch)), runs)
    return found


def _counts(patch: Patch, boxes: FloatArray, counts: Any) -> list[list[int]]:
    """Return how many points each parameter of boxes needs, given the numbers for boxes that do not turn.

    A piece whose normal turns by more than a quarter, in the middle of the other parameters, needs more of them.
    """
    turns = np.zeros(boxes.shape[:2])
    for axis in range(0 if isinstance(patch, AffinePatch) else boxes.shape[1]):
        U = np.repeat(boxes.mean(axis=2)[:, None], SCAN, axis=1)
        U[:, :, axis] = np.linspace(boxes[:, axis, 0], boxes[:, axis, 1], SCAN, axis=1)
        normals = patch.at(U.reshape(-1, boxes.shape[1]))[1].reshape(*U.shape[:2], -1)
        cosines = (normals[:, 1:] * normals[:, :-1]).sum(axis=2)
        turns[:, axis] = np.arccos(np.clip(cosines, -1.0, 1.0)).sum(axis=1)
    enough = np.ceil(np.reshape(counts, (-1, 1)) * np.maximum(1.0, 2.0 * turns / math.pi))
    return [[int(count) for count in own] for own in enough]


@dataclass(frozen=True, eq=False)
class Piece:
    """A patch over a box of its parameters, shape (p, 2)."""

    patch: Patch
    box: FloatArray
    _known: dict[str, Any] = field(default_factory=dict)  # properties of the patch, shared by all its pieces

    @property
    def _direct(self) -> FloatArray | None:
        """Slopes (parameters, coordinates) if each parameter moves one coordinate at constant speed, else None."""
        if "slopes" not in self._known:
            self._known["slopes"] = self._slopes()
        return self._known["slopes"]  # type: ignore[no-any-return]

    def _slopes(self) -> FloatArray | None:
        count = self.patch.parameters
        # Steps without a symmetry that a curved patch could share.
        near, far = 0.21 + 0.31 * np.eye(count), 0.21 + 0.68 * np.eye(count)
        X, _, _ = self.patch.at(np.vstack([np.full(count, 0.21), near, far, np.full(count, 0.77)]))
        slopes = (X[1 : count + 1] - X[0]) / 0.31
        size = np.abs(slopes).max()
        plain = (np.abs(slopes) > 1e-12 * size).sum(axis=1) == 1
        even = np.abs(X[0] + 0.68 * slopes - X[count + 1 : -1]).max() <= 1e-12 * size
        joint = np.abs(X[0] + 0.56 * slopes.sum(axis=0) - X[-1]).max() <= 1e-12 * size
        return slopes if plain.all() and even and joint else None

    @property
    def is_plain(self) -> bool:
        """Whether its parametrisation is as smooth as the surface; that of a sphere is not, at its poles."""
        return len(self.box) < 2 or isinstance(self.patch, TimedPatch) or self._direct is not None

    def within(self, low: FloatArray, high: FloatArray) -> list[Piece]:
        """Return the pieces in a box; points on its faces count if the domain behind them is in the box."""
        if self.patch.parameters == 0:
            return [self] if self._inside(self.box.reshape(1, -1)[:, :0], low, high)[0] else []
        if self.patch.parameters == 1:
            return pieces_within([(self, low, high)])[0]
        if isinstance(self.patch, TimedPatch) and self.patch.parameters == 2:
            return self._timed(low, high)
        return self._surfaces(low, high)

    def _inside(self, U: FloatArray, low: FloatArray, high: FloatArray) -> BoolArray:
        return np.asarray(self._sides(U, low, high).all(axis=1))

    def _sides(self, U: FloatArray, low: FloatArray, high: FloatArray, beside: Beside | None = None) -> BoolArray:
        """Return on which sides of a box (or of one box per point) points lie, and which points the patch keeps."""
        X, normals, keep = self.patch.at(U)
        inner = X - STEP * (high - low).min(axis=-1, keepdims=True) * normals
        kept = np.ones(len(X), dtype=np.bool_) if keep is None else keep
        # Only rounding: a point that a large cell lost here would be missing in all its descendants.
        tie = 4.0 * np.spacing(np.maximum(np.abs(low), np.abs(high)) + self.patch.measure)
        # A surface in a side of the box belongs to the domain behind it; a surface that crosses the side is cut there.
        along = np.abs(normals) > 1.0 - PLAIN
        above, below = (np.where(along & (np.abs(X - side) <= tie), inner, X) for side in (low, high))
        more = [] if beside is None else [beside(inner)[:, None]]
        return np.hstack([low <= above, high >= below, kept[:, None], *more])

    def _ranges(self, box: FloatArray, low: FloatArray, high: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the ranges of the parameter of a curve in many boxes: which box, begin and end.

        Each box has a range of its own to begin with.
        """
        if (straight := self._straight) is not None:
            return self._between(box, low, high, *straight)
        return ranges_held(lambda s, row: self._sides(s[:, None], low[row], high[row]), *box.T)

    @property
    def _straight(self) -> tuple[FloatArray, FloatArray] | None:
        """Start and direction of the curve if it is a straight line without gaps, else None."""
        if "line" not in self._known:
            self._known["line"] = self._line()
        return self._known["line"]  # type: ignore[no-any-return]

    def _line(self) -> tuple[FloatArray, FloatArray] | None:
        X, _, keep = self.patch.at(np.array([[0.0], [0.21], [0.52], [0.89], [1.0]]))
        slope = X[-1] - X[0]
        off = np.abs(X[0] + np.array([[0.21], [0.52], [0.89]]) * slope - X[1:-1]).max()
        return (X[0], slope) if keep is None and off <= 1e-14 * np.abs(slope).max() else None

    def _between(
        self, box: FloatArray, low: FloatArray, high: FloatArray, origin: FloatArray, slope: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the ranges of a straight line in many boxes."""
        moving = np.abs(slope) > 4.0 * np.spacing(np.abs(slope).max())
        ends = np.sort((np.stack([low, high]) - origin)[:, :, moving] / slope[moving], axis=0)
        start, stop = np.maximum(box[:, 0], ends[0].max(axis=1)), np.minimum(box[:, 1], ends[1].min(axis=1))
        rows = np.flatnonzero(stop - start > 1e-13)
        rows = rows[self._sides((start + stop)[rows, None] / 2, low[rows], high[rows]).all(axis=1)]
        return rows, start[rows], stop[rows]

    def _timed(self, low: FloatArray, high: FloatArray) -> list[Piece]:
        """Return the pieces of a curve extended through time."""
        patch = self.patch
        assert isinstance(patch, TimedPatch)
        length = patch.stop - patch.start
        start, stop = (
            max(self.box[1, 0], (low[-1] - patch.start) / length),
            min(self.box[1, 1], (high[-1] - patch.start) / length),
        )
        if not stop > start:
            return []
        middle = (start + stop) / 2
        found = held_ranges(
            lambda s: self._sides(np.stack([s, np.full(len(s), middle)], axis=1), low, high), *self.box[0]
        )
        return [replace(self, box=np.array([span, (start, stop)])) for span in found]

    def _surfaces(self, low: FloatArray, high: FloatArray) -> list[Piece]:
        box = self.box
        slopes = self._direct
        if slopes is not None:
            origin = self.patch.at(np.zeros((1, len(box))))[0][0]
            axes = np.abs(slopes).argmax(axis=1)
            rates = slopes[np.arange(len(box)), axes]
            ends = np.sort((np.stack([low, high], axis=1)[axes] - origin[axes, None]) / rates[:, None], axis=1)
            cut = np.stack([np.maximum(box[:, 0], ends[:, 0]), np.minimum(box[:, 1], ends[:, 1])], axis=1)
            if not (cut[:, 1] > cut[:, 0] + 1e-14).all():
                return []
            middle = cut.mean(axis=1)[None]
            X, normals, _ = self.patch.at(middle)
            X = X - STEP * (high - low).min() * normals
            fixed = np.setdiff1d(np.arange(len(low)), axes)
            if not ((X[0] >= low) & (X[0] <= high))[fixed].all():
                return []
            found = replace(self, box=cut)
            return [found] if found._kept(low, high) else []
        around = self.patch.bounds
        if around is not None and ((around[:, 1] < low) | (around[:, 0] > high)).any():
            return []
        if around is not None and ((around[:, 0] > low) & (around[:, 1] < high)).all() and self._is_unbroken:
            return [self]
        for count in (SCAN, _FINER * (SCAN - 1) + 1):
            axes = [np.linspace(start, stop, count) for start, stop in box]
            U = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
            inside = self._inside(U, low, high)
            if not inside.any():
                return []
        step = (box[:, 1] - box[:, 0]) / (count - 1)
        from scipy.ndimage import label

        labels, regions = label(inside.reshape([count] * len(box)), np.ones([3] * len(box)))
        boxes: list[FloatArray] = []
        # A narrow tip may reach beyond the finer points, but not beyond a step of the coarser ones.
        for number in range(1, regions + 1):
            places = np.argwhere(labels == number)
            tight = np.stack([places.min(axis=0) - _FINER, places.max(axis=0) + _FINER], axis=1)
            apart = [own for own in boxes if ((own[:, 0] >= tight[:, 1]) | (own[:, 1] <= tight[:, 0])).any()]
            joined = [own for own in boxes if not any(own is other for other in apart)]
            ends = np.stack([tight, *joined])
            boxes = [*apart, np.stack([ends[:, :, 0].min(axis=0), ends[:, :, 1].max(axis=0)], axis=1)]
        return [replace(self, box=np.clip(box[:, :1] + step[:, None] * own, box[:, :1], box[:, 1:])) for own in boxes]

    @property
    def _is_unbroken(self) -> bool:
        """Whether the patch keeps all of its points, whatever shapes it belongs to."""
        patch = self.patch
        while isinstance(patch, FlippedPatch):
            patch = patch.base
        return not isinstance(patch, RestrictedPatch)

    def _kept(self, low: FloatArray, high: FloatArray) -> bool:
        """Return whether the shape keeps any point of this piece of a flat patch."""
        U = self.box[:, 0] + (self.box[:, 1] - self.box[:, 0]) * kronecker(POINTS, len(self.box))
        return bool(self._inside(U, low, high).any())

    def rule(self, low: FloatArray, high: FloatArray, count: int) -> Rule | None:
        """Return points in a box, ``count`` per parameter."""
        return rules_of([(self, low, high, count)], turns=False)[0]

    def uncut(self, low: FloatArray, high: FloatArray, counts: Sequence[int], beside: Beside | None) -> Rule | None:
        """Return Gauss points, or None if some of them are cut off."""
        patch, box = self.patch, self.box
        if patch.parameters == 0:
            atoms = patch.atoms
            assert atoms is not None
            return Rule(atoms.points, atoms.normals, np.ones(1))
        V, weights = tensor(*map(gauss, counts))
        span = box[:, 1] - box[:, 0]
        U, timed = box[:, 0] + span * V, isinstance(patch, TimedPatch)
        if not (timed and beside is None) and not self._sides(U, low, high, beside).all():
            return None
        X, normals, keep = patch.at(U)
        if keep is not None and not keep.all():
            return None
        runs = np.zeros(len(X), dtype=np.int64) if patch.parameters - timed == 1 else None
        return Rule(X, normals, weights * float(np.prod(span)) * _whole(patch), runs)


def _cut(
    wanted: Sequence[tuple[Piece, FloatArray, FloatArray, list[int]]], beside: Beside | None
) -> Iterator[Rule | None]:
    """Yield quadrature points, on parameter lines, of the pieces that boxes cut off one patch."""
    piece, (low, high) = wanted[0][0], (np.array([own[k] for own in wanted]) for k in (1, 2))
    start, stop = np.array([own.box for own, *_ in wanted]).transpose(2, 0, 1)
    lines = LineQuadrature(lambda U, row: piece._sides(U, low[row], high[row], beside), start, stop, 1)
    for U, weights, _ in lines.rules([(across, along) for *_, (across, along) in wanted]):
        X, normals, _ = piece.patch.at(U)
        yield Rule(X, normals, weights * _whole(piece.patch)) if len(U) else None


def _whole(patch: Patch) -> float:
    """Return the area of the whole image of the unit cube, including masked points."""
    if isinstance(patch, FlippedPatch):
        return _whole(patch.base)
    if isinstance(patch, TimedPatch):
        return _whole(patch.base) * (patch.stop - patch.start)
    if isinstance(patch, RestrictedPatch) and patch.parameters > 1:
        return _whole(patch.base)
    domain = getattr(patch, "domain", None)
    if domain is not None and patch.parameters > 1:  # a space domain at one time, drawn from the box around it
        return float(np.prod(domain.bounds[:, 1] - domain.bounds[:, 0]))
    return patch.measure
