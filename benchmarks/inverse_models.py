"""What the sensors of the inverse zoo read for any value of the unknowns, without a network: closed forms and others.

:func:`bound` is the least standard deviation that any unbiased estimate can have (Cramér and Rao), from central
differences of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import sympy as sp

import pibls as pb
from pibls.checks import FloatArray
from pibls.problems.inverse.data import gaussian_plate, lorenz_path, rate_solution, values_of
from pibls.problems.inverse.numbers import layered_head
from pibls.problems.spectral import cole_hopf

__all__ = ["MODELS", "bound", "observations", "rate_field", "readings"]

Values = Mapping[str, float]
_STEP = 1e-4
_SOLITON_MODES, _SOLITON_STEPS = 384, 4000


def _heat(v: Values, X: FloatArray) -> FloatArray:
    x, t = X.T
    rate = v["k"] * np.pi**2
    driven = (np.pi**2 - 1) * (np.exp(-t) - np.exp(-rate * t)) / (rate - 1)
    return (np.exp(-rate * t) + driven) * np.sin(np.pi * x)


def _brinkman(v: Values, X: FloatArray) -> FloatArray:
    rate = np.sqrt(0.4e-3 / (v["nu_e"] * v["K"]))
    return v["K"] / 1e-3 * (1 - np.cosh(rate * (X[:, 0] - 0.5)) / np.cosh(rate / 2))


def _klein_gordon(v: Values, X: FloatArray) -> FloatArray:
    x, t = X.T
    return np.sin(x) * np.cos(np.sqrt(1 + v["m2"]) * t) + np.sin(2 * x) * np.cos(np.sqrt(4 + v["m2"]) * t) / 2


def _wave(v: Values, X: FloatArray) -> FloatArray:
    x, t = X.T
    return np.sin(x) * np.cos(v["c"] * t) + np.sin(2 * x) * np.cos(2 * v["c"] * t) / 2


def _robin(v: Values, X: FloatArray) -> FloatArray:
    x, y = np.pi * X.T
    side, h = np.pi * np.sinh(np.pi), v["h"]
    other = (side + h * np.cosh(np.pi)) / (np.pi * np.cosh(np.pi) + h * np.sinh(np.pi))
    return np.sin(y) * (np.cosh(x) - other * np.sinh(x))


def _burgers(v: Values, X: FloatArray) -> FloatArray:
    # If w(x, τ) solves it with a = 1 and ν/a, then w(x, a t) solves it.
    return cole_hopf(v["nu"] / v["a"])(X[:, 0], v["a"] * X[:, 1])


@cache
def _soliton_start() -> FloatArray:
    exact = dict(pb.problems.kdv().exact or {})["u"]
    x, t = sorted(exact.free_symbols, key=lambda s: s.name == "t")
    grid = -22 + 44 * np.arange(_SOLITON_MODES) / _SOLITON_MODES
    return np.asarray(sp.lambdify(x, exact.subs(t, 0), "numpy")(grid))


def _solitons(v: Values, X: FloatArray) -> FloatArray:
    """Return a Fourier series with an integrating factor, by the classical Runge–Kutta scheme; cubics between steps."""
    n, h = _SOLITON_MODES, 2.0 / _SOLITON_STEPS
    waves = 2 * np.pi / 44 * np.arange(n // 2 + 1.0)
    kept = np.arange(len(waves)) < n // 3
    half = np.exp(1j * v["b"] * waves**3 * h / 2)
    factor = -0.5j * v["a"] * waves * kept

    def slope(state: FloatArray) -> FloatArray:
        return np.asarray(factor * np.fft.rfft(np.fft.irfft(state, n) ** 2))

    state = np.fft.rfft(_soliton_start())
    counts = np.where(np.arange(len(waves)) == 0, 1.0, 2.0) / n
    result = np.empty(len(X))
    numbers = np.minimum((X[:, 1] / h).astype(int), _SOLITON_STEPS - 1)
    for number in range(_SOLITON_STEPS):
        a = slope(state)
        b = slope(half * (state + h / 2 * a))
        c = slope(half * state + h / 2 * b)
        d = slope(half**2 * state + h * half * c)
        after = half**2 * state + h / 6 * (half**2 * a + 2 * half * (b + c) + d)
        for row in np.flatnonzero(numbers == number):
            s = X[row, 1] / h - number
            rates = [h * (slope(z) + 1j * v["b"] * waves**3 * z) for z in (state, after)]
            mixed = (1 + 2 * s) * (1 - s) ** 2 * state + s**2 * (3 - 2 * s) * after
            mixed = mixed + s * (1 - s) ** 2 * rates[0] - s**2 * (1 - s) * rates[1]
            result[row] = np.sum(counts * np.real(mixed * np.exp(1j * waves * (X[row, 0] + 22))))
        state = after
    return result


def _lorenz(v: Values, X: FloatArray) -> FloatArray:
    return lorenz_path((v["sigma"], v["rho"], v["beta"]), (-8.0, 7.0, 27.0), X[:, 0]).ravel()


def _source(v: Values, X: FloatArray) -> FloatArray:
    return v["q"] * gaussian_plate((v["s_x"], v["s_y"]), 0.1, X)


def _darcy(v: Values, X: FloatArray) -> FloatArray:
    x, y = pb.coordinates("x y")
    head = layered_head(x, y, sp.Float(v["k_1"]), sp.Float(v["k_2"]), sp.Rational(2, 5))
    return np.asarray(sp.lambdify((x, y), head, "numpy")(*X.T))


def rate_field(rate: sp.Expr, X: FloatArray) -> FloatArray:
    """Return u of the unknown rate function, for one that is known."""
    (x,) = rate.free_symbols
    return rate_solution(lambda places: values_of(rate, (x,), places[:, None]), 0.01, X[:, 0])


MODELS: Mapping[str, Callable[[Values, FloatArray], FloatArray]] = {
    "heat_diffusivity": _heat,
    "brinkman_forchheimer": _brinkman,
    "klein_gordon_mass": _klein_gordon,
    "wave_speed": _wave,
    "robin_coefficient": _robin,
    "burgers_coefficients": _burgers,
    "kdv_coefficients": _solitons,
    "lorenz_parameters": _lorenz,
    "source_position": _source,
    "two_layer_darcy": _darcy,
}


def observations(problem: pb.Problem) -> list[pb.Observation]:
    """Return the data of a problem."""
    return [condition for condition in problem.conditions if isinstance(condition, pb.Observation)]


def readings(name: str, values: Values) -> FloatArray:
    """Return what all sensors of a problem read without noise."""
    points = observations(pb.problems.inverse.catalogue()[name](0.0, 0))[0].points
    return MODELS[name](values, points.reshape(len(points), -1))


def bound(name: str, noise: float) -> dict[str, float]:
    """Return the Cramér–Rao bound of every unknown number: a standard deviation.

    Examples
    --------
    One amplitude from n values has the noise over √n and over the root mean square of what it multiplies.

    >>> round(bound("heat_diffusivity", 0.01)["k"] / bound("heat_diffusivity", 0.02)["k"], 6)
    0.5
    """
    truth = dict(pb.problems.inverse.catalogue()[name](0.0, 0).truth or {})
    columns = []
    for key, value in truth.items():
        step = _STEP * abs(value)
        ahead, back = (readings(name, truth | {key: value + sign * step}) for sign in (1, -1))
        columns.append((ahead - back) / (2 * step))
    covariance = noise**2 * np.linalg.inv(np.stack(columns) @ np.stack(columns, axis=1))
    return dict(zip(truth, np.sqrt(np.diag(covariance)).tolist(), strict=True))
