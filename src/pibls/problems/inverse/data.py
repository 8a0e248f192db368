"""Data of the inverse problems, by methods that have nothing to do with networks, and noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_integer, check_number
from pibls.problem import Observation
from pibls.problem.evaluate import compile_function

__all__ = ["chebyshev", "gaussian_plate", "lorenz_path", "measured", "rate_solution", "values_of"]


def values_of(expression: sp.Expr, symbols: tuple[sp.Symbol, ...], X: FloatArray) -> FloatArray:
    """Return an expression of coordinates at points."""
    return np.array(compile_function(sp.sympify(expression, strict=True), symbols)(X))


def measured(u: Any, points: Any, values: FloatArray, noise: float, seed: int, sensor: int = 0) -> Observation:
    """Return values with noise of a standard deviation; without noise, the values.

    Sensors of one problem have noise of their own.
    """
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

    sigma, rho, beta = parameters

    def right(_: float, s: FloatArray) -> list[float]:
        return [sigma * (s[1] - s[0]), s[0] * (rho - s[2]) - s[1], s[0] * s[1] - beta * s[2]]

    options: dict[str, Any] = {"method": "DOP853", "rtol": 3e-14, "atol": 1e-13, "max_step": 0.005}
    return solve_ivp(right, (0.0, stop), start, dense_output=True, **options).sol


def lorenz_path(parameters: tuple[float, float, float], start: tuple[float, ...], times: FloatArray) -> FloatArray:
    """Return the path of Lorenz' equations at times, shape (3, n), by SciPy's DOP853."""
    return np.asarray(_lorenz(parameters, start, float(times.max()))(times))
