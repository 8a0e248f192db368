"""Functions to start a nonlinear iteration from: zero, and simple functions that meet the conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.problem import MultiIndex, Problem
from pibls.problem.lowering import Form, Term
from pibls.solution.starts import zero
from pibls.system import Evaluate, linearised
from pibls.tuning.laboratory import Block, Laboratory

__all__ = ["bump", "simple_starts"]

_SMOOTH, _FEW_NODES = 2.0, 20


def simple_starts(problem: Problem, lab: Laboratory, nodes: int) -> Iterator[tuple[str, Evaluate]]:
    """Yield starts by name: zero, harmonic functions and a bump that meet the conditions, and a random function."""
    yield "zero", zero
    for name, load in (("a harmonic function", 0.0), ("a bump", 1.0)):
        state = _poisson_state(problem, lab, nodes, load)
        if state is not None:
            yield name, state
    yield "a random function", _random_state(problem, lab)


def _random_state(problem: Problem, lab: Laboratory) -> Evaluate:
    """Return smooth functions of size one."""
    network = lab.network([Block(_FEW_NODES, (_SMOOTH,) * lab.axes)])
    shape = (len(problem.field_names), network.size)
    weights = np.random.default_rng(lab.seed).standard_normal(shape) / np.sqrt(network.size / 2)

    def evaluate(X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
        nodes = network.evaluate(X, dict.fromkeys(index for _, index in wanted))
        return [nodes[index] @ weights[problem.field_names.index(name)] for name, index in wanted]

    return evaluate


def bump(problem: Problem, lab: Laboratory, nodes: int) -> Evaluate | None:
    """Return the solution of −Δv = 1 in normalised coordinates for every field, zero where a condition is linear."""
    return _poisson_state(problem, lab, nodes, 1.0, homogeneous=True)


def _poisson_state(
    problem: Problem, lab: Laboratory, nodes: int, load: float, *, homogeneous: bool = False
) -> Evaluate | None:
    """Solve a Poisson equation per field in place of the equations, with the conditions linearised at zero."""
    linear = linearised(problem, zero)
    names = problem.field_names
    statements = []
    for position, statement in enumerate(linear.statements):
        if statement.is_equation:
            form = _poisson_form(names[position % len(names)], problem, load)
        else:
            form = replace(statement.form, source=sp.S.Zero) if homogeneous else statement.form
        statements.append(replace(statement, form=form, targets=None if homogeneous else statement.targets))
    try:
        small = replace(lab, problem=problem.with_statements(statements))
        return small.fit([Block(nodes, (_SMOOTH,) * lab.axes)], small.points(nodes)).evaluate
    except PiblsError:
        return None


def _poisson_form(name: str, problem: Problem, load: float) -> Form:
    """Return −Δv − load in normalised coordinates."""
    widths = np.ptp(problem.domain.bounds, axis=1) / 2
    terms = []
    for axis, width in enumerate(widths):
        index = tuple(2 * int(i == axis) for i in range(len(widths)))
        terms.append(Term(name, index, sp.Float(-(float(width) ** 2)), sp.Dummy(real=True)))
    source = sp.Float(-load)
    residual = sp.Add(source, *(term.coefficient * term.slot for term in terms))
    return Form(residual, residual, tuple(terms), source, problem.domain.coordinates, True)
