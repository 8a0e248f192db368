"""Evolutions, most of them nonlinear: shocks, fronts, solitons, chaos, and ordinary differential equations.

Where the solution has no closed form, ``exact`` is a function computed by another method than the one that is tested;
the docstring says which, and how accurate it is.
"""

from __future__ import annotations

import sympy as sp

from pibls.geometry import Interval, TimeInterval
from pibls.problem import Dirichlet, Initial, Neumann, Periodic, Problem, coordinates, data, field
from pibls.problems.manufactured import parameter, scalar
from pibls.problems.spectral import cole_hopf, ordinary_solution, periodic_solution

__all__ = [
    "advection_long",
    "allen_cahn",
    "burgers",
    "fisher_kpp",
    "heat_source",
    "kdv",
    "kuramoto_sivashinsky",
    "lorenz",
    "lotka_volterra",
    "nonlinear_schroedinger",
    "sine_gordon",
    "van_der_pol",
]


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
    x, t, u = scalar("x t")
    plain = moved == 0 and mean == 0
    start = mean - sp.sin(sp.pi * (x - moved))
    conditions = (Dirichlet(u, 0) if plain else Periodic(u, x), Initial(u, start))
    equation = sp.Eq(u.diff(t) + u * u.diff(x), nu * u.diff(x, 2))
    exact = data("cole_hopf", cole_hopf(float(nu), float(moved), float(mean)), x, t)
    return Problem((equation,), Interval((x, -1, 1)) * TimeInterval(t, 0, 1), conditions, exact={"u": exact})


def allen_cahn() -> Problem:
    """Return u_t = 10⁻⁴ u_xx + 5u − 5u³ on (−1, 1) × (0, 1), periodic, from u = x² cos πx.

    The solution falls into the states ±1 with fronts of width 0.01 between them; the initial value has a kink at the
    ends. The reference is a Fourier method with exponential time steps, to about 4·10⁻⁹.
    """
    x, t, u = scalar("x t")
    diffusion = sp.Rational(1, 10000)
    equation = sp.Eq(u.diff(t), diffusion * u.diff(x, 2) + 5 * u - 5 * u**3)
    start = x**2 * sp.cos(sp.pi * x)
    reference = periodic_solution("allen_cahn")
    domain = Interval((x, -1, 1)) * TimeInterval(t, 0, 1)
    exact = data("allen_cahn_reference", reference, x, t)
    return Problem((equation,), domain, (Periodic(u, x), Initial(u, start)), exact={"u": exact})


def kuramoto_sivashinsky() -> Problem:
    """Return u_t + u u_x + u_xx + u_xxxx = 0 on (0, 32π) × (0, 10), periodic, from cos(x/16)(1 + sin(x/16)).

    The set-up of Kassam & Trefethen (2005), until shortly before chaos sets in: short waves grow from nothing. The
    reference is their method, with other steps, to about 10⁻⁹.
    """
    x, t, u = scalar("x t")
    equation = u.diff(t) + u * u.diff(x) + u.diff(x, 2) + u.diff(x, 4)
    start = sp.cos(x / 16) * (1 + sp.sin(x / 16))
    domain = Interval((x, 0, 32 * sp.pi)) * TimeInterval(t, 0, 10)
    exact = data("kuramoto_sivashinsky_reference", periodic_solution("kuramoto_sivashinsky"), x, t)
    return Problem((sp.Eq(equation, 0),), domain, (Periodic(u, x), Initial(u, start)), exact={"u": exact})


def kdv() -> Problem:
    """Return u_t + 6 u u_x + u_xxx = 0 on (−25, 25) × (0, 5), periodic: a soliton overtakes another.

    The two-soliton solution 2 ∂² log F of Hirota, with wave numbers 9/5 and 6/5; at the ends it is below 10⁻⁹.
    """
    x, t, u = scalar("x t")
    fast, slow = sp.Rational(9, 5), sp.Rational(6, 5)
    first, second = (k * (x - k**2 * t - place) for k, place in ((fast, -8), (slow, -3)))
    mixed = ((fast - slow) / (fast + slow)) ** 2
    # Divided by the geometric mean of its terms, F neither overflows nor vanishes.
    half = (first + second) / 2
    total = sp.exp(-half) + sp.exp(first - half) + sp.exp(second - half) + mixed * sp.exp(half)
    exact = 2 * sp.diff(sp.log(total), x, 2)
    domain = Interval((x, -25, 25)) * TimeInterval(t, 0, 5)
    conditions = (Periodic(u, x), Initial(u, exact.subs(t, 0)))
    equation = sp.Eq(u.diff(t) + 6 * u * u.diff(x) + u.diff(x, 3), 0)
    return Problem((equation,), domain, conditions, exact={"u": exact})


def fisher_kpp() -> Problem:
    """Return u_t = u_xx + u (1 − u) on (−20, 30) × (0, 5): a front that invades the unstable state.

    The travelling wave of Ablowitz & Zeppetella (1979), of speed 5/√6, with its values at the ends.
    """
    x, t, u = scalar("x t")
    exact = (1 + sp.exp((x - 5 * t / sp.sqrt(6)) / sp.sqrt(6))) ** -2
    equation = sp.Eq(u.diff(t), u.diff(x, 2) + u * (1 - u))
    domain = Interval((x, -20, 30)) * TimeInterval(t, 0, 5)
    return Problem((equation,), domain, (Dirichlet(u, exact), Initial(u, exact.subs(t, 0))), exact={"u": exact})


def sine_gordon() -> Problem:
    """Return u_tt = u_xx − sin u on (−20, 20) × (0, 10): a breather, of frequency 1/2.

    Bound to its place, it swings between ±4 arctan √3 for ever; zero slope at the ends, where it is below 10⁻⁶ (the
    exact slope is given there).
    """
    x, t, u = scalar("x t")
    frequency = sp.S.Half
    decay = sp.sqrt(1 - frequency**2)
    exact = 4 * sp.atan(decay / frequency * sp.cos(frequency * t) / sp.cosh(decay * x))
    slope = sp.diff(exact, x)
    interval = Interval((x, -20, 20))
    conditions = (
        Neumann(u, -slope.subs(x, -20), on=interval.left),
        Neumann(u, slope.subs(x, 20), on=interval.right),
        Initial(u, exact.subs(t, 0)),
        Initial(u.diff(t), 0),
    )
    equation = sp.Eq(u.diff(t, 2), u.diff(x, 2) - sp.sin(u))
    return Problem((equation,), interval * TimeInterval(t, 0, 10), conditions, exact={"u": exact})


def nonlinear_schroedinger() -> Problem:
    """Return i q_t + q_xx/2 + |q|² q = 0 on (−25, 25) × (0, 4), periodic, q = u + i v: a bright soliton that travels.

    q = sech(x − t + 2) e^(i x), written as a system of real and imaginary part.
    """
    x, t = coordinates("x t")
    u, v = field("u", x, t), field("v", x, t)
    size = u**2 + v**2
    equations = (
        sp.Eq(u.diff(t), -v.diff(x, 2) / 2 - size * v),
        sp.Eq(v.diff(t), u.diff(x, 2) / 2 + size * u),
    )
    shape = 1 / sp.cosh(x - t + 2)
    exact = {"u": shape * sp.cos(x), "v": shape * sp.sin(x)}
    conditions = (
        Periodic(u, x),
        Periodic(v, x),
        Initial(u, exact["u"].subs(t, 0)),
        Initial(v, exact["v"].subs(t, 0)),
    )
    return Problem(equations, Interval((x, -25, 25)) * TimeInterval(t, 0, 4), conditions, exact=exact)


def advection_long() -> Problem:
    """Return u_t + u_x = 0 on (0, 2π) × (0, 1000), periodic, u = sin(x − t): a wave goes round 159 times.

    Examples
    --------
    >>> advection_long().domain.measure > 6000
    True
    """
    x, t, u = scalar("x t")
    domain = Interval((x, 0, 2 * sp.pi)) * TimeInterval(t, 0, 1000)
    conditions = (Periodic(u, x), Initial(u, sp.sin(x)))
    return Problem((sp.Eq(u.diff(t) + u.diff(x), 0),), domain, conditions, exact={"u": sp.sin(x - t)})


def heat_source() -> Problem:
    """Return u_t = u_xx/10 + u − u³ + f on (0, 1) × (0, 100), u = sin πx (1 + sin(t)/2), zero at the ends.

    Heat with a source that depends on the temperature, for a long time.
    """
    x, t, u = scalar("x t")
    exact = sp.sin(sp.pi * x) * (1 + sp.sin(t) / 2)
    left, right = u.diff(t), u.diff(x, 2) / 10 + u - u**3
    forcing = sp.diff(exact, t) - (sp.diff(exact, x, 2) / 10 + exact - exact**3)
    domain = Interval((x, 0, 1)) * TimeInterval(t, 0, 100)
    conditions = (Dirichlet(u, 0), Initial(u, exact.subs(t, 0)))
    return Problem((sp.Eq(left, right + forcing),), domain, conditions, exact={"u": exact})


def lorenz() -> Problem:
    """Return the equations of Lorenz for t in (0, 2), σ = 10, ρ = 28, β = 8/3, from (1, 1, 1).

    The reference is SciPy's DOP853 with steps of at most 1/1000, to about 10⁻¹⁰.
    """
    t = coordinates("t")
    x, y, z = (field(name, t) for name in "xyz")
    equations = (
        sp.Eq(x.diff(t), 10 * (y - x)),
        sp.Eq(y.diff(t), x * (28 - z) - y),
        sp.Eq(z.diff(t), x * y - sp.Rational(8, 3) * z),
    )
    return _ordinary("lorenz", equations, {x: 1, y: 1, z: 1}, t, 2)


def lotka_volterra() -> Problem:
    """Return the equations of Lotka and Volterra for t in (0, 20): predators and prey in turn.

    The reference is SciPy's DOP853 with steps of at most 1/100, to about 10⁻¹¹.
    """
    t = coordinates("t")
    x, y = (field(name, t) for name in "xy")
    equations = (
        sp.Eq(x.diff(t), sp.Rational(3, 2) * x - x * y),
        sp.Eq(y.diff(t), x * y - 3 * y),
    )
    return _ordinary("lotka_volterra", equations, {x: 10, y: 5}, t, 10)


def van_der_pol() -> Problem:
    """Return u'' = μ (1 − u²) u' − u with μ = 100 for t in (0, 200), from (2, 0): slow, with two sudden jumps.

    A stiff equation: explicit methods need tens of thousands of steps. The reference is SciPy's Radau at its highest
    accuracy, to about 10⁻⁸.
    """
    t, u = scalar("t")
    equation = sp.Eq(u.diff(t, 2), 100 * (1 - u**2) * u.diff(t) - u)
    exact = data("van_der_pol_reference", ordinary_solution("van_der_pol", 0), t)
    conditions = (Initial(u, 2), Initial(u.diff(t), 0))
    return Problem((equation,), TimeInterval(t, 0, 200), conditions, exact={"u": exact})


def _ordinary(name: str, equations: tuple[sp.Eq, ...], start: dict[sp.Expr, int], t: sp.Symbol, stop: float) -> Problem:
    references = [data(f"{name}_{f.label}", ordinary_solution(name, i), t) for i, f in enumerate(start)]
    conditions = tuple(Initial(f, value) for f, value in start.items())
    exact = {f.label: reference for f, reference in zip(start, references, strict=True)}
    return Problem(equations, TimeInterval(t, 0, stop), conditions, exact=exact)
