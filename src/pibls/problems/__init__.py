"""A zoo of ready problems, each with its exact solution: for tests, comparisons and first steps.

Every function returns a :class:`~pibls.problem.Problem`; its docstring says what the problem is, where it comes from
and what makes it worth solving. :func:`catalogue` has them all by name.

>>> print(poisson())
Find u(x, y) with
  -laplacian(u) = 2*pi**2*sin(pi*x)*sin(pi*y)   in Rectangle((x, 0, 1), (y, 0, 1))
  u = 0                                         on the boundary
>>> helmholtz(k=4).exact["u"]
sin(4*x)*sin(4*y)
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pibls.problem import Problem
from pibls.problems.elliptic import (
    anisotropic_mixed,
    biharmonic,
    helmholtz,
    neumann_gauge,
    poisson,
    poisson_gaussian,
    variable_coefficient,
    variable_coefficient_data,
)
from pibls.problems.evolution import advection_beta, heat_2d, heat_robin, klein_gordon, periodic_advection, wave
from pibls.problems.high_dimensional import heat_nd, poisson_6d, poisson_nd
from pibls.problems.ordinary import beam, convection_diffusion, damped_oscillator, oscillator, sixth_order
from pibls.problems.paper import advection, diffusion_reaction, poisson_square, poisson_star
from pibls.problems.shapes import annulus, l_shape_smooth, poisson_ball, polygon, robin_disk
from pibls.problems.systems import elasticity, maxwell_1d, schroedinger, stokes

__all__ = [
    "advection",
    "advection_beta",
    "anisotropic_mixed",
    "annulus",
    "beam",
    "biharmonic",
    "catalogue",
    "convection_diffusion",
    "damped_oscillator",
    "diffusion_reaction",
    "elasticity",
    "heat_2d",
    "heat_nd",
    "heat_robin",
    "helmholtz",
    "klein_gordon",
    "l_shape_smooth",
    "maxwell_1d",
    "neumann_gauge",
    "oscillator",
    "periodic_advection",
    "poisson",
    "poisson_6d",
    "poisson_ball",
    "poisson_gaussian",
    "poisson_nd",
    "poisson_square",
    "poisson_star",
    "polygon",
    "robin_disk",
    "schroedinger",
    "sixth_order",
    "stokes",
    "variable_coefficient",
    "variable_coefficient_data",
    "wave",
]


def catalogue() -> Mapping[str, Callable[[], Problem]]:
    """Return every problem of the zoo by name, as a function that builds it with its default parameters.

    Examples
    --------
    >>> list(catalogue())[:3]
    ['advection', 'advection_beta', 'anisotropic_mixed']
    >>> catalogue()["wave"]().field_names
    ('u',)
    """
    return MappingProxyType({name: globals()[name] for name in __all__ if name != "catalogue"})
