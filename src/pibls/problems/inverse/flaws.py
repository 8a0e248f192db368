"""Set-ups whose data do not determine the unknowns, and models that the data contradict.

A solver that returns a number for the first, or passes the second because the misfit is small, is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp

from pibls.geometry import Interval, TimeInterval
from pibls.problem import Dirichlet, Initial, Neumann, Problem, field, laplacian, unknown
from pibls.problems.inverse.data import measured
from pibls.problems.inverse.numbers import layered_head
from pibls.problems.manufactured import SPACE_TIME, SQUARE, UNIT, t, x, y

__all__ = ["Unidentifiable", "unidentifiable", "wrong_models"]

_NOISE = 1e-3
w, c = field("u", x), field("u", x, t)  # on a line, and in time too


@dataclass(frozen=True)
class Unidentifiable:
    """A problem whose data leave a direction open.

    Attributes
    ----------
    problem
        Builds the problem, with the noise of a seed.
    direction
        How the unknowns may change together without any change of the data, at the truth, of length one; unknowns that
        are told are left out. For positive unknowns it is that of their logarithms.
    """

    problem: Callable[[int], Problem]
    direction: Mapping[str, float]


def _beam(source: sp.Expr, exact: sp.Expr, places: np.ndarray, seed: int, truth: Any, stiffness: Any = 1) -> Problem:
    """Return −stiffness u″ = source on (0, 1) with u = 0 at the ends, and measurements."""
    data = measured(w, places[:, None], exact, _NOISE, seed)
    return Problem(sp.Eq(-stiffness * w.diff(x, 2), source), UNIT, (Dirichlet(w, 0), data), truth=truth)


def product(seed: int = 0) -> Problem:
    """Return −k c u″ = 1 on (0, 1): only k·c = 2 is determined."""
    k, c = (unknown(name, start=1, bounds=(0, None)) for name in "kc")
    places = np.linspace(0.1, 0.9, 9)
    return _beam(sp.S.One, x * (1 - x) / 4, places, seed, {k: 4, c: sp.S.Half}, k * c)


def out_of_reach(seed: int = 0) -> Problem:
    """Return u_x = 1 + q exp(−400 (x − 0.8)²) on (0, 1), u(0) = 0: no sensor before x = 0.8 sees the flow past it.

    Examples
    --------
    >>> float(out_of_reach().conditions[-1].points.max())
    0.5
    """
    q, points = unknown("q", start=1), np.linspace(0.05, 0.5, 10)[:, None]
    data = measured(w, points, points[:, 0], _NOISE, seed)
    equation = sp.Eq(w.diff(x), 1 + q * sp.exp(-400 * (x - sp.Rational(4, 5)) ** 2))
    return Problem(equation, UNIT, (Dirichlet(w, 0, on=UNIT.left), data), truth={q: 3})


def constant_data(seed: int = 0) -> Problem:
    """Return u_t = k u_xx on (0, 1) × (0, 1) with u = 1 at first and closed ends: nothing moves, whatever k is."""
    k = unknown("k", start=1, bounds=(0, None))
    data = measured(c, SPACE_TIME.sample(20, "kronecker"), np.ones(20), _NOISE, seed)
    return Problem(sp.Eq(c.diff(t), k * c.diff(x, 2)), SPACE_TIME, (Neumann(c, 0), Initial(c, 1), data), truth={k: 0.5})


def symmetric_sensors(seed: int = 0) -> Problem:
    """Return −Δu = π² (2 a sin πy + 5 b sin 2πy) sin πx in the unit square, u = 0 around it: b is not seen at y = ½.

    u = (a sin πy + b sin 2πy) sin πx, of which the second part is odd about the line of the sensors.

    Examples
    --------
    >>> set(symmetric_sensors().conditions[-1].points[:, 1].tolist())
    {0.5}
    """
    u, a, b = field("u", x, y), unknown("a", start=1), unknown("b", start=0)
    points = np.column_stack([np.linspace(0.1, 0.9, 9), np.full(9, 0.5)])
    data = measured(u, points, 2 * np.sin(np.pi * points[:, 0]), _NOISE, seed)
    along = 2 * a * sp.sin(sp.pi * y) + 5 * b * sp.sin(2 * sp.pi * y)
    equation = sp.Eq(-laplacian(u), sp.pi**2 * along * sp.sin(sp.pi * x))
    return Problem(equation, SQUARE, (Dirichlet(u, 0), data), truth={a: 2, b: 1})


def fewer_data(seed: int = 0) -> Problem:
    """Return −u″ = a + b x + c x² on (0, 1), u = 0 at the ends, with a = b = c = 1: three numbers from two values.

    Examples
    --------
    >>> len(fewer_data().parameters), len(fewer_data().conditions[-1].values)
    (3, 2)
    """
    a, b, c = (unknown(name, start=0) for name in "abc")
    exact = (x - x**2) / 2 + (x - x**3) / 6 + (x - x**4) / 12
    return _beam(a + b * x + c * x**2, exact, np.array([0.3, 0.7]), seed, {a: 1, b: 1, c: 1})


def times_zero(seed: int = 0) -> Problem:
    """Return −u″ + c w = q π² sin πx and w″ = 0 on (0, 1), both 0 at the ends: c multiplies w = 0."""
    u, v = field("u", x), field("w", x)
    c, q, points = unknown("c", start=1), unknown("q", start=1), np.linspace(0.1, 0.9, 9)[:, None]
    data = measured(u, points, 2 * np.sin(np.pi * points[:, 0]), _NOISE, seed)
    equations = (sp.Eq(-u.diff(x, 2) + c * v, q * sp.pi**2 * sp.sin(sp.pi * x)), sp.Eq(v.diff(x, 2), 0))
    return Problem(equations, UNIT, (Dirichlet(u, 0), Dirichlet(v, 0), data), truth={c: 5, q: 2})


def _unseen() -> dict[str, float]:
    """Return the direction of :func:`fewer_data`: the a + b x + c x² that changes u at neither sensor."""
    places = np.array([0.3, 0.7])
    answers = np.stack([(places - places ** (n + 2)) / ((n + 1) * (n + 2)) for n in range(3)], axis=1)
    direction = np.linalg.svd(answers)[2][-1]
    return dict(zip("abc", (direction * np.sign(direction[0])).tolist(), strict=True))


def unidentifiable() -> Mapping[str, Unidentifiable]:
    """Return the set-ups whose data leave a direction open, by name.

    Examples
    --------
    >>> list(unidentifiable())
    ['product', 'out_of_reach', 'constant_data', 'symmetric_sensors', 'fewer_data', 'times_zero']
    >>> unidentifiable()["times_zero"].direction
    {'c': 1.0}
    """
    half = float(np.sqrt(0.5))
    known: dict[Callable[[int], Problem], dict[str, float]] = {
        product: {"k": half, "c": -half},
        out_of_reach: {"q": 1.0},
        constant_data: {"k": 1.0},
        symmetric_sensors: {"b": 1.0},
        fewer_data: _unseen(),
        times_zero: {"c": 1.0},
    }
    return MappingProxyType({build.__name__: Unidentifiable(build, found) for build, found in known.items()})


def missing_sink(seed: int = 0) -> Problem:
    """Return u_t = k u_xx on (0, π) × (0, 1) for data of u_t = u_xx/2 − u: two decays that no k explains.

    Examples
    --------
    >>> print(missing_sink().equations[0])
    Eq(Derivative(u(x, t), t), k*Derivative(u(x, t), (x, 2)))
    """
    k = unknown("k", start=1, bounds=(0, None))
    true = sum(sp.exp(-(sp.Rational(n**2, 2) + 1) * t) * sp.sin(n * x) for n in (1, 3))
    domain = Interval((x, 0, sp.pi)) * TimeInterval(t, 0, 1)
    data = measured(c, domain.sample(40, "kronecker"), true, _NOISE, seed)
    return Problem(sp.Eq(c.diff(t), k * c.diff(x, 2)), domain, (Dirichlet(c, 0), Initial(c, true.subs(t, 0)), data))


def missing_damping(seed: int = 0) -> Problem:
    """Return u″ + k u = 0 from u = 1 at rest for data of u″ + u′/10 + 4 u = 0: phases fit, sizes do not."""
    u, k = field("u", t), unknown("k", start=3, bounds=(0, None))
    rate, pace = sp.Rational(1, 20), sp.sqrt(4 - sp.Rational(1, 400))
    true = sp.exp(-rate * t) * (sp.cos(pace * t) + rate / pace * sp.sin(pace * t))
    data = measured(u, np.linspace(0.2, 6.0, 30)[:, None], true, _NOISE, seed)
    return Problem(sp.Eq(u.diff(t, 2) + k * u, 0), TimeInterval(t, 0, 6), (Initial(u, 1), Initial(u.diff(t), 0), data))


def one_layer(seed: int = 0) -> Problem:
    """Return k Δp = 0 in the unit square for the heads of :func:`~pibls.problems.inverse.two_layer_darcy`."""
    p, k = field("p", x, y), unknown("k", start=3, bounds=(0, None))
    heads = layered_head(x, y, 1, 10, sp.Rational(2, 5))
    data = measured(p, SQUARE.sample(25, "kronecker"), heads, _NOISE / 10, seed)
    walls = Dirichlet(p, 0, on=SQUARE.left | SQUARE.right | SQUARE.bottom)
    inflow = Neumann(p, sp.sin(sp.pi * x) / k, on=SQUARE.top)
    return Problem(sp.Eq(k * laplacian(p), 0), SQUARE, (walls, inflow, data))


def wrong_models() -> Mapping[str, Callable[[int], Problem]]:
    """Return problems whose data contradict the model at the stated noise, by name.

    Examples
    --------
    >>> list(wrong_models())
    ['missing_sink', 'missing_damping', 'one_layer']
    """
    return MappingProxyType({build.__name__: build for build in (missing_sink, missing_damping, one_layer)})
