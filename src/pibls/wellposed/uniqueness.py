"""Solutions that are not unique though conditions are enough: levels, motions and states of rest.

Constants, shifts and turns that nothing sees can be added to every solution. And a solution may leave a state of rest
whenever it likes where a first-order equation is not Lipschitz there: w′² = 4 w with w = 0 at first is solved by zero,
by x², and by all that rest for a while before they leave. So it is where the rate of change grows faster than any
multiple of the distance from the state of rest, by a power of it.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.problem import AtPoints, Average, Form, Interior, OnPart, Opposite, Problem, Statement
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.printing import text
from pibls.problem.symbols import Field, Normal
from pibls.quadrature.roots import CLOSE
from pibls.refinement import SMALLEST
from pibls.refinement.standards import NEGLIGIBLE, PLAIN, POINTS
from pibls.wellposed.compatibility import SAMPLES
from pibls.wellposed.counting import equations_in_words, joined


def free_level(problem: Problem) -> str:
    """Say which field occurs only differentiated, so that any constant can be added to it; else an empty text."""
    least = dict[str, int]()
    for statement in problem.statements:
        for form in statement.forms:
            for term in form.terms:
                # Of a constant, two faces that repeat each other see nothing; of a slope they do.
                order = max(term.order, 1) if isinstance(statement.place, Opposite) else term.order
                least[term.field] = min(order, least.get(term.field, order))
    free = [name for name in problem.field_names if least.get(name, 0) > 0]
    if not free:
        return ""
    whose = f"only derivatives of {joined(free)} occur, so any constant can be added"
    late = [name for name in free if _has_no_start(problem, name)]
    if late:
        return (
            f"The solution is not unique: {whose}, and {joined(late)} {'have' if len(late) > 1 else 'has'} no initial "
            f"value. Add one, such as Initial({late[0]}, ...)."
        )
    steep = [name for name in free if least[name] > 1]
    if steep and problem.domain.time is None:
        names = [s.name for s in problem.domain.coordinates]
        levels = joined([f"Mean({steep[0]}, 0)", *(f"Mean({steep[0]}.diff({name}), 0)" for name in names)])
        order = min(least[name] for name in steep)
        return (
            f"The solution is not unique: only derivatives of {joined(steep)} of order {order} and higher occur, so "
            f"any constant and any multiple of {joined(names)} can be added, and there may be no solution at all. "
            f"Fix the level with {levels}, or give values at several points."
        )
    return (
        f"The solution is not unique: {whose}, and there may be no solution at all. Fix the level with "
        f"Mean({free[0]}, 0), or give a value at some point."
    )


def free_potential(problem: Problem) -> str:
    """Say which function of a field occurs by its slopes only: any constant can be added to it; else an empty text.

    In ∇·(φ(u) ∇u) = f with nothing but slopes along the boundary, that is the integral of φ: a change of u by a small
    multiple of 1/φ(u) changes no statement.
    """
    forms = [form for s in problem.statements for form in s.forms]
    inside = all(isinstance(s.place, Interior | OnPart) for s in problem.statements)
    if problem.is_linear or len(problem.fields) != 1 or not inside or not all(map(_is_still, forms)):
        return ""
    (form,), (u,) = problem.laws.forms, problem.laws.forms[0].expression.atoms(Field)
    own = next((term.slot for term in form.terms if term.order == 0), None)
    top = next(term.coefficient for term in form.terms if term.order == form.order)
    middle = dict(zip(problem.domain.coordinates, map(sp.nsimplify, problem.domain.bounds.mean(axis=1)), strict=True))
    factor = top.xreplace(middle)
    if own is None or factor.free_symbols != {own}:
        return ""
    factor, little = factor.xreplace({own: u}), sp.Dummy()
    factor = -factor if factor.could_extract_minus_sign() else factor
    for each in forms:
        changed = each.expression.xreplace({u: u + little / factor}).doit().diff(little).xreplace({little: sp.S.Zero})
        # What is zero with its statement counts as no change.
        whole, left = changed.doit(), each.expression
        names = {atom: sp.Dummy(real=True) for own in (whole, left) for atom in own.atoms(sp.Derivative, Field, Normal)}
        slopes = {name for atom, name in names.items() if isinstance(atom, sp.Derivative)}
        if sp.simplify(whole.xreplace(names) / left.xreplace(names)).free_symbols & slopes:
            return ""
    return (
        f"The solution is not unique: {u.label} occurs only in slopes of the integral of {text(factor)} by {u.label}, "
        "to which any constant can be added, and there may be no solution at all. Fix the level with "
        f"Mean({u.label}, 1), or give a value at some point."
    )


def _is_still(form: Form) -> bool:
    """Tell whether a form is the same for all constants."""
    slots = {term.slot: sp.S.Zero for term in form.terms if term.order}
    return bool(slots) and not form.residual.xreplace(slots).free_symbols & {term.slot for term in form.terms}


def _has_no_start(problem: Problem, name: str) -> bool:
    """Tell whether a field changes in time, and nothing is said of it at the first time."""
    time, first = problem.domain.time, getattr(problem.domain, "initial", None)
    at_first = (s for s in problem.statements if isinstance(s.place, OnPart) and s.place.part == first)
    moves = time is not None and any(form.order_along(time, name) > 0 for form in problem.laws.forms)
    return moves and not any(name in s.form.fields for s in at_first)


def free_motion(problem: Problem) -> str:
    """Say which function of first degree can be added to every solution of a linear problem; else an empty text."""
    domain = problem.domain
    held = {s.form.fields[0] for s in problem.statements if isinstance(s.place, OnPart) and not s.form.order}
    # In time, the mean of a pressure is meant at each time.
    if not problem.is_linear or domain.time is not None or held == set(problem.field_names):
        return ""
    center, half = domain.bounds.mean(axis=1), np.ptp(domain.bounds, axis=1) / 2
    if not all(isinstance(s.place, Interior | Average | OnPart | AtPoints) for s in problem.statements):
        return ""
    try:
        seen = np.concatenate([_seen(problem, statement, center, half) for statement in problem.statements])
    except PiblsError:
        return ""
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
        f"The solution is not unique: {joined(words)} can be added to it without a change of any equation or "
        "condition. Fix it with values or means of the fields."
    )


def _seen(problem: Problem, statement: Statement, center: FloatArray, half: FloatArray) -> FloatArray:
    """Return a statement, relative to its terms, of each field that is one, or a coordinate from -1 to 1."""
    place, normals, axes, form = statement.place, None, len(half), statement.form
    if isinstance(place, OnPart):
        X, normals = place.part.sample(POINTS, "kronecker", 1)
    else:
        X = place.points if isinstance(place, AtPoints) else problem.domain.sample(POINTS, "kronecker", 1)
    found, size = np.zeros((len(X), len(problem.fields), 1 + axes)), np.zeros(len(X))
    for term, function in zip(form.terms, form.coefficient_functions, strict=True):
        factor, own = function(X, normals), problem.field_names.index(term.field)
        size += np.abs(factor) / np.prod(half ** np.array(term.multi_index))
        if term.order == 0:
            found[:, own] += factor[:, None] * np.column_stack([np.ones(len(X)), (X - center) / half])
        elif term.order == 1:
            axis = term.multi_index.index(1)
            found[:, own, 1 + axis] += factor / half[axis]
    seen = found.reshape(len(X), -1)
    if isinstance(place, Average):
        seen, size = seen.mean(axis=0, keepdims=True), size.max(keepdims=True)
    return np.asarray(seen / np.where(size > 0, size, 1.0)[:, None])


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


def leaves_at_will(problem: Problem) -> str:
    """Say from which state a solution may leave whenever it likes, and how fast; else an empty text."""
    equations, given = problem.laws.statements, [s for s in problem.statements if not s.is_equation]
    if len(problem.domain.coordinates) != 1 or len(equations) != 1 or len(given) != 1 or problem.is_linear:
        return ""
    form, (start,) = equations[0].form, given
    slots = {term.order: term.slot for term in form.terms}
    told = [(term.order, start.form.is_linear) for term in start.form.terms]
    if set(slots) != {0, 1} or told != [(0, True)] or not isinstance(start.place, OnPart):
        return ""
    place = float(start.place.part.sample(1).points[0, 0])
    low, high = problem.domain.bounds[0]
    function = compile_function(form.residual, problem.domain.coordinates, (slots[0], slots[1]))
    value = -start.form.source / start.form.terms[0].coefficient
    try:
        rest = float(value.subs(problem.domain.coordinates[0], sp.Float(place)))
        X = np.linspace(low, high, SAMPLES)
        if np.abs(function(X[:, None], None, [np.full(len(X), rest), np.zeros(len(X))])).max() > 0:
            return ""
    except (PiblsError, TypeError):
        return ""  # it is no state of rest, or has no value there
    ahead = 1.0 if place < high else -1.0
    far, near = (_leaving(function, X[len(X) // 2], rest, distance, ahead) for distance in (PLAIN, SMALLEST))
    # A power of the distance below one. A logarithm, by which nothing leaves in a finite time, grows much less.
    if not NEGLIGIBLE * near > far > 0:
        return ""
    name = problem.field_names[0]
    return (
        f"The solution is not unique: {name} = {rest:.3g} solves {equations_in_words(problem, equations)}, and so does "
        f"a solution that leaves it at any point: at a distance of {PLAIN:.0e} it leaves at {far:.1g} times "
        f"the distance, at {SMALLEST:.0e} at {near:.1g} times. Give another value, or a condition at the other end."
    )


def _leaving(function: Function, place: float, rest: float, distance: float, ahead: float) -> float:
    """Return the fastest rate away from a state at a distance of it, over that; zero if nothing leaves there."""
    found, sizes = 0.0, np.geomspace(SMALLEST**2, SMALLEST**-2, POINTS)
    for side in (-1.0, 1.0):
        rates, value = side * ahead * sizes, np.full(POINTS, rest + side * distance)
        try:
            left = function(np.full((POINTS, 1), place), None, [value, rates])
        except PiblsError:
            continue  # the equation has no value on that side
        changes = np.flatnonzero(np.sign(left[1:]) * np.sign(left[:-1]) < 0)
        found = max(found, *(sizes[changes] / distance), 0.0)
    return found
