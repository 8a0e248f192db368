"""Problems whose solution is known at points, and the list of all everyday problems.

The values are in ``everyday_values.json``, written by ``benchmarks/everyday_references.py`` with finite elements on
graded meshes, series and other methods of their own; ``accuracy`` there bounds their relative error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from pibls.checks import FloatArray, check_choice
from pibls.geometry import Box, Disk, Polygon, Rectangle, TimeInterval
from pibls.problem import Condition, Dirichlet, Initial, Neumann, Problem, Robin, field, laplacian
from pibls.problems.everyday import LAPLACE, VALUES, u, v, with_exact_solution
from pibls.problems.manufactured import SQUARE, plane_stress, t, x, y, z
from pibls.problems.nonlinear import bratu_unforced, cavity
from pibls.problems.shapes import l_shape_unit_load

if TYPE_CHECKING:
    from pibls.solution import Solution

__all__ = ["Reference", "everyday", "everyday_error", "references"]


def well() -> Problem:
    """Return Δu = 0 on the unit square, one left and right, no flow below and above, zero in a well of radius 0.02."""
    hole = Disk((x, y), (sp.Rational(2, 5), sp.Rational(3, 5)), sp.Rational(1, 50))
    sides = (Dirichlet(u, 1, on=SQUARE.left | SQUARE.right), Neumann(u, 0, on=SQUARE.bottom | SQUARE.top))
    return Problem(LAPLACE, SQUARE - hole, (*sides, Dirichlet(u, 0, on=hole.boundary)))


def plume() -> Problem:
    """Return c_x = ½ Δc + a source of width 1 in a channel of 200 × 20, clean water from the left."""
    domain = Rectangle((x, 0, 200), (y, 0, 20))
    source = sp.exp(-((x - 20) ** 2 + (y - 7) ** 2) / 2)
    walls = domain.bottom | domain.top | domain.right
    conditions = (Dirichlet(u, 0, on=domain.left), Neumann(u, 0, on=walls))
    return Problem(sp.Eq(u.diff(x) - laplacian(u) / 2, source), domain, conditions)


def cooling_fin() -> Problem:
    """Return Δu = 0 in a plate with a fin, one below, insulated on both sides, ∂u/∂n = −u/2 where air passes."""
    shape = Polygon((x, y), [(0, 0), (3, 0), (3, 1), (2, 1), (2, 4), (1, 4), (1, 1), (0, 1)])
    air = shape.edge2 | shape.edge3 | shape.edge4 | shape.edge5 | shape.edge6
    still = (Dirichlet(u, 1, on=shape.edge0), Neumann(u, 0, on=shape.edge1 | shape.edge7))
    return Problem(LAPLACE, shape, (*still, Robin(u, sp.Rational(1, 2), 1, 0, on=air)))


def cooling_pin() -> Problem:
    """Return Δu = 0 in the bar (0, 2) × (0, 1)², one at x = 0 and ∂u/∂n = −u/2 on the other sides."""
    a = field("a", x, y, z)
    box = Box((x, 0, 2), (y, 0, 1), (z, 0, 1))
    air = box.boundary - box.x_min
    conditions = (Dirichlet(a, 1, on=box.x_min), Robin(a, sp.Rational(1, 2), 1, 0, on=air))
    return Problem(sp.Eq(laplacian(a), 0), box, conditions)


def cantilever(length: int = 5) -> Problem:
    """Return a beam (0, 5) × (0, 1) in plane stress, clamped on the left, sheared down on the right."""
    beam = Rectangle((x, 0, length), (y, 0, 1))
    return _loaded(beam, beam.left, beam.right, beam.bottom | beam.top)


def slender_beam() -> Problem:
    """Return :func:`cantilever` thirty times as long as high."""
    return cantilever(30)


def cooled_spot() -> Problem:
    """Return Δu = 0 on the unit square, one on top, insulated left and right; air cools a thousandth of the bottom."""
    transfer = 10**4 * sp.exp(-((1000 * (x - sp.Rational(3137, 10000))) ** 2))
    cold = Robin(u, transfer, 1, 0, on=SQUARE.bottom)
    conditions = (Dirichlet(u, 1, on=SQUARE.top), Neumann(u, 0, on=SQUARE.left | SQUARE.right), cold)
    return Problem(LAPLACE, SQUARE, conditions)


def bracket() -> Problem:
    """Return an L-shaped bracket in plane stress, clamped on top, sheared down at its end."""
    shape = Polygon((x, y), [(0, 0), (3, 0), (3, 1), (1, 1), (1, 3), (0, 3)])
    free = shape.edge0 | shape.edge2 | shape.edge3 | shape.edge5
    return _loaded(shape, shape.edge4, shape.edge1, free)


def _loaded(shape: Any, clamped: Any, loaded: Any, free: Any) -> Problem:
    forces, tractions = plane_stress(u, v, sp.Rational(3, 10))
    conditions = (
        *(Dirichlet(displacement, 0, on=clamped) for displacement in (u, v)),
        *(Condition(sp.Eq(traction, 0), on=free) for traction in tractions),
        Condition(sp.Eq(tractions[0], 0), on=loaded),
        Condition(sp.Eq(tractions[1], -sp.Rational(1, 100)), on=loaded),
    )
    return Problem(tuple(sp.Eq(force, 0) for force in forces), shape, conditions)


def step_creeping() -> Problem:
    """Return Stokes flow over a backward step, from a channel of width one into one of width two."""
    return _step(0)


def step_flow() -> Problem:
    """Return steady Navier–Stokes flow over a backward step at Reynolds number 20."""
    return _step(20)


def _step(reynolds: int) -> Problem:
    p = field("p", x, y)
    shape = Polygon((x, y), [(0, 0), (0, -1), (6, -1), (6, 1), (-2, 1), (-2, 0)])
    walls, inlet, outlet = shape.edge0 | shape.edge1 | shape.edge3 | shape.edge5, shape.edge4, shape.edge2
    equations = [
        sp.Eq(reynolds * (u * of.diff(x) + v * of.diff(y)) - laplacian(of) + force, 0)
        for of, force in ((u, p.diff(x)), (v, p.diff(y)))
    ]
    conditions = (
        Dirichlet(u, 6 * y * (1 - y), on=inlet),
        Dirichlet(u, 0, on=walls),
        Dirichlet(v, 0, on=walls | inlet | outlet),
        Dirichlet(p, 0, on=outlet),
    )
    return Problem([*equations, sp.Eq(u.diff(x) + v.diff(y), 0)], shape, conditions)


def graetz() -> Problem:
    """Return (1 − y²) u_x = u_yy on (0, 1)², one at the inlet and zero on the wall: a flow through a cooled channel."""
    conditions = (Dirichlet(u, 1, on=SQUARE.left), Dirichlet(u, 0, on=SQUARE.top), Neumann(u, 0, on=SQUARE.bottom))
    return Problem(sp.Eq((1 - y**2) * u.diff(x), u.diff(y, 2)), SQUARE, conditions)


def robertson() -> Problem:
    """Return Robertson's reactions until t = 40: rates from 0.04 to 3·10⁷, one species of 10⁻⁵."""
    a, b, c = (field(name, t) for name in "abc")
    slow, fast, rapid = a / 25, 10**4 * b * c, 3 * 10**7 * b**2
    equations = (sp.Eq(a.diff(t), fast - slow), sp.Eq(b.diff(t), slow - fast - rapid), sp.Eq(c.diff(t), rapid))
    return Problem(equations, TimeInterval(t, 0, 40), (Initial(a, 1), Initial(b, 0), Initial(c, 0)))


_AT_POINTS: tuple[Callable[[], Problem], ...] = (
    *(well, plume, cooling_fin, cooling_pin, cantilever, slender_beam, bracket, cooled_spot),
    *(step_creeping, step_flow, graetz, robertson, l_shape_unit_load, cavity),
)


def everyday() -> Mapping[str, Callable[[], Problem]]:
    """Return the everyday problems by name, as functions that build them.

    Examples
    --------
    >>> list(everyday())[:3]
    ['motz', 'hot_lid', 'torsion_square']
    >>> everyday()["cantilever"]().field_names
    ('u', 'v')
    """
    return MappingProxyType({**with_exact_solution(), **{build.__name__: build for build in _AT_POINTS}})


def everyday_error(name: str, solution: Solution) -> float:
    """Return the relative error of a solution of an everyday problem.

    In L2 where the exact solution is known, otherwise at the points where it is: of several fields that with the
    largest error, each over its own size.

    Examples
    --------
    >>> from pibls.tuning import solve
    >>> everyday_error("two_materials", solve(everyday()["two_materials"]())) < 1e-6
    True
    """
    check_choice("name", name, "everyday_error", tuple(everyday()))
    if solution.problem.exact is not None:
        return solution.true_error(200_000 if len(solution.problem.domain.coordinates) == 1 else 20_000)
    points, known = VALUES[name]["points"], VALUES[name]["values"]
    found = solution(np.array(points))
    values = found if isinstance(found, Mapping) else dict.fromkeys(known, found)
    return float(max(np.linalg.norm(values[f] - known[f]) / np.linalg.norm(known[f]) for f in known))


@dataclass(frozen=True, eq=False)
class Reference:
    """A problem and the values of its solution at some points.

    Attributes
    ----------
    problem
        Builds the problem.
    points, values
        Points of the domain, shape (n, d), and the n values of its one field there; neither can be written to.
    accuracy
        Bound for the absolute error of the values.
    """

    problem: Callable[[], Problem]
    points: FloatArray
    values: FloatArray
    accuracy: float

    def __post_init__(self) -> None:
        self.points.setflags(write=False)
        self.values.setflags(write=False)


# l_shape_unit_load: from the method of particular solutions: -y²/2, the functions r^(2k/3) sin(2kθ/3) of the re-entrant
# corner, z² log z around every corner, and harmonic polynomials, 154 in all, fitted to zero on the boundary. The error
# is harmonic, so that its largest value on the boundary, 2e-14, bounds it inside; poles clustered at the corners, as a
# second basis, give the same to 1e-13.
#
# bratu_unforced: from Chebyshev collocation in both coordinates with Newton's method, 41 × 41 points, for u minus the
# solution s of −Δs = 1, whose terms r² log r at the corners come from its series; 33 × 33 points give the same to
# 2e-13.
def references() -> Mapping[str, Reference]:
    """Return the problems whose solution is known at points only, by name.

    Examples
    --------
    >>> reference = references()["l_shape_unit_load"]
    >>> reference.points[0], float(reference.values[0].round(9)), reference.accuracy
    (array([-0.5,  0.5]), 0.131052962, 1e-12)
    """
    found = {}
    for problem in (bratu_unforced, l_shape_unit_load):
        table = VALUES[problem.__name__]
        points, values = np.array(table["points"]), np.array(table["values"]["u"])
        found[problem.__name__] = Reference(problem, points, values, table["accuracy"])
    return MappingProxyType(found)
