"""Data of the inverse problems, by methods that have nothing to do with networks, and noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_integer, check_number
from pibls.geometry import Rectangle, TimeInterval
from pibls.problem import Observation, Problem, field, unknown
from pibls.problem.evaluate import compile_function
from pibls.problems.manufactured import t, x, y
from pibls.problems.spectral import lorenz_rates


def values_of(expression: sp.Expr, symbols: tuple[sp.Symbol, ...], X: FloatArray) -> FloatArray:
    """Return an expression of coordinates at points."""
    return np.array(compile_function(sp.sympify(expression, strict=True), symbols)(X))


def measured(u: Any, points: Any, values: Any, noise: float, seed: int, sensor: int = 0) -> Observation:
    """Return values, or those of an expression, with noise of a standard deviation; without noise, the values.

    Sensors of one problem have noise of their own.
    """
    if isinstance(values, sp.Expr):
        values = values_of(values, u.args, points)
    spread = check_number("noise", noise, "problems.inverse", minimum=0)
    rng = np.random.default_rng([check_integer("seed", seed, "problems.inverse"), sensor])
    if spread == 0:
        return Observation(u, points, values)
    return Observation(u, points, values + spread * rng.standard_normal(len(values)), spread)


def chebyshev(n: int, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Return the n + 1 points of Chebyshev on an interval, and the matrix of the derivative there.

    >>> x, D = chebyshev(8, 0.0, 2.0)
    >>> bool(np.abs(D @ x**3 - 3 * x**2).max() < 1e-12)
    True
    """
    k = np.arange(n + 1)
    x = -np.cos(np.pi * k / n)
    c = np.where((k == 0) | (k == n), 2.0, 1.0) * (-1.0) ** k
    away = x[:, None] - x[None, :] + np.eye(n + 1)
    matrix = np.outer(c, 1.0 / c) / away
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    half = (high - low) / 2.0
    return low + half * (x + 1.0), matrix / half


def _interpolation(nodes: FloatArray, x: FloatArray) -> FloatArray:
    """Return the matrix that takes values at Chebyshev's points to values at others."""
    weights = (-1.0) ** np.arange(len(nodes))
    weights[[0, -1]] /= 2.0
    away = x[:, None] - nodes
    away[away == 0.0] = 1e-300
    terms = weights / away
    return np.asarray(terms / terms.sum(axis=1, keepdims=True))


def rate_solution(rate: Callable[[FloatArray], FloatArray], diffusion: float, x: FloatArray) -> FloatArray:
    """Return u with D u″ − k(x) u = sin 2πx and u(0) = u(1) = 0, by Chebyshev collocation."""
    nodes, slope = chebyshev(80, 0.0, 1.0)
    matrix = diffusion * slope @ slope - np.diag(rate(nodes))
    values = np.zeros(len(nodes))
    values[1:-1] = np.linalg.solve(matrix[1:-1, 1:-1], np.sin(2 * np.pi * nodes[1:-1]))
    return np.asarray(_interpolation(nodes, x) @ values)


def gaussian_plate(center: tuple[float, float], width: float, X: FloatArray, n: int = 48) -> FloatArray:
    """Return u with −Δu = exp(−|x − s|²/w) in the unit square and u = 0 around it, by Chebyshev collocation.

    The matrix of the second derivative is diagonalised along each axis.
    """
    nodes, slope = chebyshev(n, 0.0, 1.0)
    second = (slope @ slope)[1:-1, 1:-1]
    rates, modes = np.linalg.eig(second)
    back = np.linalg.inv(modes)
    across, along = (np.exp(-((nodes[1:-1] - s) ** 2) / width) for s in center)
    right = back @ np.outer(across, along) @ back.T
    inner = np.real(modes @ (right / -(rates[:, None] + rates)) @ modes.T)
    values = np.pad(inner, 1)
    one, two = (_interpolation(nodes, column) for column in X.T)
    return np.asarray(np.einsum("pi,ij,pj->p", one, values, two))


@cache
def _lorenz(parameters: tuple[float, float, float], start: tuple[float, ...], stop: float) -> Any:
    from scipy.integrate import solve_ivp

    right, options = lorenz_rates(*parameters), {"rtol": 3e-14, "atol": 1e-13, "max_step": 0.005}
    return solve_ivp(right, (0.0, stop), start, method="DOP853", dense_output=True, **options).sol


def lorenz_path(parameters: tuple[float, float, float], start: tuple[float, ...], times: FloatArray) -> FloatArray:
    """Return the path of Lorenz' equations at times, shape (3, n), by SciPy's DOP853."""
    return np.asarray(_lorenz(parameters, start, float(times.max()))(times))


def cylinder_wake(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return ω_t + a (u ω_x + v ω_y) = ν Δω, div (u, v) = 0 behind a cylinder: a = 1, ν = 0.01 from 2000 points.

    ω = v_x − u_y is the vorticity: without the pressure, which no one measures. Vortices shed at Reynolds number 100
    pass the window (1, 3) × (−1, 1), in diameters from the middle of the cylinder, for a quarter of their period.
    Nothing is known at its edges. The velocities are by Fourier series and Chebyshev polynomials around the cylinder,
    to about 3·10⁻⁵ on average and 3·10⁻⁴ at most. Parameters as for :func:`~pibls.problems.inverse.heat_diffusivity`.
    """
    u, v = field("u", x, y, t), field("v", x, y, t)
    a, nu = unknown("a", start=0.5), unknown("nu", start=0.05, bounds=(0, None))
    vorticity = v.diff(x) - u.diff(y)
    carried = u * vorticity.diff(x) + v * vorticity.diff(y)
    spread = vorticity.diff(x, 2) + vorticity.diff(y, 2)
    equations = (sp.Eq(vorticity.diff(t) + a * carried, nu * spread), sp.Eq(u.diff(x) + v.diff(y), 0))
    domain = Rectangle((x, 1, 3), (y, -1, 1)) * TimeInterval(t, 0, sp.Rational(3, 2))
    # Columns x, y, t, u, v, as ``benchmarks.wake_reference`` made them.
    with (
        (files("pibls.problems.inverse") / "wake.npz").open("rb") as stream,
        np.load(stream, allow_pickle=False) as stored,
    ):
        table = np.asarray(stored["table"], dtype=np.float64)
    data = [measured(w, table[:, :3], table[:, 3 + i], noise, seed, i) for i, w in enumerate((u, v))]
    return Problem(equations, domain, data, truth={a: 1, nu: 0.01})
