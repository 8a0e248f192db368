"""Problems in space and time: heat, waves, transport."""

from __future__ import annotations

import sympy as sp

from pibls.geometry import Box, Interval, TimeInterval
from pibls.geometry.base import Domain
from pibls.problem import Dirichlet, Initial, Neumann, Periodic, Problem, Robin, field, laplacian
from pibls.problems.manufactured import SPACE_TIME, SQUARE, UNIT, parameter, t, x, y, z

__all__ = ["advection_beta", "heat_2d", "heat_3d", "heat_robin", "klein_gordon", "periodic_advection", "wave"]

u = field("u", x, t)


def heat_robin() -> Problem:
    """Return u_t = u_xx on (0, 1) × (0, 1) with heat transfer at both ends, u = e^(−π²t/4) cos(π(x − 1/2)/2).

    A Robin condition h u + ∂u/∂n = 0 has the modes cos(λ(x − 1/2)) with λ tan(λ/2) = h; for h = π/2 the slowest one
    has λ = π/2 exactly.

    Examples
    --------
    >>> heat_robin().conditions[0]
    Robin(pi*u/2 + dn(u) = 0 on the boundary)
    """
    shape = sp.cos(sp.pi / 2 * (x - sp.S.Half))
    conditions = (Robin(u, sp.pi / 2, 1, 0), Initial(u, shape))
    return Problem(sp.Eq(u.diff(t), u.diff(x, 2)), SPACE_TIME, conditions, exact=sp.exp(-(sp.pi**2) * t / 4) * shape)


def wave(speed: float = 2) -> Problem:
    """Return u_tt = c² u_xx on (0, 1) × (0, 1), a plucked string: u = sin πx cos cπt + ½ sin 4πx cos 4cπt.

    Two modes, the higher one oscillating four times as fast; energy is conserved, so errors do not decay. With c = 2
    it is a standard failure of gradient-trained networks (Wang, Yu & Perdikaris 2022).

    Parameters
    ----------
    speed
        The wave speed c, from 0.01 to 100.

    Examples
    --------
    >>> print(wave())
    Find u(x, t) with
      u_tt = 4*u_xx                   in Interval((x, 0, 1)) * TimeInterval(t, 0, 1)
      u = 0                           on the boundary
      u = sin(pi*x) + sin(4*pi*x)/2   on initial time
      u_t = 0                         on initial time
    """
    c = parameter("speed", speed, "wave", minimum=0.01, maximum=100)
    low, high = sp.sin(sp.pi * x), sp.sin(4 * sp.pi * x) / 2
    exact = low * sp.cos(c * sp.pi * t) + high * sp.cos(4 * c * sp.pi * t)
    conditions = (Dirichlet(u, 0), Initial(u, low + high), Initial(u.diff(t), 0))
    return Problem(sp.Eq(u.diff(t, 2), c**2 * u.diff(x, 2)), SPACE_TIME, conditions, exact=exact)


def periodic_transport(low: sp.Expr, high: sp.Expr, end: sp.Expr, speed: sp.Expr, wave_number: sp.Expr) -> Problem:
    """Return u_t + c u_x = 0 on (low, high) × (0, end), periodic, from u = sin kx."""
    domain = Interval((x, low, high)) * TimeInterval(t, 0, end)
    conditions = (Periodic(u, x), Initial(u, sp.sin(wave_number * x)))
    exact = sp.sin(wave_number * (x - speed * t))
    return Problem(sp.Eq(u.diff(t) + speed * u.diff(x), 0), domain, conditions, exact=exact)


def periodic_advection() -> Problem:
    """Return u_t + u_x = 0 on (−1, 1) × (0, 1/2), periodic, u = sin π(x − t).

    The mildest hyperbolic problem: a sine carried to the right by a quarter of its wave length.

    Examples
    --------
    >>> periodic_advection().conditions
    (Periodic(u in x), Initial(u = sin(pi*x) on initial time))
    """
    return periodic_transport(sp.Integer(-1), sp.Integer(1), sp.S.Half, sp.Integer(1), sp.pi)


def advection_beta(beta: float = 40) -> Problem:
    """Return u_t + β u_x = 0 on (0, 2π) × (0, 1), periodic, u = sin(x − βt).

    For β above about 10 physics-informed networks trained by gradients return a flat wrong answer with a small loss
    (Krishnapriyan et al. 2021). In space–time the solution is one plane wave, steep in time.

    Parameters
    ----------
    beta
        Speed, from 0.1 to 1000.

    Examples
    --------
    >>> advection_beta(beta=30).exact["u"]
    -sin(30*t - x)
    """
    speed = parameter("beta", beta, "advection_beta", minimum=0.1, maximum=1000)
    return periodic_transport(sp.Integer(0), 2 * sp.pi, sp.Integer(1), speed, sp.Integer(1))


def heat_2d() -> Problem:
    """Return u_t = κ Δu on the unit square for t in (0, 1), κ = 1/(5π²), u = e⁻ᵗ sin πx sin 2πy, zero on the boundary.

    Two space coordinates and time. The diffusivity is chosen so that the solution decays by e.

    Examples
    --------
    >>> heat_2d().fields
    (u(x, y, t),)
    """
    return _cooling(sp.sin(sp.pi * x) * sp.sin(2 * sp.pi * y), SQUARE, 5)


def heat_3d() -> Problem:
    """Return u_t = κ Δu on the unit cube for t in (0, 1), κ = 1/(6π²), zero on the boundary.

    The solution is u = e⁻ᵗ sin πx sin πy sin 2πz. Three space coordinates and time: a grid of 100 points a
    side would have 10⁸.

    Examples
    --------
    >>> print(heat_3d())
    Find u(x, y, z, t) with
      u_t = laplacian(u)/(6*pi**2)          in Box((x, 0, 1), (y, 0, 1), (z, 0, 1)) * TimeInterval(t, 0, 1)
      u = 0                                 on the boundary
      u = sin(pi*x)*sin(pi*y)*sin(2*pi*z)   on initial time
    """
    shape = sp.sin(sp.pi * x) * sp.sin(sp.pi * y) * sp.sin(2 * sp.pi * z)
    return _cooling(shape, Box((x, 0, 1), (y, 0, 1), (z, 0, 1)), 6)


def _cooling(shape: sp.Expr, space: Domain, waves: int) -> Problem:
    """Return u_t = Δu/(n π²) from a product of sines, n the sum of squares of its wave numbers: it decays by e."""
    u = field("u", *space.coordinates, t)
    equation = sp.Eq(u.diff(t), laplacian(u) / (waves * sp.pi**2))
    conditions = (Dirichlet(u, 0), Initial(u, shape))
    return Problem(equation, space * TimeInterval(t, 0, 1), conditions, exact=sp.exp(-t) * shape)


def klein_gordon() -> Problem:
    """Return u_tt = u_xx − u on (0, 1) × (0, 2) with free ends, u = cos t + cos πx cos(√(π² + 1) t).

    A wave equation whose modes disperse: even the constant one oscillates. Neumann conditions at all times, value and
    velocity at the first.

    Examples
    --------
    >>> print(klein_gordon())
    Find u(x, t) with
      u_tt = -u + u_xx    in Interval((x, 0, 1)) * TimeInterval(t, 0, 2)
      dn(u) = 0           on the boundary
      u = cos(pi*x) + 1   on initial time
      u_t = 0             on initial time
    """
    exact = sp.cos(t) + sp.cos(sp.pi * x) * sp.cos(sp.sqrt(sp.pi**2 + 1) * t)
    conditions = (Neumann(u, 0), Initial(u, 1 + sp.cos(sp.pi * x)), Initial(u.diff(t), 0))
    domain = UNIT * TimeInterval(t, 0, 2)
    return Problem(sp.Eq(u.diff(t, 2), u.diff(x, 2) - u), domain, conditions, exact=exact)
