"""Ill-posed problems that counting conditions does not tell, and well-posed ones like them: the half kept aside.

Nothing may be chosen by these: they are there to be measured.
"""

from __future__ import annotations

import sympy as sp

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.doubts_open import CUBE, inertial
from benchmarks.sets.held_out import DISK, LINE, SQUARE, R, c, h, p, s, t, u, v, w, x, y, z
from benchmarks.sets.scales_open import THREE, during, posed
from pibls.problems.manufactured import applied, manufactured

case, doubts_aside = collected()
like, doubts_aside_alike = collected(THREE)
a, b = pb.field("a", x, t), pb.field("b", x, t)
BALL = pb.Ball((x, y, z), (0, 0, 0), 1)
BAR = pb.Cylinder((x, y, z), (0, 0, 0), (0, 0, 2), R(1, 2))
SOLID = [pb.field(name, x, y, z) for name in ("p", "q", "r")]
BODY = pb.stress(SOLID, young=1, poisson=R(1, 4))
FREE = LINE.left | LINE.right

# Ill-posed ------------------------------------------------------------------------------------------------------------


@case("ill-posed")
def tank_that_fills_at_will() -> pb.Problem:
    """Start w′ = 3 w^⅔ at zero, where it may stay as long as it likes."""
    root = sp.Pow(sp.Abs(w), R(2, 3))
    return pb.Problem(sp.Eq(w.diff(x), 3 * root), LINE, [pb.Dirichlet(w, 0, on=LINE.left)])


@case("ill-posed")
def disk_that_only_gains() -> pb.Problem:
    """Close the rim of a disk in which 1 + u² is made."""
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1 + u**2), DISK, [pb.Neumann(u, 0)])


@case("ill-posed", told="right")
def gas_in_soil_without_a_side() -> pb.Problem:
    """Give a gas in soil its left end, and nothing at its right one."""
    soil = LINE * during()
    conditions = [pb.Dirichlet(h, 1, on=soil.left), pb.Initial(h, 1 + x)]
    return pb.Problem(sp.Eq(h.diff(t), (h**2).diff(x, 2)), soil, conditions)


@case("ill-posed")
def conductor_that_cooled() -> pb.Problem:
    """Ask for the first temperature of a rod whose conductivity grows with it."""
    rod = LINE * during(R(1, 2))
    last = pb.Condition(sp.Eq(h, sp.sin(sp.pi * x)), on=rod.final)
    return pb.Problem(sp.Eq(h.diff(t), ((1 + h**2) * h.diff(x)).diff(x)), rod, [pb.Dirichlet(h, 0), last])


@case("ill-posed")
def stiffening_beam_with_five() -> pb.Problem:
    """Clamp a stiffening beam at both ends, and ask for a moment, too."""
    conditions = [pb.Dirichlet(w, 0), pb.Dirichlet(w.diff(x), 0), pb.Dirichlet(w.diff(x, 2), 0, on=LINE.left)]
    return pb.Problem(sp.Eq(w.diff(x, 4) + w**3, 10), LINE, conditions)


@case("ill-posed")
def inertia_that_vanishes() -> pb.Problem:
    """Let more into a square than out of it, with inertia."""
    conditions = [
        pb.Dirichlet(u, 4 * y * (1 - y), on=SQUARE.left),
        pb.Dirichlet(u, 2 * y * (1 - y), on=SQUARE.right),
        pb.Dirichlet(u, 0, on=SQUARE.bottom | SQUARE.top),
        pb.Dirichlet(v, 0),
        pb.Mean(p, 0),
    ]
    return pb.Problem([sp.Eq(o, 0) for o in inertial(R(1))], SQUARE, conditions)


@case("ill-posed")
def ball_without_a_level() -> pb.Problem:
    """Give the flux through a sphere, and no level inside."""
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), BALL, [pb.Neumann(s, x * y)])


@case("ill-posed", told="side")
def bar_without_its_side() -> pb.Problem:
    conditions = [pb.Dirichlet(s, 0, on=BAR.bottom), pb.Dirichlet(s, 1, on=BAR.top)]
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), BAR, conditions)


@case("ill-posed")
def disk_off_by_a_thousandth() -> pb.Problem:
    """Let 0.1 % less leave a disk than is made in it."""
    conditions = [pb.Condition(sp.Eq((2 + x) * pb.normal_derivative(u), -R(999, 1000))), pb.Mean(u, 0)]
    return pb.Problem(sp.Eq(-pb.div((2 + x) * pb.grad(u)), 2), DISK, conditions)


@case("ill-posed")
def spring_asked_for_the_impossible() -> pb.Problem:
    """Ask an oscillation that is back after half a period to be elsewhere then."""
    line = pb.Interval((x, 0, sp.pi))
    conditions = [pb.Dirichlet(w, 0, on=line.left), pb.Dirichlet(w, 1, on=line.right)]
    return pb.Problem(sp.Eq(w.diff(x, 2) + w, 0), line, conditions)


@case("ill-posed")
def beam_that_falls() -> pb.Problem:
    """Load a beam that nothing holds."""
    free = [pb.Dirichlet(w.diff(x, 2), 0), pb.Dirichlet(w.diff(x, 3), 0)]
    return pb.Problem(sp.Eq(w.diff(x, 4), 1), LINE, free)


@case("ill-posed")
def cube_with_a_torque() -> pb.Problem:
    """Pull a cube up on its right and down on its left."""
    rest = CUBE.front | CUBE.back | CUBE.bottom | CUBE.top
    conditions = [
        *pb.Traction(BODY, (0, 0, 1), on=CUBE.right),
        *pb.Traction(BODY, (0, 0, -1), on=CUBE.left),
        *pb.Traction(BODY, (0, 0, 0), on=rest),
        *(pb.Mean(of, 0) for of in SOLID),
    ]
    return pb.Problem([sp.Eq(-pb.div(row), 0) for row in BODY.tolist()], CUBE, conditions)


@case("ill-posed")
def cube_on_ice() -> pb.Problem:
    """Rest a cube on ice: nothing keeps it from sliding and turning."""
    rest = CUBE.front | CUBE.back | CUBE.left | CUBE.right
    conditions = [
        *pb.Symmetry(SOLID, BODY, on=CUBE.bottom),
        *pb.Traction(BODY, (0, 0, -1), on=CUBE.top),
        *pb.Traction(BODY, (0, 0, 0), on=rest),
    ]
    return pb.Problem([sp.Eq(-pb.div(row), 0) for row in BODY.tolist()], CUBE, conditions)


@case("ill-posed")
def pattern_back_in_time() -> pb.Problem:
    """Ask for the first state of two substances that react, from their last."""
    line = LINE * during()
    shape = 1 + sp.cos(sp.pi * x) / 2
    last = [pb.Condition(sp.Eq(of, shape), on=line.final) for of in (a, b)]
    equations = [sp.Eq(a.diff(t), a.diff(x, 2) - a * b), sp.Eq(b.diff(t), b.diff(x, 2) / 3 + a * b - b)]
    return pb.Problem(equations, line, [pb.Neumann(a, 0), pb.Neumann(b, 0), *last])


@case("ill-posed")
def too_hot_to_be_steady() -> pb.Problem:
    """Heat a line by 4 eʷ, which is more than any steady temperature takes away."""
    return pb.Problem(sp.Eq(-w.diff(x, 2), 4 * sp.exp(w)), LINE, [pb.Dirichlet(w, 0)])


# Well posed -----------------------------------------------------------------------------------------------------------


@like("look-alike")
def tank_that_fills() -> pb.Problem:
    root = sp.Pow(sp.Abs(w), R(2, 3))
    start = pb.Dirichlet(w, R(1, 8), on=LINE.left)
    return pb.Problem(sp.Eq(w.diff(x), 3 * root), LINE, [start], exact=(x + R(1, 2)) ** 3)


@like("look-alike")
def closed_disk_that_burns() -> pb.Problem:
    exact = 2 + x * (1 - (x**2 + y**2) / 3)
    equation = manufactured(-pb.laplacian(u) + u**3, {u: exact}, DISK)
    return pb.Problem(equation, DISK, [pb.Neumann(u, 0)], exact=exact)


@like("look-alike")
def gas_in_soil() -> pb.Problem:
    return posed([h.diff(t) - (h**2).diff(x, 2)], {h: 1 + x + t * x * (1 - x) / 2}, LINE * during())


@like("look-alike")
def long_wave_one_left_two_right() -> pb.Problem:
    """Give a long wave one condition on the left, and two on the right."""
    canal = LINE * during()
    exact = sp.cos(2 * x - t) * sp.exp(x)
    equation = manufactured(h.diff(t) + h.diff(x) + h.diff(x, 3), {h: exact}, canal)
    slope = pb.Dirichlet(h.diff(x), exact.diff(x), on=canal.right)
    conditions = [pb.Dirichlet(h, exact), slope, pb.Initial(h, exact.subs(t, 0))]
    return pb.Problem(equation, canal, conditions, exact=exact)


@like("look-alike")
def stiffening_beam() -> pb.Problem:
    exact = x**2 * (1 - x) ** 2 * (1 + x)
    equation = manufactured(w.diff(x, 4) + w**3, {w: exact}, LINE)
    return pb.Problem(equation, LINE, [pb.Dirichlet(w, 0), pb.Dirichlet(w.diff(x), 0)], exact=exact)


@like("look-alike")
def inertia_in_and_out() -> pb.Problem:
    profile = 4 * y * (1 - y)
    conditions = [pb.Dirichlet(u, profile), pb.Dirichlet(v, 0), pb.Mean(p, 0)]
    exact = {u: profile, v: 0, p: 4 - 8 * x}
    return pb.Problem([sp.Eq(o, 0) for o in inertial(R(1))], SQUARE, conditions, exact=exact)


@like("look-alike")
def ball_that_leaks() -> pb.Problem:
    exact = x * y + z
    value = applied(pb.normal_derivative(s) + s, {s: exact}, BALL)
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), BALL, [pb.Robin(s, 1, 1, value)], exact=exact)


@like("look-alike")
def bar_with_a_closed_side() -> pb.Problem:
    conditions = [
        pb.Dirichlet(s, 0, on=BAR.bottom),
        pb.Dirichlet(s, 1, on=BAR.top),
        pb.Neumann(s, 0, on=BAR.side),
    ]
    return pb.Problem(sp.Eq(pb.laplacian(s), 0), BAR, conditions, exact=z / 2)


@like("look-alike")
def disk_held_by_an_arc() -> pb.Problem:
    """Hold a disk on a twentieth of its rim, and give the flux elsewhere."""
    exact = sp.exp(x) * sp.cos(y)
    near = DISK.boundary.where(lambda X: X[:, 0] > 0.98)
    far = DISK.boundary.where(lambda X: X[:, 0] <= 0.98)
    flux = applied(pb.normal_derivative(u), {u: exact}, DISK)
    conditions = [pb.Dirichlet(u, exact, on=near), pb.Neumann(u, flux, on=far)]
    return pb.Problem(sp.Eq(pb.laplacian(u), 0), DISK, conditions, exact=exact)


@like("look-alike")
def drum_next_to_resonance() -> pb.Problem:
    exact = sp.sin(sp.pi * x) * sp.sin(2 * sp.pi * y) + x * y
    return posed([pb.laplacian(u) + R(101, 20) * sp.pi**2 * u], {u: exact}, SQUARE)


@like("look-alike")
def beam_on_soil() -> pb.Problem:
    """Let a beam with free ends lie on soil."""
    exact = 1 + x**4 * (1 - x) ** 4
    equation = manufactured(w.diff(x, 4) + 100 * w, {w: exact}, LINE)
    free = [pb.Dirichlet(w.diff(x, 2), 0), pb.Dirichlet(w.diff(x, 3), 0)]
    return pb.Problem(equation, LINE, free, exact=exact)


@like("look-alike")
def cube_that_hangs() -> pb.Problem:
    """Pull a cube down that hangs from rollers on three sides."""
    strain = R(1, 10)
    exact = dict(zip(SOLID, (-R(1, 4) * strain * x, -R(1, 4) * strain * y, strain * z), strict=True))
    conditions = [
        *pb.Symmetry(SOLID, BODY, on=CUBE.bottom | CUBE.left | CUBE.front),
        *pb.Traction(BODY, (0, 0, strain), on=CUBE.top),
        *pb.Traction(BODY, (0, 0, 0), on=CUBE.right | CUBE.back),
    ]
    return pb.Problem([sp.Eq(-pb.div(row), 0) for row in BODY.tolist()], CUBE, conditions, exact=exact)


@like("look-alike")
def kicked_spring() -> pb.Problem:
    exact = sp.sin(t) + (1 + sp.tanh(300 * (t - 1))) * sp.sin(t - 1) / 2
    equation = manufactured(c.diff(t, 2) + c + c**3, {c: exact}, during(3))
    start = [pb.Initial(c, exact.subs(t, 0)), pb.Initial(c.diff(t), exact.diff(t).subs(t, 0))]
    return pb.Problem(equation, during(3), start, exact=exact)


@like("look-alike")
def growth_that_ends_in_time() -> pb.Problem:
    return pb.Problem(sp.Eq(c.diff(t), c**2), during(R(19, 10)), [pb.Initial(c, R(1, 2))], exact=1 / (2 - t))


@like("look-alike")
def fast_growth() -> pb.Problem:
    return pb.Problem(sp.Eq(c.diff(t), 20 * c), during(), [pb.Initial(c, 1)], exact=sp.exp(20 * t))
