"""Evolutions in a box on all waves that fit into it: derivatives are products, products are taken at points.

The box repeats along every axis, or its sides are mirrors, as nothing passes them. Then nothing is projected and no
matrix is large: transforms lead from values at the points of a lattice to waves and back. Terms that are not linear
with constant factors are evaluated at the points of a finer lattice, whose waves do not disguise as longer ones.
Newton's matrix is that of mean slopes: one small block for each wave.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import fft

from pibls.checks import FloatArray
from pibls.errors import ProblemError
from pibls.evolution.cost import PER_NUMBER
from pibls.evolution.design import harmonics
from pibls.evolution.form import Evolution, Rate, compiled
from pibls.evolution.multipliers import Slot, State
from pibls.evolution.radau import STAGES, Trajectory
from pibls.problem import Data, MultiIndex, OnPart, Opposite, Statement
from pibls.quadrature.roots import CLOSE, SCAN
from pibls.refinement.standards import MOST
from pibls.solution.evolved import EvolvedNetwork


@dataclass(frozen=True, eq=False)
class Blocks:
    """A linear map that is the same at all places: one block for each wave."""

    matrices: Any  # shape (waves along each axis, states, states)
    mirrored: bool

    def shifted(self, shift: complex) -> Callable[[Any], Any]:
        """Return the function that solves with a multiple of the identity less this map."""
        states, lattice = self.matrices.shape[-1], self.matrices.shape[:-2]
        there, back = (fft.dctn, fft.idctn) if self.mirrored else (fft.fftn, fft.ifftn)
        inverse, axes = np.linalg.inv(shift * np.eye(states) - self.matrices), tuple(range(1, len(lattice) + 1))

        def solve(right: Any) -> Any:
            waves = there(right.reshape(states, *lattice), axes=axes)
            solved = np.moveaxis(inverse @ np.moveaxis(waves, 0, -1)[..., None], -2, 0)[..., 0]
            found = back(solved, axes=axes).reshape(right.shape)
            return found if np.iscomplexobj(right) or np.iscomplex(shift) else found.real

        return solve


@dataclass(frozen=True, eq=False)
class Waves:
    """An evolution on waves: the right side of an ordinary differential equation for values at points of a lattice.

    The state holds the values of all states of the evolution, one after the other.
    """

    evolution: Evolution
    most: int  # the highest number of waves along an axis; of half waves between mirrors
    mirrored: bool = False

    @property
    def side(self) -> int:
        """Number of points along an axis: no more than waves."""
        return self.most + 1 if self.mirrored else 2 * self.most + 1

    @cached_property
    def _fine_side(self) -> int:
        """Number of points along an axis at which products of two functions do not disguise as others."""
        return int(fft.next_fast_len((3 * self.most + 2) // (2 if self.mirrored else 1) + 1, real=True))

    @cached_property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-len(self.evolution.space.coordinates), 0))

    def _shape(self, side: int) -> tuple[int, ...]:
        return (side,) * len(self._axes)

    @cached_property
    def _units(self) -> FloatArray:
        """The wave number of one wave along each axis."""
        return np.asarray((1.0 if self.mirrored else 2.0) * math.pi / np.ptp(self.evolution.space.bounds, axis=1))

    def points(self, side: int) -> FloatArray:
        """Return the points of a lattice."""
        low, high = self.evolution.space.bounds.T
        along = (np.arange(side) + (MOST if self.mirrored else 0.0)) / side
        steps = np.stack(np.meshgrid(*[along] * len(low), indexing="ij"), axis=-1)
        return np.asarray(low + steps.reshape(-1, len(low)) * (high - low))

    @cached_property
    def _fine_points(self) -> FloatArray:
        return self.points(self._fine_side)

    def _symbol(self, index: MultiIndex, *, half: bool = True) -> Any:
        """Return the factors by which waves are differentiated; of half of all waves, or of all."""
        whole = fft.fftfreq(self.side, 1.0 / self.side)
        found: Any = np.ones((1,) * len(index))
        for axis, (order, unit) in enumerate(zip(index, self._units.tolist(), strict=True)):
            own = np.arange(self.most + 1) if self.mirrored or (half and axis == len(index) - 1) else whole
            shape = tuple(-1 if k == axis else 1 for k in range(len(index)))
            found = found * ((1j * unit * own) ** order).reshape(shape)
        return found

    @cached_property
    def _numbers(self) -> dict[State, int]:
        """Which of all states each is."""
        return {state: number for number, state in enumerate(self.evolution.states)}

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self._numbers) * math.prod(self._shape(self.side))

    def _fields(self, states: FloatArray) -> FloatArray:
        return states.reshape(len(states), len(self._numbers), *self._shape(self.side))

    @cached_property
    def _parts(self) -> dict[str, tuple[list[tuple[Slot, float]], list[tuple[Slot, Any]], Rate]]:
        """The terms of each rate with constant factors, those with others, and the rate."""
        found, first = {}, np.array([self.evolution.limits[0]])
        for name, rate in self.evolution.split_rates.items():
            constant = [(slot, own.constant) for slot, own in rate.linear if own.constant is not None]
            other = [
                (slot, own(self._finely_at(first)).reshape(self._shape(self._fine_side)))
                for slot, own in rate.linear
                if own.constant is None
            ]
            found[name] = constant, other, rate
        return found

    @property
    def is_linear(self) -> bool:
        """Whether the blocks are all there is to the Jacobian."""
        return not any(other or rate.slopes for _, other, rate in self._parts.values())

    def _waves(self, values: FloatArray) -> Any:
        """Return the waves of values at the points of a lattice."""
        if self.mirrored:
            return fft.dctn(values, axes=self._axes, norm="forward")
        return fft.rfftn(values, axes=self._axes, norm="forward")

    def _values(self, waves: Any, side: int) -> FloatArray:
        """Return the values of waves at the points of a lattice."""
        if self.mirrored:
            return np.asarray(fft.idctn(waves.real, axes=self._axes, norm="forward"))
        return np.asarray(fft.irfftn(waves, s=self._shape(side), axes=self._axes, norm="forward"))

    def _finely(self, waves: Any) -> FloatArray:
        """Return the values of waves at the points of the fine lattice."""
        last = self._fine_side if self.mirrored else self._fine_side // 2 + 1
        padded = np.zeros((*waves.shape[: self._axes[0]], *self._shape(self._fine_side)[:-1], last), dtype=complex)
        padded[self._low] = waves
        return self._values(padded, self._fine_side)

    @cached_property
    def _low(self) -> Any:
        """Where the waves of the lattice are among those of the fine one."""
        along = np.concatenate([np.arange(self.most + 1), self._fine_side - np.arange(self.most, 0, -1)])
        axes = [along[: self.most + 1] if self.mirrored else along] * (len(self._axes) - 1)
        return (..., *np.ix_(*axes, np.arange(self.most + 1)))

    def _coarsely(self, values: FloatArray) -> Any:
        """Return the waves of values at the points of the fine lattice, without those that are too short."""
        return self._waves(values)[self._low]

    def rates(self, times: FloatArray, states: FloatArray) -> FloatArray:
        """Return the time derivative of all values, one row per time."""
        fields = self._fields(states)
        waves, found, known = self._waves(fields), np.empty_like(fields), dict[Slot, FloatArray]()
        X = self._finely_at(times) if any(rate.rest is not None for *_, rate in self._parts.values()) else np.empty(0)

        def values(slot: Slot) -> FloatArray:
            if slot not in known:
                known[slot] = self._finely(waves[:, self._numbers[slot.state]] * self._symbol(slot.multi_index))
            return known[slot]

        for (name, order), number in self._numbers.items():
            if order + 1 < self.evolution.orders[name]:
                found[:, number] = fields[:, self._numbers[name, order + 1]]
                continue
            constant, other, rate = self._parts[name]
            made: Any = np.zeros(waves[:, 0].shape, dtype=complex)
            for slot, factor in constant:
                made += factor * self._symbol(slot.multi_index) * waves[:, self._numbers[slot.state]]
            if other or rate.rest is not None:
                rest = sum((factor * values(slot) for slot, factor in other), np.zeros(()))
                if rate.rest is not None:
                    own = rate.rest(X, None, [values(slot).ravel() for slot in rate.slots])
                    rest = rest + own.reshape(len(times), *self._shape(self._fine_side))
                made += self._coarsely(rest)
            found[:, number] = self._values(made, self.side)
        return found.reshape(states.shape)

    def _finely_at(self, times: FloatArray) -> FloatArray:
        """Return the points of the fine lattice at times."""
        X = np.empty((len(times), len(self._fine_points), len(self._axes) + 1))
        X[..., :-1], X[..., -1] = self._fine_points, times[:, None]
        return X.reshape(-1, X.shape[-1])

    def jacobian(self, time: float, state: FloatArray) -> Blocks:
        """Return the derivative of the rates by the state, with the mean of factors that differ from place to place."""
        fields = self._fields(state[None])
        waves, X = self._waves(fields)[0], self._finely_at(np.array([time]))
        count = len(self._numbers)
        found: Any = np.zeros((*self._shape(self.side), count, count), dtype=complex)
        for (name, order), number in self._numbers.items():
            if order + 1 < self.evolution.orders[name]:
                found[..., number, self._numbers[name, order + 1]] = 1.0
                continue
            constant, other, rate = self._parts[name]
            terms = [*constant, *((slot, float(factor.mean())) for slot, factor in other)]
            slots = [self._finely(waves[self._numbers[s.state]] * self._symbol(s.multi_index)) for s in rate.slots]
            with suppress(ProblemError):  # it only leads the way
                terms += [(slot, float(np.mean(own(X, None, [v.ravel() for v in slots])))) for slot, own in rate.slopes]
            for slot, factor in terms:
                found[..., number, self._numbers[slot.state]] += factor * self._symbol(slot.multi_index, half=False)
        return Blocks(found, self.mirrored)

    def sizes(self, states: FloatArray) -> FloatArray:
        """Return the root mean square of every state."""
        fields = states.reshape(len(states), len(self._numbers), -1)
        return np.asarray(np.sqrt(np.mean(np.square(fields), axis=2)))

    def initial(self) -> FloatArray:
        """Return the initial values, without waves that are too short."""
        return self._values(self._first, self.side).ravel()

    @cached_property
    def _first(self) -> Any:
        X, coordinates = (
            self._finely_at(np.array([self.evolution.limits[0]])),
            self.evolution.problem.domain.coordinates,
        )
        given = [compiled(self.evolution.initial[state], coordinates)(X) for state in self._numbers]
        return self._coarsely(np.stack(given).reshape(-1, *self._shape(self._fine_side)))

    @property
    def missed(self) -> float:
        """The relative size of the shortest waves of the initial values."""
        longest = np.zeros(())
        for axis in self._axes:
            whole = axis < -1 and not self.mirrored
            along = np.abs(fft.fftfreq(self.side, 1.0 / self.side)) if whole else np.arange(self.most + 1)
            longest = np.maximum(longest, along.reshape(-1, *[1] * (-axis - 1)))
        squares, short = np.abs(self._first) ** 2, longest > 0.75 * self.most
        sizes = np.sqrt(squares.sum(axis=self._axes))
        return float((np.sqrt((squares * short).sum(axis=self._axes)) / np.where(sizes > 0, sizes, 1.0)).max())

    def reach(self, times: FloatArray) -> FloatArray:
        """Return how large the data of boundaries are: there are none."""
        del times
        return np.zeros(len(self._numbers))

    @cached_property
    def costs(self) -> tuple[float, float]:
        """Operations of the rates at one time, and of the blocks."""
        points, coarse = float(self._fine_side ** len(self._axes)), float(self.side ** len(self._axes))
        slots = {slot for _, other, rate in self._parts.values() for slot in [*rate.slots, *(s for s, _ in other)]}
        transforms = len(slots) + len(self._parts)
        numbers = sum(
            1.0 + rate.rest.expression.count_ops() for *_, rate in self._parts.values() if rate.rest is not None
        )
        work = _transform(points) * transforms + PER_NUMBER * points * numbers
        return work + 2 * len(self._numbers) * _transform(coarse), 2.0 * work

    @property
    def step_costs(self) -> tuple[float, float]:
        """Operations of factors for a step, and of solving with them."""
        states, points = len(self._numbers), float(self.side ** len(self._axes))
        return 4.0 * points * 8.0 * states**3, 4.0 * (4.0 * states * _transform(points) + 8.0 * points * states**2)

    @property
    def preparation(self) -> float:
        """Operations that it takes to prepare all this."""
        return self.costs[0]

    @property
    def iteration(self) -> float:
        """Operations of an iteration of a step."""
        return STAGES * self.costs[0] + self.step_costs[1]

    def network(self, trajectory: Trajectory) -> EvolvedNetwork:
        """Return a trajectory of values as a network of sines and cosines."""
        pieces = trajectory.coefficients
        fields = pieces.reshape(*pieces.shape[:2], len(self._numbers), *self._shape(self.side))
        wanted = [self._numbers[name, 0] for name in self.evolution.problem.field_names]
        found, axes = [], self._axes
        for piece in fields[:, :, wanted]:
            if self.mirrored:
                waves = fft.dctn(piece, axes=axes, norm="forward")
                numbers = np.abs(np.arange(-self.most, self.most + 1))
                waves = waves[(..., *np.ix_(*[numbers] * len(axes)))]
            else:
                waves = fft.fftshift(fft.fftn(piece, axes=axes, norm="forward"), axes=axes)
            waves = waves.reshape(len(piece), len(wanted), -1)
            # Of a wave and its mirror image one is a sine and the other a cosine.
            middle = waves.shape[-1] // 2
            halves = 2.0 * waves[..., :middle].real, waves[..., middle : middle + 1].real
            found.append(np.concatenate([*halves, -2.0 * waves[..., middle + 1 :].imag], axis=-1))
        features = harmonics(self.evolution.space.bounds[:, 0], self._units, self.most)
        return EvolvedNetwork(features, np.ones(features.size), trajectory.breaks, np.array(found))


def embedded(coefficients: FloatArray, side: int, axes: int) -> FloatArray:
    """Return the coefficients of waves among those of more waves; the last axis holds them all."""
    own = round(coefficients.shape[-1] ** (1.0 / axes))
    room = (side - own) // 2
    shape = coefficients.shape[:-1]
    padding = [(0, 0)] * len(shape) + [(room, room)] * axes
    return np.pad(coefficients.reshape(*shape, *[own] * axes), padding).reshape(*shape, -1)


def _transform(points: float) -> float:
    return PER_NUMBER * points * math.log2(points)


def suits_waves(evolution: Evolution) -> bool:
    """Tell whether an evolution is followed on waves: in a box that repeats along all of several axes, or of mirrors.

    On a line matrices are small, and features follow what is steep.
    """
    return repeats(evolution) or is_mirrored(evolution)


def _is_plain(evolution: Evolution) -> bool:
    """Tell whether all there is to an evolution in several coordinates is rates and conditions on single fields."""
    if evolution.space is None or len(evolution.space.coordinates) < 2 or evolution.lacks or evolution.surplus:
        return False
    return not (evolution.mass or evolution.multipliers or evolution.pulled)


def repeats(evolution: Evolution) -> bool:
    """Tell whether an evolution repeats along all of several axes."""
    if not _is_plain(evolution):
        return False
    places = [[s.place for s in evolution.conditions_on(name)] for name in evolution.problem.field_names]
    every = {f"{symbol.name}_min" for symbol in evolution.space.coordinates}
    return all(
        all(isinstance(place, Opposite) for place in own)
        and {place.low.name for place in own if isinstance(place, Opposite)} == every
        for own in places
    )


def is_mirrored(evolution: Evolution) -> bool:
    """Tell whether the sides of a box are mirrors: slopes vanish there, and rates are the same in a mirror."""
    if not _is_plain(evolution):
        return False
    box, rates = np.ptp(evolution.space.bounds, axis=1), evolution.rates.values()
    if any(order % 2 for slot in evolution.slots for order in slot.multi_index):
        return False
    if any(rate.has(Data) or rate.free_symbols & set(evolution.space.coordinates) for rate in rates):
        return False
    if abs(evolution.space.measure - float(np.prod(box))) > CLOSE * evolution.space.measure:
        return False
    whole = 2.0 * float((np.prod(box) / box).sum()) * float(np.ptp(evolution.limits))
    return all(
        all(_is_mirror(statement) for statement in own)
        and abs(sum(s.place.part.measure for s in own if isinstance(s.place, OnPart)) - whole) <= CLOSE * whole
        for own in (evolution.conditions_on(name) for name in evolution.problem.field_names)
    )


def _is_mirror(statement: Statement) -> bool:
    """Tell whether a condition is that the slope across a side vanishes."""
    form, place = statement.form, statement.place
    if not isinstance(place, OnPart) or form.source != 0 or any(sum(t.multi_index) != 1 for t in form.terms):
        return False
    X, normals = place.part.sample(SCAN, "kronecker", 0)
    slopes = np.zeros(normals.shape)
    for term, own in zip(form.terms, form.coefficient_functions, strict=True):
        slopes[:, term.multi_index.index(1)] = own(X, normals)
    return bool((np.abs(slopes) > CLOSE).any(axis=1).all() and (np.abs(slopes[normals == 0.0]) <= CLOSE).all())
