"""Problems with a condition too few or too many, and well-posed ones that look as if they had: the half kept aside.

Nothing may be chosen by these: they are there to be measured.
"""

from __future__ import annotations

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import DISK, LINE, SQUARE, R, c, h, s, t, u, v, w, x, y, z
from benchmarks.sets.words_open import BIHARMONIC, SMOOTH, a, b, during, flow, p, sheet
from pibls.problems.manufactured import applied, manufactured

case, words_aside = collected()
d, e = pb.field("d", t), pb.field("e", t)
BALL = pb.Ball((x, y, z), (0, 0, 0), 1)

# Ill-posed ------------------------------------------------------------------------------------------------------------


@case("ill-posed", told="right")
def cantilever_without_a_moment() -> pb.Problem:
    """Clamp a beam on the left, and give only the shear force at its free end."""
    clamped = [pb.Dirichlet(w, 0, on=LINE.left), pb.Dirichlet(w.diff(x), 0, on=LINE.left)]
    return pb.Problem(sp.Eq(w.diff(x, 4), 1), LINE, [*clamped, pb.Dirichlet(w.diff(x, 3), 0, on=LINE.right)])


@case("ill-posed", told="w")
def third_order_with_two() -> pb.Problem:
    """Give Blasius' boundary layer its wall, and no speed far away."""
    layer = pb.Interval((x, 0, 6))
    wall = [pb.Dirichlet(w, 0, on=layer.left), pb.Dirichlet(w.diff(x), 0, on=layer.left)]
    return pb.Problem(sp.Eq(w.diff(x, 3) + w * w.diff(x, 2) / 2, 0), layer, wall)


@case("ill-posed", told="e")
def reaction_without_its_product() -> pb.Problem:
    """Let c become d and d become e, and say nothing about e at first."""
    equations = [sp.Eq(c.diff(t), -c), sp.Eq(d.diff(t), c - d**2), sp.Eq(e.diff(t), d**2)]
    return pb.Problem(equations, during(2), [pb.Initial(c, 1), pb.Initial(d, 0)])


@case("ill-posed")
def spring_with_three() -> pb.Problem:
    """Start a stiffening spring, and ask it to be back after one second."""
    conditions = [pb.Initial(c, 0), pb.Initial(c.diff(t), 1)]
    clock = during()
    return pb.Problem(sp.Eq(c.diff(t, 2) + c**3, 0), clock, [*conditions, pb.Condition(sp.Eq(c, 0), on=clock.final)])


@case("ill-posed")
def ring_without_its_hole() -> pb.Problem:
    """Give the outer rim of a ring, and say nothing about the hole."""
    ring = DISK - pb.Disk((x, y), (R(1, 4), 0), R(1, 4))
    outer = ring.boundary.where(lambda X: X[:, 0] ** 2 + X[:, 1] ** 2 > 0.7)
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), ring, [pb.Dirichlet(u, 0, on=outer)])


@case("ill-posed", told="right")
def plate_clamped_on_three_sides() -> pb.Problem:
    """Clamp a plate on three sides, and only support the right one."""
    clamped = pb.Neumann(u, 0, on=SQUARE.left | SQUARE.bottom | SQUARE.top)
    return pb.Problem(sp.Eq(BIHARMONIC, 1), SQUARE, [pb.Dirichlet(u, 0), clamped])


@case("ill-posed", told="p")
def inertial_flow_without_a_level() -> pb.Problem:
    """Drive a cavity with inertia by its lid, and give no level of the pressure."""
    lid = 160 * x**2 * (1 - x) ** 2
    walls = SQUARE.left | SQUARE.right | SQUARE.bottom
    conditions = [pb.Dirichlet(u, lid, on=SQUARE.top), pb.Dirichlet(u, 0, on=walls), pb.Dirichlet(v, 0)]
    return pb.Problem(flow(1), SQUARE, conditions)


@case("ill-posed")
def sheet_that_floats() -> pb.Problem:
    """Pull a sheet at all sides and hold it nowhere."""
    equations, stress = sheet()
    return pb.Problem(equations, SQUARE, [*pb.Traction(stress, 1)])


@case("ill-posed", told="right")
def cubic_reaction_without_a_side() -> pb.Problem:
    """Forget the right side of a square where heat burns."""
    sides = SQUARE.left | SQUARE.top | SQUARE.bottom
    return pb.Problem(sp.Eq(-pb.laplacian(u) + u**3, 1), SQUARE, [pb.Dirichlet(u, 0, on=sides)])


@case("ill-posed", told="top")
def flux_too_many() -> pb.Problem:
    """Give all sides, and a flux through the top that does not follow from them."""
    conditions = [pb.Dirichlet(u, SMOOTH), pb.Neumann(u, 0, on=SQUARE.top)]
    return pb.Problem(manufactured(-pb.div((2 + x) * pb.grad(u)), {u: SMOOTH}, SQUARE), SQUARE, conditions)


@case("ill-posed")
def half_a_ball() -> pb.Problem:
    """Give the upper half of a sphere, and say nothing about the lower."""
    upper = BALL.boundary.where(lambda X: X[:, 2] > 0)
    return pb.Problem(sp.Eq(-pb.laplacian(s), 1), BALL, [pb.Dirichlet(s, 0, on=upper)])


@case("ill-posed", told="initial")
def genes_without_a_start() -> pb.Problem:
    """Let a gene spread from nowhere told."""
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2) + h * (1 - h)), LINE * during(), [pb.Dirichlet(h, R(1, 2))])


@case("ill-posed", told="right")
def heat_without_an_end() -> pb.Problem:
    """Forget the right end of a rod."""
    line = LINE * during()
    conditions = [pb.Dirichlet(h, 0, on=line.left), pb.Initial(h, sp.sin(sp.pi * x))]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), line, conditions)


@case("ill-posed")
def genes_back_in_time() -> pb.Problem:
    """Ask where a gene came from, from how it is spread at last."""
    line = LINE * during()
    last = pb.Condition(sp.Eq(h, sp.sin(sp.pi * x) / 2), on=line.final)
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2) + h * (1 - h)), line, [pb.Dirichlet(h, 0), last])


@case("ill-posed", told="b")
def pattern_with_half_a_start() -> pb.Problem:
    """Give the first state of one of two substances that react and spread."""
    equations = [
        sp.Eq(a.diff(t), a.diff(x, 2) - a * b**2),
        sp.Eq(b.diff(t), b.diff(x, 2) / 2 + a * b**2 - b),
    ]
    conditions = [pb.Neumann(a, 0), pb.Neumann(b, 0), pb.Initial(a, 1 + sp.cos(sp.pi * x) / 2)]
    return pb.Problem(equations, LINE * during(), conditions)


# Well posed -----------------------------------------------------------------------------------------------------------


@case("look-alike")
def beam_three_and_one() -> pb.Problem:
    """Give three conditions of a beam on the left, and one on the right."""
    exact = sp.cos(2 * x) + x
    left = [pb.Dirichlet(w.diff(x, k) if k else w, exact.diff(x, k).subs(x, 0), on=LINE.left) for k in (0, 1, 3)]
    conditions = [*left, pb.Dirichlet(w, exact.subs(x, 1), on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x, 4), 16 * sp.cos(2 * x)), LINE, conditions, exact=exact)


@case("look-alike")
def wind_across() -> pb.Problem:
    """Give two sides through which a slanting wind comes."""
    equation = manufactured(u.diff(x) + 2 * u.diff(y), {u: SMOOTH}, SQUARE)
    conditions = [pb.Dirichlet(u, SMOOTH, on=SQUARE.left | SQUARE.bottom)]
    return pb.Problem(equation, SQUARE, conditions, exact=SMOOTH)


@case("look-alike")
def pressure_in_a_point() -> pb.Problem:
    """Give all velocities, and the pressure in one point."""
    exact = {u: y**2, v: x**2, p: 2 * x + 2 * y + 5}
    conditions = [pb.Dirichlet(u, y**2), pb.Dirichlet(v, x**2), pb.Dirichlet(p, 7, on=(R(1, 2), R(1, 2)))]
    return pb.Problem(flow(), SQUARE, conditions, exact=exact)


@case("look-alike")
def option_without_an_end() -> pb.Problem:
    """Value an option that pays s²: where the share is worth nothing, nothing need be said."""
    shares = pb.Interval((x, 0, 2)) * during()
    exact = x**2 * sp.exp(R(9, 100) * (1 - t))
    equation = sp.Eq(h.diff(t) + x**2 * h.diff(x, 2) / 50 + x * h.diff(x) / 20 - h / 20, 0)
    conditions = [pb.Condition(sp.Eq(h, x**2), on=shares.final), pb.Dirichlet(h, exact, on=shares.right)]
    return pb.Problem(equation, shares, conditions, exact=exact)


@case("look-alike")
def torus_with_a_mean() -> pb.Problem:
    """Let a square repeat both ways, and give the mean."""
    exact = 3 + sp.sin(2 * sp.pi * x) * sp.cos(2 * sp.pi * y)
    equation = manufactured(-pb.laplacian(u), {u: exact}, SQUARE)
    return pb.Problem(equation, SQUARE, [pb.Periodic(u, x), pb.Periodic(u, y), pb.Mean(u, 3)], exact=exact)


@case("look-alike")
def line_that_is_matched() -> pb.Problem:
    """End an electric line by its own resistance: the right end gives one relation of voltage and current."""
    line = LINE * during()
    pulse = sp.sin(2 * (x - t)) + 2
    conditions = [
        pb.Dirichlet(a, pulse, on=line.left),
        pb.Condition(sp.Eq(a - b, 0), on=line.right),
        *(pb.Initial(of, pulse.subs(t, 0)) for of in (a, b)),
    ]
    equations = [sp.Eq(a.diff(t), -b.diff(x)), sp.Eq(b.diff(t), -a.diff(x))]
    return pb.Problem(equations, line, conditions, exact={a: pulse, b: pulse})


@case("look-alike")
def rod_with_a_block() -> pb.Problem:
    """End a rod by a block of metal, whose temperature follows the flux into it."""
    rod = LINE * during()
    exact = sp.exp(-t) * sp.cos(x) + x
    block = applied(h.diff(t) + h.diff(x), {h: exact}, rod).subs(x, 1)
    conditions = [
        pb.Dirichlet(h, exact.subs(x, 0), on=rod.left),
        pb.Condition(sp.Eq(h.diff(t) + h.diff(x), block), on=rod.right),
        pb.Initial(h, exact.subs(t, 0)),
    ]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), rod, conditions, exact=exact)


@case("look-alike")
def closed_with_a_leak() -> pb.Problem:
    """Close all sides of a disk that leaks a little of its own level."""
    exact = 7 + (x**2 + y**2 - 1) ** 2
    equation = manufactured(-pb.laplacian(u) + u / 100, {u: exact}, DISK)
    return pb.Problem(equation, DISK, [pb.Neumann(u, 0)], exact=exact)


@case("look-alike")
def wave_that_carries_itself() -> pb.Problem:
    """Let a rarefaction leave through the right end, where nothing is given."""
    line = LINE * during()
    exact = (1 + x) / (1 + t)
    conditions = [pb.Dirichlet(h, exact.subs(x, 0), on=line.left), pb.Initial(h, 1 + x)]
    return pb.Problem(sp.Eq(h.diff(t) + h * h.diff(x), 0), line, conditions, exact=exact)


@case("look-alike")
def trace_of_a_trace() -> pb.Problem:
    """Let a substance decay into another of a ten-billionth of its amount."""
    exact = {c: 1 + sp.exp(-t), d: (sp.exp(-t) - sp.exp(-3 * t)) / (2 * 10**10)}
    equations = [sp.Eq(c.diff(t), 1 - c), sp.Eq(d.diff(t), (c - 1) / 10**10 - 3 * d)]
    return pb.Problem(equations, during(2), [pb.Initial(c, 2), pb.Initial(d, 0)], exact=exact)


@case("look-alike")
def rim_in_three_arcs() -> pb.Problem:
    """Give the rim of a disk in three arcs, by value, by flux and by both mixed."""
    exact = sp.exp(x) * sp.cos(y)
    flux = applied(pb.normal_derivative(u), {u: exact}, DISK)
    above = DISK.boundary.where(lambda X: X[:, 1] > 0.5)
    below = DISK.boundary.where(lambda X: X[:, 1] < -0.5)
    between = DISK.boundary.where(lambda X: abs(X[:, 1]) <= 0.5)
    conditions = [
        pb.Dirichlet(u, exact, on=above),
        pb.Neumann(u, flux, on=below),
        pb.Robin(u, 2, 1, 2 * exact + flux, on=between),
    ]
    return pb.Problem(sp.Eq(pb.laplacian(u), 0), DISK, conditions, exact=exact)


@case("look-alike")
def plate_with_a_free_side() -> pb.Problem:
    """Clamp a plate on three sides, and give moment and shear force on the fourth."""
    exact = sp.exp(x) * sp.cos(y)
    flux = applied(pb.normal_derivative(u), {u: exact}, SQUARE)
    held, poisson = SQUARE.left | SQUARE.bottom | SQUARE.top, R(3, 10)
    moment = u.diff(x, 2) + poisson * u.diff(y, 2)
    shear = u.diff(x, 3) + (2 - poisson) * u.diff(x, 1, y, 2)
    conditions = [
        pb.Dirichlet(u, exact, on=held),
        pb.Neumann(u, flux, on=held),
        *(pb.Condition(manufactured(of, {u: exact}, SQUARE), on=SQUARE.right) for of in (moment, shear)),
    ]
    return pb.Problem(manufactured(BIHARMONIC, {u: exact}, SQUARE), SQUARE, conditions, exact=exact)


@case("look-alike")
def sheet_on_two_nails() -> pb.Problem:
    """Pull a sheet at all sides, nail one corner, and keep another from turning."""
    equations, stress = sheet()
    corners = [pb.Dirichlet(of, 0, on=(0, 0)) for of in (u, v)]
    conditions = [
        *pb.Traction(stress, (1, 0), on=SQUARE.right),
        *pb.Traction(stress, (-1, 0), on=SQUARE.left),
        *pb.Traction(stress, (0, 0), on=SQUARE.bottom | SQUARE.top),
        *corners,
        pb.Dirichlet(v, 0, on=(1, 0)),
    ]
    return pb.Problem(equations, SQUARE, conditions, exact={u: x / 210, v: -y / 700})


@case("look-alike")
def rate_as_a_field() -> pb.Problem:
    """Give the rate of a reaction a name, which has no derivative and no condition."""
    exact = 1 + sp.sin(x) * sp.cos(y)
    source = sp.expand(-exact.diff(x, 2) - exact.diff(y, 2) + exact**2)
    equations = [sp.Eq(-pb.laplacian(u) + v, source), sp.Eq(v, u**2)]
    return pb.Problem(equations, SQUARE, [pb.Dirichlet(u, exact)], exact={u: exact, v: exact**2})


@case("look-alike")
def spring_with_a_kick() -> pb.Problem:
    """Kick a damped mass for a thousandth of the time."""
    width = R(1, 1000)
    kick = sp.exp(-(((t - 1) / width) ** 2)) / (sp.sqrt(sp.pi) * width)
    exact = (sp.erf((t - 1) / width) + sp.erf(1 / width)) / 2
    equation = sp.Eq(c.diff(t) + c, kick + exact)
    return pb.Problem(equation, during(2), [pb.Initial(c, 0)], exact=exact)
