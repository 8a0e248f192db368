"""What equations make, beside what conditions let out, where these say all that flows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import sympy as sp

from pibls.cells.fitters import degree_for
from pibls.cells.layout import Layout
from pibls.cells.loop import first_tree
from pibls.cells.refine import Follower
from pibls.cells.rows import Rows
from pibls.cells.tree import Cell, leaves, refined, split_at_planes
from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.features.reference import draw_reference
from pibls.geometry import Domain
from pibls.problem import Across, Form, OnPart, Opposite, Problem, Statement
from pibls.problem.conditions import residual_of
from pibls.problem.fluxes import normal_flux
from pibls.problem.operators import Divergence, Laplacian
from pibls.problem.statements import lowered
from pibls.problem.symbols import Field, normal

__all__ = ["unbalanced"]

_BALANCED = 1e-3  # share of what is made and let out that matters, however large the tolerance is
_UNSURE = 0.01  # by how much of itself what is missing may change with finer cells: rounding changes altogether
_SAME = 1e-9
_SAMPLES = 3


def unbalanced(problem: Problem, tol: float = _BALANCED) -> str:
    """Say how far what an equation makes is from what conditions let out, where conditions say all that flows out.

    An equation that is a divergence says what flows out of the domain in all, and where conditions on all of the
    boundary do, both must agree. No discretisation of a contradiction need show it.

    Examples
    --------
    >>> from pibls.problems import ill_posed, neumann_gauge
    >>> unbalanced(neumann_gauge())
    ''
    >>> unbalanced(ill_posed()["neumann_incompatible"].problem())[:51]
    'The equations and conditions contradict each other:'
    """
    domain, least = problem.domain, min(tol, _BALANCED)
    across = any(isinstance(s.place, Across) for s in problem.statements)
    if domain.time is not None or len(domain.coordinates) > 2 or across:
        return ""
    equations = [s for s in problem.statements if s.is_equation]
    try:
        found = (_missing(problem, *both, least) for both in zip(problem.equations, equations, strict=True))
        return next(filter(None, found), "")
    except ProblemError:
        return ""  # coefficients may be infinite at the boundary, as in polar coordinates


def _missing(problem: Problem, written: object, equation: Statement, least: float) -> str:
    """Say how far what an equation makes is from what flows out, if that is more than a share of both."""
    flux = _flux(problem, written, equation.form)
    if flux is None or not _is_known(problem, equation.form, flux):
        return ""
    d, missed = len(problem.domain.coordinates), []
    follower = Follower(Rows(Layout(problem, draw_reference(d, degree_for(d, least), 0))))
    for root in _trees(follower, least):
        made, out, size = _balance(follower.rows, root, equation, flux)
        missed.append(made - out)
        if abs(missed[-1]) <= least * size:
            return ""
    if abs(missed[-1] - missed[-2]) > _UNSURE * abs(missed[-1]):
        return ""
    return (
        f"The equations and conditions contradict each other: {equation.name} makes {made:.6g}, and by the "
        f"conditions {out:.6g} flows out. Check signs and values."
    )


def _flux(problem: Problem, written: object, form: Form) -> Form | None:
    """Return what flows along the normal by an equation; None if it is no divergence, or depends on the solution."""
    domain = problem.domain
    if not form.is_linear:
        return None
    residual = residual_of(written, "the equation")
    flux = normal_flux(residual, domain.space)
    if flux is not None:
        known = residual.replace(lambda e: isinstance(e, Divergence | Laplacian), lambda _: sp.S.Zero)
        flux = None if known.has(Field) else flux
    elif all(term.order == 2 and term.coefficient.is_number for term in form.terms):
        fields, flux = {field.label: field for field in problem.fields}, sp.S.Zero
        for term in form.terms:
            axes = [s for s, count in zip(domain.coordinates, term.multi_index, strict=True) for _ in range(count)]
            slope = sum(normal(one) * fields[term.field].diff(two) for one, two in (axes, axes[::-1])) / 2
            flux += term.coefficient * slope
    return None if flux is None else lowered(flux, domain, "the flux", normals=True)


def _is_known(problem: Problem, form: Form, flux: Form) -> bool:
    """Tell whether conditions say what flows out wherever there are any; two sides that meet pass it on."""
    for statement in problem.statements:
        if isinstance(statement.place, Opposite):
            constant = all(function.constant is not None for function in form.coefficient_functions)
            if not constant or statement.form.source_function.constant != 0.0:
                return False
        if isinstance(statement.place, OnPart):
            samples = statement.place.part.sample(_SAMPLES, "kronecker", 1)
            own = [s for s in problem.statements if s.place is statement.place or s.place == statement.place]
            if _let_out(flux, own, samples.points, samples.normals) is None:
                return False
    return True


def _let_out(flux: Form, conditions: list[Statement], X: FloatArray, normals: FloatArray) -> FloatArray | None:
    """Return what flows out at points of the boundary by each condition, if that is a sum of what they say there."""
    forms = [condition.form for condition in conditions]
    if any(not form.is_linear for form in forms) or any(condition.targets is not None for condition in conditions):
        return None
    slots = sorted({(term.field, term.multi_index) for form in (flux, *forms) for term in form.terms})

    def table(form: Form) -> FloatArray:
        found = np.zeros((len(X), len(slots)))
        for term, function in zip(form.terms, form.coefficient_functions, strict=True):
            found[:, slots.index((term.field, term.multi_index))] += function(X, normals)
        return found

    wanted, rows = table(flux), np.stack([table(form) for form in forms], axis=1)
    shares = np.einsum("pk,pkc->pc", wanted, np.linalg.pinv(rows))
    if np.abs(wanted - np.einsum("pc,pck->pk", shares, rows)).max() > _SAME * np.abs(wanted).max():
        return None
    given = np.stack([-form.source_function(X, normals) * np.ones(len(X)) for form in forms], axis=1)
    return np.asarray(shares * given)


def _trees(follower: Follower, tol: float) -> Iterator[Cell]:
    """Yield finer and finer trees: an even one, one that resolves all data, however narrow, and another."""
    yield _halved(split_at_planes(follower.rows.layout.root))
    root = first_tree(follower, tol)
    yield root
    yield _halved(root)


def _halved(root: Cell) -> Cell:
    return refined(root, {leaf: [(axis, None) for axis in range(len(leaf.size))] for leaf in leaves(root)})


def _balance(rows: Rows, root: Cell, equation: Statement, flux: Form) -> tuple[float, float, float]:
    """Return what an equation makes on a tree, what conditions let out, and how much of both there is.

    All are zero where conditions do not hold on all of the boundary, or several hold at different places of it.
    """
    parts = [part for leaf in leaves(root) for part in rows.layout.parts(leaf)]
    # Both signs count: a cell may take all it makes.
    made = np.concatenate([-part.integrals * equation.form.source_function(part.points) for part in parts])
    out, covered = [np.zeros(0)], 0.0
    for place, rule in ((place, rule) for part in parts for place, rule in part.boundary.items()):
        through = _let_out(flux, rows.on(place), rule.points, rule.normals)
        if through is None:
            return 0.0, 0.0, 0.0
        # What one condition lets out another may let in.
        out.append((rule.weights[:, None] * through).ravel())
        covered += float(rule.weights.sum())
    ends = {
        end for s in rows.problem.statements if isinstance(s.place, Opposite) for end in (s.place.low, s.place.high)
    }
    covered += sum(end.measure for end in ends)
    whole = sum(patch.measure for patch in cast(Domain, rows.problem.domain).boundary.patches)
    if abs(covered - whole) > _BALANCED * whole:
        return 0.0, 0.0, 0.0
    through = np.concatenate(out)
    return float(made.sum()), float(through.sum()), float(np.abs(made).sum() + np.abs(through).sum())
