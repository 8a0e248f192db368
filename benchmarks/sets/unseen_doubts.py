"""Problems that are ill-posed in a way that is easily overlooked, and well-posed ones that look as if they were not.

Every ill-posed one says why it is. Contradictions of one percent are there at tolerances below that.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import DISK, LAPLACE, LINE, SQUARE, R, h, p, t, u, v, w, x, y
from pibls.problems.manufactured import applied, manufactured

case, doubts = collected()
a, b = pb.field("a", x, t), pb.field("b", x, t)
SMOOTH = sp.exp(x) * sp.sin(y)


def _sheet() -> tuple[list[sp.Eq], Any]:
    stress = pb.stress([u, v], young=70, poisson=R(1, 3), plane="stress")
    return [sp.Eq(pb.div(row), 0) for row in stress.tolist()], stress


# Ill-posed ------------------------------------------------------------------------------------------------------------


@case("ill-posed")
def leak_of_one_percent() -> pb.Problem:
    """Make heat of 1 inside, and let 1.01 leave."""
    conditions = [pb.Neumann(u, -R(101, 400)), pb.Mean(u, 0)]
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), SQUARE, conditions)


@case("ill-posed")
def two_thermometers() -> pb.Problem:
    """Give one side twice, the second time one percent higher."""
    conditions = [pb.Dirichlet(u, SMOOTH), pb.Dirichlet(u, R(101, 100) * SMOOTH, on=SQUARE.right)]
    return pb.Problem(LAPLACE, SQUARE, conditions)


@case("ill-posed")
def reed_without_a_start() -> pb.Problem:
    """Leave out the first velocity of a beam: sin πx sin π²t can be added."""
    conditions = [pb.Dirichlet(h, 0), pb.Dirichlet(h.diff(x, 2), 0), pb.Initial(h, sp.sin(sp.pi * x))]
    return pb.Problem(sp.Eq(h.diff(t, 2) + h.diff(x, 4), 0), LINE * pb.TimeInterval(t, 0, 1), conditions)


@case("ill-posed")
def room_at_its_note() -> pb.Problem:
    """Drive a closed room of 2 by 3 at one of its notes, cos(πx/2) cos(2πy/3)."""
    room = pb.Rectangle((x, 0, 2), (y, 0, 3))
    note = sp.pi**2 * (R(1, 4) + R(4, 9))
    return pb.Problem(sp.Eq(pb.laplacian(u) + note * u, sp.exp(-x - y)), room, [pb.Neumann(u, 0)])


@case("ill-posed")
def disk_that_feeds_itself() -> pb.Problem:
    """Let as much flow in as there is, ∂u/∂n = u: x and y can be added."""
    return pb.Problem(LAPLACE, DISK, [pb.Robin(u, -1, 1, x**2 - y**2)])


@case("ill-posed")
def wind_along_the_wall() -> pb.Problem:
    """Let the wind blow along the side where u is given, which tells nothing about the rest."""
    return pb.Problem(sp.Eq(u.diff(x), sp.cos(x)), SQUARE, [pb.Dirichlet(u, sp.sin(x), on=SQUARE.bottom)])


@case("ill-posed")
def string_held_all_round() -> pb.Problem:
    """Give a wave equation values on all sides of a square: sin πx sin πy can be added."""
    return pb.Problem(sp.Eq(u.diff(x, 2) - u.diff(y, 2), 0), SQUARE, [pb.Dirichlet(u, x * y)])


@case("ill-posed")
def channel_that_gains_a_percent() -> pb.Problem:
    """Let one percent more leave than comes in, of a fluid that keeps its volume."""
    channel, profile = pb.Rectangle((x, 0, 2), (y, 0, 1)), 6 * y * (1 - y)
    equations = [sp.Eq(-pb.laplacian(of) + p.diff(k), 0) for of, k in ((u, x), (v, y))]
    conditions = [
        pb.Dirichlet(u, profile, on=channel.left),
        pb.Dirichlet(u, R(101, 100) * profile, on=channel.right),
        pb.Dirichlet(u, 0, on=channel.bottom | channel.top),
        pb.Dirichlet(v, 0),
        pb.Mean(p, 0),
    ]
    return pb.Problem([*equations, sp.Eq(pb.div([u, v]), 0)], channel, conditions)


@case("ill-posed")
def sheet_on_one_nail() -> pb.Problem:
    """Pull a sheet evenly and hold it in one point: it can turn."""
    equations, stress = _sheet()
    conditions = [*pb.Traction(stress, 1), *(pb.Dirichlet(of, 0, on=(0.5, 0.5)) for of in (u, v))]
    return pb.Problem(equations, SQUARE, conditions)


@case("ill-posed")
def torus_that_warms() -> pb.Problem:
    """Heat a square that repeats both ways by one percent of the source's size on average, which cannot leave."""
    source = sp.sin(2 * sp.pi * x) * sp.cos(2 * sp.pi * y) + R(1, 100)
    return pb.Problem(sp.Eq(-pb.laplacian(u), source), SQUARE, [pb.Periodic(u, x), pb.Periodic(u, y), pb.Mean(u, 0)])


@case("ill-posed")
def diffusion_that_turns() -> pb.Problem:
    """Let heat spread where x is positive, and gather where it is negative."""
    line = pb.Interval((x, -1, 1))
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, 1 - x**2)]
    return pb.Problem(sp.Eq(h.diff(t), x * h.diff(x, 2)), line * pb.TimeInterval(t, 0, 1), conditions)


@case("ill-posed")
def one_equation_twice() -> pb.Problem:
    """Give two fields one equation, said twice: gradients can be added."""
    equations = [sp.Eq(u.diff(y) - v.diff(x), 0), sp.Eq(2 * u.diff(y), 2 * v.diff(x))]
    return pb.Problem(equations, SQUARE, [pb.Dirichlet(u, y), pb.Dirichlet(v, x)])


@case("ill-posed")
def slope_off_by_one_percent() -> pb.Problem:
    """Start a straight line from 0 to 1 with a slope of 1.01."""
    conditions = [pb.Dirichlet(w, x), pb.Dirichlet(w.diff(x), R(101, 100), on=LINE.left)]
    return pb.Problem(sp.Eq(w.diff(x, 2), 0), LINE, conditions)


@case("ill-posed")
def half_a_wave_function() -> pb.Problem:
    """Give only the real part of a wave function at first."""
    equations = [sp.Eq(a.diff(t), -b.diff(x, 2)), sp.Eq(b.diff(t), a.diff(x, 2))]
    conditions = [pb.Dirichlet(a, 0), pb.Dirichlet(b, 0), pb.Initial(a, sp.sin(sp.pi * x))]
    return pb.Problem(equations, LINE * pb.TimeInterval(t, 0, R(1, 2)), conditions)


@case("ill-posed")
def island_without_a_level() -> pb.Problem:
    """Tell only one of two disks that do not touch its level."""
    one, two = pb.Disk((x, y), (-2, 0), 1), pb.Disk((x, y), (2, 0), 1)
    conditions = [pb.Dirichlet(u, x, on=one.boundary), pb.Neumann(u, 0, on=two.boundary)]
    return pb.Problem(LAPLACE, one | two, conditions)


@case("ill-posed")
def beyond_ignition() -> pb.Problem:
    """Pose Bratu's equation beyond the strength (3.5138) from which on there is no solution."""
    return pb.Problem(sp.Eq(w.diff(x, 2) + R(18, 5) * sp.exp(w), 0), LINE, [pb.Dirichlet(w, 0)])


# Well posed -----------------------------------------------------------------------------------------------------------


@case("look-alike")
def balanced_heat() -> pb.Problem:
    """Let what is made inside leave through the sides of a ring, and give the mean."""
    ring = pb.Disk((x, y), (5, 5), 2) - pb.Disk((x, y), (5, R(11, 2)), R(1, 2))
    # Both means follow from those of disks: of |x − 5|² by r²/2, and by that plus the square of the shift.
    exact = (x - 5) ** 2 + (y - 5) ** 2 + 3 * (x - 5)
    mean = (4 * sp.pi * 2 - sp.pi / 4 * (R(1, 8) + R(1, 4))) / (4 * sp.pi - sp.pi / 4)
    flux = applied(pb.normal_derivative(u), {u: exact}, ring)
    return pb.Problem(sp.Eq(pb.laplacian(u), 4), ring, [pb.Neumann(u, flux), pb.Mean(u, mean)], exact=exact)


@case("look-alike")
def room_beside_its_note() -> pb.Problem:
    """Drive the closed room of 2 by 3 a ten-thousandth beside its note."""
    room = pb.Rectangle((x, 0, 2), (y, 0, 3))
    note = sp.pi**2 * (R(1, 4) + R(4, 9))
    shape = sp.cos(sp.pi * x / 2) * sp.cos(2 * sp.pi * y / 3)
    equation = sp.Eq(pb.laplacian(u) + R(10001, 10000) * note * u, shape)
    return pb.Problem(equation, room, [pb.Neumann(u, 0)], exact=10000 * shape / note)


@case("look-alike")
def said_three_times() -> pb.Problem:
    """Give all sides, one of them again, and one with its flux too: nothing contradicts."""
    flux = applied(pb.normal_derivative(u), {u: SMOOTH}, SQUARE)
    conditions = [pb.Dirichlet(u, SMOOTH), pb.Dirichlet(u, SMOOTH, on=SQUARE.right), pb.Neumann(u, flux, on=SQUARE.top)]
    return pb.Problem(LAPLACE, SQUARE, conditions, exact=SMOOTH)


@case("look-alike")
def heat_told_backwards() -> pb.Problem:
    """Turn the sign of time, and give values at its other end."""
    domain = LINE * pb.TimeInterval(t, 0, R(1, 5))
    exact = sp.exp(-(sp.pi**2) * (R(1, 5) - t)) * sp.sin(sp.pi * x)
    conditions = [pb.Dirichlet(h, 0), pb.Condition(sp.Eq(h, sp.sin(sp.pi * x)), on=domain.final)]
    return pb.Problem(sp.Eq(h.diff(t), -h.diff(x, 2)), domain, conditions, exact=exact)


@case("look-alike")
def pinned_in_a_point() -> pb.Problem:
    """Give fluxes all round, and the value in one point of the rim."""
    flux = applied(pb.normal_derivative(u), {u: 1000 + SMOOTH}, SQUARE)
    conditions = [pb.Neumann(u, flux), pb.Dirichlet(u, 1000, on=(0, 0))]
    return pb.Problem(LAPLACE, SQUARE, conditions, exact=1000 + SMOOTH)


@case("look-alike")
def disk_that_feeds_itself_half() -> pb.Problem:
    """Let half of what there is flow in, ∂u/∂n = u/2: no harmonic function does that by itself."""
    exact = 3 + x * y - 2 * x
    flux = applied(pb.normal_derivative(u), {u: exact}, DISK)
    return pb.Problem(LAPLACE, DISK, [pb.Robin(u, -R(1, 2), 1, flux - exact / 2)], exact=exact)


@case("look-alike")
def three_for_two() -> pb.Problem:
    """Give three conditions for two derivatives, which agree."""
    conditions = [pb.Dirichlet(w, x), pb.Dirichlet(w.diff(x), 0, on=LINE.left)]
    return pb.Problem(sp.Eq(w.diff(x, 2), 6 * x), LINE, conditions, exact=x**3)


@case("look-alike")
def held_by_a_thread() -> pb.Problem:
    """Give fluxes all round but for a hundredth of one side."""
    exact = 20 + sp.cos(2 * x) * sp.cosh(2 * y)
    flux = applied(pb.normal_derivative(u), {u: exact}, SQUARE)
    thread = SQUARE.bottom.where(lambda X: abs(X[:, 0] - 0.37) < 0.005)
    loose = SQUARE.bottom.where(lambda X: abs(X[:, 0] - 0.37) >= 0.005)
    conditions = [
        pb.Dirichlet(u, exact, on=thread),
        pb.Neumann(u, flux, on=loose),
        pb.Neumann(u, flux, on=SQUARE.left | SQUARE.right | SQUARE.top),
    ]
    return pb.Problem(LAPLACE, SQUARE, conditions, exact=exact)


@case("look-alike")
def absorbing_everywhere() -> pb.Problem:
    """Give fluxes all round and no mean: a little absorption is enough."""
    exact = 500 + sp.cos(sp.pi * x) * sp.cos(2 * sp.pi * y)
    equation = manufactured(-pb.laplacian(u) + u / 1000, {u: exact}, SQUARE)
    return pb.Problem(equation, SQUARE, [pb.Neumann(u, 0)], exact=exact)
