"""Sensitivities of a solution in time: the linearised equation, solved by the steps and factors of the solution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import block_diag

from pibls.checks import FloatArray
from pibls.evolution import cost
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.galerkin import Galerkin
from pibls.evolution.radau import STAGES, Integrator, Trajectory, guessed_stages, legendre_weights, stage_times, tableau


def sensitivities(
    integrator: Integrator, course: Trajectory, forces: Callable[[FloatArray], FloatArray], start: FloatArray
) -> FloatArray:
    """Return the change of a solution by further forces and by another start, by its own steps.

    Forces at times have the shape (times, n, sides), the start (n, sides), and the result that of the coefficients of
    a trajectory, and sides.
    """
    pieces: list[FloatArray] = []
    before, system = 0.0, integrator.field
    assert isinstance(system, Galerkin)
    for time, h in zip(course.breaks[:-1].tolist(), np.diff(course.breaks).tolist(), strict=True):
        times = stage_times(time, h)
        y = pieces[-1].sum(axis=0) if pieces else start
        # The course is known: midway, the Jacobian is nearest to all that a step meets.
        midway = time + h / 2
        integrator.factorise(h, system.jacobian(midway, course(np.array([midway]))[0]))
        integrator.operations += integrator.field.costs[1] + cost.PER_CALL
        guess = guessed_stages((before, pieces[-1]) if pieces else None, h, y) - y
        acting, states = forces(times), course(times)
        stages = _iterated(integrator, h, y, guess, system.tangent(times, states), acting)
        stages = _at_once(integrator, h, y, times, states, acting) if stages is None else stages
        before = h
        pieces.append(np.tensordot(legendre_weights(), np.concatenate([y[None], stages]), axes=1))
    return np.array(pieces)


def _iterated(
    integrator: Integrator,
    h: float,
    y: FloatArray,
    z: FloatArray,
    tangent: Callable[[FloatArray], FloatArray],
    acting: FloatArray,
) -> FloatArray | None:
    """Return the stages of the linearised equation by iterations with one Jacobian for all of them."""
    _, values, vectors, inverse = tableau()
    last = np.inf
    per_side = STAGES * integrator.field.costs[0] + cost.substitutions(len(y))
    for _ in range(SETTINGS.rounds**2):
        integrator.operations += acting.shape[2] * per_side + cost.PER_CALL
        rates = tangent(y + z) + acting
        shifted = (values / h)[:, None, None] * np.tensordot(inverse, z, axes=1)
        update = integrator.solved(np.tensordot(inverse, rates, axes=1) - shifted)
        z = z + np.real(np.tensordot(vectors, update, axes=1))
        if integrator.field.is_linear:
            return np.asarray(y + z)
        sizes = np.maximum(np.linalg.norm(y + z, axis=(0, 1)), 1e-300)
        change = float((np.linalg.norm(update, axis=(0, 1)) / sizes).max())
        if change <= SETTINGS.cut or not change < last:
            # Rounding ends it sooner where an equation is stiff.
            return np.asarray(y + z) if change <= SETTINGS.cut**0.5 else None
        last = change
    return np.asarray(y + z) if last <= SETTINGS.cut**0.5 else None


def _at_once(
    integrator: Integrator, h: float, y: FloatArray, times: FloatArray, states: FloatArray, acting: FloatArray
) -> FloatArray:
    """Return the stages of the linearised equation, each with a Jacobian of its own."""
    _, values, vectors, inverse = tableau()
    system = integrator.field
    assert isinstance(system, Galerkin)
    slopes = [system.jacobian(time, state) for time, state in zip(times, states, strict=True)]
    matrix = np.kron(np.real(vectors * values @ inverse) / h, np.eye(len(y))) - block_diag(*slopes)
    integrator.operations += (
        STAGES * integrator.field.costs[1] + cost.dense(2.0 / 3.0 * len(matrix) ** 3) + cost.PER_CALL
    )
    right = np.concatenate([own @ y + more for own, more in zip(slopes, acting, strict=True)])
    return np.asarray(y + np.linalg.solve(matrix, right).reshape(acting.shape))
