"""Shocks and fans of a scalar conservation law: curves that start where characteristics meet, and the states beside.

A shock starts where the speed of characteristics falls. At any time its feet are the places from which the two
characteristics come that meet in it. Mass is kept if the profile that folds over has equal areas on both sides of the
shock, which is the condition of Rankine and Hugoniot integrated over time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from pibls.checks import FloatArray, IntArray
from pibls.errors import ProblemError
from pibls.problem.characteristic_curves import Traced, graph
from pibls.problem.conservation import Break, ConservationLaw, conservation_law
from pibls.problem.problem import Problem
from pibls.quadrature.roots import CLOSE, SCAN, bracketed


@dataclass(frozen=True, eq=False)
class Shock:
    """A shock, by the distance of its feet: times since the first, places, and the middles of the feet.

    Where a smooth profile folds, all three are smooth functions of the square of the distance.
    """

    apart: FloatArray
    times: FloatArray
    places: FloatArray
    middles: FloatArray
    power: int

    @cached_property
    def _splines(self) -> list[Any]:
        """Times, places and middles by a power of the distance of the feet."""
        from scipy.interpolate import CubicSpline

        return [CubicSpline(self.apart**self.power, own) for own in (self.times, self.places, self.middles)]

    def _by_time(self, times: FloatArray) -> FloatArray:
        """Return the power of the distance of the feet at times; before the shock starts, that at first."""
        times, powers = np.clip(times, self.times[0], self.times[-1]), self.apart**self.power
        k = np.clip(np.searchsorted(self.times, times), 1, len(self.times) - 1)
        return bracketed(lambda s, rows: self._splines[0](s) - times[rows], powers[k - 1], powers[k])

    def at(self, times: FloatArray) -> FloatArray:
        """Return the places of the shock at times; before it starts, where it will."""
        return np.asarray(self._splines[1](self._by_time(times)))

    def speeds(self, times: FloatArray) -> FloatArray:
        """Return the speeds of the shock at times."""
        powers = self._by_time(times)
        return np.asarray(self._splines[1](powers, 1) / self._splines[0](powers, 1))

    def after(self, start: float, times: FloatArray) -> FloatArray:
        """Return the places of the shock at times that are counted from another one."""
        return self.at(np.asarray(times) - start)

    def shifted(self, shift: float) -> Shock:
        """Return its copy at a distance."""
        return replace(self, places=self.places + shift, middles=self.middles + shift)

    def feet(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the places from which the characteristics come that meet in the shock."""
        powers = self._by_time(times)
        middle, half = self._splines[2](powers), powers ** (1.0 / self.power) / 2
        return middle - half, middle + half


@dataclass(frozen=True, eq=False)
class Fronts:
    """The shocks of a conservation law, and the fans that start where its speed jumps upwards, copies included."""

    law: ConservationLaw
    shocks: tuple[Shock, ...]
    fans: tuple[Break, ...]

    entrances = np.full(2, -np.inf)  # nothing narrow is looked for

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.law.problem

    def followed(self, feet: FloatArray, most: int) -> FloatArray:
        """Return points on the characteristics that enter at some places."""
        del most
        return feet

    @property
    def told(self) -> str:
        """Which fronts there are."""
        law = self.law
        (x,), time, ((low, high), (start, _)) = law.problem.domain.space, law.problem.domain.time, law.bounds
        inside = [s for s in self.shocks if not law.is_periodic or low <= s.places[0] < high]
        told = [f"{time} = {start + s.times[0]:.6g}, {x} = {s.places[0]:.6g}" for s in inside]
        shocks = f" Shocks start at {'; '.join(told)}: they conserve {law.problem.field_names[0]}." if told else ""
        return f"States were found along characteristics.{shocks}"

    @cached_property
    def curves(self) -> tuple[Traced, ...]:
        """The shocks, and the characteristics from all places at which initial values switch."""
        (x,), time = self.law.problem.domain.space, self.law.problem.domain.time
        (low, high), (start, stop) = self.law.bounds
        found = []
        for shock in self.shocks:
            places = shock.at(np.linspace(float(shock.times[0]), self.law.until, SCAN))
            if places.max() < low or places.min() > high:
                continue
            begin = start + float(shock.times[0])
            line = graph(partial(shock.after, start), begin, stop, time, CLOSE * (high - low))
            found.append(Traced(x - line))
        jumps = {own.place for own in self.fans}
        for own in (own.shifted(shift) for own in self.law.breaks for shift in self.law.shifts.tolist()):
            for state in (own.left, own.right) if own.place in jumps else (own.left,):
                pace = float(self.law.speed(np.array([state]))[0])
                ends = own.place, own.place + pace * self.law.until
                if max(ends) > low + CLOSE and min(ends) < high - CLOSE and not self._is_swallowed(own):
                    found.append(Traced(x - own.place - pace * (time - start)))
        return tuple(found)

    def _is_swallowed(self, own: Break) -> bool:
        """Tell whether a shock starts in a place, so that no characteristic leaves it."""
        return own.left != own.right and any(
            shock.times[0] == 0.0 and abs(shock.places[0] - own.place) < CLOSE for shock in self.shocks
        )

    def values(self, X: FloatArray) -> FloatArray:
        """Return the state at points, each from the characteristic that leads there."""
        law, times = self.law, X[:, 1] - self.law.bounds[1, 0]
        low, high = np.full(len(X), law.bounds[0, 0] - law.reach), np.full(len(X), law.bounds[0, 1] + law.reach)
        for shock in self.shocks:
            on, right = times > shock.times[0], X[:, 0] > shock.at(times)
            first, last = shock.feet(times)
            low, high = (
                np.where(on & right, np.maximum(low, last), low),
                np.where(on & ~right, np.minimum(high, first), high),
            )

        def beyond(feet: FloatArray, rows: FloatArray) -> FloatArray:
            return np.asarray(feet + law.pace(feet) * times[rows] - X[rows, 0])

        feet = bracketed(beyond, low, high)
        found = law.at(feet).copy()
        for fan in self.fans:
            paces = law.speed(np.array([fan.left, fan.right]))
            rays = (X[:, 0] - fan.place) / np.where(times > 0, times, np.inf)
            inside = np.flatnonzero((rays > paces[0]) & (rays < paces[1]) & (low < fan.place) & (fan.place < high))
            ends = (np.full(len(inside), end) for end in (fan.left, fan.right))
            found[inside] = bracketed(partial(_slower, law, rays[inside]), *ends)
        return found


def _slower(law: ConservationLaw, rays: FloatArray, states: FloatArray, rows: IntArray) -> FloatArray:
    """Return by how much states are faster than rays."""
    return np.asarray(law.speed(states) - rays[rows])


def fronts_of(problem: Problem) -> Fronts | None:
    """Return the fronts of a conservation law; None if there are none, or shocks meet each other or a fan.

    >>> import pibls as pb
    >>> import sympy as sp
    >>> x, t = pb.coordinates("x t")
    >>> u, line = pb.field("u", x, t), pb.Interval((x, -1, 1)) * pb.TimeInterval(t, 0, 1)
    >>> step = [pb.Initial(u, sp.Heaviside(-x)), pb.Dirichlet(u, 1, on=line.left)]
    >>> fronts = fronts_of(Problem(u.diff(t) + u * u.diff(x), line, step))
    >>> fronts.shocks[0].at(np.array([0.2, 1.0])).round(12), fronts.values(np.array([[0.2, 0.5], [0.3, 0.5]]))
    (array([0.1, 0.5]), array([1., 0.]))
    """
    law = conservation_law(problem)
    if law is None:
        return None
    try:
        return _fronts(law)
    except ProblemError:
        return None  # slopes may be infinite somewhere


def _fronts(law: ConservationLaw) -> Fronts | None:
    low, high = law.bounds[0]
    states = np.array([state for own in law.breaks for state in (own.left, own.right)])
    states = np.append(states, law.at(np.linspace(low, high, SCAN**2)))
    least, most = states.min(), states.max()
    bend = np.diff(law.speed(np.linspace(least, most, SCAN**2)))
    if not ((bend > 0).all() or (bend < 0).all()):
        return None  # waves of fluxes that bend both ways are shocks and fans in one
    jumps = [own for own in law.breaks if abs(own.left - own.right) > np.sqrt(CLOSE) * max(most - least, CLOSE)]
    falls = [own for own in jumps if np.diff(law.speed(np.array([own.left, own.right])))[0] < 0]
    shifts, fans = law.shifts.tolist(), tuple(own for own in jumps if own not in falls)
    starts = [*((own.place, own.place, 0.0) for own in falls), *_steepest(law)]
    shocks = [_followed(law, *start) for start in sorted(starts)]
    if any(shock is None for shock in shocks) or not (shocks or fans):
        return None
    copies = [shock.shifted(shift) for shock in shocks if shock is not None for shift in shifts]
    # Beside a place on the line there is a copy on either side, no farther away than a period.
    near = [own for own in copies if own.places.max() > 2 * low - high and own.places.min() < 2 * high - low]
    found = Fronts(
        law, tuple(near if law.is_periodic else copies), tuple(own.shifted(shift) for own in fans for shift in shifts)
    )
    return found if _is_apart(found) else None


def _steepest(law: ConservationLaw) -> Iterator[tuple[float, float, float]]:
    """Yield the stretches on which the speed falls fastest, most of them points, with the times at which they fold."""
    from scipy.optimize import minimize_scalar

    for start, stop in law.stretches:
        room = CLOSE * (stop - start)
        s = np.linspace(start + room, stop - room, SCAN**2)
        steep = law.slopes(s) * np.ones(len(s))
        if np.ptp(steep) <= np.sqrt(CLOSE) * np.abs(steep).max():
            if steep.min() * law.until < -1.0:
                yield start, stop, -1.0 / float(steep.min())
            continue
        for k in (1 + np.flatnonzero((steep[1:-1] < steep[:-2]) & (steep[1:-1] <= steep[2:]))).tolist():
            place = minimize_scalar(
                lambda at: float(law.slopes(np.array([at]))[0]),
                bounds=(s[k - 1], s[k + 1]),
                method="bounded",
                options={"xatol": CLOSE * (stop - start)},
            ).x
            if (slope := float(law.slopes(np.array([place]))[0])) * law.until < -1.0:
                yield float(place), float(place), -1.0 / slope
        for end in (0, -1):
            if steep[end] * law.until < -1.0 and steep[end] <= steep.min():
                yield float(s[end]), float(s[end]), np.nan  # the profile folds beside a kink, one-sidedly


def _followed(law: ConservationLaw, first: float, last: float, begin: float) -> Shock | None:
    """Return the shock that starts between two places at a time, until the last; None if it cannot be followed."""
    if np.isnan(begin):
        return None
    apart = last - first + law.reach * np.linspace(0.0, 2.0, SCAN**2)[1:]
    late = np.flatnonzero(_met(law, first, last, apart)[0] >= law.until)
    if not len(late):
        return None
    # Feet that are very close together have areas of which rounding leaves little.
    apart = np.delete(np.linspace(last - first, apart[late[0]], SCAN**2), slice(1, SCAN))
    times, places, middles = _met(law, first, last, apart[1:])
    middle, power = (first + last) / 2, 2 if first == last and begin > 0.0 else 1
    place = middle + (begin * float(law.pace(np.array([middle]))[0]) if begin > 0.0 else 0.0)
    states = np.append(begin, times), np.append(place, places), np.append(middle, middles)
    found = Shock(apart[: len(states[0])], *states, power)
    return found if found.times[-1] >= law.until and (np.diff(found.times) > 0).all() else None


def _met(
    law: ConservationLaw, first: float, last: float, apart: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return when and where characteristics meet that started so far apart with equal areas, and their middles.

    The distances rise. Both feet move outwards as they do, which bounds the middle. None is looked for after the last
    time.
    """
    middle, before, found = (first + last) / 2, last - first, np.empty((3, 0))
    for start in range(0, len(apart), SCAN // 2):
        own = apart[start : start + SCAN // 2]
        # At the ends of its range one foot stays where it was, and there the state may be that of either side.
        room = (0.5 - CLOSE) * (own - before)
        middles = bracketed(partial(_area, law, own), middle - room, middle + room)
        low, high = middles - own / 2, middles + own / 2
        times = _time(law, low, high)
        found = np.hstack([found, [times, low + law.pace(low) * times, middles]])
        middle, before = float(middles[-1]), float(own[-1])
        if times[-1] > law.until:
            break
    return found[0], found[1], found[2]


def _area(law: ConservationLaw, apart: FloatArray, middles: FloatArray, rows: IntArray) -> FloatArray:
    """Return the difference of the areas on both sides of where characteristics meet, by the middles of their feet."""
    low, high = middles - apart[rows] / 2, middles + apart[rows] / 2
    one, two = law.at(low), law.at(high)
    folded = two * law.speed(two) - law.flux(two) - one * law.speed(one) + law.flux(one)
    return np.asarray(law.sums(low, high) + _time(law, low, high) * folded)


def _time(law: ConservationLaw, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return when characteristics from two places meet; a very long time if they do not."""
    gap = law.pace(low) - law.pace(high)
    return np.asarray((high - low) / np.where(gap > 0, gap, np.finfo(np.float64).tiny ** 0.5))


def _is_apart(found: Fronts) -> bool:
    """Tell whether no shock meets another one or a fan, and values hold at the ends of the line."""
    last = np.array([found.law.until])
    feet = [(float(low[0]), float(high[0])) for low, high in (shock.feet(last) for shock in found.shocks)]
    if any(one[1] > two[0] for one, two in pairwise(sorted(feet))):
        return False
    if any(low < fan.place < high for low, high in feet for fan in found.fans):
        return False
    return all(_is_lawful(found.law, shock) for shock in found.shocks) and _is_met(found)


def _is_lawful(law: ConservationLaw, shock: Shock) -> bool:
    """Tell whether a shock moves by the condition of Rankine and Hugoniot, and characteristics run into it."""
    times = np.linspace(float(shock.times[0]), law.until, SCAN)[1:]
    one, two = (law.at(feet) for feet in shock.feet(times))
    pace = (law.flux(two) - law.flux(one)) / np.where(one == two, np.inf, two - one)
    fast, slow = law.speed(one), law.speed(two)
    off = np.abs(shock.speeds(times) - pace)
    return bool(
        ((fast > pace) & (pace > slow) & (off <= np.sqrt(CLOSE) * np.maximum(np.abs(fast), np.abs(slow)))).all()
    )


def _is_met(found: Fronts) -> bool:
    """Tell whether a value is given at an end of the line if and only if characteristics enter there, and holds."""
    law, (low, high), width = found.law, found.law.bounds[0], float(np.ptp(found.law.bounds[0]))
    times = np.linspace(float(law.bounds[1, 0]), float(law.bounds[1, 1]), SCAN)[1:]
    for end, place, out in () if law.is_periodic else ((law.ends[0], low, -1.0), (law.ends[1], high, 1.0)):
        states = found.values(np.column_stack([np.full(len(times), place - out * CLOSE * width), times]))
        if end is None and (out * law.speed(states) < -np.sqrt(CLOSE)).any():
            return False
        if end is not None and (np.abs(states - end) > np.sqrt(CLOSE) * max(1.0, np.abs(states).max())).any():
            return False
    return True
