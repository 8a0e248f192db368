"""Inverse problems for functions: coefficients that vary, and initial values."""

from __future__ import annotations

import numpy as np
import sympy as sp

from pibls.geometry import Rectangle, TimeInterval
from pibls.problem import Dirichlet, Initial, Problem, Smooth, div, field, grad
from pibls.problem.operators import resolve
from pibls.problems.inverse.data import measured, rate_solution, values_of
from pibls.problems.manufactured import SPACE_TIME, SQUARE, UNIT, t, x, y

__all__ = ["conductivity", "conductivity_heat", "initial_temperature", "rate_function"]

w = field("u", x)


def rate_function(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return 0.01 u″ − k(x) u = sin 2πx on (0, 1): the rate k = 0.1 + exp(−(x − ½)²/0.045) from 100 points.

    The data are by Chebyshev collocation, to round-off. Parameters as for
    :func:`~pibls.problems.inverse.heat_diffusivity`.
    """
    k = field("k", x, prior=Smooth())
    true = sp.Rational(1, 10) + sp.exp(-((x - sp.S.Half) ** 2) / sp.Rational(45, 1000))
    points = np.linspace(0.0, 1.0, 102)[1:-1, None]
    values = rate_solution(lambda place: values_of(true, (x,), place[:, None]), 0.01, points[:, 0])
    equation = sp.Eq(w.diff(x, 2) / 100 - k * w, sp.sin(2 * sp.pi * x))
    return Problem(equation, UNIT, (Dirichlet(w, 0), measured(w, points, values, noise, seed)), truth={k: true})


def conductivity(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return −∇·(a ∇u) = f in the unit square: the conductivity a = 2 + sin πx sin πy from 2500 points.

    u = sin πx sin πy, and f fits it; on the boundary, u = 0 and a = 2 are known. Published with noise of 0.1.
    Parameters as for :func:`~pibls.problems.inverse.heat_diffusivity`.
    """
    u, a = field("u", x, y), field("a", x, y, prior=Smooth())
    wave = sp.sin(sp.pi * x) * sp.sin(sp.pi * y)
    source = -resolve(div((2 + wave) * grad(wave)), (x, y))
    data = measured(u, SQUARE.sample(2500, "kronecker"), wave, noise, seed)
    conditions = (Dirichlet(u, 0), Dirichlet(a, 2), data)
    return Problem(sp.Eq(-div(a * grad(u)), source), SQUARE, conditions, exact={u: wave}, truth={a: 2 + wave})


def conductivity_heat(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_t − ∇·(a ∇u) = f on (−1, 1)² × (0, 1): the conductivity a = 2 + sin πx sin πy from 2500 points.

    u = e⁻ᵗ sin πx sin πy, and f fits it; on the boundary, u = 0 and a = 2 are known. Published with noise of 0.1.
    Parameters as for :func:`~pibls.problems.inverse.heat_diffusivity`.
    """
    u, a = field("u", x, y, t), field("a", x, y, prior=Smooth())
    wave = sp.sin(sp.pi * x) * sp.sin(sp.pi * y)
    exact = sp.exp(-t) * wave
    source = exact.diff(t) - resolve(div([(2 + wave) * exact.diff(s) for s in (x, y)]), (x, y))
    domain = Rectangle((x, -1, 1), (y, -1, 1)) * TimeInterval(t, 0, 1)
    data = measured(u, domain.sample(2500, "kronecker"), exact, noise, seed)
    conditions = (Dirichlet(u, 0), Dirichlet(a, 2), Initial(u, wave), data)
    equation = sp.Eq(u.diff(t) - div([a * u.diff(s) for s in (x, y)]), source)
    return Problem(equation, domain, conditions, exact={u: exact}, truth={a: 2 + wave})


def initial_temperature(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return u_t = u_xx/20 on (0, 1) × (0, 1), u = 0 at the ends: the initial temperature from 40 points at t = 0.2.

    The truth is sin πx + ½ sin 2πx − ¼ sin 3πx, of which the last has fallen to 41 % by then. Parameters as for
    :func:`~pibls.problems.inverse.heat_diffusivity`.
    """
    u, f = field("u", x, t), field("f", x, prior=Smooth())
    sizes = {1: sp.Integer(1), 2: sp.S.Half, 3: -sp.Rational(1, 4)}
    exact = sum(size * sp.exp(-((n * sp.pi) ** 2) * t / 20) * sp.sin(n * sp.pi * x) for n, size in sizes.items())
    points = np.column_stack([np.linspace(0.0, 1.0, 42)[1:-1], np.full(40, 0.2)])
    conditions = (Dirichlet(u, 0), Initial(u, f), measured(u, points, exact, noise, seed))
    equation = sp.Eq(u.diff(t), u.diff(x, 2) / 20)
    return Problem(equation, SPACE_TIME, conditions, exact={u: exact}, truth={f: exact.subs(t, 0)})
