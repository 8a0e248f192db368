"""Stability: whether short waves of an evolution grow without bound, as in a heat equation run backwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pibls.checks import FloatArray
from pibls.problem import MultiIndex
from pibls.problem.evaluate import Function, compile_function
from pibls.refinement.standards import MOST, NEGLIGIBLE, PLAIN, POINTS
from pibls.solution.json_records import Network

if TYPE_CHECKING:
    from pibls.evolution.form import Evolution
    from pibls.evolution.multipliers import Slot


_WAVES = (1e2, 1e3, 1e4)  # radians per half side of the domain


def unbounded_growth(evolution: Evolution, network: Network | None = None) -> str:
    """Say how fast short waves grow, if they do so the faster the shorter they are, without bound; else an empty text.

    That is Petrovskii's condition at places of the domain at the first time, linearised at the values given there;
    where slopes of these are not known, at a solution.
    """
    growing, growth = _growing(evolution, network)
    if not growing.mean() > NEGLIGIBLE:
        return ""
    long, short = (float(np.median(own[growing])) for own in growth[:2])
    return (
        f"The solution is unstable: shorter waves grow faster, without bound (with {_WAVES[0]:.0f} radians per half "
        f"side of the domain as exp({long:.1g} t), with {_WAVES[1]:.0f} as exp({short:.1g} t)), as in a heat equation "
        "run backwards. Check the signs of the highest derivatives, or give conditions at the last "
        "time instead."
    )


def leaves_its_bounds(evolution: Evolution, network: Network, until: float) -> bool:
    """Tell whether a solution takes on values with which short waves grow without bound, though those given do not.

    It is that solution then which ends, and not the one of the problem: so it is with gas in a porous medium where
    there is none, as a density below zero diffuses backwards.
    """
    first = evolution.limits[0]
    return any(
        _growing(evolution, network, first + part * (until - first))[0].any() for part in (0.0, MOST, 1.0 - NEGLIGIBLE)
    )


def _growing(evolution: Evolution, network: Network | None, time: float | None = None) -> tuple[FloatArray, FloatArray]:
    """Return at which of some places short waves grow without bound at a time, or at first, and how fast waves grow."""
    nothing: tuple[Any, FloatArray] = np.zeros(1, dtype=np.bool_), np.zeros((len(_WAVES), 1))
    if evolution.space is None or evolution.multipliers:
        return nothing
    coordinates, used = evolution.problem.domain.coordinates, _used(evolution)
    symbols = tuple(slot.symbol for slot in used)
    initial = evolution.problem.domain.initial
    assert initial is not None
    X = initial.sample(POINTS, "kronecker", 1).points
    if time is not None:
        X = np.column_stack([X[:, :-1], np.full(len(X), time)])
    first = evolution.first_state(X, used) if time is None else None
    if first is None and network is None:
        return nothing
    given = evolution.first_values(used) if time is None else {}
    values = list(first.values()) if first is not None else _solved(evolution, network, X, given)
    slopes = {
        (name, slot): compile_function(slope, coordinates, symbols)(X, None, values)
        for name, own in evolution.slopes.items()
        for slot, slope in own.items()
    }
    mass = {
        name: {index: compile_function(factor, coordinates)(X) for index, factor in factors.items()}
        for name, factors in evolution.mass.items()
    }
    axes, half = len(coordinates) - 1, np.ptp(evolution.space.bounds, axis=1) / 2
    directions = np.vstack([np.eye(axes), np.full((1, axes), axes**-0.5)]) / half
    growth = np.array(
        [np.max([_growth(evolution, slopes, mass, size * own) for own in directions], axis=0) for size in _WAVES]
    )
    faster = np.cbrt(np.divide(_WAVES[1:], _WAVES[:-1]))  # u_tt = u_x grows by the root of the wave number
    return (growth[0] > 0) & (growth[1:] > faster[:, None] * growth[:-1]).all(axis=0), growth


def _used(evolution: Evolution) -> tuple[Slot, ...]:
    """Return the states and slopes that slopes of rates depend on: none if the equations are linear."""
    found = {symbol for own in evolution.slopes.values() for slope in own.values() for symbol in slope.free_symbols}
    return tuple(slot for slot in evolution.slots if slot.symbol in found)


def _solved(
    evolution: Evolution, network: Network | None, X: FloatArray, first: Mapping[Slot, Function]
) -> list[FloatArray]:
    """Return the states and slopes that rates depend on at places: as given where that is known, else of a solution."""
    assert network is not None
    used = _used(evolution)
    keys = [(slot.state[0], (*slot.multi_index, slot.state[1])) for slot in used]
    found, names = network.evaluate(X, [index for _, index in keys]), evolution.problem.field_names
    return [
        first[slot](X) if slot in first else found[index][:, names.index(name)]
        for slot, (name, index) in zip(used, keys, strict=True)
    ]


def _growth(evolution: Evolution, slopes: Mapping[Any, FloatArray], mass: Mapping[str, Any], wave: Any) -> FloatArray:
    """Return how fast a wave of small size grows at places, as far as that is plainly not zero."""

    def factor(index: MultiIndex) -> Any:
        return np.prod((1j * wave) ** np.array(index))

    rows = {state: number for number, state in enumerate(evolution.states)}
    matrix = np.zeros((POINTS, len(rows), len(rows)), dtype=np.complex128)
    for (name, k), row in rows.items():
        if k + 1 < evolution.orders[name]:
            matrix[:, row, rows[name, k + 1]] = 1.0
    for (name, slot), slope in slopes.items():
        divisor = sum(own * factor(index) for index, own in mass[name].items()) if name in mass else 1.0
        row = rows[name, evolution.orders[name] - 1]
        matrix[:, row, rows[slot.state]] += slope * factor(slot.multi_index) / divisor
    found = np.linalg.eigvals(matrix)
    plain = found.real > PLAIN * np.abs(found).max(axis=1, keepdims=True)
    return np.asarray(np.where(plain, found.real, 0.0).max(axis=1))
