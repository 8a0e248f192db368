"""The cells of a problem: its domain, the parts and faces of cells, and the functions of cells at points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.cutting import Cutter
from pibls.cells.faces import FaceFinder
from pibls.cells.parts import CellPart, Face
from pibls.cells.tree import Cell, leaves, refined
from pibls.cells.tree_domain import TreeDomain
from pibls.checks import FloatArray
from pibls.features import MultiIndex
from pibls.features.reference import Memory, ReferenceNetwork, draw_reference, on_grid
from pibls.problem import Problem
from pibls.refinement.standards import CANDIDATES
from pibls.solution.celled import CellNetwork

__all__ = ["Layout"]

_REMEMBERED = 2**25


@dataclass(eq=False)
class Layout:
    """The parts and faces of cells for one problem and one degree; results for a cell are kept."""

    problem: Problem
    reference: ReferenceNetwork
    seed: int = 0
    tree_domain: TreeDomain = None  # type: ignore[assignment]
    # whether steps in time shall be stable: sums over points are integrals then, and traces are as rich as cells
    is_stable: bool = False
    _memory: Memory = field(default_factory=lambda: Memory(_REMEMBERED))
    # the last two trees as networks, with the parts whose weights they have
    networks: dict[Cell, tuple[CellNetwork, list[CellPart]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree_domain = self.tree_domain or TreeDomain(self.problem)
        self.cutter = Cutter(self.tree_domain, self.reference, self.is_stable)
        self.face_finder = FaceFinder(self.tree_domain, self.reference, self.cutter, self.is_stable)
        self.parts, self.faces, self.interface_faces = (
            self.cutter.parts,
            self.face_finder.faces,
            self.face_finder.interface_faces,
        )

    def enriched(self, degrees: int) -> Layout:
        """Return the layout of the same domain for functions of ``degrees`` degrees more."""
        old = self.reference
        richer = draw_reference(old.dimension, old.degree + degrees, self.seed, old.nodes)
        return Layout(self.problem, richer, self.seed, self.tree_domain, self.is_stable)

    def restated(self, problem: Problem) -> Layout:
        """Return the same layout for a problem whose statements hold in the same places; both share their memory."""
        made = copy(self)
        made.problem = problem
        return made

    def parts_of(self, cells: Iterable[Cell]) -> list[CellPart]:
        """Return the parts of many cells, in order; new cells are cut together."""
        every = list(cells)
        self.cutter.cut(every)
        return [part for cell in every for part in self.parts(cell)]

    @property
    def root(self) -> Cell:
        """The bounding box of the domain."""
        return self.tree_domain.root

    def trimmed(self, root: Cell) -> Cell:
        """Return a tree whose leaves end at flat faces of the domain, if they are empty beyond."""
        ends = self.cutter.overhang
        while self.tree_domain.flat_sides and (
            cuts := {leaf: [cut] for leaf in leaves(root) if (cut := ends(leaf)) is not None}
        ):
            root = refined(root, cuts)
        return root

    def within(self, root: Cell) -> list[Cell]:
        """Return the leaves that intersect the domain."""
        cells = leaves(root)
        if self.tree_domain.is_box:
            return cells
        middles = self.tree_domain.inside(np.array([(cell.low + cell.high) / 2 for cell in cells]))
        self.tree_domain.find_pieces(cell for cell, own in zip(cells, middles, strict=True) if not own)
        return [c for c, own in zip(cells, middles, strict=True) if own or any(self.tree_domain.pieces(c).values())]

    def functions_at(
        self, part: CellPart, X: FloatArray, indices: Sequence[MultiIndex]
    ) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of the functions in a part's coordinates.

        The part's own points and those of its boundary are known by identity, and what was found there is kept.
        """
        if part.whole:
            own = X is part.points
            return self.reference.on_rule(indices) if own else self.reference.evaluate_again(part.local(X), indices)
        if not (X is part.points or any(X is rule.points for rule in part.boundary.values())):
            return self.reference.evaluate(part.local(X), indices)
        return self._memory.recalled(
            (part, id(X)), indices, lambda missing: self.reference.evaluate(part.local(X), missing)
        )

    def lower(self, part: CellPart) -> FloatArray:
        """Return an orthonormal basis of functions of two degrees less at the points of a cut part; it is kept."""
        zero = (0,) * self.reference.dimension
        few = math.comb(max(self.reference.degree - 2, 1) + len(zero), len(zero))

        def made(_: list[MultiIndex]) -> dict[MultiIndex, FloatArray]:
            values = self.functions_at(part, part.points, [zero])[zero][:, :few]
            return {zero: np.linalg.qr(values * np.sqrt(part.weights)[:, None])[0]}

        return self._memory.recalled(("lower", part), [zero], made)[zero]

    def triangle(self, part: CellPart) -> FloatArray:
        """Return the matrix from weights to coefficients of functions that are orthonormal in a cut part; it is kept.

        The first of these functions are combinations of the first functions of the cell.
        """
        zero = (0,) * self.reference.dimension

        def made(_: list[MultiIndex]) -> dict[MultiIndex, FloatArray]:
            values = self.functions_at(part, part.points, [zero])[zero]
            return {zero: np.asarray(np.linalg.qr(values * np.sqrt(part.weights)[:, None], mode="r"))}

        return self._memory.recalled(("triangle", part), [zero], made)[zero]

    def moments(
        self, part: CellPart, face: Face, X: FloatArray, indices: Sequence[MultiIndex]
    ) -> dict[MultiIndex, FloatArray]:
        """Return the moments of derivatives of the functions with the polynomials of a whole face.

        The moments are those on the reference cube; the caller scales them to the face.
        """

        def made(missing: list[MultiIndex]) -> dict[MultiIndex, FloatArray]:
            left = (face.basis * np.sqrt(self.face_finder.whole[1])[:, None]).T[None]
            forms = [{index: 1.0} for index in missing]
            return dict(zip(missing, self.reference.combine(on_grid(part.local(X)), forms, left), strict=True))

        return self.reference.memory.recalled(("moments", self.place(part, X)), indices, made)

    def place(self, part: CellPart, X: FloatArray) -> bytes:
        """Return the position of a whole face in the coordinates of a part, as a key."""
        return on_grid(part.local(X[[0, -1]])).tobytes()

    def owned(self, part: CellPart, X: FloatArray) -> Any:
        """Return the numbers of the points in a part; a point on a face belongs to one part only."""
        cell, start = part.cell, self.tree_domain.root.low
        above = (cell.low < X) | ((cell.low <= start) & (start <= X))
        mine = np.flatnonzero((above & (cell.high >= X)).all(axis=1))
        parts = self.cutter.parts(cell)
        return mine[self.cutter.part_at(cell, X[mine]) == parts.index(part)] if len(parts) > 1 else mine

    @property
    def trace_degree(self) -> int:
        """Degree of the traces on faces, at most that of cells."""
        return self.reference.degree if self.reference.dimension == 1 else self.face_finder.degree

    @cached_property
    def volume(self) -> float:
        """Measure of the domain."""
        return float(self.tree_domain.domain.measure)

    @cached_property
    def _rule(self) -> tuple[FloatArray, FloatArray]:
        return self.tree_domain.domain.quadrature(CANDIDATES)

    def quadrature(self, part: CellPart) -> tuple[FloatArray, FloatArray]:
        """Return points and weights for integrals over a part: its own if they are exact, else those of the domain."""
        if part.whole or part.integral is not None:
            return part.points, part.integrals
        X, weights = self._rule
        mine = self.owned(part, X)
        return X[mine], weights[mine]
