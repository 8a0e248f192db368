"""Inverse problems for numbers: coefficients, masses, speeds, positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from pibls.geometry import Interval, Rectangle, TimeInterval, per_region
from pibls.problem import (
    Condition,
    Dirichlet,
    Initial,
    Periodic,
    Problem,
    Robin,
    coordinates,
    div,
    field,
    grad,
    laplacian,
    normal_derivative,
    unknown,
)
from pibls.problems.evolving import kdv
from pibls.problems.inverse.data import gaussian_plate, lorenz_path, measured, values_of
from pibls.problems.manufactured import scalar
from pibls.problems.spectral import cole_hopf

__all__ = [
    "brinkman_forchheimer",
    "burgers_coefficients",
    "heat_diffusivity",
    "kdv_coefficients",
    "klein_gordon_mass",
    "lorenz_parameters",
    "robin_coefficient",
    "source_position",
    "two_layer_darcy",
    "wave_speed",
]


def heat_diffusivity(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_t = k u_xx + f on (−1, 1) × (0, 1): the diffusivity k = 1 from ten points at t = 1.

    The source fits u = e⁻ᵗ sin πx, as in the examples of DeepXDE.

    Parameters
    ----------
    noise
        Standard deviation of the noise that is added to the data.
    seed
        Which noise.
    """
    x, t, u = scalar("x t")
    k = unknown("k", bounds=(0, None))
    exact = sp.exp(-t) * sp.sin(sp.pi * x)
    equation = sp.Eq(u.diff(t), k * u.diff(x, 2) + (sp.pi**2 - 1) * exact)
    domain = Interval((x, -1, 1)) * TimeInterval(t, 0, 1)
    points = np.column_stack([np.linspace(-0.9, 0.9, 10), np.ones(10)])
    data = measured(u, points, values_of(exact, (x, t), points), noise, seed)
    conditions = (Dirichlet(u, 0), Initial(u, sp.sin(sp.pi * x)), data)
    return Problem((equation,), domain, conditions, exact=exact, truth={k: 1})


def brinkman_forchheimer(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return −(νₑ/0.4) u″ + 10⁻³ u/K = 1 on (0, 1): flow through a porous channel, both numbers 10⁻³, from five points.

    The starts, 0.1, are two decades off. u(0) = u(1) = 0; the velocity is a plateau between two layers of width 1/20.
    Parameters as for :func:`heat_diffusivity`.
    """
    x, u = scalar("x")
    nu, permeability = unknown("nu_e", start=0.1, bounds=(0, None)), unknown("K", start=0.1, bounds=(0, None))
    equation = sp.Eq(-nu / sp.Rational(2, 5) * u.diff(x, 2) + u / (1000 * permeability), 1)
    exact = 1 - sp.cosh(20 * (x - sp.S.Half)) / sp.cosh(10)
    points = np.arange(1, 6)[:, None] / 6.0
    data = measured(u, points, values_of(exact, (x,), points), noise, seed)
    truth = {nu: 1e-3, permeability: 1e-3}
    return Problem((equation,), Interval((x, 0, 1)), (Dirichlet(u, 0), data), exact=exact, truth=truth)


def _modes(x: sp.Symbol, t: sp.Symbol, *frequencies: sp.Expr) -> sp.Expr:
    """Return standing waves sin nx cos ωt of falling size."""
    return sum(sp.sin(n * x) * sp.cos(w * t) / n for n, w in enumerate(frequencies, start=1))


def klein_gordon_mass(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_tt = u_xx − m² u on (0, π) × (0, 2): the mass m² = 4 from 50 points, start 1.

    Two standing waves. Parameters as for :func:`heat_diffusivity`.

    Examples
    --------
    >>> klein_gordon_mass().parameters[0].start
    1.0
    """
    x, t, u = scalar("x t")
    m2 = unknown("m2", start=1)
    exact = _modes(x, t, sp.sqrt(5), sp.sqrt(8))
    domain = Interval((x, 0, sp.pi)) * TimeInterval(t, 0, 2)
    points = domain.sample(50, "kronecker")
    data = measured(u, points, values_of(exact, (x, t), points), noise, seed)
    conditions = (Dirichlet(u, 0), Initial(u, exact.subs(t, 0)), Initial(u.diff(t), 0), data)
    equation = sp.Eq(u.diff(t, 2), u.diff(x, 2) - m2 * u)
    return Problem((equation,), domain, conditions, exact=exact, truth={m2: 4})


def wave_speed(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_tt = c² u_xx on (0, π) × (0, 2): the speed c = 1.3 from 30 points.

    Two standing waves. Parameters as for :func:`heat_diffusivity`.
    """
    x, t, u = scalar("x t")
    c = unknown("c", bounds=(0, None))
    speed = sp.Rational(13, 10)
    exact = _modes(x, t, speed, 2 * speed)
    domain = Interval((x, 0, sp.pi)) * TimeInterval(t, 0, 2)
    points = domain.sample(30, "kronecker")
    data = measured(u, points, values_of(exact, (x, t), points), noise, seed)
    conditions = (Dirichlet(u, 0), Initial(u, exact.subs(t, 0)), Initial(u.diff(t), 0), data)
    equation = sp.Eq(u.diff(t, 2), c**2 * u.diff(x, 2))
    return Problem((equation,), domain, conditions, exact=exact, truth={c: speed})


def robin_coefficient(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return Δu = 0 in the unit square with ∂u/∂n + h u = 0 on the right: h = 2.5 from 20 points inside.

    u = sin πy on the left and 0 below and above. Parameters as for :func:`heat_diffusivity`.
    """
    x, y, u = scalar("x y")
    h, true = unknown("h", bounds=(0, None)), sp.Rational(5, 2)
    side = sp.pi * sp.sinh(sp.pi) + true * sp.cosh(sp.pi)
    other = sp.pi * sp.cosh(sp.pi) + true * sp.sinh(sp.pi)
    exact = sp.sin(sp.pi * y) * (sp.cosh(sp.pi * x) - side / other * sp.sinh(sp.pi * x))
    square = Rectangle((x, 0, 1), (y, 0, 1))
    points = square.sample(20, "kronecker")
    data = measured(u, points, values_of(exact, (x, y), points), noise, seed)
    walls = (Dirichlet(u, sp.sin(sp.pi * y), on=square.left), Dirichlet(u, 0, on=square.bottom | square.top))
    conditions = (*walls, Robin(u, h, 1, 0, on=square.right), data)
    return Problem((sp.Eq(laplacian(u), 0),), square, conditions, exact=exact, truth={h: true})


def burgers_coefficients(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_t + a u u_x = ν u_xx on (−1, 1) × (0, 1): a = 1 and ν = 0.01/π from 2000 scattered points.

    The data are the Cole–Hopf integral from −sin πx, which steepens to a shock. Parameters as for
    :func:`heat_diffusivity`.
    """
    x, t, u = scalar("x t")
    a, nu = unknown("a", start=0.5), unknown("nu", start=0.02, bounds=(0, None))
    domain = Interval((x, -1, 1)) * TimeInterval(t, 0, 1)
    points = domain.sample(2000, "kronecker")
    data = measured(u, points, cole_hopf(0.01 / np.pi)(*points.T), noise, seed)
    conditions = (Dirichlet(u, 0), Initial(u, -sp.sin(sp.pi * x)), data)
    equation = sp.Eq(u.diff(t) + a * u * u.diff(x), nu * u.diff(x, 2))
    return Problem((equation,), domain, conditions, truth={a: 1, nu: 0.01 / np.pi})


def kdv_coefficients(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_t + a u u_x + b u_xxx = 0 on (−22, 22) × (0, 2), periodic: a = 6 and b = 1 from 500 points.

    One soliton catches up with another. Parameters as for :func:`heat_diffusivity`.
    """
    x, t, u = scalar("x t")
    a, b = unknown("a", start=4), unknown("b", start=0.5)
    exact = dict(kdv().exact or {})["u"]
    domain = Interval((x, -22, 22)) * TimeInterval(t, 0, 2)
    points = domain.sample(500, "kronecker")
    data = measured(u, points, values_of(exact, (x, t), points), noise, seed)
    conditions = (Periodic(u, x), Initial(u, exact.subs(t, 0)), data)
    equation = sp.Eq(u.diff(t) + a * u * u.diff(x) + b * u.diff(x, 3), 0)
    return Problem((equation,), domain, conditions, exact=exact, truth={a: 6, b: 1})


def lorenz_parameters(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return the equations of Lorenz for t in (0, 3) from (−8, 7, 27): σ = 10, ρ = 15, β = 8/3 from 25 times.

    The data are by SciPy's DOP853, to about 10⁻¹¹. Parameters as for :func:`heat_diffusivity`.
    """
    t = coordinates("t")
    x, y, z = (field(name, t) for name in "xyz")
    sigma, rho, beta = (unknown(name, start=1) for name in ("sigma", "rho", "beta"))
    equations = (
        sp.Eq(x.diff(t), sigma * (y - x)),
        sp.Eq(y.diff(t), x * (rho - z) - y),
        sp.Eq(z.diff(t), x * y - beta * z),
    )
    times = np.linspace(0.12, 3.0, 25)
    start = (-8.0, 7.0, 27.0)
    path = lorenz_path((10.0, 15.0, 8.0 / 3.0), start, times)
    data = [measured(u, times, row, noise, seed, i) for i, (u, row) in enumerate(zip((x, y, z), path, strict=True))]
    conditions = [Initial(u, int(value)) for u, value in zip((x, y, z), start, strict=True)]
    truth = {sigma: 10, rho: 15, beta: 8 / 3}
    return Problem(equations, TimeInterval(t, 0, 3), (*conditions, *data), truth=truth)


def source_position(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return −Δu = q exp(−|x − s|²/0.1) in the unit square, u = 0 around it: q and s from four sensors.

    The truth is q = 1 and s = (0.4, 0.6); the data are by Chebyshev collocation, to about 10⁻⁹. Parameters as for
    :func:`heat_diffusivity`.
    """
    x, y, u = scalar("x y")
    s_x, s_y = (unknown(name, start=0.5, bounds=(0, 1)) for name in ("s_x", "s_y"))
    q = unknown("q", start=0.5, bounds=(0, None))
    points = np.array([[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]])
    data = measured(u, points, gaussian_plate((0.4, 0.6), 0.1, points), noise, seed)
    source = q * sp.exp(-10 * ((x - s_x) ** 2 + (y - s_y) ** 2))
    square = Rectangle((x, 0, 1), (y, 0, 1))
    truth = {q: 1, s_x: 0.4, s_y: 0.6}
    return Problem((sp.Eq(-laplacian(u), source),), square, (Dirichlet(u, 0), data), truth=truth)


def layered_head(x: sp.Symbol, y: sp.Symbol, below: Any, above: Any, height: sp.Rational) -> sp.Expr:
    """Return the head p in the unit square of two layers with p = 0 at y = 0 and the flow k ∂p/∂y = sin πx at y = 1.

    Between the layers head and flow are continuous; p = 0 on the sides.
    """
    low, rest = sp.pi * height, sp.pi * (1 - height)
    # p = A sinh πy below and A (sinh(low) cosh + (k₁/k₂) cosh(low) sinh)(π (y − height)) above.
    lift = below / above * sp.cosh(low)
    size = 1 / (above * sp.pi * (sp.sinh(low) * sp.sinh(rest) + lift * sp.cosh(rest)))
    away = sp.pi * (y - height)
    upper = sp.sinh(low) * sp.cosh(away) + lift * sp.sinh(away)
    return size * sp.sin(sp.pi * x) * sp.Piecewise((sp.sinh(sp.pi * y), y < height), (upper, True))


def two_layer_darcy(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return ∇·(k ∇p) = 0 in the unit square of two layers: k = 1 below y = 0.4 and k = 10 above, from 25 wells.

    Water enters on top, k ∂p/∂y = sin πx, and p = 0 elsewhere on the boundary. Parameters as for
    :func:`heat_diffusivity`.
    """
    x, y = coordinates("x y")
    p = field("p", x, y)
    below, above = (unknown(name, start=3, bounds=(0, None)) for name in ("k_1", "k_2"))
    height = sp.Rational(2, 5)
    square = Rectangle((x, 0, 1), (y, 0, 1))
    k = per_region({Rectangle((x, 0, 1), (y, 0, height)): below}, above)
    exact = layered_head(x, y, 1, 10, height)
    wells = square.sample(25, "kronecker")
    data = measured(p, wells, values_of(exact, (x, y), wells), noise, seed)
    walls = Dirichlet(p, 0, on=square.left | square.right | square.bottom)
    inflow = Condition(sp.Eq(above * normal_derivative(p), sp.sin(sp.pi * x)), on=square.top)
    truth = {below: 1, above: 10}
    return Problem((sp.Eq(div(k * grad(p)), 0),), square, (walls, inflow, data), exact=exact, truth=truth)
