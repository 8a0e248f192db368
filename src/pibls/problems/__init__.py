"""A zoo of ready problems, most with their exact solution: for tests, comparisons and first steps.

Every function returns a :class:`~pibls.problem.Problem`; its docstring says what the problem is, where it comes from
and what makes it worth solving. :func:`catalogue` has all of them by name and :func:`tags` says how hard they are;
:func:`everyday` has corners, jumps, small holes and narrow sources, as engineers meet them;
:mod:`~pibls.problems.inverse` has unknown numbers and functions with data; :func:`references` has those whose solution
is known at points only, and :func:`ill_posed` those that a solver should decline to answer.

>>> print(poisson())
Find u(x, y) with
  -laplacian(u) = 2*pi**2*sin(pi*x)*sin(pi*y)   in Rectangle((x, 0, 1), (y, 0, 1))
  u = 0                                         on the boundary
>>> helmholtz(k=4).exact["u"]
sin(4*x)*sin(4*y)
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from pibls.checks import check_choice
from pibls.problem import Problem
from pibls.problems import elliptic, evolution, high_dimensional, nonlinear, ordinary, paper, shapes, systems
from pibls.problems import inverse as inverse
from pibls.problems.elliptic import *
from pibls.problems.everyday_values import *
from pibls.problems.evolution import *
from pibls.problems.evolving import *
from pibls.problems.high_dimensional import *
from pibls.problems.ill_posed import *
from pibls.problems.nonlinear import *
from pibls.problems.ordinary import *
from pibls.problems.paper import *
from pibls.problems.shapes import *
from pibls.problems.systems import *

_WITHOUT_CLOSED_FORM = frozenset({"bratu_unforced", "cavity", "l_shape_unit_load", "regularised_cavity"})
_MODULES = (elliptic, evolution, high_dimensional, nonlinear, ordinary, paper, shapes, systems)
_WITH_EXACT_SOLUTION = tuple(sorted({name for module in _MODULES for name in module.__all__} - _WITHOUT_CLOSED_FORM))

__all__ = [*_WITH_EXACT_SOLUTION, *sorted(_WITHOUT_CLOSED_FORM)]
__all__ += [
    *("IllPosed", "Reference", "about", "catalogue", "everyday", "everyday_error", "evolutions"),
    *("ill_posed", "inverse", "references", "tags", "without_exact", "zoo"),
]

# A layer, a corner or many waves: what features spread evenly over the domain do not resolve.
_HARD = frozenset({"boundary_layer", "helmholtz_high", "l_shape", "layer_2d"})
_HARD |= {"allen_cahn", "burgers", "burgers_2d", "cavity", "l_shape_unit_load", "van_der_pol"}

_FURTHER_LINEAR = frozenset({"advection_long", "l_shape_unit_load"})  # of those that are not known to be by their room


def catalogue(*, linear: bool | None = None, exact: bool | None = None) -> Mapping[str, Callable[[], Problem]]:
    """Return every problem by name, as a function that builds it with its default parameters.

    Parameters
    ----------
    linear
        Only the linear ones, or only those that are not; all if left out.
    exact
        Only those with an exact solution, or one by an independent method; or only those without; all if left out.

    Examples
    --------
    >>> list(catalogue())[:3]
    ['advection', 'advection_beta', 'anisotropic_mixed']
    >>> catalogue()["wave"]().field_names
    ('u',)
    >>> list(catalogue(linear=False))[:3]
    ['bratu', 'bratu_1d', 'burgers_steady']
    >>> list(catalogue(exact=False))
    ['bratu_unforced', 'cavity', 'l_shape_unit_load', 'regularised_cavity']
    """
    found = {name: globals()[name] for name in _WITH_EXACT_SOLUTION} | dict(evolutions())
    found |= {name: globals()[name] for name in sorted(_WITHOUT_CLOSED_FORM)}
    known = set(_WITH_EXACT_SOLUTION) - set(nonlinear.__all__) | _FURTHER_LINEAR
    return MappingProxyType(
        {
            name: build
            for name, build in found.items()
            if (linear is None or linear == (name in known))
            and (exact is None or exact == (name not in _WITHOUT_CLOSED_FORM))
        }
    )


def evolutions() -> Mapping[str, Callable[[], Problem]]:
    """Return the evolutions by name: fronts, solitons, chaos before it sets in, stiff and long-time problems.

    Their solutions are exact or come from an independent method; a docstring says how accurate it is.

    Examples
    --------
    >>> print(evolutions()["fisher_kpp"]().is_linear, list(evolutions())[:3])
    False ['burgers', 'burgers_2d', 'allen_cahn']
    """
    several = (burgers, burgers_2d, allen_cahn, fisher_kpp, kdv, kuramoto_sivashinsky, nonlinear_schroedinger)
    rest = (sine_gordon, gray_scott, taylor_green, advection_long, heat_source, lorenz, lotka_volterra, van_der_pol)
    return MappingProxyType({build.__name__: build for build in (*several, *rest)})


def without_exact() -> Mapping[str, Callable[[], Problem]]:
    """Return the problems that have no exact solution, by name; the literature has tables of theirs.

    Examples
    --------
    >>> list(without_exact())
    ['cavity', 'regularised_cavity']
    """
    return MappingProxyType({"cavity": cavity, "regularised_cavity": regularised_cavity})


@cache
def tags(name: str) -> frozenset[str]:
    """Return the traits of a problem of the catalogue.

    Parameters
    ----------
    name
        A name of :func:`catalogue`.

    Returns
    -------
    frozenset of str
        ``"smooth"`` or ``"hard"`` (a layer, a corner singularity or many waves); the number of coordinates, time among
        them: ``"1d"``, ``"2d"``, ...; and ``"nonlinear"`` where it is.

    Examples
    --------
    >>> sorted(tags("heat_2d")), sorted(tags("l_shape"))
    (['3d', 'smooth'], ['2d', 'hard'])
    """
    every = catalogue()
    build = every[check_choice("name", name, "tags", tuple(every))]
    kind = {"nonlinear"} if name in catalogue(linear=False) else set()
    return frozenset({"hard" if name in _HARD else "smooth", f"{len(build().domain.coordinates)}d", *kind})


def zoo() -> Mapping[str, Callable[[], Problem]]:
    """Return every problem by name, ill-posed ones among them.

    Examples
    --------
    >>> {"poisson", "burgers", "cavity", "l_shape_unit_load"} <= set(zoo())
    True
    """
    return dict(catalogue()) | {name: entry.problem for name, entry in ill_posed().items()}


def about(build: Callable[[], Problem]) -> str:
    """Return the first line of a problem's docstring, without marks for other functions.

    Examples
    --------
    >>> about(l_shape)
    'Δu = 0 on the L-shape with its corner singularity, u = r^(2/3) sin(2θ/3), given on the boundary'
    """
    first = (build.__doc__ or "").strip().partition("\n")[0]
    return re.sub(r":func:`~?(?:pibls\.problems\.)?(\w+)`", r"\1", first).removeprefix("Return ").rstrip(".")
