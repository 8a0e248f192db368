"""Evolutions, most of them nonlinear: shocks, fronts, solitons, chaos, flows, patterns, ordinary equations.

Where the solution has no closed form, ``exact`` is a function computed by another method than the one that is tested;
the docstring says which, and how accurate it is.
"""

from __future__ import annotations

import sympy as sp

from pibls.checks import shorten
from pibls.errors import InputError
from pibls.geometry import Interval, Rectangle, TimeInterval
from pibls.problem import Dirichlet, Field, Initial, Mean, Neumann, Periodic, Problem, data, div, field, laplacian
from pibls.problems.evolution import periodic_transport
from pibls.problems.manufactured import SQUARE, UNIT, parameter, t, x, y
from pibls.problems.spectral import cole_hopf, reference

__all__ = ["advection_long", "allen_cahn", "burgers", "burgers_2d", "fisher_kpp", "gray_scott", "heat_source", "kdv"]
__all__ += ["kuramoto_sivashinsky", "lorenz", "lotka_volterra", "nonlinear_schroedinger", "sine_gordon"]
__all__ += ["taylor_green", "van_der_pol"]

u = field("u", x, t)


def burgers(viscosity: float = 0.01 / 3.141592653589793, shift: float = 0, drift: float = 0) -> Problem:
    """Return u_t + u u_x = ν u_xx on (−1, 1) × (0, 1) from u = drift − sin π(x − shift).

    A sine steepens to a shock of width 2ν, which forms at t = 1/π; with ν = 0.01/π it is the standard test of sharp
    solutions since Basdevant et al. (1986). A shift moves the shock elsewhere, a drift makes it travel; both have
    periodic conditions, the plain one zero values at the ends. The exact solution is the Cole–Hopf integral, by the
    trapezoid rule, to round-off.

    Parameters
    ----------
    viscosity
        ν, from 0.0001 to 10.
    shift
        How far the sine is moved to the right, between −1 and 1.
    drift
        Mean velocity, between −2 and 2.

    Examples
    --------
    >>> print(burgers(viscosity=0.5))
    Find u(x, t) with
      u*u_x + u_t = 0.5*u_xx   in Interval((x, -1, 1)) * TimeInterval(t, 0, 1)
      u = 0                    on the boundary
      u = -sin(pi*x)           on initial time
    """
    nu = parameter("viscosity", viscosity, "burgers", minimum=1e-4, maximum=10)
    moved = parameter("shift", shift, "burgers", minimum=-1, maximum=1)
    mean = parameter("drift", drift, "burgers", minimum=-2, maximum=2)
    plain = moved == 0 and mean == 0
    conditions = (Dirichlet(u, 0) if plain else Periodic(u, x), Initial(u, mean - sp.sin(sp.pi * (x - moved))))
    equation = sp.Eq(u.diff(t) + u * u.diff(x), nu * u.diff(x, 2))
    exact = data("cole_hopf", cole_hopf(float(nu), float(moved), float(mean)), x, t)
    return Problem(equation, Interval((x, -1, 1)) * TimeInterval(t, 0, 1), conditions, exact=exact)


def allen_cahn() -> Problem:
    """Return u_t = 10⁻⁴ u_xx + 5u − 5u³ on (−1, 1) × (0, 1), periodic, from u = x² cos πx.

    The solution falls into the states ±1 with fronts of width 0.01 between them; the initial value has a kink at the
    ends. The reference is a Fourier method with exponential time steps, to about 4·10⁻⁹.
    """
    equation = sp.Eq(u.diff(t), sp.Rational(1, 10000) * u.diff(x, 2) + 5 * u - 5 * u**3)
    exact = data("allen_cahn_reference", reference("allen_cahn"), x, t)
    conditions = (Periodic(u, x), Initial(u, x**2 * sp.cos(sp.pi * x)))
    return Problem(equation, Interval((x, -1, 1)) * TimeInterval(t, 0, 1), conditions, exact=exact)


def kuramoto_sivashinsky() -> Problem:
    """Return u_t + u u_x + u_xx + u_xxxx = 0 on (0, 32π) × (0, 10), periodic, from cos(x/16)(1 + sin(x/16)).

    The set-up of Kassam & Trefethen (2005), until shortly before chaos sets in: short waves grow from nothing. The
    reference is their method, with other steps, to about 10⁻⁹.
    """
    equation = u.diff(t) + u * u.diff(x) + u.diff(x, 2) + u.diff(x, 4)
    exact = data("kuramoto_sivashinsky_reference", reference("kuramoto_sivashinsky"), x, t)
    conditions = (Periodic(u, x), Initial(u, sp.cos(x / 16) * (1 + sp.sin(x / 16))))
    domain = Interval((x, 0, 32 * sp.pi)) * TimeInterval(t, 0, 10)
    return Problem(sp.Eq(equation, 0), domain, conditions, exact=exact)


def kdv() -> Problem:
    """Return u_t + 6 u u_x + u_xxx = 0 on (−25, 25) × (0, 5), periodic: a soliton overtakes another.

    The two-soliton solution 2 ∂² log F of Hirota, with wave numbers 9/5 and 6/5; at the ends it is below 10⁻⁹.
    """
    fast, slow = sp.Rational(9, 5), sp.Rational(6, 5)
    first, second = (k * (x - k**2 * t - place) for k, place in ((fast, -8), (slow, -3)))
    mixed = ((fast - slow) / (fast + slow)) ** 2
    # Divided by the geometric mean of its terms, F neither overflows nor vanishes.
    half = (first + second) / 2
    total = sp.exp(-half) + sp.exp(first - half) + sp.exp(second - half) + mixed * sp.exp(half)
    exact = 2 * sp.diff(sp.log(total), x, 2)
    conditions = (Periodic(u, x), Initial(u, exact.subs(t, 0)))
    equation = sp.Eq(u.diff(t) + 6 * u * u.diff(x) + u.diff(x, 3), 0)
    return Problem(equation, Interval((x, -25, 25)) * TimeInterval(t, 0, 5), conditions, exact=exact)


def fisher_kpp() -> Problem:
    """Return u_t = u_xx + u (1 − u) on (−20, 30) × (0, 5): a front that invades the unstable state.

    The travelling wave of Ablowitz & Zeppetella (1979), of speed 5/√6, with its values at the ends.
    """
    exact = (1 + sp.exp((x - 5 * t / sp.sqrt(6)) / sp.sqrt(6))) ** -2
    equation = sp.Eq(u.diff(t), u.diff(x, 2) + u * (1 - u))
    domain = Interval((x, -20, 30)) * TimeInterval(t, 0, 5)
    return Problem(equation, domain, (Dirichlet(u, exact), Initial(u, exact.subs(t, 0))), exact=exact)


def sine_gordon() -> Problem:
    """Return u_tt = u_xx − sin u on (−20, 20) × (0, 10): a breather, of frequency 1/2.

    Bound to its place, it swings between ±4 arctan √3 for ever; zero slope at the ends, where it is below 10⁻⁶ (the
    exact slope is given there).
    """
    frequency, interval = sp.S.Half, Interval((x, -20, 20))
    decay = sp.sqrt(1 - frequency**2)
    exact = 4 * sp.atan(decay / frequency * sp.cos(frequency * t) / sp.cosh(decay * x))
    ends = ((-sp.diff(exact, x), -20, interval.left), (sp.diff(exact, x), 20, interval.right))
    slopes = (Neumann(u, slope.subs(x, place), on=end) for slope, place, end in ends)
    conditions = (*slopes, Initial(u, exact.subs(t, 0)), Initial(u.diff(t), 0))
    equation = sp.Eq(u.diff(t, 2), u.diff(x, 2) - sp.sin(u))
    return Problem(equation, interval * TimeInterval(t, 0, 10), conditions, exact=exact)


def nonlinear_schroedinger() -> Problem:
    """Return i q_t + q_xx/2 + |q|² q = 0 on (−25, 25) × (0, 4), periodic, q = u + i v: a bright soliton that travels.

    q = sech(x − t + 2) e^(i x), written as a system of real and imaginary part.
    """
    u, v = field("u", x, t), field("v", x, t)
    size = u**2 + v**2
    equations = (sp.Eq(u.diff(t), -v.diff(x, 2) / 2 - size * v), sp.Eq(v.diff(t), u.diff(x, 2) / 2 + size * u))
    shape = 1 / sp.cosh(x - t + 2)
    exact = {u: shape * sp.cos(x), v: shape * sp.sin(x)}
    starts = (Initial(w, own.subs(t, 0)) for w, own in exact.items())
    domain = Interval((x, -25, 25)) * TimeInterval(t, 0, 4)
    return Problem(equations, domain, (*(Periodic(w, x) for w in exact), *starts), exact=exact)


def advection_long() -> Problem:
    """Return u_t + u_x = 0 on (0, 2π) × (0, 1000), periodic, u = sin(x − t): a wave goes round 159 times.

    Examples
    --------
    >>> advection_long().domain.measure > 6000
    True
    """
    return periodic_transport(sp.S.Zero, 2 * sp.pi, sp.Integer(1000), sp.S.One, sp.S.One)


def heat_source() -> Problem:
    """Return u_t = u_xx/10 + u − u³ + f on (0, 1) × (0, 100), u = sin πx (1 + sin(t)/2), zero at the ends.

    Heat with a source that depends on the temperature, for a long time.
    """
    exact = sp.sin(sp.pi * x) * (1 + sp.sin(t) / 2)
    forcing = sp.diff(exact, t) - (sp.diff(exact, x, 2) / 10 + exact - exact**3)
    conditions = (Dirichlet(u, 0), Initial(u, exact.subs(t, 0)))
    equation = sp.Eq(u.diff(t), u.diff(x, 2) / 10 + u - u**3 + forcing)
    return Problem(equation, UNIT * TimeInterval(t, 0, 100), conditions, exact=exact)


def lorenz() -> Problem:
    """Return the equations of Lorenz for t in (0, 2), σ = 10, ρ = 28, β = 8/3, from (1, 1, 1).

    The reference is SciPy's DOP853 with steps of at most 1/1000, to about 10⁻¹⁰.
    """
    x, y, z = (field(name, t) for name in "xyz")
    rates = {x: 10 * (y - x), y: x * (28 - z) - y, z: x * y - sp.Rational(8, 3) * z}
    return _ordinary("lorenz", rates, (1, 1, 1), 2)


def lotka_volterra() -> Problem:
    """Return the equations of Lotka and Volterra for t in (0, 20): predators and prey in turn.

    The reference is SciPy's DOP853 with steps of at most 1/100, to about 10⁻¹¹.
    """
    x, y = (field(name, t) for name in "xy")
    return _ordinary("lotka_volterra", {x: sp.Rational(3, 2) * x - x * y, y: x * y - 3 * y}, (10, 5), 10)


def van_der_pol() -> Problem:
    """Return u'' = μ (1 − u²) u' − u with μ = 100 for t in (0, 200), from (2, 0): slow, with two sudden jumps.

    A stiff equation: explicit methods need tens of thousands of steps. The reference is SciPy's Radau at its highest
    accuracy, to about 10⁻⁸.
    """
    u = field("u", t)
    equation = sp.Eq(u.diff(t, 2), 100 * (1 - u**2) * u.diff(t) - u)
    exact = data("van_der_pol_reference", reference("van_der_pol"), t)
    return Problem(equation, TimeInterval(t, 0, 200), (Initial(u, 2), Initial(u.diff(t), 0)), exact=exact)


def _ordinary(name: str, rates: dict[Field, sp.Expr], start: tuple[int, ...], stop: float) -> Problem:
    exact = {w: data(f"{name}_{w.label}", reference(name, i), t) for i, w in enumerate(rates)}
    starts = [Initial(w, value) for w, value in zip(rates, start, strict=True)]
    equations = [sp.Eq(w.diff(t), rate) for w, rate in rates.items()]
    return Problem(equations, TimeInterval(t, 0, stop), starts, exact=exact)


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
    u, v = field("u", x, y, t), field("v", x, y, t)
    front = 1 / (1 + sp.exp((4 * y - 4 * x - t) / (32 * nu)))
    exact = {u: sp.Rational(3, 4) - front / 4, v: sp.Rational(3, 4) + front / 4}
    equations = [sp.Eq(w.diff(t) + u * w.diff(x) + v * w.diff(y), nu * laplacian(w)) for w in exact]
    conditions = [c for w, own in exact.items() for c in (Dirichlet(w, own), Initial(w, own.subs(t, 0)))]
    return Problem(equations, SQUARE * TimeInterval(t, 0, 1), conditions, exact=exact)


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
    u, v, p = (field(name, x, y, t) for name in "uvp")
    decay = sp.exp(-2 * nu * t)
    exact = {
        u: sp.cos(x) * sp.sin(y) * decay,
        v: -sp.sin(x) * sp.cos(y) * decay,
        p: -(sp.cos(2 * x) + sp.cos(2 * y)) * decay**2 / 4,
    }
    equations = [
        sp.Eq(w.diff(t) + u * w.diff(x) + v * w.diff(y) + p.diff(s), nu * laplacian(w)) for w, s in ((u, x), (v, y))
    ]
    around = (Dirichlet(w, exact[w]) for w in (u, v)) if walls else (Periodic(w, s) for w in exact for s in (x, y))
    conditions = (*(Initial(w, exact[w].subs(t, 0)) for w in (u, v)), *around, Mean(p, 0))
    domain = Rectangle((x, 0, 2 * sp.pi), (y, 0, 2 * sp.pi)) * TimeInterval(t, 0, 1)
    return Problem([*equations, sp.Eq(div([u, v]), 0)], domain, conditions, exact=exact)


def gray_scott() -> Problem:
    """Return the reaction of Gray and Scott on (−1, 1)² × (0, 10), periodic: a spot of v feeds on u and spreads.

    u_t = Δu/50 − u v² + F (1 − u), v_t = Δv/100 + u v² − (F + k) v with F = 0.04 and k = 0.06, from
    v = e^(2 (cos πx + cos πy − 2)) / 2 and u = 1 − v. The reference is a Fourier method with SciPy's DOP853, to about
    10⁻¹⁰.
    """
    u, v = field("u", x, y, t), field("v", x, y, t)
    feed, kill, spread = sp.Rational(1, 25), sp.Rational(3, 50), sp.Rational(1, 100)
    equations = (
        sp.Eq(u.diff(t), 2 * spread * laplacian(u) - u * v**2 + feed * (1 - u)),
        sp.Eq(v.diff(t), spread * laplacian(v) + u * v**2 - (feed + kill) * v),
    )
    spot = sp.exp(2 * (sp.cos(sp.pi * x) + sp.cos(sp.pi * y) - 2)) / 2
    around = (Periodic(w, along) for w in (u, v) for along in (x, y))
    exact = {w: data(f"gray_scott_{w.label}", reference("gray_scott", i), x, y, t) for i, w in enumerate((u, v))}
    domain = Rectangle((x, -1, 1), (y, -1, 1)) * TimeInterval(t, 0, 10)
    return Problem(equations, domain, (*around, Initial(u, 1 - spot), Initial(v, spot)), exact=exact)
