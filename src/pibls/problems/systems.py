"""Systems of several fields: incompressible flow, elasticity, quantum mechanics, electromagnetism."""

from __future__ import annotations

import sympy as sp

from pibls.geometry import Interval, TimeInterval
from pibls.problem import Condition, Dirichlet, Initial, Mean, Periodic, Problem, div, field, laplacian
from pibls.problems.manufactured import SPACE_TIME, SQUARE, manufactured, parameter, plane_stress, t, x, y

__all__ = ["elasticity", "maxwell_1d", "schroedinger", "stokes"]

u, v, p = (field(name, x, y) for name in "uvp")


def stokes() -> Problem:
    """Return the Stokes equations −Δu + p_x = f₁, −Δv + p_y = f₂, u_x + v_y = 0 on the unit square, no slip.

    The velocity is the curl of the stream function sin²πx sin²πy / π, the pressure cos πx sin πy. The pressure is
    fixed only up to a constant, so its mean is given; it has no boundary condition of its own.

    Examples
    --------
    >>> problem = stokes()
    >>> problem.fields
    (p(x, y), u(x, y), v(x, y))
    >>> problem.conditions[-1]
    Mean(p = 0 on average)
    """
    stream = sp.sin(sp.pi * x) ** 2 * sp.sin(sp.pi * y) ** 2 / sp.pi
    exact = {u: stream.diff(y), v: -stream.diff(x), p: sp.cos(sp.pi * x) * sp.sin(sp.pi * y)}
    forces = (manufactured(-laplacian(w) + p.diff(s), exact, SQUARE) for w, s in ((u, x), (v, y)))
    equations = (*forces, sp.Eq(div([u, v]), 0))
    return Problem(equations, SQUARE, (Dirichlet(u, 0), Dirichlet(v, 0), Mean(p, 0)), exact=exact)


def elasticity(poisson_ratio: float = 0.3) -> Problem:
    """Return plane-strain elasticity on the unit square: three sides held, the right side loaded by a traction.

    Navier's equations −∇·σ = f with σ = λ (∇·u) I + μ (∇u + ∇uᵀ) for Young's modulus 1, and σ·n given on the right
    with the components of the outward normal. The displacement is (sin(πx) cos y, x² sin 2y) / 10. Near 1/2 the
    material becomes incompressible, where low-order finite elements lock.

    Parameters
    ----------
    poisson_ratio
        Poisson's ratio, from 0 to 0.4999.

    Examples
    --------
    >>> problem = elasticity()
    >>> [c.place for c in problem.conditions]
    ['on left|bottom|top', 'on left|bottom|top', 'on right', 'on right']
    """
    nu = parameter("poisson_ratio", poisson_ratio, "elasticity", minimum=0, maximum=0.4999)
    forces, tractions = plane_stress(u, v, nu, thin=False)
    exact = {u: sp.sin(sp.pi * x) * sp.cos(y) / 10, v: x**2 * sp.sin(2 * y) / 10}
    held = SQUARE.left | SQUARE.bottom | SQUARE.top
    conditions = (
        *(Dirichlet(w, value, on=held) for w, value in exact.items()),
        *(Condition(manufactured(traction, exact, SQUARE), on=SQUARE.right) for traction in tractions),
    )
    return Problem([manufactured(force, exact, SQUARE) for force in forces], SQUARE, conditions, exact=exact)


def schroedinger() -> Problem:
    """Return the free Schrödinger equation i ψ_t = −½ ψ_xx on (−π, π) × (0, 1), periodic, as two real fields.

    With ψ = u + iv the equation is u_t = −½ v_xx, v_t = ½ u_xx. The solution is a packet of three plane waves,
    Σ aₖ exp(i(kx − k²t/2)) with k = 1, 2, 3 and a = 1, ½, ¼, which disperses.

    Examples
    --------
    >>> schroedinger().conditions[3]
    Initial(v = sin(x) + sin(2*x)/2 + sin(3*x)/4 on initial time)
    """
    u, v = field("u", x, t), field("v", x, t)
    waves = [(sp.Rational(1, 2 ** (k - 1)), k * x - sp.Rational(k**2, 2) * t) for k in (1, 2, 3)]
    exact = {w: sp.Add(*(a * part(phase) for a, phase in waves)) for w, part in ((u, sp.cos), (v, sp.sin))}
    equations = (sp.Eq(u.diff(t), -v.diff(x, 2) / 2), sp.Eq(v.diff(t), u.diff(x, 2) / 2))
    starts = (Initial(w, value.subs(t, 0)) for w, value in exact.items())
    domain = Interval((x, -sp.pi, sp.pi)) * TimeInterval(t, 0, 1)
    return Problem(equations, domain, (*(Periodic(w, x) for w in exact), *starts), exact=exact)


def maxwell_1d(permittivity: float = 2) -> Problem:
    """Return Maxwell's equations ε E_t = −H_x, H_t = −E_x between two conducting walls: a standing wave.

    A first-order system in (0, 1) × (0, 1). The walls fix E = 0 only; the magnetic field has no boundary condition.
    With c = 1/√ε the solution is E = sin πx cos cπt, H = −√ε cos πx sin cπt.

    Parameters
    ----------
    permittivity
        The number ε, from 0.01 to 100.

    Examples
    --------
    >>> maxwell_1d().exact["E"]
    sin(pi*x)*cos(sqrt(2)*pi*t/2)
    """
    eps = parameter("permittivity", permittivity, "maxwell_1d", minimum=0.01, maximum=100)
    electric, magnetic = field("E", x, t), field("H", x, t)
    phase = sp.pi * t / sp.sqrt(eps)
    exact = {
        electric: sp.sin(sp.pi * x) * sp.cos(phase),
        magnetic: -sp.sqrt(eps) * sp.cos(sp.pi * x) * sp.sin(phase),
    }
    equations = (sp.Eq(eps * electric.diff(t), -magnetic.diff(x)), sp.Eq(magnetic.diff(t), -electric.diff(x)))
    conditions = (Dirichlet(electric, 0), Initial(electric, sp.sin(sp.pi * x)), Initial(magnetic, 0))
    return Problem(equations, SPACE_TIME, conditions, exact=exact)
