"""One solution on features of one fineness, how far two of them are apart, and where one is steep."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pibls.checks import FloatArray
from pibls.evolution import cost
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.basis import Basis, QuadratureRule, compressed
from pibls.evolution.brief_events import brief_times
from pibls.evolution.design import Design, Monitor
from pibls.evolution.expansion import expanded
from pibls.evolution.form import Evolution
from pibls.evolution.galerkin import Galerkin
from pibls.evolution.radau import IntegrationError, Integrator, Trajectory, times_within
from pibls.problem import OnPart, Problem, Statement
from pibls.solution import Solution
from pibls.solution.diagnostics import Diagnostics
from pibls.solution.evolved import EvolvedNetwork
from pibls.solution.field_functions import ResidualFunction
from pibls.solution.residuals import root_mean_square
from pibls.solution.sizes import field_scales
from pibls.status import Status


@dataclass(frozen=True, eq=False)
class Run:
    """A solution on features of one fineness."""

    network: EvolvedNetwork
    rule: QuadratureRule  # the quadrature rule it was projected with
    # design, fineness: what the features were drawn from
    design: Design
    fineness: float
    size: int  # number of coefficients that were integrated
    operations: float  # what it took
    ended: IntegrationError | None = None  # what ended it before the last time, if anything did

    @property
    def width(self) -> int:
        """Number of features in space; without a space, of coefficients."""
        return self.network.features if self.design.dimension else self.size

    @property
    def points(self) -> int:
        """Number of points in space; without a space there are none."""
        return len(self.rule.weights) if self.design.dimension else 0

    @property
    def reached(self) -> float:
        """The last time that was reached."""
        return float(self.network.breaks[-1])


def follow(system: Galerkin, design: Design, fineness: float, tol: float, allowed: float) -> Run:
    """Solve on features of a design, with so much tolerance for the integrator, and so many operations."""
    evolution, basis = system.evolution, system.basis
    first, last = evolution.limits
    integrator = Integrator(system, tol, allowed, system.preparation)
    ended = None
    try:
        reach = system.reach(np.linspace(first, last, SETTINGS.times))
        trajectory = integrator.run(first, last, system.initial(), reach, brief_times(evolution))
    except IntegrationError as error:
        if error.partial is None:
            raise
        ended, trajectory = error, error.partial
    operations = integrator.operations + cost.PER_RUN
    return Run(network_of(system, trajectory), basis.rule, design, fineness, system.size, operations, ended)


def network_of(system: Galerkin, trajectory: Trajectory) -> EvolvedNetwork:
    """Return a trajectory of the coefficients of a system as a network."""
    basis = system.basis
    return EvolvedNetwork(basis.network, basis.transform, trajectory.breaks, expanded(system, trajectory))


def system_of(evolution: Evolution, design: Design, fineness: float, rng: np.random.Generator) -> Galerkin:
    """Return an evolution on features of a fineness."""
    if evolution.space is None:
        one = np.ones((1, 1))
        return Galerkin(
            evolution, Basis(None, QuadratureRule(np.empty((1, 0)), np.ones(1)), one, np.ones(1), {(): one})
        )
    return Galerkin(evolution, compressed(*design.draw(fineness, rng)))


def misfit(system: Galerkin) -> tuple[FloatArray, FloatArray]:
    """Return the points of the rule, and the share of each in the squared relative L2 error of the initial values."""
    state, weights = system.initial(), system.basis.rule.weights
    share = np.zeros(len(weights))
    for name in system.evolution.orders:
        wanted, found = system.initial_values(name, state)
        size = float(weights @ wanted**2)
        share = np.maximum(share, weights * (wanted - found) ** 2 / (size if size > 0 else 1.0))
    return system.basis.rule.points, share


def distance(problem: Problem, coarse: Run, fine: Run, share: float = 1.0) -> float:
    """Return the relative L2 distance of two solutions over space and a share of the times both reached.

    That of the worst field.
    """
    step = max(1, len(fine.rule.weights) // SETTINGS.most_points)
    X, weights = fine.rule.points[::step], fine.rule.weights[::step]
    first = float(fine.network.breaks[0])
    last = first + share * (min(coarse.reached, fine.reached) - first)
    times, spans = times_within(np.concatenate([run.network.breaks for run in (coarse, fine)]), first, last)
    zero = (0,) * X.shape[1]
    a, b = (run.network.on_grid(X, times, zero) for run in (coarse, fine))
    errors, own = (np.sqrt(np.einsum("ptf,p,t->f", values**2, weights, spans)) for values in (a - b, b))
    return float(np.max(errors / field_scales(problem, own)))


def monitored(run: Run, velocity: float = 0.0) -> Monitor:
    """Return how steep a solution on a line gets where, relative to its range; as seen from a line that moves."""
    step = max(1, len(run.rule.weights) // (2 * SETTINGS.most_points))
    X, breaks, half = run.rule.points[::step], run.network.breaks, run.design.half[0]
    times = np.unique(np.concatenate([breaks, np.linspace(breaks[0], breaks[-1], SETTINGS.times)]))
    if len(times) > 3 * SETTINGS.times:
        times = times[:: len(times) // (3 * SETTINGS.times) + 1]
    span = np.maximum(np.ptp(run.network.on_grid(X, times, (0,)), axis=(0, 1)), 1e-300)
    slopes = (np.abs(run.network.on_grid(X, times, (1,))) * half / span).max(axis=2)
    for column, time in enumerate(times if velocity else []):
        # Points of the rule are in order.
        moved = X[:, 0] + velocity * (time - times[0])
        slopes[:, column] = np.interp(moved, X[:, 0], slopes[:, column], period=2 * half)
    return Monitor(((X - run.design.center) / half)[:, 0], slopes.max(axis=1))


def wave_velocity(run: Run) -> float:
    """Return how fast the longest waves of a solution go round a periodic interval, by their phases.

    These are right even where a front is not resolved at all.
    """
    times = np.linspace(run.network.breaks[0], run.network.breaks[-1], 2 * SETTINGS.times)
    values = run.network.on_grid(run.rule.points, times, (0,))
    waves = np.pi / run.design.half[0] * np.arange(1, SETTINGS.waves + 1)
    kernel = run.rule.weights * np.exp(-1j * np.outer(waves, run.rule.points[:, 0]))
    amplitudes = np.einsum("kp,ptf->tkf", kernel, values).reshape(len(times), -1)
    phases = np.unwrap(np.angle(amplitudes), axis=0)
    speeds = -np.polyfit(times, phases, 1)[0] / np.repeat(waves, values.shape[2])
    energy = np.mean(np.abs(amplitudes) ** 2, axis=0)
    return float(speeds @ energy / max(float(energy.sum()), 1e-300))


def solution_of(evolution: Evolution, run: Run, seed: int) -> Solution:
    """Return a run as a solution whose error is not known yet."""
    settings = {
        "fineness": round(run.fineness, 3),
        "coefficients": run.size,
        "steps": len(run.network.coefficients),
        "velocity": round(evolution.velocity, 6),
        "steepest": None if run.design.monitor is None else round(run.design.monitor.peak, 1),
    }
    size = (run.width, run.points)
    record = Diagnostics("Lines", settings, seed, *size, "Radau IIA of order 13", None, None, {})
    network = replace(run.network, frame=evolution.frame)
    return Solution(evolution.problem, network, np.eye(len(evolution.problem.fields)), Status.STALLED, record)


def relative_residual(solution: Solution, until: float) -> float:
    """Return the residual of the equations up to a time, relative to their largest term."""
    where = solution.problem.domain.sample(SETTINGS.points, "kronecker", 1)
    where[:, -1] = np.minimum(where[:, -1], until)
    worst = 0.0
    for statement in solution.problem.statements:
        if statement.is_equation:
            keys = [(term.field, term.multi_index) for term in statement.form.terms]
            largest = max(root_mean_square(values) for values in solution.evaluate(where, keys))
            found = root_mean_square(ResidualFunction(solution, statement)(where))
            worst = max(worst, found / largest if largest > 0 else found)
    return worst


def relative_miss(solution: Solution, statement: Statement) -> float:
    """Return how far a solution is from keeping a condition, relative to the largest part of it."""
    form, part = statement.form, statement.place
    assert isinstance(part, OnPart)
    X, normals = part.part.sample(SETTINGS.points, "kronecker", 1)
    state = solution.evaluate(X, [(term.field, term.multi_index) for term in form.terms])
    parts = [f(X, normals) * own for f, own in zip(form.coefficient_functions, state, strict=True)]
    size = max(root_mean_square(own) for own in [form.source_function(X, normals), *parts])
    return root_mean_square(form.residual_at(X, normals, state)) / size if size > 0 else 0.0
