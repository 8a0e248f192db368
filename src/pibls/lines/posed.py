"""Do conditions determine an evolution? Where the type of its equations is plain, counting them tells.

Equations whose own highest derivatives in space diffuse, or make waves, need as many initial values as they have
derivatives in time, and half as many conditions on every piece of the boundary as they have derivatives in space. With
fewer there is no solution, or more than one. Of other equations nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.problem import MultiIndex, OnPart, Statement
from pibls.problem.evaluate import compile_function
from pibls.solution.records import Network

if TYPE_CHECKING:
    from pibls.lines.form import Evolution

__all__ = ["conditions_needed", "exceeds", "grows_without_bound", "leaves_its_bounds", "surplus", "what_lacks"]

# All of them are smooth wherever their arguments are.
_SMOOTH = (sp.Add, sp.Mul, sp.exp, sp.sin, sp.cos, sp.sinh, sp.cosh, sp.tanh, sp.atan, sp.erf)
_POINTS = 300
_BARE = 0.01  # share of the boundary
_WAVES = (1e2, 1e3, 1e4)
_GROWS, _PLAIN = 3.0, 1e-4
_PLACES, _OFTEN = 100, 0.05
_COURSE = (0.0, 0.5, 0.9)  # of the time that a solution lasts


def conditions_needed(evolution: Evolution) -> dict[str, int] | None:
    """Return how many conditions each field needs on the boundary; None where that is not plain."""
    nowhere = evolution.space is not None and evolution.problem.domain.boundary.empty
    if evolution.mass or evolution.multipliers or nowhere:
        return None
    needed = {}
    for name, rate in evolution.rates.items():
        slopes = {slot: sp.diff(rate, slot.symbol) for slot in evolution.slots if rate.has(slot.symbol)}
        own = {slot.multi_index: slope for slot, slope in slopes.items() if slot.state == (name, 0)}
        order, times = max(map(sum, own), default=0), evolution.orders[name]
        half = order // 2
        if not all(map(_is_smooth, slopes.values())):
            return None
        if order and not (times <= 2 and order % 2 == 0 and _diffuses(own, order)):
            return None
        # Waves bear less beside their highest derivatives than what diffuses.
        most = half if times > 1 else max(order - 1, 0)
        for slot in slopes:
            height = sum(slot.multi_index)
            highest = slot.state == (name, 0) and height == order
            if height > (most if slot.state[1] == 0 else 0) and not highest:
                return None
        needed[name] = half
    return needed


def _is_smooth(expression: sp.Expr) -> bool:
    """Tell whether an expression is smooth everywhere: at the axis of a disk, say, no condition is needed."""
    if isinstance(expression, sp.Symbol) or expression.is_number:
        return True
    power = isinstance(expression, sp.Pow) and expression.exp.is_Integer and expression.exp > 0
    return (power or isinstance(expression, _SMOOTH)) and all(_is_smooth(inner) for inner in expression.args)


def _diffuses(slopes: dict[MultiIndex, sp.Expr], order: int) -> bool:
    """Tell whether the derivatives of the highest order have fixed factors and damp every wave."""
    tops = {index: slope for index, slope in slopes.items() if sum(index) == order}
    if not all(slope.is_number for slope in tops.values()):
        return False
    axes = len(next(iter(tops)))
    directions = np.random.default_rng(0).normal(size=(_POINTS, axes))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    symbol = sum(float(slope) * np.prod(directions ** np.array(index), axis=1) for index, slope in tops.items())
    damping = (-1.0) ** (order // 2 + 1) * np.asarray(symbol)
    return bool(damping.min() > _PLAIN * np.abs(damping).max())


def _covered(X: FloatArray, statements: tuple[Statement, ...]) -> FloatArray:
    """Return how many conditions hold at each point; those that are not linear, or periodic, count as enough."""
    found = np.zeros(len(X))
    for statement in statements:
        place = statement.place
        if isinstance(place, OnPart):
            found += np.where(place.part.contains(X), 1.0 if statement.form.is_linear else np.inf, 0.0)
        else:
            found += np.inf
    return found


def _boundary(evolution: Evolution) -> FloatArray:
    return np.asarray(evolution.problem.domain.boundary.sample(_POINTS, "kronecker", 1).points)


def what_lacks(evolution: Evolution, needed: dict[str, int]) -> str:
    """Say which field has too few conditions on the boundary, and where, as a sentence; an empty text if none."""
    if not any(needed.values()):
        return ""
    X = _boundary(evolution)
    own = {n: tuple(s for s in evolution.boundary if n in s.form.fields) for n in needed}
    counts = [(name, k, _covered(X, own[name])) for name, k in needed.items()]
    counts.append((", ".join(needed), sum(needed.values()), _covered(X, evolution.boundary)))
    for name, enough, found in counts:
        bare = found < enough
        if bare.mean() > _BARE:
            symbols = evolution.space.coordinates
            place = ", ".join(f"{s.name}={v:.3g}" for s, v in zip(symbols, X[bare][0], strict=False))
            return (
                f"The conditions do not determine the solution: near {place} on the boundary {name} needs {enough} "
                f"condition{'s' * (enough > 1)} and has {int(found[bare][0])}. Add what is missing there."
            )
    return ""


def exceeds(evolution: Evolution, needed: dict[str, int]) -> bool:
    """Tell whether somewhere on the boundary more is given than needed: that may make up for what is not given."""
    given = tuple(s for s in evolution.boundary if isinstance(s.place, OnPart))
    return bool(given) and bool((_covered(_boundary(evolution), given) > sum(needed.values())).any())


def surplus(evolution: Evolution, needed: dict[str, int]) -> tuple[Statement, ...]:
    """Return conditions beyond those that determine a solution: it either keeps them by itself, or there is none."""
    if len(needed) > 1 or evolution.pulled or not all(isinstance(s.place, OnPart) for s in evolution.boundary):
        return ()
    ((_, enough),) = needed.items()
    if not enough or not exceeds(evolution, needed):
        return ()
    X = _boundary(evolution)
    kept: tuple[Statement, ...] = ()
    for statement in sorted(evolution.boundary, key=lambda s: s.form.order):
        if not (_covered(X, (*kept, statement)) > enough).any():
            kept = (*kept, statement)
    if (_covered(X, kept) < enough).any():
        return ()
    return tuple(s for s in evolution.boundary if s not in kept)


def grows_without_bound(evolution: Evolution, network: Network) -> bool:
    """Tell whether the shorter waves are the faster they grow, without bound, as in a heat equation run backwards.

    That is Petrovskii's condition at places of the domain at the first time, linearised at a solution, or at the values
    given there: what is never negative may be so in a solution.
    """
    return _share_growing(evolution, network) > _OFTEN


def leaves_its_bounds(evolution: Evolution, network: Network, until: float) -> bool:
    """Tell whether a solution takes on values with which short waves grow without bound, though those given do not.

    It is that solution then which ends, and not the one of the problem: so it is with gas in a porous medium where
    there is none, as a density below zero diffuses backwards.
    """
    first = evolution.limits[0]
    return any(_share_growing(evolution, network, first + part * (until - first)) > 0.0 for part in _COURSE)


def _share_growing(evolution: Evolution, network: Network, time: float | None = None) -> float:
    """Return at how many of some places short waves grow without bound; at the first time if none is given."""
    if evolution.space is None or evolution.multipliers:
        return 0.0
    coordinates, symbols = evolution.problem.domain.coordinates, tuple(slot.symbol for slot in evolution.slots)
    X = evolution.problem.domain.initial.sample(_PLACES, "kronecker", 1).points
    given = evolution.initial if time is None else {}
    if time is not None:
        X = np.column_stack([X[:, :-1], np.full(len(X), time)])
    keys = [(slot.state[0], (*slot.multi_index, slot.state[1])) for slot in evolution.slots]
    known = network.evaluate(X, [index for _, index in keys])
    values = [
        known[index][:, evolution.problem.field_names.index(name)]
        if any(slot.multi_index) or slot.state not in given
        else compile_function(given[slot.state], coordinates)(X)
        for slot, (name, index) in zip(evolution.slots, keys, strict=True)
    ]
    slopes = {
        (name, slot): compile_function(sp.diff(rate, slot.symbol), coordinates, symbols)(X, None, values)
        for name, rate in evolution.rates.items()
        for slot in evolution.slots
        if rate.has(slot.symbol)
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
    growing = (growth[0] > 0) & (growth[1:] > _GROWS * growth[:-1]).all(axis=0)
    return float(growing.mean())


def _growth(evolution: Evolution, slopes: Mapping[Any, FloatArray], mass: Mapping[str, Any], wave: Any) -> FloatArray:
    """Return how fast a wave of small size grows at places, as far as that is plainly not zero."""

    def factor(index: MultiIndex) -> Any:
        return np.prod((1j * wave) ** np.array(index))

    rows = {state: number for number, state in enumerate(evolution.states)}
    matrix = np.zeros((_PLACES, len(rows), len(rows)), dtype=np.complex128)
    for (name, k), row in rows.items():
        if k + 1 < evolution.orders[name]:
            matrix[:, row, rows[name, k + 1]] = 1.0
    for (name, slot), slope in slopes.items():
        divisor = sum(own * factor(index) for index, own in mass[name].items()) if name in mass else 1.0
        row = rows[name, evolution.orders[name] - 1]
        matrix[:, row, rows[slot.state]] += slope * factor(slot.multi_index) / divisor
    found = np.linalg.eigvals(matrix)
    plain = found.real > _PLAIN * np.abs(found).max(axis=1, keepdims=True)
    return np.asarray(np.where(plain, found.real, 0.0).max(axis=1))
