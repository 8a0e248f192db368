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
    div,
    field,
    grad,
    laplacian,
    normal_derivative,
    unknown,
)
from pibls.problems.evolving import kdv
from pibls.problems.inverse.data import gaussian_plate, lorenz_path, measured
from pibls.problems.manufactured import SQUARE, UNIT, t, x, y
from pibls.problems.spectral import cole_hopf

__all__ = ["brinkman_forchheimer", "burgers_coefficients", "heat_diffusivity", "kdv_coefficients", "klein_gordon_mass"]
__all__ += ["lorenz_parameters", "robin_coefficient", "source_position", "two_layer_darcy", "wave_speed"]

u, w, c = field("u", x, y), field("u", x), field("u", x, t)  # in the plane, on a line, on a line in time


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
    k = unknown("k", bounds=(0, None))
    exact = sp.exp(-t) * sp.sin(sp.pi * x)
    equation = sp.Eq(c.diff(t), k * c.diff(x, 2) + (sp.pi**2 - 1) * exact)
    data = measured(c, np.column_stack([np.linspace(-0.9, 0.9, 10), np.ones(10)]), exact, noise, seed)
    conditions = (Dirichlet(c, 0), Initial(c, sp.sin(sp.pi * x)), data)
    return Problem(equation, Interval((x, -1, 1)) * TimeInterval(t, 0, 1), conditions, exact=exact, truth={k: 1})


def brinkman_forchheimer(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return −(νₑ/0.4) u″ + 10⁻³ u/K = 1 on (0, 1): flow through a porous channel, both numbers 10⁻³, from five points.

    The starts, 0.1, are two decades off. u(0) = u(1) = 0; the velocity is a plateau between two layers of width 1/20.
    Parameters as for :func:`heat_diffusivity`.
    """
    nu, permeability = unknown("nu_e", start=0.1, bounds=(0, None)), unknown("K", start=0.1, bounds=(0, None))
    equation = sp.Eq(-nu / sp.Rational(2, 5) * w.diff(x, 2) + w / (1000 * permeability), 1)
    exact = 1 - sp.cosh(20 * (x - sp.S.Half)) / sp.cosh(10)
    data = measured(w, np.arange(1, 6)[:, None] / 6.0, exact, noise, seed)
    return Problem(equation, UNIT, (Dirichlet(w, 0), data), exact=exact, truth={nu: 1e-3, permeability: 1e-3})


def _modes(*frequencies: sp.Expr) -> sp.Expr:
    """Return standing waves sin nx cos ωt of falling size."""
    return sum(sp.sin(n * x) * sp.cos(w * t) / n for n, w in enumerate(frequencies, start=1))


def _string(
    force: sp.Expr, exact: sp.Expr, count: int, noise: float, seed: int, truth: dict[sp.Symbol, Any]
) -> Problem:
    """Return u_tt = force on (0, π) × (0, 2) with fixed ends from rest, and its values at scattered points."""
    domain = Interval((x, 0, sp.pi)) * TimeInterval(t, 0, 2)
    data = measured(c, domain.sample(count, "kronecker"), exact, noise, seed)
    conditions = (Dirichlet(c, 0), Initial(c, exact.subs(t, 0)), Initial(c.diff(t), 0), data)
    return Problem(sp.Eq(c.diff(t, 2), force), domain, conditions, exact=exact, truth=truth)


def klein_gordon_mass(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_tt = u_xx − m² u on (0, π) × (0, 2): the mass m² = 4 from 50 points, start 1.

    Two standing waves. Parameters as for :func:`heat_diffusivity`.

    Examples
    --------
    >>> klein_gordon_mass().parameters[0].start
    1.0
    """
    m2 = unknown("m2", start=1)
    exact = _modes(sp.sqrt(5), sp.sqrt(8))
    return _string(c.diff(x, 2) - m2 * c, exact, 50, noise, seed, {m2: 4})


def wave_speed(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_tt = c² u_xx on (0, π) × (0, 2): the speed c = 1.3 from 30 points.

    Two standing waves. Parameters as for :func:`heat_diffusivity`.
    """
    speed, true = unknown("c", bounds=(0, None)), sp.Rational(13, 10)
    return _string(speed**2 * c.diff(x, 2), _modes(true, 2 * true), 30, noise, seed, {speed: true})


def robin_coefficient(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return Δu = 0 in the unit square with ∂u/∂n + h u = 0 on the right: h = 2.5 from 20 points inside.

    u = sin πy on the left and 0 below and above. Parameters as for :func:`heat_diffusivity`.
    """
    h, true = unknown("h", bounds=(0, None)), sp.Rational(5, 2)
    side = sp.pi * sp.sinh(sp.pi) + true * sp.cosh(sp.pi)
    other = sp.pi * sp.cosh(sp.pi) + true * sp.sinh(sp.pi)
    exact = sp.sin(sp.pi * y) * (sp.cosh(sp.pi * x) - side / other * sp.sinh(sp.pi * x))
    data = measured(u, SQUARE.sample(20, "kronecker"), exact, noise, seed)
    walls = (Dirichlet(u, sp.sin(sp.pi * y), on=SQUARE.left), Dirichlet(u, 0, on=SQUARE.bottom | SQUARE.top))
    conditions = (*walls, Robin(u, h, 1, 0, on=SQUARE.right), data)
    return Problem(sp.Eq(laplacian(u), 0), SQUARE, conditions, exact=exact, truth={h: true})


def burgers_coefficients(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_t + a u u_x = ν u_xx on (−1, 1) × (0, 1): a = 1 and ν = 0.01/π from 2000 scattered points.

    The data are the Cole–Hopf integral from −sin πx, which steepens to a shock. Parameters as for
    :func:`heat_diffusivity`.
    """
    a, nu = unknown("a", start=0.5), unknown("nu", start=0.02, bounds=(0, None))
    domain = Interval((x, -1, 1)) * TimeInterval(t, 0, 1)
    points = domain.sample(2000, "kronecker")
    data = measured(c, points, cole_hopf(0.01 / np.pi)(*points.T), noise, seed)
    conditions = (Dirichlet(c, 0), Initial(c, -sp.sin(sp.pi * x)), data)
    equation = sp.Eq(c.diff(t) + a * c * c.diff(x), nu * c.diff(x, 2))
    return Problem(equation, domain, conditions, truth={a: 1, nu: 0.01 / np.pi})


def kdv_coefficients(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_t + a u u_x + b u_xxx = 0 on (−22, 22) × (0, 2), periodic: a = 6 and b = 1 from 500 points.

    One soliton catches up with another. Parameters as for :func:`heat_diffusivity`.
    """
    a, b = unknown("a", start=4), unknown("b", start=0.5)
    exact = dict(kdv().exact or {})["u"]
    domain = Interval((x, -22, 22)) * TimeInterval(t, 0, 2)
    data = measured(c, domain.sample(500, "kronecker"), exact, noise, seed)
    conditions = (Periodic(c, x), Initial(c, exact.subs(t, 0)), data)
    equation = sp.Eq(c.diff(t) + a * c * c.diff(x) + b * c.diff(x, 3), 0)
    return Problem(equation, domain, conditions, exact=exact, truth={a: 6, b: 1})


def lorenz_parameters(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return the equations of Lorenz for t in (0, 3) from (−8, 7, 27): σ = 10, ρ = 15, β = 8/3 from 25 times.

    The data are by SciPy's DOP853, to about 10⁻¹¹. Parameters as for :func:`heat_diffusivity`.
    """
    x, y, z = (field(name, t) for name in "xyz")
    sigma, rho, beta = (unknown(name, start=1) for name in ("sigma", "rho", "beta"))
    rates = {x: sigma * (y - x), y: x * (rho - z) - y, z: x * y - beta * z}
    times, start = np.linspace(0.12, 3.0, 25), (-8.0, 7.0, 27.0)
    path = lorenz_path((10.0, 15.0, 8.0 / 3.0), start, times)
    data = [measured(u, times, row, noise, seed, i) for i, (u, row) in enumerate(zip(rates, path, strict=True))]
    starts = [Initial(u, int(value)) for u, value in zip(rates, start, strict=True)]
    equations = [sp.Eq(u.diff(t), rate) for u, rate in rates.items()]
    return Problem(equations, TimeInterval(t, 0, 3), (*starts, *data), truth={sigma: 10, rho: 15, beta: 8 / 3})


def source_position(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return −Δu = q exp(−|x − s|²/0.1) in the unit square, u = 0 around it: q and s from four sensors.

    The truth is q = 1 and s = (0.4, 0.6); the data are by Chebyshev collocation, to about 10⁻⁹. Parameters as for
    :func:`heat_diffusivity`.
    """
    s_x, s_y = (unknown(name, start=0.5, bounds=(0, 1)) for name in ("s_x", "s_y"))
    q = unknown("q", start=0.5, bounds=(0, None))
    points = np.array([[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]])
    data = measured(u, points, gaussian_plate((0.4, 0.6), 0.1, points), noise, seed)
    equation = sp.Eq(-laplacian(u), q * sp.exp(-10 * ((x - s_x) ** 2 + (y - s_y) ** 2)))
    return Problem(equation, SQUARE, (Dirichlet(u, 0), data), truth={q: 1, s_x: 0.4, s_y: 0.6})


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
    p, height = field("p", x, y), sp.Rational(2, 5)
    below, above = (unknown(name, start=3, bounds=(0, None)) for name in ("k_1", "k_2"))
    k = per_region({Rectangle((x, 0, 1), (y, 0, height)): below}, above)
    exact = layered_head(x, y, 1, 10, height)
    data = measured(p, SQUARE.sample(25, "kronecker"), exact, noise, seed)
    walls = Dirichlet(p, 0, on=SQUARE.left | SQUARE.right | SQUARE.bottom)
    inflow = Condition(sp.Eq(above * normal_derivative(p), sp.sin(sp.pi * x)), on=SQUARE.top)
    truth = {below: 1, above: 10}
    return Problem(sp.Eq(div(k * grad(p)), 0), SQUARE, (walls, inflow, data), exact=exact, truth=truth)
