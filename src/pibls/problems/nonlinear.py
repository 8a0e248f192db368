"""Nonlinear problems without time: reactions, oscillators, flow, surfaces, stars."""

from __future__ import annotations

import math

import sympy as sp

from pibls.errors import InputError
from pibls.geometry import Interval, Rectangle
from pibls.problem import Condition, Dirichlet, Mean, Problem, div, field, grad, laplacian
from pibls.problems.manufactured import SQUARE, UNIT, dirichlet, manufactured, parameter, t, x, y

__all__ = ["bratu", "bratu_1d", "bratu_unforced", "burgers_steady", "cavity", "cubic_reaction", "kovasznay"]
__all__ += ["lane_emden", "minimal_surface", "nonlinear_helmholtz", "nonlinear_spring", "p_laplacian"]
__all__ += ["regularised_cavity"]

_BRATU_LIMIT = 3.5  # solutions on the unit interval end at 3.5138
u, v, p = (field(name, x, y) for name in "uvp")
w = field("u", x)  # on a line


def cubic_reaction() -> Problem:
    """Return −Δu + u³ = f on the unit square, u = sin πx sin πy.

    The reaction is monotone, so that the solution is unique and Newton's method finds it from anywhere.

    Examples
    --------
    >>> problem = cubic_reaction()
    >>> problem.is_linear, problem.exact["u"]
    (False, sin(pi*x)*sin(pi*y))
    """
    return dirichlet(-laplacian(u) + u**3, u, sp.sin(sp.pi * x) * sp.sin(sp.pi * y), SQUARE, 0)


def bratu() -> Problem:
    """Return Bratu's equation with a source, −Δu − eᵘ = f on the unit square, u = sin πx sin πy.

    The exponential makes a second, larger solution possible.

    Examples
    --------
    >>> bratu().conditions
    (Dirichlet(u = 0 on the boundary),)
    """
    return dirichlet(-laplacian(u) - sp.exp(u), u, sp.sin(sp.pi * x) * sp.sin(sp.pi * y), SQUARE, 0)


def bratu_unforced(load: float = 1) -> Problem:
    """Return Bratu's equation Δu + λ eᵘ = 0 on the unit square, zero on the boundary; it has no closed form.

    There are two solutions up to λ = 6.808, and none beyond (thermal ignition). Both are smooth but for terms r² log r
    at the corners. :func:`~pibls.problems.references` has values of the smaller one for λ = 1.

    Parameters
    ----------
    load
        The number λ, from 0.01 to 100.

    Examples
    --------
    >>> print(bratu_unforced(10))
    Find u(x, y) with
      10*exp(u) + laplacian(u) = 0   in Rectangle((x, 0, 1), (y, 0, 1))
      u = 0                          on the boundary
    """
    number = parameter("load", load, "bratu_unforced", minimum=0.01, maximum=100)
    return Problem(sp.Eq(laplacian(u) + number * sp.exp(u), 0), SQUARE, (Dirichlet(u, 0),))


def bratu_1d(load: float = 1) -> Problem:
    """Return Bratu's equation u'' + λ eᵘ = 0 on (0, 1), u(0) = u(1) = 0: the smaller of its two solutions.

    u = −2 log(cosh((x − ½)θ/2) / cosh(θ/4)) with θ = √(2λ) cosh(θ/4), of whose two roots the smaller is taken.

    Parameters
    ----------
    load
        The number λ, from 0.01 to 3.5; from 3.5138 on there is no solution.

    Examples
    --------
    >>> round(float(bratu_1d().exact_values([0.5])["u"][0]), 8)
    0.14053921
    """
    number = parameter("load", load, "bratu_1d", minimum=0.01, maximum=_BRATU_LIMIT)
    root, theta = math.sqrt(2 * float(number)), 0.0
    for _ in range(60):
        # Convex and falling up to the smaller root: Newton's method comes from the left and cannot overshoot.
        theta -= (root * math.cosh(theta / 4) - theta) / (root * math.sinh(theta / 4) / 4 - 1)
    exact = -2 * sp.log(sp.cosh((x - sp.Rational(1, 2)) * (theta / 2)) / math.cosh(theta / 4))
    return Problem(sp.Eq(w.diff(x, 2) + number * sp.exp(w), 0), UNIT, (Dirichlet(w, 0),), exact=exact)


def nonlinear_helmholtz() -> Problem:
    """Return u'' − 50u + 10 sin u = f on (0, 8), u = sin(3πx + 3π/20) cos(4πx − 2π/5) + 3/2 + x/10.

    The nonlinear test of local extreme learning machines (Dong & Li 2021): nearly thirty oscillations on one interval.

    Examples
    --------
    >>> nonlinear_helmholtz().domain
    Interval((x, 0, 8))
    """
    waves = sp.sin(3 * sp.pi * x + 3 * sp.pi / 20) * sp.cos(4 * sp.pi * x - 2 * sp.pi / 5)
    exact = waves + sp.Rational(3, 2) + x / 10
    return dirichlet(w.diff(x, 2) - 50 * w + 10 * sp.sin(w), w, exact, Interval((x, 0, 8)))


def nonlinear_spring() -> Problem:
    """Return u'' + 4u + sin(u)/10 = f on (0, 5/2) from rest, u(0) = u'(0) = 0, with u = t sin t.

    An initial value problem solved over the whole interval at once (Dong & Li 2021).

    Examples
    --------
    >>> nonlinear_spring().conditions
    (Dirichlet(u = 0 on left), Condition(u_t = 0 on left))
    """
    u, interval, exact = field("u", t), Interval((t, 0, sp.Rational(5, 2))), t * sp.sin(t)
    equation = manufactured(u.diff(t, 2) + 4 * u + sp.sin(u) / 10, {u: exact}, interval)
    conditions = (Dirichlet(u, 0, on=interval.left), Condition(sp.Eq(u.diff(t), 0), on=interval.left))
    return Problem(equation, interval, conditions, exact=exact)


def burgers_steady(viscosity: float = 0.1) -> Problem:
    """Return the steady Burgers equation u u' = ν u'' on (−1, 1), u = −tanh(x/(2ν)): a standing shock.

    Parameters
    ----------
    viscosity
        The number ν, from 0.005 to 10; the shock is about 4ν wide.

    Examples
    --------
    >>> burgers_steady(0.25).exact["u"]
    -tanh(2*x)
    """
    nu = sp.Rational(repr(float(parameter("viscosity", viscosity, "burgers_steady", minimum=0.005, maximum=10))))
    exact = -sp.tanh(x / (2 * nu))
    equation = sp.Eq(w * w.diff(x), nu * w.diff(x, 2))
    return Problem(equation, Interval((x, -1, 1)), (Dirichlet(w, exact),), exact=exact)


def kovasznay(reynolds: float = 40) -> Problem:
    """Return Kovasznay's flow behind a grid: the steady Navier–Stokes equations on (−½, 1) × (−½, 3/2).

    With λ = Re/2 − √(Re²/4 + 4π²) the velocity is (1 − e^(λx) cos 2πy, λ/(2π) e^(λx) sin 2πy) and the pressure
    (1 − e^(2λx))/2 (Kovasznay 1948), one of the few exact solutions that are truly nonlinear. The velocity is given on
    the boundary, the pressure on average.

    Parameters
    ----------
    reynolds
        The Reynolds number, from 1 to 1000.

    Examples
    --------
    >>> problem = kovasznay()
    >>> problem.field_names, len(problem.equations)
    (('p', 'u', 'v'), 3)
    """
    number = parameter("reynolds", reynolds, "kovasznay", minimum=1, maximum=1000)
    half = sp.Rational(1, 2)
    box = Rectangle((x, -half, 1), (y, -half, 3 * half))
    rate = number / 2 - sp.sqrt(number**2 / 4 + 4 * sp.pi**2)
    decay = sp.exp(rate * x)
    exact = {
        u: 1 - decay * sp.cos(2 * sp.pi * y),
        v: rate / (2 * sp.pi) * decay * sp.sin(2 * sp.pi * y),
        p: (1 - sp.exp(2 * rate * x)) / 2,
    }
    mean = (1 - (sp.exp(2 * rate) - sp.exp(-rate)) / (3 * rate)) / 2
    conditions = (Dirichlet(u, exact[u]), Dirichlet(v, exact[v]), Mean(p, float(mean)))
    return Problem(_navier_stokes(number), box, conditions, exact=exact)


def _navier_stokes(reynolds: sp.Expr) -> tuple[sp.Eq, ...]:
    momentum = (
        sp.Eq(u * w.diff(x) + v * w.diff(y) + force, laplacian(w) / reynolds)
        for w, force in ((u, p.diff(x)), (v, p.diff(y)))
    )
    return (*momentum, sp.Eq(div([u, v]), 0))


def cavity(reynolds: float = 100) -> Problem:
    """Return the lid-driven cavity: steady Navier–Stokes flow in the unit square whose lid moves with velocity one.

    No closed form is known; Ghia, Ghia & Shin (1982) tabulate the velocity on the centre lines, Botella & Peyret (1998)
    its extrema to seven digits. At the two upper corners the velocity of the lid meets that of the wall: the velocity
    jumps there and the pressure is infinite.

    Parameters
    ----------
    reynolds
        The Reynolds number, from 1 to 1000.

    Examples
    --------
    >>> cavity().conditions[:2]
    (Dirichlet(u = 1 on top), Dirichlet(u = 0 on left|right|bottom))
    """
    return _cavity("cavity", reynolds, sp.S.One)


def regularised_cavity(reynolds: float = 100) -> Problem:
    """Return the lid-driven cavity with a lid that stretches, u = 4x(1 − x) on top: the velocity is continuous.

    The corners still have a weak singularity, r log r in the velocity. See :func:`cavity`.

    Parameters
    ----------
    reynolds
        The Reynolds number, from 1 to 1000.

    Examples
    --------
    >>> regularised_cavity(400).conditions[0]
    Dirichlet(u = 4*x*(1 - x) on top)
    """
    return _cavity("regularised_cavity", reynolds, 4 * x * (1 - x))


def _cavity(owner: str, reynolds: float, lid: sp.Expr) -> Problem:
    number = parameter("reynolds", reynolds, owner, minimum=1, maximum=1000)
    walls = SQUARE.left | SQUARE.right | SQUARE.bottom
    conditions = (Dirichlet(u, lid, on=SQUARE.top), Dirichlet(u, 0, on=walls), Dirichlet(v, 0), Mean(p, 0))
    return Problem(_navier_stokes(number), SQUARE, conditions)


def p_laplacian(p: float = 3) -> Problem:
    """Return ∇·(|∇u|^(p−2) ∇u) = 0 on the square (1, 2)², u = (x² + y²)^((p−2)/(2(p−1))).

    The equation of power-law fluids and of optimal transport. Its diffusion vanishes with the gradient, so that
    nothing can be started from zero.

    Parameters
    ----------
    p
        The power, from 2.1 to 8.

    Examples
    --------
    >>> p_laplacian().exact["u"]
    (x**2 + y**2)**(1/4)
    """
    power = sp.nsimplify(parameter("p", p, "p_laplacian", minimum=2.1, maximum=8), rational=True)
    diffusion = (u.diff(x) ** 2 + u.diff(y) ** 2) ** ((power - 2) / 2)
    exact = (x**2 + y**2) ** ((power - 2) / (2 * (power - 1)))
    domain = Rectangle((x, 1, 2), (y, 1, 2))
    return Problem(sp.Eq(div(diffusion * grad(u)), 0), domain, (Dirichlet(u, exact),), exact=exact)


def minimal_surface() -> Problem:
    """Return the equation of minimal surfaces on (−1, 1)², with Scherk's surface u = log(cos y / cos x).

    (1 + u_y²) u_xx − 2 u_x u_y u_xy + (1 + u_x²) u_yy = 0: a soap film, whose slope reaches 1.6 at the edges here and
    is infinite at x = ±π/2.

    Examples
    --------
    >>> round(float(minimal_surface().exact_values([[0.5, 0.0]])["u"][0]), 6)
    0.130584
    """
    exact = sp.log(sp.cos(y)) - sp.log(sp.cos(x))
    u_x, u_y = u.diff(x), u.diff(y)
    curvature = (1 + u_y**2) * u.diff(x, 2) - 2 * u_x * u_y * u.diff(x, y) + (1 + u_x**2) * u.diff(y, 2)
    return Problem(sp.Eq(curvature, 0), Rectangle((x, -1, 1), (y, -1, 1)), (Dirichlet(u, exact),), exact=exact)


def lane_emden(index: int = 5) -> Problem:
    """Return the Lane–Emden equation x u'' + 2u' + x uⁿ = 0 on (0, 3), u(0) = 1, u'(0) = 0.

    A star of gas in its own gravity. The equation is singular at the centre. Solutions are known for n = 0, 1 and 5:
    1 − x²/6, sin(x)/x and (1 + x²/3)^(−1/2); the first two equations are linear.

    Parameters
    ----------
    index
        The polytropic index n: 1 or 5.

    Examples
    --------
    >>> lane_emden().exact["u"], lane_emden(1).is_linear
    (1/sqrt(x**2/3 + 1), True)
    """
    n = parameter("index", index, "lane_emden", minimum=1, maximum=5)
    if n not in (1, 5):
        raise InputError(
            f"The 'index' parameter of lane_emden must be 1 or 5, which have a closed form. Got {index} instead."
        )
    star = Interval((x, 0, 3))
    exact = 1 / sp.sqrt(1 + x**2 / 3) if n == 5 else sp.sinc(x)
    conditions = (Dirichlet(w, 1, on=star.left), Condition(sp.Eq(w.diff(x), 0), on=star.left))
    return Problem(sp.Eq(x * w.diff(x, 2) + 2 * w.diff(x) + x * w**n, 0), star, conditions, exact=exact)
