"""Linear problems that are not well posed: more than one solution, none, or one that no data can pin down.

A solver that returns numbers for them without a warning is wrong, however small its residual is. Every function says
in its docstring why the problem is ill-posed; :func:`ill_posed` has them all by name, with what to expect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import sympy as sp

from pibls.geometry import TimeInterval
from pibls.problem import Condition, Dirichlet, Initial, Mean, Neumann, Periodic, Problem, field, laplacian
from pibls.problems.elliptic import neumann_gauge
from pibls.problems.evolution import wave
from pibls.problems.manufactured import SPACE_TIME, SQUARE, UNIT, t, x, y
from pibls.problems.systems import stokes
from pibls.status import Status

__all__ = ["IllPosed", "ill_posed"]

Kind = Literal["non-unique", "inconsistent", "unstable"]
u, w, c = field("u", x, y), field("u", x), field("u", x, t)  # in the plane, on a line, on a line in time


@dataclass(frozen=True)
class IllPosed:
    """A problem that is not well posed, and the reason.

    Attributes
    ----------
    problem
        Builds the problem.
    kind
        ``"non-unique"``: a function can be added to any solution. ``"inconsistent"``: there is no solution.
        ``"unstable"``: tiny changes of the data change the solution without bound.
    """

    problem: Callable[[], Problem]
    kind: Kind

    @property
    def words(self) -> tuple[str, str]:
        """The status a solve should end with, and the word that its explanation should contain."""
        return Status.ILL_POSED, self.kind


def _without_last_condition(problem: Problem) -> Problem:
    return Problem(problem.equations, problem.domain, problem.conditions[:-1])


def pure_neumann() -> Problem:
    """Return :func:`~pibls.problems.neumann_gauge` without the gauge: any constant can be added.

    The flux balances the source, so that there are solutions.
    """
    return _without_last_condition(neumann_gauge())


def stokes_without_gauge() -> Problem:
    """Return :func:`~pibls.problems.stokes` without the mean of the pressure: any constant can be added to it."""
    return _without_last_condition(stokes())


def wave_without_velocity() -> Problem:
    """Return :func:`~pibls.problems.wave` without the initial velocity: sin πx sin 2πt can be added."""
    return _without_last_condition(wave())


def wave_between_times() -> Problem:
    """Return u_tt = u_xx on (0, 1) × (0, 1) with u given at both times instead of u and u_t at the first.

    The time is half a period of the slowest standing wave, so that sin πx sin πt is zero on all four sides of
    space–time and can be added; sin 2πx cos 2πt is one of the solutions.
    """
    shape = sp.sin(2 * sp.pi * x)
    conditions = (Dirichlet(c, 0), Initial(c, shape), Condition(sp.Eq(c, shape), on=SPACE_TIME.final))
    return Problem(sp.Eq(c.diff(t, 2), c.diff(x, 2)), SPACE_TIME, conditions)


def helmholtz_at_eigenvalue() -> Problem:
    """Return Δu + 2π²u = −3π² sin πx sin 2πy on the unit square, zero on the boundary.

    The number 2π² is the first eigenvalue of the square, so that sin πx sin πy can be added. The source is orthogonal
    to it, and u = sin πx sin 2πy is a solution.
    """
    source = -3 * sp.pi**2 * sp.sin(sp.pi * x) * sp.sin(2 * sp.pi * y)
    return Problem(sp.Eq(laplacian(u) + 2 * sp.pi**2 * u, source), SQUARE, (Dirichlet(u, 0),))


def ode_one_condition() -> Problem:
    """Return u'' = 6x on (0, 1) with u(0) = 0 only, one condition for two derivatives: x can be added to u = x³."""
    return Problem(sp.Eq(w.diff(x, 2), 6 * x), UNIT, (Dirichlet(w, 0, on=UNIT.left),))


def laplace_three_sides() -> Problem:
    """Return Δu = 0 on the unit square, u = eˣ sin y given on three sides and nothing on the right one.

    Whatever the values on the right are, there is a solution with them: sinh πx sin πy can be added.
    """
    held = SQUARE.left | SQUARE.bottom | SQUARE.top
    return Problem(sp.Eq(laplacian(u), 0), SQUARE, (Dirichlet(u, sp.exp(x) * sp.sin(y), on=held),))


def system_missing_condition() -> Problem:
    """Return u' = v, v' = −u for t in (0, 3) with u(0) = 1 only: (sin t, cos t) can be added to (cos t, −sin t)."""
    u, v = field("u", t), field("v", t)
    return Problem((sp.Eq(u.diff(t), v), sp.Eq(v.diff(t), -u)), TimeInterval(t, 0, 3), (Initial(u, 1),))


def neumann_incompatible() -> Problem:
    """Return −Δu = 1 on the unit square, ∂u/∂n = 0 everywhere, mean 0: heat is made inside and cannot leave.

    The integral of −Δu is 1 by the equation and 0 by the boundary condition.
    """
    return Problem(sp.Eq(-laplacian(u), 1), SQUARE, (Neumann(u, 0), Mean(u, 0)))


def contradictory_dirichlet() -> Problem:
    """Return −Δu = 1 on the unit square, zero on the boundary, and again u = 1 on the left side."""
    others = SQUARE.right | SQUARE.bottom | SQUARE.top
    given = ((0, others), (0, SQUARE.left), (1, SQUARE.left))
    return Problem(sp.Eq(-laplacian(u), 1), SQUARE, [Dirichlet(u, value, on=side) for value, side in given])


def helmholtz_resonant() -> Problem:
    """Return Δu + 2π²u = sin πx sin πy on the unit square, zero on the boundary: forced at an eigenvalue.

    Multiplied by sin πx sin πy and integrated by parts twice, the left side is 0 for every u, the right side 1/4.
    """
    equation = sp.Eq(laplacian(u) + 2 * sp.pi**2 * u, sp.sin(sp.pi * x) * sp.sin(sp.pi * y))
    return Problem(equation, SQUARE, (Dirichlet(u, 0),))


def overdetermined_flux() -> Problem:
    """Return −Δu = 2π² sin πx sin πy on the unit square with u = 0 and ∂u/∂n = 0 on the whole boundary.

    The values alone give u = sin πx sin πy, through whose boundary flows 8 in all, not 0.
    """
    equation = sp.Eq(-laplacian(u), 2 * sp.pi**2 * sp.sin(sp.pi * x) * sp.sin(sp.pi * y))
    return Problem(equation, SQUARE, (Dirichlet(u, 0), Neumann(u, 0)))


def advection_both_ends() -> Problem:
    """Return u_t + u_x = 0 on (0, 1) × (0, 1), u = sin² πx at first and zero at both ends.

    The bump is carried to the right and has to pass through the right end, where it is 1 at t = 1/2.
    """
    conditions = (Dirichlet(c, 0), Initial(c, sp.sin(sp.pi * x) ** 2))
    return Problem(sp.Eq(c.diff(t) + c.diff(x), 0), SPACE_TIME, conditions)


def oscillator_resonant() -> Problem:
    """Return u'' + π²u = 0 on (0, 1) with u(0) = 0 and u(1) = 1: whatever starts at 0 is back at 0 after half a period.

    The solutions with u(0) = 0 are the multiples of sin πx.
    """
    ends = (Dirichlet(w, 0, on=UNIT.left), Dirichlet(w, 1, on=UNIT.right))
    return Problem(sp.Eq(w.diff(x, 2) + sp.pi**2 * w, 0), UNIT, ends)


def periodic_incompatible() -> Problem:
    """Return −u'' = 1 on (0, 1), periodic, mean 0: u' falls by 1 from end to end and shall be the same at both."""
    return Problem(sp.Eq(-w.diff(x, 2), 1), UNIT, (Periodic(w, x), Mean(w, 0)))


def heat_backward() -> Problem:
    """Return u_t = u_xx on (0, 1) × (0, 1), zero at both ends, with u = sin πx at the last time instead of the first.

    The solution e^(π²(1 − t)) sin πx is the only one, but a change of the data by δ sin kπx changes it at t = 0 by
    δ e^(k²π²), which for k = 2 is 10¹⁷ δ: round-off is enough.
    """
    conditions = (Dirichlet(c, 0), Condition(sp.Eq(c, sp.sin(sp.pi * x)), on=SPACE_TIME.final))
    return Problem(sp.Eq(c.diff(t), c.diff(x, 2)), SPACE_TIME, conditions)


def laplace_cauchy() -> Problem:
    """Return Δu = 0 on the unit square with u and ∂u/∂n given on the left, zero below and above, nothing on the right.

    Hadamard's example. The solution cosh πx sin πy is the only one, but a change of the data by δ sin kπy changes it
    on the right by δ cosh kπ, without bound as k grows.
    """
    both = (Dirichlet(u, sp.sin(sp.pi * y), on=SQUARE.left), Neumann(u, 0, on=SQUARE.left))
    rest = Dirichlet(u, 0, on=SQUARE.bottom | SQUARE.top)
    return Problem(sp.Eq(laplacian(u), 0), SQUARE, (*both, rest))


_BY_KIND: Mapping[Kind, tuple[Callable[[], Problem], ...]] = {
    "non-unique": (
        *(pure_neumann, stokes_without_gauge, wave_without_velocity, wave_between_times),
        *(helmholtz_at_eigenvalue, ode_one_condition, laplace_three_sides, system_missing_condition),
    ),
    "inconsistent": (
        *(neumann_incompatible, contradictory_dirichlet, helmholtz_resonant, overdetermined_flux),
        *(advection_both_ends, oscillator_resonant, periodic_incompatible),
    ),
    "unstable": (heat_backward, laplace_cauchy),
}


def ill_posed() -> Mapping[str, IllPosed]:
    """Return the problems that are not well posed by name.

    Examples
    --------
    >>> case = ill_posed()["ode_one_condition"]
    >>> case.words
    ('ill-posed', 'non-unique')
    >>> print(case.problem())
    Find u(x) with
      u_xx = 6*x   in Interval((x, 0, 1))
      u = 0        on left
    """
    cases = ((build.__name__, IllPosed(build, kind)) for kind, group in _BY_KIND.items() for build in group)
    return MappingProxyType(dict(cases))
