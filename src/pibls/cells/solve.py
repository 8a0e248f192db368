"""Solve a linear problem on a tree of cells: least squares, eliminated along the tree."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import qr

from pibls.cells.crossings import Crossing
from pibls.cells.layout import Layout
from pibls.cells.parts import CellPart, Face, part_values
from pibls.cells.rows import PartRows, Rows
from pibls.cells.tree import Cell, contacts, leaves
from pibls.checks import FloatArray
from pibls.problem import Statement
from pibls.solvers.elimination import Eliminated, Leaf, merge, triangle

__all__ = ["PER_CELL", "Fit", "Glue"]

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
class Fit:
    """The weights of every part of a tree.

    Attributes
    ----------
    root
        The tree.
    parts
        The parts of every leaf.
    weights
        Weights of each part, shape (fields, functions).
    residuals
        Root of the square sum of the rows of each part, in units of the solution.
    unknowns, rows
        Size of the least-squares problem.
    columns
        The solutions with further right-hand sides, if rows have them: shape (sides, fields, functions).
    """

    root: Cell
    parts: tuple[CellPart, ...]
    weights: dict[CellPart, FloatArray]
    residuals: dict[CellPart, float]
    unknowns: int
    rows: int
    columns: dict[CellPart, FloatArray] = field(default_factory=dict)

    @property
    def residual(self) -> float:
        """Root of the square sum of all rows, in units of the solution."""
        return float(np.sqrt(sum(value**2 for value in self.residuals.values())))


@dataclass(frozen=True, eq=False)
class _Front:
    """What a branch of the tree still shares with the rest."""

    faces: tuple[Face, ...]
    sizes: tuple[int, ...]
    rows: FloatArray
    own: Eliminated
    inner: tuple[Face, ...]
    inner_sizes: tuple[int, ...]
    parts: tuple[CellPart | _Front, ...]
    sample: CellPart | None
    lost: float


@dataclass(eq=False)
class Glue:
    """Solves one problem on one tree after another; what has not changed is not computed again."""

    rows: Rows
    _reduced: dict[CellPart, tuple[PartRows, FloatArray, FloatArray, float]] = field(default_factory=dict)
    _columns: dict[CellPart, FloatArray] = field(default_factory=dict)
    _shared: dict[Any, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    _alike: dict[Any, tuple[Leaf, tuple[int, ...]]] = field(default_factory=dict)
    _fronts: dict[Any, _Front] = field(default_factory=dict)
    _links: dict[Any, Link] = field(default_factory=dict)
    _orders: dict[Any, Any] = field(default_factory=dict)
    _around: dict[Any, set[CellPart]] = field(default_factory=dict)
    _projected: dict[Any, FloatArray] = field(default_factory=dict)
    flops: float = 0.0
    leaves: int = 0
    _unit: FloatArray | None = None
    _top: _Front = field(init=False)

    @property
    def layout(self) -> Layout:
        """The domain."""
        return self.rows.layout

    @property
    def unit(self) -> float:
        """Operations that a cell has taken."""
        return self.flops / max(self.leaves, 1)

    @property
    def held(self) -> float:
        """Bytes that the last solution takes, for the most part."""
        own = (front.rows.size + front.own.triangle.size + front.own.coupling.size for front in self._fronts.values())
        return 8.0 * sum(own) + 8.0 * sum(upper.size for _, upper, _, _ in self._reduced.values())

    def solve(self, root: Cell) -> Fit:
        """Return the solution on a tree."""
        paths = _paths(root)
        held: dict[CellPart, list[Face]] = {}
        depths: dict[Face, tuple[int, int, int]] = {}
        for contact in contacts(root, self.rows.periodic):
            common = _common(paths[contact.below], paths[contact.above])
            for face in self.layout.faces(contact):
                depths[face] = (-common, 0, len(depths))
                held.setdefault(face.below, []).append(face)
                held.setdefault(face.above, []).append(face)
        for leaf in leaves(root):
            # Parts of a cell join one after the other, and what the next one shares comes first.
            order = {part: number for number, part in enumerate(self.layout.parts(leaf))}
            seams = self.layout.seam_faces(leaf)
            ranks = {face: max(order[face.below], order[face.above]) for face in seams}
            for face in sorted(seams, key=ranks.__getitem__):
                depths[face] = (-len(paths[leaf]), ranks[face], len(depths))
                held.setdefault(face.below, []).append(face)
                held.setdefault(face.above, []).append(face)
        self._chain(root, paths, held, depths)
        before, self._fronts = self._fronts, {}
        top = self._top = self._front(root, held, depths, before)
        weights: dict[CellPart, FloatArray] = {}
        residuals: dict[CellPart, float] = {}
        self._columns = {}
        self._back(top, self._total(top), {}, weights, residuals)
        parts = tuple(weights)
        self._reduced = {part: self._reduced[part] for part in parts}
        return Fit(root, parts, weights, residuals, len(parts) * self.rows.width, 0, self._columns)

    def _chain(self, root: Cell, paths: dict[Cell, str], held: Any, depths: Any) -> None:
        """Link every part with the next one, for each average, and around each crossing."""
        cells = leaves(root)
        chains: list[tuple[Any, float, list[Cell]]] = [(statement, 0.0, cells) for statement in self.rows.averages]
        chains += [(crossing, *crossing.around(cells)) for crossing in self.layout.crossings]
        for of, half, around in chains:
            parts = [part for cell in around for part in self.layout.parts(cell)]
            self._around[of] = set(parts)
            for one, two in pairwise(parts):
                # What is within a box of some size is in all trees.
                link = self._links.setdefault((one, two, of, half), Link(one, two, of))
                order = self.layout.parts(two.cell).index(two) if one.cell is two.cell else 0
                depths[link] = (-_common(paths[one.cell], paths[two.cell]), order, len(depths))
                held.setdefault(one, []).append(link)
                held.setdefault(two, []).append(link)

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

    def _front(self, cell: Cell, held: dict[CellPart, list[Face]], depths: Any, before: dict[Any, _Front]) -> _Front:
        if cell.halves:
            return self._merged(cell, [self._front(half, held, depths, before) for half in cell.halves], depths, before)
        parts = self.layout.parts(cell)
        fronts = []
        for part in parts:
            faces = tuple(sorted(held.get(part, ()), key=depths.__getitem__))
            kept = before.get(part)
            front = kept if kept is not None and kept.faces == faces else self._leaf(part, faces)
            self._fronts[part] = front
            fronts.append(front)
        return self._merged(cell, fronts, depths, before)

    def _leaf(self, part: CellPart, faces: tuple[Face, ...]) -> _Front:
        self.leaves += 1
        self.flops += PER_CELL
        rows, upper, right, _ = self._reduce(part)
        key = self._configuration(part, faces, rows)
        if key is None or key not in self._alike:
            leaf, sizes, below = self._factorised(part, faces, rows, upper)
            if key is not None:
                if len(self._alike) * leaf.size > _REMEMBERED:
                    self._alike.clear()
                self._alike[key] = leaf, sizes
        else:
            leaf, sizes = self._alike[key]
            balance = -_STIFF * self._unit_of_sums(part)[:, None] * rows.given
            below = np.vstack([np.zeros((sum(sizes), self.rows.sides)), balance, np.zeros_like(balance)])
        self.flops += 4.0 * len(below) * (len(upper) + len(leaf.front))
        own, front, lost = leaf.solved(self.rows.emphasis(part) * right, below)
        return _Front(faces, sizes, front, own, (), (), (part,), part, lost)

    def _configuration(self, part: CellPart, faces: tuple[Any, ...], rows: PartRows) -> Any:
        """Return what parts have in common whose rows are the same, or None where they are a part's own."""
        plain = rows.key is not None and not len(rows.value) and not self.rows.averages
        if not plain or not all(isinstance(face, Face) and face.whole for face in faces):
            return None
        return rows.key, tuple(
            (
                self.layout.place(part, self.rows.on_side(part, face)),
                float(f"{face.thickness:.12g}"),
                bool(face.shift),
                *(float(f"{unit:.12g}") for unit in self.rows.face_units(face)),
            )
            for face in faces
        )

    def _factorised(
        self, part: CellPart, faces: tuple[Any, ...], rows: PartRows, upper: FloatArray
    ) -> tuple[Leaf, tuple[int, ...], FloatArray]:
        """Return the rows of a part factorised, how many unknowns it shares on each face, and the right-hand side."""
        blocks, rights, columns = [rows.condition], [rows.value], {}
        sizes: list[int] = []
        for face in faces:
            columns[face] = sum(sizes)
            if isinstance(face, Link):
                sizes.append(face.size)
                continue
            blocks.append(self.rows.traced(part, face, rows.units))
            rights.append(self.rows.traced_right(part, face))
            sizes.append(len(blocks[-1]))
        count = len(rows.given)
        below, width = np.vstack(blocks), count + sum(sizes)
        columns = {face: count + column for face, column in columns.items()}
        bottom = np.zeros((len(below), width + self.rows.sides), order="F")
        bottom[:, width:] = np.concatenate(rights)
        traced = np.concatenate(
            [
                np.empty(0, int),
                *(
                    np.arange(columns[f], columns[f] + n)
                    for f, n in zip(faces, sizes, strict=True)
                    if not isinstance(f, Link)
                ),
            ]
        )
        bottom[len(rows.value) + np.arange(len(traced)), traced] = -1.0
        ties = self._crossed(part, faces, sizes, bottom[len(rows.value) :], columns)
        below, bottom = np.vstack([below, np.zeros((len(ties), self.rows.width))]), np.vstack([bottom, ties])
        if self.rows.averages:
            sums, theirs = self._sums(part, rows.units, faces, columns, width)
            below, bottom = np.vstack([below, sums]), np.vstack([bottom, theirs])
        balance, theirs = self._balance(part, faces, rows, below, bottom, columns)
        emphasis = self.rows.emphasis(part)
        below = np.asfortranarray(np.vstack([emphasis * below, balance])[:, self._order(part, rows)])
        bottom = np.asfortranarray(np.vstack([emphasis * bottom, theirs]))
        self.flops += 2.0 * len(below) * len(upper) * (len(upper) + 2 * width) + 2.0 * len(below) * width**2
        leaf = Leaf.of(np.multiply(emphasis, upper, order="F"), below, bottom[:, :width])
        return leaf, tuple(sizes), bottom[:, width:]

    def _crossed(
        self, part: CellPart, faces: tuple[Any, ...], sizes: list[int], bottom: FloatArray, columns: dict[Any, int]
    ) -> FloatArray:
        """Put the functions of crossings into the rows of what a part shares with others that do not have them.

        Return the rows that say that their numbers are the same before and after the part.
        """
        ties = [np.zeros((0, bottom.shape[1]))]
        for crossing, links in _by_crossing(faces).items():
            first, row = columns[links[0]], 0
            for face, size in zip(faces, sizes, strict=True):
                if isinstance(face, Link):
                    continue
                other = face.above if face.below is part else face.below
                if other not in self._around[crossing]:
                    own = slice(first, first + crossing.size)
                    bottom[row : row + size, own] = crossing.traced(self.rows, part, face)
                row += size
            if len(links) > 1:
                tie = np.zeros((crossing.size, bottom.shape[1]))
                for link, sign in zip(links, (1.0, -1.0), strict=True):
                    tie[:, columns[link] : columns[link] + crossing.size] = sign * _TIED * np.eye(crossing.size)
                ties.append(tie)
        return np.vstack(ties)

    def _balance(
        self,
        part: CellPart,
        faces: tuple[Any, ...],
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
        balance, theirs = rows.means.copy(), np.zeros((2 * count, bottom.shape[1]))
        conditions = len(rows.value)
        balance -= rows.flows @ rows.condition
        theirs[:count, bottom.shape[1] - self.rows.sides :] = -rows.given - rows.flows @ rows.value
        row = conditions
        for face in faces:
            if isinstance(face, Link):
                continue
            width = len(self.rows.shared(face)) * face.basis.shape[1]
            own, shared = self.rows.flux.across(part, face, below[row : row + width])
            balance -= own
            theirs[:count, columns[face] : columns[face] + width] += shared
            known = bottom[row : row + width].copy()
            known[:, columns[face] : columns[face] + width] = 0.0
            theirs[:count] -= shared @ known
            row += width
        scale = self._unit_of_sums(part)[:, None]
        theirs[:count] *= _STIFF * scale
        theirs[np.arange(count), np.arange(count)] = -_STIFF
        theirs[count + np.arange(count), np.arange(count)] = self._counts(part, part.cell)
        return np.vstack([_STIFF * scale * balance, np.zeros_like(balance)]), theirs

    def _unit_of_sums(self, part: CellPart) -> FloatArray:
        """Return what sums are multiplied with: the same everywhere, as they add up however coefficients vary."""
        if self._unit is None:
            self._unit = self.rows.weights(part, self.layout.root.size / 2)
        return self._unit

    def _counts(self, part: CellPart, cell: Cell) -> FloatArray:
        """Return how much the sums of a branch count."""
        return np.asarray(self.rows.weights(part, cell.size / 2) / self._unit_of_sums(part))

    def _reduce(self, part: CellPart) -> tuple[PartRows, FloatArray, FloatArray, float]:
        """Return the rows of a part, its equations as a triangle, and what of them nothing can fulfil."""
        if part in self._reduced:
            return self._reduced[part]
        rows = self.rows.of(part)
        width = self.rows.width
        order = self._order(part, rows)
        if rows.key is None:
            assert rows.equation is not None
            ridge = _RIDGE * np.sqrt(part.volume) * np.eye(width)
            stacked = np.asfortranarray(
                np.vstack(
                    [
                        np.column_stack([rows.equation[:, order], rows.source]),
                        np.column_stack([ridge, np.zeros((width, self.rows.sides))]),
                    ]
                )
            )
            found = triangle(stacked, width)
            self.flops += 2.0 * len(stacked) * width**2
            upper, right = found[:width, :width], found[:width, width:]
            lost = float(np.square(found[width:, width]).sum())
        else:
            if rows.equation is not None:
                ridge = _RIDGE * np.sqrt(part.volume) * np.eye(width)
                orthogonal, triangular = np.linalg.qr(np.vstack([rows.equation[:, order], ridge]))
                self._shared[rows.key] = orthogonal[: len(rows.equation)], np.asfortranarray(triangular)
                self.flops += 4.0 * len(rows.equation) * width**2
            orthogonal, upper = self._shared[rows.key]
            right = orthogonal.T @ rows.source
            lost = max(0.0, float(np.square(rows.source[:, 0]).sum() - np.square(right[:, 0]).sum()))
        # The triangle says all that the rows do.
        self._reduced[part] = (replace(rows, equation=None), np.asfortranarray(upper), right, lost)
        return self._reduced[part]

    def _order(self, part: CellPart, rows: PartRows) -> Any:
        """Return an order of the unknowns of a part in which those come first that its equations determine best.

        Cells of nearly the same shape share one. Rows of an equation are many times larger than those of values; in
        this order rounding in the ones does not reach the others.
        """
        shape = tuple(np.round(2 * np.log2(part.half / part.half.max())).astype(int).tolist())
        key = (shape, int(np.round(np.log2(part.half.max()))))
        if key not in self._orders:
            assert rows.equation is not None
            upper = np.linalg.qr(rows.equation, mode="r")
            self._orders[key] = qr(upper, mode="r", pivoting=True, check_finite=False)[1]
        return self._orders[key]

    def _merged(self, cell: Cell, fronts: list[_Front], depths: Any, before: dict[Any, _Front]) -> _Front:
        fronts = [front for front in fronts if front.parts]
        if len(fronts) == 1:
            return fronts[0]
        if not fronts:
            return _Front(
                (),
                (),
                np.zeros((0, self.rows.sides)),
                Eliminated(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, self.rows.sides))),
                (),
                (),
                (),
                None,
                0.0,
            )
        found = fronts[0]
        for number, other in enumerate(fronts[1:]):
            key = (cell, number)
            kept = before.get(key)
            if kept is None or kept.parts != (found, other):
                kept = self._pair(cell, found, other, depths)
            self._fronts[key] = kept
            found = kept
        return found

    def _pair(self, cell: Cell, one: _Front, two: _Front, depths: Any) -> _Front:
        sizes = dict(zip(one.faces + two.faces, one.sizes + two.sizes, strict=True))
        theirs = set(two.faces)
        shared = tuple(face for face in one.faces if face in theirs)
        common = set(shared)
        rest = tuple(sorted((f for f in sizes if f not in common), key=depths.__getitem__))
        starts = dict(zip(rest, np.cumsum([0, *(sizes[f] for f in rest)])[:-1].tolist(), strict=True)) if rest else {}
        one_place, two_place = (
            np.concatenate(
                [
                    np.empty(0, int),
                    *(np.arange(starts[f], starts[f] + sizes[f]) for f in front.faces if f not in common),
                ]
            )
            for front in (one, two)
        )
        count, width = sum(sizes[f] for f in shared), sum(sizes[f] for f in rest)
        self.flops += 4.0 * count**2 * width + 2.0 * count * width**2 + 2.0 * count**3
        assert one.sample is not None
        counts = self._counts(one.sample, cell)
        own, rows, lost = merge(one.rows, two.rows, count, (one_place, two_place), width, counts)
        return _Front(
            rest,
            tuple(sizes[f] for f in rest),
            rows,
            own,
            shared,
            tuple(sizes[f] for f in shared),
            (one, two),
            one.sample,
            lost,
        )

    def _total(self, top: _Front, rng: np.random.Generator | None = None) -> FloatArray:
        """Return the sums of the whole tree, the last unknowns that are left."""
        count = len(top.rows)
        rhs = top.rows[:, count:] if rng is None else rng.standard_normal((count, self.rows.sides))
        return Eliminated(top.rows[:, :count], np.zeros((count, 0)), rhs).solve(np.zeros((0, 1)))

    def weakest(self, seed: int = 0) -> tuple[float, dict[CellPart, FloatArray]]:
        """Return how strongly the last solution answers to changes of what it must meet, and its largest answer.

        One step of inverse iteration with random right-hand sides: near one where everything is well determined,
        beyond all bounds where a function can be added to the solution that no row sees.
        """
        rng = np.random.default_rng((seed, 5))
        weights: dict[CellPart, FloatArray] = {}
        count = self._back(self._top, self._total(self._top, rng), {}, weights, {}, rng)
        square = 0.0
        for part, found in weights.items():
            scaled = found / self._reduced[part][0].units[:, None]
            if part.whole:
                square += float(np.prod(part.half) * np.square(scaled).sum())
            else:
                # What a cut part does outside the domain does not count.
                values = part_values(self.layout.reference, part, scaled, part.points[::4])
                square += float(part.volume * np.square(values).sum() / len(values))
        return float(np.sqrt(square / max(count, 1))), weights

    def _back(
        self,
        front: _Front,
        sums: FloatArray,
        known: dict[Any, FloatArray],
        weights: dict[CellPart, FloatArray],
        residuals: dict[CellPart, float],
        rng: np.random.Generator | None = None,
    ) -> int:
        """Find the unknowns of a branch from its sums and those around it, and return how many they are."""
        others = np.concatenate([sums, *(known[face] for face in front.faces)])
        own = front.own.solve(others, None if rng is None else rng.standard_normal(front.own.rhs.shape))
        if front.inner or (front.parts and isinstance(front.parts[0], _Front)):
            start = len(sums)
            shares = sums - own[:start], own[:start]
            for face, size in zip(front.inner, front.inner_sizes, strict=True):
                known[face] = own[start : start + size]
                start += size
            count = len(own)
            for part, share in zip(front.parts, shares, strict=True):
                assert isinstance(part, _Front)
                count += self._back(part, share, known, weights, residuals, rng)
            return count
        for part in front.parts:
            assert isinstance(part, CellPart)
            units = self._reduced[part][0].units
            found = np.empty((own.shape[1], self.rows.width))
            found[:, self._order(part, self._reduced[part][0])] = own.T
            every = found.reshape(len(found), len(units), -1) * units[:, None]
            for crossing, links in _by_crossing(front.faces).items():
                if (crossing, part) not in self._projected:
                    self._projected[crossing, part] = crossing.projected(self.layout, part)
                every += np.tensordot(known[links[0]].T, self._projected[crossing, part], axes=1)
            weights[part] = every[0]
            if len(every) > 1:
                self._columns[part] = every[1:]
            # Rotations keep lengths: what the front cannot meet is all that the rows of the part do not.
            width = front.rows.shape[1] - self.rows.sides
            left = front.rows[:, :width] @ others[:, 0] - front.rows[:, width]
            square = (front.lost + float(left @ left)) / self.rows.emphasis(part) ** 2
            residuals[part] = float(np.sqrt(square + self._reduced[part][3]))
        return len(own)


def _by_crossing(faces: tuple[Any, ...]) -> dict[Crossing, list[Link]]:
    """Return the links of a part that carry numbers of functions at crossings."""
    found: dict[Crossing, list[Link]] = {}
    for face in faces:
        if isinstance(face, Link) and isinstance(face.of, Crossing):
            found.setdefault(face.of, []).append(face)
    return found


def _paths(root: Cell) -> dict[Cell, str]:
    found: dict[Cell, str] = {}

    def walk(cell: Cell, path: str) -> None:
        if not cell.halves:
            found[cell] = path
        for number, half in enumerate(cell.halves):
            walk(half, path + str(number))

    walk(root, "")
    return found


def _common(one: str, two: str) -> int:
    """Return how far two paths go together."""
    count = 0
    for a, b in zip(one, two, strict=False):
        if a != b:
            return count
        count += 1
    return count
