"""Functions that keep a constraint, such as flows without divergence, and the multipliers that make them keep it.

Fields of a constraint share one set of combined functions: those of which neither the constraint nor the boundary
conditions leave anything. The forces of the multiplier do no work on them, so projected rates do not have it. When the
fields are known, it follows from what the equations lack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import qr

from pibls.checks import FloatArray
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.basis import (
    Basis,
    BoundaryData,
    ConditionRows,
    Trace,
    applied,
    condition_rows,
    derivatives,
    singular,
    trace,
)
from pibls.evolution.form import Evolution
from pibls.evolution.multipliers import Multiplier
from pibls.problem import Statement
from pibls.refinement.standards import SLIGHT


def traces_of(evolution: Evolution, basis: Basis) -> dict[str, Trace]:
    """Return the part of a basis that keeps conditions and constraints, field by field."""
    shared: dict[Any, Trace] = {}
    traces = _joint(evolution, basis) if evolution.multipliers else {}
    for name, order in evolution.orders.items():
        if name in traces:
            continue
        own = evolution.conditions_on(name)
        # Fields with the same conditions share them.
        key = (order, *(_content(statement) for statement in own))
        if key not in shared:
            shared[key] = trace(basis, own, order)
        traces[name] = shared[key]
    return traces


def leak(evolution: Evolution, basis: Basis) -> float:
    """Return the largest work that multipliers do on fields that keep all conditions, relative to force and field.

    Where the normal velocity is given on the whole boundary, or periodic, it is none; an open boundary lets it through.
    """
    traces = traces_of(evolution, basis)
    weights, zero = basis.rule.weights[:, None], (0,) * basis.rule.points.shape[1]
    worst = 0.0
    for multiplier in evolution.multipliers:
        functions = basis.at_rule([zero, *(index for _, index in multiplier.forces)])
        work: Any = 0.0
        size: Any = 0.0
        for (name, index), factor in multiplier.forces.items():
            # The functions that features reach best, as a true pressure is made of.
            force = factor * functions[index][:, basis.strength > SLIGHT * basis.strength[0]]
            work = work + (functions[zero] @ traces[name].kernel).T @ (weights * force)
            size = size + np.sum(weights * force**2, axis=0)
        lengths = np.sqrt(size)
        worst = max(
            worst, float(np.max(np.linalg.norm(work, axis=0) / np.maximum(lengths, SETTINGS.cut * lengths.max())))
        )
    return worst


def _content(statement: Statement) -> Any:
    form = statement.form
    return statement.place, tuple((term.multi_index, term.coefficient) for term in form.terms), form.source


def _joint(evolution: Evolution, basis: Basis) -> dict[str, Trace]:
    """Return the traces of all fields of constraints: the blocks of one kernel and of one lifting."""
    names, size = evolution.constrained, basis.size
    order = max(evolution.orders[name] for name in names)
    columns = {name: slice(place * size, (place + 1) * size) for place, name in enumerate(names)}
    given = {name: condition_rows(basis, evolution.conditions_on(name), order) for name in names}
    pieces = [({name: rows.matrix}, rows) for name, rows in given.items()]
    pieces += [_constraint_rows(multiplier, basis, order) for multiplier in evolution.multipliers]
    blocks, scales = [], []
    for parts, rows in pieces:
        block = np.zeros((len(rows.weights), len(names) * size))
        for name, part in parts.items():
            block[:, columns[name]] = part
        blocks.append(block)
        scales.append(np.sqrt(rows.weights))
    weight = np.concatenate(scales)
    matrix = np.vstack(blocks) * weight[:, None]
    triangle = qr(matrix, mode="r", check_finite=False)[0][: matrix.shape[1]]
    _, found, vectors = singular(triangle, whole=True)
    rank = int(np.count_nonzero(found > SETTINGS.kept * found[0]))
    kernel = vectors[rank:].T
    if all(rows.homogeneous for _, rows in pieces):
        return {name: Trace(kernel[part]) for name, part in columns.items()}
    strength = np.tile(basis.strength, len(names))
    lifting = strength[:, None] * np.linalg.pinv(matrix * strength, rcond=SETTINGS.cut) * weight
    data = tuple(own for _, rows in pieces for own in rows.data)
    return {name: Trace(kernel[part], lifting[part], data) for name, part in columns.items()}


def _constraint_rows(multiplier: Multiplier, basis: Basis, order: int) -> tuple[dict[str, FloatArray], ConditionRows]:
    """Return a constraint at the points of the rule, field by field, and its data."""
    form = multiplier.constraint.form
    functions = basis.at_rule([term.multi_index[:-1] for term in form.terms])
    parts: dict[str, Any] = {}
    for term in form.terms:
        parts[term.field] = parts.get(term.field, 0) + float(term.coefficient) * functions[term.multi_index[:-1]]
    scale = max(float(np.abs(part).max()) for part in parts.values())
    data = BoundaryData(derivatives(-form.source, multiplier.constraint, order), basis.rule.points, None, scale)
    weights = basis.rule.weights / basis.rule.weights.sum()
    rows = ConditionRows(np.empty((0, basis.size)), weights, (data,), bool(form.source == 0))
    return {name: part / scale for name, part in parts.items()}, rows


def recovered(
    multiplier: Multiplier, evolution: Evolution, basis: Basis, lacking: Callable[[FloatArray], dict[str, FloatArray]]
) -> Callable[[FloatArray], FloatArray]:
    """Return the coefficients of a multiplier as a function of times, by least squares over the points of the rule.

    They follow from the forces that equations are lacking at times, (times, points) per field, and from the data of
    conditions and gauges.
    """
    functions = basis.at_rule([index for _, index in multiplier.forces])
    forces: dict[str, Any] = {}
    for (name, index), factor in multiplier.forces.items():
        forces[name] = forces.get(name, 0) + factor * functions[index]
    share = basis.rule.weights / basis.rule.weights.sum()
    conditions = condition_rows(basis, evolution.conditions_on(multiplier.name), 0)
    needed = [term.multi_index[:-1] for gauge in multiplier.gauges for term in gauge.form.terms]
    averages = [share @ applied(gauge, basis.at_rule(needed), basis.rule.points, None) for gauge in multiplier.gauges]
    matrix = np.vstack([*forces.values(), conditions.matrix, *averages])
    weight = np.concatenate([np.tile(np.sqrt(share), len(forces)), np.sqrt(conditions.weights), np.ones(len(averages))])
    # As elsewhere, functions that features hardly reach are used last.
    inverse = basis.strength[:, None] * np.linalg.pinv(matrix * weight[:, None] * basis.strength, rcond=SETTINGS.cut)
    inverse = inverse * weight
    given = np.array([-float(gauge.form.source) for gauge in multiplier.gauges])

    def coefficients(times: FloatArray) -> FloatArray:
        found = lacking(times)
        parts = [found[name] for name in forces] + [own.values(times, 0) for own in conditions.data]
        return np.asarray(np.hstack([*parts, np.tile(given, (len(times), 1))]) @ inverse.T)

    return coefficients
