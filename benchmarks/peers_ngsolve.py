"""NGSolve: high-order finite elements. Mesh, assembly, factorisation and solve are all on the clock.

Boxes get a few quadrilaterals of high order, whose mesh costs nothing; annulus, ball and shell curved elements; the
L-shapes triangles refined geometrically towards the re-entrant corner (``RefineHP``). Inner unknowns of elements are
condensed, the rest goes to UMFPACK, the fastest of its solvers here. Of many orders and meshes the cheapest that meets
the tolerance is found off the clock, with the exact solution, and timed on one thread.

Time is a coordinate like any other, as it is for the other solvers: the heat equation is a Galerkin method in space and
time, the wave equation a least-squares method for the first-order system of u, u_t and u_x, which is stable on any
mesh. Five dimensions have no mesh.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import ngsolve as ng
from netgen.geom2d import SplineGeometry
from netgen.occ import OCCGeometry, Pnt, Sphere
from ngsolve.meshes import Make1DMesh, MakeStructured2DMesh
from threadpoolctl import threadpool_limits

from benchmarks.peers_common import Predict, Probe, timed

x, y = ng.x, ng.y
MODES = (1, 2, 3, 4, 8)


@dataclass(frozen=True)
class Setting:
    """Order of the elements, and the mesh: elements along the axes, or the largest element and refinements."""

    order: int
    elements: tuple[int, int] = (1, 1)
    size: float = 1.0
    levels: int = 0
    factor: float = 0.3


def solved(equation: Any, load: Any, solution: Any, symmetric: bool = True) -> Any:
    """Solve with the boundary values that ``solution`` has; its free unknowns are filled in."""
    form = ng.BilinearForm(equation * ng.dx, symmetric=symmetric, condense=True)
    ng.solvers.BVP(bf=form, lf=load, gf=solution, inverse="umfpack")  # assembles both
    return solution


def dirichlet(
    mesh: Any,
    order: int,
    equation: Callable[[Any, Any], Any],
    source: Any,
    known: Any,
    where: str,
    symmetric: bool = True,
) -> Any:
    """Solve a scalar equation in the plane with values given on a part of the boundary."""
    space = ng.H1(mesh, order=order, dirichlet=where)
    u, v = space.TnT()
    load = ng.LinearForm(space)
    if source is not None:
        load += source * v * ng.dx(bonus_intorder=order)
    solution = ng.GridFunction(space)
    if known is not None:
        solution.Set(known, definedon=mesh.Boundaries(where), bonus_intorder=order)
    return solved(equation(u, v), load, solution, symmetric)


def reader(mesh: Any, function: Any) -> Predict:
    return lambda X: function(mesh(*X.T))


def gradients(u: Any, v: Any) -> Any:
    return ng.grad(u) * ng.grad(v)


def advection(setting: Setting) -> Predict:
    """Test u' = R with derivatives v': these are all functions one order lower."""
    mesh = Make1DMesh(setting.elements[0])
    space = ng.H1(mesh, order=setting.order, dirichlet="left")
    u, v = space.TnT()
    source = (ng.sin(2 * ng.pi * x) * ng.cos(4 * ng.pi * x)).Diff(x)
    load = ng.LinearForm(source * ng.grad(v)[0] * ng.dx(bonus_intorder=setting.order))
    solution = ng.GridFunction(space)
    solution.Set(1, definedon=mesh.Boundaries("left"))
    return reader(mesh, solved(gradients(u, v), load, solution))


def poisson_gaussian(setting: Setting) -> Predict:
    mesh = MakeStructured2DMesh(nx=setting.elements[0], ny=setting.elements[1])
    exact = ng.exp(-2 * x**2 - 4 * y**2) + 0.5
    source = (exact - 0.5) * (12 - 16 * x**2 - 64 * y**2)
    return reader(mesh, dirichlet(mesh, setting.order, gradients, source, exact, ".*"))


def helmholtz(setting: Setting) -> Predict:
    mesh = MakeStructured2DMesh(nx=setting.elements[0], ny=setting.elements[1])
    exact = ng.sin(10 * x) * ng.sin(10 * y)
    solution = dirichlet(mesh, setting.order, lambda u, v: gradients(u, v) - 100 * u * v, 100 * exact, exact, ".*")
    return reader(mesh, solution)


def diffusion_reaction(setting: Setting) -> Predict:
    """Galerkin in space and time, y being time; nothing is prescribed at the final time."""
    mesh = MakeStructured2DMesh(
        nx=setting.elements[0], ny=setting.elements[1], mapping=lambda s, t: (math.pi * (2 * s - 1), t)
    )
    start = sum(ng.sin(k * x) / k for k in MODES)
    source = ng.exp(-y) * sum((k * k - 1) / k * ng.sin(k * x) for k in MODES)

    def heat(u: Any, v: Any) -> Any:
        return ng.grad(u)[1] * v + ng.grad(u)[0] * ng.grad(v)[0]

    return reader(mesh, dirichlet(mesh, setting.order, heat, source, start, "left|right|bottom", False))


def wave(setting: Setting) -> Predict:
    """Least squares for u, p = u_t and q = u_x: p_t = 4 q_x, q_t = p_x; the last two scaled to equal speeds."""
    mesh = MakeStructured2DMesh(nx=setting.elements[0], ny=setting.elements[1])
    fixed = "left|right|bottom"
    walls = ng.H1(mesh, order=setting.order, dirichlet=fixed)
    space = walls * walls * ng.H1(mesh, order=setting.order, dirichlet="bottom")

    def residuals(u: Any, p: Any, q: Any) -> tuple[Any, ...]:
        du, dp, dq = ng.grad(u), ng.grad(p), ng.grad(q)
        return du[1] - p, du[0] - q, dp[1] - 4 * dq[0], 2 * (dq[1] - dp[0])

    trial, test = space.TnT()
    squares = sum(a * b for a, b in zip(residuals(*trial), residuals(*test), strict=True))
    solution = ng.GridFunction(space)
    start = ng.sin(ng.pi * x) + ng.sin(4 * ng.pi * x) / 2
    order = setting.order
    solution.components[0].Set(start, definedon=mesh.Boundaries(fixed), bonus_intorder=order)
    solution.components[2].Set(start.Diff(x), definedon=mesh.Boundaries("bottom"), bonus_intorder=order)
    solved(squares, ng.LinearForm(space), solution)
    return reader(mesh, solution.components[0])


def annulus(setting: Setting) -> Predict:
    geometry = SplineGeometry()
    geometry.AddCircle((0, 0), 1, bc="outer")
    geometry.AddCircle((0, 0), 0.5, leftdomain=0, rightdomain=1, bc="inner")
    mesh = ng.Mesh(geometry.GenerateMesh(maxh=setting.size))
    mesh.Curve(setting.order)
    exact = x * (1 + 0.25 / (x**2 + y**2))
    return reader(mesh, dirichlet(mesh, setting.order, gradients, None, exact, "outer"))


def l_mesh(setting: Setting) -> Any:
    geometry = SplineGeometry()
    corners = [geometry.AppendPoint(0, 0, hpref=1)]
    corners += [geometry.AppendPoint(*corner) for corner in ((1, 0), (1, 1), (-1, 1), (-1, -1), (0, -1))]
    for corner, following in zip(corners, corners[1:] + corners[:1], strict=True):
        geometry.Append(["line", corner, following])
    mesh = ng.Mesh(geometry.GenerateMesh(maxh=setting.size))
    mesh.RefineHP(setting.levels, setting.factor)
    return mesh


def l_shape(setting: Setting) -> Predict:
    mesh = l_mesh(setting)
    exact = (x**2 + y**2) ** (1 / 3) * ng.cos(2 / 3 * ng.atan2(x + y, y - x))
    return reader(mesh, dirichlet(mesh, setting.order, gradients, None, exact, ".*"))


def l_shape_unit_load(setting: Setting) -> Predict:
    mesh = l_mesh(setting)
    return reader(mesh, dirichlet(mesh, setting.order, gradients, ng.CF(1), None, ".*"))


def ball(hole: bool, order: int, size: float) -> Any:
    """Return a mesh of the unit ball, with a hole of half its radius or without, curved to an order."""
    body = Sphere(Pnt(0, 0, 0), 1)
    body.faces.name = "outer"
    if hole:
        inner = Sphere(Pnt(0, 0, 0), 0.5)
        inner.faces.name = "inner"
        body = body - inner
    mesh = ng.Mesh(OCCGeometry(body).GenerateMesh(maxh=size))
    mesh.Curve(order)
    return mesh


def poisson_ball(setting: Setting) -> Predict:
    mesh = ball(False, setting.order, setting.size)
    exact = ng.exp(x) * ng.sin(2 * y) * ng.cos(ng.z) + ng.z**2
    source = 4 * (exact - ng.z**2) - 2
    return reader(mesh, dirichlet(mesh, setting.order, gradients, source, exact, "outer"))


def cooled(mesh: Any, order: int, source: Any, known: Any) -> Any:
    """Solve Poisson's equation with ∂u/∂n = −u outside, and values given inside, if any."""
    space = ng.H1(mesh, order=order, dirichlet="inner")
    u, v = space.TnT()
    form = ng.BilinearForm(gradients(u, v) * ng.dx + u * v * ng.ds("outer"), symmetric=True, condense=True)
    solution, load = ng.GridFunction(space), ng.LinearForm(space)
    if source is not None:
        load += source * v * ng.dx
    solution.Set(known, definedon=mesh.Boundaries("inner"))
    ng.solvers.BVP(bf=form, lf=load, gf=solution, inverse="umfpack")
    return reader(mesh, solution)


def cooled_ball(setting: Setting) -> Predict:
    return cooled(ball(False, setting.order, setting.size), setting.order, ng.CF(6), ng.CF(0))


def shell(setting: Setting) -> Predict:
    return cooled(ball(True, setting.order, setting.size), setting.order, None, ng.CF(1))


# Meshes and orders to choose from.
_GRIDS = ({"elements": (1, 1)}, {"elements": (2, 2)}, {"elements": (4, 4)})
_SIZES = ({"size": 0.5}, {"size": 0.3})
_GRADED = tuple({"size": 0.5, "levels": levels, "factor": f} for levels in (6, 10, 14, 20) for f in (0.3, 0.4))
CHOICES: dict[Callable[[Setting], Predict], tuple[tuple[dict[str, Any], ...], range]] = {
    advection: (({"elements": (4, 1)},), range(7, 21)),
    poisson_gaussian: (_GRIDS, range(5, 21)),
    diffusion_reaction: (({"elements": (16, 1)},), range(6, 13)),
    helmholtz: (_GRIDS, range(5, 25)),
    wave: (({"elements": (4, 8)},), range(7, 15)),
    annulus: (_SIZES, range(5, 21)),
    l_shape: (_GRADED, range(6, 20, 2)),
    l_shape_unit_load: (_GRADED, range(6, 20, 2)),
    poisson_ball: (({"size": 1.0}, {"size": 0.7}), range(4, 11)),
    cooled_ball: (({"size": 1.0}, {"size": 0.7}), range(3, 11)),
    shell: (({"size": 0.7}, {"size": 0.5}), range(3, 10)),
}


def cheapest(probe: Probe, tol: float, repeats: int) -> tuple[float, float]:
    """Return CPU seconds and error of the cheapest setting that meets a tolerance, on one thread; none if none does."""
    solve = next((own for own in CHOICES if own.__name__ == probe.name), None)
    met: list[tuple[float, float, Setting]] = []
    meshes, orders = CHOICES[solve] if solve else ((), range(0))
    with threadpool_limits(limits=1):
        for mesh in meshes:
            for order in orders:
                setting = Setting(order, **mesh)
                seconds, predict = timed(partial(solve, setting))
                if (error := probe.error(predict)) <= tol:
                    met.append((seconds, error, setting))
                    break
        if not met:
            return math.nan, math.nan
        _, error, best = min(met, key=lambda entry: entry[0])
        return timed(partial(solve, best), repeats)[0], error
