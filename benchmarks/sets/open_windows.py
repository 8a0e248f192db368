"""Windows of which nothing is known at the edges: unknown numbers from equations and measurements alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pibls as pb
from pibls.checks import FloatArray
from pibls.problems.spectral import cole_hopf

Window = Callable[[float, int], pb.Problem]


def _observed(u: Any, where: FloatArray, values: FloatArray, noise: float, seed: int) -> pb.Observation:
    rng = np.random.default_rng([seed, 3])
    size = noise * float(np.sqrt(np.mean(values**2)))
    return pb.Observation(u, where, values + size * rng.standard_normal(len(values)), size or None)


def decay(noise: float, seed: int) -> pb.Problem:
    """Return u′ = −k u from 30 places."""
    x = pb.coordinates("x")
    u, k = pb.field("u", x), pb.unknown("k", start=1)
    where = np.linspace(0.02, 0.98, 30)[:, None]
    data = _observed(u, where, np.exp(-2 * where[:, 0]), noise, seed)
    return pb.Problem(u.diff(x) + k * u, pb.Interval((x, 0, 1)), [data], truth={k: 2})


def oscillation(noise: float, seed: int) -> pb.Problem:
    """Return u″ = −k u from 60 places."""
    x = pb.coordinates("x")
    u, k = pb.field("u", x), pb.unknown("k", start=5)
    where = np.linspace(0.02, 1.98, 60)[:, None]
    data = _observed(u, where, np.sin(3 * where[:, 0]), noise, seed)
    return pb.Problem(u.diff(x, 2) + k * u, pb.Interval((x, 0, 2)), [data], truth={k: 9})


def heat(noise: float, seed: int) -> pb.Problem:
    """Return u_t = k u_xx from 500 points."""
    x, t = pb.coordinates("x t")
    u, k = pb.field("u", x, t), pb.unknown("k", start=1, bounds=(0, None))
    window = pb.Interval((x, 0.1, 0.9)) * pb.TimeInterval(t, 0.1, 1)
    where = window.sample(500, "kronecker")
    place, when = np.pi * where[:, 0], 0.3 * np.pi**2 * where[:, 1]
    values = np.exp(-when) * np.sin(place) + 0.5 * np.exp(-4 * when) * np.cos(2 * place)
    data = _observed(u, where, values, noise, seed)
    return pb.Problem(u.diff(t) - k * u.diff(x, 2), window, [data], truth={k: 0.3})


def waves(noise: float, seed: int) -> pb.Problem:
    """Return Δu + k u = 0 from 400 points of a square."""
    x, y = pb.coordinates("x y")
    u, k = pb.field("u", x, y), pb.unknown("k", start=10)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    where = square.sample(400, "kronecker")
    values = np.sin(3 * where[:, 0] + 1) * np.cos(4 * where[:, 1])
    data = _observed(u, where, values, noise, seed)
    return pb.Problem(u.diff(x, 2) + u.diff(y, 2) + k * u, square, [data], truth={k: 25})


def burgers(noise: float, seed: int) -> pb.Problem:
    """Return u_t + a u u_x = ν u_xx from 800 points."""
    x, t = pb.coordinates("x t")
    u, a, nu = pb.field("u", x, t), pb.unknown("a", start=0.5), pb.unknown("nu", start=0.02, bounds=(0, None))
    window = pb.Interval((x, -0.8, 0.8)) * pb.TimeInterval(t, 0.05, 0.5)
    where = window.sample(800, "kronecker")
    data = _observed(u, where, cole_hopf(0.05)(*where.T), noise, seed)
    return pb.Problem(u.diff(t) + a * u * u.diff(x) - nu * u.diff(x, 2), window, [data], truth={a: 1, nu: 0.05})


WINDOWS: dict[str, Window] = {make.__name__: make for make in (decay, oscillation, heat, waves, burgers)}
