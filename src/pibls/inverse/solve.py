"""Inverse problems: unknown numbers and functions, found together with the solution from measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from pibls.budget import Budget
from pibls.cells import suits_cells
from pibls.cells.loop import UNDETERMINED
from pibls.checks import FloatArray
from pibls.errors import PiblsError, ProblemError, SolveError
from pibls.inverse.answer import Answer
from pibls.inverse.basis import Basis
from pibls.inverse.by_cells import ByCells
from pibls.inverse.by_lines import ByLines
from pibls.inverse.descent import Descent, Place, place_at, search
from pibls.inverse.evidence import Linear, Smoothness, most_probable
from pibls.inverse.fixed import is_fixed, solve_fixed, unmeasured
from pibls.inverse.joint import leaves_open, solve_jointly, suits_joint
from pibls.inverse.judge import alike, size_of, too_large
from pibls.inverse.measurements import Measurements
from pibls.inverse.parametric import Parametric
from pibls.inverse.profile import Profile
from pibls.inverse.response import Forward, Plain, forwarded
from pibls.inverse.thresholds import SETTINGS
from pibls.inverse.unknowns import Coordinates
from pibls.inverse.unseen import turns
from pibls.lines import Evolution, find_evolution, suits_lines
from pibls.problem import AtPoints, Problem
from pibls.problem.evaluate import compile_function
from pibls.refinement import Cost, Course, Reason, Stop, refine
from pibls.refinement.patience import UNKNOWNS
from pibls.runtime import blas_threads
from pibls.solution import Solution, Stage

__all__ = ["solve_inverse"]

_SMOOTH = Smoothness(1.0, 0.5, 3.5)  # before data are seen; sizes are those of the function itself


def solve_inverse(
    problem: Problem, tol: float, budget: Budget, seed: int, report: Callable[..., None], *, uncertainty: bool = False
) -> Solution:
    """Find the unknowns of a problem and its solution from measurements; see :func:`pibls.solve`.

    With ``uncertainty`` nothing is measured: what priors leave open is carried on to the solution.

    Examples
    --------
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
        search = Search.of(problem, tol, budget, seed, report)
        try:
            return search.spread() if uncertainty else search.run()
        except LeftOpenError:
            if not together:
                raise
            return solve_jointly(problem, tol, budget, seed, report)


class LeftOpenError(ProblemError):
    """Equations and conditions leave fields open even where all unknowns are given."""


class _Level(NamedTuple):
    """The end of a search with solutions of some tolerance."""

    found: Descent
    forward: Forward
    tol: float


class _Answered(NamedTuple):
    """A level, and the unknowns with their uncertainty."""

    level: _Level
    answer: Answer

    @property
    def estimate(self) -> float:
        """How far errors of solutions move the unknowns, in standard deviations."""
        return self.answer.shift_share


@dataclass(eq=False)
class Search:
    """One search: its problem, its settings and its state."""

    parametric: Parametric
    coordinates: Coordinates
    tol: float
    budget: Budget
    seed: int
    report: Callable[..., None]
    smooth: list[Smoothness]
    ambiguous: list[FloatArray] = field(default_factory=list)
    starts: int = 1
    slowed: bool = False
    until: float = np.inf

    @classmethod
    def of(cls, problem: Problem, tol: float, budget: Budget, seed: int, report: Callable[..., None]) -> Search:
        """Prepare a search."""
        bases = tuple(Basis.of(f, problem.domain) for f in problem.unknown_functions)
        parametric = Parametric(problem, bases)
        first = [
            np.zeros(0),
            *(_first(f, basis, problem) for f, basis in zip(problem.unknown_functions, bases, strict=True)),
        ]
        coordinates = Coordinates.of(parametric, np.concatenate(first))
        sizes = [abs(float(own[0])) or 1.0 for own in first[1:]]
        smooth = [replace(_SMOOTH, size=size) for size in sizes]
        return cls(parametric, coordinates, tol, budget, seed, report, smooth)

    @property
    def _numbers(self) -> int:
        return len(self.parametric.problem.parameters)

    def run(self) -> Solution:
        """Find the unknowns on coarse solutions, then on finer and finer ones until these do not matter."""
        if not self.parametric.measured:
            raise ProblemError(unmeasured(self.parametric.problem))
        tol = max(self.tol, self._coarse)
        course: Course[_Answered] = Course(self.budget, UNKNOWNS, self.report)
        refine(self, _Level(*self._found(tol), tol), course)
        found, forward = course.every[-1].level.found, course.every[-1].level.forward
        found = self._renewed(found, forward)
        answer = Answer.of(self._measurements(forward), found, forward, self.coordinates, self.tol)
        profile = Profile(forward, self._measurements(forward), self.coordinates, found, answer.covariance)
        far, sides = profile.farthest()
        if far is not found:
            found = self._renewed(far, forward)
            answer = Answer.of(self._measurements(forward), found, forward, self.coordinates, self.tol)
        answer = replace(answer, sides=frozenset(sides))
        return answer.solution(self.ambiguous, self.starts, self.budget, self._priors(), slowed=self.slowed)

    def compare(self, level: _Level) -> _Answered:
        """Find how far errors of solutions move the unknowns."""
        forward = level.forward
        return _Answered(
            level, Answer.of(self._measurements(forward), level.found, forward, self.coordinates, self.tol)
        )

    def stage(self, found: _Answered) -> Stage:
        """Return the record of a level."""
        nodes = found.level.forward.solution.diagnostics.nodes
        return Stage(self.budget.elapsed, nodes, residual=found.answer.rms)

    def is_met(self, found: _Answered) -> bool:
        """Tell whether solutions are accurate enough, for themselves and for the unknowns."""
        return found.estimate <= SETTINGS.negligible and found.level.tol <= self.tol

    def limit(self, found: _Answered) -> Stop | None:
        """Return why solutions are not made more accurate, or None."""
        level = found.level
        if level.tol <= self._finest(level.forward) or level.forward.is_spent:
            return Stop(Reason.EXHAUSTED, "solutions are as accurate as can be afforded")
        return None

    def cost(self, found: _Answered) -> Cost:
        """Return nothing: forward solutions keep to their share of the budget."""
        del found
        return Cost("a finer solution", 0.0)

    def finer(self, found: _Answered) -> _Level | None:
        """Return the unknowns by more accurate solutions, if they can be had."""
        level, finest = found.level, self._finest(found.level.forward)
        leap = found.answer.rms <= SETTINGS.accuracy * level.tol and not self.parametric.bases
        tol = finest if leap else max(finest, min(self.tol, level.tol * SETTINGS.slight))
        place = level.found.place
        settled = self._settled(place.point, tol, place.response)
        return None if settled is None else _Level(*settled, tol)

    def _finest(self, forward: Forward) -> float:
        """Return the smallest tolerance of solutions; unknown functions are known to fewer digits."""
        return max(forward.finest, ByLines.finest) if self.parametric.bases else forward.finest

    def _renewed(self, found: Descent, forward: Forward) -> Descent:
        """Return the end of a search with answers made there: old ones do for steps, but not for deviations."""
        if not found.place.response.is_aged:
            return found
        place = place_at(forward, self._measurements(forward), self.coordinates, found.place.point, None)
        return found if place is None else replace(found, place=place)

    @property
    def _coarse(self) -> float:
        """Tolerance of solutions while unknowns are searched: well below the noise of all measurements together."""
        plain = self._plain(0.0)
        shares = [
            np.sqrt(np.mean(np.square(s.noise))) / plain.sizes[span][0] if s.noise is not None else 0.0
            for s, span in zip(self.parametric.measured, plain.spans, strict=False)
        ]
        per_unknown = max(len(plain.targets) / max(self.parametric.size, 1), 1.0)
        # How smooth functions are shows only where solutions follow whatever functions may do, if that can be afforded.
        least = self.tol if self.parametric.bases and not self._is_large else SETTINGS.coarse
        return float(np.clip(SETTINGS.negligible * min(shares) / np.sqrt(per_unknown), least, SETTINGS.slight))

    @property
    def _is_large(self) -> bool:
        """Whether cells over space and time are too many, because space alone has two dimensions or more."""
        domain = self.parametric.problem.domain
        return domain.time is not None and len(domain.coordinates) > 2

    def _priors(self) -> dict[str, str]:
        """Return how smooth unknown functions turned out to be."""
        found = {}
        for basis, own in zip(self.parametric.bases, self.smooth, strict=True):
            length = own.length * float(np.mean(basis.extent))
            found[f"smoothness of {basis.name}"] = f"size {own.size:.2g}, length {length:.2g}, order {own.order:g}"
        return found

    def spread(self) -> Solution:
        """Return the solution at the means of all priors, with their uncertainty."""
        lacks = [str(k) for k in self.parametric.problem.parameters if k.prior is None]
        if lacks or self.parametric.bases or self.parametric.observations:
            what = f"{lacks[0]} has no prior" if lacks else "it has unknown functions or measurements"
            raise ProblemError(
                f"uncertainty=True carries priors of unknown numbers to the solution, and {what}. Give every unknown a "
                "prior=(mean, deviation), or leave out 'uncertainty'."
            )
        point = self.coordinates.point(self.coordinates.means)
        forward = self._forward(point, self.tol)
        response = forward.respond(self.coordinates.vector(point), None)
        nothing = Place(point, response, np.zeros(0), np.zeros((0, len(point))))
        ended = Descent(nothing, 0.0, True)
        answer = Answer.of(self._measurements(forward), ended, forward, self.coordinates, self.tol)
        return answer.solution([], 1, self.budget, {})

    def _found(self, tol: float) -> tuple[Descent, Forward]:
        """Search from the first start, and from others if that comes to nothing or bounds leave room."""
        best = self._from(self.coordinates.start, tol, slower=True)
        for start in (
            self.coordinates.others(self._numbers, min(2 + 2 * self._numbers, SETTINGS.starts)) if self._numbers else []
        ):
            if best is not None and (self._good(best[0], tol) or best[1].is_spent):
                break
            self.starts += 1
            other = self._settled(start, tol, None)
            if other is not None and (best is None or self._size(other[0]) < 0.5 * self._size(best[0])):
                best = other
        if best is None:
            raise SolveError(
                "The problem cannot be solved at any start of its unknowns. Give starts at which it has a solution, as "
                "unknown('k', start=1.0), and bounds where it has one."
            )
        if self._good(best[0], tol):
            self._look_elsewhere(*best, tol)
            self._look_slower(*best, tol)
        return best

    def _from(self, start: FloatArray, tol: float, *, slower: bool = False) -> tuple[Descent, Forward] | None:
        """Search from a start, with early measurements first where it explains them worse than a constant.

        From ``slower`` starts first where it turns more often than measurements can show, and nothing fits nearby.
        """
        best = None
        first = self._tried(start, tol, None)
        if first is None:
            return None
        if slower and turns(self.parametric, Plain(first.solution, 0)) > 1.0:
            here = self._descended(first, start, None, rough=True)
            if here is not None and not self._good(here, tol):
                best = self._slower(here, first, tol)
                self.slowed = best is not None
        if best is None and self._astray(first):
            best = self._by_and_by(start, tol)
        if best is None or not self._good(best[0], tol):
            best = self._settled(start, tol, None, first) or best
        return best

    def _look_elsewhere(self, found: Descent, forward: Forward, tol: float) -> None:
        """Look for other values that fit as well, where bounds say that a number may be anywhere between."""
        bounds = [k.bounds for k in self.parametric.problem.parameters]
        if not any(b is not None and None not in b for b in bounds):
            return
        measurements = self._measurements(forward)
        for start in self.coordinates.others(self._numbers, SETTINGS.alternatives):
            here = place_at(forward, measurements, self.coordinates, start, None)
            if here is None or forward.is_spent:
                continue
            self.starts += 1
            self._compare(found, search(forward, measurements, self.coordinates, here), forward, tol)

    def _compare(self, found: Descent, other: Descent, forward: Forward, tol: float) -> None:
        """Keep values that fit as well as those found and are others."""
        vector = self.coordinates.vector(other.place.point)
        known = any(np.allclose(vector, one, rtol=SETTINGS.negligible) for one in self.ambiguous)
        if self._good(other, tol) and self._apart(found, other, forward) and not known:
            self.ambiguous.append(vector)

    def _look_slower(self, found: Descent, forward: Forward, tol: float) -> None:
        """Look for slower solutions that fit as well, where this one turns more often than measurements can show."""
        if turns(self.parametric, found.place.response) > 1.0:
            other = self._slower(found, forward, tol)
            if other is not None:
                self._compare(found, other[0], forward, tol)

    def _slower(self, found: Descent, forward: Forward, tol: float) -> tuple[Descent, Forward] | None:
        """Search from starts that are slower, for the first one that fits."""
        for start in self._slower_starts(found, forward):
            self.starts += 1
            other = self._from(start, tol)
            if other is not None and self._good(other[0], tol):
                return other
        return None

    def _slower_starts(self, found: Descent, forward: Forward) -> Iterator[FloatArray]:
        """Yield starts where solutions turn seldom enough: every number in turn, halved or doubled till then."""
        measurements = self._measurements(forward)
        for number, factor in product(range(self._numbers), (0.5, 2.0)):
            point, now = found.place.point, turns(self.parametric, found.place.response)
            before = np.inf
            while SETTINGS.most < now <= (1.0 - SETTINGS.negligible) * before and not forward.is_spent:
                vector = self.coordinates.vector(point)
                vector[number] *= factor
                point = np.clip(self.coordinates.point(vector), self.coordinates.low, self.coordinates.high)
                there = place_at(forward, measurements, self.coordinates, point, None)
                before, now = now, np.inf if there is None else turns(self.parametric, there.response)
            if now <= SETTINGS.most:
                yield point

    @cached_property
    def _times(self) -> FloatArray | None:
        """The times of all measurements in order, if they are known."""
        domain = self.parametric.problem.domain
        points = [s.place.points for s in self.parametric.observations if isinstance(s.place, AtPoints)]
        if domain.time is None or len(points) < len(self.parametric.observations) or self.parametric.bases:
            return None
        return np.sort(np.concatenate([own[:, domain.coordinates.index(domain.time)] for own in points]))

    def _astray(self, forward: Forward) -> bool:
        """Tell whether a constant would explain measurements better than a solution, where some of them are early."""
        if self._times is None:
            return False
        measurements = self._plain(0.0)
        residual = forwarded(self.parametric, forward.solution, forward.vector) - measurements.targets
        return any(np.std(residual[span]) > np.std(measurements.targets[span]) for span in measurements.spans)

    def _by_and_by(self, start: FloatArray, tol: float) -> tuple[Descent, Forward] | None:
        """Search with early measurements first, then with later ones: solutions that part later are alike at first."""
        assert self._times is not None
        found, point, count = None, start, SETTINGS.early * self.parametric.size
        while count < len(self._times):
            self.until = float(self._times[count - 1])
            found = self._settled(point, tol, None)
            if found is None:
                break
            point, count = found[0].place.point, SETTINGS.early * count
        self.until = np.inf
        return found and self._settled(point, tol, None)

    def _apart(self, one: Descent, two: Descent, forward: Forward) -> bool:
        """Whether two estimates differ in a direction the data determine."""
        gap = two.place.point - one.place.point
        seen = one.place.slopes @ gap / self._measurements(forward).weighed(one.place.residual).noise
        return bool((np.abs(gap[: self._numbers]) > SETTINGS.negligible).any() and np.linalg.norm(seen) > 1.0)

    def _size(self, found: Descent) -> float:
        """Return the size of residuals, relative to the measurements."""
        return float(np.mean(np.square(found.place.residual / self._plain(0.0).sizes)))

    def _good(self, found: Descent, tol: float) -> bool:
        """Tell whether residuals look like noise, or are as small as solutions are accurate."""
        residual, measurements = found.place.residual, self._plain(tol)
        if np.sqrt(np.mean(np.square(residual / measurements.sizes))) <= SETTINGS.accuracy * tol:
            return True
        extents = np.ptp(np.asarray(self.parametric.problem.domain.bounds), axis=1)
        for statement, span in zip(self.parametric.observations, measurements.spans, strict=True):
            own, robust = residual[span], statement.loss == "huber"
            if statement.noise is not None:
                if too_large(own / statement.noise, 0.0, robust):
                    return False
            elif (
                not statement.exact
                and size_of(own, robust) > SETTINGS.most * np.std(measurements.targets[span]) + 1e-300
            ):
                return False
            if alike(statement, own, extents):
                return False
        return True

    def _tried(self, point: FloatArray, tol: float, near: Solution | None) -> Forward | None:
        """Solve at a point, or return None; at the very first one, raise."""
        try:
            return self._forward(point, tol, near)
        except (PiblsError, np.linalg.LinAlgError) as error:
            if isinstance(error, ProblemError) and near is None and self.starts == 1:
                raise
            return None

    def _settled(
        self, point: FloatArray, tol: float, near: Any, first: Forward | None = None
    ) -> tuple[Descent, Forward] | None:
        """Search with cells or features that were made for the place, or for one nearby."""
        found: tuple[Descent, Forward] | None = None
        for _ in range(SETTINGS.rounds):
            forward, first = first or self._tried(point, tol, None if found is None else found[1].solution), None
            if forward is None:
                return found
            descent = self._descended(forward, point, near, tol > self.tol)
            if descent is None:
                return found
            found = descent, forward
            moved = self._moved(point, descent.place.point)
            point = descent.place.point
            # For numbers that are about right, finer solutions will be made anew in any case.
            enough = tol > self.tol and not self.parametric.bases and self._good(descent, tol)
            if not moved or forward.is_spent or enough:
                break
            near = descent.place.response
        return found

    def _moved(self, before: FloatArray, after: FloatArray) -> bool:
        """Tell whether the unknowns have moved so far that cells or features may no longer suit them."""
        gap = np.abs(after - before)
        functions = slice(self._numbers, None)
        share = float(np.linalg.norm(gap[functions])) / max(float(np.linalg.norm(after[functions])), 1e-300)
        return float(gap[: self._numbers].max(initial=0.0)) > SETTINGS.nonlinear or share > SETTINGS.nonlinear

    def _descended(self, forward: Forward, point: FloatArray, near: Any, rough: bool) -> Descent | None:
        """Search on given cells or features, and find how smooth unknown functions are on the way."""
        here = place_at(forward, self._measurements(forward), self.coordinates, point, forward.usable(near))
        if here is None:
            return None
        found = search(
            forward, self._measurements(forward), self.coordinates, here, rough=rough, nearby=near is not None
        )
        for _ in range(SETTINGS.rounds if self.parametric.bases else 0):
            before = list(self.smooth)
            self._weigh_evidence(forward, found)
            if all(map(Smoothness.is_near, before, self.smooth)) or forward.is_spent:
                break
            measurements = self._measurements(forward)
            found = search(forward, measurements, self.coordinates, found.place, rough=rough, nearby=True)
        return found

    def _weigh_evidence(self, forward: Forward, found: Descent) -> None:
        measurements, place = self._measurements(forward), found.place
        weighed = measurements.weighed(place.residual)
        factors = (np.sqrt(weighed.weights) / weighed.noise)[:, None]
        spans = self.parametric.spans()
        own = np.concatenate([np.arange(s.start + 1, s.stop) for s in spans])
        # Numbers stay as they are: they could explain a function away that is known up to a factor.
        others = np.setdiff1d(np.arange(self._numbers, len(place.point)), own)
        rows = place.slopes * factors
        right = rows[:, own] @ (place.point[own] - self._means[own - self._numbers]) - place.residual * factors[:, 0]
        priors = [f.prior for f in self.parametric.problem.unknown_functions]
        fixed = [
            (None, None) if p is None else (p.size, self._relative(p.length, b))
            for p, b in zip(priors, self.parametric.bases, strict=True)
        ]
        data = Linear.of(rows[:, own], right, rows[:, others])
        least = float(np.sqrt(np.mean(np.square(measurements.floor * measurements.sizes / weighed.noise))))
        floor = max(least, SETTINGS.rounding) if measurements.estimated else None
        self.smooth = most_probable(data, self.parametric.bases, self.smooth, fixed, floor)

    def _relative(self, length: float | None, basis: Basis) -> float | None:
        return None if length is None else float(length / np.mean(basis.extent))

    @property
    def _means(self) -> FloatArray:
        return self.coordinates.start[self._numbers :]

    def _plain(self, floor: float) -> Measurements:
        deviations = [
            np.concatenate([[np.inf], np.sqrt(own.variances(basis))])
            for basis, own in zip(self.parametric.bases, self.smooth, strict=True)
        ]
        left_out = tuple(own.left_out(basis) for own, basis in zip(self.smooth, self.parametric.bases, strict=True))
        every = np.concatenate([np.zeros(0), *deviations])
        return Measurements(self.parametric, floor, self._means, every, self.until, left_out)

    def _measurements(self, forward: Forward) -> Measurements:
        # Functions could follow errors of solutions as if they were data; a few numbers cannot.
        share = 1.0 if self.parametric.bases else SETTINGS.negligible
        return self._plain(share * min(forward.error, SETTINGS.coarse))

    def _forward(self, point: FloatArray, tol: float, near: Solution | None = None) -> Forward:
        """Solve at a point; keep its cells or features."""
        vector = self.coordinates.vector(point)
        problem = self.parametric.at(vector)
        reason = ""
        # Wrong unknowns can make solutions rough that are smooth at the right ones: do not spend all on them.
        share = SETTINGS.share if tol > self.tol else 1.0
        if suits_lines(problem) or self._is_large:
            # Numbers that move by factors have no size but their own.
            scales = np.where(self.coordinates.logarithmic, 0.0, self.coordinates.scales)
            made = ByLines.around(self.parametric, vector, tol, self.budget, self.seed, scales, self.until, share)
            if isinstance(made, ByLines):
                return made
            reason = f" and it cannot be followed in time: {made.reason}"
        if not suits_cells(problem):
            raise ProblemError(
                f"Unknowns are found in problems of up to three coordinates, time included, or that can be followed in "
                f"time. This one has {len(problem.domain.coordinates)}{reason}."
            )
        found = ByCells.around(self.parametric, vector, tol, self.budget, self.seed, near, share)
        answers = [stage.answer for stage in found.solution.diagnostics.stages if stage.answer is not None]
        if answers and answers[-1] > UNDETERMINED and not isinstance(find_evolution(problem), Evolution):
            raise LeftOpenError(
                f"Equations and conditions do not determine {', '.join(self.parametric.names)} where the unknowns are "
                "given, and measurements can make up for that only at points, where no function is unknown. Give "
                "conditions on the boundary and at the start; what is not known of them may be unknown numbers or "
                "functions itself."
            )
        return found


def _first(function: Any, basis: Basis, problem: Problem) -> FloatArray:
    """Return the coefficients of the start of a function: a constant, or the nearest to an expression."""
    found = np.zeros(basis.size)
    if function.start is None:
        found[0] = 1.0 if _is_factor(function, problem) else 0.0
        return found
    start = compile_function(function.start, problem.domain.coordinates)
    if start.constant is not None:
        found[0] = start.constant
        return found
    X = problem.domain.sample(8 * basis.size, "kronecker", 0)
    matrix = basis.values(X, (0,) * X.shape[1])
    return np.asarray(np.linalg.lstsq(matrix, start(X), rcond=1e-8)[0])


def _is_factor(function: Any, problem: Problem) -> bool:
    """Tell whether a function multiplies fields, rather than standing by itself like a source."""
    terms = [(t, s.form) for s in problem.statements for t in s.form.terms if t.field == function.label]
    return any(set(form.slots) & term.coefficient.free_symbols for term, form in terms)
