"""Evolutions in the plane: flows and patterns, all nonlinear systems."""

from __future__ import annotations

import sympy as sp

from pibls.checks import shorten
from pibls.errors import InputError
from pibls.geometry import Rectangle, TimeInterval
from pibls.problem import (
    AnyCondition,
    Dirichlet,
    Initial,
    Mean,
    Periodic,
    Problem,
    coordinates,
    data,
    div,
    field,
    laplacian,
)
from pibls.problems.manufactured import parameter
from pibls.problems.spectral import pattern_solution

__all__ = ["burgers_2d", "gray_scott", "taylor_green"]


def burgers_2d(viscosity: float = 0.02) -> Problem:
    """Return the two-dimensional Burgers equations on the unit square × (0, 1): an oblique front that travels.

    The solution of Fletcher (1983), u = 3/4 − s/4 and v = 3/4 + s/4 with s = 1/(1 + e^((4y − 4x − t)/(32 ν))), with
    its values on the boundary.

    Parameters
    ----------
    viscosity
        ν, from 0.002 to 1.
    """
    nu = parameter("viscosity", viscosity, "burgers_2d", minimum=0.002, maximum=1)
    x, y, t = coordinates("x y t")
    u, v = field("u", x, y, t), field("v", x, y, t)
    front = 1 / (1 + sp.exp((4 * y - 4 * x - t) / (32 * nu)))
    exact = {"u": sp.Rational(3, 4) - front / 4, "v": sp.Rational(3, 4) + front / 4}
    equations = tuple(sp.Eq(w.diff(t) + u * w.diff(x) + v * w.diff(y), nu * laplacian(w)) for w in (u, v))
    conditions = tuple(
        condition for w in (u, v) for condition in (Dirichlet(w, exact[w.label]), Initial(w, exact[w.label].subs(t, 0)))
    )
    domain = Rectangle((x, 0, 1), (y, 0, 1)) * TimeInterval(t, 0, 1)
    return Problem(equations, domain, conditions, exact=exact)


def taylor_green(viscosity: float = 0.1, walls: bool = False) -> Problem:
    """Return the Navier–Stokes equations on (0, 2π)² × (0, 1): the vortices of Taylor and Green, which decay.

    u = cos x sin y e^(−2νt), v = −sin x cos y e^(−2νt), p = −(cos 2x + cos 2y) e^(−4νt)/4 solves u_t + u u_x + v u_y +
    p_x = ν Δu, the same for v, and u_x + v_y = 0. The pressure is fixed only up to a constant, so its mean is given.

    Parameters
    ----------
    viscosity
        ν, from 0.001 to 10.
    walls
        Whether the velocity is given on the boundary; otherwise everything is periodic.
    """
    nu = parameter("viscosity", viscosity, "taylor_green", minimum=0.001, maximum=10)
    if not isinstance(walls, bool):
        raise InputError(f"The 'walls' parameter of taylor_green must be True or False. Got {shorten(walls)} instead.")
    x, y, t = coordinates("x y t")
    u, v, p = (field(name, x, y, t) for name in "uvp")
    decay = sp.exp(-2 * nu * t)
    exact = {
        u: sp.cos(x) * sp.sin(y) * decay,
        v: -sp.sin(x) * sp.cos(y) * decay,
        p: -(sp.cos(2 * x) + sp.cos(2 * y)) * decay**2 / 4,
    }
    forces = {u: p.diff(x), v: p.diff(y)}
    equations = [
        sp.Eq(w.diff(t) + u * w.diff(x) + v * w.diff(y) + force, nu * laplacian(w)) for w, force in forces.items()
    ]
    conditions: list[AnyCondition] = [Initial(w, exact[w].subs(t, 0)) for w in (u, v)]
    conditions += (
        [Dirichlet(w, exact[w]) for w in (u, v)] if walls else [Periodic(w, along) for w in exact for along in (x, y)]
    )
    domain = Rectangle((x, 0, 2 * sp.pi), (y, 0, 2 * sp.pi)) * TimeInterval(t, 0, 1)
    known = {w.label: value for w, value in exact.items()}
    return Problem([*equations, sp.Eq(div([u, v]), 0)], domain, [*conditions, Mean(p, 0)], exact=known)


def gray_scott() -> Problem:
    """Return the reaction of Gray and Scott on (−1, 1)² × (0, 10), periodic: a spot of v feeds on u and spreads.

    u_t = Δu/50 − u v² + F (1 − u), v_t = Δv/100 + u v² − (F + k) v with F = 0.04 and k = 0.06, from
    v = e^(2 (cos πx + cos πy − 2)) / 2 and u = 1 − v. The reference is a Fourier method with SciPy's DOP853, to about
    10⁻¹⁰.
    """
    x, y, t = coordinates("x y t")
    u, v = field("u", x, y, t), field("v", x, y, t)
    feed, kill, spread = sp.Rational(1, 25), sp.Rational(3, 50), sp.Rational(1, 100)
    equations = (
        sp.Eq(u.diff(t), 2 * spread * laplacian(u) - u * v**2 + feed * (1 - u)),
        sp.Eq(v.diff(t), spread * laplacian(v) + u * v**2 - (feed + kill) * v),
    )
    spot = sp.exp(2 * (sp.cos(sp.pi * x) + sp.cos(sp.pi * y) - 2)) / 2
    conditions: tuple[AnyCondition, ...] = (
        *(Periodic(w, along) for w in (u, v) for along in (x, y)),
        Initial(u, 1 - spot),
        Initial(v, spot),
    )
    exact = {w.label: data(f"gray_scott_{w.label}", pattern_solution(i), x, y, t) for i, w in enumerate((u, v))}
    domain = Rectangle((x, -1, 1), (y, -1, 1)) * TimeInterval(t, 0, 10)
    return Problem(equations, domain, conditions, exact=exact)
