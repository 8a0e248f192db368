"""Characteristics of one field that is carried along: where they enter and leave, and where they meet.

An evolution u_t + a·∇u = s carries values with the velocity a. Where it enters the domain, values must be given. Where
it leaves, a condition is one too many, and contradicts what is carried there unless it says the same. Where a depends
on u, characteristics may meet: the solution becomes infinitely steep there, and none that is smooth goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import PiblsError
from pibls.problem import OnPart, Opposite
from pibls.problem.evaluate import compile_function
from pibls.refinement.standards import PLAIN, POINTS, SLIGHT
from pibls.wellposed.counting import counted, equations_in_words, has, joined, named

if TYPE_CHECKING:
    from pibls.evolution.form import Evolution
    from pibls.evolution.multipliers import Slot


def carried(evolution: Evolution) -> str:
    """Say where values enter without a condition, or leave against one, or when characteristics meet; else nothing."""
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
        return _entering(evolution, name, velocity) or _along(evolution, name, velocity)
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
    equation = equations_in_words(problem, problem.laws.statements)
    return (
        f"The solution is not unique: {has(place, 0)}, and {name} enters there, at a speed of "
        f"{-through[bare].min():.3g}; {equation} needs one wherever it does. Add what is missing, such as "
        f"Dirichlet({name}, ..., on=...); where it leaves, none is needed."
    )


def _along(evolution: Evolution, name: str, velocity: dict[Slot, sp.Expr]) -> str:
    """Follow characteristics from the first time on a line; say when some meet, or leave against a condition."""
    state = next((slot for slot in evolution.slots if not sum(slot.multi_index)), None)
    space, (start, stop) = evolution.problem.domain.space, evolution.limits
    given = None if len(space) != 1 else evolution.initial.get((name, 0))
    if given is None or given.atoms(sp.core.function.AppliedUndef):
        return ""
    ((slope, speed),) = velocity.items()
    (x,), u = space, sp.Dummy() if state is None else state.symbol
    source = evolution.rates[name].xreplace({slope.symbol: sp.S.Zero})
    wanted = [speed, source, *(own.diff(by) for own in (speed, source) for by in (x, u))]
    functions = [compile_function(own, evolution.problem.domain.coordinates, (u,)) for own in wanted]
    X = np.column_stack([evolution.space.sample(POINTS, "kronecker", 1), np.full(POINTS, start)])
    first = [compile_function(own, evolution.problem.domain.coordinates)(X) for own in (given, given.diff(x))]
    begun = np.stack([X[:, 0], first[0], np.ones(len(X)), first[1]])
    times = np.linspace(start, stop, POINTS)
    courses = _followed(functions, begun, times)
    is_round = any(isinstance(s.place, Opposite) for s in evolution.boundary)
    told = "" if not speed.has(u) else _meeting(evolution, name, courses(times[:-1]), times, is_round)
    return told or ("" if is_round else _leaving(evolution, name, courses, times))


def _leaving(evolution: Evolution, name: str, courses: Any, times: FloatArray) -> str:
    """Say where a value that is carried out of the domain contradicts a condition there."""
    from scipy.optimize import brentq

    every = courses(times)
    for side, end in zip((-1.0, 1.0), evolution.space.bounds[0].tolist(), strict=True):
        beyond = side * (every[:, 0] - end) > 0
        left = np.flatnonzero(beyond.any(axis=0) & ~beyond[0])
        after = beyond[:, left].argmax(axis=0)
        spans = zip(left, times[after - 1], times[after], strict=True)
        when = np.array([brentq(lambda t, k=k, end=end: courses(t)[0, k] - end, *ends) for k, *ends in spans])
        leaving = np.array([courses(time)[1, k] for time, k in zip(when, left, strict=True)])
        given = _given_at(evolution, name, np.column_stack([np.full(len(when), end), when]))
        gap = np.nan_to_num(np.abs(given - leaving))
        if gap.max(initial=0.0) > SLIGHT * np.abs(every[:, 1]).max():
            (x, t), k = evolution.problem.domain.coordinates, int(gap.argmax())
            return (
                f"The conditions contradict each other: at {t} = {when[k]:.3g} the value {leaving[k]:.3g} of {name} is "
                f"carried out at {x} = {end:.3g}, where a condition says {given[k]:.3g}. Where {name} leaves, none is "
                "needed: remove it, or check the sign of the speed."
            )
    return ""


def _given_at(evolution: Evolution, name: str, X: FloatArray) -> FloatArray:
    """Return the values that conditions give a field at points of the boundary; NaN where none does."""
    found = np.full(len(X), np.nan)
    for statement in evolution.boundary:
        form, place = statement.form, statement.place
        terms = [(term.field, term.order) for term in form.terms]
        if not isinstance(place, OnPart) or not form.is_linear or terms != [(name, 0)] or not len(X):
            continue
        mine = np.flatnonzero(place.part.contains(X))
        if len(mine):
            normals = place.part.normals(X[mine])
            found[mine] = 0.0 - form.source_function(X[mine], normals) / form.coefficient_functions[0](
                X[mine], normals, []
            )
    return found


def _meeting(evolution: Evolution, name: str, courses: FloatArray, times: FloatArray, is_round: bool) -> str:
    """Say when and where neighbouring characteristics first meet; an empty text if none do.

    There the derivative of the place by the start vanishes. Those that have left the domain meet no more.
    """
    bounds, (x,) = evolution.space.bounds[0], evolution.problem.domain.space
    within = np.array([-np.inf, np.inf]) if is_round else bounds + PLAIN * np.ptp(bounds) * np.array([-1.0, 1.0])
    places, apart = courses[:, 0], courses[:, 2]
    inside = np.logical_and.accumulate((places >= within[0]) & (places <= within[1]), axis=0)
    apart = np.where(inside, apart, np.inf)
    crossed = np.flatnonzero(apart.min(axis=1, initial=np.inf) <= 0)
    if not len(crossed):
        return ""
    k = int(crossed[0])
    own = int(apart[k].argmin())
    share = apart[k - 1, own] / (apart[k - 1, own] - apart[k, own])
    time, place = times[k - 1] + share * (times[k] - times[k - 1]), float(places[k, own])
    place = bounds[0] + (place - bounds[0]) % np.ptp(bounds) if is_round else place
    return (
        f"The solution ceases to exist: near {evolution.problem.domain.time} = {time:.3g}, {x} = {place:.3g} "
        f"characteristics meet, and {name} becomes infinitely steep. End earlier, or add what smooths it, as a small "
        "viscosity."
    )


def _followed(functions: Sequence[Any], begun: FloatArray, times: FloatArray) -> Callable[[Any], FloatArray]:
    """Return a function of times that gives characteristics, shape (times, 4, characteristics).

    The rows that they begin with are place, value, and the derivatives of both by the place at first.
    """
    from scipy.integrate import solve_ivp

    count = begun.shape[1]

    def rate(time: float, flat: FloatArray) -> FloatArray:
        place, value, apart, steep = flat.reshape(4, count)
        X = np.column_stack([place, np.full(count, time)])
        speed, source, speed_x, speed_u, source_x, source_u = (own(X, None, [value]) for own in functions)
        return np.concatenate([speed, source, speed_x * apart + speed_u * steep, source_x * apart + source_u * steep])

    sizes = PLAIN**2 * np.abs(begun).max(axis=1) + np.finfo(np.float64).tiny
    options = {"dense_output": True, "rtol": PLAIN**2, "atol": np.repeat(sizes, count)}
    found = solve_ivp(rate, (times[0], times[-1]), begun.ravel(), **options)
    # What ends early, as in a blow-up, stays as it ended.
    return lambda t: found.sol(np.minimum(t, found.t[-1])).T.reshape(*np.shape(t), 4, count)
