"""Inverse problems: unknown numbers and functions, with data of their own and the truth to compare with.

Data come from closed forms or from other methods (Chebyshev collocation, Fourier series, SciPy's integrators), and the
noise that is added to them from a seed. :func:`catalogue` has them all by name; :func:`unidentifiable` has set-ups
whose data leave something open, and :func:`wrong_models` models that their data contradict.

>>> print(heat_diffusivity(noise=0.01))
Find u(x, t), k with
  u_t = k*u_xx + (-1 + pi**2)*exp(-t)*sin(pi*x)   in Interval((x, -1, 1)) * TimeInterval(t, 0, 1)
  u = 0                                           on the boundary
  u = sin(pi*x)                                   on initial time
  u at 10 points, noise 0.01
  k                                               unknown: at least 0
>>> heat_diffusivity().truth
{'k': 1.0}
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pibls.problem import Problem
from pibls.problems.inverse import flaws, numbers, unknown_functions
from pibls.problems.inverse.data import cylinder_wake
from pibls.problems.inverse.flaws import *
from pibls.problems.inverse.numbers import *
from pibls.problems.inverse.unknown_functions import *

__all__ = ["catalogue", "cylinder_wake", *flaws.__all__, *numbers.__all__, *unknown_functions.__all__]


def catalogue() -> Mapping[str, Callable[[float, int], Problem]]:
    """Return every inverse problem by name, as a function of the standard deviation of the noise and its seed.

    Examples
    --------
    >>> catalogue()["wave_speed"](0.0, 0).truth
    {'c': 1.3}
    """
    numbers = (
        *(heat_diffusivity, brinkman_forchheimer, klein_gordon_mass, wave_speed, robin_coefficient),
        *(burgers_coefficients, kdv_coefficients, lorenz_parameters, source_position, two_layer_darcy),
        cylinder_wake,
    )
    functions = (rate_function, conductivity, conductivity_heat, initial_temperature)
    return MappingProxyType({build.__name__: build for build in (*numbers, *functions)})
