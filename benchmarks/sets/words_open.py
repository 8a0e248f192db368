"""Problems with a condition too few or too many, and well-posed ones that look as if they had: the half to work with.

The other half is ``words_aside``, which nothing may be chosen by. ``told`` is a word that the message must contain.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import L_SHAPE, LINE, SQUARE, R, c, h, p, s, t, u, v, w, x, y, z
from pibls.problems.manufactured import applied, manufactured

case, words_open = collected()
g = pb.field("g", x, y, t)
a, b = pb.field("a", x, t), pb.field("b", x, t)
CUBE = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
BIHARMONIC = u.diff(x, 4) + 2 * u.diff(x, 2, y, 2) + u.diff(y, 4)
SMOOTH = sp.exp(x) * sp.sin(2 * y)


def during(stop: Any = 1) -> pb.TimeInterval:
    return pb.TimeInterval(t, 0, stop)


def sheet(force: Any = 0) -> tuple[list[sp.Eq], Any]:
    stress = pb.stress([u, v], young=210, poisson=R(3, 10), plane="stress")
    return [sp.Eq(-pb.div(row), force) for row in stress.tolist()], stress


def flow(inertia: int = 0) -> list[sp.Eq]:
    along = [
        sp.Eq(inertia * (u * of.diff(x) + v * of.diff(y)) - pb.laplacian(of) + p.diff(k), 0)
        for of, k in ((u, x), (v, y))
    ]
    return [*along, sp.Eq(u.diff(x) + v.diff(y), 0)]


# Ill-posed ------------------------------------------------------------------------------------------------------------


@case("ill-posed", told="right")
def beam_three_of_four() -> pb.Problem:
    """Clamp a beam on the left and only support it on the right, without a word about slope or moment there."""
    clamped = [pb.Dirichlet(w, 0), pb.Dirichlet(w.diff(x), 0, on=LINE.left)]
    return pb.Problem(sp.Eq(w.diff(x, 4), 1), LINE, clamped)


@case("ill-posed", told="right")
def rod_with_a_free_word() -> pb.Problem:
    """Give the flux into a rod at its left end, and nothing at its right end."""
    return pb.Problem(sp.Eq(-w.diff(x, 2) + w, x), LINE, [pb.Neumann(w, 1, on=LINE.left)])


@case("ill-posed", told="c")
def pendulum_without_a_velocity() -> pb.Problem:
    """Let a pendulum go from 0.3 without its first velocity."""
    return pb.Problem(sp.Eq(c.diff(t, 2) + sp.sin(c), 0), during(3), [pb.Initial(c, R(3, 10))])


@case("ill-posed", told="edge5")
def l_shape_without_an_edge() -> pb.Problem:
    """Forget the last edge of an L."""
    edges = L_SHAPE.edge0 | L_SHAPE.edge1 | L_SHAPE.edge2 | L_SHAPE.edge3 | L_SHAPE.edge4
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), L_SHAPE, [pb.Dirichlet(u, 0, on=edges)])


@case("ill-posed", told="two")
def plate_with_one_condition() -> pb.Problem:
    """Give only the deflection of a plate along its rim: any clamped angle suits."""
    return pb.Problem(sp.Eq(BIHARMONIC, 1), SQUARE, [pb.Dirichlet(u, 0)])


@case("ill-posed", told="p")
def lid_without_a_level() -> pb.Problem:
    """Drive a cavity by its lid, and give no level of the pressure."""
    lid = 16 * x**2 * (1 - x) ** 2
    walls = SQUARE.left | SQUARE.right | SQUARE.bottom
    conditions = [pb.Dirichlet(u, lid, on=SQUARE.top), pb.Dirichlet(u, 0, on=walls), pb.Dirichlet(v, 0)]
    return pb.Problem(flow(), SQUARE, conditions)


@case("ill-posed", told="left")
def sheet_held_sideways_only() -> pb.Problem:
    """Hold a sheet's left side along x, say nothing along y there, and clamp the rest."""
    rest = SQUARE.right | SQUARE.bottom | SQUARE.top
    conditions = [pb.Dirichlet(u, 0), pb.Dirichlet(v, 0, on=rest)]
    return pb.Problem(sheet(1)[0], SQUARE, conditions)


@case("ill-posed", told="top")
def nonlinear_conductor_without_a_side() -> pb.Problem:
    """Forget the top of a square whose conductivity grows with temperature."""
    sides = SQUARE.left | SQUARE.right | SQUARE.bottom
    return pb.Problem(sp.Eq(-pb.div((1 + u**2) * pb.grad(u)), 1), SQUARE, [pb.Dirichlet(u, 0, on=sides)])


@case("ill-posed", told="left")
def nonlinear_one_too_many() -> pb.Problem:
    """Give value and flux on the left of a square where heat burns: both cannot hold."""
    conditions = [pb.Dirichlet(u, 0), pb.Neumann(u, 0, on=SQUARE.left)]
    return pb.Problem(sp.Eq(-pb.laplacian(u) + u**3, 1), SQUARE, conditions)


@case("ill-posed", told="top")
def cube_without_its_top() -> pb.Problem:
    """Forget the top of a cube."""
    held = CUBE.left | CUBE.right | CUBE.front | CUBE.back | CUBE.bottom
    return pb.Problem(sp.Eq(-pb.laplacian(s), 1), CUBE, [pb.Dirichlet(s, 0, on=held)])


@case("ill-posed", told="initial")
def heat_without_a_start() -> pb.Problem:
    """Give the ends of a rod and no first temperature."""
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), LINE * during(), [pb.Dirichlet(h, 0)])


@case("ill-posed", told="initial")
def drum_without_a_velocity() -> pb.Problem:
    """Lift a drum's skin and give no first velocity."""
    shape = sp.sin(sp.pi * x) * sp.sin(sp.pi * y)
    conditions = [pb.Dirichlet(g, 0), pb.Initial(g, shape)]
    return pb.Problem(sp.Eq(g.diff(t, 2), pb.laplacian(g)), SQUARE * during(), conditions)


@case("ill-posed")
def nonlinear_heat_that_gathers() -> pb.Problem:
    """Let heat gather where it is, the more the hotter: it runs backwards."""
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.sin(sp.pi * x))]
    return pb.Problem(sp.Eq(h.diff(t), -((1 + h**2) * h.diff(x)).diff(x)), LINE * during(R(1, 5)), conditions)


@case("ill-posed", told="left")
def viscous_wave_without_an_end() -> pb.Problem:
    """Give Burgers' equation with viscosity no condition at the left end."""
    line = LINE * during(R(1, 2))
    conditions = [pb.Dirichlet(h, 0, on=line.right), pb.Initial(h, sp.sin(sp.pi * x))]
    return pb.Problem(sp.Eq(h.diff(t) + h * h.diff(x), h.diff(x, 2) / 20), line, conditions)


@case("ill-posed")
def free_nonlinear_level() -> pb.Problem:
    """Close all sides to the flux of a field that only its slopes move: any constant can be added."""
    slope = u.diff(x) ** 2 + u.diff(y) ** 2
    source = sp.cos(sp.pi * x) * sp.cos(sp.pi * y)
    return pb.Problem(sp.Eq(-pb.div((1 + slope) * pb.grad(u)), source), SQUARE, [pb.Neumann(u, 0)])


# Well posed -----------------------------------------------------------------------------------------------------------


@case("look-alike")
def beam_from_one_end() -> pb.Problem:
    """Give all four conditions of a beam at its left end."""
    exact = sp.exp(x) + x**2
    given = [pb.Dirichlet(w.diff(x, k) if k else w, exact.diff(x, k).subs(x, 0), on=LINE.left) for k in range(4)]
    return pb.Problem(sp.Eq(w.diff(x, 4), sp.exp(x)), LINE, given, exact=exact)


@case("look-alike")
def wind_that_leaves() -> pb.Problem:
    """Give a wind what it brings, and nothing where it leaves or passes along."""
    equation = manufactured(u.diff(x) + u, {u: SMOOTH}, SQUARE)
    return pb.Problem(equation, SQUARE, [pb.Dirichlet(u, SMOOTH, on=SQUARE.left)], exact=SMOOTH)


@case("look-alike")
def channel_with_an_open_end() -> pb.Problem:
    """Let a channel's flow leave freely, which gives the pressure its level."""
    channel = pb.Rectangle((x, 0, 2), (y, 0, 1))
    profile = 4 * y * (1 - y)
    conditions = [
        pb.Dirichlet(u, profile, on=channel.left | channel.bottom | channel.top),
        pb.Dirichlet(v, 0),
        pb.Condition(sp.Eq(u.diff(x) - p, 0), on=channel.right),
    ]
    return pb.Problem(flow(), channel, conditions, exact={u: profile, v: 0, p: 8 * (2 - x)})


@case("look-alike")
def disk_by_its_radius() -> pb.Problem:
    """Give a disk, written by its radius alone, nothing at the centre."""
    exact = sp.cos(x) + 2
    equation = manufactured(x * w.diff(x, 2) + w.diff(x), {w: exact}, LINE)
    return pb.Problem(equation, LINE, [pb.Dirichlet(w, exact, on=LINE.right)], exact=exact)


@case("look-alike")
def strip_that_repeats() -> pb.Problem:
    """Let a strip repeat along x, and give its lower and upper sides."""
    exact = sp.sin(2 * sp.pi * x) * sp.cosh(y)
    equation = manufactured(-pb.laplacian(u), {u: exact}, SQUARE)
    conditions = [pb.Periodic(u, x), pb.Dirichlet(u, exact, on=SQUARE.bottom | SQUARE.top)]
    return pb.Problem(equation, SQUARE, conditions, exact=exact)


@case("look-alike")
def organ_pipe() -> pb.Problem:
    """Open one end of a pipe and close the other: pressure is given at one end, velocity at the other."""
    pipe = LINE * during(2)
    k = sp.pi / 2
    exact = {a: sp.cos(k * t) * sp.cos(k * x), b: sp.sin(k * t) * sp.sin(k * x)}
    conditions = [
        pb.Dirichlet(b, 0, on=pipe.left),
        pb.Dirichlet(a, 0, on=pipe.right),
        *(pb.Initial(of, value.subs(t, 0)) for of, value in exact.items()),
    ]
    return pb.Problem([sp.Eq(a.diff(t), -b.diff(x)), sp.Eq(b.diff(t), -a.diff(x))], pipe, conditions, exact=exact)


@case("look-alike")
def string_that_lets_go() -> pb.Problem:
    """Let a wave leave through the right end."""
    line = LINE * during(1)
    exact = sp.exp(-20 * (x - t - R(1, 4)) ** 2)
    conditions = [
        pb.Dirichlet(h, exact, on=line.left),
        pb.Condition(sp.Eq(h.diff(t) + h.diff(x), 0), on=line.right),
        pb.Initial(h, exact.subs(t, 0)),
        pb.Initial(h.diff(t), exact.diff(t).subs(t, 0)),
    ]
    return pb.Problem(sp.Eq(h.diff(t, 2), h.diff(x, 2)), line, conditions, exact=exact)


@case("look-alike")
def closed_and_burning() -> pb.Problem:
    """Close all sides of a square whose reaction holds the level."""
    exact = 2 + sp.cos(sp.pi * x) * sp.cos(sp.pi * y)
    equation = manufactured(-pb.laplacian(u) + u**3, {u: exact}, SQUARE)
    return pb.Problem(equation, SQUARE, [pb.Neumann(u, 0)], exact=exact)


@case("look-alike")
def closed_and_cooling() -> pb.Problem:
    """Close both ends of a rod whose first temperature is given."""
    exact = 1 + sp.exp(-t) * sp.cos(sp.pi * x)
    line = LINE * during()
    equation = manufactured(h.diff(t) - ((1 + h**2) * h.diff(x)).diff(x), {h: exact}, line)
    return pb.Problem(equation, line, [pb.Neumann(h, 0), pb.Initial(h, exact.subs(t, 0))], exact=exact)


@case("look-alike")
def trace_beside_a_stream() -> pb.Problem:
    """Carry a trace of a millionth beside a main substance, which it reacts with."""
    main, trace = sp.exp(x) * sp.cos(y), sp.sin(3 * x) * sp.cosh(3 * y) / 10**6
    equations = [
        manufactured(-pb.laplacian(u) + u, {u: main, v: trace}, SQUARE),
        manufactured(-pb.laplacian(v) + u * v, {u: main, v: trace}, SQUARE),
    ]
    conditions = [pb.Dirichlet(u, main), pb.Dirichlet(v, trace)]
    return pb.Problem(equations, SQUARE, conditions, exact={u: main, v: trace})


@case("look-alike")
def sides_by_a_function() -> pb.Problem:
    """Give the rim of an L in two pieces that functions tell apart."""
    low, high = (
        L_SHAPE.boundary.where(lambda X: X[:, 1] < 0.25),
        L_SHAPE.boundary.where(lambda X: X[:, 1] >= 0.25),
    )
    exact = sp.exp(x) * sp.cos(y)
    flux = applied(pb.normal_derivative(u), {u: exact}, L_SHAPE)
    conditions = [pb.Dirichlet(u, exact, on=low), pb.Neumann(u, flux, on=high)]
    return pb.Problem(sp.Eq(pb.laplacian(u), 0), L_SHAPE, conditions, exact=exact)


@case("look-alike")
def plate_on_a_frame() -> pb.Problem:
    """Support a plate: deflection and curvature are given."""
    exact = sp.sin(sp.pi * x) * sp.sin(sp.pi * y)
    conditions = [pb.Dirichlet(u, 0), pb.Dirichlet(pb.laplacian(u), 0)]
    return pb.Problem(sp.Eq(BIHARMONIC, 4 * sp.pi**4 * exact), SQUARE, conditions, exact=exact)


@case("look-alike")
def sheet_on_rollers() -> pb.Problem:
    """Let a sheet slide along two walls, and pull at the others."""
    equations, stress = sheet()
    strain, across = R(1, 210), -R(3, 2100)
    conditions = [
        *pb.Symmetry([u, v], stress, on=SQUARE.left | SQUARE.bottom),
        *pb.Traction(stress, (1, 0), on=SQUARE.right),
        *pb.Traction(stress, (0, 0), on=SQUARE.top),
    ]
    return pb.Problem(equations, SQUARE, conditions, exact={u: strain * x, v: across * y})


@case("look-alike")
def fluxes_as_fields() -> pb.Problem:
    """Write Poisson's equation by its fluxes, which have no condition of their own."""
    exact = sp.sin(sp.pi * x) * sp.exp(y)
    fluxes = {u: -exact.diff(x), v: -exact.diff(y), p: exact}
    source = sp.expand(-exact.diff(x, 2) - exact.diff(y, 2))
    equations = [sp.Eq(u, -p.diff(x)), sp.Eq(v, -p.diff(y)), sp.Eq(u.diff(x) + v.diff(y), source)]
    return pb.Problem(equations, SQUARE, [pb.Dirichlet(p, exact)], exact=fluxes)


@case("look-alike")
def rod_hit_by_a_pulse() -> pb.Problem:
    """Heat a rod by a pulse of a hundredth of the time."""
    pulse = sp.exp(-(((t - R(1, 2)) / R(1, 100)) ** 2))
    course = sp.sqrt(sp.pi) / 200 * (sp.erf(100 * (t - R(1, 2))) + sp.erf(50))
    line, shape = LINE * during(), sp.sin(sp.pi * x)
    equation = sp.Eq(h.diff(t) - h.diff(x, 2), 100 * (pulse + sp.pi**2 * course) * shape)
    return pb.Problem(equation, line, [pb.Dirichlet(h, 0), pb.Initial(h, 0)], exact=100 * course * shape)
