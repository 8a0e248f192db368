"""Numbers found together with fields that equations and conditions leave open: measurements determine both.

A window of a flow whose edges nobody knows has solutions without number for any values of the unknowns. Measurements
are rows of least squares like equations then, and count the less the more noise they have. How fields answer to the
unknowns comes from the same elimination, so that one of these is a Gauss–Newton step for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from pibls.budget import Budget
from pibls.cells import suits_cells
from pibls.cells.data_refinement import DataRefinement
from pibls.cells.error_marking import ErrorMarking
from pibls.cells.fitters import degree_for
from pibls.cells.layout import Layout
from pibls.cells.linear import first_tree
from pibls.cells.loop import UNDETERMINED, Loop
from pibls.cells.outcome import Comparison, solution_of
from pibls.cells.parts import CellPart
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.cells.state import projected, values_of
from pibls.cells.tree import Cell, leaves, refined
from pibls.checks import BoolArray, FloatArray
from pibls.errors import ProblemError, SolveError
from pibls.evolution import Evolution, find_evolution
from pibls.features.reference import draw_reference
from pibls.inverse.answer import Answer
from pibls.inverse.attempts import turns
from pibls.inverse.cell_forward import OpenBoundary
from pibls.inverse.coordinates import Coordinates
from pibls.inverse.descent import Damping, Descent, best_of, place_at, search
from pibls.inverse.measurements import Measurements, chance_of, size_of
from pibls.inverse.parametric import Parametric
from pibls.inverse.response import Forward
from pibls.inverse.spread import Spread
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import AtPoints, Interior, Problem
from pibls.quadrature.roots import ROUNDING
from pibls.refinement import Course, refine
from pibls.refinement.patience import WINDOWS
from pibls.refinement.standards import MOST, NEGLIGIBLE, SLIGHT
from pibls.solution import Solution
from pibls.status import Status

_STRICTEST = SETTINGS.stricter**SETTINGS.rounds
# On the first tree, and on others. Square sums may rise: fields follow numbers by and by.
_FIRST_RULE = Damping(steps=12, enough=0.02, worse=2.0, least=1e-3, most=1e3)
_RULE = replace(_FIRST_RULE, steps=SETTINGS.rounds)


def suits_joint(problem: Problem) -> bool:
    """Tell whether measurements at points may determine numbers and fields of a problem together."""
    measured = [s for s in problem.statements if s.targets is not None]
    plain = all(isinstance(s.place, AtPoints) for s in measured) and not problem.unknown_functions
    return bool(measured) and plain and suits_cells(problem)


def leaves_open(problem: Problem) -> bool:
    """Tell whether measurements are all that there is beside equations, or conditions lack a start."""
    if all(isinstance(s.place, Interior) for s in problem.statements if s.targets is None):
        return True
    parametric = Parametric(problem)
    start = Coordinates.of(parametric, np.zeros(0))
    evolution = find_evolution(parametric.at(start.vector(start.start)))
    return isinstance(evolution, Evolution) and bool(evolution.lacks)


@dataclass(eq=False)
class Joint:
    """Finds numbers and fields on one tree after another."""

    # parametric, coordinates: the problem, and coordinates of its unknowns
    parametric: Parametric
    coordinates: Coordinates
    layout: Layout
    budget: Budget  # what may be spent
    error: float = 1.0  # estimated error of the last solution
    strict: float = 1.0  # how much more equations count than measurements
    starts: int = 0  # how many were tried
    reached: dict[Fit, Descent] = field(default_factory=dict)  # where the searches ended, by the fields there
    _solvers: list[TreeSolver] = field(default_factory=list)
    _noise: FloatArray | None = None  # of every set, as far as it is known
    _weights: list[FloatArray] = field(default_factory=list)  # of all measurements: outliers count less
    _further: dict[Fit, Fit] = field(default_factory=dict)  # fields where equations count more

    def work(self, cells: float, new: float) -> float:
        """Return the operations that a tree of so many cells takes: some steps, in each of which all cells are new."""
        del new
        return _RULE.steps * self._solvers[0].work(cells, cells)

    @property
    def memory(self) -> float:
        """Bytes that the last solution takes."""
        return self._solvers[0].memory

    def doubt(self, fit: Fit) -> str:
        """Return nothing: residuals are looked at in the end."""
        del fit
        return ""

    def sensitivity(self) -> float:
        """Return the sensitivity of the last solution to changes of its data."""
        return self._solvers[0].weakest()[0]

    def richer(self) -> None:
        """Return nothing: solutions are compared with those on finer trees."""

    def spread(self, fit: Fit, sizes: FloatArray) -> float:
        """Return one: cells do not become richer for small fields."""
        del fit, sizes
        return 1.0

    def enriched(self, degrees: int) -> None:
        """Return nothing, likewise."""
        del degrees

    def fit(self, root: Cell, near: Fit | None) -> Fit:
        """Return fields on a tree, from those on a coarser one."""
        if near is None:
            found = self._found(root)
        else:
            start = self.reached[near].place.point
            first = projected(self.layout, root, values_of(self.layout, near), near.weights)
            found = self._searched(self._window(root, first, start), start)
        return self._kept(found)

    def _kept(self, found: Descent) -> Fit:
        fit: Fit = found.place.response.fit
        self.reached[fit] = found
        return fit

    def _found(self, root: Cell) -> Descent:
        """Search on a first tree, from other starts if the first one comes to nothing."""
        shape = (len(self.parametric.names), self.layout.reference.size)
        first = {part: np.zeros(shape) for leaf in leaves(root) for part in self.layout.parts(leaf)}

        def tried(start: FloatArray) -> Descent:
            self.starts += 1
            return self._searched(self._window(root, first, start), start)

        starts = self.coordinates.starts(len(self.parametric.problem.parameters))
        found = best_of(starts, tried, lambda one: 0.0 if one.settled else float(self._sizes(one).max()))
        assert found is not None
        return found

    def _window(self, root: Cell, first: Mapping[CellPart, FloatArray], point: FloatArray) -> OpenBoundary:
        parametric = replace(self.parametric, shares=self._shares())
        vector = self.coordinates.vector(point)
        layout = self.layout.restated(parametric.at(vector))
        fit = Fit(root, tuple(first), dict(first))
        found = Comparison(fit, layout, fit, layout, self.error, 1.0)
        start = solution_of(found, self.error, Status.FITTED, "", layout.seed)
        made = (parametric, start, vector, self.error, self.budget, layout, root)
        return OpenBoundary(*made, first=first, solvers=self._solvers)

    def _searched(self, window: OpenBoundary, point: FloatArray) -> Descent:
        measurements = self.measurements(window)
        here = place_at(window, measurements, point, None)
        if here is None:
            raise SolveError("No fields come near equations and measurements. Check units, or give other starts.")
        rule = _FIRST_RULE if not self.reached else _RULE
        exact = replace(measurements, floor=ROUNDING)
        found = search(window, exact, here, rough=True, nearby=True, rule=rule)
        # What turns more often than measurements can show may be something slower.
        shown = turns(window.parametric, found.place.response) <= 1.0
        return replace(found, settled=found.settled and shown)

    def _sizes(self, found: Descent) -> FloatArray:
        """Return the size of residuals in every set, relative to its measurements."""
        measurements = self.measurements(found.forward)
        relative = found.place.residual / measurements.sizes
        return np.array([size_of(relative[span], s.loss == "huber") for s, span in measurements.sets])

    def measurements(self, window: Forward) -> Measurements:
        """Return the measurements for a search in a window."""
        return Measurements(window.parametric, self.coordinates)

    def _shares(self) -> tuple[FloatArray, ...]:
        """Return how much every measurement counts beside equations: the most exact ones as much, if they are strict.

        Equations have no noise. They count the more, the less finer cells would help to meet both.
        """
        noise = self._relative()
        least = min((float(own.min()) for own in noise if own.min() > 0.0), default=1.0)
        weights = self._weights or [np.ones(len(own)) for own in noise]
        sets = zip(self.parametric.measured, noise, weights, strict=True)
        return tuple(
            np.sqrt(s.weight * robust) * least / np.maximum(own, least) / self.strict for s, own, robust in sets
        )

    def _relative(self) -> list[FloatArray]:
        """Return the noise of every measurement by the size of its set; zeros where it is not known."""
        plain = Measurements(self.parametric, self.coordinates)
        learned = np.zeros(len(plain.spans)) if self._noise is None else self._noise
        return [
            np.full(span.stop - span.start, own) if s.noise is None else s.noise / plain.sizes[span]
            for (s, span), own in zip(plain.sets, learned.tolist(), strict=True)
        ]

    def _learn(self, found: Comparison) -> None:
        """Learn the noise from the last tree."""
        descent, noise = self.reached[found.better], self._looks_like_noise(found.better)
        measurements = self.measurements(descent.forward)
        self._noise = np.where(noise, self._sizes(descent), 0.0)
        self._weights = [measurements.weighed(descent.place.residual).weights[span] for span in measurements.spans]
        self.strict = (
            min(SETTINGS.stricter * self.strict, _STRICTEST)
            if noise.all()
            else max(self.strict / SETTINGS.stricter, 1.0)
        )
        self.error = min(self.error, found.estimate)

    def _looks_like_noise(self, fit: Fit) -> BoolArray:
        """Tell of which sets the residuals of neighbours have nothing in common."""
        place, measurements = self.reached[fit].place, self.measurements(self.reached[fit].forward)
        weighed = measurements.weighed(place.residual)
        scaled, leverage = place.residual / weighed.noise, weighed.leverage(place)
        return np.array(
            [chance_of(s, scaled[span], leverage[span]) >= SETTINGS.chance for s, span in measurements.sets]
        )

    def is_enough(self, found: Comparison, tol: float) -> bool:
        """Tell whether fields are within the tolerance, or numbers move less than noise moves them."""
        self._learn(found)
        return found.estimate <= tol or (found.estimate <= self._floor and self._is_settled(found))

    def _is_settled(self, found: Comparison) -> bool:
        if (np.abs(self._shift(found, found.better)) > SETTINGS.settled * self._deviations(found.better)).any():
            return False
        best, beyond = self._stricter(found)
        return bool((np.abs(self._shift(best, beyond)) <= SETTINGS.settled * self._deviations(best.better)).all())

    def _shift(self, found: Comparison, beyond: Fit) -> FloatArray:
        """Return how far numbers are from those on a coarser tree, or from others on the same one, if that is more."""
        here, *others = (self.reached[own].place.point for own in (found.better, found.fit, beyond))
        one, two = (other - here for other in others)
        return np.where(np.abs(one) > np.abs(two), one, two)

    @property
    def _floor(self) -> float:
        """The noise of the noisiest set, relative to its measurements; zero where that of some set is not known."""
        known = [float(own.max()) for own in self._relative()]
        return max(known) if all(known) else 0.0

    def _stricter(self, found: Comparison) -> tuple[Comparison, Fit]:
        """Let equations count more as long as residuals look like noise and numbers are known better by that.

        Return a comparison with the last such fields, and those where equations count still more: numbers should not
        depend on that.
        """
        while True:
            fit = self._beyond(found.better)
            before, after = (self._deviations(own) for own in (found.better, fit))
            noise = self._looks_like_noise(found.better).all() and self._looks_like_noise(fit).all()
            strictest = max(float(own.max()) for own in self.reached[fit].forward.parametric.shares) < 1.0 / _STRICTEST
            if not noise or (after > (1.0 - NEGLIGIBLE) * before).all() or strictest:
                return found, fit
            found = replace(found, better=fit)

    def _beyond(self, fit: Fit) -> Fit:
        """Return fields on the same tree where equations count more."""
        if fit not in self._further:
            descent, window = self.reached[fit], self._window_of(fit)
            shares = tuple(share / SETTINGS.stricter for share in window.parametric.shares)
            parametric = replace(window.parametric, shares=shares)
            found = self._searched(replace(window, parametric=parametric, first=fit.weights), descent.place.point)
            self._further[fit] = self._kept(found)
        return self._further[fit]

    def _deviations(self, fit: Fit) -> FloatArray:
        """Return the standard deviations of the numbers by a search."""
        found = self.reached[fit]
        return np.sqrt(np.diag(Spread.of(self.measurements(found.forward), found.place).covariance))

    def _window_of(self, fit: Fit) -> OpenBoundary:
        window = self.reached[fit].forward
        assert isinstance(window, OpenBoundary)
        return window

    def verdict(self, found: Comparison, loop: Loop, tol: float) -> Solution:
        """Return the finer one of two solutions, with the numbers, and how uncertain both are."""
        found, beyond = self._stricter(found)
        solution = loop.solution(found.swapped, found.estimate, Status.FITTED, "")
        descent, window = self.reached[found.better], replace(self._window_of(found.better), solution=solution)
        plain = self.measurements(window)
        noise = plain.weighed(descent.place.residual).noise
        noisy, taken = window.drawn(descent.place.response, noise, plain.sets)
        # Fields are not known better than what they are known from.
        asked = max(tol, self._floor)
        answer = Answer.of(replace(plain, taken=taken), replace(descent, forward=window), asked)
        shift = self._shift(found, beyond)
        # Fields made residuals smaller than noise is.
        factor = float(np.median(answer.weighed.noise / noise))
        noisy = {part: factor * own for part, own in noisy.items()}
        # Residuals that are no noise say as little as there are degrees of freedom in them.
        few = 1.0 if self._looks_like_noise(found.better).all() else max(len(noise) / max(taken, 1.0), 1.0)
        spare = len(noise) - taken > len(shift) - 0.5
        answer = replace(
            answer,
            covariance=few * answer.covariance,
            shift=shift,
            accuracy=1.0 if spare else np.inf,
            found=replace(descent, forward=replace(window, noisy=noisy)),
        )
        return answer.solution([], self.starts, self.budget, {})


def _split(marker: ErrorMarking, fit: Fit, sizes: FloatArray, most: float) -> tuple[Cell, float]:
    """Return a finer tree, and the share of the roughness in the cells that are split for it.

    Nothing is known at the boundary, and nothing singular comes from its corners.
    """
    rough = marker.rough(fit, sizes)
    squares = {part: float(tails @ tails) for part, tails in rough.items()}
    total, held = sum(squares.values()), 0.0
    splits: dict[Cell, list[tuple[int, float | None]]] = {}
    for part in sorted(squares, key=squares.__getitem__, reverse=True):
        if splits and (len(splits) >= most or held >= (1.0 - SLIGHT) * total):
            break
        splits[part.cell] = [(int(rough[part].argmax()), None)]
        held += squares[part]
    return refined(fit.root, splits), min(held / ((1.0 - SLIGHT) * total), 1.0) if total > 0 else 1.0


def _chosen(every: list[Comparison]) -> Comparison:
    """Return the last comparison; where equations and measurements lack as much as ever, that of fewest cells.

    More cells would follow measurements against equations, and not show that they contradict each other.
    """
    first, last = every[0], every[-1]
    stays = last.estimate > NEGLIGIBLE and last.fit.residual > MOST * first.fit.residual
    return first if stays else last


def solve_jointly(problem: Problem, tol: float, budget: Budget, seed: int, report: Callable[..., None]) -> Solution:
    """Find numbers and fields of a problem from measurements, which stand in place of conditions.

    >>> import sympy as sp
    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Observation, coordinates, field, unknown
    >>> x = coordinates("x")
    >>> u, k, places = field("u", x), unknown("k"), np.linspace(0.1, 0.9, 9)
    >>> problem = Problem(u.diff(x) + k * u, Interval((x, 0, 1)), [Observation(u, places, np.exp(-2 * places))])
    >>> found = solve_jointly(problem, 1e-6, Budget(10.0), 0, lambda *_: None)
    >>> round(found.parameters["k"].value, 6)
    2.0
    """
    parametric = Parametric(problem)
    coordinates = Coordinates.of(parametric, np.zeros(0))
    dimension = len(problem.domain.coordinates)
    shape = draw_reference(dimension, degree_for(dimension, max(tol, SETTINGS.coarse)), seed)
    layout = Layout(parametric.at(coordinates.vector(coordinates.start)), shape, seed)
    joint = Joint(parametric, coordinates, layout, budget)
    course: Course[Comparison] = Course(budget, WINDOWS, report)
    loop = Loop(joint, tol, course, seed, splitting=_split, confirmed=partial(joint.is_enough, tol=tol))
    fit = joint.fit(first_tree(DataRefinement(Rows(layout)), SLIGHT, budget=budget.left), None)
    loop.sensitivities.append(joint.sensitivity())
    if loop.sensitivities[0] > UNDETERMINED:
        names = ", ".join([*parametric.names, *map(str, problem.parameters)])
        raise ProblemError(
            f"Equations and measurements together do not determine {names}: these are too few. Give more of them, or "
            "conditions on the boundary and at the start; values that are not known there may be unknown numbers or "
            "functions too."
        )
    refine(loop, fit, course)
    return joint.verdict(_chosen(course.comparisons), loop, tol)
