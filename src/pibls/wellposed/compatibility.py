"""Compatibility: the integral of the source must equal the flux that the conditions prescribe.

By the divergence theorem an equation ∇·F(u) = f says how much of F flows out of the domain: the integral of f. Where
conditions prescribe F on all of the boundary, both numbers must agree, or there is no solution. No discretisation of
the contradiction need show it: least squares find a compromise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.linear import Start
from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.features import MultiIndex
from pibls.geometry.across import BESIDE
from pibls.problem import Across, Form, Interface, OnPart, Opposite, Problem, Statement
from pibls.problem.analysis import analysis_of
from pibls.problem.evaluate import compile_function
from pibls.problem.fluxes import divided
from pibls.problem.statements import just_inside
from pibls.problem.symbols import Field
from pibls.quadrature.roots import CLOSE
from pibls.quantities.where import where_of
from pibls.refinement.standards import PLAIN, POINTS, SLIGHT

Slot = tuple[str, MultiIndex]
Row = Callable[[FloatArray, FloatArray], FloatArray]
Factors = Callable[[FloatArray], FloatArray]

SAMPLES = 3  # places, random right-hand sides or networks: one of them may agree with another by chance


@dataclass(frozen=True, eq=False)
class _Flux:
    """The flux F·n of an equation ∇·F = f, or of a sum of them: coefficients of fields and their slopes, and the rest.

    The rest, such as a strain by heat, may jump inside of the domain, where its divergence is no function.
    """

    equations: tuple[Statement, ...]
    rows: Mapping[Slot, Row]
    source: Factors  # f
    known: Row  # of F·n, the terms without fields
    is_moment: bool = False

    @property
    def name(self) -> str:
        """Return the name of its source."""
        if self.is_moment:
            return "the moment of the source" + "s" * (len(self.equations) > 1)
        return f"the source of {self.equations[0].name}"

    def at(self, X: FloatArray, normals: FloatArray, slots: Sequence[Slot]) -> FloatArray:
        """Return the coefficients at points of the boundary: (points, slots)."""
        found = np.zeros((len(X), len(slots)))
        for slot, row in self.rows.items():
            found[:, slots.index(slot)] = row(X, normals)
        return found

    def crossed(self, rule: Sequence[FloatArray], scale: float | None = None) -> tuple[float, float]:
        """Return the measure of the surface through which something can flow, and the size of the coefficients."""
        X, normals, weights = rule
        sizes = np.abs(self.at(X, normals, list(self.rows))).max(axis=1)
        scale = float(sizes.max()) if scale is None else scale
        flows = (sizes > CLOSE * scale) | (self.known(X, normals) != 0.0)
        return float(weights[flows].sum()), scale


def incompatibility(problem: Problem, tol: float, start: Callable[[], Start]) -> str:
    """Say how far the integral of a source is from the flux that conditions prescribe, where they prescribe all of it.

    Of a nonlinear problem, the linear equations are checked. ``start`` returns the data of the problem and a tree that
    resolves them; it is called only where needed.
    """
    if problem.domain.time is not None:
        return ""
    try:
        found = (_difference(problem, flux, tol, start) for flux in problem.once(_fluxes) if _is_known(problem, flux))
        return next(filter(None, found), "")
    except PiblsError:
        return ""  # coefficients may be infinite at the boundary, as in polar coordinates; an interface may be no shape


def _difference(problem: Problem, flux: _Flux, tol: float, start: Callable[[], Start]) -> str:
    data, root = start()
    layout = data.rows.layout
    # Rules on cut cells in space have fewer digits, and so have those on interfaces that are no points.
    joined = any(isinstance(s.place, Across) for s in problem.statements)
    exact = layout.reference.dimension < (2 if joined else 3) or (layout.tree_domain.is_box and not joined)
    least, missed = min(tol, PLAIN) if exact else PLAIN, []
    for tree, count in ((root, POINTS), (halved(root), 2 * POINTS)):
        made, out, size = _balance(problem, layout, tree, flux, count)
        missed.append(made - out)
        if abs(missed[-1]) <= least * size:
            return ""
    # Rounding changes altogether with finer cells.
    if abs(missed[-1] - missed[-2]) > SLIGHT * abs(missed[-1]):
        return ""
    made, out = (0.0 if abs(own) < CLOSE * size else own for own in (made, out))
    return (
        f"The equations and conditions contradict each other: {flux.name} adds up to "
        f"{made:.6g}, and by the conditions {out:.6g} flows out. Check signs and values."
    )


def halved(root: Cell, axes: Sequence[int] | None = None) -> Cell:
    """Return a tree with all cells halved along some axes, or along every one."""
    chosen = range(len(root.size)) if axes is None else axes
    return refined(root, {leaf: [(axis, None) for axis in chosen] for leaf in leaves(root)})


def _fluxes(problem: Problem) -> tuple[_Flux, ...]:
    """Return the fluxes of the equations that are divergences, if conditions say something of them."""
    given = [s.form for s in problem.statements if isinstance(s.place, OnPart | Opposite)]
    terms = {(term.field, term.order) for form in given for term in form.terms}
    found = (
        _flux(problem, number, own)
        for number, own in enumerate(problem.laws.statements)
        # A flux has terms of one order less.
        if own.form.is_linear and (own.form.order in (1, 2) or len(problem.domain.coordinates) == 1)
        if any((term.field, own.form.order - 1) in terms for term in own.form.terms)
    )
    fluxes = tuple(flux for flux in found if flux is not None)
    return (*fluxes, *_moments(problem, fluxes)) if fluxes else ()


def _moments(problem: Problem, fluxes: tuple[_Flux, ...]) -> Iterator[_Flux]:
    """Yield sums of equations, each times a function of first degree, that are divergences too.

    As x ∇·F = ∇·(x F) − F_x, the sum of all F_x must vanish, as it does for turns of a symmetric stress, or be a
    derivative, as on a line.
    """
    middle, axes = problem.domain.bounds.mean(axis=1), np.eye(len(problem.domain.coordinates))
    X, slots = problem.domain.sample(SAMPLES, "kronecker", 1), sorted({slot for flux in fluxes for slot in flux.rows})
    along = [flux.at(X, np.tile(axis, (len(X), 1)), slots).ravel() for flux in fluxes for axis in axes]
    _, sizes, right = np.linalg.svd(np.array(along).T, full_matrices=True)
    vanishing = right[int((sizes > CLOSE * sizes.max()).sum()) :]
    form, equations = fluxes[0].equations[0].form, tuple(flux.equations[0] for flux in fluxes)
    more: dict[Slot, Row] = {}
    if len(along) == 1 and form.is_constant and all(term.order > 1 for term in form.terms):
        vanishing = np.ones((1, 1))
        for term, function in zip(form.terms, form.coefficient_functions, strict=True):
            more[term.field, (term.order - 2,)] = lambda _, n, c=function.constant: -c * n[:, 0]  # type: ignore[misc]
    for lever in vanishing.reshape(-1, len(fluxes), len(axes)):
        lever = lever / lever.flat[np.abs(lever).argmax()]

        def factors(X: FloatArray, lever: FloatArray = lever) -> FloatArray:
            return np.asarray((X - middle) @ lever.T)

        def known(X: FloatArray, normals: FloatArray, factors: Factors = factors) -> FloatArray:
            return np.asarray(sum(own * flux.known(X, normals) for own, flux in zip(factors(X).T, fluxes, strict=True)))

        def source(X: FloatArray, factors: Factors = factors, lever: FloatArray = lever) -> FloatArray:
            found = sum(own * flux.source(X) for own, flux in zip(factors(X).T, fluxes, strict=True))
            ways = [
                (flux, arm, np.tile(axis, (len(X), 1)))
                for flux, own in zip(fluxes, lever, strict=True)
                for arm, axis in zip(own, axes, strict=True)
                if arm
            ]
            return np.asarray(found + sum(arm * flux.known(X, along) for flux, arm, along in ways))

        def row(X: FloatArray, normals: FloatArray, slot: Slot, factors: Factors = factors) -> FloatArray:
            own = [flux.rows[slot](X, normals) if slot in flux.rows else np.zeros(len(X)) for flux in fluxes]
            summed = np.einsum("pe,ep->p", factors(X), np.array(own))
            return np.asarray(summed + more[slot](X, normals) if slot in more else summed)

        yield _Flux(equations, {slot: partial(row, slot=slot) for slot in {*slots, *more}}, source, known, True)


def _flux(problem: Problem, number: int, equation: Statement) -> _Flux | None:
    """Return the flux of an equation; None if it is no divergence, or has other terms with fields."""
    form, flux = equation.form, analysis_of(problem).fluxes[number]
    _, rest = divided(problem.equations[number], problem.domain.space)
    if flux is not None and not rest.has(Field):
        terms = (flux.source, *(term.coefficient for term in flux.terms))
        known, *own = (compile_function(just_inside(term, problem.domain), flux.coordinates) for term in terms)
        rows = dict(zip([(term.field, term.multi_index) for term in flux.terms], own, strict=True))
        return _Flux((equation,), rows, compile_function(-rest, problem.domain.coordinates), known)
    pure = all(1 <= term.order == max(term.multi_index) for term in form.terms)
    if form.is_constant and (pure or (flux is None and all(term.order for term in form.terms))):
        return _Flux((equation,), _constant_rows(form), lambda X: -form.source_function(X), _nothing)
    return None


def _nothing(X: FloatArray, _: FloatArray) -> FloatArray:
    return np.zeros(len(X))


def _constant_rows(form: Form) -> dict[Slot, Row]:
    """Return the flux of an equation with constant coefficients; of a mixed derivative, each axis has one half."""
    directions: dict[Slot, FloatArray] = {}
    for term, function in zip(form.terms, form.coefficient_functions, strict=True):
        axes = [axis for axis, count in enumerate(term.multi_index) for _ in range(count)]
        for axis in axes:
            index = list(term.multi_index)
            index[axis] -= 1
            own = directions.setdefault((term.field, tuple(index)), np.zeros(len(index)))
            own[axis] += cast(float, function.constant) / len(axes)
    return {slot: lambda _, normals, c=c: normals @ c for slot, c in directions.items()}  # type: ignore[misc]


def _is_known(problem: Problem, flux: _Flux) -> bool:
    """Tell whether conditions prescribe a flux wherever there are any; faces that are periodic pass it on."""
    for statement in problem.statements:
        is_constant = not flux.is_moment and flux.equations[0].form.is_constant
        is_constant = is_constant and statement.form.source_function.constant == 0.0
        if isinstance(statement.place, Opposite) and not is_constant:
            return False
        if isinstance(statement.place, OnPart):
            X, normals = statement.place.part.sample(SAMPLES, "kronecker", 1)
            scale = float(np.abs(flux.at(X, normals, list(flux.rows))).max())
            if _through(problem, flux, statement.place, X, normals, scale) is None:
                return False
    return True


def _through(
    problem: Problem, flux: _Flux, place: OnPart, X: FloatArray, normals: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return the flux at points of a place by each of its conditions, and the share of the flux that these prescribe.

    Conditions in other places may prescribe the rest. None where the flux is no sum of what all conditions give.
    """
    given = given_on_parts(problem)
    held = [s.place is place or s.place == place for s in given]
    if any(not s.form.is_linear or s.targets is not None for s in given):
        return None
    slots = sorted({*flux.rows, *slots_of(s.form for s in given)})
    wanted = flux.at(X, normals, slots)
    rows, missed = tangent_rows(given, place, X, normals, slots)
    shares = np.einsum("pk,pkc->pc", wanted, np.linalg.pinv(rows))
    if np.abs(wanted - np.einsum("pc,pck->pk", shares, rows)).max() > CLOSE * scale:
        return None
    told = np.einsum("pc,pck,pk->p", shares[:, held], rows[:, held], wanted)
    squares = np.square(wanted).sum(axis=1)
    flows = np.sqrt(squares) > CLOSE * scale
    return -shares[:, held] * missed[:, held], np.where(flows, told / np.where(flows, squares, 1.0), 0.0)


def given_on_parts(problem: Problem) -> list[Statement]:
    """Return the conditions on parts of the boundary."""
    return [s for s in problem.statements if isinstance(s.place, OnPart)]


def slots_of(forms: Iterable[Form]) -> set[Slot]:
    """Return the fields and derivatives that occur in forms."""
    return {(term.field, term.multi_index) for form in forms for term in form.terms}


def tangent_rows(
    given: Sequence[Statement],
    place: OnPart,
    X: FloatArray,
    normals: FloatArray,
    slots: Sequence[Slot],
    state: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return conditions at points of a place, linearised at a state: (points, conditions, slots), and residuals.

    Without a state, that is zero.
    """
    rows, missed = np.zeros((len(X), len(given), len(slots))), np.zeros((len(X), len(given)))
    state = np.zeros((len(X), len(slots))) if state is None else state
    for k, statement in enumerate(given):
        own, form = cast(OnPart, statement.place), statement.form
        here = np.ones(len(X), dtype=bool) if own is place or own == place else own.part.contains(X)
        if not here.any():
            continue
        values = [state[here, slots.index((term.field, term.multi_index))] for term in form.terms]
        missed[here, k] = form.residual_at(X[here], normals[here], values)
        rows[here, k] = _coefficients(form, X[here], normals[here], slots, values)
    return rows, missed


def _coefficients(
    form: Form, X: FloatArray, normals: FloatArray, slots: Sequence[Slot], values: Sequence[FloatArray] = ()
) -> FloatArray:
    """Return the coefficients of a form at points, with the values of its own slots there: (points, slots)."""
    found = np.zeros((len(X), len(slots)))
    for term, function in zip(form.terms, form.coefficient_functions, strict=True):
        found[:, slots.index((term.field, term.multi_index))] += function(X, normals, () if form.is_linear else values)
    return found


def boundary_rules(parts: Sequence[Any]) -> dict[OnPart, tuple[FloatArray, ...]]:
    """Return points, normals and weights on every place of the boundary, of all parts of cells together."""
    rules: dict[OnPart, list[Any]] = {}
    for part in parts:
        for place, rule in part.boundary.items():
            rules.setdefault(place, []).append(rule)
    names = ("points", "normals", "weights")
    return {place: tuple(np.concatenate([getattr(r, n) for r in own]) for n in names) for place, own in rules.items()}


def _kept(problem: Problem, flux: _Flux, interface: Interface, count: int) -> FloatArray | None:
    """Return how much more of a flux enters an interface than leaves it, at points times weights; None if not known.

    It is known where one of its equations is a multiple of the flux on both sides.
    """
    part: Any = where_of(problem.domain, interface, None, "Interface").part
    X, normals, weights = part.quadrature(count)
    # The flux is that just inside of where it is asked for.
    step = 2.0 * BESIDE * float(np.ptp(problem.domain.bounds, axis=1).max()) * normals
    for statement in problem.statements:
        place = statement.place
        if not isinstance(place, Across) or place.condition != interface.condition:
            continue
        if not all(form.is_linear for form in statement.forms):
            return None
        slots = sorted({*flux.rows, *slots_of(statement.forms)})
        factor, source, is_multiple = np.zeros(len(X)), np.zeros(len(X)), True
        for form, sign in zip(statement.forms[::-1], (1.0, -1.0), strict=True):
            beside, wanted = X + sign * step, flux.at(X + sign * step, normals, slots)
            rows = _coefficients(form, beside, normals, slots)
            squares = np.square(wanted).sum(axis=1)
            if not squares.min() > 0:
                return None
            # The equation outside says by which factor.
            factor = np.einsum("ps,ps->p", rows, wanted) / squares if sign > 0 else factor
            is_multiple &= bool(np.abs(rows - sign * factor[:, None] * wanted).max() <= CLOSE * np.abs(rows).max())
            source += form.source_function(beside, normals) - sign * factor * flux.known(beside, normals)
        if is_multiple and np.abs(factor).min() > 0:
            return np.asarray(weights * source / factor)
    return None


def _balance(problem: Problem, layout: Layout, root: Cell, flux: _Flux, count: int) -> tuple[float, float, float]:
    """Return the integral of the source over a tree, the prescribed flux, and the sum of all absolute values in both.

    All are zero where conditions do not prescribe the flux on all of the boundary and on interfaces, or do so twice.
    """
    parts = layout.parts_of(leaves(root))
    # Both signs count: a cell may take all it makes.
    made = np.concatenate([part.integrals * flux.source(part.points) for part in parts])
    whole, scale = flux.crossed(problem.domain.boundary.quadrature(POINTS))
    out, covered = [np.zeros(0)], 0.0
    for place, (X, normals, weights) in boundary_rules(parts).items():
        found = _through(problem, flux, place, X, normals, scale)
        if found is None:
            return 0.0, 0.0, 0.0
        # What one condition lets out another may let in. Each tells its share of what has no fields, too.
        out += [(weights[:, None] * found[0]).ravel(), weights * found[1] * flux.known(X, normals)]
        covered += float(weights @ found[1])
    ends = {end for s in problem.statements if isinstance(s.place, Opposite) for end in (s.place.low, s.place.high)}
    for X, normals, weights in (end.quadrature(POINTS) for end in ends):
        out.append(weights * flux.known(X, normals))
        covered += flux.crossed((X, normals, weights), scale)[0]
    if abs(covered - whole) > PLAIN * whole:
        return 0.0, 0.0, 0.0
    for interface in (c for c in problem.conditions if isinstance(c, Interface)):
        if (kept := _kept(problem, flux, interface, count)) is None:
            return 0.0, 0.0, 0.0
        out.append(kept)
    through = np.concatenate(out)
    return float(made.sum()), float(through.sum()), float(np.abs(made).sum() + np.abs(through).sum())
