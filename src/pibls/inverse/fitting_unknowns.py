"""Fits on cells or features that were made for values of the unknowns, and made anew where these move far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.budget import Budget
from pibls.cells import suits_cells
from pibls.cells.loop import UNDETERMINED
from pibls.checks import FloatArray
from pibls.errors import PiblsError, ProblemError
from pibls.evolution import Evolution, find_evolution, suits_lines
from pibls.inverse.cell_forward import CellForward
from pibls.inverse.coordinates import Coordinates
from pibls.inverse.descent import Descent, place_at, search
from pibls.inverse.evolution_forward import EvolutionForward
from pibls.inverse.measurements import Measurements, chance_of, size_of, too_large
from pibls.inverse.parametric import Parametric
from pibls.inverse.response import Forward
from pibls.inverse.smoothness import ORDERS, Cosines, LinearisedData, Smoothness, most_probable
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import AtPoints, Problem, Statement
from pibls.quadrature.roots import ROUNDING
from pibls.refinement.standards import MOST, NEGLIGIBLE
from pibls.solution import Solution


class LeftOpenError(ProblemError):
    """Equations and conditions leave fields open even where all unknowns are given."""


@dataclass(eq=False)
class Fits:
    """Fits unknowns to measurements, from any start and with solutions of any tolerance."""

    # parametric, coordinates: the problem, and coordinates of its unknowns
    parametric: Parametric
    coordinates: Coordinates
    tol: float  # tolerance of solutions in the end; those on the way may be coarser
    # budget, seed: work that may be spent, and the seed of cells and features
    budget: Budget
    seed: int
    smooth: list[Smoothness]  # how smooth unknown functions are, as far as data tell
    until: float = np.inf  # time after which measurements are left aside
    starts: int = 1  # how many starts were tried

    @classmethod
    def of(cls, problem: Problem, tol: float, budget: Budget, seed: int) -> Fits:
        """Prepare the fits of a problem."""
        functions = problem.unknown_functions
        bases = tuple(Cosines.of(f, problem.domain) for f in functions)
        parametric = Parametric(problem, bases)
        first = [basis.first(f, problem) for f, basis in zip(functions, bases, strict=True)]
        coordinates = Coordinates.of(parametric, np.concatenate([np.zeros(0), *first]))
        smooth = [Smoothness(abs(float(own[0])) or 1.0, MOST, ORDERS[1]) for own in first]
        return cls(parametric, coordinates, tol, budget, seed, smooth)

    @property
    def numbers(self) -> int:
        """How many unknown numbers there are; coefficients of functions come after them."""
        return len(self.parametric.problem.parameters)

    @property
    def is_large(self) -> bool:
        """Whether cells over space and time are too many, because space alone has two dimensions or more."""
        domain = self.parametric.problem.domain
        return domain.time is not None and len(domain.coordinates) > 2

    def settled(self, point: FloatArray, tol: float, near: Any, first: Forward | None = None) -> Descent | None:
        """Search with cells or features that were made for the place, or for one nearby."""
        found: Descent | None = None
        for _ in range(SETTINGS.rounds):
            forward, first = first or self.tried(point, tol, None if found is None else found.forward.solution), None
            descent = None if forward is None else self.descended(forward, point, near, tol > self.tol)
            if forward is None or descent is None:
                return found
            found, moved = descent, self._moved(point, descent.place.point)
            point = descent.place.point
            # For numbers that are about right, finer solutions will be made anew in any case.
            enough = tol > self.tol and not self.parametric.bases and self.is_good(descent)
            if not moved or forward.is_spent or enough:
                break
            near = descent.place.response
        return found

    def _moved(self, before: FloatArray, after: FloatArray) -> bool:
        """Tell whether the unknowns have moved so far that cells or features may no longer suit them."""
        gap, functions = np.abs(after - before), slice(self.numbers, None)
        share = float(np.linalg.norm(gap[functions])) / max(float(np.linalg.norm(after[functions])), 1e-300)
        return max(float(gap[: self.numbers].max(initial=0.0)), share) > SETTINGS.nonlinear

    def descended(self, forward: Forward, point: FloatArray, near: Any, rough: bool) -> Descent | None:
        """Search on given cells or features, and find how smooth unknown functions are on the way."""
        here = place_at(forward, self.measurements(forward), point, near)
        if here is None:
            return None
        found = search(forward, self.measurements(forward), here, rough=rough, nearby=near is not None)
        for _ in range(SETTINGS.rounds if self.parametric.bases else 0):
            before = list(self.smooth)
            self._weigh_evidence(found)
            # A search without an end follows what functions make up for: other priors do not end it.
            if all(map(Smoothness.is_near, before, self.smooth)) or forward.is_spent or not found.settled:
                break
            found = search(forward, self.measurements(forward), found.place, rough=rough, nearby=True)
        return found

    def _weigh_evidence(self, found: Descent) -> None:
        """Find the priors of functions that make data most probable about a place."""
        measurements, place = self.measurements(found.forward), found.place
        weighed = measurements.weighed(place.residual)
        factors = (np.sqrt(weighed.weights) / weighed.noise)[:, None]
        own = np.concatenate([np.arange(s.start + 1, s.stop) for s in self.parametric.spans()])
        # Numbers stay as they are: they could explain a function away that is known up to a factor.
        others = np.setdiff1d(np.arange(self.numbers, len(place.point)), own)
        rows = place.slopes * factors
        right = rows[:, own] @ (place.point[own] - self.coordinates.start[own]) - place.residual * factors[:, 0]
        pairs = zip(self.parametric.problem.unknown_functions, self.parametric.bases, strict=True)
        fixed = [(None, None) if f.prior is None else (f.prior.size, b.relative(f.prior.length)) for f, b in pairs]
        data = LinearisedData.of(rows[:, own], right, rows[:, others])
        least = float(np.sqrt(np.mean(np.square(measurements.floor * measurements.sizes / weighed.noise))))
        floor = max(least, ROUNDING) if measurements.estimated else None
        self.smooth = most_probable(data, self.parametric.bases, self.smooth, fixed, floor)

    def plain(self, floor: float = 0.0) -> Measurements:
        """Return the measurements, for solutions that are wrong by a share of them."""
        pairs = list(zip(self.smooth, self.parametric.bases, strict=True))
        deviations = [np.concatenate([[np.inf], np.sqrt(own.variances(basis))]) for own, basis in pairs]
        left_out = tuple(own.left_out(basis) for own, basis in pairs)
        means, every = self.coordinates.start[self.numbers :], np.concatenate([np.zeros(0), *deviations])
        return Measurements(self.parametric, self.coordinates, floor, means, every, self.until, left_out)

    def measurements(self, forward: Forward) -> Measurements:
        """Return the measurements as solutions of a kind can meet them."""
        # Functions could follow errors of solutions as if they were data; a few numbers cannot.
        share = 1.0 if self.parametric.bases else NEGLIGIBLE
        return self.plain(share * min(forward.error, SETTINGS.coarse))

    def is_good(self, found: Descent) -> bool:
        """Tell whether residuals look like noise, or are as small as solutions are accurate."""
        residual, tol = found.place.residual, found.forward.tol
        measurements = self.plain(tol)
        if np.sqrt(np.mean(np.square(residual / measurements.sizes))) <= SETTINGS.accuracy * tol:
            return True
        weighed = measurements.weighed(residual)
        leverage = weighed.leverage(found.place)
        for statement, span in measurements.sets:
            own, robust = residual[span], statement.loss == "huber"
            if statement.noise is not None and too_large(own / statement.noise, 0.0, robust):
                return False
            chance = chance_of(statement, (residual / weighed.noise)[span], leverage[span])
            if chance < SETTINGS.chance:
                return False
            # No unknown has to explain what is noise in any case.
            noise = chance > NEGLIGIBLE and not found.place.slopes[span].any()
            if statement.noise is None and not (noise or self.explains(found, [(statement, span)])):
                return False
        return True

    def explains(self, found: Descent, sets: Sequence[tuple[Statement, slice]] | None = None) -> bool:
        """Tell whether residuals vary much less than measurements do, in given sets or in all."""
        plain, residual = self.plain(), found.place.residual
        for s, span in plain.measured if sets is None else sets:
            # Readings at one place differ by their noise alone: what is to be explained is how large they are.
            at_one_place = isinstance(s.place, AtPoints) and not np.ptp(s.place.points, axis=0).any()
            spread = size_of(plain.targets[span], False) if at_one_place else float(np.std(plain.targets[span]))
            if not s.exact and size_of(residual[span], s.loss == "huber") > MOST * spread:
                return False
        return True

    def tried(self, point: FloatArray, tol: float, near: Solution | None) -> Forward | None:
        """Solve at a point, or return None; at the very first one, raise."""
        try:
            return self.forward(point, tol, near)
        except (PiblsError, np.linalg.LinAlgError) as error:
            if isinstance(error, ProblemError) and near is None and self.starts == 1:
                raise
            return None

    def forward(self, point: FloatArray, tol: float, near: Solution | None = None) -> Forward:
        """Solve at a point; keep its cells or features."""
        vector = self.coordinates.vector(point)
        problem = self.parametric.at(vector)
        reason = ""
        # Wrong unknowns can make solutions rough that are smooth at the right ones: do not spend all on them.
        share = SETTINGS.share if tol > self.tol else 1.0
        if suits_lines(problem) or self.is_large:
            # Numbers that move by factors have no size but their own.
            scales = np.where(self.coordinates.logarithmic, 0.0, self.coordinates.scales)
            made = EvolutionForward.around(
                self.parametric, vector, tol, self.budget, self.seed, scales, self.until, share
            )
            if isinstance(made, EvolutionForward):
                return made
            reason = f" and it cannot be followed in time: {made.reason}"
        if not suits_cells(problem):
            raise ProblemError(
                f"Unknowns are found in problems of up to three coordinates, time included, or that can be followed in "
                f"time. This one has {len(problem.domain.coordinates)}{reason}."
            )
        found = CellForward.around(self.parametric, vector, tol, self.budget, self.seed, near, share)
        sensitivity = [stage.answer for stage in found.solution.diagnostics.stages if stage.answer is not None]
        if sensitivity and sensitivity[-1] > UNDETERMINED and not isinstance(find_evolution(problem), Evolution):
            raise LeftOpenError(
                f"Equations and conditions do not determine {', '.join(self.parametric.names)} where the unknowns are "
                "given, and measurements can make up for that only at points, where no function is unknown. Give "
                "conditions on the boundary and at the start; what is not known of them may be unknown numbers or "
                "functions itself."
            )
        return found
