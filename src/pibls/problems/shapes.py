"""Elliptic problems on shapes other than boxes: disk, annulus, L-shape, ball, polygon."""

from __future__ import annotations

import sympy as sp

from pibls.geometry import Ball, Disk, Polygon, Rectangle
from pibls.problem import Dirichlet, Neumann, Problem, Robin, field, laplacian, normal_derivative
from pibls.problems.manufactured import L_SHAPE, applied, dirichlet, parameter, x, y, z

__all__ = ["annulus", "l_shape", "l_shape_smooth", "l_shape_unit_load", "poisson_ball", "polygon", "robin_disk"]

u = field("u", x, y)


def robin_disk(alpha: float = 2) -> Problem:
    """Return Δu = 0 on the unit disk with α u + ∂u/∂n given, u = eˣ cos y.

    A steady temperature with heat transfer to the surroundings: the exact normals of the circle enter the condition.

    Parameters
    ----------
    alpha
        Transfer coefficient, above 0 and at most 1000 (at 0 a constant would be free).

    Examples
    --------
    >>> robin_disk().conditions[0].equation.lhs
    2*u(x, y) + dn(u(x, y))
    """
    transfer = parameter("alpha", alpha, "robin_disk", minimum=0, exclusive=True, maximum=1000)
    disk, exact = Disk((x, y), (0, 0), 1), sp.exp(x) * sp.cos(y)
    value = applied(transfer * u + normal_derivative(u), {u: exact}, disk)
    return Problem(sp.Eq(laplacian(u), 0), disk, (Robin(u, transfer, 1, value),), exact=exact)


def annulus(radius: float = 0.5) -> Problem:
    """Return the potential flow past a cylinder: Δu = 0 between two circles, u = x (1 + a²/r²).

    No flow through the inner circle of radius a (∂u/∂n = 0 with the normal pointing into the hole), the potential
    given on the outer circle of radius 1. The domain is a difference of two disks with a condition on each circle.

    Parameters
    ----------
    radius
        The inner radius a, from 0.01 to 0.99.

    Examples
    --------
    >>> print(annulus())
    Find u(x, y) with
      laplacian(u) = 0                 in (Disk((x, y), (0, 0), 1) - Disk((x, y), (0, 0), 0.5))
      u = x*(1 + 0.25/(x**2 + y**2))   on the boundary of Disk((x, y), (0, 0), 1)
      dn(u) = 0                        on the boundary of Disk((x, y), (0, 0), 0.5)
    """
    inner = parameter("radius", radius, "annulus", minimum=0.01, maximum=0.99)
    disk, hole = Disk((x, y), (0, 0), 1), Disk((x, y), (0, 0), float(inner))
    exact = x * (1 + inner**2 / (x**2 + y**2))
    conditions = (Dirichlet(u, exact, on=disk.boundary), Neumann(u, 0, on=hole.boundary))
    return Problem(sp.Eq(laplacian(u), 0), disk - hole, conditions, exact=exact)


def l_shape() -> Problem:
    """Return Δu = 0 on the L-shape with its corner singularity, u = r^(2/3) sin(2θ/3), given on the boundary.

    The square (−1, 1)² without its lower right quarter; r and θ are polar coordinates around the re-entrant corner,
    θ from the positive x axis. The gradient grows without bound there, like r^(−1/3): meshes are refined towards the
    corner for it, and smooth features alone converge slowly. The angle is measured from the diagonal y = −x, so
    that its jump lies in the quarter that was cut out, and sin(2θ/3) is the cosine of two thirds of it.

    Examples
    --------
    >>> import numpy as np
    >>> problem = l_shape()
    >>> problem.exact["u"]
    (x**2 + y**2)**(1/3)*cos(2*atan2(x + y, -x + y)/3)
    >>> problem.exact_values(np.array([[0.0, 0.0], [0.5, 0.0], [0.0, -0.5], [-1.0, 1.0]]))["u"].round(6) + 0.0
    array([0.      , 0.      , 0.      , 1.259921])
    """
    exact = sp.cbrt(x**2 + y**2) * sp.cos(sp.Rational(2, 3) * sp.atan2(x + y, y - x))
    return Problem(sp.Eq(laplacian(u), 0), L_SHAPE, (Dirichlet(u, exact),), exact=exact)


def l_shape_unit_load() -> Problem:
    """Return −Δu = 1 on the L-shape of :func:`l_shape`, zero on the boundary: the torsion of an angle bar.

    The first example of adaptive finite elements. There is no closed form; :func:`~pibls.problems.references` has
    values of the solution.

    Examples
    --------
    >>> problem = l_shape_unit_load()
    >>> print(problem.conditions[0], problem.exact)
    Dirichlet(u = 0 on the boundary) None
    """
    return Problem(sp.Eq(-laplacian(u), 1), L_SHAPE, (Dirichlet(u, 0),))


def l_shape_smooth() -> Problem:
    """Return −Δu = f on the square (−1, 1)² without its lower right quarter, u = eˣ sin 2y, given on the boundary.

    The L-shape with a solution that ignores its re-entrant corner: it tests the geometry, not the corner singularity.

    Examples
    --------
    >>> l_shape_smooth().domain.contains([[0.5, -0.5], [0.5, 0.5]])
    array([False,  True])
    """
    domain = Rectangle((x, -1, 1), (y, -1, 1)) - Rectangle((x, 0, 1), (y, -1, 0))
    return dirichlet(-laplacian(u), u, sp.exp(x) * sp.sin(2 * y), domain)


def poisson_ball() -> Problem:
    """Return −Δu = f in the unit ball of space, u = eˣ sin 2y cos z + z², given on the sphere.

    Three dimensions and a curved boundary; no mesh has to follow the sphere.

    Examples
    --------
    >>> poisson_ball().domain
    Ball((x, y, z), (0, 0, 0), 1)
    """
    exact = sp.exp(x) * sp.sin(2 * y) * sp.cos(z) + z**2
    u = field("u", x, y, z)
    return dirichlet(-laplacian(u), u, exact, Ball((x, y, z), (0, 0, 0), 1))


def polygon() -> Problem:
    """Return −Δu + u = f on a house-shaped pentagon, u = sin(2x) cosh(y), given on the boundary.

    Five straight edges, two of them oblique; the reaction term makes the operator more than a Laplacian.

    Examples
    --------
    >>> round(polygon().domain.measure, 12)
    1.5
    """
    house = Polygon((x, y), [(0, 0), (1, 0), (1, 1), (0.5, 2), (0, 1)])
    return dirichlet(-laplacian(u) + u, u, sp.sin(2 * x) * sp.cosh(y), house)
