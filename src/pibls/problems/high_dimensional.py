"""Problems in many dimensions, where meshes and tensor grids give up."""

from __future__ import annotations

import sympy as sp

from pibls.checks import check_integer
from pibls.geometry import Box, TimeInterval
from pibls.problem import Dirichlet, Initial, Problem, coordinates, field, laplacian
from pibls.problems.manufactured import dirichlet, t

__all__ = ["heat_nd", "poisson_6d", "poisson_nd"]


def _axes(dimension: object, owner: str) -> tuple[sp.Symbol, ...]:
    count = check_integer("dimension", dimension, owner, minimum=2, maximum=100)
    return tuple(coordinates(" ".join(f"x{i + 1}" for i in range(count))))


def poisson_nd(dimension: int = 5) -> Problem:
    """Return −Δu = f on the unit cube in d dimensions, u = Σ sin(πxᵢ/2), given on the boundary.

    A test of weak adversarial networks (Zang et al. 2020), used for many methods since. Almost all of the volume is
    near the boundary, and points fill nothing: accuracy must come from the features.

    Parameters
    ----------
    dimension
        Number of coordinates, from 2 to 100.

    Examples
    --------
    >>> poisson_nd(dimension=3).exact["u"]
    sin(pi*x1/2) + sin(pi*x2/2) + sin(pi*x3/2)
    """
    axes = _axes(dimension, "poisson_nd")
    u = field("u", *axes)
    exact = sp.Add(*(sp.sin(sp.pi * x / 2) for x in axes))
    return dirichlet(-laplacian(u), u, exact, Box(*((x, 0, 1) for x in axes)))


def poisson_6d() -> Problem:
    """Return :func:`poisson_nd` in six dimensions, a common size for comparisons.

    Examples
    --------
    >>> len(poisson_6d().domain.coordinates)
    6
    """
    return poisson_nd(6)


def heat_nd(dimension: int = 4) -> Problem:
    """Return u_t = Δu on the unit cube in d dimensions for t in (0, 1), u = e⁻ᵗ sin((x₁ + … + x_d)/√d).

    A wave front across the diagonal that decays at a rate independent of d; unlike a sum over coordinates it does not
    split into problems in one dimension.

    Parameters
    ----------
    dimension
        Number of space coordinates, from 2 to 100.

    Examples
    --------
    >>> heat_nd(dimension=2).exact["u"]
    exp(-t)*sin(sqrt(2)*(x1 + x2)/2)
    """
    axes = _axes(dimension, "heat_nd")
    u, shape = field("u", *axes, t), sp.sin(sp.Add(*axes) / sp.sqrt(len(axes)))
    exact = sp.exp(-t) * shape
    domain = Box(*((x, 0, 1) for x in axes)) * TimeInterval(t, 0, 1)
    return Problem(sp.Eq(u.diff(t), laplacian(u)), domain, (Dirichlet(u, exact), Initial(u, shape)), exact=exact)
