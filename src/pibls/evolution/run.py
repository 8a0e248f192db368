"""One solution on features of one fineness, how far two of them are apart, and where and when something happens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.evolution import cost
from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.basis import Basis, QuadratureRule, at_times, compressed
from pibls.evolution.constraint import recovered
from pibls.evolution.design import Design, Monitor
from pibls.evolution.form import Evolution, compiled
from pibls.evolution.galerkin import Galerkin, Known
from pibls.evolution.radau import (
    STAGES,
    IntegrationError,
    Integrator,
    Trajectory,
    legendre_weights,
    node_times,
    times_within,
)
from pibls.evolution.waves import Waves, embedded, is_mirrored, suits_waves
from pibls.problem import Problem
from pibls.quadrature.roots import climbed
from pibls.refinement.standards import MOST, POINTS
from pibls.solution import Solution
from pibls.solution.diagnostics import Diagnostics
from pibls.solution.evolved import EvolvedNetwork
from pibls.solution.field_functions import ResidualFunction
from pibls.solution.residuals import root_mean_square
from pibls.solution.sizes import field_scales
from pibls.status import Status

_SUDDEN = (sp.sign, sp.Heaviside, sp.Abs)
_SWITCHES = (sp.tanh, sp.erf, sp.erfc, sp.atan, *_SUDDEN)
# Beyond this range of an exponent, a pulse is narrower than steps: half of the digits are gone at its foot.
_NARROW = -float(np.log(np.sqrt(np.finfo(np.float64).eps)))


@dataclass(frozen=True, eq=False)
class Run:
    """A solution on features of one fineness."""

    network: EvolvedNetwork
    rule: QuadratureRule  # the quadrature rule it was projected with; without points on waves
    # design, fineness: what the features were drawn from
    design: Design
    fineness: float
    size: int  # number of coefficients that were integrated
    operations: float  # what it took
    ended: IntegrationError | None = None  # what ended it before the last time, if anything did
    on_waves: bool = False  # whether transforms take the place of matrices

    @property
    def width(self) -> int:
        """Number of features in space; without a space, of coefficients."""
        return self.network.features if self.design.dimension else self.size

    @property
    def points(self) -> int:
        """Number of points in space; without a space there are none."""
        return len(self.rule.weights) if self.design.dimension else 0

    @property
    def numbers(self) -> int:
        """How many numbers the matrices have, or the solution if there are none."""
        return self.network.coefficients.size if self.on_waves else len(self.rule.weights) * self.network.features

    @property
    def reached(self) -> float:
        """The last time that was reached."""
        return float(self.network.breaks[-1])


def follow(system: Galerkin | Waves, design: Design, fineness: float, tol: float, allowed: float) -> Run:
    """Solve on features of a design, with so much tolerance for the integrator, and so many operations."""
    integrator = Integrator(system, tol, allowed, system.preparation)
    ended = None
    try:
        trajectory = integrated(integrator, system.evolution.limits[1])
    except IntegrationError as error:
        if error.partial is None:
            raise
        ended, trajectory = error, error.partial
    operations = integrator.operations + SETTINGS.times * cost.PER_CALL
    if isinstance(system, Waves):
        network, rule = system.network(trajectory), QuadratureRule(np.empty((0, design.dimension)), np.empty(0))
    else:
        network, rule = network_of(system, trajectory), system.basis.rule
    return Run(network, rule, design, fineness, system.size, operations, ended, isinstance(system, Waves))


def integrated(integrator: Integrator, last: float, breaks: FloatArray | None = None) -> Trajectory:
    """Return the coefficients of a system up to a time, by given steps or by those that the tolerance allows."""
    system = integrator.field
    first, state = system.evolution.limits[0], system.initial()
    reach = system.reach(np.linspace(first, last, SETTINGS.times))
    if breaks is not None:
        return integrator.along(breaks, state, reach)
    return integrator.run(first, last, state, reach, brief_times(system.evolution))


def network_of(system: Galerkin, trajectory: Trajectory) -> EvolvedNetwork:
    """Return a trajectory of the coefficients of a system as a network."""
    basis = system.basis
    return EvolvedNetwork(basis.network, basis.transform, trajectory.breaks, expanded(system, trajectory))


def system_of(
    evolution: Evolution, design: Design, fineness: float, rng: np.random.Generator, *, plain: bool = False
) -> Galerkin | Waves:
    """Return an evolution on features of a fineness; plain ones have matrices."""
    if not plain and suits_waves(evolution):
        mirrored, most = is_mirrored(evolution), design.harmonics(fineness)
        # Half waves fit between mirrors.
        return Waves(evolution, 2 * most if mirrored else most, mirrored)
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
    X, weights = fine.rule.points, fine.rule.weights
    first = float(fine.network.breaks[0])
    last = first + share * (min(coarse.reached, fine.reached) - first)
    times, spans = times_within(np.concatenate([run.network.breaks for run in (coarse, fine)]), first, last)
    if fine.on_waves:
        return _apart_on_waves(problem, coarse, fine, times, spans)
    zero = (0,) * X.shape[1]
    a, b = (run.network.on_grid(X, times, zero) for run in (coarse, fine))
    errors, own = (np.sqrt(np.einsum("ptf,p,t->f", values**2, weights, spans)) for values in (a - b, b))
    return float(np.max(errors / field_scales(problem, own)))


def _apart_on_waves(problem: Problem, coarse: Run, fine: Run, times: FloatArray, spans: FloatArray) -> float:
    """Return the relative L2 distance of two solutions on waves, by their coefficients."""
    squares, count = np.zeros((2, fine.network.size)), fine.network.features
    # The mean square of all waves but the constant one is a half.
    means = np.where(np.arange(count) == count // 2, 1.0, MOST)
    side = round(count ** (1.0 / fine.design.dimension))
    for time, span in zip(times, spans.tolist(), strict=True):
        one, two = (run.network.states(time[None])[0] for run in (coarse, fine))
        gap = two - embedded(one, side, fine.design.dimension)
        squares += span * np.stack([np.square(gap) @ means, np.square(two) @ means])
    errors, own = np.sqrt(squares)
    return float(np.max(errors / field_scales(problem, own)))


def monitored(run: Run, velocity: float = 0.0) -> Monitor:
    """Return how steep a solution on a line gets where, relative to its range; as seen from a line that moves."""
    X, breaks, half = run.rule.points, run.network.breaks, run.design.half[0]
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
    where = solution.problem.domain.sample(POINTS, "kronecker", 1)
    where[:, -1] = np.minimum(where[:, -1], until)
    worst = 0.0
    for statement in solution.problem.statements:
        if statement.is_equation:
            keys = [(term.field, term.multi_index) for term in statement.form.terms]
            largest = max(root_mean_square(values) for values in solution.evaluate(where, keys))
            found = root_mean_square(ResidualFunction(solution, statement)(where))
            worst = max(worst, found / largest if largest > 0 else found)
    return worst


def expanded(system: Galerkin, trajectory: Trajectory) -> FloatArray:
    """Return all fields in the whole basis, boundary data included, shape (k, degree + 1, fields, m)."""
    nodes, found = node_times(trajectory.breaks), {}
    for name in system.evolution.orders:
        own = system.traces[name]
        piece = trajectory.coefficients[:, :, system.spans[name, 0]] @ own.kernel.T
        if own.lifting is not None:
            data = own.values(nodes.ravel()).reshape(*nodes.shape, -1)
            piece = piece + (legendre_weights() @ data) @ own.lifting.T
        found[name] = piece
    for multiplier in system.evolution.multipliers:
        names = dict.fromkeys(name for name, _ in multiplier.forces)
        lacking = partial(_lacking, system, trajectory, names)
        values = recovered(multiplier, system.evolution, system.basis, lacking)
        found[multiplier.name] = legendre_weights() @ np.array([values(t) for t in nodes])
    return np.stack([found[name] for name in system.evolution.problem.field_names], axis=2)


def _lacking(system: Galerkin, path: Trajectory, names: Iterable[str], times: FloatArray) -> dict[str, FloatArray]:
    """Return du/dt minus the right-hand side at quadrature points: (times, points) each."""
    states = path(times)
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


def brief_times(evolution: Evolution) -> list[float]:
    """Return the times at which data that depends on time only is briefly large, or switches, in order.

    >>> from pibls import Initial, Problem, TimeInterval, coordinates, field
    >>> from pibls.evolution.form import find_evolution
    >>> t = coordinates("t")
    >>> u = field("u", t)
    >>> pulse = u.diff(t) - sp.exp(-(((t - 2) / sp.Float(1e-3)) ** 2))
    >>> evolution = find_evolution(Problem(pulse, TimeInterval(t, 0, 5), [Initial(u, 0)]))
    >>> [round(time, 6) for time in brief_times(evolution)] if evolution else None
    [2.0]
    """
    first, last = evolution.limits
    coordinates = evolution.problem.domain.coordinates
    found: set[float] = set()
    sources = [s.form.source for s in evolution.boundary]
    for expression, sudden in {pair for data in [*evolution.rates.values(), *sources] for pair in _heights(data)}:
        if expression.free_symbols != {coordinates[-1]}:
            continue
        height = compiled(expression, (coordinates[-1],))
        grid = np.linspace(first, last, POINTS)
        try:
            values = height(grid[:, None])
        except ProblemError:  # not finite somewhere: the integrator will tell
            continue
        top = np.flatnonzero((values[1:-1] >= values[:-2]) & (values[1:-1] > values[2:])) + 1
        if sudden or np.ptp(values) >= _NARROW:
            bounds = np.array([[first, last]])
            summits = climbed(height, grid[top, None], grid[1:2] - first, bounds, np.finfo(np.float64).nmant)
            found.update(summits.ravel().tolist())
    return sorted(found)[: SETTINGS.times]


def _heights(expression: sp.Expr) -> Iterator[tuple[sp.Expr, bool]]:
    """Yield expressions that peak at brief events, and whether an event is sudden however flat it looks."""
    for node in sp.preorder_traversal(expression):
        if isinstance(node, sp.exp):
            yield node.args[0], False
        elif isinstance(node, _SWITCHES):
            yield -sp.Abs(node.args[0]), isinstance(node, _SUDDEN)
        elif isinstance(node, Relational):
            yield -sp.Abs(node.lhs - node.rhs), True
