"""From which starts unknowns are searched: others if the first comes to nothing, slower ones, early data first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import SolveError
from pibls.inverse.descent import Damping, Descent, Place, best_of, place_at, search
from pibls.inverse.fitting_unknowns import Fits
from pibls.inverse.parametric import Parametric
from pibls.inverse.response import Forward, Plain, Response, forwarded
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import AtPoints
from pibls.quadrature.roots import ROUNDING
from pibls.refinement.standards import MOST, NEGLIGIBLE, SLIGHT


@dataclass(eq=False)
class Attempts:
    """Searches from one start after another, with solutions of one tolerance."""

    # fits, tol: fits from any start, and the tolerance of solutions
    fits: Fits
    tol: float
    ambiguous: list[FloatArray] = field(default_factory=list)  # other values that fit as well
    slowed: bool = False  # whether the values found are slower than the start

    def run(self) -> Descent:
        """Search from the first start, and from others if that comes to nothing or bounds leave room."""
        fits, first = self.fits, list[Descent]()

        def tried(start: FloatArray) -> Descent | None:
            if start is fits.coordinates.start:
                first.extend(filter(None, [self._from(start, slower=True)]))
                return first[0] if first else None
            fits.starts += 1
            point = self._better(first[0], start) if first and fits.explains(first[0]) else start
            return None if point is None else fits.settled(point, self.tol, None)

        best = best_of(fits.coordinates.starts(fits.numbers), tried, self._misfit)
        if best is None:
            raise SolveError(
                "The problem cannot be solved at any start of its unknowns. Give starts at which it has a solution, as "
                "unknown('k', start=1.0), and bounds where it has one."
            )
        if fits.is_good(best):
            self._look_elsewhere(best)
            if self._turns(best) > 1.0 and (slower := self._slower(best)) is not None:
                self._compare(best, slower)
        return best

    def _better(self, found: Descent, start: FloatArray) -> FloatArray | None:
        """Return where a few steps lead from another start, if data fit better there; on cells or features at hand."""
        here = place_at(found.forward, self.fits.measurements(found.forward), start, None)
        other = None if here is None else self._few_steps(found, here)
        return other.place.point if other is not None and self._misfit(other) < self._misfit(found) else None

    def _few_steps(self, found: Descent, here: Place) -> Descent:
        measurements, rule = self.fits.measurements(found.forward), Damping(steps=SETTINGS.rounds)
        return search(found.forward, measurements, here, rough=True, rule=rule)

    def _from(self, start: FloatArray, *, slower: bool = False) -> Descent | None:
        """Search from a start, with early measurements first where it explains them worse than a constant.

        From ``slower`` starts first where it turns more often than measurements can show, and nothing fits nearby.
        """
        best = None
        first = self.fits.tried(start, self.tol, None)
        if first is None:
            return None
        if slower and turns(self.fits.parametric, Plain(first.solution, 0)) > 1.0:
            here = self.fits.descended(first, start, None, rough=True)
            if here is not None and not self.fits.is_good(here):
                best = self._slower(here)
                self.slowed = best is not None
        if best is None and self._astray(first):
            best = self._by_and_by(start)
        if best is None or not self.fits.is_good(best):
            best = self.fits.settled(start, self.tol, None, first) or best
        return best

    def _turns(self, found: Descent) -> float:
        return turns(self.fits.parametric, found.place.response)

    def _misfit(self, found: Descent) -> float:
        """Return the mean square of residuals, relative to the measurements; zero where they look like noise."""
        size = float(np.mean(np.square(found.place.residual / self.fits.plain().sizes)))
        return 0.0 if self.fits.is_good(found) else size

    def _look_elsewhere(self, found: Descent) -> None:
        """Look for other values that fit as well, as long as they may: images, and any between two bounds.

        Half of the work that is left is for more accurate solutions at the values found.
        """
        fits, spent = self.fits, self.fits.budget.nominal - self.fits.budget.left
        forward = replace(found.forward, budget=fits.budget.part(MOST))
        found, measurements = replace(found, forward=forward), fits.measurements(forward)
        images = fits.coordinates.images(found.place.point, fits.numbers, self._mirrors())
        between = fits.coordinates.between(found.place.point, fits.numbers, SETTINGS.rounds)
        beside = fits.coordinates.beside(found.place.point, fits.numbers) if self._are_few else []
        for number, start in enumerate([*images, *between, *beside]):
            # What blows up may cost more than all of the search so far, and is no answer.
            brief = replace(forward, budget=forward.budget.part(most=MOST * spent))
            here = None if forward.is_spent else place_at(brief, measurements, start, None)
            if here is None:
                continue
            other = Descent(forward, here, settled=False)
            other = other if number < len(images) else self._few_steps(found, here)
            for _ in range(SETTINGS.starts):
                if other.settled or forward.is_spent or not self._may_fit(found, other.place):
                    break
                other = self._few_steps(found, other.place)
            if self._may_fit(found, other.place):
                self._compare(found, search(forward, measurements, other.place, nearby=True))

    @property
    def _are_few(self) -> bool:
        """Whether so little was measured that several values may fit it by chance.

        A map from p numbers to more than 2 p data mostly takes no value twice (Whitney), if it has no symmetry.
        """
        parametric = self.fits.parametric
        sizes = [
            len(np.unique(s.place.points, axis=0)) if isinstance(s.place, AtPoints) else len(s.targets)
            for s in parametric.observations
            if s.targets is not None
        ]
        return not parametric.bases and sum(sizes) <= 2 * self.fits.numbers

    def _mirrors(self) -> dict[int, list[float]]:
        """Return where numbers that are places may be mirrored: in the middle of the domain, or of the measurements.

        A number is a place if it is added to a coordinate.
        """
        parametric, domain = self.fits.parametric, self.fits.parametric.problem.domain
        measured = [s.place.points for s in parametric.measured if isinstance(s.place, AtPoints)]
        sums = {node for s in parametric.stated for form in s.forms for node in form.residual.atoms(sp.Add)}
        pairs = [set().union(*(e.free_symbols for e in own.args if len(e.free_symbols) == 1)) for own in sums]
        found: dict[int, list[float]] = {}
        for number, symbol in enumerate(parametric.problem.parameters):
            for axis, coordinate in enumerate(domain.coordinates):
                if any({symbol, coordinate} <= pair for pair in pairs):
                    middles = [float(np.mean(np.unique(own[:, axis]))) for own in measured]
                    found[number] = [float(np.mean(domain.bounds[axis])), *middles]
        return found

    def _may_fit(self, found: Descent, here: Place) -> bool:
        """Tell whether a step from a place may lead to others than the values found that explain data about as well."""
        plain, residual = self.fits.plain(), found.place.residual
        factors = np.sqrt(plain.weighed(residual).weights) / plain.sizes
        rows, right = here.slopes * factors[:, None], here.residual * factors
        step = -np.linalg.lstsq(rows, right, rcond=ROUNDING)[0]
        way = found.place.point - here.point
        back = np.linalg.norm(step - way) <= NEGLIGIBLE * np.linalg.norm(way)
        noise = SETTINGS.sure * np.linalg.norm(residual * factors)
        return not back and bool(np.linalg.norm(right + rows @ step) <= max(noise, SLIGHT * np.sqrt(len(right))))

    def _compare(self, found: Descent, other: Descent) -> None:
        """Keep values that fit as well as those found and are others."""
        weighed = self.fits.plain(found.forward.tol).weighed(found.place.residual)
        self.fits.starts += 1
        if not (self.fits.is_good(other) and self._apart(found, other)):
            return
        vector = self.fits.coordinates.vector(other.place.point)
        if any(np.allclose(vector, one, rtol=NEGLIGIBLE) for one in self.ambiguous):
            return
        if weighed.misfit(other.place) > (most := weighed.misfit(found.place) + SETTINGS.sure**2):
            # Cells or features that were made for the values found may not be as good at others.
            own = self.fits.settled(other.place.point, self.tol, None)
            if own is None or weighed.misfit(own.place) > most or not self._apart(found, own):
                return
            vector = self.fits.coordinates.vector(own.place.point)
        self.ambiguous.append(vector)

    def _apart(self, one: Descent, two: Descent) -> bool:
        """Whether two estimates differ in a direction the data determine."""
        gap, numbers = two.place.point - one.place.point, self.fits.numbers
        seen = one.place.slopes @ gap / self.fits.measurements(one.forward).weighed(one.place.residual).noise
        return bool((np.abs(gap[:numbers]) > NEGLIGIBLE).any() and np.linalg.norm(seen) > 1.0)

    def _slower(self, found: Descent) -> Descent | None:
        """Search from starts that are slower, for the first one that fits."""
        for start in self._slower_starts(found):
            self.fits.starts += 1
            other = self._from(start)
            if other is not None and self.fits.is_good(other):
                return other
        return None

    def _slower_starts(self, found: Descent) -> Iterator[FloatArray]:
        """Yield starts where solutions turn seldom enough: every number in turn, halved or doubled till then."""
        forward, coordinates = found.forward, self.fits.coordinates
        measurements = self.fits.measurements(forward)
        for number, factor in product(range(self.fits.numbers), (0.5, 2.0)):
            point, now = found.place.point, self._turns(found)
            before = np.inf
            while MOST < now <= (1.0 - NEGLIGIBLE) * before and not forward.is_spent:
                vector = coordinates.vector(point)
                vector[number] *= factor
                point = coordinates.within(coordinates.point(vector))
                there = place_at(forward, measurements, point, None)
                before, now = now, np.inf if there is None else turns(self.fits.parametric, there.response)
            if now <= MOST:
                yield point

    @cached_property
    def _times(self) -> FloatArray | None:
        """The times of all measurements in order, if they are known."""
        parametric, domain = self.fits.parametric, self.fits.parametric.problem.domain
        points = [s.place.points for s in parametric.observations if isinstance(s.place, AtPoints)]
        if domain.time is None or len(points) < len(parametric.observations) or parametric.bases:
            return None
        return np.sort(np.concatenate([own[:, domain.coordinates.index(domain.time)] for own in points]))

    def _astray(self, forward: Forward) -> bool:
        """Tell whether a constant would explain measurements better than a solution, where some of them are early."""
        if self._times is None:
            return False
        measurements = self.fits.plain()
        residual = forwarded(self.fits.parametric, forward.solution, forward.vector) - measurements.targets
        return any(np.std(residual[span]) > np.std(measurements.targets[span]) for span in measurements.spans)

    def _by_and_by(self, start: FloatArray) -> Descent | None:
        """Search with early measurements first, then with later ones: solutions that part later are alike at first."""
        assert self._times is not None
        found, point, count = None, start, SETTINGS.early * self.fits.parametric.size
        while count < len(self._times):
            self.fits.until = float(self._times[count - 1])
            found = self.fits.settled(point, self.tol, None)
            if found is None:
                break
            point, count = found.place.point, SETTINGS.early * count
        self.fits.until = np.inf
        return found and self.fits.settled(point, self.tol, None)


def turns(parametric: Parametric, response: Response) -> float:
    """Return how often observed fields turn from one place of measurements to the next, on average.

    One place comes after another along an axis if no measurement is between, wherever that may be along other axes; the
    first one comes after the boundary. Scattered ones count as if they were on a grid. An oscillation that turns more
    than once may have slower ones with the same values.
    """
    found = [0.0]
    low, high = np.asarray(parametric.problem.domain.bounds, dtype=np.float64).T
    for statement in parametric.measured:
        names = dict.fromkeys(name for name, _ in parametric.dependence(statement.form).wanted)
        if not isinstance(statement.place, AtPoints) or not names:
            continue
        every = statement.place.points
        ends = every[:: -(-len(every) // SETTINGS.samples)]
        for axis, first in enumerate(low):
            levels = np.unique(np.append(every[:, axis], first))
            starts = ends.copy()
            before = levels[np.maximum(np.searchsorted(levels, ends[:, axis]) - 1, 0)]
            spaced = ends[:, axis] - (high - low)[axis] / len(every) ** (1 / len(low))
            starts[:, axis] = np.maximum(np.minimum(before, spaced), first)
            shares = np.linspace(0.0, 1.0, SETTINGS.samples)[:, None]
            ways = starts[:, None] + shares * (ends - starts)[:, None]
            inside = parametric.problem.domain.contains(ways.reshape(-1, len(low))).reshape(len(ends), -1).all(axis=1)
            if not inside.any():
                continue
            zero = (0,) * len(low)
            values = response.evaluate(ways[inside].reshape(-1, len(low)), [zero])[zero][:, 0]
            for name in names:
                own = values[:, parametric.names.index(name)].reshape(-1, SETTINGS.samples)
                found.append(_mean_turns(own))
    return max(found)


def _mean_turns(values: FloatArray) -> float:
    """Return how often rows change between rising and falling, on average over those that do anything.

    >>> _mean_turns(np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 2.0, 3.0], [2.0, 2.001, 2.0, 2.001]]))
    1.0
    """
    heights = np.ptp(values, axis=1)
    moving = heights > SLIGHT * np.ptp(values)
    if not moving.any():
        return 0.0
    steps = np.diff(values[moving], axis=1)
    steps[np.abs(steps) <= SLIGHT / SETTINGS.samples * heights[moving, None]] = 0.0
    count, last = np.zeros(len(steps)), np.zeros(len(steps))
    for column in np.sign(steps).T:
        count += column * last < 0
        last = np.where(column == 0, last, column)
    return float(count.mean())
