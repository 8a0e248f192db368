"""Kinks: where the highest derivative of a solution jumps from one root of a nonlinear equation to another.

The slope of a solution of w′² = 1 is one or minus one. From cell to cell it may jump, since only values are continuous
across faces, and wherever it does, both sides solve the equation: such solutions are as many as there are places for
kinks. Between two roots, the derivative of the equation by the slope changes its sign. It does not where a slope jumps
with a coefficient.
"""

from __future__ import annotations

import numpy as np

from pibls.cells.iterate import faces_of
from pibls.cells.outcome import Comparison
from pibls.cells.parts import CellPart, Face
from pibls.cells.rows import Rows
from pibls.cells.state import TreeState
from pibls.checks import FloatArray
from pibls.problem import Statement
from pibls.refinement import VISIBLE
from pibls.refinement.standards import NEGLIGIBLE
from pibls.wellposed.counting import equations_in_words


def kink_in(found: Comparison) -> str:
    """Say where the highest derivative of a solution jumps between roots of its equation; else an empty text."""
    problem, time = found.fit_layout.problem, found.fit_layout.problem.domain.time
    statements = problem.laws.statements
    if len(statements) != 1 or len(problem.fields) != 1 or not statements[0].form.has_roots:
        return ""
    if found.fit.residual > VISIBLE * found.size:
        return ""  # neither side solves the equation
    rows = Rows(found.fit_layout, TreeState(found.fit_layout, found.fit.weights))
    order, largest, jumps = statements[0].form.order, 0.0, list[tuple[float, FloatArray, int]]()
    for face in faces_of(rows, found.fit.root):
        if face.normals is not None or face.shift:
            continue
        sides = [_factor(rows, statements[0], part, face, order) for part in (face.below, face.above)]
        largest = max(largest, *(float(np.abs(own).max()) for own in sides))
        # In time, what moves carries its kinks along.
        if time is None or problem.domain.coordinates[face.axis] == time:
            opposite = np.minimum(*map(np.abs, sides)) * (np.sign(sides[0]) != np.sign(sides[1]))
            jumps.append((float(opposite.max()), face.points[np.argmax(opposite)], face.axis))
    most, place, axis = max(jumps, key=lambda own: own[0], default=(0.0, np.empty(0), 0))
    if not most > NEGLIGIBLE * largest:
        return ""
    names = [symbol.name for symbol in problem.domain.coordinates]
    where = ", ".join(f"{name}={value:.3g}" for name, value in zip(names, place, strict=True))
    return (
        f"No smooth solution was found, and others are not unique: near {where}, {problem.field_names[0]}_"
        f"{names[axis] * order} jumps from one solution of {equations_in_words(problem, statements)} to another, as it "
        "may do anywhere. Remove a condition, or add a little diffusion."
    )


def _factor(rows: Rows, statement: Statement, part: CellPart, face: Face, order: int) -> FloatArray:
    """Return the derivative of an equation by the highest derivative across a face, on one side of it."""
    X = rows.traces.on_side(part, face)
    terms, _ = rows.lowered(statement, part, X, None)
    return np.asarray(sum((value for _, index, value in terms if index[face.axis] == order), np.zeros(len(X))))
