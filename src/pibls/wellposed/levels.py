"""Levels and motions that nothing sees: constants, shifts and turns that can be added to every solution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.problem import AtPoints, Average, Form, Interior, OnPart, Opposite, Problem, Statement
from pibls.quadrature.roots import CLOSE
from pibls.refinement.standards import POINTS
from pibls.wellposed.boundary_counts import joined


def free_level(problem: Problem) -> str:
    """Say which field occurs only differentiated, so that any constant can be added to it; else an empty text.

    >>> from pibls.problems import ill_posed, neumann_gauge
    >>> print(free_level(ill_posed()["stokes_without_gauge"].problem())[:57])
    The solution is not unique: p occurs only by derivatives,
    >>> free_level(neumann_gauge())
    ''
    """
    seen = {
        term.field
        for statement in problem.statements
        # Of a constant, two faces that repeat each other see nothing.
        if not isinstance(statement.place, Opposite)
        for form in statement.forms
        for term in form.terms
        if not term.order
    }
    free = [name for name in problem.field_names if name not in seen]
    if not free:
        return ""
    return (
        f"The solution is not unique: {joined(free)} {'occur' if len(free) > 1 else 'occurs'} only by derivatives, so "
        f"that any constant can be added, and there may be no solution at all. Give a level, as Mean({free[0]}, 0), or "
        "a value somewhere."
    )


def free_motion(problem: Problem) -> str:
    """Say which function of first degree can be added to every solution of a linear problem; else an empty text.

    >>> import pibls as pb
    >>> x, y = pb.coordinates("x y")
    >>> u, v, square = pb.field("u", x, y), pb.field("v", x, y), pb.Rectangle((x, 0, 1), (y, 0, 1))
    >>> stress = pb.stress([u, v], young=1, poisson=0)
    >>> held = pb.Problem([pb.div(row) for row in stress.tolist()], square, pb.Traction(stress, 0))
    >>> print(free_motion(held)[:55])
    The solution is not unique: u = 1 can be added to it, a
    """
    domain = problem.domain
    held = {s.form.fields[0] for s in problem.statements if isinstance(s.place, OnPart) and not s.form.order}
    # In time, the mean of a pressure is meant at each time.
    if not problem.is_linear or domain.time is not None or held == set(problem.field_names):
        return ""
    center, half = domain.bounds.mean(axis=1), np.ptp(domain.bounds, axis=1) / 2
    try:
        rows = [row for statement in problem.statements for row in _rows(problem, statement, center, half)]
    except (PiblsError, NotImplementedError):
        return ""
    seen = np.concatenate(rows)
    _, sizes, right = np.linalg.svd(seen, full_matrices=False)
    free = int((sizes < len(seen) * np.finfo(np.float64).eps * sizes[0]).sum())
    if not free:
        return ""
    # The shortest words: the motion with the fewest parts that can be read off.
    motion = _reduced(right[-free:])[0].reshape(len(problem.fields), -1)
    words = [
        f"{name} = {_written(own, center, half, [s.name for s in domain.coordinates])}"
        for name, own in zip(problem.field_names, motion, strict=True)
        if np.abs(own).max() > CLOSE
    ]
    return (
        f"The solution is not unique: {joined(words)} can be added to it, and no equation and no condition changes. "
        "Hold it somewhere, by values or means of the fields."
    )


def _rows(problem: Problem, statement: Statement, center: FloatArray, half: FloatArray) -> Iterator[FloatArray]:
    """Yield a statement, relative to its terms, of each field that is one, or a coordinate from -1 to 1."""
    place, normals = statement.place, None
    if isinstance(place, Interior | Average):
        X = problem.domain.sample(POINTS, "kronecker", 1)
    elif isinstance(place, OnPart):
        X, normals = place.part.sample(POINTS, "kronecker", 1)
    elif isinstance(place, AtPoints):
        X = place.points
    else:
        raise NotImplementedError
    found, size = _seen(problem, statement.form, X, normals, (X - center) / half, half)
    if isinstance(place, Average):
        found, size = found.mean(axis=0, keepdims=True), size.max(keepdims=True)
    yield found / np.where(size > 0, size, 1.0)[:, None]


def _seen(
    problem: Problem, form: Form, X: FloatArray, normals: FloatArray | None, local: FloatArray, half: FloatArray
) -> tuple[FloatArray, FloatArray]:
    axes = len(half)
    found, size = np.zeros((len(X), len(problem.fields), 1 + axes)), np.zeros(len(X))
    for term, function in zip(form.terms, form.coefficient_functions, strict=True):
        factor, own = function(X, normals), problem.field_names.index(term.field)
        size += np.abs(factor) / np.prod(half ** np.array(term.multi_index))
        if term.order == 0:
            found[:, own] += factor[:, None] * np.column_stack([np.ones(len(X)), local])
        elif term.order == 1:
            axis = term.multi_index.index(1)
            found[:, own, 1 + axis] += factor / half[axis]
    return found.reshape(len(X), -1), size


def _reduced(rows: FloatArray) -> FloatArray:
    """Return other combinations of rows, each with one in a column where the others are zero."""
    from scipy.linalg import qr

    *_, order = qr(rows, pivoting=True, mode="economic")
    made = np.linalg.solve(rows[:, np.sort(order[: len(rows)])], rows)
    return np.asarray(sorted(made, key=lambda row: int((np.abs(row) > CLOSE).sum())))


def _written(own: FloatArray, center: FloatArray, half: FloatArray, names: list[str]) -> str:
    slopes = own[1:] / half
    parts = [(slope, f"{slope:.3g}*{name}") for slope, name in zip(slopes, names, strict=True)]
    level = float(own[0] - slopes @ center)
    parts.append((level, f"{level:.3g}"))
    largest = max(abs(size) for size, _ in parts)
    return " + ".join(words for size, words in parts if abs(size) > CLOSE * largest).replace("+ -", "- ")
