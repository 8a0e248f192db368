"""Ordinary differential equations: oscillations, a boundary layer, an initial value problem, high orders."""

from __future__ import annotations

import sympy as sp

from pibls.errors import InputError
from pibls.geometry import Interval, TimeInterval
from pibls.problem import Condition, Dirichlet, Initial, Problem, field
from pibls.problems.manufactured import UNIT, dirichlet, layer, parameter, t, thickness, x

__all__ = ["beam", "boundary_layer", "convection_diffusion", "damped_oscillator", "oscillator", "sixth_order"]

u = field("u", x)


def oscillator() -> Problem:
    """Return u'' + 4u = f on (0, 8), u = sin(3πx + 3π/20) cos(2πx + π/10) + 2.

    About twenty oscillations on one interval, the solution of the one-dimensional tests of local extreme learning
    machines (Dong & Li 2021): one global network needs its feature scale right. The indefinite sign makes the
    problem solvable only because 8 is not a multiple of π/2.

    Examples
    --------
    >>> print(oscillator().conditions[0])
    Dirichlet(u = sin(3*pi*x + 3*pi/20)*cos(2*pi*x + pi/10) + 2 on the boundary)
    """
    exact = sp.sin(3 * sp.pi * x + 3 * sp.pi / 20) * sp.cos(2 * sp.pi * x + sp.pi / 10) + 2
    return dirichlet(u.diff(x, 2) + 4 * u, u, exact, Interval((x, 0, 8)))


def convection_diffusion(eps: float = 0.2) -> Problem:
    """Return u' − ε u'' = 0 on (0, 1), u(0) = 0, u(1) = 1: a boundary layer of width ε at the outflow.

    The solution (e^(x/ε) − 1) / (e^(1/ε) − 1) is written so that nothing overflows for small ε. It is the standard
    test of singular perturbation: for ε = 10⁻³ all of the change happens in the last hundredth of the interval.

    Parameters
    ----------
    eps
        Diffusivity, from 10⁻⁶ to 100.

    Examples
    --------
    >>> import numpy as np
    >>> problem = convection_diffusion(eps=1e-3)
    >>> problem.exact_values(np.array([[0.0], [0.99], [0.999], [1.0]]))["u"].round(3)
    array([0.   , 0.   , 0.368, 1.   ])
    """
    width = thickness(eps, "convection_diffusion")
    ends = (Dirichlet(u, 0, on=UNIT.left), Dirichlet(u, 1, on=UNIT.right))
    return Problem(sp.Eq(u.diff(x) - width * u.diff(x, 2), 0), UNIT, ends, exact=layer(x, width))


def boundary_layer() -> Problem:
    """Return :func:`convection_diffusion` with ε = 10⁻³, where the layer is a thousandth of the interval.

    Smooth features spread over the whole interval do not see it; some have to be steep, and stand at x = 1.

    Examples
    --------
    >>> print(boundary_layer())
    Find u(x) with
      u_x - u_xx/1000 = 0   in Interval((x, 0, 1))
      u = 0                 on left
      u = 1                 on right
    """
    return convection_diffusion(1e-3)


def damped_oscillator(damping: float = 0.4, stiffness: float = 4) -> Problem:
    """Return u'' + c u' + k u = 0 for t in (0, 10), released at rest from u(0) = 1.

    A pure initial value problem: the domain is a time interval, and both conditions sit at its beginning. With
    ω² = k − c²/4 the solution is e^(−ct/2) (cos ωt + c/(2ω) sin ωt).

    Parameters
    ----------
    damping, stiffness
        The coefficients c (from 0) and k (above c²/4, so that it oscillates), both at most 100.

    Examples
    --------
    >>> print(damped_oscillator())
    Find u(t) with
      4*u + 0.4*u_t + u_tt = 0   in TimeInterval(t, 0, 10)
      u = 1                      on initial time
      u_t = 0                    on initial time
    """
    c = parameter("damping", damping, "damped_oscillator", minimum=0, maximum=100)
    k = parameter("stiffness", stiffness, "damped_oscillator", minimum=0, exclusive=True, maximum=100)
    if not float(k) > float(c) ** 2 / 4:
        raise InputError(
            "The 'stiffness' parameter of damped_oscillator must be above damping²/4, so that the solution oscillates. "
            f"Got {float(k):g} with damping {float(c):g} instead. Reduce the damping."
        )
    u, frequency = field("u", t), sp.sqrt(k - c**2 / 4)
    exact = sp.exp(-c * t / 2) * (sp.cos(frequency * t) + c / (2 * frequency) * sp.sin(frequency * t))
    equation = sp.Eq(u.diff(t, 2) + c * u.diff(t) + k * u, 0)
    return Problem(equation, TimeInterval(t, 0, 10), (Initial(u, 1), Initial(u.diff(t), 0)), exact=exact)


def beam(load: float = 120) -> Problem:
    """Return the Euler–Bernoulli beam u'''' = q x on (0, 1), clamped at the left end, simply supported at the right.

    The propped cantilever under a load that grows linearly, of every textbook on structures: u = u' = 0 at x = 0,
    u = u'' = 0 at x = 1, and u = q (2x⁵ − 9x³ + 7x²)/240. Fourth order, with derivatives in the conditions.

    Parameters
    ----------
    load
        The load q at the right end over the stiffness, from 10⁻³ to 10⁶.

    Examples
    --------
    >>> beam().conditions
    (Dirichlet(u = 0 on the boundary), Condition(u_x = 0 on left), Condition(u_xx = 0 on right))
    """
    q = parameter("load", load, "beam", minimum=1e-3, maximum=1e6)
    clamped, supported = (Condition(sp.Eq(u.diff(x, k), 0), on=end) for k, end in ((1, UNIT.left), (2, UNIT.right)))
    exact = q * (2 * x**5 - 9 * x**3 + 7 * x**2) / 240
    return Problem(sp.Eq(u.diff(x, 4), q * x), UNIT, (Dirichlet(u, 0), clamped, supported), exact=exact)


def sixth_order() -> Problem:
    """Return u⁽⁶⁾ = u − 6eˣ on (0, 1), u = (1 − x) eˣ, with u, u'' and u'''' given at both ends.

    From the literature on high-order boundary value problems (Wazwaz 2001), which arise from narrow convecting layers
    of stars: six derivatives of the features must keep their digits.

    Examples
    --------
    >>> problem = sixth_order()
    >>> problem.statements[0].form.order, len(problem.conditions)
    (6, 3)
    """
    exact = (1 - x) * sp.exp(x)
    bends = [Condition(sp.Eq(u.diff(x, k), -(k - 1 + x) * sp.exp(x))) for k in (2, 4)]
    return Problem(sp.Eq(u.diff(x, 6), u - 6 * sp.exp(x)), UNIT, (Dirichlet(u, exact), *bends), exact=exact)
