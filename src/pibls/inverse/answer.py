"""From the end of a search to an answer: values with intervals, undetermined directions, and misfits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import stdtrit

from pibls.budget import Budget
from pibls.checks import FloatArray
from pibls.inverse.coordinates import Coordinates
from pibls.inverse.descent import Descent, place_at
from pibls.inverse.identifiability import Undetermined, find_undetermined
from pibls.inverse.measurements import Measurements, Weighed, chance_of, far_out, size_of, too_large
from pibls.inverse.parametric import substituted
from pibls.inverse.response import Forward, finer, forwarded
from pibls.inverse.smoothness import spanned
from pibls.inverse.spread import Spread
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import MultiIndex, Statement
from pibls.refinement import SMALLEST, Reason, Stop, verdict
from pibls.refinement.standards import MOST, NEGLIGIBLE
from pibls.solution import Solution
from pibls.solution.parameters import Parameter, Parameters
from pibls.solution.residuals import ResidualTable
from pibls.status import Status


@dataclass(frozen=True, eq=False)
class Answer:
    """The outcome of a search, in numbers."""

    measurements: Measurements
    weighed: Weighed  # how noisy these are
    found: Descent  # where the search ended
    free: float  # how many unknowns the data determine
    covariance: FloatArray  # of the coordinates, without discretisation
    shift: FloatArray  # by how much the error of solutions moves each coordinate
    error: FloatArray  # by how much predictions are wrong
    tol: float  # what was asked for
    # what predictions must change by to count, in units of the noise, where errors of solutions do not say that
    accuracy: float | None = None
    sides: frozenset[tuple[int, float]] = frozenset()  # numbers that data do not limit on one side, with its sign

    @classmethod
    def of(cls, measurements: Measurements, found: Descent, tol: float) -> Answer:
        """Linearise about the end of a search."""
        place, error = found.place, _error(measurements, found.forward)
        first = Spread.of(measurements, place)
        # What solutions are wrong by, and unknowns do not make up for, is no noise: it moves unknowns by itself.
        left = place.residual - error + place.slopes @ (first.gain @ error)
        rest = replace(measurements, floor=NEGLIGIBLE * measurements.floor)
        spread = Spread.of(rest, replace(place, residual=left))
        free, shift = spread.free + measurements.taken, spread.gain @ error
        return cls(measurements, spread.weighed, found, free, spread.covariance, shift, error, tol)

    @property
    def forward(self) -> Forward:
        """The cells or features that solutions were made with."""
        return self.found.forward

    @property
    def coordinates(self) -> Coordinates:
        """Coordinates of the unknowns."""
        return self.measurements.coordinates

    @property
    def _degrees(self) -> float:
        """Degrees of freedom that the noise was estimated with; infinite where it is given."""
        return len(self.found.place.residual) - self.free if self.measurements.estimated else np.inf

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(map(str, self.measurements.parametric.problem.parameters))

    @property
    def rms(self) -> float:
        """Residuals relative to the size of the measurements."""
        residual = self.found.place.residual
        return float(np.sqrt(np.mean(np.square(residual / self.measurements.sizes)))) if len(residual) else 0.0

    @property
    def noise(self) -> float:
        """The noise of the noisiest set, relative to its measurements."""
        relative = np.square(self.weighed.noise / self.measurements.sizes)
        return float(np.sqrt(max((np.mean(relative[span]) for _, span in self.measurements.measured), default=0.0)))

    @property
    def estimate(self) -> float:
        """The largest shift by the error of solutions, in standard deviations."""
        deviations = np.sqrt(np.diag(self.covariance))
        return float((np.abs(self.shift) / np.maximum(deviations, 1e-300)).max(initial=0.0))

    @property
    def moved(self) -> float:
        """The largest shift by the error of solutions, as a share of the size of an unknown."""
        sizes = np.where(self.coordinates.logarithmic, 1.0, np.maximum(np.abs(self.found.place.point), 1e-300))
        return float((np.abs(self.shift) / sizes).max(initial=0.0))

    @cached_property
    def undetermined(self) -> Undetermined:
        """Directions that the data do not determine."""
        place, numbers = self.found.place, len(self._names)
        sizes, vector = self.coordinates.sizes(place.point), self.coordinates.vector(place.point)
        # A sensor may sit where a field that is large elsewhere is zero: errors of the field are all that it sees.
        doubt = SETTINGS.accuracy * self._inaccuracy if self.accuracy is None else 0.0
        reach = doubt * self.measurements.reach(place.response, vector) * self.coordinates.rates(place.point)
        waves = np.arange(len(vector)) >= numbers
        seen = replace(place, slopes=np.where(waves & (np.abs(place.slopes) <= reach), 0.0, place.slopes))
        rows, rates = self.weighed.rows(seen)[0] * sizes, self.coordinates.rates(place.point) * sizes
        own, others = rows[:, :numbers], rows[:, numbers:]
        # Unknown functions may make up for what numbers do.
        basis = _basis(np.column_stack([others, self._resized(rows)]))
        alone, own = own, own - basis @ (basis.T @ own)
        wrong = (reach * sizes / self.weighed.noise[:, None])[:, :numbers]
        wrong = wrong if self.accuracy is None else self.accuracy * np.eye(numbers)
        logarithmic = self.coordinates.logarithmic[:numbers]

        def change(moved: FloatArray) -> float:
            point = self.coordinates.point(np.concatenate([moved, vector[numbers:]]))
            there = place_at(self.forward, self.measurements, point, place.response)
            if there is None:
                return np.inf
            gap = self.weighed.rows(there)[1] - self.weighed.rows(place)[1]
            return float(np.linalg.norm(gap - basis @ (basis.T @ gap)))

        replaced = np.linalg.norm(alone, axis=0) > np.maximum(np.linalg.norm(wrong, axis=0), 1.0)
        found = find_undetermined(
            own, wrong, self._names, vector[:numbers], rates[:numbers], logarithmic, change, replaced
        )
        found = replace(found, remarks=(*found.remarks, *self._open_functions(rows / sizes)))
        if not found.remarks or not self.misfits:
            return found
        ended = ", ".join(f"{n} = {v:.4g}" for n, v in zip(self._names, vector, strict=False))
        first, *more = (f"There the{remark.removeprefix('The')}" for remark in found.remarks)
        return replace(found, remarks=(f"The search ended at {ended}. {first}", *more))

    @property
    def _inaccuracy(self) -> float:
        """The estimated error of solutions, as far as that is above round-off."""
        return max(self.forward.solution.error_estimate or 0.0, SMALLEST)

    def _open_functions(self, rows: FloatArray) -> Iterator[str]:
        """Yield a remark on every function that the data determine up to a constant.

        Solutions of which no digit is known do not tell what data see.
        """
        if self._inaccuracy >= 1.0:
            return
        accuracy = float(np.linalg.norm(self._inaccuracy * self.measurements.sizes / self.weighed.noise))
        point, m, data = self.found.place.point, self.measurements, slice(len(self.found.place.residual))
        for basis, span in zip(m.parametric.bases, m.parametric.spans(), strict=True):
            waves = slice(span.start + 1 - len(self._names), span.stop - len(self._names))
            size = max(float(np.linalg.norm(v)) for v in (point[span], m.deviations[waves]))
            others = _basis(np.delete(rows, span.start, axis=1))
            own = size * rows[:, span.start]
            if np.linalg.norm(own - others @ (others.T @ own)) <= max(accuracy, 1.0 / SETTINGS.largest):
                seen = np.linalg.norm(size * rows[data, span]) > accuracy
                yield (
                    f"The data do not determine {basis.name}: any constant may be added to it."
                    if seen
                    else f"The data do not depend on {basis.name}: it is not determined."
                )

    def _resized(self, rows: FloatArray) -> FloatArray:
        """Return the change of functions that grow as a whole: no prior objects where data determine their size."""
        m, count, found = self.measurements, len(self.found.place.residual), []
        functions = m.parametric.problem.unknown_functions
        for function, span in zip(functions, m.parametric.spans(), strict=True):
            own = slice(span.start - len(self._names), span.stop - len(self._names))
            if function.prior is None or function.prior.size is None:
                column = rows[:, span] @ (self.found.place.point[span] - m.means[own])
                found.append(np.where(np.arange(len(rows)) < count, column, 0.0))
        return np.array(found).reshape(-1, len(rows)).T

    @cached_property
    def parameters(self) -> Parameters:
        """The numbers with their uncertainty."""
        numbers, place = len(self._names), self.found.place
        deviations = np.sqrt(np.diag(self.covariance)[:numbers] + np.square(self.shift[:numbers]))
        factor = float(stdtrit(max(self._degrees, 1.0), 0.975)) if self._degrees >= 0.5 else np.inf
        lost = self.undetermined.numbers
        rates = self.coordinates.rates(place.point)
        entries = []
        for i, name in enumerate(self._names):
            open_ends = np.array([-np.inf if (i, -1.0) in self.sides else 0, np.inf if (i, 1.0) in self.sides else 0])
            ends = place.point[i] + factor * deviations[i] * np.array([-1.0, 1.0]) + open_ends
            ends = np.clip(ends, self.coordinates.low[i], self.coordinates.high[i])
            moved = (np.where(np.arange(len(place.point)) == i, end, place.point) for end in ends)
            low, high = (float(self.coordinates.vector(point)[i]) for point in moved)
            value, deviation = float(self.coordinates.vector(place.point)[i]), float(deviations[i] * rates[i])
            if np.isinf(factor):
                deviation = factor  # as many unknowns as data, which then do not tell how noisy they are
            share = float(abs(self.shift[i]) * rates[i])
            nan = float("nan")
            entries.append(
                Parameter(name, nan, float("inf"), (nan, nan))
                if lost[i]
                else Parameter(name, value, deviation, (low, high), share)
            )
        lacks = self.undetermined
        return Parameters(tuple(entries), self._correlation(lost), lacks.remarks, lacks.directions, self._noise())

    def _correlation(self, lost: Any) -> FloatArray:
        numbers = len(lost)
        shift = self.shift[:numbers]
        whole = self.covariance[:numbers, :numbers] + np.outer(shift, shift)
        roots = np.sqrt(np.maximum(np.diag(whole), 1e-300))
        found = whole / np.outer(roots, roots)
        found[lost, :] = np.nan
        found[:, lost] = np.nan
        return np.asarray(found)

    def _noise(self) -> dict[str, float]:
        noise = self.weighed.noise
        return {s.name: float(np.sqrt(np.mean(np.square(noise[span])))) for s, span in self.measurements.measured}

    def _larger(self) -> Iterator[tuple[Statement, slice, float]]:
        """Yield the sets that are missed by more than solutions are wrong by, and by how much."""
        least = max(self.tol, SETTINGS.coarse) if self.measurements.parametric.bases else self.tol
        for s, span in self.measurements.measured:
            size = size_of(self.found.place.residual[span], s.loss == "huber")
            error = float(np.sqrt(np.mean(np.square(self.error[span]))))
            if size > max(SETTINGS.sure * error, least * float(self.measurements.sizes[span][0])):
                yield s, span, size

    @cached_property
    def misfits(self) -> list[str]:
        """Say which residuals do not look like noise."""
        residual, found = self.found.place.residual, []
        leverage = self.weighed.leverage(self.found.place)
        for s, span, size in self._larger():
            scaled, robust = residual[span] / self.weighed.noise[span], s.loss == "huber"
            if s.exact:
                found.append(f"values of {s.name}, which have no noise, are missed by {size:.1g}")
                continue
            free = self.free * len(scaled) / len(residual)
            if s.noise is not None and too_large(scaled, free, robust):
                times = size_of(scaled, robust) / np.sqrt(max(1.0 - free / len(scaled), 1.0 / len(scaled)))
                found.append(f"residuals of {s.name} are {times:.2g} times as large as the stated noise")
            elif (chance := chance_of(s, scaled, leverage[span])) < SETTINGS.chance:
                found.append(
                    f"residuals of {s.name} have the same sign in whole regions, which noise has with a probability of "
                    f"{chance:.0e}"
                )
        return found

    def _outliers(self) -> Iterator[str]:
        """Say which sets have a few readings that are off by more than noise of one size."""
        leverage, scaled = self.weighed.leverage(self.found.place), self.found.place.residual / self.weighed.noise
        for s, span, _ in self._larger():
            count, chance = far_out(scaled[span], leverage[span])
            if count and s.loss != "huber" and not s.exact:
                yield (
                    f"{count} of {len(scaled[span])} residuals of {s.name} are as much larger than the others as noise "
                    f"makes them with a probability of {chance:.0e}. Give loss='huber', or the noise of each value."
                )

    def solution(
        self,
        ambiguous: Sequence[FloatArray],
        starts: int,
        budget: Budget,
        priors: Mapping[str, str],
        *,
        slowed: bool = False,
    ) -> Solution:
        """Return everything as a solution, which may have been looked for among those slower than the start."""
        parametric, made = self.measurements.parametric, self.forward.solution
        vector = self.coordinates.vector(self.found.place.point)
        factor = self._factor()
        network, posterior = self.forward.banded(self.found.place.response, factor, self._known(vector, factor))
        posterior = replace(posterior, degrees=max(self._degrees, 1.0))
        problem = substituted(parametric.problem, parametric.replacements(vector))
        weights = np.eye(len(problem.fields), network.size)
        status, message = self._verdict(ambiguous, slowed)
        settings = {**made.diagnostics.settings, "starts": starts, **priors}
        record = replace(made.diagnostics, settings=settings, message=message, seconds={"total": budget.elapsed})
        found = Solution(
            problem, network, weights, status, record, made.error_estimate, posterior, parameters=self.parameters
        )
        return replace(found, diagnostics=replace(record, residuals=ResidualTable(found)))

    def _factor(self) -> FloatArray:
        """Return a factor of the covariance of the unknowns themselves, with as few columns as have a share in it.

        The first is the move that errors of solutions make: fields have these errors too.
        """
        rates = self.coordinates.rates(self.found.place.point)
        rates[: len(self._names)][self.undetermined.numbers] = 0.0
        values, vectors = np.linalg.eigh(self.covariance * np.outer(rates, rates))
        # Eigenvalues rise: the first ones have next to no share in the sum.
        kept = np.cumsum(np.maximum(values, 0.0)) > SETTINGS.coarse * values.sum()
        found = np.column_stack([-self.shift * rates, (vectors * np.sqrt(np.maximum(values, 0.0)))[:, kept][:, ::-1]])
        # A place for what fields and functions have beyond what they are made of.
        return np.column_stack([found, np.zeros(len(found))])

    def _left_out(self) -> list[float]:
        """Return how uncertain functions are for want of shorter waves: as the shortest ones say of the prior."""
        m, found, numbers = self.measurements, [], len(self._names)
        for basis, span, prior in zip(m.parametric.bases, m.parametric.spans(), m.left_out, strict=True):
            lengths = np.linalg.norm(basis.waves, axis=1)
            own = span.start + np.flatnonzero(lengths > MOST * lengths.max())
            squares = np.square(self.found.place.point[own] - m.means[own - numbers]) + np.diag(self.covariance)[own]
            found.append(prior * float(np.sqrt(np.mean(squares / np.square(m.deviations[own - numbers])))))
        return found

    def _known(self, vector: FloatArray, factor: FloatArray) -> Any:
        parametric = self.measurements.parametric

        def known(X: FloatArray) -> FloatArray:
            zero: MultiIndex = (0,) * X.shape[1]
            sides = np.column_stack([vector, factor])
            for span, own in zip(parametric.spans(), self._left_out(), strict=True):
                sides[span.start, -1] = own
            pairs = zip(parametric.bases, parametric.spans(), strict=True)
            found = [basis.values(X, zero) @ sides[span] for basis, span in pairs]
            return np.stack(found, axis=2).reshape(len(X), -1)

        return known

    def _verdict(self, ambiguous: Sequence[FloatArray], slowed: bool) -> tuple[Status, str]:
        """Return a status and a message."""
        made, misfits = self.forward.solution, self.misfits
        estimate = np.inf if made.error_estimate is None else made.error_estimate
        if made.status == Status.ILL_POSED:
            return verdict(self.tol, estimate, None, flaw=f"At the unknowns found: {made.diagnostics.message}")
        told = ", ".join(str(entry) for entry in self.parameters.entries if entry.is_determined)
        remarks = self.undetermined.remarks
        accurate = self.accuracy is not None or SETTINGS.accuracy * estimate < 1.0
        if remarks and not accurate:
            remarks = ("Solutions are too inaccurate to tell whether the data determine all unknowns.",)
        words = [f"{told}." if told else "", *remarks]
        for number, sign in sorted(self.sides):
            words.append(f"Data do not limit {self._names[number]} from {'above' if sign > 0 else 'below'}.")
        # What data cannot tell at values that do not explain them, they may tell at others.
        is_open = bool(ambiguous) or (bool(remarks) and accurate and not misfits)
        lacks = []
        if not self.found.settled and not is_open:
            remedy = "a larger budget" if self.forward.is_spent else "starts nearer to the truth"
            lacks.append(f"The search ended before it converged. Give {remedy}.")
        if misfits:
            lacks.append(f"The model does not fit: {'; '.join(misfits)}. Check equations, conditions and noise.")
        else:
            lacks += self._outliers()
        if at_end := self._at_bounds():
            words.append(f"{' and '.join(at_end)} ended at a bound. Check the bounds.")
        for other in ambiguous[:2]:
            pairs = zip(self._names, other[: len(self._names)], strict=True)
            words.append(f"Other values fit as well: {', '.join(f'{n} = {v:.4g}' for n, v in pairs)}.")
        if slowed:
            words.append(
                "The start oscillates faster than the sampling resolves; the slowest fitting solution is reported, and "
                "faster ones may fit as well."
            )
        if is_open:
            words.append("Measure elsewhere or something else, or give priors.")
        met = estimate <= self.tol and not lacks
        stop = Stop(Reason.TOLERANCE) if met else Stop(Reason.LOST, " ".join(lacks))
        return verdict(
            self.tol, estimate, stop, *words, flaw=" ".join(filter(None, [*words, *lacks])) if is_open else ""
        )

    def _at_bounds(self) -> list[str]:
        point = self.found.place.point
        return [n for i, n in enumerate(self._names) if point[i] in (self.coordinates.low[i], self.coordinates.high[i])]


def _basis(columns: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the span of columns, however small some are."""
    sizes = np.linalg.norm(columns, axis=0)
    return spanned(columns[:, sizes > 0] / sizes[sizes > 0])


def _error(measurements: Measurements, forward: Forward) -> FloatArray:
    """Return by how much predictions are wrong for want of finer cells, features or steps."""
    solution, parametric = forward.solution, measurements.parametric
    if not parametric.observations:
        return np.zeros(0)
    estimate = solution.error_estimate or 1.0
    whole = np.asarray(min(estimate, 1.0) * measurements.sizes)
    one, two = (forwarded(parametric, own, forward.vector) for own in (solution, finer(solution)))
    return np.where(np.isfinite(one - two), one - two, whole) if solution.richer is not None else whole
