"""Ill-posed problems that counting conditions does not tell, and well-posed ones like them: the half to work with.

Nonlinear ones, contradictions of a thousandth, resonances, torques, time run backwards. The other half is
``doubts_aside``, which nothing may be chosen by.
"""

from __future__ import annotations

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import DISK, LINE, SQUARE, R, c, h, p, s, t, u, v, w, x, y, z
from benchmarks.sets.scales_open import THREE, during, g, posed
from pibls.problems.manufactured import manufactured

case, doubts_open = collected()
like, doubts_open_alike = collected(THREE)
CUBE = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
BODY = pb.stress([u, v], young=1, poisson=R(3, 10), plane="stress")
WAVY = sp.cos(sp.pi * x) * sp.cos(sp.pi * y)


def inertial(viscosity: sp.Expr) -> list[sp.Expr]:
    along = [u * of.diff(x) + v * of.diff(y) - viscosity * pb.laplacian(of) + p.diff(k) for of, k in ((u, x), (v, y))]
    return [*along, u.diff(x) + v.diff(y)]


# Ill-posed ------------------------------------------------------------------------------------------------------------


@case("ill-posed")
def root_of_a_parabola() -> pb.Problem:
    """Start w′² = 4 w at zero: it may stay there and leave whenever it likes."""
    return pb.Problem(sp.Eq(w.diff(x) ** 2, 4 * w), LINE, [pb.Dirichlet(w, 0, on=LINE.left)])


@case("ill-posed")
def fire_in_a_closed_box() -> pb.Problem:
    """Close all sides of a square in which more leaves than any solution brings: eᵘ has no zero."""
    return pb.Problem(sp.Eq(-pb.laplacian(u) + sp.exp(u), 0), SQUARE, [pb.Neumann(u, 0)])


@case("ill-posed")
def heated_and_closed() -> pb.Problem:
    """Heat a conductor whose sides are closed: nothing takes the heat away."""
    return pb.Problem(sp.Eq(-pb.div((1 + u**2) * pb.grad(u)), 1), SQUARE, [pb.Neumann(u, 0)])


@case("ill-posed")
def wave_that_steepened() -> pb.Problem:
    """Ask where a viscous wave came from."""
    road = LINE * during()
    last = pb.Condition(sp.Eq(h, sp.sin(sp.pi * x) / 4), on=road.final)
    return pb.Problem(sp.Eq(h.diff(t) + h * h.diff(x), h.diff(x, 2) / 10), road, [pb.Dirichlet(h, 0), last])


@case("ill-posed", told="p")
def stirred_disk_without_a_level() -> pb.Problem:
    """Stir a disk by its rim, with inertia, and give no level of the pressure."""
    equations = [sp.Eq(o, 0) for o in inertial(R(1, 10))]
    equations[0] = sp.Eq(equations[0].lhs, x * y)
    return pb.Problem(equations, DISK, [pb.Dirichlet(u, -y), pb.Dirichlet(v, x)])


@case("ill-posed")
def growth_with_two_ends() -> pb.Problem:
    """Let a number grow, and ask it to be what it was."""
    clock = during()
    conditions = [pb.Initial(c, R(1, 2)), pb.Condition(sp.Eq(c, R(1, 2)), on=clock.final)]
    return pb.Problem(sp.Eq(c.diff(t), c * (1 - c)), clock, conditions)


@case("ill-posed")
def heated_cube_closed() -> pb.Problem:
    return pb.Problem(sp.Eq(-pb.laplacian(s), 1), CUBE, [pb.Neumann(s, 0), pb.Mean(s, 0)])


@case("ill-posed")
def sheet_with_a_torque() -> pb.Problem:
    """Pull a sheet up on its right and down on its left: forces cancel, and turn it."""
    conditions = [
        *pb.Traction(BODY, (0, 1), on=SQUARE.right),
        *pb.Traction(BODY, (0, -1), on=SQUARE.left),
        *pb.Traction(BODY, (0, 0), on=SQUARE.top | SQUARE.bottom),
        pb.Mean(u, 0),
        pb.Mean(v, 0),
    ]
    return pb.Problem([sp.Eq(-pb.div(row), 0) for row in BODY.tolist()], SQUARE, conditions)


@case("ill-posed")
def a_thousandth_too_much() -> pb.Problem:
    """Let a thousandth more heat leave than is made."""
    conditions = [pb.Neumann(u, -R(1001, 4000)), pb.Mean(u, 0)]
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), SQUARE, conditions)


@case("ill-posed")
def string_in_resonance() -> pb.Problem:
    return pb.Problem(sp.Eq(w.diff(x, 2) + sp.pi**2 * w, sp.sin(sp.pi * x)), LINE, [pb.Dirichlet(w, 0)])


@case("ill-posed")
def drum_in_resonance() -> pb.Problem:
    source = sp.sin(sp.pi * x) * sp.sin(2 * sp.pi * y)
    return pb.Problem(sp.Eq(pb.laplacian(u) + 5 * sp.pi**2 * u, source), SQUARE, [pb.Dirichlet(u, 0)])


@case("ill-posed")
def cube_seen_from_above() -> pb.Problem:
    """Give value and flux on top of a cube, and nothing at its bottom."""
    around = CUBE.left | CUBE.right | CUBE.front | CUBE.back
    conditions = [
        pb.Dirichlet(s, 0, on=around),
        pb.Dirichlet(s, 0, on=CUBE.top),
        pb.Neumann(s, sp.sin(sp.pi * x) * sp.sin(sp.pi * y), on=CUBE.top),
    ]
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), CUBE, conditions)


@case("ill-posed")
def plate_that_cooled() -> pb.Problem:
    """Ask for the first temperature of a plate that has cooled."""
    plate = SQUARE * during(R(1, 2))
    last = pb.Condition(sp.Eq(g, sp.sin(sp.pi * x) * sp.sin(sp.pi * y)), on=plate.final)
    return pb.Problem(sp.Eq(g.diff(t), pb.laplacian(g)), plate, [pb.Dirichlet(g, 0), last])


@case("ill-posed")
def flow_that_vanishes() -> pb.Problem:
    """Let a liquid in on the left, and out nowhere."""
    profile = 4 * y * (1 - y)
    walls = SQUARE.right | SQUARE.bottom | SQUARE.top
    conditions = [
        pb.Dirichlet(u, profile, on=SQUARE.left),
        pb.Dirichlet(u, 0, on=walls),
        pb.Dirichlet(v, 0),
        pb.Mean(p, 0),
    ]
    equations = [-pb.laplacian(u) + p.diff(x), -pb.laplacian(v) + p.diff(y), u.diff(x) + v.diff(y)]
    return pb.Problem([sp.Eq(o, 0) for o in equations], SQUARE, conditions)


@case("ill-posed")
def decay_off_by_a_thousandth() -> pb.Problem:
    conditions = [pb.Dirichlet(w, 1, on=LINE.left), pb.Dirichlet(w, R(1001, 1000) * sp.exp(-1), on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x), -w), LINE, conditions)


# Well posed -----------------------------------------------------------------------------------------------------------


@like("look-alike")
def root_of_a_parabola_from_one() -> pb.Problem:
    return pb.Problem(sp.Eq(w.diff(x), 2 * sp.sqrt(w)), LINE, [pb.Dirichlet(w, 1, on=LINE.left)], exact=(x + 1) ** 2)


@like("look-alike")
def fire_in_a_closed_box_fed() -> pb.Problem:
    equation = manufactured(-pb.laplacian(u) + sp.exp(u), {u: WAVY}, SQUARE)
    return pb.Problem(equation, SQUARE, [pb.Neumann(u, 0)], exact=WAVY)


@like("look-alike")
def heated_closed_and_leaking() -> pb.Problem:
    exact = 1 + WAVY / 2
    equation = manufactured(-pb.div((1 + u**2) * pb.grad(u)) + u, {u: exact}, SQUARE)
    return pb.Problem(equation, SQUARE, [pb.Neumann(u, 0)], exact=exact)


@like("look-alike")
def closed_with_a_mean() -> pb.Problem:
    exact = 5 + WAVY
    equation = manufactured(-pb.laplacian(u), {u: exact}, SQUARE)
    return pb.Problem(equation, SQUARE, [pb.Neumann(u, 0), pb.Mean(u, 5)], exact=exact)


@like("look-alike")
def stirred_disk() -> pb.Problem:
    exact = {u: -y * (1 + x), v: x + y**2 / 2, p: x * y}
    conditions = [pb.Dirichlet(u, exact[u]), pb.Dirichlet(v, exact[v]), pb.Mean(p, 0)]
    equations = [manufactured(o, exact, DISK) for o in inertial(R(1, 10))]
    return pb.Problem(equations, DISK, conditions, exact=exact)


@like("look-alike")
def growth_from_its_end() -> pb.Problem:
    clock = during(2)
    last = pb.Condition(sp.Eq(c, 1 / (1 + sp.exp(-2))), on=clock.final)
    return pb.Problem(sp.Eq(c.diff(t), c * (1 - c)), clock, [last], exact=1 / (1 + sp.exp(-t)))


@like("look-alike")
def string_next_to_resonance() -> pb.Problem:
    return posed([w.diff(x, 2) + (sp.pi**2 + R(1, 100)) * w], {w: sp.sin(sp.pi * x) + x**2}, LINE)


@like("look-alike")
def closed_cube_with_a_mean() -> pb.Problem:
    exact = sp.cos(sp.pi * x) * sp.cos(sp.pi * y) * sp.cos(sp.pi * z)
    equation = manufactured(-pb.laplacian(s), {s: exact}, CUBE)
    return pb.Problem(equation, CUBE, [pb.Neumann(s, 0), pb.Mean(s, 0)], exact=exact)


@like("look-alike")
def sheet_sheared() -> pb.Problem:
    """Shear a sheet along all of its sides, so that nothing turns it, and give the mean of its turn."""
    shear = 1 / (2 * (1 + R(3, 10)))
    conditions = [
        *pb.Traction(BODY, (0, shear), on=SQUARE.right),
        *pb.Traction(BODY, (0, -shear), on=SQUARE.left),
        *pb.Traction(BODY, (shear, 0), on=SQUARE.top),
        *pb.Traction(BODY, (-shear, 0), on=SQUARE.bottom),
        pb.Mean(u, R(1, 4)),
        pb.Mean(v, R(1, 4)),
        pb.Mean(u.diff(y) - v.diff(x), 0),
    ]
    equations = [sp.Eq(-pb.div(row), 0) for row in BODY.tolist()]
    return pb.Problem(equations, SQUARE, conditions, exact={u: y / 2, v: x / 2})


@like("look-alike")
def wind_from_the_right() -> pb.Problem:
    exact = sp.exp(x) * sp.cos(y)
    equation = manufactured(-u.diff(x) - u.diff(y) / 2 + u, {u: exact}, SQUARE)
    return pb.Problem(equation, SQUARE, [pb.Dirichlet(u, exact, on=SQUARE.right | SQUARE.top)], exact=exact)


@like("look-alike")
def string_seen_last() -> pb.Problem:
    """Give place and velocity of a string at the end: waves go back as they came."""
    string = LINE * during()
    exact = sp.sin(sp.pi * x) * sp.cos(sp.pi * t)
    conditions = [
        pb.Dirichlet(h, 0),
        pb.Condition(sp.Eq(h, exact.subs(t, 1)), on=string.final),
        pb.Condition(sp.Eq(h.diff(t), 0), on=string.final),
    ]
    return pb.Problem(sp.Eq(h.diff(t, 2), h.diff(x, 2)), string, conditions, exact=exact)


@like("look-alike")
def decay_with_both_ends() -> pb.Problem:
    exact = sp.exp(-x)
    return pb.Problem(sp.Eq(w.diff(x), -w), LINE, [pb.Dirichlet(w, exact)], exact=exact)


@like("look-alike")
def narrow_pulse_that_travels() -> pb.Problem:
    exact = sp.exp(-1000 * (x - t / 2 - R(1, 4)) ** 2)
    road = LINE * during()
    conditions = [pb.Dirichlet(h, exact, on=road.left), pb.Initial(h, exact.subs(t, 0))]
    return pb.Problem(sp.Eq(h.diff(t) + h.diff(x) / 2, 0), road, conditions, exact=exact)


@like("look-alike")
def kicked_number() -> pb.Problem:
    exact = sp.exp(-t) + (1 + sp.tanh(1000 * (t - R(1, 2)))) / 2
    return pb.Problem(
        manufactured(c.diff(t) + c**2, {c: exact}, during()),
        during(),
        [pb.Initial(c, exact.subs(t, 0))],
        exact=exact,
    )


@like("look-alike")
def price_of_an_option() -> pb.Problem:
    """Give what diffuses against time its last values: −h_t = h_xx."""
    exact = sp.exp(sp.pi**2 * (t - 1)) * sp.sin(sp.pi * x)
    book = LINE * during()
    last = pb.Condition(sp.Eq(h, sp.sin(sp.pi * x)), on=book.final)
    return pb.Problem(sp.Eq(-h.diff(t), h.diff(x, 2)), book, [pb.Dirichlet(h, 0), last], exact=exact)
