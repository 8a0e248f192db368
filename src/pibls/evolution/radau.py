"""Radau IIA of order 13: implicit, stable however stiff the equation is, and accurate over long steps.

SciPy's stiff integrators are of order five. Galerkin systems of broad features are small, dense and wanted to many
digits: then a few long steps of high order cost less, and the stages of a step are one matrix product. The stages also
give the solution between the steps, as a polynomial of degree seven, whose coefficients tell how well it is resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from pibls.checks import FloatArray
from pibls.errors import ProblemError, SolveError
from pibls.evolution import cost
from pibls.evolution.accuracy import SETTINGS
from pibls.quadrature.roots import ROUNDING
from pibls.refinement.standards import FALLS, MOST, NEGLIGIBLE
from pibls.solution.evolved import piecewise

if TYPE_CHECKING:
    from pibls.evolution.galerkin import Galerkin
    from pibls.evolution.waves import Blocks, Waves

STAGES = 7


class IntegrationError(SolveError):
    """The solution cannot be followed further: no step is short enough, or the work is spent.

    ``partial`` is the solution so far, or None where there was no step.
    """

    def __init__(self, message: str, *, blown_up: bool, partial: Trajectory | None) -> None:
        super().__init__(message)
        self.blown_up = blown_up
        self.partial = partial


@cache
def tableau() -> tuple[FloatArray, Any, Any, Any]:
    """Return the nodes on (0, 1], and the eigenvalues and eigenvectors of the inverse of the matrix of the method."""
    upper = np.polynomial.legendre.Legendre.basis(STAGES)
    nodes = (np.sort(np.real((upper - np.polynomial.legendre.Legendre.basis(STAGES - 1)).roots())) + 1.0) / 2.0
    nodes[-1] = 1.0
    powers = np.arange(1, STAGES + 1)
    matrix = (nodes[:, None] ** powers / powers) @ np.linalg.inv(nodes[:, None] ** (powers - 1))
    values, vectors = np.linalg.eig(np.linalg.inv(matrix))
    return nodes, values, vectors, np.linalg.inv(vectors)


@cache
def legendre_weights() -> FloatArray:
    """Return the matrix from values at the start and at the stages to Legendre coefficients on the step."""
    nodes = np.append(0.0, tableau()[0])
    values = np.polynomial.legendre.legvander(2.0 * nodes - 1.0, STAGES)
    return np.asarray(np.linalg.inv(values), dtype=np.float64)


def stage_times(start: float, step: float) -> FloatArray:
    """Return the times of the stages of a step.

    >>> float(stage_times(1.0, 0.5)[-1])
    1.5
    """
    return np.asarray(start + step * tableau()[0], dtype=np.float64)


def node_times(breaks: FloatArray) -> FloatArray:
    """Return the start and the stages of every step, shape (steps, stages + 1)."""
    steps = zip(breaks[:-1].tolist(), np.diff(breaks).tolist(), strict=True)
    return np.array([np.append(start, stage_times(start, step)) for start, step in steps])


def left_out(sizes: FloatArray) -> FloatArray:
    """Return the error of a series, part by part, from the sizes of its last four terms.

    >>> left_out(np.array([[1e-2], [1e-3], [1e-4], [1e-5]])).round(12)
    array([1.e-06])
    """
    head, tail = np.maximum(sizes[0], sizes[1]), np.maximum(sizes[2], sizes[3])
    with np.errstate(divide="ignore", invalid="ignore"):
        decay = np.where(head > 0, np.sqrt(np.minimum(tail / head, 1.0)), 0.0)
    return np.asarray(np.maximum(sizes[3], decay * sizes[2]) * decay)


def times_within(breaks: FloatArray, first: float, last: float) -> tuple[FloatArray, FloatArray]:
    """Return times and the span of each: close to each other where steps are short, as after a sudden start.

    >>> times, spans = times_within(np.array([0.0, 1e-6, 1e-3, 1.0]), 0.0, 1.0)
    >>> bool(times[0] < 1e-6 < times[1] < 1e-3), len(times), round(float(spans.sum()), 12)
    (True, 82, 1.0)
    """
    inner = np.unique(breaks[(breaks > first) & (breaks < last)])
    inner = inner[:: len(inner) // (3 * SETTINGS.times) + 1]
    edges = np.concatenate([[first], inner, [last]])
    counts = np.ceil(np.diff(edges) / (last - first) * SETTINGS.times * (1.0 - 1e-9)).astype(int)
    spans = np.repeat(np.diff(edges) / counts, counts)
    # Irrational places: regular ones could always hit the same phase of an oscillation.
    places = np.mod(0.5 + np.arange(len(spans)) * (np.sqrt(5.0) - 1.0) / 2.0, 1.0)
    return first + np.cumsum(spans) - spans + spans * places, spans


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A solution in time, as one polynomial per step."""

    breaks: FloatArray  # start of each step, and the end of the last: shape (k + 1,)
    coefficients: FloatArray  # Legendre coefficients on each step, shape (k, degree + 1, n)

    def __call__(self, times: FloatArray, order: int = 0) -> FloatArray:
        """Return the state, or a derivative of it, at times of the interval: shape (len(times), n).

        >>> line = Trajectory(np.array([0.0, 2.0]), np.array([[[1.0], [3.0]]]))
        >>> line(np.array([0.0, 1.0, 2.0])).ravel(), line(np.array([0.5]), 1).ravel()
        (array([-2.,  1.,  4.]), array([3.]))
        """
        return piecewise(self.breaks, self.coefficients, times, order)


@dataclass(eq=False)
class Integrator:
    """Follows y' = f(t, y) from an initial state, with steps as long as the tolerance allows."""

    field: Galerkin | Waves  # f, or whatever else has its rates, Jacobian, sizes and costs
    tol: float  # largest error of the polynomial of a step, relative to the size of each part so far
    allowed: float = np.inf  # operations after which to give up
    operations: float = 0.0  # those so far
    _factors: Any = None
    _factored: tuple[float, Any] = (0.0, None)

    # A state that runs away overflows before it is noticed; what is not finite is refused step by step.
    @np.errstate(over="ignore", invalid="ignore")
    def run(
        self,
        start: float,
        stop: float,
        state: FloatArray,
        reach: FloatArray | None = None,
        stops: Sequence[float] = (),
    ) -> Trajectory:
        """Return the solution from ``start`` to ``stop``.

        ``reach`` is the least size that errors are relative to; a step ends at each of the ``stops`` between.
        """
        time, y = start, state
        h, first = self._first_step(start, stop, y, np.array(stops))
        reach = np.maximum(first, 0.0 if reach is None else reach)
        most = float(np.maximum(reach, self.field.sizes(y[None])[0]).max()) / ROUNDING
        breaks: list[float] = [start]
        pieces: list[FloatArray] = []
        previous: tuple[float, FloatArray] | None = None
        jacobian: FloatArray | Blocks | None = None
        made = start
        while time < stop:
            goal = next((s for s in stops if s > time + ROUNDING * (stop - start)), stop)
            h = goal - time if time + 1.01 * h >= goal else h
            if not reach.max() <= most:
                # What began with nothing is not run away if it is no more than what acts on it makes.
                acting = self._acting(stage_times(breaks[-2], time - breaks[-2]), state)
                most = (stop - start) * acting / ROUNDING
            self._check(h < ROUNDING * (stop - start) or not reach.max() <= most, time, breaks, pieces)
            if jacobian is None:
                jacobian, made = self._jacobian(time, y), time
            stages, rate = self._stages(time, h, y, jacobian, reach, guessed_stages(previous, h, y))
            if stages is None:
                # An old Jacobian may be what is wrong: make a new one before steps become shorter.
                h, jacobian = (h if made < time else 0.4 * h), None
                continue
            piece = legendre_weights() @ np.vstack([y, stages])
            found = np.maximum(reach, self.field.sizes(stages).max(axis=0))
            error = self._error(piece, found)
            factor = self._factor(error, rate)
            if error > 1.0:
                h *= factor
                continue
            reach, previous = found, (h, piece)
            time, y = (goal if h == goal - time else time + h), stages[-1]
            breaks.append(time)
            pieces.append(piece)
            h *= factor
            # A Jacobian with which stages converge at once is worth keeping, with its factors if the step stays.
            jacobian = jacobian if self.field.is_linear or rate <= SETTINGS.stage_share else None
        return Trajectory(np.array(breaks), np.array(pieces))

    def _jacobian(self, time: float, y: FloatArray) -> FloatArray | Blocks:
        """Return the Jacobian at a state; zero where it is not finite, as of √y at y = 0: it only leads the way."""
        self.operations += self.field.costs[1] + cost.PER_CALL
        try:
            return self.field.jacobian(time, y)
        except ProblemError:
            return np.zeros((len(y), len(y)))

    @staticmethod
    def _factor(error: float, rate: float) -> float:
        """Return by how much to change the length of a step, from its error over the tolerance."""
        wanted = FALLS * error ** (-1.0 / (STAGES + 1)) if error > 0 else SETTINGS.growth
        # A Jacobian that ages quickly would not converge over longer steps.
        factor = float(np.clip(wanted, SETTINGS.growth**-2, 1.0 if rate > MOST else SETTINGS.growth))
        return 1.0 if 1.0 <= factor <= SETTINGS.keep else factor

    def along(self, breaks: FloatArray, state: FloatArray, reach: FloatArray) -> Trajectory:
        """Return the solution by given steps: it then depends smoothly on whatever the right side depends on."""
        y, previous, pieces = state, None, []
        reach = np.maximum(self._first_step(float(breaks[0]), float(breaks[-1]), y, breaks)[1], reach)
        jacobian: FloatArray | Blocks | None = None
        for time, h in zip(breaks[:-1].tolist(), np.diff(breaks).tolist(), strict=True):
            if jacobian is None or not self.field.is_linear:
                jacobian = self._jacobian(time, y)
            stages, _ = self._stages(time, h, y, jacobian, reach, guessed_stages(previous, h, y), SETTINGS.rounds**2)
            if stages is None:
                raise IntegrationError(f"the steps are too long near t = {time:.4g}", blown_up=False, partial=None)
            pieces.append(legendre_weights() @ np.vstack([y, stages]))
            reach = np.maximum(reach, self.field.sizes(stages).max(axis=0))
            previous, y = (h, pieces[-1]), stages[-1]
        return Trajectory(breaks, np.array(pieces))

    def _check(self, blown_up: bool, time: float, breaks: list[float], pieces: list[FloatArray]) -> None:
        """Give up where steps become too short or the state runs away, or when the work is spent."""
        if blown_up or self.operations > self.allowed:
            partial = Trajectory(np.array(breaks), np.array(pieces)) if pieces else None
            what = "the solution blows up, or becomes infinitely steep," if blown_up else "the work was spent"
            raise IntegrationError(f"{what} near t = {time:.4g}", blown_up=blown_up, partial=partial)

    def _first_step(self, start: float, stop: float, y: FloatArray, events: FloatArray) -> tuple[float, FloatArray]:
        """Return a first step, and the size that errors are relative to at first; events happen at given times."""
        slope = self.field.rates(np.array([start]), y[None])[0]
        size, speed = self.field.sizes(y[None])[0], self.field.sizes(slope[None])[0]
        nothing = not size.max() > 0
        size = np.maximum(size, NEGLIGIBLE * self._outlook(start, stop, y, float(size.max()), events))
        moving = speed > 0
        guess = float(np.min((size + 1e-3 * size.max())[moving] / speed[moving], initial=stop - start))
        # Another tolerance must mean other steps: two solutions with the same ones have the same error.
        h = float(max(guess, 1e-5 * (stop - start)) * min(1.0, self.tol) ** (1.0 / (STAGES + 1)))
        return h, np.maximum(size, h * speed) if nothing else size

    def _outlook(self, start: float, stop: float, y: FloatArray, size: float, events: FloatArray) -> FloatArray | float:
        """Return about how large the parts of a state that is zero will be; zero for one that is something.

        What is to come acts on it as if it stayed there, over shorter and shorter times, by implicit Euler steps; and
        on average over all times, those between events among them.
        """
        spans: FloatArray = (stop - start) * np.logspace(0.0, 1.0 - SETTINGS.spans, SETTINGS.spans)
        times, shares = times_within(events, start, stop)
        try:
            rates = self.field.rates(start + spans, np.tile(y, (SETTINGS.spans, 1)))
            if size > SETTINGS.cut * (stop - start) * float(self.field.sizes(rates).max()):
                return 0.0
            jacobian = self.field.jacobian(start, y)
            mean = shares @ self.field.rates(times, np.tile(y, (len(times), 1))) / (stop - start)
        except ProblemError:  # the equation is not finite at such a state
            return 0.0
        acting = [*zip(spans, rates, strict=True), (stop - start, mean)]
        steps = [shifted(jacobian, 1.0 / h)(rate) for h, rate in acting]
        return np.asarray(self.field.sizes(np.array(steps)).max(axis=0))

    def _acting(self, times: FloatArray, state: FloatArray) -> float:
        """Return how large the rates of a state are at times, where they are finite."""
        try:
            return float(self.field.sizes(self.field.rates(times, np.tile(state, (len(times), 1)))).max())
        except ProblemError:
            return 0.0

    def _error(self, piece: FloatArray, reach: FloatArray) -> float:
        """Return the error of a polynomial over the tolerance, from how its coefficients decay."""
        return float(np.max(left_out(self.field.sizes(piece[-4:])) / self._allowed(reach)))

    def _allowed(self, reach: FloatArray) -> FloatArray:
        # A part that is still zero is measured by the others.
        floor = 1e-3 * float(reach.max())
        return self.tol * np.maximum(np.maximum(reach, floor), 1e-300)

    def _stages(
        self,
        time: float,
        h: float,
        y: FloatArray,
        jacobian: FloatArray | Blocks,
        reach: FloatArray,
        guess: FloatArray,
        most: int = SETTINGS.rounds,
    ) -> tuple[FloatArray | None, float]:
        """Return the stages by Newton's method with the Jacobian at the start, and how fast it converged."""
        _, values, vectors, inverse = tableau()
        times = stage_times(time, h)
        self.factorise(h, jacobian)
        z = guess - y
        allowed = SETTINGS.stage_share * self._allowed(reach)
        last, rate = np.inf, 0.0
        for iteration in range(most):
            try:
                self.operations += STAGES * self.field.costs[0] + self.field.step_costs[1] + cost.PER_CALL
                rates = self.field.rates(times, y + z)
            except ProblemError:  # the equation is not finite at such a state
                return None, rate
            transformed = inverse @ rates - (values / h)[:, None] * (inverse @ z)
            update = np.real(vectors @ self.solved(transformed))
            z = z + update
            change = float(np.max(self.field.sizes(update).max(axis=0) / allowed))
            if not np.isfinite(change) or change > 1.0 / (ROUNDING * self.tol):
                return None, rate
            rate = change / last if iteration else 0.0
            if self.field.is_linear:
                return y + z, 0.0
            if iteration and (rate >= 1.0 or change * rate ** (most - 1 - iteration) > 1.0 - rate):
                return (y + z if change <= 1.0 else None), rate
            if change * (rate / (1.0 - rate) if iteration else 1.0) <= 1.0:
                return y + z, rate
            last = change
        return None, rate

    def factorise(self, h: float, jacobian: FloatArray | Blocks) -> None:
        """Factorise the Jacobian, shifted by every eigenvalue of the method, for steps of a length."""
        if self._factored[0] == h and self._factored[1] is jacobian:
            return
        self.operations += self.field.step_costs[0]
        self._factors = [
            shifted(jacobian, (value.real if abs(value.imag) < 1e-9 else value) / h) if value.imag > -1e-9 else None
            for value in tableau()[1]
        ]
        self._factored = (h, jacobian)

    def solved(self, right: Any) -> Any:
        """Solve with every shifted Jacobian; the second of a pair of conjugates is the mirror of the first."""
        values = tableau()[1]
        solved = np.empty_like(right)
        for k, factors in enumerate(self._factors):
            if factors is not None:
                solved[k] = factors(right[k])
        for k, factors in enumerate(self._factors):
            if factors is None:
                solved[k] = np.conj(solved[int(np.argmin(np.abs(values - np.conj(values[k]))))])
        return solved


def shifted(jacobian: FloatArray | Blocks, shift: complex) -> Callable[[Any], Any]:
    """Return the function that solves with a multiple of the identity less a Jacobian."""
    if not isinstance(jacobian, np.ndarray):
        return jacobian.shifted(shift)
    factors = lu_factor(shift * np.eye(len(jacobian)) - jacobian, check_finite=False)
    return lambda right: lu_solve(factors, right, check_finite=False)


def guessed_stages(previous: tuple[float, FloatArray] | None, h: float, y: FloatArray) -> FloatArray:
    """Guess the stages from the polynomial of the step before."""
    if previous is None:
        return np.tile(y, (STAGES, *np.ones(y.ndim, dtype=int)))
    width, piece = previous
    ahead = 1.0 + 2.0 * h / width * tableau()[0]
    # High orders, continued far, are noise.
    degree = STAGES if h <= 1.5 * width else 2
    return np.tensordot(np.polynomial.legendre.legvander(ahead, degree), piece[: degree + 1], axes=1)
