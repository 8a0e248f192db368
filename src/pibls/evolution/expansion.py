"""From coefficients in time to fields in the whole basis, boundary data and multipliers included."""

from __future__ import annotations

import numpy as np

from pibls.checks import FloatArray
from pibls.evolution.basis import at_times
from pibls.evolution.constraint import Recovery
from pibls.evolution.galerkin import Galerkin, Known
from pibls.evolution.radau import STAGES, Trajectory, legendre_weights, stage_times


def expanded(system: Galerkin, trajectory: Trajectory) -> FloatArray:
    """Return all fields in the whole basis, boundary data included, shape (k, degree + 1, fields, m)."""
    steps = np.diff(trajectory.breaks)
    nodes = [np.append(t, stage_times(t, h)) for t, h in zip(trajectory.breaks[:-1], steps, strict=True)]
    found = {}
    for name in system.evolution.orders:
        own = system.traces[name]
        piece = trajectory.coefficients[:, :, system.spans[name, 0]] @ own.kernel.T
        if own.lifting is not None:
            data = own.values(np.concatenate(nodes)).reshape(len(steps), STAGES + 1, -1)
            piece = piece + (legendre_weights() @ data) @ own.lifting.T
        found[name] = piece
    for multiplier in system.evolution.multipliers:
        recovery = Recovery.of(multiplier, system.evolution, system.basis)
        values = [recovery(t, _residual(system, t, trajectory(t), recovery.names)) for t in nodes]
        found[multiplier.name] = legendre_weights() @ np.array(values)
    names = system.evolution.problem.field_names
    return np.stack([found[name] for name in names], axis=2)


def _residual(system: Galerkin, times: FloatArray, states: FloatArray, names: tuple[str, ...]) -> dict[str, FloatArray]:
    """Return du/dt minus the right-hand side at quadrature points: (times, points) each."""
    moving = system.rates(times, states)
    X = at_times(system.basis.rule.points, times)
    known: Known = {}
    result = {}
    for name in names:
        own, rate = system.traces[name], system.evolution.split_rates[name]
        whole = moving[:, system.tops[name]] @ own.kernel.T + own.lifted(times, system.evolution.orders[name])
        missing = whole @ system.basis.cache[(0,) * system.basis.rule.points.shape[1]].T
        for slot, factor in rate.linear:
            values = system.slot_values(slot, times, states, known)
            missing = missing - factor(X).reshape(len(times), -1) * values
        result[name] = missing - (0.0 if rate.rest is None else system.rest_values(rate, times, states, known))
    return result


def lifted(system: Galerkin, breaks: FloatArray) -> FloatArray:
    """Return the fields that boundary data make in the whole basis, shape (k, degree + 1, fields, m)."""
    return expanded(system, Trajectory(breaks, np.zeros((len(breaks) - 1, STAGES + 1, system.size))))


def widened(system: Galerkin, pieces: FloatArray) -> FloatArray:
    """Return sensitivities in the whole basis: (k, degree + 1, n, sides) to (k, degree + 1, sides and fields, m)."""
    names = system.evolution.problem.field_names
    every = [system.traces[name].kernel @ pieces[:, :, system.spans[name, 0]] for name in names]
    found = np.moveaxis(np.stack(every, axis=2), 4, 2)
    return found.reshape(*pieces.shape[:2], -1, found.shape[-1])
