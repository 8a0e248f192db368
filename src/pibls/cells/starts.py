"""Starts of nonlinear iterations: zero, and simple functions that satisfy the conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import sympy as sp

from pibls.cells.layout import Layout
from pibls.cells.loop import STRONGEST
from pibls.cells.parts import CellPart
from pibls.cells.rows import Rows
from pibls.cells.solve import TreeSolver
from pibls.cells.state import TreeState, Values, projected, values_of
from pibls.cells.tree import Cell
from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.problem import MultiIndex, OnPart, Problem
from pibls.problem.lowering import Form, Term
from pibls.refinement.standards import POINTS
from pibls.solution.start_states import zero
from pibls.system import Evaluate, linearised

__all__ = ["bump", "diffusion_ratio", "harmonic", "scaled", "simple_starts", "values_from"]

_SMOOTH, _FEW_NODES = 2.0, 20


def values_from(state: Evaluate, problem: Problem) -> Values:
    """Return a state as a function of part and points."""
    nothing = (0,) * len(problem.domain.coordinates)
    wanted = [(name, nothing) for name in problem.field_names]

    def values(part: CellPart, X: FloatArray) -> FloatArray:
        del part
        return np.stack(state(X, wanted), axis=1)

    return values


def scaled(values: Values, factor: float) -> Values:
    """Return a multiple of a state."""
    return lambda part, X: factor * values(part, X)


def simple_starts(layout: Layout, root: Cell, seed: int) -> Iterator[tuple[str, Values]]:
    """Yield starts by name: zero, a harmonic function, a bump and a random function.

    The harmonic function and the bump satisfy the conditions. They may not be determined for first-order equations and
    nonlinear conditions; then a constant replaces them, and slopes: an equation of first order that is not linear in
    its derivatives may have no step to take where these vanish.
    """
    problem = layout.problem
    yield "zero", values_from(zero, problem)
    orders = [s.form.order for s in problem.statements if s.is_equation]
    found = harmonic(layout, root) if max(orders) > 1 else None
    if found is None:
        yield "a constant", values_from(_linear_state(problem, 0.0), problem)
        if max(orders) == 1:
            yield "a slope", values_from(_linear_state(problem, 1.0), problem)
            yield "the opposite slope", values_from(_linear_state(problem, -1.0), problem)
    else:
        yield "a harmonic function", found
        loaded = _poisson(layout, root, 1.0)
        if loaded is not None:
            yield "a bump", loaded
    yield "a random function", values_from(_random_state(problem, seed), problem)


def _linear_state(problem: Problem, slope: float) -> Evaluate:
    """Return the mean boundary value of each field, or one, and a slope along the diagonal of the bounds."""
    given: dict[str, list[float]] = {name: [] for name in problem.field_names}
    for statement in problem.statements:
        form = statement.form
        if isinstance(statement.place, OnPart) and form.is_linear and len(form.terms) == 1 and form.order == 0:
            samples = statement.place.part.sample(POINTS, "kronecker")
            factors = form.coefficient_functions[0](samples.points, samples.normals)
            given[form.terms[0].field] += (-form.source_function(samples.points, samples.normals) / factors).tolist()
    means = {name: float(np.mean(values)) if values else 1.0 for name, values in given.items()}
    low, width = problem.domain.bounds[:, 0], np.ptp(problem.domain.bounds, axis=1)

    def evaluate(X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
        rises = slope * (2 * (X - low) / width - 1).sum(axis=1)
        slopes = {index: 2 * slope / np.dot(index, width) for _, index in wanted if sum(index) == 1}
        return [
            np.full(len(X), slopes.get(index, 0.0)) if any(index) else means[name] + rises for name, index in wanted
        ]

    return evaluate


def _random_state(problem: Problem, seed: int) -> Evaluate:
    """Return smooth random functions of size one."""
    rng = np.random.default_rng(seed)
    bounds = np.asarray(problem.domain.bounds, dtype=np.float64)
    waves = rng.uniform(-_SMOOTH, _SMOOTH, (bounds.shape[0], _FEW_NODES))
    phases = rng.uniform(0, 2 * np.pi, _FEW_NODES)
    weights = rng.standard_normal((len(problem.field_names), _FEW_NODES)) / np.sqrt(_FEW_NODES / 2)

    def evaluate(X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
        local = (2 * X - bounds.sum(axis=1)) / np.ptp(bounds, axis=1)
        nodes = np.sin(local @ waves + phases)
        return [nodes @ weights[problem.field_names.index(name)] for name, _ in wanted]

    return evaluate


def harmonic(layout: Layout, root: Cell) -> Values | None:
    """Return the solution of Δv = 0 in normalised coordinates for every field, with the conditions of the problem."""
    return _poisson(layout, root, 0.0)


def diffusion_ratio(layout: Layout, root: Cell) -> float:
    """Return the ratio of the other terms to the linear second-order terms over the domain, at a harmonic state.

    Equations without such terms, or of higher order, count as one.
    """
    start = harmonic(layout, root)
    if start is None:
        return 1.0
    state = TreeState(layout, projected(layout, root, start))
    rows, found = Rows(layout, state), 1.0
    half = np.ptp(np.asarray(layout.problem.domain.bounds), axis=1) / 2
    parts = list(state.weights)
    for equation in rows.equations:
        form = equation.form
        if form.is_linear:
            continue
        own = np.zeros(2)
        for part in parts:
            try:
                terms, _ = rows.lowered(equation, part, part.points, None)
            except PiblsError:
                return 1.0
            for (_, index, value), term, depends in zip(terms, form.terms, form.depends, strict=True):
                size = float(np.sqrt(np.mean(np.square(value)))) / float(np.prod(half ** np.array(index)))
                diffusive = int(term.order > 1 and not depends)
                own[diffusive] = max(own[diffusive], size)
        if own[1] > 0:
            found = max(found, own[0] / own[1])
    return found


def bump(layout: Layout, root: Cell) -> Values | None:
    """Return the solution of −Δv = 1 in normalised coordinates for every field, with homogeneous conditions."""
    return _poisson(layout, root, 1.0, homogeneous=True)


def _poisson(layout: Layout, root: Cell, load: float, *, homogeneous: bool = False) -> Values | None:
    """Solve a Poisson equation for each field in place of the equations, with the conditions linearised at zero."""
    problem = layout.problem
    names = problem.field_names
    statements = []
    try:
        for position, statement in enumerate(linearised(problem, zero).statements):
            if statement.is_equation:
                form = _poisson_form(names[position % len(names)], problem, load)
            else:
                form = replace(statement.form, source=sp.S.Zero) if homogeneous else statement.form
            statements.append(replace(statement, form=form, targets=None if homogeneous else statement.targets))
        own = Layout(problem.with_statements(statements), layout.reference)
        solver = TreeSolver(Rows(own))
        found = solver.solve(root)
        return values_of(own, found) if solver.weakest()[0] < STRONGEST else None
    except PiblsError:
        return None


def _poisson_form(name: str, problem: Problem, load: float) -> Form:
    """Return the form of −Δv − load in normalised coordinates."""
    widths = np.ptp(problem.domain.bounds, axis=1) / 2
    terms = []
    for axis, width in enumerate(widths):
        index = tuple(2 * int(i == axis) for i in range(len(widths)))
        terms.append(Term(name, index, sp.Float(-(float(width) ** 2)), sp.Dummy(real=True)))
    source = sp.Float(-load)
    residual = sp.Add(source, *(term.coefficient * term.slot for term in terms))
    return Form(residual, residual, tuple(terms), source, problem.domain.coordinates, True)
