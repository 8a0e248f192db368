"""The rows of one part of a tree, factorised: its equations, conditions, and what it shares with its neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from pibls.cells.crossings import Crossing
from pibls.cells.parts import CellPart, Face
from pibls.cells.rows import PartRows, Rows
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.features.reference import on_grid
from pibls.problem import Statement
from pibls.solvers.elimination import Eliminated, Leaf, Triangle, counted

__all__ = ["PER_CELL", "Link", "Reduced", "Reducer", "Wall", "by_crossing"]

PER_CELL = 5e6  # operations that the handling of a cell counts for
_RIDGE = 1e-13
_REMEMBERED = 2**26  # numbers in all, of factorised parts
_TIED = 1e4  # how strictly numbers that are carried from part to part are the same
_STIFF = 300.0  # how strictly the sums of a part are what they are defined to be


@dataclass(frozen=True, eq=False)
class Link:
    """Carries numbers from one part to the next: the sum of an average so far, or those of functions at a crossing."""

    below: CellPart
    above: CellPart
    of: Statement | Crossing

    @property
    def size(self) -> int:
        """How many numbers it carries."""
        return self.of.size if isinstance(self.of, Crossing) else 1


@dataclass(frozen=True, eq=False)
class Wall:
    """The side of a whole part beyond which there are smaller ones: all of them share one set of polynomials with it.

    A tree that is graded has many faces; what they share is no more than the largest parts can tell apart.
    """

    part: CellPart
    axis: int

    def carried(self, rows: Rows, face: Face) -> FloatArray:
        """Return the coefficients on a face by those on the wall, as a matrix."""
        part, wanted = self.part, rows.shared(face)
        others = np.arange(len(part.half)) != self.axis
        share = np.sqrt(face.area / np.prod(2 * part.half[others]))
        common = share * rows.layout.walls.common((face.points[:, others] - part.center[others]) / part.half[others])
        ratio = face.thickness / (2.0 * part.half[self.axis])
        units = rows.balance(part)[1] / rows.face_units(face)
        step = len(common)
        found = np.zeros((step * len(wanted), step * len(wanted)))
        for k, (number, order) in enumerate(wanted):
            block = slice(k * step, (k + 1) * step)
            found[block, block] = (ratio ** (0.5 + order) * units[number]) * common
        return found


class Reduced(NamedTuple):
    """The rows of a part, its equations as a triangle, and what of them nothing can fulfil."""

    rows: PartRows
    upper: FloatArray
    right: FloatArray
    lost: float


@dataclass(eq=False)
class Reducer:
    """Factorises the rows of parts; parts with equal rows share one factorisation."""

    rows: Rows
    orders: dict[Any, Any] = field(default_factory=dict)  # of unknowns, for cells of some shape and size
    around: dict[Any, set[CellPart]] = field(default_factory=dict)  # parts that have the functions of a crossing
    walls: dict[Face, Wall] = field(default_factory=dict)  # of which faces are pieces
    flops: float = 0.0
    count: int = 0
    _reduced: dict[CellPart, Reduced] = field(default_factory=dict)
    _triangles: dict[Any, Triangle] = field(default_factory=dict)  # of equations, by the keys of parts
    _alike: dict[Any, tuple[Leaf, tuple[int, ...]]] = field(default_factory=dict)
    _numbers: int = 0  # of all that are remembered
    _unit: FloatArray | None = None

    @property
    def held(self) -> float:
        """Bytes that factorised equations take."""
        return 8.0 * sum(own.upper.size for own in self._reduced.values())

    def keep(self, parts: Iterable[CellPart]) -> None:
        """Forget all parts but some."""
        self._reduced = {part: self._reduced[part] for part in parts}

    def shared(self, faces: Iterable[Any]) -> tuple[Any, ...]:
        """Return what the unknowns that are shared on faces belong to: the faces, or walls."""
        return tuple(dict.fromkeys(self.walls.get(face, face) for face in faces))

    def leaf(self, part: CellPart, faces: tuple[Any, ...]) -> tuple[Eliminated, FloatArray, float, tuple[int, ...]]:
        """Return what a part's unknowns follow from, the rows left for what it shares, and how much that is for each.

        Before that comes the square sum of what is lacking whatever it shares.
        """
        self.count += 1
        self.flops += PER_CELL
        rows, upper, right, _ = self.reduced(part)
        key, alike = self._configuration(part, faces, rows)
        if key is None or key not in self._alike:
            leaf, sizes, below = self._factorised(part, alike, rows, upper)
            if key is not None:
                self._remember(key, leaf, sizes)
        else:
            leaf, sizes = self._alike[key]
            below, count = np.zeros((leaf.count, self.rows.sides)), len(rows.given)
            below[: len(rows.value)] = self.rows.emphasis(part) * rows.value
            below[leaf.count - 2 * count : leaf.count - count] = (
                -_STIFF * self._unit_of_sums(part)[:, None] * (rows.given + rows.flows @ rows.value)
            )
        if key is not None:
            leaf, sizes = self._in_order(key, leaf, sizes, self.shared(alike), self.shared(faces))
        self.flops += 4.0 * len(below) * (len(upper) + len(leaf.front))
        return *leaf.solved(self.rows.emphasis(part) * right, below), sizes

    def _remember(self, key: Any, leaf: Leaf, sizes: tuple[int, ...]) -> None:
        self._numbers += leaf.size
        while self._numbers > _REMEMBERED and self._alike:
            self._numbers -= self._alike.pop(next(iter(self._alike)))[0].size
        self._alike[key] = leaf, sizes

    def _in_order(
        self, key: Any, leaf: Leaf, sizes: tuple[int, ...], given: tuple[Any, ...], wanted: tuple[Any, ...]
    ) -> tuple[Leaf, tuple[int, ...]]:
        """Return a leaf with what it shares in another order: only its front has to be rotated for that."""
        order = tuple(given.index(one) for one in wanted)
        if order == tuple(range(len(order))):
            return leaf, sizes
        if (key, order) not in self._alike:
            width = len(leaf.front)
            ends = width - sum(sizes) + np.cumsum([0, *sizes])
            blocks = [np.arange(ends[place], ends[place + 1]) for place in order]
            self.flops += counted(4.0 / 3.0 * width**3, width)
            turned = leaf.ordered(np.concatenate([np.arange(ends[0]), *blocks]))
            self._remember((key, order), turned, tuple(sizes[place] for place in order))
        return self._alike[key, order]

    def reduced(self, part: CellPart) -> Reduced:
        """Return the rows of a part, its equations as a triangle, and what of them nothing can fulfil."""
        if part in self._reduced:
            return self._reduced[part]
        rows = self.rows.of(part)
        found = self._triangles.get(rows.key)
        if found is None:
            assert rows.equation is not None
            key = _shape(part)
            found = Triangle.of(rows.equation, _RIDGE * np.sqrt(part.volume), self.orders.get(key))
            self.orders.setdefault(key, found.order)
            width = self.rows.width
            self.flops += counted(2.0 * (len(rows.equation) + width) * width**2, width)
            if rows.key is not None:
                self._triangles[rows.key] = found
        # The triangle says all that the rows do.
        self._reduced[part] = Reduced(replace(rows, equation=None), found.upper, *found.rotated(rows.source))
        return self._reduced[part]

    def order(self, part: CellPart) -> Any:
        """Return an order of the unknowns of a part in which those come first that its equations determine best.

        Cells of nearly the same shape share one. Rows of an equation are many times larger than those of values; in
        this order rounding in the ones does not reach the others.
        """
        return self.orders[_shape(part)]

    def _configuration(self, part: CellPart, faces: tuple[Any, ...], rows: PartRows) -> tuple[Any, tuple[Any, ...]]:
        """Return what parts have in common whose rows are the same, and the faces in the order in which they are.

        That is None where they are a part's own.
        """
        plain = rows.key is not None and not self.rows.averages
        if not plain or not all(isinstance(face, Face) and face.whole for face in faces):
            return None, faces
        boundary = self.rows.boundary_key(part, rows)
        if boundary is None:
            return None, faces
        found = {
            face: (
                self.rows.layout.place(part, self.rows.on_side(part, face)),
                float(f"{face.thickness:.12g}"),
                bool(face.shift),
                *(float(f"{unit:.12g}") for unit in self.rows.face_units(face)),
            )
            for face in faces
        }
        alike = tuple(sorted(faces, key=found.__getitem__))
        shared = self.shared(alike)
        return (rows.key, boundary, tuple((*found[face], *self._on_wall(face, shared)) for face in alike)), alike

    def _on_wall(self, face: Face, shared: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return which wall a face is a piece of, and which piece."""
        wall = self.walls.get(face)
        if wall is None:
            return ()
        X = face.points[[0, -1]]
        place = on_grid((X - wall.part.center) / wall.part.half)
        units = self.rows.balance(wall.part)[1]
        return shared.index(wall), place.tobytes(), *(float(f"{v:.12g}") for v in (wall.part.half[wall.axis], *units))

    def _factorised(
        self, part: CellPart, faces: tuple[Any, ...], rows: PartRows, upper: FloatArray
    ) -> tuple[Leaf, tuple[int, ...], FloatArray]:
        """Return the rows of a part factorised, how many unknowns it shares in which place, and the right-hand side."""
        own = [face for face in faces if not isinstance(face, Link)]
        traced = [self.rows.traced(part, face, rows.units) for face in own]
        carried = {face: self._carried(face, len(block)) for face, block in zip(own, traced, strict=True)}
        shared = self.shared(faces)
        known = {self.walls.get(face, face): matrix.shape[1] for face, matrix in carried.items()}
        sizes = tuple(one.size if isinstance(one, Link) else known[one] for one in shared)
        count = len(rows.given)
        starts = dict(zip(shared, (count + np.cumsum([0, *sizes])).tolist(), strict=False))
        columns = {face: starts[self.walls.get(face, face)] for face in faces}
        below, width = np.vstack([rows.condition, *traced]), count + sum(sizes)
        bottom = np.zeros((len(below), width + self.rows.sides), order="F")
        bottom[:, width:] = np.concatenate([rows.value, *(self.rows.traced_right(part, face) for face in own)])
        row = len(rows.value)
        for face, matrix in carried.items():
            bottom[row : row + len(matrix), columns[face] : columns[face] + matrix.shape[1]] = -matrix
            row += len(matrix)
        ties = self._crossed(part, faces, carried, bottom[len(rows.value) :], columns)
        below, bottom = np.vstack([below, np.zeros((len(ties), self.rows.width))]), np.vstack([bottom, ties])
        if self.rows.averages:
            sums, theirs = self._sums(part, rows.units, faces, columns, width)
            below, bottom = np.vstack([below, sums]), np.vstack([bottom, theirs])
        balance, theirs = self._balance(part, carried, rows, below, bottom, columns)
        emphasis = self.rows.emphasis(part)
        below = np.asfortranarray(np.vstack([emphasis * below, balance])[:, self.order(part)])
        bottom = np.asfortranarray(np.vstack([emphasis * bottom, theirs]))
        operations = 2.0 * len(below) * (len(upper) * (len(upper) + 2 * width) + width**2)
        self.flops += counted(operations, len(upper))
        leaf = Leaf.of(np.multiply(emphasis, upper, order="F"), below, bottom[:, :width])
        return leaf, sizes, bottom[:, width:]

    def _carried(self, face: Face, count: int) -> FloatArray:
        """Return the coefficients on a face by the unknowns that are shared there."""
        wall = self.walls.get(face)
        return np.eye(count) if wall is None else wall.carried(self.rows, face)

    def _sums(
        self, part: CellPart, units: FloatArray, faces: tuple[Any, ...], columns: dict[Any, int], width: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the rows of averages: what came before, and this part, is what goes on; in the end it is the value."""
        rows = np.zeros((len(self.rows.averages), self.rows.width))
        right = np.zeros((len(self.rows.averages), width + self.rows.sides))
        for number, statement in enumerate(self.rows.averages):
            rows[number], right[number, width:] = self.rows.average(part, units, statement)
            for face in faces:
                if isinstance(face, Link) and face.of is statement:
                    right[number, columns[face]] = 1.0 if face.above is part else -1.0
        return rows, right

    def _crossed(
        self,
        part: CellPart,
        faces: tuple[Any, ...],
        carried: dict[Face, FloatArray],
        bottom: FloatArray,
        columns: dict[Any, int],
    ) -> FloatArray:
        """Put the functions of crossings into the rows of what a part shares with others that do not have them.

        Return the rows that say that their numbers are the same before and after the part.
        """
        ties = [np.zeros((0, bottom.shape[1]))]
        for crossing, links in by_crossing(faces).items():
            first, row = columns[links[0]], 0
            for face, matrix in carried.items():
                other = face.above if face.below is part else face.below
                if other not in self.around[crossing]:
                    own = slice(first, first + crossing.size)
                    bottom[row : row + len(matrix), own] = crossing.traced(self.rows, part, face)
                row += len(matrix)
            if len(links) > 1:
                tie = np.zeros((crossing.size, bottom.shape[1]))
                for link, sign in zip(links, (1.0, -1.0), strict=True):
                    tie[:, columns[link] : columns[link] + crossing.size] = sign * _TIED * np.eye(crossing.size)
                ties.append(tie)
        return np.vstack(ties)

    def _balance(
        self,
        part: CellPart,
        carried: dict[Face, FloatArray],
        rows: PartRows,
        below: FloatArray,
        bottom: FloatArray,
        columns: dict[Any, int],
    ) -> tuple[FloatArray, FloatArray]:
        """Return the rows that define the sums of a part, and those that say they are zero.

        What equations lack in all over a part, and what flows differ by from those shared on its faces and given on
        its boundary, adds up over any branch of the tree to what the branch creates or swallows. Small cells count
        little by themselves; without these sums they could be a source that is felt everywhere.
        """
        count = len(rows.given)
        theirs = np.zeros((2 * count, bottom.shape[1]))
        conditions = len(rows.value)
        balance = -rows.flows @ rows.besides if rows.besides is not None else rows.means - rows.flows @ rows.condition
        theirs[:count, bottom.shape[1] - self.rows.sides :] = -rows.given - rows.flows @ rows.value
        row, crossed = conditions, by_crossing(tuple(columns))
        for face, matrix in carried.items():
            own, shared = self.rows.flux.across(part, face, below[row : row + len(matrix)])
            if rows.besides is None:
                balance -= own
            there = slice(columns[face], columns[face] + matrix.shape[1])
            theirs[:count, there] += shared @ matrix
            if crossed or face.crossed:
                known = bottom[row : row + len(matrix)].copy()
                known[:, there] = 0.0
                theirs[:count] -= shared @ known
            row += len(matrix)
        scale = self._unit_of_sums(part)[:, None]
        theirs[:count] *= _STIFF * scale
        theirs[np.arange(count), np.arange(count)] = -_STIFF
        theirs[count + np.arange(count), np.arange(count)] = self.counts(part, part.cell)
        return np.vstack([_STIFF * scale * balance, np.zeros_like(balance)]), theirs

    def _unit_of_sums(self, part: CellPart) -> FloatArray:
        """Return what sums are multiplied with: the same everywhere, as they add up however coefficients vary."""
        if self._unit is None:
            self._unit = self.rows.weights(part, self.rows.layout.root.size / 2)
        return self._unit

    def counts(self, part: CellPart, cell: Cell) -> FloatArray:
        """Return how much the sums of a branch count."""
        return np.asarray(self.rows.weights(part, cell.size / 2) / self._unit_of_sums(part))


def _shape(part: CellPart) -> Any:
    """Return what parts of nearly the same shape and size have in common."""
    sides = part.half.tolist()
    largest = max(sides)
    return tuple(round(2 * math.log2(side / largest)) for side in sides), round(math.log2(largest))


def by_crossing(faces: tuple[Any, ...]) -> dict[Crossing, list[Link]]:
    """Return the links of a part that carry numbers of functions at crossings."""
    found: dict[Crossing, list[Link]] = {}
    for face in faces:
        if isinstance(face, Link) and isinstance(face.of, Crossing):
            found.setdefault(face.of, []).append(face)
    return found
