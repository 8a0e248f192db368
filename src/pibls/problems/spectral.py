"""Reference solutions by other methods: Fourier series with exponential time steps, and SciPy's integrators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from pibls.checks import FloatArray

_CONTOUR = 32
_NEIGHBOURS = 8
_PATTERN_SIDE = 48
_CHUNK = 100


@dataclass(frozen=True, eq=False)
class SemiLinear:
    """u_t = L u + ∂^k N(u) on a periodic interval, for :func:`etdrk4`."""

    # low, length: the interval
    low: float
    length: float
    symbol: Callable[[FloatArray], FloatArray]  # L as a function of the wave numbers
    # nonlinear, order: N, applied to values, and how often its result is differentiated
    nonlinear: Callable[[FloatArray], FloatArray]
    order: int
    initial: Callable[[FloatArray], FloatArray]  # the initial value as a function of x
    stop: float  # the last time
    # modes, steps: number of grid points, and of time steps
    modes: int
    steps: int


def etdrk4(problem: SemiLinear) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Return the solution by the scheme of Kassam & Trefethen (2005) as a function of x and t.

    Between the steps it is interpolated by polynomials of degree seven.

    >>> heat = SemiLinear(0.0, 2 * np.pi, lambda k: -(k**2), lambda u: 0 * u, 0, np.sin, 1.0, 16, 64)
    >>> u = etdrk4(heat)
    >>> float((u(np.array([0.5]), np.array([0.7])) - np.exp(-0.7) * np.sin(0.5)).round(12)[0])
    0.0
    """
    n, h = problem.modes, problem.stop / problem.steps
    grid = problem.low + problem.length * np.arange(n) / n
    waves = 2.0 * np.pi / problem.length * np.arange(n // 2 + 1.0)
    linear = problem.symbol(waves)
    slope = (1j * waves) ** problem.order
    # Two thirds of the modes are kept in products: what would fold back is cut off.
    kept = np.arange(len(waves)) < n // 3

    def nonlinear(v: Any) -> Any:
        return kept * slope * np.fft.rfft(problem.nonlinear(np.fft.irfft(v, n)))

    full, half = np.exp(h * linear), np.exp(h * linear / 2.0)
    circle = np.exp(1j * np.pi * (np.arange(1, _CONTOUR + 1) - 0.5) / _CONTOUR)
    z = h * linear[:, None] + circle
    q = h * np.real(np.mean((np.exp(z / 2) - 1) / z, axis=1))
    f1 = h * np.real(np.mean((-4 - z + np.exp(z) * (4 - 3 * z + z**2)) / z**3, axis=1))
    f2 = h * np.real(np.mean((2 + z + np.exp(z) * (z - 2)) / z**3, axis=1))
    f3 = h * np.real(np.mean((-4 - 3 * z - z**2 + np.exp(z) * (4 - z)) / z**3, axis=1))
    v = np.fft.rfft(problem.initial(grid))
    path = [v]
    for _ in range(problem.steps):
        n_v = nonlinear(v)
        a = half * v + q * n_v
        n_a = nonlinear(a)
        n_b = nonlinear(half * v + q * n_a)
        n_c = nonlinear(half * a + q * (2 * n_b - n_v))
        v = full * v + f1 * n_v + 2 * f2 * (n_a + n_b) + f3 * n_c
        path.append(v)
    return _interpolated(problem, np.array(path), waves)


def _interpolated(problem: SemiLinear, path: Any, waves: FloatArray) -> Callable[[FloatArray, FloatArray], FloatArray]:
    knots = np.arange(_NEIGHBOURS)
    # Each wave but the mean, and the last of an even number, stands for two that are conjugate.
    counts = np.where((np.arange(len(waves)) == 0) | (np.arange(len(waves)) == problem.modes / 2), 1.0, 2.0)

    def solution(x: FloatArray, t: FloatArray) -> FloatArray:
        values = np.empty(len(x))
        for row, (place, moment) in enumerate(zip(x, t, strict=True)):
            position = moment / problem.stop * problem.steps
            first = int(np.clip(np.floor(position) - _NEIGHBOURS // 2 + 1, 0, problem.steps + 1 - _NEIGHBOURS))
            rest = position - first - knots
            lagrange = [
                np.prod(np.delete(rest, j)) / np.prod(np.delete(j - knots, j).astype(np.float64)) for j in knots
            ]
            state = np.asarray(lagrange) @ path[first : first + _NEIGHBOURS]
            wave = np.exp(1j * waves * (place - problem.low))
            values[row] = float(np.real(np.sum(counts * state * wave))) / problem.modes
        return values

    return solution


_PERIODIC = {
    "allen_cahn": SemiLinear(
        *(-1.0, 2.0, lambda k: 5.0 - 1e-4 * k**2, lambda u: -5.0 * u**3, 0),
        *(lambda x: x**2 * np.cos(np.pi * x), 1.0, 18432, 300),
    ),
    "kuramoto_sivashinsky": SemiLinear(
        *(0.0, 32.0 * np.pi, lambda k: k**2 - k**4, lambda u: -0.5 * u**2, 1),
        *(lambda x: np.cos(x / 16.0) * (1.0 + np.sin(x / 16.0)), 10.0, 384, 2000),
    ),
}


def lorenz_rates(sigma: float, rho: float, beta: float) -> Callable[[float, FloatArray], list[float]]:
    """Return the right side of Lorenz' equations, as SciPy takes it."""
    return lambda _, s: [sigma * (s[1] - s[0]), s[0] * (rho - s[2]) - s[1], s[0] * s[1] - beta * s[2]]


# Right side, initial value, last time, method, longest step.
_ORDINARY: dict[str, tuple[Callable[..., list[float]], tuple[float, ...], float, str, float]] = {
    "lorenz": (lorenz_rates(10.0, 28.0, 8.0 / 3.0), (1.0, 1.0, 1.0), 2.0, "DOP853", 1e-3),
    "lotka_volterra": (
        lambda _, s: [1.5 * s[0] - s[0] * s[1], s[0] * s[1] - 3.0 * s[1]],
        (10.0, 5.0),
        10.0,
        "DOP853",
        1e-2,
    ),
    "van_der_pol": (lambda _, s: [s[1], 100.0 * (1.0 - s[0] ** 2) * s[1] - s[0]], (2.0, 0.0), 200.0, "LSODA", 0.5),
}


def _integrated(name: str) -> Callable[[FloatArray], FloatArray]:
    """Return all components of an ordinary differential equation, by SciPy."""
    from scipy.integrate import solve_ivp

    right, start, stop, method, step = _ORDINARY[name]
    accuracy = {"rtol": 3e-14, "atol": 1e-14, "max_step": step}
    dense: Callable[[FloatArray], FloatArray] = solve_ivp(
        right, (0.0, stop), start, method=method, dense_output=True, **accuracy
    ).sol
    return dense


def gray_scott_path(side: int, tolerance: float, stop: float = 10.0) -> Callable[[FloatArray], Any]:
    """Return Fourier coefficients of the Gray–Scott problem of the zoo over time: shape (times, 2, side, side).

    A grid of ``side`` points along each axis, and SciPy's DOP853, with products where they are.
    """
    from scipy.integrate import solve_ivp

    grid = -1.0 + 2.0 * np.arange(side) / side
    x, y = np.meshgrid(grid, grid, indexing="ij")
    waves = np.pi * np.fft.fftfreq(side, 1.0 / side)
    square = waves[:, None] ** 2 + waves**2

    def right(_: float, state: FloatArray) -> Any:
        u, v = fields = state.reshape(2, side, side)
        spread = np.fft.ifft2(-square * np.fft.fft2(fields)).real * np.array([0.02, 0.01])[:, None, None]
        reaction = u * v**2
        return (spread + np.stack([0.04 * (1.0 - u) - reaction, reaction - 0.1 * v])).ravel()

    spot = np.exp(2.0 * (np.cos(np.pi * x) + np.cos(np.pi * y) - 2.0)) / 2.0
    start = np.stack([1.0 - spot, spot]).ravel()
    found = solve_ivp(right, (0.0, stop), start, method="DOP853", rtol=tolerance, atol=tolerance, dense_output=True)
    dense = found.sol
    return lambda times: np.fft.fft2(dense(times).T.reshape(-1, 2, side, side)) / side**2


def _spotted(component: int, x: FloatArray, y: FloatArray, t: FloatArray) -> FloatArray:
    """Return one component of the Gray–Scott problem from its Fourier coefficients."""
    waves = 1j * np.pi * np.fft.fftfreq(_PATTERN_SIDE, 1.0 / _PATTERN_SIDE)
    values = np.empty(len(x))
    for first in range(0, len(x), _CHUNK):
        rows = slice(first, first + _CHUNK)
        states = _computed("gray_scott")(t[rows])[:, component]
        across, along = (np.exp(np.outer(place[rows] + 1.0, waves)) for place in (x, y))
        values[rows] = np.einsum("nab,na,nb->n", states, across, along, optimize=True).real
    return values


@cache
def _computed(name: str) -> Callable[..., Any]:
    if name in _PERIODIC:
        return etdrk4(_PERIODIC[name])
    return gray_scott_path(_PATTERN_SIDE, 1e-12) if name == "gray_scott" else _integrated(name)


def reference(name: str, component: int = 0) -> Callable[..., FloatArray]:
    """Return one component of the reference of an evolution; it is computed at the first call, once."""
    return partial(_spotted, component) if name == "gray_scott" else partial(_reference, name, component)


def _reference(name: str, component: int, *places: FloatArray) -> FloatArray:
    found = _computed(name)(*places)
    return np.asarray(found[component] if name in _ORDINARY else found)


_NODES = 1601
_ENTRIES = 2**22
_NEGLIGIBLE = 40.0  # exponents so far below the largest add nothing


def cole_hopf(
    viscosity: float, shift: float = 0.0, drift: float = 0.0, nodes: int = _NODES
) -> Callable[..., FloatArray]:
    """Return u(x, t) with u_t + u u_x = ν u_xx and u = drift − sin π(x − shift) at t = 0, on the line.

    The integrands are entire and vanish at the ends of the range of integration, so that the trapezoid rule converges
    faster than any power of its step.

    >>> u = cole_hopf(0.1)
    >>> start, later = u(np.array([0.5, 0.0]), np.array([0.0, 1.0]))
    >>> float(start), bool(abs(later) < 1e-12)
    (-1.0, True)
    """
    return partial(_shocked, viscosity, shift, drift, nodes)


def _shocked(viscosity: float, shift: float, drift: float, nodes: int, x: FloatArray, t: FloatArray) -> FloatArray:
    rest = x - shift - drift * t
    values = -np.sin(np.pi * rest)
    later = np.flatnonzero(t > 0)
    step = max(1, _ENTRIES // nodes)
    for start in range(0, len(later), step):
        rows = later[start : start + step]
        values[rows] = _quotient(rest[rows], t[rows], viscosity, nodes)
    return np.asarray(drift + values)


def _quotient(x: FloatArray, t: FloatArray, viscosity: float, nodes: int) -> FloatArray:
    reach = np.sqrt(4.0 * t / np.pi + 4.0 * _NEGLIGIBLE * viscosity * t)
    away = reach[:, None] * np.linspace(-1.0, 1.0, nodes)
    from_where = np.pi * (x[:, None] - away)
    exponent = -np.cos(from_where) / (2.0 * np.pi * viscosity) - away**2 / (4.0 * viscosity * t[:, None])
    weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(-(weight * np.sin(from_where)).sum(axis=1) / weight.sum(axis=1))
