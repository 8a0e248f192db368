"""Characteristics of one field that is carried along: where they enter without a condition, and where they meet.

An evolution u_t + a·∇u = s carries values with the velocity a. Where it enters the domain, values must be given. Where
a depends on u, characteristics may meet: the solution becomes infinitely steep there, and none that is smooth goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.problem import Opposite
from pibls.problem.analysis import analysis_of
from pibls.problem.evaluate import compile_function
from pibls.refinement.standards import PLAIN, POINTS, SLIGHT
from pibls.wellposed.boundary_counts import counted, equations_in_words, has, joined, named

if TYPE_CHECKING:
    from pibls.evolution.form import Evolution
    from pibls.evolution.multipliers import Slot


def carried(evolution: Evolution) -> str:
    """Say where values are carried in that no condition gives, or when characteristics meet; else an empty text.

    >>> import pibls as pb
    >>> from pibls.evolution import find_evolution
    >>> x, t = pb.coordinates("x t")
    >>> u, road = pb.field("u", x, t), pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    >>> start = pb.Initial(u, sp.sin(sp.pi * x))
    >>> problem = pb.Problem(sp.Eq(u.diff(t) + u.diff(x), 0), road, [start])
    >>> print(carried(find_evolution(problem))[:63])
    The solution is not unique: left has no condition, and u enters
    >>> problem = pb.Problem(sp.Eq(u.diff(t) + u * u.diff(x), 0), road, [start, pb.Dirichlet(u, 0)])
    >>> print(carried(find_evolution(problem))[:79])
    The solution ceases to exist: near t = 0.318, x = 1 characteristics meet, and u
    """
    if len(evolution.orders) != 1 or evolution.space is None or evolution.multipliers or evolution.mass:
        return ""
    ((name, order),) = evolution.orders.items()
    slots = [slot for slot in evolution.slots if sum(slot.multi_index)]
    if order != 1 or not slots or any(sum(slot.multi_index) > 1 for slot in slots):
        return ""
    velocity = {slot: sp.expand(-evolution.slopes[name].get(slot, sp.S.Zero)) for slot in slots}
    # An equation that is not linear in its slopes has no velocity before they are known.
    if any(own.free_symbols & {slot.symbol for slot in slots} for own in velocity.values()):
        return ""
    try:
        return _entering(evolution, name, velocity) or _meeting(evolution, name, velocity)
    except PiblsError:
        return ""  # speeds may be infinite somewhere


def _entering(evolution: Evolution, name: str, velocity: dict[Slot, sp.Expr]) -> str:
    """Say which parts of the boundary have no condition though values are carried in there."""
    problem = evolution.problem
    coordinates, symbols = problem.domain.coordinates, tuple(slot.symbol for slot in evolution.slots)
    if problem.domain.boundary.empty:
        return ""
    X, normals = problem.domain.boundary.sample(POINTS, "kronecker", 1)
    at = np.column_stack([X[:, :-1], np.full(len(X), evolution.limits[0])])
    if (first := evolution.first_state(at, evolution.slots)) is None:
        return ""
    through, fastest = np.zeros(len(X)), 0.0
    for slot, own in velocity.items():
        speed = compile_function(own, coordinates, symbols)(at, None, list(first.values()))
        through += speed * normals[:, slot.multi_index.index(1)]
        fastest = max(fastest, float(np.abs(speed).max()))
    bare = (through < -PLAIN * fastest) & (counted(problem, X, evolution.boundary) == 0)
    if bare.mean() <= SLIGHT:
        return ""
    places = [own for own, part in named(problem).items() if bare[part.contains(X)].any()]
    place = joined(places) if places else "a piece of the boundary"
    equation = equations_in_words(problem, analysis_of(problem).equations)
    return (
        f"The solution is not unique: {has(place, 0)}, and {name} enters there, at a speed of "
        f"{-through[bare].min():.3g}; {equation} needs one wherever it does. Add what is missing, as Dirichlet({name}, "
        "..., on=...); where it leaves, none is needed."
    )


def _meeting(evolution: Evolution, name: str, velocity: dict[Slot, sp.Expr]) -> str:
    """Say when and where characteristics that start at the first time meet on a line; an empty text if none do."""
    state = next((slot for slot in evolution.slots if not sum(slot.multi_index)), None)
    space, (start, stop) = evolution.problem.domain.space, evolution.limits
    if state is None or len(space) != 1 or not any(state.symbol in own.free_symbols for own in velocity.values()):
        return ""
    ((slope, speed),) = velocity.items()
    (x,), u = space, state.symbol
    given = evolution.initial.get(state.state)
    if given is None or given.atoms(sp.core.function.AppliedUndef):
        return ""
    source = evolution.rates[name].xreplace({slope.symbol: sp.S.Zero})
    wanted = [speed, source, *(own.diff(by) for own in (speed, source) for by in (x, u))]
    functions = [compile_function(own, evolution.problem.domain.coordinates, (u,)) for own in wanted]
    X = np.column_stack([evolution.space.sample(POINTS, "kronecker", 1), np.full(POINTS, start)])
    first = [compile_function(own, evolution.problem.domain.coordinates)(X) for own in (given, given.diff(x))]
    bounds = evolution.space.bounds[0]
    is_round = any(isinstance(s.place, Opposite) for s in evolution.boundary)
    within = np.array([-np.inf, np.inf]) if is_round else bounds + PLAIN * np.ptp(bounds) * np.array([-1.0, 1.0])
    begun = np.stack([X[:, 0], first[0], np.ones(len(X)), first[1]])
    time, place = _first_meeting(functions, begun, np.linspace(start, stop, POINTS), within)
    if not np.isfinite(time):
        return ""
    place = bounds[0] + (place - bounds[0]) % np.ptp(bounds) if is_round else place
    coordinate = evolution.problem.domain.time
    return (
        f"The solution ceases to exist: near {coordinate} = {time:.3g}, {x} = {place:.3g} characteristics meet, and "
        f"{name} becomes infinitely steep. End earlier, or add what smooths it, as a small viscosity."
    )


def _first_meeting(
    functions: Sequence[Any], begun: FloatArray, times: FloatArray, within: FloatArray
) -> tuple[float, float]:
    """Return when and where neighbouring characteristics first meet: where the derivative of place by start vanishes.

    The rows that they begin with are place, value, and the derivatives of both by the place at first. Those that have
    left the domain meet no more.
    """
    from scipy.integrate import solve_ivp

    count = begun.shape[1]

    def rate(time: float, flat: FloatArray) -> FloatArray:
        place, value, apart, steep = flat.reshape(4, count)
        X = np.column_stack([place, np.full(count, time)])
        speed, source, speed_x, speed_u, source_x, source_u = (own(X, None, [value]) for own in functions)
        return np.concatenate([speed, source, speed_x * apart + speed_u * steep, source_x * apart + source_u * steep])

    sizes = PLAIN**2 * np.abs(begun).max(axis=1) + np.finfo(np.float64).tiny
    options = {"t_eval": times[:-1], "rtol": PLAIN**2, "atol": np.repeat(sizes, count)}
    found = solve_ivp(rate, (times[0], times[-1]), begun.ravel(), **options)
    place, _, apart, _ = np.moveaxis(found.y.T.reshape(-1, 4, count), 1, 0)
    inside = np.logical_and.accumulate((place >= within[0]) & (place <= within[1]), axis=0)
    apart = np.where(inside, apart, np.inf)
    crossed = np.flatnonzero(apart.min(axis=1, initial=np.inf) <= 0)
    if not len(crossed):
        return np.inf, 0.0
    k = int(crossed[0])
    own = int(apart[k].argmin())
    share = apart[k - 1, own] / (apart[k - 1, own] - apart[k, own])
    return float(times[k - 1] + share * (times[k] - times[k - 1])), float(place[k, own])
