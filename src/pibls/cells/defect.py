"""How far a function on a tree is from solving a nonlinear problem, in the rows of its least-squares problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from pibls.cells.parts import CellPart, Face
from pibls.cells.rows import Rows
from pibls.cells.state import TreeState
from pibls.cells.tree import Cell, contacts, leaves
from pibls.checks import FloatArray
from pibls.problem import AtPoints, Statement

__all__ = ["Defect"]


@dataclass(frozen=True, eq=False)
class Defect:
    """Measures what is missing on one tree; the scales of rows are those that the rows have at hand.

    Sums over branches of the tree, which rows have as well, follow from what the parts lack and are left out.
    """

    rows: Rows
    root: Cell

    @cached_property
    def faces(self) -> tuple[Face, ...]:
        """Where parts meet."""
        layout = self.rows.layout
        found = (layout.faces(contact) for contact in contacts(self.root, self.rows.periodic))
        seams = (layout.seam_faces(leaf) for leaf in leaves(self.root))
        return tuple(chain.from_iterable(chain(found, seams)))

    def of(self, state: TreeState) -> dict[CellPart, float]:
        """Return the root of the square sum of the rows of each part at a state, with the best of what is shared."""
        before, self.rows.state = self.rows.state, state
        try:
            squares = {part: self._inside(part, state) + self._conditions(part, state) for part in state.weights}
            for face in self.faces:
                below, above = (self._trace(part, face, state) for part in (face.below, face.above))
                # What both share lies in the middle.
                gap = float(np.square(below - above).sum()) / 4
                squares[face.below] += gap
                squares[face.above] += gap
            for statement in self.rows.averages:
                missing = sum(self._average(part, state, statement) for part in state.weights)
                for part in squares:
                    squares[part] += (missing / len(squares)) ** 2
        finally:
            self.rows.state = before
        return {part: float(np.sqrt(square)) for part, square in squares.items()}

    def _weights(self, part: CellPart, state: TreeState) -> FloatArray:
        units = self.rows.balance(part)[1]
        return np.asarray((state.weights[part] / units[:, None]).ravel())

    def _trace(self, part: CellPart, face: Face, state: TreeState) -> FloatArray:
        found = self.rows.traced(part, face, self.rows.balance(part)[1]) @ self._weights(part, state)
        return np.asarray(found - self.rows.traced_right(part, face)[:, 0])

    def _average(self, part: CellPart, state: TreeState, statement: Statement) -> float:
        row, right = self.rows.average(part, self.rows.balance(part)[1], statement)
        return float(row @ self._weights(part, state) - right[0])

    def _inside(self, part: CellPart, state: TreeState) -> float:
        factors = self.rows.balance(part)[0]
        return sum(
            float(part.weights @ np.square(factor * self._lacking(equation, part, part.points, None, state)[0]))
            for factor, equation in zip(factors, self.rows.equations, strict=True)
        )

    def _conditions(self, part: CellPart, state: TreeState) -> float:
        units, total = self.rows.balance(part)[1], 0.0
        for place, rule in part.boundary.items():
            depth = float((np.abs(rule.normals) @ (2 * part.half)).mean())
            for statement in self.rows.problem.statements:
                if statement.place is place or statement.place == place:
                    values, found = self._lacking(statement, part, rule.points, rule.normals, state)
                    factor = self.rows.factor(statement, part, found, units)
                    total += factor**2 * depth * float(rule.weights @ np.square(values))
        for statement in self.rows.problem.statements:
            if isinstance(statement.place, AtPoints):
                total += self._at_points(statement, part, state)
        return total

    def _at_points(self, statement: Statement, part: CellPart, state: TreeState) -> float:
        assert isinstance(statement.place, AtPoints)
        mine = self.rows.layout.owned(part, statement.place.points)
        if not len(mine):
            return 0.0
        values, found = self._lacking(statement, part, statement.place.points[mine], None, state)
        if statement.targets is not None:
            values = values - statement.targets[mine]
        if statement.noise is not None:
            values = values * (statement.noise.min() / statement.noise[mine])
        factor = self.rows.factor(statement, part, found, self.rows.balance(part)[1])
        return factor**2 * self.rows.layout.volume / len(statement.place.points) * float(values @ values)

    def _lacking(
        self, statement: Statement, part: CellPart, X: FloatArray, normals: FloatArray | None, state: TreeState
    ) -> tuple[FloatArray, Any]:
        found, source = self.rows.lowered(statement, part, X, normals)
        slots = state(part, X, [(term.field, term.multi_index) for term in statement.form.terms])
        total = sum((value * slot for (_, _, value), slot in zip(found, slots, strict=True)), np.zeros(len(X)))
        return np.asarray(total + source), found
