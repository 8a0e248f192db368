"""Inverse problems: unknown numbers and functions, found together with the solution from measurements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pibls.budget import Budget
from pibls.errors import ProblemError
from pibls.inverse.answer import Answer
from pibls.inverse.attempts import Attempts
from pibls.inverse.descent import Descent, Place, place_at
from pibls.inverse.evolution_forward import EvolutionForward
from pibls.inverse.fitting_unknowns import Fits, LeftOpenError
from pibls.inverse.fixed import is_fixed, solve_fixed, unmeasured
from pibls.inverse.joint import leaves_open, solve_jointly, suits_joint
from pibls.inverse.response import Forward
from pibls.inverse.spread import farthest
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import Problem
from pibls.refinement import Cost, Course, Reason, Stop, refine
from pibls.refinement.standards import NEGLIGIBLE, SLIGHT
from pibls.runtime import blas_threads
from pibls.solution import Solution, Stage


def solve_inverse(
    problem: Problem, tol: float, budget: Budget, seed: int, report: Callable[..., None], *, uncertainty: bool = False
) -> Solution:
    """Find the unknowns of a problem and its solution from measurements; see :func:`pibls.solve`.

    With ``uncertainty`` nothing is measured: what priors leave open is carried on to the solution.

    >>> import sympy as sp
    >>> from pibls.geometry import Interval
    >>> from pibls.problem import Condition, Dirichlet, Observation, coordinates, field, unknown
    >>> x = coordinates("x")
    >>> u, k = field("u", x), unknown("k", bounds=(0, None))
    >>> line = Interval((x, 0, 1))
    >>> problem = Problem(-k * u.diff(x, 2) - 1, line, [Dirichlet(u, 0), Observation(u, [[0.3], [0.5]], [0.42, 0.5])])
    >>> found = solve_inverse(problem, 1e-6, Budget(10.0), 0, lambda *_: None)
    >>> round(found.parameters["k"].value, 6)
    0.25
    """
    if not uncertainty and is_fixed(problem):
        return solve_fixed(problem, tol, budget, seed, report)
    together = not uncertainty and suits_joint(problem)
    with blas_threads(most=1):
        if together and leaves_open(problem):
            return solve_jointly(problem, tol, budget, seed, report)
        search = Search(Fits.of(problem, tol, budget, seed), report)
        try:
            return search.spread() if uncertainty else search.run()
        except LeftOpenError:
            if not together:
                raise
            return solve_jointly(problem, tol, budget, seed, report)


@dataclass(eq=False)
class Search:
    """Unknowns by more and more accurate solutions, until errors of these do not move them."""

    fits: Fits
    report: Callable[..., None]

    def run(self) -> Solution:
        """Find the unknowns on coarse solutions, then on finer and finer ones until these do not matter."""
        fits = self.fits
        if not fits.parametric.measured:
            raise ProblemError(unmeasured(fits.parametric.problem))
        attempts = Attempts(fits, max(fits.tol, self._coarse))
        course: Course[Answer] = Course(fits.budget, None, self.report)
        refine(self, attempts.run(), course)
        answer = self.compare(self._renewed(course.comparisons[-1].found))
        far, sides = farthest(answer)
        if far is not answer.found:
            answer = self.compare(self._renewed(far))
        answer = replace(answer, sides=frozenset(sides))
        return answer.solution(attempts.ambiguous, fits.starts, fits.budget, self._priors(), slowed=attempts.slowed)

    def compare(self, found: Descent) -> Answer:
        """Find how far errors of solutions move the unknowns."""
        answer = Answer.of(self.fits.measurements(found.forward), found, self.fits.tol)
        # Functions, and fields that follow them, are not known better than what they are known from.
        return replace(answer, tol=max(answer.tol, answer.noise)) if self.fits.parametric.bases else answer

    def stage(self, found: Answer) -> Stage:
        """Return the record of an answer."""
        return Stage(self.fits.budget.elapsed, found.forward.solution.diagnostics.nodes, residual=found.rms)

    def is_met(self, found: Answer) -> bool:
        """Tell whether solutions are accurate enough, for themselves and for the unknowns."""
        least = NEGLIGIBLE * found.noise if self.fits.parametric.bases else 0.0
        enough = found.forward.tol <= self.fits.tol or found.forward.error <= least
        return enough and (
            found.estimate <= NEGLIGIBLE or (self._is_exact(found) and found.moved <= SLIGHT * self.fits.tol)
        )

    def _is_exact(self, found: Answer) -> bool:
        """Tell whether data have no noise but errors of solutions."""
        return found.rms <= SETTINGS.accuracy * found.forward.tol and not self.fits.parametric.bases

    def limit(self, found: Answer) -> Stop | None:
        """Return why solutions are not made more accurate, or None."""
        if found.forward.tol <= self._finest(found.forward) or found.forward.is_spent:
            return Stop(Reason.EXHAUSTED, "solutions are as accurate as can be afforded")
        return None

    def cost(self, found: Answer) -> Cost:
        """Return nothing: forward solutions keep to their share of the budget."""
        del found
        return Cost("a finer solution", 0.0)

    def finer(self, found: Answer) -> Descent | None:
        """Return the unknowns by more accurate solutions, if they can be had."""
        before, finest, place = found.forward.tol, self._finest(found.forward), found.found.place
        tol = min(self.fits.tol, before * SLIGHT)
        if self._is_exact(found) and found.moved > 0:
            # Unknowns that exact data determine have two digits more than solutions.
            tol = min(self.fits.tol, NEGLIGIBLE * before * SLIGHT * self.fits.tol / found.moved)
        tol = max(finest, tol)
        return self.fits.settled(place.point, tol, place.response)

    def _finest(self, forward: Forward) -> float:
        """Return the smallest tolerance of solutions; unknown functions are known to fewer digits."""
        return max(forward.finest, EvolutionForward.finest) if self.fits.parametric.bases else forward.finest

    def _renewed(self, found: Descent) -> Descent:
        """Return the end of a search with sensitivities made there: old ones do for steps, but not for deviations."""
        if not found.place.response.is_aged:
            return found
        place = place_at(found.forward, self.fits.measurements(found.forward), found.place.point, None)
        return found if place is None else replace(found, place=place)

    @property
    def _coarse(self) -> float:
        """Tolerance of solutions while unknowns are searched: well below the noise of all measurements together."""
        parametric, plain = self.fits.parametric, self.fits.plain()
        shares = [
            np.sqrt(np.mean(np.square(s.noise))) / plain.sizes[span][0] if s.noise is not None else 0.0
            for s, span in plain.measured
        ]
        per_unknown = max(len(plain.targets) / max(parametric.size, 1), 1.0)
        # How smooth functions are shows only where solutions follow whatever functions may do, if that can be afforded.
        least = self.fits.tol if parametric.bases and not self.fits.is_large else SETTINGS.coarse
        return float(np.clip(NEGLIGIBLE * min(shares) / np.sqrt(per_unknown), least, SLIGHT))

    def _priors(self) -> dict[str, str]:
        """Return how smooth unknown functions turned out to be."""
        found = {}
        for basis, own in zip(self.fits.parametric.bases, self.fits.smooth, strict=True):
            length = own.length * float(np.mean(basis.extent))
            found[f"smoothness of {basis.name}"] = f"size {own.size:.2g}, length {length:.2g}, order {own.order:g}"
        return found

    def spread(self) -> Solution:
        """Return the solution at the means of all priors, with their uncertainty."""
        fits = self.fits
        lacks = [str(k) for k in fits.parametric.problem.parameters if k.prior is None]
        if lacks or fits.parametric.bases or fits.parametric.observations:
            what = f"{lacks[0]} has no prior" if lacks else "it has unknown functions or measurements"
            raise ProblemError(
                f"uncertainty=True carries priors of unknown numbers to the solution, and {what}. Give every unknown a "
                "prior=(mean, deviation), or leave out 'uncertainty'."
            )
        point = fits.coordinates.point(fits.coordinates.means)
        forward = fits.forward(point, fits.tol)
        response = forward.respond(fits.coordinates.vector(point), None)
        nothing = Place(point, response, np.zeros(0), np.zeros((0, len(point))))
        return self.compare(Descent(forward, nothing, settled=True)).solution([], 1, fits.budget, {})
