"""Set-ups whose data do not determine the unknowns, and models that the data contradict.

A solver that returns a number for the first, or passes the second because the misfit is small, is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import sympy as sp

from pibls.geometry import Interval, Rectangle, TimeInterval
from pibls.problem import Dirichlet, Initial, Neumann, Problem, coordinates, field, laplacian, unknown
from pibls.problems.inverse.data import measured, values_of
from pibls.problems.inverse.numbers import layered_head
from pibls.problems.manufactured import scalar

__all__ = ["Unidentifiable", "unidentifiable", "wrong_models"]

_NOISE = 1e-3


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


def _beam(source: sp.Expr, exact: sp.Expr, places: np.ndarray, seed: int, truth: dict[sp.Symbol, float]) -> Problem:
    """Return −u″ = source on (0, 1) with u = 0 at the ends, and measurements."""
    x, u = scalar("x")
    points = places[:, None]
    data = measured(u, points, values_of(exact, (x,), points), _NOISE, seed)
    return Problem((sp.Eq(-u.diff(x, 2), source),), Interval((x, 0, 1)), (Dirichlet(u, 0), data), truth=truth)


def product(seed: int = 0) -> Problem:
    """Return −k c u″ = 1 on (0, 1): only k·c = 2 is determined."""
    x, u = scalar("x")
    k, c = (unknown(name, start=1, bounds=(0, None)) for name in "kc")
    points = np.linspace(0.1, 0.9, 9)[:, None]
    data = measured(u, points, values_of(x * (1 - x) / 4, (x,), points), _NOISE, seed)
    equation = sp.Eq(-k * c * u.diff(x, 2), 1)
    return Problem((equation,), Interval((x, 0, 1)), (Dirichlet(u, 0), data), truth={k: 4, c: sp.S.Half})


def out_of_reach(seed: int = 0) -> Problem:
    """Return u_x = 1 + q exp(−400 (x − 0.8)²) on (0, 1), u(0) = 0: no sensor before x = 0.8 sees the flow past it.

    Examples
    --------
    >>> float(out_of_reach().conditions[-1].points.max())
    0.5
    """
    x, u = scalar("x")
    q = unknown("q", start=1)
    rod = Interval((x, 0, 1))
    points = np.linspace(0.05, 0.5, 10)[:, None]
    data = measured(u, points, points[:, 0], _NOISE, seed)
    equation = sp.Eq(u.diff(x), 1 + q * sp.exp(-400 * (x - sp.Rational(4, 5)) ** 2))
    return Problem((equation,), rod, (Dirichlet(u, 0, on=rod.left), data), truth={q: 3})


def constant_data(seed: int = 0) -> Problem:
    """Return u_t = k u_xx on (0, 1) × (0, 1) with u = 1 at first and closed ends: nothing moves, whatever k is."""
    x, t, u = scalar("x t")
    k = unknown("k", start=1, bounds=(0, None))
    domain = Interval((x, 0, 1)) * TimeInterval(t, 0, 1)
    points = domain.sample(20, "kronecker")
    data = measured(u, points, np.ones(20), _NOISE, seed)
    equation = sp.Eq(u.diff(t), k * u.diff(x, 2))
    return Problem((equation,), domain, (Neumann(u, 0), Initial(u, 1), data), truth={k: 0.5})


def symmetric_sensors(seed: int = 0) -> Problem:
    """Return −Δu = π² (2 a sin πy + 5 b sin 2πy) sin πx in the unit square, u = 0 around it: b is not seen at y = ½.

    u = (a sin πy + b sin 2πy) sin πx, of which the second part is odd about the line of the sensors.

    Examples
    --------
    >>> set(symmetric_sensors().conditions[-1].points[:, 1].tolist())
    {0.5}
    """
    x, y, u = scalar("x y")
    a, b = unknown("a", start=1), unknown("b", start=0)
    points = np.column_stack([np.linspace(0.1, 0.9, 9), np.full(9, 0.5)])
    data = measured(u, points, 2 * np.sin(np.pi * points[:, 0]), _NOISE, seed)
    square = Rectangle((x, 0, 1), (y, 0, 1))
    along = 2 * a * sp.sin(sp.pi * y) + 5 * b * sp.sin(2 * sp.pi * y)
    equation = sp.Eq(-laplacian(u), sp.pi**2 * along * sp.sin(sp.pi * x))
    return Problem((equation,), square, (Dirichlet(u, 0), data), truth={a: 2, b: 1})


def fewer_data(seed: int = 0) -> Problem:
    """Return −u″ = a + b x + c x² on (0, 1), u = 0 at the ends, with a = b = c = 1: three numbers from two values.

    Examples
    --------
    >>> len(fewer_data().parameters), len(fewer_data().conditions[-1].values)
    (3, 2)
    """
    x = coordinates("x")
    a, b, c = (unknown(name, start=0) for name in "abc")
    exact = (x - x**2) / 2 + (x - x**3) / 6 + (x - x**4) / 12
    return _beam(a + b * x + c * x**2, exact, np.array([0.3, 0.7]), seed, {a: 1, b: 1, c: 1})


def times_zero(seed: int = 0) -> Problem:
    """Return −u″ + c w = q π² sin πx and w″ = 0 on (0, 1), both 0 at the ends: c multiplies w = 0."""
    x = coordinates("x")
    u, w = field("u", x), field("w", x)
    c, q = unknown("c", start=1), unknown("q", start=1)
    points = np.linspace(0.1, 0.9, 9)[:, None]
    data = measured(u, points, 2 * np.sin(np.pi * points[:, 0]), _NOISE, seed)
    equations = (sp.Eq(-u.diff(x, 2) + c * w, q * sp.pi**2 * sp.sin(sp.pi * x)), sp.Eq(w.diff(x, 2), 0))
    return Problem(equations, Interval((x, 0, 1)), (Dirichlet(u, 0), Dirichlet(w, 0), data), truth={c: 5, q: 2})


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
    x, t, u = scalar("x t")
    k = unknown("k", start=1, bounds=(0, None))
    true = sum(sp.exp(-(sp.Rational(n**2, 2) + 1) * t) * sp.sin(n * x) for n in (1, 3))
    domain = Interval((x, 0, sp.pi)) * TimeInterval(t, 0, 1)
    points = domain.sample(40, "kronecker")
    data = measured(u, points, values_of(true, (x, t), points), _NOISE, seed)
    conditions = (Dirichlet(u, 0), Initial(u, true.subs(t, 0)), data)
    return Problem((sp.Eq(u.diff(t), k * u.diff(x, 2)),), domain, conditions)


def missing_damping(seed: int = 0) -> Problem:
    """Return u″ + k u = 0 from u = 1 at rest for data of u″ + u′/10 + 4 u = 0: phases fit, sizes do not."""
    t = coordinates("t")
    u, k = field("u", t), unknown("k", start=3, bounds=(0, None))
    rate, pace = sp.Rational(1, 20), sp.sqrt(4 - sp.Rational(1, 400))
    true = sp.exp(-rate * t) * (sp.cos(pace * t) + rate / pace * sp.sin(pace * t))
    points = np.linspace(0.2, 6.0, 30)[:, None]
    data = measured(u, points, values_of(true, (t,), points), _NOISE, seed)
    conditions = (Initial(u, 1), Initial(u.diff(t), 0), data)
    return Problem((sp.Eq(u.diff(t, 2) + k * u, 0),), TimeInterval(t, 0, 6), conditions)


def one_layer(seed: int = 0) -> Problem:
    """Return k Δp = 0 in the unit square for the heads of :func:`~pibls.problems.inverse.two_layer_darcy`."""
    x, y = coordinates("x y")
    p, k = field("p", x, y), unknown("k", start=3, bounds=(0, None))
    square = Rectangle((x, 0, 1), (y, 0, 1))
    wells = square.sample(25, "kronecker")
    heads = values_of(layered_head(x, y, 1, 10, sp.Rational(2, 5)), (x, y), wells)
    data = measured(p, wells, heads, _NOISE / 10, seed)
    walls = Dirichlet(p, 0, on=square.left | square.right | square.bottom)
    inflow = Neumann(p, sp.sin(sp.pi * x) / k, on=square.top)
    return Problem((sp.Eq(k * laplacian(p), 0),), square, (walls, inflow, data))


def wrong_models() -> Mapping[str, Callable[[int], Problem]]:
    """Return problems whose data contradict the model at the stated noise, by name.

    Examples
    --------
    >>> list(wrong_models())
    ['missing_sink', 'missing_damping', 'one_layer']
    """
    return MappingProxyType({build.__name__: build for build in (missing_sink, missing_damping, one_layer)})
