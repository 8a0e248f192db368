"""Conditions across interfaces: each side equals a shared value, which replaces continuity."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.cells.evaluation import PlacedStatement, Sources, Term
from pibls.cells.parts import CellPart, Face
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.problem import Across, Statement
from pibls.problem.switches import has_branches

if TYPE_CHECKING:
    from pibls.cells.rows import Rows

__all__ = ["InterfaceLaws", "Law"]


@dataclass(frozen=True, eq=False)
class Law:
    """One side of an interface condition: its terms, their size, the statement at the points, and the sign of the side.

    The outer side has the opposite sign.
    """

    terms: list[Term]
    size: float
    stated: PlacedStatement
    sign: float

    def right(self, part: CellPart, sources: Sources | None) -> FloatArray:
        """Return its right-hand sides at the points, as columns."""
        found = self.stated.source[:, None] if sources is None else sources(self.stated, part)
        return np.asarray(-self.sign * found)


@dataclass(eq=False)
class InterfaceLaws:
    """Makes both sides of the conditions across interfaces; ``blocks`` lists the fields and orders they may replace."""

    rows: Rows
    blocks: list[tuple[int, int]]
    _laws: dict[Any, Law] = field(default_factory=dict)
    _taken: dict[Any, dict[tuple[int, int], int]] = field(default_factory=dict)

    def side(self, part: CellPart, face: Face, number: int, order: int) -> Law | None:
        """Return this part's side of the interface condition on a face, or None.

        Both sides of the condition, the outer one with the opposite sign, equal one shared value.
        """
        found = self._replaced(face).get((number, order)) if face.conditions else None
        if found is None:
            return None
        key, statement = (part, face, found), self.rows.problem.statements[found]
        if key not in self._laws or not all(form.is_linear for form in statement.forms):
            sides = [self._side(side, face, found) for side in (face.below, face.above)]
            sizes = [law.size for law in sides if law.size > 0]
            size = float(np.sqrt(np.prod(sizes))) if len(sizes) == 2 else sizes[0]
            for side, law in zip((face.below, face.above), sides, strict=True):
                self._laws[side, face, found] = replace(law, size=size / statement.weight)
        return self._laws[key]

    def _side(self, part: CellPart, face: Face, number: int) -> Law:
        statement = self.rows.problem.statements[number]
        assert isinstance(statement.place, Across)
        assert face.normals is not None
        inner, below = face.conditions[number] is part, face.conditions[number] is face.below
        form, sign = (statement.form, 1.0) if inner else (statement.place.outside, -1.0)
        # Data may jump right here: each side evaluates them in its own material.
        X = self.rows.traces.inward(part, face) if has_branches(form.residual) else face.points
        normals, statement = face.normals * (1 if below else -1), replace(statement, form=form)
        terms, source = self.rows.lowered(statement, part, X, normals)
        size = float((self.rows.sizes(terms, part.half) * self.rows.scales(part).units).max(initial=0.0))
        stated = PlacedStatement(statement, X, normals, terms, np.broadcast_to(source, len(X)), np.ones(len(X)))
        return Law([(n, index, sign * value) for n, index, value in terms], size, stated, sign)

    def _replaced(self, face: Face) -> dict[tuple[int, int], int]:
        """Return the number of the condition that replaces the continuity of each field and order on a face."""
        key = tuple(face.conditions)
        if key not in self._taken:
            found: dict[tuple[int, int], int] = {}
            names, free, every = self.rows.problem.field_names, list(self.blocks), self.rows.problem.statements
            for number in sorted(face.conditions, key=lambda number: _least_order(every[number])):
                statement = every[number]
                own = {names.index(name) for form in statement.forms for name in form.fields}
                least = _least_order(statement)
                fits = sorted((b for b in free if b[0] in own), key=lambda b: (abs(b[1] - least), b[0]))
                if not fits:
                    raise ProblemError(
                        f"{statement.name} is one condition too many: across an interface each field has as many as "
                        "the order of its equation, for the value and the flux two. Remove one."
                    )
                free.remove(fits[0])
                found[fits[0]] = number
            self._taken[key] = found
        return self._taken[key]


def _least_order(statement: Statement) -> int:
    return min(term.order for form in statement.forms for term in form.terms)
