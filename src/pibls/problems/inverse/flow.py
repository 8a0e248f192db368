"""The two coefficients of the Navier–Stokes equations from velocities behind a cylinder."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.geometry import Rectangle, TimeInterval
from pibls.problem import Problem, coordinates, field, unknown
from pibls.problems.inverse.data import measured

__all__ = ["cylinder_wake"]


def _table() -> FloatArray:
    """Return columns x, y, t, u, v, as ``benchmarks.wake_reference`` made them."""
    with (
        (files("pibls.problems.inverse") / "wake.npz").open("rb") as stream,
        np.load(stream, allow_pickle=False) as stored,
    ):
        return np.asarray(stored["table"], dtype=np.float64)


def cylinder_wake(noise: float = 0.0, seed: int = 0) -> Problem:
    """Return ω_t + a (u ω_x + v ω_y) = ν Δω, div (u, v) = 0 behind a cylinder: a = 1, ν = 0.01 from 2000 points.

    ω = v_x − u_y is the vorticity: without the pressure, which no one measures. Vortices shed at Reynolds number 100
    pass the window (1, 3) × (−1, 1), in diameters from the middle of the cylinder, for a quarter of their period.
    Nothing is known at its edges. The velocities are by Fourier series and Chebyshev polynomials around the cylinder,
    to about 3·10⁻⁵ on average and 3·10⁻⁴ at most. Parameters as for :func:`~pibls.problems.inverse.heat_diffusivity`.

    Examples
    --------
    >>> cylinder_wake().truth
    {'a': 1.0, 'nu': 0.01}
    """
    x, y, t = coordinates("x y t")
    u, v = field("u", x, y, t), field("v", x, y, t)
    a, nu = unknown("a", start=0.5), unknown("nu", start=0.05, bounds=(0, None))
    vorticity = v.diff(x) - u.diff(y)
    carried = u * vorticity.diff(x) + v * vorticity.diff(y)
    spread = vorticity.diff(x, 2) + vorticity.diff(y, 2)
    equations = (sp.Eq(vorticity.diff(t) + a * carried, nu * spread), sp.Eq(u.diff(x) + v.diff(y), 0))
    domain = Rectangle((x, 1, 3), (y, -1, 1)) * TimeInterval(t, 0, sp.Rational(3, 2))
    table = _table()
    data = [measured(w, table[:, :3], table[:, 3 + i], noise, seed, i) for i, w in enumerate((u, v))]
    return Problem(equations, domain, data, truth={a: 1, nu: 0.01})
